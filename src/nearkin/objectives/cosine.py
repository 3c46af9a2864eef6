"""Softmax losses of a linear map whose rows are compared by cosine.

Query i and candidate j, mapped and scaled to unit length, have the similarity `s_ij = z_i . z_j /
T`. Query i draws candidate j with probability `p_ij = exp(s_ij) / sum_k exp(s_ik)`, and w_ij >= 0
is the relevance of j to i. Averaged over the n queries that have a relevant candidate, the losses
are

    nca           - 1/n sum_i log sum_j w_ij p_ij                 (Goldberger et al. 2004: g, eq. 6)
    contrastive   - 1/n sum_i sum_j w_ij log p_ij / sum_j w_ij    (Khosla et al. 2020: eq. 2)

The first makes some relevant candidates close, the second all of them. Their derivatives with
respect to s_ij are `(p_ij - r_ij) / n`, where only r differs: `w_ij p_ij / sum_k w_ik p_ik`, or
`w_ij / sum_k w_ik`.

A row of weight c counts as c equal rows that are not candidates of each other: term i of the mean
is multiplied by c_i, exp(s_ik) in the sum over k by c_k, and w_ij by c_j. Scaling c adds the
logarithm of the scale to the contrastive loss and changes no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Never

import numpy as np

from .._blocks import row_lengths
from .loss import Loss, Value

LOSSES = ("nca", "contrastive")


@dataclass(frozen=True)
class Comparison:
    """Queries, candidates, and their relevance.

    Attributes
    ----------
    queries : array of shape (b, p)
    candidates : array of shape (c, p) or None
        None if the queries are candidates of each other, but not of themselves.
    relevance : array of shape (b, c)
        w, at least 0.
    offered : bool array of shape (b, c) or None
        Which candidates each query has; None for all.
    fixed : bool
        Whether only the queries are mapped; the candidates then have unit length as they are.
    weights : array of shape (b,) or None
        c, greater than 0, for queries that are candidates of each other. The mean is 1 over all
        queries that have a relevant candidate, not over those of a batch. None for 1 each.
    """

    queries: np.ndarray
    candidates: np.ndarray | None
    relevance: np.ndarray
    offered: np.ndarray | None = None
    fixed: bool = False
    weights: np.ndarray | None = None

    def with_fixed_candidates(self) -> Comparison:
        """Return the same rows, of which only the queries are mapped."""
        if self.candidates is not None:
            return replace(self, fixed=True)
        offered = ~np.eye(len(self.queries), dtype=bool)
        return replace(self, candidates=self.queries, offered=offered, fixed=True)


class _Mapped:
    """Rows X, mapped to U = X A' and scaled to unit length, Z."""

    def __init__(self, A: np.ndarray, X: np.ndarray) -> None:
        U = X @ A.astype(X.dtype, copy=False).T
        self.X, self.lengths = X, row_lengths(U)
        self.Z = U / self.lengths

    def chain_rule(self, G: np.ndarray) -> np.ndarray:
        """Return the gradient with respect to A, (m, p), from the gradient G with respect to Z.

        Components of G along z_i drop out, since they only change its length.
        """
        along = np.einsum("ij,ij->i", G, self.Z)[:, None]
        return ((G - along * self.Z) / self.lengths).T @ self.X


@dataclass(frozen=True, eq=False)
class CosineSoftmax(Loss[Never, Comparison]):
    """`softmax_loss`, averaged over maps to leading dimensions.

    Attributes
    ----------
    temperature : float
        T.
    loss : {"nca", "contrastive"}
    sizes : sequence of int
        Numbers of leading dimensions.
    """

    temperature: float
    loss: str
    sizes: Sequence[int]

    def estimate(self, B: np.ndarray, batch: Comparison) -> Value:
        """Return estimates of the loss of a map and of its gradient."""
        value, gradient = 0.0, np.zeros(B.shape)
        for m in self.sizes:
            one, slope = softmax_loss(B[:m], batch, self.temperature, self.loss)
            value += one / len(self.sizes)
            gradient[:m] += slope / len(self.sizes)
        return value, gradient


def softmax_loss(A: np.ndarray, comparison: Comparison, temperature: float, loss: str) -> Value:
    """Return the loss of a map A of shape (m, p) and its gradient; O((b + c) p m + b c m)."""
    queries = _Mapped(A, comparison.queries)
    candidates: _Mapped | None = queries
    if comparison.candidates is not None:
        candidates = None if comparison.fixed else _Mapped(A, comparison.candidates)
    Z = candidates.Z if candidates else comparison.candidates
    assert Z is not None
    S = queries.Z @ Z.T / queries.Z.dtype.type(temperature)
    if candidates is queries:
        np.fill_diagonal(S, -np.inf)
    if comparison.offered is not None:
        S[~comparison.offered] = -np.inf
    value, G = _loss_of_similarities(S, comparison.relevance, loss, comparison.weights)
    G /= G.dtype.type(temperature)
    if candidates is queries:  # each row is both
        return value, queries.chain_rule((G + G.T) @ Z)
    gradient = queries.chain_rule(G @ Z)
    if candidates:
        gradient += candidates.chain_rule(G.T @ queries.Z)
    return value, gradient


def _loss_of_similarities(
    S: np.ndarray, W: np.ndarray, loss: str, weights: np.ndarray | None = None
) -> Value:
    """Return the loss and its gradient for similarities s_ij, which are -inf for excluded pairs."""
    W = W.astype(S.dtype, copy=False)
    has = (W > 0).any(axis=1, keepdims=True)
    n = max(int(has.sum()), 1)
    if weights is None:
        P, log_totals = _softmax(S)
    else:
        c = weights.astype(S.dtype)
        P, log_totals = _softmax(S + np.log(c))
        W = W * c
    if loss == "nca":
        with np.errstate(divide="ignore"):
            R, log_relevant = _softmax(S + np.log(W))
        losses = log_totals - log_relevant
    else:
        R = W / np.where(has, W.sum(axis=1, keepdims=True), 1)
        terms = R * (log_totals - np.where(W > 0, S, 0))
        losses = np.sum(terms, axis=1, keepdims=True, dtype=np.float64)
    G = np.where(has, P - R, 0)
    if weights is not None:
        losses, G = losses * weights[:, None], G * c[:, None]
    value = float(np.sum(losses[has], dtype=np.float64)) / n
    return value, G / P.dtype.type(n)


def _softmax(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the softmax of each row and the logarithms of the sums, as a column.

    Rows of only -inf give 0. The row maximum is subtracted first, so no row underflows completely,
    however small the temperature.
    """
    top = S.max(axis=1, keepdims=True)
    top = np.where(top > -np.inf, top, 0)
    P = np.exp(S - top)
    totals = P.sum(axis=1, keepdims=True)
    totals = np.where(totals > 0, totals, 1)
    P /= totals
    return P, top + np.log(totals)
