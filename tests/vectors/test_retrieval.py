"""Scores of ranks."""

import numpy as np
from sklearn.metrics import ndcg_score

from nearkin._blocks import unit_rows
from nearkin.vectors import Vectors, retrieval_scores


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
