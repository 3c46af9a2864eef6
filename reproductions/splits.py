"""Random training and test rows, as the papers draw them, and the k-NN vote that scores a map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

Map = Callable[[Any], Any]


@dataclass(frozen=True)
class Split:
    """Training and test rows with their labels."""

    train: Any
    y_train: np.ndarray
    test: Any
    y_test: np.ndarray

    @classmethod
    def of(cls, X: Any, y: np.ndarray, train: np.ndarray) -> Split:
        """Split by the numbers of the training rows."""
        test = np.setdiff1d(np.arange(len(y)), train)
        return cls(X[train], y[train], X[test], y[test])

    def mapped(self, transform: Map) -> Split:
        """Return the split with its rows transformed."""
        return Split(transform(self.train), self.y_train, transform(self.test), self.y_test)

    def score(self, transform: Map, n_neighbors: int) -> float:
        """Return the percentage of test rows that the training rows vote right, both transformed."""
        return self.mapped(transform).accuracy(n_neighbors)

    def accuracy(self, n_neighbors: int) -> float:
        """Return the percentage of test rows that the training rows vote right."""
        knn = KNeighborsClassifier(n_neighbors, algorithm="brute").fit(self.train, self.y_train)
        return 100 * knn.score(self.test, self.y_test)

    def leave_one_out(self, n_neighbors: int) -> float:
        """Return the percentage of training rows that the others vote right; the map is not learned
        anew.
        """
        knn = KNeighborsClassifier(n_neighbors, algorithm="brute").fit(self.train, self.y_train)
        return 100 * knn.score(None, self.y_train)


def of_each_class(y: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of `size` random rows of every class: a number, or a share below 1."""
    drawn = []
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        drawn.append(rng.permutation(rows)[: size if size >= 1 else round(size * len(rows))])
    return np.concatenate(drawn)


def some_labels(y: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return codes y with -1 for all but a random share of the rows, among which every class has
    one at least.
    """
    while True:
        rows = rng.permutation(len(y))[: round(share * len(y))]
        if len(np.unique(y[rows])) == len(np.unique(y)):
            few = np.full(len(y), -1)
            few[rows] = y[rows]
            return few


def codes_of(y: np.ndarray) -> np.ndarray:
    """Return the number of the class of every row."""
    return np.unique(y, return_inverse=True)[1]


def without_null_space(split: Split) -> Split:
    """Drop the null space of the training covariance, largest variance first."""

    def dense(X: Any) -> np.ndarray:
        return X.toarray() if issparse(X) else X

    pca = PCA(svd_solver="full").fit(dense(split.train))
    kept = pca.singular_values_ > 1e-10 * pca.singular_values_[0]
    return split.mapped(lambda X: pca.transform(dense(X))[:, kept])


class UnitLDA(LinearDiscriminantAnalysis):
    """LDA with directions of unit length, among so few principal components that S_w is not
    singular.

    scikit-learn's own are whitened within the classes: on faces that loses 40 points (NMMP's Table
    4), and it leaves nothing to do for RCA after it (NCA's figure 2). Rows must be in principal
    components, largest variance first, where there are more of them than training rows minus
    classes.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> UnitLDA:
        """Find the directions."""
        self.n_leading_ = min(X.shape[1], len(X) - len(np.unique(y)))
        return super().fit(X[:, : self.n_leading_], y)

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Map rows onto them."""
        W = self.scalings_[:, : self.n_components or len(self.classes_) - 1]
        return X[:, : self.n_leading_] @ (W / np.linalg.norm(W, axis=0))
