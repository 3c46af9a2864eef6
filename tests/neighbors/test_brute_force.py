"""The nearest of many rows that come tile by tile."""

import numpy as np
import pytest
from sklearn.metrics import euclidean_distances

from nearkin.neighbors.brute_force import nearest_candidates


@pytest.mark.parametrize("tile", [3, 40, 1000])
@pytest.mark.parametrize("k", [1, 7, 300])
def test_the_nearest_of_all_tiles(tile, k):
    rng = np.random.default_rng(0)
    Q, Y = (rng.normal(size=(n, 6)).astype(np.float32) for n in (20, 200))
    numbers = rng.permutation(1000)[:200]
    tiles = [
        (numbers[start : start + tile], Y[start : start + tile]) for start in range(0, 200, tile)
    ]
    found = nearest_candidates(Q, tiles, k)
    true = np.argsort(euclidean_distances(Q.astype(np.float64), Y.astype(np.float64)), axis=1)[
        :, :k
    ]
    assert (found[:, true.shape[1] :] == -1).all()
    found = found[:, : true.shape[1]]
    np.testing.assert_array_equal(np.sort(found, axis=1), np.sort(numbers[true], axis=1))


def test_tiles_are_rounded_relative_to_the_mean_of_the_queries():
    rng = np.random.default_rng(0)
    Y = 1000 + rng.normal(size=(500, 4)).astype(np.float32)
    found = nearest_candidates(Y, [(np.arange(500), Y)], 3)
    D = euclidean_distances(Y.astype(np.float64) - 1000)
    assert (
        np.sort(np.take_along_axis(D, found, axis=1), axis=1) <= np.sort(D, axis=1)[:, :3] + 1e-3
    ).all()
