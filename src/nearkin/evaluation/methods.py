"""What is compared: a map, and the settings among which inner validation chooses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from .. import estimators
from .task import CLASSIFICATION

DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
RAW = "raw k-NN"
WHEN = {"params", "regression", "semi_supervised"}  # what `compared_as` may hold beside the attributes of a Method

Params = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A map, unfitted, and how `compare` treats it.

    The classes of nearkin have these attributes but the first two in a dictionary `compared_as`, by name of the method:
    `compared_as = {"DNE": {"settings": lambda p: [{"n_neighbors": k} for k in (1, 3, 10)]}}`. It may also hold
    `params`, for the constructor, None if it takes no classes; `regression`, those with which it takes a target of
    numbers; and `semi_supervised=True`, where it is only compared on tables some rows of which have no label.

    Attributes
    ----------
    name : str
    estimator : transformer with a parameter `n_components`, or None for the raw features
    settings : function of the number of features p that returns the parameter settings to choose among
    nested : bool
        Whether the first m columns of a fit are the fit with m components; one fit then serves every dimension of
        `DIMENSIONS`. Otherwise `settings` must vary `n_components` itself.
    memory : function of the class sizes that returns the bytes a fit needs beyond the data
        For a target of numbers, the number of rows is the size of a single class.
    growth : int
        Power of the number of rows with which the time of a fit grows.
    max_components : function of p and the number of classes that returns the largest n_components
        The number of classes is 1 for a target of numbers.
    unlabelled : bool
        Whether it also learns from rows without a label: y is then the number of the class or -1; of a target of
        numbers NaN.
    """

    name: str
    estimator: BaseEstimator | None
    settings: Callable[[int], Sequence[Params]] = lambda p: [{}]
    nested: bool = True
    memory: Callable[[np.ndarray], float] = lambda sizes: 0.0
    growth: int = 2
    max_components: Callable[[int, int], int] = lambda p, n_classes: p
    unlabelled: bool = False

    def leaves_choice(self, p: int) -> bool:
        """Say whether there is anything to choose for p features: a setting, or the leading dimensions of a fit."""
        return self.estimator is not None and (self.nested or len(self.settings(p)) > 1)


def default_methods(task: str = CLASSIFICATION.name, *, semi_supervised: bool = False) -> list[Method]:
    """Return the raw features, PCA, LDA and the methods of nearkin for a task, quick ones first.

    Those that make sense only where some rows have no label are among them with `semi_supervised=True`.
    """
    methods = [Method(RAW, None), Method("PCA", PCA(svd_solver="full"), growth=1, unlabelled=True)]
    if task == CLASSIFICATION.name:
        lda = LinearDiscriminantAnalysis()
        methods.append(Method("LDA", lda, growth=1, max_components=lambda p, n_classes: min(p, n_classes - 1)))
    for cls in (getattr(estimators, name) for name in estimators.__all__):
        for name, options in vars(cls).get("compared_as", {}).items():
            params = options.get("params", {}) if task == CLASSIFICATION.name else options.get("regression")
            if params is not None and (semi_supervised or not options.get("semi_supervised", False)):
                fields = {key: value for key, value in options.items() if key not in WHEN}
                methods.append(Method(name, cls(**params), **fields))
    return methods
