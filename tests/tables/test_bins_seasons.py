import numpy as np
import pytest

from nearkin import NCARegressor
from nearkin.tables import Curve, with_seasons

pd = pytest.importorskip("pandas")


def learned(start, n_days):
    days = np.arange(0, n_days, 2)
    dates = pd.Timestamp(start) + pd.to_timedelta(days, unit="D")
    frame = pd.DataFrame({"since": dates.strftime("%Y-%m-%d")})
    model = NCARegressor(2, alpha=0.5, n_members=2).fit(frame, np.sin(2 * np.pi * days / 365.25))
    return model, with_seasons(model.curves())


@pytest.mark.slow
def test_weekdays_lie_where_the_map_puts_them():
    model, curves = learned("2021-01-01", 800)
    assert list(curves) == ["since (days since 1970)", "since (month)", "since (day of the week)"]
    weeks = curves["since (day of the week)"]
    assert weeks.names == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    # two dates differ by their places on all curves
    monday, thursday = "2022-05-02", "2022-05-05"
    Z = model.transform(pd.DataFrame({"since": [monday, thursday]}))
    parts = [weeks.values[:, 3] - weeks.values[:, 0]]
    for name, values in (
        ("days since 1970", [19114.0, 19117.0]),
        ("year, sin", None),
        ("year, cos", None),
    ):
        curve, part = (
            model.curves()[f"since ({name})"],
            {"year, sin": np.sin, "year, cos": np.cos}.get(name),
        )
        x = values or part(2 * np.pi * np.array([19114.0, 19117.0]) / 365.2425)
        parts.append(np.diff([np.interp(x, curve.edges, row) for row in curve.values])[:, 0])
    np.testing.assert_allclose(Z[1] - Z[0], np.sum(parts, axis=0), atol=1e-5)


def test_months_without_rows_are_left_out():
    _, curves = learned("2021-04-01", 150)
    assert curves["since (month)"].names == ["Apr", "May", "Jun", "Jul", "Aug"]
    curve = Curve(0, np.array([0.2, 0.3]), np.zeros((2, 2)), None, "day")
    narrow = {f"x (day, {part})": curve for part in ("sin", "cos")}
    assert with_seasons(narrow) == narrow
