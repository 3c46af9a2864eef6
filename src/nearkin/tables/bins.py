"""Tables to features in which a linear map can bend: bins of numbers, indicators of categories; and
what such a map makes of each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .._blocks import row_blocks
from .._validation import (
    CONSTANT,
    canonical,
    check_choice,
    check_integer,
    check_spread,
    validated,
)
from .columns import CYCLES, MONTHS, CategoryColumn, circular
from .encoder import TableEncoder

# Piecewise linear encoding of numbers (Gorishniy, Rubachev and Babenko, NeurIPS 2022).

_CELLS: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}


class Curve(NamedTuple):
    """What linear maps of the encoded features make of a column: functions that are linear between
    the edges.

    Attributes
    ----------
    column : int
        The column of the table, counted from 0.
    edges : ndarray of shape (T + 1,)
    values : ndarray of shape (m, T + 1)
        At the edges, 0 at the first.
    missing : ndarray of shape (m,) or None
        For a missing value, where the column held some.
    """

    column: int
    edges: np.ndarray
    values: np.ndarray
    missing: np.ndarray | None


class PiecewiseLinearEncoder(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Encode every number by how far it reaches through each bin of its column.

    The edges `b_0 < b_1 < ... < b_T` of a column make T features of it (equation 1 of [1]_),

        e_t(x) = min(max((x - b_(t-1)) / (b_t - b_(t-1)), 0), 1),    t = 1, ..., T:

    1 for the bins below x, a part for the bin of x, 0 above. A linear map of these features is any
    continuous function of x that is linear between the edges: a distance, or a logistic regression,
    after the encoding can bend. Beyond `b_0` and `b_T` the function is constant, so that an outlier
    is as far away as the last value of the training rows.

    Parameters
    ----------
    n_bins : int, default=16
        Bins of a column, at most. A column of no more than `n_bins + 1` distinct values gets an
        edge at each of them; a constant one gets no bins, and no features.
    strategy : {"quantile", "tree"}, default="quantile"
        Where the edges are: at quantiles, those that coincide taken once; or at the thresholds of a
        decision tree that predicts y from the column, with at most `n_bins` leaves of at least 1 %
        of the rows and 5 rows. It looks at y: fit it inside the folds.

    Attributes
    ----------
    edges_ : list of ndarray
        The edges of each column, ascending.
    has_missing_ : ndarray of shape (p,)
        Whether a column held missing values. It then has one more feature, 1 for a missing value,
        whose other features are 0. In a column without, a missing value of new rows is encoded as
        the median.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    ValueError
        For infinite values; and by "tree" without y.

    Notes
    -----
    Cost: O(n log n) for each column to fit, O(n T) to transform. The features of a column are 0 to
    1, whatever its unit: no scaling is needed before. The paper lets the first and last bin run on
    beyond their edges, here they stop.

    References
    ----------
    .. [1] Yury Gorishniy, Ivan Rubachev and Artem Babenko, "On Embeddings for Numerical Features in
       Tabular Deep Learning", NeurIPS 2022.

    Examples
    --------
    >>> from nearkin.tables import PiecewiseLinearEncoder
    >>> PiecewiseLinearEncoder(n_bins=2).fit_transform([[0.0], [1.0], [2.0], [4.0], [10.0]])
    array([[0.  , 0.  ],
           [0.5 , 0.  ],
           [1.  , 0.  ],
           [1.  , 0.25],
           [1.  , 1.  ]])
    """

    def __init__(self, n_bins: int = 16, *, strategy: str = "quantile") -> None:
        self.n_bins = n_bins
        self.strategy = strategy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = self.strategy == "tree"
        return tags

    def fit(self, X: Any, y: Any = None) -> PiecewiseLinearEncoder:
        """Find the edges.

        Parameters
        ----------
        X : array of shape (n, p)
            Numbers; NaN is a missing value.
        y : array of shape (n,), default=None
            Classes, or real numbers, for "tree".

        Returns
        -------
        self
        """
        check_integer(self.n_bins, "n_bins", 1)
        check_choice(self.strategy, "strategy", ("quantile", "tree"))
        X = validated(self, X, **_CELLS)
        if self.strategy == "quantile":
            y = None
        elif y is None:
            remedy = "give it, or take strategy='quantile'"
            raise ValueError(
                f"strategy='tree' requires y to be passed, but the target y is None: {remedy}."
            )
        else:
            y = column_or_1d(y)
        check_consistent_length(X, y)
        self.has_missing_ = np.isnan(X).any(axis=0)
        self.edges_, self._medians = [], np.zeros(X.shape[1])
        for j, x in enumerate(X.T.astype(np.float64)):
            known = ~np.isnan(x)
            self.edges_.append(_edges(x[known], self.n_bins, None if y is None else y[known]))
            self._medians[j] = np.median(x[known]) if known.any() else 0.0
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, those of a column beside one another, shape (n, sum of T), float32
        if X is.
        """
        check_is_fitted(self)
        X = validated(self, X, reset=False, **_CELLS)
        parts = [np.empty((len(X), 0))]
        for x, edges, own_feature, median in zip(
            X.T, self.edges_, self.has_missing_, self._medians, strict=True
        ):
            missing = np.isnan(x)
            # beside a feature of its own the first edge, if there is one
            known = np.where(missing, edges[:1].sum() if own_feature else median, x)
            with np.errstate(over="ignore"):
                parts.append(np.clip((known[:, None] - edges[:-1]) / np.diff(edges), 0, 1))
            parts += [missing[:, None]] * bool(own_feature)
        return np.concatenate(parts, axis=1, dtype=X.dtype)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names such as "age 20 to 35" and "age (missing)"."""
        check_is_fitted(self)
        names: list[str] = []
        columns = super().get_feature_names_out(input_features)
        for name, edges, own_feature in zip(columns, self.edges_, self.has_missing_, strict=True):
            names += [f"{name} {low:.6g} to {high:.6g}" for low, high in pairwise(edges)]
            names += [f"{name} (missing)"] * bool(own_feature)
        return np.array(names, dtype=object)

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as lists of numbers and truth values, which JSON can hold."""
        check_is_fitted(self)
        edges = [edges.tolist() for edges in self.edges_]
        return {
            "edges": edges,
            "missing": self.has_missing_.tolist(),
            "medians": self._medians.tolist(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], n_columns: int) -> Self:
        """Return the encoder of a state that `to_dict` wrote; raise an error where it is none of so
        many columns.
        """
        encoder = cls()
        encoder.edges_ = [np.array(edges, dtype=np.float64) for edges in state["edges"]]
        encoder.has_missing_ = np.array(state["missing"])
        encoder._medians = np.array(state["medians"], dtype=float)
        encoder.n_features_in_ = n_columns
        fits = encoder.has_missing_.dtype == bool and np.isfinite(encoder._medians).all()
        fits &= {*map(len, (encoder.edges_, encoder.has_missing_, encoder._medians))} == {n_columns}
        for edges in encoder.edges_:
            fits &= np.isfinite(edges).all() and (np.diff(edges) > 0).all()
        if not fits:
            raise ValueError("its bins")
        return encoder

    @property
    def _widths(self) -> np.ndarray:
        """Return how many features each column has."""
        return np.array([max(len(edges) - 1, 0) for edges in self.edges_]) + self.has_missing_

    def curves(self, directions: Any) -> list[Curve]:
        """Return what linear maps of the encoded features are as functions of each column.

        Parameters
        ----------
        directions : array of shape (m, n_features_out)
            Such as `components_` of a map learned after the encoding.

        Returns
        -------
        list of p Curve
            A row of numbers x_1, ..., x_p is mapped to the sum of their curves, each at its x_j.
        """
        check_is_fitted(self)
        directions = check_array(directions, dtype=np.float64, input_name="directions")
        if directions.shape[1] != self._widths.sum():
            raise ValueError(
                f"directions must have the shape (m, {self._widths.sum()}), got {directions.shape}."
            )
        curves = []
        parts = np.split(directions, np.cumsum(self._widths)[:-1], axis=1)
        for column, (part, edges, own) in enumerate(
            zip(parts, self.edges_, self.has_missing_, strict=True)
        ):
            bins = part[:, : max(len(edges) - 1, 0)]
            values = np.hstack([np.zeros((len(part), min(len(edges), 1))), np.cumsum(bins, axis=1)])
            curves.append(Curve(column, edges, values, part[:, -1] if own else None))
        return curves


def _edges(x: np.ndarray, n_bins: int, y: np.ndarray | None) -> np.ndarray:
    """Return the edges of the bins of known numbers, ascending: of a tree where y is given."""
    distinct = np.unique(x)
    if len(distinct) <= n_bins + 1:
        return distinct
    if y is None:
        return np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)))
    kind = DecisionTreeRegressor if type_of_target(y) == "continuous" else DecisionTreeClassifier
    tree = kind(
        max_leaf_nodes=max(n_bins, 2), min_samples_leaf=max(5, len(x) // 100), random_state=0
    )
    thresholds = tree.fit(x[:, None], y).tree_.threshold
    inner = thresholds[tree.tree_.feature >= 0][: n_bins - 1]
    return np.unique(np.concatenate([distinct[[0, -1]], inner]))


# Tables to features in which a linear map can bend: bins of numbers, indicators of categories.

SMALLEST = 1e-6  # deviation of a feature that varies
FARTHEST = 4.0  # standard deviations at which a standardized number ends


def is_table(X: Any) -> bool:
    """Return whether X has columns of different kinds: a data frame, or an array that holds other
    than numbers.
    """
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


Curves = dict[str, Curve | Levels]  # by the names of columns


def features_of(encoder: TableEncoder) -> list[Feature]:
    """Return what the features are that a fitted encoder makes."""
    names = getattr(encoder, "feature_names_in_", [f"x{j}" for j in range(encoder.n_features_in_)])
    place = {name: j for j, name in enumerate(names)}
    found = [
        Feature(
            name,
            place[column.name],
            name[len(column.name) + 1 :] if type(column) is CategoryColumn else None,
        )
        for column in encoder.columns_
        for name in column.names
    ]
    missing = zip(encoder.indicated_, encoder.get_feature_names_out()[len(found) :], strict=True)
    return [*found, *(Feature(name, found[at].column) for at, name in missing)]


class BinnedEncoder(TransformerMixin, BaseEstimator):
    """Encode every column of a table as a group of standardized features.

    A number becomes its place in each of its bins (`PiecewiseLinearEncoder`) and, beside them, the
    standardized number, which ends at 4 standard deviations; missing ones have a feature of their
    own. A category stays an indicator of each value, one of two. So a linear map of the features
    bends with every column. All features have the variance 1 / sqrt(k), for the k features of their
    column: many bins or values do not outweigh one feature, nor are they as weak as one.

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

    def fit(
        self, X: np.ndarray, y: Any = None, *, features: Sequence[Feature] | None = None
    ) -> BinnedEncoder:
        """Learn bins and scales.

        Parameters
        ----------
        X : array of shape (n, p)
            Numbers, NaN where one is missing.
        y : ignored
        features : sequence of p Feature, optional
            Which features are of one column, where X is an encoded table: `features_of` its
            encoder. Without them each is a number.

        Raises
        ------
        ValueError
            If X does not vary, or by so much or little that squares are lost, or `features` are not
            p.
        """
        if features is not None and len(features) != X.shape[1]:
            expected, remedy = f"the {X.shape[1]} columns of X", "take features_of(encoder)"
            raise ValueError(f"features must describe {expected}, got {len(features)}: {remedy}.")
        self._features = tuple(features or [Feature(f"x{j}", j) for j in range(X.shape[1])])
        numbers = X[:, [not feature.is_level for feature in self._features]]
        self.piecewise_ = None
        if numbers.shape[1]:
            names = [feature.name for feature in self._features if not feature.is_level]
            check_spread(numbers, names if features else (), constant=True)
            self.piecewise_ = PiecewiseLinearEncoder(self.n_bins).fit(numbers)
        self._arrange()
        bent = numbers[:, self._bent].astype(np.float64)
        self._centre, spread = np.nanmean(bent, axis=0), np.nanstd(bent, axis=0)
        # 0: the square is lost
        self._rate = np.divide(1, spread, out=np.zeros_like(spread), where=spread > 0)
        n, n_out = len(X), len(self.groups_)
        sums, squares = np.zeros(n_out), np.zeros(n_out)
        for rows in row_blocks(n, n_out):
            raw = self._raw(X[rows])
            sums, squares = sums + raw.sum(axis=0), squares + np.sum(raw * raw, axis=0)
        self._mean = sums / n
        deviation = np.sqrt(np.maximum(squares / n - self._mean**2, 0))
        width = np.bincount(self.groups_)[self.groups_] ** 0.25
        self._scale = np.zeros(n_out)
        np.divide(1.0, deviation * width, out=self._scale, where=deviation > SMALLEST)
        if not self._scale.any():
            raise ValueError(CONSTANT)
        return self

    def _arrange(self) -> None:
        """Set the order of the features: bins, then the numbers that are more than two, then the
        levels of categories, of two the first.
        """
        columns = np.array([feature.column for feature in self._features])
        is_level = np.array([feature.is_level for feature in self._features])
        n_levels = np.bincount(columns[is_level], minlength=columns.max() + 1)[columns]
        second = is_level & (n_levels == 2) & (np.diff(columns, prepend=-1) == 0)
        self._numbers, self._levels = np.flatnonzero(~is_level), np.flatnonzero(is_level & ~second)
        self.number_names_ = [self._features[j].name for j in self._numbers]
        self._bent, binned = np.empty(0, dtype=bool), np.empty(0, dtype=int)
        if self.piecewise_ is not None:
            self._bent = np.array([len(edges) > 2 for edges in self.piecewise_.edges_])
            binned = np.repeat(np.arange(len(self._bent)), self.piecewise_._widths)
        # the number that each feature is of, -1 of a level
        no_number = np.full(len(self._levels), -1)
        self._number = np.concatenate([binned, np.flatnonzero(self._bent), no_number])
        of_numbers = self._numbers[self._number[self._number >= 0]]
        self.groups_ = columns[np.concatenate([of_numbers, self._levels])]

    def _raw(self, X: np.ndarray) -> np.ndarray:
        """Return the features before they are standardized."""
        numbers = X[:, self._numbers]
        bent = np.clip((numbers[:, self._bent] - self._centre) * self._rate, -FARTHEST, FARTHEST)
        bins = (
            np.empty((len(X), 0)) if self.piecewise_ is None else self.piecewise_.transform(numbers)
        )
        return np.hstack([bins, np.nan_to_num(bent), X[:, self._levels]]).astype(np.float64)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the features, shape (n, n_features_out), float32."""
        check_is_fitted(self)
        out = np.empty((len(X), len(self.groups_)), dtype=np.float32)
        for rows in row_blocks(*out.shape):
            out[rows] = (self._raw(X[rows]) - self._mean) * self._scale
        return out

    def curves(self, directions: np.ndarray) -> Curves:
        """Return what linear maps of the features are as functions of each column.

        Parameters
        ----------
        directions : array of shape (m, n_features_out)
            Such as `components_` of a map learned after the encoding.

        Returns
        -------
        dict of str to Curve or Levels
            By the names of numbers, a `Curve`, whose edges span those of `fit`. By those of
            categories, `Levels`. None of a column without a value.
        """
        check_is_fitted(self)
        curves: Curves = {}
        piecewise: Any = self.piecewise_  # None where there are no numbers
        for number, at in enumerate(self._numbers):
            edges, own = piecewise.edges_[number], self._number == number
            if len(edges) == 0:
                continue
            if self._bent[number]:  # it also bends where the standardized number ends
                bent = np.count_nonzero(self._bent[:number])
                reach = FARTHEST / self._rate[bent] if self._rate[bent] else np.inf
                ends = self._centre[bent] + np.array([-reach, reach])
                edges = np.union1d(edges, ends[(edges[0] < ends) & (ends < edges[-1])])
            X = np.zeros((len(edges) + 1, len(self._features)))
            X[:, at] = [*edges, np.nan]
            raw = self._raw(X)[:, own]
            values = directions[:, own] @ ((raw - raw[0]) * self._scale[own]).T
            missing = values[:, -1] if piecewise.has_missing_[number] else None
            feature = self._features[at]
            curves[feature.name] = Curve(feature.column, edges, values[:, :-1], missing)
        for column in dict.fromkeys(f.column for f in self._features if f.is_level):
            own = (self._number < 0) & (self.groups_ == column)
            levels = [
                at for at, f in enumerate(self._features) if f.is_level and f.column == column
            ]
            indicators = np.equal.outer(levels, np.intersect1d(levels, self._levels))
            values = directions[:, own] @ ((indicators - self._mean[own]) * self._scale[own]).T
            names = [str(self._features[at].level) for at in levels]
            name = self._features[levels[0]].name[: -len(names[0]) - 1]
            curves[name] = Levels(column, names, values)
        return curves

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as lists of numbers and truth values, which JSON can hold."""
        check_is_fitted(self)
        bins = None if self.piecewise_ is None else self.piecewise_.to_dict()
        scales = {
            name: getattr(self, f"_{name}").tolist() for name in ("centre", "rate", "mean", "scale")
        }
        return {"n_bins": self.n_bins, "bins": bins} | scales

    @classmethod
    def from_dict(cls, state: dict[str, Any], features: Sequence[Feature]) -> Self:
        """Return the encoder of a state that `to_dict` wrote, for these features; raise an error
        where it is none.
        """
        encoder = cls(state["n_bins"])
        encoder._features = tuple(features)
        n_numbers = sum(not feature.is_level for feature in features)
        encoder.piecewise_ = None
        if n_numbers:
            encoder.piecewise_ = PiecewiseLinearEncoder.from_dict(state["bins"], n_numbers)
        encoder._arrange()
        n_bent, n_out = np.count_nonzero(encoder._bent), len(encoder.groups_)
        for name, size in (("centre", n_bent), ("rate", n_bent), ("mean", n_out), ("scale", n_out)):
            values = np.array(state[name], dtype=np.float64)
            if values.shape != (size,) or not np.isfinite(values).all():
                raise ValueError(f"its {name}")
            setattr(encoder, f"_{name}", values)
        return encoder


class SparseEncoder(StandardScaler):
    """Scale the columns of sparse rows, each of them a number, to a variance of 1; zeros stay
    zeros.

    Of a `BinnedEncoder` it has `groups_`, `fit`, `transform` and `curves`. The columns have no
    bins, and so no curves: a map of them is linear.
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

    def curves(self, directions: np.ndarray) -> Curves:
        """Return none."""
        return {}


HOURS = range(0, 24, 3)
# Of each cycle the name of its places, their names, and their days since 1970-01-01, a Thursday
PLACES = {
    "year": (
        "month",
        [month.title() for month in MONTHS],
        CYCLES["year"] * (np.arange(12) + 0.5) / 12,
    ),
    "week": (
        "day of the week",
        ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
        np.arange(4.0, 11.0),
    ),
    "day": ("time of day", [f"{hour}:00" for hour in HOURS], np.array(HOURS) / 24),
}
BEYOND = 0.1  # how far a sine may lie outside those of the rows


def with_seasons(curves: Curves) -> Curves:
    """Return curves in which the sine and the cosine of a date are one: the places of months,
    weekdays or hours.

    Those that the rows do not reach are left out, as far as the ranges of sine and cosine tell;
    where fewer than two are left, sine and cosine stay. The places are about their mean.
    """
    found = Curves()
    for name, curve in curves.items():
        column, _, cycle = name.removesuffix(", sin)").removesuffix(", cos)").rpartition(" (")
        sine, cosine = (curves.get(f"{column} ({cycle}, {part})") for part in ("sin", "cos"))
        places = _places(sine, cosine, cycle)
        if places is None:
            found[name] = curve
        else:
            found[f"{column} ({PLACES[cycle][0]})"] = places
    return found


def _places(
    sine: Curve | Levels | None, cosine: Curve | Levels | None, cycle: str
) -> Levels | None:
    """Return the places of a cycle that the rows reach; None where fewer than two are known."""
    if cycle not in PLACES or not isinstance(sine, Curve) or not isinstance(cosine, Curve):
        return None
    _, names, days = PLACES[cycle]
    parts = list(zip((sine, cosine), circular(days, cycle), strict=True))
    reached = [(one.edges[0] - BEYOND <= x) & (x <= one.edges[-1] + BEYOND) for one, x in parts]
    at = np.flatnonzero(np.all(reached, axis=0))
    if len(at) < 2:
        return None
    values = sum(
        np.array([np.interp(x[at], one.edges, row) for row in one.values]) for one, x in parts
    )
    values = values - np.mean(values, axis=1, keepdims=True)
    return Levels(sine.column, [names[j] for j in at], values, ordered=True)
