"""Weights of rows in a comparison: in fits, in scores, and so in tests and choices."""

from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import NMMP, SDA
from nearkin.comparison import RAW, Method, Reference

from .tables import FIXED, FirstFeature, LastFeature, hidden, quick

pd = pytest.importorskip("pandas")


class WeightSpy(FirstFeature):
    """Notes the rows of every fit, by their number in column 1, and their weights."""

    seen: ClassVar[list] = []

    def fit(self, X, y, sample_weight=None):
        WeightSpy.seen.append((X[:, 1].astype(int), sample_weight))
        return super().fit(X, y)


@pytest.fixture
def weights():
    return np.random.default_rng(0).integers(1, 5, 150)


def scores(comparison):
    every = (*comparison.results, *comparison.references)
    return {one.name: one.score.tolist() for one in every}


@pytest.mark.long
def test_a_row_of_weight_0_is_absent(weights):
    X, y = hidden()
    weights[::7] = 0
    kept = weights > 0
    references = [Reference("linear", LogisticRegression(), 1000)]
    weighted = quick(X, y, references=references, sample_weight=weights)
    absent = quick(X[kept], y[kept], references=references, sample_weight=weights[kept])
    assert scores(weighted) == scores(absent)
    assert weighted["DNE"].interval == absent["DNE"].interval


@pytest.mark.long
def test_equal_weights_are_none():
    X, y = hidden()
    assert scores(quick(X, y, sample_weight=np.full(150, 2.5))) == scores(quick(X, y))


def test_scores_are_weighted(weights):
    X, y = hidden()
    comparison = quick(X, y, score="accuracy", sample_weight=weights)
    for number, (train, test) in enumerate(comparison.folds):
        scaler = StandardScaler().fit(X[train], sample_weight=weights[train])
        vote = KNeighborsClassifier(3).fit(scaler.transform(X[train]), y[train])
        predicted = vote.predict(scaler.transform(X[test]))
        expected = accuracy_score(y[test], predicted, sample_weight=weights[test])
        assert comparison.raw.score[number] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("first_is_better", [True, False])
def test_weights_decide_which_method_is_better(first_is_better):
    """The first feature tells the class of one half of the rows, the last that of the other."""
    rng = np.random.default_rng(0)
    y, of_first = rng.permutation(np.arange(300) % 2), np.arange(300) < 150
    X = rng.normal(size=(300, 3))
    X[of_first, 0] += 8 * y[of_first]
    X[~of_first, 2] += 8 * y[~of_first]
    methods = [
        Method("first", FirstFeature(), nested=False),
        Method("last", LastFeature(), nested=False),
    ]
    weights = np.where(of_first == first_is_better, 9.0, 1.0)
    comparison = quick(X, y, methods, score="accuracy", sample_weight=weights)
    first, last = comparison["first"].score.mean(), comparison["last"].score.mean()
    assert (first > last + 0.2) if first_is_better else (last > first + 0.2)


def test_fits_get_the_weights_of_their_rows(weights):
    X, y = hidden()
    X[:, 1] = np.arange(150)
    WeightSpy.seen = []
    methods = [Method("spy", WeightSpy(), nested=False)]
    in_pipeline = make_pipeline(WeightSpy(), LogisticRegression())
    quick(
        X,
        y,
        methods,
        references=[Reference("pipeline", in_pipeline, 1000)],
        scale=False,
        sample_weight=weights,
    )
    assert len(WeightSpy.seen) >= 6
    for rows, given in WeightSpy.seen:
        np.testing.assert_array_equal(given, weights[rows])


@pytest.mark.long
def test_what_takes_no_weights_is_named(weights):
    X, y = hidden()
    methods = [FIXED, Method("last", LastFeature(), nested=False)]
    comparison = quick(X, y, methods, sample_weight=weights)
    assert comparison.unweighted == ("last",)
    for shown in (repr(comparison), comparison._repr_html_()):
        assert "Fitted without weights: last" in shown
    assert quick(X, y, methods).unweighted == ()


@pytest.mark.long
def test_rows_of_a_group_stay_together(weights):
    X, y = hidden()
    weights[:12] = 0  # more than two groups
    kept = weights > 0
    groups = np.arange(150) // 5
    weighted = quick(X, y, groups=groups, sample_weight=weights)
    present = quick(X[kept], y[kept], groups=groups[kept], sample_weight=weights[kept])
    assert scores(weighted) == scores(present)


@pytest.mark.slow
def test_a_frame_with_its_target(weights):
    X, y = hidden()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(answer=y)
    found, expected = (
        quick(frame, "answer", sample_weight=weights),
        quick(X, y, sample_weight=weights),
    )
    np.testing.assert_allclose(found.raw.score, expected.raw.score, atol=1e-12)


@pytest.mark.long
def test_sparse_rows(weights):
    X, y = hidden()
    sparse = quick(csr_array(X), y, scale=False, sample_weight=weights)
    dense = quick(X, y, scale=False, sample_weight=weights)
    for name in ("DNE", RAW):
        np.testing.assert_allclose(sparse[name].score, dense[name].score, atol=1e-12)


@pytest.mark.long
def test_rows_without_a_label(weights):
    X, y = hidden()
    partly = np.where(np.arange(150) % 3, y, None)
    methods = [Method("SDA", SDA(1), nested=False, unlabelled=True)]
    weights[::10] = 0
    kept = weights > 0
    weighted = quick(X, partly, methods, sample_weight=weights)
    present = quick(X[kept], partly[kept], methods, sample_weight=weights[kept])
    assert scores(weighted) == scores(present)
    assert weighted.unweighted == ()


@pytest.mark.slow
def test_the_winner_is_fitted_with_weights(weights):
    X, y = hidden()
    methods = [Method("NMMP", NMMP(1), nested=False)]
    comparison = quick(X, y, methods, refit=True, sample_weight=weights)
    assert comparison.winner_method == "NMMP"
    Z = StandardScaler().fit(X, sample_weight=weights).transform(X)
    alone = NMMP(1).fit(Z, y, sample_weight=weights)
    np.testing.assert_allclose(comparison.winner["map"].components_, alone.components_, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (-np.ones(150), "at least 0"),
        (np.ones(149), "inconsistent|sample_weight"),
        (np.zeros(150), "not all zero"),
    ],
)
def test_bad_weights_are_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        quick(*hidden(), sample_weight=wrong)
