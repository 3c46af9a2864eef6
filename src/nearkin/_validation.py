"""Validation of arrays, rows and parameters: errors name the argument, its value and the remedy."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import sklearn
import sklearn.utils
from scipy.sparse import csr_array, issparse
from sklearn import get_config
from sklearn.utils import validation

from ._messages import MAX_NAME, counted, listed, shortened, shown

CONSTANT = "X does not vary: all its rows are equal, so there is no direction to learn."
ROWS: dict[str, Any] = {"accept_sparse": "csr", "dtype": (np.float64, np.float32)}

# scikit-learn's validators would silently convert these to a single NumPy array: data of a cluster
# would move into this process, data of a GPU to the host.
_REMEDIES = {
    "dask": "call .compute() on it, or on some of its rows, or take the class of nearkin.dask "
    "where there is one",
    "torch": "pass {name}.numpy(force=True); the transform of a linear map takes tensors under "
    "sklearn.config_context(array_api_dispatch=True)",
}


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
def explained(
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
    with explained(input_name, locate=lambda error: refuse_words(array, input_name)):
        return validation.check_array(array, input_name=input_name, **options)


def column_or_1d(y: Any, *, warn: bool = False) -> np.ndarray:
    """Return the result of scikit-learn's `column_or_1d`; errors name argument and remedy."""
    refuse_foreign(y, "y")
    with explained("y", "give one value per row"):
        return validation.column_or_1d(y, warn=warn)


def check_consistent_length(*arrays: Any) -> None:
    """Raise a ValueError with the remedy if arrays differ in length."""
    with explained("X", "give arrays with one row or value for each sample"):
        validation.check_consistent_length(*arrays)


def shape_of(values: Any, name: str) -> tuple[int, ...]:
    """Return the shape of an array, or of nested lists."""
    try:
        return values.shape if hasattr(values, "shape") else np.asarray(values).shape
    except ValueError as error:
        raise ValueError(
            f"{name} must be an array, got lists of several lengths: {name}[i] has to be as long "
            "for every i."
        ) from error


def as_rows(X: Any, *, missing: bool = False) -> Any:
    """Return X like `validate_rows`, without an estimator, for any number of rows.

    With `missing`, dense rows may contain NaN.
    """
    refuse_foreign(X)
    finite = "allow-nan" if missing else True
    with (
        explained("X", locate=lambda error: name_cells(X, error, missing)),
        # the check for infinite values sums all entries, and numbers near 1e308 overflow
        np.errstate(over="ignore", invalid="ignore"),
    ):
        rows = validation.check_array(widened(X), ensure_all_finite=finite, input_name="X", **ROWS)
    X = canonical_csr(rows)
    refuse_sparse_gaps(X)
    return X


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


def refuse_sparse_gaps(X: Any) -> None:
    """Raise a ValueError with the remedy if X is sparse and contains NaN."""
    if issparse(X) and np.isnan(csr_array(X).data).any():
        raise ValueError(
            "X is sparse and holds NaN: fill these cells, or pass dense rows, X.toarray()."
        )


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
            f"X varies by {size} in {where}, whose square overflows or underflows: scale the "
            "features first."
        )


def name_cells(
    X: Any,
    error: Exception,
    gaps_allowed: bool,
    reader: str = "this computation",
    remedies: tuple[str, str] = ("encode them first", "leave out these rows, or fill the gaps"),
) -> None:
    """Raise a ValueError with location and remedy if X contains words, dates or NaN.

    `reader` is what needs numbers, by name; the remedies are for words and for gaps.
    """
    found: dict[str, list[str]] = {}
    gaps = []
    for name, cells in _columns_of(X):
        if cells.dtype.kind in "mM":
            found.setdefault("dates or durations", []).append(name)
        elif (word := first_word(cells)) is not None:
            found.setdefault("words", []).append(f"{name} (such as {shown(word)})")
        if n_missing := int(np.count_nonzero(is_missing(cells))):
            gaps.append(f"{name} ({counted(n_missing, 'row')})")
    if found:
        words = " and ".join(f"{what} in {listed(names, 5)}" for what, names in found.items())
        raise ValueError(f"X holds {words}, and {reader} needs numbers: {remedies[0]}.") from error
    if gaps and not gaps_allowed:
        raise ValueError(
            f"Input X contains NaN in {listed(gaps, 5)}, and {reader} needs every cell: "
            f"{remedies[1]}."
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


def is_missing(cells: np.ndarray) -> np.ndarray:
    """Return for every cell or label whether it is missing: None, NaN, NaT or pandas' NA."""
    if cells.dtype != object:
        return cells != cells
    missing = [cell is None or type(cell).__name__ == "NAType" or cell != cell for cell in cells]
    return np.array(missing, dtype=bool)


def first_word(cells: np.ndarray) -> str | None:
    """Return the first cell that is text but not a number, or None."""
    for cell in cells.ravel().tolist() if cells.dtype.kind in "OUST" else []:
        if isinstance(cell, str):
            try:
                float(cell)
            except ValueError:
                return cell
    return None


def refuse_words(values: Any, name: str) -> None:
    """Raise a ValueError if values that must be numbers contain words."""
    word = first_word(np.asarray(values, dtype=None if hasattr(values, "dtype") else object))
    if word is not None:
        raise ValueError(f"{name} must be numbers, got words (such as {shown(word)}).")


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


def number_of_rows(X: Any) -> int:
    """Return the number of rows, at least one, of an array, list, data frame or sparse matrix."""
    if isinstance(X, (list, tuple)):
        shape: tuple[int, ...] = (len(X),)
    else:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
    if not shape:
        raise TypeError(f"X must be an array of shape (n, p), got {shown(X)}.")
    if shape[0] == 0:
        raise ValueError(f"X has 0 rows (shape {tuple(shape)}): give at least one.")
    return shape[0]


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


def weights_of(weights: np.ndarray | None, rows: Any) -> np.ndarray | None:
    """Return the weights of some rows; None if all rows weigh the same."""
    return None if weights is None else weights[rows]


def relative_weights(weights: np.ndarray | None) -> np.ndarray | None:
    """Return row weights scaled to mean 1; None if all are equal, as without weights."""
    if weights is None or (weights == weights[0]).all():
        return None
    weights = weights / weights.max()  # a sum of numbers near 1e308 would overflow
    return weights / weights.mean()


# Parameters: errors name the parameter, its value and what it may be.


def check_choice(value: Any, name: str, choices: Iterable[str]) -> None:
    """Raise a ValueError that lists the choices if `value` is none of them."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {shown(value)}.")


def check_bool(value: Any, name: str) -> None:
    """Raise a TypeError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int; raise an error unless it is an integer between the bounds."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {shown(value)} ({type(value).__name__}).")
    if not minimum <= value <= (2**63 - 1 if maximum is None else maximum):
        bounds = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        bounds += " and less than 2^63" if value >= 2**63 else ""
        raise ValueError(f"{name} must be {bounds}, got {_brief(value)}.")
    return int(value)


def check_number(value: Any, name: str, minimum: float) -> float:
    """Return `value` as a float; raise an error unless it is finite and at least `minimum`."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {shown(value)} ({type(value).__name__}).")
    number = value if isinstance(value, int) else float(value)  # float32 cannot hold the bounds
    if not max(minimum, -sys.float_info.max) <= number <= sys.float_info.max:
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


def check_random_state(seed: Any) -> np.random.RandomState:
    """Return the result of scikit-learn's `check_random_state`; errors name the remedy."""
    with explained("random_state", "give None, a number from 0 to 2^32 - 1, or a RandomState"):
        return sklearn.utils.check_random_state(seed)


def check_estimator(value: Any, name: str, kind: type = object) -> None:
    """Raise a TypeError unless `value` is an estimator, of this kind; a class is none."""
    is_estimator = all(hasattr(value, method) for method in ("fit", "get_params"))
    if isinstance(value, type) or not (is_estimator and isinstance(value, kind)):
        such_as = "" if kind is object else f" such as {kind.__name__}()"
        remedy = f": did you mean {value.__name__}()?" if isinstance(value, type) else "."
        raise TypeError(f"{name} must be an estimator{such_as}, got {shown(value)}{remedy}")


def equals(value: Any, word: str) -> bool:
    """Return whether a parameter is this word; `==` would compare the elements of an array."""
    return isinstance(value, str) and value == word


def _brief(value: Any) -> str:
    return shortened(str(value), MAX_NAME)


# Arrays of torch, CuPy and other libraries under scikit-learn's array_api_dispatch: they are mapped
# on their device; learned arrays are copied there once.

# For every estimator and attribute: the learned array, and its copies by namespace, device and
# dtype. They are neither pickled nor cloned, and copies of an array are dropped after a new fit.
_COPIES: WeakKeyDictionary[Any, dict[str, tuple[np.ndarray, dict[tuple, Any]]]] = (
    WeakKeyDictionary()
)


def foreign_namespace(X: Any) -> Any:
    """Return the array namespace in which scikit-learn would compute on X, or None.

    It is None for NumPy, for objects that are not arrays (sparse matrices, data frames, lists), and
    without `array_api_dispatch`.
    """
    is_foreign = hasattr(X, "__dlpack__") and not isinstance(X, (np.ndarray, np.generic))
    if not (is_foreign and get_config()["array_api_dispatch"]):
        return None
    try:
        return _namespace_and_device(X)[0]
    except TypeError:  # an array of pyarrow
        return None


def _namespace_and_device(X: Any) -> tuple[Any, Any]:
    """Return the array namespace in which scikit-learn would compute on X, and the device of X."""
    try:  # a private name, which a release may change
        from sklearn.utils._array_api import get_namespace_and_device
    except ImportError as error:
        raise ImportError(
            f"nearkin does not know the `array_api_dispatch` of scikit-learn {sklearn.__version__}:"
            " turn it off, and pass NumPy arrays."
        ) from error
    xp, _, device = get_namespace_and_device(X)
    return xp, device


def moved(estimator: Any, name: str, X: Any) -> Any:
    """Return a learned array in the namespace and dtype of X, on its device.

    Parameters
    ----------
    estimator : fitted estimator
    name : str
        The attribute that holds the array.
    X : array that has a `foreign_namespace`
    """
    learned = getattr(estimator, name)
    xp, device = _namespace_and_device(X)
    source, copies = _COPIES.setdefault(estimator, {}).get(name, (None, {}))
    if source is not learned:
        copies = {}
        _COPIES[estimator][name] = learned, copies
    place = xp.__name__, str(device), str(X.dtype)
    if place not in copies:
        # copied because torch warns about read-only arrays
        copies[place] = xp.asarray(np.array(learned), dtype=X.dtype, device=device)
    return copies[place]
