"""Numbers in more than digits: units, limits, marks, durations, ranges; and numbers that may be
something else.
"""

import json

import numpy as np
import pytest

from nearkin import TableEncoder
from nearkin.tables.columns import MARKS_OF_MISSING

pd = pytest.importorskip("pandas")

N = 40
RNG = np.random.default_rng(0)
SIZES = RNG.uniform(40, 100, N).round(1)


def frame_of(cells):
    return pd.DataFrame({"x": list(cells), "other": np.arange(len(cells)) % 2 + 0.5})


def fitted(cells, **options):
    return TableEncoder("keep", **options).fit(frame_of(cells))


def column_of(encoder):
    return next((column for column in encoder.columns_ if column.name == "x"), None)


def read(encoder, cells):
    """Return what an encoder makes of cells, the same after it was saved and loaded."""
    loaded = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    at = list(encoder.get_feature_names_out()).index("x")
    found = encoder.transform(frame_of(cells))[:, at]
    np.testing.assert_array_equal(loaded.transform(frame_of(cells))[:, at], found)
    return found


def read_once(encoder, cells):
    return encoder.transform(frame_of(cells))[:, list(encoder.get_feature_names_out()).index("x")]


def remark(encoder):
    return " | ".join(line for line in encoder.remarks_ if "x" in line)


# How cells are written, and the number that each of them is.
STYLES = {
    "unit": ("{} kg", 1),
    "unit without a space": ("{}kg", 1),
    "thousands": (lambda size: f"{100 * size:,.0f} sqft", lambda size: round(100 * size)),
    "degrees": ("{} °C", 1),
    "compound unit": ("{} mg/dL", 1),
    "unit with a number": ("{} L/100 km", 1),
    "power of ten": ("{} x10^9/L", 1),
    "square": ("{} m²", 1),
    "negative": ("-{} °C", -1),
    "singular and plural": (lambda size: f"{size // 20:.0f} year{'s' * (size >= 40)}", lambda size: size // 20),
    "out of ten": (lambda size: f"{size // 10:.0f}/10", lambda size: size // 10),
    "SI prefixes": (lambda size: f"{size} g" if size < 80 else f"{size / 1000:.4f} kg", 1),
    "millions": (lambda size: f"€{size}K" if size < 70 else f"€{size / 1000:.4f}M", 1000),
    "two decimal marks": (lambda size: str(size) if size < 70 else str(size).replace(".", ","), 1),
    "limit": (lambda size: f"{size}" if size > 50 else "<50.1", lambda size: size if size > 50 else 50.1),
    "limit and unit": (lambda size: f"{size} ng" if size < 90 else ">90.5 ng", lambda size: min(size, 90.5)),
    "mark": (lambda size: f"{size}*" if size < 60 else f"{size}**" if size < 70 else f"{size}", 1),
    "open end": (lambda size: "3+" if size > 80 else f"{size // 30:.0f}", lambda size: 3 if size > 80 else size // 30),
    "hours": (lambda size: f"{size // 20:.0f}h {size:.0f}min", lambda size: (size // 20 * 60 + round(size)) / 1440),
    "hours or minutes": (
        lambda size: f"{size:.0f} min" if size < 60 else f"1h {size - 60:.0f}min",
        lambda size: round(size) / 1440,
    ),
    "long clock": (lambda size: f"{size:.0f}:05:09", lambda size: (round(size) * 3600 + 309) / 86400),
    "hours and minutes": (lambda size: f"{size:.0f}:30", lambda size: (round(size) + 0.5) / 24),
    "days": (lambda size: f"{size // 10:.0f} days 03:00:00", lambda size: size // 10 + 0.125),
    "ISO 8601": (lambda size: f"PT{size // 10:.0f}H30M", lambda size: (size // 10 + 0.5) / 24),
    "ranges": (lambda size: f"{size // 10:.0f}0-{size // 10:.0f}9", lambda size: size // 10 * 10 + 4.5),
    "intervals": (lambda size: f"[{size // 10:.0f}0, {size // 10 + 1:.0f}0)", lambda size: size // 10 * 10 + 5),
    "ranges with units": (
        lambda size: f"{size // 10:.0f}0 to {size // 10:.0f}9 years",
        lambda size: size // 10 * 10 + 4.5,
    ),
}  # fmt: skip


def written(case):
    style, number = STYLES[case]
    cells = [style(size) if callable(style) else style.format(size) for size in SIZES.tolist()]
    return cells, [number(size) if callable(number) else number * size for size in SIZES.tolist()]


@pytest.mark.parametrize("case", STYLES)
def test_what_all_cells_share_is_read(case):
    cells, expected = written(case)
    encoder = fitted(cells)
    np.testing.assert_allclose(read(encoder, cells), expected, rtol=1e-9)
    assert "read as" in remark(encoder)


@pytest.mark.parametrize("case", STYLES)
def test_new_rows_are_read_as_the_table_was(case):
    cells, expected = written(case)
    encoder = fitted(cells)
    for at in (0, N - 1):  # alone it might be something else
        np.testing.assert_allclose(read(encoder, [cells[at]]), expected[at], rtol=1e-9)
    assert np.isnan(read(encoder, ["", None, "n/a", "k.A."])).all()
    encoded, (fault,), _ = encoder.encode(frame_of([cells[0], "far"]))
    assert np.isnan(encoded[:, list(encoder.get_feature_names_out()).index("x")]).tolist() == [
        False,
        True,
    ]
    assert fault.startswith("x: 1 cell is not a ")
    assert "'far' in row 1 " in fault
    with pytest.raises(
        ValueError, match=r"'x' holds 'far' in row 1 .*, but .* were expected there"
    ):
        fitted(cells, strict=True).transform(frame_of([cells[0], "far"]))


@pytest.mark.parametrize("case", STYLES)
def test_a_missing_cell_and_the_order_of_rows_change_nothing(case):
    cells, expected = written(case)
    encoder = fitted([*cells[::-1], None, "n.v."])
    np.testing.assert_allclose(read(encoder, cells), expected, rtol=1e-9)


def test_mixed_durations_and_open_ranges():
    minutes = fitted(["59:30", "1:02:10", "45:00"] * 9)
    np.testing.assert_allclose(read(minutes, ["59:30", "1:02:10"]) * 1440, [59.5, 62 + 1 / 6])
    assert "two numbers are minutes and seconds" in remark(minutes)
    assert "hours and minutes" in remark(fitted(["59:30", "12:10", "45:00"] * 9))
    words = fitted(["2 hours", "45 min", "1 h 30 min", "3h12"] * 9)
    np.testing.assert_allclose(
        read(words, ["2 hours", "45 min", "1 h 30 min", "3h12"]) * 24, [2, 0.75, 1.5, 3.2]
    )
    ages = fitted(["<20", "20-39", "60+"] * 9)
    assert column_of(ages).kind == "category"  # one range alone may be a code
    ages = fitted(["<20", "20-39", "40-59", "60+"] * 9)
    assert read(ages, ["<20", "20-39", "40-59", "60+", "33"]).tolist() == [20, 29.5, 49.5, 60, 33]


def test_units_are_converted_where_they_differ_by_a_factor():
    encoder = fitted([f"{size} kg" for size in SIZES])
    np.testing.assert_allclose(
        read(encoder, ["500 g", "1.5 t", "72.5", "80 kg"]), [0.5, 1500, 72.5, 80]
    )
    for other in ("70 lb", "70 °C", "€70"):
        with pytest.warns(UserWarning, match="x: 1 cell is not a number in 'kg', taken as missing"):
            assert np.isnan(read_once(encoder, [other])).all()


def test_commas_beside_a_unit_are_named_where_they_are_decimal():
    thousands, _ = written("thousands")
    assert "comma" not in remark(fitted(thousands))
    assert "sqft', decimal comma)" in remark(fitted([*thousands, "88,6000 sqft"]))
    assert "kg', decimal comma)" in remark(
        fitted([f"{size} kg".replace(".", ",") for size in SIZES])
    )


def test_plain_numbers_are_no_durations():
    encoder = fitted([f"{size:.0f}:05:09" for size in SIZES])
    with pytest.warns(
        UserWarning, match=r"x: 1 cell is not a duration, .*: the number 3\.5 in row 0"
    ):
        assert np.isnan(read_once(encoder, [3.5])).all()
    assert np.isnan(read(encoder, [np.nan])).all()
    ranges = fitted(written("ranges")[0])
    assert read(ranges, [42.0]) == [42]


WORDS = {
    "versions": [f"1.{size // 10:.0f}.{size % 7:.0f}" for size in SIZES],
    "telephone numbers": [f"+49 30 {size * 1000:.0f}" for size in SIZES],
    "telephone extensions": [f"555-{size * 10:.0f}" for size in SIZES],
    "postal codes": [f"0{size * 10:.0f}" for size in SIZES],
    "addresses": [f"{i} {('Main St', 'Oak Ave', 'Elm Rd', 'Hill', 'Lake', 'Park')[i % 6]}" for i in range(N)],
    "codes with a letter": [f"{size * 10:.0f}K" for size in SIZES],
    "codes of two numbers": [f"{size:.0f}-{size * 17 % 100:.0f}" for size in SIZES],
    "hours of the day": [f"{size % 12 + 1:.0f} {'AM' if size < 70 else 'PM'}" for size in SIZES],
    "ordinals": [("1st class", "2nd class", "3rd class")[i % 3] for i in range(N)],
    "bounds": ["<50" if size < 70 else ">=50" for size in SIZES],
    "blood types": [("0+", "A+", "B-", "AB+")[i % 4] for i in range(N)],
    "months": [f"{size % 12 + 1:.0f}/20{size % 30 + 10:.0f}" for size in SIZES],
    "two numbers": [f"{size + 40:.0f}/{size:.0f}" for size in SIZES],
    "days without a year": [f"{size % 28 + 1:.0f}/10" for size in SIZES],
    "overlapping ranges": [f"{size:.0f}-{size + 20:.0f}" for size in SIZES],
    "decimals that may be either": ["1,234", "1.5", "1,5", "2.345"] * 10,
}  # fmt: skip


@pytest.mark.parametrize("case", WORDS)
def test_what_may_be_something_else_is_no_number(case):
    kept = column_of(fitted(WORDS[case], drop_identifiers=False))
    assert kept is None or kept.kind in ("category", "text")


@pytest.mark.parametrize(
    ("cells", "style"),
    [
        ([f"{size:.0f}:{size % 60:02.0f}" for size in SIZES / 5], "times of day"),
        ([f"{int(size) % 12 + 1}/10/2024" for size in SIZES], "dates"),
        ([f"2024-{int(size) % 12 + 1:02d}" for size in SIZES], "dates"),
        ([f"10-{int(size) % 12 + 1}-2024" for size in SIZES], "dates"),
    ],
)
def test_what_dates_can_read_stays_dates(cells, style):
    assert f"read as {style}" in remark(fitted(cells))


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("two numbers", "x looks like two numbers in a cell, such as "),
        ("months", "(write them as 2024-02)"),
        ("overlapping ranges", "(give each end a column)"),
        (
            "decimals that may be either",
            "decimal points and commas in one column, '1,234' may be either",
        ),
    ],
)
def test_what_it_looks_like_is_said(case, said):
    assert said in remark(fitted(WORDS[case]))


def test_a_single_odd_cell_is_named_and_the_column_no_identifier():
    cells = [*(f"{size} kg" for size in SIZES), "heavy"]
    strict = fitted(cells, strict=True)
    assert strict.dropped_["x"] == "text that differs, and looks like numbers"
    assert "but for 'heavy' (mend it, or name it and all other marks by --missing)" in remark(
        strict
    )
    encoder = fitted(cells)
    assert column_of(encoder).unit == "kg"
    assert "x: 1 cell is not a number in 'kg', missing there: 'heavy' (1)" in encoder.remarks_
    assert column_of(fitted(cells, missing_values=["heavy"], strict=True)).unit == "kg"


@pytest.mark.parametrize("marks", [None, ["NA", "n.d."]])
def test_limits_in_most_known_cells_are_the_reason_and_no_mark_is(marks):
    cells = ["<0.3 mg/l"] * 11 + [f"{size} mg/l" for size in SIZES[:10]] + ["NA", "n.d."] * 10
    encoder = fitted(cells, missing_values=marks)
    reason = "read as text because more than half of the filled cells are limits (write numbers alone): x "
    assert f"{reason}('<0.3 mg/l' as '0.3 mg/l')" in encoder.remarks_
    assert "are not numbers" not in remark(encoder)
    mended = [cell.removeprefix("<") for cell in cells]
    assert column_of(fitted(mended, missing_values=marks)).unit == "mg/l"
    assert (
        column_of(fitted([*cells, "7 mg/l"], missing_values=marks)).unit == "mg/l"
    )  # half of them


def test_classes_of_bounds_are_no_numbers_to_be_mended():
    assert "limits" not in remark(fitted(WORDS["bounds"]))


def test_words_among_numbers_are_counted_and_named_by_their_form():
    years = [str(1950 + i % 40) for i in range(60)]
    words = [f"Bj. {1950 + i}" for i in range(20)] + ["ca. 1991"] * 9 + ["unknown"] * 4 + ["?"]
    strict = fitted(years + words, strict=True)
    assert "are not numbers (correct them, or list all marks in --missing" in remark(strict)
    assert "): 'Bj. 1950', 'unknown' in x (24 rows)" in remark(strict)
    assert (
        "x: 24 cells are not numbers, missing there: 'unknown' (4), 'Bj. 1950' (1), 'Bj. 1951' (1) and 18 more"
        in fitted(years + words).remarks_
    )
    mended = [cell.removeprefix("Bj. ") for cell in years + words]
    assert column_of(fitted(mended, missing_values=["unknown", "?"])).kind == "number"


ITEMS = ["balcony", "cellar", "garage", "garden", "lift", "pool"]
LISTS = [[item for at, item in enumerate(ITEMS) if number >> at & 1] for number in range(1, 64)]


@pytest.mark.parametrize("separator", [", ", ",", ";", " | "])
def test_items_of_lists_are_features(separator):
    cells = [separator.join(items) for items in LISTS]
    encoder = fitted(cells * 2)
    assert "read as lists: x (6 items)" in remark(encoder)
    names = encoder.get_feature_names_out().tolist()
    assert names[-6:] == [f"x has {item}" for item in ITEMS]
    expected = [[float(item in own) for item in ITEMS] for own in LISTS]
    np.testing.assert_array_equal(encoder.transform(frame_of(cells))[:, -6:], expected)
    # in any order; others are unknown
    given = [f"pool{separator}sauna{separator}lift", "sauna", None]
    out = encoder.transform(frame_of(given))[:, -6:]
    np.testing.assert_array_equal(out, [[0, 0, 0, 0, 1, 1], [0] * 6, [0] * 6])
    assert "lists" in remark(fitted(cells))  # also where it differs in every row


def test_items_of_few_rows_are_no_features():
    cells = [separator.join(items) for separator in (",",) for items in LISTS] * 2
    names = fitted([*cells, *["pool,sauna"] * 4, *["lift,bar"] * 5]).get_feature_names_out()
    assert names[-7:].tolist() == [f"x has {item}" for item in ["balcony", "bar", *ITEMS[1:]]]


@pytest.mark.parametrize(
    "cells",
    [
        [f"{name}, {ITEMS[i]}" for name in "ABCDEFGH" for i in range(6)],  # always two
        [f"Street {i}, {'flat 2, ' * (i % 2)}Town" for i in range(60)],  # others in each row
        [*(f"{i // 10},{i % 10}" for i in range(100)), "7", "so"],  # numbers
    ],
)
def test_what_has_commas_may_be_no_list(cells):
    assert "lists" not in remark(fitted(cells * 2))


def test_marks_that_are_kept_as_words_are_named_with_what_makes_them_missing():
    cells = ["SEPA", "invoice"] * 15 + ["NA"] * 3 + ["?", "?", "NULL", "k.A.", ""]
    said = "marks of missing cells, kept as words (for gaps, list all marks in --missing"
    encoder = fitted(cells)
    assert said in remark(encoder)
    assert "x ('NA', '?', 'NULL' and 1 more)" in remark(encoder)
    marks = ["NA", "?", "NULL", "k.A."]
    encoder = fitted(cells, missing_values=marks)
    assert said not in remark(encoder)
    assert column_of(encoder).values == ("SEPA", "invoice")
    frame = frame_of(cells).astype({"x": "category"})  # its values are meant
    assert not any(said in line for line in TableEncoder("keep").fit(frame).remarks_)


def test_a_column_of_words_is_looked_at_no_further():
    assert remark(fitted([f"tree {i % 3}" for i in range(N)])) == "one-hot encoded: x (3 values)"


def test_states_from_before_there_were_forms_are_read():
    encoder = fitted([f"€{size}" for size in SIZES])
    state = encoder.to_dict()
    del state["columns"][-1]["form"]  # as in models of format 9
    assert TableEncoder.from_dict(state).columns_[-1] == column_of(encoder)


@pytest.mark.parametrize(
    "mark", ["k.A.", "K. A.", "n.v.", "n.b.", "s/d", "n.d.", "nd", "s.o.", "N/D"]
)
def test_marks_of_missing_cells_in_other_languages(mark):
    assert mark.lower() in MARKS_OF_MISSING
    cells = [mark if i % 4 == 0 else str(size) for i, size in enumerate(SIZES)]
    assert np.isnan(read(fitted(cells), cells)).sum() == N / 4
    assert column_of(fitted([mark, "b"] * 9)).kind == "category"  # among words it is one


@pytest.mark.parametrize("code", [-999, -9999, 999, 99999, -32768])
def test_marks_among_numbers_are_named_and_kept(code):
    cells = np.where(np.arange(N) % 5 == 0, code, SIZES)
    for column in (cells, [f"{cell} kg" for cell in cells], np.append(cells, np.nan)):
        encoder = fitted(column)
        assert (
            "may mark missing cells (if so, list all marks in --missing or missing_values): x "
            f"({code} in 8 rows)" in (remark(encoder))
        )
    np.testing.assert_array_equal(read(fitted(cells), cells), cells)
    assert "may mark" not in remark(fitted(cells, missing_values=[str(code)]))


@pytest.mark.parametrize(
    "numbers", [SIZES, np.arange(80, 100), np.arange(990, 1010), [0, 99] * 20, [1, 2, 3, 4, 9] * 8]
)
def test_numbers_among_others_are_no_marks(numbers):
    assert "may mark" not in remark(fitted(numbers, drop_identifiers=False))


def test_a_date_far_beyond_all_others_is_named():
    cells = [f"2024-03-{i % 28 + 1:02d}" if i % 4 else "9999-12-31" for i in range(N)]
    assert "x (9999-12-31 in 10 rows)" in remark(fitted(cells))
    assert "may mark" not in remark(fitted([f"2024-03-{i % 28 + 1:02d}" for i in range(N)]))


def test_day_numbers_of_a_spreadsheet_are_named():
    frame = pd.DataFrame(
        {"visit_date": 45000 + np.arange(N) ** 2 % 97, "price": 45000 + np.arange(N) ** 2 % 89}
    )
    said = [line for line in TableEncoder().fit(frame).remarks_ if "spreadsheet" in line]
    assert said == [
        "may be day numbers of a spreadsheet (write them as dates): visit_date (45000 would be "
        "2023-03-15)"
    ]


def test_a_number_that_may_be_either_is_refused_where_both_marks_were_learned():
    encoder = fitted(written("two decimal marks")[0], strict=True)
    with pytest.raises(
        ValueError, match=r"holds '1,234' in row 0 .*, but numbers whose decimal mark is clear"
    ):
        encoder.transform(frame_of(["1,234"]))


def test_one_long_time_among_many_says_what_the_short_ones_are():
    cells = [f"{minutes}:{seconds:02d}" for minutes in range(25, 35) for seconds in range(0, 60, 4)]
    encoder = fitted([*cells, "1:02:10"])
    np.testing.assert_allclose(read(encoder, ["30:30"]) * 1440, 30.5)
