"""NCA as a problem of descent: the loss of a map, the candidates among which neighbours are drawn, the inits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

from .._validation import check_choice, check_integer, check_number
from ..descent import DescentResult, OnIteration, lbfgs, lbfgs_rounds
from ..neighbors import Searcher
from ..objectives.candidates import Candidates
from ..objectives.nca import nca_objective
from ..objectives.stochastic import TERMS, Value
from ..scatter import between_scatter, within_scatter
from ..span import row_space
from ._candidates import N_FAR, N_NEAR, near_rows
from .descent_embedding import Scale, UnitRows, cap_penalty, penalized
from .initialization import INITS, directions, discriminant_directions, evenly_by, perplexity, perplexity_bandwidth

ALL_PAIRS_ROWS = 8000  # up to here all pairs are also quicker than candidates
MAX_ITER = 200


@dataclass(frozen=True)
class NCAProblem:
    """-f or -g plus the penalty, a function of maps B of rows in units of the typical distance of neighbours.

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
            return lbfgs(self.loss, init, max_iter=max_iter, tol=self.nca.tol, on_iteration=on_iteration)
        return lbfgs_rounds(
            self.loss, init, look_up=self.look_up, max_iter=max_iter, tol=self.nca.tol, on_iteration=on_iteration
        )

    def inits(self) -> Iterator[np.ndarray]:
        """Yield the maps to begin with."""
        return inits(self.nca, self.rows, self.init)

    def init(self, name: str) -> np.ndarray:
        """Return the init of a name, scaled to a perplexity of 10; for "auto" the one with the lowest loss."""
        rows, (n, p), m = self.rows, self.rows.shape, min(self.m, self.rows.shape[1])
        names = [name]
        if name == "auto":
            names = ["identity"] if m == p else ["pca", "lda"] if m < min(p, rows.n_classes) else ["pca"]
        if self.nca.structure == "full":
            found = [rows.directions(each, m, self.rng) for each in names]
        else:
            found = [np.abs(self.rng.standard_normal(p)) if name == "random" else np.ones(p)]
        complete = [B for B in found if len(B) in (m, p)]
        if not complete:
            few = f"init='lda' has {len(found[0])} directions here, n_components is {m}"
            raise ValueError(f"{few}: take init='pca' or 'auto'.")
        scaled = [cap_penalty(B / perplexity_bandwidth(rows.nearest_squares(B)), self.nca.alpha, n) for B in complete]
        return scaled[0] if len(scaled) == 1 else min(scaled, key=lambda B: self.loss(B, self.look_up(B))[0])

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what NCA sets beside the map."""
        return fitted_attributes(self.nca, self.rows, best, self.rows.shape[0]) | {"_sgd_state": None}


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
        """Return the k nearest rows of every row, with the nearest of the same class on request, and some far rows."""
        near = near_rows(self.embedding(B), k, self.pair_weights.codes if same_class else None, self.search)
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
    """Yield `n_init` maps to begin with: for a warm start the present one, or else `init`; then random ones."""
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
    """Return a map of the features, from the user or the last fit, as one of the rows; check its shape."""
    p = nca.n_features_in_
    m = nca.n_components or (p if name == "init" else len(A))
    shape = (p,) if nca.structure == "diagonal" else (m, p)
    if A.shape == (p, p) and nca.structure == "diagonal" and not A[~np.eye(p, dtype=bool)].any():
        A = A.diagonal()
    if A.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}, got {A.shape}.")
    return rows.coordinates(A)


def check_parameters(nca: Any) -> int | None:
    """Raise an error that names a bad parameter; return the number of iterations allowed, None if n decides."""
    check_choice(nca.objective, "objective", TERMS)
    check_choice(nca.structure, "structure", ("full", "diagonal"))
    check_choice(nca.target, "target", ("classes", "continuous"))
    if isinstance(nca.init, str):
        check_choice(nca.init, "init", INITS if nca.structure == "full" else ("auto", "identity", "random"))
    if isinstance(nca.alpha, str):
        check_choice(nca.alpha, "alpha", ("cv",))
    else:
        check_number(nca.alpha, "alpha", 0)
    if nca.structure == "diagonal" and nca.n_components is not None:
        raise ValueError(f"n_components must be None for a diagonal map (p features), got {nca.n_components!r}.")
    if not isinstance(nca.warm_start, (bool, np.bool_)):
        raise TypeError(f"warm_start must be True or False, got {nca.warm_start!r}.")
    return check_descent(nca)


def check_descent(nca: Any) -> int | None:
    """Raise an error that names a bad parameter of the descent; return the number of iterations allowed."""
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
