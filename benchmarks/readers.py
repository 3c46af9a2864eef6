"""Memory and time of reading a large table: peak above the imports against the numbers themselves,
time beside pandas.

    python benchmarks/readers.py

prints Markdown. The table is a million rows of fifty numbers and a label, in every format; each
file is read in a fresh process (Linux only): by `read_table` (`nearkin compare`), by `read_rows`
(`nearkin predict`), and by pandas.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from nearkin.app.tables import number_encoder, read_rows, read_table
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


def write_parquet_in_many_groups(X, y, path):
    parquet.write_table(pa.Table.from_pandas(frame(X, y)), path, row_group_size=20_000)


def write_parquet_with_words(X, y, path):
    frame(X, y).assign(word=y).to_parquet(path)


def write_csv(X, y, path):
    csv.write_csv(pa.Table.from_pandas(frame(X, y)), path)


def write_csv_with_words(X, y, path):
    csv.write_csv(pa.Table.from_pandas(frame(X, y).assign(word=y)), path)


def frame(X, y):
    return pd.DataFrame(X, columns=NAMES).assign(y=y)


def same(X):
    return X


def with_a_constant(X):
    X = X.copy()
    X[:, len(NAMES) // 2] = 1
    return X


TABLES = {
    "NPZ": (write_npz, same, "plain.npz"),
    "NPZ, compressed": (write_compressed_npz, same, "plain.npz"),
    "NPZ, one column constant": (write_npz, with_a_constant, "plain.npz"),
    "NPZ, column after column, one constant": (
        write_npz,
        lambda X: np.asfortranarray(with_a_constant(X)),
        "plain.npz",
    ),
    "NPZ of float32": (write_npz, lambda X: X.astype(np.float32), "plain.npz"),
    "NPZ of int64": (write_npz, lambda X: (1000 * X).astype(np.int64), "plain.npz"),
    "Parquet as pandas writes it": (write_parquet, same, "plain.parquet"),
    "Parquet, groups of 20,000 rows": (write_parquet_in_many_groups, same, "plain.parquet"),
    "Parquet, one column constant": (write_parquet, with_a_constant, "plain.parquet"),
    "Parquet, one column of ten words more: X is 1.2 times as wide": (
        write_parquet_with_words,
        same,
        "words.parquet",
    ),
    "CSV": (write_csv, same, "plain.csv"),
    "CSV, one column constant": (write_csv, with_a_constant, "plain.csv"),
    "CSV, one column of ten words more: X is 1.2 times as wide": (
        write_csv_with_words,
        same,
        "words.csv",
    ),
}


def read(reader, path):
    """Print the seconds that a reader takes, and the bytes by which the process grows at its peak."""
    encoder = number_encoder(NAMES)
    if path.stem == "words":
        encoder.columns_.append(CategoryColumn("word", tuple(sorted(WORDS.tolist()))))
    before, start = memory("VmRSS"), time.perf_counter()
    if reader == "read_table":
        result = read_table(str(path), "y")
    elif reader == "read_rows":
        result = read_rows(str(path), encoder)
    else:
        result = (pd.read_csv if path.suffix == ".csv" else pd.read_parquet)(path)
    print(time.perf_counter() - start, memory("VmHWM") - before)
    del result  # until here it counts


def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def measured(reader, path):
    if reader == "pandas" and path.suffix == ".npz":
        return None, None
    command = [sys.executable, __file__, "--read", reader, str(path)]
    return map(
        float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    )


def cell(value, form):
    return "-" if value is None else format(value, form)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--only", default="", metavar="NAME", help="only the tables whose names begin so"
    )
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        return read(options.read[0], Path(options.read[1]))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(options.rows, len(NAMES))), rng.choice(WORDS, options.rows)
    print(
        f"| {options.rows:,} x {len(NAMES)} | peak memory / X: {' | '.join(READERS)} | seconds: "
        f"{' | '.join(READERS)} |"
    )
    print("|---" * (1 + 2 * len(READERS)) + "|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (write, change, file_name) in TABLES.items():
            if name.startswith(options.only):
                path = Path(folder, file_name)
                write(change(X), y, path)
                seconds, n_bytes = zip(*(measured(reader, path) for reader in READERS), strict=True)
                ratios = [cell(value and value / X.nbytes, ".2f") for value in n_bytes]
                print(
                    f"| {' | '.join([name, *ratios, *(cell(value, '.1f') for value in seconds)])} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
