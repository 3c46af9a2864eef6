"""How labels are read, and rows whose squares are lost."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin._validation import check_spread, merged_labels, require_two_classes


@pytest.mark.parametrize(
    ("given", "expected", "several"),
    [
        (["yes", "yes ", "\tno"], ["yes", "yes", "no"], {"yes": ["yes", "yes "]}),
        (["1", "1.0", "2."], ["1", "1", "2"], {"1": ["1", "1.0"]}),
        (["v1.0", "01", "1.50", "NA", "None"], ["v1.0", "01", "1.50", "NA", "None"], {}),
        ([1, "1.0", "b", None], ["1", "1", "b", None], {"1": ["1", "1.0"]}),
        ([" ", "a", float("nan")], [None, "a", None], {}),
        (["Yes", "yes"], ["Yes", "yes"], {}),  # whether they are one class, who knows
        ([1, 1.0, 2], [1, 1.0, 2], {}),
        ([True, None, False], [True, None, False], {}),
        ([], [], {}),
    ],
)
def test_text_that_means_one_label(given, expected, several):
    labels, found = merged_labels(np.array(given, dtype=object))
    assert (labels.tolist(), found) == (expected, several)


def test_numbers_stay():
    for y in (np.arange(3), np.array([0.5, np.nan]), np.array([True, False])):
        assert merged_labels(y)[0] is y


def test_text_without_gaps_is_no_array_of_objects():
    assert merged_labels(np.array(["a ", "b"]))[0].dtype.kind == "U"


def test_a_class_is_named_as_a_user_wrote_it():
    with pytest.raises(
        ValueError, match=r"y holds one class \('a'\): at least two classes are needed"
    ):
        require_two_classes(np.array(["a"]))


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
