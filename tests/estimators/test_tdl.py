"""TDL: its propositions and theorems, limits, new rows, and what labels buy."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from scipy.sparse import csr_array
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import make_blobs
from sklearn.neighbors import KNeighborsClassifier

from nearkin import TDL, LaplacianEigenmaps
from nearkin.graphs import heat_kernel, laplacian, union
from nearkin.neighbors import nearest
from nearkin.spectral import sparse_eigen


def problem(n=150, p=4, labels=30, seed=0):
    X, y = make_blobs(n, p, centers=3, cluster_std=3.0, random_state=seed)
    few = np.full(n, -1)
    few[:labels] = y[:labels]
    return X, few


def cost(X, few, k=20):
    """Return C of eq. 6, by loops: its inner product with squared distances is the sum of the rows'
    costs.
    """
    C, labelled, distances = (
        np.zeros((len(X), len(X))),
        np.flatnonzero(few >= 0),
        squareform(pdist(X)),
    )
    for i in labelled:
        same = [j for j in labelled if few[j] == few[i] and j != i]
        other = [j for j in labelled if few[j] != few[i]]
        for rows, sign in ((same, 1), (other, -1)) if same and other else ():
            nearest_rows = sorted(rows, key=lambda j, i=i: distances[i, j])[:k]
            C[i, nearest_rows] += sign / len(nearest_rows)
    return (C + C.T) / 2


def test_the_cost_by_loops():
    """A class of one row has no cost."""
    X, few = problem()
    few[np.flatnonzero(few == -1)[0]] = 7
    theirs, ours = (
        TDL(4, n_cost_neighbors=4).fit(X, cost=cost(X, few, 4)),
        TDL(4, n_cost_neighbors=4).fit(X, few),
    )
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, atol=1e-9)
    assert subspace_angles(ours.embedding_, theirs.embedding_).max() < 1e-6


def test_proposition_3():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 20))
    A = csr_array(A + A.T)
    X = rng.standard_normal((20, 3))
    X -= X.mean(axis=0)
    D = squareform(pdist(X, "sqeuclidean"))
    assert np.trace(A.toarray() @ D) == pytest.approx(
        np.trace(2 * laplacian(A).toarray() @ X @ X.T)
    )


@pytest.mark.parametrize("few_are_dense", [2000, 50])
@pytest.mark.parametrize("which", ["normalized", "unnormalized"])
def test_definition(which, few_are_dense, monkeypatch):
    monkeypatch.setattr(sparse_eigen, "DENSE", few_are_dense)
    X, few = problem(200)
    W = union(heat_kernel(nearest(X, 20)))
    tdl = TDL(5, reg=0.3, reg_unit=1.0, laplacian=which).fit(X, few)
    d = W.sum(axis=1)
    P = laplacian(W).toarray()
    P = P / np.sqrt(np.outer(d, d)) if which == "normalized" else P
    M = 2 * laplacian(csr_array(cost(X, few))).toarray() + 0.3 * P
    H = np.eye(200) - 1 / 200
    expected = np.linalg.eigvalsh(H @ M @ H + 1e3 / 200)[:5]
    V = tdl.embedding_
    np.testing.assert_allclose(tdl.eigenvalues_, expected, atol=1e-9)
    np.testing.assert_allclose(V.T @ V, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(V.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(H @ M @ V, V * tdl.eigenvalues_, atol=1e-7)
    assert tdl.objective_ == pytest.approx(np.trace(V.T @ M @ V))
    assert tdl.residual_ < 1e-8
    if which == "unnormalized":  # half a sum over pairs is what P stands for
        D = squareform(pdist(V, "sqeuclidean"))
        assert tdl.objective_ == pytest.approx(np.sum((cost(X, few) + 0.15 * W) * D))


def test_a_weak_prior_leaves_negative_eigenvalues():
    X, few = problem()
    tdl = TDL(2, reg=1e-3).fit(X, few)
    assert (tdl.eigenvalues_ < 0).all()


class TestReg:
    @pytest.mark.parametrize("which", ["normalized", "unnormalized"])
    def test_the_upper_end_is_laplacian_eigenmaps(self, which):
        X, few = problem()
        far, end = (TDL(4, reg=reg, laplacian=which).fit(X, few) for reg in (1e7, np.inf))
        alone = TDL(4, laplacian=which).fit(X)
        for tdl in (far, end):
            assert subspace_angles(tdl.embedding_, alone.embedding_).max() < 1e-6
            assert tdl.label_shift_ < 1e-6
        np.testing.assert_allclose(end.eigenvalues_, alone.eigenvalues_, atol=1e-12)
        if which == "unnormalized":
            theirs = LaplacianEigenmaps(4, n_neighbors=20, laplacian=which).fit(X)
            assert subspace_angles(far.embedding_, theirs.embedding_).max() < 1e-6

    def test_at_the_lower_end_the_labels_alone_decide(self):
        """The eigenvectors of C' itself, as far as it has negative eigenvalues."""
        X, few = problem()
        values, V = np.linalg.eigh(2 * laplacian(csr_array(cost(X, few))).toarray())
        m = np.sum(values < -0.1 * np.abs(values).max())
        tdl = TDL(m, reg=1e-9).fit(X, few)
        np.testing.assert_allclose(tdl.eigenvalues_, values[:m], rtol=1e-6)
        assert subspace_angles(tdl.embedding_, V[:, :m]).max() < 1e-6
        assert tdl.label_shift_ > 0.5

    def test_units_of_graph_and_cost_change_nothing(self):
        X, few = problem()
        W, C = union(heat_kernel(nearest(X, 20))), cost(X, few)
        base = TDL(3, reg=0.1).fit(X, few, affinity=W)
        for data in ({"affinity": 1000 * W}, {"affinity": W, "cost": 1000 * C}):
            other = TDL(3, reg=0.1).fit(X, few, **data)
            assert subspace_angles(other.embedding_, base.embedding_).max() < 1e-6
            assert other.label_shift_ == pytest.approx(base.label_shift_, abs=1e-9)

    def test_the_number_of_components_is_no_unit(self):
        """The first columns of many are those of few: the same lambda, whatever m, and whatever the
        graph's unit.
        """
        X, few = problem()
        W = union(heat_kernel(nearest(X, 20)))
        models = [
            TDL(m, reg=0.1).fit(X, few, affinity=unit * W)
            for m, unit in ((2, 1), (2, 50), (8, 1), (40, 7))
        ]
        for model in models:
            assert model.reg_unit_ * model.roughness_[0] == pytest.approx(
                models[0].reg_unit_ * models[0].roughness_[0]
            )
            angles = subspace_angles(model.embedding_[:, :2], models[0].embedding_)
            assert angles.max() < 1e-6

    @pytest.mark.parametrize("unit", [1.0, 1000.0])
    def test_a_graph_of_many_components_has_a_unit_too(self, unit):
        """All of its 20 smallest eigenvalues are 0: the mean eigenvalue stands for them."""
        rng = np.random.default_rng(0)
        X = np.repeat(100 * np.arange(30), 4)[:, None] + rng.standard_normal((120, 1))
        few = np.where(np.arange(120) % 4 == 0, np.repeat(np.arange(30) % 2, 4), -1)
        W = union(heat_kernel(nearest(X, 3)))
        with pytest.warns(UserWarning, match="30 connected components"):
            models = [TDL(2, reg=1.0).fit(X, few, affinity=scale * W) for scale in (1, unit)]
        assert models[1].reg_unit_ * unit == pytest.approx(models[0].reg_unit_)

    def test_the_unit_is_the_ratio_of_the_spectra(self):
        X, few = problem()
        tdl = TDL(4, reg=0.5).fit(X, few)
        s_C = np.abs(np.linalg.eigvalsh(2 * laplacian(csr_array(cost(X, few))).toarray())).max()
        s_P = (
            LaplacianEigenmaps(20, n_neighbors=20, laplacian="unnormalized")
            .fit(X)
            .eigenvalues_.mean()
        )
        assert tdl.reg_unit_ == pytest.approx(s_C / s_P)
        paper = TDL(4, reg=0.5 * tdl.reg_unit_, reg_unit=1.0).fit(X, few)
        np.testing.assert_allclose(paper.eigenvalues_, tdl.eigenvalues_, atol=1e-9)

    def test_the_shift_is_that_of_canonical_correlations(self):
        X, few = problem()
        ours, alone = (TDL(3, reg=0.1).fit(X, y) for y in (few, None))
        cosines = np.cos(subspace_angles(ours.embedding_, alone.embedding_))
        assert ours.label_shift_ == pytest.approx(1 - np.mean(cosines**2))
        assert 0 < ours.label_shift_ < 1
        assert abs(alone.label_shift_) < 1e-12
        shifts = [TDL(3, reg=reg).fit(X, few).label_shift_ for reg in (0.01, 1.0, 100.0)]
        assert shifts == sorted(shifts, reverse=True)

    @pytest.mark.parametrize("settings", [{}, {"kernel": "rbf", "laplacian": None}])
    def test_roughness(self, settings):
        """At another reg the penalty is the same: v'Pv from the objectives of both."""
        X, few = problem()
        tdl = TDL(3, reg=0.2, **settings).fit(X, few)
        C_prime = 2 * laplacian(csr_array(cost(X, few))).toarray()
        V = tdl.embedding_
        weight = tdl.reg * tdl.reg_unit_
        np.testing.assert_allclose(
            weight * tdl.roughness_, tdl.eigenvalues_ - np.diag(V.T @ C_prime @ V), atol=1e-9
        )
        if not settings:
            P = laplacian(union(heat_kernel(nearest(X, 20)))).toarray()
            np.testing.assert_allclose(tdl.roughness_, np.diag(V.T @ P @ V), atol=1e-9)

    @pytest.mark.parametrize("which", ["normalized", "unnormalized"])
    def test_voters_solve_the_equation_of_unlabelled_rows(self, which):
        X, few = problem()
        tdl = TDL(3, reg=0.5, laplacian=which).fit(X, few)
        W = union(heat_kernel(nearest(X, 20))).toarray()
        d = W.sum(axis=1)
        P = np.diag(d) - W
        P = P / np.sqrt(np.outer(d, d)) if which == "normalized" else P
        weight, V, Z = tdl.reg * tdl.reg_unit_, tdl.embedding_, tdl.voting_embedding_
        C_prime = 2 * laplacian(csr_array(cost(X, few))).toarray()
        constant = (C_prime @ V + weight * P @ V).mean(axis=0)
        for i in range(len(X)):
            if few[i] < 0:
                np.testing.assert_array_equal(Z[i], V[i])
                continue
            slope = np.maximum(P[i, i] - tdl.eigenvalues_ / weight, P[i, i] / 2)
            expected = (constant / weight + P[i, i] * V[i] - P[i] @ V) / slope
            np.testing.assert_allclose(Z[i], expected, atol=1e-9)


@pytest.mark.slow
def test_labels_of_any_kind():
    X, few = problem(60)
    expected = TDL(3).fit(X, few)
    words = np.array(["a", "b", "c"], dtype=object)[few]
    words[few < 0] = None
    for y, classes in ((words, ["a", "b", "c"]), (np.where(few < 0, np.nan, few), [0, 1, 2])):
        tdl = TDL(3).fit(X, y)
        np.testing.assert_allclose(tdl.eigenvalues_, expected.eigenvalues_)
        assert list(tdl.classes_) == classes


def test_no_labels_and_those_of_one_class():
    X, few = problem()
    for nothing in (None, np.full(len(X), -1)):
        np.testing.assert_allclose(
            TDL(3).fit(X, nothing).eigenvalues_,
            LaplacianEigenmaps(3, n_neighbors=20, laplacian="unnormalized").fit(X).eigenvalues_, atol=1e-10,
        )  # fmt: skip
    with pytest.warns(UserWarning, match="one class"):
        TDL().fit(X, np.where(few == 0, 0, -1))


def test_a_given_cost():
    X, few = problem()
    assert TDL(3).fit(X, cost=cost(X, few)).classes_.size == 0
    with pytest.raises(ValueError, match="cost must be symmetric"):
        TDL().fit(X, cost=np.triu(np.ones((150, 150))))
    with pytest.raises(ValueError, match="cost must be of shape"):
        TDL().fit(X, cost=np.ones((3, 3)))


def test_invariances():
    X, few = problem()
    base = TDL(3, reg=10.0).fit(X, few)
    order = np.random.default_rng(1).permutation(len(X))
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0]
    renamed = np.where(few < 0, -1, 5 - few)
    for rows, y in ((X[order], few[order]), (X @ turn + 1e3, few), (3 * X, few), (X, renamed)):
        np.testing.assert_allclose(
            TDL(3, reg=10.0).fit(rows, y).eigenvalues_, base.eigenvalues_, atol=1e-8
        )
    single = TDL(3, reg=10.0).fit(X.astype(np.float32), few)
    assert single.embedding_.dtype == single.transform(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.eigenvalues_, base.eigenvalues_, atol=1e-3)
    thin = TDL(3, reg=10.0).fit(csr_array(X), few)
    np.testing.assert_allclose(thin.eigenvalues_, base.eigenvalues_, atol=1e-8)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"reg": 0.0}, ValueError, "reg must be larger than 0"),
        ({"reg": "best"}, TypeError, "reg must be a number"),
        ({"laplacian": None}, ValueError, "laplacian=None leaves no penalty"),
        ({"laplacian": "both"}, ValueError, "laplacian must be"),
        ({"reg_unit": 0.0}, ValueError, "reg_unit must be larger than 0"),
        ({"n_cost_neighbors": 0}, ValueError, "n_cost_neighbors must be at least 1"),
        ({"n_components": 1.5}, TypeError, "n_components must be an integer"),
    ],
)
def test_bad_parameters_are_named(settings, error, message):
    with pytest.raises(error, match=message):
        TDL(**settings).fit(*problem())


def moons(seed):
    """Return two moons pushed into one another, and their classes."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(0, np.pi, (2, 100))
    X = np.vstack(
        [np.column_stack([np.cos(a), np.sin(a)]), np.column_stack([1 - np.cos(b), 0.7 - np.sin(b)])]
    )
    return 2 * (X + 0.05 * rng.standard_normal(X.shape)), np.repeat([0, 1], 100)


def test_moons():
    """The paper's figure 1: the labels of ten rows a class tell the moons apart, the graph alone
    does not.
    """
    ours, alone = [], []
    for seed in range(2):
        X, y = moons(seed)
        few = np.where(np.arange(200) % 100 < 10, y, -1)
        settings = {"affinity": "full", "bandwidth": 0.25, "laplacian": "normalized"}
        for model, scores in (
            (TDL(1, reg=16.0, reg_unit=1.0, n_cost_neighbors=3, **settings), ours),
            (LaplacianEigenmaps(1, **settings), alone),
        ):
            Z = model.fit(X, few).embedding_
            scores.append(
                KNeighborsClassifier(1).fit(Z[few >= 0], y[few >= 0]).score(Z[few < 0], y[few < 0])
            )
    assert np.mean(ours) >= 0.95
    assert np.mean(alone) < 0.9


def test_contradictions_are_refused():
    X, few = problem()
    W = union(heat_kernel(nearest(X, 5)))
    with pytest.raises(ValueError, match="laplacian=None leaves the graph out"):
        TDL(kernel="rbf", laplacian=None).fit(X, few, affinity=W)
    with pytest.raises(ValueError, match="leaves no edge"):
        TDL(bandwidth=1e-9).fit(X, few)
    with pytest.raises(ValueError, match="must not be negative"):
        TDL().fit(X, few, affinity=W).transform(X, affinity=-W)
