"""LMNN on all of MNIST, and beside metric-learn's.

    NEARKIN_DATA=folder python benchmarks/lmnn.py mnist
    NEARKIN_DATA=folder python benchmarks/lmnn.py peer --peer /path/to/python

The peer's interpreter is one that can `import metric_learn` (it needs scikit-learn < 1.6 and numpy
< 2). Both learn from the same rows, with the same k, mu and start: the rows are scaled so that the
identity, where metric-learn begins, is where LMNN begins. Both maps are evaluated by one function,
the sum over all triples in float64.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from nearkin import LMNN
from nearkin.estimators.descent_embedding import target_neighbors
from nearkin.estimators.lmnn import balanced_scale, gaps_of_targets
from nearkin.objectives.lmnn import impostors_within, large_margin, target_squares

SIDE = 28
PEER = """
import sys, time
import numpy as np
from metric_learn import LMNN
data = np.load(sys.argv[1])
lmnn = LMNN(init="identity", n_neighbors=int(data["k"]), **eval(sys.argv[3]))
start = time.perf_counter()
lmnn.fit(data["X"], data["y"])
np.savez(sys.argv[2], components=lmnn.components_, seconds=time.perf_counter() - start, n_iter=lmnn.n_iter_)
"""


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def mnist(n_rows: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, drawn at random but for all of them, and test rows, pixels in [0, 1],
    with their labels.
    """
    path = Path(os.environ.get("NEARKIN_DATA", "")) / "mnist.npz"
    if not path.exists():
        sys.exit("NEARKIN_DATA does not name a folder with mnist.npz.")
    data = np.load(path)
    X, y, test = data["X"].astype(np.float32) / 255, data["y"].astype(int), data["split"] == 1
    train = np.random.default_rng(0).permutation(np.flatnonzero(~test))[:n_rows]
    return X[train], y[train], X[test], y[test]


def deskewed(X: np.ndarray) -> np.ndarray:
    """Return images whose lines are shifted until the digits stand upright: the coordinates of ink
    uncorrelated.
    """
    upright = np.empty_like(X)
    at = np.arange(SIDE, dtype=np.float32)
    for start in range(0, len(X), 4096):
        ink = X[start : start + 4096].reshape(-1, SIDE, SIDE)
        mass = ink.sum(axis=(1, 2))[:, None]
        down, across = (
            at - ink.sum(axis=2) @ at[:, None] / mass,
            at - ink.sum(axis=1) @ at[:, None] / mass,
        )
        slope = np.einsum("nij,ni,nj->n", ink, down, across, optimize=True) / np.einsum(
            "nij,ni->n", ink, down**2
        )
        source = at + slope[:, None, None] * down[:, :, None]
        left = np.floor(source).astype(int)
        padded = np.pad(ink, ((0, 0), (0, 0), (1, 1)))
        pixels = [
            np.take_along_axis(padded, np.clip(left + step, 0, SIDE + 1), axis=2) for step in (1, 2)
        ]
        upright[start : start + 4096] = (
            pixels[0] + (source - left) * (pixels[1] - pixels[0])
        ).reshape(len(ink), -1)
    return upright


def all_of_mnist(arguments: argparse.Namespace) -> None:
    X, y, X_test, y_test = mnist(arguments.rows)
    print(
        f"\n{len(X)} MNIST rows to learn from, PCA({arguments.dimensions}), 3-NN errors on "
        f"{len(X_test)} test rows:\n"
    )
    print(
        "| images | raw pixels | PCA | PCA and `LMNN()` | seconds to fit LMNN | iterations | loss, "
        "start and end |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")

    def error(Z: np.ndarray, Z_test: np.ndarray) -> str:
        return f"{1 - KNeighborsClassifier(3).fit(Z, y).score(Z_test, y_test):.2%}"

    for name, prepare in (("as they are", lambda X: X), ("deskewed", deskewed)):
        rows, test = prepare(X), prepare(X_test)
        pca = PCA(arguments.dimensions, svd_solver="covariance_eigh").fit(rows)
        Z, Z_test = pca.transform(rows), pca.transform(test)
        seconds, lmnn = timed(lambda: LMNN().fit(Z, y))  # noqa: B023
        learned = error(lmnn.transform(Z), lmnn.transform(Z_test))
        print(
            f"| {name} | {error(rows, test)} | {error(Z, Z_test)} | {learned} | {seconds:.0f} | "
            f"{lmnn.n_iter_} | {lmnn.loss_curve_[0]:.2f}, {lmnn.objective_:.2f} |",
            flush=True,
        )


def loss(A: np.ndarray, X: np.ndarray, y: np.ndarray, targets: np.ndarray) -> float:
    """Return the loss of a map among all impostors, in float64."""
    Z = (X - X.mean(axis=0)) @ A.T
    reach = 1 + target_squares(Z, targets).max(axis=1)
    return large_margin(
        np.eye(len(A)), Z, targets, impostors_within(Z, y, reach * (1 + 1e-9), len(X))
    )[0] / len(X)


def beside_metric_learn(arguments: argparse.Namespace) -> None:
    if arguments.peer is None:
        sys.exit("Name an interpreter that can import metric_learn: --peer /path/to/python.")
    n, k = arguments.rows or 4000, 3
    X, y = mnist(n)[:2]
    X = PCA(arguments.dimensions, svd_solver="covariance_eigh").fit_transform(X).astype(np.float64)
    targets = target_neighbors(X, y, k)
    X /= balanced_scale(*gaps_of_targets(X, y, targets))
    print(
        f"\n{n} MNIST rows, PCA({arguments.dimensions}), k = {k}, mu = 1/2; the loss of the "
        "identity, where both begin,"
    )
    print(f"is {loss(np.eye(X.shape[1]), X, y, targets):.4f}.\n")
    print("| | seconds | iterations | loss | |\n| --- | --- | --- | --- | --- |")
    seconds, lmnn = min(
        (timed(lambda: LMNN(n_neighbors=k).fit(X, y)) for _ in range(3)), key=lambda pair: pair[0]
    )
    ours = loss(lmnn.components_, X, y, targets)
    print(f"| nearkin `LMNN()` | {seconds:.2f} | {lmnn.n_iter_} | {ours:.4f} | |", flush=True)
    for settings in arguments.settings:
        theirs = fitted_by_peer(arguments.peer, settings, X=X, y=y, k=k)
        reached = loss(theirs["components"], X, y, targets)
        verdict = (
            f"{theirs['seconds'] / seconds:.0f} times as long, the loss {reached / ours - 1:+.2%}"
        )
        figures = f"{theirs['seconds']:.1f} | {theirs['n_iter']} | {reached:.4f} | {verdict}"
        print(f"| metric-learn `LMNN({settings})` | {figures} |", flush=True)


def fitted_by_peer(python: str, settings: str, **arrays: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        given, found = os.path.join(folder, "given.npz"), os.path.join(folder, "found.npz")
        np.savez(given, **arrays)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(
            [python, "-c", PEER, given, found, f"dict({settings})"], check=True, env=environment
        )
        return dict(np.load(found))


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "mnist": all_of_mnist,
    "peer": beside_metric_learn,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument(
        "--rows", type=int, default=None, help="rows to learn from: all, or 4,000 beside the peer"
    )
    parser.add_argument(
        "--dimensions", type=int, default=164, help="kept by PCA; the paper's 164 by default"
    )
    parser.add_argument("--peer", default=None, help="a Python interpreter with metric-learn")
    parser.add_argument(
        "--settings",
        nargs="*",
        default=["", "learn_rate=1e-4"],
        help="of the peer, beyond its defaults",
    )
    given = parser.parse_args()
    PARTS[given.part](given)
