"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array

from .._blocks import parallel_map, require_memory, row_blocks
from .._callbacks import FitTask, with_callbacks
from .._validation import (
    check_choice,
    check_integer,
    check_number,
    check_shared_labels,
    validate_labelled_rows,
    validate_target_rows,
)
from ..descent import DescentResult, Momentum, OnIteration, Status, adam, lbfgs, lbfgs_rounds
from ..neighbors import EXACT, Searcher, searcher
from ..objectives.linear_map import embed
from ..objectives.nca import nca_objective
from ..objectives.stochastic import (
    TERMS,
    Candidates,
    GivenPairs,
    PairWeights,
    SameClass,
    TargetKernel,
    Value,
    target_bandwidth,
)
from ..scatter import RowSpace, between_scatter, row_space, within_scatter
from .base import inner_folds, sample_rows
from .descent_embedding import (
    COMPARED,
    EARLY,
    FLOAT64_ROWS,
    INITS,
    N_FAR,
    N_NEAR,
    DescentEmbedding,
    Scale,
    UnitRows,
    cap_penalty,
    directions,
    discriminant_directions,
    evenly_by,
    n_directions,
    near_rows,
    near_rows_of,
    penalized,
    perplexity,
    perplexity_bandwidth,
    unit_distance,
)
from .soft_neighbors import SoftNeighborsRegressor

# NCA as a problem of descent: the loss of a map, the candidates among which neighbours are drawn,
# the inits.

ALL_PAIRS_ROWS = 8000  # up to here all pairs are also quicker than candidates
MAX_ITER = 200


@dataclass(frozen=True)
class NCAProblem:
    """-f or -g plus the penalty, a function of maps B of rows in units of the typical distance of
    neighbours.

    Attributes
    ----------
    nca : NCA
        Its parameters, and the map of its last fit for a warm start.
    rows : NCARows
        Or an object with the same public attributes and methods: the rows may lie elsewhere.
    m : int
        Dimensions of the map, at most.
    rng : RandomState
    """

    nca: Any
    rows: Any
    m: int
    rng: np.random.RandomState

    def loss(self, B: np.ndarray, neighbors: Any = None) -> Value:
        """Return the loss among some candidates, or among all rows, and its gradient."""
        n = self.rows.shape[0]
        value, gradient = self.rows.objective(self.nca.objective, B, neighbors)
        return penalized(-value / n, -gradient / n, B, self.nca.alpha, n)

    @property
    def n_near(self) -> int | None:
        """Near candidates of a row; None where all rows are candidates."""
        k, n = self.nca.n_candidates, self.rows.shape[0]
        if k is None or (k == "auto" and n <= ALL_PAIRS_ROWS):
            return None
        return min(N_NEAR if k == "auto" else k, n - 1)

    def look_up(self, B: np.ndarray) -> Any:
        """Return the candidates of all rows under a map; None where all rows are candidates."""
        same_class = self.nca.objective == "log_likelihood"
        return self.n_near and self.rows.candidates(B, self.n_near, N_FAR, same_class=same_class)

    def descend(self, init: np.ndarray, on_iteration: OnIteration) -> DescentResult:
        """Minimize the loss by L-BFGS."""
        max_iter = MAX_ITER if self.nca.max_iter == "auto" else self.nca.max_iter
        if self.n_near is None:
            return lbfgs(
                self.loss, init, max_iter=max_iter, tol=self.nca.tol, on_iteration=on_iteration
            )
        return lbfgs_rounds(
            self.loss,
            init,
            look_up=self.look_up,
            max_iter=max_iter,
            tol=self.nca.tol,
            on_iteration=on_iteration,
        )

    def inits(self) -> Iterator[np.ndarray]:
        """Yield the maps to begin with."""
        return inits(self.nca, self.rows, self.init)

    def init(self, name: str) -> np.ndarray:
        """Return the init of a name, scaled to a perplexity of 10; for "auto" the one with the
        lowest loss.
        """
        rows, (n, p), m = self.rows, self.rows.shape, min(self.m, self.rows.shape[1])
        names = [name]
        if name == "auto":
            names = (
                ["identity"]
                if m == p
                else ["pca", "lda"]
                if m < min(p, rows.n_classes)
                else ["pca"]
            )
        if self.nca.structure == "full":
            found = [rows.directions(each, m, self.rng) for each in names]
        else:
            found = [np.abs(self.rng.standard_normal(p)) if name == "random" else np.ones(p)]
        complete = [B for B in found if len(B) in (m, p)]
        if not complete:
            few = f"init='lda' has {len(found[0])} directions here, n_components is {m}"
            raise ValueError(f"{few}: take init='pca' or 'auto'.")
        scaled = [
            cap_penalty(B / perplexity_bandwidth(rows.nearest_squares(B)), self.nca.alpha, n)
            for B in complete
        ]
        return (
            scaled[0]
            if len(scaled) == 1
            else min(scaled, key=lambda B: self.loss(B, self.look_up(B))[0])
        )

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what NCA sets beside the map."""
        return fitted_attributes(self.nca, self.rows, best, self.rows.shape[0]) | {
            "_sgd_state": None
        }


@dataclass(frozen=True)
class NCARows(UnitRows):
    """Rows in memory as NCA needs them.

    Attributes
    ----------
    pair_weights : PairWeights or GivenPairs
    search : Searcher
    """

    pair_weights: Any
    search: Searcher

    def __len__(self) -> int:
        return self.X.shape[0]

    def take(self, rows: Any) -> Any:
        """Return some rows, in units of the typical distance."""
        return self.X[rows]

    @property
    def n_classes(self) -> int:
        """Classes between which there are discriminant directions."""
        codes = self.pair_weights.codes
        return 0 if codes is None or issparse(self.X) else int(codes.max()) + 1

    def objective(self, name: str, B: np.ndarray, candidates: Candidates | None) -> Value:
        """Return f or g as a sum over rows, and its gradient."""
        return nca_objective(name, B, self.X, self.pair_weights, candidates)

    def candidates(self, B: np.ndarray, k: int, n_far: int, *, same_class: bool) -> Candidates:
        """Return the k nearest rows of every row, with the nearest of the same class on request,
        and some far rows.
        """
        near = near_rows(
            self.embedding(B), k, self.pair_weights.codes if same_class else None, self.search
        )
        return Candidates(near, evenly_by(row_norms(self.X, squared=True), n_far), len(near))

    def directions(self, name: str, m: int, rng: np.random.RandomState) -> np.ndarray:
        """Return m directions by the name of an init; there may be fewer discriminant ones."""
        if name != "lda":
            return directions(name, self.X, m, rng)
        if not self.n_classes:
            raise ValueError("init='lda' needs classes and dense X: take init='pca' or 'auto'.")
        space, codes = row_space(self.X), np.unique(self.pair_weights.codes, return_inverse=True)[1]
        S_b, S_w = (S(space.coordinates, codes) for S in (between_scatter, within_scatter))
        return space.back_project(discriminant_directions(S_b, S_w, min(m, codes.max())).T)


def fitted_attributes(nca: Any, rows: Any, best: DescentResult, n_counted: int) -> dict[str, Any]:
    """Return what NCA sets beside the map, by either solver; `n_counted` rows count in the penalty."""
    return {
        "objective_": penalized(-best.value, best.x, best.x, nca.alpha, n_counted)[0],
        "objective_error_": best.error,
        "perplexity_": perplexity(rows.nearest_squares(best.x)),
        "search_": rows.search.name,
        "search_recall_": rows.search.recall,
    }


def inits(nca: Any, rows: Scale, init: Callable[[str], np.ndarray]) -> Iterator[np.ndarray]:
    """Yield `n_init` maps to begin with: for a warm start the present one, or else `init`; then
    random ones.
    """
    if nca.warm_start and hasattr(nca, "components_"):
        yield coordinates_of(nca, nca.components_, "components_, to go on from,", rows)
    elif isinstance(nca.init, str):
        yield init(nca.init)
    else:
        A = check_array(nca.init, ensure_2d=False, dtype=np.float64, input_name="init")
        yield coordinates_of(nca, A, "init", rows)
    for _ in range(nca.n_init - 1):
        yield init("random")


def coordinates_of(nca: Any, A: np.ndarray, name: str, rows: Scale) -> np.ndarray:
    """Return a map of the features, from the user or the last fit, as one of the rows; check its
    shape.
    """
    p = nca.n_features_in_
    m = nca.n_components or (p if name == "init" else len(A))
    shape = (p,) if nca.structure == "diagonal" else (m, p)
    if A.shape == (p, p) and nca.structure == "diagonal" and not A[~np.eye(p, dtype=bool)].any():
        A = A.diagonal()
    if A.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}, got {A.shape}.")
    return rows.coordinates(A)


def check_parameters(nca: Any) -> int | None:
    """Raise an error that names a bad parameter; return the number of iterations allowed, None if n
    decides.
    """
    check_choice(nca.objective, "objective", TERMS)
    check_choice(nca.structure, "structure", ("full", "diagonal"))
    check_choice(nca.target, "target", ("classes", "continuous"))
    if isinstance(nca.init, str):
        check_choice(
            nca.init, "init", INITS if nca.structure == "full" else ("auto", "identity", "random")
        )
    if isinstance(nca.alpha, str):
        check_choice(nca.alpha, "alpha", ("cv",))
    else:
        check_number(nca.alpha, "alpha", 0)
    if nca.structure == "diagonal" and nca.n_components is not None:
        raise ValueError(
            f"n_components must be None for a diagonal map (p features), got {nca.n_components!r}."
        )
    if not isinstance(nca.warm_start, (bool, np.bool_)):
        raise TypeError(f"warm_start must be True or False, got {nca.warm_start!r}.")
    return check_descent(nca)


def check_descent(nca: Any) -> int | None:
    """Raise an error that names a bad parameter of the descent; return the number of iterations
    allowed.
    """
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


# The rows of stochastic descent, of which only those in use are copied.

BLOCK = 2**19  # numbers of a block of rows, which is copied twice or thrice
UNIT_ROWS = 200  # from which the unit of many rows is estimated: each is compared with all
INIT_ROWS = 10_000  # on which an init is found


@dataclass(frozen=True)
class RowsInPlace(NCARows):
    """Rows as they came, in memory or in a file: only those in use are copied, centred and scaled.

    Attributes
    ----------
    mean : ndarray of shape (r,), or None for sparse rows
    """

    mean: np.ndarray | None

    @property
    def dtype(self) -> Any:
        """In which a descent computes."""
        return np.float64 if len(self) <= FLOAT64_ROWS else np.float32

    def take(self, rows: Any) -> Any:
        """Return some rows, in units of the typical distance."""
        X = self.X[rows] if self.mean is None else self.X[rows] - self.mean
        return X.astype(self.dtype, copy=False) / self.dtype(self.unit)

    def embedding(self, B: np.ndarray) -> np.ndarray:
        """Return Z = X B', shape (n, m), about its mean."""
        B = B.astype(self.dtype)
        if self.mean is None:
            return embed(B / self.dtype(self.unit), self.X)
        Z = np.empty((len(self), len(B)), self.dtype)

        def fill(rows: slice) -> None:
            Z[rows] = self.take(rows) * B if B.ndim == 1 else self.take(rows) @ B.T

        parallel_map(fill, row_blocks(*self.shape, BLOCK), self.X.size)
        Z -= Z.mean(axis=0, dtype=np.float64).astype(self.dtype)
        return Z


def rows_in_place(
    X: Any, unit: float, pair_weights: PairWeights | GivenPairs, search: Searcher
) -> RowsInPlace:
    """Return rows whose typical distance is known."""
    mean = None if issparse(X) else X.mean(axis=0, dtype=np.float64).astype(X.dtype)
    return RowsInPlace(unit, RowSpace(X, None), X, pair_weights, search, mean)


def rows_and_init(
    nca: Any,
    X: Any,
    pair_weights: PairWeights,
    search: Searcher,
    m: int,
    rng: Any,
    *,
    within_span: bool,
) -> tuple[NCARows, Callable[[str], np.ndarray]]:
    """Return rows as minibatches use them, and the function that finds an init by its name, on at
    most 10,000 rows.

    An init that was found on a part of the rows is scaled again for all: among more rows,
    neighbours are nearer.
    """
    n = X.shape[0]
    chosen = slice(None) if n <= INIT_ROWS else np.sort(rng.choice(n, INIT_ROWS, replace=False))
    few = NCARows.of(
        X[chosen], within_span=within_span, pair_weights=pair_weights.subset(chosen), search=search
    )
    problem = NCAProblem(nca, few, m, rng)
    if n <= INIT_ROWS:
        return few, problem.init
    rows = rows_in_place(X, unit_distance(X, UNIT_ROWS), pair_weights, search)

    def init(name: str) -> np.ndarray:
        B = problem.init(name)
        B = B if B.ndim == 1 else rows.coordinates(few.components(B))
        return cap_penalty(B / unit_distance(rows.embedding(B)), nca.alpha, n)

    return rows, init


# NCA by stochastic gradient: a step uses some anchors, their candidates and nothing else.

BATCHES, FEWEST, MOST = 20, 128, 512  # of an epoch by default, of this many anchors each
STEPS = 500  # of a fit by default, at least
N_NEAR_OF_ANCHOR = 15  # fewer than L-BFGS needs: what the lists lack, the next far rows bring
STEP = 0.1  # first length of a step, in units of a map that keeps distances
SLOWING = 100  # steps after which those of `partial_fit` begin to shrink
REFRESH_SHARE = (
    0.2  # of the steps, after which near rows are searched again: a map moves most at the beginning
)
EVALUATION_ROWS, EVALUATION_FAR, EVALUATION_GROUPS = (
    5000,
    2000,
    20,
)  # of the estimate of the final objective


@dataclass(frozen=True, eq=False)
class Minibatches:
    """NCA's loss by one part of the anchors after another, each with candidates of its own.

    Attributes
    ----------
    nca : NCA
        Its parameters, and the map of its last fit for a warm start.
    rows : NCARows
    init : function from the name of an init to a map, or None
    n_counted : int
        Rows that the penalty counts.
    rng : Generator
    state : SGDState, default=None
        Of a descent that is continued by one epoch.
    """

    nca: Any
    rows: NCARows
    init: Any
    n_counted: int
    rng: np.random.Generator
    state: SGDState | None = None

    @property
    def n_batches(self) -> int:
        """Steps of an epoch, in which every row is an anchor once."""
        n = len(self.rows)
        size = (
            min(max(FEWEST, n // BATCHES), MOST)
            if self.nca.batch_size == "auto"
            else self.nca.batch_size
        )
        return -(-n // size)

    @property
    def n_epochs(self) -> int:
        """Epochs of a descent; for max_iter="auto" as many as it takes for 500 steps."""
        if self.state is not None:
            return 1
        return -(-STEPS // self.n_batches) if self.nca.max_iter == "auto" else self.nca.max_iter

    @property
    def n_near(self) -> int | None:
        """Length of the lists of near rows; None where all rows are candidates."""
        k = self.nca.n_candidates
        return (
            None if k is None else min(N_NEAR_OF_ANCHOR if k == "auto" else k, len(self.rows) - 1)
        )

    @property
    def codes(self) -> np.ndarray | None:
        """Classes, where the nearest row of the same class must be a candidate."""
        return self.rows.pair_weights.codes if self.nca.objective == "log_likelihood" else None

    def loss(self, B: np.ndarray, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> Value:
        """Return the loss and its gradient, estimated from some anchors, given the near rows of all
        rows.

        For given near and far rows, the estimates of an epoch have the loss and the gradient of all
        anchors for mean.
        """
        value, gradient = self._objective(B, self.rows.take, anchors, near[anchors], far)
        share = self.n_batches / len(self.rows)
        return penalized(-share * value, -share * gradient, B, self.nca.alpha, self.n_counted)

    def _objective(
        self, A: np.ndarray, take: Any, anchors: np.ndarray, near: np.ndarray, far: np.ndarray
    ) -> Value:
        """Return what some anchors, with their near rows, add to f or g of the rows that `take`
        returns.
        """
        rows, candidates = Candidates.of_anchors(anchors, near, far, len(self.rows))
        return nca_objective(
            self.nca.objective, A, take(rows), self.rows.pair_weights.subset(rows), candidates
        )

    def inits(self) -> Iterator[np.ndarray]:
        """Yield the maps to begin with."""
        return inits(self.nca, self.rows, self.init) if self.state is None else iter([self.state.B])

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what NCA sets beside the map."""
        state = SGDState.of(best.x, best.memory, self.rows, self.n_counted)
        return fitted_attributes(self.nca, self.rows, best, self.n_counted) | {"_sgd_state": state}

    def descend(self, init: np.ndarray, on_iteration: OnIteration) -> DescentResult:
        """Descend by steps that shrink to nothing, or as 1 / sqrt(t) if more rows may follow;
        evaluate the last map.

        A step takes one part of the anchors, which are shuffled in every epoch, and far rows of its
        own. Near rows are those of the first map, then those of the map after a fifth of the steps.
        """
        n_steps, memory = (
            self.n_epochs * self.n_batches,
            None if self.state is None else self.state.memory,
        )
        n_before = 0 if memory is None else memory.n_steps
        length = (
            STEP * len(init) ** 0.5
        )  # the second factor is the norm of a map that keeps distances

        def step(t: int) -> float:
            if self.state is None:
                return length * (1 - t / n_steps)
            return length / (1 + (n_before + t) / SLOWING) ** 0.5

        n, refresh_at = len(self.rows), round(REFRESH_SHARE * n_steps) if self.state is None else 0
        order = near = far = np.arange(n)

        def estimate(B: np.ndarray, t: int) -> Value:
            nonlocal order, near, far
            batch = t % self.n_batches
            if batch == 0:
                order = self.rng.permutation(n)
            if t in (0, refresh_at):
                near, far = self.look_up(B)
            if self.n_near is not None:
                far = self._far_rows()
            anchors = order[batch * n // self.n_batches : (batch + 1) * n // self.n_batches]
            return self.loss(B, anchors, near, far)

        found = adam(
            estimate,
            init,
            n_batches=self.n_batches,
            max_iter=self.n_epochs,
            tol=self.nca.tol,
            step=step,
            memory=memory,
            on_iteration=on_iteration,
        )
        value, error = self.evaluate(found.x)
        found = replace(found, value=value, error=error)
        if self.state is None:
            return found
        if hasattr(self.nca, "components_"):
            curve = [*self.nca.loss_curve_, *found.curve[1:]]
            found = replace(found, curve=curve, n_iter=self.nca.n_iter_ + found.n_iter)
        return (
            found if found.ended_early else replace(found, status=Status.CONVERGED)
        )  # one epoch is all it takes

    def look_up(self, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the near rows of all rows under a map, and far rows."""
        if self.n_near is None:
            return np.empty((len(self.rows), 0), np.int32), np.arange(len(self.rows))
        return near_rows(
            self.rows.embedding(B), self.n_near, self.codes, self.rows.search
        ), self._far_rows()

    def _far_rows(self) -> np.ndarray:
        n = len(self.rows)
        return self.rng.choice(n, min(N_FAR, n), replace=False, shuffle=False)

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss at a map and the standard error of this estimate.

        It is the mean over at most 5,000 anchors, each with the 50 rows that are the nearest at
        this very map, and 2,000 far ones. The anchors of all maps are the same. The error is that
        of the means of 20 groups of anchors, and is 0 where all rows are anchors.
        """
        n, Z, rng = len(self.rows), self.rows.embedding(B), np.random.default_rng(0)
        anchors = rng.permutation(n)[:EVALUATION_ROWS]
        near, far = np.empty((len(anchors), 0), np.int32), np.arange(n)
        if self.n_near is not None:
            far = rng.choice(n, min(EVALUATION_FAR, n), replace=False)
            near = near_rows_of(anchors, Z, min(max(self.n_near, N_NEAR), n - 1), self.codes)
        groups = np.array_split(np.arange(len(anchors)), min(EVALUATION_GROUPS, len(anchors)))
        sums = [self._sum(Z, anchors[group], near[group], far) for group in groups]
        means = np.divide(sums, [len(group) for group in groups])
        error = float(np.std(means, ddof=1) / len(means) ** 0.5) * (1 - len(anchors) / n) ** 0.5
        value, error = self._cost(Z, float(np.sum(sums)) / len(anchors), error)
        return penalized(value, B, B, self.nca.alpha, self.n_counted)[0], error

    def _sum(self, Z: np.ndarray, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> float:
        """Return what some anchors, with their near rows, add to f or g at the embedding Z of all
        rows.
        """
        return self._objective(np.ones(Z.shape[1]), Z.__getitem__, anchors, near, far)[0]

    def _cost(self, Z: np.ndarray, mean: float, error: float) -> tuple[float, float]:
        """Return the loss without its penalty, and its standard error, by the mean over anchors and
        its error.
        """
        return -mean, error


@dataclass(frozen=True, eq=False)
class SGDState:
    """A stochastic descent that may continue with other rows.

    Attributes
    ----------
    B : ndarray of shape (m, p), or (p,)
        The map, of features in units of the typical distance; its rows have the signs that those of
        the memory have.
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
    def of(cls, B: np.ndarray, memory: Momentum | None, rows: NCARows, n_counted: int) -> SGDState:
        """Return where a descent is, in the features."""
        to_features = rows.space.to_features
        if to_features is not None:
            B = to_features(B.T).T
            memory = memory and replace(memory, mean=to_features(memory.mean.T).T)
        return cls(B, memory, rows.unit, n_counted)


# NCA's penalty by held-out rows: descents on inner folds, each from the map of the smaller penalty
# before it.

ALPHAS = (
    0.015,
    0.05,
    0.15,
    0.5,
)  # ascending: dimensions that a large penalty has shrunk to nothing do not come back
USUAL = 0.15
N_FOLDS, TOL, PATH_ITER = (
    3,
    3e-3,
    50,
)  # a map that is only to be compared with others need not be final


def n_iterations(nca: Any) -> int | None:
    """Check the parameters; return how many iterations a fit reports at most, the descents that
    choose alpha included.

    None where the rows decide.
    """
    most = check_parameters(nca)
    return most if most is None or nca.alpha != "cv" else most + N_FOLDS * len(ALPHAS)


def choose_alpha(
    nca: Any, X: Any, pair_weights: PairWeights, m: int, task: FitTask, *, within_span: bool
) -> tuple[float, dict[float, float]]:
    """Return the penalty, and the mean held-out score of the soft vote for every penalty.

    The score of a row is 1 where its label is right, else 0; of a real-valued target minus the
    absolute error, on which an outlier has little effect. Nothing is drawn. Every descent is
    reported as an iteration of the fit.
    """
    labels = np.zeros(X.shape[0], dtype=int) if pair_weights.codes is None else pair_weights.codes
    chosen = sample_rows(X, labels)
    X, labels, pair_weights = X[chosen], labels[chosen], pair_weights.subset(chosen)
    targets = (
        np.eye(labels.max() + 1)[labels]
        if pair_weights.codes is not None
        else pair_weights.targets[:, None]
    )
    scores = []
    for train, test in inner_folds(X, labels, N_FOLDS):
        rows = NCARows.of(
            X[train], within_span=within_span, pair_weights=pair_weights.subset(train), search=EXACT
        )
        of_fold = []
        for B in _path(nca, rows, min(m, len(train) - 1)):
            A = rows.components(B)
            Z = X @ A.T
            votes = SoftNeighborsRegressor().fit(Z[train], targets[train]).predict(Z[test])
            right = votes.argmax(axis=1) == labels[test]
            task.iteration(partial(dict, components_=A))
            of_fold.append(
                right if pair_weights.codes is not None else -np.abs(votes - targets[test])[:, 0]
            )
        scores.append(np.transpose(of_fold))
    of_rows = np.concatenate(scores).astype(np.float64)
    return best_alpha(of_rows), dict(zip(ALPHAS, of_rows.mean(axis=0).tolist(), strict=True))


def _path(nca: Any, rows: NCARows, m: int) -> Iterator[np.ndarray]:
    """Yield the map for every penalty; each descent begins where the one before has ended."""
    nca = copy(nca)
    nca.tol, nca.max_iter, nca.warm_start, nca.alpha = TOL, PATH_ITER, False, ALPHAS[0]
    problem = NCAProblem(nca, rows, m, np.random.RandomState(0))
    B = next(problem.inits())
    for nca.alpha in ALPHAS:
        found = problem.descend(B, None)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        B = found.x
        yield B


def best_alpha(scores: np.ndarray) -> float:
    """Return the penalty nearest to 0.15, the larger of two, of those at most one standard error
    behind the best.

    It is the error of the mean difference of the scores (rows, penalties): without evidence the
    usual penalty stays.
    """
    means = scores.mean(axis=0)
    behind = scores[:, [means.argmax()]] - scores
    level = behind.mean(axis=0) <= behind.std(axis=0, ddof=1) / len(scores) ** 0.5 + 1e-12
    near = -np.abs(np.log(np.array(ALPHAS) / USUAL)).round(6)
    return max(
        (ok, distance, alpha) for ok, distance, alpha in zip(level, near, ALPHAS, strict=True)
    )[2]


def _descends_by_minibatches(nca: NCA) -> bool:
    if nca.solver != "sgd":
        raise AttributeError(f"partial_fit needs solver='sgd', got solver={nca.solver!r}.")
    return True


class NCA(DescentEmbedding):
    """Neighbourhood Components Analysis: maximizes the accuracy of stochastic nearest neighbours.

    Row i draws row j as its neighbour with probability p_ij and takes over its label; with classes
    C_i,

        p_ij = exp(-||A x_i - A x_j||^2) / sum_k exp(-||A x_i - A x_k||^2),  p_ii = 0        (eq. 1)
        q_i = sum_(j in C_i) p_ij                                                             (eq. 2)

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
    alpha : float or "cv", default=0.15
        Weight of the penalty; 0 for none, as in the paper: it then overfits where rows are few.
        "cv" compares 0.015, 0.05, 0.15 and 0.5 by the soft vote (`SoftNeighborsClassifier`) on
        held-out rows, in 3 folds of at most about 2,000 rows: its accuracy, or for real-valued
        targets its mean absolute error. It takes the one nearest to 0.15 of those at most one
        standard error of the difference behind the best. The map is that of a fit with this alpha;
        the choice costs as much as one to four fits.
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
    alpha_ : float
        The weight of the penalty in use.
    alpha_scores_ : dict of float to float, or None
        For alpha="cv", the held-out accuracy of every alpha; of real-valued targets minus the mean
        absolute error.
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

    KeyboardInterrupt, or a callback, ends the descent; the best map so far is kept (there is none
    while alpha is chosen), and the interrupt is raised again.

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
        alpha: float | str = 0.15,
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
        task = FitTask(self, X, y, n_iterations(self))
        X, pair_weights = self._validate(X, y)
        m, rng = n_directions(self, X.shape[1]), check_random_state(self.random_state)
        search = searcher(self.search, X.shape[0])
        within_span = self.structure == "full" and not (issparse(X) and m < X.shape[1])
        nca, self.alpha_scores_ = copy(self), None
        if self.alpha == "cv":
            nca.alpha, self.alpha_scores_ = choose_alpha(
                self, X, pair_weights, m, task, within_span=within_span
            )
        self.alpha_ = float(nca.alpha)
        problem: NCAProblem | Minibatches
        if self.solver == "lbfgs":
            rows = NCARows.of(X, within_span=within_span, pair_weights=pair_weights, search=search)
            problem = NCAProblem(nca, rows, m, rng)
        else:
            rows, init = rows_and_init(
                nca, X, pair_weights, search, m, rng, within_span=within_span
            )
            problem = Minibatches(
                nca, rows, init, X.shape[0], np.random.default_rng(rng.randint(2**31))
            )
        return self.fit_problem(problem, X.dtype, task)

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
        if first and self.alpha == "cv":
            raise ValueError(
                "alpha='cv' needs fit: begin with it, on the first rows, or take a number, "
                "such as 0.15."
            )
        X, pair_weights = self._validate(X, y, reset=first)
        nca, n, state, rng = (
            copy(self),
            X.shape[0],
            self._sgd_state,
            check_random_state(self.random_state),
        )
        nca.alpha = self.alpha_ = self.alpha_ if self.alpha == "cv" else float(self.alpha)
        search = searcher(self.search, n)
        if state is None:
            m = n_directions(self, min(X.shape)) if first else len(self.components_)
            rows, init = rows_and_init(nca, X, pair_weights, search, m, rng, within_span=False)
            B = (
                next(inits(nca, rows, init))
                if first
                else coordinates_of(nca, self.components_, "components_", rows)
            )
            state = SGDState.of(B, None, rows, 0)
        rows = rows_in_place(X, state.unit, pair_weights, search)
        batches = Minibatches(
            nca, rows, None, state.n_counted + n, np.random.default_rng(rng.randint(2**31)), state
        )
        return self.fit_problem(batches, X.dtype, task)

    def _validate(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, PairWeights]:
        pair_weights: PairWeights
        if self.target == "classes":
            X, codes = validate_labelled_rows(self, X, y, reset=reset)
            check_shared_labels(codes)
            pair_weights = SameClass(codes)
        else:
            X, targets = validate_target_rows(self, X, y, reset=reset)
            if reset:
                self.target_bandwidth_ = target_bandwidth(targets)
            pair_weights = TargetKernel(targets - np.median(targets), self.target_bandwidth_)
        if self.structure == "diagonal" and issparse(X):
            require_memory(
                4 * 8 * X.shape[0] * X.shape[1],
                "A diagonal map of sparse X",
                "take structure='full'",
            )
        return X, pair_weights
