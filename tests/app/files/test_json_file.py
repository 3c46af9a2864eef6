"""JSON: records in records, and columns of several types."""

import json

import pandas as pd
import pytest

from nearkin.app.endings import TableError
from nearkin.app.files.formats import opened
from nearkin.app.tables.reading import read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lists_of_text_are_read_as_in_parquet(folder):
    frame = pd.DataFrame({"tags": [["a", "b"], ["c"]] * 12, "y": [*"ab"] * 12})
    frame.to_json("t.json", orient="records")
    frame.to_parquet("t.parquet")
    for name in ("t.json", "t.parquet"):
        with opened(name) as file:
            assert file.read().text["tags"].values == ["a, b", "c"]


@pytest.mark.parametrize("found", [{"a": [1, 2], "b": [3]}, {"a": 1}, [1, 2], [], {"a": None}])
def test_what_holds_no_records_is_refused(folder, found):
    (folder / "t.json").write_text(json.dumps(found))
    with pytest.raises(TableError, match="write an array of records, or one record a line"):
        read_table("t.json", "y")


def test_records_in_records_and_columns_of_several_types(folder):
    records = [
        {
            "pet": {"kind": "cat", "age": at},
            "code": at if at % 2 else f"x{at % 4}",
            "tags": ["a", "b"][: 1 + at % 2],
            "vector": [at, at**2],
            "y": "ab"[at % 2],
        }
        for at in range(24)
    ]
    del records[3]["code"]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, records)))
    table = read_table("t.jsonl", "y")
    names = table.encoder.feature_names_in_.tolist()
    assert names == ["code", "tags", "vector[0]", "vector[1]", "pet.kind", "pet.age"]
