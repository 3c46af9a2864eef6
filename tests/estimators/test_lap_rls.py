import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, scale

from nearkin import LapRLSClassifier, LapRLSRegressor
from nearkin.estimators import lap_rls as module

FORMS = pytest.mark.parametrize("kernel", [None, "rbf"])


def wine(n_labelled=25, seed=0):
    """Return wine, its labels, and these with -1 but for some rows anywhere."""
    X, y = load_wine(return_X_y=True)
    few = np.full(len(y), -1)
    rows = np.random.default_rng(seed).permutation(len(y))[:n_labelled]
    few[rows] = y[rows]
    return scale(X), y, few


def values(seed=0):
    """Return wine and its first column as target, NaN in two rows of three."""
    X = scale(load_wine().data)
    y = X[:, 0] + 5.0
    y[np.random.default_rng(seed).random(len(X)) < 2 / 3] = np.nan
    return X[:, 1:], y


def heat_graph(X, k=10):
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    near = distances <= np.sort(distances, axis=1)[:, [k - 1]]
    np.fill_diagonal(distances, 0.0)
    W = np.where(near, np.exp(-(distances**2) / np.mean(distances[near] ** 2)), 0.0)
    return np.maximum(W, W.T)


def objective(f, norm, y, W, gamma_A, gamma_I):
    """Return the objective of the docstring, pair by pair."""
    n, known = len(f), ~np.isnan(y)
    smooth = sum(W[i, j] * (f[i] - f[j]) ** 2 for i in range(n) for j in range(n)) / 2
    return np.mean((y[known] - f[known]) ** 2) + gamma_A * norm + gamma_I / n**2 * smooth


@FORMS
def test_no_other_function_has_a_smaller_objective(kernel):
    X, y = values()
    W = heat_graph(X)
    model = LapRLSRegressor(gamma_A=0.05, kernel=kernel).fit(X, y)
    assert model.gamma_I_ == pytest.approx(2 * len(X) ** 2 / W.sum())
    K = X if kernel is None else model.kernel_(X, X)
    a, b = (model.coef_ if kernel is None else model.dual_coef_.T).ravel(), model.intercept_[0]
    np.testing.assert_allclose(model.predict(X), K @ a + b, atol=1e-10)

    def value(a, b):
        norm = a @ a if kernel is None else a @ K @ a
        return objective(K @ a + b, norm, y, W, 0.05, model.gamma_I_)

    least, rng = value(a, b), np.random.default_rng(0)
    for direction in (*rng.normal(size=(3, len(a))), np.zeros(len(a))):
        step = 1e-3 * direction, 1e-3 * (not direction.any())
        above, below = value(a + step[0], b + step[1]), value(a - step[0], b - step[1])
        assert above > least
        assert below > least
        # the gradient is 0
        assert abs(above - below) <= 1e-6 * (above + below - 2 * least) + 1e-12 * least


def test_the_equations_of_the_paper():
    X, _, few = wine()
    n, known = len(few), few >= 0
    n_known, W = known.sum(), heat_graph(X)
    L, K = np.diag(W.sum(axis=1)) - W, rbf_kernel(X, gamma=0.1)
    J = np.diag(known.astype(float)) - np.outer(known, known) / n_known
    Y = np.where(few[:, None] == np.arange(3), 1.0, -1.0)
    share = 3.0 * n_known / n**2
    kernel = LapRLSClassifier(
        gamma_A=0.2, gamma_I=3.0, kernel=lambda A, B: rbf_kernel(A, B, gamma=0.1)
    ).fit(X, few)
    M = J @ K + 0.2 * n_known * np.eye(n) + share * L @ K
    np.testing.assert_allclose(M @ kernel.dual_coef_, J @ Y, atol=1e-10)
    linear = LapRLSClassifier(gamma_A=0.2, gamma_I=3.0, kernel=None).fit(X, few)
    M = X.T @ J @ X + 0.2 * n_known * np.eye(13) + share * X.T @ L @ X
    np.testing.assert_allclose(M @ linear.coef_.T, X.T @ J @ Y, atol=1e-9)
    for model in (linear, kernel):
        np.testing.assert_allclose((Y - model._values(X))[known].mean(axis=0), 0, atol=1e-10)


def test_the_linear_kernel_is_the_linear_form():
    X, y = values()
    linear = LapRLSRegressor(gamma_A=0.3, kernel=None).fit(X, y)
    kernel = LapRLSRegressor(gamma_A=0.3, kernel=linear_kernel).fit(X, y)
    np.testing.assert_allclose(kernel.predict(X), linear.predict(X), atol=1e-9)
    np.testing.assert_allclose(X.T @ kernel.dual_coef_, linear.coef_.T, atol=1e-9)


def test_without_the_graph_it_is_ridge_regression_on_the_labelled_rows():
    X, y = values()
    known = ~np.isnan(y)
    n_known = known.sum()
    ridge = Ridge(0.3 * n_known).fit(X[known], y[known])
    linear = LapRLSRegressor(gamma_A=0.3, gamma_I=0, kernel=None).fit(X, y)
    np.testing.assert_allclose(linear.coef_, ridge.coef_[None], atol=1e-10)
    np.testing.assert_allclose(linear.intercept_, [ridge.intercept_])
    rbf = LapRLSRegressor(gamma_A=0.3, gamma_I=0).fit(X, y)
    K = rbf.kernel_(X, X[known])
    # kernel ridge with an intercept that is not penalized
    centerer = KernelCenterer().fit(K[known])
    ridge = KernelRidge(alpha=0.3 * n_known, kernel="precomputed")
    ridge.fit(centerer.transform(K[known]), y[known] - y[known].mean())
    np.testing.assert_allclose(
        rbf.predict(X), ridge.predict(centerer.transform(K)) + y[known].mean(), atol=1e-10
    )
    np.testing.assert_array_equal(rbf.dual_coef_[~known], 0)


@FORMS
def test_a_heavy_graph_leaves_the_mean_of_the_labels(kernel):
    X, y = values()
    model = LapRLSRegressor(gamma_I=1e12, kernel=kernel).fit(X, y)
    np.testing.assert_allclose(model.predict(X), np.nanmean(y), atol=1e-4)


@FORMS
def test_invariances(kernel):
    X, _, few = wine()
    expected = LapRLSClassifier(kernel=kernel).fit(X, few)
    values = expected.decision_function(X)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = LapRLSClassifier(kernel=kernel).fit(X[order], few[order])
    np.testing.assert_allclose(shuffled.decision_function(X), values, atol=1e-8)
    Q = np.linalg.qr(np.random.default_rng(2).normal(size=(13, 13)))[0]
    moved = LapRLSClassifier(kernel=kernel).fit(X @ Q + 1000.0, few)
    np.testing.assert_allclose(moved.decision_function(X @ Q + 1000.0), values, atol=1e-6)
    wide = X @ np.linalg.qr(np.random.default_rng(3).normal(size=(200, 13)))[0].T
    np.testing.assert_allclose(
        LapRLSClassifier(kernel=kernel).fit(wide, few).decision_function(wide), values, atol=1e-7
    )
    sparse = LapRLSClassifier(kernel=kernel).fit(csr_array(X), few)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), values, atol=1e-8)
    single = LapRLSClassifier(kernel=kernel).fit(X.astype(np.float32), few)
    np.testing.assert_allclose(single.decision_function(X.astype(np.float32)), values, atol=1e-3)
    names = np.where(few < 0, None, np.array(["c", "b", "a"], dtype=object)[few])
    np.testing.assert_allclose(
        LapRLSClassifier(kernel=kernel).fit(X, names).decision_function(X)[:, ::-1],
        values,
        atol=1e-10,
    )


@FORMS
def test_classifier(kernel):
    X, y, few = wine()
    model = LapRLSClassifier(kernel=kernel).fit(X, few)
    known = few >= 0
    np.testing.assert_array_equal(model.transduction_[known], few[known])
    np.testing.assert_array_equal(model.transduction_[~known], model.predict(X)[~known])
    assert np.mean(model.transduction_ == y) > 0.9
    np.testing.assert_array_equal(model.decision_function(X).argmax(axis=1), model.predict(X))
    two = LapRLSClassifier(kernel=kernel).fit(X, np.where(few == 2, -1, few))
    np.testing.assert_array_equal(two.decision_function(X) > 0, two.predict(X) == 1)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_several_targets_and_own_graph():
    X, y = values()
    Y = np.column_stack([y, -2 * y])
    W = heat_graph(X)
    both, one = LapRLSRegressor().fit(X, Y, affinity=W), LapRLSRegressor().fit(X, y)
    np.testing.assert_allclose(both.predict(X), np.outer(one.predict(X), [1, -2]), atol=1e-8)


def test_nystroem_before_the_linear_form_approaches_the_kernel():
    X, y = values()
    W = heat_graph(X)
    exact = LapRLSRegressor(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.05)).fit(X, y, affinity=W)
    few = make_pipeline(Nystroem(gamma=0.05, n_components=len(X)), LapRLSRegressor(kernel=None))
    few.fit(X, y, laprlsregressor__affinity=W)
    np.testing.assert_allclose(few.predict(X), exact.predict(X), atol=1e-4)


def test_a_kernel_that_does_not_fit_is_refused(monkeypatch):
    X, _, few = wine()

    def refuse(n_bytes, what, remedy):
        raise MemoryError(f"{what}: {remedy}")

    monkeypatch.setattr(module, "require_memory", refuse)
    with pytest.raises(
        MemoryError, match=r"kernel of 178 rows: take kernel=None after sklearn.*Nystroem"
    ):
        LapRLSClassifier().fit(X, few)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gamma_A": 0}, "gamma_A must be larger than 0"),
        ({"gamma_I": -1}, "gamma_I must be a finite number of at least 0, got -1"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"kernel": "poly"}, "kernel must be None, 'rbf' or a function"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, _, few = wine()
    with pytest.raises(ValueError, match=message):
        LapRLSClassifier(**parameters).fit(X, few)


def test_a_graph_without_edges_leaves_nothing_to_choose_by():
    X, _, few = wine()
    with pytest.raises(ValueError, match=r"affinity has no edge.*gamma_I=0"):
        LapRLSClassifier().fit(X, few, affinity=np.zeros((178, 178)))
    with pytest.raises(ValueError, match="one class"):
        LapRLSClassifier().fit(X, np.where(few == 1, 1, -1))
