"""What judgements give to the loss of an adapter: batches, and the covariance of what belongs
together.
"""

import numpy as np
import pytest
from scipy.sparse import random_array
from sklearn.preprocessing import MultiLabelBinarizer

from nearkin._blocks import unit_rows
from nearkin.objectives.cosine import Comparison, softmax_loss
from nearkin.vectors import Labels, Relevance, judgements
from nearkin.vectors.judgements import Pairs, Triplets, relevance_matrix

P = 6
X = np.random.default_rng(0).normal(size=(48, P)) * np.arange(1, P + 1) + 1
PAIRS = np.random.default_rng(2).permutation(48).reshape(24, 2)
Q = np.random.default_rng(4).normal(size=(10, P)) + 1
R = random_array((10, 48), density=0.1, random_state=np.random.default_rng(5), format="csr")
RNG = np.random.default_rng(3)


def paired(numbers, grades):
    return Pairs.of(X, numbers, grades, np.arange(48))


class TestBatches:
    def test_relevance_is_the_share_of_common_labels(self):
        names = [["a", "b"], ["a"], ["b", "a", "c"], [], ["c"], ["b", "c", "d"]]
        L = MultiLabelBinarizer().fit_transform(names)
        sets = [set(one) for one in names if one]
        known = Labels.of(X[:6], L, np.arange(6))
        W = known.comparison(known.items, RNG).relevance
        expected = [[0 if a is b else len(a & b) / len(a | b) for b in sets] for a in sets]
        np.testing.assert_allclose(W, expected)

    def test_a_batch_holds_eight_of_a_label(self):
        labels = np.random.default_rng(0).integers(0, 30, 700)
        kind = Labels(np.zeros((700, 1)), labels, np.arange(700))
        order = kind.order(np.random.default_rng(0))
        np.testing.assert_array_equal(np.sort(order), np.arange(700))
        ends = np.flatnonzero(np.diff(labels[order], append=-1)) + 1
        runs, label = np.diff(ends, prepend=0), labels[order][ends - 1]
        # the last of a label, fewer than eight, may follow any eight
        for c, size in enumerate(np.bincount(labels)):
            assert np.sum(runs[label == c] % 8 > 0) == (size % 8 > 0)
        assert len(runs) > 0.8 * np.ceil(np.bincount(labels) / 8).sum()
        assert not np.array_equal(order, kind.order(np.random.default_rng(1)))

    def test_rows_judged_unlike_are_candidates_in_every_batch(self):
        unlike = np.column_stack([PAIRS[:, 0], np.roll(PAIRS[:, 1], 5)])
        kind = paired(np.vstack([PAIRS, unlike]), np.repeat([1.0, 0.0], 24))
        for items in (np.arange(3), np.array([20, 4])):
            comparison = kind.comparison(items, RNG)
            rows = np.unique(PAIRS[items])
            others = unlike[np.isin(unlike, rows).any(axis=1)]
            np.testing.assert_array_equal(comparison.queries, X[rows])
            found = {row.tobytes() for row in comparison.candidates}
            assert found == {row.tobytes() for row in X[np.union1d(others, rows)]}
            number = {row.tobytes(): i for i, row in enumerate(X)}
            candidates = [number[row.tobytes()] for row in comparison.candidates]
            judged = {*map(tuple, unlike.tolist()), *map(tuple, unlike[:, ::-1].tolist())}
            expected = [
                [i != j and (j in rows or (i, j) in judged) for j in candidates] for i in rows
            ]
            np.testing.assert_array_equal(comparison.offered, expected)
            assert comparison.relevance.sum() == 2 * len(items)
        plain = paired(PAIRS, np.ones(24)).comparison(np.arange(3), RNG)
        assert plain.candidates is None

    def test_triplets_have_one_relevant_candidate_of_two(self):
        triplets = np.random.default_rng(0).permutation(48).reshape(16, 3)
        U = unit_rows(X)
        comparison = Triplets(U, triplets).comparison(np.arange(16), RNG)
        A = np.random.default_rng(1).normal(size=(3, P))
        z = unit_rows(U @ A.T)[triplets]
        expected = np.logaddexp(0, np.sum(z[:, 0] * (z[:, 2] - z[:, 1]), axis=1) / 0.1).mean()
        for loss in ("nca", "contrastive"):
            assert softmax_loss(A, comparison, 0.1, loss)[0] == pytest.approx(expected)

    def test_of_many_documents_the_relevant_ones_are_always_candidates(self, monkeypatch):
        monkeypatch.setattr(judgements, "CANDIDATES", 20)
        kind = Relevance(Q, X, relevance_matrix(R, (10, 48)), np.arange(10))
        items = np.array([1, 4, 7])
        comparison = kind.comparison(items, RNG)
        assert 20 - np.diff(R.indptr)[items].sum() <= len(comparison.candidates) <= 20
        np.testing.assert_allclose(
            np.sort(comparison.relevance.sum(axis=1)), np.sort(R[items].sum(axis=1))
        )
        everything = Comparison(Q[items], X, R[items].toarray())
        A = np.eye(P)
        assert (
            softmax_loss(A, comparison, 0.1, "nca")[0] < softmax_loss(A, everything, 0.1, "nca")[0]
        )


class TestCovariance:
    def test_of_pairs_is_weighted_by_grades(self):
        grades = np.random.default_rng(0).uniform(0, 1, 24)
        D = X[PAIRS[:, 0]] - X[PAIRS[:, 1]]
        expected = (D.T * grades) @ D / 2 / grades.sum()
        np.testing.assert_allclose(paired(PAIRS, grades).within_covariance(), expected)

    def test_of_queries_and_their_relevant_documents(self):
        query, document = R.nonzero()
        D = Q[query] - X[document]
        kind = Relevance(Q, X, relevance_matrix(R, (10, 48)), np.arange(10))
        np.testing.assert_allclose(kind.within_covariance(), D.T @ D / 2 / len(D))
