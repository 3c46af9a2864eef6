"""Linear maps that are found by descent: inits, the rows in their unit, and what a fit sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

from .._blocks import densified, row_blocks
from .._callbacks import CallbackSupportMixin, FitTask
from .._messages import warn_user
from .._threads import parallel_map
from .._validation import check_choice, check_integer, check_number
from ..bandwidth import PERPLEXITY_ROWS, nearest_squares, perplexity_bandwidth, unit_distance
from ..descent import MAX_ITER, DescentResult, DescentStatus
from ..linalg import LinAlgError, eigh
from ..objectives.loss import FLOAT64_ROWS, Ridge, embed
from ..scatter import RowSpace, between_scatter, row_space, total_scatter, within_scatter
from ..spectral import SpectralStatus, generalized_eigh, range_basis, shrunk, unit_within_scatter
from .base import LinearEmbedding

# Inits; `ScaledRows.scaled_init` keeps neighbourhoods from being empty or holding all rows.

SHRINKAGE = 0.01  # of S_w; with more, high-variance noise hides low-variance directions from LDA

INITS = ("auto", "identity", "pca", "lda", "random")


def directions(name: str, X: Any, m: int, rng: Any = None) -> np.ndarray:
    """Return min(m, p) orthonormal directions as rows, for the init of a given name.

    "auto" is PCA, or the identity if all dimensions are kept.
    """
    m = min(m, X.shape[1])
    if name == "identity" or (name == "auto" and m == X.shape[1]):
        return np.eye(m, X.shape[1])
    if name == "random":
        return np.linalg.qr(rng.standard_normal((X.shape[1], m)))[0].T
    solver = "covariance_eigh"
    if issparse(X):
        solver = "arpack" if m < min(X.shape) else solver
    elif X.shape[1] > X.shape[0]:
        solver = "full"
    return principal_directions(X, m, svd_solver=solver, random_state=0)


def varying(X: Any) -> np.ndarray:
    """Return which features are not constant, shape (p,)."""
    if issparse(X):
        return X.max(axis=0).toarray().ravel() > X.min(axis=0).toarray().ravel()
    ends = [(X[rows].max(axis=0), X[rows].min(axis=0)) for rows in row_blocks(*X.shape)]
    largest, smallest = zip(*ends, strict=True)
    return np.max(largest, axis=0) > np.min(smallest, axis=0)


def principal_directions(X: Any, m: int, **how: Any) -> np.ndarray:
    """Return the first m principal directions (m, p), with a fallback if LAPACK fails.

    They are those of scikit-learn's `PCA(m, **how)`.
    """
    try:
        with np.errstate(invalid="ignore"):  # equal rows have an explained variance ratio of 0 / 0
            return PCA(m, **how).fit(X).components_
    except LinAlgError:
        p = X.shape[1]
        return eigh(total_scatter(X), subset_by_index=(p - m, p - 1))[1][:, ::-1].T


def discriminant_directions(S_b: np.ndarray, S_w: np.ndarray, m: int) -> np.ndarray:
    """Return the first m Fisher discriminant directions (m, p), with S_w shrunk by 0.01.

    They are scaled by the shrunk S_w; none is longer than ten times a direction of mean scatter.
    Without shrinkage, a feature of almost no variance, such as a pixel at the margin, gets so long
    a direction that, once the map is scaled to limit its penalty, nothing is left of the others.
    """
    S_w = shrunk(S_w, range_basis(S_w + S_b), SHRINKAGE)
    return unit_within_scatter(generalized_eigh(S_b, S_w)).vectors[:, :m].T


# Rows scaled by the typical distance between neighbours.

INIT_ROWS = 10_000  # rows on which stochastic descent finds an init
UNIT_ROWS = 200  # of many rows, those compared with all others to estimate the unit
BLOCK = 2**19  # entries in a block of rows, which is copied two or three times


@dataclass(frozen=True)
class ScaledRows:
    """Rows in units of the typical distance of neighbours; converts their maps B to A and back.

    Abstract but for the conversion: rows may be in memory, in a file or on a cluster.

    Attributes
    ----------
    unit : float
        The typical distance between neighbours.
    space : RowSpace
        Maps back to the features.
    shape : (n, r)
    """

    unit: float
    space: RowSpace
    shape: tuple[int, int]

    def components(self, B: np.ndarray, dtype: Any = np.float64) -> np.ndarray:
        """Return A, shape (m, p), for B; a vector B is the diagonal of a diagonal map."""
        B = np.diag(B) if B.ndim == 1 else B
        return self.space.back_project(B.T / self.unit).astype(dtype, copy=False)

    def coordinates(self, A: np.ndarray) -> np.ndarray:
        """Return B for A."""
        A = A if self.space.expand is None else A @ self.space.basis.T
        return A * self.unit

    def embedding(self, B: np.ndarray) -> Any:
        """Return the centred embedding Z = X B', shape (n, m)."""
        raise NotImplementedError

    def varies(self) -> np.ndarray:
        """Return which columns are not constant; an init is 0 in the others, to have no effect."""
        raise NotImplementedError

    def directions(self, name: str, m: int, codes: Any, rng: np.random.RandomState) -> np.ndarray:
        """Return m directions for the name of an init of `NCA`; "lda" may have fewer."""
        raise NotImplementedError

    def nearest_squares(self, B: np.ndarray) -> np.ndarray:
        """Return the squared distances of some embedded rows to their 100 nearest, ascending."""
        return nearest_squares(self.embedding(B))

    def scaled_init(self, B: np.ndarray, alpha: float, at_least: float = 0.0) -> np.ndarray:
        """Return an init B, scaled to a mean perplexity of 10 and a penalty of at most 1.

        B is divided by the bandwidth for that perplexity, or by `at_least` if that is larger. It is
        shrunk further if the penalty exceeds 1, the range of f: where the penalty dominates, a
        descent jumps to the map 0 and stays there.
        """
        B = B / max(perplexity_bandwidth(self.nearest_squares(B)), at_least)
        return B / max(1.0, Ridge(alpha, self.shape[0])(B)[0] ** 0.5)


@dataclass(frozen=True)
class UnitRows(ScaledRows):
    """Centred rows in units of the typical distance of neighbours, which removes the scale of X.

    Attributes
    ----------
    X : array of shape (n, r), or sparse matrix
        float64 for up to 2,000 rows, else float32, whose rounding averages out in sums over many
        rows. Sparse X is not centred.
    """

    X: Any

    @classmethod
    def of(
        cls, X: Any, m: int | None = None, dtype: Any = None, n_rows: int = PERPLEXITY_ROWS
    ) -> UnitRows:
        """Return X as `UnitRows`, with the unit estimated from `n_rows` rows.

        For p > n and a map to m dimensions, the rows are in coordinates of their span, unless X can
        stay sparse.
        """
        n, p = X.shape
        if m is not None and p > n and not (issparse(X) and m < p):
            space = row_space(X)
        else:
            space = RowSpace(densified(X))
        X = space.coordinates
        dtype = dtype or (np.float64 if n <= FLOAT64_ROWS else np.float32)
        if not issparse(X):
            X = (X - X.mean(axis=0, dtype=np.float64)).astype(dtype)
            # far from the origin, the first mean is inexact
            X = X - X.mean(axis=0, dtype=np.float64).astype(dtype)
        X = X.astype(dtype, copy=False)
        unit = unit_distance(X, n_rows)
        return cls(unit, space, X.shape, X / X.dtype.type(unit))

    def take(self, rows: Any) -> Any:
        """Return the rows with the given indices."""
        return self.X[rows]

    def varies(self) -> np.ndarray:
        """Return which columns are not constant."""
        return varying(self.X)

    def embedding(self, B: np.ndarray) -> np.ndarray:
        """Return the centred embedding Z = X B', shape (n, m)."""
        return embed(B, self.X)

    def directions(
        self, name: str, m: int, codes: np.ndarray | None, rng: np.random.RandomState
    ) -> np.ndarray:
        """Return m directions for the name of an init of `NCA`; "lda" may have fewer."""
        if name != "lda":
            return directions(name, self.X, m, rng)
        if codes is None or issparse(self.X):
            raise ValueError("init='lda' needs classes and dense X: take init='pca' or 'auto'.")
        space, codes = row_space(self.X), np.unique(codes, return_inverse=True)[1]
        S_b = between_scatter(space.coordinates, codes)
        S_w = within_scatter(space.coordinates, codes)
        return space.back_project(discriminant_directions(S_b, S_w, min(m, codes.max())).T)


@dataclass(frozen=True)
class RowsInPlace(ScaledRows):
    """Rows in memory or in a file; only the rows in use are copied, centred and scaled.

    Attributes
    ----------
    X : array of shape (n, p), or sparse matrix
    mean : ndarray of shape (p,), or None for sparse rows
    dtype : {float64, float32}
        The dtype in which a descent computes.
    """

    X: Any
    mean: np.ndarray | None
    dtype: Any

    @classmethod
    def of(cls, X: Any, unit: float | None = None) -> RowsInPlace:
        """Return X as `RowsInPlace`; the typical distance is estimated unless `unit` gives it."""
        unit = unit or unit_distance(X, UNIT_ROWS)
        mean = None if issparse(X) else X.mean(axis=0, dtype=np.float64).astype(X.dtype)
        dtype = np.float64 if X.shape[0] <= FLOAT64_ROWS else np.float32
        return cls(unit, RowSpace(X), X.shape, X, mean, dtype)

    def take(self, rows: Any) -> Any:
        """Return the rows with the given indices, centred, in units of the typical distance."""
        X = self.X[rows] if self.mean is None else self.X[rows] - self.mean
        return X.astype(self.dtype, copy=False) / self.dtype(self.unit)

    def varies(self) -> np.ndarray:
        """Return which columns are not constant."""
        return varying(self.X)

    def embedding(self, B: np.ndarray) -> np.ndarray:
        """Return the centred embedding Z = X B', shape (n, m)."""
        B = B.astype(self.dtype)
        if self.mean is None:
            return embed(B / self.dtype(self.unit), self.X)

        def embedded(rows: slice) -> np.ndarray:
            X = self.take(rows)
            return X * B if B.ndim == 1 else X @ B.T

        blocks = row_blocks(*self.shape, BLOCK)
        Z = np.concatenate(parallel_map(embedded, blocks, self.X.size))
        Z -= Z.mean(axis=0, dtype=np.float64).astype(self.dtype)
        return Z


# Shared by the estimators.

# How `nearkin.comparison.compare` treats these methods. They are not nested: the first components
# of a fit are not a fit with fewer components.
COMPARED = {"settings": lambda p: [{"n_components": min(p, 50)}], "nested": False}
# Ten times the default tol of NCA and MLKR: held-out predictions are equally accurate, in about
# half the time.
EARLY = {"tol": 1e-4}


def check_n_components(estimator: Any, most: int) -> int:
    """Return the requested number of dimensions m, at most `most`, or all."""
    m = estimator.n_components
    return most if m is None else check_integer(m, "n_components", 1, most)


def check_descent(estimator: Any) -> int | None:
    """Raise an error if a parameter of a descent is invalid that `NCA` and `PairNCA` share.

    Returns the maximum number of iterations, or None if it depends on n.
    """
    check_number(estimator.alpha, "alpha", 0)
    check_choice(estimator.solver, "solver", ("lbfgs", "sgd"))
    for name in ("n_candidates", "batch_size", "max_iter"):
        value = getattr(estimator, name)
        if isinstance(value, str):
            check_choice(value, name, ("auto",))
        elif value is not None or name != "n_candidates":
            check_integer(value, name, 1)
    check_number(estimator.tol, "tol", 0)
    n_init = check_integer(estimator.n_init, "n_init", 1)
    if estimator.max_iter == "auto":
        return n_init * MAX_ITER if estimator.solver == "lbfgs" else None
    return n_init * int(estimator.max_iter)


def reporter(task: FitTask, rows: ScaledRows, dtype: Any) -> Callable[[np.ndarray], bool]:
    """Return what a solver calls after every iteration: callbacks see the map so far."""
    return partial(task.iteration, lambda B: {"components_": rows.components(B, dtype)})


class DescentEmbedding(CallbackSupportMixin, LinearEmbedding):
    """A linear map that is found by descent. Abstract: a method defines `__init__` and `fit`.

    A method that does not need y sets `_needs_labels` to False, and one whose init may already be
    the minimum `_init_may_be_minimum` to True.
    """

    n_components: int | None
    max_iter: Any
    warm_start = False
    _needs_labels = True
    _init_may_be_minimum = False

    def _set_map(self, found: DescentResult, rows: ScaledRows, dtype: Any, task: Any) -> Self:
        """Set the map, and how it was found, as the last step of a fit.

        Then raise the interrupt that ended the descent, or warn if there are fewer dimensions than
        requested or the descent has not converged, and end the task, if there is one. All other
        attributes must be set before.
        """
        self.components_ = rows.components(found.x, dtype)
        self.n_components_ = len(self.components_)
        self.n_iter_, self.loss_curve_ = found.n_iter, np.array(found.curve)
        if found.status is DescentStatus.INTERRUPTED:
            raise KeyboardInterrupt
        requested, kept = self.n_components, self.n_components_
        if requested is not None and kept < requested:
            text = SpectralStatus.RANK_DEFICIENT.value
            warn_user(text.format(requested=requested, found=kept))
        if found.status is DescentStatus.MAX_ITER:
            max_iter = found.n_iter if self.max_iter == "auto" else self.max_iter
            warn_user(
                f"max_iter={max_iter} iterations ended the descent before it converged: the map is "
                "not final. Raise max_iter or tol, or standardize the features.",
                ConvergenceWarning,
            )
        elif (
            found.n_iter == 0
            and found.status is not DescentStatus.STOPPED
            and not (self.warm_start or self._init_may_be_minimum)
        ):
            warn_user(
                "The descent has not moved from its init, which no step improves: take another, or "
                "a larger alpha.",
                ConvergenceWarning,
            )
        if task:
            task.end()
        return self


# what `nearkin.dask` may take
__all__ = [
    "INIT_ROWS",
    "DescentEmbedding",
    "RowsInPlace",
    "ScaledRows",
    "check_n_components",
]
