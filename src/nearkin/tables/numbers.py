"""Numbers that may stand for something else: marks of missing cells such as -999, and a
spreadsheet's day numbers.

They are named, and stay as they are: what they mean is known to whoever wrote them.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from .._messages import counted, shown
from .cells import differs, words_of
from .dates import EPOCH

# Text that is a number in one of the styles of spreadsheets: "12.3%", "€12.30", "1,234.5", "12,5",
# "(12.30)".

SPACES = " \u00a0\u2009\u202f"
CODES = "EUR|USD|GBP|JPY|CNY|INR|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|TRY|ILS|SGD|HKD"
CURRENCY = rf"(?:US|CA|C|AU|A|NZ|HK|R)?\$|[€£¥₹₽₩₺₪฿₫]|{CODES}|Fr\.|kr"
TRUTH = {"true": 1.0, "false": 0.0}
TRUTH_UNIT = "truth value"
MARKS = {".": ",", ",": "."}  # the decimal mark, and what groups thousands then
EITHER = ".,"  # each number has one of them, and it is clear which


@cache
def _pattern(decimal: str) -> re.Pattern[str]:
    mark = re.escape(decimal)
    thousands = rf"[1-9]\d{{0,2}}(?P<group>[{MARKS[decimal]}{SPACES}'\u2019])\d{{3}}(?:(?P=group)\d{{3}})*(?:{mark}\d*)?"
    # a whole number that begins with 0 is a code, such as a ZIP code
    digits = rf"{thousands}|(?:0|[1-9]\d*)|\d+{mark}\d*|{mark}\d+"
    number = rf"(?P<digits>(?:{digits})(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))"
    before, after = rf"(?P<before>{CURRENCY})?", rf"(?P<after>{CURRENCY}|%)?"
    bare = (
        rf"(?P<sign>[+-])?[{SPACES}]?{before}[{SPACES}]?(?P<inner>[+-])?{number}[{SPACES}]?{after}"
    )
    return re.compile(rf"(?P<open>\()?{bare}(?P<close>\))?", re.ASCII)


def read_number(text: str, decimal: str = ".") -> tuple[float, str] | None:
    """Return a number and its unit, "%", a currency or ""; None where the text is no number.

    By `EITHER` mark "12.5" and "12,5" are the same number, and "1,234", which may be two, is none.
    """
    if decimal == EITHER:
        numbers = {read_number(text, mark) for mark in MARKS} - {None}
        return numbers.pop() if len(numbers) == 1 else None
    found = _pattern(decimal).fullmatch(text.replace("\u2212", "-"))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    signs = [found["sign"], found["inner"], found["open"]]
    units = [unit for unit in (found["before"], found["after"]) if unit]
    if len(units) > 1 or sum(map(bool, signs)) > 1:
        return None
    digits = found["digits"].replace(found["group"] or " ", "").replace(decimal, ".")
    number, unit = float(digits), "".join(units)
    return (-number if {"-", "("} & set(signs) else number) / (
        100 if unit == "%" else 1
    ) + 0.0, unit


def learn_numbers(values: list[str], decimal: str) -> tuple[np.ndarray, str, str] | None:
    """Return the numbers that all of some values are, the decimal mark and the unit; None where
    they do not agree.

    The other decimal mark is tried where the values are no numbers by the usual one, and then
    either.
    """
    if values and all(value.lower() in TRUTH for value in values):
        return np.array([TRUTH[value.lower()] for value in values]), decimal, TRUTH_UNIT
    for mark in (decimal, MARKS[decimal], EITHER):
        found: list[tuple[float, str]] = []
        for value in values:
            number = read_number(value, mark)
            if number is None or (found and number[1] != found[0][1]):
                break
            found.append(number)
        else:
            return (np.array([number for number, _ in found]), mark, found[0][1]) if found else None
    return None


def read_numbers(values: list[str], decimal: str, unit: str) -> np.ndarray:
    """Return values as numbers, with the unit of a column or without, NaN where one is none.

    Truth values are 0 and 1 in a column without a unit.
    """

    def read(value: str) -> float:
        if unit in ("", TRUTH_UNIT) and value.lower() in TRUTH:
            return TRUTH[value.lower()]
        number = read_number(value, decimal)
        return number[0] if number and number[1] in ("", unit) else np.nan

    return np.array([read(value) for value in values], dtype=float)


# Text that holds numbers in more than digits: "72.1 kg", "<0.1", "0.196*", "7/10", "3h 12min",
# "31:05:09", "10-19".
#
# A column is read where all its values share one of these forms. What others look like,
# `looks_like` says.

QUANTITY = "quantity"
DURATION = "duration"
RANGE = "range"
FORMS = (QUANTITY, DURATION, RANGE)
MOST_UNITS = 5  # that a column of quantities may mix, if it is to look like one
SAMPLE = 100  # values by which it is recognized what a column looks like

# Numbers with a limit, a unit, or a mark.

_WORD = r"(?:[°º]?[^\W\d_]+(?:\^?[23]|[²³])?\.?|[°º\"'\u2032\u2033%‰]|100 ?km)"
_UNIT = (
    rf"{_WORD}(?:[ /·*-]{{1,2}}{_WORD}){{0,3}}|/{_WORD}|(?:/|of|out of) ?\d+"
    rf"|[x\u00d7]? ?10[\^*]\d+(?: ?/ ?{_WORD})?"
)
_LIMITED = re.compile(
    rf"(?P<limit>[<>≤≥]=?|[~≈]|ca\.)?[{SPACES}]?(?P<body>.+?)[{SPACES}]?(?P<mark>\+|[*†‡§¶]+)?"
)
_MEASURED = re.compile(
    rf"(?P<number>[-+\u2212(€£¥$]{{0,2}}[\d.,'\u2019{SPACES}]*\d(?:[eE][+-]?\d+)?)(?P<space>[{SPACES}]?)(?P<unit>{_UNIT})"
)
_OUT_OF = re.compile(r"(?:/|of|out of) ?(\d+)")
_CLOCK_HALVES = {"am", "pm", "a.m.", "p.m."}  # of times of the day
_LONGEST = 40  # characters of a quantity, a duration or a range

# Units of one kind, which differ by a factor. Of bytes these are the decimal ones.
_KINDS: tuple[dict[str, float], ...] = (
    {"ng": 1e-9, "µg": 1e-6, "μg": 1e-6, "mcg": 1e-6, "mg": 1e-3, "g": 1.0, "kg": 1e3, "t": 1e6},
    {"nm": 1e-9, "µm": 1e-6, "μm": 1e-6, "mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0, "km": 1e3},
    {
        "µl": 1e-6,
        "µL": 1e-6,
        "ml": 1e-3,
        "mL": 1e-3,
        "cl": 1e-2,
        "cL": 1e-2,
        "dl": 0.1,
        "dL": 0.1,
        "l": 1.0,
        "L": 1.0,
    },
    {"mm2": 1e-6, "cm2": 1e-4, "m2": 1.0, "ha": 1e4, "km2": 1e6},
    {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6, "GW": 1e9},
    {"Wh": 1.0, "kWh": 1e3, "MWh": 1e6, "GWh": 1e9},
    {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    {"mV": 1e-3, "V": 1.0, "kV": 1e3},
    {"µA": 1e-6, "mA": 1e-3, "A": 1.0},
    {"Pa": 1.0, "hPa": 1e2, "kPa": 1e3, "MPa": 1e6},
    {"mbar": 1e-3, "bar": 1.0},
    {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
)
_MULTIPLES = {
    "": 1.0,
    "k": 1e3,
    "K": 1e3,
    "M": 1e6,
    "B": 1e9,
    "bn": 1e9,
}  # as in "€850K" and "€1.2M"


@dataclass(frozen=True)
class Found:
    """What the values of a column are.

    Attributes
    ----------
    form : str
        One of `FORMS`.
    numbers : ndarray
        A number for each value.
    decimal, unit : str
        With which other values are read alike.
    how : str
        An example, and how it was read.
    """

    form: str
    numbers: np.ndarray
    decimal: str
    unit: str
    how: str


@dataclass(frozen=True)
class _Cell:
    """A number with what stands around it."""

    number: float
    currency: str  # or "%"
    unit: str
    limit: str
    mark: str
    glued: bool  # no space before the unit


def learn_quantities(values: Sequence[str], counts: np.ndarray, decimal: str) -> Found | None:
    """Return what all of some values are, each of which so many rows have; None where they share no
    form.
    """
    if not values or not all(
        len(value) <= _LONGEST and any(map(str.isdigit, value)) for value in values[:10]
    ):
        return None
    return (
        _learn_measured(values, counts, decimal)
        or _learn_durations(values)
        or _learn_ranges(values, counts, decimal)
    )


def read_quantities(values: Sequence[str], form: str, decimal: str, unit: str) -> np.ndarray:
    """Return a number for each value, read as those of a column with this form were, NaN where that
    is not possible.
    """
    if form == DURATION:
        return np.array([_read_duration(value, unit) for value in values], dtype=float)
    if form == RANGE:
        ends = [_read_range(value, decimal, unit) for value in values]
        return np.array([np.nan if end is None else _middle(end) for end in ends], dtype=float)
    return np.array([_converted(_read_cell(value, decimal), unit) for value in values], dtype=float)


def _read_cell(text: str, decimal: str) -> _Cell | None:
    """Return a number with what stands around it; None where a text is none."""
    found = _LIMITED.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    limit = found["limit"] or ""
    mark = found["mark"] or ""
    body = found["body"]
    plain = read_number(body, decimal)
    if plain is not None and np.isfinite(plain[0]):
        return _Cell(plain[0], plain[1], "", limit, mark, False)
    measured = _MEASURED.fullmatch(body)
    number = measured and read_number(measured["number"], decimal)
    if (
        not measured
        or not number
        or not np.isfinite(number[0])
        or measured["unit"].lower() in _CLOCK_HALVES
    ):
        return None
    return _Cell(*number, _unit_name(measured["unit"]), limit, mark, not measured["space"])


def _unit_name(unit: str) -> str:
    """Return a unit in one spelling: "years" is "year", "m²" is "m2"."""
    unit = (
        unit.strip()
        .removesuffix(".")
        .replace("²", "2")
        .replace("³", "3")
        .replace("^2", "2")
        .replace("^3", "3")
    )
    return unit[:-1] if len(unit) > 2 and unit.endswith("s") and unit.isalpha() else unit


def _learn_measured(values: Sequence[str], counts: np.ndarray, decimal: str) -> Found | None:
    for mark in (decimal, MARKS[decimal], EITHER):
        cells = list[_Cell]()
        for value in values:
            cell = _read_cell(value, mark)
            if cell is None or cell.currency != (cells or [cell])[0].currency:
                break
            cells.append(cell)
        else:
            unit = _one_unit(cells, counts)
            return None if unit is None else _measured(values, cells, mark, unit)
    return None


def _one_unit(cells: list[_Cell], counts: np.ndarray) -> str | None:
    """Return the unit in which all cells can be read; None where there is none, or where they may
    be something else.
    """
    units = {cell.unit for cell in cells}
    limited = np.array([cell.limit in ("<", ">", "≤", "≥", "<=", ">=") for cell in cells])
    if counts[limited].sum() > counts.sum() / 2:  # bounds, of which the numbers are not known
        return None
    currency = cells[0].currency
    if len(units) > 1 or (currency and units <= _MULTIPLES.keys()):
        if units <= _MULTIPLES.keys():
            return currency
        kind = next((kind for kind in _KINDS if units <= kind.keys()), None)
        if kind is None:
            return None
        rows = Counter[str]()
        for cell, count in zip(cells, counts.tolist(), strict=True):
            rows[cell.unit] += count
        return currency + rows.most_common(1)[0][0]
    unit = units.pop()
    if out_of := _OUT_OF.fullmatch(unit):
        most = int(out_of[1])
        if (
            not 2 <= most <= 1000
            or max(cell.number for cell in cells) > most
            or min(c.number for c in cells) < 0
        ):
            return None  # a month and a year, or a day and a month
    looks_coded = (
        unit.isalpha() and (len(unit) == 1 or unit.isupper()) and all(cell.glued for cell in cells)
    )
    whole = all(cell.number == int(cell.number) for cell in cells if np.isfinite(cell.number))
    if looks_coded and whole and differs(len(cells), int(counts.sum()), int(counts.sum())):
        return None  # "1017K" may be an identifier
    return currency + unit


def _measured(values: Sequence[str], cells: list[_Cell], decimal: str, unit: str) -> Found:
    numbers = np.array([_converted(cell, unit) for cell in cells])
    odd = [
        at
        for at, cell in enumerate(cells)
        if cell.limit or cell.mark or _OUT_OF.fullmatch(cell.unit)
    ]
    spellings = list(
        {
            cell.currency + cell.unit: value for cell, value in zip(cells, values, strict=True)
        }.values()
    )
    if len(spellings) > 1:
        how = f"{' and '.join(map(shown, spellings[:2]))}, {f'in {unit}' if unit else 'in ones'}"
    else:
        how = f"{shown(values[odd[0]])} as {numbers[odd[0]]:g}" if odd else shown(values[0])
    return Found(QUANTITY, numbers, decimal, unit, how)


def _converted(cell: _Cell | None, unit: str) -> float:
    """Return the number of a cell in a unit, NaN where it has another one that cannot be converted."""
    if cell is None:
        return np.nan
    own = cell.currency + cell.unit
    if own == unit or (not own and unit not in ("k", "K", "M", "B", "bn")):
        return cell.number
    if unit == cell.currency and cell.unit in _MULTIPLES:
        return cell.number * _MULTIPLES[cell.unit]
    for kind in _KINDS:
        if cell.unit in kind and unit.removeprefix(cell.currency) in kind:
            return cell.number * kind[cell.unit] / kind[unit.removeprefix(cell.currency)]
    return np.nan


# Durations, in days as those of data frames.

_SECONDS = {
    **dict.fromkeys(
        ("y", "yr", "yrs", "year", "years", "jahr", "jahre", "an", "ans"), 365.2425 * 86400
    ),
    **dict.fromkeys(
        ("mo", "mos", "month", "months", "monat", "monate", "mois"), 365.2425 / 12 * 86400
    ),
    **dict.fromkeys(("w", "wk", "wks", "week", "weeks", "woche", "wochen"), 7 * 86400.0),
    **dict.fromkeys(("d", "day", "days", "tag", "tage", "jour", "jours"), 86400.0),
    **dict.fromkeys(
        ("h", "hr", "hrs", "hour", "hours", "std", "stunde", "stunden", "heure", "heures"), 3600.0
    ),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes", "minuten"), 60.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds", "sek", "sekunde", "sekunden"), 1.0),
    "ms": 1e-3,
}
_PART = re.compile(r"(\d+(?:[.,]\d+)?)\s?([^\W\d_]+)\.?(?:,? (?:and |und |et )?|,)?")
_CLOCK = re.compile(r"(?:(\d+) days?,? )?(\d+):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_HOURS_FIRST = "h:min"  # what two numbers with a colon are
_MINUTES_FIRST = "min:s"


def _learn_durations(values: Sequence[str]) -> Found | None:
    """Return durations; those of one unit alone are quantities, and times of the day dates."""
    if any(np.isnan(_read_duration(value, _HOURS_FIRST)) for value in values):
        return None
    clocks = [_CLOCK.fullmatch(value) for value in values]
    n_parts = {bool(clock[4]) for clock in clocks if clock}
    unit = _MINUTES_FIRST if len(n_parts) == 2 else _HOURS_FIRST
    if not any(clocks) and not any(
        _ISO.fullmatch(value) or _n_units(value) > 1 for value in values
    ):
        words = {match[2].lower() for value in values for match in _PART.finditer(value)}
        if words <= {"m", "d", "s", "y", "w"}:
            return None  # one letter alone may be another unit
    how = shown(values[0])
    if len(n_parts) == 2:
        how += ", two numbers are minutes and seconds"
    elif all(clocks) and n_parts == {False}:
        how += ", hours and minutes"
    return Found(DURATION, read_quantities(values, DURATION, ".", unit), ".", unit, how)


def _n_units(value: str) -> int:
    return len(_PART.findall(value))


def _read_duration(value: str, unit: str) -> float:
    """Return a duration in days, NaN where text is none."""
    sign = -1.0 if value.startswith(("-", "\u2212")) else 1.0
    text = value.lstrip("+-\u2212 ")
    clock = _CLOCK.fullmatch(text)
    if clock:
        first, second = float(clock[2]), float(clock[3])
        third = float((clock[4] or "0").replace(",", "."))
        if clock[4] is None and unit == _MINUTES_FIRST:
            seconds = 60 * first + second
        else:
            seconds = 3600 * first + 60 * second + third
        return sign * (float(clock[1] or 0) + seconds / 86400)
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        parts = [float(part or 0) for part in iso.groups()]
        return sign * (parts[0] + parts[1] / 24 + parts[2] / 1440 + parts[3] / 86400)
    seconds = 0.0
    smallest = np.inf  # of the units so far, which become smaller and smaller
    end = 0
    for part in _PART.finditer(text):
        size = _SECONDS.get(part[2].lower(), np.nan)
        if part.start() != end or not size < smallest:
            return np.nan
        seconds += float(part[1].replace(",", ".")) * size
        smallest = size
        end = part.end()
    rest = text[end:]
    if smallest == 3600.0 and re.fullmatch(r"[0-5]\d", rest):  # as in "3h12"
        return sign * (seconds + 60 * float(rest)) / 86400
    return sign * seconds / 86400 if end and not rest else np.nan


# Ranges: a number is in the middle, and at the limit of one that is open.

_NUMBER = r"[-+\u2212]?[€£¥$]?[\d.,]*\d[kKM]?"
_CLOSED = re.compile(
    rf"(?P<open>[\[(])?\s?(?P<low>{_NUMBER})(?:\s?(?:[-\u2013\u2014]|\.\.\.?|to|bis)\s?|(?P<comma>[,;]\s?))"
    rf"(?P<high>{_NUMBER})\s?(?P<unit>{_WORD}(?: {_WORD})?)?(?P<close>[\])])?"
)
_OPEN = re.compile(
    rf"(?:(?P<before>[<>≤≥]=?|under|over|below|above|unter|über)\s?)?(?P<number>{_NUMBER})"
    rf"\s?(?P<after>\+|and over|and older|or more|und mehr)?\s?(?P<unit>{_WORD}(?: "
    rf"{_WORD})?)?\s?(?P<end>\+)?"
)


@dataclass(frozen=True)
class _Ends:
    """A range; one that is open has its limit on both sides, and so has a single number."""

    low: float
    high: float
    unit: str
    limited: bool


def _middle(ends: _Ends) -> float:
    return (ends.low + ends.high) / 2


def _read_range(text: str, decimal: str, unit: str | None) -> _Ends | None:
    """Return a range, with the unit of the others or, if None, any; None where a text is none."""
    if len(text) > _LONGEST:
        return None
    closed = _CLOSED.fullmatch(text)
    if (
        closed
        and bool(closed["open"]) == bool(closed["close"])
        and (closed["open"] or not closed["comma"])
    ):
        low, high = _end(closed["low"], decimal), _end(closed["high"], decimal)
        own = _unit_name(closed["unit"] or "")
        if (
            low is not None
            and high is not None
            and low < high
            and own in ("", own if unit is None else unit)
        ):
            return _Ends(low, high, own, True)
    bound = _OPEN.fullmatch(text)
    number = _end(bound["number"], decimal) if bound else None
    if bound is None or number is None:
        return None
    own = _unit_name(bound["unit"] or "")
    limited = bool(bound["before"] or bound["after"] or bound["end"])
    return (
        _Ends(number, number, own, limited) if own in ("", own if unit is None else unit) else None
    )


def _end(text: str, decimal: str) -> float | None:
    factor = _MULTIPLES.get(text[-1], 1.0)
    found = read_number(text if factor == 1.0 else text[:-1], decimal)
    return found and found[0] * factor


def _learn_ranges(values: Sequence[str], counts: np.ndarray, decimal: str) -> Found | None:
    """Return ranges that do not overlap and have several rows each, as bins of a number do; codes
    are not like that.
    """
    found = list[_Ends]()
    for value in values:
        ends = _read_range(value, decimal, None)
        if ends is None:
            return None
        found.append(ends)
    closed = sorted((ends.low, ends.high) for ends in found if ends.high > ends.low)
    units = {ends.unit for ends in found} - {""}
    n_ranges = sum(ends.limited for ends in found)
    apart = all(before[1] <= after[0] for before, after in pairwise(closed))
    if len(closed) < 2 or 2 * n_ranges < len(found) or not apart or len(units) > 1:
        return None
    if 2 * len(values) > counts.sum() or len(set(map(_middle, found))) < len(found):
        return None
    example = next(value for value, ends in zip(values, found, strict=True) if ends.high > ends.low)
    numbers = np.array([_middle(ends) for ends in found])
    return Found(RANGE, numbers, decimal, units.pop() if units else "", shown(example))


# What a column looks like that is not read


_PAIR = re.compile(
    rf"\d+(?:[.,]\d+)?\s?[/x\u00d7'\u2032]\s?\d+(?:[.,]\d+)?\s?(?:{_WORD})?"
)  # 120/80, 30 x 40 cm, 5'11"


def looks_like(values: Sequence[str], decimal: str) -> str | None:
    """Return what most of some values look like, and the remedy; None where they are words."""
    few = values[:SAMPLE]
    if not few or 2 * sum(any(map(str.isdigit, value)) for value in few) < len(few):
        return None

    def most(fits: Sequence[bool]) -> bool:
        return 2 * sum(fits) > len(few)

    marks = {mark: [read_number(value, mark) is not None for value in few] for mark in MARKS}
    if all(map(any, zip(*marks.values(), strict=True))):
        odd = next((value for value in few if read_number(value, EITHER) is None), None)
        if odd is not None and not any(map(all, marks.values())):
            return (
                f"decimal points and commas in one column, {shown(odd)} may be either (write "
                "one of them)"
            )
    months = [re.fullmatch(r"(?:0?[1-9]|1[0-2])/(?:19|20)\d\d", value) is not None for value in few]
    if most(months):
        return f"months, such as {shown(few[months.index(True)])} (write them as 2024-02)"
    pairs = [_PAIR.fullmatch(value) is not None for value in few]
    if most(pairs):
        return (
            f"two numbers in a cell, such as {shown(few[pairs.index(True)])} (give each a column)"
        )
    ranges = [_read_range(value, decimal, None) for value in few]
    closed = [ends is not None and ends.high > ends.low for ends in ranges]
    if most(closed):
        return (
            f"ranges that overlap, or codes, such as {shown(few[closed.index(True)])} (give "
            "each end a column)"
        )
    cells = [_read_cell(value, decimal) or _read_cell(value, MARKS[decimal]) for value in few]
    read = [cell is not None and bool(cell.unit or cell.limit or cell.mark) for cell in cells]
    examples: dict[str, str] = {}
    for value, cell in zip(few, cells, strict=True):
        if cell is not None:
            examples.setdefault(cell.currency + cell.unit, value)
    if not most(read) or len(examples) > min(MOST_UNITS, len(few) / 2):
        return None
    several = " and ".join(map(shown, list(examples.values())[:2]))
    if not all(cell is not None for cell in cells):
        odd = few[cells.index(None)]
        return (
            f"numbers with a unit or a mark, but for {shown(odd)} (mend it, or let it count as "
            "missing)"
        )
    if len(examples) == 1:
        return None
    if all(read):
        return f"numbers of several units, {several} (write them in one)"
    return f"numbers with and without a unit, {several} (write it in all)"


_NINES = [int("9" * n_digits) for n_digits in range(2, 10)]
# Of numbers: nines, and the ends of types; -9 among positive numbers.
SENTINELS = np.array(
    [*_NINES, *(-nines for nines in _NINES), -9, -32768, -(2**31), 2**31 - 1, 1e20, -1e20],
    dtype=float,
)
_DATES = (
    *(
        "0001-01-01",
        "1800-01-01",
        "1899-12-30",
        "1899-12-31",
        "1900-01-01",
        "1901-01-01",
        "1970-01-01",
    ),
    *("2099-12-31", "2999-12-31", "9999-01-01", "9999-12-31"),
)
DATE_CODES = np.array(
    [datetime.date.fromisoformat(date).toordinal() - EPOCH for date in _DATES], dtype=float
)
DATE_WORDS = {
    "date",
    "dates",
    "datum",
    "day",
    "tag",
    "jour",
    "fecha",
    "dob",
    "birthday",
    "birthdate",
    "geburtsdatum",
}
FIRST_DAY, LAST_DAY = 20_000, 60_000  # of a spreadsheet: 1954 to 2064
SPREADSHEET = datetime.date(1899, 12, 30)


def find_sentinel(
    values: np.ndarray, counts: np.ndarray, codes: np.ndarray = SENTINELS
) -> tuple[float, int] | None:
    """Return a number that may mark missing cells, and in how many rows; None where there is none.

    It is one of some codes, the smallest or the largest number of a column, and farther from the
    others than these are from each other. `counts` are the rows of each value.
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
    found = find_sentinel(
        np.floor(values) if dates else values, counts, DATE_CODES if dates else SENTINELS
    )
    if found is None:
        return None
    code, n_rows = found
    shown = datetime.date.fromordinal(int(code) + EPOCH).isoformat() if dates else f"{code:.10g}"
    return f"{shown} in {counted(n_rows, 'row')}"


def may_be_sentinel(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return for columns with these ends whether a look at all numbers is worth it."""
    return np.isin(low, SENTINELS) | np.isin(high, SENTINELS)


def day_number_note(name: str, low: float, high: float) -> str | None:
    """Return e.g. "45351 would be 2024-02-29" where a column of numbers is called a date and may
    hold such days.
    """
    if not (FIRST_DAY <= low <= high <= LAST_DAY) or DATE_WORDS.isdisjoint(words_of(name)):
        return None
    return f"{low:g} would be {SPREADSHEET + datetime.timedelta(days=int(low))}"
