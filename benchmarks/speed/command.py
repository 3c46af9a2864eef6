"""What the command costs: reading a large table, and the first answer of `nearkin compare`.

    python -m benchmarks.speed.command readers
    python -m benchmarks.speed.command times

"readers": peak memory above the imports against the numbers themselves, time beside pandas. The table is
a million rows of fifty numbers and a label, in every format; each file is read in a fresh process (Linux
only): by `read_table` (`nearkin compare`), by `read_rows` (`nearkin predict`), and by pandas.

"times" are those of `nearkin.comparison.compare` with its defaults on all cores, in a process of its own.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv

from benchmarks.measure import apart, command, memory, timed
from benchmarks.report import head, row
from nearkin.app.tables.reading import number_encoder, read_rows, read_table
from nearkin.comparison import compare
from nearkin.datasets import load
from nearkin.tables.columns import CategoryColumn

NAMES = [f"x{j}" for j in range(50)]
WORDS = np.array(
    ["ash", "beech", "elm", "larch", "oak", "pine", "rowan", "spruce", "willow", "yew"]
)
READERS = ("read_table", "read_rows", "pandas")


def write_npz(X, y, path):
    np.savez(path, X=X, y=y, feature_names=NAMES)


def write_compressed_npz(X, y, path):
    np.savez_compressed(path, X=X.round(2), y=y, feature_names=NAMES)


def write_parquet(X, y, path):
    frame(X, y).to_parquet(path)


def write_csv(X, y, path):
    csv.write_csv(pa.Table.from_pandas(frame(X, y)), path)


def write_csv_with_words(X, y, path):
    csv.write_csv(pa.Table.from_pandas(frame(X, y).assign(word=y)), path)


def frame(X, y):
    return pd.DataFrame(X, columns=NAMES).assign(y=y)


def same(X):
    return X


def with_a_constant(X):
    X = X.copy(order="F")
    X[:, len(NAMES) // 2] = 1
    return X


TABLES = {
    "NPZ": (write_npz, same, "plain.npz"),
    "NPZ, compressed": (write_compressed_npz, same, "plain.npz"),
    "NPZ, column after column, one constant": (write_npz, with_a_constant, "plain.npz"),
    "NPZ of float32": (write_npz, lambda X: X.astype(np.float32), "plain.npz"),
    "Parquet as pandas writes it": (write_parquet, same, "plain.parquet"),
    "CSV": (write_csv, same, "plain.csv"),
    "CSV, one column of ten words more: X is 1.2 times as wide": (
        write_csv_with_words,
        same,
        "words.csv",
    ),
}


def read(reader: str, path: Path) -> tuple[float, int]:
    """Return the seconds that a reader takes, and the bytes by which the process grows at its peak."""
    encoder = number_encoder(NAMES)
    if path.stem == "words":
        encoder.columns_.append(CategoryColumn("word", tuple(sorted(WORDS.tolist()))))
    readers: dict[str, Callable[[], object]] = {
        "read_table": lambda: read_table(str(path), "y"),
        "read_rows": lambda: read_rows(str(path), encoder),
        "pandas": lambda: (pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path),
    }
    before = memory("VmRSS")
    return timed(readers[reader]).seconds, memory() - before


def readers(rows: int = 1_000_000, only: str = "") -> None:
    """Print memory and seconds of reading; `only` of the tables whose names begin so."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(rows, len(NAMES))), rng.choice(WORDS, rows)
    first, *others = READERS
    starts = f"peak memory / X: {first}", f"seconds: {first}"
    head(f"{rows:,} x {len(NAMES)}", *(one for start in starts for one in (start, *others)))
    with tempfile.TemporaryDirectory() as folder:
        for name, (write, change, file_name) in TABLES.items():
            if name.startswith(only):
                path = Path(folder, file_name)
                write(change(X), y, path)
                able = READERS[:-1] if path.suffix == ".npz" else READERS
                found = [apart(read, reader, path) for reader in able]
                missing = ["-"] * (len(READERS) - len(found))
                ratios = [f"{n_bytes / X.nbytes:.2f}" for _, n_bytes in found]
                row(name, *ratios, *missing, *(f"{seconds:.1f}" for seconds, _ in found), *missing)


SIZES = {"balance_scale": 20, "5000x30": 60, "2000x500": 120, "50000x30": 180, "500000x50": 600}


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a bundled set; or of "5000x30", rows of four classes of three clusters each, in twelve
    directions.
    """
    if "x" not in name or not name[0].isdigit():
        dataset = load(name)
        return dataset.X, dataset.y
    n, p = map(int, name.split("x"))
    rng, q = np.random.default_rng(0), 12
    centres = 1.3 * rng.normal(size=(12, q))
    cluster = rng.integers(12, size=n)
    X = rng.normal(size=(n, p)).astype(np.float32)
    X[:, :q] += centres[cluster]
    return X @ np.linalg.qr(rng.normal(size=(p, p)))[0].astype(np.float32), cluster % 4


def one_time(name: str) -> list[str]:
    """Return the cells of a row of the table of times."""
    X, y = rows_of(name)
    seconds, _, found = timed(lambda: compare(X, y, refit=False))
    n_ranked = f"{sum(r.kind == 'method' for r in found.results)} of {len(found.methods) - 1}"
    folds = f"{len(found.folds)} x {len(found.folds[0][1])}"
    scores = f"{found.raw.score.mean():.3f}", f"{found.choice.score.mean():.3f}"
    peak = f"{(memory() + children_peak()) / 1e9:.1f}"
    return [f"{seconds:.0f}", str(SIZES[name]), peak, n_ranked, folds, *scores, found.choice.status]


def children_peak() -> int:
    """Return the largest resident size of the processes that this one has started, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def times(sets: tuple[str, ...] = ()) -> None:
    """Print how long comparisons take."""
    about = "seconds", "limit", "peak GB", "ranked", "folds x rows"
    head("table", *about, "raw k-NN", "choice", "verdict")
    for name in sets or SIZES:
        row(name, *apart(one_time, name))


if __name__ == "__main__":
    command(readers, times)
