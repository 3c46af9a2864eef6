"""Rows whose squares overflow or underflow."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from nearkin._validation import as_rows, check_spread


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
        match=rf"X varies {said} feature 1 \(counted from 0\), whose square overflows or underflows".replace(
            "+", r"\+"
        ),
    ):
        check_spread(X)
    with pytest.raises(ValueError, match="in 'width', whose square"):
        check_spread(X, ["height", "width"])


def test_squares_are_lost_in_their_sum_over_features():
    X = np.array([[0], [9e17]], np.float32)
    check_spread(X)
    with pytest.raises(ValueError, match="whose square overflows or underflows"):
        check_spread(np.repeat(X, 100, axis=1))


def test_gaps_do_not_vary():
    check_spread(np.array([[np.nan, 1.0, np.nan], [np.nan, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="X does not vary"):
        check_spread(np.full((3, 2), np.nan))


def test_rows_of_no_estimator_are_refused_with_a_reason_and_a_remedy():
    with pytest.raises(ValueError, match=r"words in column 1 .*this computation .*: encode them"):
        as_rows(np.array([[1, "a"], [2, "b"]], dtype=object))
    with pytest.raises(ValueError, match=r"NaN in column 0 .*1 row.*: leave out these rows, or"):
        as_rows(np.array([[np.nan, 1.0], [2.0, 3.0]]))
