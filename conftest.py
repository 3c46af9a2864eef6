"""How tests run: parallel workers of one BLAS thread each, and limits on what a test may take."""

import gc
import os
import signal
import sys
from collections import Counter
from importlib.util import find_spec
from time import process_time

# Before NumPy is loaded, here and in the processes that tests start: with many small problems,
# threads only wait.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import numpy as np
import pytest
from joblib import cpu_count
from threadpoolctl import threadpool_limits

# The workers, and the commands that tests start, read what the first of them compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

collect_ignore = [
    "src/nearkin/estimators/neural_nca.py",  # needs torch: test_neural_nca.py runs its example
    "src/nearkin/evaluation.py",  # a former name, which warns
]
# Examples of docstrings that need an extra, and a package of it.
NEEDED = {
    "nearkin.load": "pandas",
    "nearkin.estimators.neural_nca.NeuralNCA": "torch",
    "nearkin.neighbors.approximate.ApproximateSearch": "faiss",
    "nearkin.neighbors.search.recall": "faiss",
    "nearkin.tables.encoder.TableEncoder": "pandas",
    "nearkin.tables.issues.label_issues": "pandas",
    "nearkin.tables.predictors.NCAClassifier": "pandas",
}
# seconds of processor time, twice what a test is to take: busy machines are slow
FAST, SLOW = 2.0, 6.0
MODULE = 0.005  # seconds more for a module that a test is the first to load
# seconds of the work in `slowness` on a quiet machine
REFERENCE = 0.016


def slowness():
    """Return how many times as long as there this machine now takes for what tests do: Python
    loops, small arrays.
    """
    A = np.add.outer(np.arange(30.0), np.arange(30.0))

    def seconds():
        start = process_time()
        for i in range(200):
            values, V = np.linalg.eigh(A + i * np.eye(30))
            np.sort((V * values) @ V.T, axis=1).sum(axis=0)
        return process_time() - start

    return max(1.0, np.mean([seconds() for _ in range(20)]) / REFERENCE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Return one worker a core for the whole suite, none for chosen files."""
    return min(cpu_count(), 8) if config.args_source is config.ArgsSource.TESTPATHS else 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Hand out whole files, and tests/dask as one: a single worker starts the cluster."""
    from xdist.scheduler import LoadFileScheduling  # not there without workers

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return (
                "tests/dask" if nodeid.startswith("tests/dask/") else super()._split_scope(nodeid)
            )

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before slow ones are deselected
def pytest_collection_modifyitems(items):
    """Skip the examples that need what is not installed; of tests of many cases some are slow or
    long.
    """
    cases = Counter()
    for item in items:
        for tier in ("slow", "long"):
            if mark := item.get_closest_marker(f"{tier}_after"):
                test = item.nodeid.partition("[")[0]
                cases[test] += 1
                if cases[test] > mark.args[0]:
                    item.add_marker(tier)
        package = NEEDED.get(item.name)
        if package and find_spec(package) is None:
            item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))


def pytest_collection_finish():
    """Let garbage collections pass over what was collected."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test that takes too long for its tier, for the pace of the machine, its child
    processes included.
    """
    loaded, start = len(sys.modules), sum(os.times()[:4])
    result = yield
    seconds, more = sum(os.times()[:4]) - start, MODULE * (len(sys.modules) - loaded)
    is_slow, is_long = (item.get_closest_marker(tier) is not None for tier in ("slow", "long"))
    limit, next_tier = (SLOW, "long") if is_slow else (FAST, "slow")
    if (
        not is_long
        and seconds > (allowed := limit + more)
        and seconds > (allowed := allowed * slowness())
    ):
        pytest.fail(
            f"took {seconds:.1f} s of processor time: shrink it below {allowed:.1f} s or "
            f"mark it {next_tier}",
            False,
        )
    return result


@pytest.fixture
def default_signals():
    """Let signals end this process and those that the test starts.

    They inherit what ignores signals: nohup does with SIGHUP, the shell with SIGINT in background
    jobs.
    """
    defaults = {"SIGINT": signal.default_int_handler, "SIGTERM": signal.SIG_DFL}
    defaults |= {"SIGHUP": signal.SIG_DFL} if hasattr(signal, "SIGHUP") else {}
    before = {name: signal.signal(getattr(signal, name), how) for name, how in defaults.items()}
    yield
    for name, how in before.items():
        signal.signal(getattr(signal, name), how)


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    with threadpool_limits(1):  # libraries that were loaded before the variables were set
        yield
