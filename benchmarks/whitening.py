"""What whitening by RCA gives to DNE and NCA: searches by cosine in embeddings and images, 3-NN on
tables.

    NEARKIN_DATA=folder python benchmarks/whitening.py
    NEARKIN_DATA=folder python benchmarks/whitening.py tables

print Markdown. The first takes the training rows of banking77_minilm.npz (sentence embeddings, of
unit length) and of usps.npz (pixels), and draws those that are held out: each searches the other
training rows. Precision@k is the share of its k nearest, by cosine, that are of its class, the mean
over all. Seconds are processor time of a fit.

The second takes the tables of defaults.py, standardized, and its splits: at most 500 training rows.
All dimensions are kept; in percent, 3-NN after a method, and the differences when RCA comes before
it; then the differences over the tables.

NEARKIN_DATA names a folder of NPZ files with a folder `tables` of CSV files; tables that are not
there are left out.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from defaults import GROUPS, accuracies, row, rows_of
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, normalize
from threadpoolctl import threadpool_limits

from nearkin import DNE, NCA, RCA, EmbeddingAdapter

SETS = {"banking77": "banking77_minilm", "USPS": "usps"}
IMAGES = ("usps", "mnist", "coil20_16", "umist_28x23", "orl_56x46")  # of defaults.py; no tables
K = 10
WHITENINGS = {"RCA()": RCA()}
FORMS = (".1f", *["+.1f"] * len(WHITENINGS))


def whitened(methods: dict[str, Any]) -> dict[str, Any]:
    return {
        f"{first}, then {name}": make_pipeline(whitening, method)
        for name, method in methods.items()
        for first, whitening in WHITENINGS.items()
    }


def in_code(name: str) -> str:
    """Return the name of a method, or of several one after the other, as Markdown."""
    return ", then ".join(f"`{part}`" for part in name.split(", then "))


def compared(m: int) -> dict[str, Any]:
    alone = {f"DNE({m}, n_neighbors=10)": DNE(m, n_neighbors=10), f"NCA({m})": NCA(m)}
    others = {f"PCA({m})": PCA(m), f"RCA({m})": RCA(m)}
    adapter = {f"EmbeddingAdapter({m})": EmbeddingAdapter(m)}
    named = others | alone | whitened(alone) | adapter
    return {"raw": FunctionTransformer()} | {
        in_code(name): method for name, method in named.items()
    }


def training_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = np.load(Path(os.environ.get("NEARKIN_DATA", ""), f"{name}.npz"))
    train = data["train"] if "train" in data else data["split"] == 0
    X = data["X"][train].astype(np.float32)
    return normalize(X) if name == "banking77_minilm" else X, data["y"][train]


def measured(
    method: Any, X: np.ndarray, y: np.ndarray, n_held_out: int
) -> tuple[float, float, float]:
    """Return precision@1 and @10 of the rows that are held out, and the processor time of a fit to
    the others.
    """
    rows = np.random.default_rng(0).permutation(len(y))
    held_out, others = rows[:n_held_out], rows[n_held_out:]
    start = time.process_time()
    method = clone(method).fit(X[others], y[others])
    seconds = time.process_time() - start
    index = NearestNeighbors(n_neighbors=K, metric="cosine").fit(method.transform(X[others]))
    found = index.kneighbors(method.transform(X[held_out]), return_distance=False)
    right = y[others][found] == y[held_out][:, None]
    return float(right[:, 0].mean()), float(right.mean()), seconds


def searches(m: int, n_held_out: int) -> None:
    sets = {title: training_rows(name) for title, name in SETS.items()}
    row(
        "",
        *(
            cell
            for title in sets
            for cell in (f"{title}: precision@1", f"precision@{K}", "seconds")
        ),
    )
    row(*["---"] * (1 + 3 * len(sets)))
    for method, estimator in compared(m).items():
        cells = []
        for X, y in sets.values():
            first, all_k, seconds = measured(estimator, X, y, n_held_out)
            cells += [f"{100 * first:.1f}", f"{100 * all_k:.1f}", f"{seconds:.1f}"]
        row(method, *cells)


def tables(n_splits: int) -> None:
    alone = {"DNE(n_neighbors=10)": DNE(n_neighbors=10), "NCA()": NCA()}
    columns = [
        name for method in alone for name in (method, *(f"{first} first" for first in WHITENINGS))
    ]
    row("table (training rows x features, classes)", *columns)
    row(*["---"] * (1 + len(columns)))
    found = []
    for name in [name for names in GROUPS.values() for name in names if name not in IMAGES]:
        try:
            X, y = rows_of(name)
        except FileNotFoundError:
            continue
        n_train, scores = accuracies(X, y, alone | whitened(alone), n_splits)
        before = np.array([scores[name] for name in alone])[:, None]
        gains = np.reshape([scores[name] for name in whitened(alone)], (len(alone), -1)) - before
        found.append(gains.round(6))  # equal accuracies differ by rounding
        cells = [
            f"{score:{form}}"
            for part in np.hstack([before, gains])
            for score, form in zip(part, FORMS, strict=True)
        ]
        row(f"{name} ({n_train} x {X.shape[1]}, {len(np.unique(y))})", *cells)
    print()
    row("", "mean", "best", "worst", "tables that lose")
    row(*["---"] * 5)
    of_pairs = np.reshape(found, (len(found), -1)).T
    for name, gains in zip(whitened(alone), of_pairs, strict=True):
        figures = (f"{summary(gains):+.1f}" for summary in (np.mean, np.max, np.min))
        row(in_code(name), *figures, f"{np.sum(gains < 0)} of {len(gains)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", nargs="?", choices=("searches", "tables"), default="searches")
    parser.add_argument("--components", type=int, default=64)
    parser.add_argument("--held-out", type=int, default=2500, metavar="ROWS")
    parser.add_argument("--splits", type=int, default=5, help="of every table")
    options = parser.parse_args()
    if options.study == "tables":
        return tables(options.splits)
    searches(options.components, options.held_out)


if __name__ == "__main__":
    with threadpool_limits(1), warnings.catch_warnings(action="ignore"):
        main()
