"""Columns that would fool a comparison: numbers of the rows, the target under another name, groups of rows."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._labels import is_missing, known_labels
from ..evaluation import CLASSIFICATION
from .readers import Columns
from .refusals import listed

MIN_ROWS = 20  # in fewer, anything may look like anything
MAX_ROWS, MAX_COLUMNS = 10_000, 10_000  # that are looked at; in wider tables some column predicts well by chance
NEARLY_ALL = 0.9  # of the rows have a value of their own: an identifier
# Last words of names, as in "patient_id", "orderNo", "KEY"; a column of them numbers the rows if its values differ.
ID_WORDS = {"id", "uuid", "guid", "index", "idx", "nr", "no", "number", "key", "code", "serial"}
GROUP_WORDS = {
    *("patient", "subject", "person", "participant", "user", "customer", "client", "speaker", "author", "donor"),
    *("session", "site", "hospital", "centre", "center", "batch", "household", "family", "group", "cluster"),
}
SURE = {True: 0.99, False: 0.999}  # from this accuracy, or R² of a regression, a column is suspicious
FEW = 20  # values, each of which may stand for a class, or a number


@dataclass(frozen=True)
class Suspects:
    """What was found.

    Attributes
    ----------
    left_out : list of (column, reason)
        Columns that say nothing: constants, numbers of the rows, identifiers.
    suspicious : list of (column, score)
        Columns that predict the target alone, and with which accuracy, or R² for a regression.
    group_hints : list of (column, n_values)
        Columns whose values may stand for groups of rows that belong together.
    """

    left_out: list[tuple[str, str]] = field(default_factory=list)
    suspicious: list[tuple[str, float]] = field(default_factory=list)
    group_hints: list[tuple[str, int]] = field(default_factory=list)

    def notes(self, target: str, task: str) -> list[str]:
        """Return a line on the suspicious columns, and one for each hint."""
        form = "{} ({:.1%} of the rows)" if task == CLASSIFICATION.name else "{} (R² {:.4f})"
        found = listed([form.format(name, score) for name, score in self.suspicious])
        verb = "predicts" if len(self.suspicious) == 1 else "each predict"
        suspicious = f"suspicious: {found} {verb} {target} alone: leave out what is not known before {target}"
        return [suspicious] * bool(found) + [
            f"{name} looks like groups of rows ({n_values} values): if the rows of one value belong together, give "
            f"--groups {shlex.quote(name)}"
            for name, n_values in self.group_hints
        ]


@dataclass(frozen=True)
class _Evidence:
    """A column: number of values; scores from rows of the same value, and of close ones; whether it is the target."""

    name: str
    n_values: int
    same: float
    close: float
    equal: bool
    discrete: bool
    named_group: bool

    @property
    def score(self) -> float:
        return max(self.same, self.close) if self.discrete or self.n_values <= FEW else self.close


def find_suspects(
    columns: Columns, kept: list[str], y: np.ndarray, task: str, left_out: list[tuple[str, str]], hints: bool
) -> Suspects:
    """Return the suspicious ones among the columns that are learned from; with `hints` also those of groups.

    A row is predicted from others, by rows of the same value and by the four closest ones (for a regression, on the
    line through the values below and above). Suspicious is what is nearly always right, far beyond the other columns
    and the largest class, and what maps one-to-one on the target. If more than a fifth of the columns predict that
    well, the task is easy. At most 10,000 rows are drawn; more than 10,000 columns, or sparse ones, are not looked at.
    Cost: O(n log n) per column.
    """
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~is_missing(y)))[:MAX_ROWS]
    labels, classify = known_labels(y, rows), task == CLASSIFICATION.name
    if len(rows) < MIN_ROWS or (labels == labels[0]).all() or len(kept) > MAX_COLUMNS or issparse(columns.numbers):
        return Suspects(left_out)
    target = np.unique(labels, return_inverse=True)[1] if classify else labels
    base = np.bincount(target).max() / len(rows) if classify else 0.0
    position = {name: place for place, name in enumerate(columns.number_names)}
    found = []
    with np.errstate(all="ignore"):  # squares of huge numbers are infinite, and then the score is NaN: not suspicious
        for name in kept:
            is_text = name in columns.text
            values = columns.text[name].indices.to_numpy() if is_text else columns.numbers[:, position[name]]
            found.append(_evidence(name, values[rows], is_text, target, classify))
    groups = _groups(found, columns, position, target, base, classify) if hints else []
    return Suspects(left_out, _suspicious(found, base, len(rows), SURE[classify]), groups)


def _suspicious(found: list[_Evidence], base: float, n_rows: int, sure: float) -> list[tuple[str, float]]:
    found = [column for column in found if not column.named_group]
    sure_ones = [column for column in found if column.score >= sure]
    rest = max([base, *(column.score for column in found if column.score < sure)])
    easy = len(sure_ones) > max(1, len(found) // 5) or len(found) == 1
    margin = max(5 / n_rows, 0.05 * (1 - base))
    return [
        (column.name, column.score)
        for column in sure_ones
        if column.equal or (not easy and 1 - rest >= 4 * (1 - column.score) + margin)
    ]


def _groups(
    found: list[_Evidence], columns: Columns, position: dict[str, int], target: np.ndarray, base: float, classify: bool
) -> list[tuple[str, int]]:
    """Return the columns that a name, or equal labels of the rows of one value and of no close one, give away."""
    n_classes, hints = len(np.unique(target)) if classify else 0, []
    for column in (column for column in found if column.discrete):
        by_label = max(FEW, 2 * n_classes) < column.n_values <= len(target) / 2 and column.same >= 0.9
        error, close_error = 1 - column.same, 1 - column.close
        by_label = by_label and 4 * error <= 1 - base and close_error >= 2 * error + 0.05 * (1 - base)
        if column.named_group or by_label:
            values = columns.text.get(column.name)
            counted = np.unique(columns.numbers[:, position[column.name]]) if values is None else values.dictionary
            if max(10, n_classes + 1) <= len(counted) <= NEARLY_ALL * columns.numbers.shape[0]:
                hints.append((column.name, len(counted)))
    return hints


def _evidence(name: str, values: np.ndarray, is_text: bool, target: np.ndarray, classify: bool) -> _Evidence:
    distinct, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    discrete = is_text or bool((distinct == np.rint(distinct)).all())
    if classify:
        same, equal = _same_classes(codes, len(distinct), target)
        close = 0.0 if is_text else _close_classes(values, target)
    else:
        total = ((target - target.mean()) ** 2).sum()
        means = np.bincount(codes, target) / counts
        others = np.where(counts > 1, counts / np.maximum(counts - 1, 1), 0)[codes]  # without the row itself
        single = (counts == 1)[codes]
        same = 1 - (np.where(single, target - target.mean(), others * (target - means[codes])) ** 2).sum() / total
        close = 0.0 if is_text else 1 - ((target - _on_lines(distinct, means)[codes]) ** 2).sum() / total
        equal = max(same, close) >= 1 - 1e-9
    same, close = np.nan_to_num([same, close], neginf=0).tolist()
    return _Evidence(name, len(distinct), same, close, equal, discrete, discrete and says_group(name))


def _same_classes(codes: np.ndarray, n_values: int, target: np.ndarray) -> tuple[float, bool]:
    """Return the accuracy of a vote among the other rows of the same value, and if values and classes are one-to-one."""
    n_classes = int(target.max()) + 1
    pairs, counts = np.unique(codes * n_classes + target, return_counts=True)
    order = np.lexsort((counts, value := pairs // n_classes))
    ends = np.flatnonzero(np.diff(value[order], append=n_values))  # the largest class of every value, and the next one
    first, starts = counts[order][ends], np.append(0, ends[:-1] + 1)
    second = np.where(ends > starts, counts[order][ends - 1], 0)
    return first[first > second + 1].sum() / len(codes), len(pairs) == n_values == n_classes


def _close_classes(values: np.ndarray, target: np.ndarray) -> float:
    """Return the accuracy of a vote among the four rows around a row; the closest one decides two against two."""
    order, row = np.argsort(values, kind="stable"), np.arange(len(values))
    labels, gaps = target[order], np.diff(values[order], prepend=-np.inf, append=np.inf)
    start = np.clip(row - 2, 0, len(row) - 5)
    votes = sum((labels[start + place] == labels).astype(int) for place in range(5)) - 1
    closest = labels[np.where(gaps[1:] < gaps[:-1], row + 1, row - 1)]
    return float(np.mean((votes > 2) | ((votes == 2) & (closest == labels))))


def _on_lines(x: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return for each of the sorted values the height of the line through the means at two others close to it."""
    if len(x) < 3:
        return means[::-1]
    left, right = np.arange(len(x)) - 1, np.arange(len(x)) + 1
    left[[0, -1]], right[[0, -1]] = [1, len(x) - 3], [2, len(x) - 2]
    return means[left] + (means[right] - means[left]) * (x - x[left]) / (x[right] - x[left])


def says_id(name: str) -> bool:
    """Tell whether a name is that of an identifier, such as "userId"."""
    return _words(name)[-1] in ID_WORDS


def says_group(name: str) -> bool:
    """Tell whether a name is that of groups of rows, such as "patient", "Patient ID" or "store_id"."""
    words = _words(name)
    return words[-1] == "id" or (not GROUP_WORDS.isdisjoint(words) and (GROUP_WORDS | ID_WORDS | {"name"}).issuperset(words))


def _words(name: str) -> list[str]:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.findall(r"[^\W\d_]+", re.sub(rf"\b({'|'.join(sorted(GROUP_WORDS))})id\b", r"\1_id", name)) or [""]
