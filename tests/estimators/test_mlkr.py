import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import KNeighborsRegressor

from nearkin import MLKR, SoftNeighborsRegressor
from nearkin.comparison import all_methods
from nearkin.objectives.kernel_regression import (
    prediction_loss,
    squared_error,
)
from nearkin.testing import check_gradient

pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")


def relevant(n=150, p=6):
    """Numbers that depend on two of the features, one of them much smaller than the others."""
    X = np.random.default_rng(0).normal(size=(n, p))
    X[:, 1] /= 10
    return X, np.sin(2 * X[:, 0]) + 10 * X[:, 1]


def predictions(Z, Y):
    """Return the leave-one-out kernel regression of every row, with loops."""
    found = np.zeros_like(Y)
    for i in range(len(Z)):
        k = np.array(
            [0.0 if j == i else np.exp(-np.sum((Z[i] - Z[j]) ** 2)) for j in range(len(Z))]
        )
        found[i] = k @ Y / k.sum()
    return found


@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.parametrize("container", [np.asarray, csr_array])
class TestObjective:
    def test_definition(self, q, container):
        rng = np.random.default_rng(0)
        A, X, Y = rng.normal(size=(2, 4)), rng.normal(size=(30, 4)), rng.normal(size=(30, q))
        value, gradient = prediction_loss(A, container(X), Y, squared_error)
        assert value == pytest.approx(np.sum((Y - predictions(X @ A.T, Y)) ** 2))
        assert gradient.shape == A.shape

    def test_gradient(self, q, container):
        rng = np.random.default_rng(0)
        A, X, Y = (
            0.5 * rng.normal(size=(2, 4)),
            container(rng.normal(size=(30, 4))),
            rng.normal(size=(30, q)),
        )
        check_gradient(lambda A: prediction_loss(A, X, Y, squared_error), A)


def test_gradient_is_that_of_the_paper():
    """dL/dA = 4 A sum_ij (y_i - y^_i)(y_j - y^_i) p_ij x_ij x_ij', with loops."""
    rng = np.random.default_rng(1)
    A, X, y = rng.normal(size=(3, 3)), rng.normal(size=(20, 3)), rng.normal(size=20)
    Z = X @ A.T
    predicted, total = predictions(Z, y[:, None])[:, 0], np.zeros((3, 3))
    for i in range(20):
        k = np.exp(-np.sum((Z[i] - Z) ** 2, axis=1))
        k[i] = 0
        for j in range(20):
            difference = X[i] - X[j]
            total += (
                (y[i] - predicted[i])
                * (y[j] - predicted[i])
                * k[j]
                / k.sum()
                * np.outer(difference, difference)
            )
    np.testing.assert_allclose(prediction_loss(A, X, y[:, None], squared_error)[1], 4 * A @ total)


class TestFit:
    def test_what_it_sets(self):
        X, y = relevant()
        model = MLKR(2, alpha=0.3, max_iter=500).fit(X, y)
        assert model.objective_ == pytest.approx(
            np.mean((y - predictions(model.transform(X), y[:, None])[:, 0]) ** 2)
        )
        assert model.loss_curve_[-1] < model.loss_curve_[0] / 2
        assert len(model.loss_curve_) == model.n_iter_ + 1
        assert (np.diff(model.loss_curve_) <= 0).all()

    @pytest.mark.long
    def test_no_step_lowers_the_loss(self):
        """At the minimum the gradient of error and penalty is 0; the weight of the penalty follows
        from u.
        """
        X, y = relevant()
        model = MLKR(alpha=0.0, tol=1e-12, max_iter=2000).fit(X, y)
        A, Y = model.components_, (y - y.mean())[:, None]
        gradient = (
            prediction_loss(A, X - X.mean(axis=0), Y, squared_error)[1] @ A.T / len(y) / y.var()
        )
        np.testing.assert_allclose(gradient, 0, atol=1e-3)

    def test_features_that_say_nothing_are_ignored(self):
        X, y = relevant()
        M = MLKR().fit(X, y).get_mahalanobis_matrix()
        assert min(np.diag(M)[:2]) > max(np.diag(M)[2:])
        T, t = relevant(300)
        T, t = T[150:], t[150:]
        model = MLKR().fit(X, y)
        raw = KNeighborsRegressor().fit(X, y).score(T, t)
        learned = KNeighborsRegressor().fit(model.transform(X), y).score(model.transform(T), t)
        assert learned > raw + 0.2

    def test_kernel_regression_of_new_rows(self):
        """`SoftNeighborsRegressor` after it predicts by the weights that were learned."""
        X, y = relevant()
        model = MLKR(2).fit(X[:100], y[:100])
        Z, T = model.transform(X[:100]), model.transform(X[100:])
        k = np.exp(-np.sum((T[:, None] - Z) ** 2, axis=2))
        found = SoftNeighborsRegressor(n_neighbors=None).fit(Z, y[:100]).predict(T)
        np.testing.assert_allclose(found, k @ y[:100] / k.sum(axis=1), atol=1e-6)

    def test_units_of_the_target_and_of_the_features(self):
        X, y = relevant()
        M = MLKR(max_iter=5).fit(X, y).get_mahalanobis_matrix()
        shifted = MLKR(max_iter=5).fit(X, 1e3 * y - 7).get_mahalanobis_matrix()
        np.testing.assert_allclose(shifted, M, atol=1e-6 * M.max())
        scaled = MLKR(max_iter=5).fit(1e3 * X, y).get_mahalanobis_matrix()
        np.testing.assert_allclose(1e6 * scaled, M, atol=1e-6 * M.max())

    def test_several_targets(self):
        X, y = relevant()
        one, twice = (MLKR(max_iter=3).fit(X, Y) for Y in (y, np.column_stack([y, y])))
        np.testing.assert_allclose(twice.components_, one.components_, atol=1e-8)
        assert twice.objective_ == pytest.approx(2 * one.objective_)
        both = MLKR(2).fit(X, X[:, [2, 3]])
        weights = np.abs(both.components_).max(axis=0)
        assert weights[[2, 3]].min() > 3 * np.delete(weights, [2, 3]).max()

    def test_more_features_than_rows(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40, 80))
        model = MLKR().fit(X, X[:, 0])
        assert model.components_.shape == (39, 80)

    def test_single_precision_of_many_rows(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2100, 3))
        model = MLKR(max_iter=3).fit(X, X[:, 0] ** 2)
        assert model.components_.dtype == np.float64
        assert model.transform(X.astype(np.float32)).dtype == np.float32


def test_it_is_compared_for_numbers_only():
    names = {
        task: [method.name for method in all_methods(task)]
        for task in ("classification", "regression")
    }
    assert "MLKR" in names["regression"]
    assert "MLKR" not in names["classification"]


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"alpha": -1}, None, "alpha must be a finite number of at least 0"),
        ({"tol": -1}, None, "tol must be a finite number of at least 0"),
        ({"max_iter": 0}, None, "max_iter must be at least 1, got 0"),
        ({"n_components": 7}, None, "n_components must be between 1 and 6, got 7"),
        ({}, np.ones(150), r"y does not vary \(all 1.0\)"),
        ({}, np.ones((150, 2)), "y does not vary"),
        ({}, np.full(150, np.nan), "NaN"),
        ({}, np.arange(3.0), "inconsistent numbers of samples"),
        ({}, np.array(["a", "b", "c"] * 50), "y holds words"),
    ],
)
def test_bad_input(parameters, y, message):
    X, numbers = relevant()
    with pytest.raises(ValueError, match=message):
        MLKR(**parameters).fit(X, numbers if y is None else y)
