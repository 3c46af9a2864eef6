"""Numbers that may stand for something else: marks of missing cells such as -999, and a spreadsheet's day numbers.

They are named, and stay as they are: what they mean is known to whoever wrote them.
"""

from __future__ import annotations

import datetime

import numpy as np

from .._messages import counted
from .dates import EPOCH
from .identifiers import words_of

_NINES = [int("9" * n_digits) for n_digits in range(2, 10)]
# Of numbers: nines, and the ends of types; -9 among positive numbers.
SENTINELS = np.array([*_NINES, *(-nines for nines in _NINES), -9, -32768, -(2**31), 2**31 - 1, 1e20, -1e20], dtype=float)
_DATES = (
    *("0001-01-01", "1800-01-01", "1899-12-30", "1899-12-31", "1900-01-01", "1901-01-01", "1970-01-01"),
    *("2099-12-31", "2999-12-31", "9999-01-01", "9999-12-31"),
)
DATE_CODES = np.array([datetime.date.fromisoformat(date).toordinal() - EPOCH for date in _DATES], dtype=float)
DATE_WORDS = {"date", "dates", "datum", "day", "tag", "jour", "fecha", "dob", "birthday", "birthdate", "geburtsdatum"}
FIRST_DAY, LAST_DAY = 20_000, 60_000  # of a spreadsheet: 1954 to 2064
SPREADSHEET = datetime.date(1899, 12, 30)


def find_sentinel(values: np.ndarray, counts: np.ndarray, codes: np.ndarray = SENTINELS) -> tuple[float, int] | None:
    """Return a number that may mark missing cells, and in how many rows; None where there is none.

    It is one of some codes, the smallest or the largest number of a column, and farther from the others than these are
    from each other. `counts` are the rows of each value.
    """
    known = np.isfinite(values)
    values, counts = values[known], counts[known]
    for end in (values.min(initial=np.inf), values.max(initial=-np.inf)):
        rest = values[~np.isin(values, codes)]
        if end not in codes or len(rest) < 2:
            continue
        low, high = rest.min(), rest.max()
        gap = low - end if end < low else end - high
        if gap > high - low > 0:
            return float(end), int(counts[values == end].sum())
    return None


def sentinel_note(values: np.ndarray, counts: np.ndarray, *, dates: bool = False) -> str | None:
    """Return e.g. "-999 in 12 rows"; None where no number stands out."""
    found = find_sentinel(np.floor(values) if dates else values, counts, DATE_CODES if dates else SENTINELS)
    if found is None:
        return None
    code, n_rows = found
    shown = datetime.date.fromordinal(int(code) + EPOCH).isoformat() if dates else f"{code:.10g}"
    return f"{shown} in {counted(n_rows, 'row')}"


def may_be_sentinel(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return for columns with these ends whether a look at all numbers is worth it."""
    return np.isin(low, SENTINELS) | np.isin(high, SENTINELS)


def day_number_note(name: str, low: float, high: float) -> str | None:
    """Return e.g. "45351 would be 2024-02-29" where a column of numbers is called a date and may hold such days."""
    if not (FIRST_DAY <= low <= high <= LAST_DAY) or DATE_WORDS.isdisjoint(words_of(name)):
        return None
    return f"{low:g} would be {SPREADSHEET + datetime.timedelta(days=int(low))}"
