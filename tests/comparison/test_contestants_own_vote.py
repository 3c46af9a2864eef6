"""Predictors for tables among the methods: they see the columns as they are, and vote their own
way.
"""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier

from nearkin import NCAClassifier, NCARegressor, TableEncoder, TDistributedNCA
from nearkin.comparison import (
    CHOICE,
    EncodedTable,
    Method,
    all_methods,
    chosen_predictor,
    compare,
    first_map,
    first_picture,
    score_by_dimension,
    twin_groups,
)
from nearkin.comparison.contestants import PredictorWithVote
from nearkin.comparison.protocol import Fold
from nearkin.comparison.scores import REGRESSION, SCORES
from nearkin.tables import features_of, members, predictors

from .tables import hidden, protocol_of

FOLDS = {"n_splits": 2, "n_repeats": 1, "references": []}


def table(n=80):
    """The class depends on the size, and not in order: neither on the noise nor on the colour."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 4)), columns=["size", "a", "b", "c"])
    frame["colour"] = rng.choice(["red", "blue", "green"], n)
    frame["kind"] = np.where(np.abs(frame["size"]) > 0.7, "far", "near")
    frame.loc[::9, "a"] = np.nan
    frame.loc[::11, "colour"] = None
    return frame


def nca_tables(estimator=NCAClassifier):
    """The method of the name, with a single penalty."""
    (method,) = (method for method in all_methods() if method.own_vote)
    return [replace(method, estimator=estimator(alpha=0.17, n_members=2))]


@pytest.fixture(scope="module")
def comparison():
    return compare(table(), "kind", methods=nca_tables(), **FOLDS)


@pytest.mark.long
def test_it_is_ranked_and_chosen(comparison):
    result = comparison["NCA tables"]
    assert result.kind == "method"
    assert result.score.mean() > comparison.raw.score.mean()
    assert [str(vote) for vote in result.votes] == ["all rows"] * 2
    assert {vote.n_neighbors for vote in result.votes} == {
        len(train) for train, _ in comparison.folds
    }
    assert comparison[CHOICE].params[0]["method"] == comparison.winner_method == "NCA tables"


@pytest.mark.slow
def test_the_winner_takes_the_frame(comparison):
    frame = table().drop(columns="kind")
    encoder, predictor = (step for _, step in comparison.winner.steps)
    X = encoder.transform(frame)
    assert np.isnan(X).any()
    assert predictor.feature_effects_.shape == (5,)
    np.testing.assert_array_equal(comparison.winner.predict(frame), predictor.predict(X))
    np.testing.assert_allclose(comparison.winner.predict_proba(frame).sum(axis=1), 1)


def test_a_fold_is_what_the_predictor_says_of_the_frame(comparison):
    """The columns of the table are known in the folds: the scores are those of the predictor on the
    frame itself.
    """
    frame = table()
    (train, test), result = comparison.folds[0], comparison["NCA tables"]
    features, kind = frame.drop(columns="kind"), frame["kind"]
    X = comparison.encoder.transform(features)
    members = comparison.protocol.member_folds(train, 2)
    members = [
        (np.searchsorted(train, part), np.searchsorted(train, held_out))
        for part, held_out in members
    ]
    model = NCAClassifier(alpha=0.17).fit_encoded(
        X[train], kind[train], features_of(comparison.encoder), members
    )
    np.testing.assert_array_equal(result.predictions[0], model.predict(X[test]))
    assert sorted(model.held_out_rows_) == list(range(len(train)))


@pytest.mark.parametrize(("score", "loss"), [("r2", "squared_error"), ("mae", "absolute_error")])
def test_the_score_decides_the_loss(score, loss):
    X, _ = hidden(60, p=2)
    options = {"task": REGRESSION, "score": SCORES["regression"][score]}
    protocol = protocol_of(X, X[:, 0], **options)
    method = Method("tables", NCARegressor(n_bins=4, alpha=4.5), own_vote=True)
    predictor, _ = PredictorWithVote(method).fit(Fold(protocol, np.arange(60)))
    assert predictor.loss == loss


@pytest.mark.slow
def test_rows_that_an_encoder_has_encoded(comparison):
    frame = table()
    encoder = TableEncoder(missing="keep").fit(frame.drop(columns="kind"))
    X = encoder.transform(frame.drop(columns="kind"))
    given = EncodedTable(X=X, y=frame["kind"].to_numpy(), encoder=encoder)
    again = compare(given, "kind", methods=nca_tables(), refit=False, **FOLDS)
    np.testing.assert_array_equal(again["NCA tables"].score, comparison["NCA tables"].score)
    assert again.encoder is encoder


def test_views(comparison):
    seen = first_map(comparison, comparison["NCA tables"])
    assert (seen.embedding.shape, str(seen.vote)) == ((len(comparison.folds[0][1]), 2), "5-NN")
    assert set(seen.neighbors.ravel()) <= set(comparison.folds[0][0])
    assert set(score_by_dimension(comparison)) == {"raw k-NN"}
    assert comparison.mapping(comparison["NCA tables"], 2) is None
    effects = [
        chosen_predictor(found).feature_effects_
        for found in (comparison, replace(comparison, winner=None))
    ]
    np.testing.assert_array_equal(*effects)
    assert chosen_predictor(replace(comparison, winner=comparison.winner[:1])) is None


@pytest.mark.slow
def test_the_picture_is_of_the_space_that_the_method_learned(comparison):
    result, (train, test) = comparison["NCA tables"], comparison.folds[0]
    seen = first_picture(comparison, result)
    H, queries = comparison.found[0]["NCA tables"].space
    plane = TDistributedNCA(estimator="passthrough", random_state=0)
    plane.fit(H, comparison.protocol.y[train])
    np.testing.assert_allclose(seen.embedding, plane.transform(queries), rtol=1e-4)
    vote = KNeighborsClassifier(5).fit(plane.transform(H), comparison.protocol.y[train])
    assert seen.score == pytest.approx(vote.score(seen.embedding, comparison.protocol.y[test]))
    assert (seen.full_score, seen.full_dimension) == (result.score[0], H.shape[1])
    assert all(of_fold["NCA tables"].space is None for of_fold in comparison.found[1:])


@pytest.mark.slow
def test_a_space_that_was_not_kept_is_learned_again(comparison):
    seen = first_picture(comparison, comparison["NCA tables"])
    lost = [
        {name: replace(one, space=None) for name, one in of_fold.items()}
        for of_fold in comparison.found
    ]
    again = first_picture(replace(comparison, found=lost), comparison["NCA tables"])
    np.testing.assert_allclose(again.embedding, seen.embedding, atol=0.1)


@pytest.mark.long
def test_groups_unlabelled_rows_and_numbers():
    """Rows without a label are left out, and rows of a group stay together, as for any method."""
    frame = table()
    groups, y = np.arange(80) // 4, np.abs(frame["size"]).where(np.arange(80) % 5 > 0)
    X = frame[["size", "a"]].to_numpy()
    found = compare(
        X, y, task="regression", groups=groups, methods=nca_tables(NCARegressor), **FOLDS
    )
    assert found["NCA tables"].n_learned == min(len(train) for train, _ in found.folds)
    assert found["NCA tables"].score.mean() > 0.5
    assert not np.isin(groups[found.folds[0][0]], groups[found.folds[0][1]]).any()
    np.testing.assert_array_equal(found.winner.predict(X), found.winner[-1].predict(X))


def test_what_it_cannot_learn_from_is_said():
    X = np.zeros((12, 2))
    X[:, 0] = np.arange(12)
    found = compare(
        X[[0, 0, 1, 1]], ["a", "b", "a", "b"], methods=nca_tables(), keep_twins=True, **FOLDS
    )
    assert "minimum of 4 is required" in found.skipped["NCA tables"]


@pytest.fixture
def few_are_many(monkeypatch):
    """Call 200 rows many, and take short rounds."""
    for name in ("tables.predictors.MAX_ROWS", "comparison.protocol.CHOICE_ROWS"):
        monkeypatch.setattr(f"nearkin.{name}", 200)
    monkeypatch.setattr(members, "STEPS", 10)


def copies(n=120, seed=0):
    """Return five noisy copies of every row, whose class is that of the row, and their groups."""
    X, y = hidden(n, p=3, seed=seed)
    X, y = np.repeat(X, 5, axis=0), np.repeat(y == "yes", 5)
    return (
        X + 1e-3 * np.random.default_rng(seed).normal(size=X.shape),
        y,
        np.repeat(np.arange(n), 5),
    )


class TestManyRows:
    @pytest.mark.long
    @pytest.mark.parametrize("grouped", [True, False])
    def test_held_out_rows_share_no_unit_with_rows_learned_from(
        self, few_are_many, monkeypatch, grouped
    ):
        """Neither with those of a member, nor with those of stochastic gradient and the votes."""
        X, y, groups = copies()
        given = {"groups": groups} if grouped else {"units": twin_groups(X)}
        protocol = protocol_of(X, y, **given)
        refined, seen = predictors.refined, []

        def recorded(found, rows, split, *rest):
            seen.append([*split, *(train for train, _ in found.folds)])
            return refined(found, rows, split, *rest)

        monkeypatch.setattr(predictors, "refined", recorded)
        method = Method("tables", NCAClassifier(n_bins=4), own_vote=True)
        model, learned = PredictorWithVote(method).fit(Fold(protocol, np.arange(600)))
        ((rest, held, *of_members),) = seen
        assert len(of_members) == 3
        for part in (rest, *of_members):
            assert not np.isin(groups[learned[part]], groups[learned[held]]).any()
        np.testing.assert_array_equal(model.held_out_rows_, held)

        fold_of_groups = (np.flatnonzero(~np.isin(groups, groups[held])), held)
        again = NCAClassifier(n_bins=4, random_state=0).fit_encoded(
            X, y, folds=protocol.member_folds(np.arange(600)), split=fold_of_groups
        )
        assert (again.alpha_, again.temperature_) == (model.alpha_, model.temperature_)

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("n_copies", [1, 2])
    def test_what_is_saved_is_what_was_evaluated(self, few_are_many, n_copies):
        X, y = hidden(480 // n_copies, p=3)
        X, y = np.repeat(X, n_copies, axis=0), np.repeat(y, n_copies)
        protocol = protocol_of(X, y, units=twin_groups(X))
        rows, queries = np.arange(400), np.arange(400, 480)
        one = PredictorWithVote(Method("tables", NCAClassifier(n_bins=4), own_vote=True))
        outcome = one.evaluate(Fold(protocol, rows, queries))
        pipeline, voting = one.pipeline(Fold(protocol, rows), outcome.choice)
        np.testing.assert_array_equal(voting, rows)
        votes = pipeline.predict_proba(X[queries])
        np.testing.assert_array_equal(outcome.predicted, votes.argmax(axis=1))
        np.testing.assert_allclose(
            outcome.scores["log_loss"], log_loss(y[queries], votes), rtol=1e-9
        )
