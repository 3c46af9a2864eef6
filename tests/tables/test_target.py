"""The target: text that means one label, and the same answer for a file, a frame and an array."""

import numpy as np
import pytest

from nearkin import NCAClassifier, label_issues
from nearkin.comparison import compare
from nearkin.tables import learn_target
from nearkin.tables.target import merged_labels


@pytest.mark.parametrize(
    ("given", "expected", "several"),
    [
        (["yes", "yes ", "\tno"], ["yes", "yes", "no"], {"yes": ["yes", "yes "]}),
        (["1", "1.0", "2."], ["1", "1", "2"], {"1": ["1", "1.0"]}),
        (["v1.0", "01", "1.50", "NA", "None"], ["v1.0", "01", "1.50", "NA", "None"], {}),
        ([1, "1.0", "b", None], ["1", "1", "b", None], {"1": ["1", "1.0"]}),
        ([" ", "a", float("nan")], [None, "a", None], {}),
        (["Yes", "yes"], ["Yes", "yes"], {}),  # whether they are one class, who knows
        ([1, 1.0, 2], [1, 1.0, 2], {}),
        ([True, None, False], [True, None, False], {}),
        ([], [], {}),
    ],
)
def test_text_that_means_one_label(given, expected, several):
    labels, found = merged_labels(np.array(given, dtype=object))
    assert (labels.tolist(), found) == (expected, several)


def test_numbers_stay():
    for y in (np.arange(3), np.array([0.5, np.nan]), np.array([True, False])):
        assert merged_labels(y)[0] is y


def test_text_without_gaps_is_no_array_of_objects():
    assert merged_labels(np.array(["a ", "b"]))[0].dtype.kind == "U"


N = 40
DAYS = [f"2024-0{1 + row % 2}-01" for row in range(N)]
LONG = ["xy"[row % 2] * 501 for row in range(N)]


def of_file(X, y, folder):
    tables = pytest.importorskip("nearkin.app.tables.reading")
    frame_of(X, y).to_csv(folder / "t.csv", index=False)
    try:
        tables.read_table(str(folder / "t.csv"), "kind")
    except tables.TableError as error:
        raise ValueError(str(error)) from error


def frame_of(X, y):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(X, columns=["a", "b"]).assign(kind=y)


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        (DAYS, "holds dates ('2024-01-01')"),
        (np.array(DAYS, dtype="M8[s]"), "holds dates ('2024-01-01"),
        (LONG, "holds text of 501 characters: shorten it"),
    ],
    ids=["dates", "dates of their own type", "long text"],
)
@pytest.mark.parametrize(
    "learn",
    [
        of_file,
        lambda X, y, _: compare(frame_of(X, y), "kind"),
        lambda X, y, _: compare(X, y),
        lambda X, y, _: NCAClassifier().fit(X, y),
        lambda X, y, _: label_issues(frame_of(X, y), "kind"),
        lambda X, y, _: label_issues(X, y),
    ],
    ids=["file", "compare a frame", "compare an array", "fit", "check a frame", "check an array"],
)
def test_what_is_no_class_is_refused_by_all(learn, y, reason, tmp_path):
    X = np.random.default_rng(0).normal(size=(N, 2))
    with pytest.raises(ValueError, match="holds") as error:
        learn(X, y, tmp_path)
    assert reason in str(error.value)


@pytest.mark.parametrize("given", [[1, 2, -1, 1, 2, 1], ["1", "2", " -1", "1.0", "2", "1"]])
def test_what_means_no_label(given):
    y, _ = learn_target(np.array(given), "kind", "classification", unlabelled=-1)
    assert [None if label is None else str(label) for label in y] == ["1", "2", None, "1", "2", "1"]
    with pytest.raises(ValueError, match="'kind' holds no 7: give unlabelled a value that it"):
        learn_target(np.array(given), "kind", "classification", unlabelled=7)


def test_a_column_of_numbers_is_read_and_an_array_is_not():
    y = np.array(["1.5 kg", "2 kg", "?", "4 kg", "2.5 kg"])
    numbers, remarks = learn_target(y, "weight", "regression")
    np.testing.assert_array_equal(numbers, [1.5, 2, np.nan, 4, 2.5])
    assert remarks[0] == "weight: read as numbers ('1.5 kg')"
    with pytest.raises(ValueError, match=r"y holds <U\d+, not numbers"):
        learn_target(y, None, "regression")


def test_numbers_may_be_classes_of_a_single_row_where_there_are_only_classes():
    y = np.array([*map(str, range(24)), *["0"] * 30], dtype=object)
    assert learn_target(y, "kind", "classification", regression=None)[0].tolist() == y.tolist()
    with pytest.raises(ValueError, match="holds real numbers, such as '1', not classes: give"):
        learn_target(y, "kind", "classification")
