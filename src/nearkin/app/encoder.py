"""Columns of numbers and words to rows of numbers, the same way for every table that a model meets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._memory import require_memory
from .columns import Columns
from .table import TableError, check_distinct, check_length, note, nothing_left, quoted, rearranged, shown, varying

MAX_ONE_HOT = 2000


@dataclass(frozen=True)
class ColumnEncoder:
    """Takes numbers as they are and gives text a column for each value that was there to learn from.

    Attributes
    ----------
    numbers : ndarray of str
        Columns of numbers or truth values.
    text : ndarray of str
        Columns of text.
    categories : list of ndarray of str
        For each column of text its values, sorted. A value that is not among them becomes a row of zeros.
    """

    numbers: np.ndarray
    text: np.ndarray
    categories: list[np.ndarray]

    @property
    def columns(self) -> list[str]:
        """Return the columns that a table must have."""
        return [*self.numbers.tolist(), *self.text.tolist()]

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the encoded columns, such as "width" or "colour=red"."""
        codes = [f"{name}={value}" for name, known in self._known() for value in known]
        return [*self.numbers.tolist(), *codes]

    def encode(self, columns: Columns) -> np.ndarray:
        """Return X of shape (n, p), float64, in the memory of the columns' numbers: this uses them up."""
        for name in self.numbers.tolist():
            if name in columns.text:
                raise TableError(_text_for_numbers(columns, name))
        n_codes = sum(map(len, self.categories))
        require_memory(8 * columns.n_rows * n_codes, "One-hot encoded text", "drop columns of text")
        position = {name: number for number, name in enumerate(columns.number_names)}
        chosen = np.array([position[name] for name in self.numbers.tolist()], dtype=int)
        X, start = rearranged(columns.numbers, chosen, n_codes), len(chosen)
        for name, known in self._known():
            codes = _codes(columns.text[name], known)
            rows = np.flatnonzero(codes >= 0)
            X[rows, start + codes[rows]] = 1
            start += len(known)
        return X

    def unknown(self, columns: Columns) -> list[str]:
        """Return remarks on the values of text columns that were not there to learn from."""
        found = []
        for name, known in self._known():
            values = columns.text[name]
            strange = values[_codes(values, known) < 0]
            if len(strange):
                found.append(f"{quoted(np.unique(strange).tolist(), 3)} in {name} ({len(strange)} rows)")
        return note("unknown values, encoded as none of the known ones", found)

    def _known(self) -> Iterator[tuple[str, np.ndarray]]:
        return zip(self.text.tolist(), self.categories, strict=True)


def numbers_only(names: list[str]) -> ColumnEncoder:
    """Return the encoder of a table without text."""
    return ColumnEncoder(np.array(names, dtype=str), np.array([], dtype=str), [])


def learn_encoder(columns: Columns) -> tuple[ColumnEncoder, list[str], Any]:
    """Return an encoder for the columns that can be learned from, notes on what it ignores, and names of the rows."""
    distinct = {name: _in_order_of_appearance(column) for name, column in columns.text.items()}
    varies = dict(zip(columns.number_names, varying(columns.numbers).tolist(), strict=True))
    varies |= {name: len(known) > 1 for name, known in distinct.items()}
    counters = [name for name in columns.number_names if _counts_rows(name, columns)]
    constant = [name for name in columns.names if not varies[name] and name not in counters]
    identifiers = [name for name, known in distinct.items() if varies[name] and len(known) == columns.n_rows]
    ignored = {*counters, *constant, *identifiers}
    numbers = [name for name in columns.number_names if name not in ignored]
    words = {name: _word_among_numbers(known) for name, known in distinct.items() if varies[name]}
    categories = {name: known for name, known in distinct.items() if name not in ignored}
    _check_width(columns, categories)
    if not numbers and not categories:
        raise nothing_left(columns.file.path)
    notes = [
        *note("ignored, numbers of the rows without a name", counters),
        *note("ignored, constant", constant),
        *note("read as text because of", [f"{shown(word)} in {name}" for name, word in words.items() if word]),
        *note("ignored, text that differs in every row", identifiers),
        *note("one-hot encoded", [f"{name} ({len(known)} values)" for name, known in categories.items()]),
    ]
    text = np.array(list(categories), dtype=str)
    encoder = ColumnEncoder(
        np.array(numbers, dtype=str), text, [np.unique(known.astype(str)) for known in categories.values()]
    )
    check_distinct(f"{columns.file.path}, one-hot encoded,", encoder.feature_names)
    return encoder, notes, columns.text[identifiers[0]] if identifiers else range(columns.n_rows)


def _codes(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the positions of values among the known ones, -1 where they are not known."""
    import pandas as pd

    return pd.Index(known).get_indexer(pd.Index(values))


def _in_order_of_appearance(column: np.ndarray) -> np.ndarray:
    import pandas as pd

    return pd.unique(column)


def _counts_rows(name: str, columns: Columns) -> bool:
    """Tell whether a column without a name is the index that pandas writes: 0, 1, ... or 1, 2, ..."""
    if not name.startswith(("Unnamed: ", "__index_level_")):
        return False
    values = columns.numbers[:, columns.number_names.index(name)]
    return any(np.array_equal(values, np.arange(first, len(values) + first)) for first in (0, 1))


def _word_among_numbers(column: np.ndarray) -> str:
    """Return the first value that is no number where others are: what made a column of numbers text; else ""."""
    is_word = _is_word(column)
    return "" if is_word.all() or not is_word.any() else str(column[is_word.argmax()])


def _is_word(column: np.ndarray) -> np.ndarray:
    import pandas as pd

    return pd.to_numeric(pd.Series(column), errors="coerce").isna().to_numpy()


def _text_for_numbers(columns: Columns, name: str) -> str:
    column = columns.text[name]
    row = int(_is_word(column).argmax())
    found = f"{shown(str(column[row]))} {columns.file.place(row)}"
    return (
        f"{columns.file.path}: {shown(name)} holds text ({found}), but numbers were learned from there: give numbers."
    )


def _check_width(columns: Columns, categories: dict[str, np.ndarray]) -> None:
    for name, known in categories.items():
        check_length(f"{columns.file.path}: {shown(name)}", known.tolist())
    width = sum(map(len, categories.values()))
    if width > MAX_ONE_HOT:
        widest = max(categories, key=lambda name: len(categories[name]))
        raise TableError(
            f"{columns.file.path}: text columns hold {width} different values, {len(categories[widest])} of them "
            f"{shown(widest)}, and at most {MAX_ONE_HOT} are one-hot encoded: drop that column or merge its rare "
            "values."
        )
