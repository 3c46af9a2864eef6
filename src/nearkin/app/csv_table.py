"""CSV files: what pandas takes without a word is refused or said; text becomes numbers visibly."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from .table import Table, TableError, check_classes, check_groups, find_name, note, nothing_left, quoted, refuse_cells

MAX_ONE_HOT = 2000


def read_csv(path: Path, target: str | None, groups: str | None) -> Table:
    """Return the table of a CSV file; `target` is a column, needed."""
    frame = _read_frame(path)
    columns = list(frame.columns)
    if target is None:
        raise TableError(f"{path}: say which column holds the classes by --target: {quoted(columns)}.")
    target = find_name(path, columns, target, "--target")
    groups = None if groups is None else find_name(path, columns, groups, "--groups")
    if target == groups:
        raise TableError(f"{path}: --target and --groups both name the column {target!r}: give two columns.")
    y = check_classes(path, target, _values(frame[target]))
    group = None if groups is None else check_groups(path, groups, _values(frame[groups]))
    features = {name: _values(frame[name]) for name in columns if name not in (target, groups)}
    X, names, notes = _encode(path, features)
    return Table(X, y, group, names, path.stem, notes)


def _read_frame(path: Path) -> Any:
    """Return the file as a DataFrame without missing or infinite values."""
    import pandas as pd

    try:
        _check_header(path)
        with warnings.catch_warnings():
            # rows longer than the header: pandas would cut them and only warn
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(path, encoding="utf-8-sig", index_col=False, low_memory=False)
        _refuse_gaps(path, frame)
        return frame
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not UTF-8 text: save it as CSV in the encoding UTF-8.") from error
    except pd.errors.ParserWarning as error:
        raise TableError(f"{path}: rows have more fields than the header line: name every column there.") from error
    except (pd.errors.ParserError, csv.Error) as error:
        reason = " ".join(str(error).removeprefix("Error tokenizing data. C error: ").split())
        raise TableError(f"{path}: broken CSV ({reason}): mend it, or quote the fields that hold commas.") from error


def _check_header(path: Path) -> None:
    """Refuse what pandas takes without a word: several columns of one name, another separator."""
    _, header = next(_records(path), (0, []))
    if not header:
        raise TableError(f"{path} is empty: it needs a header line that names the columns, and rows.")
    repeated = sorted({name for name in header if name and header.count(name) > 1})
    if repeated:
        raise TableError(
            f"{path}: the header line has {quoted(repeated)} more than once: give every column a name of its own."
        )
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        mark = "semicolons" if ";" in header[0] else "tabs"
        raise TableError(f"{path} seems to be separated by {mark}: save it comma-separated.")


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every record and the line it ends on; blank lines are left out, as pandas does."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        for record in reader:
            if len(record) > 1 or record == [""] or "".join(record).strip():
                yield reader.line_num, record


def _refuse_gaps(path: Path, frame: Any) -> None:
    def line(row: int) -> str:
        number, _ = next(islice(_records(path), row + 1, None), (row + 2, []))  # the header is a record, too
        return f"on line {number}"

    missing = "missing values (empty fields, NA, None and the like)"
    refuse_cells(path, missing, frame.isna().to_numpy(), frame.columns, line)
    numbers = frame.select_dtypes("number")
    refuse_cells(path, "infinite values", np.isinf(numbers.to_numpy(np.float64)), numbers.columns, line)


def _values(column: Any) -> np.ndarray:
    """Return a column as numbers, booleans, or else strings."""
    from pandas.api.types import is_numeric_dtype  # booleans are numeric to pandas

    if is_numeric_dtype(column):
        return column.to_numpy()
    values = column.tolist()
    if all(str(value).lstrip("-").isdigit() for value in values):  # integers too long for 64 bits
        return np.array([float(value) for value in values])
    return np.array(values, dtype=str)


def _encode(path: Path, columns: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the columns as numbers, text one-hot encoded; their names; and notes on what was done."""
    counters = [name for name in columns if name.startswith("Unnamed: ") and _counts_rows(columns[name])]
    columns = {
        name: column if column.dtype.kind == "U" else column.astype(np.float64)
        for name, column in columns.items()
        if name not in counters
    }
    n_values = {name: len(np.unique(column)) for name, column in columns.items()}
    constant = [name for name in columns if n_values[name] == 1]
    numbers = [name for name in columns if columns[name].dtype.kind != "U" and name not in constant]
    text = [name for name in columns if columns[name].dtype.kind == "U" and name not in constant]
    identifiers = [name for name in text if n_values[name] == len(columns[name])]
    words = {name: _word_among_numbers(columns[name]) for name in text}
    encoded = {name: n_values[name] for name in text if name not in identifiers}
    blocks, code_names = _one_hot(path, {name: columns[name] for name in encoded})
    if not numbers and not blocks:
        raise nothing_left(path)
    notes = [
        *note("ignored, numbers of the rows without a name", counters),
        *note("ignored, constant", constant),
        *note("read as text because of", [f"{word!r} in {name}" for name, word in words.items() if word]),
        *note("ignored, text that differs in every row", identifiers),
        *note("one-hot encoded", [f"{name} ({count} values)" for name, count in encoded.items()]),
    ]
    X = np.column_stack([*(columns[name] for name in numbers), *blocks])
    return X, numbers + code_names, notes


def _counts_rows(column: np.ndarray) -> bool:
    """Tell whether a column is the index that pandas writes: 0, 1, ... or 1, 2, ..."""
    if column.dtype.kind not in "iu":
        return False
    return any(np.array_equal(column, np.arange(first, len(column) + first)) for first in (0, 1))


def _word_among_numbers(column: np.ndarray) -> str:
    """Return the first value that is no number where others are: what made a column of numbers text; else ""."""
    import pandas as pd

    is_word = pd.to_numeric(pd.Series(column), errors="coerce").isna().to_numpy()
    return "" if is_word.all() or not is_word.any() else str(column[is_word.argmax()])


def _one_hot(path: Path, columns: dict[str, np.ndarray]) -> tuple[list[np.ndarray], list[str]]:
    """Return, for every column, a block with a column for each value, and all their names, such as "colour=red"."""
    encoders = {name: OneHotEncoder(sparse_output=False).fit(column[:, None]) for name, column in columns.items()}
    values = {name: encoder.categories_[0] for name, encoder in encoders.items()}
    width = sum(map(len, values.values()))
    if width > MAX_ONE_HOT:
        widest = max(values, key=lambda name: len(values[name]))
        raise TableError(
            f"{path}: text columns hold {width} different values, {len(values[widest])} of them {widest!r}, and at "
            f"most {MAX_ONE_HOT} are one-hot encoded: drop that column or merge its rare values."
        )
    blocks = [encoders[name].transform(column[:, None]) for name, column in columns.items()]
    return blocks, [f"{name}={value}" for name in columns for value in values[name]]
