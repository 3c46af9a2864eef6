"""The losses of Neighbourhood Components Analysis (Goldberger et al., NIPS 2004).

    f(A) = 1/n sum_i q_i  (eq. 3)      g(A) = 1/n sum_i log q_i  (eq. 6)      q_i = sum_j w_ij p_ij

`StochasticNeighbors` is -f or -g, and `SimilarPairs` the cost of eq. 8. First their formulas, as
functions of A and X, which return the value and the gradient with respect to A: (m, p), or (p,) for
the diagonal of a diagonal map. The gradient with respect to the embedding `Z = X A'` costs O(n^2
m). The chain rule takes one more product, `G'X`, whereas the outer products of eqs. 5 and 7 would
cost O(n^2 p^2). Rows may have weights: see `stochastic.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._threads import parallel_map
from .._validation import weights_of
from .candidates import (
    Candidates,
    DescentRows,
    Minibatch,
    NeighborLoss,
    RowsT,
    among_candidates,
    mass_among_candidates,
)
from .loss import Matrix, Value, chain_rule, embed
from .stochastic import TERMS, PairWeights, among_all, exponentiate, factors, tile_height


def nca_objective(
    name: str,
    A: np.ndarray,
    X: Matrix,
    pair_weights: PairWeights,
    candidates: Candidates | None = None,
) -> Value:
    """Return n f(A) or n g(A), to be maximized, and its gradient (eqs. 5 and 7).

    n f is the expected number of correctly classified rows, n g the log-probability that all rows
    are classified correctly. A row alone in its class counts 0 in f, and is left out of g.

    Parameters
    ----------
    name : {"expected_accuracy", "log_likelihood"}
        f or g.
    A : array of shape (m, p), or (p,) for a diagonal map
    X : array or sparse matrix of shape (n, p)
        Preferably centred.
    pair_weights : SameClass or TargetKernel
        Which neighbours are correct, and the weights of the rows.
    candidates : Candidates, default=None
        The rows among which each row draws its neighbour; by default all others.

    Returns
    -------
    value : float
    gradient : array of the shape of A, float64

    Notes
    -----
    O(n^2 m + n p m) time, or O(n k m + n p m) with candidates, and O(n (m + k)) memory besides some
    tiles.
    """
    Z = embed(A, X)
    if candidates is None:
        value, G = among_all(Z, pair_weights, TERMS[name])
    else:
        value, G = among_candidates(Z, candidates, pair_weights, TERMS[name])
    return value, chain_rule(G, A, X)


def pair_cost(
    A: np.ndarray,
    X: Matrix,
    pairs: np.ndarray,
    weights: np.ndarray,
    candidates: Candidates | None = None,
    row_weights: np.ndarray | None = None,
) -> Value:
    """Return the cost of eq. 8, which keeps similar pairs close among all pairs, and its gradient.

        -sum_(a,b) w_ab log( exp(-||z_a - z_b||^2) / sum_{c != d} v_c v_d exp(-||z_c - z_d||^2) )

    Parameters
    ----------
    A, X, candidates
        See `nca_objective`.
    pairs : ndarray of shape (n_pairs, 2)
        Rows a and b.
    weights : ndarray of shape (n_pairs,)
    row_weights : ndarray of shape (n,), default=None
        v > 0, the weights of the rows in the denominator; None for 1 each.

    Notes
    -----
    O(n^2 m + n p m) time, O(n m) memory and a tile per thread; with candidates, see
    `nca_objective`.
    """
    Z = embed(A, X)
    if candidates is None:
        log_mass, G = _log_mass_of_all(Z, row_weights)
    else:
        mass, G = mass_among_candidates(Z, candidates, row_weights)
        log_mass, G = np.log(mass), G / mass
    a, b = pairs.T
    difference = (Z[a] - Z[b]).astype(np.float64)
    G *= weights.sum()
    np.add.at(G, a, 2 * weights[:, None] * difference)
    np.add.at(G, b, -2 * weights[:, None] * difference)
    value = float(weights @ np.sum(difference**2, axis=1) + weights.sum() * log_mass)
    return value, chain_rule(G, A, X)


def _log_mass_of_all(Z: np.ndarray, row_weights: np.ndarray | None) -> Value:
    """Return `log sum_{c != d} v_c v_d exp(-||z_c - z_d||^2)` and its gradient.

    The gradient is `-4 sum_d pi_cd (z_c - z_d)`, where pi_cd is the softmax over all ordered pairs,
    which is symmetric.
    """
    with_ones, operand = factors(Z, row_weights)
    log_mass, mean = np.empty((len(Z), 1)), np.empty(Z.shape)  # over all pairs (c, d) of a row c

    def sum_over_pairs(rows: slice) -> None:
        logits = with_ones[rows] @ operand
        logits[np.arange(len(logits)), np.arange(rows.start, rows.stop)] = -np.inf
        top = exponentiate(logits)
        EZ = logits @ with_ones
        log_mass[rows] = np.log(EZ[:, -1:]) + top - np.sum(Z[rows] ** 2, axis=1, keepdims=True)
        mean[rows] = (EZ / EZ[:, -1:])[:, :-1]

    parallel_map(sum_over_pairs, row_blocks(len(Z), 1, tile_height(len(Z))), len(Z) ** 2)
    if row_weights is not None:
        log_mass += np.log(row_weights)[:, None]
    top = log_mass.max()
    mass = np.exp(log_mass - top)
    return float(top + np.log(mass.sum())), -4 * mass / mass.sum() * (Z - mean)


@dataclass(frozen=True, eq=False)
class StochasticNeighbors(NeighborLoss[RowsT]):
    """-f or -g, to be minimized: a mean over rows, with weights of mean 1, if any.

    Attributes
    ----------
    rows, search, k
        See `NeighborLoss`.
    objective : {"expected_accuracy", "log_likelihood"}
    pair_weights : SameClass or TargetKernel
    """

    objective: str
    pair_weights: PairWeights

    @property
    def required_classes(self) -> np.ndarray | None:
        """The classes for g: log q_i needs the nearest row of the same class."""
        return self.codes if self.objective == "log_likelihood" else None

    def value(self, B: np.ndarray, part: Candidates | None = None) -> Value:
        """Return the loss of a map and its gradient, for given candidates or all rows."""
        X, n = self.rows.X, self.rows.shape[0]
        value, gradient = nca_objective(self.objective, B, X, self.pair_weights, part)
        return -value / n, -gradient / n

    def estimate(self, B: np.ndarray, batch: Minibatch) -> Value:
        """Return estimates of the loss and its gradient from a minibatch.

        For given near and far rows, the mean of the estimates of an epoch is the value and the
        gradient over all anchors.
        """
        value, gradient = self._sum(B, self.rows.take(batch.rows), batch)
        # exact on average, though the sizes of the parts differ by a row
        weight = batch.n_parts / self.rows.shape[0]
        return -weight * value, -weight * gradient

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss and its standard error, estimated from at most 5,000 rows."""
        Z = self.rows.embedding(B)
        identity = np.ones(Z.shape[1])  # as a diagonal: Z is embedded
        mean, error = self.mean_over_anchors(
            Z, lambda Z, batch: self._sum(identity, Z, batch)[0], self.pair_weights.row_weights
        )
        return -mean, error

    def _sum(self, A: np.ndarray, X: Matrix, batch: Minibatch) -> Value:
        pair_weights = self.pair_weights.subset(batch.rows)
        return nca_objective(self.objective, A, X, pair_weights, batch)

    @property
    def codes(self) -> np.ndarray | None:
        """The classes, or None for real-valued targets."""
        return self.pair_weights.codes

    @property
    def n_classes(self) -> int:
        """Number of classes, or 0 if there are no discriminant directions."""
        return 0 if self.codes is None or issparse(self.rows.X) else int(self.codes.max()) + 1


@dataclass(frozen=True, eq=False)
class SimilarPairs(NeighborLoss[DescentRows]):
    """The cost of weighted pairs of similar rows, eq. 8.

    Attributes
    ----------
    rows, search, k
        See `NeighborLoss`.
    pairs : ndarray of shape (n_pairs, 2)
        Rows a and b.
    weights : ndarray of shape (n_pairs,)
        s_a s_b w_ab, scaled to sum 1.
    row_weights : ndarray of shape (n,), default=None
        s, scaled to mean 1; None for equal weights.
    """

    pairs: np.ndarray
    weights: np.ndarray
    row_weights: np.ndarray | None = None

    def value(self, B: np.ndarray, part: Candidates | None = None) -> Value:
        """Return the cost of a map and its gradient, for given candidates or all rows."""
        return pair_cost(B, self.rows.X, self.pairs, self.weights, part, self.row_weights)

    def estimate(self, B: np.ndarray, batch: Minibatch) -> Value:
        """Return estimates of the cost and its gradient from a minibatch.

        They use the pairs (c, d) and the given pairs (c, b) of its anchors c. On average, the
        logarithm of the sum over the pairs of some rows is a little less than that over all pairs.
        """
        X, anchors = self.rows.take(batch.rows), batch.anchors
        mass, G = self._mass(embed(B, X), batch)
        chosen = np.isin(self.pairs[:, 0], anchors)
        (a, b), weights = self.pairs[chosen].T, batch.n_parts * self.weights[chosen, None]
        difference = self.rows.take(a) - self.rows.take(b)
        Z = difference @ B.T
        cost = np.log(mass * batch.n_rows / len(anchors)) + float(np.sum(weights * Z**2))
        return cost, chain_rule(G / mass, B, X) + chain_rule(2 * weights * Z, B, difference)

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the cost and its standard error, estimated from at most 5,000 rows."""
        Z, (a, b) = self.rows.embedding(B), self.pairs.T
        mean, error = self.mean_over_anchors(
            Z, lambda Z, batch: self._mass(Z, batch)[0], self.row_weights
        )
        squares = np.sum((Z[a] - Z[b]).astype(np.float64) ** 2, axis=1)
        return float(self.weights @ squares + np.log(mean * len(Z))), error / mean

    def _mass(self, Z: np.ndarray, batch: Minibatch) -> Value:
        return mass_among_candidates(Z, batch, weights_of(self.row_weights, batch.rows))
