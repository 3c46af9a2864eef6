"""The words of messages."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin._messages import counted, note, shortened, shown
from nearkin._validation import check_spread


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


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0, 1e300], "by 1.0e+300 in"),
        ([-1e308, 1e308], "by more than 1.8e+308 in"),
        ([0, 1e-120], "by 1.0e-120 in"),
    ],
)
def test_the_feature_whose_square_is_lost_is_named(container, values, said):
    X = container(np.array([[1e-130, value] for value in values]))
    with pytest.raises(
        ValueError,
        match=rf"X varies {said} feature 1 \(counted from 0\), whose square is lost".replace(
            "+", r"\+"
        ),
    ):
        check_spread(X)
    with pytest.raises(ValueError, match="in 'width', whose square"):
        check_spread(X, ["height", "width"])


def test_squares_are_lost_in_their_sum_over_features():
    X = np.array([[0], [9e17]], np.float32)
    check_spread(X)
    with pytest.raises(ValueError, match="whose square is lost"):
        check_spread(np.repeat(X, 100, axis=1))


def test_gaps_do_not_vary():
    check_spread(np.array([[np.nan, 1.0, np.nan], [np.nan, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="X does not vary"):
        check_spread(np.full((3, 2), np.nan))
