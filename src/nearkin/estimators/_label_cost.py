"""TDL's cost of labels (eq. 6), and the weight of the prior beside it, chosen by hidden labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.dummy import DummyClassifier

from ..graphs import laplacian, mean_weights
from ..neighbors import EXACT, Searcher, nearest_other_class, nearest_same_class
from ._graph_prior import GraphPrior
from ._kernel_prior import KernelPrior
from .soft_neighbors import SoftNeighborsClassifier

REGS = tuple(8.0**power for power in range(6))
FOLDS = 3


def label_cost(X: Any, codes: np.ndarray, n_neighbors: int, search: Searcher = EXACT) -> csr_array:
    """Return C of eq. 6, symmetric, shape (n, n): tr(CD) is the sum of the labelled rows' costs.

    A labelled row i costs the mean of d_ij over its k nearest labelled rows of its class, minus that over its k nearest
    labelled rows of other classes, of those there are; nothing if it lacks one of the two. Code -1 is no label.
    """
    n, labelled = len(codes), np.flatnonzero(codes >= 0)
    if len(np.unique(codes[labelled])) < 2:
        return csr_array((n, n))
    X, codes = X[labelled], codes[labelled]
    kin = nearest_same_class(X, codes, n_neighbors, search)
    strangers = nearest_other_class(X, codes, n_neighbors, search)
    both = (np.diff(kin.indptr) > 0) & (np.diff(strangers.indptr) > 0)
    C = (diags_array(both.astype(np.float64)) @ (mean_weights(kin) - mean_weights(strangers))).tocoo()
    C = csr_array((C.data / 2, (labelled[C.row], labelled[C.col])), shape=(n, n))
    return csr_array(C + C.T)


def choose_reg(
    prior: GraphPrior | KernelPrior, X: Any, codes: np.ndarray, m: int, n_neighbors: int, rng: np.random.RandomState
) -> dict[float, float]:
    """Return, for every weight, how many of the hidden labels the votes of the others find.

    Each fold hides a third of the labels from the cost: an embedding that labels have shaped says nothing about them.
    """
    labelled = np.flatnonzero(codes >= 0)
    fold_of = _stratified(codes[labelled], rng)
    right = dict.fromkeys(REGS, 0)
    for fold in range(FOLDS):
        hidden, shown = labelled[fold_of == fold], labelled[fold_of != fold]
        if len(hidden) == 0 or len(np.unique(codes[shown])) < 2:
            raise ValueError(
                f"reg='auto' hides a third of the labels; the {len(labelled)} of y are too few for that: give a number."
            )
        visible = np.full_like(codes, -1)
        visible[shown] = codes[shown]
        cost = csr_array(2 * laplacian(label_cost(X, visible, n_neighbors)))
        start = None
        for reg in REGS:
            V = prior.solve(cost, reg, m, start).vectors
            right[reg] += int(np.sum(voters(V, shown, codes).predict(V[hidden]) == codes[hidden]))
            start = V.sum(axis=1)  # where the next search begins
    return {reg: count / len(labelled) for reg, count in right.items()}


def voters(V: np.ndarray, rows: np.ndarray, codes: np.ndarray) -> Any:
    """Return the classifier in which the rows vote with their labels; where all lie in one place, by their numbers."""
    in_one_place = np.ptp(V[rows], axis=0).max() <= 1e-10 * np.ptp(V, axis=0).max()
    vote = DummyClassifier(strategy="prior") if in_one_place else SoftNeighborsClassifier(bandwidth="auto")
    return vote.fit(V[rows], codes[rows])


def _stratified(codes: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return a fold for every label, such that each class is spread evenly."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold_of = np.empty(len(codes), dtype=int)
    fold_of[order] = np.arange(len(codes)) % FOLDS
    return fold_of
