"""TDL's cost of labels (eq. 6), and the weight of its penalty chosen by hidden labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.dummy import DummyClassifier

from ..graphs import laplacian, mean_weights
from ..neighbors import EXACT, Searcher, nearest_other_class, nearest_same_class
from ._kernel_penalty import KernelPenalty
from .soft_neighbors import SoftNeighborsClassifier
from .transductive import GraphPenalty

REGS = tuple(8.0**power for power in range(6))
FOLDS = 3


def label_cost(X: Any, codes: np.ndarray, k: int, search: Searcher = EXACT) -> csr_array:
    """Return C of eq. 6, symmetric, shape (n, n): tr(CD) is the sum of the labelled rows' costs.

    The cost of a labelled row i is the mean of d_ij over its k nearest labelled rows of the same class, minus that over
    its k nearest labelled rows of other classes, of those that exist; 0 if it lacks either. Code -1 is no label.
    """
    n, labelled = len(codes), np.flatnonzero(codes >= 0)
    if len(np.unique(codes[labelled])) < 2:
        return csr_array((n, n))
    X, codes = X[labelled], codes[labelled]
    N_in, N_out = nearest_same_class(X, codes, k, search), nearest_other_class(X, codes, k, search)
    has_both = (np.diff(N_in.indptr) > 0) & (np.diff(N_out.indptr) > 0)
    C = (diags_array(has_both.astype(np.float64)) @ (mean_weights(N_in) - mean_weights(N_out))).tocoo()
    C = csr_array((C.data / 2, (labelled[C.row], labelled[C.col])), shape=(n, n))
    return csr_array(C + C.T)


def score_regs(
    penalty: GraphPenalty | KernelPenalty, X: Any, codes: np.ndarray, m: int, k: int, rng: np.random.RandomState
) -> dict[float, float]:
    """Return, for every weight, the share of hidden labels that the votes of the others predict.

    Each fold hides a third of the labels from the cost: labels that shaped an embedding say nothing about it.
    """
    labelled = np.flatnonzero(codes >= 0)
    shuffled = rng.permutation(labelled)
    shuffled = shuffled[np.argsort(codes[shuffled], kind="stable")]  # each fold has its share of every class
    correct = dict.fromkeys(REGS, 0)
    for fold in range(FOLDS):
        hidden = shuffled[fold::FOLDS]
        visible = np.setdiff1d(labelled, hidden)
        if len(hidden) == 0 or len(np.unique(codes[visible])) < 2:
            raise ValueError(
                f"reg='auto' hides a third of the labels; the {len(labelled)} of y are too few for that: give a number."
            )
        few = codes.copy()
        few[hidden] = -1
        cost = csr_array(2 * laplacian(label_cost(X, few, k)))
        start = None
        for reg in REGS:
            V = penalty.solve(cost, reg, m, start=start).vectors
            correct[reg] += int(np.sum(voters(V, visible, codes).predict(V[hidden]) == codes[hidden]))
            start = V.sum(axis=1)  # the next problem is a similar one
    return {reg: count / len(labelled) for reg, count in correct.items()}


def voters(V: np.ndarray, rows: np.ndarray, codes: np.ndarray) -> Any:
    """Return the classifier in which the rows vote with their labels; where they coincide, by class frequency."""
    coincide = np.ptp(V[rows], axis=0).max() <= 1e-10 * np.ptp(V, axis=0).max()
    vote = DummyClassifier(strategy="prior") if coincide else SoftNeighborsClassifier(bandwidth="auto")
    return vote.fit(V[rows], codes[rows])
