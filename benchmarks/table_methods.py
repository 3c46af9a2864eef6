"""Predictors of a data frame for tables.py, with defaults, and the spaces in which they are tuned."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
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
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
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

# (classify, the names of the columns of text, parameters) -> an estimator
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

    def build(classify: bool, words: Sequence[str], **parameters: Any) -> Any:
        return make_pipeline(
            one_hot(words, scale), (classifier if classify else regressor)(**fixed, **parameters)
        )

    return build


def categorical(classifier: Any, regressor: Any, **fixed: Any) -> Build:
    """Return a builder of a method that reads the category type of pandas."""

    def build(classify: bool, words: Sequence[str], **parameters: Any) -> Any:
        return make_pipeline(
            AsCategories(), (classifier if classify else regressor)(**fixed, **parameters)
        )

    return build


def catboost(classify: bool, words: Sequence[str], **parameters: Any) -> Any:
    model = CatBoostClassifier if classify else CatBoostRegressor
    fixed = {"verbose": 0, "thread_count": 1, "random_seed": 0, "allow_writing_files": False}
    return model(cat_features=list(words), **fixed, **parameters)


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


def nca(classify: bool, words: Sequence[str], **parameters: Any) -> Any:
    return (NCAClassifier if classify else NCARegressor)(random_state=0, **parameters)


OURS, FOREST, BOOSTING = "nearkin NCA", "random forest", "HistGradientBoosting"
REALMLP, TABM = "RealMLP-TD", "TabM"
TREES = (FOREST, "extra trees", BOOSTING, "XGBoost", "LightGBM", "CatBoost")

forest = encoded(RandomForestClassifier, RandomForestRegressor, scale=False, random_state=0)
hist_boosting = categorical(
    HistGradientBoostingClassifier, HistGradientBoostingRegressor, random_state=0
)
xgboost = categorical(
    XGBClassifier, XGBRegressor, enable_categorical=True, n_jobs=1, random_state=0
)
svm = encoded(partial(kernel_machine, True), partial(kernel_machine, False), scale=True)
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


def log_uniform(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: float(np.exp(rng.uniform(np.log(low), np.log(high))))


def whole(draw: Callable[[np.random.Generator], float]) -> Callable[[np.random.Generator], int]:
    return lambda rng: round(draw(rng))


def uniform(low: float, high: float) -> Callable[[np.random.Generator], float]:
    return lambda rng: float(rng.uniform(low, high))


def one_of(*values: Any) -> Callable[[np.random.Generator], Any]:
    return lambda rng: values[rng.integers(len(values))]


# After Grinsztajn, Oyallon and Varoquaux (2022), Gorishniy et al. (2021) and McElfresh et al.
# (2023). Learning rates below .01, which need thousands of trees and early stopping, are left out:
# a budget of seconds cannot use them.
RATE, TREE_COUNT, HALF = log_uniform(0.01, 0.3), whole(log_uniform(50, 1000)), uniform(0.5, 1)
SPACES: dict[str, tuple[Build, dict[str, Callable[[np.random.Generator], Any]]]] = {
    OURS: (
        nca,
        {
            "n_bins": one_of(4, 8, 16, 32),
            "n_components": one_of(8, 32, 64),
            "n_members": one_of(3, 5, 8),
            "distance": one_of("auto", "squared", "plain"),
        },
    ),
    "RBF SVM": (svm, {"C": log_uniform(0.01, 1000), "gamma": log_uniform(1e-4, 1)}),
    FOREST: (
        forest,
        {
            "n_estimators": one_of(250),
            "max_depth": one_of(None, None, None, 4, 8, 16),
            "max_features": one_of("sqrt", "log2", None, 0.2, 0.4, 0.6, 0.8),
            "min_samples_leaf": whole(log_uniform(0.51, 50)),
            "bootstrap": one_of(True, False),
        },
    ),
    BOOSTING: (
        hist_boosting,
        {
            "learning_rate": RATE,
            "max_iter": TREE_COUNT,
            "max_leaf_nodes": whole(log_uniform(4, 64)),
            "min_samples_leaf": whole(log_uniform(2, 50)),
            "l2_regularization": log_uniform(1e-6, 10),
            "max_features": HALF,
        },
    ),
    "LightGBM": (
        lightgbm,
        {
            "learning_rate": RATE,
            "n_estimators": TREE_COUNT,
            "num_leaves": whole(log_uniform(4, 128)),
            "min_child_samples": whole(log_uniform(2, 50)),
            "subsample": HALF,
            "subsample_freq": one_of(1),
            "colsample_bytree": HALF,
            "reg_lambda": log_uniform(1e-6, 10),
        },
    ),
    "XGBoost": (
        xgboost,
        {
            "learning_rate": RATE,
            "n_estimators": TREE_COUNT,
            "max_depth": whole(uniform(1.5, 10.5)),
            "min_child_weight": log_uniform(1, 100),
            "subsample": HALF,
            "colsample_bytree": HALF,
            "colsample_bylevel": HALF,
            "gamma": log_uniform(1e-8, 7),
            "reg_lambda": log_uniform(1, 4),
            "reg_alpha": log_uniform(1e-8, 100),
        },
    ),
    "CatBoost": (
        catboost,
        {
            "learning_rate": RATE,
            "iterations": TREE_COUNT,
            "depth": one_of(3, 4, 5, 6, 7, 8),
            "l2_leaf_reg": log_uniform(1, 10),
            "bagging_temperature": uniform(0, 1),
            "leaf_estimation_iterations": one_of(1, 2, 5, 10),
        },
    ),
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


def fitted(
    build: Build, parameters: dict[str, Any], X: pd.DataFrame, y: np.ndarray, n_classes: int
) -> Any:
    """Return a predictor X -> probabilities (n, n_classes), or numbers where there are no classes."""
    model = build(bool(n_classes), list(X.select_dtypes(exclude="number")), **parameters)
    if not n_classes:
        return model.fit(X, y).predict
    known, codes = np.unique(y, return_inverse=True)  # XGBoost refuses gaps
    model.fit(X, codes)
    return lambda rows: probabilities(model, rows, known, n_classes)


def tuned(
    name: str, X: pd.DataFrame, y: np.ndarray, n_classes: int, seconds: float
) -> tuple[Any, dict[str, Any], int]:
    """Return the best of the default and of parameters drawn until the processor seconds are over,
    and their number.

    Three folds of the training rows choose, by log loss or squared error; a draw that is not done
    in time is dropped.
    """
    build, space = SPACES[name]
    rng, end = np.random.default_rng(0), process_time() + seconds
    parameters: dict[str, Any] = {}
    tried = [(held_out_loss(build, parameters, X, y, n_classes, np.inf), parameters)]
    while process_time() < end:
        parameters = {key: draw(rng) for key, draw in space.items()}
        tried.append((held_out_loss(build, parameters, X, y, n_classes, end), parameters))
    best = min(tried, key=lambda pair: pair[0])[1]
    return (
        fitted(build, best, X, y, n_classes),
        best,
        int(sum(np.isfinite(loss) for loss, _ in tried)),
    )


def held_out_loss(
    build: Build,
    parameters: dict[str, Any],
    X: pd.DataFrame,
    y: np.ndarray,
    n_classes: int,
    end: float,
) -> float:
    losses = []
    folds = (StratifiedKFold if n_classes else KFold)(3, shuffle=True, random_state=1)
    for train, test in folds.split(X, y):
        if process_time() > end:
            return np.inf
        predicted = fitted(build, parameters, X.iloc[train], y[train], n_classes)(X.iloc[test])
        losses.append(
            log_loss(predicted, y[test]) if n_classes else np.mean((predicted - y[test]) ** 2)
        )
    return float(np.mean(losses))
