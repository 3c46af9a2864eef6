"""What notebooks show: a line of what was learned in the diagrams of estimators."""

import inspect

import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris

import nearkin
from nearkin import (
    LMNN,
    MLKR,
    NCA,
    TDL,
    Migration,
    NCAClassifier,
    NCARegressor,
    PairNCA,
    TDLClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
FEW = {LMNN: {"max_iter": 3}, MLKR: {"max_iter": 3}, NCA: {"max_iter": 3}, PairNCA: {"max_iter": 3}}
FEW |= {predictor: {"n_members": 2, "alpha": 0.01} for predictor in (NCAClassifier, NCARegressor)}
FEW |= {TDL: {"reg": 1.0}, TDLClassifier: {"tdl": TDL(5, reg=1.0)}}
ESTIMATORS = [
    estimator(**FEW.get(estimator, {}))
    for name, estimator in inspect.getmembers(nearkin, inspect.isclass)
    if issubclass(estimator, BaseEstimator)
    and hasattr(estimator, "fit")
    and name != "NeuralNCA"  # needs torch
]
every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__
)
X, Y = (part[::2] for part in load_iris(return_X_y=True))


def fitted(estimator):
    numeric = isinstance(estimator, (MLKR, NCARegressor)) or type(estimator).__name__.endswith(
        "Regressor"
    )
    return estimator.fit(
        X, X[:, :2] if isinstance(estimator, Migration) else X[:, 0] if numeric else Y
    )


class TestEveryEstimator:
    @every_estimator
    def test_is_shown_whatever_is_missing(self, estimator):
        attributes = vars(fitted(estimator))
        for name in [
            name for name in attributes if name.endswith("_") and not name.startswith("_")
        ]:
            value = attributes.pop(name)
            assert type(estimator).__name__ in estimator._repr_html_()
            attributes[name] = value
