"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004).

The map of the features is A, shape (m, p), or `components_`. Descents work on B, the same map for
rows in units of the typical distance of neighbours. Where the span of the rows has fewer
dimensions, r < p, B is in its coordinates and has shape (m, r). `rows.coordinates(A)` is B, and
`rows.components(B)` is A.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.metaestimators import available_if

from .._callbacks import FitTask, with_callbacks
from .._memory import require_memory
from .._validation import check_array, check_bool, check_choice, check_random_state, shape_of
from ..bandwidth import perplexity
from ..descent import DescentResult, DescentStatus, Momentum, minimize, sgd
from ..neighbors import Searcher, searcher
from ..objectives.candidates import Minibatches, number_near
from ..objectives.loss import Loss, Ridge
from ..objectives.nca import StochasticNeighbors
from ..objectives.stochastic import TERMS, PairWeights
from .descent_embedding import (
    COMPARED,
    EARLY,
    INIT_ROWS,
    INITS,
    DescentEmbedding,
    RowsInPlace,
    ScaledRows,
    UnitRows,
    check_descent,
    check_n_components,
    reporter,
)
from .validation import validate_with_target


def _descends_by_minibatches(nca: NCA) -> bool:
    if nca.solver != "sgd":
        raise AttributeError(f"partial_fit needs solver='sgd', got solver={nca.solver!r}.")
    return True


class NCA(DescentEmbedding):
    """Neighbourhood Components Analysis: maximizes the accuracy of stochastic nearest neighbours.

    Row i draws row j as its neighbour with probability p_ij and inherits its label. With C_i the
    set of rows of the class of row i,

        p_ij = exp(-||A x_i - A x_j||^2) / sum_k exp(-||A x_i - A x_k||^2),  p_ii = 0      (eq. 1)
        q_i = sum_(j in C_i) p_ij                                                          (eq. 2)

    The map A maximizes the expected accuracy, or the mean log-probability of a correct
    classification,

        f(A) = 1/n sum_i q_i  (eq. 3)          g(A) = 1/n sum_i log q_i  (eq. 6)

    minus the penalty `alpha / sqrt(n) ||A||^2 u^2`. The typical distance of neighbours, u, makes
    alpha independent of the scale of the features.

    For real-valued targets, the sum over C_i becomes a sum over all rows with weights `w_ij =
    exp(-(y_i - y_j)^2 / (2 h^2))` (section 5). h is a quarter of the targets' standard deviation,
    estimated robustly as IQR / 1.349 from their interquartile range (of the distinct targets if
    that is 0).

    With weights s of the rows (`sample_weight` of `fit`),

        p_ij = s_j exp(-||A x_i - A x_j||^2) / sum_{k != i} s_k exp(-||A x_i - A x_k||^2),
        f(A) = sum_i s_i q_i / sum_i s_i,          g(A) = sum_i s_i log q_i / sum_i s_i.

    A row of weight 2 counts as two equal rows that are not neighbours of each other; a row of
    weight 0 is left out. Only the ratios of weights matter. u, h, the inits and `perplexity_` do
    not depend on them.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or for p > n the rank of the centred rows,
        unless `init` is an array.
    objective : {"expected_accuracy", "log_likelihood"}, default="expected_accuracy"
        f or g. g penalizes badly misclassified samples heavily; f ignores them.
    structure : {"full", "diagonal"}, default="full"
        A diagonal A weights the features without mixing them; n_components must then be None.
    target : {"classes", "continuous"}, default="classes"
        What y holds: class labels or real numbers.
    n_candidates : "auto", int or None, default="auto"
        None considers every other row as a neighbour: exact, O(n^2) per iteration. An integer k
        considers the k nearest rows in the current embedding, searched again every 15 iterations,
        and 500 evenly drawn rows that represent all others; for g also the nearest row of the same
        class. "auto" is exact up to 8,000 rows, and k = 50 for more. With solver="sgd", "auto" is
        always k = 15, and the 500 rows are drawn at random in every step.
    search : {"exact", "approximate", "auto"}, ApproximateSearch or transformer, default="exact"
        How candidates are searched. "auto" is approximate from 100,000 rows on. A transformer is an
        object like scikit-learn's KNeighborsTransformer, and is cloned.
    alpha : float, default=0.15
        Weight of the penalty. 0 is the paper's method, which overfits if there are few rows.
    init : {"auto", "identity", "pca", "lda", "random"} or array of shape (m, p), default="auto"
        Where the descent begins. "auto" takes the identity if all dimensions are kept, else PCA. If
        X is dense and there are fewer dimensions than classes, it also tries LDA (with S_w shrunk
        by 0.01) and takes the init of lower loss. Directions are scaled to a mean perplexity of the
        p_ij of 10 (half the rows for fewer than 20), or larger where the penalty would exceed 1, so
        that no init has a vanishing gradient. An array is used as it is; for a diagonal map, its
        shape is (p,).
    n_init : int, default=1
        Number of descents: one from `init`, the others from random directions. The map of the
        lowest loss is kept.
    solver : {"lbfgs", "sgd"}, default="lbfgs"
        L-BFGS, which computes the gradient over all rows in every iteration, or stochastic
        gradient, which computes it over some rows in every step. "sgd" is for many rows, from about
        10,000, and copies only the rows of a step.
    batch_size : "auto" or int, default="auto"
        With solver="sgd", the largest number of rows that draw their neighbours in a step. "auto"
        is a twentieth of the rows, but at least 128 and at most 512.
    max_iter : "auto" or int, default="auto"
        With solver="lbfgs", the maximum number of iterations per descent; "auto" is 200. With
        "sgd", the number of epochs, in each of which every row draws once; "auto" takes as many as
        500 steps need: one epoch for 256,000 rows or more.
    tol : float, default=1e-5
        A descent has converged when an iteration lowers the loss by less than this, relative to
        max(loss, 1). With solver="sgd" the criterion is the mean decrease per step over the last
        fifth of the steps, up to noise, and all epochs run in any case.
    warm_start : bool, default=False
        Whether `fit` starts from `components_` of the last fit, if there is one, instead of `init`.
    random_state : int, RandomState or None, default=None
        Seed of the random directions; with solver="sgd", of all random choices.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. Its scale is meaningful: eq. 1 holds for `transform(X)`.
    n_components_ : int
    target_bandwidth_ : float
        h, for target="continuous".
    objective_ : float
        f or g at A, averaged over the rows with their weights: exact, or estimated from the
        candidates at A. With solver="sgd" it is always an estimate, from at most 5,000 rows, each
        with at least its 50 nearest rows and 2,000 that represent all others.
    objective_error_ : float
        Standard error of `objective_` due to using only some rows; 0 if all are used.
    perplexity_ : float
        Mean of exp(entropy) of the p_ij of a row, the effective number of neighbours, from at most
        1,000 rows and their 100 nearest. `SoftNeighborsClassifier.local_k` returns it for every
        row.
    n_iter_ : int
        Number of iterations, or epochs, of the descent that was kept.
    loss_curve_ : ndarray of shape (at least `n_iter_` + 1,)
        The loss before and after every iteration. With candidates it may jump where they are
        searched again. With solver="sgd" it holds estimates at the map of each step: the first,
        then the mean over every epoch.
    search_
        See `LDE`; of the last search for candidates.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the descent before it converged, or the descent has not moved from its
        init.
    UserWarning
        If there are fewer directions than requested.

    See Also
    --------
    NCAClassifier, LMNN, PairNCA

    Notes
    -----
    The scale of the features decides where the descent begins and how strong the penalty is:
    standardize them. For text embeddings, whiten first with `make_pipeline(RCA(), NCA(64))`: on
    those of banking77, precision at 10 rises from 86.2 to 89.3 %. But of 34 tables, whitening makes
    21 worse, one of them by 4.7 points.

    .. measured/benchmarks.md#whitening-before-nca-and-dne

    Cost: an iteration takes O(n^2 m + n p m); with candidates O(n k m + n p m), and a search among
    n^2 pairs every 15 iterations. Memory is O(n (p + m + k)), never n x n. Up to 2,000 rows
    everything is computed in float64, for more rows in float32 with float64 sums. Sparse X stays
    sparse if n_components is given; a diagonal map needs n x p dense numbers.

    Stochastic gradient: f and g are means over rows, so a step estimates their gradient from b rows
    without bias. The step follows the momentum of the gradients (Adam with one scale for all
    entries). Its length decreases linearly to 0, from 0.1 of the norm of a map that preserves
    distances. Candidates are searched at the init and after a fifth of the steps. A step costs O(b
    k m p). Memory beyond X, which may be a numpy.memmap, is O(n (m + k)). The init is found on
    10,000 rows.

    A KeyboardInterrupt or a callback may end the descent. The best map so far is kept, and the
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

    # how `nearkin.comparison` compares this method: see `comparison.methods.Method`
    compared_as: ClassVar[dict] = {
        "NCA": COMPARED | {"params": EARLY, "regression": {"target": "continuous"} | EARLY},
        "NCA log": COMPARED | {"params": {"objective": "log_likelihood"} | EARLY},
    }

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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NCA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, where -1 is a class like any other; or real numbers
            that are not all equal. A row alone in its class cannot be classified correctly: it
            contributes 0 to f and is left out of g.
        sample_weight : array of shape (n,), default=None
            Weights of the rows, at least 0; None for equal weights.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, check_parameters(self))
        X, pair_weights = validate_with_target(self, X, y, sample_weight)
        m, rng = check_n_components(self, X.shape[1]), check_random_state(self.random_state)
        m_full = m if self.structure == "full" else None
        loss, init_loss = self._losses(X, pair_weights, m_full, rng)
        ridge = Ridge(self.alpha, X.shape[0])
        return fit_loss(self, loss, init_loss, ridge, m, rng, X.dtype, task)

    @available_if(_descends_by_minibatches)  # type: ignore[untyped-decorator]
    @with_callbacks
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> NCA:
        """Continue from the current map with more rows, or begin with these.

        A call is one epoch of solver="sgd": each row is an anchor once and draws its neighbour
        among the rows of this call. Labels are compared only within a call. Steps shrink as 1 /
        sqrt(t), where t counts the steps of all calls, and the penalty counts all rows. The first
        call sets the unit u (and the bandwidth h). Pass rows in random order, a few thousand per
        call: with fewer, neighbours are too far apart.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal; in the first call at least n_components.
        y : array of shape (n,)
            See `fit`.
        sample_weight : array of shape (n,), default=None
            See `fit`; only the ratios of weights within a call matter.

        Returns
        -------
        self
            `objective_` and `perplexity_` are computed on the rows of this call; `loss_curve_`
            grows by one entry.
        """
        check_parameters(self)
        task = FitTask(self, X, y, n_iterations=1)
        first = not hasattr(self, "components_")
        X, pair_weights = validate_with_target(self, X, y, sample_weight, reset=first)
        rng = check_random_state(self.random_state)
        state = self._sgd_state
        if state is None:
            m = check_n_components(self, min(X.shape)) if first else len(self.components_)
            loss, init_loss = self._losses(X, pair_weights, None, rng)
            B = next(self._inits(init_loss, loss.rows, m, rng, warm_start=True))
            state = SGDState.of(B, None, loss.rows, 0)
        rows = RowsInPlace.of(X, state.unit)
        loss = self._loss(rows, pair_weights, "sgd")
        ridge = Ridge(self.alpha, state.n_counted + X.shape[0])
        generator = np.random.default_rng(rng.randint(2**31))
        found = sgd(
            loss + ridge,
            state.B,
            batches=Minibatches(loss, self.batch_size, 1, generator, refresh_share=0),
            tol=self.tol,
            more_follow=True,
            memory=state.memory,
            on_iteration=reporter(task, rows, X.dtype),
        )
        if not found.ended_early:  # the epoch is complete
            found = replace(found, status=DescentStatus.CONVERGED)
        if hasattr(self, "loss_curve_"):
            curve = [*self.loss_curve_, *found.curve[1:]]
            found = replace(found, curve=curve, n_iter=self.n_iter_ + found.n_iter)
        return self._set_result(found, loss, ridge, X.dtype, task)

    def _set_result(
        self, found: DescentResult, loss: NCALoss, ridge: Ridge, dtype: Any, task: FitTask
    ) -> Self:
        """Set the fitted attributes."""
        rows, memory = loss.rows, found.memory
        self.objective_ = -(found.value - ridge(found.x)[0])
        self.objective_error_ = found.error
        self.perplexity_ = perplexity(rows.nearest_squares(found.x))
        self.search_ = loss.search.name
        self._sgd_state = memory and SGDState.of(found.x, memory, rows, ridge.n)
        return self._set_map(found, rows, dtype, task)

    def _loss(self, rows: Any, pair_weights: PairWeights, solver: str) -> StochasticNeighbors[Any]:
        """Return the loss of some rows, with as many candidates as a solver needs."""
        n = rows.shape[0]
        k, search = number_near(self.n_candidates, n, solver), searcher(self.search, n)
        return StochasticNeighbors(rows, search, k, self.objective, pair_weights)

    def _losses(
        self, X: Any, pair_weights: PairWeights, m: int | None, rng: np.random.RandomState
    ) -> tuple[StochasticNeighbors[Any], StochasticNeighbors[UnitRows]]:
        """Return the loss that is minimized, and the one for which an init is found.

        They differ for stochastic descent: on more than 10,000 rows, which are not copied, an init
        is found on some of them. m is None for a map of the features themselves, not of the span.
        """
        n = X.shape[0]
        if self.structure == "diagonal" and issparse(X):
            n_bytes = 4 * 8 * n * X.shape[1]
            require_memory(n_bytes, "A diagonal map of sparse X", "take structure='full'")
        if self.solver == "sgd" and n > INIT_ROWS:
            loss = self._loss(RowsInPlace.of(X), pair_weights, "sgd")
            some = np.sort(rng.choice(n, INIT_ROWS, replace=False))
            X, pair_weights = X[some], pair_weights.subset(some)
            return loss, self._loss(UnitRows.of(X, m), pair_weights, "lbfgs")
        rows = UnitRows.of(X, m)
        init_loss = self._loss(rows, pair_weights, "lbfgs")
        return self._loss(rows, pair_weights, self.solver), init_loss

    def _inits(
        self,
        init_loss: StochasticNeighbors[UnitRows],
        rows: ScaledRows,
        m: int,
        rng: Any,
        warm_start: bool,
    ) -> Iterator[np.ndarray]:
        """Yield `n_init` maps B of the rows, shape (m, r), or (p,) for a diagonal map.

        The first is `components_` of the last fit, with `warm_start` and after a fit, or else
        `init`, found for `init_loss`. The others are random.
        """
        warm_start = warm_start and hasattr(self, "components_")
        if isinstance(self.init, str) and not warm_start:
            yield self._named_init(init_loss, rows, m, rng, self.init)
        else:
            p = self.n_features_in_
            if warm_start:
                name, A = "components_, to go on from,", self.components_
            else:
                name = "init"
                A = check_array(self.init, ensure_2d=False, dtype=np.float64, input_name=name)
            if self.structure == "full":
                shape: tuple[int, ...] = (self.n_components or (len(A) if warm_start else p), p)
            else:
                shape = (p,)
                if A.ndim == 2 and np.array_equal(A, np.diag(A.diagonal())):
                    A = A.diagonal()
            if A.shape != shape:
                raise ValueError(f"{name} must be of shape {shape}, got {A.shape}.")
            yield rows.coordinates(A)
        for _ in range(self.n_init - 1):
            yield self._named_init(init_loss, rows, m, rng, "random")

    def _named_init(
        self,
        init_loss: StochasticNeighbors[UnitRows],
        rows: ScaledRows,
        m: int,
        rng: np.random.RandomState,
        name: str,
    ) -> np.ndarray:
        """Return the init of a given name, scaled to a perplexity of 10.

        "auto" is the one of lowest loss. An init found on some of the rows, those of `init_loss`,
        is scaled again for all rows: with more rows, neighbours are closer.
        """
        init_rows = init_loss.rows
        n, p = init_rows.shape
        m = min(m, p)
        if self.structure == "diagonal":
            found = [np.abs(rng.standard_normal(p)) if name == "random" else np.ones(p)]
        else:
            names = [name]
            if name == "auto" and m < p:
                names = ["pca", "lda"] if m < init_loss.n_classes else ["pca"]
            found = [init_rows.directions(each, m, init_loss.codes, rng) for each in names]
            if len(found[0]) < m:
                few = f"init='lda' has {len(found[0])} directions here, n_components is {m}"
                raise ValueError(f"{few}: take init='pca' or 'auto'.")
        if rows is init_rows:
            found = [B * rows.varies() for B in found]
        # LDA may have fewer directions than PCA's m
        inits = [init_rows.scaled_init(B, self.alpha) for B in found if len(B) == len(found[0])]
        B = inits[0]
        if len(inits) > 1:
            loss = init_loss + Ridge(self.alpha, n)
            B = min(inits, key=lambda B: loss.value(B, loss.candidates(B))[0])
        if rows is init_rows:
            return B
        if B.ndim == 2:
            B = rows.coordinates(init_rows.components(B))
        return rows.scaled_init(B * rows.varies(), self.alpha)


def fit_loss(
    nca: NCA,
    loss: NCALoss,
    init_loss: StochasticNeighbors[UnitRows],
    ridge: Ridge,
    m: int,
    rng: np.random.RandomState,
    dtype: Any,
    task: FitTask,
) -> NCA:
    """Learn the map to m dimensions that minimizes a loss plus a penalty.

    The rows of the loss may be a sample of those on a cluster. Inits are those of lowest
    `init_loss`.
    """
    rows = loss.rows
    found = minimize(
        loss + ridge,
        nca._inits(init_loss, rows, m, rng, nca.warm_start),
        solver=nca.solver,
        batch_size=nca.batch_size,
        max_iter=nca.max_iter,
        tol=nca.tol,
        rng=rng,
        on_iteration=reporter(task, rows, dtype),
    )
    return nca._set_result(found, loss, ridge, dtype, task)


def check_parameters(nca: NCA) -> int | None:
    """Raise an error for an invalid parameter; return max_iter, or None if it depends on n."""
    check_choice(nca.objective, "objective", TERMS)
    check_choice(nca.structure, "structure", ("full", "diagonal"))
    check_choice(nca.target, "target", ("classes", "continuous"))
    if not shape_of(nca.init, "init"):
        names = INITS if nca.structure == "full" else ("auto", "identity", "random")
        check_choice(nca.init, "init", names)
    if nca.structure == "diagonal" and nca.n_components is not None:
        raise ValueError(
            f"n_components must be None for a diagonal map (p features), got {nca.n_components!r}."
        )
    check_bool(nca.warm_start, "warm_start")
    return check_descent(nca)


@dataclass(frozen=True, eq=False)
class SGDState:
    """The state of a stochastic descent, which can continue with other rows.

    Attributes
    ----------
    B : ndarray of shape (m, p), or (p,)
        The map of features in units of the typical distance, as the descent left it. `components_`
        may have other signs, which would not fit the mean in the memory.
    memory : Momentum or None
    unit : float
        The typical distance of the first rows.
    n_counted : int
        Number of rows so far.
    """

    B: np.ndarray
    memory: Momentum | None
    unit: float
    n_counted: int

    @classmethod
    def of(
        cls, B: np.ndarray, memory: Momentum | None, rows: ScaledRows, n_counted: int
    ) -> SGDState:
        """Return the state of a descent on `rows`, in terms of the features."""
        to_features = rows.space.to_features
        memory = memory and memory._replace(mean=to_features(memory.mean.T).T)
        return cls(to_features(B.T).T, memory, rows.unit, n_counted)


class NCALoss(Loss[Any, Any], Protocol):
    """What `NCA` minimizes: `StochasticNeighbors`, or its counterpart for rows on a cluster."""

    @property
    def rows(self) -> ScaledRows:
        """The rows, in units of the typical distance of neighbours."""

    @property
    def search(self) -> Searcher:
        """The search for candidates."""


__all__ = ["NCA", "check_parameters", "fit_loss"]  # what `nearkin.dask` may take
