"""Pictures of labelled rows: how well two dimensions hold classes on rows that the fit has not seen,
and what they show of labels that are chance; written to docs/measured/pictures.md.

    pip install umap-learn openTSNE lightgbm xgboost catboost pytabkit
    NEARKIN_DATA=folder python benchmarks/pictures.py
    NEARKIN_DATA=folder python benchmarks/pictures.py --data development --labels given
    python benchmarks/pictures.py --write docs/measured/pictures.md

Each fit is measured twice: with the labels, and with those of the training rows permuted; a method
that sees no labels draws the same picture for both. Results are appended to a file, a JSON line for
each, and a run that was stopped goes on where it was; the document is written from this file and
printed at the end of a run. What cannot be imported or read is left out, with the reason.

All methods have all cores, their defaults and random_state=0. With a seed, UMAP works in one thread;
on single data sets it is measured once more without. A first fit, in which numba compiles UMAP, is
not counted. Seconds are those of the clock: let nothing else run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from picture_report import (
    GIVEN,
    N_FOLDS,
    ON_FRAME,
    OURS,
    PERMUTED,
    SINGLE,
    TABLES,
    TRUST_NEIGHBORS,
    TRUST_ROWS,
    TSNE,
    UMAP,
    UNSEEDED,
    document,
)
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.manifold import trustworthiness
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tables import Table, read

from nearkin import NCA, NCAClassifier, TDistributedNCA
from nearkin.tables import TableEncoder

PACKAGES = {
    "nearkin": "nearkin", "numpy": "numpy", "scipy": "scipy", "scikit-learn": "sklearn",
    "umap-learn": "umap", "openTSNE": "openTSNE", "numba": "numba",
}  # fmt: skip


class Split(NamedTuple):
    """Rows and labels, for training and held out; of a table also the rows of its data frame."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    frame: pd.DataFrame | None = None
    frame_new: pd.DataFrame | None = None


def archive(name: str) -> dict[str, np.ndarray]:
    with np.load(Path(os.environ["NEARKIN_DATA"], f"{name}.npz")) as file:
        return dict(file)


def folds(X: Any, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    with warnings.catch_warnings(action="ignore"):  # of classes with fewer rows than folds
        return list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y))


@lru_cache(1)
def split(name: str, fold: int) -> Split:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X = X / 16
        train, test = folds(X, y)[fold]
    elif name == "mnist":
        data = archive(name)
        X, y = data["X"].astype(np.float32) / 255, data["y"].astype(int)
        train, test = (np.flatnonzero(data["split"] == part) for part in (0, 1))
    elif name == "banking77":
        data = archive("banking77_minilm")
        X, y = data["X"].astype(np.float32), np.unique(data["y"], return_inverse=True)[1]
        train, test = np.flatnonzero(data["train"]), np.flatnonzero(~data["train"])
    else:
        return table_split(read(name), fold)
    return Split(X[train], y[train], X[test], y[test])


def table_split(one: Table, fold: int) -> Split:
    train, test = folds(one.X, one.y)[fold]
    frame, frame_new = (one.X.iloc[rows].reset_index(drop=True) for rows in (train, test))
    encoder = make_pipeline(TableEncoder(missing="keep"), SimpleImputer(), StandardScaler())
    X, X_new = encoder.fit_transform(frame), encoder.transform(frame_new)
    return Split(X, one.y[train], X_new, one.y[test], frame, frame_new)


# Each function fits a method and returns what places new rows, and the places of the training rows
# where the method has others for them than its transform.
Fitted = tuple[Callable[[Any], np.ndarray], np.ndarray | None]


def fit_t_nca(X: Any, y: np.ndarray, **settings: Any) -> Fitted:
    return TDistributedNCA(random_state=0, **settings).fit(X, y).transform, None


def fit_umap(X: np.ndarray, y: np.ndarray, random_state: int | None = 0) -> Fitted:
    from umap import UMAP

    model = UMAP(random_state=random_state).fit(X, y)
    return model.transform, model.embedding_


def fit_tsne(X: np.ndarray, y: np.ndarray) -> Fitted:
    from openTSNE import TSNE

    embedding = TSNE(random_state=0, n_jobs=-1).fit(X)
    return lambda X_new: np.asarray(embedding.transform(X_new)), np.asarray(embedding)


def fit_linear(model: Any, X: np.ndarray, y: np.ndarray) -> Fitted:
    return model.fit(X, y).transform, None


def fit_lda(X: np.ndarray, y: np.ndarray) -> Fitted:
    return fit_linear(LinearDiscriminantAnalysis(n_components=min(2, len(np.unique(y)) - 1)), X, y)


def fit_nca(X: np.ndarray, y: np.ndarray) -> Fitted:
    solver = "sgd" if len(X) > 10_000 else "lbfgs"  # as its documentation advises
    return fit_linear(NCA(2, solver=solver, random_state=0), X, y)


METHODS: dict[str, Callable[[Any, np.ndarray], Fitted]] = {
    ON_FRAME: lambda X, y: fit_t_nca(X, y, estimator=NCAClassifier(random_state=0)),
    OURS: fit_t_nca,
    UMAP: fit_umap,
    UNSEEDED: lambda X, y: fit_umap(X, y, None),
    TSNE: fit_tsne,
    "LDA": fit_lda,
    "NCA": fit_nca,
    "PCA": lambda X, y: fit_linear(PCA(2, random_state=0), X, y),
}
WITHOUT_LABELS = (TSNE, "PCA")
NEEDS = {UMAP: "umap", UNSEEDED: "umap", TSNE: "openTSNE"}


@lru_cache(1)
def compile_umap() -> None:
    """Let numba compile what UMAP needs for few rows and, from 4,096 on, for many."""
    rng = np.random.default_rng(0)
    for n in (200, 5000):
        X = rng.normal(size=(n, 10)).astype(np.float32)
        fit_umap(X, rng.integers(3, size=n))[0](X[:100] + 1)


def measured(method: str, rows: Split, kinds: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield seconds and scores with labels of each kind, or why there are none."""
    X, X_new = (rows.frame, rows.frame_new) if method == ON_FRAME else (rows.X, rows.X_new)
    drawn: tuple[np.ndarray, np.ndarray, dict[str, float]] | None = None
    for kind in kinds:
        y = np.random.default_rng(0).permutation(rows.y) if kind == PERMUTED else rows.y
        try:
            if drawn is None or method not in WITHOUT_LABELS:
                drawn = draw(method, X, y, X_new)
            Z, Z_new, seconds = drawn
            yield kind, {"status": "ok"} | seconds | scores(Z, y, Z_new, rows)
        except Exception as error:
            yield kind, {"status": f"failed: {type(error).__name__}: {str(error)[:200]}"}


def draw(
    method: str, X: Any, y: np.ndarray, X_new: Any
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Return the places of training rows and of new ones, and the seconds for both."""
    start = time.perf_counter()
    transform, Z = METHODS[method](X, y)
    fitted = time.perf_counter()
    Z_new = transform(X_new)
    end = time.perf_counter()
    Z = transform(X) if Z is None else Z
    return Z, Z_new, {"fit": round(fitted - start, 3), "transform": round(end - fitted, 4)}


def scores(Z: np.ndarray, y: np.ndarray, Z_new: np.ndarray, rows: Split) -> dict[str, Any]:
    knn = KNeighborsClassifier(5).fit(Z, y)
    hits = knn.predict(Z_new) == rows.y_new
    some = np.random.default_rng(0).permutation(len(Z_new))[:TRUST_ROWS]
    n_neighbors = min(TRUST_NEIGHBORS, (len(some) - 1) // 2)  # fewer than half of the rows
    return {
        "held_out": float(hits.mean()),
        "training": float(np.mean(knn.predict(None) == y)),  # None: no row votes for itself
        "trust": trustworthiness(rows.X_new[some], Z_new[some], n_neighbors=n_neighbors),
        "chance": float(np.mean(rows.y_new == np.bincount(rows.y).argmax())),
        "rows": len(Z),
        "features": rows.X.shape[1],
        "classes": len(np.unique(rows.y)),
        "hits": "".join(map(str, hits.astype(int))),
    }


def jobs(data: list[str], methods: list[str]) -> Iterator[tuple[str, int, str]]:
    """Yield data, fold and method of all that can be read and imported."""
    missing = {method for method in methods if find_spec(NEEDS.get(method, "nearkin")) is None}
    for method in missing:
        print(f"{method}: left out, no module {NEEDS[method]}", file=sys.stderr)
    chosen = [name for group in data for name in TABLES.get(group, (group,))]
    for name in sorted(chosen, key=lambda name: name == "mnist"):  # the last: it takes longest
        try:
            split(name, 0)
        except (FileNotFoundError, KeyError) as error:  # KeyError: of NEARKIN_DATA
            print(f"{name}: left out, {type(error).__name__}: {error}", file=sys.stderr)
            continue
        left_out = missing | {ON_FRAME if name in SINGLE else UNSEEDED}
        for fold in range(1 if name in ("banking77", "mnist") else N_FOLDS):
            yield from ((name, fold, method) for method in methods if method not in left_out)


def run(options: argparse.Namespace) -> None:
    options.results.parent.mkdir(parents=True, exist_ok=True)
    options.results.touch()
    lines = [json.loads(line) for line in options.results.read_text().splitlines()]
    done = {(line["data"], line["fold"], line["method"], line["labels"]) for line in lines}
    stamp = {
        "date": time.strftime("%Y-%m-%d"),
        "versions": {name: version(name) for name, module in PACKAGES.items() if find_spec(module)},
    }
    for job in jobs(options.data, options.methods):
        name, fold, method = job
        kinds = [
            kind
            for kind in options.labels
            if (*job, kind) not in done and not (method == UNSEEDED and kind == PERMUTED)
        ]
        if kinds and NEEDS.get(method) == "umap":
            compile_umap()
        for kind, found in measured(method, split(name, fold), kinds):
            line = {"data": name, "fold": fold, "method": method, "labels": kind} | found | stamp
            with options.results.open("a") as file:
                file.write(json.dumps(line) + "\n")
            shown = (
                f"{found['held_out']:.4f} in {found['fit']:.1f} s"
                if "fit" in found
                else found["status"]
            )
            print(
                f"{time.strftime('%H:%M:%S')} {name}, {fold}, {method}, {kind}: {shown}", flush=True
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    known = (*SINGLE, *TABLES, *TABLES["held-out"], *TABLES["development"])
    parser.add_argument(
        "--data",
        nargs="+",
        choices=known,
        default=[*SINGLE, "held-out"],
        metavar="DATA",
        help=f"of {', '.join(known)}; by default {', '.join(SINGLE)} and the held-out tables",
    )
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=list(METHODS), metavar="METHOD"
    )
    parser.add_argument(
        "--labels", nargs="+", choices=(GIVEN, PERMUTED), default=(GIVEN, PERMUTED), metavar="KIND"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("benchmarks", "results", "pictures.jsonl")
    )
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the document; nothing is run"
    )
    options = parser.parse_args()
    if not options.write:
        with warnings.catch_warnings(action="ignore"):
            run(options)
    text = document([json.loads(line) for line in options.results.read_text().splitlines()]) + "\n"
    options.write.write_text(text) if options.write else print(text)


if __name__ == "__main__":
    main()
