from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_wine
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from nearkin import NMMP
from nearkin.datasets import make_concentric_classes
from nearkin.estimators import Rows
from nearkin.graphs import binary, laplacian, mutual
from nearkin.neighbors import nearest_other_class, nearest_same_class
from nearkin.scatter import scatter, total_scatter
from nearkin.testing import assert_same_subspace

from ..spectral.test_criteria import bisection, objective

paper = partial(NMMP, shrinkage=None)


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def scatters(X, y, k_w=None, k_b=10):
    """Return S_w and S_b of eq. 3 and 5 with loops: each unordered pair once."""
    n = len(X)
    D = np.linalg.norm(X[:, None] - X, axis=2)
    within, between = np.zeros((n, n), bool), np.zeros((n, n), bool)
    for i in range(n):
        same = np.flatnonzero((y == y[i]) & (np.arange(n) != i))
        other = np.flatnonzero(y != y[i])
        within[i, same[np.argsort(D[i, same])[: k_w or (len(same) + 1) // 2 + 2]]] = True
        between[i, other[np.argsort(D[i, other])[:k_b]]] = True
    result = []
    for pairs in (within & within.T, between & between.T):
        S = np.zeros((X.shape[1], X.shape[1]))
        for i, j in np.argwhere(np.triu(pairs)):
            S += np.outer(X[i] - X[j], X[i] - X[j])
        result.append(S)
    return result


@pytest.mark.parametrize("m", [1, 4, 13])
@pytest.mark.parametrize(("k_w", "k_b"), [(None, 10), (3, 5)])
class TestAgainstThePaper:
    def test_trace_ratio(self, m, k_w, k_b):
        X, y = wine()
        model = paper(m, n_neighbors_within=k_w, n_neighbors_between=k_b).fit(X, y)
        S_w, S_b = scatters(X, y, k_w, k_b)
        W = model.components_.T
        np.testing.assert_allclose(W.T @ W, np.eye(m), atol=1e-10)
        assert model.objective_ == pytest.approx(objective(W, S_b, S_w))
        assert model.objective_ == pytest.approx(bisection(S_b, S_w, m)[0])
        assert model.n_iter_ <= 10

    def test_ratio_trace(self, m, k_w, k_b):
        X, y = wine()
        model = paper(
            m, n_neighbors_within=k_w, n_neighbors_between=k_b, criterion="ratio_trace"
        ).fit(X, y)
        S_w, S_b = scatters(X, y, k_w, k_b)
        W, share = model.components_.T, model.eigenvalues_
        np.testing.assert_allclose(W.T @ (S_w + S_b) @ W, np.eye(m), atol=1e-9)
        np.testing.assert_allclose(
            S_b @ W, S_w @ W * (share / (1 - share)), atol=1e-8 * np.abs(S_w @ W).max()
        )
        assert (np.diff(share) <= 0).all()
        assert share[0] <= 1
        assert model.objective_ == pytest.approx(share.sum())


def test_with_all_neighbours_the_two_scatters_add_up_to_the_total():
    X, y = wine()
    S_w = scatter(X, laplacian(mutual(binary(nearest_same_class(X, y, len(X))))))
    S_b = scatter(X, laplacian(mutual(binary(nearest_other_class(X, y, len(X))))))
    # n^2 S_t with S_t the covariance
    np.testing.assert_allclose(S_w + S_b, len(X) * total_scatter(X))
    np.testing.assert_allclose(S_w + S_b, len(X) ** 2 * np.cov(X.T, bias=True))


def faces_like():
    """20 classes of 5 rows with 200 features, as in the face experiment: S_w is singular (rank 80)."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(20), 5)
    return rng.normal(size=(20, 200))[y] + rng.normal(size=(100, 200)), y


class TestSingularWithinScatter:
    # 20 = d - r + 1, where the paper's upper bound is enormous
    @pytest.mark.parametrize("m", [30, 20])
    def test_case_one(self, m):
        X, y = faces_like()
        model = paper(m).fit(X, y)
        assert model.rank_ == 99
        assert model.n_iter_ <= 10
        Z = X @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:99].T
        S_w, S_b = scatters(Z, y)
        assert np.linalg.matrix_rank(S_w) == 80
        assert model.objective_ == pytest.approx(bisection(S_b, S_w, m)[0], rel=1e-8)

    def test_case_two(self):
        X, y = faces_like()
        model = paper(19).fit(X, y)
        assert model.objective_ == np.inf
        S_w, S_b = scatters(X - X.mean(axis=0), y)
        W = model.components_.T
        assert np.trace(W.T @ S_w @ W) <= 1e-9 * np.trace(S_w)
        assert np.trace(W.T @ S_b @ W) > 0.01 * np.trace(S_b)

    def test_directions_in_which_nothing_varies_are_never_taken(self):
        """Without step 0 they would win: S_b = S_w = 0 there."""
        X, y = wine()
        padded = np.hstack([X, np.ones((len(X), 5)), X[:, :3]])
        model = paper(6).fit(padded, y)
        assert model.rank_ == 13
        np.testing.assert_allclose(model.components_[:, 13:18], 0, atol=1e-10)


def test_a_feature_that_neither_graph_sees():
    """One row has it and no mutual neighbour: S_b = S_w = 0 there, 0/0. Taken in case 1, where it
    costs nothing, and never as the whole answer."""
    X, y = wine()
    rare = np.zeros((len(X), 1))
    rare[0] = 100.0
    X = np.hstack([X, rare])
    alone = paper(1).fit(X, y)
    assert abs(alone.components_[0, 13]) < 1e-8
    assert np.isfinite(alone.objective_)
    among_five = paper(5).fit(X, y)
    assert among_five.rank_ == 14
    assert np.sum(among_five.components_[:, 13] ** 2) == pytest.approx(1)
    assert among_five.objective_ == pytest.approx(paper(4).fit(X[:, :13], y).objective_, rel=0.05)
    ratio = paper(5, criterion="ratio_trace").fit(X, y)
    np.testing.assert_allclose(ratio.components_[:, 13], 0, atol=1e-8)


class TestDigits:
    def setup_method(self):
        X, y = load_digits(return_X_y=True)
        self.X, self.y = (
            X[:200] + np.random.default_rng(0).normal(scale=0.01, size=(200, 64)),
            y[:200],
        )

    def test_the_papers_problem_size(self):
        model = paper(60).fit(self.X, self.y)
        S_w, S_b = scatters(self.X, self.y)
        assert model.n_iter_ <= 10
        assert model.objective_ == pytest.approx(bisection(S_b, S_w, 60)[0])


def test_default_number_of_components():
    X, y = wine()
    assert paper().fit(X, y).n_components_ == 7  # half of 13, rounded up
    assert paper().fit(np.hstack([X, X]), y).n_components_ == 7  # of the rank
    assert paper(criterion="ratio_trace").fit(X, y).n_components_ == 9  # 3 classes
    assert NMMP().fit(X, y).n_components_ == 7
    wide = np.hstack([X, np.random.default_rng(0).normal(size=(len(X), 30))])
    assert NMMP().fit(wide, y).n_components_ == 9
    assert (
        paper().fit(wide, y).n_components_ == NMMP(shrinkage=0.0).fit(wide, y).n_components_ == 22
    )


def test_the_default_does_not_spread_the_rows_over_noise():
    """Half of 120 features of noise would outvote the two that separate the classes."""
    rng = np.random.default_rng(0)
    y = np.arange(400) % 3
    X = scale(
        np.hstack([3 * np.eye(3)[y] + rng.normal(size=(400, 3)), rng.normal(size=(400, 120))])
    )
    accuracy = {}
    for m in (None, 62):
        model = make_pipeline(NMMP(m), KNeighborsClassifier(3)).fit(X[:200], y[:200])
        accuracy[m] = model.score(X[200:], y[200:])
    assert accuracy[None] > accuracy[62] + 0.05
    assert paper(criterion="ratio_trace").fit(X[:, :5], y).n_components_ == 5


def test_all_components_are_an_isometry():
    X, y = wine()
    np.testing.assert_allclose(paper(13).fit(X, y).get_mahalanobis_matrix(), np.eye(13), atol=1e-10)


def test_figure_2_finds_the_circles_in_the_noise():
    X, y = make_concentric_classes(random_state=0)
    model = paper(2).fit(X, y)
    assert np.sum(model.components_[:, :2] ** 2) > 1.8  # of 2


def test_more_components_than_directions_warns():
    X, y = wine()
    for criterion in ("trace_ratio", "ratio_trace"):
        with pytest.warns(
            UserWarning, match="n_components=15 were requested, but only 13 directions"
        ):
            model = paper(15, criterion=criterion).fit(np.hstack([X, X[:, :4]]), y)
        assert model.components_.shape == (13, 17)


def test_no_mutual_neighbours_of_other_classes_warns(monkeypatch):
    """Legal where many distances tie, as in text."""
    mutual_knn = Rows.mutual_knn
    monkeypatch.setattr(
        Rows,
        "mutual_knn",
        lambda rows, relation, k: mutual_knn(rows, relation, k) * (relation == "same"),
    )
    with pytest.warns(
        UserWarning, match="objective is 0 in the directions found.*use more neighbours"
    ):
        model = paper(2).fit(*wine())
    assert model.objective_ == 0
    assert model.components_.shape == (2, 13)


def test_a_graph_that_does_not_fit_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("nearkin._memory.available_memory", lambda: 10**5)
    with pytest.raises(
        MemoryError, match=r"up to 37 neighbours.*100 kB are free: lower the number of neighbours"
    ):
        paper().fit(*wine())
    paper(n_neighbors_within=2).fit(*wine())


class TestUnits:
    def test_a_feature_in_other_units_hides_no_direction(self):
        X, y = wine()
        for unit in (1e-6, 1e5, 1e8):
            X = wine()[0] * np.where(np.arange(13) == 4, unit, 1.0)
            model = paper(5).fit(X, y)
            assert model.rank_ == 13
            assert model.n_components_ == 5
            assert np.isfinite(model.objective_)

    def test_what_step_0_drops_is_reported_unless_it_is_rounding(self):
        X, y = wine()
        noise = np.random.default_rng(0).normal(size=(178, 1))
        with pytest.warns(
            UserWarning,
            match=r"less than 1e-10 of its features' spread in 1 direction, which was dropped",
        ):
            model = paper(3).fit(np.hstack([X, X[:, :1] + 1e-11 * noise]), y)
        assert model.rank_ == 13
        assert paper(3).fit(np.hstack([X, X[:, :1] + 1e-8 * noise]), y).rank_ == 14
        assert paper(3).fit(np.hstack([X, X[:, :2].sum(axis=1, keepdims=True)]), y).rank_ == 13


def test_the_boundary_of_case_two():
    """The ratio stays infinite where S_w and S_b vanish together in too many directions to be left
    out.
    """
    found = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(14, 30)), np.repeat([0, 1], 7)
        X -= X.mean(axis=0)
        Z = X @ np.linalg.svd(X, full_matrices=False)[2][:13].T
        S_w, S_b = scatters(Z, y, 3, 3)
        nullity = 13 - np.linalg.matrix_rank(S_w)
        if nullity >= 3:
            nothing = 13 - np.linalg.matrix_rank(S_w + S_b)
            model = paper(3, n_neighbors_within=3, n_neighbors_between=3).fit(X, y)
            assert model.objective_ == np.inf
            found.add(nullity - nothing < 3)
    assert True in found


class TestGivenWeight:
    """Eq. 6."""

    @pytest.mark.parametrize("weight", [0.0, 0.3, 5.0])
    def test_no_other_directions_are_better(self, weight):
        X, y = wine()
        model = paper(4, weight=weight).fit(X, y)
        S_w, S_b = scatters(X, y)
        W, A = model.components_.T, S_b - weight * S_w
        np.testing.assert_allclose(W.T @ W, np.eye(4), atol=1e-10)
        assert model.objective_ == pytest.approx(np.trace(W.T @ A @ W))
        np.testing.assert_allclose(model.eigenvalues_, np.linalg.eigvalsh(A)[:-5:-1])

    def test_the_optimal_ratio_as_weight_gives_the_trace_ratio(self):
        X, y = wine()
        for shrinkage in (None, 0.5):
            ratio = NMMP(4, shrinkage=shrinkage).fit(X, y)
            difference = NMMP(4, weight=ratio.objective_, shrinkage=shrinkage).fit(X, y)
            assert difference.objective_ == pytest.approx(
                0, abs=1e-8 * np.abs(ratio.eigenvalues_).max()
            )
            assert_same_subspace(difference.components_, ratio.components_)

    def test_it_grows_with_the_dimension_while_eigenvalues_are_positive(self):
        X, y = wine()
        eigenvalues = paper(13, weight=0.5).fit(X, y).eigenvalues_
        m = int(np.sum(eigenvalues > 0))
        assert 1 < m < 13
        objectives = [paper(k, weight=0.5).fit(X, y).objective_ for k in (m - 1, m, m + 1)]
        assert np.argmax(objectives) == 1


def test_the_ratio_of_all_directions_is_that_of_the_traces():
    X, y = wine()
    S_w, S_b = scatters(X, y)
    assert paper(13).fit(X, y).objective_ == pytest.approx(np.trace(S_b) / np.trace(S_w))


class TestNeighborsOfEachClass:
    def test_definition(self):
        X, y = wine()
        k_w, k_b = {"a": 3, "b": 7, "c": 70}, {"a": 9, "b": 2, "c": 5}
        D = np.linalg.norm(X[:, None] - X, axis=2)
        graphs = np.zeros((2, 178, 178), bool)
        for i in range(178):
            for graph, k, candidates in zip(
                graphs, (k_w, k_b), (y == y[i], y != y[i]), strict=True
            ):
                others = np.flatnonzero(candidates & (np.arange(178) != i))
                graph[i, others[np.argsort(D[i, others])[: k["abc"[y[i]]]]]] = True
        S_w, S_b = (scatter(X, laplacian(csr_array((G & G.T).astype(float)))) for G in graphs)
        names = np.array(list("abc"))[y]
        model = paper(4, n_neighbors_within=k_w, n_neighbors_between=k_b).fit(X, names)
        assert model.objective_ == pytest.approx(bisection(S_b, S_w, 4)[0])
        same = paper(4, n_neighbors_within=list(k_w.values()), n_neighbors_between=(9, 2, 5)).fit(
            X, y
        )
        np.testing.assert_array_equal(same.components_, model.components_)
        equal = paper(4, n_neighbors_within=[5, 5, 5], n_neighbors_between=[4] * 3).fit(X, y)
        number = paper(4, n_neighbors_within=5, n_neighbors_between=4).fit(X, y)
        np.testing.assert_array_equal(equal.components_, number.components_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"criterion": "ratio"}, "criterion must be one of trace_ratio, ratio_trace, got 'ratio'"),
        ({"n_neighbors_within": 0}, "n_neighbors_within must be at least 1, got 0"),
        ({"n_neighbors_between": -2}, "n_neighbors_between must be at least 1, got -2"),
        (
            {"n_neighbors_within": [3, 3]},
            "n_neighbors_within has 2 numbers and y 3 classes: give one for each",
        ),
        ({"n_neighbors_within": [3, 0, 3]}, "n_neighbors_within must be at least 1, got 0"),
        (
            {"n_neighbors_between": {0: 3, 2: 3}},
            "n_neighbors_between has no number for class 1: give one for every",
        ),
        ({"weight": -1}, "weight must be a finite number of at least 0, got -1"),
        (
            {"weight": 1, "criterion": "ratio_trace"},
            "weight has no meaning for criterion='ratio_trace'",
        ),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        paper(**parameters).fit(*wine())
