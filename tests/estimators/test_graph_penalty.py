"""The penalty of a graph: LLE and Isomap as graphs of signed weights, disconnected graphs."""

import numpy as np
import pytest
from scipy.linalg import pinv
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_swiss_roll
from sklearn.manifold import Isomap, LocallyLinearEmbedding
from sklearn.neighbors import NearestNeighbors

from nearkin import TDL, LaplacianEigenmaps

from .test_tdl import cost, problem


class TestOtherPenalties:
    """Section 2.2: LLE and Isomap as penalties, by weights of both signs."""

    def test_lle(self):
        X, M = lle_of_a_roll()
        lle = LocallyLinearEmbedding(n_neighbors=12, eigen_solver="dense").fit(X)
        tdl = TDL(2, reg=np.inf).fit(X, affinity=-M)
        np.testing.assert_allclose(abs(lle.embedding_.T @ tdl.embedding_), np.eye(2), atol=1e-6)
        assert tdl.objective_ == pytest.approx(lle.reconstruction_error_)

    def test_labels_act_on_lle(self):
        X, M = lle_of_a_roll()
        few = np.where(np.arange(len(X)) % 2 == 0, X[:, 0] > 0, -1).astype(int)
        C = cost(X, few)
        with_labels, without = (
            np.sum(C * squareform(pdist(TDL(2, reg=reg).fit(X, few, affinity=-M).embedding_)) ** 2)
            for reg in (1.0, np.inf)
        )
        assert with_labels < without

    def test_isomap_is_its_kernel_subtracted_from_the_largest_eigenvalue(self):
        X, axes, K = isomap_of_a_roll()
        c = np.linalg.eigvalsh(K)[-1]
        tdl = TDL(2, reg=np.inf).fit(X, affinity=K + c / len(X))
        np.testing.assert_allclose(abs(axes.T @ tdl.embedding_), np.eye(2), atol=1e-8)
        assert tdl.eigenvalues_[0] == pytest.approx(0, abs=1e-8 * c)

    def test_isomap_is_not_the_inverse_of_its_kernel(self):
        X, axes, K = isomap_of_a_roll()
        inverse = pinv(K, rtol=1e-10)
        tdl = TDL(2, reg=np.inf).fit(X, affinity=-(inverse + inverse.T) / 2)
        assert tdl.eigenvalues_[0] < 0
        np.testing.assert_allclose(axes.T @ tdl.embedding_, 0, atol=1e-6)

    def test_a_penalty_of_negative_eigenvalues_has_no_unit(self):
        X, few = problem()
        W = -np.ones((len(X), len(X)))
        with pytest.raises(ValueError, match="add a constant to affinity"):
            TDL(2, reg=1.0).fit(X, few, affinity=W)
        W += 1 + 1 / len(X)
        assert TDL(2, reg=1.0).fit(X, few, affinity=W).reg_unit_ > 0


def lle_of_a_roll(k=12):
    """Return rows, and (I - W)'(I - W): row i of W are the weights, of sum 1, that make x_i of its
    k neighbours.
    """
    X, _ = make_swiss_roll(300, random_state=0)
    W = np.zeros((300, 300))
    for i, near in enumerate(NearestNeighbors(n_neighbors=k).fit(X).kneighbors()[1]):
        G = (X[near] - X[i]) @ (X[near] - X[i]).T
        w = np.linalg.solve(G + 1e-3 * np.trace(G) * np.eye(k), np.ones(k))
        W[i, near] = w / w.sum()
    return X, (np.eye(300) - W).T @ (np.eye(300) - W)


def isomap_of_a_roll():
    """Return rows, their coordinates with unit columns, and the matrix of these eigenvectors."""
    X, _ = make_swiss_roll(300, random_state=0)
    isomap = Isomap(n_neighbors=12, eigen_solver="dense").fit(X)
    H = np.eye(300) - 1 / 300
    axes = isomap.embedding_ / np.linalg.norm(isomap.embedding_, axis=0)
    return X, axes, -H @ isomap.dist_matrix_**2 @ H / 2


@pytest.mark.slow
def test_a_disconnected_graph_warns():
    """Ten islands, labels on one: three coordinates can only separate the islands."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((12, 2)) + 1000 * island for island in range(10)])
    few = np.full(120, -1)
    few[:12] = np.arange(12) % 2
    k = {"n_neighbors": 10}
    for model in (TDL(3, **k), LaplacianEigenmaps(3, **k)):
        with pytest.warns(UserWarning, match="has 10 connected components"):
            model.fit(X, few)
