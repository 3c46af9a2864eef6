"""The parameter `shrinkage` of the methods that divide by a within-class scatter, and the amount
that "auto" takes.
"""

from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from nearkin import LDE, LFDA, MFA, NMMP, RCA
from nearkin.estimators import TableRows
from nearkin.evaluation import all_methods, compare
from nearkin.graphs import laplacian
from nearkin.neighbors import EXACT
from nearkin.spectral import shrinkage_by_discrepancy, shrunk
from nearkin.testing import assert_same_subspace

RATIO = partial(NMMP, criterion="ratio_trace")
METHODS = [NMMP, RATIO, LDE, MFA, LFDA, RCA]
of_each = pytest.mark.parametrize(
    "method", METHODS, ids=["NMMP", "NMMP ratio trace", "LDE", "MFA", "LFDA", "RCA"]
)


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def wide():
    """40 rows of four classes with 90 features, of which three factors determine most."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 4
    return rng.normal(size=(40, 3)) @ rng.normal(size=(3, 90)) + 0.3 * rng.normal(
        size=(40, 90)
    ) + y[:, None], y


class TestAmount:
    """Of S = X'LX, from the moments of a weighted sum of Wishart matrices."""

    def test_moments(self):
        """The expected squared error, and its unbiased estimate, against the mean of many draws."""
        rng = np.random.default_rng(0)
        n, r = 12, 4
        A = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.4)
        L = laplacian(csr_array(np.triu(A, 1) + np.triu(A, 1).T)).toarray()
        sigma = np.diag([3.0, 1.0, 0.5, 0.1])
        X = rng.normal(size=(20_000, n, r)) * np.sqrt(np.diag(sigma))
        C = np.einsum("tia,ij,tjb->tab", X, L, X) / np.trace(L)
        nu = np.trace(L) ** 2 / np.trace(L @ L)
        a, b = np.trace(sigma @ sigma), np.trace(sigma) ** 2
        np.testing.assert_allclose(C.mean(axis=0), sigma, atol=0.03)
        assert np.square(C - sigma).sum(axis=(1, 2)).mean() == pytest.approx((a + b) / nu, rel=0.03)
        assert np.square(C).sum(axis=(1, 2)).mean() == pytest.approx(
            (1 + 1 / nu) * a + b / nu, rel=0.03
        )
        assert np.square(np.trace(C, axis1=1, axis2=2)).mean() == pytest.approx(
            b + 2 * a / nu, rel=0.03
        )

    @pytest.mark.parametrize(("n", "r"), [(150, 5), (150, 60), (400, 20)])
    def test_its_square_estimates_the_amount_of_least_squared_error(self, n, r):
        """Ledoit and Wolf's, found here by knowing the truth; below the bound of a half."""
        rng = np.random.default_rng(0)
        sigma = np.diag(np.logspace(-2, 1, r))
        squares, away, along = [], 0.0, 0.0
        for _ in range(400):
            X = rng.normal(size=(n, r)) * np.sqrt(np.diag(sigma))
            C = np.cov(X.T)
            toward = np.trace(C) / r * np.eye(r) - C
            away += np.vdot(toward, toward)
            along += (
                np.square(C - sigma).sum() - np.trace(C - sigma) ** 2 / r
            )  # in the mean that of sigma - C
            squares.append(shrinkage_by_discrepancy(C, r, n - 1) ** 2)
        # which minimizes E ||C + s toward - sigma||^2
        assert np.mean(squares) == pytest.approx(along / away, rel=0.08)

    def test_neither_unit_nor_rotation_changes_it_and_more_rows_lower_it(self):
        S = np.diag(np.logspace(-3, 1, 8))
        Q = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
        amounts = [shrinkage_by_discrepancy(S, 8, nu) for nu in (20, 30, 50, 1000, 1e8)]
        assert (np.diff(amounts) < 0).all()
        assert amounts[-1] < 1e-3
        for unit in (1e-150, 1.0, 1e150):
            assert shrinkage_by_discrepancy(unit * Q @ S @ Q.T, 8, 50) == pytest.approx(amounts[2])

    @pytest.mark.parametrize(
        ("S", "nu"), [(np.eye(3), 50), (np.zeros((3, 3)), 0), (np.diag([3.0, 1, 0]), 1)]
    )
    def test_where_nothing_is_known(self, S, nu):
        assert shrinkage_by_discrepancy(S, 3, nu) == 0.5

    def test_the_trace_and_the_eigenvectors_stay(self):
        T = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 4)))[0]
        S = (T * [4.0, 3, 2, 0]) @ T.T
        np.testing.assert_allclose(
            shrunk(S, T, 0.5), (T * [3.125, 2.625, 2.125, 1.125]) @ T.T, atol=1e-12
        )


class TestCompared:
    """`compare` lets inner folds choose between the paper's form and a half, for every method with
    the parameter.
    """

    def test_every_setting_is_tried_both_ways(self):
        methods = [
            method
            for method in all_methods()
            if hasattr(method.estimator, "shrinkage") and method.name != "LDA"
        ]
        names = {method.name for method in methods}
        assert names == {"DMLMJ", "LDE", "LFDA", "MFA", "NMMP", "NMMP ratio trace", "RCA"}
        for method in methods:
            settings = [dict(setting) for setting in method.settings(30)]
            amounts = [setting.pop("shrinkage") for setting in settings]
            assert (
                amounts[0] == method.estimator.shrinkage == 0.5
            )  # of equals the first is taken: the default
            halves = [
                setting for setting, amount in zip(settings, amounts, strict=True) if amount == 0.5
            ]
            papers = [
                setting for setting, amount in zip(settings, amounts, strict=True) if amount is None
            ]
            assert halves == papers
            assert len(halves) + len(papers) == len(settings)

    @pytest.mark.parametrize(("n", "n_noise", "expected"), [(600, 1, None), (40, 25, 0.5)])
    def test_the_rows_choose(self, n, n_noise, expected):
        """Two features differ by little, and only where they are the same do classes mix: many rows
        show that.

        Among many features of noise, few rows have directions that seem to vary as little.
        """
        rng = np.random.default_rng(0)
        y = np.arange(n) % 2
        common = 10 * rng.normal(size=n)
        noise = rng.normal(size=(n, n_noise))
        if expected is None:
            X = np.column_stack([common, common + 0.2 * y + 0.05 * rng.normal(size=n), noise])
        else:
            X = np.column_stack([common / 10 + 2.5 * y, noise])
        method = next(method for method in all_methods() if method.name == "RCA")
        comparison = compare(
            X, y, methods=[method], references=(), n_splits=3, n_repeats=1, refit=False
        )
        (result,) = (result for result in comparison.results if result.name == "RCA")
        assert [params["shrinkage"] for params in result.params].count(expected) >= 2


def test_degrees_of_freedom():
    """All pairs of a class weigh alike: n - c. Fewer edges, fewer degrees."""
    X, y = wine()
    rows = TableRows(X, y, EXACT)
    n_c = np.bincount(y)
    of_graphs = [rows.degrees_of_freedom(rows.mutual_knn("same", k)) for k in (3, 10, 30, 200)]
    assert (np.diff(of_graphs) > 0).all()
    assert of_graphs[-1] == pytest.approx(np.sum(n_c * (n_c - 1)) ** 2 / np.sum(n_c**2 * (n_c - 1)))
    W = rows.union_knn("same", 4, weights="heat")
    L = laplacian(W).toarray()
    assert rows.degrees_of_freedom(W) == pytest.approx(np.trace(L) ** 2 / np.trace(L @ L))


@of_each
class TestEveryMethod:
    def test_zero_is_the_papers(self, method):
        X, y = wine()
        zero, paper = method(3, shrinkage=0.0).fit(X, y), method(3, shrinkage=None).fit(X, y)
        np.testing.assert_array_equal(zero.components_, paper.components_)
        assert zero.shrinkage_ == paper.shrinkage_ == 0

    def test_one_leaves_the_directions_of_most_scatter_between_classes(self, method):
        X, y = wine()
        rows = TableRows(X, y, EXACT)
        if method is RCA:
            expected = PCA(3).fit(X).components_
        else:
            n_b = method().n_neighbors_between if hasattr(method(), "n_neighbors_between") else None
            S_b = {
                LDE: lambda: rows.scatter(rows.union_knn("other", n_b, weights="heat")),
                MFA: lambda: rows.scatter(rows.closest_pairs(100)),
                LFDA: lambda: rows.local_fisher_scatters(7)[1],
            }.get(method, lambda: rows.scatter(rows.mutual_knn("other", n_b)))()
            expected = np.linalg.eigh(S_b)[1][:, :-4:-1].T
        model = method(3, shrinkage=1.0).fit(X, y)
        assert model.shrinkage_ == 1
        assert_same_subspace(model.components_, expected)

    def test_auto_ignores_unit_and_rotation_also_for_wide_and_sparse_rows(self, method):
        for X, y in (wine(), wide()):
            Q = np.linalg.qr(np.random.default_rng(0).normal(size=2 * X.shape[1:]))[0]
            amounts = [
                method(2, shrinkage="auto").fit(Z, y).shrinkage_
                for Z in (X, csr_array(X), 1e3 * X @ Q, X - 5)
            ]
            assert 0 < amounts[0] < 1
            np.testing.assert_allclose(amounts, amounts[0], rtol=1e-6)

    def test_features_that_repeat_others_or_do_not_vary_change_nothing(self, method):
        """The identity is that of the span."""
        X, y = wide()
        X = X[:, :12]
        repeated = np.hstack([X, X]) / np.sqrt(2)
        auto = partial(method, 3, shrinkage="auto")
        model, same = auto().fit(X, y), auto().fit(np.hstack([repeated, np.full((40, 2), 0.1)]), y)
        assert model.shrinkage_ == pytest.approx(same.shrinkage_)
        M = model.get_mahalanobis_matrix()
        np.testing.assert_allclose(
            same.get_mahalanobis_matrix()[:12, :12], M / 2, atol=1e-8 * M.max()
        )
        np.testing.assert_allclose(same.components_[:, 24:], 0, atol=1e-12 * np.sqrt(M.max()))

    def test_noise_does_not_hide_what_separates(self, method):
        """One feature scatters little within classes, and 26 are noise."""
        rng = np.random.default_rng(0)
        y = np.arange(60) % 2
        X = scale(np.column_stack([y + 0.05 * rng.normal(size=60), rng.normal(size=(60, 26))]))
        for shrinkage in (0.5, "auto"):
            first = method(1, shrinkage=shrinkage).fit(X, y).components_[0]
            assert abs(first[0]) > 3 * np.abs(first[1:]).max()

    def test_tiny_classes(self, method):
        """All rows but two are alone in their class: one degree of freedom."""
        X = np.random.default_rng(0).normal(size=(20, 4))
        model = method(2, shrinkage="auto").fit(X, np.append(0, np.arange(19)))
        assert model.shrinkage_ == 0.5
        assert np.isfinite(model.components_).all()

    @pytest.mark.parametrize(
        ("value", "error", "message"),
        [
            (
                1.5,
                ValueError,
                r"shrinkage must be 'auto', None or a number between 0 and 1, got 1\.5",
            ),
            (
                "ledoit",
                ValueError,
                "shrinkage must be 'auto', None or a number between 0 and 1, got 'ledoit'",
            ),
            (-0.1, ValueError, r"shrinkage must be a finite number of at least 0, got -0\.1"),
            ([0.1], TypeError, "shrinkage must be a number"),
        ],
    )
    def test_bad_values(self, method, value, error, message):
        with pytest.raises(error, match=message):
            method(shrinkage=value).fit(*wine())
