"""Every ending has a reader; a file that changes while it is read is refused."""

import os
import re
import shutil

import numpy as np
import pandas as pd
import pytest

from nearkin.app.endings import TableError
from nearkin.app.files.formats import FORMATS, reader_of
from nearkin.app.files.readers import Reader
from nearkin.app.tables.reading import read_table

CHANGES = {
    "appended": lambda path, text: path.write_bytes(text + text),
    "cut": lambda path, text: path.write_bytes(text[: len(text) // 2]),
    "written again": lambda path, text: (path.write_bytes(text), os.utime(path, (0, 0))),
    "replaced": lambda path, text: shutil.copy2(path, "copy") and os.replace("copy", path),
    "removed": lambda path, text: path.unlink(),
}


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_ending_has_a_reader(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.touch()
    assert issubclass(reader_of(path), Reader)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("when", ["before its rows", "after its rows"])
def test_a_table_that_changes_while_it_is_read(tmp_path, monkeypatch, change, suffix, when):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"t{suffix}"
    frame = pd.DataFrame({"length": [1, 3, 5, 7], "width": [2.5, 4, 6, 8], "species": [*"abab"]})
    if suffix == ".npz":
        np.savez(path, X=frame.iloc[:, :2], species=frame["species"].to_numpy(str))
    else:
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    text, kind = path.read_bytes(), reader_of(path)
    read = kind.read
    assert len(read_table(path.name, "species").y) == 4

    def changed(file, *arguments, **options):
        if when == "after its rows":
            found = read(file, *arguments, **options)
        CHANGES[change](path, text)
        return found if when == "after its rows" else read(file, *arguments, **options)

    monkeypatch.setattr(kind, "read", changed)
    says = f"{path.name} changed while it was read: wait until it is complete"
    if change == "removed" and when == "before its rows" and suffix != ".parquet":
        says = f"{path.name} cannot be read: No such file"  # of Parquet, a removed file stays open
    with pytest.raises(TableError, match=re.escape(says)):
        read_table(path.name, "species")
