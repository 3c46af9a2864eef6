"""What NCA's solvers share: the loss, the candidates that it is estimated from, and where a descent begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._parallel import Value
from ..neighbors import EXACT, Searcher
from ..objectives.nca import expected_accuracy, log_likelihood
from ..objectives.pair_weights import PairWeights, SameClass
from ..objectives.stochastic import Candidates
from . import _starts
from ._candidates import near_rows
from ._descending import Loss, UnitRows, cap_penalty, penalized

OBJECTIVES = {"expected_accuracy": expected_accuracy, "log_likelihood": log_likelihood}
EXACT_ROWS = 8000  # up to here exact is also quicker
NEAR = 50
FAR = 500


@dataclass(frozen=True)
class Criterion:
    """-f or -g plus the penalty, over maps of a structure. The attributes are parameters of NCA, and mean the same."""

    objective: str
    structure: str
    alpha: float
    n_candidates: int | str | None
    search: Searcher = EXACT

    def value(self, A: np.ndarray, X: np.ndarray, matches: PairWeights, candidates: Candidates | None) -> Value:
        """Return f or g as a sum over rows, and its gradient."""
        return OBJECTIVES[self.objective](A, X, matches, candidates)

    def loss(self, rows: UnitRows, matches: PairWeights) -> Loss:
        """Return the loss as a function of the map and the candidates."""
        n = rows.X.shape[0]

        def loss(B: np.ndarray, candidates: Candidates | None) -> tuple[float, np.ndarray]:
            value, gradient = self.value(B, rows.X, matches, candidates)
            return penalized(-value / n, -gradient / n, B, self.alpha, n)

        return loss

    def look_up(self, rows: UnitRows, matches: PairWeights) -> Callable[[np.ndarray], Candidates] | None:
        """Return the function that finds the candidates of a map, None where all rows are candidates."""
        n = rows.X.shape[0]
        if self.n_candidates is None or (self.n_candidates == "auto" and n <= EXACT_ROWS):
            return None
        k = min(NEAR if isinstance(self.n_candidates, str) else self.n_candidates, n - 1)
        far, kin = _starts.drawn_evenly(rows.X, FAR), self.kin(matches)
        return lambda B: Candidates(near_rows(rows.embedded(B), k, kin, self.search), far)

    def kin(self, matches: PairWeights) -> np.ndarray | None:
        """Return the classes, where the nearest row of the same one must be a candidate: g cannot do without."""
        return matches.codes if isinstance(matches, SameClass) and self.objective == "log_likelihood" else None

    def start(
        self, name: str, *, rows: UnitRows, matches: PairWeights, m: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Return the start of a name, in a sane scale; for "auto" the one with the lowest loss."""
        X, m = rows.X, min(m, rows.X.shape[1])
        codes = matches.codes if isinstance(matches, SameClass) else None

        def scaled(name: str) -> np.ndarray:
            if self.structure == "diagonal":
                V = np.abs(rng.standard_normal(X.shape[1])) if name == "random" else np.ones(X.shape[1])
            else:
                V = _starts.directions(name, X, m, codes, rng)
            return cap_penalty(_starts.scaled(V, X), self.alpha, X.shape[0])

        if name != "auto" or self.structure == "diagonal":
            return scaled(name)
        starts = [scaled(name) for name in _starts.default_inits(X, m, codes)]
        if len(starts) == 1:
            return starts[0]
        loss, look_up = self.loss(rows, matches), self.look_up(rows, matches)
        return min(starts, key=lambda B: loss(B, None if look_up is None else look_up(B))[0])
