"""NCA beside scikit-learn's: one evaluation, whole fits, memory, and all of MNIST; its two solvers side
by side; LMNN on all of MNIST, and beside metric-learn's.

    NEARKIN_DATA=folder python -m benchmarks.speed.descents evaluation fits peak images
    NEARKIN_DATA=folder python -m benchmarks.speed.descents solvers
    NEARKIN_DATA=folder python -m benchmarks.speed.descents lmnn
    NEARKIN_DATA=folder python -m benchmarks.speed.descents lmnn-peer --peer /path/to/python

scikit-learn's NCA computes in float64 and keeps about four n x n arrays; at n = 20,000 they do not fit,
so its time there is that of one evaluation by rows (three of its evaluations at n = 10,000, times four
for twice the rows), times the evaluations counted at n = 5,000.

The peer's interpreter is one that can `import metric_learn` (it needs scikit-learn < 1.6 and numpy
< 2). Both learn from the same rows, with the same k, mu and start: the rows are scaled so that the
identity, where metric-learn begins, is where LMNN begins. Both maps are evaluated by one function, the
sum over all triples in float64.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from benchmarks.data import published_split
from benchmarks.measure import apart, command, memory, timed
from benchmarks.report import head, row
from nearkin import LMNN, NCA
from nearkin.estimators.lmnn import balanced_scale, gaps_of_targets
from nearkin.objectives.candidates import target_neighbors
from nearkin.objectives.lmnn import impostors_within, large_margin, target_squares
from nearkin.objectives.nca import nca_objective
from nearkin.objectives.stochastic import SameClass

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


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    how = {"n_classes": 8, "n_clusters_per_class": 2, "class_sep": 1.2, "random_state": 0}
    return make_classification(n, 50, n_informative=12, n_redundant=10, **how)


class Counted(NeighborhoodComponentsAnalysis):
    """scikit-learn's NCA, which counts its evaluations."""

    evaluations = 0

    def _loss_grad_lbfgs(self, *args: Any, **kwargs: Any) -> Any:
        type(self).evaluations += 1
        return super()._loss_grad_lbfgs(*args, **kwargs)


def their_evaluation(A: np.ndarray, X: np.ndarray, y: np.ndarray, repeats: int = 3) -> float:
    same, theirs = y[:, None] == y, NeighborhoodComponentsAnalysis()
    theirs.n_iter_ = 1
    one = theirs._loss_grad_lbfgs, A.ravel(), X, same, -1.0
    return timed(*one, repeats=repeats).seconds


def evaluation() -> None:
    rng = np.random.default_rng(0)
    n, p, m = 10_000, 100, 32
    X, y, A = rng.standard_normal((n, p)), rng.integers(0, 8, n), rng.standard_normal((m, p)) / 20
    theirs = their_evaluation(A, X, y)
    single, pair_weights = (A.astype(np.float32), X.astype(np.float32)), SameClass(y)
    ours, _, (value, _) = timed(
        nca_objective, "expected_accuracy", *single, pair_weights, repeats=5
    )
    exact = nca_objective("expected_accuracy", A, X, pair_weights)[0]
    print(
        f"\nOne exact evaluation, n = {n}, p = {p}, m = {m}: scikit-learn {theirs:.2f} s, ours "
        f"{ours:.3f} s in float32"
    )
    print(f"(value off by {abs(value / exact - 1):.0e}): {theirs / ours:.0f} times faster.")


def fits() -> None:
    Counted.evaluations = 0
    X, y = problem(5000)
    A = PCA(12).fit(X).components_
    seconds, _, theirs = timed(Counted(12, init=A, max_iter=60).fit, X, y)
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
        seconds, _, nca = timed(NCA(12, init="pca", alpha=alpha, max_iter=30).fit, X, y)
        objective = exact_objective(nca.components_, X, y)
        than = "" if reached is None else "at least" if objective >= reached else "BELOW"
        than = f" ({than} scikit-learn's)" if than else ""
        print(f"  NCA(12, alpha={alpha}): {seconds:.2f} s, {their_seconds / seconds:.0f} times faster, "
              f"exact objective {objective:.4f}{than}, {nca.n_iter_} iterations")  # fmt: skip


def exact_objective(A: np.ndarray, X: np.ndarray, y: np.ndarray) -> float:
    X = (X - X.mean(axis=0)).astype(np.float32)
    return nca_objective(
        "expected_accuracy",
        A.astype(np.float32),
        X,
        SameClass(np.unique(y, return_inverse=True)[1]),
    )[0] / len(X)


def memory_of_fit() -> tuple[int, int]:
    """Return the peak of this process before a fit and after, in bytes."""
    X, y = problem(60_000)
    before = memory()
    NCA(12, init="pca", max_iter=20, tol=0.0).fit(X, y)
    return before, memory()


def peak() -> None:
    before, most = (f"{n_bytes / 1e6:.0f}" for n_bytes in apart(memory_of_fit))
    print(f"\nn = 60,000 x 50: peak memory {most} MB, {before} MB of it before the fit.")


def error(Z: np.ndarray, y: np.ndarray, new: np.ndarray, new_y: np.ndarray) -> float:
    return 1 - KNeighborsClassifier(3).fit(Z, y).score(new, new_y)


def images() -> None:
    """Print 3-NN errors after NCA on published splits."""
    for name, unit in (("usps", 1), ("mnist", 255)):
        X, y, new, new_y = published_split(name)
        X, new = X / np.float32(unit), new / np.float32(unit)
        sizes = f"{len(X)} rows x {X.shape[1]} to learn from, {len(new)} to test"
        print(f"\n{name}: {sizes}; 3-NN errors")
        print(f"  raw pixels: {error(X, y, new, new_y):.2%}")
        for label, method in (("PCA(50)", PCA(50)), ("NCA(50)", NCA(50))):
            run = timed(lambda: (method.fit_transform(X, y), method.transform(new)))  # noqa: B023
            Z, Z_new = run.result
            more = f"fit and transform {run.seconds:.1f} s"
            if isinstance(method, NCA):
                more += f", {method.n_iter_} iterations, perplexity {method.perplexity_:.0f}"
            print(f"  {label}: {error(Z, y, Z_new, new_y):.2%} ({more})", flush=True)


def drawn_images(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows of MNIST, drawn at random (0: all), and test rows, pixels in [0, 1]."""
    X, y, new, new_y = published_split("mnist")
    rows = np.random.default_rng(0).permutation(len(y))[: n or None]
    return X[rows] / 255, y[rows].astype(int), new / 255, new_y.astype(int)


def solvers(rows: tuple[int, ...] = (10_000, 30_000, 60_000)) -> None:
    """Print L-BFGS and stochastic gradient on the same training rows; errors of all test rows."""
    print("\nmnist, NCA(50) by its two solvers; 3-NN errors on the test rows")
    head("rows", "lbfgs", "sgd", "time of sgd")
    for n in rows:
        X, y, new, new_y = drawn_images(n)
        took, cells = {}, []
        for solver, steps in (("lbfgs", "iterations"), ("sgd", "epochs")):
            took[solver], _, nca = timed(NCA(50, solver=solver, random_state=0).fit, X, y)
            wrong = 100 * error(nca.transform(X), y, nca.transform(new), new_y)
            cells.append(f"{wrong:.2f} %, {took[solver]:.0f} s, {nca.n_iter_} {steps}")
        row(f"{len(y):,}", *cells, f"{took['sgd'] / took['lbfgs']:.2f} of lbfgs")


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


def lmnn(n: int = 0, dimensions: int = 164) -> None:
    """Print 3-NN errors after LMNN, by default on all training rows, in the paper's 164 dimensions."""
    X, y, new, new_y = drawn_images(n)
    after = f"PCA({dimensions}), 3-NN errors on {len(new)} test rows"
    print(f"\n{len(X)} MNIST rows to learn from, {after}:")
    fits = "seconds to fit LMNN", "iterations", "loss, start and end"
    head("images", "raw pixels", "PCA", "PCA and `LMNN()`", *fits)
    for name, prepare in (("as they are", lambda X: X), ("deskewed", deskewed)):
        rows, test = prepare(X), prepare(new)
        pca = PCA(dimensions, svd_solver="covariance_eigh").fit(rows)
        Z, Z_new = pca.transform(rows), pca.transform(test)
        seconds, _, model = timed(LMNN().fit, Z, y)
        pairs = (rows, test), (Z, Z_new), (model.transform(Z), model.transform(Z_new))
        errors = (f"{error(one, y, other, new_y):.2%}" for one, other in pairs)
        losses = f"{model.loss_curve_[0]:.2f}, {model.objective_:.2f}"
        row(name, *errors, f"{seconds:.0f}", model.n_iter_, losses)


def loss(A: np.ndarray, X: np.ndarray, y: np.ndarray, targets: np.ndarray) -> float:
    """Return the loss of a map among all impostors, in float64."""
    Z = (X - X.mean(axis=0)) @ A.T
    reach = 1 + target_squares(Z, targets).max(axis=1)
    return large_margin(
        np.eye(len(A)), Z, targets, impostors_within(Z, y, reach * (1 + 1e-9), len(X))
    )[0] / len(X)


def lmnn_peer(
    peer: str = "peer/bin/python", n: int = 4000, dimensions: int = 164,
    settings: tuple[str, ...] = ("", "learn_rate=1e-4"),
) -> None:  # fmt: skip
    """Print time and loss beside those of the peer, with settings beyond its defaults."""
    X, y = drawn_images(n)[:2]
    X = PCA(dimensions, svd_solver="covariance_eigh").fit_transform(X).astype(np.float64)
    targets = target_neighbors(X, y, 3)
    X /= balanced_scale(*gaps_of_targets(X, y, targets))
    print(
        f"\n{n} MNIST rows, PCA({dimensions}), k = 3, mu = 1/2; the loss of the identity, where both begin,"
    )
    print(f"is {loss(np.eye(X.shape[1]), X, y, targets):.4f}.")
    head("", "seconds", "iterations", "loss", "")
    seconds, _, model = timed(LMNN(n_neighbors=3).fit, X, y, repeats=3)
    ours = loss(model.components_, X, y, targets)
    row("nearkin `LMNN()`", f"{seconds:.2f}", model.n_iter_, f"{ours:.4f}", "")
    for one in settings:
        theirs = fitted_by_peer(peer, one, X=X, y=y, k=3)
        reached = loss(theirs["components"], X, y, targets)
        longer = (
            f"{theirs['seconds'] / seconds:.0f} times as long, the loss {reached / ours - 1:+.2%}"
        )
        cells = f"{theirs['seconds']:.1f}", theirs["n_iter"], f"{reached:.4f}"
        row(f"metric-learn `LMNN({one})`", *cells, longer)


def fitted_by_peer(python: str, settings: str, **arrays: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        given, found = os.path.join(folder, "given.npz"), os.path.join(folder, "found.npz")
        np.savez(given, **arrays)
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run(
            [python, "-c", PEER, given, found, f"dict({settings})"], check=True, env=environment
        )
        return dict(np.load(found))


if __name__ == "__main__":
    command(evaluation, fits, peak, images, solvers, lmnn, lmnn_peer)
