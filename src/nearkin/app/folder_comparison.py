"""The comparison of methods on a folder larger than memory, by one split on a cluster.

The training rows are never in one place: workers read them block by block, again in every pass.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import KilledWorker
from scipy.stats import mode

from .._messages import counted
from ..dask import (
    MAX_BLOCKS,
    DaskDNE,
    DaskLPP,
    DaskNCA,
    DaskNMMP,
    DaskPCA,
    DaskStandardScaler,
    nearest_labels,
)
from ..evaluation import CLASSIFICATION, RAW, MethodResult
from ..neighbors import choose_search, searcher
from ..plotting import STATUS_COLORS
from . import pictures
from .cluster import KILLED, cluster, for_each_file
from .model import Model, new_model, with_voters
from .one_split import SplitComparison, SplitSummary, held_out_rows, rank_split, split_result
from .parquet_folder import classes_of, count_classes, features_of, labels_of, open_folder
from .readers import TableError, find_name
from .tables import number_encoder
from .words import class_facts, first_line, warning_notes

MIN_ROWS = 500
NEIGHBORS = 3  # of the vote, by default
MOST_DIMENSIONS = 64
MOST_VOTERS = 100_000
NMMP_NEIGHBORS = 10  # the default, half of a class, makes lists that grow with the rows
FAILURES = (ValueError, MemoryError, ImportError, RuntimeError, KilledWorker)

NamedProgress = Callable[[str, int, int], None]


class FolderComparison(ExitStack):
    """One split of the rows of a folder, as lazy Dask arrays while a cluster is connected.

    Attributes
    ----------
    X, y : Dask arrays of shape (n_train, p), (n_train,)
        Training rows, scaled where requested.
    queries : Dask array of shape (n_held_out, p)
        Held-out rows in one block, kept by the cluster.
    truth : ndarray of shape (n_held_out,)
    scaler : fitted DaskStandardScaler or None
    maps : dict of method name to fitted Dask transformer, None for the raw features
    """

    unit = "rows"
    summary = SplitSummary

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options, self.folder = options, open_folder(Path(options.table))
        self.name, n_rows = self.folder.name, self.folder.n_rows
        self.target = find_name(self.folder.path, self.folder.names, options.target, "--target")
        self.features, self.notes = self.folder.features(self.target)
        if n_rows < MIN_ROWS:
            raise TableError(
                f"{self.folder.path} has {counted(n_rows, 'row')}, too few for one split (at least "
                f"{MIN_ROWS}): write them into one file, and leave --dask out."
            )
        self.n_neighbors = options.neighbors or NEIGHBORS
        if self.n_neighbors > MIN_ROWS // 2:
            raise TableError(
                f"--neighbors is {self.n_neighbors}, with --dask at most {MIN_ROWS // 2}: lower it."
            )
        self.held_out = held_out_rows(n_rows, options.seed)
        self.n_train = n_rows - len(self.held_out)
        self.maps: dict[str, Any] = {}
        searcher(choose_search(self.n_train), self.n_train)  # needs faiss, from 100,000 rows on

    def __enter__(self) -> FolderComparison:
        """Connect to the cluster, or start one; the exit leaves it."""
        self.client = self.enter_context(cluster(self.options.dask))
        return self

    def facts(self, progress: NamedProgress) -> tuple[str, list[str]]:
        """Return what the folder holds; its classes are counted by one pass over the target."""
        folder, target = self.folder, self.target
        counts = for_each_file(
            self.client, count_classes, folder, partial(progress, "classes"), target=target
        )
        self.classes, sizes = classes_of(folder, target, sum(counts, Counter[Any]()))
        return (
            f"{self.name}: {counted(len(folder.files), 'file')}, {counted(folder.n_rows, 'row')}, "
            f"{counted(len(self.features), 'feature')}, {class_facts(sizes)}"
        ), self.notes

    def _split(self, progress: NamedProgress) -> None:
        """Cut the rows: the held-out ones are read, the scale is learned from the others."""
        client, self.scaler = self.client, None
        blocks = self.folder.blocks(len(self.features), MAX_BLOCKS)

        def array(read: Callable[..., Any], dtype: Any, *shape: int, held_out: bool) -> Any:
            parts = []
            for block in blocks:
                low, high = np.searchsorted(self.held_out, [block.start, block.start + len(block)])
                size = int(high - low if held_out else len(block) - (high - low))
                if size:
                    rows = self.held_out[low:high]
                    value = delayed(read, pure=False)(block, rows=rows, but=not held_out)
                    parts.append(da.from_delayed(value, (size, *shape), dtype))
            return da.concatenate(parts)

        features, p = partial(features_of, names=self.features), len(self.features)
        labels = partial(labels_of, target=self.target, classes=self.classes)
        self.queries = client.persist(array(features, np.float32, p, held_out=True).rechunk(-1))
        self.truth = client.compute(array(labels, np.int32, held_out=True)).result()
        self.X = array(features, np.float32, p, held_out=False)
        self.y = array(labels, np.int32, held_out=False)
        if not self.options.no_scaling:
            progress("scaling", 0, self.n_train)
            self.scaler = DaskStandardScaler().fit(self.X, client=client)
            self.X = self.scaler.transform(self.X)
            self.queries = client.persist(self.scaler.transform(self.queries))

    def rank(self, progress: NamedProgress) -> SplitComparison:
        """Return the results of the methods, one after the other; after an interruption, of those
        that are finished.

        A method that fails is skipped, but without the raw features there is nothing to compare
        with.
        """
        self._split(progress)
        finished, notes, interrupted = list[MethodResult](), list[str](), False
        warned = dict[str, Counter[str]]()
        for name, method in self._methods().items():
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    finished.append(self._evaluate(name, method, progress))
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
        results, least = rank_split(finished, self.n_train)
        return SplitComparison(
            results,
            (*notes, *warning_notes(warned)),
            self.n_neighbors,
            self.n_train,
            not self.options.no_scaling,
            self.options.seed,
            interrupted,
            least,
        )

    def _methods(self) -> dict[str, Any]:
        """Return the methods by name, unfitted; None for the raw features."""
        n, p = self.X.shape
        m, search = min(MOST_DIMENSIONS, -(-p // 2)), choose_search(n)
        solver = "lbfgs" if search == "exact" else "sgd"
        return {
            RAW: None,
            "PCA": DaskPCA(m),
            "LPP": DaskLPP(m, search=search),
            "DNE": DaskDNE(m, search=search),
            "NMMP": DaskNMMP(m, n_neighbors_within=NMMP_NEIGHBORS, search=search),
            "NCA": DaskNCA(m, solver=solver, search=search, random_state=self.options.seed),
        }

    def _evaluate(self, name: str, method: Any, progress: NamedProgress) -> MethodResult:
        """Fit a method to the training rows, which then vote on the held-out ones."""
        (n, m), Z, Q, k = self.X.shape, self.X, self.queries, self.n_neighbors
        progress(name, 0, n)
        start = time.perf_counter()
        if method is not None:
            method.fit(Z, self.y, client=self.client)
            m, Z, Q = len(method.components_), method.transform(Z), method.transform(Q)
        seconds = time.perf_counter() - start
        self.maps[name] = method
        near = nearest_labels(Z, self.y, Q, k, client=self.client, progress=partial(progress, name))
        # of equally many votes the smallest label wins
        hits = mode(near.labels, axis=1).mode == self.truth
        return split_result(name, hits, m, seconds, k, self.n_train)

    def has_more(self, comparison: SplitComparison) -> bool:
        """Say that all methods that work on a cluster are compared at once."""
        return False

    def draw(self, comparison: SplitComparison, path: Path) -> None:
        """Draw accuracies, with the intervals of the differences from the raw features."""
        figure, ax = pictures.new_figure(f"compare {self.name} --dask", 1)
        results, raw = comparison.results[::-1], comparison.raw
        for position, result in enumerate(results):
            ax.errorbar(
                100 * result.score.mean(),
                position,
                xerr=50 * float(np.diff(result.interval)[0]),
                fmt="o",
                color=STATUS_COLORS[result.status],
                capsize=4,
            )
        ax.axvline(100 * raw.score.mean(), color="black", linewidth=0.8, linestyle="--", zorder=0)
        names = [f"{result.name}, {result.dimension[0]}-D\n{result.status}" for result in results]
        ax.set_yticks(range(len(results)), names)
        vote = f"{comparison.n_neighbors}-NN among {comparison.n_train:,} rows"
        ax.set_xlabel(
            f"held-out rows right (%), {vote}; bars: the difference from the raw features, 95%"
        )
        ax.set_title(f"Accuracy on {len(self.truth):,} held-out rows (dashed: the raw features)")
        figure.savefig(path, dpi=110, format="png")

    def model(self, comparison: SplitComparison) -> tuple[Model, str]:
        """Return the winner, in which at most 100,000 training rows, evenly drawn, vote, and what
        it learned from.
        """
        best, n = comparison.best, self.X.shape[0]
        embedding = self.maps[best.name]
        model = new_model(
            [step.to_local() for step in (self.scaler, embedding) if step is not None],
            number_encoder(self.features),
            best,
            comparison.raw,
            task=CLASSIFICATION.name,
            score="accuracy",
            method=best.name,
            classes=self.classes.tolist(),
            n_neighbors=comparison.n_neighbors,
            soft=False,
            n_rows=self.folder.n_rows,
            target=self.target,
            table=self.folder.name,
        )
        voters = np.linspace(0, n - 1, min(MOST_VOTERS, n)).round().astype(np.int64)
        Z = self.X if embedding is None else embedding.transform(self.X)
        coordinates, codes = self.client.gather(self.client.compute([Z[voters], self.y[voters]]))
        # the voter i is the training row i: held-out rows stand before it
        before = self.held_out - np.arange(len(self.held_out))
        rows = voters + np.searchsorted(before, voters, side="right")
        learned = "raw k-NN, since no method is shown to beat it" if model.is_raw else model.method
        votes = f"all {n}" if len(rows) == n else f"{len(rows)} evenly drawn"
        text = f"{learned}, learned from the {n} training rows, of which {votes} vote"
        return with_voters(model, coordinates.astype(np.float64), rows, codes), text
