"""A folder of Parquet files that may be larger than memory: what its metadata tell, and any of its rows on request.

The rows of a folder are those of its files one after the other, in the order of the files' names. What is read on a
cluster is told by paths and numbers of rows alone, so that every worker that sees the folder can read it, again if need
be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .parquet_table import ParquetFile
from .table import BadCells, TableError, check_length, find_name, note, quoted, require_names, shown

SUFFIX = ".parquet"
BUFFER = 2**16  # bytes for every column that is read
BLOCK_BYTES = 2**26
FEWEST_BLOCKS = 8  # so that there is work for several workers; the same on every cluster, and so is what is learned
INDICES = ("__index_level_", "__null_dask_index__", "Unnamed: ")  # how pandas and Dask name an index of rows
MISSING = "missing values (None, NaN and the like)"


@dataclass(frozen=True)
class Part:
    """A run of rows of one file.

    Attributes
    ----------
    path : Path
    start, stop : int
        Numbers of the first row, and of the one behind the last, in the file.
    """

    path: Path
    start: int
    stop: int


@dataclass(frozen=True)
class Block:
    """A run of rows of a folder.

    Attributes
    ----------
    start : int
        The number of the first row in the folder.
    parts : tuple of Part
    """

    start: int
    parts: tuple[Part, ...]

    def __len__(self) -> int:
        return sum(part.stop - part.start for part in self.parts)


@dataclass(frozen=True)
class Folder:
    """Parquet files with the same columns.

    Attributes
    ----------
    path : Path
    files : list of Path
        Absolute, sorted by name; links are not followed, so that no two files have one name.
    group_sizes : list of list of int
        How many rows every row group of each file has.
    names : list of str
        Of the columns.
    text : list of str
        Columns of text.
    """

    path: Path
    files: list[Path]
    group_sizes: list[list[int]]
    names: list[str]
    text: list[str]

    @property
    def name(self) -> str:
        """Return the name of the folder, also of "."."""
        return self.path.resolve().name

    @property
    def sizes(self) -> list[int]:
        """Return how many rows every file has."""
        return [sum(sizes) for sizes in self.group_sizes]

    @property
    def n_rows(self) -> int:
        """Return n."""
        return sum(self.sizes)

    @property
    def whole_files(self) -> list[Part]:
        """Return all rows of every file."""
        return [Part(path, 0, size) for path, size in zip(self.files, self.sizes, strict=True)]

    def features(self, target: str) -> tuple[list[str], list[str]]:
        """Return the columns to learn from, and notes on those that are left out; refuse text."""
        indices = [name for name in self.names if name.startswith(INDICES) and name != target]
        features = [name for name in self.names if name not in (target, *indices)]
        text = [name for name in features if name in self.text]
        if text:
            raise TableError(
                f"{self.path}: a folder is learned from by its numbers, and {quoted(text, 5)} hold text: write the "
                "files without these columns, or with numbers in their place."
            )
        if not features:
            raise TableError(f"{self.path}: no feature columns are left to learn from: add columns of numbers.")
        return features, note("ignored, numbers of the rows without a name", indices)

    def blocks(self, n_features: int, most_blocks: int) -> list[Block]:
        """Return the rows cut into blocks of at most 64 MB of float32, at least 8 of them where there are so many rows.

        The blocks of a folder so large that these were more than `most_blocks` are larger.
        """
        n = self.n_rows
        wanted = min(BLOCK_BYTES // (4 * n_features), -(-n // FEWEST_BLOCKS))
        return cut(self.files, self.group_sizes, max(1, wanted, -(-2 * n // (most_blocks - 1))))


def open_folder(path: Path) -> Folder:
    """Return a folder, by the metadata of its files; refuse one whose files do not have the same columns."""
    if not path.is_dir():
        raise TableError(f"{path} is no folder, and --dask takes one of {SUFFIX} files: leave --dask out, or give one.")
    found = sorted(path.glob("*" + SUFFIX))
    files = [file.absolute() for file in found if file.is_file() and not file.name.startswith((".", "_"))]
    if not files:
        raise TableError(f"{path} holds no {SUFFIX} files: give the folder in which they are.")
    tables = [opened(file) for file in files]
    first, *others = [table for table in tables if table.n_rows] or tables
    for file in others:
        _require_same_columns(first, file)
    text = [name for name in first.names if first.is_text(name)]
    return Folder(path, files, [table.group_sizes for table in tables], first.names, text)


def _require_same_columns(first: ParquetFile, file: ParquetFile) -> None:
    lacking = [name for name in first.names if name not in set(file.names)]
    further = [name for name in file.names if name not in set(first.names)]
    if lacking or further:
        differs = [f"lacks {quoted(lacking, 5)}"] * bool(lacking) + [f"also has {quoted(further, 5)}"] * bool(further)
        raise TableError(
            f"{file.path} {' and '.join(differs)}, unlike {first.path.name}: give all files the same columns."
        )
    for name in first.names:
        if first.is_text(name) != file.is_text(name):
            kinds = ("text", "numbers") if file.is_text(name) else ("numbers", "text")
            raise TableError(
                f"{file.path}: {shown(name)} holds {kinds[0]}, but {kinds[1]} in {first.path.name}: write one of them "
                "like the other."
            )


def opened(path: Path) -> ParquetFile:
    """Return a file of a folder."""
    if not path.exists():
        raise TableError(f"{path} is not there: every worker must see the folder, under the same path.")
    return ParquetFile(path, buffer_size=BUFFER)


def cut(files: Sequence[Path], group_sizes: Sequence[Sequence[int]], most: int) -> list[Block]:
    """Return all rows in blocks of at most `most` rows, cut between row groups where these are not larger.

    There are at most 2 n / most + 1 blocks: two that follow each other have more than `most` rows together, and the
    parts of a larger group more than most / 2 each.
    """
    blocks, parts, start, size = [], list[Part](), 0, 0
    for part in _pieces(files, group_sizes, most):
        rows = part.stop - part.start
        if size and size + rows > most:
            blocks.append(Block(start, tuple(parts)))
            start, size, parts = start + size, 0, []
        if parts and parts[-1].path == part.path:
            part = Part(part.path, parts.pop().start, part.stop)
        parts.append(part)
        size += rows
    return [*blocks, Block(start, tuple(parts))] if size else blocks


def _pieces(files: Sequence[Path], group_sizes: Sequence[Sequence[int]], most: int) -> list[Part]:
    """Return the row groups, larger ones cut evenly."""
    pieces = []
    for path, sizes in zip(files, group_sizes, strict=True):
        first = 0
        for size in sizes:
            n_pieces = -(-size // most)
            ends = [first + size * piece // n_pieces for piece in range(n_pieces + 1)] if size else []
            pieces += [Part(path, start, stop) for start, stop in pairwise(ends)]
            first += size
    return pieces


# What workers do: every function opens the files by itself.


def features_of(block: Block, names: list[str], *, rows: np.ndarray | None = None, but: bool = False) -> np.ndarray:
    """Return columns of numbers of a block, or of some of its rows, or of all but these; float32, finite.

    `rows` are numbers of rows in the folder, ascending.
    """
    X, at = np.empty((len(block), len(names)), np.float32), 0
    for part in block.parts:
        for _, some in number_batches(part, names, np.float32):
            X[at : at + len(some)] = some
            at += len(some)
    return X if rows is None else X[chosen(block, rows, but)]


def labels_of(
    block: Block, target: str, classes: np.ndarray, *, rows: np.ndarray | None = None, but: bool = False
) -> np.ndarray:
    """Return the classes of the rows of a block as numbers 0, 1, ...; `rows` and `but` as in `features_of`."""
    y = np.concatenate([_codes(part, target, classes) for part in block.parts])
    return y if rows is None else y[chosen(block, rows, but)]


def chosen(block: Block, rows: np.ndarray, but: bool = False) -> np.ndarray:
    """Return which rows of a block are among the given ones, or not."""
    among = np.zeros(len(block), dtype=bool)
    low, high = np.searchsorted(rows, [block.start, block.start + len(block)])
    among[rows[low:high] - block.start] = True
    return ~among if but else among


def number_batches(part: Part, names: list[str], dtype: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Yield columns of finite numbers, some rows at a time, each with the number of its first row in the file.

    Missing and infinite values end this; they are counted, and refused by the file, the column and the row.
    """
    file = opened(part.path)
    missing, infinite = BadCells(MISSING), BadCells(f"values that are infinite in {np.dtype(dtype)}")
    for start, batch in file.batches(names, part.start, part.stop):
        X = as_numbers(batch, dtype)
        missing.add(names, np.isnan(X), start)
        infinite.add(names, np.isinf(X), start)
        if not missing.counts and not infinite.counts:
            yield start, X
    missing.refuse(part.path, file.place)
    infinite.refuse(part.path, file.place)


def as_numbers(batch: Any, dtype: Any) -> np.ndarray:
    """Return the columns of an Arrow batch as a matrix; a missing value is NaN."""
    import pyarrow as pa

    X, kind = np.empty((len(batch), batch.num_columns), dtype), pa.from_numpy_dtype(dtype)
    for place, column in enumerate(batch.columns):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        X[:, place] = plain.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return X


def count_classes(part: Part, target: str, as_text: bool) -> Counter[Any]:
    """Return how many rows every class has; refuse rows without one."""
    file, counts, missing = opened(part.path), Counter[Any](), BadCells(MISSING)
    for start, batch in file.batches([target], part.start, part.stop):
        column = _read_as_labels(batch.column(0), as_text)
        missing.add([target], column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)[:, None], start)
        counts.update({one["values"]: one["counts"] for one in column.value_counts().to_pylist()})
    missing.refuse(part.path, file.place)
    return counts


def _codes(part: Part, target: str, classes: np.ndarray) -> np.ndarray:
    import pyarrow as pa
    from pyarrow import compute

    known = pa.array(classes.tolist())
    columns = (batch.column(0) for _, batch in opened(part.path).batches([target], part.start, part.stop))
    labels = [_read_as_labels(column, classes.dtype.kind == "U").cast(known.type) for column in columns]
    return np.concatenate([compute.index_in(column, value_set=known).to_numpy() for column in labels])


def _read_as_labels(column: Any, as_text: bool) -> Any:
    """Return an Arrow column as strings, integers, truth values or numbers."""
    import pyarrow as pa

    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if as_text:
        return column.cast(pa.string())
    return column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column


# What the target holds.


def classes_of(folder: Folder, target: str, counts: Counter[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, sorted, and their sizes; refuse what k-NN cannot vote on."""
    if target not in folder.text and any(value % 1 for value in counts):
        raise TableError(
            f"{folder.path}: {shown(target)} holds real numbers, but compare --dask ranks classifiers and the target "
            "must be classes: cut them into classes."
        )
    values = list(counts) if target in folder.text else [int(v) if isinstance(v, float) else v for v in counts]
    if target in folder.text:
        check_length(f"{folder.path}: {shown(target)}", map(str, values))
    classes = np.array(sorted(values))
    if len(classes) == 1:
        raise TableError(
            f"{folder.path}: {shown(target)} holds one class, {shown(classes.item())}: give rows of at least two "
            "classes."
        )
    if 2 * len(classes) > folder.n_rows:
        raise TableError(
            f"{folder.path}: {shown(target)} has {len(classes)} values in {folder.n_rows} rows, too few rows of each "
            "to learn from: give --target a column of classes."
        )
    by_value = dict(zip(values, counts.values(), strict=True))
    return classes, np.array([by_value[value] for value in classes.tolist()])


def find_target(folder: Folder, target: str | None) -> str:
    """Return the column that was meant."""
    if target is None:
        raise TableError(f"{folder.path}: say which column holds the classes by --target: {quoted(folder.names)}.")
    return find_name(folder.path, folder.names, target, "--target")


def require_numbers(folder: Folder, needed: list[str]) -> None:
    """Refuse a folder that lacks columns of a model, or has text in their place."""
    require_names(folder.path, folder.names, needed)
    text = [name for name in needed if name in folder.text]
    if text:
        raise TableError(
            f"{folder.path}: {quoted(text, 5)} hold text, but numbers were learned from there: give numbers."
        )
