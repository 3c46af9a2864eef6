"""An experiment of a paper: what it is called, how it runs, and how its numbers are printed.

An experiment yields pieces of Markdown as they are ready: tables, sentences, pictures. It computes
what the paper shows and prints what the paper prints beside it. What the paper leaves open is said
in `Experiment.settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .data import Data


@dataclass(frozen=True)
class Experiment:
    """A table or a figure of a paper.

    Attributes
    ----------
    name : str
        What the command calls it, e.g. "nmmp-table4".
    title : str
    settings : tuple of str
        What the paper leaves open, and what is done here.
    run : function
        Yields pieces of Markdown.
    threads : int or None
        Threads of BLAS; 1 where matrices are small: threads would wait for one another most of the
        time.
    """

    name: str
    title: str
    settings: tuple[str, ...]
    run: Callable[[Run], Iterator[str]]
    threads: int | None = 1


@dataclass(frozen=True)
class Run:
    """What a user requested, and where things are.

    Attributes
    ----------
    data : Data
    figures : Path
        Folder for pictures; it exists.
    link : str
        What Markdown puts before the name of a picture.
    n_splits : int or None
        Random splits; None for as many as the paper has.
    quick : bool
        Whether a glance will do: few splits, and of large sets a part.
    progress : function of (what is done, done, total)
    """

    data: Data
    figures: Path
    link: str = ""
    n_splits: int | None = None
    quick: bool = False
    progress: Callable[[str, int, int], None] = lambda *_: None

    def splits(self, paper: int, quick: int = 3) -> int:
        """Return the number of random splits."""
        return self.n_splits or (quick if self.quick else paper)

    def repeat(self, what: str, n: int) -> Iterator[tuple[int, np.random.Generator]]:
        """Yield the number of each of n splits and its own generator: the first ones do not depend
        on n.
        """
        for number in range(n):
            yield number, np.random.default_rng([0, number])
            self.progress(what, number + 1, n)

    def picture(self, name: str, figure: Any, caption: str) -> str:
        """Keep a picture, and return it as Markdown."""
        figure.savefig(self.figures / f"{name}.png", dpi=100)
        return f"![{caption}]({self.link}{name}.png)"


@dataclass(frozen=True)
class Printed:
    """A mean that a paper prints, and the standard deviation over its splits."""

    mean: float
    std: float

    @property
    def digits(self) -> int:
        """How many decimals the paper prints."""
        return max(len(str(value).partition(".")[2]) for value in (self.mean, self.std))

    def z(self, values: Any) -> float:
        """Return how far the mean of ours is off, in standard deviations of the paper's."""
        return float((np.mean(values) - self.mean) / self.std)

    def beside(self, values: Any) -> str:
        """Return ours, and theirs in brackets."""
        ours, theirs = (f"{np.mean(one):.{self.digits}f}" for one in (values, self.mean))
        return f"{ours} ({theirs}; z {self.z(values):+.1f})"


def mean_std(values: Any, digits: int = 1) -> str:
    """Return mean and standard deviation (ddof=1) of the splits."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}"


def paired(ours: Any, theirs: Any, digits: int = 1) -> str:
    """Return mean and standard deviation of the differences, split by split."""
    # not the standard error, which would take the splits for independent: they share rows
    difference = np.subtract(ours, theirs)
    return f"{difference.mean():+.{digits}f} ± {difference.std(ddof=1):.{digits}f}"


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a table as Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in cells)} |" for cells in lines)
