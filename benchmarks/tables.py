"""Memory and time of reading a large table: peak above the imports against the numbers themselves, time beside pandas.

    python benchmarks/tables.py

prints Markdown. The table is a million rows of fifty numbers and a label, in every format; each file is read in a fresh
process (Linux only): by `read_table` (`nearkin compare`), by `read_rows` (`nearkin predict`), and by pandas.
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
from pyarrow import csv

from nearkin.app.encoder import numbers_only
from nearkin.app.tables import read_rows, read_table

N_COLUMNS = 50
NAMES = [f"x{j}" for j in range(N_COLUMNS)]
LABELS = np.array(["ash", "beech", "elm", "larch", "oak", "pine", "rowan", "spruce", "willow", "yew"])

WRITERS = {
    "NPZ": lambda X, y, path: np.savez(path, X=X, y=y, feature_names=NAMES),
    "NPZ, compressed": lambda X, y, path: np.savez_compressed(path, X=X.round(2), y=y, feature_names=NAMES),
    "NPZ, a constant column": lambda X, y, path: WRITERS["NPZ"](with_a_constant(X), y, path),
    "NPZ of float32": lambda X, y, path: WRITERS["NPZ"](X.astype(np.float32), y, path),
    "NPZ of int64": lambda X, y, path: WRITERS["NPZ"]((1000 * X).astype(np.int64), y, path),
    "Parquet as pandas writes it": lambda X, y, path: frame(X, y).to_parquet(path),
    "Parquet, groups of 20,000 rows": lambda X, y, path: frame(X, y).to_parquet(path, row_group_size=20_000),
    "Parquet, a constant column": lambda X, y, path: frame(with_a_constant(X), y).to_parquet(path),
    "CSV": lambda X, y, path: csv.write_csv(pa.Table.from_pandas(frame(X, y)), path),
    "CSV, a constant column": lambda X, y, path: WRITERS["CSV"](with_a_constant(X), y, path),
}
READERS = {
    "read_table": lambda path: read_table(path, "y"),
    "read_rows": lambda path: read_rows(path, numbers_only(NAMES)),
    "pandas": lambda path: (pd.read_csv if path.endswith(".csv") else pd.read_parquet)(path),
}


def frame(X, y):
    return pd.DataFrame(X, columns=NAMES).assign(y=y)


def with_a_constant(X):
    X = X.copy()
    X[:, N_COLUMNS // 2] = 1
    return X


def read(name, path):
    """Print the seconds that a reader takes, and the bytes by which the process grows at its peak."""
    before = memory("VmRSS")
    start = time.perf_counter()
    result = READERS[name](path)  # held: at the end it counts
    print(time.perf_counter() - start, memory("VmHWM") - before)
    del result


def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def measured(name, path):
    command = [sys.executable, __file__, "--read", name, str(path)]
    seconds, n_bytes = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), float(n_bytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="only the tables whose names begin with this")
    parser.add_argument("--read", nargs=2, metavar=("READER", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        return read(*options.read)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(options.rows, N_COLUMNS)), rng.choice(LABELS, options.rows)
    print(f"| {options.rows:,} x {N_COLUMNS} | memory: `read_table` | `read_rows` | pandas | seconds: `read_table` "
          "| `read_rows` | pandas |\n|---|---|---|---|---|---|---|")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for name, write in WRITERS.items():
            if name.startswith(options.only):
                path = Path(folder, f"table.{name.split()[0].strip(',').lower()}")
                write(X, y, path)
                readers = READERS if path.suffix != ".npz" else ["read_table", "read_rows"]
                seconds, n_bytes = zip(*(measured(reader, path) for reader in readers), strict=True)
                cells = [f"{value / X.nbytes:.2f}" for value in n_bytes] + ["-"] * (3 - len(n_bytes))
                cells += [f"{value:.1f}" for value in seconds] + ["-"] * (3 - len(seconds))
                print(f"| {name} | {' | '.join(cells)} |", flush=True)
                path.unlink()


if __name__ == "__main__":
    main()
