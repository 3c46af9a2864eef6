"""Rows and labels in one space: the matrices of Discriminative Projections, and the label that is nearest to a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import issparse

from .._blocks import centre, dense_float64
from .._labels import has_target
from ..linalg import pinv, svd
from ..scatter import group_means, second_moment, total_scatter
from ..span import RANK_TOLERANCE
from ..spectral import ZERO

SEEN = 1e-8  # singular values below are what rounding leaves of a mean that cancels, also far from the origin

# A pencil over v = (f; h): A + C, B + C, the basis H of the label maps g = H h, and the eigenvalues of those left out.


def class_pencil(X: Any, C: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 2.4, X relative to the mean of its labelled rows.

    g absorbs the origin, and at this one B separates: sum_ik (f'x_i - g_k)^2 = c sum_i (f'x_i)^2 + l sum_k g_k^2.
    """
    labelled = codes >= 0
    counts = np.bincount(codes[labelled]).astype(np.float64)
    c, n_labelled = len(counts), counts.sum()
    T = total_scatter(X, labelled.astype(np.float64))
    near_zero = X.astype(np.float64) if issparse(X) else centre(X)
    means = dense_float64(group_means(near_zero[labelled], codes[labelled]))
    means -= counts @ means / n_labelled
    H, constant = _informative_labels(means / _nonzero(np.sqrt(np.diag(T) / n_labelled)), counts)
    Q = -(means.T * counts) @ H
    A_plus_C = np.block([[T + C, Q], [Q.T, (H.T * counts) @ H]])
    return A_plus_C, block_diag(c * T + C, n_labelled * np.eye(H.shape[1])), H, constant / n_labelled


def _informative_labels(means: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a basis (c, r) of the label maps g that depend on the rows, and l lambda for each of the c - r others.

    The others solve the problem with f = 0. That takes classes with equally many labelled rows, l lambda of them,
    whose means (c, p; in units of the features, about the mean of all) weighted by g cancel: g = 1 when the classes are
    balanced. Solutions are orthogonal in B + C, so that all others have g in the complement.
    """
    kept, constant = [], []
    for count in np.unique(counts):
        peers = np.flatnonzero(counts == count)
        seen, unseen = _split(means[peers])
        kept.append(np.eye(len(counts))[:, peers] @ seen)
        constant += [count] * unseen.shape[1]
    return np.hstack(kept), np.array(constant)


def number_pencil(X: Any, C: np.ndarray, Y: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the matrices of sec. 3.3, Z L^ Z' and Z D^ Z': nothing is centred.

    Labels are written in an orthonormal basis of the columns of Y. Of these, directions orthogonal to every feature
    solve the problem with f = 0 and lambda = 1; they are left out, and what remains is orthogonal to them.
    """
    labelled = has_target(Y)
    Y = Y[labelled]
    unit = _nonzero(np.linalg.norm(Y, axis=0))
    U, s, Vt = svd(Y / unit, full_matrices=False)
    r = int(np.sum(s > RANK_TOLERANCE * s[0]))
    G = second_moment(X, labelled.astype(np.float64))
    K = X[labelled].T @ U[:, :r]
    seen, unseen = _split((K / _nonzero(np.sqrt(np.diag(G)))[:, None]).T)
    one, Q = np.eye(seen.shape[1]), -K @ seen
    A_plus_C = np.block([[G + C, Q], [Q.T, one]])
    B_plus_C = block_diag(second_moment(X, D), one)
    return A_plus_C, B_plus_C, (Vt[:r].T / s[:r] / unit[:, None]) @ seen, np.ones(unseen.shape[1])


def _split(K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal bases of the g with K'g other than 0 and of those with K'g = 0; K has entries of about 1."""
    U, s, _ = svd(K, full_matrices=K.shape[0] > K.shape[1])
    rank = int(np.sum(s > SEEN))
    return U[:, :rank], U[:, rank:]


def _nonzero(unit: np.ndarray) -> np.ndarray:
    """Return units to divide by: 1 for what does not vary."""
    return np.where(unit > 0, unit, 1.0)


def nearest_values(F: np.ndarray, g: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Return for every row of F (n, m) the y (q,) whose label g'y is nearest, each direction in units of its cost.

    A cost of 0 is taken for 1e-10 of the largest; of several y the shortest is returned.
    """
    unit = np.sqrt(np.maximum(cost, max(ZERO * cost.max(), np.finfo(float).tiny)))
    return (F / unit) @ pinv(g.T / unit[:, None]).T
