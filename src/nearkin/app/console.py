"""Console output: a bar while the command works, then ranking, verdict and notes.

Text from tables is never interpreted as markup. In a pipe there are no bars, colours or truncated
lines.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from rich import box, progress
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from .._messages import in_line
from .endings import printable

SECONDS_A_LINE = 10.0  # between lines of progress, if no bar can be drawn
STYLES = {"better": "bold green", "worse": "red", "baseline": "bold"}
LEFT = ("method", "vectors", "verdict", "label", "probably", "nearest rows")  # left-aligned
# below the header and above the references
FRAME = box.Box("    \n    \n ── \n    \n ── \n    \n    \n    \n")


def opened_console(*, stderr: bool = False) -> Console:
    """Return a console without markup, which is wide if no terminal sets its width."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 140
    return console


def say(text: str, style: str = "", *, stderr: bool = False) -> None:
    """Print a line, wrapped between words on a terminal only."""
    console = opened_console(stderr=stderr)
    console.print(Text(printable(in_line(text)), style=style), soft_wrap=not console.is_terminal)


def print_grid(lines: Sequence[dict[str, str]], spared: Sequence[str]) -> None:
    """Print a table of text whose first column is a name; better is green, worse is red.

    A narrow terminal omits the `spared` columns.
    """
    console, grid = opened_console(), Grid(box=FRAME, show_edge=False, padding=0)
    lines = [{name: printable(in_line(cell)) for name, cell in line.items()} for line in lines]
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
        console = opened_console(stderr=True)
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
