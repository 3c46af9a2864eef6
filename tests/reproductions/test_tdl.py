"""What the experiments are made of, on small made data."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from nearkin.estimators import TDL
from nearkin.estimators.tdl import label_costs
from nearkin.graphs import heat_kernel, laplacian, union
from nearkin.neighbors import nearest
from reproductions.splits import some_labels
from reproductions.tdl import experiments as tdl
from reproductions.tdl import losses as tdl_losses
from reproductions.tdl import mnist as tdl_mnist


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestTDL:
    def test_accuracy_is_that_of_rows_without_label(self):
        Z = np.array([[0.0], [10], [1], [9], [2]])
        assert tdl.accuracy(
            Z, np.array([0, 1, 0, 1, 1]), np.array([0, 1, -1, -1, -1]), 1
        ) == pytest.approx(200 / 3)

    def test_moons_have_ten_labels_each(self, rng):
        X, y, few = tdl.moons(rng)
        assert X.shape == (200, 2)
        assert np.unique(few, return_counts=True)[1].tolist() == [180, 10, 10]
        np.testing.assert_array_equal(few[few >= 0], y[few >= 0])

    def test_nearest_kernel_mean_by_its_definition(self, rng, monkeypatch):
        """||phi(x) - m_c||^2 = k(x, x) - 2 mean_j k(x, x_j) + mean_ij k(x_i, x_j)."""
        monkeypatch.setattr(tdl, "GAMMAS", [0.7])
        X = np.vstack([rng.normal(size=(40, 2)), rng.normal(0.8, 2, size=(40, 2))])
        y = np.repeat([0, 1], 40)
        few = some_labels(y, 0.3, rng)
        K = rbf_kernel(X, gamma=0.7)
        rows = [few == label for label in (0, 1)]
        squares = np.array(
            [1 - 2 * K[:, own].mean(axis=1) + K[np.ix_(own, own)].mean() for own in rows]
        )
        right = np.argmin(squares, axis=0) == y
        assert tdl.nearest_kernel_mean(X, y, few) == pytest.approx(100 * right[few < 0].mean())

    @pytest.mark.long
    def test_support_vectors_part_what_can_be_parted(self, rng):
        y = np.repeat([0, 1], 40)
        X = rng.normal(size=(80, 2)) + 8 * y[:, None]
        assert tdl.support_vectors(X, y, some_labels(y, 0.3, rng)) == 100

    def test_a_linear_loss_is_the_papers(self, rng):
        X, y = rng.normal(size=(80, 3)), rng.integers(0, 3, 80)
        few = some_labels(y, 0.5, rng)
        linear = tdl_losses.majorized(X, few, 3, np.ones_like)
        np.testing.assert_allclose(linear.eigenvalues_, TDL(3, reg=1.0).fit(X, few).eigenvalues_)

    def test_clipped_costs_lower_the_objective_to_a_fixed_point(self, rng):
        """min(c_i, 0): rows whose cost is positive at the end have none in the last eigenproblem."""
        X, y = make_blobs(200, 4, centers=3, cluster_std=2.0, random_state=1)
        few = np.where(np.arange(200) < 60, y, -1)
        few[:60:6] = (few[:60:6] + 1) % 3
        tdl = tdl_losses.majorized(X, few, 3, tdl_losses.SLOPES["clipped"])
        A = label_costs(X, few, 20)
        P = laplacian(union(heat_kernel(nearest(X, 20))))

        def objective(V):
            """Return the objective by its definition, and the cost of every row."""
            squares = squareform(pdist(V, "sqeuclidean"))
            costs = np.sum(A.toarray() * squares, axis=1)
            np.testing.assert_allclose(tdl_losses.row_costs(A, V), costs, atol=1e-12)
            return np.minimum(costs, 0).sum() + tdl.reg_unit_ * np.trace(V.T @ P @ V), costs

        value, costs = objective(tdl.embedding_)
        assert value < objective(TDL(3, reg=np.inf).fit(X, few).embedding_)[0]
        assert value == pytest.approx(tdl.objective_)
        clipped = np.flatnonzero(costs > 0)
        assert set(np.arange(0, 60, 6)) & set(clipped)  # wrong labels

    def test_wrong_labels_are_those_of_other_classes(self, rng):
        few = some_labels(np.arange(200) % 3, 0.5, rng)
        given = tdl_losses.with_wrong_labels(few, 0.2, rng)
        np.testing.assert_array_equal(given >= 0, few >= 0)
        assert np.sum(given != few) == 20
        assert given.max() == 2

    def test_graphs_are_symmetric_and_say_who_lists_whom(self, rng):
        G = nearest(rng.normal(size=(30, 2)), 4)
        listed = G.toarray() > 0
        graphs = {name: graph(G).toarray() for name, graph in tdl_mnist.GRAPHS.items()}
        for W in graphs.values():
            np.testing.assert_array_equal(W, W.T)
            np.testing.assert_array_equal(W > 0, listed | listed.T)
        np.testing.assert_array_equal(graphs["mean"], (listed.astype(float) + listed.T) / 2)
        assert set(np.unique(graphs["union"])) == {0, 1}

    def test_moved_images(self):
        image = np.zeros((1, 28, 28))
        image[0, 13, 20] = 1
        assert tdl_mnist.moved(image.reshape(1, -1)).argmax() == 14 * 28 + 21

    def test_first_neighbours(self, rng):
        X = rng.normal(size=(30, 2))
        np.testing.assert_allclose(
            tdl_mnist._first(nearest(X, 10), 3).toarray(), nearest(X, 3).toarray()
        )

    def test_table_1_has_all_that_the_paper_prints(self):
        assert {problem.name for problem in tdl.TABLE_1} == {
            "breast cancer",
            "ionosphere",
            "sonar",
            "wine",
        }
        for problem in tdl.TABLE_1:
            assert tuple(problem.printed) == tdl.PRINTED_ROWS
        assert {tdl.WHAT[row] for row in tdl.ROWS} == set(tdl.PRINTED_ROWS)
