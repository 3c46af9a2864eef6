"""How labels are read: spellings, classes, and what is no label."""

import numpy as np
import pytest

from nearkin._labels import encode_labels, merged_labels, require_two_classes


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


@pytest.mark.parametrize(
    ("y", "said"),
    [
        ([0.5, 1.0], r"y holds real numbers, such as 0\.5, and no classes"),
        ([0.5, 1e300], r"y holds real numbers, such as 0\.5"),
        ([1.0, 2.0**63], r"y holds numbers that 64 bits cannot tell apart, of 2\^63 or more"),
        ([1, 2**70], r"y holds numbers that 64 bits cannot tell apart"),
        ([1, "a"], "y mixes strings with other labels"),
        ([0, None], r"y has no label in 1 row \(first: row 1\): drop them"),
        ([1.0, np.inf], "y"),
    ],
)
def test_what_is_no_class_is_refused(y, said):
    with pytest.raises(ValueError, match=said):
        encode_labels(np.array(y, dtype=object if None in y or "a" in y or 2**70 in y else None))
