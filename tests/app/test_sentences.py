"""What the command says of a comparison."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA

from nearkin import DNE, NMMP
from nearkin.app.sentences import WORDING, format_p, notes, summary, verdict
from nearkin.evaluation import RAW, Method, compare, default_methods

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
X = RNG.normal(size=(90, 30)) + 4 * np.eye(30)[Y]
FEW = {"n_splits": 3, "n_repeats": 1}
DNE_METHOD = Method("DNE", DNE(), nested=False)


class Broken(TransformerMixin, BaseEstimator):
    """It never has luck."""

    def fit(self, X, y):
        raise ValueError("no luck today")

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([2.5, 2.9], "2.70 ± 0.28"),
        ([23145.0, 23947.0], "23546 ± 567"),
        ([0.0012, 0.0014], "0.00130 ± 0.00014"),
        ([0.0, 0.0], "0.00 ± 0.00"),
        ([2e-9, 3e-9], "2.50e-09 ± 7e-10"),
        ([2e12, 3e12], "2.50e+12 ± 7e+11"),
    ],
)
def test_errors_in_the_unit_of_the_target(values, text):
    assert WORDING["regression"].second_mean_std(np.array(values)) == text


def test_scores():
    classes, numbers = WORDING["classification"], WORDING["regression"]
    assert numbers.mean_std(np.array([0.5, 0.7])) == "0.600 ± 0.141"
    assert classes.mean_std(np.array([0.5, 0.7])) == classes.second_mean_std(np.array([0.5, 0.7])) == "60.0 ± 14.1"
    assert [numbers.signed(d) for d in (0.1234, -0.0004, -0.02)] == ["+0.123", "+0.000", "-0.020"]
    assert [classes.signed(d) for d in (0.1234, -0.0004, -0.02)] == ["+12.3", "+0.0", "-2.0"]
    assert (numbers.vote(0.5), classes.vote(0.5)) == ("at R² 0.500", "right in 50.0%")
    assert [format_p(p) for p in (0.05149, 1.0, 2e-5)] == ["0.051", "1", "<0.001"]


def test_verdict_of_a_winner():
    comparison = compare(X, Y, methods=[Method("one", DNE(2), nested=False)], n_neighbors=1)
    text = verdict(comparison)
    assert text.startswith("1-NN is more accurate after one than on the raw features: ")
    raw = comparison[RAW].score.mean()
    assert f"% against {raw:.1%} of held-out rows, +" in text
    assert text.endswith(" after Holm over 1 method.")


def test_verdict_without_a_winner():
    labels = RNG.permutation(Y)
    assert verdict(compare(X, labels, methods=[DNE_METHOD], **FEW)).startswith(
        "No method is shown to beat raw k-NN here. The best, DNE: "
    )
    assert verdict(compare(X, labels, methods=[], **FEW)).endswith("%; nothing to compare.")
    text = verdict(compare(X, X[:, 0], task="regression", methods=[], **FEW))
    assert text.startswith("3-NN on the raw features is at R² ")


def test_notes():
    known = RNG.random(90) < 0.5
    methods = [
        Method("PCA", default_methods()[1].estimator, nested=False, unlabelled=True),
        Method("broken", Broken(), nested=False),
    ]
    comparison = compare(X, np.where(known, Y, None), methods=methods, n_splits=50, n_repeats=1, n_neighbors=60)
    n = known.sum()
    lines = list(notes(comparison))
    assert lines[0] == (
        f"{n} of 90 rows have a label: only these are held out and vote. From the {90 - n} without one learned: PCA."
    )
    assert lines[1].startswith("50 folds reduced to ")
    assert lines[1].endswith(" rows, counting those with a label.")
    assert lines[2].startswith(f"60-NN reduced to {comparison.n_neighbors}-NN: a fold leaves ")
    assert lines[3:] == ["broken skipped: no luck today"]


def test_notes_of_warnings_and_of_an_interruption():
    def progress(method, done, total):
        if (method, done) == ("PCA", 1):
            raise KeyboardInterrupt

    noise, labels = RNG.normal(size=(300, 2)), np.arange(300) % 5
    methods = [DNE_METHOD, Method("PCA", PCA(), nested=False)]
    lines = list(notes(compare(noise, labels, methods=methods, progress=progress, **FEW)))
    assert lines[0].startswith("DNE warned ")
    assert " times: " in lines[0]
    assert lines[1:] == ["Interrupted: 2 of 3 methods were finished, no winner was fitted."]


def test_notes_of_a_class_minus_1():
    doubt = "-1 was taken for a class: if it marks rows without a label, say unlabelled=-1 (--unlabelled -1)."
    assert list(notes(compare(X, Y - 1, methods=[], **FEW))) == [doubt]
    assert list(notes(compare(X, 2 * (Y > 0) - 1, methods=[], **FEW))) == []


def test_summaries():
    for method in default_methods(semi_supervised=True):
        assert len(summary(method)) > 20
    assert (
        summary(Method("x", NMMP(criterion="ratio_trace")))
        == f"{summary(Method('x', NMMP()))} (criterion='ratio_trace')"
    )
