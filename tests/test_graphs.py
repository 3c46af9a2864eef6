import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin import graphs
from nearkin.neighbors import nearest


@pytest.fixture
def G():
    return nearest(np.random.default_rng(0).normal(size=(40, 2)), 3)


def test_either_and_mutual(G):
    A = graphs.binary(G).toarray() > 0
    np.testing.assert_array_equal(graphs.union(graphs.binary(G)).toarray(), A | A.T)
    np.testing.assert_array_equal(graphs.mutual(graphs.binary(G)).toarray(), A & A.T)


def test_duplicates_are_adjacent_although_their_distance_is_zero():
    G = nearest(np.repeat([[0.0, 0.0], [9.0, 9.0]], 2, axis=0), 1)
    assert graphs.binary(G).sum() == 4
    np.testing.assert_array_equal(graphs.heat_kernel(G).data, np.ones(4))


def test_heat_kernel(G):
    np.testing.assert_allclose(graphs.heat_kernel(G, 0.5).data, np.exp(-(G.data**2) / 0.5))
    np.testing.assert_allclose(
        graphs.heat_kernel(G).data, np.exp(-(G.data**2) / np.mean(G.data**2))
    )


def test_local_scale_is_the_distance_to_the_kth_neighbour(G):
    np.testing.assert_allclose(graphs.kth_distance(G, 3), G.toarray().max(axis=1))
    weights = graphs.scaled_weights(np.array([4.0, 0.0, 4.0]), np.array([2.0, 0.0, 0.0]))
    np.testing.assert_allclose(weights, [np.exp(-2), 1.0, 0.0])


def test_kth_distance_of_short_lists():
    G = csr_array(
        (np.array([1.0, 2.0, 5.0]), np.array([1, 2, 0]), np.array([0, 2, 3, 3])), shape=(3, 3)
    )
    np.testing.assert_array_equal(graphs.kth_distance(G, 2), [2.0, 5.0, 0.0])


def test_laplacian_is_the_energy_of_the_edges(G):
    union, mutual = graphs.union(graphs.heat_kernel(G)), graphs.mutual(graphs.binary(G))
    for W in (union, csr_array(union - mutual)):
        L, f, w = graphs.laplacian(W), np.random.default_rng(1).normal(size=40), W.toarray()
        np.testing.assert_allclose(f @ (L @ f), 0.5 * np.sum(w * (f[:, None] - f) ** 2))
        np.testing.assert_allclose(L @ np.ones(40), 0, atol=1e-14)
        np.testing.assert_array_equal((L - L.T).toarray(), 0)


def test_connected_components_and_the_null_space_of_the_laplacian():
    X = np.concatenate([np.random.default_rng(0).normal(size=(15, 2)) + 100 * c for c in range(3)])
    W = graphs.union(graphs.heat_kernel(nearest(X, 4)))
    labels = graphs.connected_components(W)
    np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], 15))
    indicators = (labels[:, None] == np.arange(3)).astype(float)
    np.testing.assert_allclose(graphs.laplacian(W) @ indicators, 0, atol=1e-12)
