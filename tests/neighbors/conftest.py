from importlib.util import find_spec

import numpy as np
import pytest

from nearkin.neighbors import nearest, nearest_other_class, nearest_same_class, searcher

N = 210
SEARCHES = {
    "all": lambda X, y, k, search: nearest(X, k, search),
    "same": nearest_same_class,
    "other": nearest_other_class,
}
EXACT = searcher("exact", 1)
needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed")


@pytest.fixture(params=["even", "one large", "small"])
def labelled(request):
    """Return 210 rows, and labels of classes that are large, very unequal, or so small that they
    share lists.
    """
    rng = np.random.default_rng(0)
    i = np.arange(N)
    y = {"even": i % 3, "one large": 1 * (i > 170) + (i > 205), "small": i // 7}[request.param]
    return rng.normal(size=(N, 5)) + y[:, None] % 3, y
