"""Every public estimator passes every check of scikit-learn, and keeps what all linear embeddings promise."""

import inspect
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_blobs, make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import nearkin
from nearkin.estimators.base import LinearEmbedding

ESTIMATORS = [
    value
    for _, value in inspect.getmembers(nearkin, inspect.isclass)
    if issubclass(value, BaseEstimator) and hasattr(value, "fit")
]
LINEAR = [estimator for estimator in ESTIMATORS if issubclass(estimator, LinearEmbedding)]
VARIANTS = [
    *(estimator() for estimator in LINEAR),
    nearkin.NMMP(criterion="ratio_trace", n_neighbors_within=5),
    nearkin.DNE(0.96, n_neighbors=3),
    nearkin.NCA(objective="log_likelihood", alpha=1.0),
]


# A descent ends where it lowers the loss no further, and two ways there end a little apart.
DESCENTS = (nearkin.LMNN, nearkin.NCA, nearkin.PairNCA)


def to_the_end(estimator):
    """Return a clone that goes on to the optimum as far as numbers tell, and how near to it two ways end."""
    if isinstance(estimator, DESCENTS):
        return clone(estimator).set_params(tol=1e-13, max_iter=5000), 1e-3
    return clone(estimator), 1e-6


def data(n=60, p=8, dtype=np.float64):
    X, y = make_classification(n, p, n_informative=5, n_classes=3, random_state=0)
    return X.astype(dtype), y


@pytest.mark.filterwarnings("ignore:No direction separates:UserWarning")  # the checks' labels are noise
@pytest.mark.filterwarnings("ignore:n_components=:UserWarning")
@pytest.mark.filterwarnings("ignore:max_iter=20:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*SCIPY_ARRAY_API.*")
@parametrize_with_checks(
    [
        *VARIANTS,
        nearkin.DiscriminativeProjections(target="continuous"),
        nearkin.NCA(solver="sgd", max_iter=20),
        *(estimator() for estimator in ESTIMATORS if estimator not in LINEAR),
    ],
    expected_failed_checks=lambda estimator: (
        {"check_classifiers_classes": "trains on labels -1 and 1, and -1 is no label here"}
        if isinstance(estimator, (nearkin.DiscriminativeProjectionsClassifier, nearkin.TDLClassifier))
        else {}
    ),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_every_public_name_is_documented():
    assert {estimator.__name__ for estimator in ESTIMATORS} | {"ApproximateSearch"} == set(nearkin.__all__)
    for estimator in ESTIMATORS:
        documentation = inspect.getdoc(estimator)
        for section in ("Parameters", "Attributes", "Notes", "References", "Examples", "Cost:"):
            assert section in documentation, f"{estimator.__name__} lacks {section}"


@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
class TestEveryLinearEmbedding:
    def test_metric_pairs_and_transform_agree(self, estimator):
        X, y = data()
        model = clone(estimator).fit(X, y)
        Z, pairs = model.transform(X), np.stack([X[:20], X[20:40]], axis=1)
        expected = np.linalg.norm(Z[:20] - Z[20:40], axis=1)
        metric, M = model.get_metric(), model.get_mahalanobis_matrix()
        difference = X[0] - X[20]
        np.testing.assert_allclose(model.pair_distance(pairs), expected)
        np.testing.assert_allclose(model.pair_score(pairs), -expected)
        np.testing.assert_allclose(metric(X[0], X[20]), expected[0])
        np.testing.assert_allclose(pickle.loads(pickle.dumps(metric))(X[0], X[20], squared=True), expected[0] ** 2)
        np.testing.assert_allclose(difference @ M @ difference, expected[0] ** 2)

    def test_pairs_of_a_wrong_shape_are_named(self, estimator):
        X, y = data()
        with pytest.raises(ValueError, match=r"shape \(n_pairs, 2, 8\), got \(60, 8\)"):
            clone(estimator).fit(X, y).pair_distance(X)

    def test_float32_stays_float32_and_agrees(self, estimator):
        X, y = data()
        double = clone(estimator).fit(X.astype(np.float32).astype(np.float64), y)
        single = clone(estimator).fit(X.astype(np.float32), y)
        assert single.components_.dtype == np.float32
        assert single.transform(X.astype(np.float32)).dtype == np.float32
        np.testing.assert_allclose(single.components_, double.components_, atol=1e-5)

    @pytest.mark.parametrize("shape", [(60, 8), (60, 100)], ids=["tall", "wide"])
    @pytest.mark.parametrize("container", [csr_array, csr_matrix])
    def test_sparse_equals_dense(self, estimator, shape, container):
        rng = np.random.default_rng(0)
        X = rng.normal(size=shape) * (rng.random(shape) < 0.5)
        y = np.arange(60) % 3
        dense, sparse = clone(estimator).fit(X, y), clone(estimator).fit(container(X), y)
        np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-8)
        np.testing.assert_allclose(sparse.transform(container(X)), dense.transform(X), atol=1e-8)

    def test_row_order_class_names_origin_and_rotation_do_not_matter(self, estimator):
        X, y = data()
        rng = np.random.default_rng(0)
        order = np.arange(60) if isinstance(estimator, nearkin.PairNCA) else rng.permutation(60)  # its order is time
        Q = np.linalg.qr(rng.normal(size=(8, 8)))[0]
        names = np.array(["zebra", "ant", "mole"])[y]
        M = clone(estimator).fit(X, y).get_mahalanobis_matrix()
        scale = np.abs(M).max()
        for other, turned_back in [
            (clone(estimator).fit(X[order], y[order]), np.eye(8)),
            (clone(estimator).fit(X, names), np.eye(8)),
            (clone(estimator).fit(X + 1000.0, y), np.eye(8)),
            (clone(estimator).fit(X @ Q, y), Q),
        ]:
            moved = turned_back @ other.get_mahalanobis_matrix() @ turned_back.T
            np.testing.assert_allclose(moved, M, atol=1e-7 * scale)

    @pytest.mark.parametrize("container", [np.asarray, csr_array])
    def test_far_from_the_origin(self, estimator, container):
        X, y = data()
        M = clone(estimator).fit(X, y).get_mahalanobis_matrix()
        far = clone(estimator).fit(container(X + 1e6), y).get_mahalanobis_matrix()
        np.testing.assert_allclose(far, M, atol=1e-4 * np.abs(M).max())

    def test_a_handful_of_ties_is_rotated_as_it_should(self, estimator):
        X = np.array([[0.0, 0.0], [1.0, 1.1], [1.0, -1.0], [2.0, 0.0], [0.3, 5.0], [3.0, 3.2]])
        y = [0, 0, 1, 1, 0, 1]
        Q = np.array([[0.6, -0.8], [0.8, 0.6]])
        model = clone(estimator).set_params(n_components=1)
        M = clone(model).fit(X, y).get_mahalanobis_matrix()
        turned = clone(model).fit(X @ Q, y).get_mahalanobis_matrix()
        np.testing.assert_allclose(Q @ turned @ Q.T, M, atol=1e-8 * np.abs(M).max())

    def test_sparse_entries_stored_twice_are_added(self, estimator):
        X, y = data()
        rows, columns = np.nonzero(X)
        halves = np.concatenate([X[rows, columns], X[rows, columns]]) / 2
        indptr = np.concatenate([[0], np.cumsum(np.full(60, 16))])
        order = np.argsort(np.concatenate([rows, rows]), kind="stable")
        twice = csr_array((halves[order], np.concatenate([columns, columns])[order], indptr), shape=X.shape)
        np.testing.assert_allclose(
            clone(estimator).fit(twice, y).components_, clone(estimator).fit(X, y).components_, atol=1e-8
        )
        assert twice.nnz == 960  # the caller's matrix is left alone

    def test_metric_takes_rows_of_any_type(self, estimator):
        X, y = data()
        metric = clone(estimator).fit(X, y).get_metric()
        low, high = np.zeros(8), np.ones(8)
        assert metric(low.astype(np.uint8), high.astype(np.uint8)) == pytest.approx(metric(low, high))
        assert metric(low.astype(bool), high.astype(bool)) == pytest.approx(metric(low, high))

    def test_many_more_features_than_rows(self, estimator):
        X, y = data()
        wide = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(500, 8)))[0].T
        estimator, nearness = to_the_end(estimator)
        tall_model, wide_model = clone(estimator).fit(X, y), clone(estimator).fit(wide, y)
        assert wide_model.components_.shape[1] == 500
        np.testing.assert_allclose(
            np.linalg.norm(wide_model.transform(wide[:9] - wide[9:18]), axis=1),
            np.linalg.norm(tall_model.transform(X[:9] - X[9:18]), axis=1),
            rtol=nearness,
        )

    def test_duplicated_and_constant_features_change_no_distance(self, estimator):
        X, y = data()
        estimator, nearness = to_the_end(estimator)
        plain = pdist(clone(estimator).fit_transform(X, y))
        for same in (np.hstack([X, np.full((60, 1), 7.0)]), np.hstack([X, X]) / np.sqrt(2)):  # singular scatters
            np.testing.assert_allclose(
                pdist(clone(estimator).fit_transform(same, y)), plain, atol=nearness * plain.max()
            )

    def test_singleton_class_and_string_labels(self, estimator):
        X, y = data()
        names = np.array(["a", "b", "c"], dtype=object)[y]
        names[0] = "alone"
        assert np.isfinite(clone(estimator).fit(X, names).components_).all()

    def test_in_a_pipeline_and_a_search(self, estimator):
        X, y = data()
        first = "n_components"
        search = GridSearchCV(
            make_pipeline(StandardScaler(), clone(estimator), KNeighborsClassifier(3)),
            {f"{type(estimator).__name__.lower()}__{first}": [1, 3]},
            cv=3,
        ).fit(X, y)
        assert search.best_score_ > 0.3


@pytest.mark.parametrize("estimator", [nearkin.LPP(3), nearkin.NMMP(3), nearkin.DNE()], ids=repr)
@pytest.mark.parametrize(
    "fit",
    [
        lambda estimator, X, y: estimator.fit(X, y),
        lambda estimator, X, y: estimator.fit_transform(X, y),
        lambda estimator, X, y: make_pipeline(StandardScaler(), estimator, KNeighborsClassifier()).fit(X, y),
    ],
    ids=["fit", "fit_transform", "pipeline"],
)
def test_warnings_point_at_the_line_of_the_user(estimator, fit):
    X = make_blobs(200, centers=1, random_state=0)[0] @ [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]  # of rank 2
    y = np.arange(200) % 5  # labels without any structure
    with pytest.warns(UserWarning, match="directions only|No direction separates") as caught:
        fit(estimator, X, y)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("estimator", VARIANTS, ids=repr)
class TestBadInput:
    def test_constant_table(self, estimator):
        with pytest.raises(ValueError, match="does not vary"):
            clone(estimator).fit(np.full((6, 3), 0.1), [0, 1] * 3)

    @pytest.mark.parametrize("unit", [1e150, 1e-150])
    def test_units_whose_squares_are_lost(self, estimator, unit):
        X, y = data()
        with pytest.raises(ValueError, match="whose square is lost: scale the features first"):
            clone(estimator).fit(X * unit, y)

    def test_dask_and_torch_are_refused_by_name(self, estimator):
        for library, remedy in [("dask", r"call \.compute\(\)"), ("torch", r"X\.numpy\(force=True\)")]:
            foreign = type("Array", (), {"__module__": f"{library}.array"})()
            with pytest.raises(TypeError, match=f"{library} Array.*{remedy}"):
                clone(estimator).fit(foreign, [0, 1])
        model = clone(estimator).fit(*data())
        with pytest.raises(TypeError, match="torch Array"):
            model.transform(foreign)
        with pytest.raises(TypeError, match="pairs is a torch"):
            model.pair_distance(foreign)

    @pytest.mark.parametrize(
        ("n_components", "error", "message"),
        [
            (0, ValueError, "n_components must be between 1 and 8, got 0"),
            (9, ValueError, "n_components must be between 1 and 8, got 9"),
            ("2", TypeError, "n_components must be an integer, got '2'"),
            (True, TypeError, "n_components must be an integer, got True"),
        ],
    )
    def test_n_components(self, estimator, n_components, error, message):
        with pytest.raises(error, match=message):
            clone(estimator).set_params(n_components=n_components).fit(*data())


PARTLY = (nearkin.DiscriminativeProjections,)  # rows without label are welcome: -1, None, NaN
SUPERVISED = [
    estimator
    for estimator in VARIANTS
    if estimator.__sklearn_tags__().target_tags.required and not isinstance(estimator, PARTLY)
]


@pytest.mark.parametrize("estimator", SUPERVISED, ids=repr)
class TestBadLabels:
    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([1, 1, 1, 1], r"y holds one class \(.*1.*\)"),
            (["a", None, "b", "a"], r"no label in 1 rows \(first: row 1\)"),
            ([0.0, np.nan, 1.0, 0.0], r"no label in 1 rows \(first: row 1\)"),
            ([0.1, 0.2, 0.3, 0.4], "continuous"),
            ([0.0, np.inf, 1.0, 0.0], "infinity"),
            ([], "no label"),
            (np.array(["a", 1, "b", "a"], dtype=object), "mixes strings"),
            ([0, 1, 0], "inconsistent numbers of samples"),
        ],
    )
    def test_named(self, estimator, y, message):
        with pytest.raises(ValueError, match=message):
            clone(estimator).fit(np.random.default_rng(0).normal(size=(4, 2)), y)

    def test_labels_in_an_object_array(self, estimator):
        X, y = data()
        expected = clone(estimator).fit(X, y).components_
        np.testing.assert_array_equal(clone(estimator).fit(X, y.astype(object)).components_, expected)
        clone(estimator).fit(X, (y > 0).astype(object))

    def test_minus_one_is_a_class(self, estimator):
        X, y = data()
        renamed = clone(estimator).fit(X, y - 1)
        np.testing.assert_array_equal(renamed.components_, clone(estimator).fit(X, y).components_)

    def test_two_rows(self, estimator):
        if isinstance(estimator, (nearkin.LMNN, nearkin.NCA, nearkin.RCA)):  # they learn from kin alone
            with pytest.raises(ValueError, match=r"every class has a single row|No two rows of one label differ"):
                clone(estimator).fit(np.eye(2), ["a", "b"])
            return
        model = clone(estimator).fit(np.array([[0.0, 0.0, 1.0], [3.0, 4.0, 1.0]]), ["a", "b"])
        np.testing.assert_allclose(np.abs(model.components_[0] / np.linalg.norm(model.components_)), [0.6, 0.8, 0.0])
