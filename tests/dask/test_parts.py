"""The tasks by themselves, without a cluster: lists, edges and sums of blocks are those of the whole."""

from itertools import pairwise

import numpy as np
import pytest
from dask.sizeof import sizeof
from scipy.sparse import csr_array

from nearkin import graphs, neighbors, scatter
from nearkin.dask import _graphs, _neighbors, _scatter, _search, _shared_index
from nearkin.dask._table import Rows, check_affordable, checked_rows
from nearkin.dask._work import Sums, added

CUTS = [0, 40, 41, 120]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 6)), rng.integers(0, 4, 120)
    y[7] = 4  # alone
    return [Rows(X[a:b], y[a:b], a) for a, b in pairwise(CUTS)], X, y


def lists(blocks, kind, k):
    found = []
    for queries in blocks:
        of_block = None
        for candidates in blocks:
            of_block = _neighbors.with_nearer(of_block, queries, candidates, kind=kind, k=k)
        found.append(of_block)
    return found


def symmetric(blocks, found, both):
    told = [[_graphs.listing(of_block, other.start, start=block.start, stop=block.start + len(block.X))
             for other, of_block in zip(blocks, found, strict=True)] for block in blocks]  # fmt: skip
    return [_graphs.joined(own, told_it, both=both) for own, told_it in zip(found, told, strict=True)]


def as_matrix(blocks, edges, n):
    W = np.zeros((n, n))
    for block, (i, j, w) in zip(blocks, edges, strict=True):
        W[block.start + i, j] = w
    return W


@pytest.mark.parametrize("small", [0, 64])
@pytest.mark.parametrize("kind", ["kin", "strangers"])
def test_lists_are_the_exact_ones(rows, kind, small, monkeypatch):
    monkeypatch.setattr(_search, "SMALL_CLASS", small)
    blocks, X, y = rows
    k = np.array([3, 1, 50, 4, 2])
    search = neighbors.nearest_same_class if kind == "kin" else neighbors.nearest_other_class
    expected = search(X, y, k[y])
    found = lists(blocks, kind, k)
    for block, (numbers, distances) in zip(blocks, found, strict=True):
        for i, (of_row, away) in enumerate(zip(numbers, distances, strict=True)):
            row = expected[[block.start + i]]
            np.testing.assert_array_equal(of_row[of_row >= 0], row.indices)
            np.testing.assert_allclose(away[of_row >= 0], row.data, rtol=1e-12)
            assert np.isinf(away[of_row < 0]).all()


@pytest.mark.parametrize("both", [False, True])
def test_graph_is_symmetric_and_the_same(rows, both):
    blocks, X, y = rows
    G = neighbors.nearest_same_class(X, y, 5)
    expected = (graphs.mutual if both else graphs.union)(graphs.binary(G)).toarray()
    edges = symmetric(blocks, lists(blocks, "kin", 5), both)
    W = as_matrix(blocks, [_graphs.binary(e) for e in edges], len(X))
    np.testing.assert_array_equal(W, expected)
    D = as_matrix(blocks, edges, len(X))
    np.testing.assert_array_equal(D, D.T)
    degrees = np.concatenate([_scatter.degrees(*pair) for pair in zip(blocks, edges, strict=True)])
    np.testing.assert_allclose(degrees, D.sum(axis=1))


def test_heat_kernel_is_the_local_one(rows):
    blocks, X, y = rows
    found = lists(blocks, "kin", 5)
    total, count = added([_graphs.squared_lengths(of_block) for of_block in found])
    W = as_matrix(
        blocks, [_graphs.heat_kernel(e, bandwidth=total / count) for e in symmetric(blocks, found, False)], 120
    )
    expected = graphs.union(graphs.heat_kernel(neighbors.nearest_same_class(X, y, 5))).toarray()
    np.testing.assert_allclose(W, expected, rtol=1e-12)


def test_scatter_of_a_signed_graph(rows):
    blocks, X, y = rows
    kin, strangers = (symmetric(blocks, lists(blocks, kind, 4), False) for kind in ("kin", "strangers"))
    edges = [_graphs.signed(*pair) for pair in zip(kin, strangers, strict=True)]
    parts = []
    for block, its in zip(blocks, edges, strict=True):
        assert (np.diff(its.j) >= 0).all()
        among = np.split(np.bincount(its.j, minlength=CUTS[-1]), CUTS[1:-1])
        assert _scatter.blocks_tied(its, starts=CUTS).tolist() == [bool(ends.any()) for ends in among]
        S = 0.0
        for others in blocks:
            S = _scatter.with_differences(S, block, others, its)
        parts.append(S)
    same, other = (
        graphs.union(graphs.binary(search(X, y, 4)))
        for search in (neighbors.nearest_same_class, neighbors.nearest_other_class)
    )
    L = graphs.laplacian(same - other)
    np.testing.assert_allclose(added(parts), scatter.scatter(X, L), rtol=1e-10, atol=1e-10)


def test_blocks_without_edges_and_lists_without_neighbours():
    alone = [Rows(np.ones((1, 2)), np.array([c]), c) for c in range(2)]
    found = lists(alone, "kin", 3)
    edges = symmetric(alone, found, True)
    assert all(len(e.j) == 0 for e in edges)
    np.testing.assert_array_equal(_scatter.with_differences(0.0, *alone, edges[0]), np.zeros((2, 2)))


def test_nobody_asks_for_neighbors(rows):
    """k is 0 where every class of a block has a single row and k is half of a class."""
    block = rows[0][0]
    empty = lists([block], "kin", np.zeros(5, int))[0]
    assert empty.neighbors.shape == empty.distances.shape == (40, 0)
    assert not len(symmetric([block], [empty], False)[0].j)


def test_dask_sees_the_size_of_a_block(rows):
    block = rows[0][2]
    assert sizeof(block) >= block.X.nbytes + block.codes.nbytes


def test_lists_are_learned_from_few_rows_of_every_class():
    """However many blocks have rows of a class, its share is drawn; and one row where nothing is."""
    blocks = [Rows(np.ones((200, 2)), np.arange(200), start) for start in range(0, 20_000, 200)]
    of_each = {"group_of": _shared_index.groups_of(np.full(200, 100))}
    firsts = _shared_index.least([_shared_index.first_rows(block, **of_each) for block in blocks])
    np.testing.assert_array_equal(firsts, np.arange(200))
    for share, most in [(0.02, 800), (0.0, 200)]:
        drawn = [_shared_index.sampled(block, firsts, share=share, projection=None, **of_each)[1] for block in blocks]
        assert len(np.unique(np.concatenate(drawn))) == 200
        assert 200 <= sum(map(len, drawn)) <= most


def test_a_block_that_came_out_otherwise_again():
    block = _shared_index.FiledRows(np.ones((3, 2)), np.zeros(3, int), 0, np.zeros(3, int), np.arange(3))
    assert _shared_index.numbered(block, 5, 8).start == 5
    with pytest.raises(RuntimeError, match=r"Computed again, a block has 3 rows instead of 4.*equal CPUs"):
        _shared_index.numbered(block, 5, 9)


def test_a_feature_that_differs_along_no_edge_is_exactly_zero():
    """Two pairs far apart: between the components lies all of the first feature, within them nothing."""
    X = np.array([[1e8 / 3, 0.1], [1e8 / 3, 0.7], [-1e8 / 7, 0.2], [-1e8 / 7, 0.5]])
    block = Rows(X, np.zeros(4, int), 0)
    edges = _graphs.Edges(np.array([1, 0, 3, 2]), np.array([0, 1, 2, 3]), np.ones(4))
    S = _scatter.with_differences(0.0, block, block, edges)
    np.testing.assert_array_equal(S[0], 0.0)
    assert S[1, 1] == pytest.approx(0.36 + 0.09)


def test_time_is_told_where_search_is_refused():
    with pytest.raises(ValueError, match=r"X has 1000000 rows.*about .* hours on 8 threads.*a sample.*X\[::5\]"):
        check_affordable(1_000_000, 100, 8)
    check_affordable(200_000, 1000, 1)


def test_a_block_that_is_not_what_it_seems():
    for block in (np.ones((3, 2)), [[1.0, 2.0]] * 4, csr_array(np.eye(4))):
        with pytest.raises(ValueError, match=r"A block is a .* of shape .*array of 4 rows is announced"):
            checked_rows(block, 4)


def test_sums_add_entry_by_entry():
    value, array = added([Sums((1, np.ones(2))), Sums((2, np.ones(2)))])
    assert value == 3
    np.testing.assert_array_equal(array, [2, 2])
