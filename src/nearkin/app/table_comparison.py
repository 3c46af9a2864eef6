"""The comparison of methods on a table in memory, by repeated cross-validation."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._labels import known_labels
from ..evaluation import RAW, Comparison, compare, score_by_dimension
from ..plotting import EmbeddingDisplay, RankingDisplay
from . import console, pictures
from .model import Model, learned_model
from .report import write_report
from .sentences import leader, one_line, rows_of, target_facts
from .tables import read_table


class TableComparison(nullcontext):
    """A table, ready to compare methods on."""

    unit = "folds"

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        kind = {"task": options.task, "unlabelled": options.unlabelled}
        read = partial(read_table, options.table, options.target, options.groups, **kind)
        self.options, self.table = options, console.while_reading(options, read)
        self.name = self.table.name

    def facts(self, progress: console.Progress) -> tuple[str, list[str]]:
        """Return what was read, and remarks on it."""
        table = self.table
        kind = "sparse features" if issparse(table.X) else "features"
        grouped = "" if table.groups is None else f", {len(np.unique(table.groups))} groups"
        facts = f"{table.name}: {rows_of(table)}, {table.X.shape[1]} {kind}, {target_facts(table)}{grouped}"
        return facts, table.notes

    def rank(self, progress: console.Progress) -> Comparison:
        """Run the comparison."""
        options, table = self.options, self.table
        target: dict[str, Any] = {"task": table.task, "groups": table.groups, "scale": not options.no_scaling}
        folds = {"n_splits": options.folds, "n_repeats": options.repeats, "random_state": options.seed}
        n_bytes = options.memory_budget and options.memory_budget * 1e9
        budget = {"time_budget": options.time_budget, "memory_budget": n_bytes, "progress": progress}
        with one_line(table.name):
            return compare(table.X, table.y, n_neighbors=options.neighbors, **target, **folds, **budget)

    def draw(self, comparison: Comparison, path: Path) -> None:
        """Draw the ranking and a 2-D map of held-out rows."""
        table, shown = self.table, leader(comparison)
        figure, *axes = pictures.new_figure(f"compare {table.name}", 1 + (shown.name != RAW))
        RankingDisplay(comparison).plot(ax=axes[0])
        for ax in axes[1:]:
            seen = pictures.first_map(comparison, shown, table)
            labels = known_labels(table.y, seen.rows)
            k, task = comparison.n_neighbors, table.task
            EmbeddingDisplay(seen.embedding, labels, seen.score, k, shown.name, task).plot(ax=ax)
        figure.savefig(path, dpi=110, format="png")

    def report(self, comparison: Comparison, path: Path, progress: console.Progress) -> None:
        """Write the interactive page."""
        curves = score_by_dimension(comparison, self.table.X, self.table.y, progress=progress)
        write_report(path, comparison, curves, self.table, command=["nearkin", *self.options.arguments])

    def model(self, comparison: Comparison) -> tuple[Model, str]:
        """Return the winner, and what it was learned from."""
        model = learned_model(comparison, self.table)
        if model.is_raw:
            return model, "raw k-NN, since no method is shown to beat it: scaling and all rows"
        return model, f"{model.method} refitted on all rows"
