"""Rows in blocks answer as rows in one table do; the tasks run in this process, one after the
other.
"""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils import get_tags

from nearkin import DNE, LDE, LFDA, LPP, MFA, NMMP
from nearkin.dask import search
from nearkin.dask.rows import ClusterRows, add_differences
from nearkin.dask.table import Block, as_table
from nearkin.estimators import Rows
from nearkin.neighbors import EXACT
from nearkin.testing import assert_same_subspace

from .conftest import InlineWork, blocks

# together they ask for all that there is
METHODS = [
    LDE(3),
    LFDA(3, n_neighbors=4),
    MFA(3, n_pairs=9),
    NMMP(3),
]
of_each = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)


def cluster_rows(X, y, sizes, labelled=True):
    table = as_table(InlineWork(), "DaskDNE", *blocks(X, y, sizes), labelled=labelled)
    return ClusterRows(**vars(table))


def fitted(method, X, y, sizes):
    return method.fit_rows(
        cluster_rows(X, y, sizes, labelled=get_tags(method).target_tags.required)
    )


@pytest.fixture
def small():
    """Return a table with classes of all sizes, one of a single row, and a feature that is
    constant.
    """
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((150, 4)), np.minimum(rng.integers(0, 12, 150), 3)
    X[:, 3] = 0.1
    y[7] = 4
    return X, y


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("few", [0, 64], ids=["complement", "all"])
@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("union_knn", ("all", 4, "heat")),
        ("union_knn", ("same", 4, "heat")),
        ("union_knn", ("other", 3)),
        ("mutual_knn", ("same", np.array([3, 1, 50, 4, 0]))),
        ("mutual_knn", ("other", 7)),
        ("mutual_knn", ("other", np.array([3, 1, 9, 4, 2]))),
        ("mean_knn", ("same", 3)),
        ("closest_pairs", (11,)),
    ],
    ids=str,
)
def test_graphs(question, arguments, few, small, monkeypatch):
    """Searches for other classes go through all rows, or through the complement of a class."""
    monkeypatch.setattr(search, "SMALL_CLASS", few)
    here, there = Rows(*small, EXACT), cluster_rows(*small, (60, 0, 1, 89))
    W, blocks_of_W = (getattr(rows, question)(*arguments) for rows in (here, there))
    np.testing.assert_allclose(
        np.vstack([part.toarray() for part in blocks_of_W]), W.toarray(), rtol=1e-12
    )
    np.testing.assert_allclose(
        np.concatenate(there.degrees(blocks_of_W)), here.degrees(W), rtol=1e-12
    )
    S = there.scatter(blocks_of_W)
    np.testing.assert_allclose(S, here.scatter(W), rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(S, there.scatter_operator(blocks_of_W) @ np.eye(4))
    assert not S[3].any()  # exactly


def test_scatters(small):
    here, there = Rows(*small, EXACT), cluster_rows(*small, (60, 90))
    questions = [
        ("total_scatter", ()),
        ("within_scatter", ()),
        ("local_fisher_scatters", (3,)),
        ("pair_covariances", ()),
    ]
    for name, arguments in questions:
        found, expected = (getattr(rows, name)(*arguments) for rows in (there, here))
        for mine, local in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, local, rtol=1e-10, atol=1e-10)
    w = np.arange(150.0)
    np.testing.assert_allclose(
        there.total_scatter([w[:60], w[60:]]), here.total_scatter(w), rtol=1e-10, atol=1e-10
    )


def test_span(small):
    # the last is a sum, the fourth is constant
    X = np.column_stack([small[0], small[0][:, :2] @ [1e5, 1.0]])
    here, there = Rows(X, small[1], EXACT), cluster_rows(X, small[1], (60, 0, 1, 89))
    T, expected = there.span_basis(), here.span_basis()
    assert T.shape == (5, 3)
    np.testing.assert_allclose(T @ T.T, expected @ expected.T, atol=1e-10)
    assert not T[3].any()


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
def test_no_row_has_neighbors():
    """k is 0 where every class has one row and k is half of a class."""
    rows = cluster_rows(np.eye(4), np.arange(4), (2, 2))
    graph = rows.mutual_knn("same", np.zeros(4, int))
    assert sum(W.nnz for W in graph) == 0
    np.testing.assert_array_equal(rows.scatter(graph), np.zeros((4, 4)))


@of_each
class TestMethods:
    def test_far_from_the_origin(self, method, data):
        X, y = data[0] + 1e6, data[1]
        assert_same_subspace(
            fitted(method, X, y, (150, 150)).components_, method.fit(X, y).components_
        )

    @pytest.mark.slow_after(1)
    def test_float32(self, method, data):
        X = data[0].astype(np.float32)
        components = fitted(method, X, data[1], (150, 150)).components_
        assert components.dtype == np.float32
        assert_same_subspace(components, method.fit(X, data[1]).components_, tol=1e-3)

    @pytest.mark.slow_after(1)
    def test_blocks_of_one_class_and_a_constant_feature(self, method, data):
        order = np.argsort(data[1], kind="stable")
        X, y = np.column_stack([data[0], np.full(300, 0.1)])[order], data[1][order]
        components = fitted(
            method, X, np.array(list("abcde"), dtype=object)[y], tuple(np.bincount(y))
        ).components_
        assert_same_subspace(components, method.fit(X, y).components_)
        assert not components[:, -1].any()

    @pytest.mark.slow_after(2)
    def test_small_and_large_classes(self, method, data):
        y = np.where(data[1] < 2, data[1], 2 + np.arange(300) // 9)
        y[5] = 1000
        components = fitted(method, data[0], y, (100, 1, 199)).components_
        assert_same_subspace(components, method.fit(data[0], y).components_)


@pytest.mark.parametrize("n_components", [None, 0.9, 10])
def test_the_number_of_negative_eigenvalues_sets_the_dimension(n_components, data):
    components = fitted(DNE(n_components), *data, (150, 150)).components_
    expected = DNE(n_components).fit(*data).components_
    assert len(components) == len(expected)
    assert_same_subspace(components, expected)


@pytest.mark.parametrize("n_duplicates", [1, 2])
def test_the_number_of_blocks_changes_only_rounding(n_duplicates):
    """Also with duplicates: of equally near rows the one of the lowest number is listed."""
    rows = (
        np.random.default_rng(0).integers(0, 3 if n_duplicates > 1 else 1000, (40, 4)).astype(float)
    )
    X, y = np.repeat(rows, n_duplicates, axis=0), np.zeros(40 * n_duplicates)
    one, many = (
        fitted(LPP(n_neighbors=3), X, y, sizes).components_
        for sizes in ((len(X),), (9, len(X) - 18, 9))
    )
    np.testing.assert_allclose(many, one, atol=1e-9)


def test_a_feature_that_differs_along_no_edge_is_exactly_zero():
    """Two pairs far apart: between the components lies all of the first feature, within them
    nothing.
    """
    X = np.array([[1e8 / 3, 0.1], [1e8 / 3, 0.7], [-1e8 / 7, 0.2], [-1e8 / 7, 0.5]])
    block = Block(X, np.zeros(4, int), 0)
    W = csr_array((np.ones(4), ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(4, 4))
    S = add_differences(0.0, block, W, block)
    np.testing.assert_array_equal(S[0], 0.0)
    assert S[1, 1] == pytest.approx(0.36 + 0.09)


# 300 rows with 39 neighbours of 100 bytes each: 1.2 MB. A block may have a quarter of the memory of
# a worker, all blocks four times that of all workers, which keep some on disk.


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("sizes", "memory"), [((150, 150), [2_400_000] * 2), ((20,) * 15, [313_000])]
)
def test_lists_that_the_workers_can_hold(sizes, memory, data, monkeypatch):
    monkeypatch.setattr(InlineWork, "memory", lambda work: memory)
    rows = cluster_rows(*data, sizes)
    rows.mutual_knn("same", rows.class_sizes // 2 + 2)  # as NMMP does


@pytest.mark.parametrize(
    ("sizes", "memory", "match"),
    [
        (
            (150, 150),
            [2_300_000] * 2,
            r"Up to 39 neighbours \(same\) of each of 300 rows.*of 150 rows.*within=10",
        ),
        ((15,) * 20, [290_000], "four times that of all workers"),
    ],
)
def test_lists_that_the_workers_cannot_hold_are_refused(sizes, memory, match, data, monkeypatch):
    monkeypatch.setattr(InlineWork, "memory", lambda work: memory)
    with pytest.raises(MemoryError, match=match):
        fitted(NMMP(), *data, sizes)


def test_numbers_of_neighbours_by_label(data):
    X, (labels, codes) = data[0], np.unique(data[1], return_inverse=True)
    names, numbers = [f"class {label}" for label in labels], 3 + np.arange(len(labels))
    y = np.array(names)[codes]
    by_label = NMMP(2, n_neighbors_within=dict(zip(names, numbers, strict=True)))
    in_order = NMMP(2, n_neighbors_within=numbers)
    maps = [fitted(method, X, y, (100, 200)).components_ for method in (by_label, in_order)]
    np.testing.assert_array_equal(*maps)
