"""The contestants: maps with the settings to choose among, and other predictors as references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, TargetEncoder

from .. import estimators
from ..tables import NCAClassifier, NCARegressor
from .scores import CLASSIFICATION

DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
RAW = "raw k-NN"
# the references that learn nothing from the features
CONSTANTS = ("majority", "mean", "median")
# keys of `compared_as` that are not attributes of a Method
WHEN = {"params", "regression", "semi_supervised", "balanced"}
# The order in which methods are compared: the fast ones first. What is not named here comes last.
FAST_FIRST = (
    *("RCA", "GMML", "LPP", "LFDA", "LDE", "MFA", "DMLMJ", "DNE", "NMMP", "ITML", "NCA", "LMNN"),
    *("MLKR", "DiscriminativeProjections", "SDA", "TDL"),
)
# maximum number of rows from which a map is learned: with more, held-out scores hardly improve. On
# 2026-11-22 maps of all compared methods were learned from 500 to 16,000 rows of mnist, kddcup99,
# banking77 and six tables, with all training rows as voters.
MOST_ROWS = 4000

Params = dict[str, Any]


class LDA(LinearDiscriminantAnalysis):
    """scikit-learn's LDA, by eigenvectors if LAPACK's SVD fails, as it may on finite rows."""

    def fit(self, X: Any, y: Any) -> LDA:
        """Learn the map."""
        try:
            return super().fit(X, y)
        except (np.linalg.LinAlgError, IndexError):  # IndexError: all rows of a class are equal
            self.set_params(solver="eigen", shrinkage=1e-6)
            return super().fit(X, y)


@dataclass(frozen=True)
class Method:
    """An unfitted map, and how `compare` treats it.

    The classes of nearkin list these attributes, except the first two, in a dictionary
    `compared_as`, by name of the method: `compared_as = {"DNE": {"settings": lambda p:
    [{"n_neighbors": k} for k in (1, 3, 10)]}}`. An entry may also contain `params` for the
    constructor, or None if the class does not take class labels; `regression`, the parameters for
    real-valued targets; `semi_supervised=True` for methods that are only compared if some rows are
    unlabelled; and `balanced=True` for methods that are only compared under a score that weights
    all classes equally.

    Attributes
    ----------
    name : str
    estimator : transformer with a parameter `n_components`, or None for the raw features
        It is fitted with class codes 0, 1, ... or with numbers.
    settings : function of the number of features p
        Returns the parameter settings to choose among.
    nested : bool
        Whether the first m columns of a fit are the fit with m components, so that one fit serves
        all of `DIMENSIONS`. Otherwise `settings` must vary `n_components` itself.
    most_rows : int
        Maximum number of rows from which a map is learned. If there are more training rows, a
        sample stratified by class is drawn; all training rows vote.
    max_components : function of p and the number of classes
        Returns the largest n_components; the number of classes is 1 for a regression.
    own_vote : bool
        Whether it is not a map but a predictor with a method `fit_encoded`, such as
        `NCAClassifier`: it takes the features of the table unscaled and with missing cells, has no
        settings, and has its own vote of the rows from which it learned. Its members are learned on
        the inner folds, and `member_votes_` give its score for the automatic choice.
    unlabelled : bool
        Whether it also learns from unlabelled rows: y is then a class code or -1, or NaN for a
        regression.
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
        """Return the dimensions that a fit with `n_components` serves."""
        nested = self.nested and self.estimator is not None
        return [*(m for m in DIMENSIONS if m < n_components and nested), n_components]


@dataclass(frozen=True)
class Reference:
    """A predictor of another kind, which shows what is possible; ranked separately, not tested.

    Attributes
    ----------
    name : str
    estimator : classifier or regressor
    most_rows : int
        Maximum number of rows from which it learns.
    categories : transformer or None
        Encodes columns of many categories, in place of their indicators (`Categories`).
    """

    name: str
    estimator: BaseEstimator
    most_rows: int
    categories: BaseEstimator | None = None


def default_methods(
    task: str = CLASSIFICATION.name, *, semi_supervised: bool = False, balanced: bool = False
) -> list[Method]:
    """Return the fast methods: the raw features, the predictor for tables and, for classes, LDA.

    `balanced` adds the predictor that weights all classes equally, and `semi_supervised` the
    methods that only make sense if some rows are unlabelled.
    """
    first = (RAW, "NCA tables", "NCA tables balanced", "LDA")
    every = methods_by_name(task, semi_supervised=semi_supervised, balanced=balanced)
    supervised = methods_by_name(task, balanced=balanced)
    chosen = [name for name in first if name in every]
    chosen += [name for name in every if name not in supervised]
    return [every[name]() for name in chosen]


def all_methods(
    task: str = CLASSIFICATION.name, *, semi_supervised: bool = False, balanced: bool = False
) -> list[Method]:
    """Return the raw features, PCA, LDA and the methods of nearkin for a task, fast ones first.

    `semi_supervised=True` adds the methods that only make sense if some rows are unlabelled,
    `balanced=True` those for scores that weight all classes equally.
    """
    every = methods_by_name(task, semi_supervised=semi_supervised, balanced=balanced)
    return [make() for make in every.values()]


def methods_by_name(
    task: str, *, semi_supervised: bool = False, balanced: bool = False
) -> dict[str, Callable[[], Method]]:
    """Return a function for each of `all_methods` that makes it, by name."""
    given = {"semi_supervised": semi_supervised, "balanced": balanced}
    is_classes = task == CLASSIFICATION.name
    found: dict[str, Callable[[], Method]] = {
        RAW: lambda: Method(RAW, None),
        "PCA": lambda: Method("PCA", PCA(svd_solver="full"), unlabelled=True),
    }
    if is_classes:
        found["LDA"] = lambda: Method(
            "LDA", LDA(), max_components=lambda p, n_classes: min(p, n_classes - 1)
        )

    def make(name: str, cls: Any, params: Params, fields: dict[str, Any]) -> Method:
        return Method(name, cls(**params), **fields)

    places = {name: place for place, name in enumerate(FAST_FIRST)}
    names = sorted(estimators.__all__, key=lambda name: places.get(name, len(places)))
    maps = [vars(estimators)[name] for name in names]
    for cls in (*maps, NCAClassifier, NCARegressor):
        for name, options in vars(cls).get("compared_as", {}).items():
            params = options.get("params", {}) if is_classes else options.get("regression")
            unsuited = any(options.get(kind) and not given[kind] for kind in given)
            if params is not None and not unsuited:
                fields = {key: value for key, value in options.items() if key not in WHEN}
                found[name] = partial(make, name, cls, params, fields)
    return found


def constant_reference(task: str = CLASSIFICATION.name, score: str | None = None) -> Reference:
    """Return the reference that predicts a constant; see `default_references`."""
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
    *,
    categories: bool = False,
) -> list[Reference]:
    """Return common alternatives: a constant, a linear model, a random forest and boosted trees.

    The constant is the largest class; for a regression the mean, or the median with the score
    "mae".

    With more than 100 features, boosting considers 100 per node, in 63 bins. With more than 10
    classes, each of which has a tree in every iteration, it takes fewer than 100 iterations. Both
    make it faster at about equal accuracy.

    With `categories`, some columns have many values. Linear models then have an indicator of every
    value, however many, and trees target statistics, cross-fitted to the training rows: with 50 to
    900 values in 1,500 rows these were better than codes in order, than boosting's own categories,
    and from 100 values on, which are rarer than its leaves are large, far better than indicators.
    """
    boosting: dict[str, Any] = {
        "max_bins": 63 if n_features > 100 else 255,
        "max_features": min(1.0, 100 / n_features),
        "max_iter": int(np.clip(1000 // n_classes, 10, 100)),
        "random_state": 0,
    }
    few, many = 20_000, 100_000
    is_classes = task == CLASSIFICATION.name
    folds = (StratifiedKFold if is_classes else KFold)(5, shuffle=True, random_state=0)
    if is_classes:
        linear = Reference("logistic regression", LogisticRegression(max_iter=300), many)
        forest = Reference("random forest", RandomForestClassifier(random_state=0), few)
        boosted = HistGradientBoostingClassifier(**boosting)
    else:
        # leaving each row out takes p x p, where p may be the number of categories
        ridge = RidgeCV(np.logspace(-3, 3, 7), cv=folds if categories else None)
        linear = Reference("ridge regression", ridge, many)
        forest = Reference("random forest", RandomForestRegressor(random_state=0), few)
        boosted = HistGradientBoostingRegressor(**boosting)
    trees = [forest, Reference("gradient boosting", boosted, many)]
    if categories:
        linear = replace(linear, categories=OneHotEncoder(handle_unknown="ignore"))
        # before scikit-learn 1.9 it draws its folds itself
        seeded = getattr(TargetEncoder(), "random_state", "deprecated") is None
        target = TargetEncoder(
            target_type="auto" if is_classes else "continuous",
            **({"random_state": 0} if seeded else {"cv": folds}),
        )
        trees = [replace(one, categories=target) for one in trees]
    return [constant_reference(task, score), linear, *trees]
