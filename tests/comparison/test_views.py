"""Closer looks at a comparison: all of them recomputed from its folds."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import DNE, NMMP
from nearkin.comparison import (
    Method,
    all_methods,
    compare,
    confusion,
    default_references,
    first_map,
    first_picture,
    first_repeat,
    held_out_map,
    score_by_dimension,
)

X, y = (part[::2] for part in load_wine(return_X_y=True))


@pytest.fixture(scope="module")
def comparison():
    methods = [method for method in all_methods() if method.name in ("PCA", "LDA")]
    methods.append(
        Method("NMMP", NMMP(), lambda p: [{"n_components": m} for m in (1, 5, p)], nested=False)
    )
    return compare(
        X, y, methods=methods, references=(), n_splits=3, n_repeats=2, n_neighbors=3, refit=False
    )


@pytest.mark.long
def test_the_first_repeat_holds_every_row_out_once(comparison):
    folds = first_repeat(comparison.folds)
    assert len(folds) == 3
    np.testing.assert_array_equal(
        np.sort(np.concatenate([test for _, test in folds])), np.arange(len(y))
    )


@pytest.mark.slow
def test_score_by_dimension(comparison):
    calls = []
    curves = score_by_dimension(comparison, progress=lambda *call: calls.append(call))
    assert list(curves) == [result.name for result in comparison.results if result.kind != "choice"]
    assert list(curves["raw k-NN"]) == [13]
    assert list(curves["PCA"]) == [1, 2, 3, 5, 7, 10, 13]
    assert list(curves["LDA"]) == [1, 2]
    assert list(curves["NMMP"]) == [1, 5, 13]
    assert ("NMMP, dimensions", 3, 3) in calls
    train, test = comparison.folds[0]
    by_hand = make_pipeline(StandardScaler(), PCA(3), KNeighborsClassifier(3)).fit(
        X[train], y[train]
    )
    assert curves["PCA"][3][0] == by_hand.score(X[test], y[test])
    # all dimensions of a rotation, and all features, are the same space
    np.testing.assert_allclose(curves["PCA"][13], curves["raw k-NN"][13])


def test_unscaled_raw_features_have_a_score():
    comparison = compare(
        X, y, methods=[], references=(), scale=False, n_splits=3, n_repeats=1, refit=False
    )
    np.testing.assert_array_equal(
        score_by_dimension(comparison)["raw k-NN"][13], comparison.raw.score
    )


def test_curves_pass_through_what_the_folds_chose(comparison):
    """The chosen vote and parameters, at the chosen dimension, give the score of the fold."""
    curves = score_by_dimension(comparison)
    for name in ("PCA", "LDA"):
        result = comparison[name]
        for fold, m in enumerate(result.dimension[:3]):
            assert curves[name][m][fold] == pytest.approx(result.score[fold])


def test_confusion_counts_every_held_out_row_of_every_repeat(comparison):
    for result in comparison.results:
        counts = confusion(result, comparison)
        np.testing.assert_array_equal(counts.sum(axis=1), 2 * np.bincount(y))
        right = [
            len(test) * accuracy
            for (_, test), accuracy in zip(comparison.folds, result.score, strict=True)
        ]
        assert np.trace(counts) == round(sum(right))


def test_held_out_map(comparison):
    train, test = comparison.folds[0]
    seen = held_out_map(make_pipeline(StandardScaler(), DNE(5)), X, y, (train, test), n_neighbors=3)
    fitted = make_pipeline(StandardScaler(), DNE(5)).fit(X[train], y[train])
    Z_train, Z_test = fitted.transform(X[train])[:, :2], fitted.transform(X[test])[:, :2]
    np.testing.assert_allclose(seen.embedding, Z_test)
    np.testing.assert_array_equal(seen.rows, test)
    distances = np.linalg.norm(Z_test[:, None] - Z_train[None], axis=2)
    np.testing.assert_array_equal(seen.neighbors, train[np.argsort(distances, axis=1)[:, :3]])
    votes = [np.bincount(y[near]).argmax() for near in seen.neighbors]
    np.testing.assert_array_equal(seen.predictions, votes)
    assert seen.score == pytest.approx(np.mean(votes == y[test]))
    np.testing.assert_allclose(seen.fitted.transform(X[test])[:, :2], seen.embedding)


def test_held_out_map_has_the_score_in_all_dimensions_if_there_are_more(comparison):
    train, test = comparison.folds[0]
    for n_components in (1, 2, 5):
        mapping = make_pipeline(StandardScaler(), PCA(n_components))
        seen = held_out_map(mapping, X, y, (train, test), n_neighbors=3)
        if n_components < 3:
            assert (seen.full_score, seen.full_dimension) == (None, None)
            continue
        Z = mapping.fit(X[train]).transform(X)
        expected = KNeighborsClassifier(3).fit(Z[train], y[train]).score(Z[test], y[test])
        assert (seen.full_score, seen.full_dimension) == (expected, 5)


def test_first_map_is_that_of_the_first_fold_with_its_vote(comparison):
    train, test = comparison.folds[0]
    result = comparison["NMMP"]
    seen = first_map(comparison, result)
    expected = held_out_map(comparison.mapping(result, 2), X, y, (train, test), 3)
    np.testing.assert_allclose(seen.embedding, expected.embedding)
    np.testing.assert_array_equal(seen.rows, test)
    np.testing.assert_array_equal(seen.neighbors, expected.neighbors)
    assert seen.score == expected.score


def test_the_picture_of_a_map_is_of_all_its_dimensions(comparison):
    result = comparison["NMMP"]
    seen = first_picture(comparison, result)
    train, test = comparison.folds[0]
    assert seen.embedding.shape == (len(test), 2)
    assert seen.full_dimension == result.params[0]["n_components"]
    assert seen.full_score == result.score[0]
    assert set(seen.neighbors.ravel()) <= set(train)


def test_first_map_of_the_automatic_choice_is_that_of_the_method(comparison):
    choice = comparison.choice
    seen = first_map(comparison, choice)
    expected = first_map(comparison, comparison[choice.params[0]["method"]])
    np.testing.assert_array_equal(seen.embedding, expected.embedding)


def test_first_map_of_an_automatic_choice_that_did_not_finish_every_fold(comparison):
    chosen = comparison.choice.params[0]["method"]
    others = replace(comparison, results=tuple(r for r in comparison.results if r.name != chosen))
    with pytest.raises(ValueError, match="did not finish every fold"):
        first_map(others, comparison.choice)


def test_first_map_of_raw_features_has_the_first_two(comparison):
    seen, test = first_map(comparison, comparison.raw), comparison.folds[0][1]
    scaler = StandardScaler().fit(X[comparison.folds[0][0]])
    np.testing.assert_allclose(seen.embedding, scaler.transform(X[test])[:, :2])


def test_first_map_of_what_is_no_map():
    constant = default_references()[:1]
    comparison = compare(
        X, y, methods=[], references=constant, n_splits=2, n_repeats=1, refit=False
    )
    with pytest.raises(ValueError, match="majority is no map"):
        first_map(comparison, comparison.references[0])
