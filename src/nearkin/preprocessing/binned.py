"""Tables to features in which a linear map can bend: bins of numbers, indicators of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._validation import CONSTANT, canonical, check_spread, check_squares
from .columns import CategoryColumn
from .piecewise import Curve, PiecewiseLinearEncoder
from .table import TableEncoder

SMALLEST = 1e-6  # deviation of a feature that varies
FARTHEST = 4.0  # standard deviations at which a standardized number ends


def is_table(X: Any) -> bool:
    """Return whether X has columns of different kinds: a data frame, or an array that holds other than numbers."""
    if hasattr(X, "to_pandas") or (hasattr(X, "iloc") and hasattr(X, "columns")):
        return True
    return not issparse(X) and np.asarray(X).dtype.kind not in "biufc"


class Feature(NamedTuple):
    """What a feature of encoded rows is.

    Attributes
    ----------
    name : str
    column : int
        The column of the table that it is of, counted from 0.
    level : str or None
        The value of a category that a row has, or has not: 1 or 0; None for a number.
    """

    name: str
    column: int
    level: str | None = None

    @property
    def is_level(self) -> bool:
        """Say whether it indicates the value of a category."""
        return self.level is not None


class Levels(NamedTuple):
    """Where linear maps of the encoded features put the values of a category.

    Attributes
    ----------
    column : int
        The column of the table, counted from 0.
    names : list of str
        The values, and "(missing)" where cells were missing.
    values : ndarray of shape (m, number of values)
        About their mean over the training rows.
    ordered : bool
        Whether the values have an order of their own, as months do.
    """

    column: int
    names: list[str]
    values: np.ndarray
    ordered: bool = False


def features_of(encoder: TableEncoder) -> list[Feature]:
    """Return what the features are that a fitted encoder makes."""
    names = getattr(encoder, "feature_names_in_", [f"x{j}" for j in range(encoder.n_features_in_)])
    place = {name: j for j, name in enumerate(names)}
    found = [
        Feature(name, place[column.name], name[len(column.name) + 1 :] if type(column) is CategoryColumn else None)
        for column in encoder.columns_
        for name in column.names
    ]
    missing = zip(encoder.indicated_, encoder.get_feature_names_out()[len(found) :], strict=True)
    return [*found, *(Feature(name, found[at].column) for at, name in missing)]


class BinnedEncoder(TransformerMixin, BaseEstimator):
    """Encode every column of a table as a group of standardized features.

    A number becomes its place in each of its bins (`PiecewiseLinearEncoder`) and, beside them, the standardized number,
    which ends at 4 standard deviations; missing ones have a feature of their own. A category stays an indicator of each
    value, one of two. So a linear map of the features bends with every column. All features have the variance
    1 / sqrt(k), for the k features of their column: many bins or values do not outweigh one feature, nor are they as
    weak as one.

    Parameters
    ----------
    n_bins : int, default=8
        See `PiecewiseLinearEncoder`.

    Attributes
    ----------
    groups_ : ndarray of shape (n_features_out,)
        The column of the table, counted from 0, that each feature is of.
    number_names_ : list of str
        What the numbers are called: as a `TableEncoder` calls them, or "x0", "x1", ...
    piecewise_ : PiecewiseLinearEncoder or None
        Of the numbers, if there are any.

    Notes
    -----
    Cost: O(n log n) for each number to fit, O(n) for each feature to transform.
    """

    def __init__(self, n_bins: int = 8) -> None:
        self.n_bins = n_bins

    def fit(self, X: np.ndarray, y: Any = None, *, features: Sequence[Feature] | None = None) -> BinnedEncoder:
        """Learn bins and scales.

        Parameters
        ----------
        X : array of shape (n, p)
            Numbers, NaN where one is missing.
        y : ignored
        features : sequence of p Feature, optional
            Which features are of one column, where X is an encoded table: `features_of` its encoder. Without them each
            is a number.

        Raises
        ------
        ValueError
            If X does not vary, or by so much or little that squares are lost, or `features` are not p.
        """
        if features is not None and len(features) != X.shape[1]:
            expected, remedy = f"the {X.shape[1]} columns of X", "take features_of(encoder)"
            raise ValueError(f"features must describe {expected}, got {len(features)}: {remedy}.")
        self._read_features(features or [Feature(f"x{j}", j) for j in range(X.shape[1])])
        numbers = X[:, self._numbers]
        if numbers.shape[1]:
            check_squares(numbers, self.number_names_ if features else ())
        self.piecewise_ = PiecewiseLinearEncoder(self.n_bins).fit(numbers) if numbers.shape[1] else None
        self._arrange()
        bent = numbers[:, self._bent].astype(np.float64)
        self._centre, spread = np.nanmean(bent, axis=0), np.nanstd(bent, axis=0)
        self._rate = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)  # 0: the square is lost
        self._standardize(X)
        if not self._scale.any():
            raise ValueError(CONSTANT)
        return self

    def _read_features(self, features: Sequence[Feature]) -> None:
        """Find numbers, and the levels of categories, of two the first."""
        self._features = tuple(features)
        self._columns, is_level = np.array([f.column for f in features]), np.array([f.is_level for f in features])
        n_levels = np.bincount(self._columns[is_level], minlength=self._columns.max() + 1)[self._columns]
        second = is_level & (n_levels == 2) & (np.diff(self._columns, prepend=-1) == 0)
        self._numbers, self._levels = np.flatnonzero(~is_level), np.flatnonzero(is_level & ~second)
        self.number_names_ = [feature.name for feature in features if not feature.is_level]

    def _arrange(self) -> None:
        """Set the order of the features: bins, then the numbers that are more than two, then levels."""
        edges, widths = list[np.ndarray](), np.empty(0, dtype=int)
        if self.piecewise_ is not None:
            edges = self.piecewise_.edges_
            widths = np.array([max(len(e) - 1, 0) for e in edges]) + self.piecewise_.has_missing_
        self._bent = np.array([len(e) > 2 for e in edges], dtype=bool)
        self._number = np.concatenate(
            [np.repeat(np.arange(len(edges)), widths), np.flatnonzero(self._bent), np.full(len(self._levels), -1)]
        )
        of_numbers = self._numbers[self._number[self._number >= 0]]
        self.groups_ = self._columns[np.concatenate([of_numbers, self._levels])]

    def _standardize(self, X: np.ndarray) -> None:
        """Learn means and scales of the features."""
        n, sums, squares = len(X), np.zeros(len(self.groups_)), np.zeros(len(self.groups_))
        for rows in row_blocks(n, len(self.groups_)):
            raw = self._raw(X[rows])
            sums, squares = sums + raw.sum(axis=0), squares + np.sum(raw * raw, axis=0)
        self._mean = sums / n
        deviation = np.sqrt(np.maximum(squares / n - self._mean**2, 0))
        width = np.bincount(self.groups_)[self.groups_] ** 0.25
        self._scale = np.divide(1.0, deviation * width, out=np.zeros_like(deviation), where=deviation > SMALLEST)

    def _raw(self, X: np.ndarray) -> np.ndarray:
        """Return the features before they are standardized."""
        numbers = X[:, self._numbers]
        bent = np.clip((numbers[:, self._bent] - self._centre) * self._rate, -FARTHEST, FARTHEST)
        bins = np.empty((len(X), 0)) if self.piecewise_ is None else self.piecewise_.transform(numbers)
        return np.hstack([bins, np.nan_to_num(bent), X[:, self._levels]]).astype(np.float64)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the features, shape (n, n_features_out), float32."""
        check_is_fitted(self)
        out = np.empty((len(X), len(self.groups_)), dtype=np.float32)
        for rows in row_blocks(*out.shape):
            out[rows] = (self._raw(X[rows]) - self._mean) * self._scale
        return out

    def curves(self, directions: np.ndarray) -> dict[str, Curve | Levels]:
        """Return what linear maps of the features are as functions of each column.

        Parameters
        ----------
        directions : array of shape (m, n_features_out)
            Such as `components_` of a map learned after the encoding.

        Returns
        -------
        dict of str to Curve or Levels
            By the names of numbers, a `Curve`, whose edges span those of `fit`. By those of categories, `Levels`. None
            of a column without a value.
        """
        check_is_fitted(self)
        curves: dict[str, Curve | Levels] = {
            name: self._curve(number, directions)
            for number, name in enumerate(self.number_names_)
            if len(self.piecewise_.edges_[number])  # type: ignore[union-attr]
        }
        categories = dict.fromkeys(feature.column for feature in self._features if feature.is_level)
        return curves | dict(self._levels_of(column, directions) for column in categories)

    def _levels_of(self, column: int, directions: np.ndarray) -> tuple[str, Levels]:
        """Return the name of a category, and where its values lie."""
        at = [at for at, feature in enumerate(self._features) if feature.is_level and feature.column == column]
        own = (self._number < 0) & (self.groups_ == column)
        indicators = np.equal.outer(at, np.intersect1d(at, self._levels))
        values = directions[:, own] @ ((indicators - self._mean[own]) * self._scale[own]).T
        names = [str(self._features[j].level) for j in at]
        return self._features[at[0]].name[: -len(names[0]) - 1], Levels(column, names, values)

    def _curve(self, number: int, directions: np.ndarray) -> Curve:
        """Return the function of one number: it bends at the edges, and between where the standardized one ends."""
        edges, own = self.piecewise_.edges_[number], self._number == number  # type: ignore[union-attr]
        if self._bent[number]:
            at = np.count_nonzero(self._bent[:number])
            reach = FARTHEST / self._rate[at] if self._rate[at] else np.inf
            ends = self._centre[at] + np.array([-reach, reach])
            edges = np.union1d(edges, ends[(edges[0] < ends) & (ends < edges[-1])])
        X = np.zeros((len(edges) + 1, 1 + max([*self._numbers, *self._levels])))
        X[:, self._numbers[number]] = [*edges, np.nan]
        raw = self._raw(X)[:, own]
        values = directions[:, own] @ ((raw - raw[0]) * self._scale[own]).T
        missing = self.piecewise_.has_missing_[number]  # type: ignore[union-attr]
        column = int(self._columns[self._numbers[number]])
        return Curve(column, edges, values[:, :-1], values[:, -1] if missing else None)

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as lists of numbers and truth values, which JSON can hold."""
        check_is_fitted(self)
        bins = None if self.piecewise_ is None else self.piecewise_.to_dict()
        scales = {name: getattr(self, f"_{name}").tolist() for name in ("centre", "rate", "mean", "scale")}
        return {"n_bins": self.n_bins, "bins": bins} | scales

    @classmethod
    def from_dict(cls, state: dict[str, Any], features: Sequence[Feature]) -> Self:
        """Return the encoder of a state that `to_dict` wrote, for these features; raise an error where it is none."""
        encoder = cls(state["n_bins"])
        encoder._read_features(features)
        n_numbers = len(encoder._numbers)
        encoder.piecewise_ = PiecewiseLinearEncoder.from_dict(state["bins"], n_numbers) if n_numbers else None
        encoder._arrange()
        n_bent, n_out = np.count_nonzero(encoder._bent), len(encoder.groups_)
        for name, size in (("centre", n_bent), ("rate", n_bent), ("mean", n_out), ("scale", n_out)):
            values = np.array(state[name], dtype=np.float64)
            if values.shape != (size,) or not np.isfinite(values).all():
                raise ValueError(f"its {name}")
            setattr(encoder, f"_{name}", values)
        return encoder


class SparseEncoder(StandardScaler):
    """Scale the columns of sparse rows, each of them a number, to a variance of 1; zeros stay zeros.

    It has the attributes and methods of a `BinnedEncoder`. The columns have no bins, and so no curves: a map of them is
    linear.
    """

    def __init__(self) -> None:
        super().__init__(with_mean=False)

    def fit(self, X: Any, y: Any = None) -> SparseEncoder:
        """Learn the scales."""
        check_spread(X)
        self.groups_ = np.arange(X.shape[1])
        return super().fit(X)

    def transform(self, X: Any) -> Any:
        """Return the features, sparse if X is, float32."""
        return canonical(super().transform(X).astype(np.float32))

    def curves(self, directions: np.ndarray) -> dict[str, Curve | Levels]:
        """Return none."""
        return {}
