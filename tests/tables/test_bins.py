"""Every column of a table as a group of standardized features."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse, random_array

from nearkin.tables import (
    BinnedEncoder,
    Feature,
    SparseEncoder,
    TableEncoder,
    features_of,
    is_table,
)
from nearkin.tables.bins import Bins

pd = pytest.importorskip("pandas")


def table(n=200):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 9, n)),
            "colour": rng.choice(["red", "green", "blue"], n),
            "same": "x",
            "smokes": rng.choice(["yes", "no"], n),
            "children": rng.integers(0, 2, n),
        }
    )


class Binned:
    """A data frame, encoded and binned."""

    def __init__(self, frame, n_bins=4):
        self.table = TableEncoder(missing="keep").fit(frame)
        self.binned = BinnedEncoder(n_bins).fit(
            self.table.transform(frame), features=features_of(self.table)
        )

    def transform(self, frame):
        return self.binned.transform(self.table.transform(frame))


def test_features_of_a_table():
    features = features_of(TableEncoder().fit(table()))
    assert [feature.name for feature in features if feature.is_level] == [
        *("colour=blue", "colour=green", "colour=red", "smokes=no", "smokes=yes")
    ]
    assert [feature.column for feature in features] == [
        0,
        4,
        1,
        1,
        1,
        3,
        3,
        0,
    ]  # the last: age (missing)


def test_groups_and_scales():
    encoder = Binned(table())
    Z, encoder = encoder.transform(table()), encoder.binned
    widths = np.bincount(encoder.groups_, minlength=5)
    # 4 bins, the number and whether it is missing; values; one of two values
    assert widths.tolist() == [
        6,
        3,
        0,
        1,
        1,
    ]
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(Z.std(axis=0), widths[encoder.groups_] ** -0.25, rtol=1e-4)


def test_an_array_holds_numbers():
    X = np.random.default_rng(0).normal(size=(100, 2))
    encoder = BinnedEncoder(4).fit(X)
    assert encoder.groups_.tolist() == [0] * 4 + [1] * 4 + [0, 1]
    bins = np.hstack([Bins.learn(x, 4).transform(x) for x in X.T])
    expected = (bins - bins.mean(axis=0)) / bins.std(axis=0) / 5**0.25
    np.testing.assert_allclose(encoder.transform(X)[:, :8], expected, atol=1e-5)
    far = encoder.transform(np.array([[1e9, 0.0], [1e12, 0.0]]))
    np.testing.assert_array_equal(*far)  # the standardized number ends, too


def test_a_table_of_categories_only():
    frame = table()[["colour", "smokes"]]
    encoder = Binned(frame)
    assert encoder.binned.bins_ == []
    assert encoder.transform(frame).shape == (200, 4)


def test_missing_and_unknown_values_of_new_rows():
    encoder = Binned(table())
    new = pd.DataFrame(
        {"age": [np.nan], "colour": ["pink"], "same": ["y"], "smokes": [None], "children": [np.nan]}
    )
    assert np.isfinite(encoder.transform(new)).all()


def test_curves_are_the_map():
    """A row is mapped to the sum of the curves of its numbers, up to a constant."""
    frame = table()
    frame.loc[0, "age"] = 900.0  # far outside: the standardized number ends before
    encoder = Binned(frame)
    A = np.random.default_rng(1).normal(size=(2, len(encoder.binned.groups_)))
    curve = encoder.binned.curves(A)["age"]
    new = frame.iloc[:5].copy()
    ages, expected = [frame.age.min(), 22.0, 39.5, 61.0, 500.0, 900.0], []
    for age in ages:
        new["age"] = age
        expected.append(encoder.transform(new)[0] @ A.T)
    found = [np.interp(ages, curve.edges, values) for values in curve.values]
    np.testing.assert_allclose(
        np.transpose(found) - np.transpose(found)[0], np.array(expected) - expected[0], atol=1e-5
    )
    new["age"] = np.nan
    missing = encoder.transform(new)[0] @ A.T - expected[0]
    np.testing.assert_allclose(curve.missing - np.transpose(found)[0], missing, atol=1e-5)
    assert set(encoder.binned.curves(A)) == {"age", "children", "colour", "smokes"}


def test_levels_are_the_map():
    """Rows that differ in a category alone differ in the learned space by the places of its levels."""
    frame = table().rename(columns={"colour": "a=b"})
    frame.loc[::9, "a=b"] = None
    encoder = Binned(frame)
    A = np.random.default_rng(1).normal(size=(2, len(encoder.binned.groups_)))
    curves = encoder.binned.curves(A)
    for name, levels in (("a=b", ["blue", "green", "red", "(missing)"]), ("smokes", ["no", "yes"])):
        assert curves[name].names == levels
        new = pd.concat([frame.iloc[:1]] * len(levels), ignore_index=True)
        new[name] = [None if level == "(missing)" else level for level in levels]
        Z, places = encoder.transform(new) @ A.T, curves[name].values.T
        np.testing.assert_allclose(Z - Z[0], places - places[0], atol=1e-5)
        cells = frame[name].fillna("(missing)").map(levels.index)
        np.testing.assert_allclose(places[cells].mean(axis=0), 0, atol=1e-5)


def test_numbers_whose_squares_are_lost():
    frame = table()
    with pytest.raises(
        ValueError, match="in 'age', whose square overflows or underflows: scale the features first"
    ):
        Binned(frame.assign(age=frame.age * 1e200))
    tiny = frame.assign(age=frame.age * 1e-200)
    Z, expected = Binned(tiny).transform(tiny), Binned(frame).transform(frame)
    # the bins, and what is missing
    np.testing.assert_allclose(Z[:, :5], expected[:, :5], atol=1e-6)


def test_sparse_rows():
    X = random_array((50, 8), density=0.1, random_state=np.random.default_rng(0))
    encoder = SparseEncoder().fit(csr_array(X))
    found = encoder.transform(csr_array(X))
    assert (issparse(found), found.dtype, found.nnz) == (True, np.float32, X.nnz)
    np.testing.assert_allclose(found.toarray().std(axis=0), 1, rtol=1e-5)
    np.testing.assert_allclose(encoder.transform(X.toarray()), found.toarray())
    assert encoder.groups_.tolist() == list(range(8))


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        ([[1, 2.5]], False),
        (np.zeros((2, 2)), False),
        (table(3), True),
        ([["a", 1]], True),
        (np.array([[None]]), True),
    ],
)
def test_is_table(X, expected):
    assert is_table(X) is expected


def test_words_have_one_scale_and_together_the_variance_1():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [1, 5, 3, 1]
    X[:, 0] = X[:, 0] > 0
    features = [Feature("t=a", 0, "a", of_many=True)]
    features += [Feature(f"t (words {at})", 0, is_word=True) for at in (1, 2, 3)]
    encoder = BinnedEncoder().fit(X, features=features)
    Z = encoder.transform(X)
    assert encoder.groups_.tolist() == [0] * 4
    assert Z[:, 1:].var(axis=0).sum() == pytest.approx(1, rel=1e-5)
    ratio = Z[:, 1:].std(axis=0) / X[:, 1:].std(axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    again = BinnedEncoder.from_dict(encoder.to_dict(), features)
    np.testing.assert_array_equal(again.transform(X), Z)
    assert [*encoder.curves(np.ones((1, 4)))] == ["t"]  # of its value
