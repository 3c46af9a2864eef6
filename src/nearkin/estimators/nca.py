"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import check_shared_labels
from .._memory import require_memory
from .._validation import check_integer, check_number, validate_labelled_rows, validate_target_rows
from ..descent import DescentResult, Status
from ..neighbors import searcher
from ..objectives.pair_weights import PairWeights, SameClass, TargetKernel
from . import _starts
from ._criterion import OBJECTIVES, Criterion
from ._descending import (
    Scale,
    UnitRows,
    best_descent,
    descend,
    keep,
    penalized,
    raise_interrupt,
    report,
    report_unmoved,
    telling,
)
from ._minibatches import Minibatches, RowsInPlace, SGDState, in_place
from .base import LinearEmbedding

MAX_ITER = 200  # of L-BFGS


def _descends_by_minibatches(nca: NCA) -> bool:
    if nca.solver != "sgd":
        raise AttributeError(f"partial_fit needs solver='sgd', got solver={nca.solver!r}.")
    return True


class NCA(CallbackSupportMixin, LinearEmbedding):
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
        for g the nearest of the same class, too. "auto" is exact up to 8,000 rows, then k = 50; with solver="sgd"
        it is always k = 15, and the 500 rows are drawn anew for every step, at random.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How candidates are looked up. "auto" is approximate from 100,000 rows on; a transformer is one like
        scikit-learn's KNeighborsTransformer, which is cloned.
    alpha : float, default=0.15
        Weight of the penalty; 0 for none, as in the paper: it then overfits where rows are few.
    init : {"auto", "identity", "pca", "lda", "random"} or array of shape (m, p), default="auto"
        Where the descent begins. "auto" takes the identity if all dimensions are kept, and otherwise PCA or, for fewer
        dimensions than classes and dense X, LDA, whichever has the lower loss. Directions are scaled until the mean
        perplexity of the p_ij is 10 (half the rows, for fewer than 20), larger where the penalty would exceed 1: no
        start is flat. An array is taken as it is; for a diagonal map, of shape (p,).
    n_init : int, default=1
        Descents: from `init`, the others from random directions. The lowest loss is kept.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        How to descend: by L-BFGS, an iteration for the gradient of all rows; or by stochastic gradient, a step for that
        of some rows. "sgd" is for many rows, from about 10,000, and copies none of them but those of a step.
    batch_size : "auto" or int, default="auto"
        With solver="sgd", rows that choose their neighbours in a step, at most. "auto" is a twentieth of them, but at
        least 128 and at most 512.
    max_iter : "auto" or int, default="auto"
        With solver="lbfgs", iterations allowed to a descent: "auto" is 200. With "sgd", epochs that it takes, in each
        of which every row chooses once: "auto" is as many as hold 500 steps, one epoch for 256,000 rows or more.
    tol : float, default=1e-5
        A descent has converged when an iteration lowers the loss by less, relative to max(loss, 1). With solver="sgd",
        when a step does, in the mean over the last fifth of the steps and as far as their noise tells; it ends when
        max_iter says.
    warm_start : bool, default=False
        Whether `fit` begins with `components_` of the last fit, if there is one, instead of `init`.
    random_state : int, RandomState or None, default=None
        Seed of the random directions; with solver="sgd", of all that is drawn.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. It has a scale: p_ij is what eq. 1 says of `transform(X)`.
    n_components_ : int
        m.
    objective_ : float
        f or g at A, a mean over the rows: exact, or the estimate from the candidates looked up at A. With solver="sgd"
        it is always an estimate, of at most 5,000 rows, drawn at random, each with its 50 nearest (at least) and 2,000
        rows that stand for all others.
    objective_error_ : float
        Standard error of `objective_` for want of all rows; 0 where all are asked.
    perplexity_ : float
        Mean of exp(entropy) of the p_ij of a row: how many neighbours the map listens to, the learned k. Of at most
        1,000 rows and their 100 nearest.
    n_iter_ : int
        Iterations of the descent that was kept, or epochs.
    loss_curve_ : ndarray of shape (at least n_iter_ + 1,)
        What is minimized, -f or -g plus the penalty, before and after every iteration. With candidates it may jump
        where they are looked up again. With solver="sgd", estimates: that of the first step, then the mean of those of
        every epoch, each made at the map of its step.
    search_ : str
        How candidates were looked up: "exact", "approximate" or the name of the transformer.
    search_recall_ : dict of str to float, or None
        The share of true neighbours found the last time, where `ApproximateSearch(check_recall=True)` measured it.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the descent before it converged, or it has not moved from its start.

    Notes
    -----
    The scale of the features decides where the descent begins and what the penalty costs: standardize first unless
    the units are comparable.

    Cost: an iteration takes O(n^2 m + n p m), with candidates O(n k m + n p m) and a search among n^2 pairs every 15
    iterations; memory is O(n (p + m + k)), never n x n. Up to 2,000 rows everything is computed in float64, beyond in
    float32 with float64 sums. Sparse X stays sparse if n_components is given; a diagonal map needs n x p dense numbers.

    Stochastic gradient, as the paper suggests: f and g are means over rows, so b rows a step, drawn without return
    until all have had their turn, tell their gradients among the same candidates without bias. A step follows the mean
    of the last gradients. Its length is not theirs: 0.1 of the norm of a map that keeps distances, it falls to 0 evenly
    (Adam, with one scale for all entries). The lists of near rows are those of the start, looked up again after a fifth
    of the steps. A step costs O(b k m p), whatever n is; memory beyond X is O(n (m + k)), and X may be a numpy.memmap.
    The start is found on at most 10,000 rows.

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

    compared_as: ClassVar[dict] = {
        "NCA": {
            "settings": lambda p: [{"n_components": min(p, 50)}],
            "nested": False,
            "regression": {"target": "continuous"},
        },
        "NCA log": {
            "params": {"objective": "log_likelihood"},
            "settings": lambda p: [{"n_components": min(p, 50)}],
            "nested": False,
        },
    }

    _underway: SGDState | None = None

    def __init__(
        self,
        n_components: int | None = None,
        *,
        objective: str = "expected_accuracy",
        structure: str = "full",
        target: str = "classes",
        n_candidates: int | str | None = "auto",
        search: Any = "exact",
        alpha: float = 0.15,
        init: Any = "auto",
        n_init: int = 1,
        solver: str = "lbfgs",
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.objective = objective
        self.structure = structure
        self.target = target
        self.n_candidates = n_candidates
        self.search = search
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
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
        ImportError
            If an approximate search is asked for and faiss is not installed.
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
        solve = self._by_minibatches if self.solver == "sgd" else self._by_lbfgs
        criterion = self._criterion(X.shape[0])
        best, last, rows = solve(X, matches, criterion, self._n_directions(X.shape[1]), task)
        self._keep(best, rows, criterion, X.shape[0], X.dtype)
        report(best, last, best.n_iter)
        if not self.warm_start:
            report_unmoved(best)
        task.end()
        return self

    def _by_lbfgs(
        self, X: Any, matches: PairWeights, criterion: Criterion, m: int, task: FitTask
    ) -> tuple[DescentResult, Status, UnitRows]:
        rows = UnitRows.of(X, within_span=self._within_span(X, m))
        loss, look_up = criterion.loss(rows, matches), criterion.look_up(rows, matches)
        rng = check_random_state(self.random_state)
        start = partial(criterion.start, rows=rows, matches=matches, m=m, rng=rng)
        max_iter = MAX_ITER if isinstance(self.max_iter, str) else self.max_iter
        told = telling(task, rows, X.dtype)
        one = partial(descend, loss, look_up=look_up, max_iter=max_iter, tol=self.tol, on_iteration=told)
        self._underway = None
        return *best_descent(self._starts(rows, start, go_on=self.warm_start), one), rows

    def _by_minibatches(
        self, X: Any, matches: PairWeights, criterion: Criterion, m: int, task: FitTask
    ) -> tuple[DescentResult, Status, RowsInPlace]:
        rng = check_random_state(self.random_state)
        rows, start = in_place(X, matches, criterion, m, rng, within_span=self._within_span(X, m))
        batches = Minibatches.of(rows, matches, criterion, X.shape[0], self.batch_size, rng)
        told = telling(task, rows, X.dtype)
        one = partial(batches.descend, max_iter=self.max_iter, tol=self.tol, on_iteration=told)
        best, last = best_descent(self._starts(rows, start, go_on=self.warm_start), one)
        self._underway = SGDState.after(best, rows, matches, X.shape[0])
        return best, last, rows

    @available_if(_descends_by_minibatches)  # type: ignore[untyped-decorator]
    @with_callbacks
    def partial_fit(self, X: Any, y: Any) -> NCA:
        """Go on from the present map with more rows, or begin with these.

        One epoch of solver="sgd": each of the rows is an anchor once, and chooses among the rows of this call, to
        which alone their labels matter. Steps shrink with 1 / sqrt(t), t counting those of all calls, and the penalty
        counts the rows of all calls. What a first call finds for the unit u (and the bandwidth h) stays. Bring rows in
        random order, some thousands at a time: fewer are further apart than the neighbours that are wanted.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal; to begin with, at least n_components.
        y : array of shape (n,)
            As for `fit`.

        Returns
        -------
        self
            `objective_` and `perplexity_` are those of the rows of this call; `loss_curve_` is longer by one.

        Raises
        ------
        AttributeError
            If solver is not "sgd".
        TypeError, ValueError, KeyboardInterrupt
            As `fit`.
        """
        self._check_parameters()
        task = FitTask(self, X, y, n_steps=1)
        first = not hasattr(self, "components_")
        X, matches = self._validate(X, y, reset=first)
        rng = check_random_state(self.random_state)
        criterion = self._criterion(X.shape[0])
        before = self._underway
        if before is None:
            m = self._n_directions(min(X.shape)) if first else len(self.components_)
            rows, start = in_place(X, matches, criterion, m, rng, within_span=False)
            before = SGDState.begun(next(self._starts(rows, start, go_on=True)), rows, matches)
        rows, n_counted = RowsInPlace.of(X, before.unit), before.n_counted + X.shape[0]
        batches = Minibatches.of(rows, before.measured(matches), criterion, n_counted, self.batch_size, rng)
        found = batches.go_on(before.B, before.memory, telling(task, rows, X.dtype))
        self._underway = SGDState.after(found, rows, batches.matches, n_counted)
        if not first:
            curve = [*self.loss_curve_, *found.curve[1:]]
            found = replace(found, curve=curve, n_iter=self.n_iter_ + found.n_iter)
        self._keep(found, rows, criterion, n_counted, X.dtype)
        raise_interrupt(found.status)
        task.end()
        return self

    def _keep(self, best: DescentResult, rows: Any, criterion: Criterion, n_counted: int, dtype: Any) -> None:
        keep(self, best, rows, dtype)
        self.search_, self.search_recall_ = criterion.search.name, criterion.search.recall
        self.objective_ = penalized(-best.value, best.x, best.x, self.alpha, n_counted)[0]
        self.objective_error_ = best.error
        self.perplexity_ = _starts.perplexity(_starts.near_squares(rows.embedded(best.x)))

    def _n_directions(self, most: int) -> int:
        return most if self.n_components is None else check_integer(self.n_components, "n_components", 1, most)

    def _within_span(self, X: Any, m: int) -> bool:
        """Say whether maps are sought in the span of the rows, where these are fewer than the features."""
        if self.structure == "diagonal" and issparse(X):
            require_memory(4 * 8 * X.shape[0] * X.shape[1], "A diagonal map of sparse X", "take structure='full'")
        return self.structure == "full" and not (issparse(X) and m < X.shape[1])

    def _starts(self, rows: Scale, start: Callable[[str], np.ndarray], *, go_on: bool) -> Iterator[np.ndarray]:
        """Yield `n_init` maps to begin with: the present one to go on from, or else `init`; then random ones."""
        if go_on and hasattr(self, "components_"):
            yield self._coordinates(self.components_, "components_, to go on from,", rows, len(self.components_))
        elif isinstance(self.init, str):
            yield start(self.init)
        else:
            A = check_array(self.init, ensure_2d=False, dtype=np.float64, input_name="init")
            yield self._coordinates(A, "init", rows, self.n_features_in_)
        for _ in range(self.n_init - 1):
            yield start("random")

    def _coordinates(self, A: np.ndarray, name: str, rows: Scale, m: int) -> np.ndarray:
        """Return a map of the features, from the user or the last fit, as one of the rows; by default it has m rows."""
        p = self.n_features_in_
        shape = (p,) if self.structure == "diagonal" else (self.n_components or m, p)
        if A.shape == (p, p) and self.structure == "diagonal" and not A[~np.eye(p, dtype=bool)].any():
            A = A.diagonal()
        if A.shape != shape:
            raise ValueError(f"{name} must be of shape {shape}, got {A.shape}.")
        return rows.coordinates_of(A)

    def _criterion(self, n: int) -> Criterion:
        search = searcher(self.search, n)
        return Criterion(self.objective, self.structure, self.alpha, self.n_candidates, search)

    def _validate(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, PairWeights]:
        if self.target == "classes":
            X, codes = validate_labelled_rows(self, X, y, reset=reset)
            check_shared_labels(codes)
            return X, SameClass(codes)
        X, targets = validate_target_rows(self, X, y, reset=reset)
        return X, TargetKernel(targets, bandwidth=targets.std() / 4)

    def _check_parameters(self) -> int | None:
        """Raise an error that names what is wrong; return the number of iterations allowed, None if n decides."""
        choices: dict[str, tuple[str, ...]] = {
            "objective": tuple(OBJECTIVES),
            "structure": ("full", "diagonal"),
            "target": ("classes", "continuous"),
            "solver": ("lbfgs", "sgd"),
        }
        if isinstance(self.init, str):
            choices["init"] = _starts.INITS if self.structure == "full" else ("auto", "identity", "random")
        for name in ("n_candidates", "batch_size", "max_iter"):
            if isinstance(getattr(self, name), str):
                choices[name] = ("auto",)
            elif getattr(self, name) is not None or name != "n_candidates":
                check_integer(getattr(self, name), name, 1)
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")
        if self.structure == "diagonal" and self.n_components is not None:
            raise ValueError(f"n_components must be None for a diagonal map (p features), got {self.n_components!r}.")
        check_number(self.alpha, "alpha", 0)
        check_number(self.tol, "tol", 0)
        if not isinstance(self.warm_start, (bool, np.bool_)):
            raise TypeError(f"warm_start must be True or False, got {self.warm_start!r}.")
        n_init = check_integer(self.n_init, "n_init", 1)
        if self.max_iter == "auto":
            return n_init * MAX_ITER if self.solver == "lbfgs" else None
        return n_init * int(self.max_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
