import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn import metrics

from nearkin.comparison.scores import MIN_PROBABILITY, SCORES

CLASSIFICATION, REGRESSION = SCORES["classification"], SCORES["regression"]


def classes(n=400, c=3, seed=0, k=7):
    """Draw labels of unequal frequency, and shares of k votes that lean towards them."""
    rng = np.random.default_rng(seed)
    y = rng.choice(c, n, p=np.arange(1, c + 1) / np.arange(1, c + 1).sum())
    lean = np.full((n, c), 1.0) + 2 * np.eye(c)[y] * rng.random((n, 1))
    votes = np.array([rng.multinomial(k, p) for p in lean / lean.sum(axis=1, keepdims=True)])
    return y, votes / k


def numbers(n=400, seed=0, decimals=1):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return y.round(decimals), (y + rng.normal(size=n)).round(decimals)


def one_vs_rest(y, P):
    return np.mean([metrics.roc_auc_score(y == c, P[:, c]) for c in np.unique(y)])


REFERENCES = {
    "accuracy": lambda y, P: metrics.accuracy_score(y, P.argmax(1)),
    "balanced_accuracy": lambda y, P: metrics.recall_score(
        y, P.argmax(1), labels=np.unique(y), average="macro"
    ),
    "f1": lambda y, P: metrics.f1_score(y, P.argmax(1), labels=np.unique(y), average="macro"),
    "auc": one_vs_rest,
    "log_loss": lambda y, P: np.mean(
        [-np.log(max(p[label], MIN_PROBABILITY)) for label, p in zip(y, P, strict=True)]
    ),
    "r2": metrics.r2_score,
    "mae": metrics.mean_absolute_error,
    "rank_correlation": lambda y, prediction: spearmanr(y, prediction).statistic,
}


def sample(task, **options):
    return classes(**options) if task == "classification" else numbers(**options)


ALL = [(task, name) for task in SCORES for name in SCORES[task]]


@pytest.mark.parametrize(("task", "name"), ALL)
def test_the_mean_of_the_contributions_is_the_score(task, name):
    for seed in range(3):
        y, prediction = sample(task, n=60, seed=seed)
        assert SCORES[task][name].contributions(y, prediction).mean() == pytest.approx(
            REFERENCES[name](y, prediction)
        )


@pytest.mark.parametrize(("task", "name"), ALL)
def test_the_influence_of_a_row_is_what_leaving_it_out_changes(task, name):
    """The jackknife: n - 1 times the change is the influence, to first order."""
    y, prediction = sample(task, n=200)
    n, contributions = len(y), SCORES[task][name].contributions(y, prediction)
    rows = np.arange(n)
    left = [
        SCORES[task][name].contributions(y[rows != i], prediction[rows != i]).mean() for i in rows
    ]
    influence = (n - 1) * (contributions.mean() - np.array(left))
    assert contributions - contributions.mean() == pytest.approx(
        influence, abs=0.15 * influence.std()
    )
    assert contributions.std() == pytest.approx(influence.std(), rel=0.03)


@pytest.mark.long_after(1)
@pytest.mark.parametrize(("task", "name"), ALL)
def test_the_variance_is_that_of_new_rows(task, name):
    contributions = SCORES[task][name].contributions
    drawn = [contributions(*sample(task, n=100, seed=seed)) for seed in range(250)]
    expected = np.mean([values.std(ddof=1) / np.sqrt(100) for values in drawn])
    assert np.std([values.mean() for values in drawn]) == pytest.approx(expected, rel=0.15)


def test_scikit_learn_agrees_where_it_has_the_score():
    y, P = classes(c=2)
    assert CLASSIFICATION["auc"].contributions(y, P).mean() == pytest.approx(
        metrics.roc_auc_score(y, P[:, 1])
    )
    y, P = classes(c=4)
    P = (P + 0.1) / 1.4
    assert CLASSIFICATION["auc"].contributions(y, P).mean() == pytest.approx(
        metrics.roc_auc_score(y, P, multi_class="ovr")
    )
    assert CLASSIFICATION["log_loss"].contributions(y, P).mean() == pytest.approx(
        metrics.log_loss(y, P)
    )


@pytest.mark.parametrize("name", CLASSIFICATION)
def test_classes_that_a_fold_lacks_do_not_count(name):
    y, P = classes(c=3)
    present = y != 1
    values = CLASSIFICATION[name].contributions(y[present], P[present])
    assert values.mean() == pytest.approx(REFERENCES[name](y[present], P[present]))
    assert np.isfinite(CLASSIFICATION[name].contributions(y[y == 2], P[y == 2])).all()


def test_a_single_class_has_no_order():
    assert (
        CLASSIFICATION["auc"].contributions(np.ones(3, int), np.eye(2)[[0, 1, 1]]).tolist()
        == [0.5] * 3
    )


def test_one_confident_wrong_vote_is_finite():
    loss = CLASSIFICATION["log_loss"].contributions(
        np.array([0, 0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    )
    assert loss == pytest.approx([-np.log(MIN_PROBABILITY), 0])


def test_numbers_that_do_not_vary():
    y, prediction = numbers(20)
    r2, constant = REGRESSION["r2"].contributions, np.full(20, 3.0)
    assert (r2(constant, prediction) == 0).all()
    assert (r2(constant, constant) == 1).all()
    for pair in ((constant, prediction), (y, constant), (constant, constant)):
        assert (REGRESSION["rank_correlation"].contributions(*pair) == 0).all()


def test_signs_and_defaults():
    assert next(iter(CLASSIFICATION)) == "accuracy"
    assert next(iter(REGRESSION)) == "r2"
    assert {name for task in SCORES for name, score in SCORES[task].items() if score.sign < 0} == {
        "log_loss",
        "mae",
    }


@pytest.mark.parametrize(("task", "name"), ALL)
def test_weights_are_those_of_repeated_rows(task, name):
    """In the score, and in what each row contributes: its copies together."""
    y, prediction = sample(task, n=60)
    copies = 1 + np.random.default_rng(1).integers(4, size=60)
    of = np.repeat(np.arange(60), copies)
    contributions = SCORES[task][name].contributions
    many = contributions(y[of], prediction[of])
    for weights in (copies, 0.1 * copies):
        one = contributions(y, prediction, weights)
        assert one.mean() == pytest.approx(many.mean(), rel=1e-10)
        influence = np.bincount(of, many - many.mean()) / len(of)
        np.testing.assert_allclose((one - one.mean()) / 60, influence, atol=1e-10)
    none, equal = contributions(y, prediction), contributions(y, prediction, np.full(60, 3.0))
    np.testing.assert_allclose(equal, none, atol=1e-10)
