"""Nearest neighbours for tables: encoded columns, NCA's map, the vote of all rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import check_array, column_or_1d

from .._callbacks import with_callbacks
from .._labels import check_shared_labels, encode_labels
from .._validation import check_targets_vary, refuse_unfit_targets
from ..objectives.kernel_regression import log_loss, squared_error
from ._member_path import MemberPath, Rows
from ._table_predictor import TablePredictor
from .soft_votes import mixed_with_lines

# In comparisons three members answer in half the time; the choice that is kept has all that are the default.
COMPARED = {"own_vote": True, "nested": False, "most_rows": 100_000, "quick": {"n_members": 3}}


class NCAClassifier(ClassifierMixin, TablePredictor):
    """Neighbourhood Components Analysis for tables: nearest neighbours that classify a data frame as it is.

    Columns of numbers, categories and dates, with missing values, become groups of features in which a linear map can
    bend: bins of a number, indicators of a category (`nearkin.preprocessing.BinnedEncoder`). The map A maximizes
    NCA's log-likelihood [1]_, in which every row is classified by all others,

        1/n sum_i log q_i,    q_i = sum_(j in C_i) p_ij,    p_ij ~ exp(-||A x_i - A x_j||^2)            (eq. 6)

    minus `alpha / sqrt(n) ||A||^2 u^2`, with a norm that prefers few of the G columns of the table,

        ||A||^2 = G^(-1/3) (sum_g ||A_g||^1.5)^(4/3),    A_g the features of column g,

    and u the typical distance of neighbours. The map is the mean, as a metric, of those of `n_members` folds; the rows
    of the other folds choose alpha, T and the distance of the final vote of all rows,

        p_j ~ exp(-||A (x - x_j)||^2 / T)    or    exp(-2 ||A (x - x_j)|| / sqrt(T)).

    Parameters
    ----------
    n_components : int, default=32
        Dimensions of the map of a member, at most.
    n_bins : int, default=8
        Bins of a number, at most: see `nearkin.preprocessing.PiecewiseLinearEncoder`.
    alpha : float or "auto", default="auto"
        Weight of the penalty. "auto" begins with 4.5 and goes on to 1.5, 0.5, 0.17, ..., 0.006, every descent from the
        map before, until the held-out loss rises by 2 %; the weight with the lowest is taken.
    n_members : int, default=5
        Folds, at least 2. The cost grows with their number.
    distance : {"auto", "squared", "plain"}, default="auto"
        In the vote: of two distances by the held-out loss, or one of them. A plain distance has the longer tail.
    class_weight : dict of class to positive float, "balanced" or None, default=None
        How much a row of each class counts, in the likelihood and in the vote; "balanced" is n / (n_classes n_c). The
        probabilities are those of classes that are as frequent as the weights make them.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn for more than 2,000 rows; of fewer nothing is drawn.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (m, n_features_encoded)
        The map A of the encoded features, over sqrt(T): the votes have the weights exp(-d^2), or exp(-2 d), of the
        distances d in its space. Its rows are the principal axes of the training rows there, the longest first.
    temperature_ : float
        T.
    distance_ : str
        The distance in use, "squared" or "plain".
    alpha_ : float
        The weight of the penalty in use.
    alpha_scores_ : dict of float to float
        Minus the held-out loss of every penalty that was tried.
    encoder_ : BinnedEncoder
        What makes the features that the map takes of the numbers and indicators of a table.
    vote_ : SoftVote, or Mixture of one with local lines
        How the training rows predict; `nearkin.estimators.soft_votes`.
    feature_effects_ : ndarray of shape (`n_features_in_`,)
        How far each column of the table moves the rows about their mean, as the root of the mean square; 0 for columns
        that are left out.
    held_out_rows_ : ndarray of int of shape (n_held_out,)
        The rows of `fit`, all or of many about 2,000, each of which was held out by one member.
    held_out_votes_ : ndarray of shape (n_held_out, n_classes)
        The votes of that member's training rows for them, by the penalty, temperature and distance that these votes
        chose; of more than 2,000 rows temperature and distance are chosen again afterwards.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCARegressor : For numbers.
    NCA : The map for a numeric array.
    TableEncoder : Numbers from the columns of a table.

    Notes
    -----
    The inner folds are not drawn, and do not know which rows belong together: of grouped rows, such as several of one
    patient, the penalty comes out too small. Nor is a weight of 2 the same as the row twice, whose copies would be each
    other's nearest neighbours in the likelihood, and in different folds.

    Sparse X is never made dense as a whole: each of its columns, such as an indicator of a category or a count, is one
    feature over its deviation, without bins, and a column of its own in the penalty.

    An interrupt (Ctrl-C) leaves the best map so far, once there is one. Callbacks of scikit-learn are called after each
    penalty, and after the stochastic gradient.

    More than 2,000 rows: all of the above on about 2,000, then 300 steps of stochastic gradient (Adam with one scale
    for all entries) on all but 1,000, by which T and the distance are chosen again. A step predicts 256 rows drawn by
    3,840 others.

    Cost: O(s^2 m + s r m) for an iteration of each member, with s rows, at most 2,000, and r encoded features; up to 40
    iterations for each of up to 7 penalties; with more rows O(n r) beside. A prediction costs O(n m) for each new row.
    Computed in float32, the vote in float64 for up to 2,000 rows.

    References
    ----------
    .. [1] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood Components Analysis", NIPS 2004.
    .. [2] Yury Gorishniy, Ivan Rubachev and Artem Babenko, "On Embeddings for Numerical Features in Tabular Deep
       Learning", NeurIPS 2022: the bins.
    .. [3] Han-Jia Ye, Huai-Hong Yin, De-Chuan Zhan and Wei-Lun Chao, "Revisiting Nearest Neighbor for Tabular Data: A
       Deep Tabular Baseline Two Decades Later", ICLR 2025: NCA on encoded columns against trees.

    Examples
    --------
    >>> import pandas as pd
    >>> from nearkin import NCAClassifier
    >>> flowers = pd.DataFrame({
    ...     "petals": [4, 5, 4, 5, 6, 5, 4, 5, 6, 5, 6, 6],
    ...     "colour": ["red", "red", "red", "red", None, "red", "blue", "blue", "blue", "blue", "blue", "blue"],
    ... })
    >>> names = ["poppy"] * 6 + ["flax"] * 6
    >>> model = NCAClassifier().fit(flowers, names)
    >>> model.predict(pd.DataFrame({"petals": [5], "colour": ["red"]}))
    array(['poppy'], dtype='<U5')
    """

    _loss = staticmethod(log_loss)
    _loss_name = "log loss"
    compared_as: ClassVar[dict] = {
        "NCA tables": COMPARED,
        "NCA tables balanced": COMPARED | {"params": {"class_weight": "balanced"}, "balanced": True},
    }

    def __init__(
        self,
        n_components: int = 32,
        *,
        n_bins: int = 8,
        alpha: float | str = "auto",
        n_members: int = 5,
        distance: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components,
            n_bins=n_bins,
            alpha=alpha,
            n_members=n_members,
            distance=distance,
            random_state=random_state,
        )
        self.class_weight = class_weight

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : data frame (pandas, polars or pyarrow), array or sparse matrix of shape (n, p)
            At least 4 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes.
        sample_weight : array of shape (n,), default=None
            Not negative: how much each row counts, in the likelihood and in the vote, relative to the others. Rows of
            weight 0 are left out. Multiplied with `class_weight`. The encoding does not know of weights.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _targets(self, y: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return indicators of the classes, their numbers and weights of rows."""
        self.classes_, codes = encode_labels(y)
        check_shared_labels(codes)
        if self.class_weight is not None:
            if self.class_weight != "balanced" and not isinstance(self.class_weight, dict):
                raise ValueError(
                    f'class_weight must be None, "balanced" or a dict of class to weight, got {self.class_weight!r}.'
                )
            of_class = compute_sample_weight(self.class_weight, y)
            if of_class.min() <= 0:
                raise ValueError(f"class_weight must be larger than 0 for every class, got {self.class_weight!r}.")
            weights = of_class if weights is None else weights * of_class
        return np.eye(len(self.classes_))[codes], codes, weights

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of every class, in the order of `classes_`, shape (n, n_classes)."""
        return self._votes(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of every row."""
        votes = self._votes(X)
        return self.classes_[votes.argmax(axis=1)]


class NCARegressor(RegressorMixin, TablePredictor):
    """Neighbourhood Components Analysis for tables: nearest neighbours that predict numbers from a data frame as it is.

    As `NCAClassifier`, with the leave-one-out error of the weighted mean, the loss of kernel regression [1]_, in place
    of the log-likelihood:

        1/n sum_i (y_i - y^_i)^2 / var(y),    y^_i = sum_j p_ij y_j,    p_ij ~ exp(-||A x_i - A x_j||^2).

    Parameters
    ----------
    n_components, n_bins, alpha, n_members, distance, random_state
        See `NCAClassifier`; three members by default: more did not predict numbers better.

    Attributes
    ----------
    components_, temperature_, distance_, alpha_, encoder_, vote_, feature_effects_
        See `NCAClassifier`.
    alpha_scores_ : dict of float to float
        Minus the held-out squared error of every penalty that was tried, over the variance of y.
    held_out_rows_, held_out_votes_
        See `NCAClassifier`; the votes are numbers, of shape (n_held_out,).
    line_share_ : float
        The share of local lines in a prediction: 0, 0.25, 0.5, 0.75 or 1.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCAClassifier : For classes.
    MLKR : The map for a numeric array and numbers.

    Notes
    -----
    Where it lowers the held-out error by more than one standard error, the weighted mean is mixed with a line through
    the nearest 150 rows: a ridge regression along the 10 principal directions of the learned space, with weights
    exp(-d^2 / c) and c among 1, 2 and 5. Predictions never leave the range of the known numbers.

    Cost: as `NCAClassifier`.

    References
    ----------
    .. [1] K. Q. Weinberger and G. Tesauro, "Metric Learning for Kernel Regression", AISTATS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin import NCARegressor
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> model = NCARegressor().fit(X, np.abs(X[:, 1]))
    >>> bool(model.feature_effects_.argmax() == 1)
    True
    """

    _loss = staticmethod(squared_error)
    _loss_name = "squared error over variance"
    compared_as: ClassVar[dict] = {"NCA tables": COMPARED | {"params": None, "regression": {}}}

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the map.

        Parameters
        ----------
        X : data frame (pandas, polars or pyarrow), array or sparse matrix of shape (n, p)
            At least 4 rows that are not all equal.
        y : array of shape (n,)
            Numbers, not all equal.
        sample_weight : array of shape (n,), default=None
            See `NCAClassifier.fit`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    def _targets(self, y: Any, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the standardized numbers, a class of them all, and the weights."""
        refuse_unfit_targets(y, self)
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"), warn=True)
        check_targets_vary(y)
        self._centre, self._unit = y.mean(), y.std()
        return ((y - self._centre) / self._unit)[:, None], np.zeros(len(y), dtype=int), weights

    def _final_vote(self, path: MemberPath) -> Any:
        """Mix local lines with the vote."""
        return mixed_with_lines(path.vote, path.temperature, path.held_out, path.tested.losses)

    def _learned(self, path: MemberPath, rows: Rows) -> dict[str, Any]:
        """Return the attributes that are set where a descent ends, the share of the lines among them."""
        learned = super()._learned(path, rows)
        return learned | {"line_share_": getattr(learned["vote_"], "share", 0.0)}

    def predict(self, X: Any) -> np.ndarray:
        """Return the weighted mean of the numbers of all training rows, or its mixture with local lines, shape (n,)."""
        return self._answers(self._votes(X))

    def _answers(self, votes: np.ndarray) -> np.ndarray:
        """Return the numbers that votes about standardized ones say."""
        return votes[:, 0] * self._unit + self._centre
