import numpy as np
import pytest
from scipy.linalg import eigh, orth, subspace_angles
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from nearkin import (
    LPP,
    DiscriminativeProjections,
    DiscriminativeProjectionsClassifier,
    DiscriminativeProjectionsRegressor,
)
from nearkin.estimators import discriminative_projections as module
from nearkin.graphs import connected_components, heat_kernel, union
from nearkin.neighbors import nearest


def wine(per_class=(8, 5, 12), seed=0):
    """Return wine and its labels, -1 but for so many of each class, anywhere."""
    X, y = load_wine(return_X_y=True)
    rng = np.random.default_rng(seed)
    few = np.full(len(y), -1)
    for label, number in enumerate(per_class):
        few[rng.choice(np.flatnonzero(y == label), number, replace=False)] = label
    return scale(X), y, few


def values(n_targets=1, seed=0):
    """Return wine and its first columns as targets, NaN in two rows of three."""
    X = scale(load_wine().data)
    Y = X[:, :n_targets] + 5.0
    Y[np.random.default_rng(seed).random(len(X)) < 2 / 3] = np.nan
    return X[:, n_targets:] + 1.0, Y[:, 0] if n_targets == 1 else Y


def graph(X, k=10):
    W = union(heat_kernel(nearest(X, k))).toarray()
    return W, np.diag(W.sum(axis=1)) - W


def class_pencil(X, y, mu):
    """Return A + C and B + C as sec. 2.4 defines them, pair by pair."""
    p, c = X.shape[1], y.max() + 1
    A, B, C = np.zeros((3, p + c, p + c))
    for x, label in zip(X, y, strict=True):
        if label < 0:
            continue
        for k in range(c):
            v = np.concatenate([x, -np.eye(c)[k]])
            B += np.outer(v, v)
            if k == label:
                A += np.outer(v, v)
    C[:p, :p] = mu * X.T @ graph(X)[1] @ X
    return A + C, B + C


def number_pencil(X, y, mu):
    """Return Z L^ Z' and Z D^ Z' as sec. 3.3 defines them, labelled rows first."""
    Y = y.reshape(len(y), -1)
    known = ~np.isnan(Y).any(axis=1)
    order = np.argsort(~known, kind="stable")
    X, Y, n, l = X[order], Y[order][: known.sum()], len(X), known.sum()  # noqa: E741
    W, L = graph(X)
    U1, U2 = np.zeros((n, n)), np.eye(n)[:, :l]
    U1[:l, :l] = np.eye(l)
    Z = np.zeros((X.shape[1] + Y.shape[1], n + l))
    Z[: X.shape[1], :n], Z[X.shape[1] :, n:] = X.T, Y.T
    L_hat = np.block([[U1 + mu * L, -U2], [-U2.T, np.eye(l)]])
    D_hat = np.diag(np.concatenate([W.sum(axis=1), np.ones(l)]))
    return Z @ L_hat @ Z.T, Z @ D_hat @ Z.T


def both_maps(model):
    return np.hstack([model.components_, model.label_components_]).T


def residual(A, B, V, values):
    size = (np.linalg.norm(A, 2) + np.abs(values) * np.linalg.norm(B, 2)) * np.linalg.norm(
        V, axis=0
    )
    return np.max(np.linalg.norm(A @ V - B @ V * values, axis=0) / size)


def canonical_correlations(X, Y):
    """Return those of centred X and Y, descending: the cosines of the angles of their ranges."""
    return np.cos(subspace_angles(orth(X - X.mean(axis=0)), orth(Y - Y.mean(axis=0))))[::-1]


def learned(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


class TestClasses:
    @pytest.mark.parametrize("offset", [0.0, 30.0])
    def test_optimality(self, offset):
        X, _, y = wine()
        X = X + offset
        model = DiscriminativeProjections(9).fit(X, y)
        A, B = class_pencil(X, y, model.mu_)
        V = both_maps(model)
        np.testing.assert_allclose(V.T @ B @ V, np.eye(9), atol=1e-9)
        assert residual(A, B, V, model.eigenvalues_) <= 1e-8
        np.testing.assert_allclose(model.eigenvalues_, eigh(A, B, eigvals_only=True)[:9], rtol=1e-8)
        assert (model.eigenvalues_ >= 0).all()
        assert (model.eigenvalues_ <= 1).all()
        assert model.objective_ == pytest.approx(model.eigenvalues_.sum())
        assert model.rank_ == 16
        assert model.constant_eigenvalues_.size == 0

    def test_weight_of_the_graph(self):
        X, _, y = wine()
        assert DiscriminativeProjections().fit(X, y).mu_ == pytest.approx(25 / graph(X)[0].sum())
        assert DiscriminativeProjections(mu=3).fit(X, y).mu_ == 3

    def test_origin_changes_nothing_and_labels_move_along(self):
        X, _, y = wine()
        near, far = (
            DiscriminativeProjections(4).fit(X, y),
            DiscriminativeProjections(4).fit(X + 1e4, y),
        )
        np.testing.assert_allclose(far.components_, near.components_, atol=1e-8)
        shift = near.components_.sum(axis=1) * 1e4
        np.testing.assert_allclose(far.label_prototypes_ - shift, near.label_prototypes_, atol=1e-6)
        np.testing.assert_array_equal(near.label_prototypes_, near.label_components_.T)

    def test_sparse_rows_far_from_the_origin(self):
        """They cannot be centred; the direction of no row is found even so."""
        X, _, y = wine((9, 9, 9))
        affinity = graph(X)[0]
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.02, X, 0)
        X[:, 0] = np.linspace(0, 1, 178) + 1e6
        assert np.count_nonzero(X) < 0.1 * X.size
        dense, sparse = (
            DiscriminativeProjections(3).fit(c(X), y, affinity=affinity)
            for c in (np.asarray, csr_array)
        )
        np.testing.assert_array_equal(sparse.constant_eigenvalues_, dense.constant_eigenvalues_)
        np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, rtol=1e-6)

    def test_labelled_rows_may_be_anywhere(self):
        X, _, y = wine()
        order = np.argsort(y < 0, kind="stable")  # as in the paper, the labelled ones first
        model, first = (
            DiscriminativeProjections(4).fit(X, y),
            DiscriminativeProjections(4).fit(X[order], y[order]),
        )
        np.testing.assert_allclose(first.components_, model.components_, atol=1e-10)
        np.testing.assert_allclose(first.label_prototypes_, model.label_prototypes_, atol=1e-10)

    def test_with_balanced_classes_the_direction_of_no_row_is_left_out(self):
        X, _, y = wine((9, 9, 9))
        model = DiscriminativeProjections(13).fit(X, y)
        np.testing.assert_array_equal(model.constant_eigenvalues_, [1 / 3])
        assert model.rank_ == 15
        A, B = class_pencil(X, y, model.mu_)
        constant = np.concatenate([np.zeros(13), np.ones(3)])
        np.testing.assert_allclose(A @ constant, B @ constant / 3, atol=1e-10)
        every = np.sort(np.concatenate([model.eigenvalues_, model.constant_eigenvalues_]))
        np.testing.assert_allclose(every, eigh(A, B, eigvals_only=True)[:14], rtol=1e-8)
        np.testing.assert_allclose(constant @ B @ both_maps(model), 0, atol=1e-10)
        assert residual(A, B, both_maps(model), model.eigenvalues_) <= 1e-8
        assert model.transform(X).std(axis=0).min() > 1e-3

    def test_with_balanced_classes_and_no_graph_it_is_cca_with_their_indicators(self):
        X, y = load_iris(return_X_y=True)
        model = DiscriminativeProjections(2, mu=0).fit(X, y)
        rho = canonical_correlations(X, np.eye(3)[y])
        np.testing.assert_allclose(model.eigenvalues_, (1 - rho) / 3, atol=1e-10)
        scores = model.transform(X), model.label_prototypes_[y]
        for j in range(2):
            assert np.corrcoef(*(Z[:, j] for Z in scores))[0, 1] == pytest.approx(rho[j])

    def test_fewer_features_than_classes_leave_more_such_directions(self):
        X, y = load_digits(return_X_y=True)
        X, y = X[:600, 20:22] + np.random.default_rng(0).normal(size=(600, 2)), y[:600]
        for label in range(10):
            y[np.flatnonzero(y == label)[20:]] = -1
        model = DiscriminativeProjections(2).fit(X, y)
        np.testing.assert_array_equal(model.constant_eigenvalues_, np.full(8, 0.1))
        A, B = class_pencil(X, y, model.mu_)
        assert model.rank_ == 4
        assert residual(A, B, both_maps(model), model.eigenvalues_) <= 1e-8
        np.testing.assert_allclose(model.eigenvalues_, eigh(A, B, eigvals_only=True)[:2], rtol=1e-8)

    def test_a_class_whose_mean_is_that_of_all(self):
        X = np.array([[-1.0, 0], [1, 0], [-2, 3], [-2, -3], [3, 1], [2, -1], [-1, 0]])
        model = DiscriminativeProjections(2, mu=0).fit(X, [0, 0, 1, 1, 1, 1, 1])
        np.testing.assert_allclose(model.constant_eigenvalues_, [2 / 7, 5 / 7])
        assert model.rank_ == 2

    def test_much_weight_on_the_graph(self):
        """A connected graph then lets no row differ: the labels alone are left. It is not LPP."""
        X, _, y = wine()
        assert connected_components(union(heat_kernel(nearest(X, 10)))).max() == 0
        model = DiscriminativeProjections(8, mu=1e7).fit(X, y)
        np.testing.assert_allclose(model.eigenvalues_[:3], [5 / 25, 8 / 25, 12 / 25], atol=1e-5)
        np.testing.assert_allclose(model.eigenvalues_[3:], 1, atol=1e-5)
        spread = model.transform(X).std(axis=0)
        assert spread[:3].max() < 1e-3 * np.ptp(model.label_prototypes_[:, :3])

    def test_names_of_the_classes(self):
        X, _, y = wine()
        expected = DiscriminativeProjections(3).fit(X, y)
        names = np.array(["zebra", "ant", "mole", None], dtype=object)[y]
        named = DiscriminativeProjections(3).fit(X, names)
        np.testing.assert_array_equal(named.classes_, ["ant", "mole", "zebra"])
        np.testing.assert_allclose(named.components_, expected.components_, atol=1e-10)
        np.testing.assert_allclose(
            named.label_prototypes_, expected.label_prototypes_[[1, 2, 0]], atol=1e-10
        )
        for missing in (np.nan, None):
            numbers = np.where(y < 0, missing, y.astype(object))
            np.testing.assert_array_equal(
                DiscriminativeProjections(3).fit(X, numbers).components_, expected.components_
            )

    def test_the_string_minus_one_is_a_class(self):
        X, _, y = wine()
        model = DiscriminativeProjections(3).fit(X, y.astype(str))
        np.testing.assert_array_equal(model.classes_, ["-1", "0", "1", "2"])

    def test_rows_of_one_class_lie_about_their_label(self):
        X, _, few = wine()
        model = DiscriminativeProjections(2).fit(X, few)
        means = np.array([model.transform(X[few == label]).mean(axis=0) for label in range(3)])
        gaps = np.linalg.norm(means[:, None] - model.label_prototypes_, axis=2)
        np.testing.assert_array_equal(gaps.argmin(axis=1), [0, 1, 2])


class TestNumbers:
    @pytest.mark.parametrize("n_targets", [1, 3])
    def test_optimality(self, n_targets):
        X, y = values(n_targets)
        model = DiscriminativeProjections(8, target="continuous").fit(X, y)
        labelled = np.sum(~np.isnan(y.reshape(len(y), -1)[:, 0]))
        assert model.mu_ == pytest.approx(0.1 * labelled / graph(X)[0].sum())
        A, B = number_pencil(X, y, model.mu_)
        V = both_maps(model)
        assert model.label_components_.shape == (8, n_targets)
        np.testing.assert_allclose(V.T @ B @ V, np.eye(8), atol=1e-9)
        assert residual(A, B, V, model.eigenvalues_) <= 1e-8
        np.testing.assert_allclose(model.eigenvalues_, eigh(A, B, eigvals_only=True)[:8], rtol=1e-8)
        assert (model.eigenvalues_ >= 0).all()
        assert not hasattr(model, "label_prototypes_")

    def test_much_weight_on_the_graph_gives_lpp(self):
        """About the mean weighted by degrees, where LPP puts the origin, a direction of the label
        alone comes first.
        """
        X, y = values()
        degrees = graph(X)[0].sum(axis=1)
        X = X - degrees @ X / degrees.sum()
        model = DiscriminativeProjections(6, target="continuous", mu=1e8).fit(X, y)
        lpp = LPP(5, variance=1).fit(X)
        assert np.abs(model.transform(X)[:, 0]).max() < 1e-6
        assert model.eigenvalues_[0] == pytest.approx(1)
        np.testing.assert_allclose(model.eigenvalues_[1:] / 1e8, lpp.eigenvalues_, rtol=1e-6)
        np.testing.assert_allclose(model.components_[1:], lpp.components_, atol=1e-5)

    @pytest.mark.parametrize("kind", ["numbers", "indicators of classes of several sizes"])
    def test_with_degrees_1_and_no_weight_on_the_graph_it_is_cca(self, kind):
        X, y = load_iris(return_X_y=True)
        X, y = X[:120], y[:120]
        X, Y = (X[:, :2], X[:, 2:]) if kind == "numbers" else (X, np.eye(3)[y])
        X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        W = (np.ones((120, 120)) - np.eye(120)) / 119
        model = DiscriminativeProjections(2, target="continuous", mu=0).fit(X, Y, affinity=W)
        rho = canonical_correlations(X, Y)
        np.testing.assert_allclose(model.eigenvalues_, 1 - rho, atol=1e-10)
        scores = model.transform(X), Y @ model.label_components_.T
        for j in range(2):
            assert np.corrcoef(*(Z[:, j] for Z in scores))[0, 1] == pytest.approx(rho[j])

    def test_a_direction_is_manifold_regularization_less_its_own_cost(self):
        """With g for a scale: f = g (X_l'X_l + mu X'LX - lambda X'DX)^-1 X_l'y."""
        X, y = values()
        model = DiscriminativeProjections(2, target="continuous").fit(X, y)
        W, L = graph(X)
        known = ~np.isnan(y)
        for f, g, value in zip(
            model.components_, model.label_components_[:, 0], model.eigenvalues_, strict=True
        ):
            cost = X[known].T @ X[known] + model.mu_ * X.T @ L @ X
            less = value * X.T @ np.diag(W.sum(axis=1)) @ X
            solved = g * np.linalg.solve(cost - less, X[known].T @ y[known])
            np.testing.assert_allclose(f, solved, atol=1e-8 * np.abs(f).max())

    def test_a_target_that_no_feature_sees_is_left_out(self):
        X = np.array([[1.0], [-1], [2], [-2], [3]])
        Y = np.array([[1.0, 1], [-1, 1], [2, 0], [-2, 0], [np.nan, np.nan]])
        model = DiscriminativeProjections(1, target="continuous").fit(X, Y)
        np.testing.assert_array_equal(model.constant_eigenvalues_, [1.0])
        assert model.rank_ == 2
        assert model.label_components_[0, 1] == pytest.approx(0)

    def test_collinear_targets(self):
        X, y = values()
        one = DiscriminativeProjections(3, target="continuous").fit(X, y)
        two = DiscriminativeProjections(3, target="continuous").fit(
            X, np.stack([y, -2e3 * y], axis=1)
        )
        np.testing.assert_allclose(two.components_, one.components_, atol=1e-8)
        np.testing.assert_allclose(
            two.label_components_ @ [1, -2e3], one.label_components_[:, 0], atol=1e-8
        )

    def test_a_row_that_lacks_one_target_counts_as_one_without(self):
        X, Y = values(2)
        partly = Y.copy()
        partly[0] = [np.nan, 1.0]
        Y[0] = np.nan
        fits = [
            DiscriminativeProjections(3, target="continuous").fit(X, targets)
            for targets in (Y, partly)
        ]
        np.testing.assert_array_equal(fits[0].components_, fits[1].components_)

    def test_rows_of_like_values_lie_near_each_other(self):
        X, y = values()
        X = np.column_stack([X, np.ones(len(X))])
        target = scale(load_wine().data)[:, 0]
        Z = DiscriminativeProjections(1, target="continuous", mu=0).fit_transform(X, y)
        assert abs(np.corrcoef(Z[:, 0], target)[0, 1]) > 0.7


def problem(target):
    X, _, y = wine()
    return (X, y) if target == "classes" else values()


@pytest.mark.parametrize("target", ["classes", "continuous"])
class TestBoth:
    def test_sparse_equals_dense(self, target):
        X, y = problem(target)
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.08, X, 0)  # stays sparse
        estimator = DiscriminativeProjections(4, target=target, n_neighbors=20)
        affinity = graph(problem(target)[0])[0]
        dense, sparse = (
            clone(estimator).fit(c(X), y, affinity=affinity) for c in (np.asarray, csr_array)
        )
        np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-8)
        np.testing.assert_allclose(sparse.label_components_, dense.label_components_, atol=1e-8)

    def test_float32(self, target):
        X, y = problem(target)
        X = X.astype(np.float32)
        single = DiscriminativeProjections(4, target=target).fit(X, y)
        double = DiscriminativeProjections(4, target=target).fit(X.astype(np.float64), y)
        assert {single.components_.dtype, single.label_components_.dtype} == {np.dtype(np.float32)}
        np.testing.assert_allclose(single.components_, double.components_, atol=1e-5)

    @pytest.mark.parametrize(("offset", "container"), [(0.0, csr_array), (3.0, np.asarray)])
    def test_more_features_than_rows(self, target, offset, container):
        """The same rows among 500 features, turned and not, are the same problem."""
        X, y = problem(target)
        X = X + offset
        tall = DiscriminativeProjections(5, target=target).fit(X, y)
        turned = np.linalg.qr(np.random.default_rng(0).normal(size=(500, X.shape[1])))[0].T
        for Q in (np.eye(X.shape[1], 500), turned):
            wide = DiscriminativeProjections(5, target=target).fit(container(X @ Q), y)
            sign = np.sign(np.sum(tall.components_ * (wide.components_ @ Q.T), axis=1))[:, None]
            assert wide.rank_ == tall.rank_
            np.testing.assert_allclose(wide.eigenvalues_, tall.eigenvalues_, rtol=1e-8)
            np.testing.assert_allclose(wide.components_, sign * tall.components_ @ Q, atol=1e-8)
            np.testing.assert_allclose(
                wide.label_components_, sign * tall.label_components_, atol=1e-7
            )

    def test_the_rows_are_left_alone(self, target):
        X, y = np.random.default_rng(0).normal(size=(30, 50)), np.arange(30) % 3
        kept = X.copy()
        DiscriminativeProjections(target=target).fit(X, y.astype(float) + 1)
        np.testing.assert_array_equal(X, kept)

    def test_a_given_graph(self, target):
        X, y = problem(target)
        W = graph(X)[0]
        expected = DiscriminativeProjections(3, target=target).fit(X, y)
        for affinity in (W, csr_array(W), W + np.eye(len(W))):
            given = DiscriminativeProjections(3, target=target, n_neighbors=1).fit(
                X, y, affinity=affinity
            )
            np.testing.assert_allclose(given.components_, expected.components_, atol=1e-10)
        coarse = DiscriminativeProjections(3, target=target).fit(X, y, affinity=graph(X, 50)[0])
        assert np.abs(coarse.components_ - expected.components_).max() > 1e-4

    def test_fewer_directions_than_requested(self, target):
        X = np.random.default_rng(0).normal(size=(40, 2)) @ np.ones((2, 6))
        with pytest.warns(
            UserWarning, match=r"n_components=6 were requested, but only 2 directions exist"
        ):
            model = DiscriminativeProjections(6, target=target).fit(X, np.arange(40) % 2 + 1.0)
        assert model.rank_ == model.n_components_ == 2

    def test_no_graph(self, target):
        X, y = problem(target)
        empty = csr_array((len(X), len(X)))
        with pytest.raises(
            ValueError, match="affinity has no edge, so mu cannot be chosen: set mu=0"
        ):
            DiscriminativeProjections(target=target).fit(X, y, affinity=empty)
        if target == "classes":
            few = DiscriminativeProjections(2, mu=0).fit(X, y, affinity=empty)
            alone = DiscriminativeProjections(2, mu=0).fit(X[y >= 0], y[y >= 0])
            np.testing.assert_allclose(few.components_, alone.components_, atol=1e-8)

    def test_an_interrupt_leaves_the_fit_before_as_it_was(self, target, monkeypatch):
        X, y = problem(target)
        model = DiscriminativeProjections(3, target=target).fit(X, y)
        before = learned(model)

        def interrupted(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(module, "ratio_trace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(n_components=2).fit(X, y)
        assert {
            name: id(value) for name, value in learned(model).items() if name != "n_features_in_"
        } == {name: id(value) for name, value in before.items() if name != "n_features_in_"}

    def test_an_eigenproblem_that_does_not_fit_is_refused(self, target, monkeypatch):
        X, y = problem(target)
        monkeypatch.setattr("nearkin._memory.available_memory", lambda: 8 * 8 * X.shape[1] ** 2)
        with pytest.raises(
            MemoryError, match=r"The eigenproblem of 1[23] directions and [13] labels needs"
        ):
            DiscriminativeProjections(target=target).fit(X, y)


X_BAD = np.array([[0.0, 1.0], [0.0, 2.0], [2.0, 5.0], [3.0, 1.0]])


@pytest.mark.parametrize(
    ("target", "y", "message"),
    [
        ("classes", [0, 0, -1, -1], r"y holds one class \(.*0.*\)"),
        ("classes", [-1, -1, -1, -1], "y holds no label"),
        ("classes", [0.5, 0.5, 1.0, -1.0], "continuous"),
        ("classes", [0, 1, 1], "inconsistent numbers of samples"),
        ("classes", np.array(["a", 1, None, "b"], dtype=object), "mixes strings"),
        ("classes", None, "requires y"),
        ("continuous", [1.0, np.nan, 1.0, np.nan], r"y does not vary \(all 1.0\)"),
        (
            "continuous",
            [[1.0, np.nan], [np.nan, 1.0], [2.0, np.nan], [1.0, np.nan]],
            "y holds no value",
        ),
        ("continuous", [np.nan] * 4, "y holds no value"),
        ("continuous", [1.0, np.inf, 2.0, 3.0], "infinity"),
        ("continuous", [1.0, 2.0, 3.0], "inconsistent numbers of samples"),
        ("continuous", ["a", "b", "a", "b"], "y must be numbers, got words"),
        ("continuous", None, "requires y"),
        ("numbers", [0, 0, 1, 1], "target must be one of classes, continuous, got 'numbers'"),
    ],
)
def test_bad_targets(target, y, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeProjections(target=target).fit(X_BAD, y)


@pytest.mark.parametrize(
    ("parameter", "value", "error", "message"),
    [
        ("mu", -1, ValueError, "mu must be a finite number of at least 0, got -1"),
        ("mu", "l/s", TypeError, "mu must be a number, got 'l/s'"),
        ("mu", "auto", TypeError, "mu must be a number, got 'auto'"),
        ("n_neighbors", 0, ValueError, "n_neighbors must be at least 1, got 0"),
    ],
)
def test_bad_parameters(parameter, value, error, message):
    with pytest.raises(error, match=message):
        DiscriminativeProjections(**{parameter: value}).fit(X_BAD, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (np.eye(3), r"affinity must be of shape \(4, 4\)"),
        (np.triu(np.ones((4, 4))), "affinity must be symmetric"),
        (-np.ones((4, 4)), "affinity must not be negative"),
    ],
)
def test_bad_graphs(affinity, message):
    with pytest.raises(ValueError, match=message):
        DiscriminativeProjections().fit(X_BAD, [0, 1, 0, 1], affinity=affinity)


class TestClassifier:
    def test_it_takes_the_nearest_label(self):
        X, y, few = wine()
        model = DiscriminativeProjectionsClassifier().fit(X, few)
        assert model.projections_.n_components_ == 2
        Z, G = model.projections_.transform(X), model.projections_.label_prototypes_
        distances = np.linalg.norm(Z[:, None] - G, axis=2)
        np.testing.assert_array_equal(model.predict(X), distances.argmin(axis=1))
        np.testing.assert_allclose(model.decision_function(X), -(distances**2), atol=1e-10)
        assert model.score(X[few < 0], y[few < 0]) > 0.95

    def test_rows_of_the_fit_get_the_label_they_were_given_or_the_predicted_one(self):
        X, _, few = wine()
        few[np.flatnonzero(few == 0)[0]] = 2  # wrong, and kept
        model = DiscriminativeProjectionsClassifier().fit(X, few)
        np.testing.assert_array_equal(model.transduction_[few >= 0], few[few >= 0])
        np.testing.assert_array_equal(model.transduction_[few < 0], model.predict(X[few < 0]))
        assert (model.predict(X)[few >= 0] != few[few >= 0]).any()

    def test_two_classes_and_names(self):
        X, _, few = wine((10, 10, 0))
        names = np.array(["-1", "b", None], dtype=object)[few]
        model = make_pipeline(StandardScaler(), DiscriminativeProjectionsClassifier()).fit(X, names)
        assert set(model.predict(X)) == {"-1", "b"}
        np.testing.assert_array_equal(model.predict(X) == "b", model.decision_function(X) > 0)
        assert not hasattr(model[-1], "predict_proba")

    def test_a_given_graph_and_bad_labels(self):
        X, _, few = wine()
        given = DiscriminativeProjectionsClassifier(
            DiscriminativeProjections(None, n_neighbors=3)
        ).fit(X, few, affinity=graph(X)[0])
        expected = DiscriminativeProjectionsClassifier().fit(X, few)
        np.testing.assert_allclose(
            given.decision_function(X), expected.decision_function(X), atol=1e-8
        )
        with pytest.raises(ValueError, match="y holds one class"):
            DiscriminativeProjectionsClassifier().fit(X, np.where(few == 0, 0, -1))

    def test_unlabelled_rows_help_where_labels_are_few(self):
        """Two rows of each class of iris, 10 seeds: the graph of the other 144 against none."""
        X, y = load_iris(return_X_y=True)
        right = {None: [], "labelled": []}
        for seed in range(10):
            rng = np.random.default_rng(seed)
            few = np.full(150, -1)
            for label in range(3):
                few[rng.choice(np.flatnonzero(y == label), 2, replace=False)] = label
            rest = few < 0
            both = DiscriminativeProjectionsClassifier().fit(X, few)
            alone = clone(both).fit(X[~rest], few[~rest])
            right[None].append(both.score(X[rest], y[rest]))
            right["labelled"].append(alone.score(X[rest], y[rest]))
        assert np.mean(right[None]) > np.mean(right["labelled"])


def continuous(n_components=None, **settings):
    return DiscriminativeProjections(n_components, target="continuous", **settings)


def test_the_given_projections_are_cloned_and_must_be_of_the_same_target():
    X, _, few = wine()
    maps = DiscriminativeProjections(5)
    model = DiscriminativeProjectionsClassifier(maps).set_params(projections__mu=3.0).fit(X, few)
    assert not hasattr(maps, "components_")
    assert model.projections_.components_.shape == (5, 13)
    assert model.projections_.mu_ == 3
    with pytest.raises(
        ValueError, match="projections must have target='classes' here, got 'continuous'"
    ):
        DiscriminativeProjectionsClassifier(continuous()).fit(X, few)
    with pytest.raises(
        ValueError, match="projections must have target='continuous' here, got 'classes'"
    ):
        DiscriminativeProjectionsRegressor(maps).fit(*values())


class TestRegressor:
    @pytest.mark.parametrize("n_targets", [1, 2])
    @pytest.mark.parametrize("n_components", [None, 4])
    def test_values_that_are_linear_in_the_row_are_found(self, n_targets, n_components):
        X = scale(load_wine().data)
        Y = X @ np.random.default_rng(0).normal(size=(13, n_targets)) + 100
        few = Y.copy()
        few[50:] = np.nan
        model = DiscriminativeProjectionsRegressor(continuous(n_components, mu=0)).fit(X, few)
        np.testing.assert_allclose(model.predict(X), Y, rtol=1e-6)
        np.testing.assert_allclose(model.shrinkage_, np.eye(n_targets), atol=1e-6)

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_definition(self, fit_intercept):
        X, Y = values(2)
        model = DiscriminativeProjectionsRegressor(continuous(3), fit_intercept=fit_intercept).fit(
            X, Y
        )
        known = ~np.isnan(Y[:, 0])
        x0, y0 = (X[known].mean(axis=0), Y[known].mean(axis=0)) if fit_intercept else (0, 0)
        maps = DiscriminativeProjections(3, target="continuous").fit(X - x0, Y - y0)
        unit = np.sqrt(maps.eigenvalues_)[:, None]
        read = np.linalg.lstsq(
            maps.label_components_ / unit, maps.transform(X - x0).T / unit, rcond=None
        )[0].T
        shrinkage = np.linalg.lstsq(read[known], Y[known] - y0, rcond=None)[0]
        np.testing.assert_allclose(model.shrinkage_, shrinkage, rtol=1e-6)
        np.testing.assert_allclose(model.predict(X), read @ shrinkage + y0, rtol=1e-6)

    def test_one_target_is_shrunk_and_gives_one_column(self):
        X, y = values()
        model = DiscriminativeProjectionsRegressor().fit(X, y)
        assert 0 < model.shrinkage_[0, 0] < 1
        assert model.predict(X).shape == (178,)
        column = DiscriminativeProjectionsRegressor().fit(X, y[:, None]).predict(X)
        np.testing.assert_array_equal(column[:, 0], model.predict(X))

    @pytest.mark.parametrize("fit_intercept", [True, False])
    def test_sparse_equals_dense(self, fit_intercept):
        X, y = values()
        X = np.where(np.random.default_rng(1).random(X.shape) < 0.5, X, 0)
        dense, sparse = (
            DiscriminativeProjectionsRegressor(continuous(2), fit_intercept=fit_intercept)
            .fit(c(X), y)
            .predict(c(X))
            for c in (np.asarray, csr_array)
        )
        np.testing.assert_allclose(sparse, dense, rtol=1e-8)

    def test_centring_that_does_not_fit_is_refused(self, monkeypatch):
        X, y = values()
        monkeypatch.setattr("nearkin._memory.available_memory", lambda: 8 * 178)
        with pytest.raises(
            MemoryError, match=r"178 centred rows of 12 features.*fit_intercept=False"
        ):
            DiscriminativeProjectionsRegressor().fit(csr_array(X), y)
