"""NCA from pairs of rows that are similar, without labels (Goldberger et al., NIPS 2004, section 5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from .._callbacks import FitTask, with_callbacks
from .._validation import check_choice, check_integer, check_number, validate_pairs, validate_rows
from ..descent import DescentResult, OnIteration, lbfgs
from ..objectives.nca import pair_cost
from ..spectral import ratio_trace
from .descent_embedding import DescentEmbedding, UnitRows, cap_penalty, n_directions, penalized
from .initialization import directions, perplexity_bandwidth


class PairNCA(DescentEmbedding):
    """NCA from weighted pairs: the map under which similar rows are close, compared with all pairs of rows.

    With weights w_ab of the pairs (a, b), the map A minimizes

        -sum_(a,b) w_ab log( exp(-||A x_a - A x_b||^2) / sum_{c != d} exp(-||A x_c - A x_d||^2) ) / sum w     (eq. 8)

    plus `alpha / sqrt(n) ||A||^2 u^2`: the given pairs are to be likely among all ordered pairs of rows. u is the
    typical distance of neighbours, so that alpha means the same for any scale of the features.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    alpha : float, default=0.15
        Weight of the penalty; 0 for none.
    init : {"auto", "identity", "pca", "random"}, default="auto"
        Where the descent begins: "auto" takes the identity if all dimensions are kept, else the directions in which
        pairs differ least relative to all rows (PCA for sparse X); scaled as for `NCA`.
    n_init : int, default=1
        Descents: from `init`, the others from random directions. The lowest loss is kept.
    max_iter : int, default=200
        Iterations allowed to a descent.
    tol : float, default=1e-5
        A descent has converged when an iteration lowers the loss by less, relative to max(loss, 1).
    random_state : int, RandomState or None, default=None
        Seed of the random directions.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A.
    n_components_ : int
        m.
    objective_ : float
        Cost at A, without the penalty, for a pair of weight 1: `log(n (n - 1))` where the pairs are as close as any.
    n_iter_ : int
        Iterations of the descent that was kept.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Cost plus penalty before and after every iteration.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The scale of the features, warnings, precision and interrupts are as for `NCA`. Cost: an iteration takes
    O(n^2 m + n p m) time and O(n (p + m)) memory, never n x n.

    References
    ----------
    See `NCA`.

    Examples
    --------
    A slow signal under fast noise; neighbours in time are alike:

    >>> import numpy as np
    >>> from nearkin import PairNCA
    >>> time = np.linspace(0, 10, 200)
    >>> X = np.column_stack([np.sin(time), np.random.default_rng(0).normal(size=200)])
    >>> slow, noise = np.abs(PairNCA(1).fit(X).components_[0])
    >>> bool(slow > 10 * noise)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        alpha: float = 0.15,
        init: str = "auto",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @classmethod
    def from_stacked_pairs(cls, pairs: Any, weights: Any = None, **parameters: Any) -> PairNCA:
        """Return an estimator fitted to pairs that are given as rows, as metric-learn's are.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)
            The two rows of each similar pair. Rows that are equal count as one.
        weights : array of shape (n_pairs,), default=None
            As for `fit`.
        **parameters
            Of the constructor.

        Returns
        -------
        PairNCA
            Fitted; the competing pairs are those of all rows that occur.
        """
        pairs = validate_pairs(pairs)
        X, numbers = np.unique(pairs.reshape(-1, pairs.shape[2]), axis=0, return_inverse=True)
        return cls(**parameters).fit(X, pairs=numbers.reshape(-1, 2), weights=weights)

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, pairs: Any = None, weights: Any = None) -> PairNCA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : ignored
        pairs : array of shape (n_pairs, 2), default=None
            Numbers of two rows each, counted from 0, that are similar. None pairs each row with the next one: rows in
            the order of time.
        weights : array of shape (n_pairs,), default=None
            How much each pair counts, at least 0; None for 1 each.

        Returns
        -------
        self
        """
        check_choice(self.init, "init", ("auto", "identity", "pca", "random"))
        check_number(self.alpha, "alpha", 0)
        check_number(self.tol, "tol", 0)
        n_iterations = check_integer(self.n_init, "n_init", 1) * check_integer(self.max_iter, "max_iter", 1)
        task = FitTask(self, X, y, n_iterations)
        X = validate_rows(self, X, reset=True)
        pairs = _check_pairs(pairs, X.shape[0])
        weights = np.ones(len(pairs)) if weights is None else _check_weights(weights, len(pairs))
        m = n_directions(self, X.shape[1])
        rows = UnitRows.of(X, within_span=not (issparse(X) and m < X.shape[1]))
        return self.fit_problem(PairProblem(self, rows, pairs, weights, min(m, rows.shape[1])), X.dtype, task)


@dataclass(frozen=True)
class PairProblem:
    """The cost of weighted pairs plus the penalty, a function of maps B of rows in units of the typical distance.

    Attributes
    ----------
    parameters : PairNCA
    rows : UnitRows
    pairs : ndarray of shape (n_pairs, 2)
    weights : ndarray of shape (n_pairs,)
    m : int
        Dimensions of the map.
    """

    parameters: PairNCA
    rows: UnitRows
    pairs: np.ndarray
    weights: np.ndarray
    m: int

    def loss(self, B: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient."""
        cost, gradient = pair_cost(B, self.rows.X, self.pairs, self.weights / self.weights.sum())
        return penalized(cost, gradient, B, self.parameters.alpha, self.rows.shape[0])

    def inits(self) -> Iterator[np.ndarray]:
        """Yield `n_init` maps to begin with: `init`, then random ones."""
        X, m, rng = self.rows.X, self.m, check_random_state(self.parameters.random_state)
        name = self.parameters.init
        if name == "auto":
            name = "identity" if m == X.shape[1] else "pca" if issparse(X) else "pairs"
        for each in [name] + ["random"] * (self.parameters.n_init - 1):
            B = self.least_different(m) if each == "pairs" else directions(each, X, m, rng)
            B = B / perplexity_bandwidth(self.rows.nearest_squares(B))
            yield cap_penalty(B, self.parameters.alpha, X.shape[0])

    def least_different(self, m: int) -> np.ndarray:
        """Return the directions (m, p) in which pairs differ least, relative to all rows."""
        X, (a, b) = self.rows.X, self.pairs.T
        difference = X[a] - X[b]
        V = ratio_trace((difference.T * self.weights) @ difference, X.T @ X, m).vectors.T
        return V if len(V) == m else directions("pca", X, m)

    def descend(self, init: np.ndarray, on_iteration: OnIteration) -> DescentResult:
        """Minimize the loss by L-BFGS."""
        how = self.parameters
        return lbfgs(self.loss, init, max_iter=how.max_iter, tol=how.tol, on_iteration=on_iteration)

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what PairNCA sets beside the map."""
        alpha, n = self.parameters.alpha, self.rows.shape[0]
        return {"objective_": -penalized(-best.value, best.x, best.x, alpha, n)[0]}


def _check_pairs(pairs: Any, n: int) -> np.ndarray:
    if pairs is None:
        return np.column_stack([np.arange(n - 1), np.arange(1, n)])
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
        remedy = "; rows themselves go to PairNCA.from_stacked_pairs" if pairs.ndim == 3 else ""
        raise ValueError(f"pairs must be integers of shape (n_pairs, 2), got {pairs.dtype} of {pairs.shape}{remedy}.")
    if pairs.min() < 0 or pairs.max() >= n:
        raise ValueError(f"pairs must hold numbers of rows, 0 to {n - 1}, got {pairs.min()} to {pairs.max()}.")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise ValueError(
            f"pairs must be of two different rows, pair {same.argmax()} has row {pairs[same][0, 0]} twice."
        )
    return pairs


def _check_weights(weights: Any, n_pairs: int) -> np.ndarray:
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name="weights")
    if weights.shape != (n_pairs,) or weights.min() < 0 or weights.sum() == 0:
        raise ValueError(
            f"weights must be {n_pairs} numbers of at least 0, not all 0; got shape {weights.shape} with the minimum "
            f"{weights.min():g}."
        )
    return weights
