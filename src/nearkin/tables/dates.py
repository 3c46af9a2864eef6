"""Text that is a date, a date and a time, or a time of day: as days, and as places in year, week
and day.
"""

from __future__ import annotations

import datetime
import re
from functools import cache

import numpy as np

TIME = (
    r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:[.,]\d+)?))?(?:\s?(?P<half>[aApP])\.?[mM]\.?)?"
)
ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|(?P<side>[+-])(?P<zone_H>\d{2})(?::?(?P<zone_M>\d{2}))?))?"
YEAR = r"(?P<y>\d{4}|\d{2})"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = rf"(?P<m>(?i:{'|'.join(MONTHS)})[a-z]*)\.?"
YEAR_FIRST = "year first"
DATES = {
    YEAR_FIRST: r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?:(?P=sep)(?P<d>\d{1,2}))?",
    "day first": rf"(?P<d>\d{{1,2}})(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep){YEAR}",
    "month first": rf"(?P<m>\d{{1,2}})(?P<sep>[-/.])(?P<d>\d{{1,2}})(?P=sep){YEAR}",
    "day, month, year": rf"(?P<d>\d{{1,2}})\.?[- ]{MONTH},?[- ]{YEAR}",
    "month, day, year": rf"{MONTH} (?P<d>\d{{1,2}}),? {YEAR}",
}
TIME_OF_DAY = "time of day"
LAYOUTS = (*DATES, TIME_OF_DAY)
EPOCH = datetime.date(1970, 1, 1).toordinal()
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
YEARLY_FROM = 60  # days that the dates span
WEEKLY_FROM = 5  # days of the week that occur
LONGEST = 60  # characters of a date


def read_days(values: list[str], layout: str) -> np.ndarray:
    """Return for each value the days since 1970 in UTC, and by its own clock, shape (n, 2); NaN
    where it is no date.

    A date with the year first, which is never ambiguous, is read in every layout of dates. Each day
    and each time of the day is read once.
    """
    day, time = cache(lambda text: _day(text, layout)), cache(_time)
    clock, ahead = np.full(len(values), np.nan), np.zeros(len(values))
    for row, value in enumerate(values):
        hours = value.find(":")
        start = (
            1 + max(value.rfind(" ", 0, hours), value.rfind("T", 0, hours))
            if hours > 0
            else len(value) + 1
        )
        part, ahead[row] = time(value[start:])
        clock[row] = part + day(value[: max(start - 1, 0)].removesuffix(","))
    return np.column_stack([clock - ahead, clock])


def _day(text: str, layout: str) -> float:
    """Return the days since 1970, 0 for a time of day, NaN where text is no date of the layout."""
    if layout == TIME_OF_DAY:
        return np.nan if text else 0
    found = re.fullmatch(DATES[layout], text) or re.fullmatch(DATES[YEAR_FIRST], text)
    if found is None:
        return np.nan
    year, month = int(found["y"]), found["m"]
    if len(found["y"]) == 2:
        year += 1900 if year >= 69 else 2000  # as POSIX does
    number = int(month) if month.isdigit() else 1 + MONTHS.index(month[:3].lower())
    try:
        return datetime.date(year, number, int(found["d"] or 1)).toordinal() - EPOCH
    except ValueError:
        return np.nan


def _time(text: str) -> tuple[float, float]:
    """Return a time as a part of the day, NaN where it is none, and how far its zone is ahead of
    UTC.
    """
    if not text:
        return 0.0, 0.0
    found = re.fullmatch(TIME + ZONE, text)
    if found is None:
        return np.nan, 0.0
    hours, minutes, seconds = (
        int(found["H"]),
        int(found["M"]),
        float((found["S"] or "0").replace(",", ".")),
    )
    if found["half"]:
        hours = hours % 12 + (12 if found["half"] in "pP" else 0) if 1 <= hours <= 12 else 24
    ahead = (int(found["zone_H"] or 0) + int(found["zone_M"] or 0) / 60) / (
        -24 if found["side"] == "-" else 24
    )
    exists = hours < 24 and minutes < 60 and seconds < 61
    return (hours + minutes / 60 + seconds / 3600) / 24 if exists else np.nan, ahead


def learn_dates(values: list[str], decimal: str = ".") -> tuple[str, bool, np.ndarray] | None:
    """Return the layout that all of some values have, whether day and month could change places,
    and their days.

    Where both fit every value, slashes have the month first, but the day among numbers with a
    decimal comma; points and hyphens have the day first. None where no layout fits.
    """
    fitting: dict[str, np.ndarray] = {}
    if not values or not all(
        len(value) <= LONGEST and any(map(str.isdigit, value)) for value in values[:10]
    ):
        return None
    for layout in LAYOUTS:
        if np.isfinite(read_days(values[:10], layout)).all():  # soon done, where it does not fit
            days = read_days(values, layout)
            if np.isfinite(days).all():
                fitting[layout] = days
                if layout != "day first":  # which alone leaves another question
                    break
    if "day first" in fitting and "month first" in fitting:
        ambiguous = bool((fitting["day first"] != fitting["month first"]).any())
        layout = "month first" if "/" in values[0] and decimal == "." else "day first"
        return layout, ambiguous, fitting[layout]
    return next(((layout, False, days) for layout, days in fitting.items()), None)


def learn_cycles(days: np.ndarray, layout: str) -> tuple[str, ...]:
    """Return on which circles dates, as days by their own clocks, are told apart."""
    if layout == TIME_OF_DAY:
        return ("day",)
    dates = np.floor(days).astype(int).astype("M8[D]")
    firsts = (
        dates.astype("M8[M]").astype("M8[D]") == dates
    ).all()  # months, whose weekdays mean nothing
    found = {
        "year": np.ptp(days) > YEARLY_FROM,
        "week": not firsts and len(np.unique(dates.astype(int) % 7)) >= WEEKLY_FROM,
        "day": np.ptp(days % 1) > 1e-9,
    }
    return tuple(name for name, needed in found.items() if needed)


def circular(days: np.ndarray, cycle: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sine and cosine of the place on a circle, rounded: equal days of different weeks have
    equal places.
    """
    angle = 2 * np.pi * days / CYCLES[cycle]
    return np.sin(angle).round(9), np.cos(angle).round(9)
