"""Under scikit-learn's `array_api_dispatch` linear maps take arrays of other libraries as they are.

SciPy decides when it is imported whether it does: these tests run where SCIPY_ARRAY_API is 1, and
one slow test runs them so in a process of its own.
"""

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearkin import LDE, LMNN, NCA, EmbeddingAdapter, Migration, _validation

DISPATCHES = os.environ.get("SCIPY_ARRAY_API") == "1"
dispatched = pytest.mark.skipif(not DISPATCHES, reason="needs SCIPY_ARRAY_API=1")
X, y = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
X[7] = 0.0  # has no direction
OLD = X @ np.random.default_rng(0).normal(size=(8, 5))
LINEAR = [LDE(2), NCA(3, max_iter=2), LMNN(2, max_iter=2)]
AFFINE = [EmbeddingAdapter(3, max_iter=2), Migration()]
pytestmark = pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning")
every_map = pytest.mark.parametrize("estimator", [*LINEAR, *AFFINE], ids=repr)


def fitted(estimator, dtype=np.float64):
    return clone(estimator).fit(X.astype(dtype), y if estimator not in AFFINE[1:] else OLD)


@pytest.fixture(params=["torch", "array_api_strict"])
def xp(request):
    return pytest.importorskip(request.param)


@pytest.fixture
def dispatch():
    with config_context(array_api_dispatch=True):
        yield


@dispatched
@every_map
@pytest.mark.parametrize(("dtype", "tol"), [("float32", 1e-6), ("float64", 1e-12)])
@pytest.mark.parametrize("fitted_in", ["float32", "float64"])
def test_tensors_are_mapped_where_they_are(estimator, dtype, tol, fitted_in, xp, dispatch):
    model = fitted(estimator, fitted_in)
    expected = model.transform(X.astype(dtype))
    rows = xp.asarray(X.astype(dtype))
    Z = model.transform(rows)
    assert type(Z) is type(rows)
    assert (Z.dtype, Z.device, tuple(Z.shape)) == (rows.dtype, rows.device, expected.shape)
    np.testing.assert_allclose(np.from_dlpack(Z), expected, atol=tol * np.abs(expected).max())


@dispatched
@every_map
@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize(("dtype", "tol"), [("float32", 1e-6), ("float64", 1e-12)])
def test_rows_on_a_graphics_card_stay_there(estimator, library, dtype, tol, dispatch):
    xp = pytest.importorskip(library)
    if not xp.cuda.is_available():
        pytest.skip("needs a CUDA device")
    model = fitted(estimator)
    expected = model.transform(X.astype(dtype))
    place = {"device": "cuda"} if library == "torch" else {}  # CuPy knows no other
    rows = xp.asarray(X.astype(dtype), **place)
    Z = model.transform(rows)
    assert type(Z) is type(rows)
    assert (Z.dtype, Z.device, tuple(Z.shape)) == (rows.dtype, rows.device, expected.shape)
    Z = Z.numpy(force=True) if library == "torch" else Z.get()
    np.testing.assert_allclose(Z, expected, atol=tol * np.abs(expected).max())
    rows[0, 0] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        model.transform(rows)


@dispatched
@every_map
def test_other_rows_are_mapped_as_without_dispatch(estimator, dispatch):
    model = fitted(estimator)
    with config_context(array_api_dispatch=False):
        expected = model.transform(X)
    for rows in (X, X.tolist(), csr_array(X)):
        Z = model.transform(rows)
        assert type(Z) is np.ndarray
        np.testing.assert_allclose(Z, expected, atol=1e-12)
    pd = pytest.importorskip("pandas")
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_allclose(
            model.transform(pd.DataFrame(X, columns=[*"abcdefgh"])), expected, atol=1e-12
        )


@dispatched
@every_map
def test_wrong_tensors_are_refused(estimator, xp, dispatch):
    model = fitted(estimator)
    with pytest.raises(ValueError, match=r"X has 7 features, but \w+ is expecting 8"):
        model.transform(xp.asarray(X[:, 1:]))
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.transform(xp.asarray(X[0]))
    with pytest.raises(ValueError, match="contains NaN"):
        model.transform(xp.asarray(np.where(X > 1, np.nan, X)))
    with pytest.raises(TypeError, match="does not convert it silently"):
        clone(estimator).fit(xp.asarray(X), y)


@dispatched
@every_map
def test_the_map_is_moved_once(estimator, xp, dispatch, monkeypatch):
    model = fitted(estimator)
    rows = xp.asarray(X)
    learned = []
    asarray = xp.asarray

    def recorded(array, **options):
        learned.extend([array] * isinstance(array, np.ndarray))
        return asarray(array, **options)

    monkeypatch.setattr(xp, "asarray", recorded)
    before = len(pickle.dumps(model))
    first = model.transform(rows)
    n_arrays = len(learned)
    assert n_arrays == hasattr(model, "components_") + hasattr(model, "bias_")
    model.transform(rows)
    assert len(learned) == n_arrays
    assert len(pickle.dumps(model)) == before  # nothing of another library is saved
    model.components_ = model.components_[::-1].copy()  # as after a new fit
    assert not np.allclose(np.from_dlpack(model.transform(rows)), np.from_dlpack(first))
    assert len(learned) == n_arrays + 1
    n_estimators = len(_validation._COPIES)
    del model
    gc.collect()
    assert len(_validation._COPIES) < n_estimators


@dispatched
def test_a_pipeline_stays_in_its_library(xp, dispatch):
    expected = make_pipeline(StandardScaler(), LDE(2)).fit(X, y)
    rows = xp.asarray(X)
    with np.errstate(invalid="ignore"):  # scikit-learn's 0 / 0
        scaler = StandardScaler().fit(rows)
    Z = make_pipeline(scaler, expected[-1]).transform(rows)
    assert type(Z) is type(rows)
    np.testing.assert_allclose(np.from_dlpack(Z), expected.transform(X), atol=1e-12)


@dispatched
@pytest.mark.parametrize("quantize", ["int8", "binary"])
def test_codes_are_those_of_numpy(quantize, xp, dispatch):
    model = EmbeddingAdapter(3, max_iter=2, quantize=quantize).fit(X, y)
    with pytest.raises(TypeError, match="does not convert it silently"):
        model.transform(xp.asarray(X))
    np.testing.assert_allclose(np.from_dlpack(model.embed(xp.asarray(X))), model.embed(X))


@every_map
def test_without_dispatch_tensors_are_refused(estimator):
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"X\.numpy\(force=True\).*array_api_dispatch=True"):
        fitted(estimator).transform(torch.asarray(X))


@every_map
def test_where_scikit_learn_renames_its_private_names(estimator, monkeypatch):
    """NumPy's arrays do not need them; who passes others is told."""
    model = fitted(estimator)
    monkeypatch.setattr(_validation, "get_config", lambda: {"array_api_dispatch": True})
    monkeypatch.delattr("sklearn.utils._array_api.get_namespace_and_device")
    for rows in (X, X.tolist(), csr_array(X)):
        assert model.transform(rows).shape[0] == len(X)
    foreign = type("Array", (), {"__dlpack__": None})()
    with pytest.raises(ImportError, match=r"`array_api_dispatch` of scikit-learn .*: turn it off"):
        model.transform(foreign)


@pytest.mark.long
@pytest.mark.skipif(DISPATCHES, reason="runs the others, which run now")
def test_all_of_these_with_dispatch():
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
