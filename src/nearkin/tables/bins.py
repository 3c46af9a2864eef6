"""Features in which a linear map can bend: bins of numbers and indicators of categories.

The map is then a function of each column, a `Curve` or `Levels`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._validation import (
    CONSTANT,
    canonical_csr,
    check_spread,
    shape_of,
)
from .columns import CYCLES, MONTHS, WORDS, Feature, circular, of_text, places_by_column
from .encoder import TableEncoder

# Piecewise linear encoding of numbers (Gorishniy, Rubachev and Babenko: On Embeddings for Numerical
# Features in Tabular Deep Learning, NeurIPS 2022).


class Curve(NamedTuple):
    """Linear maps of the encoded features as functions of a column, linear between edges.

    Attributes
    ----------
    column : int
        The index of the column in the table.
    edges : ndarray of shape (T + 1,)
    values : ndarray of shape (m, T + 1)
        The functions at the edges, 0 at the first.
    missing : ndarray of shape (m,) or None
        Their values for a missing cell; None if the column had none.
    cycle : {"year", "week", "day"} or None
        The circle, for the sine or the cosine of a date.
    """

    column: int
    edges: np.ndarray
    values: np.ndarray
    missing: np.ndarray | None
    cycle: str | None = None


class Bins(NamedTuple):
    """The bins of a column of numbers, and the encoding of missing values.

    The ascending edges `b_0 < b_1 < ... < b_T` define T features (Gorishniy et al., equation 1),

        e_t(x) = min(max((x - b_(t-1)) / (b_t - b_(t-1)), 0), 1),    t = 1, ..., T:

    1 for the bins below x, a fraction for the bin of x, 0 above. A linear map of these features can
    be any continuous function of x that is linear between the edges. Beyond `b_0` and `b_T` it is
    constant, so an outlier is no farther away than the extreme training rows. (In the paper the
    first and last bins extend beyond their edges.)

    Attributes
    ----------
    edges : ndarray of shape (T + 1,)
        Quantiles, without duplicates; all values, if there are at most T + 1. A constant has one
        edge and no features.
    has_missing : bool
        Whether values were missing. They then have a feature of their own, while the others are 0;
        else a missing value counts as the median.
    median : float
    """

    edges: np.ndarray
    has_missing: bool
    median: float

    @classmethod
    def learn(cls, x: np.ndarray, n_bins: int) -> Self:
        """Return at most `n_bins` bins of numbers, in O(n log n)."""
        known = ~np.isnan(x)
        has_missing, x = not known.all(), x[known]
        edges = np.unique(x)
        if len(edges) > n_bins + 1:
            edges = np.unique(np.quantile(x, np.linspace(0, 1, n_bins + 1)))
        return cls(edges, has_missing, np.median(x) if len(x) else 0.0)

    @property
    def width(self) -> int:
        """Return the number of features."""
        return max(len(self.edges) - 1, 0) + self.has_missing

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the features of numbers, (n, width)."""
        missing = np.isnan(x)
        # at the first edge, if there is one, all bins are 0
        known = np.where(missing, self.edges[:1].sum() if self.has_missing else self.median, x)
        with np.errstate(over="ignore"):
            bins = np.clip((known[:, None] - self.edges[:-1]) / np.diff(self.edges), 0, 1)
        parts = [bins, missing[:, None]] if self.has_missing else [bins]
        return np.concatenate(parts, axis=1, dtype=x.dtype)


# Whole tables: every column becomes a block of features.

NO_WORD = "(no word)"

SMALLEST = 1e-6  # deviation up to which a feature counts as constant
FARTHEST = 4.0  # where a standardized number is clipped, in standard deviations


def is_table(X: Any) -> bool:
    """Return whether X is a data frame, or an array of anything but numbers."""
    if hasattr(X, "to_pandas") or (hasattr(X, "iloc") and hasattr(X, "columns")):
        return True
    shape_of(X, "X")  # refuses rows of several lengths
    return not issparse(X) and np.asarray(X).dtype.kind not in "biufc"


class Levels(NamedTuple):
    """Where linear maps of the encoded features place the values of a category.

    Attributes
    ----------
    column : int
        The index of the column in the table.
    names : list of str
        The values, and "(missing)" if cells were missing. For words beside numbers, they end with
        "(no word)".
    values : ndarray of shape (m, number of values)
        Centred at their mean over the training rows; from `with_seasons`, at their plain mean.
    ordered : bool
        Whether the values have a natural order, like months.
    """

    column: int
    names: list[str]
    values: np.ndarray
    ordered: bool = False


Curves = dict[str, Curve | Levels]  # by the names of columns


def features_of(encoder: TableEncoder) -> list[Feature]:
    """Return the features that a fitted encoder makes."""
    names = getattr(encoder, "feature_names_in_", [f"x{j}" for j in range(encoder.n_features_in_)])
    place = {name: j for j, name in enumerate(names)}
    found = [
        feature._replace(column=place[column.name])
        for column in encoder.columns_
        for feature in column.features
    ]
    missing = zip(encoder.indicated_, encoder.get_feature_names_out()[len(found) :], strict=True)
    return [*found, *(Feature(name, found[at].column) for at, name in missing)]


def text_as_one_number(
    X: np.ndarray, features: Sequence[Feature] | None, scale: bool
) -> tuple[np.ndarray, bool]:
    """Return rows, and whether they are to be scaled, in which a text counts like a number.

    With `scale`, features have variance 1, and those of each text the sum 1: in a search of twins,
    the hundreds of features of a text would else make all other differences small. Features beyond
    the given ones are those of missing cells. Without text, nothing changes.
    """
    texts = places_by_column(features or (), of_text)
    if not (scale and texts):
        return X, scale
    X = StandardScaler().fit_transform(X)
    for places in texts:
        X[:, places] /= len(places) ** 0.5
    return X, False


# A block encodes one column, before standardization. It reads the columns `at` of the encoded
# table, and its features are at `places` among those of all blocks.


@dataclass
class NumberBlock:
    """A number: its position in each of its bins and, if it has more than two edges, itself.

    The number itself is standardized and clipped at 4 standard deviations.
    """

    name: str
    column: int  # of the table
    at: int
    bins: Bins
    cycle: str | None
    places: list[int] = field(default_factory=list)
    centre: float = 0.0
    rate: float = 0.0  # 1 over the standard deviation; 0 if that is 0, perhaps by underflow

    @property
    def is_standardized(self) -> bool:
        """Return whether the standardized number is a feature, too."""
        return len(self.bins.edges) > 2

    def learn(self, x: np.ndarray) -> None:
        """Learn the centre and the rate."""
        x = x.astype(np.float64)
        spread = np.nanstd(x)
        self.centre, self.rate = np.nanmean(x), 1 / spread if spread > 0 else 0.0

    def transform(self, x: np.ndarray) -> np.ndarray:
        """Return the features."""
        bins = self.bins.transform(x)
        if not self.is_standardized:
            return bins
        z = np.clip((x.astype(np.float64) - self.centre) * self.rate, -FARTHEST, FARTHEST)
        return np.column_stack([bins, np.nan_to_num(z)])

    def curve(self, directions: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> Curve | None:
        """Return directions as functions of the number, or None if no value was known."""
        edges = self.bins.edges
        if len(edges) == 0:
            return None
        if self.is_standardized:  # it also bends where the standardized number is clipped
            reach = FARTHEST / self.rate if self.rate else np.inf
            ends = self.centre + np.array([-reach, reach])
            edges = np.union1d(edges, ends[(edges[0] < ends) & (ends < edges[-1])])
        raw = self.transform(np.append(edges, np.nan))
        values = directions @ ((raw - raw[0]) * scale).T
        missing = values[:, -1] if self.bins.has_missing else None
        return Curve(self.column, edges, values[:, :-1], missing, self.cycle)


@dataclass
class ValuesBlock:
    """A category or a text.

    A category has an indicator of each value, or of the first alone if there are just two. Words
    beside numbers or dates each have one, since most rows have none of them. The words of a text
    are numbers, with one scale for all of them.
    """

    name: str
    column: int
    is_beside: bool
    is_text: bool
    of_many: bool
    at: list[int] = field(default_factory=list)
    levels: list[Any] = field(default_factory=list)
    places: list[int] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Return the number of features."""
        alone = len(self.at) == 2 and not (self.is_beside or self.is_text or self.of_many)
        return 1 if alone else len(self.at)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Return the features."""
        return X[:, : self.width]

    def curve(self, directions: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> Levels | None:
        """Return where directions place the values, or None for words, which have no order."""
        if self.is_text:
            return None
        scaled = directions * scale
        names = [*self.levels, NO_WORD] if self.is_beside else self.levels
        # the last of two values has no indicator, and neither has a cell without a word
        alone = np.zeros((len(scaled), len(names) - self.width))
        values = np.hstack([scaled, alone]) - scaled @ mean[:, None]
        return Levels(self.column, names, values)


class BinnedEncoder(TransformerMixin, BaseEstimator):
    """Encode every column of a table as a group of standardized features.

    A number becomes its position in each of its bins (`Bins`) and, unless there is only one bin,
    itself, standardized and clipped at 4; missing numbers have a feature of their
    own. A category becomes an indicator of each value, or a single indicator if it has two values;
    words beside numbers become an indicator of each.
    A linear map of the features can thus bend along every column. Each feature is scaled to the
    variance 1 / sqrt(k), where k is the number of features of its column, so that many bins or
    values neither outweigh a single feature nor count as little as one. The words of a text, which
    are numbers of one unit, have one scale, with which their variances sum to 1.

    Parameters
    ----------
    n_bins : int, default=8
        Maximum number of bins of a number.

    Attributes
    ----------
    groups_ : ndarray of shape (n_features_out,)
        For each feature, the index of its column in the table.
    number_names_ : list of str
        The names of the numbers, from a `TableEncoder`, or "x0", "x1", ...
    bins_ : list of Bins
        Those of the numbers.

    Notes
    -----
    Cost: O(n log n) to fit each number, O(n) to transform each feature.
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
            Numbers; NaN for missing values.
        y : ignored
        features : sequence of p Feature, optional
            For an encoded table, the result of `features_of` for the encoder: it says which
            features belong to the same column. Without it, each feature is a number.

        Raises
        ------
        ValueError
            If X does not vary, or varies so much or so little that squares overflow or vanish, or
            if there are not p `features`.
        """
        if features is not None and len(features) != X.shape[1]:
            expected, remedy = f"the {X.shape[1]} columns of X", "take features_of(encoder)"
            raise ValueError(f"features must describe {expected}, got {len(features)}: {remedy}.")
        named = features is not None
        features = features or [Feature(f"x{j}", j) for j in range(X.shape[1])]
        of_numbers = [j for j, feature in enumerate(features) if feature.is_number]
        self.number_names_ = [features[j].name for j in of_numbers]
        if of_numbers:
            check_spread(X[:, of_numbers], self.number_names_ if named else (), constant=True)
        self.bins_ = [Bins.learn(X[:, j].astype(np.float64), self.n_bins) for j in of_numbers]
        self._set_blocks(features)
        for block in self._standardized:
            block.learn(X[:, block.at])
        n, n_out = len(X), len(self.groups_)
        sums, squares = np.zeros(n_out), np.zeros(n_out)
        for rows in row_blocks(n, n_out):
            raw = self._raw(X[rows])
            sums, squares = sums + raw.sum(axis=0), squares + np.sum(raw * raw, axis=0)
        self._mean = sums / n
        deviation = np.sqrt(np.maximum(squares / n - self._mean**2, 0))
        width = np.bincount(self.groups_)[self.groups_] ** 0.25
        # with the variances of other columns, words outweigh numbers: the errors of prices of flats
        # and homes were larger in four splits of four
        for text in self._texts:
            deviation[text.places] = np.sqrt(np.sum(deviation[text.places] ** 2))
            width[text.places] = 1.0
        self._scale = np.zeros(n_out)
        np.divide(1.0, deviation * width, out=self._scale, where=deviation > SMALLEST)
        if not self._scale.any():
            raise ValueError(CONSTANT)
        return self

    def _set_blocks(self, features: Sequence[Feature]) -> None:
        """Set the blocks and the places of their features.

        Bins come first, then the standardized numbers, the values of categories, and words.
        """
        bins = iter(self.bins_)
        read = {feature.column for feature in features if feature.is_number}
        numbers, others = list[NumberBlock](), dict[tuple[bool, int], ValuesBlock]()
        for at, feature in enumerate(features):
            column, is_text = feature.column, feature.is_word
            if feature.is_number:
                numbers.append(NumberBlock(feature.name, column, at, next(bins), feature.cycle))
                continue
            is_beside = feature.is_level and column in read
            name = feature.column_name + f" ({WORDS})" * is_beside
            block = others.setdefault(
                (is_text, column), ValuesBlock(name, column, is_beside, is_text, feature.of_many)
            )
            block.at.append(at)
            block.levels.append(feature.level)
        self._standardized = [block for block in numbers if block.is_standardized]
        values = sorted(others.values(), key=lambda block: block.is_text)
        self._texts = [block for block in values if block.is_text]
        self._blocks: list[Any] = [*numbers, *values]
        owners: list[Any] = [block for block in numbers for _ in range(block.bins.width)]
        owners += self._standardized
        owners += [block for block in values for _ in range(block.width)]
        for place, block in enumerate(owners):
            block.places.append(place)
        self.groups_ = np.array([block.column for block in owners], dtype=int)

    def _raw(self, X: np.ndarray) -> np.ndarray:
        """Return the features before standardization."""
        raw = np.empty((len(X), len(self.groups_)))
        for block in self._blocks:
            raw[:, block.places] = block.transform(X[:, block.at])
        return raw

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, shape (n, n_features_out), float32."""
        check_is_fitted(self)
        X = X.toarray() if issparse(X) else X
        out = np.empty((len(X), len(self.groups_)), dtype=np.float32)
        for rows in row_blocks(*out.shape):
            out[rows] = (self._raw(X[rows]) - self._mean) * self._scale
        return out

    def curves(self, directions: np.ndarray) -> Curves:
        """Return linear maps of the features as functions of each column.

        Parameters
        ----------
        directions : array of shape (m, n_features_out)
            For instance `components_` of a map learned after the encoding.

        Returns
        -------
        dict of str to Curve or Levels
            By name: a `Curve` for each number, whose edges span the numbers of `fit`, and `Levels`
            for each category, and for the words beside a number as "age (words)". Columns without a
            known value, and the words of a text, are omitted.
        """
        check_is_fitted(self)
        curves = Curves()
        for block in self._blocks:
            own = block.places
            if curve := block.curve(directions[:, own], self._mean[own], self._scale[own]):
                curves[block.name] = curve
        return curves

    def to_dict(self) -> dict[str, Any]:
        """Return the state as lists of numbers and booleans, which JSON can hold."""
        check_is_fitted(self)
        bins = {
            "edges": [one.edges.tolist() for one in self.bins_],
            "missing": [one.has_missing for one in self.bins_],
            "medians": [float(one.median) for one in self.bins_],
        }
        return {
            "n_bins": self.n_bins,
            "bins": bins if self.bins_ else None,
            "centre": [float(block.centre) for block in self._standardized],
            "rate": [float(block.rate) for block in self._standardized],
            "mean": self._mean.tolist(),
            "scale": self._scale.tolist(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any], features: Sequence[Feature]) -> Self:
        """Return an encoder of these features from the result of `to_dict`.

        A state that is not one of these features raises a ValueError.
        """
        encoder = cls(state["n_bins"])
        encoder.number_names_ = [feature.name for feature in features if feature.is_number]
        bins = state["bins"] or {"edges": (), "missing": (), "medians": ()}
        edges = [np.array(edges, dtype=np.float64) for edges in bins["edges"]]
        encoder.bins_ = list(map(Bins, edges, bins["missing"], bins["medians"]))
        if len(edges) != len(encoder.number_names_):
            raise ValueError(f"bins are of {len(edges)} numbers, not {len(encoder.number_names_)}")
        encoder._set_blocks(features)
        n, n_out = len(encoder._standardized), len(encoder.groups_)
        for name, size in {"centre": n, "rate": n, "mean": n_out, "scale": n_out}.items():
            if len(state[name]) != size:
                raise ValueError(f"bins: {name} has {len(state[name])} numbers, not {size}")
        learned = zip(encoder._standardized, state["centre"], state["rate"], strict=True)
        for block, centre, rate in learned:
            block.centre, block.rate = centre, rate
        encoder._mean, encoder._scale = np.array(state["mean"]), np.array(state["scale"])
        return encoder


class Encodings:
    """Several encodings of one table, whose features stand side by side.

    Attributes
    ----------
    encoders : list of BinnedEncoder
    groups_ : ndarray of shape (n_features_out,)
        For each feature, the index of its column in the table.
    """

    saved_as = "bins"  # the name of their state in a saved model

    def __init__(self, encoders: Sequence[Any]) -> None:
        self.encoders = list(encoders)
        self.groups_ = np.concatenate([encoder.groups_ for encoder in encoders])

    @property
    def names(self) -> list[str]:
        """Return the name of each encoding, which says how it encodes numbers."""
        if self.is_sparse:
            return ["as they are"]
        bins = [encoder.n_bins for encoder in self.encoders]
        return ["straight lines" if n == 1 else f"{n} bins" for n in bins]

    @property
    def is_sparse(self) -> bool:
        """Return whether the encodings take sparse rows."""
        return not isinstance(self.encoders[0], BinnedEncoder)

    def transform(self, X: Any) -> Any:
        """Return the features, shape (n, n_features_out), float32."""
        if len(self.encoders) == 1:
            return self.encoders[0].transform(X)
        return np.hstack([encoder.transform(X) for encoder in self.encoders])

    def split(self, A: np.ndarray) -> list[np.ndarray]:
        """Return, for each encoding, its columns of A (m, n_features_out)."""
        widths = [len(encoder.groups_) for encoder in self.encoders]
        return np.split(A, np.cumsum(widths)[:-1], axis=1)

    def curves(self, directions: np.ndarray) -> Curves:
        """Return linear maps of the features as functions of each column, over all encodings."""
        found = Curves()
        for encoder, part in zip(self.encoders, self.split(directions), strict=True):
            for name, curve in encoder.curves(part).items():
                found[name] = added(found[name], curve) if name in found else curve
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the state as lists of numbers and booleans, which JSON can hold.

        It is empty for sparse rows: a saved map takes them as they are, see `Unscaled`.
        """
        if self.is_sparse:
            return {}
        return {"encodings": [encoder.to_dict() for encoder in self.encoders]}

    @classmethod
    def from_dict(cls, state: dict[str, Any], features: Sequence[Feature]) -> Self:
        """Return encodings of these features from the result of `to_dict`.

        A state that is not one of these features raises a ValueError.
        """
        if not state:
            return cls([Unscaled(len(features))])
        return cls([BinnedEncoder.from_dict(one, features) for one in state["encodings"]])


def added(one: Any, other: Any) -> Any:
    """Return the sum of two curves of a column, or of two placements of its categories."""
    if isinstance(one, Levels):
        return one._replace(values=one.values + other.values)
    edges = np.union1d(one.edges, other.edges)
    values = sum(
        np.array([np.interp(edges, curve.edges, row) for row in curve.values])
        for curve in (one, other)
    )
    missing = None if one.missing is None else one.missing + other.missing
    return one._replace(edges=edges, values=values, missing=missing)


class SparseEncoder(StandardScaler):
    """Scale the columns of sparse rows to a variance of 1 without centring.

    It has `groups_`, `fit`, `transform` and `curves` like a `BinnedEncoder`. Every column is a
    number without bins, so maps of it are linear and there are no curves.
    """

    def __init__(self) -> None:
        super().__init__(with_mean=False)

    def fit(self, X: Any, y: Any = None) -> SparseEncoder:
        """Learn the scales."""
        check_spread(X)
        self.groups_ = np.arange(X.shape[1])
        return super().fit(X)

    def transform(self, X: Any) -> Any:
        """Return the features in float32, sparse if X is."""
        return canonical_csr(super().transform(X).astype(np.float32))

    def curves(self, directions: np.ndarray) -> Curves:
        """Return an empty dict."""
        return {}


class Unscaled:
    """Sparse rows for a map that also scales them, like a `SparseEncoder` otherwise."""

    def __init__(self, n_features: int) -> None:
        self.groups_ = np.arange(n_features)

    def transform(self, X: Any) -> Any:
        """Return the rows."""
        return X

    def curves(self, directions: np.ndarray) -> Curves:
        """Return an empty dict."""
        return {}


HOURS = range(0, 24, 3)
# For each cycle: what its positions are called, their labels, and their days since 1970-01-01,
# which was a Thursday.
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
BEYOND = 0.1  # how far a sine may lie outside the range of the rows


def with_seasons(curves: Curves) -> Curves:
    """Return curves in which sine and cosine of a date are merged into months, weekdays or hours.

    Positions that the rows do not reach are left out, as far as the ranges of sine and cosine tell.
    If fewer than two remain, sine and cosine are kept. Values are centred at their mean.
    """
    circles = defaultdict[Any, list[Curve]](list)
    for curve in curves.values():
        if isinstance(curve, Curve) and curve.cycle:
            circles[curve.column, curve.cycle].append(curve)
    found = Curves()
    for name, curve in curves.items():
        cycle = getattr(curve, "cycle", None)
        if cycle and (places := _places(circles[curve.column, cycle], cycle)):
            found[f"{name.rpartition(' (')[0]} ({PLACES[cycle][0]})"] = places
        else:
            found[name] = curve
    return found


def _places(circle: list[Curve], cycle: str) -> Levels | None:
    """Return the values at the positions of a cycle that rows reach, or None if fewer than two."""
    if len(circle) < 2:
        return None
    _, names, days = PLACES[cycle]
    parts = list(zip(circle, circular(days, cycle), strict=True))
    reached = [(one.edges[0] - BEYOND <= x) & (x <= one.edges[-1] + BEYOND) for one, x in parts]
    at = np.flatnonzero(np.all(reached, axis=0))
    if len(at) < 2:
        return None
    values = sum(
        np.array([np.interp(x[at], one.edges, row) for row in one.values]) for one, x in parts
    )
    values = values - np.mean(values, axis=1, keepdims=True)
    return Levels(circle[0].column, [names[j] for j in at], values, ordered=True)
