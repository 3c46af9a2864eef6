"""Predictors of a data frame for tables.py and decisions.py, with their defaults."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from catboost import CatBoostClassifier, CatBoostRegressor
from lightgbm import LGBMClassifier, LGBMRegressor
from pytabkit import (
    RealMLP_TD_Classifier,
    RealMLP_TD_Regressor,
    TabM_D_Classifier,
    TabM_D_Regressor,
)
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR
from xgboost import XGBClassifier, XGBRegressor

from nearkin import NCAClassifier, NCARegressor

TUNED_ROWS = 2000  # of the training rows, at most: by them C and gamma of the SVM are chosen
GRID = {"C": [0.1, 1, 10, 100], "gamma": [0.003, 0.01, 0.03, 0.1, 0.3]}
# probability of the true class in the log loss, so that a single row cannot decide a table
SMALLEST = 1e-4
# of the largest probability, in the expected calibration error (Guo et al., ICML 2017)
N_RELIABILITY_BINS = 15

# (classify, the names of the columns of text) -> an estimator
Build = Callable[..., Any]


class AsCategories(TransformerMixin, BaseEstimator):
    """Text as the category type of pandas; a word that the training rows do not have is a missing
    value.
    """

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
        words = X.select_dtypes(exclude="number")
        self.types_ = {
            name: pd.CategoricalDtype(sorted(words[name].dropna().unique())) for name in words
        }
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.astype(self.types_)


class GridSVM(BaseEstimator):
    """An SVM whose C and gamma are chosen by three folds of at most 2,000 training rows."""

    def __init__(self, classify: bool) -> None:
        self.classify = classify

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        drawn = np.random.default_rng(0).permutation(len(y))[:TUNED_ROWS]
        one = SVC() if self.classify else SVR()
        center, unit = (0, 1) if self.classify else (y.mean(), y.std())
        best = GridSearchCV(one, GRID, cv=3).fit(X[drawn], (y[drawn] - center) / unit).best_params_
        self.model_ = kernel_machine(self.classify, **best).fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict_proba(X)


def words_of(X: pd.DataFrame) -> list[str]:
    """Return the names of the columns of text."""
    return list(X.select_dtypes(exclude="number"))


def one_hot(words: Sequence[str], scale: bool) -> Any:
    numbers = StandardScaler() if scale else "passthrough"
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_column_transformer((encoder, list(words)), remainder=numbers)


def kernel_machine(classify: bool, **parameters: Any) -> Any:
    # libsvm's probabilities beat those of CalibratedClassifierCV; scikit-learn 1.11 will drop them
    if classify:
        return SVC(probability=True, random_state=0, **parameters)
    return TransformedTargetRegressor(SVR(**parameters), transformer=StandardScaler())


def encoded(classifier: Any, regressor: Any, scale: bool, **fixed: Any) -> Build:
    """Return a builder of a method for numbers: text is one-hot encoded, and scaled numbers are
    standardized.
    """

    def build(classify: bool, words: Sequence[str]) -> Any:
        return make_pipeline(
            one_hot(words, scale), (classifier if classify else regressor)(**fixed)
        )

    return build


def categorical(classifier: Any, regressor: Any, **fixed: Any) -> Build:
    """Return a builder of a method that reads the category type of pandas."""

    def build(classify: bool, words: Sequence[str]) -> Any:
        return make_pipeline(AsCategories(), (classifier if classify else regressor)(**fixed))

    return build


def catboost(classify: bool, words: Sequence[str]) -> Any:
    model = CatBoostClassifier if classify else CatBoostRegressor
    fixed = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    return model(cat_features=list(words), **fixed)


def network(classifier: Any, regressor: Any) -> Build:
    """Return a builder of a network of pytabkit, with its defaults, on one thread."""
    fixed = {"device": "cpu", "n_threads": 1, "verbosity": 0}
    # its trainer names the devices that it finds at every fit
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    return categorical(classifier, regressor, random_state=0, **fixed)


def calibrated(build: Build, method: str) -> Build:
    """Return a builder of a classifier that is calibrated on five inner folds."""

    def build_calibrated(classify: bool, words: Sequence[str]) -> Any:
        return CalibratedClassifierCV(build(classify, words), method=method)

    return build_calibrated


def nca(classify: bool, words: Sequence[str]) -> Any:
    return (NCAClassifier if classify else NCARegressor)(random_state=0)


OURS, FOREST, BOOSTING = "NCA tables", "random forest", "HistGradientBoosting"
REALMLP, TABM = "RealMLP-TD", "TabM"
TREES = (FOREST, "extra trees", BOOSTING, "XGBoost", "LightGBM", "CatBoost")

forest = encoded(RandomForestClassifier, RandomForestRegressor, scale=False, random_state=0)
hist_boosting = categorical(
    HistGradientBoostingClassifier, HistGradientBoostingRegressor, random_state=0
)
xgboost = categorical(
    XGBClassifier, XGBRegressor, enable_categorical=True, n_jobs=1, random_state=0
)
lightgbm = categorical(LGBMClassifier, LGBMRegressor, n_jobs=1, verbose=-1, random_state=0)

METHODS: dict[str, Build] = {  # with their defaults, cheap ones first
    "5-NN": encoded(KNeighborsClassifier, KNeighborsRegressor, scale=True),
    "linear": encoded(lambda: LogisticRegression(max_iter=2000), RidgeCV, scale=True),
    "LightGBM": lightgbm,
    "XGBoost": xgboost,
    "extra trees": encoded(ExtraTreesClassifier, ExtraTreesRegressor, scale=False, random_state=0),
    FOREST: forest,
    BOOSTING: hist_boosting,
    OURS: nca,
    "RBF SVM": encoded(partial(GridSVM, True), partial(GridSVM, False), scale=True),
    "CatBoost": catboost,
    REALMLP: network(RealMLP_TD_Classifier, RealMLP_TD_Regressor),
    TABM: network(TabM_D_Classifier, TabM_D_Regressor),
}
# classifiers whose probabilities are calibrated afterwards: they are compared by probabilities only
CALIBRATED: dict[str, Build] = {
    f"{name}, {method}": calibrated(METHODS[name], method)
    for name in (FOREST, BOOSTING)
    for method in ("isotonic", "temperature")
}


def probabilities(model: Any, X: pd.DataFrame, known: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the probability of every class of the table; classes without a training row get none."""
    P = np.zeros((len(X), n_classes))
    P[:, known] = model.predict_proba(X)
    return P


def log_loss(P: np.ndarray, y: np.ndarray) -> float:
    return float(-np.log(np.maximum(P[np.arange(len(y)), y], SMALLEST)).mean())


def reliability(P: np.ndarray, y: np.ndarray) -> list[list[float]]:
    """Return of every bin of the largest probability: rows, sum of this probability, hits.

    The bins have equal widths. By sums, because bins of several folds can be added.
    """
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    place = np.minimum((top * N_RELIABILITY_BINS).astype(int), N_RELIABILITY_BINS - 1)
    sums = (
        np.bincount(place, weights, N_RELIABILITY_BINS) for weights in (np.ones(len(y)), top, right)
    )
    return [[round(float(value), 6) for value in one] for one in sums]


def fitted(build: Build, X: pd.DataFrame, y: np.ndarray, n_classes: int) -> Any:
    """Return a predictor X -> probabilities (n, n_classes), or numbers where there are no classes."""
    model = build(bool(n_classes), words_of(X))
    if not n_classes:
        return model.fit(X, y).predict
    known, codes = np.unique(y, return_inverse=True)  # XGBoost refuses gaps
    model.fit(X, codes)
    return lambda rows: probabilities(model, rows, known, n_classes)
