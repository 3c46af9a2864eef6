"""Whether vectors are of one model: two models in one column have nothing to do with each other."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from .._blocks import unit_rows
from ..graphs import normalized_laplacian, union
from ..linalg import eigh

SAMPLE = 1_000  # rows that are looked at
NEIGHBORS = 10
FEWEST_ROWS = 200
FEWEST_DIMENSIONS = 128  # below, real classes of one model may look like two models
SMALLEST_SHARE = 0.05  # of the rows of a model
MOST_EDGES = 0.05  # of the smaller part, that lead to the other
GAP = 4.0  # times that the third eigenvalue is as large as the second, or as SMALL
SMALL = 0.001  # of an eigenvalue: below, the parts are apart
ALIGNED = 1.25  # times the mean square of unrelated models; between parts of one model it is more
DIVERSE = 2.0  # the same, at least, within each part
SAME_MEAN = 3.0  # standard deviations of the cosine of unrelated directions


def model_parts(X: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray] | None:
    """Return a sample of rows, and which of them seem to be of another model than the rest.

    None if nothing shows two models. The sample is cut in two where its graph of ten nearest
    neighbours by cosine has the fewest edges, by the second eigenvector of its normalized
    Laplacian. Real classes may be as far apart. But the coordinates of two models are unrelated: if
    one of them is rotated at random, then

        E (a'b)^2 = tr(S_a S_b) = tr(S_a) tr(S_b) / p,

    where a and b are centred rows of either part and S_a, S_b their covariances, and the cosine of
    the two means has the standard deviation 1 / sqrt(p). Classes of one model share the directions
    in which it varies, so that the left side is several times as large, as it is within each part,
    or their means are similar, or opposite. Two parts without any common direction of one model, as
    latent semantic analysis has for two unrelated topics, look like two models.

    Parameters
    ----------
    X : array of shape (n, p)
        Rows of zeros, and those with infinite or missing numbers, are left out.
    seed : int
        Of the sample of 1,000 rows.

    Returns
    -------
    rows : int array of shape (s,)
    is_other : bool array of shape (s,)
        The smaller part.
    """
    p = X.shape[1]
    rows = np.flatnonzero(X.any(axis=1) & np.isfinite(X).all(axis=1))
    if p < FEWEST_DIMENSIONS or len(rows) < FEWEST_ROWS:
        return None
    if len(rows) > SAMPLE:
        rows = np.sort(np.random.default_rng(seed).choice(rows, SAMPLE, replace=False))
    Z = unit_rows(X[rows].astype(np.float64))
    n = len(Z)
    S = Z @ Z.T
    np.fill_diagonal(S, -np.inf)
    near = np.argpartition(-S, NEIGHBORS, axis=1)[:, :NEIGHBORS].ravel()
    ends = np.arange(0, len(near) + 1, NEIGHBORS)
    W = union(csr_array((np.ones(len(near)), near, ends), shape=(n, n)))
    root = np.sqrt(W.sum(axis=1))
    # the eigenvector of the eigenvalue 0 is moved to 2, the largest
    L = normalized_laplacian(W).toarray() + 2 * np.outer(root, root) / W.sum()
    (second, third), V = eigh(L, subset_by_index=(0, 1))
    is_other = V[:, 0] > 0
    if 2 * is_other.sum() > n:
        is_other = ~is_other
    smallest = is_other.sum()
    edges = W[is_other]
    if (
        smallest < SMALLEST_SHARE * n
        or third < GAP * max(second, SMALL)  # there are more parts than two
        or edges[:, ~is_other].sum() > MOST_EDGES * edges.sum()
    ):
        return None
    A, B = Z[is_other], Z[~is_other]
    means = A.mean(axis=0), B.mean(axis=0)
    a, b = A - means[0], B - means[1]
    cosine = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])

    def aligned(a: np.ndarray, b: np.ndarray) -> float:
        """Return the mean square of inner products over that of unrelated rows."""
        return float(p * np.mean((a @ b.T) ** 2) / np.mean(a**2) / np.mean(b**2) / p**2)

    within = min(aligned(a[::2], a[1::2]), aligned(b[::2], b[1::2]))
    is_mixed = (
        abs(cosine) * np.sqrt(p) < SAME_MEAN
        and 1 / ALIGNED < aligned(a, b) < ALIGNED
        and within > DIVERSE
    )
    return (rows, is_other) if is_mixed else None
