"""Tasks get the arguments that they were given."""

import numpy as np
import pytest

from nearkin.dask.table import LARGE, Work


@pytest.mark.parametrize("size", [2, LARGE])
def test_maps_at_the_same_time_with_arguments_of_one_name(size, client):
    """Dask names a large argument like its parameter: the second map would be given that of the
    first.
    """
    with Work(client) as work:
        maps = [work.map(np.dot, [1.0, 2.0], b=np.full(size, value)) for value in (3.0, 4.0)]
        for value, products in zip((3.0, 4.0), map(work.results, maps), strict=True):
            assert [product.min() for product in products] == [value, 2 * value]
