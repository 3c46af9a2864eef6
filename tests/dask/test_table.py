"""Blocks of a table on a cluster, and tasks, which get the arguments that they were given."""

import numpy as np
import pytest
from dask.sizeof import sizeof

from nearkin.dask.table import LARGE, Block, Work, as_block, as_table, check_exact

from .conftest import InlineWork, da


@pytest.mark.parametrize("size", [2, LARGE])
def test_maps_at_the_same_time_with_arguments_of_one_name(size, client):
    """Dask names a large argument like its parameter: the second map would be given that of the
    first.
    """
    with Work(client) as work:
        maps = [work.map(np.dot, [1.0, 2.0], b=np.full(size, value)) for value in (3.0, 4.0)]
        for value, products in zip((3.0, 4.0), map(work.results, maps), strict=True):
            assert [product.min() for product in products] == [value, 2 * value]


@pytest.mark.long
def test_many_blocks_are_merged():
    table = as_table(
        InlineWork(), "DaskLPP", da.random.random((310, 2), chunks=(1, 2)), labelled=False
    )
    assert len(table.blocks) <= 300
    assert sum(len(block.X) for block in table.blocks) == 310


def test_dask_sees_the_size_of_a_block():
    block = Block(np.ones((1000, 20)), np.zeros(1000, int), 0)
    assert sizeof(block) >= block.X.nbytes + block.codes.nbytes


def test_an_exact_search_that_takes_too_long_is_refused():
    with pytest.raises(
        ValueError, match=r"X has 1000000 rows.*about .* hours on 8 threads.*a sample.*X\[::5\]"
    ):
        check_exact(1_000_000, 100, 8)
    check_exact(200_000, 1000, 1)


def test_a_block_that_is_not_what_it_seems():
    for n_rows, n_labels in [(3, 4), (4, 3)]:
        with pytest.raises(
            ValueError,
            match=f"A block has {n_rows} rows and {n_labels} labels where 4 are announced",
        ):
            as_block(
                np.ones((n_rows, 2)),
                np.zeros(n_labels),
                0,
                4,
                classes=np.zeros(1),
                origin=np.zeros(2),
            )
