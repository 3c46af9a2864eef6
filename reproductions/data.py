"""The papers' data: from a folder of NPZ files, or from OpenML where that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import fetch_openml

from nearkin.datasets import BUNDLED, load

Archive = Mapping[str, np.ndarray]


class MissingDataError(Exception):
    """A set is not at hand; the message says which, and where to get it."""


def _as_it_is(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(X, dtype=np.float64), np.asarray(y)


def _complete(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = _as_it_is(X, y)
    whole = ~np.isnan(X).any(axis=1)
    return X[whole], y[whole]


def _usps(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """OpenML numbers the digits from 1, and its grey goes from 0 to 1 where other copies have -1 to
    1.
    """
    return 2 * np.asarray(X, dtype=np.float64) - 1, np.asarray(y).astype(int) - 1


@dataclass(frozen=True)
class Source:
    """What a set is, and its number at OpenML with a function that gives its rows the form of the
    file's.

    Attributes
    ----------
    what : str
    shape : (n, p)
    openml : int or None
    adapt : function of X and y
    """

    what: str
    shape: tuple[int, int]
    openml: int | None = None
    adapt: Callable[[Any, Any], tuple[np.ndarray, np.ndarray]] = _as_it_is


SOURCES = {
    "sonar": Source("UCI's sonar (mines and rocks)", (208, 60), 40),
    "ionosphere": Source("UCI's ionosphere", (351, 34), 59),
    "breast_cancer_wisconsin_original": Source(
        "UCI's breast cancer Wisconsin (original), the rows without gaps", (683, 9), 15, _complete
    ),
    "boston_housing": Source("UCI's Boston housing, y the price", (506, 13), 531),
    "mnist": Source("MNIST, the 60,000 training rows first", (70_000, 784), 554),
    "usps": Source("USPS digits of 16 x 16 pixels, from -1 to 1", (9_298, 256), 41082, _usps),
    "mushroom": Source("UCI's mushroom as 0 and 1, without stalk-root", (8_124, 112)),
    "umist_28x23": Source("UMIST faces of 28 x 23 pixels", (575, 644)),
    "orl_112x92": Source("AT&T (ORL) faces of 112 x 92 pixels", (400, 10_304)),
    "coil20_16_subsampled": Source("COIL-20, every 8th pixel of its 128 x 128", (1_440, 256)),
    "news_rec": Source(
        "the rec groups of 20 newsgroups as sparse TF-IDF (data_unnorm, indices, indptr, shape)",
        (3_969, 8_015),
    ),
    "tdt2": Source(
        "TDT2 as sparse counts (data, indices, indptr, shape), classes by size", (9_394, 36_771)
    ),
    "ohsumed_letor3": Source(
        "LETOR 3.0's OHSUMED (X_qnorm: scaled by query; part: 1 to 5)", (16_140, 45)
    ),
}


@dataclass(frozen=True)
class Data:
    """Where the sets are looked for.

    Attributes
    ----------
    folder : Path or None
        Holds NAME.npz with arrays X (n, p) and y (n,), or the parts of a sparse matrix for X.
    download : bool
        Whether to fetch from OpenML what is not there; scikit-learn keeps it in its data folder.
    """

    folder: Path | None = None
    download: bool = False

    def rows(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return X as float64, and y, of a dense set.

        Raises
        ------
        MissingDataError
            If it is not at hand.
        """
        if name in BUNDLED:
            bundled = load(name)
            return bundled.X, bundled.y
        archive = self.archive(name)
        return archive["X"].astype(np.float64), archive["y"]

    def sparse(self, name: str, values: str = "data") -> tuple[csr_array, np.ndarray]:
        """Return X as a float64 csr_array, its values under their name, and y."""
        archive = self.archive(name)
        parts = (archive[values].astype(np.float64), archive["indices"], archive["indptr"])
        return csr_array(parts, shape=tuple(archive["shape"])), archive["y"]

    def archive(self, name: str) -> Archive:
        """Return all arrays of a set by their names."""
        source = SOURCES[name]
        if self.folder is not None and (self.folder / f"{name}.npz").exists():
            return np.load(self.folder / f"{name}.npz", allow_pickle=False)
        if source.openml is not None and self.download:
            return _downloaded(name, source)
        place = "the folder of --data or NEARKIN_DATA" if self.folder is None else str(self.folder)
        openml = "" if source.openml is None else f", or add --download (OpenML {source.openml})"
        raise MissingDataError(
            f"{name}: put {name}.npz into {place}: {source.what}, {_shape(source.shape)}{openml}"
        )


def _downloaded(name: str, source: Source) -> Archive:
    try:
        bunch = fetch_openml(data_id=source.openml, as_frame=False, parser="liac-arff")
    except Exception as error:  # whatever network and server have in store
        raise MissingDataError(f"{name}: OpenML {source.openml} cannot be had ({error})") from error
    X, y = source.adapt(bunch.data, bunch.target)
    if X.shape != source.shape:
        raise MissingDataError(
            f"{name}: OpenML {source.openml} holds {_shape(X.shape)}, not {_shape(source.shape)}"
        )
    return {"X": X, "y": y}


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in shape)
