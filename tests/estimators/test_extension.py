"""Coordinates of new rows: on halves of a set, by the edges of training rows, independent of X."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import linear_kernel
from sklearn.neighbors import KNeighborsClassifier

from nearkin import TDL
from nearkin.graphs import heat_kernel, union
from nearkin.neighbors import nearest

from .test_tdl import problem


class TestNewRows:
    @pytest.mark.long
    def test_halves_of_digits(self):
        X, y = load_digits(return_X_y=True)
        train = np.arange(len(X)) % 2 == 0
        few = np.where(np.arange(train.sum()) % 5, -1, y[train])
        for settings in ({}, {"laplacian": "normalized"}, {"kernel": "rbf", "n_landmarks": 300}):
            tdl = TDL(20, n_neighbors=10, reg=64.0, random_state=0, **settings).fit(X[train], few)
            vote = KNeighborsClassifier(3).fit(tdl.embedding_[few >= 0], few[few >= 0])
            transductive = vote.score(tdl.embedding_[few < 0], y[train][few < 0])
            assert vote.score(tdl.transform(X[~train]), y[~train]) > transductive - 0.02, settings

    def test_the_edges_of_training_rows(self):
        X, few = problem()
        W = union(heat_kernel(nearest(X, 20)))
        for which in ("normalized", "unnormalized"):
            tdl = TDL(2, reg=1024.0, reg_unit=1.0, laplacian=which).fit(X, few, affinity=W)
            hidden = few < 0  # labelled rows also have a cost
            smooth = (
                tdl.eigenvalues_.max() / 1024
                < (1.0 if which == "normalized" else W.sum(axis=1)) / 2
            )
            rows = np.flatnonzero(hidden & smooth)
            assert len(rows) > 100
            np.testing.assert_allclose(
                tdl.transform(X, affinity=W)[rows], tdl.embedding_[rows], atol=1e-9
            )


@pytest.mark.parametrize("settings", [{}, {"kernel": linear_kernel}])
@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_rows_that_change_after_the_fit_change_nothing(settings, kind):
    X, few = problem()
    X, new = kind(X), X[:5] + 0.1
    tdl = TDL(3, reg=1.0, **settings).fit(X, few)
    before = tdl.transform(new)
    (X if isinstance(X, np.ndarray) else X.data)[:] *= 3
    np.testing.assert_array_equal(tdl.transform(new), before)
