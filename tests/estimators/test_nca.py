"""NCA: what a fit promises, wherever it begins."""

import traceback
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, hstack, random_array
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from nearkin import NCA, SoftNeighborsRegressor
from nearkin.bandwidth import unit_distance
from nearkin.estimators import descent_embedding
from nearkin.objectives import stochastic
from nearkin.objectives.nca import StochasticNeighbors, nca_objective
from nearkin.objectives.stochastic import SameClass, target_bandwidth

PACKAGE = str(Path(stochastic.__file__).parents[1])


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


class TestTheFit:
    @pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
    def test_ends_where_the_gradient_of_the_loss_vanishes(self, objective):
        X, y = wine()
        nca = NCA(2, objective=objective, alpha=1.0, tol=1e-12, max_iter=2000).fit(X, y)
        function = partial(nca_objective, objective)
        n, u, A = len(X), unit_distance(X), nca.components_
        value, gradient = function(A, X, SameClass(y))
        assert nca.objective_ == pytest.approx(value / n, rel=1e-8)
        penalty = 1.0 / np.sqrt(n) * u**2
        assert nca.loss_curve_[-1] == pytest.approx(-value / n + penalty * np.sum(A**2), rel=1e-8)
        slope = -gradient / n + 2 * penalty * A
        assert np.abs(slope).max() < 1e-4 * np.abs(gradient / n).max()

    @pytest.mark.parametrize(
        "load", [pytest.param(load_digits, marks=pytest.mark.long), load_wine, load_iris]
    )
    def test_reaches_at_least_what_scikit_learn_does_from_the_same_start(self, load):
        X, y = load(return_X_y=True)
        X = StandardScaler().fit_transform(X)[::2]
        y = y[::2]
        A = PCA(2).fit(X).components_
        A /= unit_distance(X @ A.T)
        theirs = (
            NeighborhoodComponentsAnalysis(2, init=A, max_iter=300, tol=1e-8).fit(X, y).components_
        )
        ours = NCA(2, init=A, alpha=0.0, max_iter=600, tol=1e-8).fit(X, y)
        assert (
            ours.objective_
            >= nca_objective("expected_accuracy", theirs, X, SameClass(y))[0] / len(y) - 1e-3
        )

    @pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
    @pytest.mark.parametrize(
        "X", [load_wine().data * 10, load_breast_cancer().data[::3]], ids=["wine x 10", "raw wdbc"]
    )
    def test_unscaled_features_move_and_improve(self, X, objective):
        y = load_wine().target if len(X) == 178 else load_breast_cancer().target[::3]
        nca = NCA(objective=objective).fit(X, y)
        assert nca.n_iter_ >= 3
        assert nca.loss_curve_[-1] < nca.loss_curve_[0] - 0.02

    @pytest.mark.parametrize("unit", [1e-6, 1e6])
    def test_units_do_not_matter(self, unit):
        X, y = wine()
        plain, other = NCA(2).fit(X, y), NCA(2).fit(X * unit, y)
        np.testing.assert_allclose(
            other.components_ * unit, plain.components_, rtol=1e-4, atol=1e-6
        )
        np.testing.assert_allclose(other.loss_curve_, plain.loss_curve_, rtol=1e-6)

    def test_mixed_units_still_move(self):
        X, y = load_iris(return_X_y=True)
        nca = NCA().fit(X * [1e-6, 1.0, 1.0, 1e6], y)
        assert nca.loss_curve_[-1] < nca.loss_curve_[0] - 0.02

    def test_penalty_draws_the_map_in(self):
        X, y = wine()
        sizes = [
            np.linalg.norm(NCA(alpha=alpha).fit(X, y).components_)
            for alpha in (0.01, 0.1, 1.0, 10.0)
        ]
        assert sizes == sorted(sizes, reverse=True)

    def test_perplexity_is_that_of_the_learned_neighbourhoods(self):
        X, y = load_iris(return_X_y=True)
        nca = NCA(alpha=0.1).fit(X[::2], y[::2])  # 75 rows: the 100 nearest are all
        Z = nca.transform(X[::2])
        total = 0.0
        for i in range(len(Z)):
            p = np.exp(-np.sum(np.delete(Z - Z[i], i, axis=0) ** 2, axis=1))
            p /= p.sum()
            total += np.exp(-np.sum(p * np.log(np.maximum(p, 1e-300))))
        assert nca.perplexity_ == pytest.approx(total / len(Z), rel=1e-6)

    @pytest.mark.slow
    def test_restarts_keep_the_best(self):
        X, y = wine()
        alone = NCA(2, init="random", random_state=0).fit(X, y)
        best = NCA(2, init="random", n_init=3, random_state=0).fit(X, y)
        assert best.loss_curve_[-1] <= alone.loss_curve_[-1]
        again = NCA(2, init="random", n_init=3, random_state=0).fit(X, y)
        np.testing.assert_array_equal(again.components_, best.components_)

    def test_single_precision_beyond_two_thousand_rows_changes_little(self, monkeypatch):
        X, y = wine()
        double = NCA(2).fit(X, y)
        monkeypatch.setattr(descent_embedding, "FLOAT64_ROWS", 10)
        single = NCA(2).fit(X, y)
        assert single.components_.dtype == np.float64
        assert single.objective_ == pytest.approx(double.objective_, abs=2e-3)

    def test_max_iter_is_reported(self):
        with pytest.warns(ConvergenceWarning, match=r"max_iter=3 iterations ended the descent"):
            nca = NCA(max_iter=3).fit(*wine())
        assert nca.n_iter_ == 3
        assert len(nca.loss_curve_) == 4

    def test_an_interrupt_keeps_the_best_map(self, monkeypatch):
        X, y = wine()
        calls, value = [], StochasticNeighbors.value

        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) == 8:
                raise KeyboardInterrupt
            return value(*arguments)

        monkeypatch.setattr(StochasticNeighbors, "value", interrupted)
        nca = NCA(init="identity")
        with pytest.raises(KeyboardInterrupt):
            nca.fit(X, y)
        assert nca.n_iter_ >= 1
        assert nca.objective_ > 0.7
        assert nca.transform(X).shape == X.shape


def test_from_fit_to_the_probabilities_in_nine_calls(monkeypatch):
    """A reader who steps from `fit` into eq. 1 passes nine functions, `among_all` the last of
    them.
    """
    exponentiate, stacks = stochastic.exponentiate, []

    def spied(logits):
        stacks.append(
            [
                frame.name
                for frame in traceback.extract_stack()
                if frame.filename.startswith(PACKAGE)
            ]
        )
        return exponentiate(logits)

    monkeypatch.setattr(stochastic, "exponentiate", spied)
    NCA(2, init="pca", tol=1e-3).fit(*wine())
    assert stacks[0].index("among_all") - stacks[0].index("fit") <= 9


class TestStructures:
    def test_diagonal_weighs_features(self):
        rng = np.random.default_rng(0)
        y = np.arange(200) % 2
        X = np.column_stack([y + 0.3 * rng.normal(size=200), rng.normal(size=(200, 3))])
        nca = NCA(structure="diagonal").fit(X, y)
        np.testing.assert_array_equal(nca.components_, np.diag(np.diag(nca.components_)))
        weights = np.diag(nca.components_)
        assert weights[0] > 5 * weights[1:].max()

    def test_diagonal_is_a_full_map_that_may_not_mix(self):
        X, y = wine()
        full, diagonal = NCA(alpha=0.01).fit(X, y), NCA(structure="diagonal", alpha=0.01).fit(X, y)
        assert full.loss_curve_[0] == pytest.approx(diagonal.loss_curve_[0])
        assert full.loss_curve_[-1] < diagonal.loss_curve_[-1]

    def test_more_features_than_rows_need_no_p_by_p_map(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 20_000))
        y = np.arange(30) % 2
        nca = NCA().fit(X, y)
        assert nca.components_.shape == (29, 20_000)

    def test_wide_sparse_rows_stay_sparse(self):
        rng = np.random.default_rng(0)
        y = np.arange(300) // 150
        X = hstack([y[:, None] * 5.0, random_array((300, 49_999), density=1e-4, random_state=rng)])
        nca = NCA(2).fit(csr_array(X), y)  # dense: 120 MB
        assert nca.components_.shape == (2, 50_000)
        assert nca.objective_ > 0.9


class TestCandidates:
    @staticmethod
    def problem():
        return make_classification(
            300,
            20,
            n_informative=8,
            n_classes=4,
            n_clusters_per_class=2,
            class_sep=1.5,
            random_state=0,
        )

    @pytest.mark.long
    @pytest.mark.parametrize(
        "objective", ["expected_accuracy", pytest.param("log_likelihood", marks=pytest.mark.slow)]
    )
    def test_come_near_the_exact_fit(self, objective):
        X, y = self.problem()
        exact = NCA(5, objective=objective).fit(X, y)
        few = NCA(5, objective=objective, n_candidates=20).fit(X, y)
        function = partial(nca_objective, objective)
        u = unit_distance(X)

        def exact_loss(nca):
            penalty = 0.15 / np.sqrt(300) * u**2 * np.sum(nca.components_**2)
            return penalty - function(nca.components_, X, SameClass(y))[0] / 300

        start = exact.loss_curve_[0]
        assert exact_loss(few) - exact_loss(exact) < 0.1 * (start - exact_loss(exact))
        assert few.objective_ == pytest.approx(
            function(few.components_, X, SameClass(y))[0] / 300, abs=0.03
        )

    def test_a_penalty_cannot_be_had_for_nothing(self):
        """Rows that are not listed must count: a map that shrinks has them for neighbours, too."""
        X, y = self.problem()
        exact, few = NCA(5, alpha=2.0).fit(X, y), NCA(5, alpha=2.0, n_candidates=10).fit(X, y)
        ratio = np.linalg.norm(few.components_) / np.linalg.norm(exact.components_)
        assert 0.7 < ratio < 1.4

    def test_auto_is_exact_for_a_few_thousand_rows(self):
        X, y = self.problem()
        auto, exact = NCA(3, tol=1e-2), NCA(3, n_candidates=None, tol=1e-2)
        np.testing.assert_array_equal(auto.fit(X, y).components_, exact.fit(X, y).components_)

    @pytest.mark.slow
    def test_more_candidates_than_rows_are_all_rows(self):
        X, y = wine()
        exact, all_rows = NCA(2).fit(X, y), NCA(2, n_candidates=10_000).fit(X, y)
        assert all_rows.loss_curve_[0] == pytest.approx(exact.loss_curve_[0], rel=1e-9)
        assert all_rows.objective_ == pytest.approx(exact.objective_, abs=2e-3)


class TestContinuousTargets:
    def test_find_the_direction_that_determines_the_target(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 6))
        direction = rng.normal(size=6)
        y = np.tanh(X @ direction) + 0.05 * rng.normal(size=300)
        a = NCA(1, target="continuous").fit(X, y).components_[0]
        assert abs(a @ direction) / np.linalg.norm(a) / np.linalg.norm(direction) > 0.97

    @pytest.mark.long
    def test_unit_and_origin_of_the_target_do_not_matter(self):
        X, y = load_diabetes(return_X_y=True)
        plain = NCA(3, target="continuous").fit(X, y)
        other = NCA(3, target="continuous").fit(X, 1000 * y - 5)
        np.testing.assert_allclose(other.components_, plain.components_, rtol=1e-3)

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
    def test_an_outlier_changes_little(self, objective):
        X, y = load_diabetes(return_X_y=True)
        wrong = y.copy()
        wrong[3] *= 1e6
        plain, other = (
            NCA(1, target="continuous", objective=objective).fit(X, t).components_[0]
            for t in (y, wrong)
        )
        assert abs(plain @ other) > 0.98 * np.linalg.norm(plain) * np.linalg.norm(other)

    def test_bandwidth_is_a_quarter_of_the_standard_deviation_of_normal_targets(self):
        y = np.random.default_rng(0).normal(5.0, 3.0, 100_000)
        assert target_bandwidth(y) == pytest.approx(0.75, rel=0.01)
        assert target_bandwidth(1e3 * y - 7) == pytest.approx(750, rel=0.01)
        X = np.column_stack([y, y])[:50]
        assert NCA(target="continuous", max_iter=50).fit(
            X, y[:50]
        ).target_bandwidth_ == target_bandwidth(y[:50])

    def test_bandwidth_where_most_targets_are_equal(self):
        y = np.zeros(100)
        y[:20] = np.arange(20)
        # the quartiles of 0, 1, ..., 19
        assert target_bandwidth(y) == pytest.approx(9.5 / 1.349 / 4)

    @pytest.mark.long
    def test_predict_better_than_the_raw_features(self):
        X, y = load_diabetes(return_X_y=True)
        folds = RepeatedKFold(n_splits=3, n_repeats=3, random_state=0)
        raw = cross_val_score(
            make_pipeline(StandardScaler(), SoftNeighborsRegressor(bandwidth="auto")),
            X,
            y,
            cv=folds,
        )
        learned = make_pipeline(
            StandardScaler(), NCA(target="continuous"), SoftNeighborsRegressor()
        )
        assert cross_val_score(learned, X, y, cv=folds).mean() > raw.mean()

    @pytest.mark.parametrize(
        ("y", "message"),
        [(np.ones(6), "y does not vary"), (["a"] * 6, "y holds words"), ([0.0, np.nan] * 3, "NaN")],
    )
    def test_bad_targets(self, y, message):
        with pytest.raises(ValueError, match=message):
            NCA(target="continuous").fit(np.random.default_rng(0).normal(size=(6, 2)), y)


@pytest.mark.long
def test_votes_better_than_raw_features_in_two_dimensions_of_digits():
    """scikit-learn's gallery: 3-NN after PCA .52, LDA .66, its NCA .70."""
    X, y = load_digits(return_X_y=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    model = make_pipeline(StandardScaler(), NCA(2), KNeighborsClassifier(3)).fit(X[train], y[train])
    assert model.score(X[test], y[test]) > 0.68


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"objective": "f"},
            ValueError,
            "objective must be one of expected_accuracy, log_likelihood, got 'f'",
        ),
        ({"structure": "lower"}, ValueError, "structure must be one of full, diagonal"),
        ({"target": "numbers"}, ValueError, "target must be one of classes, continuous"),
        (
            {"init": "zeros"},
            ValueError,
            "init must be one of auto, identity, pca, lda, random, got 'zeros'",
        ),
        (
            {"init": "pca", "structure": "diagonal"},
            ValueError,
            "init must be one of auto, identity, random",
        ),
        ({"init": 1}, ValueError, "init must be one of auto, identity, .*, got 1"),
        ({"init": np.eye(3)}, ValueError, r"init must be of shape \(13, 13\), got \(3, 3\)"),
        ({"init": np.full((13, 13), np.nan)}, ValueError, "init contains NaN"),
        (
            {"init": "lda", "n_components": 5},
            ValueError,
            "init='lda' has 2 directions here, n_components is 5",
        ),
        ({"init": "lda", "target": "continuous"}, ValueError, "init='lda' needs classes"),
        (
            {"n_components": 2, "structure": "diagonal"},
            ValueError,
            "n_components must be None for a diagonal map",
        ),
        ({"n_candidates": 0}, ValueError, "n_candidates must be at least 1, got 0"),
        ({"n_candidates": "all"}, ValueError, "n_candidates must be one of auto, got 'all'"),
        ({"alpha": -1.0}, ValueError, "alpha must be a finite number of at least 0, got -1.0"),
        ({"alpha": "cv"}, TypeError, "alpha must be a number, got 'cv'"),
        ({"alpha": None}, TypeError, "alpha must be a number, got None"),
        ({"tol": np.nan}, ValueError, "tol must be a finite number"),
        ({"n_init": 0}, ValueError, "n_init must be at least 1, got 0"),
        ({"max_iter": 2.0}, TypeError, "max_iter must be an integer, got 2.0"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        NCA(**parameters).fit(*wine())
