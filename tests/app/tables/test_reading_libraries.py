"""Any data frame, by whatever library and in whatever format it is written, is read as the same
features and labels.

Or it is refused by one clear line. What hypothesis finds is the same in every run.
"""

import datetime
import string

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nearkin import TableEncoder
from nearkin.app.endings import TableError
from nearkin.app.tables.reading import read_table

MIN_ROWS, MAX_ROWS = 6, 10
HOSTILE = (
    *(
        "",
        " ",
        "NA",
        "None",
        "nan",
        "?",
        "-",
        "1",
        "1.0",
        "007",
        "12.3%",
        "€5",
        "1,234",
        "1,5",
        "(3)",
        "1e5",
        "1e400",
    ),
    *(
        "2024-01-02",
        "03/04/2024",
        "12:30",
        "True",
        "false",
        "inf",
        "=1+1",
        '"',
        "'",
        ";",
        ",",
        "\t",
        "a\nb",
        "a\r\nb",
    ),
    *("\u202eb", "é", "🐘", "#", "\ufeff", "\x85", "\u2028", "a ", "null", "<NA>", "x" * 600),
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(HOSTILE)
DAYS = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
TIMES = st.datetimes(datetime.datetime(1970, 1, 1), datetime.datetime(2070, 1, 1)).map(
    lambda t: t.replace(fold=0)
)
CELLS = {
    "integer": (st.integers(-(2**53), 2**53), "Int64"),
    "float": (
        st.floats(-1e100, 1e100, allow_subnormal=False) | st.integers(-9, 9).map(float),
        "float64",
    ),
    "truth value": (st.booleans(), "boolean"),
    "text": (TEXT, "str"),
    "word": (st.sampled_from(["red", "blue", "None", "NA"]), "str"),
    "category": (st.sampled_from(["low", "high", "none"]), "category"),
    "day": (DAYS, "datetime64[us]"),
    "time": (TIMES, "datetime64[us]"),
}


@st.composite
def frames(draw, kinds=tuple(CELLS)):
    """Draw a data frame of mixed columns, with missing cells anywhere, and two classes in the
    column "target".
    """
    n_rows = draw(st.integers(MIN_ROWS, MAX_ROWS))
    columns = {}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))):
        cells, dtype = CELLS[kind]
        missing = st.none() if draw(st.booleans()) else st.nothing()
        values = draw(st.lists(cells | missing, min_size=n_rows, max_size=n_rows))
        columns[f"{string.ascii_lowercase[place]} {kind}"] = pd.Series(values, dtype=dtype)
    return pd.DataFrame(columns).assign(
        target=["yes", "no"] * (n_rows // 2) + ["yes"] * (n_rows % 2)
    )


def features(table):
    """Return the features of a table by name, and its labels; of what is refused, the line that
    says why.
    """
    try:
        read = table()
    except (TableError, ValueError) as error:
        line = str(error)
        assert len(line.splitlines()) == 1, line
        assert len(line) < 600
        return line
    X, names, y = read
    assert X.shape == (len(y), len(names))
    assert not np.isinf(X).any()
    return {name: column.tolist() for name, column in zip(names, X.T, strict=True)}, list(y)


def encoded(frame):
    """Return what the encoder makes of a data frame."""
    X, y = frame[[name for name in frame.columns if name != "target"]], frame["target"]
    encoder = TableEncoder(missing="keep")
    return encoder.fit_transform(X), encoder.get_feature_names_out().tolist(), list(y)


def from_file(path):
    """Return what the command reads from a file."""
    table = read_table(str(path), "target")
    return table.X, table.encoder.get_feature_names_out().tolist(), table.y.tolist()


def assert_same(found, expected):
    """Assert that the same was read, or one of both was refused."""
    if not isinstance(found, str) and not isinstance(expected, str):
        assert found[1] == expected[1]
        assert found[0].keys() == expected[0].keys()
        for name, column in expected[0].items():
            np.testing.assert_allclose(found[0][name], column, rtol=1e-12, atol=1e-9, err_msg=name)


def check_formats(folder, frame):
    """Assert that a data frame is read alike from every library and format."""
    other = pl.from_pandas(frame)
    frame.to_csv(folder / "pandas.csv", index=False)
    frame.to_parquet(folder / "pandas.parquet", index=False)
    other.write_csv(folder / "polars.csv")
    other.write_parquet(folder / "polars.parquet")
    expected = features(lambda: encoded(frame))
    for found in (
        lambda: encoded(other),
        *(lambda path=path: from_file(path) for path in sorted(folder.iterdir())),
    ):
        assert_same(features(found), expected)


def check_numbers(folder, frame):
    """Assert that a data frame of numbers is read alike from an NPZ file."""
    numbers = frame.drop(columns="target").astype(float)
    names = np.array(numbers.columns, dtype=str)
    np.savez(
        folder / "t.npz",
        X=numbers.to_numpy(),
        target=frame["target"].to_numpy(str),
        feature_names=names,
    )
    assert_same(features(lambda: from_file(folder / "t.npz")), features(lambda: encoded(frame)))


CHECKS = {
    "mixed": (frames(), check_formats),
    "text": (frames(("text", "word")), check_formats),
    "numbers": (frames(("integer", "float", "truth value")), check_numbers),
}


def check(folder, case, examples):
    strategy, function = CHECKS[case]

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(strategy)
    def example(frame):
        function(folder, frame)

    example()


@pytest.mark.parametrize("case", CHECKS)
def test_formats_agree(tmp_path, case):
    check(tmp_path, case, 5)


@pytest.mark.long
@pytest.mark.parametrize("case", CHECKS)
def test_formats_agree_on_many_tables(tmp_path, case):
    check(tmp_path, case, 80)
