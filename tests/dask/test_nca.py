"""NCA on a cluster: value and gradient are sums over blocks, and the descent is the local one."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nearkin import NCA
from nearkin.dask import DaskNCA, _minibatches
from nearkin.dask._table import labelled_table
from nearkin.dask._work import Work
from nearkin.dask.nca import TERMS, Problem
from nearkin.estimators._criterion import OBJECTIVES, Criterion
from nearkin.estimators._descending import UnitRows
from nearkin.objectives.pair_weights import SameClass

from .conftest import blocks

UNEVEN = (70, 0, 330, 1, 199)


@pytest.mark.parametrize("objective", TERMS)
@pytest.mark.parametrize("shape", [(3, 10), (10, 10), (10,)])
def test_value_and_gradient(objective, shape, client, data):
    A = np.random.default_rng(0).standard_normal(shape)
    unit = UnitRows.of(data[0], within_span=True)
    value, gradient = OBJECTIVES[objective](A, unit.X, SameClass(data[1]))
    with Work(client) as work:
        table = labelled_table(work, "DaskNCA", *blocks(*data, UNEVEN))
        problem = Problem.of(work, table, Criterion(objective, "full", 0.15, None))
        assert problem.scale.unit == pytest.approx(unit.unit, rel=1e-12)
        found = problem.objective(A)
    assert found[0] == pytest.approx(value, rel=1e-10)
    assert np.linalg.norm(found[1] - gradient) <= 1e-10 * np.linalg.norm(gradient)


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_candidates": None},
        {"n_components": 3, "objective": "log_likelihood"},
        {"n_components": 6},
        {"n_components": 2, "n_candidates": 20},
        {"n_components": 2, "n_candidates": 20, "objective": "log_likelihood"},
        {"structure": "diagonal"},
        {"n_components": 2, "init": "random", "n_init": 2, "random_state": 0},
        {"n_components": 2, "init": np.eye(2, 10)},
    ],
    ids=str,
)
def test_ten_iterations(parameters, client, data):
    local = NCA(max_iter=10, **parameters).fit(*data)
    distributed = DaskNCA(max_iter=10, **parameters).fit(*blocks(*data, (300, 300)))
    assert distributed.objective_ == pytest.approx(local.objective_, rel=1e-6)
    assert distributed.perplexity_ == pytest.approx(local.perplexity_, rel=1e-6)
    assert distributed.n_iter_ == local.n_iter_
    np.testing.assert_allclose(distributed.components_, local.components_, rtol=1e-5, atol=1e-8)


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 3},
        {"n_components": 2, "objective": "log_likelihood", "batch_size": 100, "init": "pca"},
        {"structure": "diagonal", "n_candidates": 5},
        {"n_components": 2, "n_init": 2, "init": "random"},
    ],
    ids=str,
)
def test_stochastic_descent_is_the_local_one(parameters, client, data, monkeypatch):
    """The same anchors and far rows are drawn, in the same order; the rows come in several portions."""
    monkeypatch.setattr(_minibatches, "TOGETHER", 20_000)
    how = {"solver": "sgd", "random_state": 0, "max_iter": 4, **parameters}
    local, distributed = NCA(**how).fit(*data), DaskNCA(**how).fit(*blocks(*data, UNEVEN))
    assert distributed.n_iter_ == local.n_iter_ == 4
    np.testing.assert_allclose(distributed.components_, local.components_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(distributed.loss_curve_, local.loss_curve_, rtol=1e-8)
    for attribute in ("objective_", "objective_error_", "perplexity_"):
        assert getattr(distributed, attribute) == pytest.approx(getattr(local, attribute), rel=1e-6)


@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["sgd", "lbfgs"])
def test_candidates_by_approximate_search(solver, client, data):
    how = {"n_components": 2, "solver": solver, "n_candidates": 15, "random_state": 0, "init": "pca", "max_iter": 20}
    exact = DaskNCA(**how).fit(*blocks(*data, (300, 300)))
    approximate = DaskNCA(search="approximate", **how).fit(*blocks(*data, (200, 200, 200)))
    assert (exact.search_, approximate.search_) == ("exact", "approximate")
    assert approximate.objective_ == pytest.approx(exact.objective_, abs=0.02)


def test_an_unfinished_descent_is_told(client, data):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations") as record:
        DaskNCA(2, max_iter=1).fit(*blocks(*data, UNEVEN))
    assert record[0].filename == __file__


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "sgd", "n_candidates": None}, "n_candidates=None lets every step of solver='sgd' need all rows"),
        ({"target": "continuous"}, "target='continuous' is not for Dask arrays"),
        ({"objective": "f"}, "objective must be one of"),
        ({"n_components": 3, "init": np.eye(2)}, r"init must be of shape \(3, 10\)"),
        ({"n_components": 7, "init": "lda"}, "init='lda' has 4 directions"),
        ({"n_components": 11}, "n_components must be between 1 and 10"),
    ],
    ids=str,
)
def test_errors(parameters, message, client, data):
    with pytest.raises(ValueError, match=message):
        DaskNCA(**parameters).fit(*blocks(*data, UNEVEN))


def test_nobody_has_kin(client, data):
    with pytest.raises(ValueError, match="nobody has kin"):
        DaskNCA().fit(*blocks(data[0], np.arange(600), UNEVEN))


def test_warm_start_goes_on(client, data):
    X, y = blocks(*data, (300, 300))
    nca = DaskNCA(2, init="pca", tol=1e-3, warm_start=True).fit(X, y)
    reached, n_iter = nca.objective_, nca.n_iter_
    nca.fit(X, y)
    assert nca.n_iter_ < n_iter
    assert nca.objective_ >= reached - 1e-6
