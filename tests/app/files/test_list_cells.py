"""Text of vectors, whatever writes it; what is no number is a null, and what is no vector stays text."""

import numpy as np
import pyarrow as pa
import pytest

from nearkin.app.files.list_cells import is_vector, lists_of, width_of, with_nulls

TEXT = pa.large_string()


@pytest.mark.parametrize("kind", [pa.string(), TEXT])
def test_text_is_read_whatever_writes_it(kind):
    cells = [
        "[1, -2.5e-3]",
        "[1,.5]",
        "{1,2.}",
        "(+1, 2)",
        "[1. 2.\n 3.]",
        None,
        "[1, null]",
        "[x]",
    ]
    assert lists_of(pa.array(cells, kind)).to_pylist() == [
        [1, -0.0025], [1, 0.5], [1, 2], [1, 2], [1, 2, 3], None, [1, None], [None],
    ]  # fmt: skip
    assert lists_of(pa.array(cells, kind)[1:3]).to_pylist() == [[1, 0.5], [1, 2]]


def test_shortest_text_of_float32_is_read_exactly():
    X = np.random.default_rng(0).normal(size=10**5).astype(np.float32)
    X *= np.float32(10) ** np.random.default_rng(1).integers(-30, 30, len(X))
    text = pa.array([f"[{','.join(map(str, X))}]"], TEXT)
    np.testing.assert_array_equal(lists_of(text).values.to_numpy().astype(np.float32), X)


@pytest.mark.parametrize(
    "cell",
    ["words", "", "[a, b]", "['1', '2']", "2020-01-01", "1, 2", "[7]", "(see 1, 2)", "[1-2]"],
)
def test_other_text_is_no_vector(cell):
    assert not is_vector(cell)
    assert width_of([pa.array([cell] * 3, TEXT)]) == 0


def test_the_width_is_the_usual_one():
    short, long = pa.array(["[1, 2]"], TEXT), pa.array(["[1, 2, 3]"] * 2 + ["[1, 2]", None], TEXT)
    assert width_of([pa.nulls(3, TEXT), long, short]) == 3
    assert width_of([pa.array([f"[{'1, ' * n}1]" for n in range(1, 9)], TEXT)]) == 0
    assert width_of([]) == 0
    lists = with_nulls(lists_of(long), 3)
    assert lists.to_pylist() == [[1, 2, 3], [1, 2, 3], None, None]
