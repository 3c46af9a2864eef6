"""NCA beside scikit-learn's: one evaluation, whole fits, memory, and all of MNIST; and its two
solvers side by side.

    NEARKIN_DATA=folder python benchmarks/nca.py

scikit-learn computes in float64 and keeps about four n x n arrays; at n = 20,000 they do not fit,
so its time there is that of one evaluation by rows (three of its evaluations at n = 10,000, times
four for twice the rows), times the evaluations counted at n = 5,000. MNIST and usps are skipped
where NEARKIN_DATA does not hold them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from nearkin import NCA
from nearkin.objectives.nca import expected_accuracy
from nearkin.objectives.stochastic import SameClass


def timed(function: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Return the shortest time and the last result."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        n,
        50,
        n_informative=12,
        n_redundant=10,
        n_classes=8,
        n_clusters_per_class=2,
        class_sep=1.2,
        random_state=0,
    )


class Counted(NeighborhoodComponentsAnalysis):
    """scikit-learn's NCA, which counts its evaluations."""

    evaluations = 0

    def _loss_grad_lbfgs(self, *args: Any, **kwargs: Any) -> Any:
        type(self).evaluations += 1
        return super()._loss_grad_lbfgs(*args, **kwargs)


def their_evaluation(A: np.ndarray, X: np.ndarray, y: np.ndarray, repeats: int = 3) -> float:
    same, theirs = y[:, None] == y, NeighborhoodComponentsAnalysis()
    theirs.n_iter_ = 1
    return timed(lambda: theirs._loss_grad_lbfgs(A.ravel(), X, same, -1.0), repeats)[0]


def evaluation() -> None:
    rng = np.random.default_rng(0)
    n, p, m = 10_000, 100, 32
    X, y, A = rng.standard_normal((n, p)), rng.integers(0, 8, n), rng.standard_normal((m, p)) / 20
    theirs = their_evaluation(A, X, y)
    single, pair_weights = (A.astype(np.float32), X.astype(np.float32)), SameClass(y)
    ours, (value, _) = timed(lambda: expected_accuracy(*single, pair_weights), 5)
    exact = expected_accuracy(A, X, pair_weights)[0]
    print(
        f"\nOne exact evaluation, n = {n}, p = {p}, m = {m}: scikit-learn {theirs:.2f} s, ours "
        f"{ours:.3f} s in float32"
    )
    print(f"(value off by {abs(value / exact - 1):.0e}): {theirs / ours:.0f} times faster.")


def fits() -> None:
    Counted.evaluations = 0
    X, y = problem(5000)
    A = PCA(12).fit(X).components_
    seconds, theirs = timed(lambda: Counted(12, init=A, max_iter=60).fit(X, y))
    evaluations = Counted.evaluations
    reached = exact_objective(theirs.components_, X, y)
    print(
        f"\nn = 5,000: scikit-learn {seconds:.1f} s, {evaluations} evaluations, exact objective "
        f"{reached:.4f}."
    )
    report(X, y, seconds, reached)
    X, y = problem(20_000)
    half = problem(10_000)
    evaluation_seconds = 4 * their_evaluation(PCA(12).fit(half[0]).components_, *half, repeats=3)
    seconds = evaluation_seconds * evaluations
    print(
        f"\nn = 20,000: scikit-learn {seconds:.0f} s, estimated ({evaluations} x "
        f"{evaluation_seconds:.1f} s)."
    )
    report(X, y, seconds, None)


def report(X: np.ndarray, y: np.ndarray, their_seconds: float, reached: float | None) -> None:
    for alpha in (0.0, 0.15):
        seconds, nca = timed(lambda: NCA(12, init="pca", alpha=alpha, max_iter=30).fit(X, y))  # noqa: B023
        objective = exact_objective(nca.components_, X, y)
        than = (
            ""
            if reached is None
            else f" ({'at least' if objective >= reached else 'BELOW'} scikit-learn's)"
        )
        print(f"  NCA(12, alpha={alpha}): {seconds:.2f} s, {their_seconds / seconds:.0f} times faster, "
              f"exact objective {objective:.4f}{than}, {nca.n_iter_} iterations")  # fmt: skip


def exact_objective(A: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    X = (X - X.mean(axis=0)).astype(np.float32)
    return expected_accuracy(
        A.astype(np.float32), X, SameClass(np.unique(y, return_inverse=True)[1])
    )[0] / len(X)


def peak_memory() -> float:
    """Return this process' peak in MB (that of `resource` includes the parent's, from before this
    program started).
    """
    return int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())[1]) / 1000


def memory() -> None:
    """In a process of its own: the peak is that of the process."""
    code = (
        "from nearkin import NCA; from benchmarks.nca import peak_memory, problem;X, y = "
        "problem(60_000);before = peak_memory();NCA(12, init='pca', max_iter=20, tol=0.0).fit(X, "
        "y);print(round(before), round(peak_memory()))"
    )
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join([root, *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    before, peak = done.stdout.split()
    print(f"\nn = 60,000 x 50: peak memory {peak} MB, {before} MB of it before the fit.")


def real(name: str, m: int, scale: float) -> None:
    folder = os.environ.get("NEARKIN_DATA", "")
    path = os.path.join(folder, f"{name}.npz")
    if not os.path.exists(path):
        print(f"\n{name}: skipped, NEARKIN_DATA does not hold it.")
        return
    data = np.load(path)
    X, y, train = data["X"].astype(np.float32) / scale, data["y"], data["split"] == 0
    print(
        f"\n{name}: {train.sum()} rows x {X.shape[1]} to learn from, {(~train).sum()} to test; "
        "3-NN errors"
    )
    for label, method in (("raw pixels", None), (f"PCA({m})", PCA(m)), (f"NCA({m})", NCA(m))):
        seconds, Z = timed(lambda: (X[train], X[~train]) if method is None else (method.fit_transform(X[train], y[train]), method.transform(X[~train])))  # noqa: B023  # fmt: skip
        error = 1 - KNeighborsClassifier(3).fit(Z[0], y[train]).score(Z[1], y[~train])
        extra = (
            f", {method.n_iter_} iterations, perplexity {method.perplexity_:.0f}"
            if isinstance(method, NCA)
            else ""
        )
        print(f"  {label}: {error:.2%} (fit and transform {seconds:.1f} s{extra})", flush=True)


def solvers(name: str, m: int, scale: float, sizes: tuple[int, ...]) -> None:
    """L-BFGS and stochastic gradient on the same training rows; errors are those of all test rows."""
    path = os.path.join(os.environ.get("NEARKIN_DATA", ""), f"{name}.npz")
    if not os.path.exists(path):
        print(f"\n{name}: skipped, NEARKIN_DATA does not hold it.")
        return
    data = np.load(path)
    X, y, train = data["X"].astype(np.float32) / scale, data["y"], data["split"] == 0
    rows = np.random.default_rng(0).permutation(np.flatnonzero(train))
    print(
        f"\n{name}, {X.shape[1]} features, NCA({m}) by its two solvers; 3-NN errors on "
        f"{(~train).sum()} test rows\n\n| rows | lbfgs | sgd | time of sgd |\n|---|---|---|---|"
    )
    for n in sizes:
        X_n, y_n = X[rows[:n]], y[rows[:n]]
        took, cells = {}, []
        for solver in ("lbfgs", "sgd"):
            took[solver], nca = timed(lambda: NCA(m, solver=solver, random_state=0).fit(X_n, y_n))  # noqa: B023
            error = 1 - KNeighborsClassifier(3).fit(nca.transform(X_n), y_n).score(
                nca.transform(X[~train]), y[~train]
            )
            steps = f"{nca.n_iter_} {'epochs' if solver == 'sgd' else 'iterations'}"
            cells.append(f"{100 * error:.2f} %, {took[solver]:.0f} s, {steps}")
        share = f"{took['sgd'] / took['lbfgs']:.2f} of lbfgs"
        print(f"| {len(y_n):,} | {' | '.join(cells)} | {share} |", flush=True)


PARTS: dict[str, Callable[[], None]] = {
    "evaluation": evaluation,
    "fits": fits,
    "memory": memory,
    "usps": lambda: real("usps", 50, 1.0),
    "mnist": lambda: real("mnist", 50, 255.0),
    "solvers": lambda: solvers("mnist", 50, 255.0, (10_000, 30_000, 60_000)),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "parts", nargs="*", default=list(PARTS), metavar="part", help=", ".join(PARTS)
    )
    for part in parser.parse_args().parts:
        PARTS[part]()
