"""The comparison of methods on a table in memory, by cross-validation or one split."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._messages import counted, shown
from .._validation import check_spread, known_labels
from ..evaluation import (
    CLASSIFICATION,
    ON_ALL_ROWS,
    RAW,
    SCORES,
    Comparison,
    Method,
    all_methods,
    compare,
    extend,
    first_map,
    leader,
    score_by_dimension,
    with_winner,
)
from ..plotting import EmbeddingDisplay, RankingDisplay
from ..tables import indicated_features
from . import console, pictures
from .model import Model, learned_model
from .readers import TableError
from .report import comparison_document
from .tables import Table, read_table, reading
from .words import Summary, class_facts, one_line, span

# the others are named alike
SCORE_OPTIONS = {"balanced": "balanced_accuracy", "rank": "rank_correlation"}
SPACES = str.maketrans("-_", "  ")
SMALL_ROWS, SMALL_ENTRIES = 1000, 30_000  # up to which all methods are compared without --all
QUICK = {"n_splits": 3, "n_repeats": 1, "choice_rows": 500}
# labelled rows above which three folds would be more work than the one split by default
QUICK_ROWS = 20_000


class TableComparison(nullcontext):
    """A table, ready to compare methods on."""

    unit = "fits"
    summary = Summary

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__()
        self.options = options
        self.score = _score_named(options.score, options.task)
        self.methods = _methods_named(options.methods, options.task)
        self.table: Table = console.while_reading(
            options,
            partial(
                read_table,
                options.table,
                options.target,
                options.groups,
                task=options.task,
                unlabelled=options.unlabelled,
                reading=reading(options),
            ),
        )
        # The methods of the papers follow those that answer first on request, and by themselves
        # where the table is so small that they take about a minute.
        n_rows, n_features = len(self.table.labelled), self.table.X.shape[1]
        is_small = n_rows <= SMALL_ROWS and n_rows * n_features <= SMALL_ENTRIES
        self.goes_on = (options.all or is_small) and not (options.methods or options.quick)

    def facts(self, progress: console.Progress) -> tuple[str, list[str]]:
        """Return what was read, and notes on it."""
        table = self.table
        (n, p), n_labelled, n_columns = (
            table.X.shape,
            len(table.labels),
            len(table.encoder.columns_),
        )
        labelled = f" ({n_labelled:,} labelled)" * (n_labelled < n)
        features = counted(p, "sparse feature" if issparse(table.X) else "feature")
        if p > n_columns:
            features += f" from {counted(n_columns, 'column')}"
        n_indicators = 0 if issparse(table.X) else len(indicated_features(np.isnan(table.X)))
        if n_indicators:
            features += f" and {counted(n_indicators, 'indicator')} of missing cells"
        values, counts = np.unique(table.labels, return_counts=True)
        target = class_facts(counts)
        if table.task != CLASSIFICATION.name:
            target = f"{counted(len(values), 'value')} {span(values[0], values[-1])}"
        if table.groups is not None:
            target += f", {counted(len(np.unique(table.groups)), 'group')}"
        return f"{table.name}: {counted(n, 'row')}{labelled}, {features}, {target}", table.notes

    def has_more(self, comparison: Comparison) -> bool:
        """Say whether the methods of the papers follow this comparison, for which there must be
        time left.
        """
        return self.goes_on and comparison.seconds < (self.options.time_budget or np.inf)

    def rank(self, progress: console.Progress) -> Comparison:
        """Compare the methods that answer first, or those that were asked for."""
        options, table = self.options, self.table
        quick: dict[str, Any] = QUICK if options.quick else {}
        if len(table.labelled) > QUICK_ROWS and table.groups is None:
            quick = {"choice_rows": quick.get("choice_rows")}
        with one_line(table.name):
            check_spread(table.X, table.feature_names)
            comparison = compare(
                table.X,
                table.y,
                task=table.task,
                groups=table.groups,
                methods=self.methods,
                references=[] if options.no_references else None,
                score=self.score,
                n_neighbors=options.neighbors,
                scale=not options.no_scaling,
                keep_twins=options.keep_twins,
                refit=bool(options.save) and not self.goes_on,
                encoder=table.encoder,
                time_budget=options.time_budget,
                random_state=options.seed,
                progress=partial(_show, progress),
                n_splits=options.folds or quick.get("n_splits"),
                n_repeats=options.repeats or quick.get("n_repeats"),
                choice_rows=quick.get("choice_rows"),
            )
        doubts = table.suspects.doubts(table.target, table.task)
        return replace(comparison, doubts=(*comparison.doubts, *doubts))

    def rank_more(self, comparison: Comparison, progress: console.Progress) -> Comparison:
        """Compare the methods of the papers on the same folds; an interrupt leaves what was
        finished before.
        """
        budget = self.options.time_budget
        left = None if budget is None else budget - comparison.seconds
        with one_line(self.table.name):
            return extend(
                comparison,
                refit=bool(self.options.save),
                time_budget=left,
                progress=partial(_show, progress),
            )

    def draw(self, comparison: Comparison, path: Path) -> None:
        """Draw the ranking, and a 2-D map of held-out rows by what was chosen in the first fold."""
        table, answer = self.table, comparison[leader(comparison.ranking()).name]
        name = answer.params[0].get("method", answer.name)
        displays: list[Any] = [RankingDisplay(comparison)]
        # on every fold, not on the first alone
        finished = [result.name for result in comparison.results]
        if name != RAW and name in finished:
            seen = first_map(comparison, answer)
            displays.append(
                EmbeddingDisplay(
                    seen.embedding,
                    known_labels(table.y, seen.rows),
                    seen.score,
                    seen.vote,
                    name,
                    table.task,
                    comparison.score.name,
                )
            )
        pictures.draw(f"compare {table.name}", displays, path)

    def document(self, comparison: Comparison, progress: console.Progress) -> Any:
        """Return all that was found, for the page and the JSON file."""
        curves = score_by_dimension(comparison, progress=progress)
        return comparison_document(
            comparison, curves, self.table, ["nearkin", *self.options.arguments]
        )

    def model(self, comparison: Comparison) -> tuple[Model, str]:
        """Return the winner, and what it was learned from."""
        with console.Progress(self.unit, quiet=self.options.quiet) as progress:
            comparison = with_winner(comparison, progress=partial(_show, progress))
        if comparison.winner is None:
            raise KeyboardInterrupt
        model = learned_model(comparison, self.table)
        choice, words = comparison.choice, Summary(comparison).wording
        text = (
            f"{model.method} ({model.vote}), fitted to all rows; held-out {words.title} of this "
            f"choice: {words.figure(choice.score.mean())}"
        )
        if not model.is_raw and choice.status != "better":
            text += " (not shown to be better than raw k-NN)"
        text += "".join(f". In doubt: {doubt.text.rstrip('.')}" for doubt in comparison.doubts)
        return model, text


def _show(progress: console.Progress, what: str, done: int, total: int) -> None:
    progress("compared" if done == total and what != ON_ALL_ROWS else what, done, total)


def _score_named(option: str | None, task: str) -> str | None:
    """Return the name of the score that an option asks for."""
    name = SCORE_OPTIONS.get(option or "", option)
    if name is not None and name not in SCORES[task]:
        short = {long: short for short, long in SCORE_OPTIONS.items()}
        raise TableError(
            f"--score {option} is none of a {task}: give "
            f"{', '.join(short.get(n, n) for n in SCORES[task])}, or --task."
        )
    return name


def _methods_named(names: str | None, task: str) -> list[Method] | None:
    """Return the methods of a list with commas; None, for all that suit the table, without one.

    "NCA tables", "nca-tables" and "nca_tables" are one.
    """
    if names is None:
        return None
    every = all_methods(task, semi_supervised=True, balanced=True)
    known = {method.name.lower().translate(SPACES): method for method in every}
    given = [name.strip() for name in names.split(",") if name.strip()]
    keys = [name.lower().translate(SPACES) for name in given]
    unknown = [name for name, key in zip(given, keys, strict=True) if key not in known]
    if unknown or not given:
        raise TableError(
            f"--methods knows no {shown(','.join(unknown))}: name some of "
            f"{', '.join(method.name for method in every)}."
        )
    return [known[key] for key in dict.fromkeys(keys)]
