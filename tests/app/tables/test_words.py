"""What the command says of a comparison."""

import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from nearkin import DNE, NMMP, plotting
from nearkin.app.tables.report import described
from nearkin.app.tables.words import WORDING, Summary, format_p
from nearkin.comparison import (
    CHOICE,
    RAW,
    SCORES,
    Method,
    Reference,
    all_methods,
    compare,
    default_references,
    ranked,
)

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
X = RNG.normal(size=(90, 30)) + 4 * np.eye(30)[Y]
MANY = np.arange(240) % 3
WIDE = RNG.normal(size=(240, 40)) + 3 * np.eye(40)[MANY]
TARGET = RNG.normal(size=90)
NONE = RNG.permutation(MANY)
FEW = {"n_splits": 5, "n_repeats": 1}
ALONE = {"references": [], **FEW}
ONE = [Method("one", LinearDiscriminantAnalysis(n_components=2), nested=False)]
LINEAR = default_references()[:2]


class Broken(TransformerMixin, BaseEstimator):
    """It never has luck."""

    def fit(self, X, y):
        raise ValueError("no luck today")

    def transform(self, X):
        return X


@pytest.fixture(scope="module")
def won():
    return compare(WIDE, MANY, methods=ONE, references=LINEAR, **FEW)


@pytest.fixture(scope="module")
def noise():
    return compare(WIDE, NONE, methods=ONE, references=LINEAR, **FEW)


def changed(comparison, **by_name):
    """Return the comparison with results of which some attributes are others."""
    results = (
        replace(result, **by_name.get(result.name.split()[0], {})) for result in comparison.results
    )
    return replace(comparison, results=tuple(results))


# Figures


@pytest.mark.parametrize(
    ("score", "text"),
    [(2.7, "2.70"), (23546.0, "23546"), (0.0013, "0.00130"), (0.0, "0.00"), (2.5e-9, "2.50e-09")],
)
def test_errors_in_the_unit_of_the_target(score, text):
    assert WORDING["mae"].at(score).figure(score) == text


def test_differences_of_errors_have_the_digits_of_the_errors():
    words = WORDING["mae"].at(23.46)
    assert [words.signed(d) for d in (0.123, -0.04, -12.0)] == ["+0.1", "+0.0", "-12.0"]


def test_every_score_has_its_words():
    assert set(WORDING) == {name for scores in SCORES.values() for name in scores}
    assert all(words.factor == plotting.SCORES[name][0] for name, words in WORDING.items())
    assert {words.second for words in WORDING.values()} <= set(WORDING)
    assert all(WORDING[words.second] is not words for words in WORDING.values())


def test_scores():
    accuracy, r2 = WORDING["accuracy"], WORDING["r2"]
    assert (accuracy.number(0.954), accuracy.figure(0.954), r2.figure(-0.0001)) == (
        "95.4",
        "95.4%",
        "0.000",
    )
    assert [r2.signed(d) for d in (0.1234, -0.0004, -0.02)] == ["+0.123", "+0.000", "-0.020"]
    assert [accuracy.signed(d) for d in (0.1234, -0.0004, -0.02)] == ["+12.3", "+0.0", "-2.0"]
    assert accuracy.predicate(0.5) == "is right in 50.0% of the held-out rows"
    assert WORDING["auc"].predicate(0.931) == "has an AUC of 0.931 on held-out rows"
    assert [format_p(p) for p in (0.05149, 1.0, 2e-5)] == ["0.051", "1", "<0.001"]


# The verdict


@pytest.mark.slow
def test_verdict_of_a_choice_that_is_better(won):
    finding, references, power = Summary(won).verdict.split("\n")
    choice, raw = won.choice.score.mean(), won.raw.score.mean()
    assert finding.startswith(
        f"The automatic choice (one in all 5 folds) is right in {choice:.1%} of the held-out rows, "
        f"raw k-NN in {raw:.1%}: +{100 * (choice - raw):.1f} points (95% interval "
    )
    # the choice is "one" in every fold: a single test, with nothing to correct
    assert re.search(r"\(95% interval [\d.]+ to [\d.]+, p (< 0\.001|= [\d.]+)\)\.$", finding)
    assert won.choice.p_value == won["one"].p_value
    assert references.startswith("The best reference, logistic regression, is right in ")
    assert references.endswith(" it.")
    assert power.startswith("This table is large enough to detect a true difference of about ")
    assert Summary(won).quote.startswith(
        "On held-out rows (240 rows, 5 folds), the automatic choice (one in all 5 folds) is "
    )


@pytest.mark.parametrize(
    ("score", "least", "words"),
    [
        ("r2", 0.4, "This table is large enough to detect a true difference of about 0.4 with"),
        ("r2", 0.83, "These folds only detect a true difference of at least about 0.83 with"),
        ("mae", 83.0, "This table is large enough to detect a true difference of about 83 with"),
        ("mae", 41123.0, "This table is large enough to detect a true difference of about 41,000 "),
    ],
)
def test_only_a_table_that_detects_less_than_a_large_difference_is_large_enough(
    score, least, words
):
    options = {"task": "regression", "score": score, "methods": [], "n_neighbors": 3, **ALONE}
    found = replace(compare(X, TARGET, **options), least_difference=least)
    assert words in Summary(found).verdict
    assert "difference" not in Summary(replace(found, least_difference=np.inf)).verdict


@pytest.mark.long
def test_of_several_the_interval_is_said_not_to_be_corrected():
    methods = [*ONE, Method("PCA", PCA(), nested=False)]
    found = Summary(compare(WIDE, MANY, methods=methods, **ALONE))
    assert found.n_tested == 2
    assert ", uncorrected; p " in found.verdict
    assert " after Holm over 2 methods)" in found.verdict
    assert found.caption.endswith("; p after Holm over 2 methods")


@pytest.mark.slow
def test_a_choice_that_is_raw_k_nn_in_every_fold_is_no_test(noise):
    params = tuple({"method": RAW} for _ in noise.folds)
    choice = replace(noise.raw, name=CHOICE, kind="choice", params=params)
    results, _ = ranked([noise.raw, choice, noise["one"]], noise.folds)
    p_values = {result.name: result.p_value for result in results}
    assert p_values[CHOICE] == 1
    (alone,) = (one for one in ranked([noise.raw, noise["one"]], noise.folds)[0] if one.name != RAW)
    assert p_values["one"] == alone.p_value


@pytest.mark.slow
def test_references_stand_on_the_same_folds():
    comparison = compare(X, Y, methods=ONE, references=LINEAR, n_splits=3, n_repeats=2)
    assert {len(reference.score) for reference in comparison.references} == {6}
    best = comparison["logistic regression"].score.mean()
    assert (
        f"The best reference, logistic regression, is right in {best:.1%} of the held-out rows: "
        in Summary(comparison).verdict
    )
    assert "(90 labelled rows, 6 folds):" in repr(comparison)


@pytest.mark.slow
def test_a_choice_that_every_fold_makes_otherwise(won):
    params = tuple({"method": name} for name in ("one", "two", RAW, "three", "four"))
    text = Summary(changed(won, automatic={"params": params})).verdict
    assert text.startswith(
        "The automatic choice (a different method in each of the 5 folds) is right in "
    )


@pytest.mark.slow
def test_verdict_without_a_winner(noise):
    finding, *others = Summary(noise).verdict.split("\n")
    assert finding.startswith(
        ("No method is shown to beat raw k-NN", "No method is ahead of raw k-NN")
    )
    # it is ahead by a digit
    always = "The automatic choice is not shown to be better than always predicting the largest "
    assert any(line.startswith(always) for line in others)


def test_the_constant_that_a_log_loss_judges_is_no_label(noise):
    assert noise.score.name == "accuracy"
    losses = replace(
        noise, protocol=replace(noise.protocol, score=SCORES["classification"]["log_loss"])
    )
    assert "always predicting the class frequencies (" in Summary(losses).verdict


def test_verdict_where_a_method_but_not_the_choice_is_better(won):
    text = Summary(changed(won, automatic={"p_value": 0.3})).verdict.partition("\n")[0]
    assert text.startswith(
        "The automatic choice (one in all 5 folds) is not shown to beat raw k-NN: it is right in "
    )
    assert ". one is: it is right in " in text


def test_nobody_is_the_best_by_a_digit_that_is_not_shown(won):
    level = {"difference": 0.0, "p_value": 1.0, "score": won.raw.score}
    text = Summary(changed(won, automatic=level, one=level)).verdict.partition("\n")[0]
    expected = f"is right in {won.raw.score.mean():.1%} of the held-out rows."
    assert text == f"No method is ahead of raw k-NN, which {expected}"
    text = Summary(changed(won, automatic=level, one={"p_value": 1.0})).verdict.partition("\n")[0]
    assert text.startswith("No method is shown to beat raw k-NN, which is right in ")
    assert text.endswith(", as is the automatic choice (one in all 5 folds).")


def test_verdict_on_raw_k_nn_alone():
    comparison = compare(X, Y, methods=[], **ALONE)
    assert Summary(comparison).verdict.startswith(
        "No method is ahead of raw k-NN, which is right in "
    )


def test_a_regression_of_noise_is_said_to_be_no_better_than_the_mean():
    comparison = compare(X, TARGET, task="regression", methods=[], **ALONE)
    first, finding, *_ = Summary(comparison).verdict.split("\n")
    assert first.startswith("The automatic choice is no better than always predicting the mean (")
    assert "R² of " in finding


class Constant(TransformerMixin, BaseEstimator):
    """It maps all rows on one place: nearly a constant prediction, which beats raw k-NN on noise."""

    def fit(self, X, y):
        return self

    def transform(self, X):
        return np.zeros((len(X), 1))


@pytest.fixture(scope="module")
def hopeless():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 5)), rng.normal(size=400)
    methods = [Method("constant", Constant(), nested=False)]
    return compare(X, y, task="regression", methods=methods, n_neighbors=3, **ALONE)


@pytest.mark.slow
def test_what_does_not_beat_a_constant_is_not_called_better(hopeless):
    one = hopeless["constant"]
    assert (one.difference > 0, one.p_value < 0.05) == (True, True)
    assert (one.beats_constant, one.status) == (False, "unclear")
    assert hopeless.constant.name == "mean"
    found = Summary(hopeless)
    first, finding, *_ = found.verdict.split("\n")
    always = "no better than always predicting the mean ("
    assert first.startswith(f"The automatic choice is {always}")
    assert finding.startswith("The automatic choice (constant in all 5 folds) has an R² of -0.")
    assert finding.endswith("not called better as it does not beat a constant).")
    start = f"On held-out rows (400 rows, 5 folds), the automatic choice is {always}"
    assert found.quote.startswith(start)
    assert "better" not in {line["verdict"] for line in found.lines}


@pytest.mark.slow
def test_what_is_ahead_of_a_constant_by_luck_is_not_called_better_either(hopeless):
    luck = replace(hopeless.choice.over_constant, difference=1e-3, standard_error=1e-3)
    found = Summary(changed(hopeless, automatic={"over_constant": luck}))
    first = found.verdict.partition("\n")[0]
    assert first.startswith("The automatic choice is not shown to be better than always predicting")
    assert found.leader.status == "unclear"


def test_what_beats_a_constant_may_be_called_better(won):
    assert won.choice.beats_constant
    assert won.constant.name == "majority"
    assert won.choice.over_constant.difference == pytest.approx(
        won.choice.score.mean() - won.constant.score.mean()
    )
    assert {one.over_constant for one in won.references} == {None}


def test_three_folds_show_what_beats_a_constant():
    """The rows do, though three folds only show huge differences from another method."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    table = rng.normal(size=(120, 4))
    table[:, 0] += 1.8 * y
    comparison = compare(table, y, methods=ONE, references=[], n_splits=3, n_repeats=1, refit=False)
    first = comparison.choice
    assert first.over_constant.n_folds == 3
    assert 0.2 < first.over_constant.difference < 0.45
    assert first.beats_constant
    few = replace(comparison, least_difference=0.81)
    assert Summary(few).verdict.endswith(
        "\nThese folds only detect a true difference of at least about 81 points with a power of 80%."
    )


def test_a_smaller_error_is_ahead():
    target = X[:, 0] + 0.1 * TARGET
    ridge = default_references("regression")[1:2]
    comparison = compare(
        X, target, task="regression", methods=[], references=ridge, score="mae", **FEW
    )
    assert (
        "The best reference, ridge regression, has a mean absolute error of 0."
        in Summary(comparison).verdict
    )
    assert " behind it." in Summary(comparison).verdict


# The ranking


def test_the_ranking(won):
    found = Summary(won)
    assert list(found.lines[0]) == [
        "method",
        "accuracy %",
        "balanced %",
        "dim",
        "vote",
        "fit",
        "vs raw",
        "p",
        "verdict",
    ]
    by_name = {row["method"]: row for row in found.lines}
    assert list(by_name)[-2:] == ["logistic regression", "majority"]
    half = 100 * (won.choice.interval[1] - won.choice.interval[0]) / 2
    assert by_name[CHOICE]["vs raw"] == f"{100 * won.choice.difference:+.1f} ± {half:.1f}"
    assert (by_name[RAW]["vs raw"], by_name[RAW]["verdict"]) == ("", "baseline")
    assert {by_name["majority"][name] for name in ("dim", "vote", "fit", "p")} == {""}
    assert by_name["majority"]["verdict"] == "reference"
    assert found.caption.startswith(
        "Accuracy on held-out rows (240 rows, 5 folds, standardized features, seed 0)"
    )
    assert "vote chosen on inner folds" in found.caption
    assert found.caption.endswith("half of its 95% interval")


# Remarks


def test_notes():
    known = np.arange(90) < 18
    methods = [
        Method("PCA", all_methods()[1].estimator, nested=False, unlabelled=True),
        Method("broken", Broken(), nested=False),
    ]
    comparison = compare(
        X, np.where(known, Y, None), methods=methods, references=[], n_splits=50, n_repeats=1
    )
    lines = list(Summary(comparison).notes)
    assert lines[0] == (
        "18 of 90 rows have a label: only these are held out and vote; PCA also learned "
        "from the others."
    )
    assert lines[1].startswith("50 folds reduced to ")
    assert lines[1].endswith(" rows, counting those with a label.")
    assert lines[2:] == ["broken skipped: no luck today"]


def test_notes_of_warnings_and_of_an_interruption():
    def progress(method, done, total):
        if (method, done) == ("PCA", 8):
            raise KeyboardInterrupt

    rows, labels = WIDE[:, :2], np.arange(240) % 5
    methods = [Method("DNE", DNE(), nested=False), Method("PCA", PCA(), nested=False)]
    lines = list(Summary(compare(rows, labels, methods=methods, progress=progress, **ALONE)).notes)
    assert lines[0].startswith("DNE (1 fit) found no direction that separates the classes locally")
    assert lines[-1] == "Interrupted: 1 of 5 folds was finished. No model was fitted."


def test_notes_of_the_end_of_the_time_budget():
    methods = [*ONE, Method("PCA", PCA(), nested=False)]
    lines = list(Summary(compare(X, Y, methods=methods, time_budget=1e-9, **ALONE)).notes)
    assert lines[0].startswith("PCA skipped: the time budget ended")
    assert lines[1:] == ["The time budget ran out: 1 of 5 folds was finished."]


def test_notes_of_twins():
    twice = np.append(np.arange(90), np.arange(30))
    stay = (
        "twins stay on one side of every split (unless --keep-twins), so new rows with one here "
        "may do better."
    )
    (line,) = Summary(compare(X[twice], Y[twice], methods=[], n_neighbors=3, **ALONE)).notes
    assert line == f"50% of the rows have a twin, identical or nearly so: {stay}"
    assert len(line) < 160
    (line,) = Summary(
        compare(X[twice], Y[twice], methods=[], keep_twins=True, n_neighbors=3, **ALONE)
    ).notes
    assert "they were split like other rows" in line


@pytest.mark.long
def test_notes_of_samples():
    methods = [
        Method("PCA", PCA(), most_rows=50),
        Method("DNE", DNE(2), most_rows=50, nested=False),
    ]
    some = Reference("majority", LINEAR[0].estimator, 1000)
    (line,) = Summary(compare(X, Y, methods=methods, references=[some], n_neighbors=3, **FEW)).notes
    assert re.fullmatch("Learned from 5[01] of 72 training rows: (PCA, DNE|DNE, PCA).", line)


@pytest.mark.long
def test_notes_of_a_class_minus_1():
    doubt = "-1 was taken as a class: if it marks rows without a label, give --unlabelled -1."
    assert list(Summary(compare(X, Y - 1, methods=[], **ALONE)).notes) == [doubt]
    assert list(Summary(compare(X, 2 * (Y > 0) - 1, methods=[], **ALONE)).notes) == []


def test_summaries():
    for method in all_methods(semi_supervised=True):
        assert len(described(method)) > 20
    assert (
        described(Method("x", NMMP(criterion="ratio_trace")))
        == f"{described(Method('x', NMMP()))} (criterion='ratio_trace')"
    )
