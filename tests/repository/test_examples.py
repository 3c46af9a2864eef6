"""What the examples of the gallery promise holds. The documentation runs all of them when it is
built.
"""

import importlib
import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from nearkin.testing import COPIES_ARE_NEIGHBORS, embedding_checks

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive"),
]


def names_of(example):
    """Run an example, and return its variables."""
    plt = pytest.importorskip("matplotlib.pyplot")
    names = runpy.run_path(str(EXAMPLES / example))
    plt.close("all")
    return names


def test_clusters_on_a_learned_metric_agree_better_with_the_classes():
    figures = names_of("methods/plot_learned_metric.py")["figures"]
    for method in ("k-means", "spectral clustering"):
        assert figures["learned space"][method] > figures["pixels"][method] + 0.03


def test_a_learned_metric_as_the_next_prior_gains_in_one_round_only():
    votes = np.mean(names_of("few_labels/plot_next_prior.py")["votes"]["with labels"], axis=0)
    assert votes[1] > votes[0] + 0.03
    assert votes[-1] < votes[1]


def test_a_table_is_predicted():
    pytest.importorskip("pandas")
    assert all(mean > 0.35 for mean in names_of("tables/plot_columns.py")["r2"].values())


def test_a_messy_table_is_followed_from_start_to_end():
    pytest.importorskip("pandas")
    names = names_of("tables/plot_a_table_start_to_end.py")
    scores = names["scores"]
    assert (
        scores.loc["NCAClassifier", "accuracy"]
        > scores.loc["most frequent label", "accuracy"] + 0.3
    )
    first, slips = names["first"], names["slips"]
    assert abs(len(first) - len(slips)) <= 0.3 * len(slips)
    assert np.isin(first, slips).mean() >= 0.7
    assert names["found"].far.rows.tolist() == [7]
    assert names["is_right"].mean() >= 0.95
    assert abs(names["is_within"].mean() - 0.9) <= 0.06
    familiarity = names["classifier"].familiarity(names["X_new"])
    assert familiarity.argmin() == 3
    assert familiarity[3] < 0.01
    report = names["report"]
    assert [month["drift"] for month in report.values()] == [False, True, False]
    within = [float(month["prices within interval"].rstrip("%")) for month in report.values()]
    assert within[0] > within[2] + 15


def test_wrong_labels_are_found_and_better_left_out():
    names = names_of("tables/plot_wrong_labels.py")
    n_wrong = names["flipped"].sum()
    assert names["hits"][n_wrong - 1] >= 0.8 * n_wrong
    assert abs(names["found"].n_issues - n_wrong) <= 0.3 * n_wrong
    scores = names["scores"]
    assert scores["the listed ones left out"] >= scores["as many at random left out"]


def test_sets_and_intervals_cover_what_they_promise():
    pytest.importorskip("pandas")
    names = names_of("tables/plot_sets_and_intervals.py")
    for coverage, share in names["covered"].items():
        assert share >= coverage - 0.02
    for coverage, share in names["within"].items():
        assert abs(share - coverage) <= 0.08
    unfamiliar = names["unfamiliar"]
    assert unfamiliar["as in training"] <= 0.08
    assert unfamiliar["turned by 90 degrees"] >= 0.95


def test_a_picture_of_digits_is_as_good_as_the_learned_space():
    names = names_of("pictures/plot_digits_map.py")
    accuracies = names["accuracies"]
    assert accuracies["t-distributed NCA"] > accuracies["NCA"] + 0.1
    assert accuracies["t-distributed NCA"] > names["learned"] - 0.02


def test_random_labels_show_in_held_out_rows_only():
    accuracies = names_of("pictures/plot_honest_picture.py")["accuracies"]
    on_training, on_held_out = accuracies["Random labels"]
    assert on_training > 0.6
    assert abs(on_held_out - 1 / 3) < 0.08
    assert min(accuracies["True labels"]) > 0.9


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_methods_of_ones_own_pass_all_checks(monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.syspath_prepend(EXAMPLES / "production")
    own = importlib.import_module("plot_own_method")  # a module, whose classes can be pickled
    plt.close("all")
    for model in (own.NonparametricDiscriminant(2), own.ClassMeanMetric(2)):
        assert "singleton_class" in dict(embedding_checks(model))
        with pytest.raises(ValueError, match="requires y to be passed"):
            model.fit(own.X, None)
    with pytest.raises(ValueError, match="n_neighbors must be at least 1"):
        own.NonparametricDiscriminant(2, n_neighbors=0).fit(own.X, own.y)
    assert own.NonparametricDiscriminant(2, n_neighbors="auto").fit(own.X, own.y).n_neighbors_ > 0
    check_estimator(own.NonparametricDiscriminant(2), expected_failed_checks=COPIES_ARE_NEIGHBORS)
    check_estimator(own.ClassMeanMetric(2))
