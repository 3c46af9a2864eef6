"""Validation and conversion of labels, rows, targets, graphs and parameters."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn.utils
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets

from ._array_api import foreign_namespace
from ._messages import MAX_NAME, counted, listed, shortened, shown

LABELS = "give one label per row, a whole number or text"
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
    with _explained("y", LABELS):
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
        with _explained("y", LABELS):
            y = np.array(y.tolist())
    beyond = y.dtype == object and all(isinstance(label, int) for label in y)
    if beyond or (y.dtype.kind == "f" and np.isfinite(y).all() and (np.abs(y) >= 2**63).any()):
        raise ValueError(
            "y holds numbers that 64 bits cannot tell apart, of 2^63 or more: give labels as text, "
            "e.g. [str(label) for label in y]."
        )

    def refuse_real_numbers(error: Exception) -> None:
        if y.dtype.kind == "f" and np.isfinite(y).all():
            example = shown(float(y[y != np.rint(y)][0]))
            raise ValueError(
                f"Unknown label type: continuous. y holds real numbers, such as {example}, and no "
                "classes: take a regressor, such as NCARegressor, or cut them into classes."
            ) from error

    # without warnings: infinite labels raise an error, and many small classes may be intended
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes")
        with _explained("y", LABELS, refuse_real_numbers):
            check_classification_targets(y)
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


def encode_groups(groups: Any) -> np.ndarray:
    """Return the code 0, 1, ... of the group of every row, (n,)."""
    groups = column_or_1d(groups)
    if is_missing(groups).any():
        raise ValueError(
            "groups has missing values: give every row a group, if need be one of its own."
        )
    with _explained("groups", "give all groups one type, e.g. groups.astype(str)"):
        return np.unique(groups, return_inverse=True)[1]


def refuse_foreign(array: Any, name: str = "X") -> None:
    """Raise an error with the remedy for arrays that would be converted silently.

    These are Dask collections, torch tensors, arrays on which scikit-learn would compute in their
    own namespace, and masked arrays, whose masks would be dropped.
    """
    is_masked = isinstance(array, np.ma.MaskedArray)
    if is_masked and (n_masked := int(np.count_nonzero(array.mask))):
        raise ValueError(
            f"{name} is a masked array that hides {n_masked} of {array.size} values: leave out "
            f"their rows, or, where missing values are accepted, take {name}.filled(np.nan)."
        )
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


# The remedy for what scikit-learn or NumPy say of an array, by a part of it.
_REMEDY_FOR = {
    "with dim": "give one row for each sample, e.g. {name}.reshape(len({name}), -1)",
    "Expected 2D": "Reshape your data, with {name}.reshape(-1, 1) if it has a single feature, or "
    "{name}.reshape(1, -1) if it is a single row",
    "0 feature(s)": "give at least one feature",
    "sample(s)": "give more rows",
    "Complex data": "take {name}.real, for example",
    "infinity": "leave out the rows of these values, or scale them",
    "too large": "leave out the rows of these values, or scale them",
    "contains NaN": "leave out the rows of these values, or fill the gaps",
    "features, but": "give the features that were passed to fit, in that order",
    "names should match": "give the columns that were passed to fit, in that order",
    "inconsistent numbers of samples": "X and y need one row or value for each sample",
    "1d array": "give one value per row, e.g. {name}[:, 0]",
    "requires y": "call fit(X, y)",
}
_OWN_REMEDY = re.compile("Use |Please |Pass |If you |Convert ")


@contextmanager
def _explained(
    name: str,
    remedy: str = "give an array of numbers",
    locate: Callable[[Exception], None] = lambda error: None,
) -> Iterator[None]:
    """Let errors of scikit-learn and NumPy name the argument and the remedy, `remedy` by default.

    `locate` may raise a better one. Some of their messages print the array, which is left out.
    """
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        locate(error)
        text = re.sub(r":?\n(array=|[^\w\s])[\s\S]*", "", str(error)).strip().rstrip(".")
        found = next((known for part, known in _REMEDY_FOR.items() if part in text), remedy)
        text = text if re.search(rf"\b{name}\b", text) else f"{name}: {text}"
        if found is not remedy or not _OWN_REMEDY.search(text):
            text = f"{text}: {found.format(name=name)}"
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{text}.") from error


def check_array(array: Any, *, input_name: str = "X", **options: Any) -> Any:
    """Return the result of scikit-learn's `check_array`; errors name argument and remedy."""
    refuse_foreign(array, input_name)
    with _explained(input_name, locate=lambda error: refuse_words(array, input_name)):
        return validation.check_array(array, input_name=input_name, **options)


def column_or_1d(y: Any, name: str = "y", *, warn: bool = False) -> np.ndarray:
    """Return the result of scikit-learn's `column_or_1d`; errors name argument and remedy."""
    refuse_foreign(y, name)
    with _explained(name, "give one value per row"):
        return validation.column_or_1d(y, warn=warn)


def check_consistent_length(*arrays: Any) -> None:
    """Raise a ValueError with the remedy if arrays differ in length."""
    with _explained("X", "give arrays with one row or value for each sample"):
        validation.check_consistent_length(*arrays)


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return the result of scikit-learn's `validate_data`; y, if given, must be valid.

    Errors name the argument and the remedy, and the location of cells that are not numbers.
    """
    refuse_foreign(X)
    refuse_no_rows(X)
    reader = type(estimator).__name__
    gaps_allowed = options.get("ensure_all_finite") == "allow-nan"
    with _explained("X", locate=lambda error: _name_cells(X, reader, error, gaps_allowed)):
        return validation.validate_data(estimator, widened(X), y, **options)


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
        return values.shape if hasattr(values, "shape") else np.asarray(values).shape
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array, got lists of several lengths: {name}[i] has to be as long "
            "for every i."
        ) from error


def refuse_words(values: Any, name: str) -> None:
    """Raise a ValueError if values that must be numbers contain words."""
    word = _first_word(np.asarray(values, dtype=None if hasattr(values, "dtype") else object))
    if word is not None:
        raise ValueError(f"{name} must be numbers, got words (such as {shown(word)}).")


def refuse_unfit_targets(y: Any, estimator: Any) -> None:
    """Raise a ValueError with the remedy if regression targets are words, dates or missing."""
    refuse_foreign(y, "y")
    if issparse(y) or not shape_of(y, "y"):
        return  # `check_array` says what is wrong
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
    with _explained("X"):
        return validation.validate_data(estimator, X, reset=False, dtype=(xp.float64, xp.float32))


def weighted_rows(
    X: Any, y: Any, sample_weight: Any
) -> tuple[Any, Any, np.ndarray | None, np.ndarray]:
    """Return the rows and targets of nonzero weight, their weights, and their row indices.

    A row of weight 0 is treated as absent, so `fit` calls this before any other validation. Without
    weights all rows are kept, and the weights are None.
    """
    refuse_foreign(X)
    refuse_no_rows(X)
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
    must = f"{name} must be {n} numbers of at least 0, not all zero; got"
    if shape != (n,):
        raise ValueError(f"{must} shape {shape}.")
    weights = check_array(weights, ensure_2d=False, dtype=np.float64, input_name=name)
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
    y = real_targets(estimator, y, multi_output=multi_output)
    X, y = validate_for_fit(estimator, X, y, reset=reset, multi_output=multi_output)
    check_targets_vary(y)
    return X, y


def real_targets(estimator: Any, y: Any, *, multi_output: bool = False) -> np.ndarray:
    """Return targets of a regression as float64, (n,) or, with `multi_output`, (n, q)."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None: call "
            "fit(X, y)."
        )
    refuse_unfit_targets(y, estimator)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return y if multi_output else column_or_1d(y, warn=True)


def validate_partial_target_rows(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return X for fitting (see `validate_rows`), and real-valued float64 targets.

    Targets have shape (n,) or (n, q). NaN means no target; the other values must vary.
    """
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
    with (
        _explained("X", locate=lambda error: _name_cells(X, "this computation", error, missing)),
        # the check for infinite values sums all entries, and numbers near 1e308 overflow
        np.errstate(over="ignore", invalid="ignore"),
    ):
        rows = validation.check_array(widened(X), ensure_all_finite=finite, input_name="X", **_ROWS)
    X = canonical_csr(rows)
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
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {shown(value)}.")


def equals(value: Any, word: str) -> bool:
    """Return whether a parameter is this word; `==` would compare the elements of an array."""
    return isinstance(value, str) and value == word


def check_bool(value: Any, name: str) -> None:
    """Raise a TypeError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")


def check_estimator(value: Any, name: str, kind: type = object) -> None:
    """Raise a TypeError unless `value` is an estimator, of this kind; a class is none."""
    is_estimator = all(hasattr(value, method) for method in ("fit", "get_params"))
    if isinstance(value, type) or not (is_estimator and isinstance(value, kind)):
        such_as = "" if kind is object else f" such as {kind.__name__}()"
        remedy = f": did you mean {value.__name__}()?" if isinstance(value, type) else "."
        raise TypeError(f"{name} must be an estimator{such_as}, got {shown(value)}{remedy}")


def check_random_state(seed: Any) -> np.random.RandomState:
    """Return the result of scikit-learn's `check_random_state`; errors name the remedy."""
    with _explained("random_state", "give None, a number from 0 to 2^32 - 1, or a RandomState"):
        return sklearn.utils.check_random_state(seed)


def check_number(value: Any, name: str, minimum: float) -> float:
    """Return `value` as a float; raise an error unless it is finite and at least `minimum`."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {shown(value)} ({type(value).__name__}).")
    if not max(minimum, -sys.float_info.max) <= value <= sys.float_info.max:
        least = f" of at least {minimum:g}" if np.isfinite(minimum) else ""
        raise ValueError(f"{name} must be a finite number{least}, got {_brief(value)}.")
    return float(value)


def check_positive(value: Any, name: str, *, or_infinite: bool = False) -> float:
    """Return `value` as a float; raise an error unless it is finite and greater than 0."""
    if or_infinite and isinstance(value, (float, np.floating)) and value == np.inf:
        return np.inf
    if check_number(value, name, -np.inf) <= 0:
        raise ValueError(f"{name} must be larger than 0, got {value}.")
    return float(value)


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int; raise an error unless it is an integer between the bounds."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {shown(value)} ({type(value).__name__}).")
    if not minimum <= value <= (2**63 - 1 if maximum is None else maximum):
        bounds = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        bounds += " and less than 2^63" if value >= 2**63 else ""
        raise ValueError(f"{name} must be {bounds}, got {_brief(value)}.")
    return int(value)


def _brief(value: Any) -> str:
    return shortened(str(value), MAX_NAME)
