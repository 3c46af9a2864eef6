"""NCA by stochastic gradient: minibatches, going on, rows that stay where they are."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from nearkin import NCA, descent
from nearkin.estimators import nca
from nearkin.estimators.descent_embedding import RowsInPlace
from nearkin.neighbors import EXACT
from nearkin.objectives import candidates
from nearkin.objectives.candidates import Minibatches, NeighborLoss
from nearkin.objectives.nca import StochasticNeighbors, nca_objective
from nearkin.objectives.stochastic import SameClass


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def clusters(n=400, p=10):
    return make_classification(
        n,
        p,
        n_informative=min(p, 8),
        n_redundant=0,
        n_classes=4,
        n_clusters_per_class=2,
        class_sep=1.5,
        random_state=0,
    )


def sgd(*arguments, **parameters):
    return NCA(*arguments, **{"solver": "sgd", "random_state": 0, **parameters})


def votes(model, X, y, X_test, y_test):
    return KNeighborsClassifier(3).fit(model.transform(X), y).score(model.transform(X_test), y_test)


every_structure = pytest.mark.parametrize("structure", ["full", "diagonal"])


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(candidates, "STEPS", 200)


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("quick")
class TestTheFit:
    @pytest.mark.long
    @pytest.mark.parametrize(
        ("objective", "structure"),
        [
            pytest.param("expected_accuracy", "diagonal", marks=pytest.mark.slow),
            ("log_likelihood", "full"),
        ],
    )
    def test_reaches_what_lbfgs_does(self, objective, structure):
        X, y = wine()
        n_components = 2 if structure == "full" else None
        exact = NCA(n_components, objective=objective, structure=structure).fit(X, y)
        model = sgd(n_components, objective=objective, structure=structure).fit(X, y)
        start, end = exact.loss_curve_[[0, -1]]
        assert model.loss_curve_[-1] - end < 0.02 * (start - end)

    @pytest.mark.long
    def test_reaches_it_by_lists_and_few_rows_a_step(self):
        X, y = clusters()
        few, exact = sgd(5, batch_size=50).fit(X, y), NCA(5, n_candidates=None).fit(X, y)

        def value(model):
            return nca_objective(
                "expected_accuracy", model.components_, X - X.mean(axis=0), SameClass(y)
            )[0] / len(X)

        assert value(few) > value(exact) - 0.01
        assert few.objective_ == pytest.approx(value(few), abs=0.005)

    @pytest.mark.long
    def test_votes_as_well_as_lbfgs(self):
        X, y = load_digits(return_X_y=True)
        X = scale(X)
        train, test = slice(0, None, 2), slice(1, None, 2)
        scores = [
            votes(model.fit(X[train], y[train]), X[train], y[train], X[test], y[test])
            for model in (sgd(10), NCA(10))
        ]
        assert scores[0] > scores[1] - 0.015

    @pytest.mark.long
    def test_every_row_a_candidate(self):
        X, y = wine()
        assert sgd(2, n_candidates=None).fit(X, y).objective_ == pytest.approx(
            NCA(2).fit(X, y).objective_, abs=2e-3
        )

    @pytest.mark.long
    def test_continuous_targets(self):
        X, y = load_diabetes(return_X_y=True)
        exact, model = NCA(3, target="continuous").fit(X, y), sgd(3, target="continuous").fit(X, y)
        start, end = exact.loss_curve_[[0, -1]]
        assert model.loss_curve_[-1] - end < 0.1 * (start - end)  # the optima are many

    @pytest.mark.slow
    def test_equal_seeds_and_rows_make_equal_maps(self):
        X, y = clusters(150)
        one, same, other = (
            sgd(3, batch_size=50, max_iter=2, tol=1.0, random_state=seed).fit(X, y)
            for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(one.components_, same.components_)
        assert np.abs(one.components_ - other.components_).max() > 1e-3

    def test_turns_with_the_rows(self):
        X, y = clusters(200, 8)
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
        M, turned = (
            sgd(3, max_iter=4, tol=1.0).fit(rows, y).get_mahalanobis_matrix() for rows in (X, X @ Q)
        )
        np.testing.assert_allclose(Q @ turned @ Q.T, M, atol=1e-6 * np.abs(M).max())

    @pytest.mark.parametrize("unit", [1e-6, 1e6])
    def test_units_do_not_matter(self, unit):
        X, y = wine()
        plain, other = (sgd(2, max_iter=5, tol=1.0).fit(rows, y) for rows in (X, X * unit))
        np.testing.assert_allclose(
            other.components_ * unit, plain.components_, rtol=1e-4, atol=1e-6
        )

    def test_sparse_rows_and_more_features_than_rows(self):
        rng = np.random.default_rng(0)
        y = np.arange(60) % 3
        for p in (8, 70):
            X = (rng.normal(size=(60, p)) + y[:, None]) * (rng.random((60, p)) < 0.5)
            dense, sparse = (sgd(2, max_iter=5, tol=1.0).fit(rows, y) for rows in (X, csr_array(X)))
            np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-6)
        assert sgd(max_iter=2, tol=1.0).fit(X, y).components_.shape == (59, 70)

    def test_a_class_of_one_row(self):
        X, y = wine()
        y = y.copy()
        y[0] = 7
        for objective in ("expected_accuracy", "log_likelihood"):
            assert np.isfinite(
                sgd(2, objective=objective, max_iter=2, tol=1.0).fit(X, y).components_
            ).all()

    @pytest.mark.slow
    def test_restarts_keep_the_lowest(self):
        X, y = wine()
        alone = sgd(2, init="random", max_iter=10, tol=1.0).fit(X, y)
        best = sgd(2, init="random", n_init=2, max_iter=10, tol=1.0).fit(X, y)
        assert best.objective_ >= alone.objective_ - 0.01

    def test_too_few_epochs_are_reported(self):
        X, y = clusters()
        with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations ended the descent"):
            model = sgd(3, max_iter=1, tol=0.0).fit(X * 1.0, y)
        assert model.n_iter_ == 1
        assert len(model.loss_curve_) == 2

    def test_an_interrupt_keeps_the_map(self, monkeypatch):
        X, y = wine()
        calls, estimate = [], StochasticNeighbors.estimate

        def interrupted(*arguments):
            calls.append(arguments)
            if len(calls) == 30:
                raise KeyboardInterrupt
            return estimate(*arguments)

        monkeypatch.setattr(StochasticNeighbors, "estimate", interrupted)
        model = sgd(init="identity")
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.n_iter_ >= 1
        assert model.objective_ > 0.7


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("quick")
class TestManyRows:
    """As if 200 were many: rows in place, a start on some of them, an objective by some of them."""

    @pytest.fixture
    def few(self, monkeypatch):
        monkeypatch.setattr(nca, "INIT_ROWS", 200)
        monkeypatch.setattr(candidates, "EVALUATION_ROWS", 200)

    @pytest.mark.parametrize(("init", "kind"), [("auto", np.asarray), ("pca", csr_array)])
    @pytest.mark.long
    def test_come_near_the_fit_on_copies(self, few, kind, init):
        X, y = clusters(600 if kind is csr_array else 300)
        model = sgd(3, init=init).fit(kind(X), y)
        exact = NCA(3, tol=1e-4).fit(X, y)
        value = nca_objective(
            "expected_accuracy", model.components_, X - X.mean(axis=0), SameClass(y)
        )[0] / len(X)
        assert value > exact.objective_ - 0.03
        assert 0 < model.objective_error_ < 0.05
        assert abs(model.objective_ - value) < 4 * model.objective_error_ + 0.005

    @pytest.mark.long
    def test_diagonal(self, few):
        X, y = clusters()
        exact = NCA(structure="diagonal").fit(X, y)
        assert sgd(structure="diagonal").fit(X, y).objective_ > exact.objective_ - 0.05

    def test_a_given_start_is_taken_as_it_is(self, few):
        X, y = clusters()
        A = np.random.default_rng(0).normal(size=(2, 10)) / 5
        loss, _ = sgd(2)._losses(X, SameClass(y), 2, np.random.RandomState(0))
        rows = loss.rows
        assert isinstance(rows, RowsInPlace)
        np.testing.assert_allclose(
            rows.embedding(rows.coordinates(A)), (X - X.mean(axis=0)) @ A.T, atol=1e-4
        )

    @pytest.mark.long
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_rows_in_a_file_stay_there(self, few, dtype, tmp_path):
        tracemalloc = pytest.importorskip("tracemalloc")
        X, y = make_classification(8000, 1000, n_informative=8, random_state=0)
        stored = np.memmap(tmp_path / "rows", dtype=dtype, mode="w+", shape=X.shape)
        stored[:] = X
        stored.flush()
        stored = np.memmap(tmp_path / "rows", dtype=dtype, mode="r", shape=X.shape)
        bytes_of_rows = stored.nbytes
        del X
        tracemalloc.start()
        model = sgd(4, max_iter=1, tol=1.0, batch_size=40).fit(stored, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 0.9 * bytes_of_rows
        assert model.components_.dtype == dtype

    def test_the_rows_of_the_caller_are_left_alone(self, few):
        X, y = clusters(250)
        before = X.copy()
        sgd(2, max_iter=1, tol=1.0).fit(X, y)
        np.testing.assert_array_equal(X, before)


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("quick")
class TestGoingOn:
    @staticmethod
    def stream():
        X, y = load_digits(return_X_y=True)
        X = scale(X)
        return (X[::2], y[::2]), (X[1::2], y[1::2])

    @pytest.mark.slow
    def test_new_rows_improve_the_map(self):
        (X, y), test = self.stream()
        model, scores = sgd(10), []
        for start in range(0, 600, 150):
            part = slice(start, start + 150)
            assert model.partial_fit(X[part], y[part]) is model
            scores.append(votes(model, X, y, *test))
        assert scores[-1] > scores[0]
        assert scores[-1] > votes(sgd(10, max_iter=1, tol=1.0).fit(X[:150], y[:150]), X, y, *test)
        assert model.n_iter_ == 4
        assert len(model.loss_curve_) == 5

    @pytest.mark.long
    def test_many_epochs_come_near_the_fit(self):
        X, y = wine()
        model = sgd(2)
        for _ in range(40):
            model.partial_fit(X, y)
        assert model.objective_ > sgd(2).fit(X, y).objective_ - 0.03

    @pytest.mark.slow_after(2)
    @every_structure
    @pytest.mark.parametrize("target", ["classes", "continuous"])
    def test_of_every_kind(self, structure, target):
        X, y = load_diabetes(return_X_y=True)
        y = y if target == "continuous" else y > np.median(y)
        model = sgd(structure=structure, target=target)
        values = [model.partial_fit(X[start::4], y[start::4]).objective_ for start in range(4)]
        assert np.isfinite(values).all()
        assert model.components_.shape == (10, 10)

    def test_labels_matter_within_a_call_only(self):
        (X, y), _ = self.stream()
        models = sgd(3), sgd(3)
        for start in (0, 150):
            part = slice(start, start + 150)
            models[0].partial_fit(X[part], y[part])
            models[1].partial_fit(X[part], np.array([f"{start}: {label}" for label in y[part]]))
        np.testing.assert_array_equal(models[0].components_, models[1].components_)

    @pytest.mark.long
    def test_after_a_fit_the_map_stays_near(self):
        X, y = (part[:150] for part in self.stream()[0])
        model = sgd(5).fit(X, y)
        before = model.components_.copy()
        model.partial_fit(X, y)
        moved = np.linalg.norm(model.components_ - before)
        assert 0 < moved < 0.2 * np.linalg.norm(before)
        # 192 features of 40 rows: the fit is in their span
        wide = np.hstack([X[:40], X[40:80], X[80:120]])
        model = sgd(5, max_iter=20).fit(wide, y[:40])
        before = model.get_mahalanobis_matrix()
        model.partial_fit(wide, y[:40])
        assert np.linalg.norm(model.get_mahalanobis_matrix() - before) < 0.5 * np.linalg.norm(
            before
        )

    def test_after_a_fit_by_lbfgs(self):
        X, y = wine()
        model = NCA(2, random_state=0).fit(X, y)
        reached = model.objective_
        assert model.set_params(solver="sgd").partial_fit(X, y).objective_ > reached - 0.1

    def test_survives_a_pickle(self):
        X, y = wine()
        model = sgd(2).partial_fit(X, y)
        restored = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(
            restored.partial_fit(X, y).components_, model.partial_fit(X, y).components_
        )

    def test_needs_the_solver(self):
        assert not hasattr(NCA(), "partial_fit")
        with pytest.raises(AttributeError, match="partial_fit"):
            NCA().partial_fit(*wine())

    def test_other_features_are_refused(self):
        X, y = wine()
        model = sgd(2).partial_fit(X, y)
        with pytest.raises(ValueError, match="expecting 13 features"):
            model.partial_fit(X[:, :5], y)

    def test_fewer_rows_than_components_cannot_begin(self):
        X, y = wine()
        with pytest.raises(ValueError, match="n_components must be between 1 and 6, got 8"):
            sgd(8).partial_fit(X[::30], y[::30])

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("solver", ["lbfgs", "sgd"])
    @every_structure
    def test_warm_start(self, solver, structure):
        X, y = wine()
        model = NCA(
            structure=structure, solver=solver, batch_size=200, random_state=0, warm_start=True
        )
        model.set_params(max_iter=8 if solver == "sgd" else "auto").fit(X, y)
        first, reached = model.loss_curve_[0], model.loss_curve_[-1]
        model.fit(X, y)
        assert abs(model.loss_curve_[0] - reached) < 0.1 * (first - reached)
        cold = clone(model).set_params(warm_start=False).fit(X, y)
        assert cold.loss_curve_[0] == first

    def test_warm_start_in_the_span_of_few_rows(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(30, 100)), np.arange(30) % 2
        model = NCA(warm_start=True).fit(X, y)
        reached = model.loss_curve_[-1]
        assert model.fit(X, y).loss_curve_[0] == pytest.approx(reached, abs=1e-6)

    def test_warm_start_from_another_shape_is_refused(self):
        X, y = wine()
        model = NCA(2, warm_start=True).fit(X, y)
        with pytest.raises(
            ValueError,
            match=r"components_, to go on from, must be of shape \(3, 13\), got \(2, 13\)",
        ):
            model.set_params(n_components=3).fit(X, y)
        with pytest.raises(
            ValueError,
            match=r"components_, to go on from, must be of shape \(2, 5\), got \(2, 13\)",
        ):
            model.set_params(n_components=2).fit(X[:, :5], y)

    def test_nothing_to_transform_by_before(self):
        with pytest.raises(NotFittedError):
            sgd().transform(wine()[0])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"solver": "adam"}, ValueError, "solver must be one of lbfgs, sgd, got 'adam'"),
        ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
        ({"batch_size": "all"}, ValueError, "batch_size must be one of auto, got 'all'"),
        ({"batch_size": None}, TypeError, "batch_size must be an integer, got None"),
        ({"max_iter": "many"}, ValueError, "max_iter must be one of auto, got 'many'"),
        ({"max_iter": None}, TypeError, "max_iter must be an integer, got None"),
        ({"warm_start": "yes"}, TypeError, "warm_start must be True or False, got 'yes'"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        NCA(**parameters).fit(*wine())


def test_defaults_are_what_the_documentation_says():
    assert (candidates.ALL_PAIRS_ROWS, candidates.N_NEAR, candidates.N_FAR) == (8000, 50, 500)
    assert (candidates.N_NEAR_OF_ANCHOR, candidates.STEPS, descent.STEP) == (15, 500, 0.1)
    for n, n_batches in ((100, 1), (4000, 20), (60_000, 118)):
        rows = RowsInPlace.of(np.arange(n)[:, None] % 1000.0, unit=1.0)
        found = Minibatches(NeighborLoss(rows, EXACT, None), "auto", "auto", None)
        assert found.n_batches == n_batches
        assert 500 <= n_batches * found.n_epochs < 1000


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("structure", ["full", "diagonal"])
def test_a_feature_that_is_constant_in_the_rows_of_the_init_is_learned(structure, monkeypatch):
    """The init is found on a sixth of the rows, which mostly miss the two that differ."""
    monkeypatch.setattr(nca, "INIT_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(int)
    X[:, 2] = 0
    X[:2, 2] = 1
    for seed in range(4):
        model = NCA(solver="sgd", structure=structure, max_iter=1, random_state=seed)
        assert np.abs(model.fit(X, y).components_[:, 2]).max() > 0
