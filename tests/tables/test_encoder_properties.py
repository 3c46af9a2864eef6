"""Whatever a frame holds: an encoder is finite, takes rows in any order and number, and survives
JSON.
"""

import datetime
import json

import numpy as np
import pytest

from nearkin import TableEncoder

pd = pytest.importorskip("pandas")
hypothesis = pytest.importorskip("hypothesis")
st = pytest.importorskip("hypothesis.strategies")

DATES = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
TIMES = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1))
NUMBERS = st.floats(-1e9, 1e9, allow_nan=False).map(lambda number: round(number, 2))
CELLS = [
    NUMBERS,
    st.integers(-(10**30), 10**30),
    st.booleans(),
    st.text(max_size=6),
    st.sampled_from(
        [
            "red",
            "blue ",
            " red",
            "05",
            "5",
            "5.0",
            "NA",
            "",
            "1e5",
            "inf!",
            "?",
            "-",
            "12:30",
            "1/2/2024",
        ]
    ),
    NUMBERS.map(lambda number: f"{number:,.2f}"),
    NUMBERS.map(lambda number: f"€{number:.2f}"),
    NUMBERS.map(lambda number: f"{number:.1f}%".replace(".", ",")),
    DATES,
    DATES.map(lambda date: date.strftime("%d.%m.%Y")),
    DATES.map(lambda date: date.strftime("%b %d, %Y")),
    TIMES,
    TIMES.map(lambda time: time.strftime("%m/%d/%Y %I:%M %p")),
    TIMES.map(datetime.datetime.time),
]


@st.composite
def frames(draw):
    n_rows = draw(st.integers(2, 25))
    kinds = draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=4))
    columns = {}
    for number, kind in enumerate(kinds):
        cells = draw(
            st.lists(st.one_of(kind, kind, kind, st.none()), min_size=n_rows, max_size=n_rows)
        )
        columns[f"column {number}"] = pd.Series(cells, dtype=object)
    return pd.DataFrame(columns)


@pytest.mark.long
@hypothesis.settings(
    max_examples=100, deadline=None, suppress_health_check=list(hypothesis.HealthCheck)
)
@hypothesis.given(
    frames(),
    st.sampled_from(["impute", "keep"]),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_any_frame(frame, missing, max_categories, chance):
    encoder = TableEncoder(missing=missing, max_categories=max_categories)
    try:
        X = encoder.fit_transform(frame)
    except ValueError as error:
        assert "no feature columns are left" in str(error)  # noqa: PT017
        return
    names = encoder.get_feature_names_out()
    assert X.shape == (len(frame), len(names))
    assert len(set(names)) == len(names)
    assert np.isfinite(X).all() if missing == "impute" else not np.isinf(X).any()
    assert {column.name for column in encoder.columns_}.isdisjoint(encoder.dropped_)
    assert all(line.isprintable() for line in encoder.remarks_)
    again = TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    np.testing.assert_array_equal(again.transform(frame), X)
    order = chance.sample(range(len(frame)), len(frame))
    np.testing.assert_array_equal(encoder.transform(frame.iloc[order, ::-1]), X[order])
    np.testing.assert_array_equal(encoder.transform(frame.iloc[order[:1]]), X[order[:1]])
    permuted = TableEncoder(missing=missing, max_categories=max_categories).fit(frame.iloc[order])
    assert permuted.to_dict() == encoder.to_dict()
