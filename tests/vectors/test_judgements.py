"""Honest splits of labels and judgements: what is held out was not learned from."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from nearkin.vectors import Labels, Relevance
from nearkin.vectors.judgements import SEEN, UNSEEN, judged_matrix, quarters


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
            can_answer = known.gains(unseen.queries, unseen.candidates) > 0
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
    known = Relevance(np.ones((2, 1)), np.ones((3, 1)), R, np.arange(2))
    np.testing.assert_array_equal(known.n_relevant, [1, 0])
