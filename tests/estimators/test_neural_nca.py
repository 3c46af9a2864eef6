"""NeuralNCA: the objectives against loops and the linear method, the fit, and what it keeps."""

import copy
import doctest
import pickle
import sys
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale
from sklearn.utils.estimator_checks import parametrize_with_checks

from nearkin import NCA, NeuralNCA, PairNCA
from nearkin._blocks import row_blocks
from nearkin.estimators import neural_nca
from nearkin.estimators.neural_nca import hold_out
from nearkin.objectives.nca import nca_objective, pair_cost
from nearkin.objectives.network import (
    OBJECTIVES,
    SparsePairWeights,
    neighbor_terms,
    objective_value,
)
from nearkin.objectives.stochastic import SameClass, TargetKernel, target_bandwidth
from nearkin.testing import check_gradient, embedding_checks

pytestmark = [
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.filterwarnings("ignore:No epoch has raised:sklearn.exceptions.ConvergenceWarning"),
]
torch = None  # `_loaded` sets it: loading takes longer than the tests, and all workers collect them
FEW = NeuralNCA(max_iter=3, random_state=0)


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    """Load torch, and what its first optimizer loads."""
    global torch
    import torch

    torch.optim.Adam([torch.zeros(1)])


@parametrize_with_checks([FEW])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_example():
    assert doctest.testmod(neural_nca) == (0, 5)


NOT_FOR_NETWORKS = (
    "inverse_transform",
    "float32",
    "distances",
    "row_order",
    "rotation",
    "redundant_features",
)


@pytest.mark.parametrize(
    ("name", "check"), [one for one in embedding_checks(FEW) if one[0] not in NOT_FOR_NETWORKS]
)
def test_embedding(name, check):
    check(FEW)


def some_rows(n=12, p=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), np.arange(n) % 3


def value_of(name, Z, log_w, rows=None):
    """Return the objective and its gradient with respect to the embedded rows."""
    Z = torch.tensor(Z, requires_grad=True)
    rows = torch.arange(len(Z)) if rows is None else rows
    value = objective_value(name, neighbor_terms(name, Z, rows, torch.as_tensor(log_w)))
    value.backward()
    return value.item(), Z.grad.numpy()


def by_loops(name, Z, W):
    n = len(Z)
    near = np.array([[np.exp(-np.sum((a - b) ** 2)) for b in Z] for a in Z])
    np.fill_diagonal(near, 0)
    if name == "pair_likelihood":
        pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
        total = sum(W[pair] for pair in pairs)
        return sum(W[pair] * np.log(near[pair] / near.sum()) for pair in pairs if W[pair]) / total
    q = [sum(W[i, j] * near[i, j] for j in range(n) if j != i) / near[i].sum() for i in range(n)]
    return (
        np.mean(q)
        if name == "expected_accuracy"
        else np.mean([np.log(one) for one in q if one] + [0] * (q.count(0)))
    )


@pytest.mark.parametrize("name", OBJECTIVES)
def test_objectives_are_their_definitions_for_any_weights(name):
    Z = some_rows(p=2)[0]
    W = np.random.default_rng(1).random((12, 12)).round(1)
    W[3] = 0  # nothing is right for this row
    with np.errstate(divide="ignore"):
        log_w = np.log(W)
    assert value_of(name, Z, log_w)[0] == pytest.approx(by_loops(name, Z, W))
    check_gradient(lambda Z: value_of(name, Z, log_w), Z, tol=1e-5)


@pytest.mark.parametrize("name", ["expected_accuracy", "log_likelihood"])
@pytest.mark.parametrize("weights", ["classes", "targets"])
def test_a_linear_network_has_value_and_gradient_of_linear_nca(name, weights):
    X, y = some_rows(40)
    pair_weights = SameClass(y) if weights == "classes" else TargetKernel(X[:, 0], 0.5)
    linear = torch.nn.Linear(4, 2, bias=False).double()
    log_w = pair_weights.log_weights(np.arange(40)[:, None], np.arange(40)[None], np.float64)
    Z = linear(torch.tensor(X))
    value = objective_value(name, neighbor_terms(name, Z, torch.arange(40), torch.tensor(log_w)))
    value.backward()
    expected, gradient = nca_objective(name, linear.weight.detach().numpy(), X, pair_weights)
    assert 40 * value.item() == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(
        40 * linear.weight.grad.numpy(), gradient, atol=1e-10 * np.abs(gradient).max()
    )


def test_a_linear_network_has_value_and_gradient_of_linear_pair_nca():
    X, _ = some_rows(40)
    pairs, weights = np.random.default_rng(0).permutation(40).reshape(20, 2), np.linspace(1, 2, 20)
    pair_weights = SparsePairWeights(pairs, weights, 40)
    linear = torch.nn.Linear(4, 2, bias=False).double()
    log_w = pair_weights.log_weights(np.arange(40)[:, None], np.arange(40)[None], np.float64)
    terms = neighbor_terms(
        "pair_likelihood", linear(torch.tensor(X)), torch.arange(40), torch.tensor(log_w)
    )
    value = objective_value("pair_likelihood", terms)
    value.backward()
    cost, gradient = pair_cost(linear.weight.detach().numpy(), X, pairs, weights / weights.sum())
    assert value.item() == pytest.approx(-cost, rel=1e-10)
    np.testing.assert_allclose(
        -linear.weight.grad.numpy(), gradient, atol=1e-10 * np.abs(gradient).max()
    )


def test_some_rows_are_a_part_of_all():
    Z = some_rows()[0]
    log_w = np.zeros((12, 12))
    log_w[0] = -np.inf
    terms = neighbor_terms(
        "expected_accuracy", torch.tensor(Z), torch.arange(12), torch.tensor(log_w)
    )
    rows = torch.tensor([5, 0, 7])
    some = neighbor_terms("expected_accuracy", torch.tensor(Z), rows, torch.tensor(log_w[rows]))
    torch.testing.assert_close(some, terms[:, rows])
    for name in OBJECTIVES:  # rows that lie together, or far apart, or are alone
        for rows in (0 * Z, 1e4 * Z, Z[:1]):
            assert np.isfinite(
                value_of(name, rows, np.full((len(rows), len(rows)), -np.inf))[1]
            ).all()


def linear_from_pca(X, m):
    linear = torch.nn.Linear(X.shape[1], m, bias=False)
    with torch.no_grad():
        linear.weight[:] = torch.tensor(
            np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:m]
        )
    return linear


@pytest.mark.long
@pytest.mark.parametrize("name", ["expected_accuracy", "log_likelihood"])
def test_in_full_batches_a_linear_network_reaches_linear_nca(name):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    expected = NCA(2, objective=name, init="pca", alpha=0, max_iter=500).fit(X, y)
    everything = {
        "batch_size": len(X),
        "validation_fraction": 0,
        "max_iter": 300,
        "learning_rate": 0.05,
    }
    model = NeuralNCA(module=linear_from_pca(X, 2), objective=name, **everything).fit(X, y)
    assert model.objective_ == pytest.approx(expected.objective_, abs=0.02)
    A = model.state_["weight"]
    assert nca_objective(name, A.astype(float), X, SameClass(y))[0] / len(X) == pytest.approx(
        model.objective_, abs=1e-4
    )


def rings(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y, angle = np.arange(n) % 3, rng.uniform(0, 2 * np.pi, n)
    X = (y + 1) * np.array([np.cos(angle), np.sin(angle)]) + 0.1 * rng.normal(size=(2, n))
    return X.T, y


def best_of_seeds(model, X, y):
    """Return the best of four fits: rounding, which differs between processors, decides where a
    descent ends.
    """
    fits = [clone(model).set_params(random_state=seed).fit(X, y) for seed in range(4)]
    return max(fits, key=lambda fitted: fitted.objective_)


@pytest.mark.long
def test_a_network_finds_one_dimension_that_no_matrix_has():
    X, y = rings()
    assert NCA(1, objective="log_likelihood").fit(X, y).objective_ < -0.5
    model = best_of_seeds(NeuralNCA(1, objective="log_likelihood", learning_rate=0.03), X, y)
    assert model.objective_ > -0.3
    X_test, y_test = rings(seed=1)
    assert (
        KNeighborsClassifier(3).fit(model.transform(X), y).score(model.transform(X_test), y_test)
        > 0.95
    )


def test_a_module_is_copied_and_a_function_makes_one():
    X, y = rings()
    module = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    before = module[0].weight.clone()
    model = NeuralNCA(module=module, max_iter=5, random_state=0).fit(X, y)
    assert torch.equal(module[0].weight, before)
    assert model.n_components_ == 3
    sizes = []

    def small(n_features):
        sizes.append(n_features)
        return torch.nn.Linear(n_features, 1)

    assert NeuralNCA(module=small, max_iter=2).fit(X, y).transform(X).shape == (300, 1)
    assert set(sizes) == {2}
    assert NeuralNCA(module=torch.nn.Identity, max_iter=2).module is torch.nn.Identity


def test_equal_seeds_give_equal_networks_and_leave_that_of_torch_alone():
    X, y = rings()
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    one, same, other = (
        NeuralNCA(max_iter=3, random_state=seed).fit(X, y).transform(X) for seed in (0, 0, 1)
    )
    assert torch.equal(torch.rand(2), expected)
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_the_state_is_arrays_that_a_module_takes():
    X, y = rings()
    module = torch.nn.Sequential(
        torch.nn.Linear(2, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    )
    model = NeuralNCA(module=module, max_iter=20, random_state=0).fit(X, y)
    assert all(type(array) is np.ndarray for array in model.state_.values())
    module = copy.deepcopy(module)
    module.load_state_dict({name: torch.as_tensor(array) for name, array in model.state_.items()})
    with torch.no_grad():
        Z = module.eval()(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_array_equal(model.transform(X), Z)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), Z)
    np.testing.assert_array_equal(clone(model).fit(X, y).transform(X), Z)


def test_rows_are_transformed_in_blocks(monkeypatch):
    X, y = rings()
    model = NeuralNCA(max_iter=2, random_state=0).fit(X, y)
    Z = model.transform(X)
    assert Z.dtype == np.float32
    monkeypatch.setattr(neural_nca, "row_blocks", partial(row_blocks, entries=100))
    np.testing.assert_allclose(model.transform(X), Z, rtol=1e-5, atol=1e-5)


def test_units_and_origin_of_the_features_do_not_matter():
    X, y = rings()
    Z = NeuralNCA(max_iter=5, random_state=0).fit(X, y).transform(X)
    np.testing.assert_allclose(
        NeuralNCA(max_iter=5, random_state=0).fit(1e6 + X, y).transform(1e6 + X), Z, atol=1e-3
    )
    np.testing.assert_allclose(
        NeuralNCA(max_iter=5, random_state=0).fit(50 * X, y).transform(50 * X), Z, atol=1e-3
    )


def test_the_best_state_for_held_out_rows_is_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 20)), np.arange(80) % 2  # nothing to learn
    model = NeuralNCA(random_state=0).fit(X, y)
    assert len(model.validation_curve_) == model.n_iter_ + 1 == len(model.loss_curve_) + 1
    assert model.best_iter_ == model.validation_curve_.argmax()
    assert model.n_iter_ - model.best_iter_ == 101  # a fifth of 500 epochs of one step, exceeded
    last = NeuralNCA(random_state=0, max_iter=30, validation_fraction=0).fit(X, y)
    assert last.best_iter_ == last.n_iter_ == 30
    assert np.isnan(last.validation_curve_).all()


def test_held_out_rows_take_no_part():
    pairs = np.random.default_rng(0).integers(0, 50, (60, 2)) + np.array([0, 50])
    for units in (np.arange(40)[:, None], pairs):
        held, kept = hold_out(units, 0.2, np.random.default_rng(0))
        assert len(held) >= 0.2 * len(units)
        assert len(kept)
        assert not np.isin(kept, held).any()


def folded(n=200, seed=0):
    """Return rows of which the product of two features is what similar rows share, and this."""
    rng = np.random.default_rng(seed)
    shared, sign = rng.uniform(-1, 1, n), rng.choice([-1, 1], n)
    return np.column_stack([sign * shared, sign, rng.normal(size=(n, 2))]), shared


def test_pairs_find_what_they_share():
    X, shared = folded()
    order = np.argsort(shared)
    pairs = np.column_stack([order[:-1], order[1:]])
    model = NeuralNCA(
        1, learning_rate=0.05, max_iter=100, validation_fraction=0, random_state=0
    ).fit(X, pairs=pairs)
    X_test, expected = folded(seed=1)
    assert abs(np.corrcoef(model.transform(X_test)[:, 0], expected)[0, 1]) > 0.9
    assert (
        abs(np.corrcoef(PairNCA(1).fit(X, pairs=pairs).transform(X_test)[:, 0], expected)[0, 1])
        < 0.5
    )


def test_pairs_have_no_order_and_a_weight_of_zero_is_none():
    X, _ = folded(60)
    pairs, same = (
        np.random.default_rng(0).permutation(60).reshape(30, 2),
        NeuralNCA(1, max_iter=5, random_state=0),
    )
    weights = np.arange(30) % 3
    Z = clone(same).fit(X, pairs=pairs, weights=weights).transform(X)
    np.testing.assert_allclose(
        clone(same).fit(X, pairs=pairs[:, ::-1], weights=weights).transform(X), Z
    )
    kept = weights > 0
    np.testing.assert_array_equal(
        clone(same).fit(X, pairs=pairs[kept], weights=weights[kept]).transform(X), Z
    )
    np.testing.assert_allclose(
        clone(same).fit(X, pairs=pairs, weights=7 * weights).transform(X), Z, atol=1e-4
    )


def test_pair_likelihood_is_minus_the_objective_of_pair_nca():
    X, _ = folded(60)
    pairs = np.random.default_rng(0).permutation(60).reshape(30, 2)
    model = NeuralNCA(1, max_iter=5).fit(X, pairs=pairs)
    Z = model.transform(X).astype(float)
    assert -model.objective_ == pytest.approx(
        pair_cost(np.eye(1), Z, pairs, np.full(30, 1 / 30))[0], rel=1e-4
    )


@pytest.mark.long
def test_continuous_targets():
    X, y = folded()
    model = best_of_seeds(
        NeuralNCA(1, target="continuous", learning_rate=0.05, validation_fraction=0), X, y
    )
    Z = model.transform(X).astype(float)
    expected = nca_objective(
        "expected_accuracy", np.eye(1), Z, TargetKernel(y, target_bandwidth(y))
    )[0] / len(X)
    assert model.objective_ == pytest.approx(expected, rel=1e-4)
    assert expected > NCA(1, target="continuous").fit(X, y).objective_


class Stops:
    """A callback by scikit-learn's protocol."""

    def __init__(self, after=None, error=None):
        self.after, self.error, self.fitted = after, error, []

    def setup(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None): ...

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.fitted.append(fitted_estimator)
        if self.error is not None and len(self.fitted) == self.after:
            raise self.error
        return len(self.fitted) == self.after

    def teardown(self, estimator, context): ...


class TestCallbacks:
    @pytest.fixture(autouse=True)
    def _callbacks(self):
        pytest.importorskip("sklearn.callback")

    def test_every_epoch_is_reported_with_the_best_network_so_far(self):
        X, y = rings()
        silent = NeuralNCA(max_iter=4, random_state=0).fit(X, y)
        callback = Stops()
        model = clone(silent).set_callbacks(callback).fit(X, y)
        np.testing.assert_array_equal(model.transform(X), silent.transform(X))
        *_, last, whole = callback.fitted
        assert len(callback.fitted) == model.n_iter_ + 1
        np.testing.assert_array_equal(last.transform(X), model.transform(X))
        np.testing.assert_array_equal(whole.transform(X), model.transform(X))

    def test_a_callback_stops_the_descent(self):
        assert (
            NeuralNCA(max_iter=9, random_state=0)
            .set_callbacks(Stops(after=2))
            .fit(*rings())
            .n_iter_
            == 2
        )

    def test_an_interrupt_keeps_what_has_been_found(self):
        X, y = rings()
        model = NeuralNCA(max_iter=9, random_state=0).set_callbacks(
            Stops(after=3, error=KeyboardInterrupt())
        )
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.n_iter_ == 3
        assert np.isfinite(model.transform(X)).all()


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "error", "message"),
        [
            (
                {"objective": "accuracy"},
                ValueError,
                "objective must be one of auto, expected_accuracy",
            ),
            ({"target": "numbers"}, ValueError, "target must be one of classes, continuous"),
            ({"batch_size": 1}, ValueError, "batch_size must be at least 2"),
            ({"learning_rate": 0}, ValueError, "learning_rate must be larger than 0"),
            ({"n_components": 3}, ValueError, "n_components must be between 1 and 2"),
            ({"max_iter": "all"}, TypeError, "max_iter must be an integer"),
            ({"validation_fraction": 0.6}, ValueError, "validation_fraction must be at most 0.5"),
            ({"module": 3}, TypeError, "module must be a torch.nn.Module, or a function"),
            (
                {"module": lambda p: None},
                TypeError,
                "module must be a torch.nn.Module, or a function .*; got None",
            ),
            (
                {"module": lambda p: torch.nn.Flatten(0)},
                ValueError,
                r"module must map rows of shape \(b, p\) to \(b, m\)",
            ),
            (
                {"n_components": 2, "module": lambda p: torch.nn.Linear(p, 2)},
                ValueError,
                "n_components must be None with a module",
            ),
        ],
    )
    def test_bad_parameters_are_named(self, parameters, error, message):
        with pytest.raises(error, match=message):
            NeuralNCA(**parameters).fit(*rings(30))

    def test_bad_rows_and_pairs_are_named(self):
        X, y = rings(30)
        model = NeuralNCA(max_iter=1)
        with pytest.raises(TypeError, match=r"X is sparse.*X.toarray\(\)"):
            model.fit(csr_array(X), y)
        with pytest.raises(TypeError, match=r"torch Tensor.*numpy\(force=True\)"):
            model.fit(torch.tensor(X), y)
        with pytest.raises(ValueError, match="y and pairs exclude each other"):
            model.fit(X, y, pairs=[[0, 1]])
        with pytest.raises(ValueError, match="weights are those of pairs"):
            model.fit(X, y, weights=[1])
        with pytest.raises(ValueError, match="numbers of rows, 0 to 29"):
            model.fit(X, pairs=[[0, 30]])
        with pytest.raises(ValueError, match="holds out rows of all pairs"):
            NeuralNCA(validation_fraction=0.5).fit(X, pairs=[[0, 1], [0, 2]])
        with pytest.raises(ValueError, match="NaN or infinity"):
            NeuralNCA(module=torch.nn.Linear(2, 2)).fit(1e60 * X, y)

    def test_a_descent_that_does_not_help_warns(self):
        X, y = rings(60)
        with pytest.warns(ConvergenceWarning, match="No epoch has raised"):
            NeuralNCA(learning_rate=1e-30, max_iter=2).fit(X, y)

    def test_without_torch_the_remedy_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        with pytest.raises(ImportError, match=r'pip install "nearkin\[deep\]"'):
            NeuralNCA().fit(*rings(30))
