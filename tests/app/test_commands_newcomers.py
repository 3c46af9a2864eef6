"""Ten tables as people have them need no second try: `nearkin compare FILE --target COLUMN`, then
`predict`.
"""

import numpy as np
import pandas as pd
import pytest

from nearkin.app.cli import main
from nearkin.app.tables.reading import read_table
from nearkin.comparison import compare

from . import newcomer_tables
from .battery import QUICK
from .tables.test_reading_libraries import assert_same

NAMES = [make.__name__ for make in newcomer_tables.TABLES]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The folder that the tables lie in, and the tables."""
    folder = tmp_path_factory.mktemp("newcomers")
    return folder, newcomer_tables.write_tables(folder)


@pytest.mark.parametrize("name", NAMES)
def test_the_first_try(tables, monkeypatch, capsys, request, name):
    folder, table = tables[0], tables[1][name]
    if name != "unicode_text":  # whose labels stand in the picture
        request.getfixturevalue("undrawn")
    monkeypatch.chdir(folder)
    model = f"{name}.safetensors"
    assert (
        main(["compare", table.file, "--target", table.target, *QUICK.split(), "--save", model])
        == 0
    )
    out, err = capsys.readouterr()
    print(out, err)
    assert out.startswith(f"{name}: ")
    assert [piece for piece in table.says if piece not in out] == []
    assert main(["predict", model, f"{name}-new.parquet", "-o", f"{name}-labels.csv"]) == 0
    out, err = capsys.readouterr()
    print(out, err)
    assert "missing" in err
    assert ("never seen" in err) == (table.new_rows == "never seen").any(axis=None)
    labels = pd.read_csv(f"{name}-labels.csv", keep_default_na=False)["label"]
    assert len(labels) == newcomer_tables.N_NEW
    assert {*labels} <= {*table.frame[table.target]}


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("name", NAMES)
def test_data_frames_give_the_same_features(tables, name):
    folder, table = tables[0], tables[1][name]
    read = read_table(str(folder / table.file), table.target)
    found = compare(
        table.frame,
        table.target,
        methods=[],
        references=[],
        n_splits=2,
        n_repeats=1,
        n_neighbors=3,
        refit=False,
    )
    encoder = found.encoder
    X = encoder.transform(table.frame)
    assert_same(
        (features(X, encoder), table.frame[table.target].tolist()),
        (features(read.X, read.encoder), read.y.tolist()),
    )


def features(X, encoder):
    return dict(zip(encoder.get_feature_names_out().tolist(), np.asarray(X).T, strict=True))
