"""NCA on a cluster: value and gradient are sums over blocks, and the descent is the local one."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nearkin import NCA
from nearkin.dask import DaskNCA
from nearkin.dask.nca import ClusterNeighbors, UnitClusterRows
from nearkin.dask.table import Work, as_table
from nearkin.estimators.descent_embedding import UnitRows
from nearkin.neighbors import EXACT
from nearkin.objectives.loss import FLOAT64_ROWS
from nearkin.objectives.nca import StochasticNeighbors, nca_objective
from nearkin.objectives.stochastic import SameClass

from .conftest import InlineWork, blocks, da

UNEVEN = (70, 0, 1, 229)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("objective", "shape"),
    [
        ("expected_accuracy", (3, 10)),
        pytest.param("log_likelihood", (10, 10), marks=pytest.mark.slow),
        ("log_likelihood", (10,)),
    ],
)
def test_value_and_gradient(objective, shape, client, data):
    B = np.random.default_rng(0).standard_normal(shape)
    local = UnitRows.of(data[0], 3)
    value, gradient = StochasticNeighbors(local, EXACT, None, objective, SameClass(data[1])).value(
        B
    )
    with Work(client) as work:
        table = as_table(work, "DaskNCA", *blocks(*data, UNEVEN))
        labels = work.submit(np.concatenate, table.map(lambda block: block.codes))
        rows = UnitClusterRows.of(table)
        assert rows.unit == pytest.approx(local.unit, rel=1e-12)
        found = ClusterNeighbors(rows, EXACT, None, objective, labels).value(B)
    assert found[0] == pytest.approx(value, rel=1e-10)
    assert np.linalg.norm(found[1] - gradient) <= 1e-10 * np.linalg.norm(gradient)


def test_candidates_are_the_same_and_so_is_what_is_estimated_from_them():
    """Also in float32, where the two round differently: a descent then parts, a step does not."""
    n, rng, objective = FLOAT64_ROWS + 100, np.random.default_rng(0), "log_likelihood"
    y = rng.integers(0, 5, n)
    X, B = rng.standard_normal((5, 10))[y] + rng.standard_normal((n, 10)), np.eye(3, 10)
    local = UnitRows.of(X)
    loss = StochasticNeighbors(local, EXACT, 20, objective, SameClass(y))
    candidates = loss.candidates(B)
    table = as_table(InlineWork(), "DaskNCA", *blocks(X, y, (700, 0, 1, n - 701)))
    rows = UnitClusterRows.of(table)
    distributed = ClusterNeighbors(rows, EXACT, 20, objective, y)
    found = distributed.candidates(B)
    assert rows.unit == pytest.approx(local.unit, rel=1e-9)
    listed, far = found
    near = np.concatenate([near for _, near in listed])
    np.testing.assert_array_equal(np.sort(near), np.sort(candidates.near))
    np.testing.assert_array_equal(far, candidates.far)
    value, gradient = loss.value(B, candidates)
    distributed_value, distributed_gradient = distributed.value(B, found)
    assert distributed_value == pytest.approx(value, rel=1e-6)
    error = np.linalg.norm(distributed_gradient - gradient)
    assert error <= 1e-5 * np.linalg.norm(gradient)


@pytest.mark.filterwarnings("ignore:max_iter=2:sklearn.exceptions.ConvergenceWarning")
def test_a_constant_feature_is_left_out_as_in_memory(no_cluster, data):
    X, y = np.insert(data[0], 3, 0.1, axis=1), data[1]
    local = NCA(max_iter=2).fit(X, y)
    distributed = DaskNCA(max_iter=2).fit(*blocks(X, y, UNEVEN))
    assert not distributed.components_[:, 3].any()
    expected = local.get_mahalanobis_matrix()
    found = distributed.components_.T @ distributed.components_
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_the_converged_map_is_the_same_in_float64(no_cluster, data):
    parameters = {"n_components": 2, "init": "pca", "tol": 1e-9, "max_iter": 1000}
    local = NCA(**parameters).fit(*data)
    distributed = DaskNCA(**parameters).fit(*blocks(*data, UNEVEN))
    assert distributed.objective_ == pytest.approx(local.objective_, rel=1e-9)
    metric, expected = (nca.components_.T @ nca.components_ for nca in (distributed, local))
    assert np.linalg.norm(metric - expected) <= 1e-6 * np.linalg.norm(expected)


@pytest.mark.slow_after(2)
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 3, "objective": "log_likelihood", "max_iter": 3},
        {"structure": "diagonal", "max_iter": 3},
        {"n_components": 2, "init": np.eye(2, 10), "max_iter": 3},
        {"n_components": 2, "n_candidates": 20, "objective": "log_likelihood", "max_iter": 2},
    ],
    ids=str,
)
def test_some_iterations(parameters, no_cluster, data):
    assert_same_as_local(parameters, data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 3, "objective": "log_likelihood", "max_iter": 1},
        pytest.param({"n_components": 6, "max_iter": 10}, marks=pytest.mark.slow),
        pytest.param(
            {"n_components": 2, "n_candidates": 20, "max_iter": 17}, marks=pytest.mark.slow
        ),
        pytest.param(
            {"n_components": 2, "init": "random", "n_init": 2, "random_state": 0, "max_iter": 10},
            marks=pytest.mark.slow,
        ),
    ],
    ids=str,
)
def test_some_iterations_on_a_cluster(parameters, client, data):
    assert_same_as_local(parameters, data)


def assert_same_as_local(parameters, data):
    local = NCA(**parameters).fit(*data)
    distributed = DaskNCA(**parameters).fit(*blocks(*data, (150, 150)))
    assert distributed.objective_ == pytest.approx(local.objective_, rel=1e-6)
    assert distributed.perplexity_ == pytest.approx(local.perplexity_, rel=1e-6)
    assert distributed.n_iter_ == local.n_iter_
    np.testing.assert_allclose(distributed.components_, local.components_, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_stochastic_descent_takes_one_block_after_the_other(data):
    """What DaskNCA does not do: partial_fit sees one block, in memory, at a time; a cluster is not
    needed.
    """
    X, y = blocks(*data, (75,) * 4)  # in random order: else shuffle them when they are written
    nca = NCA(2, solver="sgd", random_state=0)
    for _ in range(3):  # epochs
        for rows, labels in zip(X.blocks, y.blocks, strict=True):
            nca.partial_fit(
                rows.compute(scheduler="synchronous"), labels.compute(scheduler="synchronous")
            )
    assert nca.n_iter_ == 12
    Z = X.map_blocks(nca.transform, dtype=X.dtype, chunks=(X.chunks[0], 2))
    assert isinstance(Z, da.Array)
    reached = (
        nca_objective("expected_accuracy", nca.components_, data[0], SameClass(data[1]))[0] / 300
    )
    assert reached > NCA(2).fit(*data).objective_ - 0.05


@pytest.mark.slow
@pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
def test_candidates_by_approximate_search(client, data):
    how = {"n_components": 2, "n_candidates": 15, "random_state": 0, "init": "pca", "max_iter": 20}
    exact = DaskNCA(**how).fit(*blocks(*data, (150, 150)))
    approximate = DaskNCA(search="approximate", **how).fit(*blocks(*data, (100, 200)))
    assert (exact.search_, approximate.search_) == ("exact", "approximate")
    assert approximate.objective_ == pytest.approx(exact.objective_, abs=0.02)


def test_an_unfinished_descent_is_reported(client, data):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations") as record:
        DaskNCA(2, init="pca", max_iter=1).fit(*blocks(*data, UNEVEN))
    assert record[0].filename == __file__


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"solver": "sgd"},
            r"solver='sgd' is not for Dask arrays: .* or call "
            r"NCA\(solver='sgd'\).partial_fit on one",
        ),
        ({"target": "continuous"}, "target='continuous' .*is not for Dask arrays"),
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


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_no_class_of_two_rows(client, data):
    with pytest.raises(ValueError, match="y gives no two rows the same label"):
        DaskNCA().fit(*blocks(data[0], np.arange(300), UNEVEN))


def test_warm_start_goes_on(no_cluster, data):
    X, y = blocks(*data, (150, 150))
    nca = DaskNCA(2, init="pca", tol=1e-2, warm_start=True).fit(X, y)
    reached, n_iter = nca.objective_, nca.n_iter_
    nca.fit(X, y)
    assert nca.n_iter_ < n_iter
    assert nca.objective_ >= reached - 1e-6
