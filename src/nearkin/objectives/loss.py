"""A loss of a map: what a descent minimizes, and the penalty that is added to it.

For a linear map A, also the embedding `Z = X A'`, and the chain rule from Z to A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_array, issparse

from .._blocks import row_blocks
from .._threads import parallel_map, parallel_sum

Value = tuple[float, np.ndarray]  # a value and its gradient
Matrix: TypeAlias = np.ndarray | csr_array  # rows, dense or sparse
Part = TypeVar("Part")  # of the pairs of rows: those that count
Batch = TypeVar("Batch")  # of the rows: those of one step
Drawn = TypeVar("Drawn", covariant=True)

FLOAT64_ROWS = 2000  # up to this many rows, a descent computes in float64


class Batches(Protocol[Drawn]):
    """The minibatches of a stochastic descent, the same number in every epoch."""

    n_batches: int
    n_epochs: int

    def __call__(self, B: np.ndarray, t: int) -> Drawn:
        """Return the minibatch of step t = 0, 1, ... of a descent that has reached the map B."""


class Loss(Protocol[Part, Batch]):
    """A function of a map B, to be minimized; `loss + Ridge(alpha, n)` adds a penalty.

    A loss derives from this class, and defines what its solver needs. For L-BFGS this is `value`.
    It may count only a part of the pairs of rows, such as the candidates among which each row draws
    its neighbour: `candidates` are searched again from time to time. For stochastic gradient it is
    `estimate`, for `sgd` also `batches` and `evaluate`. `Part` or `Batch` is `Never` if there is no
    such thing.
    """

    def value(self, B: np.ndarray, part: Part | None = None) -> Value:
        """Return the loss and its gradient, by a part of the pairs of rows or by all."""
        raise TypeError(f"{type(self).__name__} has estimates only: take stochastic gradient.")

    def candidates(self, B: np.ndarray) -> Part | None:
        """Return the pairs of rows that count near B; None if all do, or are found by `value`."""
        return None

    def batches(
        self, size: int | str, n_epochs: int | str, rng: np.random.Generator
    ) -> Batches[Batch]:
        """Return minibatches of at most `size` rows; "auto" chooses a number."""
        raise TypeError(f"{type(self).__name__} draws no minibatches.")

    def estimate(self, B: np.ndarray, batch: Batch) -> Value:
        """Return estimates of the loss and of its gradient from a minibatch."""
        raise TypeError(f"{type(self).__name__} has no estimates: take L-BFGS.")

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the loss, estimated from many rows, and the standard error of the estimate."""
        raise TypeError(f"{type(self).__name__} has no estimates: take its value.")

    def __add__(self, penalty: Ridge) -> Penalized[Part, Batch]:
        """Return the sum with a penalty."""
        return Penalized(self, penalty)


@dataclass(frozen=True, eq=False)
class Penalized(Loss[Part, Batch]):
    """The sum of a loss and a penalty."""

    loss: Loss[Part, Batch]
    penalty: Ridge

    def value(self, B: np.ndarray, part: Part | None = None) -> Value:
        """Return the sum and its gradient."""
        (value, gradient), (cost, slope) = self.loss.value(B, part), self.penalty(B)
        return value + cost, gradient + slope

    def candidates(self, B: np.ndarray) -> Part | None:
        """Return the candidates of the loss."""
        return self.loss.candidates(B)

    def batches(
        self, size: int | str, n_epochs: int | str, rng: np.random.Generator
    ) -> Batches[Batch]:
        """Return the minibatches of the loss."""
        return self.loss.batches(size, n_epochs, rng)

    def estimate(self, B: np.ndarray, batch: Batch) -> Value:
        """Return estimates of the sum and of its gradient."""
        (value, gradient), (cost, slope) = self.loss.estimate(B, batch), self.penalty(B)
        return value + cost, gradient + slope

    def evaluate(self, B: np.ndarray) -> tuple[float, float]:
        """Return the sum and its standard error."""
        value, error = self.loss.evaluate(B)
        return value + self.penalty(B)[0], error


@dataclass(frozen=True, eq=False)
class Scaled(Loss[Part, Batch]):
    """A loss in units of `unit`, for a solver whose tolerance is relative to 1."""

    loss: Loss[Part, Batch]
    unit: float

    def value(self, B: np.ndarray, part: Part | None = None) -> Value:
        """Return the loss divided by the unit, and its gradient."""
        value, gradient = self.loss.value(B, part)
        return value / self.unit, gradient / self.unit

    def candidates(self, A: np.ndarray) -> Part | None:
        """Return the candidates of the loss."""
        return self.loss.candidates(A)


@dataclass(frozen=True, eq=False)
class Ridge:
    """The penalty `alpha / sqrt(n) ||B - C||^2`, which keeps a map of n rows from overfitting.

    The uncertainty of a mean over n rows falls as 1 / sqrt(n), and so does the penalty.

    Attributes
    ----------
    alpha : float
    n : int, default=1
    center : ndarray of the shape of B, default=0
        C.
    groups : ndarray of int of shape (r,), default=None
        Groups of the columns of B: the squared norm is then that of `group_penalty`.
    """

    alpha: float
    n: int = 1
    center: np.ndarray | float = 0.0
    groups: np.ndarray | None = None

    def __call__(self, B: np.ndarray) -> Value:
        """Return the penalty and its gradient."""
        weight, away = self.alpha / self.n**0.5, B - self.center
        if self.groups is None:
            norm, slope = float(np.sum(away * away)), 2 * away
        else:
            norm, slope = group_penalty(away, self.groups)
        return weight * norm, weight * slope


# A penalty on groups of the columns of a map, such as the features of one column of a table.

POWER = 1.5
SMALLEST = 1e-9  # added to every norm, which keeps the penalty smooth everywhere


def group_penalty(A: np.ndarray, groups: np.ndarray, power: float = POWER) -> Value:
    """Return the squared norm of a map with G groups of features, and its gradient.

        G^(1 - 2/p) (sum_g ||A_g||^p)^(2/p)

    For p = 2, or if all groups have equal norms, it is ||A||^2. For p < 2 it is larger if norms
    differ: it favours few groups, like the group lasso (p = 1), but does not set any to zero.

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


# Linear maps.


def embed(A: np.ndarray, X: Matrix) -> np.ndarray:
    """Return Z = X A', shape (n, m), centred; A of shape (p,) is a diagonal map."""
    if A.ndim == 1:
        Z = X * A if isinstance(X, np.ndarray) else X.multiply(A).toarray()
    elif issparse(X):
        Z = X @ A.astype(X.dtype, copy=False).T
    else:
        A = A.astype(X.dtype, copy=False)
        Z = np.vstack(parallel_map(lambda rows: X[rows] @ A.T, row_blocks(*X.shape), X.size))
    return Z - Z.mean(axis=0)


def chain_rule(G: np.ndarray, A: np.ndarray, X: Matrix) -> np.ndarray:
    """Return the gradient `G' X` with respect to A, in float64, from that with respect to Z."""
    G = G.astype(X.dtype, copy=False)
    if A.ndim == 1:
        products = X * G if isinstance(X, np.ndarray) else X.multiply(G)
        return np.asarray(products.sum(axis=0), dtype=np.float64)
    if issparse(X):
        return (X.T @ G).T.astype(np.float64)

    def product(rows: slice) -> np.ndarray:
        return (G[rows].T @ X[rows]).astype(np.float64)

    blocks = row_blocks(*X.shape) or [slice(0, 0)]  # for no rows the gradient is 0
    return parallel_sum(product, blocks, X.size)
