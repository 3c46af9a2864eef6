"""What the maps found by descent share.

These are inits, candidate neighbours, rows scaled to unit distance of neighbours, the penalty, and
the setting of fitted attributes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import row_norms

from .._blocks import densified, row_blocks, squared_distances
from .._callbacks import CallbackSupportMixin
from .._messages import warn_user
from .._parameters import check_integer
from .._threads import parallel_map
from ..descent import DescentResult, Status
from ..linalg import LinAlgError, eigh
from ..neighbors import EXACT, Searcher, exact_index, nearest, nearest_same_class
from ..objectives.linear_map import embed, group_penalty
from ..objectives.stochastic import Candidates, Value, with_same_class
from ..scatter import RowSpace, row_space, total_scatter
from ..spectral import SpectralStatus, generalized_eigh, range_basis, shrunk, unit_within_scatter
from .base import LinearEmbedding

# Inits, scaled such that neighbourhoods are neither empty nor hold all rows.

PERPLEXITY = 10.0
PERPLEXITY_ROWS = 1000  # the perplexity is averaged over this many rows
PERPLEXITY_NEIGHBORS = 100  # of a row; farther ones contribute nothing

SHRINKAGE = 0.01  # of S_w; with more, high-variance noise hides low-variance directions from LDA

INITS = ("auto", "identity", "pca", "lda", "random")


def unit_distance(
    X: Any, n_rows: int = PERPLEXITY_ROWS, *, mean_perplexity: float = PERPLEXITY
) -> float:
    """Return the typical distance u of neighbours, estimated from at most `n_rows` rows.

    It is the bandwidth at which `p_ij ~ exp(-||x_i - x_j||^2 / u^2)` has the given mean perplexity.
    """
    return perplexity_bandwidth(nearest_squares(X, n_rows), mean_perplexity)


def perplexity_bandwidth(squares: np.ndarray, mean_perplexity: float = PERPLEXITY) -> float:
    """Return the bandwidth u with a given mean perplexity.

    `squares`, shape (rows, k), holds the squared distances of some rows to their nearest rows,
    ascending. With duplicates the target is at least twice the smallest possible perplexity. It is
    at most half way between the smallest and the largest, which matters for fewer than 20 rows.
    """
    if not squares.any():
        return 1.0
    typical = squares[squares > 0].mean()
    low, high = -8.0, 8.0  # u^2 from 1/3000 of the typical square to 3000 times it
    # 1 and the number of neighbours, unless there are duplicates or few rows
    fewest, most = (perplexity(squares / (typical * np.exp(end))) for end in (low, high))
    log_u2 = 0.0
    if fewest < most:
        target = min(max(mean_perplexity, 2 * fewest), (fewest + most) / 2)
        log_u2 = brentq(
            lambda log_u2: perplexity(squares / (typical * np.exp(log_u2))) - target,
            low,
            high,
            xtol=1e-6,
        )
    return float(np.sqrt(typical * np.exp(log_u2)))


def perplexity(squares: np.ndarray) -> float:
    """Return the mean of `perplexities(squares)`."""
    return float(np.mean(perplexities(squares)))


def perplexities(squares: np.ndarray) -> np.ndarray:
    """Return exp(entropy) of the softmax of minus the squared distances of each row.

    The distances may be in any order.
    """
    excess = squares - squares.min(axis=1, keepdims=True)
    E = np.exp(-excess)
    total = E.sum(axis=1)
    return total * np.exp((E * excess).sum(axis=1) / total)


def nearest_squares(X: Any, n_rows: int = PERPLEXITY_ROWS) -> np.ndarray:
    """Return the squared distances of some rows to their 100 nearest others, ascending.

    The shape is (at most `n_rows`, at most 100).
    """
    sample = evenly_by(squared_distances(X), n_rows)
    return np.sort(squares_to(X[sample], X, sample), axis=1)[:, :-1]


def squares_to(queries: Any, X: Any, numbers: np.ndarray) -> np.ndarray:
    """Return the squared distances of queries to their 101 nearest rows of X.

    The shape is (n_queries, at most 101). The distance of a query to the row of its own index is
    infinite.
    """
    with config_context(assume_finite=True):
        k = min(X.shape[0], PERPLEXITY_NEIGHBORS + 1)
        distances, found = exact_index(X, k)(queries, k)
    return np.where(found == numbers[:, None], np.inf, distances.astype(np.float64) ** 2)


def evenly_by(norms: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the indices of at most `n_rows` rows, evenly spaced in the order of their norms.

    The choice does not depend on the order of the rows.
    """
    return np.argsort(norms, kind="stable")[:: -(-len(norms) // n_rows)]


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


# Candidate neighbours: targets of the same class, rows near in an embedding, and some far rows.

N_NEAR, N_FAR = 50, 500


def target_neighbors(Z: Any, codes: np.ndarray, k: Any, search: Searcher = EXACT) -> np.ndarray:
    """Return the k nearest rows of the same class for every row, or `k[i]` for row i.

    The shape is (n, at most k). Missing neighbours are filled with the row's own index.
    """
    graph = nearest_same_class(Z, codes, k, search)
    lengths = np.diff(graph.indptr)
    width = max(1, lengths.max())
    targets = np.repeat(np.arange(len(codes), dtype=graph.indices.dtype)[:, None], width, axis=1)
    targets[np.arange(width) < lengths[:, None]] = graph.indices
    return targets


def near_rows(
    Z: np.ndarray,
    k: int,
    codes: np.ndarray | None,
    search: Searcher = EXACT,
    anchors: np.ndarray | None = None,
) -> np.ndarray:
    """Return the indices of the k nearest rows of every row, or of every anchor, shape (n, k).

    With classes there is one more column, which g needs: the nearest row of the same class, or the
    row's own index if that row is listed already or does not exist.
    """
    queried = np.ones(len(Z), int) if anchors is None else np.bincount(anchors, minlength=len(Z))
    near = nearest(Z, k * queried, search).indices.reshape(-1, k)  # in row order
    if codes is not None:
        own = np.flatnonzero(queried).astype(near.dtype)
        near = with_same_class(near, target_neighbors(Z, codes, queried, search)[own, 0], own)
    return near if anchors is None else near[np.argsort(np.argsort(anchors))]


# Rows scaled by the typical distance between neighbours.

FLOAT64_ROWS = 2000  # up to this many rows, a descent computes in float64
UNIT_ROWS = 200  # of many rows, those compared with all others to estimate the unit
BLOCK = 2**19  # entries in a block of rows, which is copied two or three times


@dataclass(frozen=True)
class Scale:
    """Converts between the map A of the features and the map B of rows in typical distances.

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
        A = A if self.space.to_features is None else A @ self.space.basis.T
        return A * self.unit

    def embedding(self, B: np.ndarray) -> Any:
        """Return the centred embedding Z = X B', shape (n, m)."""
        raise NotImplementedError

    def varies(self) -> np.ndarray:
        """Return which columns are not constant; an init is 0 in the others, to have no effect."""
        raise NotImplementedError

    def nearest_squares(self, B: np.ndarray) -> np.ndarray:
        """Return the squared distances of some embedded rows to their 100 nearest, ascending."""
        return nearest_squares(self.embedding(B))

    def scaled(self, B: np.ndarray, alpha: float, at_least: float = 0.0) -> np.ndarray:
        """Return an init B, scaled to a mean perplexity of 10 and a penalty of at most 1.

        B is divided by the bandwidth for that perplexity, or by `at_least` if that is larger. It is
        shrunk further if the penalty exceeds 1, the range of f: where the penalty dominates, a
        descent jumps to the map 0 and stays there.
        """
        B = B / max(perplexity_bandwidth(self.nearest_squares(B)), at_least)
        return B / max(1.0, penalty(B, alpha, self.shape[0])[0] ** 0.5)


@dataclass(frozen=True)
class UnitRows(Scale):
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
            space = RowSpace(densified(X), None)
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

    def candidates(
        self, B: np.ndarray, k: int, codes: np.ndarray | None, search: Searcher
    ) -> Candidates:
        """Return the candidates of every row: the k nearest rows and some far ones.

        With classes, the nearest row of the same class is a candidate, too.
        """
        near = near_rows(self.embedding(B), k, codes, search)
        return Candidates(near, evenly_by(row_norms(self.X, squared=True), N_FAR), len(near))


@dataclass(frozen=True)
class RowsInPlace(Scale):
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
        return cls(unit, RowSpace(X, None), X.shape, X, mean, dtype)

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

# How `nearkin.evaluation.compare` treats these methods. They are not nested: the first components
# of a fit are not a fit with fewer components.
COMPARED = {"settings": lambda p: [{"n_components": min(p, 50)}], "nested": False}
# Ten times the default tol of NCA and MLKR: held-out predictions are equally accurate, in about
# half the time.
EARLY = {"tol": 1e-4}


def n_directions(estimator: Any, most: int) -> int:
    """Return the requested number of dimensions, or all."""
    m = estimator.n_components
    return most if m is None else check_integer(m, "n_components", 1, most)


def penalty(B: np.ndarray, alpha: float, n: int, groups: np.ndarray | None = None) -> Value:
    """Return `alpha / sqrt(n) ||B||^2` and its gradient.

    With groups of features, the squared norm is that of `group_penalty`. The uncertainty of a mean
    over n rows falls as 1 / sqrt(n), and so does the penalty that keeps B from overfitting.
    """
    weight = alpha / n**0.5
    norm, slope = (float(np.sum(B * B)), 2 * B) if groups is None else group_penalty(B, groups)
    return weight * norm, weight * slope


class DescentEmbedding(CallbackSupportMixin, LinearEmbedding):
    """A linear map that is found by descent. Abstract: a method defines `__init__` and `fit`."""

    n_components: int | None
    max_iter: Any
    warm_start = False
    _init_may_be_minimum = False

    def _set_map(self, found: DescentResult, rows: Scale, dtype: Any, task: Any) -> Self:
        """Set the map, and how it was found, as the last step of a fit.

        Then raise the interrupt that ended the descent, or warn if there are fewer dimensions than
        requested or the descent has not converged, and end the task, if there is one. All other
        attributes must be set before.
        """
        self.components_ = rows.components(found.x, dtype)
        self.n_components_ = len(self.components_)
        self.n_iter_, self.loss_curve_ = found.n_iter, np.array(found.curve)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        requested, kept = self.n_components, self.n_components_
        if requested is not None and kept < requested:
            text = SpectralStatus.RANK_DEFICIENT.value
            warn_user(text.format(requested=requested, found=kept))
        if found.status is Status.MAX_ITER:
            max_iter = found.n_iter if self.max_iter == "auto" else self.max_iter
            warn_user(
                f"max_iter={max_iter} iterations ended the descent before it converged: the map is "
                "good, not final. Raise max_iter or tol, or standardize the features.",
                ConvergenceWarning,
            )
        elif (
            found.n_iter == 0
            and found.status is not Status.STOPPED
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
    "FLOAT64_ROWS",
    "N_FAR",
    "PERPLEXITY_NEIGHBORS",
    "PERPLEXITY_ROWS",
    "DescentEmbedding",
    "Scale",
    "directions",
    "discriminant_directions",
    "evenly_by",
    "n_directions",
    "perplexity_bandwidth",
    "squares_to",
]
