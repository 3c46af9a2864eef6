"""An infinite penalty: one model's embeddings turned into another's."""

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize, minimize_scalar
from scipy.sparse import csr_array
from scipy.stats import ortho_group

from nearkin import Migration
from nearkin._blocks import unit_rows


def turned(X, Y):
    """Return the map, with its scale."""
    model = Migration(reverse=0, alpha=np.inf).fit(X, Y)
    model.scale_ = np.linalg.norm(model.components_, 2)
    return model


def rotation(p, seed=0):
    return ortho_group(p, seed=seed).rvs()


def embeddings(n=60, p=6, seed=0):
    """Return rows about a mean that is not 0, as those of language models are."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)) * np.arange(1, p + 1) + rng.normal(size=p)


def noisy(m, p=6, n=60, seed=0):
    """Return new embeddings (n, p) and old ones (n, m) that a linear map and noise made of them."""
    rng = np.random.default_rng(seed)
    X = embeddings(n, p, seed)
    return X, X @ rng.normal(size=(p, m)) + rng.normal(size=(n, m))


def centred(X):
    X = unit_rows(X)
    return X - X.mean(axis=0)


class TestRecovers:
    @pytest.mark.parametrize("p", [1, 2, 6, 20])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_a_rotation(self, p, dtype):
        old, Q = embeddings(p=p).astype(dtype), rotation(p) if p > 1 else -np.eye(1)
        new = (old @ Q).astype(dtype)
        model = turned(new[:40], old[:40])
        atol = 1e-5 if dtype == np.float32 else 1e-9
        np.testing.assert_allclose(model.components_, Q, atol=atol)
        np.testing.assert_allclose(model.transform(new[40:]), unit_rows(old[40:]), atol=atol)
        assert model.transform(new).dtype == model.components_.dtype == dtype

    def test_a_rotation_to_more_dimensions(self):
        new, Q = embeddings(p=4), rotation(7)[:, :4]
        old = new @ Q.T
        model = turned(new[:40], old[:40])
        np.testing.assert_allclose(model.components_, Q, atol=1e-9)
        np.testing.assert_allclose(model.transform(new[40:]), unit_rows(old[40:]), atol=1e-9)

    def test_dimensions_that_the_old_model_did_not_use(self):
        """Fewer dimensions: what the new model has besides is dropped, if it is the same in all
        rows.
        """
        old, Q = unit_rows(embeddings(p=4)), rotation(6)
        new = np.hstack([old, np.zeros((60, 2))]) @ Q
        model = turned(new[:40], old[:40])
        np.testing.assert_allclose(model.components_, Q[:4], atol=1e-9)
        np.testing.assert_allclose(model.transform(new[40:]), old[40:], atol=1e-9)

    def test_the_same_model(self):
        X = embeddings()
        np.testing.assert_allclose(turned(X, X).components_, np.eye(6), atol=1e-9)

    def test_a_shift_of_the_rows_of_unit_length(self):
        """Two models whose texts all lie in one narrow direction, each in its own: what differs is
        turned.
        """
        rng = np.random.default_rng(0)
        offset, small = np.eye(6)[0], 0.01 * rng.normal(size=(60, 6)) * np.arange(6)
        new, old = small @ rotation(6).T + offset @ rotation(6, 1).T, small + offset
        Z = turned(new[:40], old[:40]).transform(new[40:])
        errors = [
            1 - np.sum(V * unit_rows(old[40:]), axis=1).mean() for V in (Z, unit_rows(offset[None]))
        ]
        assert errors[0] < 0.05 * errors[1]

    @pytest.mark.parametrize("offset", [1, 6])
    def test_a_mean_that_is_far_away(self, offset):
        """Rows of unit length of a model with a large mean spread little; they are spread as those
        of the other are.
        """
        rng = np.random.default_rng(0)
        old, Q = rng.normal(size=(300, 12)), rotation(12)
        new = old @ Q + offset * rng.normal(size=12)
        Z = turned(new[:100], old[:100]).transform(new[100:])
        nearest = np.argmax(Z @ unit_rows(old[100:]).T, axis=1)
        assert np.mean(nearest == np.arange(200)) > 0.95


class TestOptimality:
    @pytest.mark.parametrize("m", [6, 8, 12])
    def test_no_other_rotation_comes_nearer(self, m):
        X, Y = noisy(m)
        model = turned(X, Y)
        R, s = model.components_ / model.scale_, model.scale_

        def distance(R, s=s):
            return np.linalg.norm(centred(Y) - s * centred(X) @ R.T)

        assert distance(R) < min(distance(R, 0.99 * s), distance(R, 1.01 * s))

        np.testing.assert_allclose(R.T @ R, np.eye(6), atol=1e-12)
        for seed in range(30):
            Q = rotation(m, seed)
            assert distance(R) < distance(Q[:, :6])
            near = np.linalg.qr(R + 0.01 * Q[:, :6])[0]
            near *= np.sign(np.sum(near * R, axis=0))
            assert distance(R) < distance(near)

    @pytest.mark.parametrize("m", [1, 3, 5])
    def test_of_fewer_dimensions_it_is_that_of_the_old_rows_filled_up_with_0(self, m):
        X, Y = noisy(m)
        model = turned(X, Y)
        R = model.components_ / model.scale_
        np.testing.assert_allclose(R @ R.T, np.eye(m), atol=1e-12)
        filled = turned(X, np.hstack([Y, np.zeros((60, 6 - m))]))
        np.testing.assert_allclose(filled.components_[:m] / filled.scale_, R, atol=1e-9)

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("m", [1, 2, 3, 4, 5])
    def test_a_numerical_optimum_is_no_better(self, m):
        """Over all rotations and scales; to fewer dimensions with Y filled up with 0, as the
        docstring says.
        """
        p = 3
        X, Y = noisy(m, p)
        X, Y = centred(X), centred(Y)
        model = turned(*noisy(m, p))
        R, d = model.components_ / model.scale_, max(m, p)
        filled = np.hstack([Y, np.zeros((60, d - m))])
        rows, columns = np.triu_indices(d, 1)

        def rotated(parameters):
            skew = np.zeros((d, d))
            skew[rows, columns] = parameters
            return expm(skew - skew.T)

        def distance(parameters, reflection):
            Q = (rotated(parameters) * reflection)[:, :p]
            image = X @ Q.T
            # below 0: of the rotation with the other sign
            scale = np.sum(filled * image) / np.sum(image**2)
            return np.sum((filled - scale * image) ** 2)

        least = min(
            minimize(distance, start, args=(reflection,)).fun
            for start in np.random.default_rng(0).normal(size=(3, len(rows)))
            for reflection in (np.ones(d), np.r_[-1.0, np.ones(d - 1)])
        )
        singular = np.linalg.svd(Y.T @ X, compute_uv=False)
        ours = np.sum(Y**2) - singular.sum() ** 2 / np.sum(X**2)
        assert np.sum(R * (Y.T @ X)) == pytest.approx(singular.sum())
        assert ours == pytest.approx(least, rel=1e-6)
        if m >= p:
            assert np.sum((Y - model.scale_ * X @ R.T) ** 2) == pytest.approx(least, rel=1e-6)

    @pytest.mark.parametrize("m", [1, 3, 6, 8])
    def test_the_scale_is_the_best_for_the_rotation(self, m):
        X, Y = noisy(m)
        model = turned(X, Y)
        image = centred(X) @ (model.components_ / model.scale_).T

        def distance(scale):
            return np.sum((centred(Y) - scale * image) ** 2)

        assert model.scale_ == pytest.approx(minimize_scalar(distance).x, rel=1e-6)

    def test_the_product_is_symmetric_and_positive(self):
        """R (X - x)'(Y - y), the condition of first order, and of second."""
        X, Y = noisy(6)
        S = turned(X, Y).components_ @ centred(X).T @ centred(Y)
        np.testing.assert_allclose(S, S.T, atol=1e-9)
        assert np.linalg.eigvalsh(S).min() > 0


class TestInvariances:
    @pytest.mark.parametrize("m", [3, 6, 9])
    def test_lengths_and_order_of_rows_and_their_type_do_not_count(self, m):
        X, Y = noisy(m)
        Z = turned(X, Y).transform(X)
        rng = np.random.default_rng(0)
        a, b, order = (
            rng.uniform(0.1, 10, (60, 1)),
            rng.uniform(0.1, 10, (60, 1)),
            rng.permutation(60),
        )
        np.testing.assert_allclose(turned(X * a, Y * b).transform(X), Z, atol=1e-9)
        np.testing.assert_allclose(turned(X[order], Y[order]).transform(X), Z, atol=1e-9)
        np.testing.assert_allclose(turned(csr_array(X), Y).transform(csr_array(X)), Z, atol=1e-9)
        single = turned(X.astype(np.float32), Y).transform(X.astype(np.float32))
        np.testing.assert_allclose(single, Z, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, rtol=1e-12)

    @pytest.mark.parametrize("m", [3, 6, 9])
    def test_turned_spaces_turn_the_map(self, m):
        X, Y = noisy(m)
        P, Q = rotation(6, 1), rotation(m, 2)
        R = turned(X, Y).components_
        np.testing.assert_allclose(turned(X @ P.T, Y @ Q.T).components_, Q @ R @ P.T, atol=1e-9)

    def test_the_mean_goes_to_the_mean(self):
        X, Y = noisy(6)
        model = turned(X, Y)
        x, y = unit_rows(X).mean(axis=0), unit_rows(Y).mean(axis=0)
        np.testing.assert_allclose(model.components_ @ x + model.bias_, y, atol=1e-12)


class TestFewRows:
    @pytest.mark.parametrize(("n", "p", "m"), [(2, 6, 6), (2, 3, 8), (5, 20, 20), (5, 20, 12)])
    def test_fewer_than_dimensions(self, n, p, m):
        X, Y = noisy(m, p, n)
        model = turned(X, Y)
        R = model.components_ / model.scale_
        np.testing.assert_allclose(R @ R.T if m <= p else R.T @ R, np.eye(min(m, p)), atol=1e-9)
        assert np.isfinite(model.transform(X)).all()

    def test_determine_the_directions_in_which_they_vary(self):
        old, Q = embeddings(8, 20), rotation(20)
        new = old @ Q
        shares = np.random.default_rng(0).dirichlet(np.ones(8), 5)
        between = shares @ unit_rows(old)  # within what the rows span about their mean
        model = turned(new, old)
        found = (between @ Q) @ model.components_.T + model.bias_
        np.testing.assert_allclose(found, between, atol=1e-9)

    @pytest.mark.parametrize(
        ("X", "y", "message"),
        [
            (np.eye(4), None, "requires y to be passed.*give the old embeddings"),
            (np.eye(4), np.eye(4)[:3], r"inconsistent numbers of samples: \[4, 3\]"),
            (np.eye(4), np.full((4, 2), np.nan), "Input y contains NaN"),
            (np.full((4, 2), np.inf), np.eye(4), "Input X contains infinity"),
            (np.eye(4)[:1], np.eye(4)[:1], "minimum of 2"),
            (np.ones((4, 3)), np.eye(4), "X does not vary"),
            (
                np.outer([1, 2, 3, 7], [0.1, 0.7, 0.3]),
                np.eye(4),
                r"X does not vary in direction \(n_features = 3\)",
            ),
            (
                np.eye(4),
                np.outer([1, 2, 3, 7], [0.1, 0.7, 0.3]),
                r"y does not vary in direction \(n_features = 3\)",
            ),
        ],
    )
    def test_what_cannot_be_fitted(self, X, y, message):
        with pytest.raises(ValueError, match=message):
            turned(X, y)

    def test_a_row_of_another_width(self):
        with pytest.raises(ValueError, match="X has 3 features, but Migration is expecting 4"):
            turned(np.eye(4), np.eye(4)).transform(np.eye(3))
