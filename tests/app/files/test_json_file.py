"""JSON: records in records, and columns of several types."""

import json

import pytest

from nearkin.app.tables.reading import read_table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
