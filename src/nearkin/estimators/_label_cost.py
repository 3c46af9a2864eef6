"""TDL's cost of labels (eq. 6), the solution with it, the weight chosen by hidden labels, and the vote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from scipy.sparse.linalg import eigsh
from sklearn.dummy import DummyClassifier
from sklearn.metrics.pairwise import euclidean_distances

from .._blocks import row_blocks
from ..graphs import laplacian, mean_weights
from ..neighbors import EXACT, Searcher, nearest_other_class, nearest_same_class
from ..span import RANK_TOLERANCE
from ..spectral import SpectralResult
from ._kernel_penalty import KernelPenalty
from .initialization import PERPLEXITY, nearest_squares, perplexity_bandwidth
from .soft_neighbors import SoftNeighborsClassifier
from .transductive import GraphPenalty

Penalty = GraphPenalty | KernelPenalty

UNIT_PAIRS = 20  # smallest eigenvalues of P whose mean is its unit, for embeddings of any dimension
REGS = (1.0, np.inf, 0.3, 0.1, 0.03, 0.01)  # from labels alone to Laplacian Eigenmaps, by preference
HIDDEN_PER_CLASS = 5  # mean number from which on some are hidden
FOLDS = 3
PERPLEXITIES = (1.5, 3.0, 5.0, 10.0, 20.0, 50.0)  # of the vote, beside that by default
FLAT = 0.01  # of the size of P is added to every roughness: coordinates that only separate components have none


def label_costs(X: Any, codes: np.ndarray, k: int, search: Searcher = EXACT) -> csr_array:
    """Return the coefficients A of eq. 6, shape (n, n): sum_j a_ij d_ij is the cost of row i.

    The cost of a labelled row i is the mean of d_ij over its k nearest labelled rows of the same class, minus that over
    its k nearest labelled rows of other classes, of those that exist; 0 if it lacks either. Code -1 is no label.
    """
    n, labelled = len(codes), np.flatnonzero(codes >= 0)
    if len(np.unique(codes[labelled])) < 2:
        return csr_array((n, n))
    X, codes = X[labelled], codes[labelled]
    N_in, N_out = nearest_same_class(X, codes, k, search), nearest_other_class(X, codes, k, search)
    has_both = (np.diff(N_in.indptr) > 0) & (np.diff(N_out.indptr) > 0)
    A = (diags_array(has_both.astype(np.float64)) @ (mean_weights(N_in) - mean_weights(N_out))).tocoo()
    return csr_array((A.data, (labelled[A.row], labelled[A.col])), shape=(n, n))


def total_cost(A: csr_array) -> csr_array:
    """Return C' with tr V'C'V the sum of the rows' costs: C is A made symmetric, C' that of Proposition 3."""
    return csr_array(laplacian(csr_array(A + A.T)))


def row_costs(A: csr_array, V: np.ndarray) -> np.ndarray:
    """Return the cost of every row, sum_j a_ij ||v_i - v_j||^2."""
    A = A.tocoo()
    return np.bincount(A.row, A.data * np.sum((V[A.row] - V[A.col]) ** 2, axis=1), minlength=len(V))


@dataclass(frozen=True)
class Solution:
    """The V that minimizes tr V'(C' + weight P)V.

    Attributes
    ----------
    result : SpectralResult
    cost : csr_array of shape (n, n)
        C', without the costs that are clipped.
    weight : float
    clipped : array of shape (n,) of bool
        Rows whose cost is.
    objectives : list of float
        Where costs may be: at the beginning, and after every eigenproblem.
    """

    result: SpectralResult
    cost: csr_array
    weight: float
    clipped: np.ndarray
    objectives: list[float]

    @property
    def roughness(self) -> np.ndarray:
        """V'Pv of every eigenvector v, shape (m,)."""
        V = self.result.vectors
        return np.maximum(self.result.values - np.sum(V * (self.cost @ V), axis=0), 0.0) / self.weight


def solve(penalty: Penalty, A: csr_array, weight: float, smoothest: SpectralResult, loss: str) -> Solution:
    """Minimize the sum of the rows' costs c_i, or of min(c_i, 0) if they are clipped, plus weight tr V'PV.

    min(c, 0) is concave: it lies below the line through 0 and c where c < 0, elsewhere below 0, and touches it at c. So
    the eigenvectors without the costs that are positive at the last V have no larger objective (majorization), from
    `smoothest`, the V without any cost, until the same costs are positive again. Infinite weight: `smoothest`.
    """
    result, m, clipped = smoothest, smoothest.requested, np.zeros(A.shape[0], dtype=bool)
    if not np.isfinite(weight) or A.nnz == 0:
        return Solution(smoothest, csr_array(A.shape), 1.0, clipped, [])
    if loss == "squared":
        cost = total_cost(A)
        return Solution(penalty.solve(cost, weight, m), cost, weight, clipped, [])
    costs = row_costs(A, smoothest.vectors)
    objectives = [float(np.minimum(costs, 0.0).sum() + weight * smoothest.objective)]
    while True:
        clipped = costs > 0
        cost = total_cost(csr_array(diags_array((~clipped).astype(np.float64)) @ A))
        result = penalty.solve(cost, weight, m, start=result.vectors.sum(axis=1))
        costs = row_costs(A, result.vectors)
        without = result.objective - costs[~clipped].sum()  # the penalty alone
        objectives.append(float(np.minimum(costs, 0.0).sum() + without))
        if objectives[-1] >= objectives[-2] - 1e-12 * abs(objectives[-2]) or np.array_equal(costs > 0, clipped):
            return Solution(result, cost, weight, clipped, objectives)


def relative_unit(A: csr_array, smallest: np.ndarray, size: float) -> float:
    """Return s_C / s_P, the weight of P at which penalty and cost are equally large, whatever their units.

    s_C is the largest modulus of an eigenvalue of C', s_P the mean of the `smallest` eigenvalues of P, zeros (relative
    to `size`) apart; where all of them are zero, as for a graph of many components, `size` itself. Without a cost any
    weight will do: 1.
    """
    if A.nnz == 0:
        return 1.0
    start = np.random.default_rng(0).standard_normal(A.shape[0])
    s_C = abs(float(eigsh(total_cost(A), 1, v0=start, return_eigenvectors=False)[0]))
    smallest = smallest[smallest > RANK_TOLERANCE * size]
    s_P = float(smallest.mean()) if len(smallest) > 0 else size
    return s_C / s_P


def choose_reg(
    penalty: Penalty,
    smoothest: SpectralResult,
    smallest: np.ndarray,
    X: Any,
    codes: np.ndarray,
    k: int,
    unit: float | None,
    loss: str,
) -> tuple[float, dict[float, float]]:
    """Return a weight, and for every one the share of hidden labels that the votes of the others predict.

    Each fold hides a third of the labels from the cost: labels that shaped an embedding say nothing about it. The
    best weight is taken if it is right on more labels than 1 by two standard errors of the difference; else 1, as where
    labels are too few to hide any. `smoothest` is the solution without labels, `smallest` are the eigenvalues that
    `relative_unit` takes, and `unit` is as in `TDL`.
    """
    labelled = np.flatnonzero(codes >= 0)
    counts = np.bincount(codes[labelled])
    if len(labelled) < HIDDEN_PER_CLASS * len(counts) or np.sum(counts > 1) < 2:
        return 1.0, {}
    lengths = np.linalg.norm(smoothest.vectors[labelled], axis=1)
    labelled = labelled[np.lexsort((lengths, codes[labelled]))]  # a third of every class, in whatever order rows come
    correct = {reg: np.zeros(len(labelled), dtype=bool) for reg in REGS}
    for fold in range(FOLDS):
        hidden, few = labelled[fold::FOLDS], codes.copy()
        few[hidden] = -1
        A = label_costs(X, few, k)
        own_unit = relative_unit(A, smallest, penalty.size) if unit is None else unit
        for reg in REGS:
            solution = solve(penalty, A, reg * own_unit, smoothest, loss)
            V = penalty.as_unlabelled(solution.result, solution.cost, solution.weight)
            Z = profile_coordinates(V, solution.roughness, penalty.size)
            correct[reg][fold::FOLDS] = voters(Z, few >= 0, codes).predict(Z[hidden]) == codes[hidden]
    best = max(REGS, key=lambda reg: correct[reg].sum())
    gains = correct[best].astype(int) - correct[1.0]
    reg = best if gains.sum() > 2 * np.linalg.norm(gains) else 1.0
    return reg, {reg: float(np.mean(right)) for reg, right in correct.items()}


def profile_coordinates(V: np.ndarray, rough: np.ndarray, size: float) -> np.ndarray:
    """Return rows of unit length, along V with column j divided by epsilon plus its roughness v'Pv.

    epsilon is a hundredth of the size of P. For all eigenvectors of P, without labels, inner products of rows before
    the scaling are those of the rows of the regularized Laplacian kernel (P + epsilon I)^-1: two rows are alike if the
    kernel relates them alike to all others.
    """
    Z = V / (rough + FLAT * size)
    lengths = np.linalg.norm(Z, axis=1, keepdims=True)
    return Z / np.where(lengths > 0, lengths, 1.0)


def voters(Z: Any, rows: np.ndarray, codes: np.ndarray, bandwidth: float | str = "auto") -> Any:
    """Return the classifier in which the rows vote with their labels; where they coincide, by class frequency."""
    spread, spread_of_all = (float((R.max(axis=0) - R.min(axis=0)).max()) for R in (Z[rows], Z))
    coincide = spread <= 1e-10 * spread_of_all
    vote = DummyClassifier(strategy="prior") if coincide else SoftNeighborsClassifier(bandwidth=bandwidth)
    return vote.fit(Z[rows], codes[rows])


@dataclass(frozen=True)
class LeftOut:
    """How well labels are predicted by the votes of all others.

    Attributes
    ----------
    bandwidth : float
        Of the votes.
    loss : float
        Mean log loss.
    right : array of bool
        Whether the most votes are for the label; for every label that is not the only one of its class.
    """

    bandwidth: float
    loss: float
    right: np.ndarray


def best_bandwidth(Z: Any, codes: np.ndarray) -> LeftOut:
    """Return the bandwidth of the votes at which others predict a label with the least mean log loss.

    The bandwidths are those of several perplexities; of equals the default of `SoftNeighborsClassifier` is taken. The
    shares of the votes of l rows count for l observations, to which the class frequencies add one: a label for which
    nobody votes costs a finite amount. The only label of a class has nobody to vote for it, and is left out.
    """
    n, counts = Z.shape[0], np.bincount(codes)
    frequencies = counts / n
    half_a_class = n / np.sum(counts > 0) / 2
    squares_of_some = nearest_squares(Z)
    perplexities = (min(PERPLEXITY, half_a_class), *PERPLEXITIES)
    bandwidths = [perplexity_bandwidth(squares_of_some, perplexity) for perplexity in perplexities]
    Y = np.eye(len(counts))[codes]
    Z = Z if issparse(Z) else Z - Z.mean(axis=0, dtype=np.float64)  # far from 0 distances lose their digits
    predicted = np.flatnonzero(counts[codes] > 1)
    losses = np.zeros(len(bandwidths))
    right = np.zeros((len(bandwidths), len(predicted)), dtype=bool)
    for block in row_blocks(len(predicted), n):
        rows = predicted[block]
        squares = euclidean_distances(Z[rows], Z, squared=True).astype(np.float64)
        squares[np.arange(len(rows)), rows] = np.inf
        squares -= squares.min(axis=1, keepdims=True)
        for j, bandwidth in enumerate(bandwidths):
            shares = np.exp(-squares / bandwidth**2) @ Y
            shares /= shares.sum(axis=1, keepdims=True)
            share = shares[np.arange(len(rows)), codes[rows]]
            losses[j] -= np.log((n * share + frequencies[codes[rows]]) / (n + 1)).sum()
            right[j, block] = shares.argmax(axis=1) == codes[rows]
    best = int(losses.argmin())
    return LeftOut(bandwidths[best], float(losses[best] / max(len(predicted), 1)), right[best])
