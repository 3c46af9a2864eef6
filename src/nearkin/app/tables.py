"""Files to X, y and names: every table of the `nearkin` command comes in here.

What cannot be read with certainty is refused by a `TableError`: one line that names the place and the remedy. What can
go on goes on visibly: every column that was ignored or encoded is named in `Table.notes`.
"""

from __future__ import annotations

import csv
import difflib
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse
from sklearn.preprocessing import OneHotEncoder

from ..datasets import BUNDLED, load

MIN_ROWS = 4
MAX_ONE_HOT = 2000
SPARSE_KEYS = ("data", "indices", "indptr", "shape")


class TableError(Exception):
    """A table that cannot be used; the text is one line that names the place and the remedy."""


@dataclass(frozen=True)
class Table:
    """Rows, their classes, and what was done to get them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, float64 and finite.
    y : ndarray of shape (n,)
        Classes (strings, integers or booleans), each at least twice.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    feature_names : list of str
        Names of the p features.
    name : str
        Name of the table.
    notes : list of str
        What was ignored or encoded.
    """

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    feature_names: list[str]
    name: str
    notes: list[str]


def read_table(source: str, target: str | None = None, groups: str | None = None) -> Table:
    """Return the table in a file, or a bundled one.

    Parameters
    ----------
    source : str
        Path of a .csv or .npz file; or, where no such file exists, one of `nearkin.datasets.BUNDLED`.
    target : str, optional
        Column of the classes. A CSV needs it; in an NPZ it is a key, by default "y"; bundled sets know theirs.
    groups : str, optional
        Column (CSV) or key (NPZ) of the groups.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If there is no such table, or it cannot be compared on.
    """
    path = Path(source)
    try:
        if source in BUNDLED and not path.exists():
            return _read_bundled(source, target, groups)
        if path.is_dir():
            raise TableError(f"{source} is a folder: give a .csv or .npz file.")
        if not path.exists():
            raise TableError(f"{source}: no such file; give a .csv or .npz file, or a bundled set: {_listed(BUNDLED)}.")
        if path.suffix.lower() == ".csv":
            return _read_csv(path, target, groups)
        if path.suffix.lower() == ".npz":
            return _read_npz(path, target or "y", groups)
    except OSError as error:
        raise TableError(f"{source} cannot be read: {error.strerror or error}.") from error
    raise TableError(f"{source}: only .csv and .npz files are supported: save the table as one of them.")


def _read_bundled(name: str, target: str | None, groups: str | None) -> Table:
    if target not in (None, "target") or groups is not None:
        raise TableError(
            f"{name} is a bundled set with its own classes and no groups: leave --target and --groups out."
        )
    dataset = load(name)
    X, names, notes = _without_constants(name, dataset.X, dataset.feature_names)
    return Table(X, dataset.y, None, names, name, notes)


# CSV ------------------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, target: str | None, groups: str | None) -> Table:
    frame = _read_frame(path)
    columns = list(frame.columns)
    if target is None:
        raise TableError(f"{path}: say which column holds the classes by --target: {_quoted(columns)}.")
    target = _find(path, columns, target, "--target")
    groups = None if groups is None else _find(path, columns, groups, "--groups")
    if target == groups:
        raise TableError(f"{path}: --target and --groups both name the column {target!r}: give two columns.")
    y = _check_classes(path, target, _values(frame[target]))
    group = None if groups is None else _check_groups(path, groups, _values(frame[groups]))
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
            f"{path}: the header line has {_quoted(repeated)} more than once: give every column a name of its own."
        )
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        mark = "semicolons" if ";" in header[0] else "tabs"
        raise TableError(f"{path} seems to be separated by {mark}: save it comma-separated.")


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield every record and the line it ends on; blank lines are left out, as pandas does."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        for record in reader:
            if len(record) > 1 or "".join(record).strip():
                yield reader.line_num, record


def _refuse_gaps(path: Path, frame: Any) -> None:
    def line(row: int) -> str:
        number, _ = next(islice(_records(path), row + 1, None))  # the header is a record, too
        return f"on line {number}"

    missing = "missing values (empty fields, NA, None and the like)"
    _refuse_cells(path, missing, frame.isna().to_numpy(), frame.columns, line)
    numbers = frame.select_dtypes("number")
    _refuse_cells(path, "infinite values", np.isinf(numbers.to_numpy(np.float64)), numbers.columns, line)


def _values(column: Any) -> np.ndarray:
    """Return a column as numbers, booleans, or else strings."""
    from pandas.api.types import is_numeric_dtype  # booleans are numeric to pandas

    return column.to_numpy() if is_numeric_dtype(column) else np.array(column.tolist(), dtype=str)


def _encode(path: Path, columns: dict[str, np.ndarray]) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the columns as numbers, text one-hot encoded; their names; and notes on what was done."""
    n_values = {name: len(np.unique(column)) for name, column in columns.items()}
    constant = [name for name in columns if n_values[name] == 1]
    numbers = [name for name in columns if columns[name].dtype.kind != "U" and name not in constant]
    text = [name for name in columns if columns[name].dtype.kind == "U" and name not in constant]
    identifiers = [name for name in text if n_values[name] == len(columns[name])]
    words = {name: _word_among_numbers(columns[name]) for name in text}
    encoded = {name: n_values[name] for name in text if name not in identifiers}
    blocks, code_names = _one_hot(path, {name: columns[name] for name in encoded})
    if not numbers and not blocks:
        raise _nothing_left(path)
    notes = [
        *_note("ignored, constant", constant),
        *_note("read as text because of", [f"{word!r} in {name}" for name, word in words.items() if word]),
        *_note("ignored, text that differs in every row", identifiers),
        *_note("one-hot encoded", [f"{name} ({count} values)" for name, count in encoded.items()]),
    ]
    X = np.column_stack([*(columns[name].astype(np.float64) for name in numbers), *blocks])
    return X, numbers + code_names, notes


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


# NPZ ------------------------------------------------------------------------------------------------------------------


def _read_npz(path: Path, target: str, groups: str | None) -> Table:
    arrays, target, groups = _load_arrays(path, target, groups)
    X = _dense(path, arrays["X"]) if "X" in arrays else _sparse(path, arrays)
    y = _check_classes(path, target, _labels(path, target, arrays[target], X.shape[0]))
    group = None
    if groups is not None:
        group = _check_groups(path, groups, _labels(path, groups, arrays[groups], X.shape[0]))
    names = _feature_names(path, arrays.get("feature_names"), X.shape[1])
    X, names, notes = _without_constants(path, X, names)
    return Table(X, y, group, names, path.stem, notes)


def _load_arrays(path: Path, target: str, groups: str | None) -> tuple[dict[str, np.ndarray], str, str | None]:
    """Return the arrays that are needed, and the keys that `target` and `groups` stand for."""
    if not zipfile.is_zipfile(path):
        raise TableError(f"{path} is not an NPZ archive: write it by numpy.savez.")
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = archive.files
            target = _find(path, keys, target, "--target")
            groups = None if groups is None else _find(path, keys, groups, "--groups")
            matrix = ("X",) if "X" in keys else SPARSE_KEYS
            if not set(matrix) <= set(keys):
                raise TableError(f"{path} needs an array 'X', or {_quoted(SPARSE_KEYS)}; it has {_quoted(keys)}.")
            wanted = [*matrix, target, groups, "feature_names", *(["format"] if matrix is SPARSE_KEYS else [])]
            return {key: _array(path, archive, key) for key in wanted if key in keys}, target, groups
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise TableError(f"{path} is damaged ({error}): write it again.") from error


def _array(path: Path, archive: Any, key: str) -> np.ndarray:
    try:
        array = archive[key]
    except ValueError as error:
        raise TableError(
            f"{path}: {key!r} is no plain array ({error}): save numbers or strings, not objects."
        ) from error
    if not isinstance(array, np.ndarray):
        raise TableError(f"{path}: {key!r} is no array: write the archive by numpy.savez.")
    return array


def _dense(path: Path, X: np.ndarray) -> np.ndarray:
    _require_numbers(path, "X", X)
    if X.ndim != 2:
        raise TableError(f"{path}: X has the shape {X.shape}: reshape it to (rows, columns).")
    X = X.astype(np.float64)
    _refuse_cells(path, "missing or infinite values", ~np.isfinite(X), _feature_names(path, None, X.shape[1]), _row)
    return X


def _sparse(path: Path, arrays: dict[str, np.ndarray]) -> csr_array:
    _require_numbers(path, "data", arrays["data"])
    layout = str(arrays["format"].astype(str)) if "format" in arrays else "csr"
    if layout not in ("csr", "csc"):
        raise TableError(f"{path}: the sparse format {layout!r} is not supported: save X.tocsr().")
    try:
        n_rows, n_columns = arrays["shape"].tolist()
        parts = tuple(arrays[key] for key in ("data", "indices", "indptr"))
        X = (csr_array if layout == "csr" else csc_array)(parts, shape=(n_rows, n_columns))
        X.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise TableError(
            f"{path}: {_quoted(SPARSE_KEYS)} form no matrix ({error}): save those of a csr_array."
        ) from error
    X = csr_array(X, dtype=np.float64)
    X.sum_duplicates()  # scikit-learn's norms take every stored entry for a coordinate

    def row(entry: int) -> str:
        return _row(int(np.searchsorted(X.indptr, entry, side="right")) - 1)

    _refuse_cells(path, "missing or infinite values", ~np.isfinite(X.data)[:, None], ["data"], row)
    return X


def _require_numbers(path: Path, key: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf":
        raise TableError(f"{path}: {key!r} holds {array.dtype}, not numbers: encode it first.")


def _labels(path: Path, key: str, labels: np.ndarray, n_rows: int) -> np.ndarray:
    if labels.shape != (n_rows,):
        raise TableError(f"{path}: {key!r} has the shape {labels.shape}, X has {n_rows} rows: save one label a row.")
    if labels.dtype.kind not in "biufU":
        raise TableError(f"{path}: {key!r} holds {labels.dtype}: save strings or integers.")
    if labels.dtype.kind == "f":
        _refuse_cells(path, "missing or infinite values", ~np.isfinite(labels)[:, None], [key], _row)
    return labels


def _feature_names(path: Path, names: np.ndarray | None, n_features: int) -> list[str]:
    if names is None:
        return [f"column {number}" for number in range(n_features)]
    if names.shape != (n_features,) or names.dtype.kind != "U":
        raise TableError(
            f"{path}: 'feature_names' has the shape {names.shape} and the type {names.dtype}, X has {n_features} "
            "columns: save one string a column."
        )
    return [str(name) for name in names]


def _row(number: int) -> str:
    return f"in row {number} (counted from 0)"


# Both -----------------------------------------------------------------------------------------------------------------


def _find(path: Path, names: Sequence[str], wanted: str, option: str) -> str:
    """Return the name that was meant; spaces around it do not matter."""
    meant = [name for name in names if name == wanted] or [name for name in names if name.strip() == wanted.strip()]
    if meant:
        return meant[0]
    close = difflib.get_close_matches(wanted, names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise TableError(f"{path} has no {wanted!r}{hint}: give {option} one of {_quoted(names)}.")


def _refuse_cells(path: Path, what: str, bad: np.ndarray, names: Iterable[str], where: Callable[[int], str]) -> None:
    """Raise a TableError that names the columns of the bad cells, their counts, and the place of the first."""
    if bad.any():
        counts = zip(names, bad.sum(axis=0), strict=True)
        columns = _listed([f"{name!r} ({count})" for name, count in counts if count], 5)
        first = where(int(bad.any(axis=1).argmax()))
        raise TableError(f"{path}: {what} in {columns}, first {first}: fill them or drop these rows first.")


def _check_classes(path: Path, target: str, y: np.ndarray) -> np.ndarray:
    """Return the labels, whole numbers as integers; refuse what no classifier can be held out on."""
    if len(y) < MIN_ROWS:
        raise TableError(f"{path} has {len(y)} rows: too few rows to hold any out; give at least {MIN_ROWS}.")
    if y.dtype.kind == "f":
        if ((y % 1 != 0) | (np.abs(y) >= 2**53)).any():
            raise TableError(
                f"{path}: {target!r} holds real numbers, but compare ranks classifiers and the target must be classes: "
                "cut it into classes, or choose another target."
            )
        y = y.astype(np.int64)
    classes, sizes = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise TableError(f"{path}: {target!r} holds one class, {classes.item()!r}: give rows of at least two classes.")
    alone = classes[sizes == 1].tolist()
    if alone:
        raise TableError(
            f"{path}: a single row of {target!r} has the class {_quoted(alone, 5)}, too few to learn from and hold "
            "out: merge it with another class, or drop it."
        )
    return y


def _check_groups(path: Path, name: str, groups: np.ndarray) -> np.ndarray:
    count = len(np.unique(groups))
    if count < 3:
        raise TableError(f"{path}: {name!r} holds {count} groups, too few to hold some out: give at least 3.")
    return groups


def _without_constants(place: Path | str, X: Any, names: list[str]) -> tuple[Any, list[str], list[str]]:
    """Return X and its names without the columns that never change, and a note on these; sparse X is kept whole."""
    if issparse(X):
        varies = np.full(X.shape[1], X.shape[1] > 0 and (X.max(axis=0) - X.min(axis=0)).nnz > 0)
    else:
        varies = (X[0] != X).any(axis=0)
    if not varies.any():
        raise _nothing_left(place)
    kept = [name for name, varied in zip(names, varies, strict=True) if varied]
    constant = [name for name, varied in zip(names, varies, strict=True) if not varied]
    return X if varies.all() else X[:, varies], kept, _note("ignored, constant", constant)


def _nothing_left(place: Path | str) -> TableError:
    return TableError(f"{place}: no feature columns are left to learn from: add columns whose values vary.")


def _note(what: str, items: list[str]) -> list[str]:
    return [f"{what}: {_listed(items)}"] if items else []


def _quoted(names: Iterable[Any], most: int = 10) -> str:
    return _listed([repr(name) for name in names], most)


def _listed(items: Sequence[str], most: int = 10) -> str:
    """Return "a, b, c", cut after `most` items."""
    return ", ".join(items[:most]) + (f" and {len(items) - most} more" if len(items) > most else "")
