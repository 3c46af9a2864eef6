"""Tables and methods for the tests of the comparison."""

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from nearkin import DNE
from nearkin.comparison import CLASSIFICATION, SCORES, Method, compare
from nearkin.comparison.protocol import Protocol

FIXED = Method("DNE", DNE(1), nested=False)  # nothing to choose
DNE_METHOD = Method("DNE", DNE(), lambda p: [{"n_neighbors": 1}, {"n_neighbors": 5}])
FEW = {"n_splits": 3, "n_repeats": 1, "references": (), "refit": False}
QUICK = FEW | {"n_neighbors": 3}  # nor is the vote chosen


def hidden(n=150, p=6, seed=0):
    """Return two classes that differ in one of many features: raw k-NN drowns in the others."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.normal(size=(n, p))
    X[:, 0] += 5 * y
    return X, np.array(["no", "yes"])[y]


def noise(n=60, p=4, seed=0):
    """Return rows whose labels mean nothing."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.permutation(np.arange(n) % 2)


def quick(X, y, methods=(FIXED,), **options):
    """Compare on few folds, by 3-NN, without references or a winner."""
    return compare(X, y, **({"methods": list(methods)} | QUICK | options))


def protocol_of(X, y, *, task=CLASSIFICATION, groups=None, units=None, **options):
    """Return the rules for a table, as `compare` makes them; without `units` no row has a twin."""
    classes = np.array([])
    if task == CLASSIFICATION:
        classes, y = np.unique(y, return_inverse=True)
    units = np.arange(len(y)) if units is None else units
    score = next(iter(SCORES[task.name].values()))
    units, grouped = (units, False) if groups is None else (groups, True)
    fields = {
        "X": X,
        "y": y,
        "classes": classes,
        "units": units,
        "task": task,
        "score": score,
        "grouped": grouped,
    }
    return Protocol(**fields | options)


class LastFeature(TransformerMixin, BaseEstimator):
    """The feature that says nothing."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X[:, -1:]


class FirstFeature(LastFeature):
    """The feature that says all."""

    def transform(self, X):
        return X[:, :1]


class Spy(TransformerMixin, BaseEstimator):
    """Notes the rows of every fit, by their number in column 0, and their targets."""

    seen: ClassVar = []

    def __init__(self, n_components=None):
        self.n_components = n_components

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.seen.append((X[:, 0].astype(int), np.asarray(y)))
        return self

    def transform(self, X):
        return X
