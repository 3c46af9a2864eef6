"""Calls that cannot work raise a ValueError or TypeError that names the argument.

They are generated: every parameter of every public estimator gets values of many kinds, and every
argument of `fit` and of what follows it arrays of many kinds.
"""

import datetime
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, dok_array
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from nearkin import (
    ITML,
    LDE,
    MLKR,
    NCA,
    RCA,
    TDL,
    EmbeddingAdapter,
    LapRLSClassifier,
    Matcher,
    NCAClassifier,
    NCARegressor,
    PairNCA,
    TableEncoder,
    TDistributedNCA,
)

from .test_contract import CHEAP

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.default_rng(0)
N = 30
X, LABELS = RNG.normal(size=(N, 4)), np.arange(N) % 3
REAL = X[:, 0] + 0.1 * RNG.normal(size=N)
HUGE = 10**400  # no float
ESTIMATORS = [
    # with an estimator of its own a matcher fits many
    clone(one).set_params(estimator=RCA(), metric="cosine") if isinstance(one, Matcher) else one
    for one in CHEAP
]
LONG = (ITML, TDL, EmbeddingAdapter, Matcher, NCAClassifier, NCARegressor, TDistributedNCA)
CASES = [
    pytest.param(one, marks=[pytest.mark.slow] if isinstance(one, LONG) else [], id=repr(one))
    for one in ESTIMATORS
]
every_estimator = pytest.mark.parametrize("estimator", CASES)


def leave_out(estimator, *classes):
    """Expect a failure of estimators with some messages that do not name the argument yet."""
    if isinstance(estimator, classes):
        pytest.xfail("some messages do not name the argument yet")


def target_of(estimator):
    if get_tags(estimator).target_tags.two_d_labels:
        return X[:, :3]
    return REAL if is_regressor(estimator) or isinstance(estimator, MLKR) else LABELS


def complaint(name, call, *arguments, **options):
    """Return what is wrong with the error of a call, if it raises one; it must name `name`."""
    try:
        call(*arguments, **options)
    except (ValueError, TypeError) as error:
        if not re.search(rf"(?<!\w)({name})(?!\w)", str(error)):
            return f"does not name {name}: {error!r}"
    except Exception as error:
        return repr(error)
    return None


def complaints(cases):
    """Return what is wrong with each of some named calls."""
    found = {title: complaint(*case) for title, case in cases}
    return {title: what for title, what in found.items() if what}


WRONG = {
    "list": [],
    "dict": {},
    "array": np.array([1, 2]),
    "huge": HUGE,
    "class": NCA,
}
MORE = {
    "None": None,
    "text": "x",
    "auto": "auto",
    "bytes": b"x",
    "-1": -1,
    "0": 0,
    "2.5": 2.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "1e300": 1e300,
    "1e-300": 1e-300,
    "2^63": 2**63,
    "-huge": -HUGE,
    "complex": 1j,
    "bool": True,
    "object": object(),
    "function": lambda *rows: 1,
    "estimator": RCA(),
    "tuple": (1,),
    "set": {1, 2},
    "matrix": np.eye(3),
    "words": np.array(["a", "b"]),
    "ragged": [[1, 2], [3]],
    "sparse": csr_array(np.eye(N)),
}


def wrong_parameters(estimator, values):
    for name in estimator.get_params(deep=False):
        for kind, value in values.items():
            model = clone(estimator)
            setattr(model, name, value)  # set_params would set those of an estimator
            yield f"{name}={kind}", (name, model.fit, X, target_of(estimator))


@every_estimator
def test_parameters_of_a_wrong_kind_are_named(estimator):
    leave_out(estimator, Matcher)
    assert complaints(wrong_parameters(estimator, WRONG)) == {}


@pytest.mark.long
@every_estimator
def test_parameters_of_any_kind_work_or_are_named(estimator):
    leave_out(estimator, Matcher)
    assert complaints(wrong_parameters(estimator, MORE)) == {}


def with_cell(value, A=X):
    A = A.astype(object)
    A.flat[5] = value
    return A


def masked(A):
    A = np.ma.array(A)
    A[2] = np.ma.masked
    return A


def frames():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2020", periods=N, tz="UTC")
    return {
        "NA": with_cell(pd.NA),
        "NaT": with_cell(pd.NaT),
        "repeated names": pd.DataFrame(X, columns=list("aabc")),
        "mixed names": pd.DataFrame(X, columns=["a", 1, "b", 2]),
        "gaps": pd.DataFrame(X).assign(z=pd.array([1, None] * (N // 2), dtype="Int64")),
        "categories": pd.DataFrame(X).assign(z=pd.Categorical(["a", "b"] * (N // 2))),
        "time zone": pd.DataFrame({"a": days, "b": range(N)}),
        "series": pd.Series(REAL),
    }


ROWS = {
    "3-D": X.reshape(N, 2, 2),
    "complex": X + 1j,
    "huge": with_cell(HUGE),
    "ragged": [[1, 2], [3]] * (N // 2),
    "masked": masked(X),
    "words": np.full((N, 4), "x"),
    "object": with_cell(object()),
}
MORE_ROWS = {
    "0-D": np.array(3.0),
    "1-D": REAL,
    "4-D": np.zeros((2, 2, 2, 2)),
    "scalar": 3,
    "None": None,
    "text": "x",
    "0 rows": X[:0],
    "0 features": X[:, :0],
    "1 row": X[:1],
    "-huge": with_cell(-HUGE),
    "complex cell": with_cell(1j),
    "None cell": with_cell(None),
    "list cell": with_cell([1, 2]),
    "date cell": with_cell(datetime.date(2020, 1, 1)),
    "decimals": with_cell(Decimal("1.5")),
    "fractions": with_cell(Fraction(1, 3)),
    "bytes": np.full((N, 4), b"x"),
    "dates": np.full((N, 4), np.datetime64("2020-01-01")),
    "durations": np.full((N, 4), np.timedelta64(1, "D")),
    "nan": np.where(X > 1, np.nan, X),
    "inf": np.where(X > 1, np.inf, X),
    "5e307": X * 5e307,
    "constant": np.ones((N, 4)),
    "dict": {"a": 1},
    "dicts": [{"a": 1}] * N,
    "set": {1, 2},
    "generator": (row for row in X),
    "estimator": NCA(),
    "class": NCA,
    "void": np.zeros((N, 4), "V8"),
    "structured": np.zeros(N, [("a", "f8"), ("b", "f8")]),
    "matrix": X.view(np.matrix),
    "coo": coo_array(X),
    "dok": dok_array(X),
    "sparse nan": csr_array(np.where(X > 1, np.nan, X)),
    "sparse complex": csr_array(X + 1j),
    "float16": X.astype(np.float16),
    "longdouble": X.astype(np.longdouble),
}
TARGETS = {
    "short": LABELS[:-1],
    "2-D": np.c_[LABELS, LABELS],
    "2^63": with_cell(2**63, LABELS),
    "huge": with_cell(HUGE, LABELS),
    "masked": masked(LABELS),
    "list": with_cell([1, 2], LABELS),
    "complex": LABELS + 1j,
}
MORE_TARGETS = {
    "None": None,
    "long": np.r_[LABELS, 1],
    "empty": [],
    "scalar": 3,
    "text": "abc",
    "3-D": LABELS.reshape(N, 1, 1),
    "2^63 and more": LABELS.astype(np.uint64) + np.uint64(2**63),
    "-huge": with_cell(-HUGE, LABELS),
    "all huge": np.array([HUGE + i % 2 for i in range(N)], dtype=object),
    "nan": np.where(LABELS, LABELS, np.nan),
    "inf": np.where(LABELS, LABELS, np.inf),
    "dates": np.datetime64("2020-01-01") + LABELS,
    "object": with_cell(object(), LABELS),
    "tuples": [(1, 2), (2,)] * (N // 2),
    "sets": [frozenset({1}), frozenset({2})] * (N // 2),
    "mixed": with_cell("a", LABELS),
    "bytes": np.array([b"a", b"b", b"c"])[LABELS],
    "words": np.array(["a", "b", "c"])[LABELS],
    "one": np.zeros(N, int),
    "all different": np.arange(N),
    "unlabelled": np.full(N, -1),
    "5e307": REAL * 5e307,
    "sparse": csr_array(LABELS[:, None]),
    "void": np.zeros(N, "V8"),
    "structured": np.zeros(N, [("a", "f8")]),
    "dict": {0: 1},
    "generator": (label for label in LABELS),
    "estimator": NCA(),
}
WEIGHTS = {
    "short": np.ones(N - 1),
    "negative": -np.ones(N),
    "huge": np.array([HUGE] * N, dtype=object),
    "masked": masked(np.ones(N)),
    "words": ["a"] * N,
    "2-D": np.ones((N, 2)),
    "zero": np.zeros(N),
    "nan": np.full(N, np.nan),
    "complex": np.ones(N) + 1j,
    "ragged": [[1], [1, 2]] * (N // 2),
    "sparse": csr_array(np.ones((1, N))),
    "dates": np.full(N, np.datetime64("2020-01-01")),
    "None": [None] * N,
    "dict": {},
    "text": "x",
}


def wrong_input(estimator, rows, targets):
    y = target_of(estimator)
    for kind, value in rows.items():
        yield f"X {kind}", ("X|columns?", clone(estimator).fit, value, y)
    for kind, value in targets.items():
        yield f"y {kind}", ("y", clone(estimator).fit, X, value)


@every_estimator
def test_rows_and_targets_of_a_wrong_kind_are_named(estimator):
    if isinstance(estimator, TableEncoder):
        pytest.importorskip("pandas")  # which is named where it is not installed
    assert complaints(wrong_input(estimator, ROWS, TARGETS)) == {}


@pytest.mark.slow
@every_estimator
def test_rows_and_targets_of_any_kind_work_or_are_named(estimator):
    leave_out(estimator, Matcher, NCAClassifier, NCARegressor, PairNCA)
    assert complaints(wrong_input(estimator, MORE_ROWS | frames(), MORE_TARGETS)) == {}


@pytest.mark.parametrize(
    "estimator", [case for case in CASES if has_fit_parameter(case.values[0], "sample_weight")]
)
def test_weights_of_a_wrong_kind_are_named(estimator):
    y = target_of(estimator)
    cases = [
        (kind, ("sample_weight", lambda w: clone(estimator).fit(X, y, sample_weight=w), value))
        for kind, value in WEIGHTS.items()
    ]
    assert complaints(cases) == {}


METHODS = (
    *("transform", "predict", "predict_proba", "decision_function", "kneighbors"),
    *("inverse_transform", "pair_distance", "pair_score"),
)
PAIRS = np.stack([X[:-1], X[1:]], axis=1)


@every_estimator
def test_before_fit_methods_say_so(estimator):
    for name in METHODS:
        if hasattr(estimator, name):
            with pytest.raises(NotFittedError, match="fit"):
                getattr(clone(estimator), name)(PAIRS if isinstance(estimator, Matcher) else X)


@pytest.mark.slow
@every_estimator
def test_new_rows_of_any_kind_work_or_are_named(estimator):
    leave_out(estimator, LapRLSClassifier, TableEncoder)
    model = clone(estimator).fit(X, target_of(estimator))
    cases = [
        (f"{name} {kind}", ("X|Z|pairs|columns?", getattr(model, name), value))
        for name in METHODS
        if hasattr(model, name)
        for kind, value in (ROWS | MORE_ROWS | frames()).items()
    ]
    assert complaints(cases) == {}


@every_estimator
def test_what_is_masked_is_refused(estimator):
    y = target_of(estimator)
    y = masked(y if y.ndim == 2 else y.astype(float))
    for rows, targets, name in ((masked(X), target_of(estimator), "X"), (X, y, "y")):
        if name == "X" or get_tags(estimator).target_tags.required:
            with pytest.raises(ValueError, match=rf"{name} is a masked array that hides [134] of"):
                clone(estimator).fit(rows, targets)


def test_a_mask_that_hides_nothing_is_no_matter():
    model = LDE(2).fit(np.ma.array(X), np.ma.array(LABELS))
    np.testing.assert_array_equal(model.components_, LDE(2).fit(X, LABELS).components_)


def test_a_second_fit_forgets_the_features_of_the_first():
    rows, labels = load_iris(return_X_y=True)
    model = LDE(2).fit(rows, labels).fit(rows[:, :3], labels)
    assert model.transform(rows[:, :3]).shape == (150, 2)
    with pytest.raises(ValueError, match=r"X has 4 features, but LDE .*: give the features that"):
        model.transform(rows)


@pytest.mark.parametrize("bits", [63, 64, 70])
@pytest.mark.parametrize("kind", [LDE, NCA])
def test_labels_beyond_64_bits(kind, bits):
    """A whole number of 64 bits, with or without sign, is a label; floats would merge others."""
    y = [2**bits + label for label in LABELS.tolist()]
    if bits == 63:
        assert kind().fit(X, y).components_.shape[1] == 4
        y[0] = -1
    with pytest.raises(ValueError, match=r"y holds numbers that 64 bits cannot tell apart.*\[str"):
        kind().fit(X, np.array(y, dtype=object))
    assert kind().fit(X, [str(label) for label in y]).components_.shape[1] == 4
