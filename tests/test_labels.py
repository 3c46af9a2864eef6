"""Which labels are classes, and what is none."""

import numpy as np
import pytest

from nearkin._labels import encode_labels, require_two_classes


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
