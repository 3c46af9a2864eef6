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
from .refusals import TableError, check_distinct, check_length, note, quoted, shown

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


def learn_encoder(columns: Columns) -> tuple[ColumnEncoder, list[str], Any]:
    """Return an encoder for the columns that can be learned from, notes on what it ignores, and names of the rows."""
    n_rows, text = columns.numbers.shape[0], columns.text
    varies = dict(zip(columns.number_names, _varying(columns.numbers).tolist(), strict=True))
    varies |= {name: len(column.dictionary) > 1 for name, column in text.items()}
    counters = [name for name in columns.number_names if _counts_rows(name, columns)]
    constant = [name for name in columns.all_names if not varies.get(name, True) and name not in counters]
    identifiers = [name for name, column in text.items() if varies[name] and len(column.dictionary) == n_rows]
    ignored = {*counters, *constant, *identifiers}
    numbers = [name for name in columns.number_names if name not in ignored]
    categories = {name: column.dictionary for name, column in text.items() if name not in ignored}
    if not numbers and not categories:
        raise TableError(f"{columns.path}: no feature columns are left to learn from: add columns whose values vary.")
    _check_width(columns, categories)
    notes = [
        *note("ignored, numbers of the rows without a name", counters),
        *note("ignored, constant", constant),
        *note("read as text because of", _words_among_numbers({name: text[name] for name in text if varies[name]})),
        *note("ignored, text that differs in every row", identifiers),
        *note("one-hot encoded", [f"{name} ({len(known)} values)" for name, known in categories.items()]),
    ]
    encoder = ColumnEncoder(numbers, {name: sorted(known.to_pylist()) for name, known in categories.items()})
    check_distinct(f"{columns.path}, one-hot encoded,", encoder.feature_names)
    return encoder, notes, text[identifiers[0]].to_numpy(zero_copy_only=False) if identifiers else range(n_rows)


def _varying(X: Any) -> np.ndarray:
    """Return for every column of finite numbers whether it changes; sparse X is kept whole if any does."""
    if issparse(X):
        return np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    return X.max(axis=0) != X.min(axis=0)


def _counts_rows(name: str, columns: Columns) -> bool:
    """Tell whether a column without a name is the index that pandas writes: 0, 1, ... or 1, 2, ..."""
    if not name.startswith(("Unnamed: ", "__index_level_")) or issparse(columns.numbers):
        return False
    values = columns.numbers[:, columns.number_names.index(name)]
    return values[0] in (0, 1) and np.array_equal(values, values[0] + np.arange(len(values)))


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
        raise TableError(f"{columns.path}: {found}, and {MAX_ONE_HOT} can be encoded: drop it, or merge rare values.")
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
