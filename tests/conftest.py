import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def _one_blas_thread():
    """Run many small problems on one BLAS thread each: threads that wait for a busy core cost more than they give."""
    with threadpool_limits(1, user_api="blas"):
        yield
