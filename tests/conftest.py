import os

# Many small problems, in this process and those it starts: threads that wait for a busy core cost more than they give.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    with threadpool_limits(1):  # of libraries that were loaded before
        yield
