import os
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.utils import gen_batches

from nearkin.graphs import binary, union
from nearkin.neighbors import nearest
from reproductions.tdl import tangent
from reproductions.tdl.tangent import tangent_distances, tangent_graph

SHAPE = (11, 9)


def blobs(n, seed=0, shape=SHAPE):
    """Return smooth random images, dark at the rim as digits are."""
    rng = np.random.default_rng(seed)
    images = ndimage.gaussian_filter(rng.normal(size=(n, *shape)), (0, 1.2, 1.2))
    return (images * np.outer(np.hanning(shape[0]), np.hanning(shape[1]))).reshape(n, -1)


def smoothed(X, shape=SHAPE):
    return tangent._smoothed(X, shape, X.dtype)


def definition(X, Y, shape=SHAPE):
    """Return min_{a, b} ||x + T_x a - y - T_y b||, one least-squares problem a pair."""
    X, Y = smoothed(X, shape), smoothed(Y, shape)
    T_X, T_Y = tangent._tangents(X, shape), tangent._tangents(Y, shape)
    D = np.empty((len(X), len(Y)))
    for i, j in np.ndindex(D.shape):
        T, r = np.vstack([T_X[i], T_Y[j]]).T, X[i] - Y[j]
        D[i, j] = np.linalg.norm(r - T @ np.linalg.lstsq(T, r, rcond=1e-10)[0])
    return D


def usps():
    folder = os.environ.get("NEARKIN_DATA")
    if not folder:
        pytest.skip("NEARKIN_DATA does not name a folder with usps.npz")
    with np.load(Path(folder) / "usps.npz", allow_pickle=False) as data:
        return data["X"], data["y"], data["split"]


class TestDistances:
    def test_definition(self):
        X, Y = blobs(7), blobs(5, seed=1)
        np.testing.assert_allclose(tangent_distances(X, Y, SHAPE), definition(X, Y), rtol=1e-10)

    def test_symmetric_and_at_most_euclidean(self):
        X, Y = blobs(20), blobs(30, seed=1)
        D = tangent_distances(X, Y, SHAPE)
        np.testing.assert_allclose(D, tangent_distances(Y, X, SHAPE).T, rtol=1e-10)
        assert (cdist(smoothed(X), smoothed(Y)) >= D).all()

    def test_equal_images(self):
        X = blobs(10)
        np.testing.assert_allclose(np.diag(tangent_distances(X, X, SHAPE)), 0, atol=1e-12)
        X = X.astype(np.float32)
        np.testing.assert_allclose(np.diag(tangent_distances(X, X, SHAPE)), 0, atol=1e-7)

    def test_blocks_do_not_matter(self, monkeypatch):
        X, Y = blobs(20), blobs(30, seed=1)
        whole, G = tangent_distances(X, Y, SHAPE), tangent_graph(X, SHAPE, 3)
        monkeypatch.setattr(tangent, "_blocks", lambda n, _: gen_batches(n, 7))
        np.testing.assert_allclose(tangent_distances(X, Y, SHAPE), whole, rtol=1e-12)
        np.testing.assert_allclose(tangent_graph(X, SHAPE, 3).data, G.data, rtol=1e-12)

    def test_float32_is_kept_and_accurate(self):
        X, Y = blobs(20), blobs(30, seed=1)
        D = tangent_distances(X.astype(np.float32), Y.astype(np.float32), SHAPE)
        assert D.dtype == np.float32
        np.testing.assert_allclose(D, tangent_distances(X, Y, SHAPE), rtol=1e-4)

    @pytest.mark.parametrize(
        "change", ["moved", "turned", "enlarged", "stretched", "sheared", "thickened"]
    )
    def test_small_transformations_hardly_count(self, change):
        t, image = 0.1, blobs(1, shape=(28, 28)).reshape(28, 28)
        image = ndimage.gaussian_filter(image, 1.5)
        matrix = {
            "turned": [[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]],
            "enlarged": np.eye(2) / (1 + t),
            "stretched": np.diag([1 + t, 1 / (1 + t)]),
            "sheared": [[1, t], [t, 1]],
        }.get(change, np.eye(2))
        if change == "thickened":
            copy = (
                image + 0.5 * sum(derivative**2 for derivative in np.gradient(image)) / image.max()
            )
        else:
            offset = 13.5 - matrix @ np.full(2, 13.5) + (change == "moved") * np.array([0.5, 0.3])
            copy = ndimage.affine_transform(image, matrix, offset, order=5)
        X, Y = image.reshape(1, -1), copy.reshape(1, -1)
        euclidean = np.linalg.norm(smoothed(X, (28, 28)) - smoothed(Y, (28, 28)))
        assert tangent_distances(X, Y, (28, 28)) < 0.15 * euclidean

    def test_blank_images_have_no_tangents(self):
        blank = np.full((2, 99), [[0.0], [7.3]])
        X = np.vstack([blank, blobs(3)])
        D = tangent_distances(X, X, SHAPE)
        np.testing.assert_allclose(D, definition(X, X), atol=1e-12)
        assert D[0, 1] == pytest.approx(7.3 * np.sqrt(99))

    def test_stripes_have_fewer_tangents(self):
        stripes = np.repeat(np.sin(np.arange(11.0)), 9)[None]
        X = np.vstack([stripes, 2 * stripes, blobs(2)])
        np.testing.assert_allclose(tangent_distances(X, X, SHAPE), definition(X, X), atol=1e-7)

    def test_planes_that_share_all_directions(self):
        """An image and its brighter copy: what is left is Euclid's, outside of one plane."""
        X = blobs(1)
        Z = smoothed(X)
        Q = tangent._orthonormal(tangent._tangents(Z, SHAPE))[0]
        expected = np.linalg.norm(Z[0] - Q.T @ (Q @ Z[0]))
        for dtype, tolerance in ((np.float64, 1e-7), (np.float32, 1e-4)):
            D = tangent_distances(X.astype(dtype), 2 * X.astype(dtype), SHAPE)
            assert D[0, 0] == pytest.approx(expected, rel=tolerance)

    def test_unit_and_origin(self):
        X, Y = blobs(6), blobs(6, seed=1)
        D = tangent_distances(X, Y, SHAPE)
        np.testing.assert_allclose(
            tangent_distances(1e-6 * X, 1e-6 * Y, SHAPE), 1e-6 * D, rtol=1e-9
        )
        np.testing.assert_allclose(tangent_distances(X + 1e3, Y + 1e3, SHAPE), D, rtol=1e-9)

    def test_transposed_images(self):
        X, Y = (images.reshape(-1, *SHAPE) for images in (blobs(6), blobs(6, seed=1)))
        turned = tangent_distances(
            *(images.swapaxes(1, 2).reshape(6, -1) for images in (X, Y)), SHAPE[::-1]
        )
        np.testing.assert_allclose(
            turned, tangent_distances(X.reshape(6, -1), Y.reshape(6, -1), SHAPE), rtol=1e-9
        )


class TestGraph:
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_exact_with_all_candidates(self, dtype):
        X = blobs(40).astype(dtype)
        G = tangent_graph(X, SHAPE, 5)
        D = tangent_distances(X, X, SHAPE)
        np.fill_diagonal(D, np.inf)
        order = np.argsort(D, axis=1)[:, :5]
        np.testing.assert_array_equal(G.indices.reshape(40, 5), order)
        np.testing.assert_allclose(
            G.data.reshape(40, 5), np.take_along_axis(D, order, axis=1), rtol=1e-3
        )
        assert G.dtype == dtype
        assert G.indices.dtype == G.indptr.dtype == np.int32

    def test_candidates_are_the_euclidean_neighbours_of_smoothed_images(self):
        X = blobs(60)
        G = tangent_graph(X, SHAPE, 7, n_candidates=7)
        candidates = nearest(smoothed(X), 7)
        assert (binary(G) != binary(candidates)).nnz == 0
        assert (np.diff(G.data.reshape(60, 7), axis=1) >= 0).all()

    def test_few_rows_and_duplicates(self):
        X = np.repeat(blobs(2), 2, axis=0)
        G = tangent_graph(X, SHAPE, 20)
        assert (np.diff(G.indptr) == 3).all()
        np.testing.assert_array_equal(G.indices.reshape(4, 3)[:, 0], [1, 0, 3, 2])
        np.testing.assert_allclose(G.data.reshape(4, 3)[:, 0], 0, atol=1e-12)
        assert tangent_graph(X[:1], SHAPE, 1).nnz == 0

    def test_an_affinity_of_it_is_symmetric(self):
        W = union(binary(tangent_graph(blobs(50), SHAPE, 4)))
        assert (W != W.T).nnz == 0


@pytest.mark.long
def test_digits():
    """USPS: far fewer errors of 1-NN than Euclid's, and 200 candidates hold nearly all of the 20
    true neighbours.
    """
    X, y, split = usps()
    rows = np.random.default_rng(0).permutation(np.flatnonzero(split == 0))
    train, test = rows[:2000], rows[2000:2400]
    D, euclidean = tangent_distances(X[test], X[train], (16, 16)), cdist(X[test], X[train])
    errors, euclidean_errors = (
        np.mean(y[train][M.argmin(axis=1)] != y[test]) for M in (D, euclidean)
    )
    assert errors < 0.7 * euclidean_errors
    G = tangent_graph(X[train], (16, 16), 20)
    sample = np.arange(200)
    D = tangent_distances(X[train][sample], X[train], (16, 16))
    D[sample, sample] = np.inf
    true = np.argsort(D, axis=1)[:, :20]
    recall = np.mean([np.isin(true[i], G.indices[20 * i : 20 * i + 20]).mean() for i in sample])
    assert recall > 0.95


@pytest.mark.parametrize(
    ("X", "shape", "error", "message"),
    [
        (
            np.ones((3, 98)),
            SHAPE,
            ValueError,
            r"shape 11 x 9 is 99 pixels, and the rows of X have 98: give",
        ),
        (
            np.ones((3, 99)),
            (99, 1),
            ValueError,
            "height and width in shape must be at least 2, got \\(99, 1\\)",
        ),
        (np.full((3, 99), np.nan), SHAPE, ValueError, "NaN"),
        (csr_array(np.ones((3, 99))), SHAPE, TypeError, "Sparse data was passed for X"),
    ],
)
def test_bad_images(X, shape, error, message):
    with pytest.raises(error, match=message):
        tangent_distances(X, np.ones((2, 99)), shape)
    with pytest.raises(error, match=message):
        tangent_graph(X, shape, 1)


def test_bad_numbers():
    with pytest.raises(
        ValueError, match=r"n_neighbors must be from 1 to n_candidates \(4\), got 5"
    ):
        tangent_graph(blobs(9), SHAPE, 5, n_candidates=4)
    with pytest.raises(ValueError, match="the rows of Y have 98"):
        tangent_distances(blobs(9), np.ones((2, 98)), SHAPE)
