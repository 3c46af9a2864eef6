"""Neighbourhood Components Analysis (Goldberger, Roweis, Hinton and Salakhutdinov, NIPS 2004)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils import check_random_state

from .._array import check_integer, check_number, validate_labelled_rows, validate_target_rows
from .._callbacks import FitTask, with_callbacks
from .._memory import require_memory
from ..descent import DescentResult, Status
from ..neighbors import nearest, nearest_same_class
from ..objectives.matches import Classes, Matches, SoftMatches
from ..objectives.nca import embed, expected_accuracy, log_likelihood
from . import _starts
from ._descending import UnitRows, descend, warn_unless_converged
from .base import LinearEmbedding

OBJECTIVES = {"expected_accuracy": expected_accuracy, "log_likelihood": log_likelihood}
EXACT_ROWS = 3000
CANDIDATES = 50


class NCA(LinearEmbedding):
    def __init__(
        self,
        n_components: int | None = None,
        *,
        objective: str = "expected_accuracy",
        structure: str = "full",
        target: str = "classes",
        n_candidates: int | str | None = "auto",
        alpha: float = 0.01,
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
        task = FitTask(self, X, y, n_steps=self.n_init * self.max_iter)
        self._check_parameters()
        X, matches = self._validate(X, y)
        m = None if self.n_components is None else check_integer(self.n_components, "n_components", 1, X.shape[1])
        rows = UnitRows.of(X, within_span=self.structure == "full" and not (issparse(X) and m is not None))
        m = min(m or X.shape[1], rows.X.shape[1])
        n = X.shape[0]

        def loss(B: np.ndarray, candidates: np.ndarray | None) -> tuple[float, np.ndarray]:
            value, gradient = OBJECTIVES[self.objective](B, rows.X, matches, candidates)
            return self.alpha * float(np.sum(B * B)) - value / n, 2 * self.alpha * B - gradient / n

        k = self._candidate_count(n)
        look_up = None if k is None else lambda B: self._candidates(embed(B, rows.X), matches, k)

        def iterated(B: np.ndarray, value: float) -> bool:
            return task.iteration(lambda: {"components_": rows.components(B, X.dtype)})

        best: DescentResult | None = None
        for start in self._starts(rows, matches, m, loss, look_up):
            result = descend(
                loss, start, look_up, max_iter=self.max_iter, tol=self.tol, on_iteration=iterated
            )
            best = result if best is None or result.value < best.value else best
            if result.status in (Status.INTERRUPTED, Status.STOPPED):
                break
        assert best is not None
        self._keep(best, rows, X)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        warn_unless_converged(best, self.max_iter)
        task.end()
        return self

    def _keep(self, best: DescentResult, rows: UnitRows, X: Any) -> None:
        self.components_ = rows.components(best.x, X.dtype)
        self.n_components_ = len(self.components_)
        self.n_iter_ = best.n_iter
        self.loss_curve_ = np.array(best.curve)
        self.objective_ = self.alpha * float(np.sum(best.x**2)) - best.value
        self.perplexity_ = _starts.mean_perplexity(_starts.near_squares(embed(best.x, rows.X)))

    def _starts(self, rows: UnitRows, matches: Matches, m: int, loss: Any, look_up: Any) -> Iterator[np.ndarray]:
        """Yield `n_init` maps to begin with: `init` and then random ones."""
        X, rng = rows.X, check_random_state(self.random_state)
        r = X.shape[1]
        if self.structure == "diagonal":
            yield np.ones(r)
            return
        if isinstance(self.init, str):
            if self.init == "auto":
                starts = self._sensible(X, matches, m)
                yield min(starts, key=lambda B: loss(B, None if look_up is None else look_up(B))[0]) if len(starts) > 1 else starts[0]
            elif self.init == "random":
                yield _starts.scaled(_starts.random(r, m, rng), X)
            else:
                yield {"identity": lambda: np.eye(m, r), "pca": lambda: _starts.scaled(_starts.pca(X, m), X),
                     "lda": lambda: _starts.scaled(_starts.lda(X, matches.codes, m), X)}[self.init]()
        else:
            yield rows.coordinates_of(np.asarray(self.init, dtype=np.float64))
        for _ in range(self.n_init - 1):
            yield _starts.scaled(_starts.random(r, m, rng), X)

    def _sensible(self, X: Any, matches: Matches, m: int) -> list[np.ndarray]:
        if m == X.shape[1]:
            return [np.eye(m)]
        directions = [_starts.pca(X, m)]
        if isinstance(matches, Classes) and not issparse(X) and m < len(np.unique(matches.codes)):
            V = _starts.lda(X, matches.codes, m)
            if len(V) == m:
                directions.append(V)
        return [_starts.scaled(V, X) for V in directions]

    def _candidates(self, Z: np.ndarray, matches: Matches, k: int) -> np.ndarray:
        candidates = _listed(nearest(Z, k), k)
        if self.objective == "log_likelihood" and isinstance(matches, Classes):
            kin = _kin(Z, matches.codes)
            listed = (candidates == kin[:, None]).any(axis=1)
            kin[listed] = np.flatnonzero(listed)
            candidates = np.hstack([candidates, kin[:, None]])
        return candidates

    def _candidate_count(self, n: int) -> int | None:
        k = self.n_candidates
        if k == "auto":
            return None if n <= EXACT_ROWS else CANDIDATES
        return None if k is None else min(check_integer(k, "n_candidates", 1), n - 1)

    def _validate(self, X: Any, y: Any) -> tuple[Any, Matches]:
        if self.target == "classes":
            X, codes = validate_labelled_rows(self, X, y)
            return X, Classes(codes)
        X, y = validate_target_rows(self, X, y)
        return X, SoftMatches(y, bandwidth(y))

    def _check_parameters(self) -> None:
        for name, allowed in (("objective", tuple(OBJECTIVES)), ("structure", ("full", "diagonal")), ("target", ("classes", "continuous"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be {allowed[0]!r} or {allowed[1]!r}, got {getattr(self, name)!r}.")
        check_integer(self.n_init, "n_init", 1)
        check_integer(self.max_iter, "max_iter", 1)
        check_number(self.alpha, "alpha", 0)
        check_number(self.tol, "tol", 0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def bandwidth(y: np.ndarray) -> float:
    return 0.25 * float(y.std())


def _listed(G: csr_array, k: int) -> np.ndarray:
    return G.indices.reshape(-1, k)


def _kin(Z: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the nearest row of the same class, for a row alone in its class itself."""
    G = nearest_same_class(Z, codes, 1)
    kin = np.arange(len(codes), dtype=G.indices.dtype)
    kin[np.diff(G.indptr) > 0] = G.indices
    return kin
