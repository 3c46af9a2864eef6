"""The bins of a number are a basis of the functions that are linear between their edges."""

import numpy as np
from sklearn.linear_model import LinearRegression

from nearkin.tables.bins import Bins

RNG = np.random.default_rng(0)
NORMAL, FEW, SKEWED = RNG.standard_normal(200), RNG.integers(0, 4, 200), RNG.exponential(size=200)


def features(x, n_bins):
    return Bins.learn(x, n_bins).transform(x)


def test_every_function_that_bends_at_the_edges_is_a_linear_map():
    bins = Bins.learn(NORMAL, 8)
    heights = RNG.standard_normal(len(bins.edges))
    y = np.interp(NORMAL, bins.edges, heights)
    model = LinearRegression().fit(bins.transform(NORMAL), y)
    np.testing.assert_allclose(model.predict(bins.transform(NORMAL)), y, atol=1e-9)
    np.testing.assert_allclose(np.cumsum(model.coef_), heights[1:] - heights[0], atol=1e-8)


def test_bins_hold_equally_many_rows():
    counts = np.histogram(NORMAL, Bins.learn(NORMAL, 10).edges)[0]
    assert len(counts) == 10
    assert np.ptp(counts) <= 1


def test_few_values_become_a_thermometer():
    x = FEW.astype(float)
    np.testing.assert_array_equal(features(x, 16), x[:, None] > np.arange(3))


def test_a_constant_makes_no_features_and_one_that_is_always_missing_only_that():
    constant, missing = Bins.learn(np.ones(9), 2), Bins.learn(np.full(9, np.nan), 2)
    assert (constant.width, missing.width) == (0, 1)
    assert constant.transform(np.array([np.nan])).shape == (1, 0)
    assert missing.transform(np.array([np.nan, 3.0])).tolist() == [[1], [0]]
    assert features(np.arange(9.0), 2)[[0, 2, 8]].tolist() == [[0, 0], [0.5, 0], [1, 1]]


def test_what_lies_beyond_the_edges_is_encoded_as_the_edge():
    for x in (NORMAL, SKEWED):
        bins, ends = Bins.learn(x, 16), np.array([x.min(), x.max()])
        beyond = bins.transform(ends + np.array([-9e9, 9e9]))
        np.testing.assert_array_equal(beyond, bins.transform(ends))
        assert set(beyond.ravel()) == {0, 1}


def test_missing_values_have_a_feature_of_their_own_or_are_the_median():
    holed = NORMAL.copy()
    holed[::5] = np.nan
    bins = Bins.learn(holed, 4)
    assert bins.transform(np.array([np.nan])).tolist() == [[0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(bins.edges, Bins.learn(holed[~np.isnan(holed)], 4).edges)
    whole = Bins.learn(NORMAL, 4)
    np.testing.assert_array_equal(*whole.transform(np.array([np.nan, np.median(NORMAL)])))


def test_units_and_the_order_of_rows_do_not_matter():
    E = features(SKEWED, 7)
    for unit in (1e-9, 1024.0, 1e12):
        np.testing.assert_allclose(features(SKEWED * unit + 5 * unit, 7), E, atol=1e-9)
    order = RNG.permutation(len(SKEWED))
    np.testing.assert_array_equal(features(SKEWED[order], 7), E[order])


def test_single_precision_agrees_with_double():
    E = features(NORMAL.astype(np.float32), 7)
    assert E.dtype == np.float32
    np.testing.assert_allclose(E, features(NORMAL, 7), atol=1e-5)
