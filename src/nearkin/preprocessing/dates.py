"""Text that is a date, a date and a time, or a time of day: as days, and as places in year, week and day."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

TIME = r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:[.,]\d+)?))?(?:\s?(?P<half>[aApP])\.?[mM]\.?)?"
ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?"
YEAR = r"(?P<y>\d{4}|\d{2})"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = rf"(?P<m>(?i:{'|'.join(MONTHS)})[a-z]*)\.?"
DATES = {
    "year first": r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?:(?P=sep)(?P<d>\d{1,2}))?",
    "day first": rf"(?P<d>\d{{1,2}})(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep){YEAR}",
    "month first": rf"(?P<m>\d{{1,2}})(?P<sep>[-/.])(?P<d>\d{{1,2}})(?P=sep){YEAR}",
    "day, month, year": rf"(?P<d>\d{{1,2}})\.?[- ]{MONTH},?[- ]{YEAR}",
    "month, day, year": rf"{MONTH} (?P<d>\d{{1,2}}),? {YEAR}",
}
TIME_OF_DAY = "time of day"
LAYOUTS = {layout: re.compile(rf"{date}(?:(?:T|,?\s){TIME}{ZONE})?") for layout, date in DATES.items()}
LAYOUTS[TIME_OF_DAY] = re.compile(TIME)
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
YEARLY_FROM = 60  # days that the dates span
WEEKLY_FROM = 5  # days of the week that occur


def read_days(values: list[str], layout: str) -> np.ndarray:
    """Return for each value the days since 1970 in UTC, and by its own clock, shape (n, 2); NaN where it is no date.

    A date with the year first, which is never ambiguous, is read in every layout of dates.
    """
    found = [LAYOUTS[layout].fullmatch(value) for value in values]
    if layout not in (TIME_OF_DAY, "year first"):
        usual = LAYOUTS["year first"]
        found = [match or usual.fullmatch(value) for match, value in zip(found, values, strict=True)]
    parts = np.array([_parts(match) if match else (0,) * 5 for match in found]).reshape(-1, 5)
    year, month, day, time, zone = parts.T
    months = ((year - 1970) * 12 + month - 1).astype(int).astype("M8[M]")
    days = months.astype("M8[D]") + (day - 1).astype(int)
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("M8[M]") == months) & (time < 1) & (year > 0)
    clock = np.where(valid, days.astype(float) + time, np.nan)
    return np.column_stack([clock - zone, clock])


def _parts(found: re.Match[str]) -> tuple[float, ...]:
    """Return year, month, day, the time as a part of the day (1 for none that exists), and what zones add to UTC."""
    part = {"y": "1970", "m": "1", "d": None, "zone": None} | found.groupdict()
    year, month = int(part["y"] or 0), part["m"] or ""
    if len(part["y"] or "") == 2:
        year += 1900 if year >= 69 else 2000  # as POSIX does
    number = int(month) if month.isdigit() else 1 + MONTHS.index(month[:3].lower())
    zone = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?", part["zone"] or "")
    ahead = (int(zone[2]) + int(zone[3] or 0) / 60) / (24 if zone[1] == "+" else -24) if zone else 0
    return year, number, int(part["d"] or 1), _time(part), ahead


def _time(part: dict[str, Any]) -> float:
    if not part["H"]:
        return 0
    hours, minutes, seconds = int(part["H"]), int(part["M"]), float((part["S"] or "0").replace(",", "."))
    if minutes > 59 or seconds >= 61 or (part["half"] and not 1 <= hours <= 12):
        return 1
    if part["half"]:
        hours = hours % 12 + (12 if part["half"] in "pP" else 0)
    return (hours + minutes / 60 + seconds / 3600) / 24


def learn_dates(values: list[str]) -> tuple[str, bool] | None:
    """Return the layout that all of some values have, and whether day and month could change places; None without one.

    Where both fit every value, slashes have the month first, points and hyphens the day.
    """
    if not values or not (any(char.isdigit() for char in values[0]) and len(values[0]) <= 60):
        return None
    fitting = [layout for layout, pattern in LAYOUTS.items() if _all_fit(values, layout, pattern)]
    if {"day first", "month first"} <= set(fitting):
        differ = (read_days(values, "day first") != read_days(values, "month first")).any()
        return ("month first" if "/" in values[0] else "day first"), bool(differ)
    return (fitting[0], False) if fitting else None


def _all_fit(values: list[str], layout: str, pattern: re.Pattern[str]) -> bool:
    return all(pattern.fullmatch(value) for value in values) and bool(np.isfinite(read_days(values, layout)).all())


def learn_cycles(days: np.ndarray, layout: str) -> tuple[str, ...]:
    """Return on which circles dates, as days by their own clocks, are told apart."""
    if layout == TIME_OF_DAY:
        return ("day",)
    dates = np.floor(days).astype(int).astype("M8[D]")
    firsts = (dates.astype("M8[M]").astype("M8[D]") == dates).all()  # months, whose weekdays mean nothing
    found = {
        "year": np.ptp(days) > YEARLY_FROM,
        "week": not firsts and len(np.unique(dates.astype(int) % 7)) >= WEEKLY_FROM,
        "day": np.ptp(days % 1) > 1e-9,
    }
    return tuple(name for name, needed in found.items() if needed)


def circular(days: np.ndarray, cycle: str) -> tuple[np.ndarray, np.ndarray]:
    """Return sine and cosine of the place on a circle."""
    angle = 2 * np.pi * days / CYCLES[cycle]
    return np.sin(angle), np.cos(angle)
