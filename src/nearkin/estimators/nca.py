"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from .._array import check_integer, check_kin, check_number, validate_labelled_rows, validate_target_rows
from .._callbacks import FitTask, with_callbacks
from .._memory import require_memory
from ..descent import DescentResult
from ..neighbors import nearest, nearest_same_class
from ..objectives.matches import Classes, Matches, SoftMatches
from ..objectives.nca import embed, expected_accuracy, log_likelihood
from ..objectives.stochastic import Candidates
from . import _starts
from ._descending import UnitRows, affordable, best_descent, descend, keep, penalized, report, report_unmoved, telling
from .base import LinearEmbedding

OBJECTIVES = {"expected_accuracy": expected_accuracy, "log_likelihood": log_likelihood}
EXACT_ROWS = 8000  # up to here exact is also quicker
NEAR = 50
FAR = 500


class NCA(LinearEmbedding):
    """Neighbourhood Components Analysis: the map in which a randomly drawn near neighbour is most often right.

    Row i picks row j for its neighbour with the probability p_ij and takes over its label; with classes C_i,

        p_ij = exp(-||A x_i - A x_j||^2) / sum_k exp(-||A x_i - A x_k||^2),  p_ii = 0        (eq. 1)
        q_i = sum_(j in C_i) p_ij                                                             (eq. 2)

    and the map A maximizes the expected share of rows that are labelled right, or the probability that all are:

        f(A) = 1/n sum_i q_i  (eq. 3)          g(A) = 1/n sum_i log q_i  (eq. 6)

    less `alpha / sqrt(n) ||A||^2 u^2`. The distance u is the typical one of neighbours, so that alpha means the same
    for any scale of the features. For real-valued targets the sum over C_i becomes one over all rows, weighted by
    their agreement `w_ij = exp(-(y_i - y_j)^2 / (2 h^2))`, h a quarter of the targets' standard deviation (section 5).

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    objective : {"expected_accuracy", "log_likelihood"}, default="expected_accuracy"
        f or g. g cares most for the rows that are wrong by far; f gives them up.
    structure : {"full", "diagonal"}, default="full"
        A diagonal A weighs the features and does not mix them; its n_components must be None.
    target : {"classes", "continuous"}, default="classes"
        What y holds: labels, or real numbers.
    n_candidates : "auto", int or None, default="auto"
        None lets every other row be a neighbour: exact, O(n^2) an iteration. An integer k keeps the k nearest in the
        current embedding, looked up again every 15 iterations, and 500 rows, evenly drawn, that stand for all others;
        for g the nearest of the same class, too. "auto" is exact up to 8,000 rows, then k = 50.
    alpha : float, default=0.15
        Weight of the penalty; 0 for none, as in the paper: it then overfits where rows are few.
    init : {"auto", "identity", "pca", "lda", "random"} or array of shape (m, p), default="auto"
        Where the descent begins. "auto" takes the identity if all dimensions are kept, and otherwise PCA or, for fewer
        dimensions than classes and dense X, LDA, whichever has the lower loss. Directions are scaled until the mean
        perplexity of the p_ij is 10 (half the rows, for fewer than 20), larger where the penalty would exceed 1: no
        start is flat. An array is taken as it is; for a diagonal map, of shape (p,).
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
        A. It has a scale: p_ij is what eq. 1 says of `transform(X)`.
    n_components_ : int
        m.
    objective_ : float
        f or g at A, a mean over the rows: exact, or the estimate from the candidates looked up at A.
    perplexity_ : float
        Mean of exp(entropy) of the p_ij of a row: how many neighbours the map listens to, the learned k. Of at most
        1,000 rows and their 100 nearest.
    n_iter_ : int
        Iterations of the descent that was kept.
    loss_curve_ : ndarray of shape (at least n_iter_ + 1,)
        What is minimized, -f or -g plus the penalty, before and after every iteration. With candidates it may jump
        where they are looked up again.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the descent, or it has not moved from its start.

    Notes
    -----
    The scale of the features decides where the descent begins and what the penalty costs: standardize first unless
    the units are comparable.

    Cost: an iteration takes O(n^2 m + n p m), with candidates O(n k m + n p m) and a search among n^2 pairs every 15
    iterations; memory is O(n (p + m + k)), never n x n. Up to 2,000 rows everything is computed in float64, beyond in
    float32 with float64 sums. Sparse X stays sparse if n_components is given; a diagonal map needs n x p dense numbers.

    KeyboardInterrupt ends the descent, and is raised again once the best map so far has been kept: the estimator can
    be used. So it can when a callback asks to stop.

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov: Neighbourhood Components Analysis. Advances in Neural
    Information Processing Systems 17 (2004).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import NCA
    >>> X, y = load_wine(return_X_y=True)
    >>> nca = NCA(2).fit(scale(X), y)
    >>> nca.transform(scale(X)).shape
    (178, 2)
    >>> nca.objective_ > 0.95  # share of rows that a random near neighbour labels right
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        objective: str = "expected_accuracy",
        structure: str = "full",
        target: str = "classes",
        n_candidates: int | str | None = "auto",
        alpha: float = 0.15,
        init: Any = "auto",
        n_init: int = 1,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.objective = objective
        self.structure = structure
        self.target = target
        self.n_candidates = n_candidates
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any) -> NCA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, -1 a class like any other; or real numbers that are not all equal. A
            row alone in its class cannot be labelled right: it counts 0 in f and is left out of g.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X or y is not as above or not finite, or a parameter is out of bounds.
        MemoryError
            If sparse X would have to be dense and that does not fit.
        KeyboardInterrupt
            After the best map so far has been kept.
        """
        task = FitTask(self, X, y, n_steps=self._check_parameters())
        X, matches = self._validate(X, y)
        n, p = X.shape
        m = p if self.n_components is None else check_integer(self.n_components, "n_components", 1, p)
        rows = self._unit_rows(X, m)
        look_up = self._look_up(rows, matches)

        def loss(B: np.ndarray, candidates: Candidates | None) -> tuple[float, np.ndarray]:
            value, gradient = OBJECTIVES[self.objective](B, rows.X, matches, candidates)
            return penalized(-value / n, -gradient / n, B, self.alpha, n)

        told = telling(task, rows, X.dtype)
        one = partial(descend, loss, look_up=look_up, max_iter=self.max_iter, tol=self.tol, on_iteration=told)
        best, last = best_descent(self._starts(rows, matches, m, loss, look_up), one)
        self._keep(best, rows, n, X.dtype)
        report(best, last, self.max_iter)
        report_unmoved(best)
        task.end()
        return self

    def _keep(self, best: DescentResult, rows: UnitRows, n: int, dtype: Any) -> None:
        keep(self, best, rows, dtype)
        self.objective_ = penalized(-best.value, best.x, best.x, self.alpha, n)[0]
        self.perplexity_ = _starts.perplexity(_starts.near_squares(embed(best.x, rows.X)))

    def _unit_rows(self, X: Any, m: int) -> UnitRows:
        if self.structure == "diagonal" and issparse(X):
            require_memory(4 * 8 * X.shape[0] * X.shape[1], "A diagonal map of sparse X", "take structure='full'")
        sparse_map = issparse(X) and m < X.shape[1]
        return UnitRows.of(X, within_span=self.structure == "full" and not sparse_map)

    def _look_up(self, rows: UnitRows, matches: Matches) -> Callable[[np.ndarray], Candidates] | None:
        """Return the function that finds the candidates of a map, None where all rows are candidates."""
        n = rows.X.shape[0]
        k = self.n_candidates
        if k is None or (k == "auto" and n <= EXACT_ROWS):
            return None
        k = min(NEAR if k == "auto" else check_integer(k, "n_candidates", 1), n - 1)
        far = _starts.drawn_evenly(rows.X, FAR)
        kin = matches.codes if isinstance(matches, Classes) and self.objective == "log_likelihood" else None

        def look_up(B: np.ndarray) -> Candidates:
            Z = embed(B, rows.X)
            near = nearest(Z, k).indices.reshape(n, k)
            return Candidates(near if kin is None else _with_nearest_kin(near, Z, kin), far)

        return look_up

    def _starts(
        self, rows: UnitRows, matches: Matches, m: int, loss: Callable, look_up: Callable | None
    ) -> Iterator[np.ndarray]:
        """Yield `n_init` maps to begin with: `init`, then random ones."""
        X, rng = rows.X, check_random_state(self.random_state)
        codes = matches.codes if isinstance(matches, Classes) else None
        m = min(m, X.shape[1])

        def start(name: str) -> np.ndarray:
            if self.structure == "diagonal":
                V = np.abs(rng.standard_normal(X.shape[1])) if name == "random" else np.ones(X.shape[1])
            else:
                V = _starts.directions(name, X, m, codes, rng)
            return affordable(_starts.scaled(V, X), self.alpha, X.shape[0])

        def start_loss(B: np.ndarray) -> float:
            return loss(B, None if look_up is None else look_up(B))[0]

        if not isinstance(self.init, str):
            yield self._given_start(rows, m)
        elif self.init == "auto" and self.structure == "full":
            starts = [start(name) for name in _starts.sensible(X, m, codes)]
            yield starts[0] if len(starts) == 1 else min(starts, key=start_loss)
        else:
            yield start(self.init)
        for _ in range(self.n_init - 1):
            yield start("random")

    def _given_start(self, rows: UnitRows, m: int) -> np.ndarray:
        A = check_array(self.init, ensure_2d=False, dtype=np.float64, input_name="init")
        p = self.n_features_in_
        shape = (p,) if self.structure == "diagonal" else (self.n_components or p, p)
        if A.shape != shape:
            raise ValueError(f"init must be of shape {shape}, got {A.shape}.")
        return rows.coordinates_of(A)

    def _validate(self, X: Any, y: Any) -> tuple[Any, Matches]:
        if self.target == "classes":
            X, codes = validate_labelled_rows(self, X, y)
            check_kin(codes)
            return X, Classes(codes)
        X, targets = validate_target_rows(self, X, y)
        return X, SoftMatches(targets, bandwidth=targets.std() / 4)

    def _check_parameters(self) -> int:
        """Raise an error that names what is wrong; return the number of iterations allowed."""
        choices: dict[str, tuple[str, ...]] = {
            "objective": tuple(OBJECTIVES),
            "structure": ("full", "diagonal"),
            "target": ("classes", "continuous"),
        }
        if isinstance(self.init, str):
            choices["init"] = _starts.INITS if self.structure == "full" else ("auto", "identity", "random")
        if isinstance(self.n_candidates, str):
            choices["n_candidates"] = ("auto",)
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        if self.structure == "diagonal" and self.n_components is not None:
            raise ValueError(f"n_components must be None for a diagonal map (p features), got {self.n_components!r}.")
        check_number(self.alpha, "alpha", 0)
        check_number(self.tol, "tol", 0)
        return check_integer(self.n_init, "n_init", 1) * check_integer(self.max_iter, "max_iter", 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _with_nearest_kin(near: np.ndarray, Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the lists with the nearest row of the same class beside them; the row itself where that adds nothing."""
    graph = nearest_same_class(Z, codes, 1)
    own = np.arange(len(codes), dtype=near.dtype)
    kin = own.copy()
    kin[np.diff(graph.indptr) > 0] = graph.indices
    return np.column_stack([near, np.where((near == kin[:, None]).any(axis=1), own, kin)])
