"""Files and bundled sets become X, y and names; every fault becomes one line that names place and remedy.

What can go on goes on visibly: each remark in `Table.notes` says what was encoded or ignored.
"""

from __future__ import annotations

import csv
import difflib
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, issparse
from sklearn.preprocessing import OneHotEncoder

from .. import datasets

MAX_ONE_HOT = 2000


class TableError(Exception):
    """A table that cannot be used; the text is one line that names the place and the remedy."""


@dataclass(frozen=True)
class Table:
    """Numbers ready to learn from.

    Attributes
    ----------
    name : str
    X : ndarray or csr_array of shape (n, p)
    y : ndarray of shape (n,)
    groups : ndarray of shape (n,), or None
    feature_names : list of str
    notes : list of str
        What was encoded or ignored.
    """

    name: str
    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    feature_names: list[str]
    notes: list[str] = field(default_factory=list)


def read_table(source: str, target: str | None = None, groups: str | None = None) -> Table:
    """Return the table of a CSV or NPZ file, or of a bundled set.

    Parameters
    ----------
    source : str
        A path, or one of `nearkin.datasets.BUNDLED` where no file has that name.
    target : str, optional
        Column (CSV) or array (NPZ, by default "y") of the labels.
    groups : str, optional
        Column or array of the groups.

    Raises
    ------
    TableError
        If anything is wrong with it.
    """
    path = Path(source)
    if source in datasets.BUNDLED and not path.exists():
        table = _bundled(source, target, groups)
    elif path.is_dir():
        raise TableError(f"{source} is a folder: name a CSV or NPZ file in it.")
    elif not path.exists():
        bundled = ", ".join(datasets.BUNDLED)
        raise TableError(f"{source}: no such file, and no bundled set of that name (bundled: {bundled}).")
    elif path.suffix.lower() == ".csv":
        table = _from_csv(path, target, groups)
    elif path.suffix.lower() == ".npz":
        table = _from_npz(path, target or "y", groups)
    else:
        raise TableError(f"{source}: only .csv and .npz files are read: convert it to one of them.")
    return replace(_without_constant_columns(table), y=_checked_labels(table.name, target or "y", table.y))


def _bundled(source: str, target: str | None, groups: str | None) -> Table:
    if target not in (None, "target") or groups is not None:
        raise TableError(
            f"{source} is a bundled set with its own labels and no groups: leave --target and --groups out."
        )
    data = datasets.load(source)
    return Table(source, data.X, data.y, None, data.feature_names)


def _from_csv(path: Path, target: str | None, groups: str | None) -> Table:
    frame = _read_csv(path)
    if target is None:
        raise TableError(f"{path}: say which column holds the labels: --target COLUMN ({_listed(frame.columns)}).")
    target = _column(path, frame, target, "--target")
    groups = None if groups is None else _column(path, frame, groups, "--groups")
    if target == groups:
        raise TableError(f"{path}: --target and --groups both name the column {target!r}: choose two.")
    _refuse_missing(path, frame)
    features = frame.drop(columns=[name for name in (target, groups) if name is not None])
    X, names, notes = _numbers(path, features)
    y, group = frame[target].to_numpy(), None if groups is None else frame[groups].to_numpy()
    return Table(path.stem, X, y, group, names, notes)


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
        frame = pd.read_csv(path, encoding="utf-8-sig", skipinitialspace=True, low_memory=False)
    except UnicodeDecodeError:
        raise TableError(f"{path}: not UTF-8 text: save it as CSV with UTF-8 encoding.") from None
    except pd.errors.EmptyDataError:
        raise TableError(f"{path}: the file is empty: it needs a header line and rows.") from None
    except (pd.errors.ParserError, csv.Error, ValueError) as error:
        text = str(error).strip().partition("\n")[0].removeprefix("Error tokenizing data. C error: ")
        raise TableError(f"{path}: broken CSV ({text}): mend that line, or quote fields that hold commas.") from None
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise TableError(f"{path}: the header names {_listed(repeated)} more than once: rename these columns.")
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise TableError(f"{path}: one column only, {header[0][:40]!r}: save it with commas between the columns.")
    if not isinstance(frame.index, pd.RangeIndex):
        raise TableError(f"{path}: the rows have more fields than the header: name every column.")
    if frame.empty:
        raise TableError(f"{path}: 0 rows under the header: nothing to learn from.")
    return frame


def _column(path: Path, frame: pd.DataFrame, wanted: str, option: str) -> str:
    matches = [name for name in frame.columns if name == wanted or name.strip() == wanted.strip()]
    if matches:
        return matches[0]
    close = difflib.get_close_matches(wanted, frame.columns, 1)
    hint = f"did you mean {close[0]!r}?" if close else f"there are {_listed(frame.columns)}."
    raise TableError(f"{path}: no column {wanted!r} for {option}: {hint}")


def _refuse_missing(path: Path, frame: pd.DataFrame) -> None:
    missing = frame.isna()
    counts = missing.sum()
    if counts.any():
        where = _listed([f"{name} ({count})" for name, count in counts[counts > 0].items()])
        line = int(missing.any(axis=1).to_numpy().argmax()) + 2
        raise TableError(
            f"{path}: missing values in {where}, first in line {line}: fill them or drop these rows first."
        )
    numeric = frame.select_dtypes("number")
    infinite = ~np.isfinite(numeric.to_numpy(dtype=np.float64)).all(axis=0)
    if infinite.any():
        raise TableError(
            f"{path}: infinite values in {_listed(numeric.columns[infinite])}: replace or drop them first."
        )


def _numbers(path: Path, features: pd.DataFrame) -> tuple[np.ndarray, list[str], list[str]]:
    """Return the features as numbers: text one-hot encoded, identifiers ignored, both said in the notes."""
    notes = []
    columns = [str(name) for name in features.columns]
    text = [name for name in columns if not pd.api.types.is_numeric_dtype(features[name])]
    identifiers = [name for name in text if features[name].nunique() == len(features)]
    if identifiers:
        notes.append(f"ignored, text that differs in every row: {_listed(identifiers)}")
    text = [name for name in text if name not in identifiers]
    numeric = [name for name in columns if name not in text and name not in identifiers]
    values = features[numeric].to_numpy(dtype=np.float64)
    if not text:
        return values, numeric, notes
    sizes = {name: features[name].nunique() for name in text}
    if sum(sizes.values()) > MAX_ONE_HOT:
        widest = max(text, key=sizes.__getitem__)
        raise TableError(
            f"{path}: text columns have {sum(sizes.values())} different values, {sizes[widest]} of them in {widest!r}: "
            "drop or group that column."
        )
    notes.append("one-hot encoded: " + _listed([f"{name} ({size} values)" for name, size in sizes.items()]))
    cells = features[text].astype(str).to_numpy()
    encoder = OneHotEncoder(sparse_output=False).fit(cells)
    names = [f"{name}={value}" for name, values in zip(text, encoder.categories_, strict=True) for value in values]
    return np.hstack([values, encoder.transform(cells)]), [*numeric, *names], notes


def _from_npz(path: Path, target: str, groups: str | None) -> Table:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (zipfile.BadZipFile, OSError, EOFError):
        raise TableError(f"{path}: not an NPZ file, or a damaged one: write it anew with numpy.savez.") from None
    except ValueError:
        raise TableError(f"{path}: holds pickled objects, which are never loaded: save plain arrays.") from None
    for key in (target, groups):
        if key is not None and key not in arrays:
            raise TableError(f"{path}: no array {key!r}: there are {_listed(list(arrays))}.")
    X, y = _matrix(path, arrays), arrays[target]
    group = None if groups is None else arrays[groups]
    for key, labels in ((target, y), (groups, group)):
        if labels is not None and labels.shape != (X.shape[0],):
            raise TableError(f"{path}: {key!r} has the shape {labels.shape}, X has {X.shape[0]} rows: one label a row.")
    if X.shape[0] == 0:
        raise TableError(f"{path}: X has 0 rows: nothing to learn from.")
    names = [str(name) for name in arrays.get("feature_names", np.arange(X.shape[1]))]
    return Table(path.stem, X, y, group, names)


def _matrix(path: Path, arrays: dict[str, np.ndarray]) -> Any:
    if {"data", "indices", "indptr", "shape"} <= arrays.keys() and "X" not in arrays:
        parts = (arrays["data"].astype(np.float64), arrays["indices"], arrays["indptr"])
        X: Any = csr_array(parts, shape=tuple(int(size) for size in arrays["shape"]))
        values = X.data
    elif "X" in arrays:
        X = values = arrays["X"]
    else:
        raise TableError(f"{path}: no array 'X' (or data, indices, indptr, shape): there are {_listed(list(arrays))}.")
    if X.ndim != 2 or not np.issubdtype(values.dtype, np.number):
        raise TableError(f"{path}: X has the shape {X.shape} and type {values.dtype}: it must be a table of numbers.")
    if not np.isfinite(values).all():
        raise TableError(f"{path}: X holds missing or infinite values: fill them or drop these rows first.")
    return X if issparse(X) else X.astype(np.float64)


def _without_constant_columns(table: Table) -> Table:
    if issparse(table.X):
        return table
    varies = np.ptp(table.X, axis=0) > 0
    if not varies.any():
        raise TableError(f"{table.name}: no column is left that varies: add features.")
    if varies.all():
        return table
    names = np.array(table.feature_names)
    note = f"ignored, constant: {_listed(names[~varies])}"
    return replace(table, X=table.X[:, varies], feature_names=names[varies].tolist(), notes=[*table.notes, note])


def _checked_labels(name: str, target: str, y: np.ndarray) -> np.ndarray:
    """Return the labels of a classification, integers as integers; refuse any other."""
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise TableError(f"{name}: the labels {target!r} are missing in some rows: drop these rows first.")
        if (y != np.round(y)).any():
            raise TableError(
                f"{name}: the labels {target!r} are real numbers ({len(np.unique(y))} different values in {len(y)} "
                "rows): methods are ranked as classifiers, so cut them into classes first."
            )
        y = y.astype(np.int64)
    y = y if y.dtype.kind in "iub" else y.astype(str)
    if len(y) < 4:
        raise TableError(f"{name}: {len(y)} rows are too few to hold any out: at least 4 are needed.")
    classes, sizes = np.unique(y, return_counts=True)
    if len(classes) == 1:
        raise TableError(f"{name}: the labels {target!r} hold one class, {classes[0]}: at least two are needed.")
    if sizes.min() == 1:
        alone = _listed(classes[sizes == 1])
        raise TableError(
            f"{name}: a single row of class {alone} in {target!r}, which cannot be both learned from and held out: "
            "merge it with another class or drop it."
        )
    return y


def _listed(names: Any, most: int = 10) -> str:
    """Return 'a, b, c', shortened after `most` names."""
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
