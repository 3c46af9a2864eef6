"""Rows without a label: which methods learn from them, and that none is scored by them."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from nearkin import DNE, TDL
from nearkin.comparison import (
    RAW,
    Method,
    all_methods,
    compare,
    confusion,
    default_references,
    first_map,
    held_out_map,
    score_by_dimension,
)

from . import tables

QUICK = tables.QUICK | {"n_splits": 2}
RNG = np.random.default_rng(0)
N = 90
CLASSES = np.arange(N) % 3
X = RNG.normal(size=(N, 6)) + 2 * np.eye(6)[CLASSES]
KNOWN = RNG.random(N) < 0.5
Y = np.where(KNOWN, np.array(["a", "b", "c"])[CLASSES], None)
METHODS = all_methods(semi_supervised=True)
USERS = ["PCA", "LPP", "DP", "SDA", "TDL"]
TDL_METHOD = Method(
    "TDL", TDL(20, reg=1.0), nested=False, unlabelled=True, max_components=lambda p, n_classes: 20
)


@pytest.fixture
def spied():
    """Return what a spy that can, or cannot, learn from rows without a label gets to see."""

    def run(unlabelled, y=Y, **options):
        tables.Spy.seen = []
        spy = Method("spy", tables.Spy(), nested=False, unlabelled=unlabelled)
        rows = np.column_stack([np.arange(N), X])
        return compare(rows, y, methods=[spy], scale=False, **QUICK, **options), tables.Spy.seen

    return run


@pytest.mark.long
def test_the_rest_is_ranked_as_if_unlabelled_rows_were_not_there():
    methods = [method for method in METHODS if method.name in ("PCA", "LDA")]
    constant = {"references": default_references()[:2]}
    partly, alone = (
        compare(X, Y, methods=[*methods, TDL_METHOD], **QUICK | constant),
        compare(X[KNOWN], Y[KNOWN].astype(str), methods=methods, **QUICK),
    )
    for result in alone.results:
        if result.name in ("LDA", RAW):
            np.testing.assert_array_equal(partly[result.name].score, result.score)
            assert partly[result.name].params == result.params
    assert [sorted(np.flatnonzero(KNOWN)[test]) for _, test in alone.folds] == [
        sorted(t) for _, t in partly.folds
    ]
    assert (len(partly.protocol.unlabelled), len(alone.protocol.unlabelled)) == ((~KNOWN).sum(), 0)
    assert not np.array_equal(partly["PCA"].contributions, alone["PCA"].contributions)
    for result in (*partly.results, *partly.references):
        assert all(
            len(labels) == len(test)
            for labels, (_, test) in zip(result.predictions, partly.folds, strict=True)
        )


@pytest.mark.long
def test_semi_supervised_methods_join():
    added = {method.name for method in METHODS} - {method.name for method in all_methods()}
    assert added == {"DP", "SDA", "TDL"}
    comparison = compare(
        X, Y, references=(), n_splits=2, n_repeats=1, n_neighbors=3, time_budget=1e-9, n_jobs=1
    )
    assert comparison.methods == (RAW, "NCA tables", "LDA", "DP", "SDA", "TDL")
    assert {method.name for method in METHODS if method.unlabelled} == set(USERS)


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
    comparison, seen = spied(True, groups=groups)
    for train, test in comparison.folds:
        beside = comparison.protocol.beside(train)
        assert len(beside) < (~KNOWN).sum()
        assert not set(groups[test]) & set(groups[beside])
        assert set(groups[beside]) | set(groups[test]) == set(range(5))
        assert any(set(rows) == {*train, *beside} for rows, _ in seen)


@pytest.mark.long
def test_the_order_of_unlabelled_rows_does_not_matter():
    order = np.arange(N)
    order[~KNOWN] = RNG.permutation(order[~KNOWN])
    first, second = (compare(rows, Y, methods=[TDL_METHOD], **QUICK) for rows in (X, X[order]))
    np.testing.assert_array_equal(first["TDL"].score, second["TDL"].score)


@pytest.mark.long
def test_tdl_is_scored_as_its_definition_says():
    method = Method("TDL", TDL(5, reg=1.0), nested=False, unlabelled=True)
    comparison = compare(X, Y, methods=[method], **QUICK | {"n_neighbors": 1})
    train, test = comparison.folds[0]
    rows = np.append(train, np.flatnonzero(~KNOWN))
    scaler = StandardScaler().fit(X[rows])
    tdl = TDL(5, reg=1.0).fit(scaler.transform(X[rows]), np.where(KNOWN, CLASSES, -1)[rows])
    Z_train, Z_test = (tdl.transform(scaler.transform(X[part])) for part in (train, test))
    nearest = np.linalg.norm(Z_test[:, None] - Z_train, axis=2).argmin(axis=1)
    assert comparison["TDL"].score[0] == np.mean(CLASSES[train][nearest] == CLASSES[test])


@pytest.mark.long
@pytest.mark.parametrize(
    "y",
    [
        pytest.param(np.where(KNOWN, CLASSES, np.nan), marks=pytest.mark.slow),
        pytest.param(np.where(KNOWN, CLASSES.astype(object), None), marks=pytest.mark.slow),
        np.where(KNOWN, CLASSES - 1, None),  # a class -1 is a class
        pytest.param(np.where(KNOWN, CLASSES > 0, None), marks=pytest.mark.slow),
    ],
    ids=["NaN", "None", "a class -1", "truth values"],
)
def test_labels_of_every_kind(y):
    comparison = compare(X, y, methods=[TDL_METHOD], **QUICK | {"refit": True})
    assert len(comparison.protocol.unlabelled) == (~KNOWN).sum()
    assert comparison.winner.classes_.tolist() == np.unique(list(y[KNOWN])).tolist()
    assert set(comparison["TDL"].predictions[0]) <= set(y[KNOWN])


@pytest.mark.long
def test_closer_looks():
    settings = {
        "settings": lambda p: [{"n_components": m} for m in (2, 20)],
        "max_components": lambda p, n_classes: 20,
    }
    comparison = compare(X, Y, methods=[replace(TDL_METHOD, **settings)], **QUICK)
    curves = score_by_dimension(comparison)
    assert list(curves["TDL"]) == [2, 20]
    fold, tdl = comparison.folds[0], comparison["TDL"]
    beside = comparison.protocol.beside(fold[0])
    seen = held_out_map(comparison.mapping(tdl, 2), X, Y, fold, 3, unlabelled=beside)
    np.testing.assert_allclose(
        np.abs(first_map(comparison, tdl).embedding), np.abs(seen.embedding), atol=1e-6
    )
    assert first_map(comparison, tdl).score == seen.score == curves["TDL"][2][0]
    assert KNOWN[seen.neighbors].all()
    assert confusion(tdl, comparison).sum() == KNOWN.sum()


def test_numbers():
    y = np.where(KNOWN, X[:, 0], np.nan)
    methods = [
        Method("PCA", PCA(2), nested=False),
        Method("PCA of all", PCA(2), nested=False, unlabelled=True),
    ]
    partly, alone = (
        compare(rows, numbers, task="regression", methods=methods, **QUICK)
        for rows, numbers in ((X, y), (X[KNOWN], y[KNOWN]))
    )
    for name in (RAW, "PCA"):
        np.testing.assert_array_equal(partly[name].score, alone[name].score)
    assert not np.array_equal(partly["PCA of all"].score, alone["PCA of all"].score)
    assert any(method.unlabelled for method in all_methods("regression", semi_supervised=True))


@pytest.mark.long
def test_a_mark_for_no_label():
    y, marked = CLASSES.astype(object), np.where(KNOWN, CLASSES, -1)
    dne = Method("DNE", DNE(), nested=False)
    comparison = compare(X, marked, methods=[dne], unlabelled=-1, **QUICK)
    np.testing.assert_array_equal(
        comparison["DNE"].score, compare(X, Y, methods=[dne], **QUICK)["DNE"].score
    )
    with pytest.raises(ValueError, match="y holds no -1: give unlabelled a value that it holds"):
        compare(X, y.astype(int), unlabelled=-1)
    assert comparison.classes.tolist() == [0, 1, 2]
    assert compare(X, marked, methods=[dne], **QUICK).classes.tolist() == [-1, 0, 1, 2]


def test_errors_count_rows_with_a_label():
    few = np.full(N, None)
    few[:5] = ["a", "a", "a", "b", "b"]
    comparison = compare(X, few, methods=[], **QUICK | {"n_splits": 5})
    assert comparison.reduced["n_splits"] == (5, "class b has 2 rows, counting those with a label")
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
