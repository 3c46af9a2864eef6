"""Which vectors retrieve better: raw, truncated, by PCA, or adapted, in full precision or as codes.

Every way is judged by the same held-out queries. The settings of the adapters are chosen inside the
training rows. Differences to the raw vectors are paired by query; see `paired_test_by_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from .._blocks import blas_in_one_thread, unit_rows
from ..vectors import EmbeddingAdapter
from ..vectors.judgements import ALL, FEWEST_CLASSES, SEEN, UNSEEN, Judgements, Labels, Split
from ..vectors.retrieval import DEPTH, RETRIEVAL_SCORES, Vectors, retrieval_scores
from .folds import progress_bar
from .ranking_html import adaptation_html
from .statistics import PairedTest, in_sequence, paired_test_by_rows, status_of

# The ways to make vectors that are compared: as they are, truncated, by PCA, adapted, and as codes.

RAW, CENTRED, TRUNCATED, PRINCIPAL, ADAPTER, QUERY = (
    "raw",
    "centred",
    "truncated",
    "PCA",
    "adapter",
    "query adapter",
)


@dataclass(frozen=True)
class Way:
    """How vectors are made, or coded.

    Attributes
    ----------
    kind : str
        Such as "PCA" or "adapter".
    size : int
        Dimensions.
    bytes : int
        Of a document's vector; where the candidates are ranked again, those of both.
    quantize : str or None
    rescored : bool
        Whether the candidates that the codes find are ranked again by vectors in int8, which a
        database does: such a way is no single file of vectors.
    """

    kind: str
    size: int
    bytes: int
    quantize: str | None = None
    rescored: bool = False

    @property
    def name(self) -> str:
        """Return what it is called, such as "adapter 64 int8"."""
        words = [self.kind, "" if self.kind == RAW else str(self.size), self.quantize or ""]
        return " ".join(word for word in words if word) + ", rescored" * self.rescored

    @property
    def is_adapted(self) -> bool:
        """Return whether the vectors are learned from labels or judgements."""
        return self.kind in (ADAPTER, QUERY)


def ways_of(p: int, sizes: Sequence[int], side: str) -> list[Way]:
    """Return the ways to compare p-dimensional vectors, the raw ones first."""
    raw = [Way(RAW, p, 4 * p)]
    if side == "query":
        return [*raw, Way(QUERY, p, 4 * p)]
    shorter = [size for size in sorted(sizes) if size < p]
    ways = [
        *raw,
        Way(CENTRED, p, 4 * p),
        *(Way(kind, m, 4 * m) for kind in (TRUNCATED, PRINCIPAL) for m in shorter),
    ]
    ways += [Way(ADAPTER, m, 4 * m) for m in [*shorter, p]]
    ways += [Way(ADAPTER, m, m, "int8") for m in shorter]
    if shorter:
        m = shorter[-1]
        n_bytes = -(-m // 8)
        ways += [
            Way(ADAPTER, m, n_bytes, "binary"),
            Way(ADAPTER, m, n_bytes + m, "binary", rescored=True),
        ]
    return ways


def vectors_of(way: Way, split: Split, judgements: Judgements, adapter: Any) -> Vectors:
    """Return the held-out queries and candidates of a split as a way makes them, learned from the
    training rows.
    """
    queries, documents = judgements.vectors()
    Q, C = unit_rows(queries[split.queries]), unit_rows(documents[split.candidates])
    learned_from = split.train.vectors()[1]
    if way.kind == RAW:
        return Vectors(Q, C)
    if way.kind == TRUNCATED:
        return Vectors(Q[:, : way.size], C[:, : way.size])
    if way.kind == CENTRED:
        mean = unit_rows(learned_from).mean(axis=0)
        return Vectors(Q - mean, C - mean)
    if way.kind == PRINCIPAL:
        pca = PCA(way.size, svd_solver="covariance_eigh").fit(unit_rows(learned_from))
        return Vectors(pca.transform(Q), pca.transform(C))
    mapped = Vectors(adapter.embed(Q), C if way.kind == QUERY else adapter.embed(C))
    if way.quantize is None:
        return mapped
    coded = _decoded(adapter.quantized(way.quantize, learned_from), Q, C)
    if way.rescored:
        again = _decoded(adapter.quantized("int8", learned_from), Q, C)
        return Vectors(mapped.queries, again[1], codes=coded)
    return Vectors(*coded)


def _decoded(adapter: EmbeddingAdapter, *rows: np.ndarray) -> Any:
    """Return what the codes of rows stand for."""
    assert adapter.quantizer_ is not None
    return tuple(adapter.quantizer_.decode(adapter.transform(X)) for X in rows)


def place_in_sequence(way: Way) -> tuple[Any, ...]:
    """Return where a way stands in the sequence: bits alone come last, long vectors before short
    ones.
    """
    return (
        way.quantize == "binary" and not way.rescored,
        -way.size,
        way.rescored,
        way.quantize == "int8",
    )


SETTINGS: list[dict[str, Any]] = [
    *({"alpha": 0.25, "temperature": temperature} for temperature in (0.1, 0.05, 0.2)),
    *({"alpha": alpha, "temperature": 0.1} for alpha in (0.05, 1.0)),
]
CHOICE_QUERIES = 1000  # by which the settings are chosen, on as many splits as it takes
CHOICE_SIZE = 64  # dimensions with which the settings are chosen


@dataclass(frozen=True)
class WayResult:
    """Scores of a way on held-out queries.

    Attributes
    ----------
    way : Way
    scores : dict of str to dict of str to float
        By part of the queries, then by the name of the score.
    tests : dict of str to PairedTest
        By part: the difference to the raw vectors in the score that decides.
    p_value : float
        In the part that decides, corrected by `in_sequence`.
    status : str
        "better", "worse", "unclear"; "baseline" for the raw vectors, "reference" for ways without
        labels.
    seconds : float
        Of a fit, in the mean.
    """

    way: Way
    scores: dict[str, dict[str, float]]
    tests: dict[str, PairedTest]
    p_value: float
    status: str
    seconds: float


@dataclass(frozen=True)
class Adaptation:
    """What a comparison of vectors found.

    Attributes
    ----------
    results : list of WayResult
        The raw vectors first.
    score, part : str
        What decides: the name of the score, and of the part of the queries.
    n_queries : dict of str to int
        Queries of every part.
    settings : dict
        Of the adapters, chosen on all rows.
    side : str
    between : callable
        Returns the test of a difference between two ways, where it decides.
    """

    results: list[WayResult]
    score: str
    part: str
    n_queries: dict[str, int]
    settings: dict[str, Any]
    side: str
    between: Callable[[Way, Way], PairedTest]

    _repr_html_ = adaptation_html  # a table with a picture

    @property
    def raw(self) -> WayResult:
        """Return the result of the raw vectors."""
        return self.results[0]

    @property
    def chosen(self) -> WayResult:
        """Return the best way that is shown to be better than the raw vectors, or these.

        Of the ways that are worse than the best by less than a standard error of that difference,
        the one of fewest bytes is taken. A way that loses more than a standard error on unseen
        classes is not, nor one of two files.
        """
        better = [
            one
            for one in self.results
            if one.status == "better" and not one.way.rescored and not harms(one)
        ]
        if not better:
            return self.raw
        best = max(better, key=lambda one: one.tests[self.part].difference)

        def is_close(one: WayResult) -> bool:
            test = self.between(best.way, one.way)
            return one is best or test.difference <= test.standard_error

        return min(
            filter(is_close, better),
            key=lambda one: (one.way.bytes, -one.tests[self.part].difference),
        )

    @property
    def harmful(self) -> list[str]:
        """Return the names of ways that are better where it decides, and lose on unseen classes."""
        return [one.way.name for one in self.results if one.status == "better" and harms(one)]


def harms(result: WayResult) -> bool:
    """Return whether a way loses more than a standard error on unseen classes: probably, if not
    surely.
    """
    test = result.tests.get(UNSEEN)
    return test is not None and test.difference < -test.standard_error


def compare_vectors(
    judgements: Judgements,
    *,
    sizes: Sequence[int] = (32, 64, 128, 256),
    side: str = "both",
    score: str | None = None,
    unseen: bool = False,
    random_state: int = 0,
    progress: Callable[[int, int], None] | bool = False,
) -> Adaptation:
    """Compare vectors, as they are and adapted, by held-out queries.

    Parameters
    ----------
    judgements : Labels or Relevance
    sizes : sequence of int
        Dimensions of shorter vectors.
    side : {"both", "query"}
        What is adapted, see `EmbeddingAdapter`.
    score : str, optional
        What decides, one of `RETRIEVAL_SCORES`; by default "precision@10" for labels of which half
        have more than ten rows, else "nDCG@10".
    unseen : bool
        Whether classes that no training row has decide.
    random_state : int
    progress : bool or callable, default=False
        True shows a bar (needs rich). A callable is called as `progress(done, total)` after every
        fit.

    Returns
    -------
    Adaptation

    Raises
    ------
    ValueError
        If there are too few rows, classes or queries to hold some out, or too few classes for
        `unseen`.
    """
    is_labels = isinstance(judgements, Labels)
    score = score or ("precision@10" if judgements.median_relevant > 10 else "nDCG@10")
    part = ALL if not is_labels else UNSEEN if unseen else SEEN
    splits = list(judgements.splits(np.random.default_rng(random_state)))
    for i, split in enumerate(splits):
        if not len(split.queries) or not split.train.can_be_fitted:
            found = f"{len(split.queries)} queries held out, {len(split.train)} to learn from"
            raise ValueError(
                f"too few rows that do not hang together for four splits (number {i}: "
                f"{found}): give more."
            )
    if part not in splits[0].parts:
        raise ValueError(
            f"unseen classes need at least {FEWEST_CLASSES} classes of enough rows: leave "
            "unseen out."
        )
    n_rows = min(len(split.train.vectors()[1]) for split in splits)
    ways = ways_of(
        judgements.vectors()[0].shape[1], [size for size in sizes if size < n_rows], side
    )
    rounds = [_Round(judgements, split, ways, side, random_state) for split in splits]
    _run_all(rounds, score, unseen, progress)
    settings = SETTINGS[int(np.argmax(np.mean([one.setting_scores for one in rounds], axis=0)))]
    n_queries = {
        name: int(sum(split.parts[name].sum() for split in splits)) for name in splits[0].parts
    }
    test = _paired(judgements, rounds, score)
    results = _results(rounds, ways, test, part)
    return Adaptation(
        results, score, part, n_queries, settings, side, lambda one, other: test(one, other, part)
    )


def _run_all(rounds: Sequence[_Round], score: str, unseen: bool, progress: Any) -> None:
    """Run all rounds, some at a time; an interrupt ends each after the fit in progress."""
    total, done, stopped, lock = sum(one.n_fits for one in rounds), 0, Event(), Lock()

    def step() -> None:
        nonlocal done
        if stopped.is_set():
            raise CancelledError
        with lock:
            done += 1
            show(done, total)

    with (
        blas_in_one_thread() as n_threads,
        ThreadPoolExecutor(n_threads) as executor,
        progress_bar(progress) as show,
    ):
        running = [executor.submit(one.run, score, unseen, step) for one in rounds]
        try:
            for future in running:
                future.result()
        except BaseException:
            stopped.set()
            executor.shutdown(wait=False, cancel_futures=True)
            raise


class _Round:
    """One split: settings are chosen inside its training rows, then all ways are scored by its
    held-out queries.
    """

    def __init__(
        self, judgements: Judgements, split: Split, ways: Sequence[Way], side: str, seed: int
    ) -> None:
        self.judgements, self.split, self.ways, self.side, self.seed = (
            judgements,
            split,
            ways,
            side,
            seed,
        )
        self.sizes = sorted({way.size for way in ways if way.is_adapted})
        self.n_fits = len(SETTINGS) + len(self.sizes)
        self.setting_scores: list[float] = []
        self.scores: dict[str, dict[str, np.ndarray]] = {}  # of every query, by way and score
        self.seconds = dict.fromkeys((way.name for way in ways), 0.0)

    def run(self, score: str, unseen: bool, step: Callable[[], None]) -> None:
        """Set the scores."""
        settings = self._chosen_settings(score, unseen, step)
        adapters = {}
        for size in self.sizes:
            started = perf_counter()
            adapters[size] = self.split.train.fit(
                EmbeddingAdapter(size, side=self.side, **settings)
            )
            for way in self.ways:
                if way.is_adapted and way.size == size:
                    self.seconds[way.name] = perf_counter() - started
            step()
        for way in self.ways:
            vectors = vectors_of(way, self.split, self.judgements, adapters.get(way.size))
            self.scores[way.name] = scores_of(vectors, self.split, self.judgements)

    def _chosen_settings(
        self, score: str, unseen: bool, step: Callable[[], None]
    ) -> dict[str, Any]:
        """Return the settings that are best inside the training rows, for seen and unseen classes
        alike.
        """
        train = self.split.train
        splits = [one for one in train.splits(np.random.default_rng(self.seed)) if _is_usable(one)]
        if splits:
            splits = splits[: -(-CHOICE_QUERIES // len(splits[0].queries))]
        size = min(CHOICE_SIZE, train.vectors()[0].shape[1])
        way = Way(QUERY if self.side == "query" else ADAPTER, size, 0)
        for settings in SETTINGS:
            means = [0.0]
            for split in splits:
                adapter = split.train.fit(EmbeddingAdapter(size, side=self.side, **settings))
                found = scores_of(vectors_of(way, split, train, adapter), split, train)[score]
                parts = (
                    [split.parts[UNSEEN]]
                    if unseen and UNSEEN in split.parts
                    else split.parts.values()
                )
                means.append(float(np.mean([found[part].mean() for part in parts])))
            self.setting_scores.append(float(np.sum(means)))
            step()
        return SETTINGS[int(np.argmax(self.setting_scores))]


def _is_usable(split: Split) -> bool:
    """Return whether an inner split has queries in all parts, and rows to learn from."""
    return split.train.can_be_fitted and all(part.any() for part in split.parts.values())


def scores_of(vectors: Vectors, split: Split, judgements: Judgements) -> dict[str, np.ndarray]:
    """Return the scores of the held-out queries of a split; a query that is itself a candidate is
    not found.
    """
    ranked = split.candidates[vectors.ranked(DEPTH + judgements.own_rows)]
    if judgements.own_rows:
        others = np.argsort(ranked == split.queries[:, None], axis=1, kind="stable")[:, :DEPTH]
        ranked = np.take_along_axis(ranked, others, axis=1)
    ideal, n_relevant = judgements.best_gains(split.queries, split.candidates)
    return retrieval_scores(judgements.gains(split.queries, ranked), ideal, n_relevant)


def _paired(
    judgements: Judgements, rounds: Sequence[_Round], score: str
) -> Callable[[Way, Way, str], PairedTest]:
    """Return the test of a difference between two ways, in a part of the queries."""
    n_train = float(np.mean([len(one.split.train) for one in rounds]))

    def test(way: Way, other: Way, part: str) -> PairedTest:
        rows = [one.split.queries[one.split.parts[part]] for one in rounds]
        a, b = (
            [one.scores[w.name][score][one.split.parts[part]] for one in rounds]
            for w in (way, other)
        )
        return paired_test_by_rows(a, b, rows, n_train, judgements.units(part))

    return test


def _results(
    rounds: Sequence[_Round],
    ways: Sequence[Way],
    test: Callable[[Way, Way, str], PairedTest],
    part: str,
) -> list[WayResult]:
    parts = list(rounds[0].split.parts)

    def mean(way: Way, name: str, part: str) -> float:
        """Return the mean of the splits, as a difference is one."""
        return float(
            np.mean([one.scores[way.name][name][one.split.parts[part]].mean() for one in rounds])
        )

    def result(way: Way, tests: dict[str, PairedTest], p_value: float) -> WayResult:
        scores = {
            part: {name: mean(way, name, part) for name in RETRIEVAL_SCORES} for part in parts
        }
        status = "baseline" if way.kind == RAW else "reference"
        if way.is_adapted:
            status = status_of(tests[part].difference, p_value)
        return WayResult(
            way,
            scores,
            tests,
            p_value,
            status,
            float(np.mean([one.seconds[way.name] for one in rounds])),
        )

    tests = {way: {name: test(way, ways[0], name) for name in parts} for way in ways}
    p_values = in_sequence(
        {way: tests[way][part] for way in sorted(ways, key=place_in_sequence) if way.is_adapted}
    )
    return [result(way, tests[way], p_values.get(way, 1.0)) for way in ways]
