"""Console output: a bar while the command works, then ranking, verdict and notes.

Text from tables is never interpreted as markup. In a pipe there are no bars, colours or truncated
lines.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich import box, progress
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from .._memory import human_bytes
from .._messages import counted, listed
from ..plotting import LEAST_EFFECT
from .adapter_file import SavedAdapter
from .endings import printable
from .model import Model
from .words import WORDING, Summary, span, stated_p

FEW = 10
SECONDS_A_LINE = 10.0  # between lines of progress, if no bar can be drawn
STYLES = {"better": "bold green", "worse": "red", "baseline": "bold"}
LEFT = ("method", "vectors", "verdict", "label", "probably", "nearest rows")  # left-aligned
# below the header and above the references
FRAME = box.Box("    \n    \n ── \n    \n ── \n    \n    \n    \n")


def _console(*, stderr: bool = False) -> Console:
    """Return a console without markup, which is wide if no terminal sets its width."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 140
    return console


def say(text: str, style: str = "", *, stderr: bool = False) -> None:
    """Print a line, wrapped between words on a terminal only."""
    console = _console(stderr=stderr)
    console.print(Text(printable(text), style=style), soft_wrap=not console.is_terminal)


def report(summary: Summary) -> None:
    """Print the ranking, the verdict and the notes."""
    print_grid(summary.lines, ("fit", summary.second.heading, "dim", "vote", "p"))
    finding, *others = summary.verdict.split("\n")
    say(finding, style="bold")
    for text in (*others, summary.caption, *(f"  {note}" for note in summary.notes)):
        say(text)


def print_grid(lines: Sequence[dict[str, str]], spared: Sequence[str]) -> None:
    """Print a table of text whose first column is a name; better is green, worse is red.

    A narrow terminal omits the `spared` columns.
    """
    console, grid = _console(), Grid(box=FRAME, show_edge=False, padding=0)
    lines = [{name: printable(cell) for name, cell in line.items()} for line in lines]
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in lines[0]}
    for name in spared:
        if sum(widths.values()) + len(widths) - 1 > console.width:
            widths.pop(name, None)
    for name, width in widths.items():
        side: Literal["left", "right"] = "left" if name in LEFT else "right"
        grid.add_column(name, justify=side, min_width=width)
    for line, after in zip(lines, [*lines[1:], lines[0]], strict=True):
        verdict = line.get("verdict", "")
        ends = verdict != "reference" == after.get("verdict")
        cells = [line[name] for name in widths]
        grid.add_row(*cells, style=STYLES.get(verdict, ""), end_section=ends)
    console.print(grid, "")


def describe(model: Model, path: Path) -> None:
    """Print what a model is, its held-out accuracy, and what it does to the features."""
    held_out, values = model.held_out, model.arrays["answers"]
    n_features, n_folds = len(model.feature_names), held_out["folds"]
    words, features = WORDING[model.score].at(held_out["raw"]), counted(n_features, "feature")
    # for a folder, or few labels
    part = "part of " * (n_folds == 1 and model.n_voters < model.n_rows)
    target = counted(len(model.classes), "class")
    if not model.classes:
        target = f"numbers {span(values.min(), values.max())}"
    say(
        f"{path}: {model.method}, learned from {part}{counted(model.n_rows, 'row')} of "
        f"{model.table} ({features}, {target} of {model.target!r}), saved by nearkin "
        f"{model.version}"
    )
    proof = []  # as far as it is known
    if {"low", "high"} <= held_out.keys():
        low, high = (words.signed(held_out[end]) for end in ("low", "high"))
        proof.append(f"95% interval of the difference {low} to {high}{words.points}")
    if "p_value" in held_out:
        proof.append(f"p {stated_p(held_out['p_value'])}")
    raw = words.other.format(words.figure(held_out["raw"]))
    vote = model.voting.format(model.vote)
    folds = f"{n_folds:.0f} folds" if n_folds > 1 else "one split"
    say(
        f"Held out: the {vote} {words.predicate(held_out['score'])} ({folds}), raw k-NN {raw}"
        + f" ({', '.join(proof)})" * bool(proof)
    )
    for doubt in model.doubts:
        say(f"In doubt: {doubt}")
    ratio = f"{n_features / model.n_components:.1f}"
    smaller = f", {ratio} times smaller" * (float(ratio) > 1)
    size = human_bytes(path.stat().st_size)
    say(
        f"Vectors: {features} to {counted(model.n_components, 'coordinate')}{smaller}; the file "
        f"takes {size}"
    )
    shares = model.encoding_shares
    if len(shares) > 1:
        mixed = listed([f"{name} {share:.0%}" for name, share in shares.items()])
        say(f"Numbers are encoded in {len(shares)} ways, with these weights: {mixed}")
    if model.held_out_rows is not None:
        rows = counted(len(model.held_out_rows.places), "held-out row")
        say(f"It keeps {rows}: predict reports familiarity, and takes --coverage and --drift")
    if "spectrum" in model.arrays:
        values = [f"{value:.3g}" for value in model.arrays["spectrum"]]
        say(f"{model.spectrum_is}: {listed(values, 12)}")
    if model.effects is None:
        say("\nCoordinates follow a graph of the rows: no feature is stretched evenly everywhere.")
        return
    names, stretch, unit = model.effects
    say(f"\nHow far {unit}")
    grid = Grid.grid(padding=(0, 1, 0, 0))
    full = max(stretch.max(), LEAST_EFFECT)  # the length of a full bar
    order = np.argsort(-stretch, kind="stable").tolist()
    n_hidden = len(order) - 2 * FEW if len(order) > 3 * FEW else 0
    for place, feature in enumerate(order):
        if n_hidden and place == FEW:
            grid.add_row("", "", f"... {n_hidden:,} more")
        if place < FEW or place >= FEW + n_hidden:
            bar = "█" * round(20 * stretch[feature] / full)
            name = Text(printable(names[feature]), overflow="fold")
            grid.add_row(f"{stretch[feature]:.2f}", bar, name)
    _console().print(grid)


def describe_adapter(adapter: SavedAdapter, path: str) -> None:
    """Print what an adapter is, and its scores on held-out queries."""
    found = adapter.held_out
    side = {
        "query": "queries only: documents stay as they are",
        "document": "documents only: queries of the new model stay as they are",
    }.get(adapter.map.side, "queries and documents")
    say(f"{path}: {adapter.name}, learned from {adapter.table}, saved by nearkin {adapter.version}")
    say(
        f"Vectors: {adapter.map.n_features_in_} dimensions to {adapter.map.n_components_}, "
        f"{adapter.bytes} bytes each, of {side}"
    )
    say(
        f"Held out: {adapter.score} {100 * found['adapter']:.1f}, "
        f"{adapter.baseline} {100 * found['raw']:.1f} "
        f"(95% interval of the difference {100 * found['low']:+.1f} to {100 * found['high']:+.1f} "
        f"points), {found['n_queries']:,.0f} "
        f"queries{'' if adapter.part == 'queries' else f' of {adapter.part}'}"
    )


def while_reading(options: argparse.Namespace, read: Callable[..., Any]) -> Any:
    """Read a table, with progress only on a terminal, as reading does not take long."""
    with Progress("%", quiet=options.quiet, lines=False) as progress:
        return read(
            progress=lambda done, total: progress(
                f"reading {options.table}", 100 * done // max(total, 1), 100
            )
        )


class Progress(progress.Progress):
    """Shows progress: a bar with the remaining time on a terminal, else lines.

    With `lines`, there is one line for each finished task, and one every ten seconds for a long
    task.
    """

    def __init__(self, unit: str, *, quiet: bool = False, lines: bool = True) -> None:
        console = _console(stderr=True)
        super().__init__(
            progress.TextColumn("{task.description:20}", markup=False),
            *self.get_default_columns()[1:],
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._unit = unit
        self._lines = lines and not quiet and not console.is_terminal
        self._last_line = time.monotonic()

    def stop(self) -> None:
        """Remove the bar; rich would end a bar that was never drawn with an empty line."""
        if not self.disable:
            super().stop()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Show that `done` of `total` units of a task are finished.

        The name of a task may change while it runs.
        """
        name = printable(name)
        for task in self.tasks:
            if task.finished or task.total != total or task.completed > done:
                self.remove_task(task.id)
        if not self.tasks:
            self.add_task(name, total=total)
        self.update(self.task_ids[0], completed=done, description=name)
        if not self._lines:
            return
        seconds = self.tasks[0].elapsed or 0.0
        if done == total:
            print(f"{name}: {total:,} {self._unit} in {seconds:.1f} s", file=sys.stderr, flush=True)
        elif time.monotonic() - self._last_line > SECONDS_A_LINE:
            print(
                f"{done:,} of {total:,} {self._unit}, {seconds:.0f} s", file=sys.stderr, flush=True
            )
        else:
            return
        self._last_line = time.monotonic()
