"""What an estimator says of rows and targets that it cannot take: where, what, and the remedy."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import is_regressor

import nearkin
from nearkin import MLKR, NCA, NCAClassifier, NCARegressor, SoftNeighborsRegressor, TableEncoder

pd = pytest.importorskip("pandas")

N = 30
RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame(RNG.standard_normal((N, 3)), columns=["a", "b", "c"])
WORDS = NUMBERS.assign(colour=["red", "blue", "green"] * (N // 3))
GAPS = NUMBERS.mask(RNG.random((N, 3)) < 0.1)
CLASSES, TARGETS = np.arange(N) % 2, RNG.standard_normal(N)
TABLES = {"NCAClassifier", "NCARegressor", "TableEncoder"}


def estimators():
    """Return every estimator of rows with labels or targets, but for those that read tables."""
    for name in nearkin.__all__:
        kind = getattr(nearkin, name)
        if (
            isinstance(kind, type)
            and hasattr(kind, "fit")
            and not name.startswith("Dask")
            and name not in TABLES
        ):
            needs = [
                pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
            ]
            yield pytest.param(kind, id=name, marks=needs if name == "NeuralNCA" else [])


def targets_of(estimator):
    real = (
        is_regressor(estimator)
        or isinstance(estimator, MLKR)
        or "Regress" in type(estimator).__name__
    )
    return TARGETS if real else CLASSES


@pytest.mark.parametrize("kind", estimators())
@pytest.mark.parametrize("form", [lambda frame: frame, pd.DataFrame.to_numpy])
def test_words_are_named_with_the_remedy(kind, form):
    estimator = kind()
    with pytest.raises(ValueError, match=r"X holds words in .* \(such as 'red'\)") as refused:
        estimator.fit(form(WORDS), targets_of(estimator))
    said = str(refused.value)
    assert "'colour'" in said or "column 3 (counted from 0)" in said
    assert f"{kind.__name__} needs numbers: take NCAClassifier or NCARegressor" in said
    assert "TableEncoder()" in said


@pytest.mark.parametrize("kind", estimators())
def test_missing_cells_are_named_with_the_remedy(kind):
    estimator = kind()
    if estimator.__sklearn_tags__().input_tags.allow_nan:
        return
    rows = {name: count for name, count in GAPS.isna().sum().items() if count}
    with pytest.raises(ValueError, match="X contains NaN") as refused:
        estimator.fit(GAPS, targets_of(estimator))
    said = str(refused.value)
    assert all(f"'{name}' ({count} row" in said for name, count in rows.items())
    assert all(
        word in said
        for word in ("NCAClassifier", "TableEncoder()", "sklearn.impute.SimpleImputer()")
    )
    assert "HistGradientBoosting" not in said


def test_new_rows_are_refused_in_the_same_words():
    model = NCA(n_components=1).fit(NUMBERS, CLASSES)
    with pytest.raises(ValueError, match=r"X contains NaN in .*, and NCA needs every cell"):
        model.transform(GAPS)
    with pytest.raises(ValueError, match=r"X holds dates or durations in 'b'"):
        model.transform(NUMBERS.assign(b=pd.date_range("2024-01-01", periods=N)))


@pytest.mark.long
def test_the_remedies_are_taken_at_their_word():
    for rows in (WORDS, GAPS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            NCAClassifier().fit(rows, CLASSES)
            NCA(n_components=1).fit(TableEncoder().fit_transform(rows), CLASSES)


@pytest.mark.parametrize("kind", [NCARegressor, MLKR, SoftNeighborsRegressor])
@pytest.mark.parametrize(
    ("y", "said"),
    [
        (
            [f"{size} €" for size in range(N)],
            r"y holds words \(such as '0 €'\), and {} needs numbers here",
        ),
        (["dear", "cheap"] * (N // 2), "take a classifier, such as NCAClassifier, for classes"),
        (
            pd.date_range("2024-01-01", periods=N),
            "y holds dates or durations, and {} needs numbers here",
        ),
        (
            [None, *TARGETS[1:]],
            r"y holds NaN in 1 row \(the first: 0\): drop rows without a target",
        ),
        (np.where(CLASSES, np.nan, TARGETS), r"y holds NaN in 15 rows \(the first: 1\)"),
    ],
)
def test_targets_of_a_regression(kind, y, said):
    with pytest.raises(ValueError, match=said.format(kind.__name__)):
        kind().fit(NUMBERS, y)


@pytest.mark.parametrize(
    "kind", [NCA, NCAClassifier, NCARegressor, MLKR, TableEncoder, SoftNeighborsRegressor]
)
def test_no_rows(kind):
    with pytest.raises(ValueError, match=r"X has 0 rows \(shape \(0, 3\)\): give at least one"):
        kind().fit(NUMBERS[:0], TARGETS[:0])


@pytest.mark.parametrize("kind", [NCA, NCAClassifier])
def test_real_numbers_are_no_classes(kind):
    with pytest.raises(
        ValueError,
        match=r"y holds real numbers, such as .*: take a regressor, or cut them into classes",
    ):
        kind().fit(NUMBERS, TARGETS)
