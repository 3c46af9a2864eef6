"""What it takes to map a billion rows, measured on fewer:

    OMP_NUM_THREADS=1 python -m benchmarks.speed.billion --rows 1000000

The rows of million.py are written as people keep embeddings: Parquet files with a number and a list
of 384 numbers in float32 for every row. A scaler with DNE, and an adapter, are fitted to 10,000
others. Then a loop over blocks (NumPy), Dask, and DuckDB (`pip install duckdb`) read all rows, map
them to 64 dimensions and write them, each in one thread. Printed are the processor seconds, the
core hours of a billion rows at the same pace, and the largest difference of the written rows from
`transform` in float64, relative to its largest coordinate. The files are temporary.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.measure import command, timed
from benchmarks.report import head, row
from benchmarks.speed.million import FEATURES, drawn
from nearkin import DNE, EmbeddingAdapter

COMPONENTS = 64
ROWS_TO_FIT = 10_000
ROWS_OF_FILE = 100_000
ROWS_OF_GROUP = 20_000
SCHEMA = pa.schema([("id", pa.int64()), ("embedding", pa.list_(pa.float32()))])
LINEAR = """
    SELECT id, [list_inner_product(embedding, row.a) + row.b FOR row IN map] AS embedding
    FROM 'rows/*.parquet', (SELECT list(row) AS map FROM '{map}' AS row)
"""
ADAPTER = """
    SELECT id, [value / sqrt(list_inner_product(z, z))::FLOAT FOR value IN z] AS embedding
    FROM (
        SELECT id, [list_inner_product(embedding, row.a) + length * row.b FOR row IN map] AS z
        FROM (
            SELECT *, sqrt(list_inner_product(embedding, embedding))::FLOAT AS length
            FROM 'rows/*.parquet'
        ), (SELECT list(row) AS map FROM '{map}' AS row)
    )
"""


def as_table(numbers: np.ndarray, X: np.ndarray) -> pa.Table:
    """Return row numbers and rows as a column of lists."""
    lists = pa.ListArray.from_arrays(
        np.arange(0, X.size + 1, X.shape[1], dtype=np.int32), X.astype(np.float32).ravel()
    )
    return pa.table([numbers, lists], schema=SCHEMA)


def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield numbers and rows, a block at a time."""
    for path in Path("rows").glob("*.parquet"):
        for batch in parquet.ParquetFile(path).iter_batches(ROWS_OF_GROUP):
            X = batch["embedding"].flatten().to_numpy()
            yield batch["id"].to_numpy(), X.reshape(len(batch), -1)


def write_rows(n: int) -> None:
    """Write rows, a file at a time."""
    Path("rows").mkdir()
    for number, start in enumerate(range(0, n, ROWS_OF_FILE)):
        X, _ = drawn(min(ROWS_OF_FILE, n - start), 1 + number)
        table = as_table(np.arange(start, start + len(X)), X)
        parquet.write_table(table, f"rows/{number:05d}.parquet", row_group_size=ROWS_OF_GROUP)


def write_map(path: str, A: np.ndarray, b: np.ndarray) -> None:
    """Write a map as a table: one row for each dimension that it gives."""
    pd.DataFrame({"a": list(A), "b": b}).to_parquet(path)


def by_numpy(model: Any) -> None:
    with parquet.ParquetWriter("short/0.parquet", SCHEMA) as writer:
        for numbers, X in blocks():
            writer.write_table(as_table(numbers, model.transform(X)))


def by_dask(model: Any) -> None:
    rows = dd.read_parquet("rows/", split_row_groups=True)
    with dask.config.set(scheduler="synchronous"):
        rows.map_partitions(
            lambda part: part.assign(
                embedding=list(model.transform(np.stack(part["embedding"].to_numpy())))
            ),
            meta=rows,
        ).to_parquet("short/", schema=SCHEMA, write_index=False)


def by_duckdb(query: str, path: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(f"COPY ({query.format(map=path)}) TO 'short/0.parquet' (FORMAT parquet)")


def difference(model: Any) -> float:
    """Return the largest difference of the written rows from `transform`, over its largest
    coordinate.
    """
    most, largest = 0.0, 0.0
    written = pd.concat(
        [parquet.read_table(path).to_pandas() for path in Path("short").glob("*.parquet")]
    ).set_index("id")["embedding"]
    for numbers, X in blocks():
        Z = model.transform(X.astype(np.float64))
        most = max(most, float(np.abs(np.stack(written[numbers].to_numpy()) - Z).max()))
        largest = max(largest, float(np.abs(Z).max()))
    return most / largest


def size(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob("*.parquet"))


def billion(rows: int = 1_000_000) -> None:
    """Print a line for every engine."""
    X, y = drawn(ROWS_TO_FIT, 1)
    _, seconds, linear = timed(make_pipeline(StandardScaler(), DNE(COMPONENTS)).fit, X, y)
    print(f"scaler and DNE of {ROWS_TO_FIT:,} rows: {seconds:.1f} s")
    _, seconds, adapter = timed(EmbeddingAdapter(COMPONENTS, random_state=0).fit, X, y)
    print(f"adapter of {ROWS_TO_FIT:,} rows: {seconds:.1f} s")
    scaler, dne = linear
    A = dne.components_.astype(np.float64) / scaler.scale_
    b = -A @ scaler.mean_
    engines: dict[str, tuple[Any, Callable[[], None]]] = {
        "NumPy": (linear, lambda: by_numpy(linear)),
        "NumPy, adapter": (adapter, lambda: by_numpy(adapter)),
        "Dask": (linear, lambda: by_dask(linear)),
        "Dask, adapter": (adapter, lambda: by_dask(adapter)),
        "DuckDB": (linear, lambda: by_duckdb(LINEAR, "map.parquet")),
        "DuckDB, map in float64": (linear, lambda: by_duckdb(LINEAR, "map64.parquet")),
        "DuckDB, adapter": (adapter, lambda: by_duckdb(ADAPTER, "adapter.parquet")),
    }
    with TemporaryDirectory() as folder, chdir(folder):
        write_rows(rows)
        write_map("map.parquet", A.astype(np.float32), b.astype(np.float32))
        write_map("map64.parquet", A, b)
        write_map("adapter.parquet", adapter.components_, adapter.bias_)
        print(f"{rows:,} rows of {FEATURES}: {size('rows') / 1e9:.2f} GB of Parquet files")
        columns = "processor seconds", "core hours for 10⁹ rows", "GB written", "difference"
        head("engine", *columns)
        for name, (model, run) in engines.items():
            Path("short").mkdir()
            seconds = timed(run).processor
            hours = f"{seconds / rows * 1e9 / 3600:.1f}"
            written = f"{size('short') / 1e9:.2f}"
            row(name, f"{seconds:.1f}", hours, written, f"{difference(model):.0e}")
            shutil.rmtree("short")


if __name__ == "__main__":
    command(billion)
