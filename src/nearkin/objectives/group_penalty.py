"""A penalty on groups of the columns of a map, such as the features that one column of a table has become."""

from __future__ import annotations

import numpy as np

from .stochastic import Value

POWER = 1.5
SMALLEST = 1e-9  # of a norm: the penalty is smooth everywhere


def group_penalty(A: np.ndarray, groups: np.ndarray, power: float = POWER) -> Value:
    """Return the squared norm of a map with groups of features, G in all, and its gradient.

        G^(1 - 2/p) (sum_g ||A_g||^p)^(2/p)

    For p = 2 it is ||A||^2; for any p where all groups have one norm. Below 2 it is larger than ||A||^2 where some
    groups hold much and others little: it prefers few groups, as the group lasso (p = 1) does, but sets none to zero.

    Parameters
    ----------
    A : array of shape (m, r)
    groups : ndarray of int of shape (r,)
        The group of each column of A: 0, 1, ..., G - 1.
    power : float, default=1.5
        p, from 1 to 2.

    Returns
    -------
    value : float
    gradient : array of the shape of A
    """
    squares = np.bincount(groups, np.sum(A * A, axis=0, dtype=np.float64))
    norms = np.sqrt(squares) + SMALLEST
    total, factor = float(np.sum(norms**power)), len(norms) ** (1 - 2 / power)
    slope = 2 * factor * total ** (2 / power - 1) * norms ** (power - 2)
    return factor * total ** (2 / power), slope[groups].astype(A.dtype) * A
