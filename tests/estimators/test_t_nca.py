"""A picture of labelled rows: unseen rows tend to fall in their own class, and chance is not hidden."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial import procrustes
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import scale

from nearkin import NCA, NCAClassifier, TDistributedNCA
from nearkin.estimators import t_nca
from nearkin.estimators.t_nca import (
    initial_positions,
    placement,
    places_of_classes,
    stratified_sample,
    target_graph,
)
from nearkin.objectives import t_nca as objective
from nearkin.objectives.stochastic import SameClass
from nearkin.objectives.t_nca import PlacedNeighbors


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def blobs(n=300, n_classes=6, seed=0):
    return make_blobs(n, 8, centers=n_classes, cluster_std=2.0, random_state=seed)


def accuracy(picture, X, y, n_train):
    vote = KNeighborsClassifier(5).fit(picture.transform(X[:n_train]), y[:n_train])
    return vote.score(picture.transform(X[n_train:]), y[n_train:])


def expected_placement(picture, H, *, own=False):
    """The definition, by all distances."""
    D = pairwise_distances(H, picture.landmarks_)
    if own:
        np.fill_diagonal(D, np.inf)
    Z = []
    for distances in D:
        near = np.argsort(distances)[: picture.n_neighbors]
        s = np.exp(-((distances[near] / picture.bandwidth_) ** 2))
        Z.append(s @ picture.positions_[near] / s.sum())
    return np.array(Z)


class TestPlacement:
    def test_rows_are_placed_at_the_mean_of_their_neighbours(self):
        X, y = wine()
        picture = TDistributedNCA(n_neighbors=7).fit(X[::2], y[::2])
        np.testing.assert_allclose(
            picture.transform(X), expected_placement(picture, picture.space(X)), rtol=1e-9
        )

    @pytest.mark.slow
    def test_training_rows_are_placed_by_the_others(self):
        X, y = wine()
        picture = TDistributedNCA().fit(X, y)
        expected = expected_placement(picture, picture.landmarks_, own=True)
        np.testing.assert_allclose(picture.embedding_, expected, rtol=1e-9)

    @pytest.mark.long
    def test_exact_duplicates(self):
        X, y = wine()
        X, y = np.repeat(X[:60], 20, axis=0), np.repeat(y[:60] + (np.arange(60) % 2), 20)
        picture = TDistributedNCA(max_iter=5).fit(X, y)
        assert np.isfinite(picture.transform(X)).all()

    def test_rows_beyond_all_distances_are_refused(self):
        picture = TDistributedNCA(max_iter=2).fit(*wine())
        with pytest.raises(ValueError, match="so far from the landmarks"):
            picture.transform(np.full((1, 13), 1e200))


class TestPositions:
    @pytest.mark.long
    def test_they_are_stationary(self):
        X, y = wine()
        X, y = X[::4], y[::4]
        picture = TDistributedNCA(max_iter=2000, tol=1e-14).fit(X, y)
        H = picture.landmarks_
        S = placement(H, H, picture.bandwidth_, 15, own=True)
        W = target_graph(H, SameClass(y), 15)
        slope = PlacedNeighbors(S, W, picture.alpha).value(picture.positions_)[1]
        assert np.abs(slope).max() < 1e-4

    @pytest.mark.parametrize("alone", [[], [0, 70]])
    def test_the_loss_is_that_of_the_embedding(self, alone):
        X, y = wine()
        y[alone] = np.arange(len(alone)) + 3
        picture = TDistributedNCA().fit(X, y)
        Z, U = picture.embedding_, picture.positions_
        K = 1 / (1 + pairwise_distances(Z, squared=True, metric="euclidean"))
        np.fill_diagonal(K, 0)
        D = pairwise_distances(picture.landmarks_)
        D[(y[:, None] != y) | np.eye(len(y), dtype=bool)] = np.inf
        right = np.take_along_axis(K, np.argsort(D, axis=1)[:, :15], axis=1)
        log_q = np.log(right.sum(axis=1) / K.sum(axis=1))
        log_q[alone] = 0
        assert picture.objective_ == pytest.approx(log_q.mean())
        loss = 0.3 * np.mean(np.sum((U - Z) ** 2, axis=1)) - log_q.mean()
        assert picture.loss_curve_[-1] == pytest.approx(loss)
        assert len(picture.loss_curve_) == picture.n_iter_ + 1
        assert picture.loss_curve_[-1] < picture.loss_curve_[0]

    def test_classes_do_not_shrink_to_points(self):
        X, y = wine()
        picture = TDistributedNCA().fit(X, y)
        for c in range(3):
            nearest = np.sort(pairwise_distances(picture.embedding_[y == c]), axis=1)[:, 1]
            assert np.median(nearest) > 0.1

    @pytest.mark.long
    def test_a_row_alone_in_its_class_does_not_depend_on_rounding(self):
        X, y = wine()
        y[70] = 3
        Z = TDistributedNCA().fit(X, y).embedding_
        single = TDistributedNCA().fit(X.astype(np.float32), y).embedding_
        assert procrustes(Z, single)[2] < 1e-3

    def test_a_target_far_from_all_others(self):
        X, y = load_diabetes(return_X_y=True)
        y[3] = 1e6
        picture = TDistributedNCA(target="continuous", max_iter=5).fit(X[:100], y[:100])
        assert np.isfinite(picture.positions_).all()

    @pytest.mark.long
    def test_a_large_penalty_smooths(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 5))
        y = X[:, 0] + rng.normal(size=300) > 0  # classes that overlap

        def roughness(alpha):
            picture = TDistributedNCA(alpha=alpha).fit(X, y)
            apart = picture.positions_ - picture.embedding_
            return np.sum(apart**2) / np.sum(picture.embedding_**2)

        assert roughness(1.0) < roughness(0.3) < roughness(0.0)


class TestPictures:
    @pytest.mark.long
    def test_unseen_rows_fall_among_their_class(self):
        X, y = load_digits(return_X_y=True)
        picture = TDistributedNCA().fit(X[:600] / 16, y[:600])
        plane = accuracy(picture, X / 16, y, 600)
        linear = NCA(2, objective="log_likelihood").fit(X[:600] / 16, y[:600])
        assert plane > 0.92
        assert plane > accuracy(linear, X / 16, y, 600) + 0.15

    @pytest.mark.slow
    def test_random_labels_are_at_chance_on_unseen_rows_and_look_mixed(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(600, 10)), np.arange(600) % 2
        picture = TDistributedNCA().fit(X[:300], y[:300])
        assert accuracy(picture, X, y, 300) < 0.6
        Z = picture.transform(X[300:])
        means = [Z[y[300:] == c].mean(axis=0) for c in (0, 1)]
        assert np.linalg.norm(means[0] - means[1]) < 0.3 * Z.std(axis=0).max()

    @pytest.mark.long
    def test_equal_rows_and_seed_give_equal_pictures(self):
        X, y = blobs(400)
        first, again = (TDistributedNCA(random_state=3).fit(X, y).positions_ for _ in range(2))
        np.testing.assert_array_equal(first, again)

    @pytest.mark.long
    @pytest.mark.parametrize("moved", ["permuted", "rotated", "shifted"])
    def test_moved_rows_are_as_accurate(self, moved):
        X, y = blobs()
        rng = np.random.default_rng(1)
        before = accuracy(TDistributedNCA().fit(X[:200], y[:200]), X, y, 200)
        if moved == "permuted":
            order = np.r_[rng.permutation(200), np.arange(200, 300)]
            X, y = X[order], y[order]
        elif moved == "rotated":
            X = X @ np.linalg.qr(rng.normal(size=(8, 8)))[0]
        else:
            X = X + 100.0
        after = accuracy(TDistributedNCA().fit(X[:200], y[:200]), X, y, 200)
        assert after == pytest.approx(before, abs=0.02)

    @pytest.mark.long
    def test_numbers(self):
        X, y = load_diabetes(return_X_y=True)
        picture = TDistributedNCA(target="continuous").fit(X[:300], y[:300])
        vote = KNeighborsRegressor(15).fit(picture.transform(X[:300]), y[:300])
        assert vote.score(picture.transform(X[300:]), y[300:]) > 0.3
        assert picture.target_bandwidth_ > 0

    @pytest.mark.slow_after(1)
    @pytest.mark.parametrize("m", [1, 2, 3])
    def test_dimensions(self, m):
        X, y = blobs()
        picture = TDistributedNCA(m, max_iter=10).fit(X, y)
        assert picture.transform(X).shape == (300, m)
        assert list(picture.get_feature_names_out()) == [f"tdistributednca{j}" for j in range(m)]

    def test_one_feature(self):
        X, y = load_iris(return_X_y=True)
        assert np.isfinite(TDistributedNCA().fit(X[:, 2:3], y).transform(X[:, 2:3])).all()

    def test_float32_stays_and_agrees(self):
        X, y = wine()
        picture = TDistributedNCA(max_iter=1).fit(X, y)
        single = TDistributedNCA(max_iter=1).fit(X.astype(np.float32), y)
        assert single.transform(X.astype(np.float32)).dtype == np.float32
        assert single.bandwidth_ == pytest.approx(picture.bandwidth_, rel=0.05)

    def test_sparse_rows(self):
        X, y = wine()
        X = np.where(X > 0.5, X, 0)
        dense = TDistributedNCA(max_iter=5).fit(X, y)
        sparse = TDistributedNCA(max_iter=5).fit(csr_array(X), y)
        np.testing.assert_allclose(sparse.transform(csr_array(X)), dense.transform(X), atol=1e-6)


class TestSpaces:
    def test_the_default_is_nca(self):
        X, y = wine()
        picture = TDistributedNCA().fit(X, y)
        nca = NCA(13, objective="log_likelihood").fit(X, y)
        np.testing.assert_allclose(picture.space(X), nca.transform(X))

    @pytest.mark.slow
    def test_rows_that_are_in_a_learned_space(self):
        X, y = wine()
        H = PCA(4).fit_transform(X)
        alone = TDistributedNCA(estimator="passthrough").fit(H, y)
        both = TDistributedNCA(estimator=PCA(4)).fit(X, y)
        np.testing.assert_array_equal(alone.space(H), H)
        np.testing.assert_allclose(both.positions_, alone.positions_)
        assert (both.n_features_in_, alone.n_features_in_) == (13, 4)

    @pytest.mark.slow
    def test_data_frames_by_a_predictor_for_tables(self):
        pd = pytest.importorskip("pandas")
        X, y = load_iris(return_X_y=True, as_frame=True)
        X = X.assign(colour=pd.Series(["red", "blue", None] * 50, dtype=object))
        predictor = NCAClassifier(n_members=2, alpha=0.1, random_state=0)
        picture = TDistributedNCA(estimator=predictor).fit(X, y)
        assert picture.transform(X.iloc[:3]).shape == (3, 2)
        assert list(picture.feature_names_in_) == list(X.columns)
        assert picture.n_features_in_ == 5

    def test_a_sparse_space_is_refused(self):
        X, y = wine()
        with pytest.raises(ValueError, match="leaves the rows sparse"):
            TDistributedNCA(estimator="passthrough").fit(csr_array(X), y)


class TestManyRows:
    @pytest.mark.long
    def test_stochastic_gradient_is_as_good_as_lbfgs(self, monkeypatch):
        X, y = blobs(600)
        exact = accuracy(TDistributedNCA().fit(X[:400], y[:400]), X, y, 400)
        monkeypatch.setattr(t_nca, "EXACT_ROWS", 200)
        monkeypatch.setattr(objective, "ANCHORS", 50)
        stochastic = TDistributedNCA(random_state=0).fit(X[:400], y[:400])
        assert accuracy(stochastic, X, y, 400) > exact - 0.02
        assert stochastic.n_iter_ == 10
        assert stochastic.loss_curve_[-1] < stochastic.loss_curve_[0]

    @pytest.mark.slow
    def test_landmarks_are_a_part_of_the_rows(self):
        X, y = blobs(600)
        picture = TDistributedNCA(n_landmarks=100, random_state=0).fit(X[:400], y[:400])
        rows = picture.landmark_indices_
        np.testing.assert_array_equal(picture.landmarks_, picture.space(X[:400])[rows])
        assert len(np.unique(rows)) == len(picture.embedding_) == 100
        assert accuracy(picture, X, y, 400) > 0.9

    @pytest.mark.parametrize("solver", ["lbfgs", "minibatches"])
    def test_landmarks_of_a_rare_class(self, solver, monkeypatch):
        if solver == "minibatches":
            monkeypatch.setattr(t_nca, "EXACT_ROWS", 40)
            monkeypatch.setattr(objective, "ANCHORS", 20)
        X, y = blobs(500, n_classes=1)
        y[[10, 200, 400]] = 1
        for seed in range(3):
            picture = TDistributedNCA(
                estimator="passthrough", n_landmarks=50, max_iter=2, random_state=seed
            ).fit(X, y)
            assert y[picture.landmark_indices_].sum() == 3

    def test_landmarks_are_drawn_in_proportion(self):
        codes = np.repeat([0, 2, 3], [3, 700, 297])  # class 1 is empty
        rows = stratified_sample(codes, 100, 16, np.random.RandomState(0))
        assert (np.diff(rows) > 0).all()
        counts = np.bincount(codes[rows])
        assert counts.sum() == 100
        np.testing.assert_allclose(counts, [3, 0, 68, 29], atol=1)

    def test_landmarks_of_one_class(self):
        X, y = blobs(300, n_classes=1)
        y[:2] = 1
        picture = TDistributedNCA(n_landmarks=3, random_state=0, max_iter=3).fit(X, y)
        assert y[picture.landmark_indices_].sum() == 0
        assert np.isfinite(picture.transform(X)).all()

    def test_landmarks_may_lack_a_class(self):
        X, y = blobs(300)
        y[0] = 77
        picture = TDistributedNCA(n_landmarks=30, random_state=0, max_iter=3).fit(X, y)
        assert np.isfinite(picture.positions_).all()


class TestFirstPositions:
    def test_classes_lie_apart(self):
        X, y = blobs(500, n_classes=20)
        U = initial_positions(X, y, 2)
        means = np.array([U[y == c].mean(axis=0) for c in range(20)])
        nearest = np.sort(pairwise_distances(means), axis=1)[:, 1]
        assert nearest.min() > 1.5

    def test_a_few_classes_keep_their_distances(self):
        means = np.array([[0.0, 0, 0], [3, 0, 0], [0, 4, 0]])
        D = pairwise_distances(places_of_classes(means, 2))
        expected = pairwise_distances(means)
        np.testing.assert_allclose(D / D[0, 1], expected / expected[0, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"estimator": "drop"}, "estimator must be one of passthrough"),
        ({"target": "ranks"}, "target must be one of"),
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"n_landmarks": 1}, "n_landmarks must be"),
        ({"n_landmarks": "all"}, "n_landmarks must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"alpha": -1}, "alpha must be"),
        ({"tol": -1}, "tol must be"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TDistributedNCA(**parameters).fit(*wine())


def test_an_interrupt_keeps_the_positions_so_far(monkeypatch):
    X, y = wine()
    calls = []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) > 5:
            raise KeyboardInterrupt
        return log_mass(*args, **options)

    log_mass = objective.log_mass
    monkeypatch.setattr(objective, "log_mass", interrupted)
    picture = TDistributedNCA()
    with pytest.raises(KeyboardInterrupt):
        picture.fit(X, y)
    assert picture.transform(X).shape == (178, 2)
    assert picture.n_iter_ > 0


def test_copies_of_few_rows_are_drawn_without_a_warning():
    """They span fewer dimensions than the space may have."""
    X = np.random.default_rng(0).normal(size=(12, 40))
    X, y = np.vstack([X, X[:4]]), np.arange(16) % 2
    assert np.isfinite(TDistributedNCA(random_state=0).fit(X, y).embedding_).all()
