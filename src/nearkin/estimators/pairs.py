"""Validation of pairs, triplets and quadruplets, given as rows or as row indices, with weights."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._validation import (
    CONSTANT,
    check_array,
    check_weights,
    column_or_1d,
    number_of_rows,
    refuse_foreign,
    rows_of,
    shape_of,
)
from .validation import validate_for_fit

NO_PAIR_DIFFERS = (
    "No pair differs: the two rows of each are equal, so there is no direction to learn."
)


def validate_pairs(pairs: Any, p: int | None = None) -> np.ndarray:
    """Return pairs of rows, stacked as a float array of shape (n_pairs, 2, p)."""
    return validate_tuples(pairs, "pairs", 2, p)


def validate_tuples(tuples: Any, name: str, width: int, p: int | None = None) -> np.ndarray:
    """Return pairs, triplets or quadruplets of rows as a float array of shape (n, width, p)."""
    refuse_foreign(tuples, name)
    shape = shape_of(tuples, name)
    if len(shape) > 1 and shape[0]:
        tuples = check_array(
            tuples,
            dtype=(np.float64, np.float32),
            allow_nd=True,
            ensure_2d=False,
            ensure_all_finite="allow-nan",
            input_name=name,
        )
        gaps = np.isnan(tuples).reshape(len(tuples), -1).any(axis=1)
        if gaps.any():
            raise ValueError(
                f"{name} hold NaN in {gaps.sum()} of {len(gaps)} (the first: number "
                f"{gaps.argmax()}, counted from 0): leave these out, or fill the gaps of the rows "
                "first."
            )
    if len(shape) != 3 or not shape[0] or shape[1] != width or p not in (None, shape[2]):
        remedy = f"np.stack([{', '.join('UVWT'[:width])}], axis=1)"
        if shape[1:] == (width,):
            remedy += f", or, for numbers of rows, X[{name}]"
        rows = {2: "two", 3: "three", 4: "four"}[width]
        raise ValueError(
            f"{name} must have the shape (n_{name}, {width}, {p or 'p'}), got {shape}: stack the "
            f"{rows} rows of each, e.g. {remedy}."
        )
    return tuples


class GivenPairs(NamedTuple):
    """Similar and dissimilar pairs of rows with weights, the input of `fit_pairs`.

    Attributes
    ----------
    X : array or csr_array of shape (n, p)
    numbers : int ndarray of shape (n_pairs, 2)
        Indices of rows of X.
    similar : ndarray of shape (n_pairs,)
        Booleans, at least one of which is True.
    weights : ndarray of shape (n_pairs,)
        Greater than 0.
    stacked : bool
        Whether X holds the rows of the pairs one after the other, instead of rows given by the
        user.
    """

    X: Any
    numbers: np.ndarray
    similar: np.ndarray
    weights: np.ndarray
    stacked: bool

    def merged(self) -> GivenPairs:
        """Return the same pairs, with equal rows merged if they are stacked."""
        if not self.stacked:
            return self
        X, numbers = distinct_rows(self.X[self.numbers])
        return self._replace(X=X, numbers=numbers)


def validate_given_pairs(
    estimator: Any, pairs: Any, y: Any, X: Any = None, weights: Any = None
) -> GivenPairs:
    """Return pairs for fitting, given as rows (n_pairs, 2, p) or, with X, as row indices.

    Indices have shape (n_pairs, 2). y is 1 for similar pairs and -1 for others; without y, all
    pairs are similar. Pairs of weight 0 are left out.
    """
    stacked = X is None
    if stacked:
        pairs = validate_pairs(pairs)
    else:
        refuse_foreign(X)
        pairs = check_row_numbers(pairs, "pairs", 2, number_of_rows(X))
    n_pairs = len(pairs)
    similar = np.ones(n_pairs, dtype=bool) if y is None else check_pair_labels(y, n_pairs)
    weights = check_pair_weights(weights, n_pairs)
    kept = weights > 0
    pairs, similar, weights = pairs[kept], similar[kept], weights[kept]
    if stacked:
        X = pairs.reshape(-1, pairs.shape[2])
        pairs = np.arange(len(X)).reshape(-1, 2)
    X, _ = validate_for_fit(estimator, X, reset=True)
    if not similar.any():
        raise ValueError("y marks no pair as similar (1): there is nothing to learn from.")
    return GivenPairs(X, pairs, similar, weights, stacked)


def validate_comparisons(
    estimator: Any, tuples: Any, name: str, X: Any = None, weights: Any = None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows for fitting, quadruplets (n, 4) of their indices, and weights.

    `name` is "triplets" or "quadruplets", given as rows or, with X, as indices of its rows. A
    triplet (a, b, c) becomes (a, b, a, c). Comparisons of weight 0 are left out, and so are rows
    that occur in no other comparison.
    """
    width = {"triplets": 3, "quadruplets": 4}[name]
    if X is None:
        tuples = validate_tuples(tuples, name, width)
    else:
        refuse_foreign(X)
        tuples = _row_numbers(tuples, name, width, number_of_rows(X))
        _refuse_idle(tuples, name)
    weights = check_pair_weights(weights, len(tuples))
    tuples, weights = tuples[weights > 0], weights[weights > 0]
    if X is None:
        X, numbers = distinct_rows(tuples)
        if len(X) == 1:
            raise ValueError(CONSTANT)
    else:
        rows, numbers = np.unique(tuples, return_inverse=True)
        numbers = numbers.reshape(tuples.shape)
        X = rows_of(X, rows)
    X, _ = validate_for_fit(estimator, X, reset=True)
    return X, numbers if width == 4 else numbers[:, [0, 1, 0, 2]], weights


def _refuse_idle(numbers: np.ndarray, name: str) -> None:
    """Raise a ValueError if a row is compared with itself, or a pair with the same pair."""
    if name == "triplets":
        _refuse_repeats(numbers, name)
        return
    for pair in (numbers[:, :2], numbers[:, 2:]):
        _refuse_repeats(pair, f"the pairs (a, b) and (c, d) of {name}")
    same = (np.sort(numbers[:, :2], axis=1) == np.sort(numbers[:, 2:], axis=1)).all(axis=1)
    if same.any():
        raise ValueError(
            f"{name} must compare two pairs, number {same.argmax()} (counted from 0) has the same "
            "one twice."
        )


def unstacked(X: Any, numbers: Any, y: Any, name: str, width: int) -> tuple[Any, Any, Any]:
    """Return rows, the row indices of each pair or triplet, and y.

    If X is (n, width, p), it holds the rows of the pairs or triplets. Equal rows are then merged,
    and y may take the place of `numbers`. Any other X is returned unchanged.
    """
    if len(shape_of(X, "X")) != 3:
        return X, numbers, y
    if numbers is not None and (y is not None or name == "triplets"):
        raise ValueError(
            f"X holds the rows of {name}, of shape {np.shape(X)}, so {name} must be None: give "
            f"them, or rows X of shape (n, p) and {name} that are numbers of these."
        )
    rows, of_each = distinct_rows(validate_tuples(X, name, width))
    if (repeat := _first_repeat(of_each)) is not None:
        raise ValueError(
            f"{name} must be of different rows, number {repeat[0]} (counted from 0) has equal "
            "ones: leave it out."
        )
    return rows, of_each, numbers if y is None else y


def check_pair_labels(y: Any, n_pairs: int) -> np.ndarray:
    """Return which pairs are similar: those whose y is 1, not -1."""
    y = column_or_1d(y)
    if y.shape != (n_pairs,) or not np.isin(y, (-1, 1)).all():
        is_binary = (y == 0).any() and np.isin(y, (0, 1)).all()
        remedy = ": take np.where(y, 1, -1)" if is_binary else ""
        raise ValueError(
            f"y must be 1 (similar) or -1 (dissimilar) for each of {n_pairs} pairs; got "
            f"{len(y)} values, among them {', '.join(map(str, np.unique(y)[:3]))}{remedy}."
        )
    return y == 1


def check_pairs(pairs: Any, n: int) -> np.ndarray:
    """Return pairs (n_pairs, 2) of indices of n rows; None pairs each row with the next one."""
    if pairs is None:
        return np.column_stack([np.arange(n - 1), np.arange(1, n)])
    return check_row_numbers(pairs, "pairs", 2, n)


def check_row_numbers(numbers: Any, name: str, width: int, n: int) -> np.ndarray:
    """Return pairs (n_pairs, 2) or triplets (n_triplets, 3) of distinct indices of n rows."""
    numbers = _row_numbers(numbers, name, width, n)
    _refuse_repeats(numbers, name)
    return numbers


def _row_numbers(numbers: Any, name: str, width: int, n: int) -> np.ndarray:
    """Return integers of shape (n_numbers, width), each from 0 to n - 1."""
    refuse_foreign(numbers, name)
    shape = shape_of(numbers, name)
    numbers = np.asarray(numbers)
    if shape[1:] != (width,) or not len(numbers) or numbers.dtype.kind not in "iu":
        remedy = ""
        if numbers.ndim == 3 and shape[1] == width:
            remedy = f"; of stacked rows X is {name}.reshape(-1, p), and these are 0, 1, ..."
        elif shape[1:] == (width,) and numbers.dtype.kind == "f":
            remedy = f"; take {name}.astype(int)"
        raise ValueError(
            f"{name} must be numbers of rows of X, integers of shape (n_{name}, {width}), got "
            f"{numbers.dtype} of {shape}{remedy}."
        )
    if numbers.min() < 0 or numbers.max() >= n:
        found = f"{numbers.min()} to {numbers.max()}"
        raise ValueError(f"{name} must hold numbers of rows, 0 to {n - 1}, got {found}.")
    return numbers


def _refuse_repeats(numbers: np.ndarray, name: str) -> None:
    """Raise a ValueError if the rows of a pair or triplet are not all different."""
    if (repeat := _first_repeat(numbers)) is not None:
        at, row = repeat
        raise ValueError(
            f"{name} must be of different rows, number {at} (counted from 0) has row {row} twice."
        )


def _first_repeat(numbers: np.ndarray) -> tuple[int, int] | None:
    """Return the index of the first pair or triplet with a row twice, and that row, or None."""
    ordered = np.sort(numbers, axis=1)
    twice = ordered[:, 1:] == ordered[:, :-1]
    if not twice.any():
        return None
    at = int(twice.any(axis=1).argmax())
    return at, ordered[at, 1:][twice[at]][0]


def check_pair_weights(weights: Any, n_pairs: int, name: str = "weights") -> np.ndarray:
    """Return the weights of pairs, (n_pairs,), scaled to maximum 1; None gives equal weights."""
    if weights is None:
        return np.ones(n_pairs)
    weights = check_weights(weights, n_pairs, name)
    return weights / weights.max()  # a sum of numbers near 1e308 would overflow


def distinct_rows(tuples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of pairs, triplets or quadruplets, and the row indices of each."""
    rows = tuples.reshape(-1, tuples.shape[2])
    # Merge equal rows by their bytes first: sorting all rows would be slow if most of them occur
    # in many tuples.
    codes: dict[bytes, int] = {}
    numbers = np.array([codes.setdefault(row.tobytes(), len(codes)) for row in rows])
    some = np.unique(numbers, return_index=True)[1]
    X, order = np.unique(rows[some], axis=0, return_inverse=True)
    return X, order.ravel()[numbers].reshape(tuples.shape[:2])
