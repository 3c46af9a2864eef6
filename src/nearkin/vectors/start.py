"""The start of an embedding adapter: a map from labels, and what is added for other queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from .._blocks import unit_rows
from .._threads import parallel_map
from ..linalg import eigh, row_signs, svd
from ..neighbors import identical_rows
from ..spectral import ratio_trace
from .codes import orthogonal_procrustes
from .judgements import (
    FOLDS,
    UNSEEN,
    Judgements,
    Labels,
    Pairs,
    Relevance,
    Split,
    Supervision,
    scores_of,
)
from .retrieval import Vectors

Map = Callable[[np.ndarray], np.ndarray]

STARTS = ("plda", "pca", "leading", "random")
ROUNDING = 1e-10  # of psi
# share of the within-class covariance that accounts for differences between unknown classes
UNKNOWN_SHARE = 0.5
# The root mean square length, on training rows, of what is added: for principal components relative
# to that of the map from labels, for a data-independent map relative to that of the rows.
PCA_WEIGHT, REST_WEIGHT = 0.7, 0.5
# labelled rows or judged queries on which a start is chosen, and as many other rows
CHOICE_ROWS = 2000
CHOICE_OF_CLASS = 25  # minimum number of rows per class, if it has that many
CHOICE_CLASSES = 4  # minimum number, of which one is held out at a time
CHOICE_ITER = 8  # passes of the short fits


def plda(S_t: np.ndarray, S_w: np.ndarray, m: int) -> np.ndarray:
    """Return a map (m, p) of norm sqrt(m) by probabilistic LDA.

    S_t and S_w are the total and the within-class covariance. The largest entry of each row is
    positive. If S_t - S_w / 2 has no positive eigenvalue, rows that belong together are no closer
    than others, and all directions get equal weight.
    """
    variance = np.trace(S_w) or np.trace(S_t)
    found = ratio_trace(UNKNOWN_SHARE * S_w - S_t, S_w + variance / len(S_w) * np.eye(len(S_w)), m)
    psi = np.where(-found.values > ROUNDING, -found.values, 0)
    A = (found.vectors * np.sqrt(psi / (1 + 2 * psi) if psi.any() else 1)).T
    # LAPACK's signs of rows are arbitrary, and matter if a start adds data-independent rows
    return A * row_signs(A) * (m / np.sum(A**2)) ** 0.5


def start_map(
    A: np.ndarray, S_t: np.ndarray, mean: np.ndarray, start: str, seed: int
) -> np.ndarray:
    """Return the start A_0 of `EmbeddingAdapter`, (m, p).

    It is the map A of `plda`, plus what `start` adds. S_t is the covariance of rows of unit length,
    and `mean` their mean.
    """
    m, p = A.shape
    if start == "plda":
        return A
    if start == "pca":
        P = eigh(S_t, subset_by_index=(p - m, p - 1))[1][:, ::-1].T
        length = np.trace(A @ S_t @ A.T) / np.trace(P @ S_t @ P.T)
        return A + PCA_WEIGHT * length**0.5 * orthogonal_procrustes(A @ P.T) @ P
    R = free_map(m, p, start, seed)
    length = np.trace(R @ S_t @ R.T) + np.sum((R @ mean) ** 2)
    _, s, Vt = svd(A, full_matrices=False)
    Q = Vt[s > ROUNDING * s[0]]  # a basis of the row space of A
    return A + REST_WEIGHT / max(length, ROUNDING) ** 0.5 * (R - (R @ Q.T) @ Q)


def free_map(m: int, p: int, start: str, seed: int) -> np.ndarray:
    """Return m data-independent orthonormal rows (m, p): the first axes, or random ones."""
    if start == "leading":
        return np.eye(m, p)
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, m)))[0].T


def choose_start(
    known: Supervision, m: int, seed: int, fit: Callable[[Judgements, list[str]], list[Map]]
) -> str:
    """Return the best start, using held-out queries, of classes in and outside training.

    Parameters
    ----------
    known : Supervision
        Of rows of unit length. The weights of labels are those of the fits, and of the queries in
        the mean score of a part. A retrieved row counts once.
    m, seed : int
    fit : callable
        Takes judgements and starts; returns the learned maps between rows of unit length.

    Returns
    -------
    str
        The candidates are principal components, no addition to the labels, and the data-independent
        map that by itself ranks rows of the same class higher. The start with the smallest regret
        is taken: the distance to the best start, in the part (seen or unseen classes) where that is
        larger. With fewer than four classes none can be held out, and the data-independent map is
        taken. If a split has too few rows or queries, and with triplets or several labels a row,
        "plda" is taken.
    """
    rng = np.random.default_rng(seed)
    some = _some(known, rng)
    if some is None:
        return "plda"
    splits = list(
        some.splits(rng, CHOICE_CLASSES) if isinstance(some, Labels) else some.splits(rng)
    )
    if not all(split.is_usable for split in splits):
        return "plda"
    parts, (queries, documents) = list(splits[0].parts), some.vectors()
    p, weights = queries.shape[1], getattr(some, "weights", None)

    def scores(maps: list[Map]) -> np.ndarray:
        """Return the mean score of maps (one per split) for each part of the queries."""
        embedded = (
            Vectors(embed(queries[split.queries]), embed(documents[split.candidates]))
            for split, embed in zip(splits, maps, strict=True)
        )
        return mean_scores(embedded, splits, some, "nDCG@10", parts, weights)

    def without_labels(start: str) -> float:
        R = free_map(m, p, start, seed).astype(queries.dtype)
        return float(scores([lambda rows: unit_rows(rows @ R.T)] * len(splits)).mean())

    free = max(("leading", "random"), key=without_labels)
    if isinstance(some, Labels) and UNSEEN not in parts:
        return free
    starts = ["plda", "pca", free]
    size = (len(queries) + len(documents)) * p
    of_splits = parallel_map(lambda split: fit(split.train, starts), splits, size * m)
    of_starts = [list(maps) for maps in zip(*of_splits, strict=True)]
    return starts[least_regret(np.array([scores(maps) for maps in of_starts]))]


def mean_scores(
    vectors: Iterable[Vectors],
    splits: Sequence[Split],
    known: Judgements,
    score: str,
    parts: Sequence[str],
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the mean score of each part of the queries, averaged over splits."""
    found = []
    for one, split in zip(vectors, splits, strict=True):
        of_queries = scores_of(one, split, known)[score]
        w = np.ones(len(of_queries)) if weights is None else weights[split.queries]
        at = (split.parts[part] for part in parts)
        found.append([np.average(of_queries[i], weights=w[i]) for i in at])
    return np.mean(found, axis=0)


def least_regret(scores: np.ndarray) -> int:
    """Return the index of the setting with the smallest regret, from scores (settings, parts).

    The regret is the largest distance to the best score of a part.
    """
    return int(np.argmin((scores.max(axis=0) - scores).max(axis=1)))


def _some(known: Supervision, rng: np.random.Generator) -> Judgements | None:
    """Return a sample whose queries can be held out, or None; copies are held out together."""
    if isinstance(known, Labels) and known.several is None:
        y = known.y
        # classes are numbered by first occurrence, so their names do not matter
        first = np.unique(y, return_index=True)[1][int((y < 0).any()) :]
        y = np.append(np.argsort(np.argsort(first)), -1)[y]
        some = replace(known, y=y).some(_sample(y, rng))
        copies = identical_rows(some.X)
        return replace(some, groups=some.groups[np.unique(copies, return_index=True)[1]][copies])
    if not isinstance(known, Relevance) or len(known) < 2 * FOLDS:
        return None
    if isinstance(known, Pairs):
        copies = identical_rows(known.queries)
        of_groups = Relevance.of_pairs(known.queries, known.pairs, known.grades, copies)
        order = rng.permutation(of_groups.groups.max() + 1)[of_groups.groups]
        return of_groups.some(np.sort(np.argsort(order, kind="stable")[:CHOICE_ROWS]))
    queries = known.some(np.sort(rng.permutation(known.items)[:CHOICE_ROWS]))
    documents = np.union1d(queries.R.indices, rng.permutation(len(known.documents))[:CHOICE_ROWS])
    return replace(
        queries,
        documents=known.documents[documents],
        R=queries.R[:, documents],
        groups=identical_rows(queries.queries),
    )


def _sample(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the indices of a sample of rows: of some classes, and without a class."""
    order = rng.permutation(len(y))
    known, unlabelled = order[y[order] >= 0], order[y[order] < 0]
    n_classes = int(y.max()) + 1
    of_class = max(CHOICE_OF_CLASS, CHOICE_ROWS // n_classes)
    members = np.split(known[np.argsort(y[known], kind="stable")], np.cumsum(np.bincount(y[known])))
    classes = rng.permutation(n_classes)[: -(-CHOICE_ROWS // of_class)]
    return np.concatenate([*(members[c][:of_class] for c in classes), unlabelled[:CHOICE_ROWS]])
