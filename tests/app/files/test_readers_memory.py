"""What reading a table takes at its peak, in a process of its own."""

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not Path("/proc/self/status").exists(), reason="memory is measured as Linux tells it"
    ),
]

# 4 GB are more than any table here may take, and less than what some took: the machine is not to
# suffer from a mistake
READ = """
import json, resource, sys
from pathlib import Path

import pandas, pyarrow.parquet, sklearn.ensemble
import nearkin.comparison  # which reading loads otherwise
from nearkin.app.endings import TableError
from nearkin.app.files import csv_file, npz_file, parquet_file
from nearkin.app.tables.reading import read_table

def memory(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))

resource.setrlimit(resource.RLIMIT_AS, (memory("VmSize") + 4 * 2**30,) * 2)
before = memory("VmRSS")
try:
    found = read_table(sys.argv[1], "kind").X.shape
except TableError as error:
    found = str(error)
print(json.dumps([memory("VmHWM") - before, found]))
"""


def peak(path):
    """Return the bytes by which a process grows that reads a table, and the shape that it found, or
    its one line.
    """
    command = [sys.executable, "-W", "error", "-c", READ, str(path)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


@pytest.fixture(scope="module")
def numbers():
    return np.random.default_rng(0).normal(size=(200_000, 20)).round(3)


@pytest.mark.parametrize(("suffix", "most"), [("npz", 1.5), ("parquet", 3), ("csv", 3.5)])
def test_numbers_are_held_once(tmp_path, numbers, suffix, most):
    """For 32 MB of numbers; the bounds leave room for what does not grow with the table."""
    path = tmp_path / f"t.{suffix}"
    kind = np.array(["a", "b"] * 100_000)
    frame = pd.DataFrame(numbers).rename(columns=str).assign(kind=kind)
    if suffix == "npz":
        np.savez(path, X=numbers, kind=kind)
    elif suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    n_bytes, shape = peak(path)
    assert shape == [200_000, 20]
    assert n_bytes < most * numbers.nbytes


def claiming(shape):
    header = (
        f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode()
        + b"\n"
    )
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def archive(X):
    file, kinds = io.BytesIO(), io.BytesIO()
    np.save(kinds, np.array(["a", "b"] * 12))
    with zipfile.ZipFile(file, "w") as members:
        members.writestr("X.npy", X)
        members.writestr("kind.npy", kinds.getvalue())
    return file.getvalue()


def sparse(n_columns):
    file = io.BytesIO()
    parts = {
        "data": np.ones(24),
        "indices": np.arange(24),
        "indptr": np.arange(25),
        "shape": [24, n_columns],
    }
    np.savez(file, **parts, kind=np.array(["a", "b"] * 12))
    return file.getvalue()


def csv(**columns):
    return pd.DataFrame(
        {"size": np.arange(20_000) % 7, "kind": np.arange(20_000) % 2, **columns}
    ).to_csv(index=False)


LONG = "x" * 100_000
GREEDY = {
    "no rows, 10**12 columns.npz": (archive(claiming("(0, 1000000000000)")), "(0, 1000000000000)"),
    "no numbers, 10**8 rows.npz": (archive(claiming("(100000000, 20)")), "t.npz"),
    "10**8 columns.npz": (sparse(10**8), "(24, 100000000)"),
    "a long text among 20,000.csv": (
        csv(text=[f"{i}{LONG if i == 0 else ''}" for i in range(20_000)]),
        "[20000, 2]",
    ),
    "a long value among 20,000.csv": (
        csv(text=[LONG if i < 2 else "a" for i in range(20_000)]),
        "[20000, 1]",
    ),
    "a long label among 20,000.csv": (
        csv(kind=[LONG if i < 2 else "a" for i in range(20_000)]),
        "100000 characters",
    ),
    "a long name among 10,000.csv": (
        pd.DataFrame(np.eye(4, 10_000))
        .rename(columns={0: LONG})
        .assign(kind=[0, 1, 0, 1])
        .to_csv(index=False),
        "[4, 4]",
    ),
}


@pytest.mark.parametrize("case", GREEDY)
def test_small_files_take_little_memory(tmp_path, case):
    content, says = GREEDY[case]
    path = tmp_path / f"t{Path(case).suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    n_bytes, found = peak(path)
    assert n_bytes < 250e6
    assert says in str(found)
