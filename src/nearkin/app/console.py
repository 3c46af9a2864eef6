"""What the command prints: a bar while it works, then the ranking, the verdict and the remarks.

Nothing from a table is read as markup, and in a pipe there are no bars, colours or cut lines.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from rich import box, progress
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table as Grid
from rich.text import Text
from scipy.sparse import issparse

from .._memory import human_bytes
from ..evaluation import CLASSIFICATION, Comparison, MethodResult
from .model import MAX_NAME, Model
from .one_split import Ranking, Result, interval
from .sentences import WORDING, format_p, notes, verdict
from .table import Table, listed

FEW = 10
STYLES = {"better": "bold green", "worse": "red", "baseline": "bold", "unclear": ""}


def _console(*, stderr: bool = False) -> Console:
    """Return a console that takes text as it is; wide enough for the ranking where no terminal sets its width."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 100
    return console


def say(text: str, style: str = "", *, stderr: bool = False) -> None:
    """Print a line; a long one is wrapped between words on a terminal, and left whole elsewhere."""
    console = _console(stderr=stderr)
    console.print(Text(printable(text), style=style), soft_wrap=not console.is_terminal)


def remark(lines: Sequence[str], *, quiet: bool) -> None:
    """Print remarks on standard error: standard output is for the result."""
    if not quiet:
        for line in lines:
            say(line, stderr=True)


def print_quietly(report: Callable[[], Any]) -> None:
    """Print; if the reader of a pipe has gone (`| head`), go on in silence: there may be files to write."""
    try:
        report()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the first into the second
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(markdown: str) -> None:
    """Print Markdown: laid out on a terminal, as it is elsewhere."""
    console = _console()
    console.print(Markdown(markdown) if console.is_terminal else Text(printable(markdown)), soft_wrap=True)
    console.print()


def printable(text: str) -> str:
    """Return text in which what would command a terminal is spelled out; tables and files may hold anything."""
    return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in text)


def announce(table: Table) -> None:
    """Print what was read."""
    kind = "sparse features" if issparse(table.X) else "features"
    grouped = "" if table.groups is None else f", {len(np.unique(table.groups))} groups"
    say(f"{table.name}: {rows_of(table)}, {table.X.shape[1]} {kind}, {target_facts(table)}{grouped}")
    for note in table.notes:
        say(f"  {note}")


def rows_of(table: Table, form: str = "d") -> str:
    """Return how many rows there are, and how many of them have a label if not all do."""
    n_rows, n_labelled = table.X.shape[0], len(table.labelled)
    return f"{n_rows:{form}} rows" + ("" if n_labelled == n_rows else f" ({n_labelled:{form}} labelled)")


def target_facts(table: Table) -> str:
    """Return what the target holds."""
    values, counts = np.unique(table.labels, return_counts=True)
    if table.task == CLASSIFICATION.name:
        return f"{len(values)} classes of {counts.min()} to {counts.max()} rows"
    return f"{len(values)} values from {values[0]:.4g} to {values[-1]:.4g}"


def announce_folder(name: str, sizes: np.ndarray, facts: Sequence[str], notes: Sequence[str]) -> None:
    """Print what a folder holds, for classes of these sizes."""
    say(f"{name}: {', '.join(facts)}, {len(sizes)} classes of {sizes.min()} to {sizes.max()} rows")
    for note in notes:
        say(f"  {note}")


def report(comparison: Comparison) -> None:
    """Print the ranking, the verdict and the remarks."""
    optional = ("fit", WORDING[comparison.task.name].headings[1], "dim", "p")
    _print_grid([cells(result) for result in comparison.results], comparison.results, optional)
    scaled = "standardized" if comparison.scale else "unscaled"
    say(
        f"{comparison.n_neighbors}-NN on {scaled} features, {len(comparison.folds)} held-out folds, seed "
        f"{comparison.random_state}: mean ± standard deviation, median dimension (range), p after Holm"
    )
    say(verdict(comparison), style="bold")
    for note in notes(comparison):
        say(f"  {note}")


def report_split(ranking: Ranking) -> None:
    """Print the ranking by one split, the verdict and the remarks."""
    _print_grid([_split_cells(result) for result in ranking.results], ranking.results, ("fit", "dim"))
    scaled = "standardized" if ranking.scaled else "unscaled"
    say(
        f"{ranking.n_neighbors}-NN on {scaled} features, {ranking.n_train} training rows, {ranking.n_held_out} "
        f"held-out rows, seed {ranking.seed}: ± holds in 95% of the draws of held-out rows, for all methods at once"
    )
    say(ranking.verdict, style="bold")
    for note in ranking.notes:
        say(f"  {note}")


def _split_cells(result: Result) -> dict[str, str]:
    """Return the line of the ranking by one split for a method."""
    return {
        "method": result.name,
        "accuracy %": f"{100 * result.accuracy:.1f}",
        "dim": str(result.n_components),
        "fit": _duration(result.fit_seconds),
        "vs raw": "" if result.status == "baseline" else interval(result),
        "verdict": result.status,
    }


def _print_grid(rows: list[dict[str, str]], results: Sequence[Any], optional: Sequence[str]) -> None:
    """Print a ranking, on a narrow terminal without its less needed columns: a figure is never cut."""
    console = _console()
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
    for name in optional:
        if sum(widths.values()) + len(widths) - 1 > console.width:
            del widths[name]
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    for name, size in widths.items():
        grid.add_column(name, justify="left" if name in ("method", "verdict") else "right", min_width=size)
    for row, result in zip(rows, results, strict=True):
        grid.add_row(*(row[name] for name in widths), style=STYLES[result.status])
    console.print(grid)
    console.print()


def cells(result: MethodResult) -> dict[str, str]:
    """Return the line of the ranking for a method."""
    low, middle, high = np.percentile(result.dimension, [0, 50, 100]).astype(int)
    baseline, words = result.status == "baseline", WORDING[result.task.name]
    return {
        "method": result.name,
        words.headings[0]: words.mean_std(result.score),
        words.headings[1]: words.second_mean_std(result.second_score),
        "dim": str(middle) if low == high else f"{middle} ({low}-{high})",
        "fit": _duration(result.fit_seconds.mean()),
        "vs raw": "" if baseline else words.signed(result.difference),
        "p": "" if baseline else format_p(result.p_value),
        "verdict": result.status,
    }


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def describe(model: Model, path: Path) -> None:
    """Print what a model is, how good it was on held-out rows, and what it does to the features."""
    names, held_out = model.encoder.feature_names, model.held_out
    words, score = WORDING[model.task], model.question.score_name
    one_split = held_out["folds"] == 1  # of a folder: the held-out rows were not learned from
    rows, folds = ("part of ", "one split") if one_split else ("", f"{held_out['folds']:.0f} folds")
    say(
        f"{path}: {model.method}, learned from {rows}{model.n_rows} rows of {model.table} ({len(names)} features, "
        f"{_asked(model)}), saved by nearkin {model.versions['nearkin']}"
    )
    beaten = f", p {format_p(held_out['p_value'])}" if "p_value" in held_out else ""
    say(
        f"Held out: {model.n_neighbors}-NN {words.vote(held_out[score])} ± {words.figure(held_out['std'])} "
        f"({folds}); on the raw features {words.figure(held_out[f'raw_{score}'])}{beaten}"
    )
    smaller = f"{len(names) / model.n_components:.1f} times smaller"
    say(f"Vectors: {len(names)} features to {model.n_components} coordinates, {smaller}")
    say(f"File: {human_bytes(path.stat().st_size)}, with the coordinates of all rows that vote")
    if "spectrum" in model.arrays:
        say(f"Eigenvalues: {listed([f'{value:.3g}' for value in model.arrays['spectrum']], 12)}")
    if model.graph:
        say("\nCoordinates follow a graph of the rows: no feature is stretched alike everywhere.")
        return
    step = "a standard deviation" if "scale" in model.arrays else "a unit"
    say(f"\nHow far {step} of a feature moves a row, relative to the average (above 1: stretched; near 0: ignored)")
    console = _console()
    console.print(_stretches(model.stretch, names))


def _asked(model: Model) -> str:
    if model.question is CLASSIFICATION:
        return f"{len(model.classes)} classes of {model.target!r}"
    values = model.arrays["answers"]
    return f"numbers from {values.min():.4g} to {values.max():.4g} of {model.target!r}"


def _stretches(stretch: np.ndarray, names: list[str]) -> Grid:
    """Return the features by their stretch, of many only the extremes."""
    order = np.argsort(-stretch, kind="stable").tolist()
    shown = [*order[:FEW], None, *order[-FEW:]] if len(order) > 2 * FEW else order
    grid = Grid(box=None, show_header=False, padding=(0, 1, 0, 0))
    for justify in ("right", "left", "left"):
        grid.add_column(justify=justify)
    for feature in shown:
        if feature is None:
            grid.add_row("", "", f"... {len(order) - 2 * FEW} more")
        else:
            bar = "█" * round(20 * stretch[feature] / max(stretch.max(), 1e-300))
            grid.add_row(f"{stretch[feature]:.2f}", bar, Text(printable(names[feature][:MAX_NAME]), overflow="fold"))
    return grid


class Progress:
    """Shows work done: a bar with the time left on a terminal; elsewhere a line for each finished task, if wanted."""

    def __init__(self, unit: str, *, quiet: bool = False, lines: bool = True) -> None:
        console = _console(stderr=True)
        self._bar = progress.Progress(
            progress.TextColumn("{task.description:20}"),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn(unit),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._unit = unit
        self._lines = lines and not quiet and not console.is_terminal
        self._task: progress.TaskID | None = None
        self._name = ""
        self._start = 0.0

    def __enter__(self) -> Progress:
        """Start drawing."""
        if not self._bar.disable:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the bar away."""
        if not self._bar.disable:
            self._bar.stop()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show that `done` of `total` units of a task are finished."""
        if name != self._name:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._name, self._start = name, time.perf_counter()
            self._task = self._bar.add_task(name, total=total)
        assert self._task is not None
        self._bar.update(self._task, completed=done)
        if done == total and self._lines:
            seconds = time.perf_counter() - self._start
            print(f"{name}: {total} {self._unit} in {seconds:.1f} s", file=sys.stderr, flush=True)
