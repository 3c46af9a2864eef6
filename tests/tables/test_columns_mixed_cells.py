"""A column is what nearly all its cells are; the others are missing, and words where they repeat."""

import json
import warnings

import numpy as np
import pytest

from nearkin import NCAClassifier, NCARegressor, TableEncoder
from nearkin.tables import features_of
from nearkin.tables.bins import NO_WORD

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)


def frame_of(cells):
    return pd.DataFrame({"x": list(cells), "other": np.arange(len(cells)) % 2 + 0.5})


def fitted(cells, **options):
    return TableEncoder("keep", **options).fit(frame_of(cells))


def encoded(encoder, cells):
    """Return the features of x by name, the same after the encoder was saved and loaded."""
    loaded = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    frame = frame_of(cells)
    found, faults, unknown = encoder.encode(frame)
    again, *remarks_again = loaded.encode(frame)
    np.testing.assert_array_equal(found, again)
    assert [faults, unknown] == remarks_again
    names = encoder.get_feature_names_out().tolist()
    numbers = {name: found[:, at] for at, name in enumerate(names) if name != "other"}
    return numbers, faults + unknown


def mileage(n=2606):
    return [f"{miles:,}" for miles in RNG.integers(2000, 90_000, n).tolist()]


def test_two_words_among_thousands_of_numbers():
    numbers = mileage()
    cells = [*numbers, "Unknown", "Unknown"]
    encoder = fitted(cells)
    features, remarks = encoded(encoder, cells)
    assert list(features) == ["x"]
    np.testing.assert_array_equal(features["x"][:-2], [float(c.replace(",", "")) for c in numbers])
    assert np.isnan(features["x"][-2:]).all()
    assert "x: 2 cells are not numbers, missing there: 'Unknown' (2)" in encoder.remarks_
    assert remarks == [
        "x: 2 cells are not numbers, taken as missing: 'Unknown' in row 2606 (counted from 0), "
        "'Unknown' in row 2607 (counted from 0)"
    ]


def test_three_words_among_ages_are_no_58_categories():
    ages = RNG.integers(20, 78, 309).astype(str).tolist()
    features, _ = encoded(fitted([*ages, "Unknown", "Unknown", "Unknown"]), ["33", "Unknown"])
    assert list(features) == ["x"]
    np.testing.assert_array_equal(features["x"], [33, np.nan])


def test_a_single_decimal_comma_turns_no_separators_into_commas():
    numbers = [cell for cell in mileage(500)]
    features, _ = encoded(fitted([*numbers, "2,00"]), numbers)
    assert features["x"].min() >= 2000
    features, _ = encoded(fitted(["2,5", "7,25", "1,125"] * 9 + ["many"]), ["1,125"])
    assert features["x"] == [1.125]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["10 or younger", "11", "12", "21 or older"], [10, 11, 12, 21]),
        (["Less than 1 year", "1-5 years", "6-10 years", "More than 20 years"], [1, 3, 8, 20]),
        (["$0 to $9,999", "$10,000 to $24,999", "$200,000 and up"], [4999.5, 17499.5, 200_000]),
    ],
)
def test_open_ends_of_answers_to_polls(cells, numbers):
    np.testing.assert_array_equal(encoded(fitted(cells * 4), cells)[0]["x"], numbers)


def test_words_of_five_rows_have_an_indicator_beside_the_number():
    cells = (
        [str(age) for age in RNG.integers(18, 80, 300)]
        + ["Unknown"] * 7
        + ["n. a."] * 4
        + ["older"] * 5
    )
    encoder = fitted(cells)
    features, remarks = encoded(encoder, [*cells, "unheard", None, "33"])
    assert list(features) == ["x", "x=Unknown", "x=older"]
    assert features["x=Unknown"].sum() == 7
    assert features["x=older"].sum() == 5
    assert np.isnan(features["x"]).sum() == 7 + 4 + 5 + 2
    assert features["x"][-1] == 33
    column = {feature.column for feature in features_of(encoder) if feature.name.startswith("x")}
    assert len(column) == 1
    assert any("'Unknown' (7, with an indicator)" in line for line in encoder.remarks_)
    # words with an indicator are known; others are taken as missing
    assert len(remarks) == 1
    assert "5 cells are not numbers" in remarks[0]


def test_a_column_is_numbers_from_one_half_on():
    numbers = [str(number) for number in range(10, 40)]
    words = ["red", "blue", "green"] * 10
    assert list(encoded(fitted(numbers + words), ["10"])[0]) == ["x", "x=blue", "x=green", "x=red"]
    encoder = fitted(numbers + words + ["grey"], drop_identifiers=False)
    assert "x" not in encoded(encoder, ["10"])[0]
    assert next(c for c in encoder.columns_ if c.name == "x").kind == "category"


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["2024-01-05", "2024-02-07", "2023-11-30"], 3),
        (["12 kg", "500 g", "3 kg"], 3),
        (["1h 10min", "45 min", "2h 5min"], 3),
        (["10-19", "20-29", "30-39", "40-49"], 4),
        (["10:15", "11:20", "23:10"], 3),
    ],
)
@pytest.mark.parametrize("word", ["unknown", "tbd"])
def test_every_form_has_words(cells, numbers, word):
    clean, mixed = fitted(cells * 6), fitted(cells * 6 + [word] * 6)
    of_clean, _ = encoded(clean, cells)
    of_mixed, remarks = encoded(mixed, [*cells, word])
    assert not remarks
    assert of_mixed.pop(f"x={word}").tolist() == [0] * numbers + [1]
    assert list(of_mixed) == list(of_clean)
    for name, features in of_clean.items():
        np.testing.assert_array_equal(of_mixed[name][:-1], features)


def test_units_without_a_known_factor_are_a_category_beside_the_number():
    cells = [f"{size:.1f} kmpl" for size in RNG.uniform(10, 25, 80)]
    cells += [f"{size:.1f} km/kg" for size in RNG.uniform(15, 30, 20)]
    encoder = fitted(cells)
    features, remarks = encoded(encoder, ["23.4 kmpl", "17.3 km/kg", "9 mpg", "11.5"])
    assert list(features) == ["x", "x=km/kg", "x=kmpl"]
    np.testing.assert_array_equal(features["x"], [23.4, 17.3, np.nan, 11.5])
    assert features["x=kmpl"].tolist() == [1, 0, 0, 0]
    assert features["x=km/kg"].tolist() == [0, 1, 0, 0]
    assert remarks[0].startswith(
        "x: 1 cell is not a number in 'km/kg or kmpl', taken as missing: '9 mpg'"
    )
    assert "x ('" in " ".join(encoder.remarks_)
    prices = [f"${price}" for price in range(5, 15)] + [f"€{price}" for price in range(5, 15)]
    assert list(encoded(fitted(prices), ["$7"])[0]) == ["x", "x=$", "x=€"]


def test_a_unit_that_few_have_is_none_of_the_others():
    sizes = [str(size) for size in RNG.uniform(1, 3.5, 300).round(1)]
    features, remarks = encoded(fitted([*sizes, "1560 cc"]), ["1.5", "1560 cc"])
    np.testing.assert_array_equal(features["x"], [1.5, np.nan])
    assert "'1560 cc'" in remarks[0]
    weights = [f"{size} kg" for size in range(50, 80)]
    features, _ = encoded(fitted([*weights, "62"]), ["70", "70 kg"])
    assert {name: x.tolist() for name, x in features.items()} == {"x": [70, 70]}
    # of two kinds of numbers, such as taxes and sizes of engines, it says which
    taxes = [f"£{tax}" for tax in range(50)] + sizes[:50]
    features, _ = encoded(fitted(taxes), ["£20", "1.5"])
    assert {name: x.tolist() for name, x in features.items()} == {"x": [20, 1.5], "x=£": [1, 0]}


STAY = {
    "postal codes": ["01234", "99817", "20457", "80331"],
    "truth values and a word": ["true", "false", "unknown"],
    "two numbers and a word": ["0", "1", "unknown"],
    "flats": ["Apto 12", "Apto 7", "Casa 3"],
    "codes": ["A3", "B12", "A17"],
    "letters after numbers": ["3A", "12B", "7C", "9A", "4B"],
    "mostly the same letter": ["3A", "12B", "7A", "9A"],
    "ordinals": ["1st class", "2nd class", "3rd class"],
    "half a percent or a half": ["0.5", "12%", "7"],
}


@pytest.mark.parametrize("case", STAY)
def test_what_is_no_number_stays_a_category(case):
    encoder = fitted(STAY[case] * 8)
    assert next(column for column in encoder.columns_ if column.name == "x").kind == "category"


def test_many_values_are_judged_by_a_sample_and_read_the_same():
    numbers = [f"{number:.3f}" for number in RNG.normal(size=3000)]
    words = ["word " + str(i % 40) for i in range(1500)]
    features, _ = encoded(fitted(numbers + words), numbers)
    np.testing.assert_array_equal(features["x"], np.array(numbers, dtype=float))
    streets = [f"{i} Elm Street, House {i % 7}" for i in range(3000)]
    column = fitted(streets, drop_identifiers=False).columns_
    assert [one.name for one in column] == ["other"] or column[1].kind == "frequency"


def test_order_of_rows_and_names_of_words_change_nothing():
    cells = np.array(
        [str(x) for x in RNG.normal(size=200).round(2)] + ["Unknown"] * 9 + ["none yet"] * 6
    )
    order = RNG.permutation(len(cells))
    first, second = fitted(cells), fitted(cells[order])
    assert [one for one in first.columns_] == [one for one in second.columns_]
    renamed = np.array([cell.replace("Unknown", "keine") for cell in cells])
    (one, _), (other, _) = encoded(first, cells), encoded(fitted(renamed), renamed)
    for name, features in one.items():
        np.testing.assert_array_equal(other[name.replace("Unknown", "keine")], features)


def test_strict_reads_all_cells_or_none():
    cells = [*mileage(50), "Unknown"] * 2
    assert next(c for c in fitted(cells, strict=True).columns_ if c.name == "x").kind == "category"
    with pytest.raises(ValueError, match="'x' holds 'far' in row 1"):
        fitted(mileage(50), strict=True).transform(frame_of(["3", "far"]))
    with pytest.raises(TypeError, match="strict"):
        fitted(cells, strict="yes")


def test_infinite_text_is_a_missing_cell():
    encoder = fitted(["1", "2", "3.5", "inf"] * 3)
    assert np.isnan(encoded(encoder, ["1", "inf", "-Infinity"])[0]["x"]).tolist() == [
        False,
        True,
        True,
    ]


def test_infinite_numbers_of_a_frame_are_missing_and_those_of_an_array_refused():
    X = RNG.normal(size=(30, 2))
    X[4, 1] = np.inf
    frame = pd.DataFrame(X, columns=["a", "b"])
    encoder = TableEncoder("keep").fit(frame)
    said = "1 infinite number, taken as missing: in column 'b' in row 4 (counted from 0)"
    assert said in encoder.remarks_
    found, remarks, _ = encoder.encode(frame)
    np.testing.assert_array_equal(found, np.where(np.isinf(X), np.nan, X))
    assert remarks == [said]
    assert np.isinf(frame.loc[4, "b"])
    for given, strict in ((X, False), (frame, True)):
        with pytest.raises(ValueError, match="X contains infinity"):
            TableEncoder("keep", strict=strict).fit(given)


def test_imputed_words_count_as_missing_cells():
    cells = ["1", "2", "3", "4"] * 5 + ["unknown"] * 6
    encoder = TableEncoder().fit(frame_of(cells))
    X = encoder.transform(frame_of(["4", "unknown"]))
    assert encoder.get_feature_names_out().tolist() == ["other", "x", "x=unknown", "x (missing)"]
    assert X.tolist() == [[0.5, 4, 0, 0], [1.5, 2.5, 1, 1]]


# New rows.


def cars(n=120):
    rng = np.random.default_rng(1)
    miles = rng.integers(1, 90, n)
    age = rng.integers(0, 12, n)
    frame = pd.DataFrame(
        {
            "mileage": [f"{number},000" for number in miles],
            "age": age,
            "colour": rng.choice(["red", "blue"], n),
            "doors": rng.integers(3, 6, n),
        }
    )
    frame.loc[: n // 10, "mileage"] = "Unknown"
    return frame, np.where(miles / 9 + age > 11, "cheap", "dear"), 20 - miles / 9 - age


@pytest.mark.long
def test_new_rows_are_answered_with_one_warning():
    frame, labels, prices = cars()
    for model, y in (
        (NCAClassifier(random_state=0), labels),
        (NCARegressor(random_state=0), prices),
    ):
        model.fit(frame, y)
        clean = model.predict(frame)
        new = frame.astype(object)
        new.loc[20, "mileage"] = "who knows"
        new.loc[[21, 22], "age"] = "old"
        with pytest.warns(UserWarning, match="taken as missing") as caught:
            predicted = model.predict(new[["doors", "colour", "age", "mileage"]])
        assert len(caught) == 1
        lines = str(caught[0].message).splitlines()
        assert lines == [
            "age: 2 cells are not numbers, taken as missing: 'old' in row 21 (counted from 0), "
            "'old' in row 22 (counted from 0)",
            "mileage: 1 cell is not a number, taken as missing: 'who knows' in row 20 (counted from 0)",
        ]
        assert caught[0].filename == __file__
        np.testing.assert_array_equal(
            np.delete(predicted, [20, 21, 22]), np.delete(clean, [20, 21, 22])
        )
        curves = model.curves()
        assert curves["mileage (words)"].names == ["Unknown", NO_WORD]
        assert curves["mileage (words)"].column == curves["mileage"].column == 0


@pytest.mark.slow
def test_lacking_columns_are_missing_unless_they_are_more_than_half_of_the_effect():
    frame, labels, _ = cars()
    model = NCAClassifier(random_state=0).fit(frame, labels)
    effects = model.feature_effects_
    assert effects[[0, 1]].sum() > effects.sum() / 2
    with pytest.warns(UserWarning, match="X lacks 'doors', .* missing in every row"):
        predicted = model.predict(frame.drop(columns="doors"))
    assert (predicted == labels).mean() > 0.8
    with pytest.warns(UserWarning, match=r"X lacks 'doors' \('doors' may be 'Doors'\), which"):
        model.predict(frame.rename(columns={"doors": "Doors"}))
    with pytest.raises(ValueError, match="X lacks 'age', 'mileage', which"):
        model.predict(frame[["colour", "doors"]])
    encoder = TableEncoder().fit(frame)
    with pytest.warns(UserWarning, match="X lacks 'mileage'"):
        encoder.transform(frame[["age", "doors", "colour"]])
    with pytest.raises(ValueError, match="X lacks"):
        encoder.transform(frame[["age"]])


@pytest.mark.long
def test_unread_cells_count_as_drift():
    frame, labels, _ = cars(400)
    model = NCAClassifier(random_state=0).fit(frame, labels)
    new, _, _ = cars(300)
    assert not model.drift(new).has_drifted
    new = new.astype(object)
    new.loc[100:250, "age"] = "a word"
    with pytest.warns(UserWarning, match="151 cells are not numbers"):
        drift = model.drift(new)
    assert "age" in drift.moved
    more = cars(300)[0]
    more.loc[100:250, "mileage"] = "Unknown"
    assert "mileage" in model.drift(more).moved


def test_fit_warns_of_nothing():
    frame, labels, _ = cars()
    frame.loc[30, "mileage"] = "once"
    with warnings.catch_warnings(action="error"):
        NCAClassifier(random_state=0).fit(frame, labels)


# Decimal marks of new rows


@pytest.mark.parametrize("form", ["{}", "€{}", "{} kg", "{}%"])
@pytest.mark.parametrize(("own", "other", "name"), [(".", ",", "commas"), (",", ".", "points")])
def test_new_rows_with_the_other_decimal_mark_are_the_same_numbers(form, own, other, name):
    numbers = RNG.uniform(0, 5, 40).round(3)
    old, new = (
        [form.format(f"{one:.3f}".replace(".", mark)) for one in numbers] for mark in (own, other)
    )
    encoder = fitted(old, decimal=own)
    expected, remarks = encoded(encoder, old)
    assert remarks == []
    found, remarks = encoded(encoder, new)
    np.testing.assert_array_equal(found["x"], expected["x"])
    assert remarks == [f"read with decimal {name}, unlike in training: x"]
    with pytest.raises(ValueError, match="give numbers"):
        encoder.encode(frame_of(new), strict=True)


def test_new_text_in_a_column_of_floats_has_either_mark():
    encoder = fitted(np.arange(9) / 2)
    features, remarks = encoded(encoder, ["0,561", "2,633", "1,5", "no idea"])
    np.testing.assert_array_equal(features["x"], [0.561, 2.633, 1.5, np.nan])
    assert "read with decimal commas, unlike in training: x" in remarks
    assert "x: 1 cell is not a number with a decimal comma, taken as missing" in remarks[0]
    features, remarks = encoded(encoder, ["1,234.5", "2,633", "0,561"])  # a point shows the mark
    np.testing.assert_array_equal(features["x"], [1234.5, 2633, np.nan])
    assert remarks[0].startswith("x: 1 cell is not a number, taken as missing: '0,561'")


def test_a_single_decimal_comma_among_new_rows_turns_no_separators_either():
    numbers = mileage(30)
    features, remarks = encoded(fitted(numbers), [*numbers, "2,00"])
    assert np.nanmin(features["x"]) >= 2000
    assert np.isnan(features["x"][-1])
    assert "taken as missing: '2,00'" in remarks[0]


@pytest.mark.parametrize(
    ("layout", "form"),
    [
        ("%d.%m.%Y", "dates (day first)"),
        ("%d/%m/%Y", "dates (day first)"),
        ("%m/%d/%Y", "dates (month first)"),
        ("%b %d, %Y", "dates"),
        ("%d %B %Y", "dates"),
    ],
)
def test_dates_of_another_layout_are_read(layout, form):
    days = pd.date_range("2023-01-03", periods=60, freq="11D")
    learned = TableEncoder().fit(pd.DataFrame({"visit": days.strftime("%Y-%m-%d")}))
    expected = learned.encode(pd.DataFrame({"visit": days.strftime("%Y-%m-%d")}))[0]
    cells = list(days.strftime(layout))
    rows, remarks, _ = learned.encode(pd.DataFrame({"visit": [*cells, "soon"]}))
    np.testing.assert_array_equal(rows[:-1], expected)
    assert remarks[-1] == f"read with {form}, unlike in training: visit"
    again = TableEncoder().fit(pd.DataFrame({"visit": cells}))
    np.testing.assert_array_equal(again.encode(pd.DataFrame({"visit": cells}))[0], expected)


def test_days_that_may_be_months_are_not_guessed():
    days = pd.date_range("2023-01-03", periods=60, freq="11D")
    learned = TableEncoder().fit(pd.DataFrame({"visit": days.strftime("%Y-%m-%d")}))
    _, remarks, _ = learned.encode(pd.DataFrame({"visit": ["03/04/2024", "05/06/2024"]}))
    assert "visit: 2 cells are not dates" in remarks[0]
