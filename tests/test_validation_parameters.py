"""Parameters that are not what they must be are named, with their value."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from nearkin._validation import (
    check_bool,
    check_choice,
    check_estimator,
    check_integer,
    check_number,
    check_positive,
    check_random_state,
    equals,
)


def test_valid_values_are_returned_as_plain_numbers():
    assert type(check_integer(np.int32(3), "k", 1, 3)) is int
    assert type(check_number(np.float32(0.5), "alpha", 0)) is float
    assert check_positive(np.inf, "h", or_infinite=True) == np.inf
    check_choice("sgd", "solver", ("lbfgs", "sgd"))
    check_bool(np.True_, "strict")
    check_estimator(PCA(), "estimator")


@pytest.mark.parametrize(
    ("check", "error", "said"),
    [
        (lambda: check_integer(2.0, "k", 1), TypeError, r"k must be an integer, got 2\.0"),
        (lambda: check_integer(True, "k", 1), TypeError, "k must be an integer, got True"),
        (lambda: check_integer(0, "k", 1), ValueError, "k must be at least 1, got 0"),
        (lambda: check_integer(9, "k", 1, 5), ValueError, "between 1 and 5, got 9"),
        (lambda: check_integer(2**63, "k", 1), ValueError, r"less than 2\^63"),
        (lambda: check_number("a", "t", 0), TypeError, "t must be a number, got 'a'"),
        (lambda: check_number(np.nan, "t", 0), ValueError, "t must be a finite number of at"),
        (lambda: check_number(-1, "t", 0), ValueError, "of at least 0, got -1"),
        (lambda: check_positive(0, "h"), ValueError, "h must be larger than 0, got 0"),
        (lambda: check_positive(np.inf, "h"), ValueError, "h must be a finite number, got inf"),
        (lambda: check_choice("b", "how", "a"), ValueError, "how must be one of a, got 'b'"),
        (lambda: check_bool(1, "strict"), TypeError, "strict must be True or False, got 1"),
        (lambda: check_estimator(PCA, "by"), TypeError, r"did you mean PCA\(\)"),
        (lambda: check_estimator(PCA(), "by", Ridge), TypeError, r"such as Ridge\(\), got PCA"),
        (lambda: check_random_state(-1), ValueError, "random_state.*give None, a number from 0"),
    ],
)
def test_invalid_values_are_named(check, error, said):
    with pytest.raises(error, match=said):
        check()


def test_an_array_equals_no_word():
    assert equals("auto", "auto")
    assert not equals(np.array(["auto", "auto"]), "auto")
