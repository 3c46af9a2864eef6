"""Laplacian Eigenmaps: the definition, limits, new rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.manifold import SpectralEmbedding
from sklearn.neighbors import KNeighborsClassifier

from nearkin import TDL, LaplacianEigenmaps
from nearkin.graphs import heat_kernel, laplacian, union
from nearkin.neighbors import nearest
from nearkin.scatter import scatter, total_scatter
from nearkin.spectral import ratio_trace, sparse_eigen


def rows(n=120, p=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, p))


def test_definition():
    X = rows()
    W = union(heat_kernel(nearest(X, 10)))
    L, D = laplacian(W).toarray(), np.diag(W.sum(axis=1))
    normalized = LaplacianEigenmaps(5).fit(X)
    Z = normalized.embedding_
    np.testing.assert_allclose(Z.T @ D @ Z, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(np.ones(len(X)) @ D @ Z, 0, atol=1e-10)
    np.testing.assert_allclose(L @ Z, D @ Z * normalized.eigenvalues_, atol=1e-10)
    plain = LaplacianEigenmaps(5, laplacian="unnormalized").fit(X)
    Z = plain.embedding_
    np.testing.assert_allclose(Z.T @ Z, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(Z.sum(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(L @ Z, Z * plain.eigenvalues_, atol=1e-10)
    assert plain.objective_ == pytest.approx(np.trace(Z.T @ L @ Z))
    differences = (
        sum(w * np.sum((Z[i] - Z[j]) ** 2) for i, j, w in zip(*W.nonzero(), W.data, strict=True))
        / 2
    )
    assert plain.objective_ == pytest.approx(differences)


@pytest.mark.parametrize("few_are_dense", [2000, 50])
def test_is_spectral_embedding(few_are_dense, monkeypatch):
    monkeypatch.setattr(sparse_eigen, "DENSE", few_are_dense)
    W = union(heat_kernel(nearest(rows(200), 10)))
    ours = LaplacianEigenmaps(4).fit(rows(200), affinity=W)
    theirs = SpectralEmbedding(
        4, affinity="precomputed", random_state=0, eigen_solver="arpack"
    ).fit(W.toarray())
    angle = np.abs(np.sum(ours.embedding_ * theirs.embedding_, axis=0)) / (
        np.linalg.norm(ours.embedding_, axis=0) * np.linalg.norm(theirs.embedding_, axis=0)
    )
    np.testing.assert_allclose(angle, 1, atol=1e-6)
    np.testing.assert_allclose(
        LaplacianEigenmaps(4).fit(rows(200)).eigenvalues_, ours.eigenvalues_, atol=1e-12
    )


def test_is_lpp_of_the_identity():
    """LPP's problem with X = I, whose linear maps are all maps, for the graph of other rows."""
    X = rows(60)
    W = union(heat_kernel(nearest(X, 10)))
    ours = LaplacianEigenmaps(3).fit(X, affinity=W)
    one = np.eye(60)
    lpp = ratio_trace(scatter(one, laplacian(W)), total_scatter(one, weights=W.sum(axis=1)), 3)
    np.testing.assert_allclose(ours.eigenvalues_, lpp.values, atol=1e-10)
    d = W.sum(axis=1)
    centred = lpp.vectors - d @ lpp.vectors / d.sum()  # a map of X is free of the origin
    np.testing.assert_allclose(np.abs(ours.embedding_), np.abs(centred), atol=1e-8)


def test_is_tdl_without_labels():
    X = rows()
    settings = {"n_neighbors": 10, "laplacian": "unnormalized"}
    ours, theirs = LaplacianEigenmaps(4, **settings).fit(X), TDL(4, reg=1.0, **settings).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-10)
    np.testing.assert_allclose(
        np.abs(np.sum(ours.embedding_ * theirs.embedding_, axis=0)), 1, atol=1e-8
    )


@pytest.mark.parametrize("laplacian", ["normalized", "unnormalized"])
@pytest.mark.parametrize("affinity", ["knn", "full"])
def test_rows_with_the_edges_of_training_rows_get_their_coordinates(laplacian, affinity):
    X = rows(p=2)
    le = LaplacianEigenmaps(3, laplacian=laplacian, affinity=affinity, bandwidth=0.5).fit(X)
    W = union(heat_kernel(nearest(X, 10 if affinity == "knn" else len(X) - 1), 0.5, cut=0.0))
    given = LaplacianEigenmaps(3, laplacian=laplacian).fit(X, affinity=W)
    np.testing.assert_allclose(given.embedding_, le.embedding_, atol=1e-9)
    np.testing.assert_allclose(given.fit_transform(X, affinity=W), given.transform(X, affinity=W))
    smooth = le.eigenvalues_.max() < (0.5 if laplacian == "normalized" else W.sum(axis=1) / 2)
    smooth = np.broadcast_to(smooth, len(X))
    assert smooth.mean() > 0.7
    np.testing.assert_allclose(
        given.transform(X, affinity=W)[smooth], le.embedding_[smooth], atol=1e-9
    )
    np.testing.assert_allclose(le.fit_transform(X), le.transform(X))
    assert np.corrcoef(le.transform(X)[:, 0], le.embedding_[:, 0])[0, 1] > 0.95
    far = le.transform(np.full((1, 2), 1e6))  # where all weights are 0
    assert np.isfinite(far).all()


def test_new_rows_among_digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[:1200], y[:1200]
    train = np.arange(len(X)) % 2 == 0
    le = LaplacianEigenmaps(20).fit(X[train])
    vote = KNeighborsClassifier(3).fit(le.embedding_, y[train])
    assert vote.score(le.transform(X[~train]), y[~train]) > 0.93


def test_components_are_separated_first():
    X = np.vstack([rows(50) + 100 * c for c in range(3)])
    le = LaplacianEigenmaps(3).fit(X)
    np.testing.assert_allclose(le.eigenvalues_[:2], 0, atol=1e-12)
    assert le.eigenvalues_[2] > 1e-4
    within = le.embedding_.reshape(3, 50, 3)[:, :, :2]
    np.testing.assert_allclose(within - within[:, :1], 0, atol=1e-10)


def test_invariances():
    X = rows()
    le = LaplacianEigenmaps(3).fit(X)
    order = np.random.default_rng(1).permutation(len(X))
    turn = np.linalg.qr(rows(4, 4))[0]
    for other in (X[order][np.argsort(order)], X @ turn + 1e3, 7 * X):
        np.testing.assert_allclose(
            LaplacianEigenmaps(3).fit(other).eigenvalues_, le.eigenvalues_, atol=1e-8
        )
    permuted = LaplacianEigenmaps(3).fit(X[order])
    cosine = np.abs(np.sum(permuted.embedding_ * le.embedding_[order], axis=0))
    np.testing.assert_allclose(cosine, np.linalg.norm(le.embedding_, axis=0) ** 2, rtol=1e-6)


def test_sparse_and_single_precision():
    X = rows(p=20)
    X[:, 1:][X[:, 1:] < 1.0] = 0  # no two rows are equal: which of them is nearer is unspecified
    dense = LaplacianEigenmaps(3).fit(X)
    thin = LaplacianEigenmaps(3).fit(csr_array(X))
    np.testing.assert_allclose(thin.eigenvalues_, dense.eigenvalues_, atol=1e-8)
    np.testing.assert_allclose(
        np.abs(thin.transform(csr_array(X))), np.abs(dense.transform(X)), atol=1e-6
    )
    single = LaplacianEigenmaps(3).fit(X.astype(np.float32))
    assert single.embedding_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, dense.eigenvalues_, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "fit", "message"),
    [
        ({"laplacian": "both"}, {}, "laplacian must be"),
        ({"affinity": "rbf"}, {}, "affinity must be one of"),
        ({"bandwidth": -1.0}, {}, "bandwidth must be larger than 0, got -1"),
        ({"bandwidth": 0.0}, {}, "bandwidth must be larger than 0"),
        ({"n_components": 0}, {}, "n_components must be at least 1"),
        ({"n_neighbors": 0}, {}, "n_neighbors must be at least 1"),
        ({}, {"affinity": np.full((120, 120), 1e200)}, r"affinity holds .* 1\.0e\+200, .*: scale"),
        ({}, {"affinity": "rbf"}, r"affinity must be numbers, got words \(such as 'rbf'\)"),
        ({}, {"affinity": np.ones((3, 3))}, r"affinity must be of shape \(120, 120\)"),
        ({}, {"affinity": np.triu(np.ones((120, 120)))}, "affinity must be symmetric"),
        ({}, {"affinity": -np.ones((120, 120))}, "affinity must not be negative"),
        ({}, {"affinity": np.eye(120)}, "affinity has no edge"),
        ({"bandwidth": "wide"}, {}, "bandwidth must be a number"),
        ({"bandwidth": True}, {}, "bandwidth must be a number"),
    ],
)
def test_bad_input_is_named(settings, fit, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LaplacianEigenmaps(**settings).fit(rows(), **fit)


def test_more_components_than_rows_and_two_rows():
    with pytest.warns(UserWarning, match="were requested"):
        le = LaplacianEigenmaps(5).fit([[0.0], [1.0]])
    assert le.embedding_.shape == (2, 1)


def test_new_rows_of_a_given_graph_need_their_edges():
    X = rows()
    le = LaplacianEigenmaps().fit(X, affinity=union(heat_kernel(nearest(X, 5))))
    with pytest.raises(ValueError, match="pass transform"):
        le.transform(X)
    with pytest.raises(ValueError, match="shape"):
        le.transform(X, affinity=np.ones((120, 3)))
