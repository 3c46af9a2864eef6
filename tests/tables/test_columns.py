"""Each kind of column learns itself from text, or rejects it; the first one that accepts is taken."""

import json

import numpy as np
import pytest

from nearkin.tables import Text
from nearkin.tables.columns import (
    CategoryColumn,
    DateColumn,
    NumberColumn,
    RejectColumn,
    Rules,
    TextColumn,
    column_from,
    learn_column,
    learn_numeric,
)


def text(*cells, is_category=False):
    """Return a column with these cells, None where one is missing."""
    return Text([], np.arange(len(cells)), is_category).replaced(cells)


@pytest.mark.parametrize(
    ("cells", "column", "numbers"),
    [
        (("€1,200", None, "€80"), NumberColumn("x", unit="€"), [1200, 80]),
        (("1,5", "2", "1,5"), NumberColumn("x", ","), [1.5, 2, 1.5]),
        (("yes", "true"), None, None),
        (("05", "17"), None, None),  # codes
        (("3 kg", "500 g"), NumberColumn("x", unit="kg", form="quantity"), [3, 0.5]),
        (("1h 30min", "45 min"), NumberColumn("x", unit="h:min", form="duration"), [0.0625, 0.03125]),
        (("heavy", "3 kg"), None, None),
        (("1970-01-02", None, "1970-03-01"), DateColumn("x", "year first", ()), [1, 59]),
        (("06:00", "18:00"), DateColumn("x", "time of day", ("day",)), [0.25, 0.75]),
        (("1970-01-02", "soon"), None, None),
    ],
)  # fmt: skip
def test_numbers_and_dates(cells, column, numbers):
    if column is None:
        with pytest.raises(RejectColumn):
            learn_numeric("x", text(*cells), Rules(strict=True))
        return
    learned = learn_numeric("x", text(*cells), Rules(strict=True))
    np.testing.assert_array_equal(
        learn_numeric("x", text(*cells), Rules()).numbers, learned.numbers
    )
    assert learned.column == column
    known = [cell is not None for cell in cells]
    np.testing.assert_allclose(learned.numbers[known], numbers)
    assert np.isnan(learned.numbers[np.invert(known)]).all()
    np.testing.assert_array_equal(column.scalars(text(*cells)), learned.numbers)
    assert column_from(json.loads(json.dumps(column.to_dict()))) == column


def test_categories_accept_any_text():
    learned = CategoryColumn.learn("x", text("red", None, "blue", "red"), Rules())
    assert learned.column == CategoryColumn("x", ("blue", "red"), missing=True)
    assert ("one-hot encoded", "x (2 values)") in learned.notes
    out = np.zeros((3, 3))
    written = learned.column.write(out, text("red", None, "pink"))
    assert (written.unknown, written.all_new) == ("'pink' in x (1 row)", False)
    assert out.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_of_too_many_categories_those_of_two_rows_are_kept():
    learned = CategoryColumn.learn("x", text("b", "a", "b", "c"), Rules(max_categories=2))
    assert learned.column == TextColumn("x", ("b",))
    out = np.zeros((3, 1))
    written = learned.column.write(out, text("a", "b", "new"))
    assert (written.unknown, written.all_new) == ("", False)
    assert out.tolist() == [[0], [1], [0]]


def test_the_frequency_of_a_category_in_an_old_model():
    state = {"kind": "frequency", "name": "x", "values": ["a", "b"], "missing": False}
    column = column_from(state | {"shares": [0.25, 0.75], "missing_share": 0.0})
    out = np.zeros((3, 1))
    column.write(out, text("b", "new", "a"))
    assert out.tolist() == [[0.75], [0], [0.25]]
    assert column.names == ["x (frequency)"]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (("7", "7"), "constant"),
        (("red", "red"), "constant"),
        ((None, None), "empty"),
        (("red", "blue"), "text that differs in every row"),
        (("x" * 501, "x" * 501, "y"), "text of more than 500 characters"),
    ],
)
def test_what_says_nothing_is_left_out(cells, reason):
    assert learn_column("x", text(*cells), Rules()).reason == reason


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (("1", "2", "n/a"), NumberColumn),  # where there are numbers, marks mean none
        (("7/10", "8/10", "7/10"), NumberColumn),
        (("1/2/2024", "3/4/2024"), DateColumn),  # before quantities
        (("1", "2", "many", "1"), CategoryColumn),
    ],
)
def test_the_first_kind_that_accepts_is_taken(cells, kind):
    assert type(learn_column("x", text(*cells), Rules()).column) is kind


def test_categories_that_look_like_numbers_stay_categories():
    learned = learn_column("x", text("1", "2.0", "1", is_category=True), Rules())
    assert learned.column == CategoryColumn("x", ("1", "2"))
    assert learned.column.scalars(np.array([2.0, 1.0])).tolist() == [1, 0]
