"""`nearkin compare TABLE`: a ranking on rows in memory, by cross-validation or one split."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..._labels import known_labels
from ..._messages import shown
from ...comparison import (
    FINAL_CHOICE,
    RAW,
    SCORES,
    Comparison,
    extend,
    first_picture,
    leader,
    methods_by_name,
    score_by_dimension,
)
from ...comparison import compare as compare_methods
from ...plotting import EmbeddingDisplay, RankingDisplay
from .. import console
from ..document import show, write_document
from ..endings import TableError, one_line
from ..files.formats import reading
from ..output import Outputs, draw_displays, picture_output
from .model import Model, learned_model, save_model
from .reading import Table, read_table
from .report import comparison_document
from .words import Summary

FOLLOW = (
    "All other methods follow, on the same folds. As p is then corrected for all of them, what is "
    "shown here may become unclear. Ctrl-C ends the comparison with this first answer."
)
ALL_ROWS = "fitted to all rows"
FIRST_ANSWER = "Interrupted: the first answer is written."
# the other options are named like their scores
SCORE_OPTIONS = {"balanced": "balanced_accuracy", "rank": "rank_correlation"}
SPACES = str.maketrans("-_", "  ")
# up to this size, all other methods are added automatically: they take about a minute
SMALL_ROWS, SMALL_ENTRIES = 1000, 30_000
QUICK = {"n_splits": 3, "n_repeats": 1, "choice_rows": 500}
# labelled rows above which three folds take longer than the default split
QUICK_ROWS = 20_000


# A model for `--save`, and what it was fitted to.
Learn = Callable[[Comparison, Table], tuple[Model, str]]


def compare(options: argparse.Namespace) -> int:
    """Rank the methods on the table in a file; see `compare_rows`."""
    understand(options)
    table = console.while_reading(
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
    return compare_rows(
        options, table, lambda comparison, table: (learned_model(comparison, table), ALL_ROWS)
    )


def compare_rows(options: argparse.Namespace, table: Table, learn: Learn) -> int:
    """Rank the methods on a table; write a picture and, on request, a page, JSON and the winner."""
    n_rows, n_features = len(table.labelled), table.X.shape[1]
    is_small = n_rows <= SMALL_ROWS and n_rows * n_features <= SMALL_ENTRIES
    goes_on = (options.all or is_small) and not (options.methods or options.quick)
    quick: dict[str, Any] = QUICK if options.quick else {}
    if n_rows > QUICK_ROWS and table.groups is None:
        quick = {"choice_rows": quick.get("choice_rows")}
    outputs = Outputs(quiet=options.quiet, stderr=False)
    picture = picture_output(options, outputs)
    outputs.note(table.facts(), *(f"  {note}" for note in table.all_notes))
    with _fits(table.name, options.quiet) as progress:
        comparison = compare_methods(
            table,
            table.target,
            task=table.task,
            methods=options.methods,
            references=[] if options.no_references else None,
            score=options.score,
            n_neighbors=options.neighbors,
            scale=not options.no_scaling,
            keep_twins=options.keep_twins,
            refit=bool(options.save) and not goes_on,
            time_budget=options.time_budget,
            random_state=options.seed,
            progress=progress,
            n_splits=options.folds or quick.get("n_splits"),
            n_repeats=options.repeats or quick.get("n_repeats"),
            choice_rows=quick.get("choice_rows"),
        )
    _show(comparison)
    if comparison.interrupted:
        raise KeyboardInterrupt
    more = comparison
    left = None if options.time_budget is None else options.time_budget - comparison.seconds
    if goes_on and (left is None or left > 0):
        outputs.note("", FOLLOW)
        with _fits(table.name, options.quiet) as progress:
            more = extend(comparison, refit=bool(options.save), time_budget=left, progress=progress)
        if more.interrupted:
            outputs.note(FIRST_ANSWER)
        else:
            comparison = more
            _show(comparison)
    _write(options, outputs, picture, table, comparison, learn)
    if more.interrupted:
        raise KeyboardInterrupt
    return outputs.code


def _show(comparison: Comparison) -> None:
    """Print the ranking, the verdict and the notes."""
    found = Summary(comparison)
    lines = [*found.verdict.split("\n"), found.caption, *(f"  {note}" for note in found.notes)]
    show(found.lines, lines, ("fit", found.second.heading, "dim", "vote", "p"))


def _write(
    options: argparse.Namespace,
    outputs: Outputs,
    picture: Path | None,
    table: Table,
    comparison: Comparison,
    learn: Learn,
) -> None:
    """Write the requested files: the model, which may have to be fitted, comes first."""
    if options.save:
        if comparison.winner is None:
            with _fits(table.name, options.quiet) as progress:
                comparison = extend(comparison, [], progress=progress)
        if comparison.winner is None:
            raise KeyboardInterrupt
        model, fitted = learn(comparison, table)
        done = f"Model: {options.save}, {_of_model(model, comparison, fitted)}"
        outputs.write(options.save, "--save", partial(save_model, model), done)
    if picture:
        draw = partial(_draw, comparison, table)
        outputs.write(picture, "--picture", draw, f"Picture: {picture}")
    if options.report or options.json:
        with console.Progress("folds", quiet=options.quiet, lines=False) as progress:
            curves = score_by_dimension(comparison, progress=progress)
        write_document(options, outputs, comparison_document(comparison, curves, table))


@contextmanager
def _fits(name: str, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function that shows the progress of fits; errors due to the rows name the table."""
    with (
        console.Progress("fits", quiet=quiet) as progress,
        one_line(name),
    ):

        def show(what: str, done: int, total: int) -> None:
            progress("compared" if done == total and what != FINAL_CHOICE else what, done, total)

        yield show


def _of_model(model: Model, comparison: Comparison, fitted: str) -> str:
    """Return a description of what a model was learned from, and its score."""
    choice, summary = comparison.choice, Summary(comparison)
    words = summary.wording
    text = (
        f"{model.method} ({model.vote}), {fitted}; held-out {words.title} of this choice: "
        f"{words.figure(choice.score.mean())}"
    )
    if not choice.beats_constant:
        shown = "no better" if summary.is_useless else "not shown to be better"
        text += f" ({shown} than a constant prediction)"
    elif not model.is_raw and choice.status != "better":
        text += " (not shown to be better than raw k-NN)"
    return text + ". Doubtful, as said above" * bool(comparison.doubts)


def _draw(comparison: Comparison, table: Table, path: Path) -> list[str]:
    """Draw the ranking, and a 2-D map of held-out rows by the method chosen in the first fold.

    Return remarks.
    """
    answer = leader(comparison.ranking())
    name = answer.params[0].get("method", answer.name)
    displays: list[Any] = [RankingDisplay(comparison)]
    # finished on every fold, not only on the first
    if name != RAW and name in [result.name for result in comparison.results]:
        seen = first_picture(comparison, answer)
        displays.append(
            EmbeddingDisplay(
                seen.embedding,
                known_labels(table.y, seen.rows),
                seen.score,
                seen.vote,
                f"t-NCA of {name}",
                table.task,
                comparison.score.name,
                full_score=seen.full_score,
                full_dimension=seen.full_dimension,
                target=table.target,
            )
        )
    return draw_displays(f"compare {table.name}", displays, path)


def understand(options: argparse.Namespace) -> None:
    """Replace the names of a score and of methods by what they mean for the task.

    "NCA tables", "nca-tables" and "nca_tables" are equivalent. Names that the task does not have
    raise an error, before any reading.
    """
    task, score, names = options.task, options.score, options.methods
    options.score = SCORE_OPTIONS.get(score or "", score)
    if score is not None and options.score not in SCORES[task]:
        short = {long: short for short, long in SCORE_OPTIONS.items()}
        raise TableError(
            f"--score {score} is not a score of {task}: give "
            f"{', '.join(short.get(n, n) for n in SCORES[task])}, or --task."
        )
    if names is None:
        return
    every = methods_by_name(task, semi_supervised=True, balanced=True)
    known = {name.lower().translate(SPACES): make for name, make in every.items()}
    given = [name.strip() for name in names.split(",") if name.strip()]
    keys = [name.lower().translate(SPACES) for name in given]
    unknown = [name for name, key in zip(given, keys, strict=True) if key not in known]
    if unknown or not given:
        raise TableError(
            f"--methods does not know {shown(','.join(unknown))}: name some of {', '.join(every)}."
        )
    options.methods = [known[key]() for key in dict.fromkeys(keys)]
