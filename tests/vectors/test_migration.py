"""Migration: optimality, limits and invariances of the maps, and how one is chosen."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group

from nearkin import Migration
from nearkin._blocks import unit_rows
from nearkin.vectors import migration
from nearkin.vectors.migration import Moments, Sample

FIXED = [
    {"reverse": 0, "alpha": 0},
    {"reverse": 0, "alpha": 0.3},
    {"reverse": 0.4, "alpha": 0.1},
    {"reverse": 1, "alpha": 0.2},
    {"reverse": 0.5, "alpha": np.inf},
]


def rotation(p, seed=0):
    return ortho_group(p, seed=seed).rvs()


def pairs(n=90, p=6, m=5, noise=1.0, seed=0):
    """Return rows (n, p) of one model, (n, m) of another, and classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    X = rng.normal(size=(n, p)) * np.arange(1, p + 1) + 3 * rng.normal(size=(4, p))[y]
    return X, X @ rng.normal(size=(p, m)) + noise * rng.normal(size=(n, m)), y


def centred(X):
    X = unit_rows(X)
    return X - X.mean(axis=0)


def objective(A, X, Y, reverse, alpha):
    """Return what a map minimizes, as its docstring says."""
    S_x, S_y = X.T @ X, Y.T @ Y
    of = (1 - reverse) * np.trace(S_x) / len(S_x) + reverse * np.trace(S_y) / len(S_y)
    return (
        (1 - reverse) * np.sum((Y - X @ A.T) ** 2)
        + reverse * np.sum((X - Y @ A) ** 2)
        + alpha * of * np.sum((A - rotated(X, Y)) ** 2)
    )


def rotated(X, Y):
    U, _, Vt = np.linalg.svd(Y.T @ X, full_matrices=False)
    Z = X @ (U @ Vt).T
    return np.sum(Y * Z) / np.sum(Z**2) * U @ Vt


class TestOptimality:
    @pytest.mark.slow_after(2)
    @pytest.mark.parametrize("setting", FIXED[:4])
    @pytest.mark.parametrize("m", [3, 6, 8])
    def test_no_numerical_optimum_is_better(self, setting, m):
        X, Y, _ = pairs(m=m)
        A = Migration(**setting).fit(X, Y).components_
        X, Y = centred(X), centred(Y)

        def value(flat):
            return objective(flat.reshape(A.shape), X, Y, **setting)

        best = minimize(value, np.zeros(A.size), method="L-BFGS-B", options={"maxfun": 10**5})
        assert value(A.ravel()) <= best.fun * (1 + 1e-9)

    def test_least_squares(self):
        X, Y, _ = pairs()
        model = Migration(reverse=0, alpha=0).fit(X, Y)
        U = np.column_stack([unit_rows(X), np.ones(len(X))])
        expected = np.linalg.lstsq(U, unit_rows(Y))[0]
        np.testing.assert_allclose(model.components_, expected[:-1].T, atol=1e-9)
        np.testing.assert_allclose(model.bias_, expected[-1], atol=1e-9)

    def test_the_reverse_is_the_other_regression_read_backwards(self):
        """y'A x is the product of x with what the regression of X on Y predicts of it."""
        X, Y, _ = pairs()
        model = Migration(reverse=1, alpha=0).fit(X, Y)
        predicted = centred(Y) @ np.linalg.lstsq(centred(Y), centred(X))[0]
        np.testing.assert_allclose(centred(Y) @ model.components_, predicted, atol=1e-9)
        np.testing.assert_allclose(model.bias_, 0, atol=1e-12)

    def test_fewer_rows_than_dimensions_have_the_solution_of_least_norm(self):
        X, Y, _ = pairs(n=6, p=12)
        model = Migration(reverse=0, alpha=0).fit(X, Y)
        expected = np.linalg.lstsq(centred(X), centred(Y))[0].T
        np.testing.assert_allclose(model.components_, expected, atol=1e-8)

    def test_the_term_of_labels_is_stationary(self):
        """Y'(Y K X' - P) X + a Y'Y K + b K X'X + a b K = 0."""
        X, Y, y = pairs()
        maps = [
            Migration(reverse=1, alpha=0.1, label_weight=weight).fit(X, Y, labels=y)
            for weight in (0, 1)
        ]
        K = maps[1].components_ - maps[0].components_
        x = unit_rows(X).mean(axis=0)
        np.testing.assert_allclose(maps[1].bias_, -K @ x, atol=1e-12)
        X, Y = centred(X), centred(Y)
        assert np.linalg.norm(X @ K.T) == pytest.approx(np.linalg.norm(X @ maps[0].components_.T))
        P = (y[:, None] == y) / np.bincount(y)[y]
        a, b = (0.03 * np.sum(Z**2) / Z.shape[1] for Z in (X, Y))
        left = (Y.T @ Y + b * np.eye(5)) @ K @ (X.T @ X + a * np.eye(6))
        right = Y.T @ P @ X
        ratio = np.sum(left * right) / np.sum(right**2)
        assert ratio > 0
        np.testing.assert_allclose(left, ratio * right, atol=1e-9 * np.abs(left).max())


class TestLimits:
    @pytest.mark.parametrize("m", [3, 6, 8])
    def test_a_large_penalty_is_nearly_the_rotation(self, m):
        X, Y, _ = pairs(m=m)
        turned = Migration(reverse=0, alpha=np.inf).fit(X, Y)
        near = Migration(reverse=0, alpha=1e9).fit(X, Y)
        np.testing.assert_allclose(near.components_, turned.components_, atol=1e-7)

    @pytest.mark.parametrize("setting", FIXED)
    def test_spaces_that_differ_by_a_rotation_have_one_map(self, setting):
        X, _, _ = pairs()
        X -= unit_rows(X).mean(axis=0)
        Q = rotation(6)
        model = Migration(**setting).fit(X, X @ Q.T)
        np.testing.assert_allclose(model.components_, Q, atol=1e-9)

    def test_without_labels_their_weight_does_not_count(self):
        X, Y, y = pairs()
        settings = {"reverse": 0, "alpha": 0.1}
        one, other = (
            Migration(label_weight=3, **settings).fit(X, Y, labels=labels)
            for labels in (None, np.full(len(y), -1))
        )
        np.testing.assert_array_equal(one.components_, other.components_)
        assert one.label_weight_ == 0


class TestInvariances:
    @pytest.mark.parametrize("setting", [*FIXED, {}, {"side": "document"}])
    def test_rows_may_be_permuted_scaled_and_turned(self, setting):
        X, Y, y = pairs(n=79)
        Z = Migration(**setting).fit(X, Y, labels=y).transform(X)
        rng = np.random.default_rng(0)
        order, lengths = rng.permutation(len(X)), rng.uniform(0.1, 10, (len(X), 1))
        again = Migration(**setting).fit(X[order], (Y * lengths)[order], labels=y[order])
        np.testing.assert_allclose(again.transform(X), Z, atol=1e-9)
        P, Q = rotation(6, 1), rotation(5, 2)
        turned = Migration(**setting).fit(X @ P.T, Y @ Q.T, labels=y)
        np.testing.assert_allclose(turned.transform(X @ P.T), Z @ Q.T, atol=1e-9)

    @pytest.mark.parametrize("setting", FIXED)
    def test_float32_is_float64_to_rounding(self, setting):
        X, Y, _ = pairs()
        exact = Migration(**setting).fit(X, Y).transform(X)
        single = Migration(**setting).fit(X.astype(np.float32), Y.astype(np.float32))
        Z = single.transform(X.astype(np.float32))
        assert Z.dtype == single.components_.dtype == np.float32
        np.testing.assert_allclose(Z, exact, atol=1e-4)

    @pytest.mark.long
    def test_the_same_seed_takes_the_same_setting(self):
        X, Y, y = pairs(n=200)
        a, b = (Migration(random_state=3).fit(X, Y, labels=y) for _ in range(2))
        np.testing.assert_array_equal(a.components_, b.components_)


class TestChoice:
    def test_a_rotation_is_taken_for_one(self):
        X, _, _ = pairs(n=300)
        model = Migration().fit(X, X @ rotation(6).T)
        assert model.alpha_ == np.inf

    def test_a_shear_needs_more_than_a_rotation(self):
        rng = np.random.default_rng(0)
        old = rng.normal(size=(600, 6))
        new = old * [1, 1, 1, 4, 4, 4]
        assert Migration(side="document").fit(old, new).alpha_ < np.inf

    def test_queries_of_a_new_model_take_the_reverse(self):
        """Least squares would put a query where the old model does, and find what that finds."""
        old = np.random.default_rng(0).normal(size=(800, 8))
        new = old * [4, 4, 4, 4, 1, 1, 1, 1]
        assert Migration().fit(new, old).reverse_ > 0
        Q, D = unit_rows(new[400:500]), unit_rows(new[500:])
        own = np.argsort(-Q @ D.T)[:, :10]
        shares = []
        for reverse in (0, 1):
            model = Migration(reverse=reverse, alpha=0.01).fit(new[:400], old[:400])
            found = np.argsort(-model.transform(Q) @ unit_rows(old[500:]).T)[:, :10]
            shares.append(np.mean([np.isin(a, b).mean() for a, b in zip(found, own, strict=True)]))
        assert shares[1] > shares[0] + 0.05

    @pytest.mark.long
    def test_labels_are_used_where_they_help(self):
        rng = np.random.default_rng(0)
        y = np.arange(800) % 5  # fewer than eight: all are seen
        signal = rng.normal(size=(5, 4))[y]
        X, Y = (
            np.hstack([signal + rng.normal(size=(800, 4)), 4 * rng.normal(size=(800, 12))])
            for _ in range(2)
        )
        assert Migration().fit(X, Y, labels=y).label_weight_ > 0

    def test_rows_are_held_out_once(self):
        _, Y, y = pairs(n=101)
        sample = Sample(np.arange(101)[:, None], Y, "query", y)
        parts = sample.held_out(np.random.default_rng(0))
        assert [len(part) for part in parts] == [51, 38, 12]
        assert sorted(np.concatenate([part.X[:, 0] for part in parts])) == list(range(101))

    def test_a_quarter_of_eight_classes_is_hidden(self):
        X, Y, _ = pairs(n=96)
        y = np.arange(96) % 8
        hidden = Sample(X, Y, "query", y).without_classes(np.random.default_rng(0))
        assert len(hidden[1]) == 2
        assert (hidden[0].codes == -1).mean() == 0.25
        few = Sample(X, Y, "query", y % 7).without_classes(np.random.default_rng(0))
        assert (few[0].codes == y % 7).all()

    @pytest.mark.parametrize("seed", range(4))
    def test_a_class_may_have_no_row_to_learn_from(self, seed):
        """The last one is found among held-out rows only, and is neither hidden nor an error."""
        X, Y, _ = pairs(n=100)
        y = np.arange(100) % 8
        y[-2:] = [8, 9]
        Migration(random_state=seed).fit(
            np.vstack([X, X[-2:]]), np.vstack([Y, Y[-2:]]), labels=np.append(y, [8, 9])
        )

    def test_few_rows_take_the_default(self, monkeypatch):
        monkeypatch.setattr(migration, "Search", None)  # nothing is held out
        X, Y, y = pairs(n=79)
        model = Migration().fit(X, Y, labels=y)
        assert (model.reverse_, model.alpha_, model.label_weight_) == (0, 0.1, 0.3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side": "both"}, "side must be one of query, document, got 'both'"),
        ({"alpha": "cv"}, "alpha must be one of auto, got 'cv'"),
        ({"alpha": -1}, "alpha must be a finite number of at least 0, got -1"),
        ({"reverse": 1.5}, "reverse must be at most 1, got 1.5"),
        ({"reverse": np.inf}, "reverse must be a finite number"),
        ({"label_weight": np.nan}, "label_weight must be a finite number"),
    ],
)
def test_settings_that_are_none(settings, message):
    X, Y, _ = pairs()
    with pytest.raises(ValueError, match=message):
        Migration(**settings).fit(X, Y)


def test_rows_that_do_not_fit():
    X, Y, y = pairs()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Migration().fit(X, Y[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Migration().fit(X, Y, labels=y[1:])
    with pytest.raises(ValueError, match="requires y to be passed"):
        Migration().fit(X, None)
    with pytest.raises(ValueError, match="X does not vary"):
        Migration().fit(np.ones((4, 2)), np.eye(4))


def test_moments_do_not_depend_on_blocks(monkeypatch):
    X, Y, y = pairs(n=90)
    sample = Sample(unit_rows(X), unit_rows(Y), "query", y)
    setting = migration.Setting(0.3, 0.2, 0.5)
    whole = Moments.of(sample).solve(setting)
    monkeypatch.setattr(
        migration, "row_blocks", lambda n, p: [slice(i, i + 7) for i in range(0, n, 7)]
    )
    for a, b in zip(whole, Moments.of(sample).solve(setting), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
