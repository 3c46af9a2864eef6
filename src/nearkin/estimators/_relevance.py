"""Labels and judgements that are given, as sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from .._labels import encode_partial_labels, require_two_classes
from .._validation import refuse_foreign

SEVERAL = "0 and 1 for every label, as scikit-learn's MultiLabelBinarizer makes of lists of labels."


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
    try:
        y = y if issparse(y) else np.asarray(y)
    except ValueError as error:  # lists of different lengths
        raise ValueError(f"y must be a label for every row, or {SEVERAL}") from error
    if y.ndim == 2 and y.shape[1] > 1:
        if y.dtype.kind in "US":
            raise ValueError(f"y of several columns holds text; it must hold {SEVERAL}")
        Y = csr_array(check_array(y, accept_sparse="csr", input_name="y"), dtype=np.float64, copy=True)
        Y.sum_duplicates()
        Y.eliminate_zeros()
        if not (Y.data == 1).all():
            value = Y.data[Y.data != 1][0]
            raise ValueError(f"y of several columns holds {value:g}; it must hold {SEVERAL}")
        Y = csr_array(Y[:, Y.sum(axis=0) > 0])
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
    refuse_foreign(relevance, "relevance")
    if issparse(relevance):
        R = csr_array(check_array(relevance, accept_sparse="csr", dtype=np.float64, input_name="relevance"))
        if R.shape != shape:
            raise ValueError(f"relevance must be of shape {shape}, queries and documents; got {R.shape}.")
    else:
        judged = check_array(relevance, dtype=np.float64, ensure_2d=False, input_name="relevance")
        if judged.ndim != 2 or judged.shape[1] not in (2, 3):
            raise ValueError(f"relevance must have 2 or 3 columns, query, document and grade; got {judged.shape}.")
        at = judged[:, :2].astype(np.int64)
        if (at != judged[:, :2]).any() or at.min() < 0 or (at.max(axis=0) >= shape).any():
            most = f"{shape[0] - 1} and {shape[1] - 1}"
            wrong = ((at != judged[:, :2]) | (at < 0) | (at >= shape)).any(axis=1).argmax()
            found = "{:g}, {:g}".format(*judged[wrong, :2])
            raise ValueError(
                f"relevance must hold numbers of a query and a document, 0 to {most}; row {wrong} holds {found}."
            )
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


def check_numbers_of_rows(numbers: Any, name: str, width: int, n: int) -> np.ndarray:
    """Return pairs (n_pairs, 2) or triplets (n_triplets, 3) of the numbers of n rows, those of one all different."""
    refuse_foreign(numbers, name)
    numbers = np.asarray(numbers)
    if numbers.ndim != 2 or numbers.shape[1] != width or not len(numbers) or numbers.dtype.kind not in "iu":
        stacked = numbers.ndim == 3 and numbers.shape[1] == width
        remedy = f"; of stacked rows X is {name}.reshape(-1, p), and these are 0, 1, ..." if stacked else ""
        found = f"{numbers.dtype} of {numbers.shape}{remedy}"
        raise ValueError(f"{name} must be numbers of rows of X, integers of shape (n_{name}, {width}), got {found}.")
    if numbers.min() < 0 or numbers.max() >= n:
        found = f"{numbers.min()} to {numbers.max()}"
        raise ValueError(f"{name} must hold numbers of rows, 0 to {n - 1}, got {found}.")
    ordered = np.sort(numbers, axis=1)
    twice = ordered[:, 1:] == ordered[:, :-1]
    if twice.any():
        at = int(twice.any(axis=1).argmax())
        row = ordered[at, 1:][twice[at]][0]
        raise ValueError(f"{name} must be of different rows, number {at} (counted from 0) has row {row} twice.")
    return numbers
