"""What the experiments are made of, on small made data."""

import numpy as np
import pytest

from reproductions.discriminative_projections import figures as dp
from reproductions.discriminative_projections import tables as dp_table


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestDiscriminativeProjections:
    def test_some_of_each(self):
        y = np.repeat([1, 2], [40, 60])
        few = dp.some_of_each(y, 0.5)
        assert np.unique(few, return_counts=True)[1].tolist() == [50, 20, 30]
        np.testing.assert_array_equal(few[few > 0], y[few > 0])

    def test_closest_labels(self):
        G = np.array([[0.0, 0], [1, 0], [0, 10], [10, 10]])
        assert dp.closest_labels(G, 1).startswith("0-1 0.1")

    def test_table_1_counts_what_guessing_beats(self):
        scores = {name: [50.0, 60.0] for name in dp_table.TABLE_1} | {
            "largest class": [66.0, 66.0],
            "original": [99.0, 99.0],
        }
        text = dp_table._beyond_reach("mushroom", scores, 1)
        assert "below the largest class alone (66.0 %): 4 of 6" in text
        assert "99.0 %, not 54.67" in text

    def test_ranked_by_grades(self):
        # nothing to order in query 2
        y, query = (
            np.array([2, 1, 0, 0, 1, 1]),
            np.array([0, 0, 0, 1, 1, 2]),
        )
        # all right in query 0, all wrong in query 1
        assert dp_table.ranked(-np.arange(6.0), y, query)[1] == 50
        assert dp_table.ranked(y, y, query) == (100, 100)
        assert dp_table.ranked(np.zeros(6), y, query)[1] == 50

    def test_kept_neighbours_of_the_same_rows(self, rng):
        X = rng.normal(size=(40, 3))
        shares = dp.kept_neighbors(X, X, np.arange(40) < 10)
        assert shares.n_used == 10
        assert shares.used.min() == shares.unused.min() == 1
