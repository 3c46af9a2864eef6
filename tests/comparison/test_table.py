"""Data frames as people have them: encoded once, the target by name, and a winner that takes such
frames.
"""

import numpy as np
import pytest

from nearkin import NMMP, TableEncoder
from nearkin.comparison import Method

from .tables import hidden, quick

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 90
NMMP_2 = Method("NMMP", NMMP(2), nested=False)
LIBRARIES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


def visits():
    """Return visits with text, dates and gaps, whose price tells the kind."""
    rng = np.random.default_rng(0)
    kind = np.array(["mild", "severe"])[np.arange(N) % 2].astype(object)
    kind[[3, 8]] = "severe ", None
    width = rng.normal(size=N)
    width[::9] = np.nan
    return pd.DataFrame(
        {
            "number": np.arange(N),
            "price": [f"€{value:.2f}" for value in rng.uniform(size=N) + 2 * (np.arange(N) % 2)],
            "colour": rng.choice(["red", "blue ", "blue"], N),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D"),
            "width": width,
            "patient": np.arange(N) // 5,
            "kind": kind,
        }
    )


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_named_target(library):
    frame = visits()
    comparison = quick(LIBRARIES[library](frame), "kind", [NMMP_2], refit=True)
    assert comparison.classes.tolist() == ["mild", "severe"]
    assert list(comparison.winner.named_steps)[:3] == ["encode", "scale", "impute"]
    assert comparison.winner["encode"] is comparison.encoder
    new = frame.drop(columns=["number", "kind"])[::-1].assign(colour="green", patient=1)
    predicted = comparison.winner.predict(LIBRARIES[library](new))
    assert (predicted == np.array(["mild", "severe"])[np.arange(N) % 2][::-1]).mean() > 0.8
    shown = str(comparison)
    for remark in (
        "ignored, numbers of the rows: number",
        "read as numbers: price ('€",
        "read as dates: day",
        "one-hot encoded: colour (2 values)",
        "missing values, filled by the median (kept by NCA tables): width (10 rows)",
        "kind: 'severe ' and 'severe' are one class (1 row)",
    ):
        assert remark in shown


@pytest.mark.long
def test_it_is_the_comparison_of_the_encoded_rows():
    frame = visits()
    features = frame.drop(columns="kind")
    y = frame["kind"].str.strip().to_numpy(dtype=object)
    by_name, by_array = quick(frame, "kind", []), quick(features, y, [])
    by_hand = quick(TableEncoder(missing="keep").fit_transform(features), y, [])
    for comparison in (by_name, by_array):
        np.testing.assert_array_equal(comparison.raw.score, by_hand.raw.score)
    assert by_hand.encoder is None
    assert by_hand.remarks == ()
    assert by_array.remarks == by_name.remarks[1:]


def test_whole_numbers_beside_gaps_are_integers():
    frame = visits().assign(kind=np.where(np.arange(N) % 7, np.arange(N) % 2, np.nan))
    assert str(quick(frame, "kind", []).classes.tolist()) == "[0, 1]"


def test_named_groups():
    frame = visits()
    comparison = quick(frame, "kind", [], groups="patient")
    patient = frame["patient"].to_numpy()
    assert all(not set(patient[train]) & set(patient[test]) for train, test in comparison.folds)
    assert "patient" not in comparison.encoder.feature_names_in_


def test_numbers_to_predict_as_text():
    frame = visits().assign(weight=[f"{50 + 7 * (row % 2)},5" for row in range(N)])
    comparison = quick(frame, "weight", [], task="regression")
    np.testing.assert_array_equal(np.unique(comparison.protocol.y), [50.5, 57.5])
    assert comparison.remarks[0] == "weight: read as numbers ('50,5', decimal comma)"
    with pytest.raises(ValueError, match=r"'colour' holds '.*' in row .*, which is not a number"):
        quick(frame, "colour", [], task="regression")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_of_numbers_is_an_array_where_no_target_is_named(library):
    X, y = hidden()
    X[:, 2] = 5  # would be left out
    frame = pd.DataFrame(X, columns=[*"abcdef"])
    comparison = quick(LIBRARIES[library](frame), y, [])
    np.testing.assert_array_equal(comparison.protocol.X, X)
    assert comparison.encoder is None
    grouped = quick(
        LIBRARIES[library](frame.assign(patient=np.arange(150) // 5)), y, [], groups="patient"
    )
    assert grouped.protocol.X.shape == X.shape


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"y": "kinds"},
            ValueError,
            "X has no columns 'kinds': y must be the name of one, such as 'number', 'price'",
        ),
        (
            {"groups": "patients"},
            ValueError,
            "X has no columns 'patients': groups must be the name of one",
        ),
        ({"y": "day"}, ValueError, "'day' holds dates"),
        (
            {"X": np.ones((9, 2))},
            TypeError,
            "y names a column, 'kind', but X is no data frame: give y as an array",
        ),
    ],
)
def test_names_that_mean_no_column(arguments, error, message):
    given = {"X": visits(), "y": "kind"} | arguments
    with pytest.raises(error, match=message):
        quick(given.pop("X"), given.pop("y"), [], **given)
