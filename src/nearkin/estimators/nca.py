"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004).

The method, from its definition to what it learns; then its objective as a term, a loss that is a
mean over rows, and the descents, by L-BFGS and by minibatches, that minimize a term. `PairNCA` and
`DaskNCA` use these descents with terms of their own.

A maps the features: `components_`. Descents work on B, the same map of rows in units of the typical
distance of neighbours, and in fewer coordinates where the rows span fewer: `rows.coordinates(A)` is
B, and `rows.components(B)` is A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array

from .._blocks import require_memory
from .._callbacks import FitTask, with_callbacks
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    check_shared_labels,
    validate_labelled_rows,
    validate_target_rows,
)
from ..descent import DescentResult, Momentum, OnIteration, Status, adam, lbfgs_rounds
from ..neighbors import Searcher, searcher
from ..objectives.nca import nca_objective
from ..objectives.stochastic import (
    TERMS,
    Candidates,
    PairWeights,
    SameClass,
    TargetKernel,
    Value,
    target_bandwidth,
)
from ..scatter import between_scatter, row_space, within_scatter
from .descent_embedding import (
    COMPARED,
    EARLY,
    INITS,
    N_FAR,
    N_NEAR,
    UNIT_ROWS,
    DescentEmbedding,
    RowsInPlace,
    Scale,
    UnitRows,
    cap_penalty,
    directions,
    discriminant_directions,
    n_directions,
    near_rows,
    penalized,
    perplexity,
    perplexity_bandwidth,
    unit_distance,
)

ALL_PAIRS_ROWS = 8000  # up to here all pairs are taken: exact, and quicker than a search
MAX_ITER = 200
INIT_ROWS = 10_000  # on which an init of stochastic descent is found


def _descends_by_minibatches(nca: NCA) -> bool:
    if nca.solver != "sgd":
        raise AttributeError(f"partial_fit needs solver='sgd', got solver={nca.solver!r}.")
    return True


class NCA(DescentEmbedding):
    """Neighbourhood Components Analysis: maximizes the accuracy of stochastic nearest neighbours.

    Row i draws row j as its neighbour with probability p_ij and takes over its label; with classes
    C_i,

        p_ij = exp(-||A x_i - A x_j||^2) / sum_k exp(-||A x_i - A x_k||^2),  p_ii = 0      (eq. 1)
        q_i = sum_(j in C_i) p_ij                                                          (eq. 2)

    and the map A maximizes the expected share of rows that are labelled right, or the mean
    log-probability of that,

        f(A) = 1/n sum_i q_i  (eq. 3)          g(A) = 1/n sum_i log q_i  (eq. 6)

    minus the penalty `alpha / sqrt(n) ||A||^2 u^2`. u is the typical distance of neighbours, so
    that alpha means the same for any scale of the features. For real-valued targets the sum over
    C_i becomes one over all rows, with weights `w_ij = exp(-(y_i - y_j)^2 / (2 h^2))` (section 5).
    h is a quarter of the targets' standard deviation, estimated by their interquartile range, IQR /
    1.349 (of the distinct ones where that is 0), which outliers do not change.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    objective : {"expected_accuracy", "log_likelihood"}, default="expected_accuracy"
        f or g. g penalizes badly misclassified samples heavily; f ignores them.
    structure : {"full", "diagonal"}, default="full"
        A diagonal A weights the features and does not mix them; its n_components must be None.
    target : {"classes", "continuous"}, default="classes"
        What y holds: labels, or real numbers.
    n_candidates : "auto", int or None, default="auto"
        None lets every other row be a neighbour: exact, O(n^2) an iteration. An integer k keeps the
        k nearest in the current embedding, searched again every 15 iterations, and 500 rows, evenly
        drawn, that stand for all others; for g also the nearest of the same class. "auto" is exact
        up to 8,000 rows, then k = 50; with solver="sgd" it is always k = 15, and the 500 rows are
        drawn at random for every step.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How candidates are searched. "auto" is approximate from 100,000 rows on; a transformer is
        one like scikit-learn's KNeighborsTransformer, which is cloned.
    alpha : float, default=0.15
        Weight of the penalty; 0 for none, as in the paper: it then overfits where rows are few.
    init : {"auto", "identity", "pca", "lda", "random"} or array of shape (m, p), default="auto"
        Where the descent begins. "auto" takes the identity if all dimensions are kept, and
        otherwise PCA or, for fewer dimensions than classes and dense X, LDA (S_w shrunk by 0.01),
        whichever has the lower loss. Directions are scaled to a mean perplexity of the p_ij of 10
        (half the rows, for fewer than 20), larger where the penalty would exceed 1: no init is
        flat. An array is taken as it is; for a diagonal map, of shape (p,).
    n_init : int, default=1
        Descents: from `init`, the others from random directions. The lowest loss is kept.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        L-BFGS, an iteration for the gradient of all rows, or stochastic gradient, a step for that
        of some rows. "sgd" is for many rows, from about 10,000, and copies none of them but those
        of a step.
    batch_size : "auto" or int, default="auto"
        With solver="sgd", the largest number of rows that draw their neighbours in a step. "auto"
        is a twentieth of them, but at least 128 and at most 512.
    max_iter : "auto" or int, default="auto"
        With solver="lbfgs", iterations allowed to a descent: "auto" is 200. With "sgd", epochs, in
        each of which every row draws once: "auto" is as many as hold 500 steps, one epoch for
        256,000 rows or more.
    tol : float, default=1e-5
        A descent has converged when an iteration lowers the loss by less, relative to max(loss, 1).
        With solver="sgd", when a step does in the mean over the last fifth of them, up to noise;
        all epochs are taken even so.
    warm_start : bool, default=False
        Whether `fit` begins with `components_` of the last fit, if there is one, instead of `init`.
    random_state : int, RandomState or None, default=None
        Seed of the random directions; with solver="sgd", of all that is drawn.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. It has a scale: p_ij is what eq. 1 says of `transform(X)`.
    n_components_ : int
    target_bandwidth_ : float
        h, for target="continuous".
    objective_ : float
        f or g at A, a mean over the rows: exact, or the estimate from the candidates at A. With
        solver="sgd" it is always an estimate, from at most 5,000 rows, each with its 50 nearest (at
        least) and 2,000 that stand for all.
    objective_error_ : float
        Standard error of `objective_` from taking some rows only; 0 where all are used.
    perplexity_ : float
        Mean of exp(entropy) of the p_ij of a row, the learned k, from at most 1,000 rows and their
        100 nearest; `SoftNeighborsClassifier.local_k` has that of every row.
    n_iter_ : int
        Iterations of the descent that was kept, or epochs.
    loss_curve_ : ndarray of shape (at least `n_iter_` + 1,)
        What is minimized, before and after every iteration. With candidates it may jump where they
        are searched again. With solver="sgd", estimates, each at the map of its step: of the first,
        then the mean over every epoch.
    search_, search_recall_
        See `LDE`: of the candidates, as they were searched the last time.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the descent before it converged, or it has not moved from its init.

    See Also
    --------
    NCAClassifier, LMNN, PairNCA

    Notes
    -----
    The scale of the features decides where the descent begins and what the penalty costs:
    standardize them. Embeddings of text are better whitened, `make_pipeline(RCA(), NCA(64))`: on
    those of banking77 precision at 10 rises from .86 to .89. But 21 of 34 tables lose by it, one 5
    points.

    Cost: an iteration takes O(n^2 m + n p m), with candidates O(n k m + n p m) and a search among
    n^2 pairs every 15 iterations; memory is O(n (p + m + k)), never n x n. Up to 2,000 rows
    everything is computed in float64, beyond in float32 with float64 sums. Sparse X stays sparse if
    n_components is given; a diagonal map needs n x p dense numbers.

    Stochastic gradient: f and g are means over rows, so a step estimates their gradient from b
    rows, without bias. It is against the mean of the last gradients (Adam with one scale for all
    entries); its length falls evenly from 0.1 of the norm of a map that keeps distances to 0.
    Candidates are searched at the init and after a fifth of the steps. A step costs O(b k m p);
    memory beyond X, which may be a numpy.memmap, is O(n (m + k)). 10,000 rows make the init.

    KeyboardInterrupt, or a callback, ends the descent; the best map so far is kept, and the
    interrupt is raised again.

    References
    ----------
    J. Goldberger, S. Roweis, G. Hinton, R. Salakhutdinov: Neighbourhood Components Analysis. NIPS
    17 (2004).

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

    # how `nearkin.evaluation` compares it: see `evaluation.methods.Method`
    compared_as: ClassVar[dict] = {
        "NCA": COMPARED | {"params": EARLY, "regression": {"target": "continuous"} | EARLY},
        "NCA log": COMPARED | {"params": {"objective": "log_likelihood"} | EARLY},
    }

    _needs_labels = True
    _sgd_state: SGDState | None = None

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
            Class labels, at least two classes, -1 a class like any other; or real numbers that are
            not all equal. A row alone in its class cannot be labelled right: it counts 0 in f and
            is left out of g.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, check_parameters(self))
        X, pair_weights = self._validate(X, y)
        m, rng = n_directions(self, X.shape[1]), check_random_state(self.random_state)
        few, term = self._terms(X, pair_weights, rng, m if self.structure == "full" else None)
        found = descend(
            self,
            term,
            self._inits(few, term.rows, m, rng, self.warm_start),
            rng,
            lambda B: task.iteration(lambda: {"components_": term.rows.components(B, X.dtype)}),
        )
        self._set_learned(found, term, X.shape[0], X.dtype)
        task.end()
        return self

    @available_if(_descends_by_minibatches)  # type: ignore[untyped-decorator]
    @with_callbacks
    def partial_fit(self, X: Any, y: Any) -> NCA:
        """Continue from the present map with more rows, or begin with these.

        One epoch of solver="sgd": each of the rows is an anchor once, and draws its neighbour among
        the rows of this call; labels matter within a call only. Steps shrink with 1 / sqrt(t), t
        counting those of all calls, and the penalty counts all rows. The first call sets the unit u
        (and the bandwidth h). Pass rows in random order, some thousands at a time: among fewer,
        neighbours are too far apart.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal; to begin with, at least n_components.
        y : array of shape (n,)
            As for `fit`.

        Returns
        -------
        self
            `objective_` and `perplexity_` are those of the rows of this call; `loss_curve_` is
            longer by one.
        """
        check_parameters(self)
        task = FitTask(self, X, y, n_iterations=1)
        first = not hasattr(self, "components_")
        X, pair_weights = self._validate(X, y, reset=first)
        n, rng, state = X.shape[0], check_random_state(self.random_state), self._sgd_state
        if state is None:
            m = n_directions(self, min(X.shape)) if first else len(self.components_)
            few, term = self._terms(X, pair_weights, rng)
            B = next(self._inits(few, term.rows, m, rng, go_on=True))
            state = SGDState.of(B, None, term.rows, 0)
        rows = RowsInPlace.of(X, state.unit)
        term = LabelTerm(rows, self.objective, pair_weights, searcher(self.search, n))
        found = by_minibatches(
            self,
            term,
            state.B,
            np.random.default_rng(rng.randint(2**31)),
            lambda B: task.iteration(lambda: {"components_": rows.components(B, X.dtype)}),
            state,
        )
        if not first:
            curve = [*self.loss_curve_, *found.curve[1:]]
            found = replace(found, curve=curve, n_iter=self.n_iter_ + found.n_iter)
        if not found.ended_early:  # one epoch is all it takes
            found = replace(found, status=Status.CONVERGED)
        self._set_learned(found, term, state.n_counted + n, X.dtype)
        task.end()
        return self

    def fit_term(self, term: Any, m: int, rng: Any, dtype: Any) -> None:
        """Learn the map to m dimensions, of a dtype, that minimizes a term, in whatever place its
        rows are.
        """
        found = descend(self, term, self._inits(term, term.rows, m, rng, self.warm_start), rng)
        self._set_learned(found, term, term.rows.shape[0], dtype)

    def _validate(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, PairWeights]:
        X, pair_weights = validate_with_target(self, X, y, reset=reset)
        if isinstance(pair_weights, TargetKernel):
            self.target_bandwidth_ = pair_weights.bandwidth
        if self.structure == "diagonal" and issparse(X):
            require_memory(
                4 * 8 * X.shape[0] * X.shape[1],
                "A diagonal map of sparse X",
                "take structure='full'",
            )
        return X, pair_weights

    def _terms(
        self, X: Any, pair_weights: PairWeights, rng: Any, m: int | None = None
    ) -> tuple[LabelTerm, LabelTerm]:
        """Return the term for which an init is found, and the one that is minimized: the same,
        unless stochastic descent has more than 10,000 rows, none of which it copies.
        """
        n, search = X.shape[0], searcher(self.search, X.shape[0])
        in_place = self.solver == "sgd" and n > INIT_ROWS
        some = np.sort(rng.choice(n, INIT_ROWS, replace=False)) if in_place else slice(None)
        rows = UnitRows.of(X[some], m)
        few = LabelTerm(rows, self.objective, pair_weights.subset(some), search)
        if not in_place:
            return few, few
        all_rows = RowsInPlace.of(X, unit_distance(X, UNIT_ROWS))
        return few, replace(few, rows=all_rows, pair_weights=pair_weights)

    def _inits(self, few: Any, rows: Scale, m: int, rng: Any, go_on: bool) -> Iterator[np.ndarray]:
        """Yield `n_init` maps to begin with: to go on, the present one, if there is one, or else
        `init`; then random ones.
        """
        go_on = go_on and hasattr(self, "components_")
        if isinstance(self.init, str) and not go_on:
            yield self._init_named(few, rows, m, rng, self.init)
        else:
            name, A = "components_, to go on from,", self.components_ if go_on else None
            if A is None:
                name = "init"
                A = check_array(self.init, ensure_2d=False, dtype=np.float64, input_name=name)
            p, diagonal = self.n_features_in_, self.structure == "diagonal"
            shape = (p,) if diagonal else (self.n_components or (len(A) if go_on else p), p)
            if A.shape == (p, p) and diagonal and not A[~np.eye(p, dtype=bool)].any():
                A = A.diagonal()
            if A.shape != shape:
                raise ValueError(f"{name} must be of shape {shape}, got {A.shape}.")
            yield rows.coordinates(A)
        for _ in range(self.n_init - 1):
            yield self._init_named(few, rows, m, rng, "random")

    def _init_named(self, few: Any, rows: Scale, m: int, rng: Any, name: str) -> np.ndarray:
        """Return the init of a name, scaled to a perplexity of 10; for "auto" the one with the
        lowest loss.

        One that was found on a part of the rows is scaled again for all: among more rows,
        neighbours are nearer.
        """
        n, p = few.rows.shape
        m = min(m, p)
        names = [name]
        if name == "auto":
            by_variance = ["pca", "lda"] if m < few.n_classes else ["pca"]
            names = ["identity"] if m == p else by_variance
        if self.structure == "diagonal":
            found = [np.abs(rng.standard_normal(p)) if name == "random" else np.ones(p)]
        else:
            found = [few.directions(each, m, rng) for each in names]
        complete = [B for B in found if len(B) in (m, p)]
        if not complete:
            few_found = f"init='lda' has {len(found[0])} directions here, n_components is {m}"
            raise ValueError(f"{few_found}: take init='pca' or 'auto'.")
        scaled = [
            cap_penalty(B / perplexity_bandwidth(few.rows.nearest_squares(B)), self.alpha, n)
            for B in complete
        ]
        B = scaled[0]
        if len(scaled) > 1:
            B = min(scaled, key=lambda B: loss(self, few, B, look_up(self, few, B))[0])
        if rows is few.rows:
            return B
        B = B if B.ndim == 1 else rows.coordinates(few.rows.components(B))
        return cap_penalty(B / unit_distance(rows.embedding(B)), self.alpha, rows.shape[0])

    def _set_learned(self, found: DescentResult, term: Any, n_counted: int, dtype: Any) -> None:
        """Set the attributes; `n_counted` rows count in the penalty."""
        B, rows = found.x, term.rows
        # the penalty is taken out of the loss again; the second B stands for a gradient, not used
        self.objective_ = penalized(-found.value, B, B, self.alpha, n_counted)[0]
        self.objective_error_ = found.error
        self.perplexity_ = perplexity(rows.nearest_squares(B))
        self.search_, self.search_recall_ = term.search.name, term.search.recall
        self._sgd_state = None
        if self.solver == "sgd":
            self._sgd_state = SGDState.of(B, found.memory, rows, n_counted)
        self._set_map(found, rows, dtype)


def check_parameters(nca: NCA) -> int | None:
    """Raise an error that names a bad parameter; return the number of iterations allowed, None
    if n decides.
    """
    check_choice(nca.objective, "objective", TERMS)
    check_choice(nca.structure, "structure", ("full", "diagonal"))
    check_choice(nca.target, "target", ("classes", "continuous"))
    if isinstance(nca.init, str):
        names = INITS if nca.structure == "full" else ("auto", "identity", "random")
        check_choice(nca.init, "init", names)
    if nca.structure == "diagonal" and nca.n_components is not None:
        raise ValueError(
            f"n_components must be None for a diagonal map (p features), got {nca.n_components!r}."
        )
    if not isinstance(nca.warm_start, (bool, np.bool_)):
        raise TypeError(f"warm_start must be True or False, got {nca.warm_start!r}.")
    return check_descent(nca)


def validate_with_target(
    nca: Any, X: Any, y: Any, *, reset: bool = True
) -> tuple[Any, PairWeights]:
    """Return X, and which neighbours are right by y: labels, or numbers, as `target` says."""
    if nca.target == "classes":
        X, _, codes = validate_labelled_rows(nca, X, y, reset=reset)
        check_shared_labels(codes)
        return X, SameClass(codes)
    X, targets = validate_target_rows(nca, X, y, reset=reset)
    bandwidth = target_bandwidth(targets) if reset else nca.target_bandwidth_
    return X, TargetKernel(targets - np.median(targets), bandwidth)


@dataclass(frozen=True)
class LabelTerm:
    """-f or -g, to be minimized: a mean over rows, in units of the typical neighbour distance.

    Attributes
    ----------
    rows : UnitRows or RowsInPlace
    objective : {"expected_accuracy", "log_likelihood"}
    pair_weights : SameClass or TargetKernel
    search : Searcher
        Of candidates.
    """

    rows: Any
    objective: str
    pair_weights: PairWeights
    search: Searcher

    def __call__(self, B: np.ndarray, candidates: Candidates | None) -> Value:
        """Return the value at a map, among some candidates or among all rows, and its gradient."""
        X = self.rows.X
        value, gradient = nca_objective(self.objective, B, X, self.pair_weights, candidates)
        return -value / X.shape[0], -gradient / X.shape[0]

    @property
    def codes(self) -> np.ndarray | None:
        """Classes whose nearest row must be a candidate: for g, as log q_i needs one; else None."""
        return self.pair_weights.codes if self.objective == "log_likelihood" else None

    @property
    def n_classes(self) -> int:
        """Classes between which there are discriminant directions."""
        codes = self.pair_weights.codes
        return 0 if codes is None or issparse(self.rows.X) else int(codes.max()) + 1

    def directions(self, name: str, m: int, rng: Any) -> np.ndarray:
        """Return m directions by the name of an init; there may be fewer discriminant ones."""
        X, codes = self.rows.X, self.pair_weights.codes
        if name != "lda":
            return directions(name, X, m, rng)
        if codes is None or issparse(X):
            raise ValueError("init='lda' needs classes and dense X: take init='pca' or 'auto'.")
        space, codes = row_space(X), np.unique(codes, return_inverse=True)[1]
        S_b = between_scatter(space.coordinates, codes)
        S_w = within_scatter(space.coordinates, codes)
        return space.back_project(discriminant_directions(S_b, S_w, min(m, codes.max())).T)

    def estimate(self, B: np.ndarray, candidates: Candidates, n_batches: int) -> Value:
        """Return an estimate of the value and its gradient from one of so many parts of the
        anchors.

        For given near and far rows, the estimates of an epoch have the value and the gradient of
        all anchors for mean.
        """
        value, gradient = self._sum(B, self.rows.take(candidates.rows), candidates)
        weight = n_batches / self.rows.shape[0]  # parts differ by a row; their mean is that of all
        return weight * value, weight * gradient

    def sum(self, Z: np.ndarray, candidates: Candidates) -> float:
        """Return the sum over some anchors at the embedding Z of all rows."""
        identity = np.ones(Z.shape[1])  # as a diagonal: Z is embedded
        return self._sum(identity, Z[candidates.rows], candidates)[0]

    def _sum(self, A: np.ndarray, X: Any, candidates: Candidates) -> Value:
        pair_weights = self.pair_weights.subset(candidates.rows)
        value, gradient = nca_objective(self.objective, A, X, pair_weights, candidates)
        return -value, -gradient

    def of_mean(self, Z: np.ndarray, mean: float, error: float) -> tuple[float, float]:
        """Return the value and its error, by those of the mean over anchors: here the same."""
        return mean, error


# The descents.


def check_descent(nca: Any) -> int | None:
    """Raise an error that names a bad parameter of the descent; return the number of iterations
    allowed, None if n decides.
    """
    check_number(nca.alpha, "alpha", 0)
    check_choice(nca.solver, "solver", ("lbfgs", "sgd"))
    for name in ("n_candidates", "batch_size", "max_iter"):
        value = getattr(nca, name)
        if isinstance(value, str):
            check_choice(value, name, ("auto",))
        elif value is not None or name != "n_candidates":
            check_integer(value, name, 1)
    check_number(nca.tol, "tol", 0)
    n_init = check_integer(nca.n_init, "n_init", 1)
    if nca.max_iter == "auto":
        return n_init * MAX_ITER if nca.solver == "lbfgs" else None
    return n_init * int(nca.max_iter)


def descend(
    nca: Any, term: Any, inits: Iterable[np.ndarray], rng: Any, on_iteration: OnIteration = None
) -> DescentResult:
    """Minimize a term plus the penalty from several inits, and return the lowest end.

    Parameters
    ----------
    nca : NCA or PairNCA
        Says how: by `alpha`, `solver`, `n_candidates`, `max_iter`, `tol`, `batch_size`.
    term : LabelTerm or other
        A function of the map and of candidates, with `rows`, `codes` and `search`; for minibatches
        with the other methods of `LabelTerm`.
    inits : maps B, an iterator that may draw from rng
    rng : RandomState
    """
    best: Any = None
    generator = np.random.default_rng(rng.randint(2**31)) if nca.solver == "sgd" else None
    for B in inits:
        if generator is not None:
            found = by_minibatches(nca, term, B, generator, on_iteration)
        else:
            found = lbfgs_rounds(
                partial(loss, nca, term),
                B,
                look_up=partial(look_up, nca, term),
                max_iter=MAX_ITER if nca.max_iter == "auto" else nca.max_iter,
                tol=nca.tol,
                on_iteration=on_iteration,
            )
        best = found if best is None or found.value < best.value else best
        if found.ended_early:
            best = replace(best, status=found.status)
            break
    return best


def loss(nca: Any, term: Any, B: np.ndarray, neighbors: Any) -> Value:
    """Return the term plus the penalty, among some candidates or all rows, and its gradient."""
    value, gradient = term(B, neighbors)
    return penalized(value, gradient, B, nca.alpha, term.rows.shape[0])


def look_up(nca: Any, term: Any, B: np.ndarray) -> Any:
    """Return the candidates of all rows under a map; None where all rows are candidates."""
    n = term.rows.shape[0]
    k = n_near(nca, n, None if n <= ALL_PAIRS_ROWS else N_NEAR)
    return None if k is None else term.rows.candidates(B, k, term.codes, term.search)


def n_near(nca: Any, n: int, by_default: int | None) -> int | None:
    """Return the number of near candidates of a row; None where all rows are candidates."""
    k = by_default if nca.n_candidates == "auto" else nca.n_candidates
    return None if k is None else min(k, n - 1)


# By stochastic gradient: a step uses some anchors, their candidates and nothing else.

BATCHES = 20  # of an epoch by default,
FEWEST, MOST = 128, 512  # anchors of a batch, whatever that makes
STEPS = 500  # of a fit by default, at least
N_NEAR_OF_ANCHOR = 15  # fewer than L-BFGS needs: what the lists lack, the next far rows bring
STEP = 0.1  # first length of a step, in units of a map that keeps distances
SLOWING = 100  # steps after which those of `partial_fit` begin to shrink
REFRESH_SHARE = 0.2  # of the steps: then near rows are searched anew, as maps move most at first
EVALUATION_ROWS = 5000  # of the estimate of the final objective
EVALUATION_FAR = 2000
EVALUATION_GROUPS = 20


def epochs_of(nca: Any, n: int) -> tuple[int, int]:
    """Return the steps of an epoch, in which every row is an anchor once, and the number of epochs:
    for max_iter="auto" as many as it takes for 500 steps.
    """
    size = min(max(FEWEST, n // BATCHES), MOST) if nca.batch_size == "auto" else nca.batch_size
    n_batches = -(-n // size)
    return n_batches, -(-STEPS // n_batches) if nca.max_iter == "auto" else nca.max_iter


def by_minibatches(
    nca: Any,
    term: Any,
    init: np.ndarray,
    rng: np.random.Generator,
    on_iteration: OnIteration,
    state: SGDState | None = None,
) -> DescentResult:
    """Descend by steps that shrink to nothing, or from a state by one epoch of steps that shrink as
    1 / sqrt(t): more rows may follow. Evaluate the last map.

    A step takes one part of the anchors, which are shuffled in every epoch, and far rows of its
    own. Near rows are those of the first map, then those of the map after a fifth of the steps.
    """
    rows, n = term.rows, term.rows.shape[0]
    n_batches, n_epochs = epochs_of(nca, n)
    memory, n_counted, refresh_at = None, n, round(REFRESH_SHARE * n_epochs * n_batches)
    if state is not None:
        memory, n_counted, n_epochs, refresh_at = state.memory, state.n_counted + n, 1, 0
    n_before = 0 if memory is None else memory.n_steps
    length = STEP * len(init) ** 0.5  # the second factor is the norm of a map that keeps distances

    def step(t: int) -> float:
        if state is None:
            return length * (1 - t / (n_epochs * n_batches))
        return length / (1 + (n_before + t) / SLOWING) ** 0.5

    def draw() -> np.ndarray:
        return rng.choice(n, min(N_FAR, n), replace=False, shuffle=False)

    k = n_near(nca, n, N_NEAR_OF_ANCHOR)
    order, near, far = np.arange(n), np.empty((n, 0), np.int32), np.arange(n)

    def estimate(B: np.ndarray, t: int) -> Value:
        nonlocal order, near, far
        batch = t % n_batches
        if batch == 0:
            order = rng.permutation(n)
        if k is not None:
            if t in (0, refresh_at):
                near = near_rows(rows.embedding(B), k, term.codes, term.search)
                draw()  # not used: drawn so that a seed gives the maps of earlier versions
            far = draw()
        anchors = order[batch * n // n_batches : (batch + 1) * n // n_batches]
        candidates = Candidates.of_anchors(anchors, near[anchors], far, n)
        value, gradient = term.estimate(B, candidates, n_batches)
        return penalized(value, gradient, B, nca.alpha, n_counted)

    found = adam(
        estimate,
        init,
        n_batches=n_batches,
        max_iter=n_epochs,
        tol=nca.tol,
        step=step,
        memory=memory,
        on_iteration=on_iteration,
    )
    value, error = evaluate(nca, term, found.x, n_counted)
    return replace(found, value=value, error=error)


def evaluate(
    nca: Any, term: Any, B: np.ndarray, n_counted: int | None = None
) -> tuple[float, float]:
    """Return the loss at a map and the standard error of this estimate.

    It is the mean over at most 5,000 anchors, each with the 50 rows that are the nearest at this
    very map, found exactly, and 2,000 far ones. The anchors of all maps are the same. The error is
    that of the means of 20 groups of anchors, and is 0 where all rows are anchors.
    """
    n, Z, rng = term.rows.shape[0], term.rows.embedding(B), np.random.default_rng(0)
    anchors = rng.permutation(n)[:EVALUATION_ROWS]
    near, far = np.empty((len(anchors), 0), np.int32), np.arange(n)
    k = n_near(nca, n, N_NEAR_OF_ANCHOR)
    if k is not None:
        far = rng.choice(n, min(EVALUATION_FAR, n), replace=False)
        near = near_rows(Z, min(max(k, N_NEAR), n - 1), term.codes, anchors=anchors)
    n_groups = min(EVALUATION_GROUPS, len(anchors))
    groups = np.array_split(anchors, n_groups), np.array_split(near, n_groups)
    sums = [
        term.sum(Z, Candidates.of_anchors(*group, far, n)) for group in zip(*groups, strict=True)
    ]
    means = np.divide(sums, [len(group) for group in groups[0]])
    error = float(np.std(means, ddof=1) / len(means) ** 0.5) * (1 - len(anchors) / n) ** 0.5
    value, error = term.of_mean(Z, float(np.sum(sums)) / len(anchors), error)
    return penalized(value, B, B, nca.alpha, n_counted or n)[0], error


@dataclass(frozen=True, eq=False)
class SGDState:
    """A stochastic descent that may continue with other rows.

    Attributes
    ----------
    B : ndarray of shape (m, p), or (p,)
        The map, of features in units of the typical distance, as the descent left it:
        `components_` may have other signs, which the mean in the memory would not fit.
    memory : Momentum or None
    unit : float
        The typical distance, that of the first rows.
    n_counted : int
        Rows so far.
    """

    B: np.ndarray
    memory: Momentum | None
    unit: float
    n_counted: int

    @classmethod
    def of(cls, B: np.ndarray, memory: Momentum | None, rows: Scale, n_counted: int) -> SGDState:
        """Return where a descent is, in the features."""
        to_features = rows.space.to_features
        if to_features is not None:
            B = to_features(B.T).T
            memory = memory and replace(memory, mean=to_features(memory.mean.T).T)
        return cls(B, memory, rows.unit, n_counted)
