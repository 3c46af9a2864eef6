"""The encoding is a basis of the functions that are linear between the edges."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from nearkin.tables import PiecewiseLinearEncoder

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.standard_normal(200), RNG.integers(0, 4, 200), RNG.exponential(size=200)])


@parametrize_with_checks([PiecewiseLinearEncoder(), PiecewiseLinearEncoder(4, strategy="tree")])
def test_it_is_a_transformer(estimator, check):
    check(estimator)


def test_every_function_that_bends_at_the_edges_is_a_linear_map():
    encoder = PiecewiseLinearEncoder(8).fit(X)
    heights = RNG.standard_normal(len(encoder.edges_[0]))
    y = np.interp(X[:, 0], encoder.edges_[0], heights)
    model = LinearRegression().fit(encoder.transform(X), y)
    np.testing.assert_allclose(model.predict(encoder.transform(X)), y, atol=1e-9)
    (curve, *_) = encoder.curves(model.coef_[None])
    np.testing.assert_allclose(curve.values[0], heights - heights[0], atol=1e-8)


def test_curves_add_up_to_the_map_missing_values_included():
    holed = X.copy()
    holed[::7, 0] = np.nan
    encoder = PiecewiseLinearEncoder(5).fit(holed)
    A = RNG.standard_normal((3, len(encoder.get_feature_names_out())))
    mapped = sum(
        np.where(
            np.isnan(x),
            0 if curve.missing is None else curve.missing[:, None],
            [np.interp(x, curve.edges, values) for values in curve.values],
        )
        for x, curve in zip(holed.T, encoder.curves(A), strict=True)
    )
    np.testing.assert_allclose(mapped.T, encoder.transform(holed) @ A.T, atol=1e-12)


def test_bins_hold_equally_many_rows():
    encoder = PiecewiseLinearEncoder(10).fit(X[:, :1])
    counts = np.histogram(X[:, 0], encoder.edges_[0])[0]
    assert len(counts) == 10
    assert np.ptp(counts) <= 1


def test_few_values_become_a_thermometer():
    E = PiecewiseLinearEncoder(16).fit_transform(X[:, 1:2])
    np.testing.assert_array_equal(E, X[:, 1:2] > np.arange(3))


def test_a_constant_makes_no_features_and_one_that_is_always_missing_only_that():
    columns = np.column_stack([np.ones(9), np.full(9, np.nan), np.arange(9)])
    encoder = PiecewiseLinearEncoder(2).fit(columns)
    assert encoder.get_feature_names_out().tolist() == ["x1 (missing)", "x2 0 to 4", "x2 4 to 8"]
    assert encoder.transform([[np.nan, 3.0, 2.0]]).tolist() == [[0, 0.5, 0]]


def test_what_lies_beyond_the_edges_is_encoded_as_the_edge():
    encoder = PiecewiseLinearEncoder().fit(X)
    ends = np.array([X.min(axis=0), X.max(axis=0)])
    beyond = ends + np.array([[-9e9], [9e9]])
    np.testing.assert_array_equal(encoder.transform(beyond), encoder.transform(ends))
    assert set(encoder.transform(ends).ravel()) == {0, 1}


def test_missing_values_have_a_feature_of_their_own_or_are_the_median():
    holed = X.copy()
    holed[::5, 0] = np.nan
    encoder = PiecewiseLinearEncoder(4).fit(holed)
    E = encoder.transform([[np.nan, np.nan, 1.0]])
    assert E[0, :5].tolist() == [0, 0, 0, 0, 1]
    np.testing.assert_array_equal(E, encoder.transform([[np.nan, np.median(X[:, 1]), 1.0]]))
    known = ~np.isnan(holed[:, 0])
    np.testing.assert_array_equal(
        encoder.edges_[0], PiecewiseLinearEncoder(4).fit(holed[known]).edges_[0]
    )


def test_units_and_their_order_do_not_matter():
    units = np.array([1e-9, 1024.0, 1e12])
    E = PiecewiseLinearEncoder(7).fit_transform(X)
    np.testing.assert_allclose(
        PiecewiseLinearEncoder(7).fit_transform(X * units + 5 * units), E, atol=1e-9
    )
    order = RNG.permutation(len(X))
    np.testing.assert_array_equal(PiecewiseLinearEncoder(7).fit_transform(X[order]), E[order])


def test_single_precision_agrees_with_double():
    E = PiecewiseLinearEncoder(7).fit_transform(X.astype(np.float32))
    assert E.dtype == np.float32
    np.testing.assert_allclose(E, PiecewiseLinearEncoder(7).fit_transform(X), atol=1e-5)


@pytest.mark.parametrize("real", [True, False], ids=["numbers", "classes"])
def test_a_tree_cuts_where_the_target_jumps(real):
    x = np.sort(RNG.uniform(size=300))
    y = np.digitize(x, [0.2, 0.25, 0.9]) * 1.5
    y = y if real else np.array(list("abca"))[np.digitize(x, [0.2, 0.25, 0.9])]
    (edges,) = PiecewiseLinearEncoder(4, strategy="tree").fit(x[:, None], y).edges_
    np.testing.assert_allclose(edges, [x[0], 0.2, 0.25, 0.9, x[-1]], atol=0.01)


def test_a_tree_needs_y():
    with pytest.raises(ValueError, match="strategy='tree' requires y"):
        PiecewiseLinearEncoder(strategy="tree").fit(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PiecewiseLinearEncoder(strategy="tree").fit(X, np.arange(len(X) - 1))


@pytest.mark.parametrize(
    ("parameters", "word"),
    [({"n_bins": 0}, "n_bins"), ({"strategy": "uniform"}, "strategy")],
    ids=["n_bins", "strategy"],
)
def test_bad_parameters_are_named(parameters, word):
    with pytest.raises(ValueError, match=word):
        PiecewiseLinearEncoder(**parameters).fit(X)


def test_infinite_values_are_refused():
    with pytest.raises(ValueError, match="infinity"):
        PiecewiseLinearEncoder().fit(np.array([[1.0], [np.inf]]))


def test_directions_must_have_a_weight_a_feature():
    encoder = PiecewiseLinearEncoder(3).fit(X)
    with pytest.raises(ValueError, match=r"directions must have the shape \(m, 9\)"):
        encoder.curves(np.ones((2, 4)))


def test_columns_keep_their_names():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    encoder = PiecewiseLinearEncoder(2).set_output(transform="pandas").fit(frame)
    names = encoder.transform(frame).columns
    assert [name.split()[0] for name in names] == ["a", "a", "b", "b", "c", "c"]
