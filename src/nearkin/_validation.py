"""Validation and conversion of labels, rows, targets, graphs and parameters."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from ._array_api import foreign_namespace
from ._messages import counted, listed, shown

WHOLE = re.compile(r"^([+-]?\d+)\.0*$")  # a whole number, written with decimals


def has_target(y: np.ndarray) -> np.ndarray:
    """Return for every row whether it has a target; for several targets, whether it has all."""
    return ~np.isnan(y.reshape(len(y), -1)).any(axis=1)


def encode_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of `y`, and the class code of every row.

    Raises
    ------
    ValueError
        If labels are missing (None, NaN), mix strings and numbers, are real numbers, or form a
        single class.
    """
    y = column_or_1d(y, warn=True)
    missing = is_missing(y)
    if missing.any():
        raise ValueError(
            f"y has no label in {counted(missing.sum(), 'row')} (first: row {missing.argmax()}): "
            "drop them."
        )
    classes, codes = _distinct(y)
    require_two_classes(classes)
    return classes, codes


def encode_partial_labels(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `encode_labels`, with code -1 for unlabelled rows (-1, None or NaN).

    The string "-1" is a class. A single class, or none, is accepted.
    """
    y = column_or_1d(y, warn=True)
    known = ~is_missing(y)
    known[known] = y[known] != -1
    classes, positions = _distinct(y[known])
    codes = np.full(len(y), -1)
    codes[known] = positions
    return classes, codes


def require_two_classes(classes: np.ndarray) -> None:
    """Raise a ValueError if there are fewer than two classes."""
    if len(classes) < 2:
        held = f"one class ({shown(classes[0].item())})" if len(classes) else "no label"
        raise ValueError(f"y holds {held}: at least two classes are needed.")


def check_shared_labels(codes: np.ndarray) -> None:
    """Raise a ValueError if every class 0, 1, ... has a single row."""
    if codes.max() + 1 == len(codes):
        raise ValueError(
            "y gives no two rows the same label, every class has a single row: merge some classes."
        )


def known_labels(y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the labels of labelled rows.

    Numbers and booleans stored as objects because of missing labels are converted to a plain dtype.
    """
    y = y[rows]
    return y if y.dtype != object or len(y) == 0 or isinstance(y[0], str) else np.array(y.tolist())


def merged_labels(y: np.ndarray) -> tuple[np.ndarray, dict[str, list[str]]]:
    """Return labels with merged spellings, and the spellings that were merged.

    Text is stripped, "1.0" becomes "1", and blank text becomes None. The second result has the
    spellings of each label that has several, e.g. {"yes": ["yes", "yes "]}. If some labels are
    text, all become text; otherwise labels stay unchanged.
    """
    known = np.flatnonzero(~is_missing(y))
    if not any(isinstance(label, str) for label in y[known].tolist()):
        return y, {}
    texts, codes = np.unique(y[known].astype(str), return_inverse=True)
    labels = [WHOLE.sub(r"\1", text.strip()) or None for text in texts.tolist()]
    merged = np.full(len(y), None, dtype=object)
    merged[known] = np.array(labels, dtype=object)[codes]
    spellings: dict[str, list[str]] = {}
    for label, text in zip(labels, texts.tolist(), strict=True):
        spellings.setdefault(label or "", []).append(text)
    several = {label: found for label, found in spellings.items() if label and len(found) > 1}
    return merged if None in labels or len(known) < len(y) else merged.astype(str), several


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes of labels without missing values, and the code of each label.

    Values that are not class labels raise an error.
    """
    if y.dtype == object:
        if len({isinstance(label, str) for label in y}) > 1:
            raise ValueError(
                "y mixes strings with other labels: give all labels one type, e.g. y.astype(str)."
            )
        y = np.array(y.tolist())
    # without warnings: infinite labels raise an error, and many small classes may be intended
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")
        try:
            check_classification_targets(y)
        except ValueError as error:
            if y.dtype.kind != "f" or not np.isfinite(y).all():
                raise
            example = shown(float(y[y != np.rint(y)][0]))
            raise ValueError(
                f"Unknown label type: continuous. y holds real numbers, such as {example}, and no "
                "classes: take a regressor, such as NCARegressor, or cut them into classes."
            ) from error
    return np.unique(y, return_inverse=True)


def is_missing(labels: np.ndarray) -> np.ndarray:
    """Return for every label whether it is missing: None, NaN, NaT or pandas' NA."""
    if labels.dtype != object:
        return labels != labels
    missing = [
        label is None or type(label).__name__ == "NAType" or label != label for label in labels
    ]
    return np.array(missing, dtype=bool)


# scikit-learn's validators would silently convert these to a single NumPy array: data of a cluster
# would move into this process, data of a GPU to the host.
_REMEDIES = {
    "dask": "call .compute() on it, or on some of its rows, or take the class of nearkin.dask "
    "where there is one",
    "torch": "pass {name}.numpy(force=True); the transform of a linear map takes tensors under "
    "sklearn.config_context(array_api_dispatch=True)",
}

# Estimators for tables that are not numeric matrices.
_TABLES = "NCAClassifier or NCARegressor"

CONSTANT = "X does not vary: all its rows are equal, so there is no direction to learn."
_ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}


def refuse_foreign(array: Any, name: str = "X") -> None:
    """Raise a TypeError with the remedy for foreign arrays.

    These are Dask collections, torch tensors, and arrays on which scikit-learn would compute in
    their own namespace.
    """
    library = type(array).__module__.partition(".")[0]
    remedy = _REMEDIES.get(library)
    if remedy is None and foreign_namespace(array) is not None:
        remedy = "convert it; the transform of a linear map takes it as it is"
    if remedy is not None:
        raise TypeError(
            f"{name} is a {library} {type(array).__name__}; nearkin computes on NumPy arrays and "
            f"SciPy sparse matrices and does not convert it silently: {remedy.format(name=name)}."
        )


def refuse_no_rows(X: Any) -> None:
    """Raise a ValueError if X has no rows."""
    shape = getattr(X, "shape", (len(X),) if isinstance(X, list) else None)
    if shape is not None and len(shape) and shape[0] == 0:
        raise ValueError(f"X has 0 rows (shape {tuple(shape)}): give at least one.")


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the result of scikit-learn's `validate_data`.

    Foreign arrays raise an error with the remedy, and so do cells that are not numbers, with their
    location.
    """
    refuse_foreign(X)
    refuse_no_rows(X)
    try:
        return validate_data(estimator, widened(X), y, **options)
    except (ValueError, TypeError) as error:
        gaps_allowed = options.get("ensure_all_finite") == "allow-nan"
        _name_cells(X, type(estimator).__name__, error, gaps_allowed)
        raise


def _name_cells(X: Any, reader: str, error: Exception, gaps_allowed: bool) -> None:
    """Raise a ValueError with location and remedy if X contains words, dates or NaN.

    `reader` is the name of what needs numbers, usually an estimator.
    """
    found: dict[str, list[str]] = {}
    gaps = []
    for name, cells in _columns_of(X):
        if cells.dtype.kind in "mM":
            found.setdefault("dates or durations", []).append(name)
        elif (word := _first_word(cells)) is not None:
            found.setdefault("words", []).append(f"{name} (such as {shown(word)})")
        if n_missing := int(np.count_nonzero(is_missing(cells))):
            gaps.append(f"{name} ({counted(n_missing, 'row')})")
    if found:
        words = " and ".join(f"{what} in {listed(names, 5)}" for what, names in found.items())
        raise ValueError(
            f"X holds {words}, and {reader} needs numbers: take {_TABLES}, which read tables as "
            "they are, or put TableEncoder() before it in a pipeline."
        ) from error
    if gaps and not gaps_allowed:
        raise ValueError(
            f"Input X contains NaN in {listed(gaps, 5)}, and {reader} needs every cell: take "
            f"{_TABLES}, which read tables with gaps, or put TableEncoder() or "
            "sklearn.impute.SimpleImputer() before it in a pipeline."
        ) from error


def _columns_of(X: Any) -> list[tuple[str, np.ndarray]]:
    """Return the columns of a data frame or an array with their names; empty for anything else."""
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return [(shown(str(name)), np.asarray(X.iloc[:, at])) for at, name in enumerate(X.columns)]
    if not (isinstance(X, np.ndarray) and X.dtype.kind in "biuf"):
        try:
            X = np.array(X, dtype=object)  # a sparse matrix becomes 0-dimensional
        except ValueError:  # rows of different lengths
            return []
    columns = enumerate(X.T) if X.ndim == 2 else ()
    return [(f"column {at} (counted from 0)", column) for at, column in columns]


def _first_word(cells: np.ndarray) -> str | None:
    """Return the first cell that is text but not a number, or None."""
    for cell in cells.ravel().tolist() if cells.dtype.kind in "OUST" else []:
        if isinstance(cell, str):
            try:
                float(cell)
            except ValueError:
                return cell
    return None


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array, or of nested lists."""
    try:
        return np.shape(values)
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array, got lists of several lengths: {name}[i] has to be as long "
            "for every i."
        ) from error


def as_numbers(values: Any, name: str, **options: Any) -> np.ndarray:
    """Return an array of numbers of any dimension, like scikit-learn's `check_array`."""
    try:
        return check_array(values, allow_nd=True, ensure_2d=False, input_name=name, **options)
    except ValueError:
        refuse_words(values, name)
        raise


def refuse_words(values: Any, name: str) -> None:
    """Raise a ValueError if values that must be numbers contain words."""
    word = _first_word(np.asarray(values))
    if word is not None:
        raise ValueError(f"{name} must be numbers, got words (such as {shown(word)}).")


def refuse_unfit_targets(y: Any, estimator: Any) -> None:
    """Raise a ValueError with the remedy if regression targets are words, dates or missing."""
    if y is None:  # raises an error elsewhere if y is required
        return
    refuse_foreign(y, "y")
    cells = np.asarray(y).ravel()
    reader = type(estimator).__name__
    if cells.dtype.kind in "mM":
        raise ValueError(
            f"y holds dates or durations, and {reader} needs numbers here: give these, such as "
            "days."
        )
    word = _first_word(cells)
    if word is not None:
        raise ValueError(
            f"y holds words (such as {shown(word)}), and {reader} needs numbers here: give these, "
            "or take a classifier, such as NCAClassifier, for classes."
        )
    if cells.dtype.kind in "Of" and (missing := is_missing(cells)).any():
        rows = f"{counted(missing.sum(), 'row')} (the first: {missing.argmax()})"
        raise ValueError(f"y holds NaN in {rows}: drop rows without a target.")


def validate_for_fit(
    estimator: Any, X: Any, y: Any = "no_validation", **options: Any
) -> tuple[Any, Any]:
    """Return X and y for fitting: at least two rows that are not all equal."""
    found = validated(estimator, X, y, ensure_min_samples=2, **_ROWS, **options)
    X, y = found if isinstance(found, tuple) else (found, None)
    X = canonical_csr(X)
    check_spread(X)
    return X, y


def validate_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return X as a float array or canonical csr_array; float32 is kept.

    `reset` is that of scikit-learn's `validate_data`. Fitting (`reset=True`) requires at least two
    rows that are not all equal.
    """
    if reset:
        return validate_for_fit(estimator, X)[0]
    return canonical_csr(validated(estimator, X, reset=False, **_ROWS))


def validate_foreign_rows(estimator: Any, X: Any, xp: Any) -> Any:
    """Return X like `validate_rows` without `reset`, in its own namespace and on its device."""
    return validate_data(estimator, X, reset=False, dtype=(xp.float64, xp.float32))


def weighted_rows(
    X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Any, np.ndarray | None, np.ndarray]:
    """Return the rows and targets of nonzero weight, their weights, and their row indices.

    A row of weight 0 is treated as absent, so `fit` calls this before any other validation. Without
    weights all rows are kept, and the weights are None.
    """
    refuse_foreign(X)
    n = number_of_rows(X)
    if sample_weight is None:
        return X, y, None, np.arange(n)
    check_consistent_length(X, y)
    weights = check_weights(sample_weight, n, "sample_weight")
    kept = np.flatnonzero(weights)
    if len(kept) < len(weights):
        X = rows_of(X, kept)
        y = None if y is None else rows_of(y, kept)
    return X, y, weights[kept], kept


def check_weights(weights: Any, n: int, name: str) -> np.ndarray:
    """Return the weights of rows or pairs, (n,), as float64."""
    shape = shape_of(weights, name)
    must = f"{name} must be {n} numbers of at least 0, not all 0; got"
    if shape != (n,):
        raise ValueError(f"{must} shape {shape}.")
    weights = as_numbers(weights, name, dtype=np.float64)
    if weights.min() < 0 or not weights.any():
        raise ValueError(f"{must} {weights.min():g} to {weights.max():g}.")
    return weights


def number_of_rows(X: Any) -> int:
    """Return the number of rows of an array, list, data frame or sparse matrix."""
    if isinstance(X, (list, tuple)):
        return len(X)
    X = X if hasattr(X, "shape") else np.asarray(X)
    if not X.shape:
        raise TypeError(f"X must be an array of shape (n, p), got {shown(X)}.")
    return X.shape[0]


def rows_of(X: Any, numbers: np.ndarray) -> Any:
    """Return rows of an array, list, data frame or sparse matrix, or labels, by index."""
    if issparse(X):  # of any format; most cannot be indexed
        return csr_array(X)[numbers]
    if isinstance(X, (list, tuple)):
        return [X[number] for number in numbers]
    is_frame = hasattr(X, "to_pandas") and hasattr(X, "columns")  # from polars or pyarrow
    X = X.to_pandas() if is_frame else X
    if hasattr(X, "iloc"):
        return X.iloc[numbers]
    return (X if hasattr(X, "shape") else np.asarray(X))[numbers]


def relative_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Return row weights scaled to mean 1; None if all are equal, as without weights."""
    if weights is None or (weights == weights[0]).all():
        return None
    weights = weights / weights.max()  # a sum of numbers near 1e308 would overflow
    return weights / weights.mean()


def validate_dense_rows(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """Return X like `validate_rows`, made dense if sparse."""
    X = validate_rows(estimator, X, reset=reset)
    return X.toarray() if issparse(X) else X


def validate_labelled_rows(
    estimator: Any,
    X: Any,
    y: Any,
    encode: Callable[[Any], tuple[np.ndarray, np.ndarray]] = encode_labels,
    *,
    reset: bool = True,
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X for fitting (see `validate_rows`), the classes, and class codes by `encode`.

    Without y, if the estimator does not require it, all codes are -1. Without `reset`, the features
    must be those of the last fit.
    """
    refuse_no_rows(X)
    # first, since validate_data fails on pandas' NA
    classes, codes = (np.empty(0), None) if y is None else encode(y)
    X, codes = validate_for_fit(estimator, X, codes, reset=reset)
    return X, classes, np.full(X.shape[0], -1) if codes is None else codes


def validate_target_rows(
    estimator: Any, X: Any, y: Any, *, reset: bool = True, multi_output: bool = False
) -> tuple[Any, np.ndarray]:
    """Return X for fitting (see `validate_rows`), and real-valued targets as float64."""
    refuse_unfit_targets(y, estimator)
    X, y = validate_for_fit(estimator, X, y, reset=reset, y_numeric=True, multi_output=multi_output)
    y = np.asarray(y, dtype=np.float64)
    check_targets_vary(y)
    return X, y


def validate_partial_target_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return X for fitting (see `validate_rows`), and real-valued float64 targets.

    Targets have shape (n,) or (n, q). NaN means no target; the other values must vary.
    """
    refuse_foreign(y, "y")
    if y is not None:
        y = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
    numbers = None if y is None else np.arange(len(y))  # in place of y, which may not be finite
    X, _ = validate_for_fit(estimator, X, numbers)
    check_targets_vary(y[has_target(y)])
    return X, y


def check_targets_vary(y: np.ndarray) -> None:
    """Raise a ValueError if targets do not vary, or their squares would overflow or vanish."""
    if not len(y) or (y == y[0]).all():
        what = f"does not vary (all {y[0]!s})" if len(y) else "holds no value"
        raise ValueError(f"y {what}: at least two different targets are needed.")
    if not 1e-100 < (size := np.nanmax(np.abs(y))) < 1e100:
        raise ValueError(
            f"y holds values of up to {size:.1e}, whose square is lost: scale it first."
        )


def as_rows(X: Any, *, missing: bool = False) -> Any:
    """Return X like `validate_rows`, without an estimator, for any number of rows.

    With `missing`, dense rows may contain NaN.
    """
    refuse_foreign(X)
    finite = "allow-nan" if missing else True
    try:
        # the check for infinite values sums all entries, and numbers near 1e308 overflow
        with np.errstate(over="ignore", invalid="ignore"):
            X = canonical_csr(check_array(widened(X), ensure_all_finite=finite, **_ROWS))
    except (ValueError, TypeError) as error:
        _name_cells(X, "this computation", error, missing)
        raise
    refuse_sparse_gaps(X)
    return X


def refuse_sparse_gaps(X: Any) -> None:
    """Raise a ValueError with the remedy if X is sparse and contains NaN."""
    if issparse(X) and np.isnan(csr_array(X).data).any():
        raise ValueError(
            "X is sparse and holds NaN: fill these cells, or pass dense rows, X.toarray()."
        )


def validate_affinity(
    affinity: Any, n: int, *, name: str = "affinity", signed: bool = False
) -> csr_array:
    """Return a given graph as a canonical float64 csr_array without its diagonal.

    Raises
    ------
    TypeError
        If it is a Dask collection, a torch tensor or another foreign array.
    ValueError
        If it is not a finite symmetric n x n matrix, has negative weights without `signed`, or
        weights whose squares overflow or vanish.
    """
    W = _weights(affinity, name, (n, n), "a weight for every pair of rows of X")
    W = canonical_csr(csr_array(W - diags_array(W.diagonal())))
    W.eliminate_zeros()
    largest = abs(W).max() if W.nnz else 1.0
    if not 1e-150 < largest < 1e150:
        raise ValueError(
            f"{name} holds weights of up to {largest:.1e}, whose square is lost: scale it first."
        )
    if W.nnz and abs(W - W.T).max() > 1e-10 * largest:
        raise ValueError(
            f"{name} must be symmetric: take nearkin.graphs.union({name}), for example."
        )
    if not signed and W.min() < 0:
        raise ValueError(f"{name} must not be negative (smallest weight: {W.min():.3g}).")
    return W


def validate_edges(affinity: Any, n_new: int, n: int) -> csr_array:
    """Return the given weights of edges from new rows to training rows as a float64 csr_array."""
    what = f"the weights of {n_new} new rows to {n} training rows"
    W = _weights(affinity, "affinity", (n_new, n), what)
    if W.nnz and W.min() < 0:
        raise ValueError(
            f"affinity must not be negative (smallest weight: {W.min():.3g}) on edges of new rows."
        )
    return canonical_csr(W)


def _weights(W: Any, name: str, shape: tuple[int, int], what: str) -> csr_array:
    refuse_foreign(W, name)
    refuse_words(W, name)
    W = check_array(W, accept_sparse="csr", dtype=np.float64, input_name=name)
    if W.shape != shape:
        raise ValueError(f"{name} must be of shape {shape}, {what}; got {W.shape}.")
    return csr_array(W)


def widened(X: Any) -> Any:
    """Return rows in float16 as float32, and others unchanged."""
    return X.astype(np.float32) if isinstance(X, np.ndarray) and X.dtype == np.float16 else X


def canonical_csr(X: Any) -> Any:
    """Return sparse X as a csr_array with sorted entries without duplicates; dense X unchanged."""
    if not issparse(X):
        return X
    X = csr_array(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def check_spread(X: Any, names: Sequence[str] = (), *, constant: bool = False) -> None:
    """Raise a ValueError that names a feature whose squares would underflow or overflow.

    X must also vary, unless it may be `constant`.
    """
    if issparse(X):
        largest, smallest = X.max(axis=0).toarray().ravel(), X.min(axis=0).toarray().ravel()
    else:
        largest, smallest = np.fmax.reduce(X), np.fmin.reduce(X)  # ignores NaN, i.e. missing values
    with np.errstate(over="ignore"):
        spreads = np.nan_to_num(largest - smallest, posinf=np.inf)
        length = np.linalg.norm(spreads.astype(np.float64))  # squares are summed over features
    at = int(spreads.argmax())
    spread = spreads[at]
    if spread == 0:
        if not constant:
            raise ValueError(CONSTANT)
        return
    most = 1e18 if X.dtype == np.float32 else 1e100
    if spread <= 1 / most or not length < most:
        size = f"{spread:.1e}" if np.isfinite(spread) else f"more than {np.finfo(X.dtype).max:.1e}"
        where = shown(names[at]) if len(names) else f"feature {at} (counted from 0)"
        raise ValueError(
            f"X varies by {size} in {where}, whose square is lost: scale the features first."
        )


def check_choice(value: Any, name: str, choices: Iterable[str]) -> None:
    """Raise a ValueError that lists the choices if `value` is none of them."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")


def check_number(value: Any, name: str, minimum: float) -> float:
    """Return `value` as a float; raise an error unless it is finite and at least `minimum`."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r} ({type(value).__name__}).")
    if not (minimum <= value < np.inf and np.isfinite(value)):
        least = f" of at least {minimum:g}" if np.isfinite(minimum) else ""
        raise ValueError(f"{name} must be a finite number{least}, got {value}.")
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """Return `value` as a float; raise an error unless it is finite and greater than 0."""
    if check_number(value, name, -np.inf) <= 0:
        raise ValueError(f"{name} must be larger than 0, got {value}.")
    return float(value)


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int; raise an error unless it is an integer between the bounds."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {value!r} ({type(value).__name__}).")
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        raise ValueError(f"{name} must be {bounds}, got {value}.")
    return int(value)
