import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris

from nearkin import scatter as module
from nearkin.graphs import heat_kernel, laplacian, union
from nearkin.neighbors import nearest, nearest_same_class
from nearkin.scatter import (
    RowSpace,
    between_scatter,
    locally_scaled_scatters,
    row_space,
    scatter,
    scatter_operator,
    second_moment,
    total_scatter,
    within_scatter,
)


def by_definition(X, W):
    S = np.zeros((X.shape[1], X.shape[1]))
    for i, j in zip(*W.nonzero(), strict=True):
        S += 0.5 * W[i, j] * np.outer(X[i] - X[j], X[i] - X[j])
    return S


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("block", [1, 7, 2**21])
def test_scatter_is_the_sum_over_edges(X, container, block, monkeypatch):
    rows = module.row_blocks
    monkeypatch.setattr(module, "row_blocks", lambda n, p: rows(n, p, block))
    W = union(heat_kernel(nearest(X, 3)))
    S = scatter(container(X), laplacian(W))
    np.testing.assert_allclose(S, by_definition(X, W))
    np.testing.assert_array_equal(S, S.T)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_operator_is_the_matrix(X, container):
    L = laplacian(union(heat_kernel(nearest(X, 3))))
    A = scatter_operator(container(X), L)
    np.testing.assert_allclose(A @ np.eye(4), scatter(X, L))
    np.testing.assert_allclose(A @ np.ones(4), scatter(X, L) @ np.ones(4))


def test_a_large_common_offset_cancels_nothing(X):
    L = laplacian(union(heat_kernel(nearest(X, 3))))
    far = X + 1e8
    np.testing.assert_allclose(scatter(far, L), scatter(far - 1e8, L), rtol=1e-7)
    np.testing.assert_allclose(total_scatter(far), total_scatter(far - 1e8), rtol=1e-7)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_an_offset_of_one_feature_cancels_little_in_sparse_rows(container):
    X = np.random.default_rng(0).normal(size=(60, 30)) * (
        np.random.default_rng(1).random((60, 30)) < 0.03
    )
    X[:, 0] = np.random.default_rng(2).normal(size=60)
    L = laplacian(union(heat_kernel(nearest(X, 3))))
    far = X.copy()
    far[:, 0] += 1e6
    np.testing.assert_allclose(scatter(container(far), L), scatter(X, L), atol=1e-7)
    np.testing.assert_allclose(total_scatter(container(far)), total_scatter(X), atol=1e-7)


def test_a_distance_between_components_cancels_nothing(X):
    """A same-class graph has no edge between classes, however far apart these are."""
    y = np.arange(30) % 3
    L = laplacian(union(heat_kernel(nearest_same_class(X, y, 3))))
    far = X + 1e8 * np.outer(y, np.ones(4))
    np.testing.assert_allclose(scatter(far, L), scatter(X, L), rtol=1e-6)


def test_a_feature_that_varies_along_no_edge_is_exactly_zero(X):
    W = union(heat_kernel(nearest(X[1:], 3))).tocoo()
    W = csr_array((W.data, (W.row + 1, W.col + 1)), shape=(30, 30))  # row 0 is loose
    rare = np.hstack([X, np.eye(30)[:, :1] * 1e3, np.full((30, 1), 0.1)])
    S = scatter(rare, laplacian(W))
    assert not S[4:].any()
    np.testing.assert_allclose(S[:4, :4], scatter(X, laplacian(W)))


def test_signed_ties_that_cancel_in_a_feature_leave_its_products_with_others():
    X = np.array([[0.0, 0.0], [1.0, 1.0], [1.0, -1.0], [2.0, 0.0]])
    F = csr_array([[0.0, 1, -1, 0], [1, 0, 0, -1], [-1, 0, 0, 1], [0, -1, 1, 0]])
    np.testing.assert_allclose(scatter(X, laplacian(F)), by_definition(X, F.toarray()))
    assert scatter(X, laplacian(F))[0, 1] == 4


def test_float32_rows_are_accumulated_in_float64(X):
    L = laplacian(union(heat_kernel(nearest(X, 3))))
    single = X.astype(np.float32)
    np.testing.assert_allclose(
        scatter(single, L), scatter(single.astype(np.float64), L), rtol=1e-12
    )


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_total_scatter_is_the_scatter_of_the_graph_that_ties_everybody(X, container):
    w = np.random.default_rng(1).random(30)
    W = csr_array(np.outer(w, w) / w.sum())
    np.testing.assert_allclose(total_scatter(container(X), w), by_definition(X, W))
    np.testing.assert_allclose(total_scatter(container(X)), 30 * np.cov(X.T, bias=True))


def test_rows_without_weight_leave_no_trace(X):
    """A loose row of a heat graph: what only it has is exactly zero, and not rounding to be divided
    by.
    """
    rare = np.hstack([X, np.eye(30)[:, :1] * 1e3, np.full((30, 1), 0.1)])
    w = np.r_[0.0, np.random.default_rng(1).random(29)]
    S = total_scatter(rare, w)
    assert not S[4:].any()
    np.testing.assert_allclose(S[:4, :4], total_scatter(X[1:], w[1:]))


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_second_moment_is_about_the_origin(X, container):
    w = np.random.default_rng(1).random(30)
    expected = sum(weight * np.outer(x, x) for weight, x in zip(w, X + 3, strict=True))
    np.testing.assert_allclose(second_moment(container(X + 3), w), expected)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_total_is_within_plus_between(container):
    X, y = load_iris(return_X_y=True)
    within = sum(50 * np.cov(X[y == c].T, bias=True) for c in range(3))
    np.testing.assert_allclose(within_scatter(container(X), y), within, atol=1e-9)
    np.testing.assert_allclose(
        total_scatter(X), within_scatter(X, y) + between_scatter(container(X), y), atol=1e-9
    )


class TestRowSpace:
    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_wide_rows_keep_their_distances_and_come_back(self, container):
        X = np.random.default_rng(0).normal(size=(12, 50))
        rows = row_space(container(X))
        assert rows.coordinates.shape == (12, 11)
        np.testing.assert_allclose(rows.basis @ rows.basis.T, np.eye(11), atol=1e-12)
        np.testing.assert_allclose(rows.coordinates @ rows.basis, X - X.mean(axis=0), atol=1e-12)

    def test_tall_rows_are_left_alone(self, X):
        rows = row_space(X)
        assert rows.coordinates is X
        assert rows.expand is None

    def test_far_from_the_origin(self):
        X = np.random.default_rng(0).normal(size=(60, 300))
        assert row_space(X + 1e6).coordinates.shape == (60, 59)

    def test_a_sparse_matrix_that_is_not_is_made_dense(self):
        X = np.random.default_rng(0).normal(size=(30, 4))
        assert isinstance(row_space(csr_array(X)).coordinates, np.ndarray)
        assert not isinstance(row_space(csr_array(np.eye(30))).coordinates, np.ndarray)

    def test_rank(self):
        X = np.random.default_rng(0).normal(size=(12, 3)) @ np.random.default_rng(1).normal(
            size=(3, 50)
        )
        assert row_space(X).coordinates.shape == (12, 3)

    def test_small_directions_are_not_lost_as_a_gram_matrix_would(self):
        X = np.random.default_rng(0).normal(size=(5, 20)) * np.logspace(0, -9, 20)
        assert row_space(X).coordinates.shape[1] == 4

    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_the_span_of_the_rows_as_they_are(self, container):
        X = np.random.default_rng(0).normal(size=(12, 50)) + 2
        kept = X.copy()
        rows = row_space(container(X), centred=False)
        assert rows.coordinates.shape == (12, 12)
        np.testing.assert_allclose(rows.coordinates @ rows.basis, X, atol=1e-12)
        np.testing.assert_array_equal(X, kept)

    def test_lift_fixes_signs(self):
        V = np.array([[0.6, -0.8], [-0.8, -0.6]])
        np.testing.assert_array_equal(
            RowSpace(np.eye(2)).back_project(V), [[-0.6, 0.8], [0.8, 0.6]]
        )

    def test_complement_is_orthonormal_to_the_rows(self):
        X = np.random.default_rng(0).normal(size=(6, 20))
        rows = row_space(X)
        outside = rows.complement(15)
        np.testing.assert_allclose(outside @ outside.T, np.eye(15), atol=1e-12)
        np.testing.assert_allclose((X - X.mean(axis=0)) @ outside.T, 0, atol=1e-12)

    def test_a_span_that_does_not_fit_is_refused(self, monkeypatch):
        monkeypatch.setattr("nearkin._memory.available_memory", lambda: 10**6)
        with pytest.raises(
            MemoryError,
            match=r"100 rows with 1000 features needs about 2\.24 MB.*1 MB.*TruncatedSVD",
        ):
            row_space(csr_array((100, 1000)))


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_a_feature_that_is_constant_in_every_class_has_exactly_no_within_scatter(X, container):
    y = np.arange(30) % 3
    shifted = np.hstack([X, np.array([0.1, 1e8, -3e-7])[y][:, None], np.full((30, 1), 0.1)])
    S_w = within_scatter(container(shifted), y)
    assert not S_w[4:].any()
    assert not S_w[:, 4:].any()
    np.testing.assert_allclose(S_w[:4, :4], within_scatter(X, y))


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_within_scatter_with_weights_of_the_classes(X, container):
    y, w = np.arange(30) % 3, np.array([0.0, 0.5, 2.0])
    expected = sum(w[c] * within_scatter(X[y == c], np.zeros(10, dtype=int)) for c in range(3))
    np.testing.assert_allclose(within_scatter(container(X), y, w), expected, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_a_constant_feature_has_exactly_no_between_scatter(X, container):
    """The means of 7, 11 and 12 equal numbers differ in the last digit."""
    y = np.repeat([0, 1, 2], [7, 11, 12])
    constants = np.tile(np.random.default_rng(1).normal(size=20) * np.logspace(-3, 7, 20), (30, 1))
    S_b = between_scatter(container(np.hstack([X, constants])), y)
    assert not S_b[4:].any()
    assert not S_b[:, 4:].any()
    np.testing.assert_allclose(S_b[:4, :4], between_scatter(X, y))


@pytest.mark.parametrize("container", [np.asarray, csr_array])
class TestLocallyScaledScatters:
    y = np.repeat([0, 1, 2], [16, 13, 1])

    @pytest.mark.parametrize("block", [1, 20, 2**21])
    def test_definition(self, X, container, block, monkeypatch):
        rows = module.row_blocks
        monkeypatch.setattr(module, "row_blocks", lambda n, p: rows(n, p, block))
        s = np.random.default_rng(1).uniform(0.5, 2, 30)
        found = list(locally_scaled_scatters(container(X), self.y, s))
        for c, S_c in enumerate(found):
            W = np.zeros((30, 30))
            for i in np.flatnonzero(self.y == c):
                for j in np.flatnonzero(self.y == c):
                    W[i, j] = np.exp(-np.sum((X[i] - X[j]) ** 2) / (s[i] * s[j])) / np.sum(
                        self.y == c
                    )
            np.testing.assert_allclose(S_c, by_definition(X, W), atol=1e-12)
            np.testing.assert_array_equal(S_c, S_c.T)
        assert len(found) == 3

    def test_infinite_scales_give_the_within_scatter(self, X, container):
        S = sum(locally_scaled_scatters(container(X), self.y, np.full(30, np.inf)))
        np.testing.assert_allclose(S, within_scatter(X, self.y), atol=1e-12)

    def test_scales_of_zero_tie_duplicates_only(self, X, container):
        X = np.repeat(X[:15], 2, axis=0)
        for S_c in locally_scaled_scatters(container(X), np.arange(30) % 2, np.zeros(30)):
            np.testing.assert_array_equal(S_c, 0)

    def test_where_the_classes_are_does_not_matter(self, X, container):
        s = np.ones(30)
        far = X + 1e7 * np.outer(self.y, np.ones(4))
        near, moved = (sum(locally_scaled_scatters(container(A), self.y, s)) for A in (X, far))
        np.testing.assert_allclose(moved, near, rtol=1e-6, atol=1e-6)
