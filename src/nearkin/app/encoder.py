"""Columns of numbers and words to rows of numbers, the same way for every table that a model meets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import compute
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._memory import require_memory
from .readers import TEXT, Columns, is_number
from .refusals import TableError, check_distinct, check_length, listed, note, quoted, shown
from .suspects import MIN_ROWS, NEARLY_ALL, says_group, says_id

MAX_ONE_HOT = 2000


@dataclass(frozen=True)
class ColumnEncoder:
    """Takes numbers as they are and gives text a column for each value that was there to learn from.

    Attributes
    ----------
    numbers : list of str
        Columns of numbers or truth values.
    categories : dict of str to list of str
        For each column of text its values, sorted. A value that is not among them becomes a row of zeros.
    """

    numbers: list[str]
    categories: dict[str, list[str]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Return the columns that a table must have."""
        return [*self.numbers, *self.categories]

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the encoded columns, such as "width" or "colour=red"."""
        return [*self.numbers, *(f"{name}={value}" for name, known in self.categories.items() for value in known)]

    def encode(self, columns: Columns) -> tuple[Any, list[str]]:
        """Return X of shape (n, p), in the memory of the columns' numbers, which are used up, and remarks on it.

        They name the columns that are ignored, and the values of text that were not there to learn from.
        """
        self._check(columns)
        n_codes = sum(map(len, self.categories.values()))
        require_memory(8 * columns.numbers.shape[0] * n_codes, "One-hot encoded text", "drop columns of text")
        position = {name: place for place, name in enumerate(columns.number_names)}
        start, chosen = len(self.numbers), np.array([position[name] for name in self.numbers], dtype=int)
        X = _rearranged(columns.numbers, chosen, n_codes)
        unknown = []
        for name, known in self.categories.items():
            text = columns.text[name]
            codes = compute.index_in(text.dictionary, value_set=pa.array(known, TEXT)).fill_null(-1).to_numpy()
            codes = codes[text.indices.to_numpy()]
            rows = np.flatnonzero(codes >= 0)
            X[rows, start + codes[rows]] = 1
            start += len(known)
            if len(rows) < len(codes):
                values = text.filter(pa.array(codes < 0)).unique().to_pylist()
                unknown.append(f"{quoted(sorted(values), 3)} in {name} ({len(codes) - len(rows)} rows)")
        needed = set(self.columns)
        return X, [
            *note("ignored, not learned from", [name for name in columns.all_names if name not in needed]),
            *note("unknown values, encoded as none of the known ones", unknown),
        ]

    def _check(self, columns: Columns) -> None:
        """Refuse text in place of numbers, and a table that can have none."""
        for name in self.numbers:
            if name in columns.text:
                text = columns.text[name]
                row = int(is_number(text.dictionary)[text.indices.to_numpy()].argmin())
                found = f"{shown(name)} holds text ({shown(text[row].as_py())} {columns.place(row)})"
                raise TableError(f"{columns.path}: {found}, but numbers were learned from there: give numbers.")
        if not columns.text.keys() >= self.categories.keys():
            found = f"the model learned from text in {quoted(self.categories, 5)}"
            raise TableError(f"{columns.path}: {found}: give a CSV or Parquet file.")


def learn_encoder(columns: Columns) -> tuple[ColumnEncoder, list[str], Any, list[tuple[str, str]]]:
    """Return an encoder for the columns to learn from, notes, names of the rows, and what is left out and why."""
    n_rows, text = columns.numbers.shape[0], columns.text
    varies = dict(zip(columns.number_names, _varying(columns.numbers).tolist(), strict=True))
    varies |= {name: len(column.dictionary) > 1 for name, column in text.items()}
    counters = _counters(columns)
    known = {name: len(column.dictionary) for name, column in text.items() if varies[name]}
    named = [
        name for name in columns.number_names if varies[name] and name not in counters and _identifies(name, columns)
    ]
    identifiers = [name for name in known if known[name] == n_rows]
    nearly = [name for name in known if n_rows >= MIN_ROWS and NEARLY_ALL * n_rows < known[name] < n_rows]
    reasons = {
        "numbers of the rows": counters,
        "constant": [name for name in columns.all_names if not varies.get(name, True) and name not in counters],
        "named as identifiers, and nearly all values differ": named,
        "text that differs in every row": identifiers,
        "text that differs in nearly every row": nearly,
    }
    left_out = [(name, reason) for reason, names in reasons.items() for name in names]
    ignored = {name for name, _ in left_out}
    numbers = [name for name in columns.number_names if name not in ignored]
    categories = {name: column.dictionary for name, column in text.items() if name not in ignored}
    if not numbers and not categories:
        why = listed([f"{name} ({reason})" for name, reason in left_out]) or "there are none"
        raise TableError(f"{columns.path}: no feature columns are left: {why}: add columns whose values vary.")
    _check_width(columns, categories)
    notes = [
        *(line for reason, names in reasons.items() for line in note(f"ignored, {reason}", names)),
        *note("read as text because of", _words_among_numbers({name: text[name] for name in known})),
        *note("one-hot encoded", [f"{name} ({len(values)} values)" for name, values in categories.items()]),
    ]
    encoder = ColumnEncoder(numbers, {name: sorted(values.to_pylist()) for name, values in categories.items()})
    check_distinct(f"{columns.path}, one-hot encoded,", encoder.feature_names)
    row_names = text[identifiers[0]].to_numpy(zero_copy_only=False) if identifiers else range(n_rows)
    return encoder, notes, row_names, left_out


def _varying(X: Any) -> np.ndarray:
    """Return for every column of finite numbers whether it changes; sparse X is kept whole if any does."""
    if issparse(X):
        return np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    return X.max(axis=0) != X.min(axis=0)


def _counters(columns: Columns) -> list[str]:
    """Return the columns that number the rows: whole steps of one size, in any order, from 20 rows on.

    Among fewer, only the index without a name that pandas writes: 0, 1, ... or 1, 2, ...
    """
    X, n_rows, names = columns.numbers, columns.numbers.shape[0], columns.number_names
    if issparse(X) or n_rows < 2:
        return []
    if n_rows < MIN_ROWS:
        nameless = [at for at, name in enumerate(names) if name.startswith(("Unnamed: ", "__index_level_"))]
        return [names[at] for at in nameless if X[0, at] in (0, 1) and (np.diff(X[:, at]) == 1).all()]
    low, high = (end.astype(float) / (n_rows - 1) for end in (X.min(axis=0), X.max(axis=0)))
    steps = high - low  # divided before, so that no difference overflows
    likely = np.flatnonzero((steps >= 0.999) & (np.abs(steps - np.rint(steps)) < 1e-9 * np.maximum(steps, 1)))
    return [names[at] for at in likely if (np.diff(np.sort(X[:, at])) == np.rint(steps[at])).all()]


def _identifies(name: str, columns: Columns) -> bool:
    """Tell whether a column of whole numbers is called an identifier and has nearly a value a row."""
    if issparse(columns.numbers) or not says_id(name) or (n_rows := columns.numbers.shape[0]) < MIN_ROWS:
        return False
    values = np.unique(columns.numbers[:, columns.number_names.index(name)])
    return len(values) > NEARLY_ALL * n_rows and bool((values == np.rint(values)).all())


def _words_among_numbers(text: dict[str, Any]) -> list[str]:
    """Return, for columns of which some values are numbers, the first that is none: it made the column text."""
    numbers = {name: is_number(column.dictionary) for name, column in text.items()}
    mixed = [name for name, found in numbers.items() if found.any() and not found.all()]
    return [f"{shown(text[name].dictionary[int(numbers[name].argmin())].as_py())} in {name}" for name in mixed]


def _check_width(columns: Columns, categories: dict[str, Any]) -> None:
    width = sum(map(len, categories.values()))
    if width > MAX_ONE_HOT:
        widest = shown(max(categories, key=lambda name: len(categories[name])))
        found = f"text columns hold {width} different values, most of them {widest}"
        remedy = "drop it, or merge rare values" + f", or give --groups {widest}" * says_group(widest)
        raise TableError(f"{columns.path}: {found}, and {MAX_ONE_HOT} can be encoded: {remedy}.")
    for name, known in categories.items():
        check_length(f"{columns.path}: {shown(name)}", known.to_pylist())


def _rearranged(X: Any, kept: np.ndarray, n_more: int) -> Any:
    """Return some columns of X, then `n_more` columns of zeros, in the memory of X, which grows for them."""
    (n_rows, before), after = X.shape, len(kept) + n_more
    if n_more == 0 and np.array_equal(kept, np.arange(before)):
        return X
    if issparse(X):
        return X[:, kept]
    if after > before:
        X.resize((n_rows, after), refcheck=False)
    old = new = X
    if X.flags.c_contiguous:
        old, new = (X.reshape(-1)[: n_rows * width].reshape(n_rows, width) for width in (before, after))
    # in the order in which no row is overwritten before it was read
    for block in row_blocks(n_rows, max(before, after), 2**18)[:: 1 if after <= before else -1]:
        new[block, : len(kept)] = old[block][:, kept]
        new[block, len(kept) :] = 0
    return new[:, :after]
