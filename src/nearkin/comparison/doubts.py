"""Doubts: reasons why new rows may be predicted worse than the held-out ones.

Each is one function of the protocol and the table that returns a doubt or None.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import f

from .._messages import listed, shown
from ..statistics import SIGNIFICANCE
from .protocol import HALF, Protocol, few_decide
from .scores import CLASSIFICATION
from .table import EncodedTable
from .times import find_later

MOST_NAMED = 3  # maximum number of rows with a huge number that are listed
FEWEST_IN_TAIL = 20  # distances, whose gaps show what is usual in the tail


@dataclass(frozen=True)
class Doubt:
    """A reason why predictions for new rows may be worse than for the held-out ones.

    Attributes
    ----------
    code : {"twins", "chains", "huge", "leak", "groups", "time"}
        Twins were split; rows form tight groups of more than ten; a few target values that stand
        far apart may be wrong; a column may contain the target; rows that may belong together were
        split; later rows are harder to predict than random ones.
    sentence : str
        What was found.
    remedy : str
        What to do, or to expect.
    """

    code: str
    sentence: str
    remedy: str

    @property
    def text(self) -> str:
        """Return the sentence and the remedy."""
        return f"{self.sentence} {self.remedy}"


def twins(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: twins were split like other rows."""
    if not (protocol.keep_twins and protocol.n_twins):
        return None
    return Doubt(
        "twins",
        "twins were split like other rows, so that some were predicted from their own twin.",
        "Expect less of new rows.",
    )


def chains(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: rows hang together in groups of more than ten, which the folds split."""
    if not protocol.n_chained:
        return None
    about = "" if protocol.n_chained == len(protocol.labelled) else "about "
    return Doubt(
        "chains",
        f"{about}{protocol.n_chained:,} rows hang together in groups of more than ten: near copies "
        "that share their target, as the rows around them do not.",
        "Give groups (--groups): without these no method is called better.",
    )


def huge(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: a few numbers of the target lie beyond a gap that no long tail explains."""
    rows, y = protocol.labelled, protocol.y[protocol.labelled]
    if protocol.task == CLASSIFICATION or not stand_apart(y):
        return None
    places, median = huge_numbers(y), np.median(y)
    rows, far = table.in_file(rows[places]).tolist(), y[places]
    named = [f"row {row} ({value:.6g})" for row, value in zip(rows, far.tolist(), strict=True)]
    times, ends = "", np.sort(far)[[0, -1]] / (median or np.nan)
    # if there are numbers of both signs, the median is not a typical magnitude
    if y.min() >= 0 and ends[0] >= 2:
        low, high = (f"{end:,.0f}" for end in ends)
        times = f", {low}{f' to {high}' * (low != high)} times the median"
    stand, are, them = ("stand", "they are", "them") if len(far) > 1 else ("stands", "it is", "it")
    return Doubt(
        "huge",
        f"{len(far):,} of {len(y):,} numbers {stand} far apart from the others{times}: "
        f"{listed(named, MOST_NAMED)}.",
        f"If {are} wrong, correct or drop {them}.",
    )


def huge_numbers(y: np.ndarray) -> np.ndarray:
    """Return the positions of the numbers that decide R², the farthest from the median first.

    Among the farthest twentieth (at least five), these are the numbers before a gap: the largest
    ratio of consecutive distances before which there is more than half of the sum of squares.
    """
    distances = np.abs(y - np.median(y))
    distances = distances / distances.max()
    order = np.argsort(-distances, kind="stable")
    few = distances[order[: max(5, len(y) // 20) + 1]]
    shares = np.cumsum(few[:-1] ** 2) / np.sum(distances**2)
    ratios = few[:-1] / np.maximum(few[1:], 1e-12)  # many numbers may equal the median
    return order[: np.where(shares > HALF, ratios, 0.0).argmax() + 1]


def stand_apart(y: np.ndarray) -> bool:
    """Return whether a few numbers decide R² and lie beyond a gap that no long tail explains.

    A skewed target, such as prices, has huge numbers that are right. In a tail that falls as a
    power, and even more slowly than one of logarithms that are normal, the ratios of consecutive
    distances from the median, d_(1) >= d_(2) >= ..., are independent: k log(d_(k) / d_(k + 1)) are
    exponential with one mean (Rényi's representation). The gap after the huge numbers is tested
    against the others of the farthest tenth, at .05, corrected for the choice of the gap.
    """
    if not few_decide(y):
        return False
    distances = np.sort(np.abs(y - np.median(y)))[::-1]
    distances, n_huge = distances[distances > 0], len(huge_numbers(y))
    n_tail = min(max(FEWEST_IN_TAIL, len(distances) // 10), len(distances) - 1)
    if n_tail < 2 or n_huge > n_tail:
        return False
    spacings = -np.arange(1, n_tail + 1) * np.diff(np.log(distances[: n_tail + 1]))
    others = np.delete(spacings, n_huge - 1).mean()
    p_value = f.sf(spacings[n_huge - 1] / max(others, 1e-12), 2, 2 * (n_tail - 1))
    return bool(max(5, len(y) // 20) * p_value < SIGNIFICANCE)


def leak(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: a column predicts the target alone."""
    if not table.suspects.suspicious:
        return None
    return Doubt(
        "leak",
        f"{table.suspects.leak(table.target, protocol.task.name)}.",
        "Leave out what is not known beforehand, or these scores say nothing about new rows.",
    )


def groups(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: a column looks like groups of rows, which the folds split."""
    names = [name for name, _ in table.suspects.group_hints]
    if not names:
        return None
    return Doubt(
        "groups",
        f"{listed(names)} {'looks' if len(names) == 1 else 'look'} like groups of rows.",
        "For rows of new groups, expect worse scores than these; give groups (--groups "
        f"{shlex.quote(names[0])}) to see how much worse.",
    )


def time(protocol: Protocol, table: EncodedTable) -> Doubt | None:
    """Doubt: later rows are harder to predict than random ones.

    With groups this is not examined: they stay on one side of a fold, and random rows would show
    something else.
    """
    if protocol.grouped or table.encoder is None:
        return None
    classify = protocol.task == CLASSIFICATION
    found = find_later(table.X, table.y, table.encoder.columns_, classify=classify)
    if found is None:
        return None
    if classify:
        later, drawn = 1 - found.error, 1 - found.of_random
        figures = f"right in {later:.0%} of the later ones, but in {drawn:.0%} of"
    else:
        later, drawn = found.error, found.of_random
        figures = f"off by {later:.3g} on average for the later ones, but by {drawn:.3g} for"
    return Doubt(
        "time",
        f"rows are of different times (column {shown(found.column)}), and the folds shuffle them. "
        f"k-NN trained on the earliest {found.share:.0%} is {figures} as many drawn at random.",
        "Expect worse scores for later rows: to see how much worse, train on the earlier rows "
        "only, and predict the later ones.",
    )


# in the order in which they are said
DOUBTS: tuple[Callable[[Protocol, EncodedTable], Doubt | None], ...] = (
    twins,
    chains,
    huge,
    leak,
    groups,
    time,
)


def doubts_of(protocol: Protocol, table: EncodedTable) -> tuple[Doubt, ...]:
    """Return all doubts about a comparison."""
    found = (doubt(protocol, table) for doubt in DOUBTS)
    return tuple(doubt for doubt in found if doubt is not None)
