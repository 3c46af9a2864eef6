"""`nearkin compare FOLDER --dask`: a sample of rows that may be larger than memory, compared.

The workers draw the sample by a hash of the features, so that of equal rows all are drawn or none,
in one pass. It is compared like any table. The winner is then fitted to all rows, if it can be
without collecting them, and rows of the whole folder vote.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from dask import delayed
from distributed import KilledWorker
from sklearn.pipeline import Pipeline

from ..._messages import counted, shown
from ...comparison import CLASSIFICATION, Comparison, Suspects
from ...dask import (
    MAX_BLOCKS,
    DaskDMLMJ,
    DaskDNE,
    DaskGMML,
    DaskLDE,
    DaskLFDA,
    DaskLPP,
    DaskMFA,
    DaskNCA,
    DaskNMMP,
    DaskPCA,
    DaskStandardScaler,
)
from ...neighbors import choose_search
from ...tables import NCAClassifier, as_classes
from .. import console
from ..endings import TableError, first_line, one_line
from ..files.readers import find_name
from ..tables.compare import ALL_ROWS, compare_rows, understand
from ..tables.model import Model, Voters, learned_model
from ..tables.reading import Table, number_encoder
from .cluster import KILLED, cluster, for_each_file
from .parquet_folder import (
    Drawn,
    Folder,
    count_classes,
    features_of,
    labels_of,
    open_folder,
    rows_below,
)

SAMPLE = 20_000
MOST_VOTERS = 100_000
DASK_CLASSES = {
    kind._local_class: kind
    for kind in (
        *(DaskPCA, DaskLPP, DaskDNE, DaskNMMP, DaskLDE, DaskMFA, DaskDMLMJ, DaskGMML),
        *(DaskLFDA, DaskNCA),
    )
}
MOST_FOR_LFDA = 100_000  # more take too long
FAILURES = (ValueError, MemoryError, ImportError, RuntimeError, KilledWorker)


def compare(options: argparse.Namespace) -> int:
    """Rank the methods on a sample of a folder; write what is requested as for a table."""
    understand(options)
    folder = open_folder(Path(options.table))
    target = find_name(folder.path, folder.names, options.target, "--target")
    features, notes = folder.features(target)
    with cluster(options.dask) as client:
        with console.Progress("rows", quiet=options.quiet) as progress:
            show = partial(progress, "classes")
            counts = for_each_file(client, count_classes, folder, show, target=target)
            classes = classes_of(folder, target, sum(counts, Counter[Any]()))
            rows = FolderRows(client, folder, features, target, classes, notes, options.seed)
            progress("sample", 0, folder.n_rows)
            table = rows.sample()
        return compare_rows(options, table, rows.learn)


@dataclass(frozen=True)
class FolderRows:
    """The rows of a folder, which stay on the workers of a cluster."""

    client: Any
    folder: Folder
    features: list[str]
    target: str
    classes: np.ndarray
    notes: list[str]
    seed: int

    @property
    def blocks(self) -> list[Any]:
        """Return the blocks of the folder."""
        return self.folder.blocks(len(self.features), MAX_BLOCKS)

    def sample(self) -> Table:
        """Return at most 20,000 rows as a table; of equal rows all or none."""
        n, task = self.folder.n_rows, delayed(rows_below, pure=False)
        # some more than needed, of which the smallest hashes are taken
        limit = min(1.0, 1.1 * SAMPLE / n) * (2**64 - 1)
        about = self.features, self.target, self.classes, self.seed, min(int(limit), 2**64 - 1)
        parts = self.client.gather(self.client.compute([task(one, *about) for one in self.blocks]))
        drawn = Drawn(*map(np.concatenate, zip(*parts, strict=True)))
        kept = np.flatnonzero(in_sample(drawn.hashes, SAMPLE))
        X, y = drawn.X[kept].astype(np.float64), self.classes[drawn.codes[kept]]
        notes = list(self.notes)
        if len(kept) < n:
            notes.append(
                f"compared on {counted(len(kept), 'row')} of {n:,}; of rows with equal features "
                "all are drawn or none"
            )
        suspects = Suspects.of_numbers(self.features, X, y, CLASSIFICATION.name, hints=True)
        return Table(
            X=X,
            y=y,
            name=self.folder.name,
            target=self.target,
            encoder=number_encoder(self.features),
            suspects=suspects,
            notes=notes,
            row_names=drawn.rows[kept].tolist(),
            row_numbers=drawn.rows[kept],
        )

    def learn(self, comparison: Comparison, table: Table) -> tuple[Model, str]:
        """Return the automatic choice as a model, if possible fitted to all rows, and how."""
        assert comparison.winner is not None
        n, sample = self.folder.n_rows, f"{len(table.y):,} of {self.folder.n_rows:,} rows"
        steps = dict(comparison.winner.steps)
        if isinstance(steps["vote"], NCAClassifier):  # the rows that it learned from vote
            return learned_model(comparison, table), f"fitted to {sample}"
        X = self._lazy(features_of, np.float32, self.features)
        y = self._lazy(labels_of, np.int32, self.target, self.classes)
        fitted = ALL_ROWS
        try:
            steps |= self._fitted_to_all(steps, X, y)
        except FAILURES as error:
            why = KILLED if isinstance(error, KilledWorker) else first_line(error)
            fitted = f"fitted to the sample ({why})"
        rows = np.linspace(0, n - 1, min(MOST_VOTERS, n)).round().astype(np.int64)
        voters, codes = self.client.gather(self.client.compute([X[rows], y[rows]]))
        winner = Pipeline([one for one in steps.items() if one[0] != "encode"])
        model = learned_model(
            replace(comparison, winner=winner), table, Voters(voters, codes, rows, self.classes, n)
        )
        votes = "all" if len(rows) == n else f"{len(rows):,} evenly spaced ones"
        return model, f"{fitted}, of which {votes} vote"

    def _fitted_to_all(self, steps: dict[str, Any], X: Any, y: Any) -> dict[str, Any]:
        """Return scaler and map, with the chosen settings, fitted to all rows."""
        found = dict[str, Any]()
        if "scale" in steps:
            found["scale"] = DaskStandardScaler().fit(X, client=self.client)
            X = found["scale"].transform(X)
        if "map" in steps:
            chosen, n = steps["map"], len(y)
            kind = DASK_CLASSES.get(type(chosen))
            if kind is None or (kind is DaskLFDA and n > MOST_FOR_LFDA):
                raise ValueError(f"{type(chosen).__name__} is not fitted to {n:,} rows here")
            params = {name: getattr(chosen, name) for name in kind().get_params(deep=False)}
            of_rows = {"search": choose_search(n), "random_state": self.seed}
            params |= {name: value for name, value in of_rows.items() if name in params}
            found["map"] = kind(**params).fit(X, y, client=self.client)
        return {name: step.to_local() for name, step in found.items()}

    def _lazy(self, read: Any, dtype: Any, *about: Any) -> Any:
        """Return what is read of every block as a Dask array."""
        shape = (len(self.features),) if read is features_of else ()
        task = delayed(read, pure=False)
        return da.concatenate(
            [da.from_delayed(task(one, *about), (len(one), *shape), dtype) for one in self.blocks]
        )


def in_sample(hashes: np.ndarray, most: int) -> np.ndarray:
    """Return which rows are in a sample: those with the smallest hashes, at most `most`.

    Equal hashes are all in it or none, and none if more than half of the sample would have them.
    """
    if len(hashes) <= most:
        return np.full(len(hashes), True)
    _, group, sizes = np.unique(hashes, return_inverse=True, return_counts=True)
    fits = sizes <= most // 2
    return (fits & (np.cumsum(sizes * fits) <= most))[group]


def classes_of(folder: Folder, target: str, counts: Counter[Any]) -> np.ndarray:
    """Return the sorted classes; raise an error if k-NN cannot vote on them."""
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
    return np.sort(classes)
