"""Embeddings of a new model rotated into the space of an old one, whose index is kept."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from .._blocks import unit_rows
from .._validation import check_array, check_consistent_length, refuse_foreign, widened
from .adapter import UnitEmbedding, check_directions
from .codes import orthogonal_procrustes


def target_rows(y: Any) -> np.ndarray:
    """Return validated embeddings of the other model, scaled to unit length."""
    refuse_foreign(y, "y")
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give the old embeddings."
        )
    Y = check_array(widened(y), dtype=(np.float64, np.float32), ensure_2d=False, input_name="y")
    Y = unit_rows(Y.reshape(len(Y), -1))
    # scikit-learn's checks use a single column, of which only signs are left
    if Y.shape[1] > 1:
        check_directions(Y, "y")
    return Y


class Procrustes(UnitEmbedding):
    """The rotation that best maps one model's embeddings to another's.

    It is learned from a sample embedded by both. Rows X (n, p) of the new model and Y (n, m) of the
    old one are scaled to unit length; x and y are their means. A new row x_i becomes y + s R (x_i -
    x), scaled to unit length, where

        R maximizes tr((Y - y)'(X - x) R'):    R = UV' for (Y - y)'(X - x) = U S V',
        s minimizes ||Y - y - s (X - x) R'||:  s = tr((Y - y)'(X - x) R') / ||(X - x) R'||^2

    (Schoenemann 1966). The scale s is needed since rows of one model may spread less about their
    mean than those of the other.

    * m >= p: R has orthonormal columns and preserves all distances. Among all such R and all s > 0,
      this pair minimizes ||Y - y - s (X - x) R'||.
    * m < p: R has orthonormal rows and projects. It is the first m rows of the rotation Q (p, p)
      that minimizes ||(Y - y, 0) - t (X - x) Q'||, where Y is padded with p - m columns of 0, for
      any t > 0: what R leaves out of X counts as an error. s is the best scale for this R. Another
      projection may come closer to Y - y alone, as the length of (X - x) R' then depends on R; that
      problem has no closed form and is not solved here.

    Parameters
    ----------
    none

    Attributes
    ----------
    components_ : array of shape (m, p)
        s R.
    bias_ : array of shape (m,)
        y - s R x.
    scale_ : float
        s; 1 if the new rows do not predict the old ones.

    See Also
    --------
    EmbeddingAdapter : Learns from labels, pairs or judgements.

    Notes
    -----
    A rotation needs few rows: a few hundred already determine the directions in which they vary.
    Text that only the new model represents well gains nothing in the old space: measure the
    neighbours of held-out rows.

    Cost: O(n p m + p m min(p, m)).

    References
    ----------
    P. H. Schoenemann. A generalized solution of the orthogonal Procrustes problem. Psychometrika
    31, 1966.

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin import Procrustes
    >>> rng = np.random.default_rng(0)
    >>> old = rng.normal(size=(200, 8))
    >>> new = old @ np.linalg.qr(rng.normal(size=(8, 8)))[0]  # another model, that turned the space
    >>> Z = Procrustes().fit(new[:50], old[:50]).transform(new[50:])
    >>> np.allclose(Z, old[50:] / np.linalg.norm(old[50:], axis=1, keepdims=True))
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.two_d_labels = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the rotation.

        Parameters
        ----------
        X : array of shape (n, p)
            Embeddings from the new model; n >= 2.
        y : array of shape (n, m)
            Embeddings of the same texts or images from the old one.

        Returns
        -------
        self
        """
        X, Y = self._unit_rows(X), target_rows(y)
        check_consistent_length(X, Y)
        x, y = (Z.mean(axis=0, dtype=np.float64) for Z in (X, Y))
        R = orthogonal_procrustes(X - x, Y - y)
        Z = (X - x) @ R.T
        self.scale_ = float(np.sum((Y - y) * Z) / np.sum(Z**2)) or 1.0
        A = self.scale_ * R
        self.components_, self.bias_ = A.astype(X.dtype), (y - A @ x).astype(X.dtype)
        return self
