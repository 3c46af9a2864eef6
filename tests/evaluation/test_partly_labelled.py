"""Rows without a label: which methods learn from them, and that none is scored by them."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler

from nearkin import DNE, TDL
from nearkin.evaluation import (
    RAW,
    Method,
    compare,
    confusion,
    default_methods,
    held_out_map,
    score_by_dimension,
)

RNG = np.random.default_rng(0)
N = 120
CLASSES = np.arange(N) % 3
X = RNG.normal(size=(N, 6)) + 2 * np.eye(6)[CLASSES]
KNOWN = RNG.random(N) < 0.5
Y = np.where(KNOWN, np.array(["a", "b", "c"])[CLASSES], None)
FEW = {"n_splits": 3, "n_repeats": 1}
METHODS = default_methods(semi_supervised=True)
USERS = ["PCA", "LPP", "DP", "SDA", "TDL"]
TDL_METHOD = Method("TDL", TDL(20, reg=1.0), nested=False, unlabelled=True, max_components=lambda p, n_classes: 20)


class Spy(TransformerMixin, BaseEstimator):
    """Notes the rows of every fit, by their number in column 0, and their targets."""

    seen: ClassVar = []

    def __init__(self, n_components=None):
        self.n_components = n_components

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        self.seen.append((X[:, 0].astype(int), np.asarray(y)))
        return self

    def transform(self, X):
        return X


@pytest.fixture
def spied():
    """Return what a spy that can, or cannot, learn from rows without a label gets to see."""

    def run(unlabelled, y=Y, **options):
        Spy.seen = []
        spy = Method("spy", Spy(), nested=False, unlabelled=unlabelled)
        rows = np.column_stack([np.arange(N), X])
        return compare(rows, y, methods=[spy], scale=False, time_budget=None, **FEW, **options), Spy.seen

    return run


def test_the_rest_is_ranked_as_if_unlabelled_rows_were_not_there():
    methods = [method for method in METHODS if method.name in ("PCA", "LDA", "TDL")]
    partly, alone = (
        compare(X, Y, methods=methods, **FEW),
        compare(X[KNOWN], Y[KNOWN].astype(str), methods=methods[:-1], **FEW),
    )
    for result in alone.results:
        if result.name not in USERS:
            np.testing.assert_array_equal(partly[result.name].score, result.score)
            assert partly[result.name].params == result.params
    assert [sorted(np.flatnonzero(KNOWN)[test]) for _, test in alone.folds] == [sorted(t) for _, t in partly.folds]
    assert (partly.n_unlabelled, alone.n_unlabelled) == ((~KNOWN).sum(), 0)
    for result in partly.results:
        expected = np.flatnonzero(~KNOWN) if result.name in USERS else []
        assert all(np.array_equal(rows, expected) for rows in result.unlabelled)


def test_semi_supervised_methods_join():
    added = {method.name for method in METHODS} - {method.name for method in default_methods()}
    assert added == {"DP", "SDA", "TDL"}
    assert compare(X, Y, n_splits=2, n_repeats=1, time_budget=1e-9).methods == tuple(method.name for method in METHODS)


@pytest.mark.parametrize("unlabelled", [True, False])
def test_who_learns_from_whom(spied, unlabelled):
    comparison, seen = spied(unlabelled)
    unknown, fits = np.flatnonzero(~KNOWN), iter(seen)
    assert unlabelled or all(KNOWN[rows].all() for rows, _ in seen)
    for train, test in comparison.folds:
        rows, y = next((rows, y) for rows, y in fits if not set(train) ^ set(rows[KNOWN[rows]]))
        assert not set(rows) & set(test)
        assert set(rows) - set(train) == (set(unknown) if unlabelled else set())
        if unlabelled:
            np.testing.assert_array_equal(y, np.where(KNOWN[rows], CLASSES[rows], -1))


def test_rows_of_a_held_out_group_are_not_learned_from_though_they_have_no_label(spied):
    groups = np.arange(N) % 5
    comparison, _ = spied(True, groups=groups)
    assert len(comparison["spy"].unlabelled[0]) < (~KNOWN).sum()
    for (_, test), beside in zip(comparison.folds, comparison["spy"].unlabelled, strict=True):
        assert not set(groups[test]) & set(groups[beside])
        assert set(groups[beside]) | set(groups[test]) == set(range(5))


def test_the_order_of_unlabelled_rows_does_not_matter():
    order = np.arange(N)
    order[~KNOWN] = RNG.permutation(order[~KNOWN])
    first, second = (compare(rows, Y, methods=[TDL_METHOD], **FEW) for rows in (X, X[order]))
    np.testing.assert_array_equal(first["TDL"].score, second["TDL"].score)


def test_tdl_is_scored_as_its_definition_says():
    method = Method("TDL", TDL(5), lambda p: [{}], nested=False, unlabelled=True)
    comparison = compare(X, Y, methods=[method], n_neighbors=1, **FEW)
    train, test = comparison.folds[0]
    rows = np.append(train, np.flatnonzero(~KNOWN))
    scaler = StandardScaler().fit(X[rows])
    tdl = TDL(5).fit(scaler.transform(X[rows]), np.where(KNOWN, CLASSES, -1)[rows])
    Z_train, Z_test = (tdl.transform(scaler.transform(X[part])) for part in (train, test))
    nearest = np.linalg.norm(Z_test[:, None] - Z_train, axis=2).argmin(axis=1)
    assert comparison["TDL"].score[0] == np.mean(CLASSES[train][nearest] == CLASSES[test])


@pytest.mark.parametrize(
    "y",
    [
        np.where(KNOWN, CLASSES, np.nan),
        np.where(KNOWN, CLASSES.astype(object), None),
        np.where(KNOWN, CLASSES - 1, None),  # a class -1 is a class
        np.where(KNOWN, CLASSES > 0, None),
    ],
    ids=["NaN", "None", "a class -1", "truth values"],
)
def test_labels_of_every_kind(y):
    comparison = compare(X, y, methods=[TDL_METHOD], **FEW)
    assert comparison.n_unlabelled == (~KNOWN).sum()
    assert comparison.winner.classes_.tolist() == np.unique(list(y[KNOWN])).tolist()
    assert set(comparison["TDL"].predictions[0]) <= set(y[KNOWN])


def test_closer_looks():
    nested = [method for method in METHODS if method.name == "TDL"]
    comparison = compare(X, Y, methods=nested, **FEW)
    curves = score_by_dimension(comparison, X, Y)
    assert max(curves["TDL"]) == 20
    fold, tdl = comparison.folds[0], comparison["TDL"]
    seen = held_out_map(tdl.mapping(2), X, Y, fold, 3, unlabelled=tdl.unlabelled[0])
    assert curves["TDL"][2][0] == seen.score
    assert KNOWN[seen.neighbors].all()
    assert confusion(tdl, comparison, Y).sum() == KNOWN.sum()


def test_numbers():
    y = np.where(KNOWN, X[:, 0], np.nan)
    partly, alone = compare(X, y, task="regression", **FEW), compare(X[KNOWN], y[KNOWN], task="regression", **FEW)
    for name in (RAW, "NCA"):
        np.testing.assert_array_equal(partly[name].r2, alone[name].r2)
    assert [len(partly[name].unlabelled[0]) for name in ("PCA", "NCA")] == [(~KNOWN).sum(), 0]


def test_a_mark_for_no_label():
    y, marked = CLASSES.astype(object), np.where(KNOWN, CLASSES, -1)
    dne = Method("DNE", DNE(), nested=False)
    comparison = compare(X, marked, methods=[dne], unlabelled=-1, **FEW)
    np.testing.assert_array_equal(comparison["DNE"].score, compare(X, Y, methods=[dne], **FEW)["DNE"].score)
    with pytest.raises(ValueError, match="unlabelled is -1, which y does not hold: leave it out"):
        compare(X, y.astype(int), unlabelled=-1)
    assert comparison.classes.tolist() == [0, 1, 2]
    assert compare(X, marked, methods=[dne], **FEW).classes.tolist() == [-1, 0, 1, 2]


def test_errors_count_rows_with_a_label():
    few = np.full(N, None)
    few[:5] = ["a", "a", "a", "b", "b"]
    assert compare(X, few, methods=[]).reduced["n_splits"] == (5, "class b has 2 rows, counting those with a label")
    few[4] = None
    with pytest.raises(ValueError, match="class b has a single row with a label"):
        compare(X, few)
    with pytest.raises(ValueError, match="y holds no label"):
        compare(X, np.full(N, None))
    with pytest.raises(ValueError, match="y has 3 numbers: regression needs at least 4"):
        compare(X, np.append([1.0, 2, 3], np.full(N - 3, np.nan)), task="regression")
    with pytest.raises(ValueError, match="groups holds 2 groups of labelled rows"):
        compare(X, Y, groups=np.where(KNOWN, np.arange(N) % 2, np.arange(N)))
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        compare(X, np.append(np.full(7, np.nan), np.full(N - 7, 0.5)))
