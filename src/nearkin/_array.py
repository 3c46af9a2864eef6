"""Rules for the arrays that come in: what is refused, what is converted, how labels are read.

A leaf of the import graph: it knows scikit-learn's validators and nothing of nearkin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

# scikit-learn's validators turn these silently into one NumPy array: a cluster's data would land in this process, a
# GPU's on the host.
_FOREIGN = {"dask": "call .compute() on it, or on some of its rows,", "torch": "pass X.numpy(force=True)"}

# What to do with a Dask array instead, by the class that was given it.
_DISTRIBUTED = {
    **{name: f"take nearkin.dask.Dask{name}, or " for name in ("DNE", "LPP", "NCA", "NMMP")},
    **{name: f"{name} does not distribute: for many rows set kernel='rbf' and n_landmarks, and "
       for name in ("TDL", "TDLClassifier")},
    **{name: f"{name} does not distribute: " for name in ("LMNN", "LaplacianEigenmaps")},
}  # fmt: skip

_ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}


def refuse_foreign(array: Any, name: str = "X", estimator: Any = None) -> None:
    """Raise a TypeError with the remedy, also by the estimator, when `array` is a Dask collection or a torch tensor."""
    library = type(array).__module__.partition(".")[0]
    if library in _FOREIGN:
        instead = _DISTRIBUTED.get(type(estimator).__name__, "") if library == "dask" else ""
        raise TypeError(
            f"{name} is a {library} {type(array).__name__}; nearkin computes on NumPy arrays and SciPy sparse matrices "
            f"and does not convert it silently: {instead}{_FOREIGN[library]} first."
        )


def validate_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a float array or canonical csr_array, float32 kept; `reset` as in scikit-learn's `validate_data`.

    Fitting (`reset=True`) asks for at least two rows that are not all equal.
    """
    refuse_foreign(X, estimator=estimator)
    X = canonical(validate_data(estimator, widened(X), reset=reset, ensure_min_samples=2 if reset else 1, **_ROWS))
    if reset:
        check_spread(X)
    return X


def validate_labelled_rows(
    estimator: Any,
    X: Any,
    y: Any,
    encode: Callable[[Any], tuple[np.ndarray, np.ndarray]] | None = None,
    *,
    reset: bool = True,
) -> tuple[Any, np.ndarray]:
    """Return X for fitting, as `validate_rows` does, and the class of every row as a number 0, 1, ...

    `encode` reads the labels: `encode_labels` by default, `encode_partial_labels` where rows may have none. Without
    `reset` the features must be those of the last fit.
    """
    refuse_foreign(X, estimator=estimator)
    encode = encode or encode_labels
    codes = None if y is None else encode(y)[1]  # before validate_data, which trips over pandas' NA
    X, codes = validate_data(estimator, widened(X), codes, reset=reset, ensure_min_samples=2, **_ROWS)
    X = canonical(X)
    check_spread(X)
    return X, codes


def validate_target_rows(estimator: Any, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Return X for fitting, as `validate_labelled_rows` does, and the real-valued target of every row as float64."""
    refuse_foreign(X, estimator=estimator)
    X, y = validate_data(estimator, widened(X), y, reset=reset, y_numeric=True, ensure_min_samples=2, **_ROWS)
    X, y = canonical(X), np.asarray(y, dtype=np.float64)
    check_spread(X)
    if y.min() == y.max():
        raise ValueError(f"y does not vary (all {y[0]!s}): learning whose targets agree needs some that do not.")
    return X, y


def validate_partial_target_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return X for fitting, as `validate_rows` does, and real-valued targets as float64 of shape (n,) or (n, q).

    NaN says that there is none. Some of the values that there are must vary.
    """
    refuse_foreign(X, estimator=estimator)
    refuse_foreign(y, "y")
    if y is not None:
        y = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
    places = None if y is None else np.arange(len(y))  # stand for y, which may not be finite
    X = canonical(validate_data(estimator, widened(X), places, ensure_min_samples=2, **_ROWS)[0])
    check_spread(X)
    known = y[has_target(y)]
    if not len(known) or (known == known[0]).all():
        held = f"does not vary (all {known[0]!s})" if len(known) else "holds no value"
        raise ValueError(f"y {held}: learning whose targets agree needs some that do not.")
    return X, y


def has_target(y: np.ndarray) -> np.ndarray:
    """Say for every row whether it has a target; of several targets, all."""
    return ~np.isnan(y.reshape(len(y), -1)).any(axis=1)


def as_rows(X: Any) -> Any:
    """Return X as `validate_rows` does, outside of an estimator: of any number and spread."""
    refuse_foreign(X)
    with np.errstate(over="ignore", invalid="ignore"):  # sums of numbers near 1e308, in the search for infinite ones
        return canonical(check_array(widened(X), **_ROWS))


def validate_affinity(affinity: Any, n: int, *, name: str = "affinity", signed: bool = False) -> csr_array:
    """Return a graph given by the user as a canonical float64 csr_array without its diagonal.

    Raises
    ------
    TypeError
        If it is a Dask collection or a torch tensor.
    ValueError
        If it is not a finite symmetric n x n matrix, or has negative weights though not `signed`.
    """
    refuse_foreign(affinity, name)
    W = check_array(affinity, accept_sparse="csr", dtype=np.float64, input_name=name)
    if W.shape != (n, n):
        raise ValueError(f"{name} must be of shape ({n}, {n}), a weight for every pair of rows of X; got {W.shape}.")
    W = csr_array(W)
    W = canonical(csr_array(W - diags_array(W.diagonal())))
    W.eliminate_zeros()
    if W.nnz and abs(W - W.T).max() > 1e-10 * abs(W).max():
        raise ValueError(
            f"{name} must be symmetric: take nearkin.graphs.either({name}), or the mean with its transpose."
        )
    if not signed and W.min() < 0:
        raise ValueError(
            f"{name} must not be negative (smallest weight: {W.min():.3g}): weights say how alike rows are."
        )
    return W


def validate_ties(affinity: Any, n_new: int, n: int) -> csr_array:
    """Return the weights that new rows have to training rows, given by the user, as a float64 csr_array."""
    refuse_foreign(affinity, "affinity")
    W = check_array(affinity, accept_sparse="csr", dtype=np.float64, input_name="affinity")
    if W.shape != (n_new, n):
        raise ValueError(
            f"affinity must be of shape ({n_new}, {n}), the weights of {n_new} new rows to {n} training rows; "
            f"got {W.shape}."
        )
    if W.nnz and W.min() < 0:
        raise ValueError(f"affinity must not be negative (smallest weight: {W.min():.3g}) where new rows are tied.")
    return canonical(csr_array(W))


def widened(X: Any) -> Any:
    """Return rows in float16 as float32, by which they are computed with; others as they are."""
    return X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype == np.float16 else X


def canonical(X: Any) -> Any:
    """Return sparse X as a csr_array whose entries are stored once, in order; dense X as it is."""
    if not issparse(X):
        return X
    X = csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_spread(X: Any) -> None:
    """Raise a ValueError when X does not vary, or so little or much that squares under- or overflow."""
    with np.errstate(over="ignore"):
        spread = float((X.max(axis=0) - X.min(axis=0)).max())
    if spread == 0:
        raise ValueError("X does not vary: all its rows are equal, so there is no direction to learn.")
    if not 1e-100 < spread < 1e100:
        raise ValueError(
            f"X varies by up to {spread:.1e} in a feature, whose square is lost: scale the features first."
        )


def densified(X: Any) -> Any:
    """Return sparse X as a dense array when more than a tenth of its entries is stored: quicker, and can be centred."""
    return X.toarray() if issparse(X) and X.nnz > 0.1 * X.shape[0] * X.shape[1] else X


def encode_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of `y` and, for every row, the position of its class.

    Raises
    ------
    ValueError
        If labels are missing (None, NaN), mix strings and numbers, are real numbers, or form a single class.
    """
    y = column_or_1d(y, warn=True)
    missing = is_missing(y)
    if missing.any():
        raise ValueError(f"y has no label in {missing.sum()} rows (first: row {missing.argmax()}): drop them.")
    classes, codes = _distinct(y)
    require_two_classes(classes)
    return classes, codes


def encode_partial_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return what `encode_labels` does, with position -1 for rows without a label: the number -1, None or NaN.

    The string "-1" is a class. A single class will do, or none at all.
    """
    y = column_or_1d(y, warn=True)
    known = ~is_missing(y)
    known[known] = y[known] != -1
    classes, positions = _distinct(y[known])
    codes = np.full(len(y), -1)
    codes[known] = positions
    return classes, codes


def require_two_classes(classes: np.ndarray) -> None:
    """Raise a ValueError when there is one class, or none."""
    if len(classes) < 2:
        held = f"one class ({classes[0]!r})" if len(classes) else "no label"
        raise ValueError(f"y holds {held}: learning who is not kin needs at least two classes.")


def check_kin(codes: np.ndarray) -> None:
    """Raise a ValueError when every class 0, 1, ... has a single row."""
    if codes.max() + 1 == len(codes):
        raise ValueError("y gives no two rows the same label: every class has a single row, nobody has kin.")


def known_labels(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the labels of rows that have one; of numbers or truth values kept as objects, for the gaps, plain ones."""
    y = y[rows]
    return y if y.dtype != object or len(y) == 0 or isinstance(y[0], str) else np.array(y.tolist())


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of labels, none of them missing, and the position of each; refuse what is no class."""
    if y.dtype == object:
        if len({isinstance(label, str) for label in y}) > 1:
            raise ValueError("y mixes strings with other labels: give all labels one type, e.g. y.astype(str).")
        y = np.array(y.tolist())
    with np.errstate(invalid="ignore"):  # infinite labels are refused; no word about their cast besides
        check_classification_targets(y)
    return np.unique(y, return_inverse=True)


def is_missing(labels: np.ndarray) -> np.ndarray:
    """Say for every label whether it is none: None, NaN, NaT or pandas' NA."""
    if labels.dtype != object:
        return labels != labels
    return np.array([label is None or type(label).__name__ == "NAType" or label != label for label in labels])


def centre(X: np.ndarray) -> np.ndarray:
    """Return dense X in float64 with its column means removed, twice: far from the origin the first mean is rounded."""
    X = np.asarray(X, dtype=np.float64)
    X = X - X.mean(axis=0)
    X -= X.mean(axis=0)
    return X


def near_origin(X: np.ndarray) -> np.ndarray:
    """Return dense X about its mean, far from which distances lose their digits.

    float32 is computed with in float64, and stays as it is, without a copy, unless its mean is very far.
    """
    if X.dtype == np.float32:
        mean = X.mean(axis=0, dtype=np.float64)
        apart = X[:: -(-len(X) // 1000)] - mean
        if mean @ mean <= 1e6 * np.einsum("ij,ij->", apart, apart) / len(apart):
            return X
    return centre(X).astype(X.dtype, copy=False)


def dense_float64(X: Any) -> np.ndarray:
    """Return sparse or dense X as a dense float64 array."""
    return np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64)


def namespace(array: Any) -> Any:
    """Return the library that `array` belongs to, NumPy or torch: what both name alike is called from there."""
    return sys.modules["torch"] if type(array).__module__.partition(".")[0] == "torch" else np


def row_blocks(n_rows: int, entries_per_row: int, entries: int = 2**21) -> list[slice]:
    """Cut `n_rows` rows into slices of about `entries` numbers each (16 MB of float64)."""
    step = max(1, entries // max(1, entries_per_row))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def check_number(value: Any, name: str, minimum: float) -> float:
    """Return `value` as a float if it is a finite number of at least `minimum`, else raise an error that names it."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__}).")
    if not minimum <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least {minimum:g}, got {value}.")
    return float(value)


def check_n_neighbors(value: Any, name: str = "n_neighbors") -> int:
    """Return `value` if it is an integer of at least 1, else raise."""
    return check_integer(value, name, 1)


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int if it is an integer between the bounds, else raise an error that names them."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__}).")
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise ValueError(f"{name} must be {bounds}, got {value}.")
    return int(value)
