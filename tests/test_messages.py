"""The words of messages."""

import numpy as np
import pytest

from nearkin._messages import counted, in_line, note, shortened, shown


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "row", "1 row"),
        (0, "row", "0 rows"),
        (np.int64(12345), "row", "12,345 rows"),
        (2, "class", "2 classes"),
    ],
)
def test_numbers_with_their_nouns(number, noun, text):
    assert counted(number, noun) == text


def test_remarks_name_a_few_items_or_examples():
    items = [f"{'a very long name ' * 3}{i}" for i in range(40)]
    assert note("ignored", []) == []
    assert note("ignored", list("abcde")) == ["ignored: a, b, c, d, e"]
    assert note("ignored", list("abcdef")) == ["ignored: a, b, c and 3 more"]
    assert note("ignored", items[:5]) == [f"ignored: {items[0]} and 4 more"]
    assert note("ignored", items) == [f"ignored: {items[0]} and 39 more"]
    (line,) = note("ignored", [f"Which of these is served at your dinner? - {i}" for i in range(9)])
    assert len(line) < 120


def test_long_names_keep_their_ends():
    """Questions with several answers begin alike."""
    question = "Which of these side dishes are typically served at your dinner? - "
    names = [shortened(question + dish) for dish in ("Brussel sprouts", "Carrots", "Yams")]
    assert len({*names}) == 3
    assert names[1] == "Which of these side dishes ...er? - Carrots"
    assert shortened("of forty letters and not a single one more"[:40]).endswith("one mo")
    assert shown("x" * 100) == f"'{'x' * 39}...{'x' * 19}'"


def test_line_breaks_in_names_become_a_blank():
    """Headers of spreadsheets have them."""
    assert shortened("Culmen Length\n  (mm)") == "Culmen Length (mm)"
    assert note("Body\r\nMass", ["Date\tEgg", "a\u2028b"]) == ["Body Mass: Date Egg, a b"]
    assert in_line("  indented\n, \x1b") == "  indented , \x1b"
