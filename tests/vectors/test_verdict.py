"""The verdict on a migration: two versions of a space, unrelated spaces, and what lies between."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import ortho_group

from nearkin._blocks import unit_rows
from nearkin.statistics import paired_test_by_rows
from nearkin.vectors import evaluate_migration, migration
from nearkin.vectors.migration import Moments, Sample, Search, Setting

SIDES = ("query", "document")


def embeddings(n=600, p=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * np.linspace(2, 0.5, p)


def related(noise=1.0, n=800, seed=0):
    """Return the same items by two models that agree in part, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 12
    signal = 1.5 * rng.normal(size=(12, 8))[y] + rng.normal(size=(n, 8))
    old, new = (
        signal @ ortho_group(8, seed=k).rvs() + noise * rng.normal(size=(n, 8)) for k in range(2)
    )
    return old, new, y


@pytest.mark.parametrize("side", SIDES)
def test_a_rotation_loses_nothing(side):
    old = embeddings()
    found = evaluate_migration(old, old @ ortho_group(12, seed=1).rvs(), side=side)
    assert found.verdict == "migrate"
    assert found.kept > 0.999
    assert found.interval[0] > 0.95
    assert found.gain_of_more == 0
    assert found.rows_needed == max(found.curve) == 300


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("seed", range(3))
def test_unrelated_spaces_are_to_be_embedded_again(side, seed):
    found = evaluate_migration(embeddings(seed=seed), embeddings(p=9, seed=seed + 50), side=side)
    assert found.verdict == "embed again"
    assert found.interval[1] < 0.5
    assert abs(found.kept) < 0.05  # chance is no merit
    assert found.rows_needed == np.inf


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("side", SIDES)
def test_without_judgements_the_loss_of_models_that_agree_in_part_is_unknown(side):
    old, new, _ = related(0.5)
    found = evaluate_migration(old, new, side=side)
    assert found.verdict == "unknown"
    assert found.reference == "embedded again"
    assert found.score == "recall@10"
    low, high = found.interval
    assert low < found.kept < high < 0.95
    scores = found.scores
    assert scores["embedded again"] == {"recall@10": 1}
    assert found.test.difference == pytest.approx(scores["migration"]["recall@10"] - 1)
    assert scores["migration"]["recall@10"] > scores["old model"]["recall@10"]
    assert list(found.curve) == [100, 200, 400]
    assert found.curve[400] == scores["migration"]["recall@10"]
    assert found.growth.difference == pytest.approx(found.curve[400] - found.curve[200])


@pytest.mark.long
@pytest.mark.parametrize("side", SIDES)
def test_what_is_scored_is_what_the_map_finds(side):
    """The scores, computed anew from the map and the rows that were held out."""
    old, new, y = related()
    found = evaluate_migration(old, new, side=side, labels=y)
    sources = (new, old) if side == "query" else (old, new)
    units = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (*sources, old, new)]
    order = np.random.default_rng(0).permutation(len(old))
    queries, documents = order[:100], order[100:400]
    mapped = found.map.transform(units[0])
    Q, D = (mapped, units[2]) if side == "query" else (units[3], mapped)
    ranked = documents[np.argsort(-Q[queries] @ D[documents].T, axis=1)[:, :10]]
    own = documents[np.argsort(-units[3][queries] @ units[3][documents].T, axis=1)[:, :10]]
    share = np.mean([np.isin(a, b).mean() for a, b in zip(ranked, own, strict=True)])
    assert found.scores["migration"]["recall@10"] == pytest.approx(share, abs=2e-3)
    right = (y[ranked] == y[queries][:, None]).mean()
    assert found.scores["migration"]["precision@10"] == pytest.approx(right, abs=2e-3)


@pytest.mark.slow
def test_the_curve_and_the_hidden_classes_are_of_the_setting_that_is_evaluated():
    """The penalty of the sum of squares is that of all rows, whatever their number."""
    old, new, y = related(n=480, seed=2)
    found = evaluate_migration(old, new, labels=y)
    sample = Sample(unit_rows(new), unit_rows(old), "query", y)
    fit, documents, queries = sample.held_out(np.random.default_rng(0))

    def precision(some):
        alpha = found.map.alpha_ * len(fit) / len(some)
        chosen = Setting(found.map.reverse_, alpha, found.map.label_weight_)
        search = Search(documents, queries, 10)
        return search.same_label(search.by_map(*Moments.of(some).solve(chosen))).mean(axis=1)

    assert list(found.curve) == [60, 120, 240]
    for n, score in found.curve.items():
        assert score == pytest.approx(precision(fit.some(np.arange(n))).mean())
    without, hidden = fit.without_classes(np.random.default_rng(0))
    assert found.unseen.migration == pytest.approx(
        precision(without)[np.isin(queries.codes, hidden)].mean()
    )


@pytest.mark.long
def test_that_half_is_kept_is_decided_by_the_test_against_half_of_the_reference():
    """Both scores are of the same queries: the reference's is not taken as known."""
    old, new, y = related(n=400)
    old += 2.5 * np.random.default_rng(1).normal(size=old.shape)
    found = evaluate_migration(old, new, labels=y)
    assert found.reference == "embedded again"
    order = np.random.default_rng(0).permutation(len(old))
    queries, documents = order[:50], order[50:200]
    units = [unit_rows(Z) for Z in (old, found.map.transform(unit_rows(new)), new)]
    chance = (y[documents] == y[queries][:, None]).mean(axis=1)

    def above_chance(Q, D):
        ranked = documents[np.argsort(-Q[queries] @ D[documents].T, axis=1)[:, :10]]
        return (y[ranked] == y[queries][:, None]).mean(axis=1) - chance

    by_map, own = above_chance(units[1], units[0]), above_chance(units[2], units[2])
    assert found.kept == pytest.approx(by_map.mean() / own.mean(), abs=0.01)
    for k in found.interval:
        test = paired_test_by_rows([by_map], [k * own], [np.arange(50)], 200)
        assert test.p_value == pytest.approx(0.05, abs=0.005)


@pytest.mark.long
def test_labels_decide_against_the_better_of_both_models():
    old, new, y = related(n=240)
    worse = new + 9 * np.random.default_rng(1).normal(size=new.shape)
    found = evaluate_migration(old, worse, labels=y)
    assert found.score == "precision@10"
    assert found.reference == "old model"
    better = evaluate_migration(worse, old, labels=y)
    assert better.reference == "embedded again"


@pytest.mark.long
def test_classes_that_the_map_has_not_seen_may_forbid_it(monkeypatch):
    """What labels add to their classes, others may lose: then it is no migration without a loss."""
    monkeypatch.setattr(migration, "TRIED", migration.TRIED | {"label_weight": ([3.0], [3.0])})
    rng = np.random.default_rng(0)
    y = np.arange(800) % 16
    items = rng.normal(size=(16, 20))[y] + rng.normal(size=(800, 20))
    old, new = (items + 0.3 * rng.normal(size=(800, 20)) for _ in range(2))
    found = evaluate_migration(old, new, labels=y)
    assert found.interval[0] >= 0.95
    assert found.unseen.migration < 0.8 * found.unseen.reference
    assert found.verdict == "migrate with a loss"


def test_duplicates_are_left_out():
    old = embeddings(200)
    found = evaluate_migration(np.vstack([old, old[:50]]), np.vstack([old, old[:50]]))
    assert found.n_rows == 200


def test_more_rows_than_the_sample_has():
    """The error of a linear map falls as 1 / rows: the gain of a doubling is all that is left."""
    rng = np.random.default_rng(0)
    old = rng.normal(size=(480, 60))
    new = old @ rng.normal(size=(60, 60))
    found = evaluate_migration(old, new, side="document")
    assert found.gain_of_more == found.growth.difference > 0
    assert found.rows_needed > max(found.curve)
    # a map that labels help may find more than the reference, which is more than enough
    reference = found.scores["embedded again"]["recall@10"]
    scores = found.scores | {"migration": {"recall@10": 1.05 * reference}}
    more = replace(found, kept=1.05, scores=scores)
    assert more.gain_of_more > 0
    assert more.rows_needed == max(found.curve)


@pytest.mark.parametrize(
    ("n", "labels", "message"),
    [
        (79, None, "79 distinct rows are too few to hold some out: give at least 80"),
        (200, np.arange(200), "labels name no class of two rows"),
    ],
)
def test_what_cannot_be_judged(n, labels, message):
    X = embeddings(n)
    with pytest.raises(ValueError, match=message):
        evaluate_migration(X, X, labels=labels)


def test_arguments_that_do_not_fit():
    X = embeddings(400)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        evaluate_migration(X, X[:-1])
    with pytest.raises(ValueError, match="side must be one of"):
        evaluate_migration(X, X, side="both")


@pytest.mark.long
def test_labels_that_no_model_finds():
    """Rows come in opposite pairs of one class: nobody's nearest neighbours are of its class."""
    X = embeddings(200)
    X, y = np.vstack([X, -X]), np.tile(np.arange(200), 2)
    with pytest.raises(ValueError, match="neither model finds what is relevant"):
        evaluate_migration(X, X, labels=y)


def judged(n_queries=40, noise=0.5, seed=0):
    """Return documents and queries by two models, and which documents are of a query's class."""
    old, new, y = related(noise, n=400 + n_queries, seed=seed)
    relevant = np.argwhere(y[-n_queries:, None] == y[None, :-n_queries])
    return old[:-n_queries], new[:-n_queries], (old[-n_queries:], new[-n_queries:]), relevant


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("side", SIDES)
def test_judged_queries_decide_by_ndcg(side):
    """All scores, computed anew from the rows that are held out."""
    old, new, queries, relevant = judged()
    found = evaluate_migration(old, new, side=side, queries=queries, relevance=relevant)
    assert found.score == "nDCG@10"
    assert (found.n_queries, found.n_documents) == (40, 200)
    held_out = np.random.default_rng(0).permutation(400)[:200]
    R = np.zeros((40, 400))
    R[tuple(relevant.T)] = 1
    R, (q_old, q_new) = R[:, held_out], map(unit_rows, queries)
    d_old, d_new = unit_rows(old)[held_out], unit_rows(new)[held_out]
    discount = 1 / np.log2(np.arange(2, 12))
    ideal = np.array([discount[: min(10, int(n))].sum() for n in R.sum(axis=1)])

    def ndcg(Q, D):
        ranked = np.argsort(-Q @ D.T, axis=1)[:, :10]
        return np.mean(np.take_along_axis(R, ranked, axis=1) @ discount / ideal)

    mapped = (found.map.transform(q_new), d_old)
    if side == "document":
        mapped = (q_new, found.map.transform(d_old))
    spaces = {"embedded again": (q_new, d_new), "old model": (q_old, d_old), "migration": mapped}
    for name, space in spaces.items():
        assert found.scores[name]["nDCG@10"] == pytest.approx(ndcg(*space), abs=1e-6)
    reference = max(found.scores[name]["nDCG@10"] for name in ("embedded again", "old model"))
    chance = np.mean(R.mean(axis=1) * discount.sum() / ideal)
    kept = (found.scores["migration"]["nDCG@10"] - chance) / (reference - chance)
    assert found.kept == pytest.approx(kept, abs=1e-6)


@pytest.mark.long
def test_judgements_may_tell_what_neighbours_cannot():
    """Both models know the classes, but nothing else in common: any map of these loses nothing."""
    rng = np.random.default_rng(0)
    y = np.arange(900) % 6
    old, new = (
        4 * np.eye(6, 12)[y] + np.pad(rng.normal(size=(900, 6)), ((0, 0), (6, 0))) for _ in range(2)
    )
    queries, relevant = (old[800:], new[800:]), np.argwhere(y[800:, None] == y[None, :800])
    found = evaluate_migration(old[:800], new[:800])
    assert (found.verdict, found.kept < 0.5) == ("unknown", True)
    found = evaluate_migration(old[:800], new[:800], queries=queries, relevance=relevant)
    assert found.verdict == "migrate"


@pytest.mark.long
def test_copies_of_a_relevant_row_are_one_row():
    old, new, queries, relevant = judged()
    found = evaluate_migration(old, new, queries=queries, relevance=relevant)
    twice = [np.vstack([Z, Z]) for Z in (old, new)]
    of_copies = relevant + np.array([0, 400])
    again = evaluate_migration(*twice, queries=queries, relevance=of_copies)
    assert (again.scores, again.n_rows) == (found.scores, found.n_rows)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"relevance": [[0, 0]]}, "give labels, or queries and their relevance, or neither"),
        ({"queries": (np.eye(8), np.eye(8))}, "or queries and their relevance, or neither"),
        (
            {"queries": (np.eye(8), np.eye(7)), "relevance": [[0, 0]]},
            "inconsistent numbers",
        ),
        (
            {"queries": (np.eye(9), np.eye(9)), "relevance": [[0, 0]]},
            "queries have 9 and 9 features, old and new 8 and 8",
        ),
        (
            {"queries": (np.eye(8), np.eye(8)), "relevance": [[0, 0]]},
            "queries have a relevant row in the half that is held out: give at least 8",
        ),
    ],
)
def test_judgements_that_do_not_fit(given, message):
    old, new, _ = related(n=100)
    with pytest.raises(ValueError, match=message):
        evaluate_migration(old, new, **given)
