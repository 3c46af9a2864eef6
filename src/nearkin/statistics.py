"""Significance tests for scores that are paired by row or by fold, and their corrections."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy.stats import t as student

__all__ = [
    "SIGNIFICANCE",
    "PairedTest",
    "corrected_resampled_t_test",
    "holm",
    "status_of",
]

SIGNIFICANCE = 0.05
FEWEST_FOLDS = 5  # whose agreement can show that a method's score hardly varies between folds
Name = TypeVar("Name", bound=Hashable)


def corrected_resampled_t_test(
    differences: np.ndarray, n_train: float, n_test: float, resolution: float | None = None
) -> float:
    """Return the two-sided p-value for a mean difference of 0 over repeated cross-validation.

    The statistic is `t = mean(d) / sqrt((1/J + n_test/n_train) var(d))` with J - 1 degrees of
    freedom; n_test/n_train, in rows of a fold, corrects for the training rows that folds share
    (Nadeau and Bengio, Machine Learning 52, 2003). The score of a fold has a finite resolution: one
    row changes it by `resolution`, by default 1/n_test, as for an accuracy. var(d) is therefore at
    least the variance of rounding to this step, so that folds that agree by chance prove nothing.
    """
    J = len(differences)
    step = 1 / n_test if resolution is None else resolution
    variance = max(differences.var(ddof=1), step**2 / 12)
    statistic = differences.mean() / np.sqrt((1 / J + n_test / n_train) * variance)
    return float(2 * student.sf(abs(statistic), J - 1))


@dataclass(frozen=True)
class PairedTest:
    """A mean difference in score between a method and the baseline, with its uncertainty.

    Attributes
    ----------
    difference : float
        Mean over the folds of the method's score minus the baseline's.
    standard_error : float
        Infinite if all held-out rows are one unit.
    dof : float
        Degrees of freedom of Student's t.
    n_folds : int
        Number of folds over which the difference is averaged.
    """

    difference: float
    standard_error: float
    dof: float
    n_folds: int

    @property
    def of_fitted_models(self) -> bool:
        """Return whether the test compares two fitted models, as on a single fold, not two methods.

        Held-out rows then show which model is better on new rows. They do not show whether the
        methods would rank the same if they were fitted again to other rows.
        """
        return self.n_folds == 1

    @property
    def p_value(self) -> float:
        """Return the two-sided p-value for no difference; 1 if the difference is 0."""
        if self.difference == 0:
            return 1.0
        return float(2 * student.sf(abs(self.difference) / self.standard_error, self.dof))

    def interval(self, level: float = 0.95, n_comparisons: int = 1) -> tuple[float, float]:
        """Return the confidence interval of the difference, simultaneous for `n_comparisons`."""
        half = float(student.isf((1 - level) / (2 * n_comparisons), self.dof)) * self.standard_error
        return self.difference - half, self.difference + half


def paired_test_by_rows(
    method: Sequence[np.ndarray],
    baseline: Sequence[np.ndarray],
    rows: Sequence[np.ndarray],
    n_train: float,
    units: np.ndarray | None = None,
) -> PairedTest:
    """Test a difference in score by the held-out rows alone.

    This is suitable for methods whose fits hardly depend on chance.

    The differences d of a unit are summed over its rows and over repeats. The variance is `v_rows =
    (1 + m/n_train) G/(G - 1) sum_units (sum w (d - mean))^2`. With the weights w = 1/(J n_test),
    the mean is that of the J fold scores. m rows in G units are held out, and the factor
    1 + m/n_train is that of Nadeau and Bengio (Machine Learning 52, 2003) for models that differ
    with their training rows: with K folds per repeat, 1 + K n_test/n_train.

    Parameters
    ----------
    method, baseline : sequence of ndarray
        For every fold, the contributions of its held-out rows to the score (`Score.contributions`).
    rows : sequence of ndarray
        For every fold, the indices of these rows in the table.
    n_train : float
        Mean number of training rows per fold.
    units : ndarray, optional
        For every row of the table, its group of dependent rows; by default, rows are independent.
    """
    J = len(rows)
    numbers = np.concatenate(rows)
    weights = np.concatenate([np.full(len(fold), 1 / (J * len(fold))) for fold in rows])
    pairs = np.array([np.concatenate(method), np.concatenate(baseline)], dtype=np.float64)
    d = pairs[0] - pairs[1]
    m = len(np.unique(numbers))
    difference = float(weights @ d)
    _, unit = np.unique(numbers if units is None else units[numbers], return_inverse=True)
    sums = np.bincount(unit, weights * (d - difference))
    G = len(sums)
    if G == 1:
        return PairedTest(difference, np.inf, 1, J)
    # at least that of a single row, so that differences that agree by chance or rounding prove
    # nothing
    variance = max(G / (G - 1) * sums @ sums, pairs.var() / m**2)
    return PairedTest(difference, float(np.sqrt((1 + m / n_train) * variance)), G - 1, J)


def ratio_interval(
    method: Sequence[np.ndarray],
    baseline: Sequence[np.ndarray],
    rows: Sequence[np.ndarray],
    n_train: float,
    units: np.ndarray | None = None,
    level: float = 0.95,
) -> tuple[float, float]:
    r"""Return the confidence interval of a ratio of two mean scores, by the held-out rows.

    The interval of Fieller (1954) has all ratios k for which `paired_test_by_rows` does not show
    that a, the mean score of the method, differs from k times b, that of the baseline:

    .. math:: (a - k b)^2 \le t^2 (V_a - 2 k V_{ab} + k^2 V_b),
       \quad V_{ab} = (V_a + V_b - V_{a - b}) / 2,

    with the variances V of the tests and the quantile t of Student's distribution. b is thus not
    taken as known. If b is not shown to differ from 0, the interval is unbounded.

    Parameters
    ----------
    method, baseline, rows, n_train, units
        See `paired_test_by_rows`.
    level : float, default=0.95
    """
    zero = [np.zeros(len(fold)) for fold in rows]
    of_a = paired_test_by_rows(method, zero, rows, n_train, units)
    of_b = paired_test_by_rows(baseline, zero, rows, n_train, units)
    of_both = paired_test_by_rows(method, baseline, rows, n_train, units)
    a, b, t = of_a.difference, of_b.difference, float(student.isf((1 - level) / 2, of_a.dof))
    V_a, V_b, V = (t**2 * test.standard_error**2 for test in (of_a, of_b, of_both))
    if b**2 <= V_b:
        return -np.inf, np.inf
    V_ab = (V_a + V_b - V) / 2
    middle, square = (a * b - V_ab) / (b**2 - V_b), (a**2 - V_a) / (b**2 - V_b)
    half = np.sqrt(max(middle**2 - square, 0.0))
    return float(middle - half), float(middle + half)


def paired_test(
    method: Sequence[np.ndarray],
    baseline: Sequence[np.ndarray],
    rows: Sequence[np.ndarray],
    n_train: float,
    units: np.ndarray | None = None,
) -> PairedTest:
    """Test a difference in score by held-out rows and folds of (repeated) cross-validation.

    Rows do not show that a method differs from fold to fold, as it does if its choices depend on
    chance; folds do. By rows alone, a method that selects its features at random is "significant"
    on 30.0 % of tables of 2,000 rows in five folds, not 5 %. The variance is therefore the larger
    of that of `paired_test_by_rows`, with G - 1 degrees of freedom, and that of
    `corrected_resampled_t_test`, with J - 1. The test depends on the number of folds J:

    .. measured/benchmarks.md#verdicts-of-a-comparison

    - Five or more: the larger variance, with its own degrees of freedom.
    - Two to four: the larger variance, always with J - 1 degrees of freedom, since so few folds may
      agree by chance even if fits depend on chance, which the rows do not show. The test never
      rejects if that of the folds does not. The price is power: a difference must be 3.2, 4.3 or
      12.7 standard errors in four, three or two folds, not 2.
    - One: the rows alone. This tests the difference of two fitted models, not of two methods: see
      `PairedTest.of_fitted_models`.

    Parameters
    ----------
    method, baseline, rows, n_train, units
        See `paired_test_by_rows`.
    """
    by_rows = paired_test_by_rows(method, baseline, rows, n_train, units)
    J = len(rows)
    if J == 1 or by_rows.standard_error == np.inf:
        return by_rows
    differences = np.array([np.mean(a) - np.mean(b) for a, b in zip(method, baseline, strict=True)])
    n_test = sum(len(fold) for fold in rows) / J
    by_folds = float(np.sqrt((1 / J + n_test / n_train) * differences.var(ddof=1)))
    if by_rows.standard_error > by_folds and J >= FEWEST_FOLDS:
        return by_rows
    return PairedTest(by_rows.difference, max(by_rows.standard_error, by_folds), J - 1, J)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return Holm's step-down corrected p-values, in the given order."""
    order = np.argsort(p_values)
    steps = np.array(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected.tolist()


def detectable_difference(standard_error: float, dof: float, n_comparisons: int = 1) -> float:
    """Return the difference that is detected with a power of 80 %.

    It is `(t_{1 - .05/(2 n_comparisons)} + t_.8) standard_error`, for the level .05 and the first
    step of Holm's method.
    """
    critical = student.isf(SIGNIFICANCE / (2 * n_comparisons), dof)
    return float(critical + student.ppf(0.8, dof)) * standard_error


def in_sequence(
    *sequences: dict[Name, PairedTest], shares: Sequence[float] | None = None
) -> dict[Name, float]:
    """Return p-values of tests in orders that were fixed in advance, valid for all together.

    A candidate is only shown to be better if all before it are: its p-value is the largest so far,
    and 1 from the first candidate on that is not better (Maurer, Hothorn and Lehmacher 1995). Many
    candidates that differ little thus need no stricter level, unlike with Holm's method. Several
    sequences share the level in proportion to `shares`, by default equally as in Holm's method; one
    whose candidates are all better leaves its share to the others (Bretz et al. 2009). P-values of
    candidates that are worse are not corrected.
    """
    p_values, largest = {}, 0.0
    of_each = [1.0] * len(sequences) if shares is None else shares
    left = [(share, [*tests.items()]) for share, tests in zip(of_each, sequences, strict=True)]

    def p_value(test: PairedTest) -> float:
        return test.p_value if test.difference > 0 else 1.0

    while left:
        share, first = min(left, key=lambda one: p_value(one[1][0][1]) / one[0])
        name, test = first.pop(0)
        whole = sum(share for share, _ in left)
        largest = max(largest, min(1.0, whole / share * p_value(test)))
        p_values[name] = largest if test.difference > 0 else test.p_value
        left = [(share, tests) for share, tests in left if tests]
    return p_values


def status_of(gain: float, p_value: float) -> str:
    """Return the status of a gain with a corrected p-value, relative to its baseline."""
    if not p_value < SIGNIFICANCE:
        return "unclear"
    return "better" if gain > 0 else "worse"
