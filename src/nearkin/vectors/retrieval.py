"""Retrieval by cosine: the most similar candidates of every query, and scores of their ranks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._blocks import unit_rows
from ..neighbors import EXACT

DEPTH = 100  # ranks that are scored
RESCORED = 10  # candidates found by codes for every rank, before they are ranked again
RETRIEVAL_SCORES = ("precision@1", "precision@10", "recall@100", "nDCG@10", "MAP", "MRR")


@dataclass(frozen=True)
class Vectors:
    """Queries and candidates in one space, compared by cosine; that of a row of zeros is 0.

    Attributes
    ----------
    queries : array of shape (q, m)
    candidates : array of shape (c, m)
    codes : pair of arrays or None
        Codes of queries and candidates, by which the first candidates are found; these are then
        ranked again by the vectors themselves.
    """

    queries: np.ndarray
    candidates: np.ndarray
    codes: tuple[np.ndarray, np.ndarray] | None = None

    def ranked(self, depth: int) -> np.ndarray:
        """Return the indices of the most similar candidates, (q, depth), in descending order."""
        depth = min(depth, len(self.candidates))
        if self.codes is None:
            return _most_similar(self.queries, self.candidates, depth)
        some = _most_similar(*self.codes, min(RESCORED * depth, len(self.candidates)))
        Q, C = unit_rows(self.queries), unit_rows(self.candidates)
        ranks = [
            np.argsort(-(C[few] @ q), kind="stable")[:depth] for q, few in zip(Q, some, strict=True)
        ]
        return np.take_along_axis(some, np.array(ranks), axis=1)


def _most_similar(Q: np.ndarray, C: np.ndarray, k: int) -> np.ndarray:
    """Return the indices of the k candidates of largest cosine.

    For rows of unit length these are the nearest ones. Candidates that are zero get a direction of
    their own, so that their cosine with every query is 0.
    """
    Q, C = unit_rows(Q.astype(np.float32)), unit_rows(C.astype(np.float32))
    is_zero = ~C.any(axis=1)
    if is_zero.any():
        Q, C = np.column_stack([Q, np.zeros_like(Q[:, 0])]), np.column_stack([C, is_zero])
    return EXACT.index(C, k)(Q, k)[1]


def retrieval_scores(
    gains: np.ndarray, ideal: np.ndarray, n_relevant: np.ndarray
) -> dict[str, np.ndarray]:
    """Return scores for every query, each in [0, 1].

    Parameters
    ----------
    gains : array of shape (q, depth)
        Relevance of the candidates of the first ranks, 0 if not relevant.
    ideal : array of shape (q, 10)
        The largest gains among the candidates of a query, descending, padded with 0.
    n_relevant : array of shape (q,)
        Number of relevant candidates, at least one.

    Returns
    -------
    dict of str to ndarray
        "precision@1", "precision@10": the share of relevant candidates among the first ranks;
        "recall@100": the share of relevant candidates that are found; "nDCG@10": `sum_r gain_r /
        log2(1 + r)` over the first ten ranks r, relative to that of the ideal order (Jarvelin and
        Kekalainen 2002); "MAP": the sum of the precisions at the ranks of relevant candidates,
        divided by their number; "MRR": 1 / rank of the first relevant candidate. For the last two,
        ranks beyond 100 count as 0. All scores are those of trec_eval.
    """
    relevant = gains > 0
    discount = 1 / np.log2(np.arange(2, 12))
    first = np.where(relevant.any(axis=1), 1 / (1 + relevant.argmax(axis=1)), 0.0)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, 1 + relevant.shape[1])
    dcg = gains[:, :10] @ discount[: gains[:, :10].shape[1]]
    return {
        "precision@1": relevant[:, 0].astype(float),
        "precision@10": relevant[:, :10].sum(axis=1) / 10,
        "recall@100": relevant[:, :DEPTH].sum(axis=1) / n_relevant,
        "nDCG@10": dcg / (ideal @ discount),
        "MAP": (precision * relevant).sum(axis=1) / n_relevant,
        "MRR": first,
    }
