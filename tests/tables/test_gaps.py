"""Which missing cells have an indicator."""

import numpy as np
import pytest
from sklearn.base import clone

from nearkin._blocks import filled
from nearkin.tables import indicated_features
from nearkin.tables.gaps import Imputer

from ..comparison.tables import hidden


def with_gaps(n=150, p=6, share=0.1, seed=0):
    """Return `hidden` with cells of the columns 1, 3, ... taken out at random."""
    X, y = hidden(n, p, seed)
    gaps = np.random.default_rng(seed).random(X.shape) < share
    gaps[:, ::2] = False
    return np.where(gaps, np.nan, X), y


def indicated_by_loops(gaps):
    """Return the columns with an indicator: enough gaps and enough values, a pattern once, at most
    one for 10 rows.
    """
    n, found = len(gaps), {}
    for column in range(gaps.shape[1]):
        rarer = min(gaps[:, column].sum(), n - gaps[:, column].sum())
        alike = any((gaps[:, column] == gaps[:, other]).all() for other in found)
        if rarer >= 5 and not alike:
            found[column] = rarer
    most_varied = sorted(found, key=lambda column: (-found[column], column))[: n // 10]
    return sorted(most_varied)


class TestIndicators:
    """Which columns with gaps get one."""

    @pytest.mark.parametrize("n", [3, 12, 49, 90, 200])
    @pytest.mark.parametrize("p", [0, 1, 30])
    def test_they_are_those_of_the_definition(self, n, p):
        rng = np.random.default_rng(n)
        gaps = rng.random((n, p)) < rng.random(p)
        gaps[:, p // 2 :] = gaps[:, : p - p // 2]  # patterns twice
        np.testing.assert_array_equal(indicated_features(gaps), indicated_by_loops(gaps))

    def test_never_more_than_one_for_ten_rows(self):
        gaps = np.random.default_rng(0).random((82, 243)) < 0.3
        assert len(indicated_features(gaps)) == 8

    def test_columns_missing_together_get_one(self):
        gaps = np.repeat(np.random.default_rng(0).random((100, 1)) < 0.3, 20, axis=1)
        np.testing.assert_array_equal(indicated_features(gaps), [0])

    def test_a_gap_in_few_rows_or_in_nearly_all_gets_none(self):
        gaps = np.zeros((100, 4), dtype=bool)
        gaps[:4, 0] = gaps[4:, 1] = gaps[:5, 2] = gaps[5:, 3] = True
        np.testing.assert_array_equal(indicated_features(gaps), [2, 3])

    def test_the_imputer_can_be_cloned_and_names_its_features(self):
        X, _ = with_gaps()
        names = [f"x{j}" for j in range(6)]
        fitted = clone(Imputer()).fit(X)
        more = [f"missingindicator_x{j}" for j in indicated_features(np.isnan(X))]
        assert fitted.get_feature_names_out().tolist() == [*names, *more]
        assert fitted.transform(X[:3]).shape == (3, len(names) + len(more))
        assert len(more) == 3

    def test_without_any_indicator(self):
        X = np.array([[1.0, np.nan], [2.0, 3.0], [4.0, 5.0]])
        np.testing.assert_array_equal(Imputer().fit(X).transform(X), [[1, 4], [2, 3], [4, 5]])

    def test_twins_differ_where_one_lacks_a_cell(self):
        """However rare the gap is: two rows are alike only if they are known alike."""
        X = np.array([[1.0, 2.0], [1.0, np.nan], [3.0, 2.0], [4.0, 2.0]])
        np.testing.assert_array_equal(filled(X)[:, 2], [0, 1, 0, 0])
