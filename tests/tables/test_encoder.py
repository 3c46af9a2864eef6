"""What every kind of column becomes, in frames of every library, and the same from a state that
went through JSON.
"""

import datetime
import decimal
import json

import numpy as np
import pytest

from nearkin import TableEncoder

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

N = 30
ROWS = np.arange(N)


def column(values):
    """Return a frame whose only other column varies."""
    return pd.DataFrame({"x": values, "other": np.arange(len(values)) % 2 + 0.5})


def kept(values, **options):
    """Return the encoder of a column, and the features that it makes of it, NaN kept."""
    frame = column(values)
    encoder = TableEncoder(missing="keep", **options).fit(frame)
    names = encoder.get_feature_names_out().tolist()
    X = encoder.transform(frame)
    return encoder, {name: X[:, at] for at, name in enumerate(names) if name != "other"}


def numbers(values, **options):
    encoder, features = kept(values, **options)
    assert list(features) == ["x"], encoder.remarks_
    return features["x"].round(12).tolist()


def categories(values, **options):
    return [name.removeprefix("x=") for name in kept(values, **options)[1]]


MIXED = {
    "price": [f"€{ROWS[i] * 37 % 1000 + 1000:,}.50" if i % 7 else "n/a" for i in ROWS],
    "share": [f"{i * 7 % 101 / 10}%" for i in ROWS],
    "zip": [f"{i % 4:05d}" for i in ROWS],
    "day": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024 {i % 24}:15" for i in ROWS],
    "colour": [("red", "blue ", " red")[i % 3] for i in ROWS],
    "mood": [("fine", None, "bad")[i % 3] for i in ROWS],
    "age": [(1.5, np.nan, 3.0, 8.0)[i % 4] for i in ROWS],
    "when": pd.date_range("2024-01-03 05:00", periods=N, freq="31h", tz="Europe/Berlin"),
    "took": pd.to_timedelta(ROWS**2 % 17, unit="h"),
    "row": ROWS,
    "kind": pd.Categorical(np.array(["a", "b", "c"])[ROWS % 3]),
    "yes": [(True, False, None)[i % 3] for i in ROWS],
}
FRAMES = {"pandas": pd.DataFrame, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(MIXED)


@pytest.fixture(scope="module")
def fitted(frame):
    return TableEncoder().fit(frame)


@pytest.mark.parametrize("library", FRAMES)
def test_every_library_gives_the_same(frame, fitted, library):
    other = FRAMES[library](frame)
    encoder = TableEncoder().fit(other)
    assert encoder.to_dict() == fitted.to_dict()
    assert encoder.remarks_ == fitted.remarks_
    np.testing.assert_array_equal(fitted.transform(other), fitted.transform(frame))


def test_what_mixed_columns_become(frame, fitted):
    assert fitted.dropped_ == {"row": "numbers of the rows"}
    assert [(column.name, column.kind) for column in fitted.columns_] == [
        *(
            ("age", "number"),
            ("took", "number"),
            ("yes", "number"),
            ("price", "number"),
            ("share", "number"),
        ),
        *(("zip", "category"), ("day", "date"), ("colour", "category"), ("mood", "category")),
        *(("when", "date"), ("kind", "category")),
    ]
    names = fitted.get_feature_names_out().tolist()
    assert names[-3:] == ["age (missing)", "yes (missing)", "price (missing)"]
    X = pd.DataFrame(fitted.transform(frame), columns=names)
    assert X.shape == (N, len(names))
    assert np.isfinite(X.to_numpy()).all()
    assert X["age"].tolist() == frame["age"].fillna(3.0).tolist()
    assert X["age (missing)"].tolist() == frame["age"].isna().tolist()
    assert X["took"].tolist() == (ROWS**2 % 17 / 24).tolist()
    assert X["mood=(missing)"].tolist() == frame["mood"].isna().tolist()
    assert set(np.hypot(X["day (year, sin)"], X["day (year, cos)"]).round(8)) == {1.0}
    np.testing.assert_allclose(
        X["when (days since 1970)"],
        frame["when"].dt.tz_convert("UTC").dt.tz_localize(None).astype("int64") / 86_400_000_000
        if str(frame["when"].dtype).startswith("datetime64[us")
        else frame["when"].map(pd.Timestamp.timestamp) / 86400,
    )
    for line in ("missing values, filled by the median: age (8 rows), yes (10 rows), price (5 rows)",
                 "missing values, a category of their own: mood (10 rows)",
                 "ignored, numbers of the rows: row",
                 "read as numbers: price ('€1,037.50'), share ('0.0%')",
                 "one-hot encoded: zip (4 values), colour (2 values), mood (2 values), kind (3 values)"):  # fmt: skip
        assert line in fitted.remarks_


def test_state_goes_through_json(frame, fitted):
    again = TableEncoder.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.to_dict() == fitted.to_dict()
    assert again.get_feature_names_out().tolist() == fitted.get_feature_names_out().tolist()
    np.testing.assert_array_equal(again.transform(frame), fitted.transform(frame))


def test_order_of_rows_and_columns_does_not_matter(frame, fitted):
    order = np.random.default_rng(0).permutation(N)
    rows = TableEncoder().fit(frame.iloc[order])
    assert rows.to_dict() == fitted.to_dict()
    X = fitted.transform(frame)
    np.testing.assert_array_equal(rows.transform(frame), X)
    np.testing.assert_array_equal(fitted.transform(frame.iloc[order]), X[order])
    shuffled = frame.iloc[:, np.random.default_rng(1).permutation(frame.shape[1])]
    np.testing.assert_array_equal(fitted.transform(shuffled.assign(more="x")), X)
    columns = TableEncoder().fit(shuffled)
    at = [
        columns.get_feature_names_out().tolist().index(name)
        for name in fitted.get_feature_names_out()
    ]
    np.testing.assert_array_equal(columns.transform(frame)[:, at], X)


def test_rows_one_by_one_give_what_they_give_together(frame, fitted):
    X = fitted.transform(frame)
    for row in range(0, N, 4):
        np.testing.assert_array_equal(fitted.transform(frame.iloc[[row]]), X[[row]])
    # as from a CSV file: everything is text
    text = frame.astype(object).where(frame.notna(), "").astype(str)
    text["took"] = frame["took"]
    np.testing.assert_array_equal(fitted.transform(text), X)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["12.3%", "4%", "100 %"], [0.123, 0.04, 1.0]),
        (["€12.30", "€1,234.50", "-€3"], [12.3, 1234.5, -3.0]),
        (["12.30 €", "1 234.50 €", "\u22123 €"], [12.3, 1234.5, -3.0]),
        (["$ 5", "($7.50)", "$1"], [5.0, -7.5, 1.0]),
        (["12 USD", "EUR 3", "5"], None),
        (["EUR 12", "EUR 3", "EUR 1'000"], [12.0, 3.0, 1000.0]),
        (["1,234", "1,234,567.5", "7"], [1234.0, 1234567.5, 7.0]),
        (["1\u202f234", "1\u00a0234\u00a0567", "7"], [1234.0, 1234567.0, 7.0]),
        (["12,5", "1,25", "7"], [12.5, 1.25, 7.0]),
        (["0,123", "0,456", "0,789"], [0.123, 0.456, 0.789]),
        (["1.234,5", "2.000.000,25", "7"], [1234.5, 2000000.25, 7.0]),
        (["(12.30)", "4", "-5"], [-12.3, 4.0, -5.0]),
        (["1e5", "2", "-3E-1"], [1e5, 2.0, -0.3]),
        (["true", "FALSE", "True"], [1.0, 0.0, 1.0]),
        (["12,34", "1,234,5", "7"], None),
        (["1,23,4", "2", "3"], None),
        (["01234", "5", "6"], None),
        (["05", "11", "12"], None),
        (["²", "3", "4"], None),
        (["1_000", "3", "4"], None),
        (["--5", "5", "6"], None),
        (["12%", "0.5", "7"], None),
        (["€5", "$5", "€6"], None),
        (["0x1", "0x2", "3"], None),
        (["$", "%", "-€"], None),
        (["(5", "6", "7"], None),
    ],
)
def test_styles_of_numbers(values, expected):
    """Or categories, where not all values agree."""
    if expected is None:
        assert categories(values * 7) == sorted(values)
    else:
        assert numbers(values * 7) == expected * 7
        encoder = TableEncoder().fit(column(values * 7))
        first, plain = column(values[:1]), column([0.25])
        assert encoder.transform(first)[0, 1] == pytest.approx(expected[0])
        assert encoder.transform(plain)[0, 1] == 0.25


def test_the_decimal_mark_of_a_table_comes_first():
    values = ["1.234", "2.500", "7"]
    assert numbers(values * 7) == [1.234, 2.5, 7.0] * 7
    assert numbers(values * 7, decimal=",") == [1234.0, 2500.0, 7.0] * 7
    assert numbers(["1.25", "2.5", "7"] * 7, decimal=",") == [1.25, 2.5, 7.0] * 7


def stamp(*parts):
    return datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp() / 86400


@pytest.mark.parametrize(
    ("first", "second", "days", "how"),
    [
        ("2024-03-25", "2024-04-01", stamp(2024, 3, 25), "year first"),
        (
            "2024-03-25T10:30:15.5Z",
            "2024-04-01 00:00",
            stamp(2024, 3, 25, 10, 30, 15, 500_000),
            "year first",
        ),
        ("2024-03-25 10:30+02:00", "2024-04-01", stamp(2024, 3, 25, 8, 30), "year first"),
        ("2024/3/25", "2024/4/1", stamp(2024, 3, 25), "year first"),
        ("2024-03", "2024-04", stamp(2024, 3, 1), "year first"),
        ("25.03.2024", "01.04.2024", stamp(2024, 3, 25), "day first"),
        ("25.03.24 7:05", "01.04.24 8:00", stamp(2024, 3, 25, 7, 5), "day first"),
        ("25/03/2024", "01/04/2024", stamp(2024, 3, 25), "day first"),
        ("03/25/2024 1:30 PM", "04/01/2024 12:00 AM", stamp(2024, 3, 25, 13, 30), "month first"),
        (
            "03/04/2024",
            "04/01/2024",
            stamp(2024, 3, 4),
            "month first, though the other order would fit as well",
        ),
        (
            "03.04.2024",
            "04.01.2024",
            stamp(2024, 4, 3),
            "day first, though the other order would fit as well",
        ),
        ("25-03-2024", "01-04-2024", stamp(2024, 3, 25), "day first"),
        ("12 Mar 2024", "1 April 2024", stamp(2024, 3, 12), ""),
        ("12-Mar-24", "01-Apr-69", stamp(2024, 3, 12), ""),
        ("Mar 12, 2024", "April 1, 2024", stamp(2024, 3, 12), ""),
    ],
)
def test_layouts_of_dates(first, second, days, how):
    encoder, features = kept([first, second, first] * 7)
    assert features["x (days since 1970)"][0] == pytest.approx(days, abs=1e-9)
    assert encoder.remarks_ == [f"read as dates: x ('{first}'{f', {how}' * bool(how)})"]
    assert encoder.transform(column(["2024-03-12"]))[0, 1] == stamp(2024, 3, 12)  # never ambiguous


def test_both_layouts_of_a_column_are_named():
    encoder, features = kept(["2024-03-12", "25.03.2024", "2024-04-01T10:30"] * 7)
    said = "x ('25.03.2024', day first; '2024-03-12', year first)"
    assert encoder.remarks_ == [f"read as dates: {said}"]
    np.testing.assert_allclose(
        features["x (days since 1970)"][:3],
        [stamp(2024, 3, 12), stamp(2024, 3, 25), stamp(2024, 4, 1, 10, 30)],
    )


def test_where_numbers_have_a_decimal_comma_the_day_comes_before_a_slash():
    encoder = TableEncoder(decimal=",").fit(column(["03/04/2024", "04/01/2024"] * 11))
    assert "day first, though the other order would fit as well" in encoder.remarks_[0]


@pytest.mark.parametrize(
    "values",
    [
        *(["2024-02-30", "2024-02-01"], ["25.03.2024", "2024-13-01"], ["12.13.2024", "13.12.2024"]),
        *(["2019-20", "2020-21"], ["10:30", "25:60"], ["24.12.", "25.12."]),
    ],
)
def test_what_is_no_date_is_a_category(values):
    assert categories(values * 7) == sorted(values)


def test_circles_where_they_tell_dates_apart():
    def parts(dates):
        return [name.partition("(")[2] for name in kept(dates)[1]]

    days = pd.date_range("2024-01-01", periods=N).strftime("%Y-%m-%d")
    week = ["week, sin)", "week, cos)"]
    assert parts(days[:4].repeat(5)) == ["days since 1970)"]
    assert parts(days) == ["days since 1970)", *week]
    assert parts(days + " 12:00") == ["days since 1970)", *week]
    assert parts(days + [f" {i % 3}:00" for i in ROWS]) == [
        "days since 1970)",
        *week,
        "day, sin)",
        "day, cos)",
    ]
    assert parts(pd.date_range("2024-01-01", periods=N, freq="MS").strftime("%Y-%m")) == [
        *("days since 1970)", "year, sin)", "year, cos)")
    ]
    _, features = kept(pd.date_range("2024-01-01", periods=N))
    assert len(set(features["x (week, sin)"])) == 7
    encoder, features = kept(["6:00", "18:00", "", "0:00:00"] * 5)
    np.testing.assert_allclose(features["x (day, sin)"][:4], [1, -1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(features["x (day, cos)"][:4], [0, 0, 0, 1], atol=1e-12)
    assert encoder.remarks_ == ["read as times of day: x ('6:00')"]


def test_missing_dates_are_nan_in_days_and_at_the_centre_of_circles():
    days = ["2024-03-25", "", "2024-06-01", "NaT"] * 5
    _, features = kept([None if day == "NaT" else day for day in days])
    assert np.isnan(features["x (days since 1970)"]).tolist() == [False, True] * 10
    assert features["x (year, sin)"][1] == features["x (year, cos)"][1] == 0


def test_marks_of_missing_cells():
    for mark in ("", " ", "NA", "n/a", "NaN", "None", "?", "-", ".", "#DIV/0!", "<NA>", "null"):
        assert np.isnan(numbers(["1.5", mark, "2"] * 7)).tolist() == [False, True, False] * 7
    assert categories(["NA", "None", "DE"] * 7) == ["DE", "NA", "None"]
    assert categories(["NA", "", "DE"] * 7) == ["DE", "NA", "(missing)"]
    assert categories(["NA", "FR", "DE"] * 7, missing_values=["NA"]) == ["DE", "FR", "(missing)"]
    assert categories(["1", "?", "3"] * 7, missing_values=["NA"]) == ["1", "3", "?"]
    assert np.isnan(numbers([-999.0, 1.0, 2.0] * 7, missing_values=["-999"])).sum() == 7
    assert np.isnan(numbers(["-999", "1", "2"] * 7, missing_values=["-999"])).sum() == 7


def test_categories_are_stripped_and_whole_numbers_have_one_form():
    assert categories(["yes ", "yes", "no", "No"] * 5) == ["No", "no", "yes"]
    assert categories(pd.Categorical([1, 2, 3] * 7)) == ["1", "2", "3"]
    assert categories(pd.cut(np.arange(21) % 3, [-1, 0, 2])) == ["(-1, 0]", "(0, 2]"]
    encoder = TableEncoder().fit(column(pd.Categorical([1, 2, 3] * 7)))
    for new in (["2.0"], ["2"], [2], [2.0]):
        assert encoder.transform(column(new))[0].tolist() == [0.5, 0, 1, 0]
    assert encoder.transform(column([9]))[0].tolist() == [0.5, 0, 0, 0]


def test_what_is_left_out():
    frame = pd.DataFrame(
        {
            "constant": [1] * N,
            "word": ["a "] * 7 + ["a"] * (N - 7),
            "nothing": [None] * N,
            "nan": [np.nan] * N,
            "row": ROWS * 2,
            "patient_id": ROWS**2,
            "name": [f"name {i}" for i in ROWS],
            "remark": [f"remark {i % 29}" for i in ROWS],
            "long": ["x" * 501, "y", "z"] * 10,
            "kept": ROWS % 3,
        }
    )
    encoder = TableEncoder().fit(frame)
    assert encoder.dropped_ == {
        **{"constant": "constant", "word": "constant", "nothing": "empty", "nan": "empty"},
        "row": "numbers of the rows",
        "patient_id": "named as identifiers, and nearly all values differ",
        "name": "text that differs in every row",
        "remark": "text that differs in nearly every row",
        "long": "text of more than 500 characters",
    }
    assert encoder.get_feature_names_out().tolist() == ["kept"]
    everything = TableEncoder(drop_identifiers=False).fit(frame)
    assert [column.name for column in everything.columns_] == [
        "row",
        "patient_id",
        "kept",
        "name",
        "remark",
    ]


def test_a_constant_with_gaps_is_kept():
    assert numbers([1.0, np.nan] * 9)[0] == 1
    assert categories(["a", None] * 9) == ["a", "(missing)"]


def test_columns_of_objects():
    assert numbers([1, 2.5, decimal.Decimal("0.25"), True] * 5)[:4] == [1, 2.5, 0.25, 1]
    assert numbers([10**40, 2**63, -1] * 7)[:3] == [1e40, 2.0**63, -1]
    assert categories([1, "two", 3.0, 3] * 5) == ["1", "3", "two"]
    assert (
        kept([datetime.date(2024, 3, 25), datetime.date(2024, 3, 26), None] * 7)[1][
            "x (days since 1970)"
        ][0]
        == 19807
    )
    with pytest.raises(
        TypeError, match=r"column 'x' holds \[1\] \(list\): an argument must be a string"
    ):
        TableEncoder(strict=True).fit(column([[1], [2]]))


def test_arrays_have_columns_without_names():
    X = np.random.default_rng(0).normal(size=(10, 3))
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    np.testing.assert_array_equal(encoder.transform(X), X)
    assert not hasattr(encoder, "feature_names_in_")
    before = X.copy()
    TableEncoder(missing_values=[str(X[0, 0])]).fit_transform(X)
    np.testing.assert_array_equal(X, before)
    words = np.array([["a", 1], ["b", 2], ["a", 3]], dtype=object)
    assert TableEncoder().fit(words).get_feature_names_out().tolist() == ["x1", "x0=a", "x0=b"]
    assert TableEncoder().fit(words.tolist()).get_feature_names_out().tolist() == [
        "x1",
        "x0=a",
        "x0=b",
    ]


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pd.DataFrame({"a": [1]}), "no feature columns are left: a .*1 sample"),
        (pd.DataFrame({"a": [1, 1]}), r"no feature columns are left: a \(constant\): add columns whose values vary"),
        (pd.DataFrame({"a": ["x", "y", "x"], "a=x": [1, 2, 4]}), "encoded features have 'a=x' more than once"),
        (pd.DataFrame({"a": [1.0, np.inf]}), r"contains infinity, in column 'a' in row 1 \(counted from 0\)"),
        (pd.DataFrame({"a": ["1", "inf", "1"]}), r"'a' holds 'inf' in row 1 \(counted from 0\): change or drop it"),
        (pd.DataFrame({"a": [1j, 2]}), "Complex data not supported"),
    ],
)  # fmt: skip
def test_refusals_of_fit(frame, says):
    with pytest.raises(ValueError, match=says):
        TableEncoder(strict=True).fit(frame)


@pytest.mark.parametrize(
    ("learned", "new", "says"),
    [
        (
            [1, 2],
            ["3", "4x"],
            r"'x' holds '4x' in row 1 \(counted from 0\), but numbers were expected "
            r"there: give",
        ),
        (["1%", "2%"], ["€5", "6"], "'x' holds '€5' in row 0"),
        (
            ["2024-01-01", "2024-01-03"],
            ["", "today"],
            r"'x' holds 'today' in row 1 .* dates \(year first\) were expected there",
        ),
        (
            ["2024-01-01", "2024-01-03"],
            [7.0, 8.0],
            "'x' holds the number 7 in row 0 .* dates .* were expected",
        ),
    ],
)
def test_refusals_of_new_rows(learned, new, says):
    encoder = TableEncoder(strict=True).fit(column(learned))
    with pytest.raises(ValueError, match=says):
        encoder.transform(column(new))
    with pytest.raises(ValueError, match="X lacks 'x', which the training rows had"):
        encoder.transform(column(new)[["other"]])


def test_a_single_column_is_no_table():
    with pytest.raises(ValueError, match=r"Expected .*(2D|2-dimensional)"):
        TableEncoder().fit(pd.Series([1, 2]))


@pytest.mark.parametrize(
    "options",
    [{"missing": "drop"}, {"decimal": ";"}, {"max_categories": 0}, {"missing_values": "NA"}],
    ids=str,
)
def test_parameters_are_checked(options):
    with pytest.raises((ValueError, TypeError), match=next(iter(options))):
        TableEncoder(**options).fit(column([1, 2]))


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        (
            ["€12.30", "€7.10", "€12.5O"],
            "read as text because of cells that are not numbers (correct them, or list all marks in "
            "--missing or missing_values): '€12.5O' in x (7 rows)",
        ),
        (
            ["01.02.2023", "28.02.2023", "31.02.2023"],
            "read as text because of cells that are not dates (correct them",
        ),
        (["$5", "$7", "€6"], "read as text because units differ: '$7' and '€6' in x"),
        (["yes", "no", "Yes"], "values that differ in case alone are kept apart: x"),
    ],
)
def test_what_keeps_a_column_text_is_said(values, remark):
    encoder = TableEncoder(strict=True).fit(column(values * 7))
    assert any(line.startswith(remark) for line in encoder.remarks_)


def test_the_style_that_was_learned_is_named():
    encoder = TableEncoder(strict=True).fit(column(["9,33 €", "19,40 €"] * 11))
    with pytest.raises(
        ValueError, match="but numbers with a decimal comma and '€' were expected there"
    ):
        encoder.transform(column(["€9.33"]))


def test_few_rows_with_many_gaps_get_few_indicators():
    """At most one for ten rows, of columns with the same gaps one, and of rare gaps none."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(82, 243))
    gaps = rng.random((82, 243)) < 0.3
    gaps[:, 1] = gaps[:, 0]
    encoder = TableEncoder().fit(np.where(gaps, np.nan, X))
    assert len(encoder.indicated_) == 8
    assert not {0, 1} <= set(encoder.indicated_)
    Z = encoder.transform(np.where(gaps, np.nan, X))
    assert Z.shape == (82, 243 + 8)
    np.testing.assert_array_equal(Z[:, 243:], gaps[:, encoder.indicated_])
    assert np.isfinite(Z).all()
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform(np.where(gaps, np.nan, X)), Z)


def test_a_gap_in_few_rows_is_filled_and_not_indicated():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[:4, 0] = X[:5, 1] = np.nan
    encoder = TableEncoder().fit(X)
    np.testing.assert_array_equal(encoder.indicated_, [1])
    assert encoder.get_feature_names_out()[-1] == "x1 (missing)"


class TestWeights:
    COPIES = 1 + ROWS**2 % 4

    def rows(self):
        """Return rows with gaps, and with categories, of which some are missing."""
        city = np.array([f"city {i * i % 12}" if i % 5 else None for i in ROWS], dtype=object)
        return pd.DataFrame(MIXED | {"city": city, "even": [f"v{i // 5 + 1}" for i in ROWS]})

    def encoder(self):
        return TableEncoder()

    @pytest.mark.parametrize("scale", [1, 0.1])
    def test_are_repeated_rows(self, scale):
        """In medians: of a unit, of identifiers and of indicators rows decide."""
        frame = self.rows().drop(columns=["row", "zip"])
        one = self.encoder().fit(frame, sample_weight=scale * self.COPIES)
        many = self.encoder().fit(frame.iloc[np.repeat(ROWS, self.COPIES)])
        without = self.encoder().fit(frame)
        assert one.get_feature_names_out().tolist() == many.get_feature_names_out().tolist()
        np.testing.assert_allclose(one.transform(frame), many.transform(frame), rtol=1e-10)
        assert not np.allclose(one.medians_, without.medians_)

    def test_of_0_are_rows_that_are_absent(self):
        frame, kept = self.rows(), ROWS % 3 > 0
        frame.loc[~kept, "age"] = np.inf
        weights = np.where(kept, self.COPIES, 0)
        for library, of in FRAMES.items():
            if library == "pyarrow":
                frame = frame.drop(columns=["took"])  # its type is lost there
            one = self.encoder().fit(of(frame), sample_weight=weights)
            many = self.encoder().fit(frame[kept], sample_weight=weights[kept])
            assert one.to_dict() == many.to_dict()

    def test_equal_ones_are_none(self):
        frame = self.rows()
        equal = self.encoder().fit(frame, sample_weight=np.full(N, 0.3))
        np.testing.assert_allclose(
            equal.transform(frame), self.encoder().fit(frame).transform(frame), rtol=1e-10
        )

    @pytest.mark.parametrize("weights", [np.full(N, -1.0), np.ones(N - 1), np.zeros(N)])
    def test_bad_ones(self, weights):
        with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
            self.encoder().fit(self.rows(), sample_weight=weights)


@pytest.mark.parametrize("kind", ["int64", "Int64", "str"])
@pytest.mark.parametrize("start", [0, 2**53, 2**60, 2**62])
@pytest.mark.parametrize("step", [1, 300, 10**6])
def test_identifiers_of_any_size_are_recognized(kind, start, step):
    """Beyond 2^53 many are equal as floats; those of groups are not."""
    rng = np.random.default_rng(0)
    ids = start + np.cumsum(rng.integers(1, step + 1, 60))
    frame = pd.DataFrame({"x": rng.normal(size=60), "visit_id": pd.array(ids).astype(kind)})
    assert [*TableEncoder().fit(frame).dropped_] == ["visit_id"]
    groups = frame.assign(visit_id=rng.choice(2**62, 6)[np.arange(60) % 6])
    assert [*TableEncoder().fit(groups).dropped_] == []


def test_a_long_value_that_is_new_is_shortened_once():
    frame = pd.DataFrame({"kind": ["a", "b"] * 10, "x": range(20)})
    encoder = TableEncoder().fit(frame)
    note = "Note: blood samples of 2007 are incomplete, as said in the second part of the report"
    new = pd.DataFrame({"kind": [note, "Total"], "x": [1, 2]})
    _, _, (said, _) = encoder.encode(new)
    assert said.count("...") == 1
    assert said.endswith("report' and 1 more in kind (2 rows)")


def test_a_value_in_another_case_is_named_beside_the_learned_one():
    encoder = TableEncoder().fit(pd.DataFrame({"sex": ["MALE", "FEMALE"] * 10, "x": range(20)}))
    _, _, remarks = encoder.encode(pd.DataFrame({"sex": ["male", "other"], "x": [1, 2]}))
    assert remarks[0].endswith(": 'male' (learned as 'MALE'), 'other' in sex (2 rows)")
