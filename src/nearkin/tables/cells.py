"""A table as numbers and distinct texts, and which of its columns carry no information.

The table is a data frame, an array, or comes from a file reader.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._memory import require_memory
from .._messages import counted, in_row, shown
from .._validation import check_array, number_of_rows, refuse_foreign, shape_of

NUMBERS = (int, float, Decimal, np.number, np.bool_)
SECONDS_A_DAY = 86400


@dataclass(frozen=True)
class Text:
    """A column of text: its distinct values, and for each row the index of its value.

    The index is -1 for a missing cell. With `is_category`, values are categories even if they look
    like numbers or dates. Rows may have `weights`.
    """

    values: Sequence[str]
    codes: np.ndarray
    is_category: bool = False
    weights: np.ndarray | None = None

    def spread(self, of_values: Any, of_missing: Any) -> np.ndarray:
        """Return, for every row, what belongs to its value."""
        return np.append(of_values, of_missing)[self.codes]  # the code -1 selects the last

    def replaced(self, values: Iterable[str | None]) -> Text:
        """Return the column with values replaced and equal ones merged; None is a missing cell."""
        known: dict[str | None, int] = {None: -1}  # new values are numbered from 0
        codes = [known.setdefault(value, len(known) - 1) for value in values]
        names: Any = list(known)[1:]
        return replace(self, values=names, codes=self.spread(np.array(codes, dtype=int), -1))

    @cached_property
    def counts(self) -> np.ndarray:
        """Return the number of rows with each value."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:]

    @cached_property
    def shares(self) -> np.ndarray:
        """Return the (weighted) share of the rows with each value."""
        if self.weights is None:
            return self.counts / len(self.codes)
        sums = np.bincount(self.codes + 1, self.weights, minlength=len(self.values) + 1)[1:]
        return (sums / self.weights.sum()).round(12)  # makes sums independent of their order

    @property
    def n_missing(self) -> int:
        """Return the number of missing cells."""
        return len(self.codes) - int(self.counts.sum())


@dataclass
class Cells:
    """The cells of a table.

    Attributes
    ----------
    names : list of str
        The names of all columns of the table; some may not have been read.
    numbers : ndarray of shape (n, q), or csr_array
        The columns of numbers, NaN for missing cells. `TableEncoder` overwrites their memory.
    number_names : list of q str
    text : dict of str to Text
        The columns of text by name.
    place : callable
        Returns where a row (counted from 0) is, for messages.
    infinite : list of str
        Remarks on infinite numbers, which became NaN.
    decimal : str or None
        The decimal mark of text, if known.
    named : bool
        Whether the columns have names of their own; those of an array are numbered.
    called : str
        What the table is called in messages.
    """

    called: ClassVar[str] = "X"

    names: list[str]
    numbers: Any
    number_names: list[str]
    text: dict[str, Text]
    place: Callable[[int], str] = in_row
    infinite: list[str] = field(default_factory=list, kw_only=True)
    decimal: str | None = field(default=None, kw_only=True)
    named: bool = field(default=True, kw_only=True)

    @property
    def n_rows(self) -> int:
        """Return the number of rows."""
        return self.numbers.shape[0]

    @cached_property
    def positions(self) -> dict[str, int]:
        """Return the position of each column of numbers, by name."""
        return {name: place for place, name in enumerate(self.number_names)}

    @cached_property
    def known(self) -> set[str]:
        """Return the names of the columns that were read."""
        return {*self.number_names, *self.text}

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the minimum and maximum of every dense column, and whether cells are missing.

        The minimum and maximum are NaN if no number is known.
        """
        low, high = self.numbers.min(axis=0), self.numbers.max(axis=0)
        missing = np.isnan(low)
        for at in np.flatnonzero(missing):
            column = np.ascontiguousarray(self.numbers[:, at])
            low[at], high[at] = np.fmin.reduce(column), np.fmax.reduce(column)
        return low, high, missing

    def renamed(self, names: Sequence[str]) -> Cells:
        """Return the same cells with new names of all columns."""
        new = dict(zip(self.names, names, strict=True))
        text = {new[name]: column for name, column in self.text.items()}
        numbers = [new[name] for name in self.number_names]
        return replace(self, names=list(names), number_names=numbers, text=text)

    def in_place(self, names: Sequence[str], width: int) -> Any:
        """Return some columns of numbers followed by zeros, `width` in total, in place.

        The memory of `numbers` is reused where possible, and extended if needed.
        """
        X, kept = self.numbers, np.array([self.positions[name] for name in names], dtype=int)
        n_rows, before = X.shape
        if width == len(kept) > 0 and np.array_equal(kept, np.arange(before)):
            return X
        if issparse(X):
            return X[:, kept]
        require_memory(8 * n_rows * max(width - before, 0), "The encoded table", "drop columns")
        if len(kept) == 0 or not (X.flags.owndata and X.flags.c_contiguous):
            out = np.zeros((n_rows, width), dtype=X.dtype if len(kept) else np.float64)
            out[:, : len(kept)] = X[:, kept]
            return out
        X.resize((n_rows, max(width, before)), refcheck=False)
        old, new = (
            X.reshape(-1)[: n_rows * size].reshape(n_rows, size) for size in (before, width)
        )
        # in an order in which no row is overwritten before it is read
        for block in row_blocks(n_rows, max(before, width), 2**18)[:: 1 if width <= before else -1]:
            new[block, : len(kept)] = old[block][:, kept]
            new[block, len(kept) :] = 0
        return new


def read_cells(X: Any, *, strict: bool) -> Cells:
    """Return the cells of a data frame or an array.

    Infinite numbers raise an error, as in scikit-learn; in a data frame they are missing, unless
    `strict`, as are objects that are no text, numbers or dates.
    """
    refuse_foreign(X)
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    named = hasattr(X, "iloc") and hasattr(X, "columns")
    if not named:
        if not hasattr(X, "__array__") and not hasattr(X, "tocsr"):
            # nested sequences: as objects, numbers among text stay numbers
            shape_of(X, "X")
            found = np.asarray(X)
            X = np.array(X, dtype=object) if found.dtype.kind in "US" else found
        X = check_array(X, dtype=None, ensure_all_finite=False)
    if number_of_rows(X) and X.shape[1] == 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if not named and X.dtype.kind in "biuf":
        names = [f"x{number}" for number in range(X.shape[1])]
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        cells = Cells(names, np.array(X, dtype=dtype, order="C"), names, {})
    else:
        cells = _frame(X, strict)
    cells.named = named
    for block in row_blocks(*cells.numbers.shape):
        infinite = np.isinf(cells.numbers[block])
        if not infinite.any():
            continue
        row, column = np.argwhere(infinite)[0]
        where = f"{shown(cells.number_names[column])} {in_row(block.start + int(row))}"
        if strict or not named:
            raise ValueError(f"Input X contains infinity, in column {where}: change or drop it.")
        cells.numbers[block][infinite] = np.nan
        n_cells = counted(int(np.count_nonzero(infinite)), "infinite number")
        cells.infinite.append(f"{n_cells}, taken as missing: in column {where}")
    return cells


def _frame(X: Any, strict: bool) -> Cells:
    """Return the columns of a pandas data frame, or of an array of objects."""
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            'Rows of text or other objects need pandas: pip install "nearkin[app]".'
        ) from error
    frame = X if hasattr(X, "iloc") else pd.DataFrame(X).rename(columns="x{}".format)
    names = numbered_names(list(map(str, frame.columns)))
    columns = {
        name: _column(frame.iloc[:, place], name, strict) for place, name in enumerate(names)
    }
    text = {name: column for name, column in columns.items() if isinstance(column, Text)}
    number_names = [name for name in names if name not in text]
    numbers = np.empty((len(frame), len(number_names)))
    for place, name in enumerate(number_names):
        numbers[:, place] = np.asarray(columns.pop(name))
    return Cells(names, numbers, number_names, text)


def numbered_names(names: Sequence[str]) -> list[str]:
    """Return names of columns, those that occur again with a number, as `pandas.read_csv` does."""
    given, taken, found = Counter[str](), {*names}, list[str]()
    for name in names:
        own = name
        while given[name] and own in taken:
            own = f"{name}.{given[name]}"
            given[name] += 1
        given[name] = max(given[name], 1)
        taken.add(own)
        found.append(own)
    return found


def _column(series: Any, name: str, strict: bool) -> np.ndarray | Text:
    """Return a pandas series as floats or as text, with dates in ISO format."""
    from pandas import CategoricalDtype, PeriodDtype, factorize
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if isinstance(series.dtype, CategoricalDtype):
        categories = [
            text_of(value, name, strict=strict)
            if isinstance(value, (str, *NUMBERS))
            else str(value)
            for value in series.cat.categories
        ]
        codes = series.cat.codes.to_numpy().astype(int)
        return Text(categories, codes, is_category=True).replaced(categories)
    kind = getattr(series.dtype, "kind", "O")
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {shown(name)}.")
    if is_numeric_dtype(series.dtype) or is_bool_dtype(series.dtype):
        return series.to_numpy(dtype=float, na_value=np.nan)
    if kind == "m":
        return series.dt.total_seconds().to_numpy(dtype=float, na_value=np.nan) / SECONDS_A_DAY
    if isinstance(series.dtype, PeriodDtype):
        series = series.dt.to_timestamp()
    try:
        codes, values = factorize(series)
    except TypeError:  # lists and the like
        known = series.notna().to_numpy()
        codes, values = np.where(known, np.cumsum(known) - 1, -1), series[known]
    if len(values) and all(isinstance(value, NUMBERS) for value in values):
        return Text([], codes).spread([_as_float(value) for value in values], np.nan)
    texts = [text_of(value, name, strict=strict) for value in values]
    return Text(texts, codes).replaced(texts)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def text_of(value: Any, name: str = "", *, strict: bool = False) -> str:
    """Return a cell as text; whole numbers of any type have no decimals.

    Lists become "a, b". With `strict`, they and other objects in the column `name` raise an error.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, NUMBERS):
        number: Any = value
        whole = not isinstance(value, bool | np.bool_) and number == number // 1
        return str(int(number)) if whole else str(value)
    if strict:
        found = f"column {shown(name)} holds {shown(value)} ({type(value).__name__})"
        raise TypeError(
            f"{found}: an argument must be a string, a number, a truth value, a date or a time."
        )
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    return ", ".join(map(text_of, value)) if isinstance(value, list | tuple) else str(value)


# Columns that only identify rows, or carry no information.

MIN_ROWS = 20  # with fewer, patterns may occur by chance
NEARLY_ALL = 0.9  # share of rows with a unique value, from which on text is an identifier
MAX_TEXT = 500
# Last words of names, as in "patient_id", "orderNo", "KEY"; such a column identifies the rows if
# nearly all of its values differ.
ID_WORDS = "id|uuid|guid|index|idx|nr|no|number|key|code|serial"
GROUP_WORDS = (
    "patient|subject|person|participant|user|customer|client|speaker|author|donor|session|site"
    "|hospital|centre|center|batch|household|family|group|cluster|machine|device|sensor|plate"
    "|animal|mouse|specimen|farm|school|store"
)
COUNTER = "numbers of the rows"
CONSTANT = "constant"
EMPTY = "empty"
NAMED = "named as identifiers, and nearly all values differ"
DIFFERS = "text that differs in every row"
NEARLY_DIFFERS = "text that differs in nearly every row"
UNREAD = "text that differs, and looks like numbers"
LONG = f"text of more than {MAX_TEXT} characters"
EVEN = "text without words, whose values all differ"
# in the order in which they are reported
REASONS = (COUNTER, CONSTANT, EMPTY, NAMED, DIFFERS, NEARLY_DIFFERS, UNREAD, LONG, EVEN)


def words_of(name: str) -> list[str]:
    """Return the words of a name such as "patientId" in lower case, or one empty word."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.findall(r"[^\W\d_]+", re.sub(rf"\b({GROUP_WORDS})id\b", r"\1_id", name)) or [""]


def says_id(name: str) -> bool:
    """Return whether a name denotes an identifier, such as "userId"."""
    return re.fullmatch(ID_WORDS, words_of(name)[-1]) is not None


def says_group(name: str) -> bool:
    """Return whether a name denotes groups of rows: "patient", "Patient ID" or "store_id"."""
    words = words_of(name)
    named = any(re.fullmatch(GROUP_WORDS, word) for word in words)
    known = rf"{GROUP_WORDS}|{ID_WORDS}|name"
    return words[-1] == "id" or (named and all(re.fullmatch(known, word) for word in words))


def nearly_all_differ(numbers: np.ndarray) -> bool:
    """Return whether the known ones are whole numbers, at least 20, nearly all of which differ.

    From 2^53 on, distinct whole numbers may be equal as floats. If there are fewer than five floats
    a number in their range, so that even random numbers would often coincide, they are taken to
    differ.
    """
    known = numbers[~np.isnan(numbers)]
    if len(known) < MIN_ROWS or (known != np.rint(known)).any():
        return False
    unit = np.spacing(np.abs(known).max())
    merged = unit > 1 and np.ptp(known) < 5 * len(known) * unit
    return bool(merged or len(np.unique(known)) > NEARLY_ALL * len(known))


def useless_numbers(cells: Cells, identifiers: bool) -> dict[str, str]:
    """Return the columns of numbers to leave out, and why.

    They are constant or empty or, with `identifiers`, identify the rows.
    """
    X, names, n_rows = cells.numbers, cells.number_names, cells.n_rows
    if issparse(X):  # sparse columns are all kept if any of them varies
        varies = np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    else:  # a column also varies if only some values are missing
        low, high, missing = cells.ends
        varies = ~np.isnan(low) & ((low != high) | missing)
    same = np.flatnonzero(~varies)
    found = {names[at]: EMPTY if np.isnan(X[0, at]) else CONSTANT for at in same}
    if not identifiers or issparse(X) or n_rows < 2:
        return found
    for at, name in enumerate(names):
        if varies[at] and says_id(name) and nearly_all_differ(X[:, at]):
            found[name] = NAMED
    # A column numbers the rows if its values, once sorted, are equally spaced. With few rows, only
    # an unnamed index as written by pandas counts: 0, 1, ... or 1, 2, ...
    if n_rows < MIN_ROWS:
        for at, name in enumerate(names):
            nameless = name.startswith(("Unnamed: ", "__index_level_"))
            if nameless and X[0, at] in (0, 1) and (np.diff(X[:, at]) == 1).all():
                found[name] = COUNTER
        return found
    # divided first, so that no difference overflows
    steps = high.astype(float) / (n_rows - 1) - low.astype(float) / (n_rows - 1)
    whole = np.abs(steps - np.rint(steps)) < 1e-9 * np.maximum(steps, 1)
    for at in np.flatnonzero(~missing & (steps >= 0.999) & whole).tolist():
        if (np.diff(np.sort(X[:, at])) == np.rint(steps[at])).all():
            found[names[at]] = COUNTER
    return found


def differs(n_values: int, n_known: int, n_rows: int) -> str | None:
    """Return why text identifies the rows, or None.

    Its distinct values, known cells and rows are given by their numbers.
    """
    if n_values == n_rows:
        return DIFFERS
    return NEARLY_DIFFERS if n_known >= MIN_ROWS and n_values > NEARLY_ALL * n_known else None
