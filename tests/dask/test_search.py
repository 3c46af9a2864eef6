"""The labels of the nearest rows of all blocks, which a comparison on a cluster lets vote."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from nearkin.dask import nearest_labels

from .conftest import blocks, da


@pytest.mark.parametrize("sizes", [(300,), (1, 99, 0, 200), (2, 2, 2, *[49] * 6)], ids=len)
def test_the_nearest_rows_of_all_blocks_vote(client, data, sizes):
    X, y = data
    queries = np.random.default_rng(1).standard_normal((50, X.shape[1]))
    seen = []
    near = nearest_labels(
        *blocks(X, y, sizes),
        da.from_array(queries, chunks=-1),
        4,
        client=client,
        progress=lambda *row: seen.append(row),
    )
    distances, at = NearestNeighbors(n_neighbors=4, algorithm="brute").fit(X).kneighbors(queries)
    np.testing.assert_array_equal(near.labels, y[at])
    np.testing.assert_allclose(near.distances, distances)
    assert seen[-1] == (300, 300)


@pytest.mark.slow
def test_results_of_blocks_are_merged_as_they_come(client, data):
    """Else the cluster holds the nearest of all blocks until the last has reported its own."""
    X, y = data
    held = []
    nearest_labels(
        *blocks(X, y, (10,) * 30),
        da.from_array(X[:50], chunks=-1),
        3,
        client=client,
        progress=lambda *row: held.append(
            sum("labels_in" in str(key) for keys in client.has_what().values() for key in keys)
        ),
    )
    assert max(held) < 20


def test_fewer_rows_than_votes(client, data):
    X, y = data[0][:3], data[1][:3]
    near = nearest_labels(*blocks(X, y, (1, 2)), da.from_array(X, chunks=-1), 5, client=client)
    assert near.labels.shape == (3, 3)
    np.testing.assert_array_equal(near.labels[:, 0], y)


def test_of_equally_near_rows_the_first_counts(client):
    X, y = np.zeros((6, 2)), np.arange(6)
    near = nearest_labels(*blocks(X, y, (2, 4)), da.from_array(X[:1], chunks=-1), 2, client=client)
    assert near.labels[0, 0] in (0, 1)
