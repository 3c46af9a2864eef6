"""Comparison of vectors by retrieval: raw, centred, truncated, by PCA, or adapted, also as codes.

All are evaluated with the same held-out queries. The settings of the adapters are chosen inside the
training rows. Differences from the raw vectors are paired by query; see `paired_test_by_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from threading import Event, Lock
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from .._blocks import affine_unit_rows, unit_rows
from .._callbacks import progress_bar
from .._threads import blas_in_one_thread, executor, n_threads
from .._validation import check_choice
from ..statistics import PairedTest, in_sequence, paired_test_by_rows, status_of
from .adapter import EmbeddingAdapter, require_covariances
from .codes import BinaryQuantizer
from .judgements import (
    ALL,
    EXPECTED,
    FEWEST_CLASSES,
    UNSEEN,
    Judgements,
    Labels,
    Relevance,
    Split,
    expected_parts,
    ranked_by,
    scores_of,
    usable_splits,
)
from .matching import HeldOutLists, Space
from .retrieval import RETRIEVAL_SCORES, Vectors
from .start import STARTS, least_regret

# The kinds of vectors that are compared; adapted ones also as codes.
UNCHANGED, CENTRED, TRUNCATED, PRINCIPAL, ADAPTER, QUERY = (
    "raw",
    "centred",
    "truncated",
    "PCA",
    "adapter",
    "query adapter",
)
LEARNED = (ADAPTER, QUERY)  # from judgements
NEGLIGIBLE = 1e-3  # a difference for which nobody takes four times the bytes
SIZES = (32, 64, 128, 256)  # of shorter vectors, unless others are given


@dataclass(frozen=True)
class Way:
    """How vectors are computed or coded.

    Attributes
    ----------
    kind : str
        Such as "PCA" or "adapter".
    size : int
        Number of dimensions.
    quantize : str or None
        "int8" or "binary" for codes; None for full precision.
    rescored : bool
        Whether the candidates found by codes are ranked again by int8 vectors, as a database does;
        this requires more than a single file of vectors.
    """

    kind: str
    size: int
    quantize: str | None = None
    rescored: bool = False

    @property
    def bytes(self) -> int:
        """Return the size of a document's vector; for two-stage ranking, of both vectors."""
        size = 4 * self.size if self.quantize is None else self.size
        if self.quantize == "binary":
            size = BinaryQuantizer.n_bytes(self.size)
        return size + self.size * self.rescored

    @property
    def name(self) -> str:
        """Return the name, such as "adapter 64 int8"."""
        words = [self.kind, "" if self.kind == UNCHANGED else str(self.size), self.quantize or ""]
        return " ".join(word for word in words if word) + ", rescored" * self.rescored

    @property
    def is_adapted(self) -> bool:
        """Return whether an `EmbeddingAdapter` computes the vectors, which can be advised."""
        return self.kind != UNCHANGED

    @property
    def uncoded(self) -> Way:
        """Return the way without codes, of the same adapter."""
        return Way(self.kind, self.size)


def ways_of(judgements: Judgements, sizes: Sequence[int] | None, side: str) -> list[Way]:
    """Return the ways of computing vectors that are compared, the raw ones first.

    `sizes` and `side` are those of `compare_vectors`.
    """
    p = judgements.vectors()[0].shape[1]
    if side == "query":
        return [Way(UNCHANGED, p), Way(QUERY, p)]
    shorter = sorted(size for size in (SIZES if sizes is None else sizes) if size < p)
    ways = [Way(UNCHANGED, p), Way(CENTRED, p)]
    ways += [Way(kind, m) for kind in (TRUNCATED, PRINCIPAL) for m in shorter]
    ways += [Way(ADAPTER, m) for m in [*shorter, p]]
    if isinstance(judgements, Relevance) and not judgements.own_rows:
        ways.append(Way(QUERY, p))
    ways += [Way(ADAPTER, m, "int8") for m in shorter]
    return ways + [Way(ADAPTER, m, "binary", two) for m in shorter[-1:] for two in (False, True)]


def adapter_of(
    way: Way, known: Judgements, settings: dict[str, dict[str, Any]]
) -> EmbeddingAdapter:
    """Return the adapter of a way, learned from judgements, with the settings of its kind; or what
    takes its place for vectors that need none.
    """
    if way.kind in LEARNED:
        side = "query" if way.kind == QUERY else "both"
        of_kind = settings[way.kind]
        return EmbeddingAdapter(way.size, side=side, quantize=way.quantize, **of_kind)._learn(known)
    X = unit_rows(known.vectors()[1])
    A, mean = np.eye(way.size, X.shape[1]), np.zeros(X.shape[1])
    if way.kind == CENTRED:
        mean = X.mean(axis=0, dtype=np.float64)
    if way.kind == PRINCIPAL:
        pca = PCA(way.size, svd_solver="covariance_eigh").fit(X)
        A, mean = pca.components_, pca.mean_
    arrays = {"components": A.astype(X.dtype), "bias": (A @ (0 - mean)).astype(X.dtype)}
    return EmbeddingAdapter.from_arrays(arrays)


def vectors_of(way: Way, split: Split, judgements: Judgements, adapter: Any) -> Vectors:
    """Return the held-out queries and candidates of a split, computed in a given way.

    Whatever is learned is learned from the training rows.
    """
    queries, documents = judgements.vectors()
    Q, C = unit_rows(queries[split.queries]), unit_rows(documents[split.candidates])
    if way.kind == UNCHANGED:
        return Vectors(Q, C)
    embedded = affine_unit_rows(Q, adapter.components_, adapter.bias_)
    if way.kind == QUERY:
        return Vectors(embedded, C)
    if way.quantize is None:
        return Vectors(embedded, affine_unit_rows(C, adapter.components_, adapter.bias_))

    def decoded(quantize: str) -> Any:
        """Return the vectors that the codes of queries and candidates represent."""
        coded = adapter.quantized(quantize, split.train.vectors()[1])
        return tuple(coded.compared(X) for X in (Q, C))

    if way.rescored:
        return Vectors(embedded, decoded("int8")[1], codes=decoded(way.quantize))
    return Vectors(*decoded(way.quantize))


def place_in_sequence(way: Way) -> tuple[Any, ...]:
    """Return the sort key of a way in the test sequence: the longest first, binary codes last."""
    return (
        way.quantize == "binary" and not way.rescored,
        -way.size,
        way.rescored,
        way.quantize == "int8",
    )


# the settings among which inner splits choose; the first is the default
SETTINGS: list[dict[str, Any]] = [
    *({"alpha": 0.25, "temperature": T, "start": "plda"} for T in (0.1, 0.05, 0.2)),
    *({"alpha": alpha, "temperature": 0.1, "start": "plda"} for alpha in (0.05, 1.0)),
    *({"alpha": 0.25, "temperature": 0.1, "start": start} for start in STARTS[1:]),
]
# With documents or pairs, these two starts change places: few judgements say little about the
# directions that matter.
OF_DOCUMENTS = {"plda": "pca", "pca": "plda"}
CHOICE_QUERIES = 1000  # by which settings are chosen, over as many splits as needed
CHOICE_SIZE = 64  # number of dimensions with which settings are chosen


def settings_of(kind: str, judgements: Judgements) -> list[dict[str, Any]]:
    """Return the settings to choose among for adapters of a kind, the default first."""
    if kind == QUERY:  # starts as the identity
        plain = [one for one in SETTINGS if one["start"] == "plda"]
        return [{name: one[name] for name in one if name != "start"} for one in plain]
    if isinstance(judgements, Labels):
        return SETTINGS
    return [one | {"start": OF_DOCUMENTS.get(one["start"], one["start"])} for one in SETTINGS]


@dataclass(frozen=True)
class WayResult:
    """Scores of a way on held-out queries.

    Attributes
    ----------
    way : Way
    scores : dict of str to dict of str to float
        Mean scores by part of the queries, then by score name.
    tests : dict of str to PairedTest
        By part: the difference from the raw vectors in the deciding score.
    p_value : float
        In the deciding part, corrected by `in_sequence`; 1 for the raw vectors.
    status : str
        "better", "worse", "unclear"; "baseline" for the raw vectors.
    seconds : float
        Mean time of a fit; 0 for the raw vectors.
    """

    way: Way
    scores: dict[str, dict[str, float]]
    tests: dict[str, PairedTest]
    p_value: float
    status: str
    seconds: float


@dataclass(frozen=True)
class Adaptation:
    """The result of a comparison of vectors.

    Attributes
    ----------
    results : list of WayResult
        The raw vectors first.
    score, part : str
        The deciding score, and the deciding part of the queries.
    n_queries : dict of str to int
        Number of queries in every part.
    settings : dict of str to dict
        By kind of adapter, the settings with the best scores over all splits.
    expect : str
        The expected classes of future rows: "known" ones, "new" ones, or "both".
    between : callable
        Returns the test of a difference between two ways, in the deciding score and a given part.
    judgements : Labels or Relevance
    held_out : callable
        Yields every split with the vectors of its held-out queries and candidates for a way; with
        `further=True`, `Split.apart`, where all rows of its unseen classes are queries.
    """

    results: list[WayResult]
    score: str
    part: str
    n_queries: dict[str, int]
    settings: dict[str, dict[str, Any]]
    expect: str
    between: Callable[[Way, Way, str], PairedTest]
    judgements: Judgements
    held_out: Callable[..., Iterator[tuple[Split, Vectors]]]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per way of computing vectors; needs pandas.

        Scores and differences are those of the deciding part of the queries.
        """
        import pandas as pd

        part = self.part
        return pd.DataFrame(
            {
                "vectors": one.way.name,
                self.score: one.scores[part][self.score],
                "bytes": one.way.bytes,
                "difference": one.tests[part].difference,
                **dict(zip(("low", "high"), one.tests[part].interval(), strict=True)),
                "p_value": one.p_value if one.way.is_adapted else np.nan,
                "status": one.status,
            }
            for one in self.results
        )

    def _repr_html_(self) -> str | None:
        """Return the table of `to_frame`, if pandas is there."""
        with suppress(ImportError):
            return str(self.to_frame().to_html())
        return None

    def adapter(self, way: Way, known: Judgements) -> EmbeddingAdapter:
        """Return the adapter of a way, learned from judgements with the chosen settings."""
        return adapter_of(way, known, self.settings)

    def held_out_lists(self, way: Way) -> HeldOutLists:
        """Return the `HeldOutLists` of a way for all held-out queries, also the further ones.

        The others are those by which `chosen` was chosen.
        """
        X, Y = self.judgements.vectors()
        searches = (
            (Space.of(one.queries, one.candidates, X[s.queries], Y[s.candidates], "cosine"), s)
            for s, one in self.held_out(way, further=True)
        )
        return HeldOutLists.of(searches, self.judgements)

    def rankings(self, way: Way) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield, for every split, the held-out queries and the documents that they rank first.

        Both are indices; the documents have shape (n_queries, at most 100).
        """
        for split, vectors in self.held_out(way):
            yield split.queries, ranked_by(vectors, split, self.judgements)

    @property
    def raw(self) -> WayResult:
        """Return the result of the raw vectors."""
        return self.results[0]

    @property
    def chosen(self) -> WayResult:
        """Return the result to use: a way significantly better than the raw vectors, or these.

        Among the better ways within one standard error of the best, or a tenth of a point (codes of
        one map differ by less), the one of fewest bytes is taken. Excluded are two-stage rankings
        and, if known and new classes are expected, ways that lose more than a standard error on
        unseen classes, against the raw vectors or truncated ones that are better.
        """
        better = [one for one in self._better if not self._harms(one)]
        if not better:
            return self.raw
        best = max(better, key=lambda one: one.tests[self.part].difference)

        def is_close(one: WayResult) -> bool:
            test = self.between(best.way, one.way, self.part)
            return one is best or test.difference <= max(test.standard_error, NEGLIGIBLE)

        return min(
            filter(is_close, better),
            key=lambda one: (one.way.bytes, -one.tests[self.part].difference),
        )

    @property
    def harmful(self) -> list[str]:
        """Return the names of ways that are better in the deciding part but lose on unseen classes.

        Two-stage rankings, which are never chosen, are not named. The list is empty unless known
        and new classes are expected.
        """
        return [one.way.name for one in self._better if self._harms(one)]

    @property
    def _better(self) -> list[WayResult]:
        """Return the results that are better than the raw vectors, without two-stage rankings."""
        return [one for one in self.results if one.status == "better" and not one.way.rescored]

    def _harms(self, result: WayResult) -> bool:
        """Return whether a way loses more than a standard error on unseen classes, if known and new
        ones are expected.

        It is compared with vectors for which nothing is learned: the raw ones, and truncated ones
        that are better than these.
        """
        if UNSEEN not in result.tests or self.expect != "both":
            return False
        tests = [result.tests[UNSEEN]]
        for one in self._better:
            if one.way.kind == TRUNCATED:
                tests.append(self.between(result.way, one.way, UNSEEN))
        return any(test.difference < -test.standard_error for test in tests)


def compare_vectors(
    judgements: Judgements,
    *,
    sizes: Sequence[int] | None = None,
    side: str = "both",
    score: str | None = None,
    expect: str = "both",
    random_state: int = 0,
    progress: Callable[[int, int], None] | bool = False,
) -> Adaptation:
    """Compare raw and adapted vectors with held-out queries.

    Parameters
    ----------
    judgements : Labels or Relevance
    sizes : sequence of int, default=None
        Numbers of dimensions of shorter vectors; 32, 64, 128 and 256 if it is None.
    side : {"both", "query"}, default="both"
        What is adapted; see `EmbeddingAdapter`. "both" also compares an adapter of queries alone,
        where these are not documents themselves.
    score : str, default=None
        The deciding score, one of `RETRIEVAL_SCORES`. None takes "precision@10" for labels if half
        of the classes have more than ten rows, else "nDCG@10".
    expect : {"both", "known", "new"}, default="both"
        The classes of future rows: "known" ones of the training rows, "new" ones, or "both". If
        only new classes are expected, unseen classes alone decide, otherwise seen ones. The
        settings of the adapters are chosen for what is expected. For "both", they minimize the
        larger of the losses relative to the best setting, for seen and for unseen classes. Ignored
        without labels.
    random_state : int, default=0
    progress : bool or callable, default=False
        True shows a progress bar (needs rich). A callable is called as `progress(done, total)`
        after every fit.

    Returns
    -------
    Adaptation

    Raises
    ------
    ValueError
        If there are too few rows, classes or queries to hold some out, or too few classes to hold
        some out for "new"; or if sizes are given for side="query", which shortens nothing.
    MemoryError
        If the covariances of the fits do not fit into memory.
    """
    check_choice(expect, "expect", EXPECTED)
    if side == "query" and sizes is not None:
        raise ValueError(
            f'sizes={sizes} needs side="both": queries are compared with documents as they are, of '
            "all dimensions."
        )
    splits = usable_splits(judgements, np.random.default_rng(random_state))
    has_many = False
    if isinstance(judgements, Labels):
        has_many = bool(np.median(np.bincount(judgements.y[judgements.items])) > 10)
    score = score or ("precision@10" if has_many else "nDCG@10")
    expected = expected_parts(splits[0].parts, expect)
    if not expected:
        raise ValueError(
            f'expect="new" needs at least {FEWEST_CLASSES} classes with enough rows: leave it out.'
        )
    part = expected[0]
    n_rows = min(len(split.train.vectors()[1]) for split in splits)
    p = judgements.vectors()[0].shape[1]
    require_covariances(p, min(n_threads(), len(splits)))
    some = [size for size in (SIZES if sizes is None else sizes) if size < n_rows]
    ways = ways_of(judgements, some, side)
    adapted = [way for way in sorted(ways, key=place_in_sequence) if way.is_adapted]
    learned = [way for way in adapted if way == way.uncoded]
    tried = {one.kind: settings_of(one.kind, judgements) for one in ways if one.kind in LEARNED}

    def evaluate(split: Split, step: Callable[[], None]) -> SplitScores:
        """Choose settings inside the training rows; score all ways with the held-out queries."""
        of_settings = {
            kind: score_settings(kind, tried[kind], split.train, score, expect, random_state, step)
            for kind in tried
        }
        settings = {kind: tried[kind][least_regret(of_settings[kind])] for kind in tried}
        adapters, seconds = {}, {}
        for way in learned:
            started = perf_counter()
            adapters[way] = adapter_of(way, split.train, settings)
            seconds[way] = perf_counter() - started
            step()
        scores = {}
        for way in ways:
            vectors = vectors_of(way, split, judgements, adapters.get(way.uncoded))
            scores[way] = scores_of(vectors, split, judgements)
        return SplitScores(split, scores, of_settings, adapters, seconds)

    n_fits = len(splits) * (len(learned) + sum(map(len, tried.values())))
    found = run_all(evaluate, splits, n_fits, progress)
    n_train = float(np.mean([len(split.train) for split in splits]))

    def values(way: Way, score: str, part: str) -> list[np.ndarray]:
        """Return a score of the held-out queries of a part, for every split."""
        return [one.scores[way][score][one.split.parts[part]] for one in found]

    def test(way: Way, other: Way, part: str) -> PairedTest:
        """Test the difference between two ways, in a part of the queries."""
        rows, units = [split.queries[split.parts[part]] for split in splits], judgements.units(part)
        a, b = values(way, score, part), values(other, score, part)
        return paired_test_by_rows(a, b, rows, n_train, units)

    def held_out(way: Way, *, further: bool = False) -> Iterator[tuple[Split, Vectors]]:
        """Yield every split, possibly `apart` with its further queries, with the vectors."""
        for one in found:
            for split in one.split.apart() if further else [one.split]:
                yield split, vectors_of(way, split, judgements, one.adapters.get(way.uncoded))

    def best_settings(kind: str) -> dict[str, Any]:
        """Return the settings with the best scores over the splits of the most parts."""
        scores = [one.of_settings[kind] for one in found]
        n_parts = max(one.shape[1] for one in scores)
        mean = np.mean([one for one in scores if one.shape[1] == n_parts], axis=0)
        return tried[kind][least_regret(mean)]

    parts = list(splits[0].parts)
    tests = {way: {name: test(way, ways[0], name) for name in parts} for way in ways}
    kinds = list(dict.fromkeys(way.kind for way in adapted))
    # the kinds that need no judgements share what one of the others has
    shares = [1 if kind in LEARNED else 1 / len({*kinds} - {*LEARNED}) for kind in kinds]
    p_values = in_sequence(
        *({way: tests[way][part] for way in adapted if way.kind == kind} for kind in kinds),
        shares=shares,
    )
    results = []
    for way in ways:
        # averaged over the splits, like the differences
        means = {
            name: {
                key: float(np.mean([of_split.mean() for of_split in values(way, key, name)]))
                for key in RETRIEVAL_SCORES
            }
            for name in parts
        }
        p_value, seconds, status = 1.0, 0.0, "baseline"
        if way.is_adapted:
            p_value = p_values[way]
            status = status_of(tests[way][part].difference, p_value)
            seconds = float(np.mean([one.seconds[way.uncoded] for one in found]))
        results.append(WayResult(way, means, tests[way], p_value, status, seconds))
    return Adaptation(
        results,
        score,
        part,
        n_queries={name: int(sum(split.parts[name].sum() for split in splits)) for name in parts},
        settings={kind: best_settings(kind) for kind in tried},
        expect=expect,
        between=test,
        judgements=judgements,
        held_out=held_out,
    )


@dataclass(frozen=True)
class SplitScores:
    """The results of one split.

    Attributes
    ----------
    split : Split
    scores : dict of Way to dict of str to array
        Scores of every held-out query, by way and score name.
    of_settings : dict of str to array of shape (n_settings, n_parts)
        Scores of the settings inside the training rows, for the expected parts, by kind of adapter.
    adapters : dict of Way to EmbeddingAdapter
        Fitted to the training rows, by way without codes.
    seconds : dict of Way to float
        Fit time of an adapter, by way without codes.
    """

    split: Split
    scores: dict[Way, dict[str, np.ndarray]]
    of_settings: dict[str, np.ndarray]
    adapters: dict[Way, EmbeddingAdapter]
    seconds: dict[Way, float]


def run_all(
    evaluate: Callable[[Split, Callable[[], None]], SplitScores],
    splits: Sequence[Split],
    n_fits: int,
    progress: Any,
) -> list[SplitScores]:
    """Evaluate the splits, some in parallel; an interrupt ends each after its current fit."""
    done, stopped, lock = count(1), Event(), Lock()

    def step() -> None:
        if stopped.is_set():
            raise CancelledError
        with lock:
            show(next(done), n_fits)

    with (
        blas_in_one_thread() as threads,
        executor(threads) as workers,
        progress_bar(progress) as show,
    ):
        running = [workers.submit(evaluate, split, step) for split in splits]
        try:
            return [future.result() for future in running]
        except BaseException:
            stopped.set()
            workers.shutdown(wait=False, cancel_futures=True)
            raise


def score_settings(
    kind: str,
    tried: list[dict[str, Any]],
    train: Judgements,
    score: str,
    expect: str,
    seed: int,
    step: Callable[[], None],
) -> np.ndarray:
    """Return the scores of settings inside training rows, (n_settings, n_parts).

    Parts are the expected queries: those of seen classes, of unseen classes, or both. Judged
    queries are few: a standard error of the difference from the first setting, the default, is
    subtracted, so that another one is only chosen if it is better by more.
    """
    splits = [split for split in train.splits(np.random.default_rng(seed)) if split.is_usable]
    splits = splits[: -(-CHOICE_QUERIES // len(splits[0].queries))] if splits else []
    p = train.vectors()[0].shape[1]
    way = Way(kind, p if kind == QUERY else min(CHOICE_SIZE, p))
    every = list(splits[0].parts) if splits else [ALL]
    parts = expected_parts(every, expect) or every
    scores, of_default = np.zeros((len(tried), len(parts))), list[np.ndarray]()
    for row, settings in zip(scores, tried, strict=True):
        found = []
        for split in splits:
            adapter = adapter_of(way, split.train, {kind: settings})
            vectors = vectors_of(way, split, train, adapter)
            found.append(scores_of(vectors, split, train)[score])
        if splits:
            by_part = [
                [of_queries[split.parts[part]].mean() for part in parts]
                for of_queries, split in zip(found, splits, strict=True)
            ]
            row[:] = np.mean(by_part, axis=0)
        if of_default and parts == [ALL]:
            rows, n_train = [split.queries for split in splits], len(splits[0].train)
            test = paired_test_by_rows(found, of_default, rows, n_train, train.units(ALL))
            row -= test.standard_error
        of_default = of_default or found
        step()
    return scores
