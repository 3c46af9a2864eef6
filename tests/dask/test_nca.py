"""NCA on a cluster: the descent of the local class, over samples of the rows."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from nearkin import NCA
from nearkin.dask import DaskNCA
from nearkin.dask.nca import SampledNeighbors, fetched, samples_of
from nearkin.dask.table import as_table
from nearkin.estimators.descent_embedding import UnitRows
from nearkin.neighbors import EXACT
from nearkin.objectives.nca import StochasticNeighbors, nca_objective
from nearkin.objectives.stochastic import SameClass

from .conftest import InlineWork, blocks

UNEVEN = (70, 0, 1, 229)


@pytest.fixture
def samples_of_60(monkeypatch):
    monkeypatch.setattr("nearkin.dask.nca.INIT_ROWS", 60)


@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 3, "objective": "log_likelihood", "max_iter": 4},
        {"structure": "diagonal", "batch_size": 50, "max_iter": 3},
        {"n_components": 2, "init": np.eye(2, 10), "n_candidates": 20, "max_iter": 4},
        {"n_components": 2, "init": "random", "n_init": 2, "max_iter": 3},
    ],
    ids=str,
)
def test_few_rows_give_the_map_of_nca(parameters, no_cluster, data):
    local = NCA(solver="sgd", random_state=0, **parameters).fit(*data)
    distributed = DaskNCA(random_state=0, **parameters).fit(*blocks(*data, UNEVEN))
    assert distributed.objective_ == pytest.approx(local.objective_, rel=1e-6)
    assert distributed.n_iter_ == local.n_iter_
    np.testing.assert_allclose(distributed.components_, local.components_, rtol=1e-5, atol=1e-8)


def test_samples_share_no_row_and_hold_nearly_all():
    rng = np.random.default_rng(0)
    samples = samples_of(35_003, 20, rng)
    assert samples.shape == (3, 11_667)
    assert (np.diff(samples) > 0).all()
    assert len(np.unique(samples)) == 35_001
    assert samples_of(35_003, 15_000, rng).shape == (2, 17_501)  # at least as many rows as features
    np.testing.assert_array_equal(samples_of(19_999, 20, rng), np.arange(19_999)[None])


def test_rows_are_fetched_with_their_labels(data):
    table = as_table(InlineWork(), "DaskNCA", *blocks(*data, UNEVEN))
    rows = np.array([0, 69, 70, 71, 299])
    X, pair_weights = fetched(table, rows)
    origin = data[0][0] - X[0]  # blocks are relative to a row
    np.testing.assert_allclose(X + origin, data[0][rows], atol=1e-12)
    np.testing.assert_array_equal(pair_weights.codes, data[1][rows])


@pytest.mark.parametrize("objective", ["expected_accuracy", "log_likelihood"])
def test_estimates_of_an_epoch_average_to_the_loss_within_samples(objective, data, samples_of_60):
    table = as_table(InlineWork(), "DaskNCA", *blocks(*data, UNEVEN))
    X, pair_weights = fetched(table, np.arange(60))
    first = StochasticNeighbors(UnitRows.of(X), EXACT, None, objective, pair_weights)
    loss = SampledNeighbors(first, table)
    batches = loss.batches(20, 1, np.random.default_rng(1))
    B = np.random.default_rng(2).standard_normal((3, 10))
    drawn = [batches(B, t) for t in range(batches.n_batches)]
    value, gradient = map(sum, zip(*(loss.estimate(B, batch) for batch in drawn), strict=True))
    assert batches.n_batches == 15
    each, slopes = [], []
    for sample in {id(sample): sample for sample, _ in drawn}.values():
        rows = sample.rows.take(slice(None))
        found = nca_objective(objective, B, rows, sample.pair_weights)
        each.append(-found[0] / 60)
        slopes.append(-found[1] / 60)
    assert len(each) == 5
    assert value / 15 == pytest.approx(np.mean(each), rel=1e-10)
    np.testing.assert_allclose(gradient / 15, np.mean(slopes, axis=0), atol=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
def test_the_map_depends_on_no_block_and_on_no_worker(client, data, samples_of_60, monkeypatch):
    how = {"n_components": 2, "max_iter": 2, "random_state": 0}
    on_cluster = DaskNCA(**how).fit(*blocks(*data, (150, 150)))
    monkeypatch.setattr("nearkin.dask.nca.Work", lambda client: InlineWork())
    in_this_thread = DaskNCA(**how).fit(*blocks(*data, UNEVEN))
    np.testing.assert_array_equal(on_cluster.components_, in_this_thread.components_)


@pytest.mark.slow
def test_blocks_of_one_class_are_no_harm(no_cluster, data, samples_of_60):
    order = np.argsort(data[1])
    X, y = data[0][order], data[1][order]
    nca = DaskNCA(2, max_iter=30, random_state=0).fit(*blocks(X, y, tuple(np.bincount(y))))
    reached, best = (
        nca_objective("expected_accuracy", A, X, SameClass(y))[0] / len(y)
        for A in (nca.components_, NCA(2).fit(X, y).components_)
    )
    assert reached > best - 0.05


@pytest.mark.filterwarnings("ignore:max_iter=2:sklearn.exceptions.ConvergenceWarning")
def test_a_constant_feature_is_left_out(no_cluster, data, samples_of_60):
    X, y = np.insert(data[0], 3, 0.1, axis=1), data[1]
    assert not DaskNCA(max_iter=2).fit(*blocks(X, y, UNEVEN)).components_[:, 3].any()


def test_an_unfinished_descent_is_reported(client, data):
    with pytest.warns(ConvergenceWarning, match="max_iter=1 iterations") as record:
        DaskNCA(2, max_iter=1, random_state=0).fit(*blocks(*data, UNEVEN))
    assert record[0].filename == __file__


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
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


@pytest.mark.slow
def test_warm_start_goes_on(no_cluster, data, samples_of_60):
    X, y = blocks(*data, (150, 150))
    nca = DaskNCA(2, init="pca", max_iter=30, warm_start=True, random_state=0).fit(X, y)
    began, *_, reached = nca.loss_curve_
    nca.fit(X, y)
    assert nca.loss_curve_[0] == pytest.approx(reached, abs=0.1)
    assert nca.loss_curve_[0] < began


@pytest.mark.slow
def test_the_plain_estimator_descends_by_minibatches(no_cluster, data):
    nca = DaskNCA(2, max_iter=30, random_state=0).fit(*blocks(*data, UNEVEN)).to_local()
    assert isinstance(nca, NCA)
    assert nca.partial_fit(*data).transform(data[0]).shape == (300, 2)
