import numpy as np
import pytest
from scipy.stats import ttest_1samp

from nearkin import DNE
from nearkin.evaluation import RAW, Method, compare, corrected_resampled_t_test, holm


def test_without_shared_rows_it_is_students_test():
    d = np.random.default_rng(0).normal(0.3, 1, 12)
    assert corrected_resampled_t_test(d, np.inf, 100) == pytest.approx(ttest_1samp(d, 0).pvalue)


def test_shared_training_rows_make_it_more_careful():
    d = np.random.default_rng(0).normal(1, 1, 12)
    assert corrected_resampled_t_test(d, 400, 100) > corrected_resampled_t_test(d, np.inf, 100)


def test_it_keeps_its_level_where_the_plain_test_does_not():
    """Folds of one repeated cross-validation under no difference: correlated as test_share / (1 + test_share) says."""
    rng = np.random.default_rng(0)
    share, J, rejections, plain = 0.25, 15, 0, 0
    rho = share / (1 + share)
    for _ in range(1000):
        d = np.sqrt(rho) * rng.normal() + np.sqrt(1 - rho) * rng.normal(size=J)
        rejections += corrected_resampled_t_test(d, 100 / share, 100) < 0.05
        plain += ttest_1samp(d, 0).pvalue < 0.05
    assert 0.035 < rejections / 1000 < 0.065
    assert plain / 1000 > 0.2


def test_folds_that_agree_by_chance_prove_nothing():
    assert corrected_resampled_t_test(np.zeros(5), 40, 10) == 1.0
    assert corrected_resampled_t_test(np.full(2, 1 / 75), 75, 75) > 0.1  # one row in each of two folds
    assert corrected_resampled_t_test(np.full(15, 0.1), 400, 100) < 1e-6


@pytest.mark.slow
def test_level_of_a_whole_comparison_of_noise():
    """Two folds of a dozen rows, labels without meaning: hardly ever significant."""
    statuses = []
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(12, 3))
        comparison = compare(X, np.arange(12) % 2, methods=[Method("DNE", DNE())], n_splits=2, n_repeats=1)
        statuses += [result.status for result in comparison.results if result.name != RAW]
    assert sum(status != "unclear" for status in statuses) <= 3


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []
