"""`nearkin compare FOLDER --dask`: a ranking on rows that may be larger than memory, by one split.

Some rows are held out; all others are used for training, and vote. The training rows are never in
one place: workers read them block by block, again in every pass. At most 20,000 rows are held out,
which measure an accuracy to a few tenths of a point, so that a run of hours need not be repeated on
other splits. They are drawn by row number, before any row is read. Rows with the same features as a
held-out one are not used for training, so that none is predicted from its copy.

The predictor for tables, whose rows all vote, learns from a sample of the training rows in one
place; workers apply it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import KilledWorker
from scipy.stats import mode

from ..._blocks import row_blocks
from ..._messages import counted, shown
from ...comparison import CLASSIFICATION, RAW, SCORES, MethodResult, OwnVote, Vote, ranked
from ...dask import (
    MAX_BLOCKS,
    DaskDNE,
    DaskLPP,
    DaskNCA,
    DaskNMMP,
    DaskPCA,
    DaskStandardScaler,
    nearest_labels,
)
from ...neighbors import choose_search, searcher
from ...plotting import RankingDisplay
from ...tables import NCAClassifier, as_classes
from .. import console
from ..endings import TableError, first_line, one_line
from ..files.readers import Progress, find_name
from ..output import Outputs, draw_displays, picture_output
from ..tables.model import new_model, save_model
from ..tables.reading import number_encoder
from ..tables.words import Summary, class_facts, warning_notes
from .cluster import KILLED, cluster, for_each_file
from .parquet_folder import (
    Folder,
    count_classes,
    features_of,
    labels_of,
    open_folder,
    row_hashes,
    rows_with_hashes,
)

TABLES = "NCA tables"
MIN_ROWS = 500
MOST_HELD_OUT = 20_000
NEIGHBORS = 3  # of the vote, by default
MOST_DIMENSIONS = 64
MOST_VOTERS = 100_000
MOST_SAMPLED = 10_000  # training rows of the predictor for tables
ROWS_AT_ONCE, VOTES_AT_ONCE = 1024, 2**22  # of a task that applies this predictor
NMMP_NEIGHBORS = 10  # its default, half of a class, makes lists that grow with the rows
FAILURES = (ValueError, MemoryError, ImportError, RuntimeError, KilledWorker)


@dataclass(frozen=True)
class SplitComparison:
    """The result of a comparison by one split, as far as it is reported.

    Attributes
    ----------
    results : sequence of MethodResult
        Finished methods, the most accurate first; their maps are stored separately.
    folds : list of (training rows, held-out rows)
        The split; only the numbers of rows are used.
    notes : sequence of str
    setting : str
        How the methods were compared, and on which rows.
    constant, n_neighbors, least_difference, of_fitted_models, score, doubts, n_chained
        See `Comparison`.
    """

    results: Sequence[MethodResult]
    constant: MethodResult
    least_difference: float
    folds: list[tuple[np.ndarray, np.ndarray]]
    notes: Sequence[str]
    setting: str
    n_neighbors: int
    of_fitted_models = True
    score = SCORES[CLASSIFICATION.name]["accuracy"]
    doubts = ()
    n_chained = 0

    def ranking(self) -> list[MethodResult]:
        """Return the results, best first."""
        return [*self.results, self.constant]


class SplitSummary(Summary):
    """A comparison by one split, in words."""

    @property
    def _setting(self) -> str:
        return str(self.comparison.setting)

    @property
    def notes(self) -> Iterator[str]:
        """Yield what was sampled, skipped or warned about, one line each."""
        n_train = len(self.comparison.folds[0][0])
        for result in self.comparison.results:
            if result.n_learned < n_train:
                yield (
                    f"{result.name} learned from {result.n_learned:,} of {n_train:,} training "
                    "rows, evenly spaced."
                )
        yield from self.comparison.notes


def compare_folder(options: argparse.Namespace) -> int:
    """Rank the methods that work on a cluster by one split.

    Writes a picture and, on request, the winner.
    """
    folder = open_folder(Path(options.table))
    target = find_name(folder.path, folder.names, options.target, "--target")
    features, notes = folder.features(target)
    if folder.n_rows < MIN_ROWS:
        raise TableError(
            f"{folder.path} has {counted(folder.n_rows, 'row')}, too few for one split (at least "
            f"{MIN_ROWS}): write them into one file, and leave --dask out."
        )
    k = options.neighbors or NEIGHBORS
    if k > MIN_ROWS // 2:
        raise TableError(f"--neighbors is {k}, but --dask takes at most {MIN_ROWS // 2}: lower it.")
    held_out = held_out_rows(folder.n_rows, options.seed)
    n_train = folder.n_rows - len(held_out)
    searcher(choose_search(n_train), n_train)  # raises an error without faiss, from 100,000 rows on
    outputs = Outputs(quiet=options.quiet, stderr=False)
    picture = picture_output(options, outputs)
    with cluster(options.dask) as client:
        with console.Progress("rows", quiet=options.quiet) as progress:
            counts = for_each_file(
                client, count_classes, folder, partial(progress, "classes"), target=target
            )
            classes, sizes = classes_of(folder, target, sum(counts, Counter[Any]()))
            outputs.note(
                f"{folder.name}: {counted(len(folder.files), 'file')}, "
                f"{counted(folder.n_rows, 'row')}, {counted(len(features), 'feature')}, "
                f"{class_facts(sizes)}",
                *(f"  {note}" for note in notes),
            )
            blocks = folder.blocks(len(features), MAX_BLOCKS)
            read = partial(features_of, names=features)
            read_labels = partial(labels_of, target=target, classes=classes)
            queries = lazy_rows(blocks, held_out, read, np.float32, len(features))
            queries = client.persist(queries.rechunk(-1))  # in a single block, kept by the cluster
            truth = client.compute(lazy_rows(blocks, held_out, read_labels, np.int32)).result()
            progress("equal rows", 0, folder.n_rows)
            held_out_hashes = row_hashes(client.compute(queries).result())
            equal = delayed(rows_with_hashes, pure=False)
            known = client.scatter(np.unique(held_out_hashes), broadcast=True)
            tasks = [equal(block, features, known) for block in blocks]
            apart = np.concatenate(client.gather(client.compute(tasks)))  # not to be learned from
            n_train, n_equal = folder.n_rows - len(apart), len(apart) - len(held_out)
            if n_train < MIN_ROWS // 2:
                raise TableError(
                    f"{folder.path}: of {counted(folder.n_rows, 'row')} only {n_train:,} have "
                    "other features than the held-out ones, too few to learn from: give more "
                    "columns."
                )
            n_apart = np.bincount(
                client.compute(lazy_rows(blocks, apart, read_labels, np.int32)).result(),
                minlength=len(sizes),
            )
            X = lazy_rows(blocks, apart, read, np.float32, len(features), but=True)
            y = lazy_rows(blocks, apart, read_labels, np.int32, but=True)
            methods = cluster_methods(n_train, len(features), options.seed)
            given = scaled = Split(client, X, y, queries, truth)
            scaler = None
            if not options.no_scaling:
                progress("scaling", 0, n_train)
                scaler = DaskStandardScaler().fit(X, client=client)
                queries = client.persist(scaler.transform(queries))
                scaled = replace(given, X=scaler.transform(X), queries=queries)

            def evaluate(name: str, method: Any) -> MethodResult:
                """Fit a method to the training rows, which then vote on the held-out rows."""
                show = partial(progress, name)
                show(0, n_train)
                if name == TABLES:
                    return evaluate_predictor(name, method, given, show)
                return evaluate_map(name, method, scaled, k, show)

            finished, remarks, interrupted = evaluate_all(methods, evaluate)
        if n_equal:
            remarks.append(
                f"{counted(n_equal, 'row')} with the same features as a held-out one were not "
                "learned from; expect better predictions of new rows that have a copy here."
            )
        folds = [(np.broadcast_to(0, n_train), np.arange(len(given.truth)))]
        largest = np.argmax(sizes - n_apart)
        hits = given.truth == largest
        majority = split_result("majority", hits, len(features), 0.0, Vote(k), len(given.y))
        majority = replace(majority, kind="reference")
        results, least = ranked([*finished, majority], folds, held_out_hashes)
        constant = next(result for result in results if result.kind == "reference")
        results = [result for result in results if result is not constant]
        setting = (
            f"of {k}-NN on {'unscaled' if options.no_scaling else 'standardized'} features, "
            f"{n_train:,} training rows, {len(given.truth):,} held-out rows, seed {options.seed}"
        )
        comparison: Any = SplitComparison(results, constant, least, folds, remarks, setting, k)
        console.report(SplitSummary(comparison))
        if interrupted:
            raise KeyboardInterrupt
        if options.save:
            raw = next(result for result in results if result.name == RAW)
            best = next((result for result in results if result.status == "better"), raw)
            method, is_predictor = methods[best.name], best.name == TABLES
            if is_predictor:
                steps, known = [method], classes[method.classes_]
                X, codes, voters = given.sample(MOST_SAMPLED)
                Z, codes = method.transform(X), np.searchsorted(method.classes_, codes)
            else:
                steps = [step.to_local() for step in (scaler, method) if step is not None]
                Z, known = scaled.X if method is None else method.transform(scaled.X), classes
                Z, codes, voters = replace(scaled, X=Z).sample(MOST_VOTERS)
            model = new_model(
                steps,
                best.votes[0],
                number_encoder(features),
                best,
                raw,
                task=CLASSIFICATION.name,
                score=comparison.score.name,
                method=best.name,
                classes=known.tolist(),
                n_rows=folder.n_rows,
                target=target,
                table=folder.name,
            )
            # voters are counted among the training rows; in the file, others are in between
            before = apart - np.arange(len(apart))
            rows = voters + np.searchsorted(before, voters, side="right")
            model = model.with_voters(Z, rows, codes)
            what = "raw k-NN, as no method is shown to beat it" if best is raw else best.name
            votes = f"all {n_train}" if len(rows) == n_train else f"{len(rows)} evenly spaced"
            learned = f"the {n_train} training rows, of which {votes} vote"
            if best.n_learned < n_train:
                learned = f"{votes} of the {n_train} training rows, which vote"
            outputs.write(
                options.save,
                "--save",
                partial(save_model, model),
                f"Model: {options.save}, {what}, learned from {learned}",
            )
    if picture:
        draw = partial(draw_displays, f"compare {folder.name} --dask", [RankingDisplay(comparison)])
        outputs.write(picture, "--picture", draw, f"Picture: {picture}")
    return outputs.code


def held_out_rows(n: int, seed: int) -> np.ndarray:
    """Return the indices of a random fifth of the rows, at most 20,000, ascending."""
    return np.sort(np.random.default_rng(seed).choice(n, min(MOST_HELD_OUT, n // 5), replace=False))


def lazy_rows(
    blocks: Sequence[Any],
    rows: np.ndarray,
    read: Callable[..., Any],
    dtype: Any,
    *shape: int,
    but: bool = False,
) -> Any:
    """Return some rows of a folder's blocks, or all but these, as a lazy Dask array."""
    parts = []
    for block in blocks:
        low, high = np.searchsorted(rows, [block.start, block.start + len(block)])
        if size := int(len(block) - (high - low) if but else high - low):
            value = delayed(read, pure=False)(block, rows=rows[low:high], but=but)
            parts.append(da.from_delayed(value, (size, *shape), dtype))
    return da.concatenate(parts)


@dataclass(frozen=True)
class Split:
    """The rows of a folder, divided by one split.

    Attributes
    ----------
    client : distributed.Client
    X : Dask array of shape (n, p)
        The training rows.
    y : Dask array of shape (n,)
        Their class codes 0, 1, ....
    queries : Dask array of shape (q, p), in one block
        The held-out rows, kept by the cluster.
    truth : ndarray of shape (q,)
        Their classes.
    """

    client: Any
    X: Any
    y: Any
    queries: Any
    truth: np.ndarray

    def sample(self, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return at most `most` evenly spaced training rows, their classes, and their indices.

        The rows are in float64.
        """
        n = len(self.y)
        rows = np.linspace(0, n - 1, min(most, n)).round().astype(np.int64)
        X, codes = self.client.gather(self.client.compute([self.X[rows], self.y[rows]]))
        return X.astype(np.float64), codes, rows


def cluster_methods(n: int, p: int, seed: int) -> dict[str, Any]:
    """Return the methods by name, unfitted; None for the raw features."""
    m, search = min(MOST_DIMENSIONS, -(-p // 2)), choose_search(n)
    solver = "lbfgs" if search == "exact" else "sgd"
    return {
        RAW: None,
        "PCA": DaskPCA(m),
        "LPP": DaskLPP(m, search=search),
        "DNE": DaskDNE(m, search=search),
        "NMMP": DaskNMMP(m, n_neighbors_within=NMMP_NEIGHBORS, search=search),
        "NCA": DaskNCA(m, solver=solver, search=search, random_state=seed),
        TABLES: NCAClassifier(random_state=seed),
    }


def evaluate_map(name: str, method: Any, split: Split, k: int, progress: Progress) -> MethodResult:
    """Return the accuracy of the k nearest training rows, after a map or without one (None)."""
    Z, queries = split.X, split.queries
    start = time.perf_counter()
    if method is not None:
        method.fit(Z, split.y, client=split.client)
        Z, queries = method.transform(Z), method.transform(queries)
    seconds = time.perf_counter() - start
    near = nearest_labels(Z, split.y, queries, k, client=split.client, progress=progress)
    # ties go to the smallest label
    hits = mode(near.labels, axis=1).mode == split.truth
    return split_result(name, hits, Z.shape[1], seconds, Vote(k), len(split.y))


def evaluate_predictor(
    name: str, predictor: NCAClassifier, split: Split, progress: Progress
) -> MethodResult:
    """Return the accuracy of a predictor that learns from a sample of the training rows.

    The workers predict the held-out rows in blocks.
    """
    start = time.perf_counter()
    X, codes, _ = split.sample(MOST_SAMPLED)
    predictor.fit(X, codes)
    seconds = time.perf_counter() - start
    width = max(len(predictor.classes_), VOTES_AT_ONCE // ROWS_AT_ONCE)
    blocks = row_blocks(len(split.truth), width, VOTES_AT_ONCE)
    queries = split.queries.astype(np.float64)
    predict = delayed(predictor, traverse=False).predict
    found = [predict(queries[block].to_delayed().item()) for block in blocks]
    labels = np.concatenate(split.client.gather(split.client.compute(found)))
    progress(len(split.y), len(split.y))
    n_components = len(predictor.components_)
    vote = OwnVote(len(X))
    return split_result(name, labels == split.truth, n_components, seconds, vote, len(X))


def evaluate_all(
    methods: dict[str, Any], evaluate: Callable[[str, Any], MethodResult]
) -> tuple[list[MethodResult], list[str], bool]:
    """Return results, notes on skipped methods and on warnings, and whether it was interrupted.

    A method that fails is skipped, except the raw features, which come first and are the baseline.
    """
    finished, notes, interrupted = list[MethodResult](), list[str](), False
    warned = dict[str, Counter[str]]()
    for name, method in methods.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                finished.append(evaluate(name, method))
            except KeyboardInterrupt:
                interrupted = True
            except FAILURES as error:
                why = KILLED if isinstance(error, KilledWorker) else first_line(error)
                notes.append(f"{name} skipped: {why}")
        warned[name] = Counter({first_line(warning.message): 1 for warning in caught})
        if interrupted or not finished:
            break
    if not finished:
        raise KeyboardInterrupt if interrupted else TableError(notes[0])
    return finished, [*notes, *warning_notes(warned)], interrupted


def split_result(
    name: str, hits: np.ndarray, dimension: int, seconds: float, vote: Vote, n_learned: int
) -> MethodResult:
    """Return the result of a method with the hits `hits`, not yet compared with others."""
    score = np.array([hits.mean()])
    return MethodResult(
        name=name,
        sign=1,
        kind="baseline" if name == RAW else "method",
        method=None,
        score=score,
        scores={"accuracy": score},
        dimension=np.array([dimension]),
        params=({},),
        votes=(vote,),
        fit_seconds=np.array([seconds]),
        n_learned=n_learned,
        predictions=(),
        contributions=(hits.astype(float),),
    )


def classes_of(folder: Folder, target: str, counts: Counter[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted classes and their sizes; raise an error if k-NN cannot vote on them."""
    values = np.array(list(counts), dtype=object if target in folder.text else None)
    with one_line(folder.path):
        classes = as_classes(values, target, "--task regression")
    if 2 * len(classes) > folder.n_rows:
        found = (
            f"{shown(target)} has {counted(len(classes), 'value')} in "
            f"{counted(folder.n_rows, 'row')}"
        )
        raise TableError(
            f"{folder.path}: {found}, too few rows of each: give --target a column of classes."
        )
    order = np.argsort(classes)
    return classes[order], np.array(list(counts.values()))[order]
