"""Text that means one label."""

import numpy as np
import pytest

from nearkin.tables.target import merged_labels


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
