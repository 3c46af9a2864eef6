"""Piecewise linear encoding of numbers (Gorishniy, Rubachev and Babenko, NeurIPS 2022)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .._validation import check_choice, check_integer, refuse_foreign, validated

_CELLS: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": "allow-nan"}


class Curve(NamedTuple):
    """What linear maps of the encoded features make of a column: functions that are linear between the edges.

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

    1 for the bins below x, a part for the bin of x, 0 above. A linear map of these features is any continuous function
    of x that is linear between the edges: a distance, or a logistic regression, after the encoding can bend. Beyond
    `b_0` and `b_T` the function is constant, so that an outlier is as far away as the last value of the training rows.

    Parameters
    ----------
    n_bins : int, default=16
        Bins of a column, at most. A column of no more than `n_bins + 1` distinct values gets an edge at each of them; a
        constant one gets no bins, and no features.
    strategy : {"quantile", "tree"}, default="quantile"
        Where the edges are: at quantiles, those that coincide taken once; or at the thresholds of a decision tree that
        predicts y from the column, with at most `n_bins` leaves of at least 1 % of the rows and 5 rows. It looks at y:
        fit it inside the folds.

    Attributes
    ----------
    edges_ : list of ndarray
        The edges of each column, ascending.
    has_missing_ : ndarray of shape (p,)
        Whether a column held missing values. It then has one more feature, 1 for a missing value, whose other features
        are 0. In a column without, a missing value of new rows is encoded as the median.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    ValueError
        For infinite values; and by "tree" without y.

    Notes
    -----
    Cost: O(n log n) for each column to fit, O(n T) to transform. The features of a column are 0 to 1, whatever its
    unit: no scaling is needed before. The paper lets the first and last bin run on beyond their edges, here they stop.

    References
    ----------
    .. [1] Yury Gorishniy, Ivan Rubachev and Artem Babenko, "On Embeddings for Numerical Features in Tabular Deep
       Learning", NeurIPS 2022.

    Examples
    --------
    >>> from nearkin.preprocessing import PiecewiseLinearEncoder
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
        refuse_foreign(X)
        X = validated(self, X, **_CELLS)
        if self.strategy == "tree" and y is None:
            remedy = "give it, or take strategy='quantile'"
            raise ValueError(f"strategy='tree' requires y to be passed, but the target y is None: {remedy}.")
        y = None if self.strategy == "quantile" else column_or_1d(y)
        check_consistent_length(X, y)
        self.has_missing_ = np.isnan(X).any(axis=0)
        self.edges_, self._medians = [], np.zeros(X.shape[1])
        for j, x in enumerate(X.T.astype(np.float64)):
            known = ~np.isnan(x)
            self.edges_.append(_edges(x[known], self.n_bins, None if y is None else y[known]))
            self._medians[j] = np.median(x[known]) if known.any() else 0.0
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features, those of a column beside one another, shape (n, sum of T), float32 if X is."""
        check_is_fitted(self)
        refuse_foreign(X)
        X = validated(self, X, reset=False, **_CELLS)
        parts = [np.empty((len(X), 0))]
        for x, edges, own_feature, median in zip(X.T, self.edges_, self.has_missing_, self._medians, strict=True):
            missing = np.isnan(x)
            known = np.where(missing, edges[:1].sum() if own_feature else median, x)  # the first edge, if there is one
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
        return {"edges": edges, "missing": self.has_missing_.tolist(), "medians": self._medians.tolist()}

    @classmethod
    def from_dict(cls, state: dict[str, Any], n_columns: int) -> Self:
        """Return the encoder of a state that `to_dict` wrote; raise an error where it is none of so many columns."""
        encoder = cls()
        encoder.edges_ = [np.array(edges, dtype=np.float64) for edges in state["edges"]]
        encoder.has_missing_, encoder._medians = np.array(state["missing"]), np.array(state["medians"], dtype=float)
        encoder.n_features_in_ = n_columns
        fits = encoder.has_missing_.dtype == bool and np.isfinite(encoder._medians).all()
        fits &= {len(encoder.edges_), len(encoder.has_missing_), len(encoder._medians)} == {n_columns}
        if not fits or not all(np.isfinite(edges).all() and (np.diff(edges) > 0).all() for edges in encoder.edges_):
            raise ValueError("its bins")
        return encoder

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
        widths = [max(len(edges) - 1, 0) for edges in self.edges_] + self.has_missing_
        if directions.shape[1] != widths.sum():
            raise ValueError(f"directions must have the shape (m, {widths.sum()}), got {directions.shape}.")
        curves = []
        parts = np.split(directions, np.cumsum(widths)[:-1], axis=1)
        for column, (part, edges, own) in enumerate(zip(parts, self.edges_, self.has_missing_, strict=True)):
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
    tree = kind(max_leaf_nodes=max(n_bins, 2), min_samples_leaf=max(5, len(x) // 100), random_state=0)
    thresholds = tree.fit(x[:, None], y).tree_.threshold
    inner = thresholds[tree.tree_.feature >= 0][: n_bins - 1]
    return np.unique(np.concatenate([distinct[[0, -1]], inner]))
