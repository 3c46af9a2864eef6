"""A folder of Parquet files that may be larger than memory: its metadata, and rows on request.

The rows of a folder are those of its files, concatenated in the order of file names. Paths and row
numbers alone say what to read, so every worker of a cluster that sees the folder can read it,
repeatedly if necessary.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..._messages import in_row, note, quoted
from ..endings import TableError
from ..files.parquet_file import ParquetFile
from ..files.readers import BadCells, Names, as_floats, require_names

SUFFIX = ".parquet"
BLOCK_BYTES = 2**26
# enough work for several workers; the same on every cluster, so that results are the same
FEWEST_BLOCKS = 8
# names of an index of rows in pandas and Dask
INDICES = ("__index_level_", "__null_dask_index__", "Unnamed: ")


@dataclass(frozen=True)
class Part:
    """A range of rows of one file, from `start` to before `stop`."""

    path: Path
    start: int
    stop: int


@dataclass(frozen=True)
class Block:
    """A range of rows of a folder; `start` is the number of the first one in the folder."""

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
    files : list of Part
        All rows of every file. Paths are absolute and sorted by name. Links are not followed, so
        that file names are unique.
    group_sizes : list of list of int
        Number of rows of every row group of each file.
    names : sequence of str
        Of the columns.
    text : sequence of str
        Columns of text.
    """

    path: Path
    files: list[Part]
    group_sizes: list[list[int]]
    names: Names
    text: Names

    @property
    def name(self) -> str:
        """Return the name of the folder, even for "."."""
        return self.path.resolve().name

    @property
    def n_rows(self) -> int:
        """Return n."""
        return sum(file.stop for file in self.files)

    def features(self, target: str) -> tuple[list[str], list[str]]:
        """Return the columns to learn from, and notes on the others; raise an error for text."""
        indices = [name for name in self.names if name.startswith(INDICES) and name != target]
        features = [name for name in self.names if name not in (target, *indices)]
        self.require_numbers(features)
        if not features:
            raise TableError(
                f"{self.path}: no feature columns are left to learn from: add columns of numbers."
            )
        return features, note("ignored, unnamed row numbers", indices)

    def require_numbers(self, needed: list[str]) -> None:
        """Raise an error if the folder lacks columns, or has text in them."""
        require_names(self.path, self.names, needed)
        text = [name for name in needed if name in self.text]
        if text:
            raise TableError(
                f"{self.path} holds text in {quoted(text, 5)}: leave it out, or replace it by "
                "numbers."
            )

    def blocks(self, n_features: int, most_blocks: int) -> list[Block]:
        """Return the rows in blocks of at most `BLOCK_BYTES` in float32, at least 8 if possible.

        If that would make more than `most_blocks`, the blocks are larger.
        """
        n = self.n_rows
        most = min(BLOCK_BYTES // (4 * n_features), -(-n // FEWEST_BLOCKS))
        return self.cut(max(1, most, -(-2 * n // (most_blocks - 1))))

    def cut(self, most: int) -> list[Block]:
        """Return all rows in blocks of at most `most` rows.

        Blocks are cut between row groups, and within those that are larger than a block. There are
        at most 2 n / most + 1 blocks: two consecutive ones have more than `most` rows together, and
        the pieces of a larger group more than most / 2 each.
        """
        ends = [0]  # where a block may end
        for size in chain.from_iterable(self.group_sizes):
            n_pieces = -(-size // most)
            ends += [ends[-1] + size * piece // n_pieces for piece in range(1, n_pieces + 1)]
        blocks, start = list[Block](), 0
        while start < ends[-1]:
            stop = ends[bisect_right(ends, start + most) - 1]
            parts, first = list[Part](), 0
            for file in self.files:
                part = Part(file.path, max(start - first, 0), min(stop - first, file.stop))
                if part.start < part.stop:
                    parts.append(part)
                first += file.stop
            blocks.append(Block(start, tuple(parts)))
            start = stop
        return blocks


def open_folder(path: Path) -> Folder:
    """Return a folder from the metadata of its files; raise an error if their columns differ."""
    if not path.is_dir():
        raise TableError(
            f"{path} is not a folder, but --dask needs one of {SUFFIX} files: leave --dask out, or "
            "give one."
        )
    tables = [
        ParquetFile(file.absolute())
        for file in sorted(path.glob("*" + SUFFIX))
        if file.is_file() and not file.name.startswith((".", "_"))
    ]
    if not tables:
        raise TableError(f"{path} holds no {SUFFIX} files: give the folder that contains them.")
    filled = [table for table in tables if table.n_rows] or tables
    first = filled[0]
    theirs = set(first.names)
    for table in filled:
        ours = set(table.names)
        differences = {
            "lacks": theirs - ours,
            "also has": ours - theirs,
            "has other types in": (set(first.text) ^ set(table.text)) & ours & theirs,
        }
        said = [
            f"{what} {quoted(sorted(names), 5)}" for what, names in differences.items() if names
        ]
        if said:
            raise TableError(
                f"{table.path} {' and '.join(said)}, unlike {first.path.name}: give all files the "
                "same columns."
            )
    files = [Part(table.path, 0, table.n_rows) for table in tables]
    return Folder(path, files, [table.group_sizes for table in tables], first.names, first.text)


# Work on a cluster: every function opens the files by itself.


def features_of(block: Block, names: list[str]) -> np.ndarray:
    """Return numeric columns of a block in float32, which must be finite."""
    batches = (some for part in block.parts for some in number_batches(part, names, np.float32))
    return np.concatenate(list(batches))


def labels_of(block: Block, target: str, classes: np.ndarray) -> np.ndarray:
    """Return class codes 0, 1, ... of a block."""
    return pd.Index(classes.tolist()).get_indexer(values_of(block, target)).astype(np.int32)


def row_hashes(X: np.ndarray, seed: int) -> np.ndarray:
    """Return a random 64-bit number for every row of X, the same for equal rows."""
    frame = pd.DataFrame(X + X.dtype.type(0))  # -0.0 becomes 0.0
    frame.insert(0, "seed", seed)
    return pd.util.hash_pandas_object(frame, index=False).to_numpy()


class Drawn(NamedTuple):
    """Some rows of a folder: their hashes, numbers, features and class codes."""

    hashes: np.ndarray
    rows: np.ndarray
    X: np.ndarray
    codes: np.ndarray


def rows_below(
    block: Block, names: list[str], target: str, classes: np.ndarray, seed: int, limit: int
) -> Drawn:
    """Return the rows of a block whose hash is at most a limit: of equal rows all or none."""
    X = features_of(block, names)
    hashes = row_hashes(X, seed)
    drawn = np.flatnonzero(hashes <= np.uint64(limit))
    codes = labels_of(block, target, classes)[drawn]
    return Drawn(hashes[drawn], block.start + drawn, X[drawn], codes)


def values_of(block: Block, name: str) -> np.ndarray:
    """Return a column of a block unchanged."""
    batches = (batch for part in block.parts for _, batch in _batches(part, [name]))
    return np.concatenate([batch[name].to_numpy(zero_copy_only=False) for batch in batches])


def number_batches(
    part: Part, names: list[str], dtype: Any, marks: Sequence[float] = (), *, gaps: bool = False
) -> Iterator[np.ndarray]:
    """Yield numeric columns, some rows at a time; NaN for missing cells and cells with `marks`.

    Infinite values, and missing ones unless `gaps` are allowed, end the iteration: they are
    counted, and an error names the file, the column and the row.
    """
    bad = BadCells(not gaps, f"values that are infinite in {np.dtype(dtype)}")
    for start, batch in _batches(part, names):
        X = np.column_stack([as_floats(column, dtype) for column in batch.columns])
        if len(marks):
            X[np.isin(X, marks)] = np.nan
        if not bad.add(names, X, start):
            yield X
    bad.refuse(part.path, in_row)


def count_classes(part: Part, target: str) -> Counter[Any]:
    """Return the number of rows of every class; raise an error for unlabelled rows."""
    counts, bad = Counter[Any](), BadCells(True)
    for start, batch in _batches(part, [target]):
        gaps = batch[target].is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        bad.add([target], np.where(gaps, np.nan, 0)[:, None], start)
        counts.update(
            {one["values"]: one["counts"] for one in batch[target].value_counts().to_pylist()}
        )
    bad.refuse(part.path, in_row)
    return counts


def _batches(part: Part, names: list[str]) -> Iterator[tuple[int, Any]]:
    if not part.path.exists():
        raise TableError(
            f"{part.path} does not exist: every worker must see the folder under the same path."
        )
    return ParquetFile(part.path).rows(names, part.start, part.stop)
