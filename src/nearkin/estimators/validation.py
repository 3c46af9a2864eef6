"""Rows, labels, targets and prior metrics as estimators take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse import issparse
from sklearn.utils import validation

from .._labels import check_shared_labels, encode_labels
from .._messages import counted, shown
from .._validation import (
    ROWS,
    canonical_csr,
    check_array,
    check_spread,
    column_or_1d,
    explained,
    first_word,
    is_missing,
    name_cells,
    refuse_foreign,
    relative_weights,
    shape_of,
    weighted_rows,
    widened,
)
from ..objectives.stochastic import PairWeights, SameClass, TargetKernel, target_bandwidth

# what to do with words and with gaps
REMEDIES = (
    "take NCAClassifier or NCARegressor, which read tables as they are, or put TableEncoder() "
    "before it in a pipeline",
    "take NCAClassifier or NCARegressor, which read tables with gaps, or put TableEncoder() or "
    "sklearn.impute.SimpleImputer() before it in a pipeline",
)


def validated(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Return X as a float array or canonical csr_array, and y if it is given, which must be valid.

    float32 is kept. The options are those of scikit-learn's `validate_data`. Errors name the
    argument and the remedy, and the location of cells that are not numbers.
    """
    reader = type(estimator).__name__
    gaps_allowed = options.get("ensure_all_finite") == "allow-nan"
    refuse_foreign(X)
    with explained("X", locate=lambda error: name_cells(X, error, gaps_allowed, reader, REMEDIES)):
        found = validation.validate_data(estimator, widened(X), y, **ROWS | options)
    return (canonical_csr(found[0]), found[1]) if isinstance(found, tuple) else canonical_csr(found)


def validate_for_fit(
    estimator: Any, X: Any, y: Any = "no_validation", **options: Any
) -> tuple[Any, Any]:
    """Return X and y for fitting: at least two rows that are not all equal."""
    found = validated(estimator, X, y, ensure_min_samples=2, **options)
    X, y = found if isinstance(found, tuple) else (found, None)
    check_spread(X)
    return X, y


def validate_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """Return the rows for fitting if `reset`, and otherwise new rows with the same features."""
    return validate_for_fit(estimator, X)[0] if reset else validated(estimator, X, reset=False)


def validate_dense_rows(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """Return X like `validate_rows`, made dense if sparse."""
    X = validate_rows(estimator, X, reset=reset)
    return X.toarray() if issparse(X) else X


def validate_foreign_rows(estimator: Any, X: Any, xp: Any) -> Any:
    """Return X like `validate_rows` without `reset`, in its own namespace and on its device."""
    with explained("X"):
        return validation.validate_data(estimator, X, reset=False, dtype=(xp.float64, xp.float32))


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
    """Return targets of a regression as float64, (n,) or, with `multi_output`, (n, q).

    Words, dates and missing targets raise an error with the remedy.
    """
    reader = type(estimator).__name__
    if y is None:
        raise ValueError(
            f"{reader} requires y to be passed, but the target y is None: call fit(X, y)."
        )
    refuse_foreign(y, "y")
    if not issparse(y) and shape_of(y, "y"):
        _refuse_unfit(np.asarray(y).ravel(), reader)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    return y if multi_output else column_or_1d(y, warn=True)


def _refuse_unfit(targets: np.ndarray, reader: str) -> None:
    """Raise a ValueError with the remedy if regression targets are words, dates or missing."""
    if targets.dtype.kind in "mM":
        raise ValueError(
            f"y holds dates or durations, and {reader} needs numbers here: give these, such as "
            "days."
        )
    word = first_word(targets)
    if word is not None:
        raise ValueError(
            f"y holds words (such as {shown(word)}), and {reader} needs numbers here: give these, "
            "or take a classifier, such as NCAClassifier, for classes."
        )
    if targets.dtype.kind in "Of" and (missing := is_missing(targets)).any():
        rows = f"{counted(missing.sum(), 'row')} (the first: {missing.argmax()})"
        raise ValueError(f"y holds NaN in {rows}: drop rows without a target.")


def validate_with_target(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, reset: bool = True
) -> tuple[Any, PairWeights]:
    """Return X and the pair weights of y, for `target` classes or numbers.

    Numbers set the bandwidth of their kernel. Rows of weight 0 are left out; the weights of the
    others are scaled to mean 1.
    """
    X, y, weights, _ = weighted_rows(X, y, sample_weight)
    weights = relative_weights(weights)
    if estimator.target == "classes":
        X, _, codes = validate_labelled_rows(estimator, X, y, reset=reset)
        check_shared_labels(codes)
        return X, SameClass(codes, weights)
    X, targets = validate_target_rows(estimator, X, y, reset=reset)
    if reset:
        estimator.target_bandwidth_ = target_bandwidth(targets)
    return X, TargetKernel(targets - np.median(targets), estimator.target_bandwidth_, weights)


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


def has_target(y: np.ndarray) -> np.ndarray:
    """Return for every row whether it has a target; for several targets, whether it has all."""
    return ~np.isnan(y.reshape(len(y), -1)).any(axis=1)


def check_targets_vary(y: np.ndarray) -> None:
    """Raise a ValueError if targets do not vary, or their squares would overflow or vanish."""
    if not len(y) or (y == y[0]).all():
        what = f"does not vary (all {y[0]!s})" if len(y) else "holds no value"
        raise ValueError(f"y {what}: at least two different targets are needed.")
    if not 1e-100 < (size := np.nanmax(np.abs(y))) < 1e100:
        raise ValueError(
            f"y holds values of up to {size:.1e}, whose square overflows or underflows: scale it "
            "first."
        )


def check_prior(prior: Any, n_coordinates: int, p: int) -> np.ndarray:
    """Return the prior metric as an array (p, p), which needs the features as coordinates."""
    must = f"prior must be a symmetric positive definite matrix of shape ({p}, {p}), got"
    if (shape := shape_of(prior, "prior")) != (p, p):
        got = f"shape {shape}" if shape else repr(prior)
        raise ValueError(f"{must} {got}.")
    M = check_array(prior, dtype=np.float64, input_name="prior")
    if np.abs(M - M.T).max() > 1e-10 * np.abs(M).max():
        raise ValueError(f"{must} one that is not symmetric: take (prior + prior.T) / 2.")
    if (smallest := eigvalsh(M)[0]) <= 0:
        raise ValueError(
            f"{must} one with the eigenvalue {smallest:.3g}: add a multiple of the identity."
        )
    if n_coordinates != p:
        raise ValueError(
            f"prior needs at least as many rows as features ({p}): reduce the features, e.g. by "
            "PCA."
        )
    return M
