"""Every public estimator passes scikit-learn's checks; every linear one also those of
`nearkin.testing`.
"""

import functools
import inspect
import re

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_blobs, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import fbeta_score, get_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import has_fit_parameter

import nearkin
from nearkin import (
    DMLMJ,
    DNE,
    GMML,
    ITML,
    LDE,
    LFDA,
    LMNN,
    LPP,
    MFA,
    MLKR,
    NCA,
    NMMP,
    RCA,
    SDA,
    DiscriminativeProjections,
    Matcher,
    NCAClassifier,
    NCARegressor,
    PairNCA,
)
from nearkin.comparison import Method, compare
from nearkin.estimators.base import LinearEmbedding, SpectralEmbedding
from nearkin.spectral import generalized_eigh, unit_within_scatter
from nearkin.testing import (
    COPIES_ARE_NEIGHBORS,
    assert_same_subspace,
    check_embedding,
    embedding_checks,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:max_iter=:sklearn.exceptions.ConvergenceWarning"),
    # scikit-learn's labels are noise
    pytest.mark.filterwarnings("ignore:No direction separates:UserWarning"),
    pytest.mark.filterwarnings("ignore:n_components=:UserWarning"),
]
ESTIMATORS = [
    estimator
    for _, estimator in inspect.getmembers(nearkin, inspect.isclass)
    if issubclass(estimator, BaseEstimator) and hasattr(estimator, "fit")
]
FEW = {
    LMNN: {"max_iter": 3},
    MLKR: {"max_iter": 3},
    NCA: {"max_iter": 3},
    PairNCA: {"max_iter": 3},
    nearkin.LapRLSRegressor: {"kernel": None},
    NCAClassifier: {"n_members": 2, "alpha": 0.01},
    NCARegressor: {"n_members": 2, "alpha": 0.01},
    nearkin.TDL: {"reg": 1.0},
    nearkin.TDLClassifier: {"tdl": nearkin.TDL(5, reg=1.0)},
    # of descents invariances hold at every step; the classifier takes a kernel; "auto" takes many fits
}
NEEDS_TORCH = {nearkin.NeuralNCA}  # its own tests run these checks
CHEAP = [
    estimator(**FEW.get(estimator, {})) for estimator in ESTIMATORS if estimator not in NEEDS_TORCH
]
PARTLY_LABELLED = (
    nearkin.DiscriminativeProjectionsClassifier,
    nearkin.LapRLSClassifier,
    nearkin.TDLClassifier,
)
MINUS_1 = {"check_classifiers_classes": "trains on labels -1 and 1, and -1 is no label here"}
COPIES = dict.fromkeys(
    COPIES_ARE_NEIGHBORS,
    "copies of a row are in different inner folds, and vote for each other: a row of weight 2 does "
    "neither (scikit-learn makes this exception for its forests, too)",
)
VOTES = dict.fromkeys(
    COPIES, "copies of a row are neighbours of each other: a row of weight 2 is none of its own"
)
NO_PAIR = dict.fromkeys(COPIES, "copies of a row are a pair of one class; a row alone is none")
OF_PAIRS = dict.fromkeys(
    (
        "check_dict_unchanged",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_predict1d",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_pipeline_consistency",
        "check_n_features_in_after_fitting",
    ),
    "predicts of pairs of rows, (n, 2, p), as metric-learn's learners do",
)
EXPECTED_FAILURES = dict.fromkeys(PARTLY_LABELLED, MINUS_1) | dict.fromkeys(
    (NCAClassifier, NCARegressor), COPIES
)
EXPECTED_FAILURES |= dict.fromkeys(
    (DMLMJ, DNE, ITML, LDE, LFDA, LMNN, LPP, MFA, NMMP, SDA), COPIES_ARE_NEIGHBORS
)
EXPECTED_FAILURES |= dict.fromkeys((GMML, RCA), NO_PAIR)
EXPECTED_FAILURES |= dict.fromkeys((MLKR, NCA, nearkin.PairNCA), VOTES)
EXPECTED_FAILURES[Matcher] = OF_PAIRS
EXPECTED_FAILURES[nearkin.EmbeddingAdapter] = COPIES
# what others share with one of these, the long checks find here
FAMILIES = (
    *(LDE, NCA, nearkin.TableEncoder),
    *(nearkin.LapRLSClassifier, nearkin.SoftNeighborsClassifier, nearkin.SoftNeighborsRegressor),
)
LONG = re.compile(
    "sparse_(array|matrix)|(classifiers|regressors)_train|classifiers_classes|data_not_an_array|transformer_general"
    "|pipeline|dtype|pickle|idempotent|invariance|equivalence|nan_inf|fit_score|positive_only"
)


def slow_but_families(estimators):
    """Return the parameters of a test of all these, which is slow but for one of a family."""
    return [
        pytest.param(one, id=repr(one), marks=() if isinstance(one, FAMILIES) else pytest.mark.slow)
        for one in estimators
    ]


def contract():
    """Yield each estimator with each of scikit-learn's checks; the long ones are left to a release,
    but for one of a family.
    """
    for estimator in [
        *CHEAP,
        DiscriminativeProjections(target="continuous"),
        NCA(solver="sgd", max_iter=2),
    ]:
        failed = EXPECTED_FAILURES.get(type(estimator), {})
        for case in estimator_checks_generator(
            estimator, expected_failed_checks=failed, mark="xfail"
        ):
            _, check = getattr(case, "values", case)  # a parameter set or a pair
            name = f"{check.func.__name__}{check.keywords or ''}"
            quick = type(estimator) in FAMILIES and estimator.get_params().get("solver") != "sgd"
            long = LONG.search(name) or type(estimator) is Matcher  # which fits on folds
            marks = [pytest.mark.long] if long and not quick else []
            yield pytest.param(
                estimator,
                check,
                id=f"{estimator}-{name}",
                marks=[*getattr(case, "marks", ()), *marks],
            )


@pytest.mark.parametrize(("estimator", "check"), list(contract()))
def test_scikit_learn_contract(estimator, check):
    if type(estimator) is nearkin.TableEncoder and check.func.__name__ == "check_dtype_object":
        pytest.importorskip("pandas")
    check(estimator)


LINEAR = [
    *(
        estimator
        for estimator in CHEAP
        if isinstance(estimator, LinearEmbedding)
        and not isinstance(estimator, (MLKR, NCA, PairNCA))
    ),
    MLKR(3, max_iter=3),
    NCA(3, max_iter=3),
    PairNCA(3, max_iter=3),
    NCA(3, objective="log_likelihood", alpha=1.0, max_iter=3),
    NMMP(criterion="ratio_trace", n_neighbors_within=5),
    DNE(0.96, n_neighbors=3),
]
SKIPPED = {
    (DiscriminativeProjections, "missing_labels"): "rows without a label are welcome",
    (SDA, "missing_labels"): "rows without a label are welcome",
    **dict.fromkeys(
        [(MLKR, name) for name in ("class_names", "missing_labels", "bad_labels")],
        "learns from numbers",
    ),
    (PairNCA, "row_order"): "consecutive rows are pairs",
}


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{estimator}-{name}")
        for estimator in LINEAR
        for name, check in embedding_checks(estimator)
        if (type(estimator), name) not in SKIPPED
    ],
)
def test_linear_embedding(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    slow_but_families(model for model in LINEAR if isinstance(model, SpectralEmbedding)),
)
@pytest.mark.parametrize("container", [np.asarray, csr_array])
def test_weights_of_rows(estimator, container):
    """Only their ratios matter, a row of weight 0 is absent, and the order of rows does not matter."""
    X, y = make_classification(60, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, 60) * rng.uniform(0.5, 2, 60)
    there, order = w > 0, rng.permutation(60)

    def metric(rows, **how):
        return clone(estimator).fit(container(X[rows]), y[rows], **how).get_mahalanobis_matrix()

    everyone = np.arange(60)
    weighted = metric(everyone, sample_weight=w)
    for found, expected in [
        (metric(everyone, sample_weight=np.full(60, 7)), metric(everyone)),
        (metric(there, sample_weight=w[there] / 3), weighted),
        (metric(order, sample_weight=w[order]), weighted),
    ]:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())
    assert np.abs(weighted - metric(there)).max() > 1e-3 * np.abs(weighted).max()
    with pytest.raises(ValueError, match="sample_weight"):
        metric(everyone, sample_weight=-w)


def test_every_public_name_is_documented():
    others = {"ApproximateSearch", "label_issues", "load"}
    assert {estimator.__name__ for estimator in ESTIMATORS} | others == set(nearkin.__all__)
    for estimator in ESTIMATORS:
        documentation = inspect.getdoc(estimator)
        for section in ("Parameters", "Attributes", "Notes", "References", "Examples", "Cost:"):
            assert section in documentation, f"{estimator.__name__} lacks {section}"


class Fisher(SpectralEmbedding):
    """A method as CONTRIBUTING.md tells to add one: Fisher's linear discriminant analysis."""

    def __init__(self, n_components=None):
        self.n_components = n_components

    def _solve(self, rows):
        S_w = rows.within_scatter()
        return unit_within_scatter(
            generalized_eigh(rows.total_scatter() - S_w, S_w, self.n_components)
        )


def test_a_new_method_needs_nothing_but_its_formula():
    check_embedding(Fisher(2))
    X, y = load_iris(return_X_y=True)
    lda = LinearDiscriminantAnalysis().fit(X, y)
    assert_same_subspace(Fisher(2).fit(X, y).components_, lda.scalings_[:, :2].T)


def test_a_new_method_is_compared():
    X, y = load_iris(return_X_y=True)
    fisher = [Method("Fisher", Fisher())]
    ranking = compare(
        X[::3], y[::3], methods=fisher, references=(), n_splits=2, n_repeats=1, n_neighbors=3
    )
    assert {result.name for result in ranking.results} == {"Fisher", "raw k-NN", "automatic choice"}


@pytest.mark.parametrize(
    "estimator", [model for model in LINEAR if not isinstance(model, (DNE, SDA))], ids=repr
)
def test_fewer_directions_than_requested_warn(estimator):
    X, y = make_classification(20, 40, n_informative=5, random_state=0)
    y = y + X[:, 0] if isinstance(estimator, MLKR) else y
    model = clone(estimator).set_params(n_components=30)
    with pytest.warns(UserWarning, match="n_components=30 were requested, but only"):
        model.fit(X, y)
    assert len(model.components_) == model.n_components_ < 30


@pytest.mark.parametrize("fitted", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", slow_but_families(CHEAP))
def test_new_rows_may_have_another_precision(estimator, fitted):
    X, y = make_classification(45, 8, n_informative=5, n_classes=3, random_state=0)
    y = y + 0.1 * X[:, 0] if is_regressor(estimator) or isinstance(estimator, MLKR) else y
    model = clone(estimator).fit(X.astype(fitted), y)
    new = np.stack([X, X[::-1]], axis=1) if isinstance(estimator, Matcher) else X
    for name in ("transform", "predict", "predict_proba", "score_samples"):
        if hasattr(model, name):
            one, other = (getattr(model, name)(new.astype(t)) for t in (np.float64, np.float32))
            assert np.shape(one) == np.shape(other)
            if name != "predict" or is_regressor(model):
                np.testing.assert_allclose(one, other, rtol=0, atol=1e-3 * np.abs(one).max())


@pytest.mark.parametrize(
    "estimator",
    [model.set_params(n_components=None) for model in map(clone, LINEAR)]
    + [NCA(structure="diagonal")],
    ids=repr,
)
def test_a_constant_feature_changes_nothing(estimator):
    X, y = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
    M, wider = (
        clone(estimator).fit(rows, y).get_mahalanobis_matrix()
        for rows in (X, np.insert(X, 8, 0.1, axis=1))
    )
    np.testing.assert_allclose(wider[:8, :8], M, rtol=0, atol=1e-8 * np.abs(M).max())
    np.testing.assert_allclose(wider[8, :8], 0, atol=1e-8 * np.abs(M).max())


@pytest.mark.parametrize("container", [np.asarray, csr_array])
@pytest.mark.parametrize("estimator", LINEAR, ids=repr)
def test_far_from_the_origin(estimator, container):
    X, y = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
    M = clone(estimator).fit(X, y).get_mahalanobis_matrix()
    far = clone(estimator).fit(container(X + 1e6), y).get_mahalanobis_matrix()
    np.testing.assert_allclose(far, M, atol=1e-4 * np.abs(M).max())


@pytest.mark.parametrize("estimator", LINEAR, ids=repr)
def test_equal_distances_stay_equal_when_rotated(estimator):
    X = np.array([[0.0, 0.0], [1.0, 1.1], [1.0, -1.0], [2.0, 0.0], [0.3, 5.0], [3.0, 3.2]])
    y = [0, 0, 1, 1, 0, 1]
    Q = np.array([[0.6, -0.8], [0.8, 0.6]])
    model = clone(estimator).set_params(n_components=1)
    M = clone(model).fit(X, y).get_mahalanobis_matrix()
    rotated = clone(model).fit(X @ Q, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(Q @ rotated @ Q.T, M, atol=1e-8 * np.abs(M).max())


LABELLED = [
    model
    for model in LINEAR
    if get_tags(model).target_tags.required and not isinstance(model, MLKR)
]


@pytest.mark.parametrize("estimator", LABELLED, ids=repr)
def test_two_rows(estimator):
    model = clone(estimator).set_params(n_components=1)
    if isinstance(model, (ITML, LMNN, NCA, RCA)):  # they learn from pairs of one class
        with pytest.raises(
            ValueError, match=r"every class has a single row|No two rows of one label differ"
        ):
            model.fit(np.eye(2), ["a", "b"])
    else:
        model.fit(np.array([[0.0, 0.0, 1.0], [3.0, 4.0, 1.0]]), ["a", "b"])
        direction = np.abs(model.components_[0] / np.linalg.norm(model.components_))
        np.testing.assert_allclose(direction, [0.6, 0.8, 0.0], atol=1e-12)


@pytest.mark.parametrize("estimator", CHEAP, ids=repr)
@pytest.mark.parametrize(
    ("library", "remedy"), [("dask", r"call \.compute\(\)"), ("torch", r"X\.numpy\(force=True\)")]
)
def test_arrays_of_other_libraries_are_refused_by_name(estimator, library, remedy):
    foreign = type("Array", (), {"__module__": f"{library}.array"})()
    with pytest.raises(TypeError, match=f"{library} Array.*{remedy}"):
        clone(estimator).fit(foreign, [0, 1])


def test_coordinates_in_arrays_of_other_libraries_are_refused_by_name():
    foreign = type("Tensor", (), {"__module__": "torch"})()
    with pytest.raises(TypeError, match=r"Z is a torch Tensor.*: pass Z\.numpy\(force=True\)"):
        RCA().fit(*X_Y).inverse_transform(foreign)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 1, 1], r"y holds one class \(.*1.*\)"),
        (["a", None, "b", "a"], r"no label in 1 row \(first: row 1\)"),
        ([0.0, np.inf, 1.0, 0.0], "infinity"),
        ([], "no label"),
        (np.array(["a", 1, "b", "a"], dtype=object), "mixes strings"),
    ],
)
def test_bad_labels_are_named(y, message):
    with pytest.raises(ValueError, match=message):
        LDE().fit(np.random.default_rng(0).normal(size=(4, 2)), y)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: LPP(3).fit(X, y),
        lambda X, y: LPP(3).fit_transform(X, y),
        lambda X, y: make_pipeline(StandardScaler(), DNE(), KNeighborsClassifier()).fit(X, y),
    ],
    ids=["fit", "fit_transform", "pipeline"],
)
def test_warnings_point_at_the_line_of_the_user(fit):
    # of rank 2
    X = make_blobs(200, centers=1, random_state=0)[0] @ [
        [1.0, 0.0, 1.0],
        [0.0, 1.0, 1.0],
    ]
    y = np.arange(200) % 5  # labels without any structure
    with pytest.warns(UserWarning, match="directions exist|No direction separates") as caught:
        fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("unit", [1e20, 1e-20])
def test_single_precision_whose_squares_are_lost_is_refused(unit):
    X = (unit * np.random.default_rng(0).normal(size=(20, 3))).astype(np.float32)
    with pytest.raises(
        ValueError, match="whose square overflows or underflows: scale the features first"
    ):
        LDE().fit(X, np.arange(20) % 2)
    LDE().fit(X.astype(np.float64), np.arange(20) % 2)


# Conventions: frames in and out, metadata routing.

X_Y = make_classification(60, 8, n_informative=5, n_classes=3, random_state=0)
TRANSFORMERS = [model for model in CHEAP if hasattr(model, "transform")]
every_transformer = pytest.mark.parametrize("estimator", slow_but_families(TRANSFORMERS))


@every_transformer
@pytest.mark.parametrize("given", ["pandas", "polars"])
@pytest.mark.parametrize("requested", ["pandas", "polars"])
def test_frames_in_and_out(estimator, given, requested):
    modules = {name: pytest.importorskip(name) for name in (given, requested)}
    X, y = X_Y
    names = [f"column {j}" for j in range(8)]
    frame = modules[given].DataFrame(dict(zip(names, X.T, strict=True)))
    scaler = StandardScaler().set_output(transform=requested)
    if not hasattr(scaler.fit(frame), "feature_names_in_"):
        pytest.skip(f"this scikit-learn reads no names from this {given}")
    pipeline = make_pipeline(scaler, clone(estimator)).set_output(transform=requested)
    target = X[:, :5] if get_tags(estimator).target_tags.two_d_labels else y
    of_fit, Z = pipeline.fit_transform(frame, target), pipeline.transform(frame)
    assert type(of_fit) is type(Z) is modules[requested].DataFrame
    assert list(of_fit.columns) == list(Z.columns) == list(pipeline.get_feature_names_out())
    assert list(pipeline[-1].feature_names_in_) == names
    pipeline.set_output(transform="default")
    rows = pipeline[:-1].set_output(transform=requested).transform(frame)
    np.testing.assert_array_equal(np.asarray(Z), pipeline[-1].transform(rows))


METADATA = [
    pytest.param(model, name, id=f"{model}-{name}")
    for model in CHEAP
    for name in inspect.signature(model.fit).parameters
    if name not in ("X", "y")
]
WEIGHTED = [
    model
    for model in CHEAP
    if has_fit_parameter(model, "sample_weight")
    and not isinstance(model, Matcher)  # predicts of pairs
]


def recorded(estimator, monkeypatch):
    """Return a clone, and a list to which each `fit` of it, and of its clones, adds what it was
    given.
    """
    fits, learn = [], type(estimator).fit

    @functools.wraps(learn)  # with its signature, by which scikit-learn finds metadata
    def fit(self, X, y=None, **metadata):
        fits.append((X, metadata))
        return learn(self, X, y, **metadata)

    monkeypatch.setattr(type(estimator), "fit", fit)
    return clone(estimator), fits


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(("estimator", "name"), METADATA)
def test_metadata_of_a_fit_can_be_requested(estimator, name, routing, monkeypatch):
    """Without a request it's refused, and never dropped in silence."""
    received = []
    monkeypatch.setattr(
        type(estimator),
        "fit",
        functools.wraps(type(estimator).fit)(
            lambda self, X, y=None, **metadata: received.append(metadata) or self
        ),
    )
    model = clone(estimator)
    X, y = X_Y
    value = np.arange(60)
    with pytest.raises(UnsetMetadataPassedError, match=name):
        make_pipeline(FunctionTransformer(), model).fit(X, y, **{name: value})
    make_pipeline(FunctionTransformer(), model.set_fit_request(**{name: True})).fit(
        X, y, **{name: value}
    )
    assert len(received) == 1
    assert received[0][name] is value


def weighted_score():
    return get_scorer("neg_mean_squared_error").set_score_request(sample_weight=True)


class CrossValidation:
    def __init__(self, model):
        self.model = model

    def fit(self, X, y, **params):
        cross_validate(self.model, X, y, params=params, cv=2, scoring=weighted_score())


ROUTERS = {
    "Pipeline": lambda model: make_pipeline(FunctionTransformer(), model),
    "GridSearchCV": lambda model: GridSearchCV(model, {}, cv=2, scoring=weighted_score()),
    "cross_validate": CrossValidation,
    "StackingClassifier": lambda model: StackingClassifier(
        [("model", model)], LogisticRegression(), cv=2
    ),
    "StackingRegressor": lambda model: StackingRegressor([("model", model)], Ridge(), cv=2),
    "CalibratedClassifierCV": lambda model: CalibratedClassifierCV(model, cv=2),
}


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("estimator", slow_but_families(WEIGHTED))
def test_every_row_keeps_its_weight_on_the_way(estimator, router, routing, monkeypatch):
    X, y = X_Y
    weights = 1.0 + (X[:, 0] > 0)
    model, fits = recorded(estimator, monkeypatch)
    model.set_fit_request(sample_weight=True)
    if not hasattr(model, "predict"):
        model = make_pipeline(model, KNeighborsClassifier())
    if ("Regressor" if is_classifier(model) else "Classifier") in router:
        pytest.skip("the router takes the other kind")
    ROUTERS[router](model).fit(X, y, sample_weight=weights)
    assert fits
    for rows, metadata in fits:
        np.testing.assert_array_equal(metadata["sample_weight"], 1.0 + (np.asarray(rows)[:, 0] > 0))


def answers(estimator, X, y, weights):
    """Return what a fit with weights of rows says of some rows."""
    model = clone(estimator).fit(X, y, sample_weight=weights)
    if is_classifier(model):
        return model.predict_proba(X_Y[0])
    return getattr(model, "transform", getattr(model, "predict", None))(X_Y[0])


@pytest.mark.parametrize("estimator", slow_but_families(WEIGHTED))
def test_a_row_of_weight_0_is_absent_whatever_it_holds(estimator):
    X, y = X_Y
    y = y.astype(float) if is_regressor(estimator) else y
    weights = np.arange(60) % 5 / 2
    there, rows = weights > 0, np.where(weights[:, None] > 0, X, np.nan)
    targets = X[:, :5] if get_tags(estimator).target_tags.two_d_labels else y
    found = answers(estimator, rows, targets, weights)
    expected = answers(estimator, X[there], targets[there], 3 * weights[there])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("estimator", [GMML(), ITML(), LDE(), LMNN(), LPP()], ids=repr)
def test_weights_may_be_as_large_as_numbers_can_be(estimator):
    X, y = X_Y
    weights = np.arange(60) % 5 / 2
    found, expected = (answers(estimator, X, y, unit * weights) for unit in (5e307, 1.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["coo", "csc", "dia", "bsr"])
def test_sparse_rows_of_any_format_may_have_weights(kind):
    X, y = X_Y
    weights = np.arange(60) % 5 / 2
    expected = RCA().fit(csr_array(X), y, sample_weight=weights)
    found = RCA().fit(csr_array(X).asformat(kind), y, sample_weight=weights)
    np.testing.assert_array_equal(found.components_, expected.components_)


@pytest.mark.parametrize("dtype", ["string", "category", "Int64"])
def test_labels_in_arrays_of_pandas_may_have_weights(dtype):
    pandas = pytest.importorskip("pandas")
    X, y = X_Y
    weights = np.arange(60) % 5 / 2
    labels = pandas.Series(y.astype(str) if dtype == "string" else y).astype(dtype).array
    expected = RCA().fit(X, y, sample_weight=weights)
    found = RCA().fit(X, labels, sample_weight=weights)
    np.testing.assert_array_equal(found.components_, expected.components_)


# Match or no match, from any metric.


@pytest.mark.parametrize("estimator", slow_but_families(LINEAR))
def test_a_matcher_decides_about_pairs_by_any_metric(estimator):
    X, y = X_Y
    rng = np.random.default_rng(0)
    numbers = np.array([rng.permutation(60)[:2] for _ in range(20)])
    pairs, similar = X[numbers], np.where(y[numbers[:, 0]] == y[numbers[:, 1]], 1, -1)
    metric = clone(estimator).fit(X, y)
    matcher = Matcher(FrozenEstimator(metric))
    scores = matcher.decision_function(pairs)
    np.testing.assert_allclose(scores, metric.pair_score(pairs), rtol=1e-10)
    assert matcher.score(pairs, similar) == roc_auc_score(similar, scores)

    def values(predicted):
        """Return what each strategy has to make as large as can be."""
        right = predicted == similar
        tpr, tnr = right[similar == 1].mean(), right[similar == -1].mean()
        return {
            "accuracy": right.mean(),
            "f_beta": fbeta_score(similar, predicted, beta=2.0, zero_division=0),
            "max_tpr": tpr if tnr >= 0.7 else -1,
            "max_tnr": tnr if tpr >= 0.7 else -1,
        }

    by_threshold = [values(np.where(scores >= t, 1, -1)) for t in [*scores, np.inf]]
    for strategy in by_threshold[0]:
        matcher.calibrate_threshold(pairs, similar, strategy, min_rate=0.7, beta=2.0)
        predicted = matcher.predict(pairs)
        np.testing.assert_array_equal(predicted, np.where(scores >= matcher.threshold_, 1, -1))
        best = max(value[strategy] for value in by_threshold)
        assert values(predicted)[strategy] == pytest.approx(best, rel=1e-12)
