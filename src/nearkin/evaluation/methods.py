"""What is compared: maps with the settings among which inner folds choose, and references that are
no maps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV

from .. import estimators
from ..tables import NCAClassifier, NCARegressor
from .scores import CLASSIFICATION

DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
RAW = "raw k-NN"
# the references that learn nothing from the features
CONSTANTS = ("majority", "mean", "median")
# What `compared_as` may hold beside the attributes of a Method.
WHEN = {"params", "regression", "semi_supervised", "balanced"}
# rows that a map is learned from, at most: with more, held-out scores hardly rise
# (benchmarks/costs.py)
MOST_ROWS = 4000

Params = dict[str, Any]


class LDA(LinearDiscriminantAnalysis):
    """scikit-learn's LDA, by eigenvectors where LAPACK's SVD does not converge.

    The SVD may fail even on finite rows.
    """

    def fit(self, X: Any, y: Any) -> LDA:
        """Learn the map."""
        try:
            return super().fit(X, y)
        except (np.linalg.LinAlgError, IndexError):  # the latter: classes of copies of one row
            self.set_params(solver="eigen", shrinkage=1e-6)
            return super().fit(X, y)


@dataclass(frozen=True)
class Method:
    """A map, unfitted, and how `compare` treats it.

    The classes of nearkin have these attributes but the first two in a dictionary `compared_as`, by
    name of the method: `compared_as = {"DNE": {"settings": lambda p: [{"n_neighbors": k} for k in
    (1, 3, 10)]}}`. It may also hold `params`, for the constructor, None if it takes no classes;
    `regression`, those with which it takes a target of numbers; `semi_supervised=True`, where it is
    only compared on tables some rows of which have no label; and `balanced=True`, where only by a
    score in which all classes count alike.

    Attributes
    ----------
    name : str
    estimator : transformer with a parameter `n_components`, or None for the raw features
        Its labels are the numbers 0, 1, ... of the classes.
    settings : function of the number of features p
        Returns the parameter settings to choose among.
    nested : bool
        Whether the first m columns of a fit are the fit with m components; one fit then serves
        every dimension of `DIMENSIONS`. Otherwise `settings` must vary `n_components` itself.
    most_rows : int
        From how many rows a map is learned. Of more training rows a sample is drawn, stratified by
        class; all vote.
    max_components : function of p and the number of classes
        Returns the largest n_components; the number of classes is 1 for a target of numbers.
    own_vote : bool
        Whether it is no map but a predictor with a method `fit_encoded`, such as `NCAClassifier`:
        it takes the features of the table unscaled and with their gaps, has no settings, and the
        rows that it learned from vote its own way. The inner folds are those of its members:
        `held_out_votes_` score it for the automatic choice.
    unlabelled : bool
        Whether it also learns from rows without a label: y is then the number of the class or -1;
        of a target of numbers NaN.
    """

    name: str
    estimator: BaseEstimator | None
    settings: Callable[[int], Sequence[Params]] = lambda p: [{}]
    nested: bool = True
    most_rows: int = MOST_ROWS
    max_components: Callable[[int, int], int] = lambda p, n_classes: p
    own_vote: bool = False
    unlabelled: bool = False

    def cuts(self, n_components: int) -> list[int]:
        """Return the dimensions that a fit with so many components serves."""
        nested = self.nested and self.estimator is not None
        return [*(m for m in DIMENSIONS if m < n_components and nested), n_components]


@dataclass(frozen=True)
class Reference:
    """A predictor of another kind, to know what the table allows; ranked apart, not tested.

    Attributes
    ----------
    name : str
    estimator : classifier or regressor
    most_rows : int
        It learns from at most so many rows.
    """

    name: str
    estimator: BaseEstimator
    most_rows: int


def default_methods(
    task: str = CLASSIFICATION.name, *, semi_supervised: bool = False, balanced: bool = False
) -> list[Method]:
    """Return the methods that answer first.

    These are the raw features, the predictor for tables and, for classes, LDA.

    With `balanced` the predictor that weighs the classes alike is among them, and with
    `semi_supervised` those methods that make sense only where some rows have no label.
    """
    first = (RAW, "NCA tables", "NCA tables balanced", "LDA")
    every = all_methods(task, semi_supervised=semi_supervised, balanced=balanced)
    supervised = {method.name for method in all_methods(task, balanced=balanced)}
    chosen = [method for name in first for method in every if method.name == name]
    return chosen + [method for method in every if method.name not in supervised]


def all_methods(
    task: str = CLASSIFICATION.name, *, semi_supervised: bool = False, balanced: bool = False
) -> list[Method]:
    """Return the raw features, PCA, LDA and the methods of nearkin for a task, quick ones first.

    Those that make sense only where some rows have no label, or by a score in which all classes
    count alike, are among them with `semi_supervised=True` and `balanced=True`.
    """
    given = {"semi_supervised": semi_supervised, "balanced": balanced}
    methods = [Method(RAW, None), Method("PCA", PCA(svd_solver="full"), unlabelled=True)]
    is_classes = task == CLASSIFICATION.name
    if is_classes:
        methods.append(
            Method("LDA", LDA(), max_components=lambda p, n_classes: min(p, n_classes - 1))
        )
    maps = [vars(estimators)[name] for name in estimators.__all__]
    for cls in (*maps, NCAClassifier, NCARegressor):
        for name, options in vars(cls).get("compared_as", {}).items():
            params = options.get("params", {}) if is_classes else options.get("regression")
            unsuited = any(options.get(kind) and not given[kind] for kind in given)
            if params is not None and not unsuited:
                fields = {key: value for key, value in options.items() if key not in WHEN}
                methods.append(Method(name, cls(**params), **fields))
    return methods


def constant_reference(task: str = CLASSIFICATION.name, score: str | None = None) -> Reference:
    """Return what predicts the same of every row: see `default_references`."""
    all_rows = 2**40
    if task == CLASSIFICATION.name:
        return Reference("majority", DummyClassifier(strategy="prior"), all_rows)
    middle = "median" if score == "mae" else "mean"
    return Reference(middle, DummyRegressor(strategy=middle), all_rows)


def default_references(
    task: str = CLASSIFICATION.name,
    n_features: int = 1,
    n_classes: int = 1,
    score: str | None = None,
) -> list[Reference]:
    """Return what most people would use instead.

    These are a constant, a linear model, a random forest and boosted trees.

    The constant is the largest class; of numbers the mean, or by the score "mae" the median.

    Of more than 100 features boosting looks at 100 in a node, in 63 bins; of more than 10 classes,
    each of which has a tree in every iteration, it takes fewer than 100 iterations. Both make it
    quicker at about equal accuracy.
    """
    boosting: dict[str, Any] = {
        "max_bins": 63 if n_features > 100 else 255,
        "max_features": min(1.0, 100 / n_features),
        "max_iter": int(np.clip(1000 // n_classes, 10, 100)),
        "random_state": 0,
    }
    few, many = 20_000, 100_000
    constant = constant_reference(task, score)
    if task == CLASSIFICATION.name:
        return [
            constant,
            Reference("logistic regression", LogisticRegression(max_iter=300), many),
            Reference("random forest", RandomForestClassifier(random_state=0), few),
            Reference("gradient boosting", HistGradientBoostingClassifier(**boosting), many),
        ]
    return [
        constant,
        Reference("ridge regression", RidgeCV(np.logspace(-3, 3, 7)), many),
        Reference("random forest", RandomForestRegressor(random_state=0), few),
        Reference("gradient boosting", HistGradientBoostingRegressor(**boosting), many),
    ]
