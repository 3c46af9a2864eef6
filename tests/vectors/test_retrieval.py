"""Scores of ranks, honest splits of labels and judgements, and the choice among vectors."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import ndcg_score

from nearkin import EmbeddingAdapter
from nearkin._blocks import unit_rows
from nearkin.evaluation import (
    Labels,
    Relevance,
    Vectors,
    Way,
    adaptation,
    retrieval_scores,
    twin_groups,
    ways_of,
)
from nearkin.evaluation.adaptation import SETTINGS, compare_vectors, place_in_sequence, vectors_of
from nearkin.evaluation.statistics import PairedTest, in_sequence
from nearkin.vectors.judgements import SEEN, UNSEEN, count_relevant, judged_matrix, quarters


def labelled(n=400, p=12, n_classes=10, noise=3.0, seed=0):
    """Return rows whose classes differ in four dimensions, while they vary more in the others; none
    is a duplicate.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, p)) * np.r_[np.ones(4), np.full(p - 4, noise)]
    X[:, :4] += 3 * rng.normal(size=(n_classes, 4))[y]
    return Labels(X.astype(np.float32), y, np.arange(n))


def judged(n_queries=60, n_documents=90, p=10, seed=0):
    rng = np.random.default_rng(seed)
    topic, of = rng.normal(size=(30, 3)), np.arange(n_documents) % 30
    documents = np.hstack([topic[of], 2 * rng.normal(size=(n_documents, p - 3))])
    asked = np.arange(n_queries) % 30
    queries = np.hstack(
        [
            topic[asked] + 0.3 * rng.normal(size=(n_queries, 3)),
            2 * rng.normal(size=(n_queries, p - 3)),
        ]
    )
    R = csr_array((asked[:, None] == of).astype(float))
    return Relevance(
        queries.astype(np.float32), documents.astype(np.float32), R, np.arange(n_queries)
    )


class TestScores:
    def test_by_hand(self):
        gains = np.array([[0, 1, 0, 1] + 8 * [0], 12 * [0]], dtype=float)
        ideal = np.array([[1, 1, 1] + 7 * [0], [1] + 9 * [0]], dtype=float)
        found = retrieval_scores(gains, ideal, np.array([3, 1]))
        expected = {
            "precision@1": [0, 0],
            "precision@10": [0.2, 0],
            "recall@100": [2 / 3, 0],
            "nDCG@10": [(1 / np.log2(3) + 1 / np.log2(5)) / (1 + 1 / np.log2(3) + 0.5), 0],
            "MAP": [(1 / 2 + 2 / 4) / 3, 0],
            "MRR": [0.5, 0],
        }
        assert found.keys() == expected.keys()
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values)

    def test_ndcg_is_that_of_scikit_learn(self):
        rng = np.random.default_rng(0)
        grades, similarity = rng.integers(0, 4, (20, 50)).astype(float), rng.random((20, 50))
        ranked = np.take_along_axis(grades, np.argsort(-similarity, axis=1), axis=1)
        ideal = -np.sort(-grades, axis=1)[:, :10]
        found = retrieval_scores(ranked, ideal, (grades > 0).sum(axis=1))["nDCG@10"]
        expected = [
            ndcg_score(a[None], b[None], k=10) for a, b in zip(grades, similarity, strict=True)
        ]
        np.testing.assert_allclose(found, expected)

    def test_fewer_than_ten_candidates(self):
        found = retrieval_scores(np.eye(3)[:, :3], np.eye(1, 10).repeat(3, 0), np.ones(3))
        np.testing.assert_allclose(found["precision@10"], 0.1)
        np.testing.assert_allclose(found["MRR"], [1, 1 / 2, 1 / 3])

    def test_candidates_are_ranked_by_cosine(self):
        rng = np.random.default_rng(0)
        Q, C = rng.normal(size=(5, 4)), rng.normal(size=(30, 4)) * rng.uniform(0.1, 10, (30, 1))
        expected = np.argsort(-(unit_rows(Q) @ unit_rows(C).T), axis=1)[:, :7]
        np.testing.assert_array_equal(Vectors(Q, C).ranked(7), expected)
        few = np.sign(Q), np.sign(C)
        again = Vectors(Q, C, few).ranked(7)
        np.testing.assert_array_equal(again, expected)  # ten times as many are found first: all

    def test_the_cosine_of_a_row_of_zeros_is_zero(self):
        C = [[0, 0], [0.4, 0.92], [-0.1, 1]]
        np.testing.assert_array_equal(
            Vectors(np.array([[1, 0]]), np.array(C)).ranked(3), [[1, 0, 2]]
        )
        rng = np.random.default_rng(0)
        Q, C = rng.normal(size=(6, 3)), rng.normal(size=(20, 3))
        C[[2, 5]] = 0
        expected = np.argsort(-(unit_rows(Q) @ unit_rows(C).T), axis=1, kind="stable")
        found = Vectors(Q, C).ranked(20)
        is_zero = np.isin(expected, [2, 5])  # tied
        np.testing.assert_array_equal(np.isin(found, [2, 5]), is_zero)
        np.testing.assert_array_equal(found[~is_zero], expected[~is_zero])

    def test_no_more_ranks_than_candidates(self):
        assert Vectors(np.eye(3), np.eye(3)[:2]).ranked(100).shape == (3, 2)


class Given:
    """In place of an adapter: what it is fitted to."""

    def fit_pairs(self, X, pairs, y):
        return X, pairs, y


class TestSplits:
    def test_each_row_is_a_query_once_and_each_class_unseen_once(self):
        known = labelled()
        splits = list(known.splits(np.random.default_rng(0)))
        queries = np.concatenate([split.queries for split in splits])
        assert sorted(queries) == list(range(400))
        unseen = [set(known.y[split.queries[split.parts[UNSEEN]]]) for split in splits]
        assert sum(map(len, unseen)) == len(set.union(*unseen)) == 10
        for split, classes in zip(splits, unseen, strict=True):
            assert not set(split.queries) & set(split.candidates)
            trained = {row.tobytes() for row in split.train.X}
            assert not trained & {row.tobytes() for row in known.X[np.isin(known.y, list(classes))]}
            assert not trained & {row.tobytes() for row in known.X[split.queries]}
            assert (split.parts[SEEN] ^ split.parts[UNSEEN]).all()

    def test_duplicates_are_on_one_side(self):
        known = labelled()
        twins = Labels(known.X.repeat(2, 0), known.y.repeat(2), known.groups.repeat(2))
        for split in twins.splits(np.random.default_rng(0)):
            held_out = {row.tobytes() for row in twins.X[split.queries]}
            assert not held_out & {row.tobytes() for row in twins.X[split.candidates]}
            assert not held_out & {row.tobytes() for row in split.train.X}

    def test_each_row_of_an_unseen_class_can_be_a_query_of_all_other_groups(self):
        known = labelled()
        groups = np.where(known.groups < 20, known.groups // 2, known.groups)  # 10 of two classes
        y = np.where(known.groups < 380, known.y, -1)
        known, queries = replace(known, y=y, groups=groups), []
        for split in known.splits(np.random.default_rng(0)):
            seen, unseen = split.apart()
            np.testing.assert_array_equal(seen.queries, split.queries[split.parts[SEEN]])
            np.testing.assert_array_equal(seen.candidates, split.candidates)
            assert set(split.queries[split.parts[UNSEEN]]) <= set(unseen.queries)
            for one, name, other in ((seen, SEEN, UNSEEN), (unseen, UNSEEN, SEEN)):
                assert one.parts[name].all()
                assert not one.parts[other].any()
            trained = {row.tobytes() for row in split.train.X}
            of_groups = np.isin(groups, groups[unseen.queries])
            of_classes = np.isin(y, y[unseen.queries])
            assert not trained & {row.tobytes() for row in known.X[of_groups | of_classes]}
            searched = ~known.withheld(unseen.queries, unseen.candidates)
            other_group = groups[unseen.queries][:, None] != groups[y >= 0]
            np.testing.assert_array_equal(unseen.candidates, np.flatnonzero(y >= 0))
            np.testing.assert_array_equal(searched, other_group)
            can_answer = known.relevant(unseen.queries, unseen.candidates)
            assert (can_answer & searched).any(axis=1).all()
            queries += unseen.queries.tolist()
        assert len(set(queries)) == len(queries)
        assert len(queries) >= 0.9 * (y >= 0).sum()

    def test_a_row_of_an_unseen_class_needs_another_one_outside_its_group(self):
        known = labelled()
        alone = np.where(known.y == 0, 0, known.groups)  # a class in one group
        for split in replace(known, groups=alone).splits(np.random.default_rng(0)):
            assert (known.y[split.further] != 0).all()

    def test_few_classes_are_all_seen(self):
        assert [*next(labelled(n_classes=3).splits(np.random.default_rng(0))).parts] == [SEEN]

    def test_rows_without_a_label_are_trained_on_only(self):
        known = labelled()
        partly = Labels(known.X, np.where(np.arange(400) % 5, known.y, -1), known.groups)
        for split in partly.splits(np.random.default_rng(0)):
            assert (partly.y[split.queries] >= 0).all()
            assert (partly.y[split.candidates] >= 0).all()
            assert (split.train.y == -1).any()

    def test_pairs_that_hang_together_are_held_out_together(self):
        pairs = np.array([[0, 1], [1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
        known = Relevance.of_pairs(np.random.default_rng(0).normal(size=(12, 3)), pairs, np.ones(6))
        queries = []
        for split in known.splits(np.random.default_rng(0)):
            assert len({0, 1, 2} & set(split.queries)) in (0, 3)
            trained = np.delete(np.arange(12), split.queries)
            np.testing.assert_array_equal(split.train.queries, known.queries[trained])
            np.testing.assert_array_equal(
                split.train.R.toarray(), known.R.toarray()[np.ix_(trained, trained)]
            )
            queries += split.queries.tolist()
        assert sorted(queries) == list(range(11))

    def test_pairs_judged_unlike_connect_nothing_and_those_of_held_out_rows_are_not_known(self):
        pairs = np.array([[2 * i, 2 * i + 1] for i in range(20)])
        unlike = np.array(
            [[2 * i, (2 * i + 3) % 40] for i in range(20)] + [[i, 40] for i in range(40)]
        )
        X = np.random.default_rng(0).normal(size=(41, 3))
        known = Relevance.of_pairs(X, np.vstack([pairs, unlike]), np.repeat([1.0, 0.0], [20, 60]))
        assert len(known) == 40  # the last row has nothing relevant
        for split in known.splits(np.random.default_rng(0)):
            assert len(split.queries) == 10
            assert len(split.train.queries) == 31
            assert 30 in split.train.R.tocoo().coords[0]  # the last row
            assert (split.train.R.data == 0).sum() > 2 * 30
            assert (split.train.fit(Given())[2] == -1).sum() > 30

    def test_judged_zeros_are_no_relevant_documents(self):
        known = judged()
        zeros = known.R.toarray()[:, ::-1] == 0
        R = csr_array(known.R + csr_array(zeros * 2.0))
        R.data = (R.data != 2).astype(float)
        more = Relevance(known.queries, known.documents, R, known.groups)
        assert R.nnz > known.R.nnz
        for one, other in zip(
            *(k.splits(np.random.default_rng(0)) for k in (known, more)), strict=True
        ):
            at = one.queries, one.candidates
            for a, b in zip(known.best_gains(*at), more.best_gains(*at), strict=True):
                np.testing.assert_array_equal(a, b)
            assert other.train.R.nnz > one.train.R.nnz
            assert len(other.train) == len(one.train)


def paired(n=40, p=10):
    """Return rows in pairs, of which the last one is a copy of the first, and judged in none."""
    X = labelled(n, p).X
    pairs = np.arange(n).reshape(-1, 2)
    return Relevance.of_pairs(np.vstack([X, X[:1]]), pairs, np.ones(n // 2), np.r_[:n, 0])


@pytest.mark.parametrize(
    "known", [labelled(80, 10), paired(), judged()], ids=["labels", "pairs", "documents"]
)
@pytest.mark.parametrize("place", range(4))
def test_nothing_is_learned_from_held_out_queries(known, place):
    """Other vectors in their place, and in that of their copies, move no other row."""

    def split(known):
        return list(known.splits(np.random.default_rng(0)))[place]

    def candidates(known, rows):
        train = split(known).train
        adapter = train.fit(EmbeddingAdapter(4, start="plda", max_iter=2))
        for way in ways_of(10, [4], "both"):
            if way.size == 4 or not way.is_adapted:
                yield vectors_of(way, split(known), known, adapter).candidates[rows]

    queries = known.vectors()[0]
    held_out = np.isin(known.groups, known.groups[split(known).queries])
    moved = np.where(
        held_out[:, None], np.random.default_rng(1).normal(size=queries.shape), queries
    )
    moved = moved.astype(queries.dtype)
    if isinstance(known, Labels):
        other, rows = replace(known, X=moved), slice(None)
    elif known.own_rows:
        other, rows = replace(known, queries=moved, documents=moved), ~held_out
    else:
        other, rows = replace(known, queries=moved), slice(None)
    for one, same in zip(candidates(known, rows), candidates(other, rows), strict=True):
        np.testing.assert_array_equal(one, same)


@pytest.fixture
def few_fits(monkeypatch):
    """Choose between two settings of short fits, on one split."""
    short = [settings | {"max_iter": 6} for settings in SETTINGS[::4]]
    monkeypatch.setattr(adaptation, "SETTINGS", short)
    monkeypatch.setattr(adaptation, "CHOICE_QUERIES", 1)


@pytest.mark.usefixtures("few_fits")
class TestAdapt:
    def test_an_adapter_that_helps_is_shown_to(self):
        found = compare_vectors(labelled(), sizes=(4,))
        assert found.score == "precision@10"
        names = [one.way.name for one in found.results]
        assert names == ["raw", "centred 12", "truncated 4", "PCA 4", "adapter 4", "adapter 12", "adapter 4 int8",
                         "adapter 4 binary", "adapter 4 binary, rescored"]  # fmt: skip
        assert found.chosen.status == "better"
        assert found.chosen.way.bytes < found.raw.way.bytes
        assert found.settings in adaptation.SETTINGS
        assert sum(found.n_queries.values()) == 400
        assert list(found.n_queries) == [SEEN, UNSEEN]

    def test_noise_keeps_raw(self):
        known = labelled(200)
        y = np.random.default_rng(1).permutation(known.y)
        found = compare_vectors(Labels(known.X, y, known.groups), sizes=(4,))
        assert found.chosen is found.raw

    def test_judged_documents_and_queries_alone(self):
        found = compare_vectors(judged(), sizes=(3,))
        assert found.score == "nDCG@10"
        assert found.chosen.status == "better"
        query = compare_vectors(judged(), side="query")
        assert [one.way.name for one in query.results] == ["raw", "query adapter 10"]

    def test_pairs_do_not_find_themselves(self):
        known = labelled(100)
        order = np.argsort(known.y, kind="stable")
        found = compare_vectors(
            Relevance.of_pairs(known.X, order.reshape(-1, 2), np.ones(50)), sizes=(4,)
        )
        assert 0 < found.raw.scores["queries"]["precision@1"] < 1

    def test_the_seed_decides(self):
        one, again = (compare_vectors(labelled(60), sizes=(4,)) for _ in range(2))
        assert [r.scores for r in one.results] == [r.scores for r in again.results]

    def test_unseen_classes_need_classes(self):
        with pytest.raises(ValueError, match="at least 8 classes"):
            compare_vectors(labelled(n_classes=3), sizes=(4,), expect="new")


@pytest.mark.usefixtures("few_fits")
class TestHonesty:
    @pytest.mark.parametrize("factor", [1, 5])
    def test_copies_of_a_direction_prove_nothing(self, factor):
        """Labels are noise, but each row has a copy of its label, maybe of another length."""
        known = labelled(120)
        y = np.random.default_rng(1).permutation(known.y)
        X, y = np.vstack([known.X, factor * known.X]), np.r_[y, y]
        groups = twin_groups(unit_rows(X), scale=False)
        assert compare_vectors(Labels(X, y, groups), sizes=(4,)).chosen.way.kind == "raw"

    @pytest.mark.parametrize(
        "known",
        [
            Labels(labelled(3).X, np.array([0, 1, 0]), np.arange(3)),
            Labels(labelled(40).X, np.repeat([0, 1], 20), np.repeat([0, 1], 20)),
            Labels(
                labelled(300).X,
                np.where(np.arange(300) < 6, np.arange(300) % 2, -1),
                np.arange(300),
            ),
            Relevance.of_pairs(
                labelled(30).X, np.column_stack([np.arange(29), np.arange(1, 30)]), np.ones(29)
            ),
        ],
        ids=["three rows", "two groups", "few labels", "a chain of pairs"],
    )
    def test_too_little_is_refused_or_compared(self, known):
        try:
            found = compare_vectors(known, sizes=(4,))
        except ValueError as error:
            assert "too few rows that do not hang together" in str(error)  # noqa: PT017
        else:
            assert np.isfinite(
                [
                    value
                    for one in found.results
                    for value in next(iter(one.scores.values())).values()
                ]
            ).all()

    def test_scores_differ_by_the_difference(self):
        found = compare_vectors(labelled(240, n_classes=9), sizes=(4,))
        for one in found.results:
            for part, test in one.tests.items():
                difference = one.scores[part][found.score] - found.raw.scores[part][found.score]
                assert difference == pytest.approx(test.difference)


def test_quarters_are_of_one_size_and_keep_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), rng.integers(1, 12, 30))
    found = quarters(groups, rng)
    assert max(np.bincount(found)) - min(np.bincount(found)) < 12
    assert all(len(np.unique(found[groups == group])) == 1 for group in range(30))


def test_judgements_of_one_place_count_once():
    R = judged_matrix(
        np.array([0, 0, 1, 1]), np.array([2, 2, 0, 1]), np.array([1.0, 3.0, 0.0, -1.0]), (2, 3)
    )
    np.testing.assert_array_equal(R.toarray(), [[0, 0, 3], [0, 0, 0]])
    assert R.nnz == 3  # what is judged not relevant is stored
    np.testing.assert_array_equal(count_relevant(R), [1, 0])


def test_a_sequence_of_tests_stops_where_one_fails():
    ways = [Way(name, 1, 1) for name in "abcd"]
    tests = [PairedTest(d, 1.0, 1000, 5) for d in (3.0, 5.0, 1.0, 9.0)]
    p = list(in_sequence(dict(zip(ways, tests, strict=True))).values())
    assert p[0] == p[1] == tests[0].p_value < 0.05 < p[2] == p[3]


def test_bits_come_last_and_long_vectors_first():
    ways = sorted(
        (way for way in ways_of(384, (64, 32), "both") if way.is_adapted), key=place_in_sequence
    )
    assert [way.name for way in ways] == [
        *(
            "adapter 384",
            "adapter 64",
            "adapter 64 int8",
            "adapter 64 binary, rescored",
            "adapter 32",
        ),
        *("adapter 32 int8", "adapter 64 binary"),
    ]
