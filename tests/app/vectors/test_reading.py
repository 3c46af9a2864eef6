"""Vectors in files, with the names of their rows."""

import numpy as np
import pandas as pd
import pytest

from nearkin.app.endings import TableError
from nearkin.app.vectors.reading import read_vectors, same_names

from .test_match import XA, table


def test_numbers_of_rows_are_no_part_of_a_vector(capsys, tmp_path):
    """As pandas writes them, where no column of lists tells what the vector is."""
    frame = pd.DataFrame(XA[:8].astype(float)).assign(kind=list("aabbaabb"))
    frame.to_csv(tmp_path / "numbered.csv")
    read = read_vectors(str(tmp_path / "numbered.csv"), label="kind")
    np.testing.assert_array_equal(read.X, XA[:8])
    assert read.notes == ["ignored, unnamed row numbers: Unnamed: 0"]
    table(XA).sample(9).to_parquet(tmp_path / "some.parquet")
    (note,) = read_vectors(str(tmp_path / "some.parquet")).notes
    assert note == "ignored, unnamed row numbers: __index_level_0__"


def test_columns_of_text_are_told_where_vectors_come_from(tmp_path):
    people = pd.DataFrame({"name": ["Anna Meyer", "Ana Meyer"], "town": ["Porto", "Graz"]})
    people.to_csv(tmp_path / "people.csv")
    with pytest.raises(TableError, match=r'guide "Embeddings" .* "From columns of text"'):
        read_vectors(str(tmp_path / "people.csv"))


BIG = 2**60


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([[7, 8], [7.0, 8.0]], [["7", "8"], ["7", "8"]]),
        ([["7.0", "8"]], [["7", "8"]]),
        ([["1.0", "1.1"]], [["1.0", "1.1"]]),  # versions
        ([["007", "7"]], [["007", "7"]]),
        ([[BIG + 1], [f"{BIG + 1}"]], [[f"{BIG + 1}"]] * 2),
        ([[1e300, np.inf, np.nan]], [[str(int(1e300)), "inf", "nan"]]),
    ],
)
def test_names_are_the_same_for_equal_values(columns, expected):
    assert same_names(*columns) == expected
