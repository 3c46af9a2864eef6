"""Decompositions where LAPACK's faster driver gives up, and where it does not."""

import numpy as np
import pytest
from scipy import linalg as scipy_linalg
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA

from nearkin import LDE, RCA, TDL
from nearkin.estimators.descent_embedding import UnitRows, directions
from nearkin.linalg import LinAlgError, eigh, lstsq, svd
from nearkin.testing import assert_same_subspace

A = np.random.default_rng(0).standard_normal((7, 4)) * np.array([1e-6, 1.0, 1.0, 1e5])


def give_up(monkeypatch, **of_fast):
    """Let the named functions of SciPy fail, but for the slower drivers given."""
    for name, (keyword, slower) in of_fast.items():
        whole = getattr(scipy_linalg, name)

        def partial(*arguments, _whole=whole, _keyword=keyword, _slower=slower, **how):
            if how.get(_keyword) != _slower:
                if how.pop("overwrite_a", False):
                    arguments[0][...] = np.nan
                raise LinAlgError(f"{_whole.__name__} did not converge")
            return _whole(*arguments, **how)

        monkeypatch.setattr(scipy_linalg, name, partial)


@pytest.fixture(params=[False, True], ids=["fast", "gives up"])
def lapack(request, monkeypatch):
    if request.param:
        give_up(
            monkeypatch,
            svd=("lapack_driver", "gesvd"),
            eigh=("driver", "ev"),
            lstsq=("lapack_driver", "gelss"),
        )


@pytest.mark.usefixtures("lapack")
class TestFactors:
    @pytest.mark.parametrize("full_matrices", [False, True])
    @pytest.mark.parametrize("wide", [False, True])
    def test_svd(self, full_matrices, wide):
        M = A.T if wide else A
        U, s, Vt = svd(M, full_matrices=full_matrices)
        assert U.shape == (len(M), len(M) if full_matrices else 4)
        assert (np.diff(s) <= 0).all()
        np.testing.assert_allclose(U[:, :4] * s @ Vt[:4], M, atol=1e-9)
        for Q in (U, Vt.T):
            np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-12)

    @pytest.mark.parametrize("subset", [None, (0, 1), (2, 4), (3, 3)])
    def test_eigh(self, subset):
        S = np.random.default_rng(1).standard_normal((5, 5))
        S += S.T
        first, last = subset or (0, 4)
        values, V = eigh(S, subset_by_index=subset)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(S)[first : last + 1])
        np.testing.assert_allclose(S @ V, V * values, atol=1e-12)
        np.testing.assert_allclose(V.T @ V, np.eye(last - first + 1), atol=1e-12)

    def test_lstsq(self):
        B = np.random.default_rng(2).standard_normal((7, 2))
        unit = np.abs(A).max(axis=0)
        R = A / unit @ lstsq(A / unit, B) - B
        np.testing.assert_allclose(A.T @ R / unit[:, None], 0, atol=1e-12)
        # the shortest
        np.testing.assert_allclose(lstsq(np.ones((1, 2)), np.ones((1, 1))), [[0.5], [0.5]])


@pytest.mark.parametrize(
    "estimator", [RCA(2), LDE(2), TDL(2, reg=1.0)], ids=lambda method: type(method).__name__
)
def test_methods_do_not_give_up(estimator, monkeypatch):
    """Nor with more features than rows, where the rows are first written in their span."""
    X, y = load_wine(return_X_y=True)
    X = X[::2] / X.std(axis=0)
    X, y = np.hstack([X, X**2, np.random.default_rng(0).standard_normal((len(X), 80))]), y[::2]
    expected = estimator.fit(X, y).transform(X)
    give_up(monkeypatch, svd=("lapack_driver", "gesvd"), eigh=("driver", "ev"))
    assert_same_subspace(estimator.fit(X, y).transform(X).T, expected.T, 1e-6)


def test_nor_where_a_descent_begins(monkeypatch):
    """By scikit-learn's decomposition, which has no second driver."""
    X, _ = load_wine(return_X_y=True)
    rows = UnitRows.of(X / X.std(axis=0))
    expected = directions("pca", rows.X, 2)

    def give_up(*_):
        raise LinAlgError("SVD did not converge")

    monkeypatch.setattr(PCA, "fit", give_up)
    assert_same_subspace(directions("pca", rows.X, 2), expected)


def test_what_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="infs or NaNs"):
        svd(np.array([[np.nan, 1.0], [0.0, 1.0]]))
