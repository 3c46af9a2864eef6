"""PairNCA as a problem of descent: eq. 8 in the place of f and g, by L-BFGS and by minibatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..descent import DescentResult
from ..objectives.candidates import Candidates, mass_among_candidates
from ..objectives.linear_map import chain_rule, embed
from ..objectives.nca import pair_cost
from ..objectives.stochastic import Value
from ..spectral import ratio_trace
from ._rows_in_place import INIT_ROWS
from ._sgd import Minibatches
from .descent_embedding import cap_penalty, penalized
from .initialization import directions, perplexity_bandwidth
from .nca_problem import NCAProblem, fitted_attributes


@dataclass(frozen=True)
class PairProblem(NCAProblem):
    """The cost of weighted pairs plus the penalty, a function of maps B of rows in units of the typical distance."""

    def loss(self, B: np.ndarray, neighbors: Candidates | None = None) -> Value:
        """Return the loss among some candidates, or among all rows, and its gradient."""
        given = self.rows.pair_weights
        cost, gradient = pair_cost(B, self.rows.X, given.pairs, given.weights, neighbors)
        return penalized(cost, gradient, B, self.nca.alpha, len(self.rows))

    def init(self, name: str) -> np.ndarray:
        """Return the init of a name, found on at most 10,000 rows and pairs; for "auto" the one with the lower loss."""
        rows, n, m = self.rows, len(self.rows), min(self.m, self.rows.shape[1])
        X = rows.take(slice(None) if n <= INIT_ROWS else np.sort(self.rng.choice(n, INIT_ROWS, replace=False)))
        some = slice(None, None, -(-len(rows.pair_weights.pairs) // INIT_ROWS))
        (a, b), weights = rows.pair_weights.pairs[some].T, rows.pair_weights.weights[some, None]
        difference = rows.take(a) - rows.take(b)
        if name != "auto" or m == X.shape[1]:
            found = [directions("identity" if name == "auto" else name, X, m, self.rng)]
        else:
            found = [directions("pca", X, m)]
            if not issparse(X):  # the directions in which pairs differ least, relative to all rows
                found.append(ratio_trace((weights * difference).T @ difference, X.T @ X, m).vectors.T)
        inits = [self._scaled(B, difference, weights) for B in found if len(B) == m]
        some_rows = PairMinibatches(self.nca, rows, None, n, np.random.default_rng(0))
        return inits[0] if len(inits) == 1 else min(inits, key=lambda B: some_rows.evaluate(B)[0])

    def _scaled(self, B: np.ndarray, difference: Any, weights: np.ndarray) -> np.ndarray:
        """Return directions at a perplexity of 10, or smaller, where the mean squared distance of the pairs is m / 2.

        There eq. 8 is at its minimum over the scale, if rows lie evenly.
        """
        mean_square = np.sum(weights * np.square(difference @ B.T)) / np.sum(weights)
        scale = max(perplexity_bandwidth(self.rows.nearest_squares(B)), (2 * mean_square / len(B)) ** 0.5)
        return cap_penalty(B / scale, self.nca.alpha, len(self.rows))

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what PairNCA sets beside the map."""
        return pair_attributes(self.nca, self.rows, best)


@dataclass(frozen=True, eq=False)
class PairMinibatches(Minibatches):
    """The cost of pairs by one part of the rows c of all pairs (c, d) after another, each with the given pairs (c, b).

    The logarithm of the sum over the pairs of some rows is a little less than that over all pairs, in the mean.
    """

    def loss(self, B: np.ndarray, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> Value:
        """Return the loss and its gradient, estimated from some anchors, given the near rows of all rows."""
        n, given = len(self.rows), self.rows.pair_weights
        rows, candidates = Candidates.of_anchors(anchors, near[anchors], far, n)
        X = self.rows.take(rows)
        mass, G = mass_among_candidates(embed(B, X), candidates)
        chosen = np.isin(given.pairs[:, 0], anchors)
        (a, b), weights = given.pairs[chosen].T, self.n_batches * given.weights[chosen, None]
        difference = self.rows.take(a) - self.rows.take(b)
        Z = difference @ B.T
        cost = np.log(mass * n / len(anchors)) + float(np.sum(weights * Z**2))
        gradient = chain_rule(G / mass, B, X) + chain_rule(2 * weights * Z, B, difference)
        return penalized(cost, gradient, B, self.nca.alpha, n)

    def _sum(self, Z: np.ndarray, anchors: np.ndarray, near: np.ndarray, far: np.ndarray) -> float:
        rows, candidates = Candidates.of_anchors(anchors, near, far, len(self.rows))
        return mass_among_candidates(Z[rows], candidates)[0]

    def _cost(self, Z: np.ndarray, mean: float, error: float) -> tuple[float, float]:
        (a, b), weights = self.rows.pair_weights.pairs.T, self.rows.pair_weights.weights
        squares = np.sum((Z[a] - Z[b]).astype(np.float64) ** 2, axis=1)
        return float(weights @ squares + np.log(mean * len(Z))), error / mean

    def attributes(self, best: DescentResult) -> dict[str, Any]:
        """Return what PairNCA sets beside the map."""
        return pair_attributes(self.nca, self.rows, best)


def pair_attributes(nca: Any, rows: Any, best: DescentResult) -> dict[str, Any]:
    """Return what PairNCA sets beside the map, by either solver: NCA's attributes, with a cost for objective."""
    found = fitted_attributes(nca, rows, best, len(rows))
    return found | {"objective_": -found["objective_"]}
