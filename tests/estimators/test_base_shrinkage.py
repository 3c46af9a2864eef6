"""The parameter `shrinkage` of the methods that divide by a within-class scatter."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import scale

from nearkin import LDE, LFDA, MFA, NMMP, RCA
from nearkin.comparison import all_methods, compare
from nearkin.estimators import Rows
from nearkin.neighbors import EXACT
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
            # of equals the first is taken: the default
            assert amounts[0] == method.estimator.shrinkage == 0.5
            halves = [
                setting for setting, amount in zip(settings, amounts, strict=True) if amount == 0.5
            ]
            papers = [
                setting for setting, amount in zip(settings, amounts, strict=True) if amount is None
            ]
            assert halves == papers
            assert len(halves) + len(papers) == len(settings)

    @pytest.mark.slow_after(1)
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


@of_each
class TestEveryMethod:
    def test_zero_is_the_papers(self, method):
        X, y = wine()
        zero, paper = method(3, shrinkage=0.0).fit(X, y), method(3, shrinkage=None).fit(X, y)
        np.testing.assert_array_equal(zero.components_, paper.components_)
        assert zero.shrinkage_ == paper.shrinkage_ == 0

    def test_one_leaves_the_directions_of_most_scatter_between_classes(self, method):
        X, y = wine()
        rows = Rows(X, y, EXACT)
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

    def test_features_that_repeat_others_or_do_not_vary_change_nothing(self, method):
        """The identity is that of the span."""
        X, y = wide()
        X = X[:, :12]
        repeated = np.hstack([X, X]) / np.sqrt(2)
        model = method(3).fit(X, y)
        same = method(3).fit(np.hstack([repeated, np.full((40, 2), 0.1)]), y)
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
        first = method(1).fit(X, y).components_[0]
        assert abs(first[0]) > 3 * np.abs(first[1:]).max()

    def test_tiny_classes(self, method):
        """All rows but two are alone in their class."""
        X = np.random.default_rng(0).normal(size=(20, 4))
        model = method(2).fit(X, np.append(0, np.arange(19)))
        assert model.shrinkage_ == 0.5
        assert np.isfinite(model.components_).all()

    @pytest.mark.parametrize(
        ("value", "error", "message"),
        [
            (
                1.5,
                ValueError,
                r"shrinkage must be None or a number between 0 and 1, got 1\.5",
            ),
            (
                "auto",
                ValueError,
                "got 'auto': choose between None and 0.5 by inner folds, e.g. with GridSearchCV",
            ),
            (-0.1, ValueError, r"shrinkage must be a finite number of at least 0, got -0\.1"),
            ([0.1], TypeError, "shrinkage must be a number"),
        ],
    )
    def test_bad_values(self, method, value, error, message):
        with pytest.raises(error, match=message):
            method(shrinkage=value).fit(*wine())
