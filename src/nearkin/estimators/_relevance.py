"""Labels and judgements that are given, as sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from .._labels import encode_partial_labels, require_two_classes
from .._validation import check_pairs, refuse_foreign


def label_matrix(y: Any) -> csr_array:
    """Return labels as a matrix of 0 and 1, (n, n_labels); rows of 0 have none.

    Raises
    ------
    ValueError
        If no two rows share a label, or a single column leaves no two classes.
    """
    refuse_foreign(y, "y")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None: give labels.")
    y = y if issparse(y) else np.asarray(y)
    if y.ndim == 2 and y.shape[1] > 1:
        Y = csr_array(check_array(y, accept_sparse="csr", input_name="y"))
        Y.eliminate_zeros()
        if not (Y.data == 1).all():
            raise ValueError("y of several columns must hold 0 and 1: see scikit-learn's MultiLabelBinarizer.")
    else:
        classes, codes = encode_partial_labels(y)
        require_two_classes(classes)
        known = codes >= 0
        parts = (np.ones(known.sum()), codes[known], np.concatenate([[0], np.cumsum(known)]))
        Y = csr_array(parts, shape=(len(codes), len(classes)))
    if max(Y.sum(axis=0), default=0) < 2:
        raise ValueError("y gives no two rows the same label, every class has a single row: merge some classes.")
    return Y


def relevance_matrix(relevance: Any, shape: tuple[int, int]) -> csr_array:
    """Return the judgements larger than 0 as a matrix, (n_queries, n_documents).

    They come as one, or as rows (query, document) or (query, document, grade).
    """
    if issparse(relevance):
        R = csr_array(relevance, dtype=np.float64)
        if R.shape != shape:
            raise ValueError(f"relevance must be of shape {shape}, queries and documents; got {R.shape}.")
    else:
        judged = check_array(relevance, dtype=np.float64, input_name="relevance")
        if judged.shape[1] not in (2, 3):
            raise ValueError(f"relevance must have 2 or 3 columns, query, document and grade; got {judged.shape}.")
        at = judged[:, :2].astype(np.int64)
        if (at != judged[:, :2]).any() or at.min() < 0 or (at.max(axis=0) >= shape).any():
            most = f"{shape[0] - 1} and {shape[1] - 1}"
            found = f"{judged[:, :2].min():g} to {judged[:, :2].max(axis=0)}"
            raise ValueError(f"relevance must hold numbers of queries and documents, 0 to {most}; got {found}.")
        grades = judged[:, 2] if judged.shape[1] == 3 else np.ones(len(judged))
        R = csr_array((grades, at.T), shape=shape)
    R = csr_array(R.maximum(0))
    R.eliminate_zeros()
    if not R.nnz:
        raise ValueError("relevance marks no document as relevant (larger than 0): there is nothing to learn from.")
    return R


def check_grades(y: Any, n_pairs: int) -> np.ndarray:
    """Return how much each pair belongs together, at least 0; None for 1 each."""
    if y is None:
        return np.ones(n_pairs)
    grades = np.maximum(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), 0)
    if grades.shape != (n_pairs,):
        raise ValueError(f"y must be a number for each of {n_pairs} pairs, got the shape {grades.shape}.")
    if not grades.any():
        raise ValueError("y marks no pair as similar (larger than 0): there is nothing to learn from.")
    return grades


def check_triplets(triplets: Any, n: int) -> np.ndarray:
    """Return triplets (n_triplets, 3) of the numbers of n rows."""
    triplets = np.asarray(triplets)
    if triplets.ndim != 2 or triplets.shape[1] != 3 or not len(triplets) or triplets.dtype.kind not in "iu":
        found = f"{triplets.dtype} of {triplets.shape}"
        raise ValueError(f"triplets must be integers of shape (n_triplets, 3), got {found}.")
    for others in (triplets[:, :2], triplets[:, ::2]):
        check_pairs(others, n)
    return triplets
