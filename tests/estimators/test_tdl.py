"""TDL: its propositions and theorems, limits, new rows, and what labels buy."""

import numpy as np
import pytest
from scipy.linalg import pinv, subspace_angles
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError
from scipy.spatial.distance import pdist, squareform
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.decomposition import KernelPCA
from sklearn.manifold import Isomap, LocallyLinearEmbedding
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors

from nearkin import TDL, LaplacianEigenmaps
from nearkin.estimators.tdl import label_costs, solve, total_cost
from nearkin.estimators.transductive import GraphPenalty
from nearkin.graphs import heat_kernel, laplacian, union
from nearkin.neighbors import EXACT, nearest
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


class TestKernels:
    def test_the_inverse_of_a_kernel_as_penalty_is_kernel_pca(self):
        X = np.random.default_rng(0).standard_normal((40, 50))
        H = np.eye(40) - 1 / 40
        P = pinv(H @ linear_kernel(X) @ H)
        # the graph whose Laplacian is P
        tdl = TDL(4, reg=1.0).fit(X, affinity=np.diag(np.diag(P)) - P)
        theirs = KernelPCA(4).fit(X)
        np.testing.assert_allclose(1 / tdl.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
        assert subspace_angles(tdl.embedding_, theirs.fit_transform(X)).max() < 1e-7

    @pytest.mark.parametrize("M", ["unnormalized", "normalized", None])
    def test_theorem_4(self, M):
        """Functions of the kernel (eq. 7), on the rows, are the vectors of eq. 3 with the penalty
        K^+ + HMH.
        """
        X, few = problem(60, p=30)
        n = len(X)
        H = np.eye(n) - 1 / n
        kernel = lambda A, B: rbf_kernel(A, B, gamma=1 / 500)  # noqa: E731
        tdl = TDL(3, reg=0.5, reg_unit=1.0, laplacian=M, kernel=kernel).fit(X, few)
        P = pinv(H @ kernel(X, X) @ H)
        if M is not None:
            W = union(heat_kernel(nearest(X, 20)))
            L, d = laplacian(W).toarray(), W.sum(axis=1)
            P += H @ (L / np.sqrt(np.outer(d, d)) if M == "normalized" else L) @ H
        S = H @ (2 * laplacian(csr_array(cost(X, few))).toarray() + 0.5 * P) @ H
        values, V = np.linalg.eigh(S + 1e6 / n)
        np.testing.assert_allclose(tdl.eigenvalues_, values[:3], rtol=1e-6)
        assert subspace_angles(tdl.embedding_, V[:, :3]).max() < 1e-6

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize(
        "settings",
        [{"kernel": "rbf"}, {"kernel": linear_kernel}, {"kernel": "rbf", "n_landmarks": 25}],
    )
    def test_new_rows_that_are_training_rows_get_their_coordinates(self, settings):
        X, few = problem(60)
        tdl = TDL(2, random_state=0, **settings).fit(X, few)
        np.testing.assert_allclose(tdl.transform(X), tdl.embedding_, atol=1e-9)
        np.testing.assert_allclose(tdl.embedding_.sum(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(tdl.embedding_.T @ tdl.embedding_, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(
            TDL(2, random_state=0, **settings).fit_transform(X, few), tdl.transform(X), atol=1e-9
        )

    def test_all_rows_as_landmarks_are_the_exact_kernel(self):
        X, few = problem(60, p=30)
        kernel = lambda A, B: rbf_kernel(A, B, gamma=1 / 500)  # noqa: E731
        exact = TDL(3, reg=1.0, kernel=kernel).fit(X, few)
        all_of_them = TDL(3, reg=1.0, kernel=kernel, n_landmarks=1000, random_state=0).fit(X, few)
        np.testing.assert_allclose(all_of_them.eigenvalues_, exact.eigenvalues_, rtol=1e-7)
        new = np.random.default_rng(5).standard_normal((9, 30))
        np.testing.assert_allclose(
            np.abs(all_of_them.transform(new)), np.abs(exact.transform(new)), atol=1e-6
        )

    def test_fewer_directions_than_requested_warn(self):
        X, few = problem(p=2)
        with pytest.warns(UserWarning, match="were requested"):
            tdl = TDL(5, reg=1.0, kernel=linear_kernel, laplacian=None).fit(X, few)
        assert tdl.embedding_.shape[1] == 2


class TestOtherPenalties:
    """Section 2.2: LLE and Isomap as penalties, by weights of both signs."""

    def test_lle(self):
        X, M = lle_of_a_roll()
        lle = LocallyLinearEmbedding(n_neighbors=12, eigen_solver="dense").fit(X)
        tdl = TDL(2, reg=np.inf).fit(X, affinity=-M)
        np.testing.assert_allclose(abs(lle.embedding_.T @ tdl.embedding_), np.eye(2), atol=1e-6)
        assert tdl.objective_ == pytest.approx(lle.reconstruction_error_)

    def test_labels_act_on_lle(self):
        X, M = lle_of_a_roll()
        few = np.where(np.arange(len(X)) % 2 == 0, X[:, 0] > 0, -1).astype(int)
        C = cost(X, few)
        with_labels, without = (
            np.sum(C * squareform(pdist(TDL(2, reg=reg).fit(X, few, affinity=-M).embedding_)) ** 2)
            for reg in (1.0, np.inf)
        )
        assert with_labels < without

    def test_isomap_is_its_kernel_subtracted_from_the_largest_eigenvalue(self):
        X, axes, K = isomap_of_a_roll()
        c = np.linalg.eigvalsh(K)[-1]
        tdl = TDL(2, reg=np.inf).fit(X, affinity=K + c / len(X))
        np.testing.assert_allclose(abs(axes.T @ tdl.embedding_), np.eye(2), atol=1e-8)
        assert tdl.eigenvalues_[0] == pytest.approx(0, abs=1e-8 * c)

    def test_isomap_is_not_the_inverse_of_its_kernel(self):
        X, axes, K = isomap_of_a_roll()
        inverse = pinv(K, rtol=1e-10)
        tdl = TDL(2, reg=np.inf).fit(X, affinity=-(inverse + inverse.T) / 2)
        assert tdl.eigenvalues_[0] < 0
        np.testing.assert_allclose(axes.T @ tdl.embedding_, 0, atol=1e-6)

    def test_a_penalty_of_negative_eigenvalues_has_no_unit(self):
        X, few = problem()
        W = -np.ones((len(X), len(X)))
        with pytest.raises(ValueError, match="add a constant to affinity"):
            TDL(2, reg=1.0).fit(X, few, affinity=W)
        W += 1 + 1 / len(X)
        assert TDL(2, reg=1.0).fit(X, few, affinity=W).reg_unit_ > 0


def lle_of_a_roll(k=12):
    """Return rows, and (I - W)'(I - W): row i of W are the weights, of sum 1, that make x_i of its
    k neighbours.
    """
    X, _ = make_swiss_roll(300, random_state=0)
    W = np.zeros((300, 300))
    for i, near in enumerate(NearestNeighbors(n_neighbors=k).fit(X).kneighbors()[1]):
        G = (X[near] - X[i]) @ (X[near] - X[i]).T
        w = np.linalg.solve(G + 1e-3 * np.trace(G) * np.eye(k), np.ones(k))
        W[i, near] = w / w.sum()
    return X, (np.eye(300) - W).T @ (np.eye(300) - W)


def isomap_of_a_roll():
    """Return rows, their coordinates with unit columns, and the matrix of these eigenvectors."""
    X, _ = make_swiss_roll(300, random_state=0)
    isomap = Isomap(n_neighbors=12, eigen_solver="dense").fit(X)
    H = np.eye(300) - 1 / 300
    axes = isomap.embedding_ / np.linalg.norm(isomap.embedding_, axis=0)
    return X, axes, -H @ isomap.dist_matrix_**2 @ H / 2


class TestNewRows:
    @pytest.mark.slow
    def test_halves_of_digits(self):
        X, y = load_digits(return_X_y=True)
        train = np.arange(len(X)) % 2 == 0
        few = np.where(np.arange(train.sum()) % 5, -1, y[train])
        for settings in ({}, {"laplacian": "normalized"}, {"kernel": "rbf", "n_landmarks": 300}):
            tdl = TDL(20, n_neighbors=10, reg=64.0, random_state=0, **settings).fit(X[train], few)
            vote = KNeighborsClassifier(3).fit(tdl.embedding_[few >= 0], few[few >= 0])
            transductive = vote.score(tdl.embedding_[few < 0], y[train][few < 0])
            assert vote.score(tdl.transform(X[~train]), y[~train]) > transductive - 0.02, settings

    def test_the_edges_of_training_rows(self):
        X, few = problem()
        W = union(heat_kernel(nearest(X, 20)))
        for which in ("normalized", "unnormalized"):
            tdl = TDL(2, reg=1024.0, reg_unit=1.0, laplacian=which).fit(X, few, affinity=W)
            hidden = few < 0  # labelled rows also have a cost
            smooth = (
                tdl.eigenvalues_.max() / 1024
                < (1.0 if which == "normalized" else W.sum(axis=1)) / 2
            )
            rows = np.flatnonzero(hidden & smooth)
            assert len(rows) > 100
            np.testing.assert_allclose(
                tdl.transform(X, affinity=W)[rows], tdl.embedding_[rows], atol=1e-9
            )


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

    @pytest.mark.parametrize("reg", ["auto", 0.1])
    def test_units_of_graph_and_cost_change_nothing(self, reg):
        X, few = problem()
        W, C = union(heat_kernel(nearest(X, 20))), cost(X, few)
        base = TDL(3, reg=reg).fit(X, few, affinity=W)
        for data in ({"affinity": 1000 * W}, {"affinity": W, "cost": 1000 * C}):
            if reg == 0.1 or "cost" not in data:
                other = TDL(3, reg=reg).fit(X, few, **data)
                assert subspace_angles(other.embedding_, base.embedding_).max() < 1e-6
                assert other.label_shift_ == pytest.approx(base.label_shift_, abs=1e-9)
                assert other.reg_ == base.reg_

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
        weight = tdl.reg_ * tdl.reg_unit_
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
        weight, V, Z = tdl.reg_ * tdl.reg_unit_, tdl.embedding_, tdl.voting_embedding_
        C_prime = 2 * laplacian(csr_array(cost(X, few))).toarray()
        constant = (C_prime @ V + weight * P @ V).mean(axis=0)
        for i in range(len(X)):
            if few[i] < 0:
                np.testing.assert_array_equal(Z[i], V[i])
                continue
            slope = np.maximum(P[i, i] - tdl.eigenvalues_ / weight, P[i, i] / 2)
            expected = (constant / weight + P[i, i] * V[i] - P[i] @ V) / slope
            np.testing.assert_allclose(Z[i], expected, atol=1e-9)


class TestClipped:
    """min(c_i, 0) instead of c_i, the cost of row i."""

    def noisy(self):
        X, y = make_blobs(200, 4, centers=3, cluster_std=2.0, random_state=1)
        few = np.where(np.arange(200) < 60, y, -1)
        few[:60:6] = (few[:60:6] + 1) % 3
        return X, few

    @pytest.mark.parametrize("reg", [0.01, 0.3, 10.0])
    def test_the_objective_falls_at_every_step_and_ends_at_a_fixed_point(self, reg):
        X, few = self.noisy()
        A = label_costs(X, few, 20)
        np.testing.assert_allclose((A + A.T).toarray() / 2, cost(X, few), atol=1e-15)
        embeddings = []

        class Recorded(GraphPenalty):
            def solve(self, *arguments, **options):
                embeddings.append(super().solve(*arguments, **options).vectors)
                return super().solve(*arguments, **options)

        penalty = Recorded(union(heat_kernel(nearest(X, 20))), normalized=False, graph=None)
        smoothest = penalty.solve(csr_array(A.shape), 1.0, 4)
        weight = reg * TDL()._unit(A, float(smoothest.values.mean()))
        solution = solve(penalty, A, weight, smoothest, "clipped")

        def objective(V):
            costs = np.sum(A.toarray() * squareform(pdist(V, "sqeuclidean")), axis=1)
            return np.minimum(costs, 0).sum() + weight * np.trace(V.T @ penalty.P @ V), costs

        objectives = [objective(V)[0] for V in embeddings]
        assert len(objectives) > 1
        assert (np.diff(objectives) < 1e-9).all()
        value, costs = objective(solution.result.vectors)
        assert value == pytest.approx(objectives[-1])
        np.testing.assert_array_equal(solution.clipped, costs > 0)
        assert value == pytest.approx(solution.result.objective)

    def test_wrong_labels_are_clipped_and_move_nothing(self):
        X, few = self.noisy()
        settings = {"laplacian": "normalized", "reg": 2.0, "loss": "clipped"}
        tdl = TDL(2, **settings).fit(X, few)
        assert set(np.arange(0, 60, 6)) <= set(tdl.clipped_)
        assert len(tdl.clipped_) <= 12
        A = label_costs(X, few, 20).toarray()
        A[tdl.clipped_] = 0
        by_hand = TDL(
            2, **{**settings, "loss": "squared", "reg": tdl.reg_ * tdl.reg_unit_}, reg_unit=1.0
        )
        by_hand.fit(X, few, cost=(A + A.T) / 2)
        np.testing.assert_allclose(by_hand.eigenvalues_, tdl.eigenvalues_, atol=1e-9)

    def test_without_positive_costs_it_is_the_same(self):
        X, y = make_blobs(150, 4, centers=[[0] * 4, [20] * 4], random_state=0)
        few = np.where(np.arange(150) < 40, y, -1)
        with pytest.warns(UserWarning, match="connected components"):
            ours, theirs = (
                TDL(1, reg=0.5, loss=loss).fit(X, few) for loss in ("squared", "clipped")
            )
        assert len(theirs.clipped_) == len(ours.clipped_) == 0
        np.testing.assert_allclose(theirs.eigenvalues_, ours.eigenvalues_, atol=1e-9)


class TestAuto:
    def test_labels_act_where_they_help(self):
        """On the first coordinate of two moons the labels tell apart what the graph does not."""
        X, y = moons(2)
        few = np.where(np.arange(200) % 100 < 40, y, -1)
        settings = {
            "affinity": "full",
            "bandwidth": 0.25,
            "laplacian": "normalized",
            "n_cost_neighbors": 3,
        }
        tdl = TDL(1, **settings).fit(X, few)
        assert set(tdl.reg_scores_) == {0.01, 0.03, 0.1, 0.3, 1.0, np.inf}
        assert tdl.reg_scores_[tdl.reg_] == max(tdl.reg_scores_.values())
        assert tdl.reg_scores_[tdl.reg_] > tdl.reg_scores_[np.inf] + 0.1
        assert tdl.label_shift_ > 0.1
        assert TDL(1, reg=tdl.reg_, **settings).fit(X, few).reg_scores_ == {}

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("seed", [1, 2])
    def test_labels_at_random_are_not_found(self, seed):
        """The leave-one-out of labels that shaped the embedding would say 100 % here."""
        rng = np.random.default_rng(seed)
        X, few = rng.standard_normal((120, 3)), np.full(120, -1)
        few[:90] = rng.integers(0, 2, 90)
        tdl = TDL().fit(X, few)
        assert max(tdl.reg_scores_.values()) < 0.65
        assert tdl.reg_ == 1

    @pytest.mark.parametrize("labels", [0, 2, 9])
    def test_with_too_few_labels_to_hide_reg_is_1(self, labels):
        X, few = problem(labels=labels)
        tdl = TDL().fit(X, few)
        assert (tdl.reg_, tdl.reg_scores_) == (1.0, {})
        one_of_a_class = np.full(len(X), -1)
        one_of_a_class[:20] = np.arange(20) == 0
        assert TDL().fit(X, one_of_a_class).reg_scores_ == {}


@pytest.mark.slow
def test_labels_of_any_kind():
    X, few = problem(60)
    expected = TDL(3).fit(X, few)
    assert expected.reg_scores_
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
        ({"kernel": "poly"}, ValueError, "kernel must be None, 'rbf' or a function"),
        (
            {"kernel": lambda A, B: np.ones((3, 2))},
            ValueError,
            r"kernel must return the shape \(150, 150\)",
        ),
        (
            {"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)},
            ValueError,
            "kernel must return finite numbers",
        ),
        ({"kernel": lambda A, B: A[:, :1] - B[:, 0]}, ValueError, "kernel must be symmetric"),
        ({"kernel": lambda A, B: np.zeros((len(A), len(B)))}, ValueError, "not 0 everywhere"),
        (
            {"kernel": lambda A, B: -linear_kernel(A, B)},
            ValueError,
            "kernel must be positive semi-definite",
        ),
        (
            {"kernel": lambda A, B: np.ones((len(A), len(B)))},
            ValueError,
            "kernel is the same for all rows",
        ),
        ({"kernel": "rbf", "n_landmarks": 0}, ValueError, "n_landmarks must be at least 1"),
        ({"loss": "hinge"}, ValueError, "loss must be"),
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


def test_kernels_and_rows_far_from_the_origin():
    X, few = problem()
    here = TDL(3, reg=10.0, kernel="rbf").fit(X, few)
    there = TDL(3, reg=10.0, kernel="rbf").fit(X + 1e8, few)
    np.testing.assert_allclose(there.eigenvalues_, here.eigenvalues_, rtol=1e-5)
    single = X.astype(np.float32)
    far = TDL(3, reg=1.0).fit(single, few).transform(np.full((1, 4), 1e20, np.float32))
    assert np.isfinite(far).all()


@pytest.mark.slow
def test_a_disconnected_graph_warns():
    """Ten islands, labels on one: three coordinates can only separate the islands."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((12, 2)) + 1000 * island for island in range(10)])
    few = np.full(120, -1)
    few[:12] = np.arange(12) % 2
    k = {"n_neighbors": 10}
    for model in (TDL(3, **k), TDL(3, reg="auto", random_state=0, **k), LaplacianEigenmaps(3, **k)):
        with pytest.warns(UserWarning, match="has 10 connected components"):
            model.fit(X, few)


@pytest.mark.parametrize("settings", [{}, {"kernel": linear_kernel}])
@pytest.mark.parametrize("kind", [np.array, csr_array])
def test_rows_that_change_after_the_fit_change_nothing(settings, kind):
    X, few = problem()
    X, new = kind(X), X[:5] + 0.1
    tdl = TDL(3, reg=1.0, **settings).fit(X, few)
    before = tdl.transform(new)
    (X if isinstance(X, np.ndarray) else X.data)[:] *= 3
    np.testing.assert_array_equal(tdl.transform(new), before)


def test_a_kernel_of_single_precision_rows_is_of_double_precision():
    X = np.linspace(0, 1, 40, dtype=np.float32)[:, None]
    few = np.where(np.arange(40) % 4, -1, np.arange(40) // 20)
    double, single = (TDL(3, reg=1.0, kernel="rbf").fit(rows, few) for rows in (X.astype(float), X))
    np.testing.assert_allclose(single.penalty_size_, double.penalty_size_, rtol=1e-6)
    np.testing.assert_allclose(single.eigenvalues_, double.eigenvalues_, rtol=1e-6)


def test_the_unit_of_a_cost_on_which_lanczos_gives_up(monkeypatch):
    def failing(*args, **options):
        raise ArpackError(-9999)

    X, few = problem()
    A = label_costs(X, few, 5)
    size = np.abs(np.linalg.eigvalsh(total_cost(A).toarray())).max()
    assert TDL()._unit(A, 2.0) == pytest.approx(size / 2)
    monkeypatch.setattr("nearkin.spectral.criteria.eigsh", failing)
    assert TDL()._unit(A, 2.0) == pytest.approx(size / 2)


@pytest.mark.slow
def test_the_choice_of_reg_uses_the_search(monkeypatch):
    """No exact search among the labels, which would cost as many pairs as they have."""
    monkeypatch.setattr(EXACT, "lists", lambda *args: pytest.fail("an exact search"))
    monkeypatch.setattr(EXACT, "index", lambda *args: pytest.fail("an exact search"))
    X, few = problem()
    search = KNeighborsTransformer(mode="distance")
    tdl = TDL(3, search=search, n_neighbors=5, n_cost_neighbors=5).fit(X, few)
    assert len(tdl.reg_scores_) == 6
