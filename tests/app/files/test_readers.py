"""Tables of any format that are too large for the memory, wide, cut or damaged."""

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from ..hostile import (
    INTEGERS,
    KINDS,
    RNG,
    N,
    arrow,
    assert_clear,
    assert_sound,
    csv,
    npz,
    read,
    table_or_line,
    write,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory: no path in a message is longer than the file's name."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_what_does_not_fit_is_refused(monkeypatch, suffix):
    write(csv(more=KINDS))
    parquet.write_table(arrow(more=KINDS), "t.parquet")
    npz(X=np.zeros((N, 10)))
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 100)
    assert_clear(
        read(f"t.{suffix}"), f"t.{suffix} does not fit into memory: take fewer rows or columns"
    )


@pytest.mark.long
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_ten_thousand_columns(suffix):
    frame = pd.DataFrame(RNG.standard_normal((N, 2_000))).rename(columns=str).assign(kind=KINDS)
    if suffix == "csv":
        frame.to_csv("t.csv", index=False)
    elif suffix == "parquet":
        frame.to_parquet("t.parquet")
    else:
        npz(X=frame.drop(columns="kind").to_numpy())
    table = table_or_line(f"t.{suffix}")
    assert_sound(table)
    assert table.X.shape == (N, 2_000)


# Files that were damaged on their way


@pytest.fixture(params=["t.parquet", "t.npz"])
def whole(folder, request):
    """A binary file and its bytes."""
    parquet.write_table(arrow(more=INTEGERS), "t.parquet")
    npz()
    return folder / request.param, (folder / request.param).read_bytes()


def test_cut_files(whole):
    path, content = whole
    for damaged in [
        *(content[:end] for end in range(0, len(content), 97)),
        content[1:],
        content[::-1],
        bytes(4096),
    ]:
        path.write_bytes(damaged)
        assert_clear(table_or_line(path.name))


def test_flipped_bytes(whole):
    path, content = whole
    for place in RNG.integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= RNG.integers(1, 256)
        path.write_bytes(damaged)
        table = table_or_line(path.name)
        if isinstance(table, str):
            assert_clear(table)
        else:
            assert not np.isinf(table.X).any()
