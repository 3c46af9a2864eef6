"""Tangent distance: how far apart two images are once each may move, turn, stretch and thicken a
little.

An image that is moved, scaled, turned, deformed or thickened runs along a curved surface in the
space of pixels. The tangent plane at the image, x + span T, follows that surface for small
transformations; the two-sided tangent distance is the shortest one between two such planes (Simard,
LeCun, Denker and Victorri, "Transformation invariance in pattern recognition: tangent distance and
tangent propagation", 1998),

    d(x, y) = min_{a, b} ||x + T_x a - y - T_y b||,

not squared. T holds seven derivatives of the image f(u, v): two translations f_u and f_v, scaling u
f_u + v f_v, rotation v f_u - u f_v, the axis deformation u f_u - v f_v, the diagonal one v f_u + u
f_v, and thickening f_u^2 + f_v^2.

Pixels have no derivatives; so an image is first smoothed by a Gaussian of `SIGMA` pixels, going on
beyond its edges as it ends there, and its differences are taken. Distances are between the smoothed
images: these are what the planes touch. They are never larger than the Euclidean ones of the
smoothed images, and no metric: the triangle inequality fails.

How the minimum is found: for orthonormal bases Q_x, Q_y of the two planes it is the length of what
remains of r = x - y outside the span of both. Take the eight vectors [Q_y, r], remove from them
what lies in span Q_x, and orthogonalize the rest one after another: what is left of r is the
distance. All of it happens on the 8 x 8 Gram matrix of these vectors, which is made of products
between an image with its tangents and the other image with its own: one matrix product for many
pairs, then seven steps of elimination on all of them at once. Planes may share directions (an image
and its brighter copy share all), and a blank image has none: what is left of a unit vector counts
as nothing when its square is below 1e-10 (float32: 1e-5). Nothing is regularized.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.utils import check_array, gen_batches

from nearkin.neighbors import nearest

SIGMA = 0.75  # pixels; on USPS and MNIST, widths from 0.5 to 1 give 1-NN about the same error
N_TANGENTS = 7
BLOCK = 2**21  # entries of a temporary array
NEGLIGIBLE = {np.float64: 1e-10, np.float32: 1e-5}


def tangent_distances(X: Any, Y: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return the two-sided tangent distances between the images of X and those of Y.

    Parameters
    ----------
    X : array of shape (n_x, height * width)
        Images, one a row; float32 is kept, and then all products are of float32.
    Y : array of shape (n_y, height * width)
    shape : tuple of int
        Height and width in pixels, at least 2 each.

    Returns
    -------
    D : ndarray of shape (n_x, n_y)
        Distances in the unit of the pixels, not squared.

    Notes
    -----
    Cost: about 64 n_x n_y height * width multiplications; memory of the result, the images and a
    block of pairs.
    """
    X, Y = _images(X, shape, "X"), _images(Y, shape, "Y")
    dtype = np.result_type(X, Y)
    X, Y = _smoothed(X, shape, dtype), _smoothed(Y, shape, dtype)
    origin = X.mean(axis=0)
    D = np.empty((len(X), len(Y)), dtype)
    for rows in _blocks(len(X), (1 + N_TANGENTS) * X.shape[1] // 4):
        planes = _planes(X[rows], origin, shape)
        for columns in _blocks(len(Y), (1 + N_TANGENTS) ** 2 * len(planes.frames)):
            others = _planes(Y[columns], origin, shape)
            D[rows, columns] = _between(planes, others, cdist(X[rows], Y[columns], "sqeuclidean"))
    return D


def tangent_graph(
    X: Any, shape: tuple[int, int], n_neighbors: int, *, n_candidates: int = 200
) -> csr_array:
    """Return the rows nearest to every row by tangent distance, sought among its nearest by
    Euclidean distance.

    Parameters
    ----------
    X : array of shape (n, height * width)
        Images, one a row; float32 is kept, and halves time and memory.
    shape : tuple of int
        Height and width in pixels, at least 2 each.
    n_neighbors : int
        k, at least 1.
    n_candidates : int, default=200
        How many Euclidean neighbours of the smoothed image are compared, at least k; all n - 1 make
        the search exact.

    Returns
    -------
    G : csr_array of shape (n, n)
        Tangent distances to the neighbours, nearest first in each row, as
        `nearkin.neighbors.nearest` gives Euclidean ones: `union(binary(G))` of `nearkin.graphs` is
        an affinity for the methods that take one.

    Notes
    -----
    Cost: that of `nearkin.neighbors.nearest`, and about 64 n n_candidates height * width
    multiplications; memory of the images with their tangents, eight times X. More rows need more
    candidates: of the 20 nearest of 10,000 MNIST digits, 200 candidates held 0.95, 400 held 0.985
    (`benchmarks/speed/tangent.py`).
    """
    X = _images(X, shape, "X")
    if not 1 <= n_neighbors <= n_candidates:
        raise ValueError(
            f"n_neighbors must be from 1 to n_candidates ({n_candidates}), got {n_neighbors}."
        )
    n, p = X.shape
    X = _smoothed(X, shape, X.dtype)
    G = nearest(X, n_candidates)
    candidates, euclidean = (values.reshape(n, -1) for values in (G.indices, G.data))
    k = min(n_neighbors, candidates.shape[1])
    planes = _planes(X, X.mean(axis=0), shape)
    found, distances = np.empty((n, k), G.indices.dtype), np.empty((n, k), X.dtype)
    for rows in _blocks(n, (1 + N_TANGENTS) * p * max(1, candidates.shape[1])):
        listed = candidates[rows]
        own = planes.take(np.arange(n)[rows, None])
        D = _between(own, planes.take(listed), euclidean[rows, None] ** 2)[:, 0]
        first = np.argsort(D, axis=1, kind="stable")[:, :k]
        found[rows] = np.take_along_axis(listed, first, axis=1)
        distances[rows] = np.take_along_axis(D, first, axis=1)
    return csr_array(
        (distances.ravel(), found.ravel(), np.arange(n + 1, dtype=found.dtype) * k), shape=(n, n)
    )


class _Planes(NamedTuple):
    """Tangent planes at images, which may be arranged along any axes.

    Attributes
    ----------
    frames : ndarray of shape (..., 8, p)
        The image, from a common origin, and an orthonormal basis of its tangents, with zeros where
        these are fewer.
    heights : ndarray of shape (..., 7)
        Products of the image with its own tangents.
    """

    frames: np.ndarray
    heights: np.ndarray

    def take(self, rows: np.ndarray) -> _Planes:
        return _Planes(self.frames[rows], self.heights[rows])


def _planes(X: np.ndarray, origin: np.ndarray, shape: tuple[int, int]) -> _Planes:
    """Return the planes at smoothed images; by blocks, because the tangents are found in float64."""
    frames = np.empty((len(X), 1 + N_TANGENTS, X.shape[1]), X.dtype)
    frames[:, 0] = X - origin
    for rows in _blocks(len(X), N_TANGENTS * X.shape[1]):
        frames[rows, 1:] = _orthonormal(_tangents(X[rows].astype(np.float64), shape))
    return _Planes(frames, np.matmul(frames[:, 1:], frames[:, 0, :, None])[..., 0])


def _tangents(X: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the seven derivatives of smoothed images, each times a number: (n, 7, p)."""
    # an image of any brightness and contrast has the same plane
    f = X - X.mean(axis=1, keepdims=True)
    size, level = (np.abs(values).max(axis=1, keepdims=True) for values in (f, X))
    f = np.where(size > 1e-10 * level, f / np.where(size, size, 1), 0).reshape(-1, *shape)
    f_v, f_u = np.stack(np.gradient(f, axis=(1, 2)))
    v, u = (np.arange(length) - (length - 1) / 2 for length in shape)
    v, u = v[:, None] / max(shape), u / max(shape)
    T = (
        f_u,
        f_v,
        u * f_u + v * f_v,
        v * f_u - u * f_v,
        u * f_u - v * f_v,
        v * f_u + u * f_v,
        f_u**2 + f_v**2,
    )
    return np.stack(T, axis=1).reshape(len(f), N_TANGENTS, -1)


def _orthonormal(T: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the rows of each matrix, with zeros in place of what depends
    on the others.
    """
    _, lengths, Q = np.linalg.svd(T, full_matrices=False)
    return np.where(lengths[..., None] > 1e-10 * lengths[:, :1, None], Q, 0)


def _between(x: _Planes, y: _Planes, squared: np.ndarray) -> np.ndarray:
    """Return the distances (..., a, b) between planes at (..., a) images and at (..., b) others.

    `squared` are the squared Euclidean distances of the images. Q_x is 7 of the 8 rows of a frame
    of x, r = x - y.
    """
    batch, a, b = squared.shape[:-2], squared.shape[-2], squared.shape[-1]
    P = _rows(x.frames) @ _rows(y.frames).swapaxes(-1, -2)
    P = (
        P.reshape(*batch, a, 1 + N_TANGENTS, b, 1 + N_TANGENTS)
        .swapaxes(-3, -2)
        .astype(np.float64, copy=False)
    )
    u = x.heights[..., :, None, :] - P[..., 1:, 0]  # Q_x'r
    v = P[..., 0, 1:] - y.heights[..., None, :, :]  # Q_y'r
    K = np.concatenate([P[..., 1:, 1:], u[..., None]], axis=-1)  # Q_x'[Q_y, r]
    # and the Gram matrix of [Q_y, r]: of what is left outside span Q_x
    S = -(K.swapaxes(-1, -2) @ K)
    S[..., range(N_TANGENTS), range(N_TANGENTS)] += 1
    S[..., -1, :-1] += v
    S[..., :-1, -1] += v
    S[..., -1, -1] += squared
    left = _left_of_last(
        np.ascontiguousarray(np.moveaxis(S, (-2, -1), (0, 1))), NEGLIGIBLE[x.frames.dtype.type]
    )
    return np.sqrt(np.maximum(left, 0))


def _rows(frames: np.ndarray) -> np.ndarray:
    """Return all vectors of the last axis of images, 8 an image, as the rows of one matrix."""
    return frames.reshape(*frames.shape[:-3], -1, frames.shape[-1])


def _left_of_last(S: np.ndarray, negligible: float) -> np.ndarray:
    """Return the squared length of the last vector outside the span of the others, from Gram
    matrices (8, 8, ...).

    A vector of which no more than `negligible` of its squared length is left spans nothing new. S
    is overwritten.
    """
    for j in range(len(S) - 1):
        pivot = S[j, j]
        inverse = np.divide(1, pivot, out=np.zeros_like(pivot), where=pivot > negligible)
        S[j + 1 :, j + 1 :] -= (S[j, j + 1 :] * inverse)[:, None] * S[j, None, j + 1 :]
    return S[-1, -1]


def _images(X: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """Return images as rows of floats; refuse what has not that many pixels."""
    X = check_array(X, dtype=(np.float64, np.float32), input_name=name)
    height, width = shape
    if min(shape) < 2:
        raise ValueError(f"height and width in shape must be at least 2, got {shape}.")
    if X.shape[1] != height * width:
        raise ValueError(
            f"shape {height} x {width} is {height * width} pixels, and the rows of {name} have "
            f"{X.shape[1]}: give the (height, width) of the images, whose rows of pixels are laid "
            "one after another."
        )
    return X


def _blocks(n: int, entries_per_row: int) -> Iterator[slice]:
    """Cut n rows into slices for which a temporary array has about `BLOCK` entries."""
    return gen_batches(n, max(1, BLOCK // entries_per_row))


def _smoothed(X: np.ndarray, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Return images convolved with a Gaussian of `SIGMA` pixels."""
    images = X.reshape(-1, *shape)
    for axis in (1, 2):
        images = gaussian_filter1d(images, SIGMA, axis=axis, mode="nearest")
    return images.reshape(X.shape).astype(dtype, copy=False)
