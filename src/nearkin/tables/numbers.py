"""Text that is a number, and numbers that may stand for something else.

Text may be in a format of spreadsheets, have a unit, a limit or a mark, or be a duration or a
range. The decimal mark and the unit are inferred for a column as a whole.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._messages import counted, shown
from .cells import NEARLY_ALL, differs, words_of
from .gaps import LEAST_ROWS

SPACES = " \u00a0\u2009\u202f"
CODES = (
    "EUR|USD|GBP|JPY|CNY|INR|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|TRY|ILS"
    "|SGD|HKD"
)
CURRENCY = rf"(?:US|CA|C|AU|A|NZ|HK|R)?\$|[€£¥₹₽₩₺₪฿₫]|{CODES}|Fr\.|kr"
_BARE = re.compile(r"[+-]?(?:\d*\.?\d*(?:e[+-]?\d+)?|inf(?:inity)?)", re.ASCII | re.IGNORECASE)
TRUTH = {"true": 1.0, "false": 0.0}
TRUTH_UNIT = "truth value"
DECIMAL_MARKS = {".": ",", ",": "."}  # decimal mark and thousands separator
MARK_NAMES = {".": "points", ",": "commas"}
EITHER = ".,"  # each number uses one of them, unambiguously

# The form of a column of text that is read as numbers: plain, or one of the forms with more than
# digits. `UNITS` are quantities of several units that no factor converts, see `learn_units`.
PLAIN, QUANTITY, DURATION, RANGE, UNITS = "", "quantity", "duration", "range", "units"
FORMS = (QUANTITY, DURATION, RANGE, UNITS)
LONGEST = 40  # maximum length of a quantity, a duration or a range
MOST_UNITS = 5  # maximum number of units in a column of quantities
FEWEST_NUMBERS = 3  # different ones beside words, or of a unit; categories say as much as fewer
SAMPLE = 100  # values that determine what a column looks like
CLEAR = 0.99  # share of the cells that depend on the decimal mark, from which on they show it


class Numbers(NamedTuple):
    """The values of a column as numbers, NaN if unread, and how to read others in the same way."""

    numbers: np.ndarray
    form: str
    decimal: str
    unit: str
    how: str  # an example, and how it was read


# Numbers in the formats of spreadsheets: "12.3%", "€12.30", "1,234.5", "12,5", "(12.30)".


@cache
def _pattern(decimal: str) -> re.Pattern[str]:
    mark = re.escape(decimal)
    thousands = (
        rf"[1-9]\d{{0,2}}(?P<group>[{DECIMAL_MARKS[decimal]}{SPACES}'\u2019])\d{{3}}"
        rf"(?:(?P=group)\d{{3}})*"
        rf"(?:{mark}\d*)?"
    )
    # a whole number that begins with 0 is a code, such as a ZIP code
    digits = rf"{thousands}|(?:0|[1-9]\d*)|\d+{mark}\d*|{mark}\d+"
    return re.compile(
        rf"(?P<open>\()?(?P<sign>[+-])?[{SPACES}]?(?P<before>{CURRENCY})?[{SPACES}]?"
        rf"(?P<inner>[+-])?(?P<digits>(?:{digits})(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))"
        rf"[{SPACES}]?(?P<after>{CURRENCY}|%)?(?P<close>\))?",
        re.ASCII,
    )


def read_number(text: str, decimal: str = ".") -> tuple[float, str] | None:
    """Return a number and its unit ("%", a currency or ""), or None if the text is not a number.

    With the mark `EITHER`, "12.5" and "12,5" are the same number, while "1,234" is ambiguous and
    gives None.
    """
    if decimal == EITHER:
        numbers = {read_number(text, mark) for mark in DECIMAL_MARKS} - {None}
        return numbers.pop() if len(numbers) == 1 else None
    found = _pattern(decimal).fullmatch(text.replace("\u2212", "-"))
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    signs = [found["sign"], found["inner"], found["open"]]
    units = [unit for unit in (found["before"], found["after"]) if unit]
    if len(units) > 1 or sum(map(bool, signs)) > 1:
        return None
    number = float(found["digits"].replace(found["group"] or " ", "").replace(decimal, "."))
    if "-" in signs or "(" in signs:
        number = -number
    unit = "".join(units)
    return number / (100 if unit == "%" else 1) + 0.0, unit


def _read_plain(value: str, decimal: str, unit: str) -> float:
    """Return a number; truth values are 0 and 1 in a column without a unit."""
    if unit in ("", TRUTH_UNIT) and value.lower() in TRUTH:
        return TRUTH[value.lower()]
    number = read_number(value, decimal)
    return number[0] if number and number[1] in ("", unit) else np.nan


def learn_numbers(values: Sequence[str], decimal: str, counts: np.ndarray) -> Numbers | None:
    """Return the numbers of the unit in which most rows can be read, or None if there are none."""
    if values and all(value.lower() in TRUTH for value in values):
        truths = np.array([TRUTH[value.lower()] for value in values])
        return Numbers(truths, PLAIN, decimal, TRUTH_UNIT, shown(values[0]))
    read, mark = _by_one_mark(values, decimal, counts, read_number)
    units = _most_common((found and found[1] for found in read), counts)
    n_read = counts[[found is not None for found in read]].sum()
    n_named = counts[[bool(found and found[1]) for found in read]].sum()
    if not units or (units[0] and n_named < NEARLY_ALL * n_read):
        return None  # whether the others have this unit is unclear
    unit = units[0]
    numbers = np.array(
        [
            found[0] if found and found[1] == unit else _read_plain(value, mark, unit)
            for value, found in zip(values, read, strict=True)
        ]
    )
    fitting = [value for value, x in zip(values, numbers.tolist(), strict=True) if x == x]
    styled = next((value for value in fitting if not _BARE.fullmatch(value)), "")
    how = f"{shown(styled)}{_mark_note(fitting, mark)}" if styled else ""
    return Numbers(numbers, PLAIN, mark, unit, how)


def _by_one_mark(
    values: Sequence[str], decimal: str, counts: np.ndarray, read: Callable[[str, str], Any]
) -> tuple[list[Any], str]:
    """Return all values read with one decimal mark, None if that fails, and the mark.

    It is the mark `decimal`, or the other one, if it reads 99 % of the rows that the two read
    differently: a single "2,00" does not turn the separators of "66,144" into decimal commas.
    Otherwise, or if it alone reads all, it is `EITHER`.
    """
    first = [read(value, decimal) for value in values]
    if None not in first:
        return first, decimal
    other = DECIMAL_MARKS[decimal]
    second, either = ([read(value, mark) for value in values] for mark in (other, EITHER))
    differ = np.array([one != two for one, two in zip(first, second, strict=True)])
    reads = [np.array([one is not None for one in found]) for found in (first, second, either)]
    n_differ = counts[differ].sum()
    if not n_differ:
        return first, decimal
    shares = [counts[differ & fits].sum() / n_differ for fits in reads]
    if shares[0] >= CLEAR and shares[0] >= shares[2]:
        return first, decimal
    if shares[1] >= CLEAR and shares[1] >= shares[2]:
        return second, other
    return either, EITHER


def _most_common(items: Iterable[Any], counts: np.ndarray) -> list[Any]:
    """Return the different items but None, in descending order of their rows."""
    rows = Counter[Any]()
    for item, count in zip(items, counts.tolist(), strict=True):
        if item is not None:
            rows[item] += count
    return [item for item, _ in rows.most_common()]


def _mark_note(values: Sequence[str], mark: str) -> str:
    """Return a note on decimal commas; empty if there are none."""
    if mark == EITHER:
        return ", decimal points and commas"
    has_commas = mark == "," and any("," in value for value in values)
    return ", decimal comma" if has_commas else ""


# Text with more than digits: "72.1 kg", "<0.1", "0.196*", "7/10", "3h 12min", "31:05:09", "10-19".
# For a column that stays text, `looks_like` says what its values look like.


# Numbers with a limit, a unit, or a mark.

_WORD = r"(?:[°º]?[^\W\d_]+(?:\^?[23]|[²³])?\.?|[°º\"'\u2032\u2033%‰]|100 ?km)"
_UNIT = (
    rf"{_WORD}(?:[ /·*-]{{1,2}}{_WORD}){{0,3}}|/{_WORD}|(?:/|of|out of) ?\d+"
    rf"|[x\u00d7]? ?10[\^*]\d+(?: ?/ ?{_WORD})?"
)
_LIMITED = re.compile(
    rf"(?P<limit>[<>≤≥]=?|[~≈]|ca\.)?[{SPACES}]?(?P<body>.+?)[{SPACES}]?(?P<mark>\+|[*†‡§¶]+"
    r"|(?:or|and) (?:older|younger|over|under|up|above|below|more|less|fewer))?"
)
_MEASURED = re.compile(
    rf"(?P<number>[-+\u2212(€£¥$]{{0,2}}[\d.,'\u2019{SPACES}]*\d(?:[eE][+-]?\d+)?)"
    rf"(?P<space>[{SPACES}]?)(?P<unit>{_UNIT})"
)
LIMITS = ("<", ">", "≤", "≥", "<=", ">=")
_OUT_OF = re.compile(r"(?:/|of|out of) ?(\d+)")
_HALVES_OF_A_DAY = {"am", "pm", "a.m.", "p.m."}

# Units of one kind differ by a factor. Prefixes of bytes are decimal.
_PREFIXES = {
    **{"n": 1e-9, "µ": 1e-6, "μ": 1e-6, "m": 1e-3, "c": 1e-2, "d": 0.1, "": 1.0},
    **{"h": 1e2, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12},
}


def _kind(units: str, prefixes: str, **more: float) -> dict[str, float]:
    """Return the units of a kind, with each of the prefixes and without, and further units."""
    prefixed = {
        prefix + unit: _PREFIXES[prefix] for unit in units.split() for prefix in ("", *prefixes)
    }
    return prefixed | more


_KINDS = (
    _kind("g", "nµμmk", mcg=1e-6, t=1e6),
    _kind("m", "nµμmcdk"),
    _kind("l L", "µmcd"),
    {"mm2": 1e-6, "cm2": 1e-4, "m2": 1.0, "ha": 1e4, "km2": 1e6},
    _kind("W", "mkMG"),
    _kind("Wh", "kMG"),
    _kind("Hz", "kMG"),
    _kind("V", "mk"),
    _kind("A", "µm"),
    _kind("Pa", "hkM"),
    _kind("bar", "m"),
    _kind("B", "kMGT", KB=1e3),
)
# factors after a number, as in "€850K" and "€1.2M"
_MULTIPLES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "bn": 1e9}


class _Cell(NamedTuple):
    """A number and the text around it."""

    number: float
    currency: str  # or "%"
    unit: str
    glued: bool  # no space before the unit
    limit: str
    mark: str


def _read_cell(text: str, decimal: str) -> _Cell | None:
    """Return a number and the text around it, or None if the text is not a number."""
    found = _LIMITED.fullmatch(text) if len(text) <= LONGEST else None
    if found is None:
        return None
    around = found["limit"] or "", found["mark"] or ""
    plain = read_number(found["body"], decimal)
    if plain is not None and np.isfinite(plain[0]):
        return _Cell(*plain, "", False, *around)
    measured = _MEASURED.fullmatch(found["body"])
    if measured is None or measured["unit"].lower() in _HALVES_OF_A_DAY:
        return None
    plain = read_number(measured["number"], decimal)
    if plain is None or not np.isfinite(plain[0]):
        return None
    return _Cell(*plain, _unit_name(measured["unit"]), not measured["space"], *around)


def _unit_name(unit: str) -> str:
    """Return a unit in a canonical spelling: "years" becomes "year", "m²" becomes "m2"."""
    unit = unit.strip().removesuffix(".").replace("²", "2").replace("³", "3")
    unit = re.sub(r"\^(?=[23])", "", unit)
    return unit[:-1] if len(unit) > 2 and unit.endswith("s") and unit.isalpha() else unit


def _learn_measured(values: Sequence[str], decimal: str, counts: np.ndarray) -> Numbers | None:
    """Return quantities of one unit, or of units that a factor converts, or None."""
    cells, mark = _by_one_mark(values, decimal, counts, _read_cell)
    unit = _usual_unit(cells, counts)
    if unit is None:
        return None
    numbers = np.array([np.nan if cell is None else _converted(cell, unit) for cell in cells])
    read = np.flatnonzero(~np.isnan(numbers)).tolist()
    spellings = {cells[at].currency + cells[at].unit: values[at] for at in read}
    how = shown(values[read[0]])
    for at in read:
        cell = cells[at]
        if cell.limit or cell.mark or _OUT_OF.fullmatch(cell.unit):
            how = f"{shown(values[at])} as {numbers[at]:g}"
            break
    if len(spellings) > 1:
        several = " and ".join(map(shown, list(spellings.values())[:2]))
        how = f"{several}, in {unit or 'ones'}"
    how += _mark_note([values[at] for at in read], mark)
    return Numbers(numbers, QUANTITY, mark, unit, how)


def _usual_unit(cells: Sequence[_Cell | None], counts: np.ndarray) -> str | None:
    """Return the unit that reads most rows ("" for none), or None if there is none.

    If at most 10 % of the numbers have no unit, they have that of the others. If at most 10 % have
    one, these are no numbers of the column: "1560 cc" among numbers from 1.0 to 3.5. Between, the
    unit is a category, see `learn_units`. Several letters behind whole numbers, as in "3A" and
    "3B", are codes.
    """
    if _mostly_limits(cells, counts):
        return None
    read = [(cell, n) for cell, n in zip(cells, counts.tolist(), strict=True) if cell is not None]
    rows = Counter[tuple[str, str]]()
    for cell, n in read:
        rows[cell.currency, cell.unit] += n
    named = {own: n for own, n in rows.items() if own != ("", "")}
    currency, unit = max(named, key=named.__getitem__, default=("", ""))
    if any(own[0] or own[1] not in _MULTIPLES for own in named):
        share = sum(named.values()) / rows.total()
        if 1 - NEARLY_ALL < share < NEARLY_ALL:
            return None
        currency, unit = (currency, unit) if share >= NEARLY_ALL else ("", "")
    best, most = list[tuple[_Cell, int]](), 0
    for group in (*(kind.keys() for kind in (_MULTIPLES, *_KINDS) if unit in kind), {unit}):
        own = [(cell, n) for cell, n in read if cell.currency == currency and cell.unit in group]
        if (n_rows := sum(n for _, n in own)) > most:
            best, most = own, n_rows
    codes = len(best) < len(read) and _coded([cell for cell, _ in read if cell.unit])
    if codes or not best:
        return None
    return _one_unit([cell for cell, _ in best], np.array([n for _, n in best]))


def _one_unit(cells: list[_Cell], counts: np.ndarray) -> str | None:
    """Return the unit in which all cells can be read ("" for none), or None if there is none."""
    currency, units = cells[0].currency, {cell.unit for cell in cells}
    if units <= _MULTIPLES.keys() and (currency or len(units) > 1):
        return currency
    unit = _most_common((cell.unit for cell in cells), counts)[0]
    if len(units) > 1:
        return currency + unit
    numbers = [cell.number for cell in cells]
    if out_of := _OUT_OF.fullmatch(unit):
        most = int(out_of[1])
        if not 2 <= most <= 1000 or max(numbers) > most or min(numbers) < 0:
            return None  # it may be a month and a year, or a day and a month
    if _coded(cells) and differs(len(cells), int(counts.sum()), int(counts.sum())):
        return None  # "1017K" may be an identifier
    return currency + unit


def _coded(cells: Sequence[_Cell]) -> bool:
    """Return whether all cells are whole numbers with letters, such as "1017K" or "3A"."""
    return bool(cells) and all(
        cell.unit.isalpha()
        and (len(cell.unit) == 1 or cell.unit.isupper())
        and cell.glued
        and cell.number.is_integer()
        for cell in cells
    )


def learn_units(values: Sequence[str], decimal: str, counts: np.ndarray) -> Numbers | None:
    """Return quantities of up to 5 units between which no factor is known, or None.

    Each unit has at least 5 rows and 3 different numbers, unlike "1st class" and "2nd class".
    Having none counts as one.
    """
    cells, mark = _by_one_mark(values, decimal, counts, _read_cell)
    if _mostly_limits(cells, counts):
        return None
    different = defaultdict[str, set[float]](set)
    rows, first = Counter[str](), dict[str, str]()
    for value, cell, count in zip(values, cells, counts.tolist(), strict=True):
        if cell is not None:
            rows[own := cell.currency + cell.unit] += count
            different[own].add(cell.number)
            first.setdefault(own, value)
    often = sorted(own for own, n_rows in rows.items() if n_rows >= LEAST_ROWS)
    units = [own for own in often if own]
    named = [cell for cell in cells if cell is not None and cell.currency + cell.unit in units]
    if (
        len(often) < 2
        or not 1 <= len(units) <= MOST_UNITS
        or any(len(different[own]) < FEWEST_NUMBERS for own in often)
        or _coded(named)
    ):
        return None
    unit = "|".join(units)
    numbers = read_numbers(values, UNITS, mark, unit)
    how = " and ".join(shown(first[own]) for own in often[:2])
    return Numbers(numbers, UNITS, mark, unit, f"{how}, with the unit as a category")


def unit_of(value: str, decimal: str) -> str:
    """Return the unit of a quantity of several units."""
    cell = _read_cell(value, decimal)
    return "" if cell is None else cell.currency + cell.unit


def _read_in_units(value: str, decimal: str, unit: str) -> float:
    """Return a number in one of the units, joined by "|", or without one; else NaN."""
    cell = _read_cell(value, decimal)
    known = cell is not None and cell.currency + cell.unit in ("", *unit.split("|"))
    return cell.number if cell is not None and known else np.nan


def _mostly_limits(cells: Sequence[_Cell | None], counts: np.ndarray) -> bool:
    """Return whether more than half of the rows with a number only have a bound."""
    rows = [0, 0]
    for cell, count in zip(cells, counts.tolist(), strict=True):
        if cell is not None:
            rows[cell.limit in LIMITS] += count
    return rows[True] > rows[False]


def limits_note(values: Sequence[str], counts: np.ndarray, decimal: str) -> str | None:
    """Return the most frequent of the limits that keep a column as text, and a replacement.

    Return None if limits are not the reason.
    """
    if not any(value.startswith(LIMITS) for value in values):
        return None
    cells, _ = _by_one_mark(values, decimal, counts, _read_cell)
    # if all are limits, such as "<50" and ">=50", they are categories
    if all(cell.limit in LIMITS for cell in cells if cell) or not _mostly_limits(cells, counts):
        return None
    rows = {
        value: count
        for value, cell, count in zip(values, cells, counts.tolist(), strict=True)
        if cell and cell.limit in LIMITS
    }
    usual = max(rows, key=rows.__getitem__)
    number = usual.lstrip("".join(LIMITS) + SPACES)
    return f"{shown(usual)} as {shown(number)}"


def is_number(value: str) -> bool:
    """Return whether a text is a number without a unit, possibly with a limit, such as "<0.1"."""
    cells = (_read_cell(value, mark) for mark in DECIMAL_MARKS)
    return any(cell is not None and not cell.unit for cell in cells)


def _read_quantity(value: str, decimal: str, unit: str) -> float:
    """Return a number converted to a unit, or NaN if that is not possible."""
    cell = _read_cell(value, decimal)
    return np.nan if cell is None else _converted(cell, unit)


def _converted(cell: _Cell, unit: str) -> float:
    own = cell.currency + cell.unit
    if own == unit or (not own and unit not in _MULTIPLES):
        return cell.number
    to = unit.removeprefix(cell.currency)
    if unit == cell.currency and cell.unit in _MULTIPLES:
        return cell.number * _MULTIPLES[cell.unit]
    for kind in _KINDS:
        if cell.unit in kind and to in kind:
            return cell.number * kind[cell.unit] / kind[to]
    return np.nan


# Durations, in days, as those of data frames.

_DAY, _YEAR = 86400.0, 365.2425 * 86400
_LENGTHS = {
    "y|yr|yrs|year|years|jahr|jahre|an|ans": _YEAR,
    "mo|mos|month|months|monat|monate|mois": 365.2425 / 12 * 86400,
    "w|wk|wks|week|weeks|woche|wochen": 7 * _DAY,
    "d|day|days|tag|tage|jour|jours": _DAY,
    "h|hr|hrs|hour|hours|std|stunde|stunden|heure|heures": 3600.0,
    "m|min|mins|minute|minutes|minuten": 60.0,
    "s|sec|secs|second|seconds|sek|sekunde|sekunden": 1.0,
    "ms": 1e-3,
}
_SECONDS = {name: length for names, length in _LENGTHS.items() for name in names.split("|")}
_PART = re.compile(r"(\d+(?:[.,]\d+)?)\s?([^\W\d_]+)\.?(?:,? (?:and |und |et )?|,)?")
_CLOCK = re.compile(r"(?:(\d+) days?,? )?(\d+):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?")
_ISO = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_HOURS_FIRST, _MINUTES_FIRST = "h:min", "min:s"  # what two numbers with a colon mean


def _learn_durations(values: Sequence[str], decimal: str, counts: np.ndarray) -> Numbers | None:
    """Return durations, or None if there are none, or if their unit is unclear.

    Quantities, in a single unit, and times of day are tried before.
    """
    known = ~np.isnan(read_numbers(values, DURATION, decimal, _HOURS_FIRST))
    read = [values[at] for at in np.flatnonzero(known).tolist()]
    if not read:
        return None
    clocks = [_CLOCK.fullmatch(value) for value in read]
    with_seconds = {bool(clock[4]) for clock in clocks if clock}
    unit = _MINUTES_FIRST if len(with_seconds) == 2 else _HOURS_FIRST
    parts = [_PART.findall(value) for value in read]
    several = any(len(found) > 1 for found in parts) or any(map(_ISO.fullmatch, read))
    if not any(clocks) and not several:
        words = {word.lower() for found in parts for _, word in found}
        if words <= {"m", "d", "s", "y", "w"}:
            return None  # a single letter may be another unit
    how = shown(read[0])
    if unit == _MINUTES_FIRST:
        how += ", two numbers are minutes and seconds"
    elif all(clocks) and with_seconds == {False}:
        how += ", hours and minutes"
    return Numbers(read_numbers(values, DURATION, ".", unit), DURATION, ".", unit, how)


def _read_duration(value: str, decimal: str, unit: str) -> float:
    """Return a duration in days, or NaN if the text is not one."""
    sign = -1.0 if value.startswith(("-", "\u2212")) else 1.0
    text = value.lstrip("+-\u2212 ")
    if clock := _CLOCK.fullmatch(text):
        first, second = float(clock[2]), float(clock[3])
        third = float((clock[4] or "0").replace(",", "."))
        if clock[4] is None and unit == _MINUTES_FIRST:
            seconds = 60 * first + second
        else:
            seconds = 3600 * first + 60 * second + third
        return sign * (float(clock[1] or 0) + seconds / 86400)
    iso = _ISO.fullmatch(text)
    if iso and any(iso.groups()):
        days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        return sign * (days + hours / 24 + minutes / 1440 + seconds / 86400)
    seconds, end = 0.0, 0
    smallest = np.inf  # unit so far; units must decrease
    for part in _PART.finditer(text):
        size = _SECONDS.get(part[2].lower(), np.nan)
        if part.start() != end or not size < smallest:
            return np.nan
        seconds += float(part[1].replace(",", ".")) * size
        smallest, end = size, part.end()
    rest = text[end:]
    if smallest == 3600.0 and re.fullmatch(r"[0-5]\d", rest):  # as in "3h12"
        return sign * (seconds + 60 * float(rest)) / 86400
    return sign * seconds / 86400 if end and not rest else np.nan


# Ranges: the number is the middle, or the limit of an open range.

_NUMBER = r"[-+\u2212]?[€£¥$]?[\d.,]*\d[kKM]?"
_CLOSED = re.compile(
    rf"(?P<open>[\[(])?\s?(?P<low>{_NUMBER})"
    rf"(?:\s?(?:[-\u2013\u2014]|\.\.\.?|to|bis)\s?|(?P<comma>[,;]\s?))"
    rf"(?P<high>{_NUMBER})\s?(?P<unit>{_WORD}(?: {_WORD})?)?(?P<close>[\])])?"
)
_OPEN = re.compile(
    r"(?:(?P<before>[<>≤≥]=?|under|over|below|above|unter|über|(?i:at least|at most|up to"
    rf"|(?:less|more|fewer|younger|older) than))\s?)?(?P<number>{_NUMBER})\s?"
    r"(?P<after>\+|(?:and|or) (?:older|younger|over|under|up|more|less|fewer)|und mehr)?"
    rf"\s?(?P<unit>{_WORD}(?: {_WORD})?)?\s?(?P<end>\+)?"
)


class _Range(NamedTuple):
    """A range; in an open range or a single number, `low` and `high` are equal."""

    low: float
    high: float
    unit: str
    limited: bool


def _limit(text: str, decimal: str) -> float:
    """Return a limit such as "$10K", or NaN if the text is not one."""
    factor = _MULTIPLES.get(text[-1], 1.0)
    found = read_number(text if factor == 1.0 else text[:-1], decimal)
    return found[0] * factor if found else np.nan


def _range(text: str, decimal: str) -> _Range | None:
    """Return a range and its unit, or None if the text is not one."""
    if len(text) > LONGEST:
        return None
    found = _CLOSED.fullmatch(text)
    if found and bool(found["open"]) == bool(found["close"]):
        low, high = (_limit(found[end], decimal) for end in ("low", "high"))
        if (found["open"] or not found["comma"]) and low < high:
            return _Range(low, high, _unit_name(found["unit"] or ""), True)
    found = _OPEN.fullmatch(text)
    number = _limit(found["number"], decimal) if found else np.nan
    if found is None or np.isnan(number):
        return None
    limited = bool(found["before"] or found["after"] or found["end"])
    return _Range(number, number, _unit_name(found["unit"] or ""), limited)


def _read_middle(value: str, decimal: str, unit: str) -> float:
    """Return the middle of a range in a unit (or without one), or NaN if the text is none."""
    ends = _range(value, decimal)
    return (ends.low + ends.high) / 2 if ends and ends.unit in ("", unit) else np.nan


def _learn_ranges(values: Sequence[str], decimal: str, counts: np.ndarray) -> Numbers | None:
    """Return ranges that do not overlap and have, on average, at least two rows each.

    These are like bins and unlike codes. For other values, return None.
    """
    ends = [_range(value, decimal) for value in values]
    unit = [*_most_common(((one and one.unit) or None for one in ends), counts), ""][0]
    found = {at: one for at, one in enumerate(ends) if one and one.unit in ("", unit)}
    closed = sorted((low, high, at) for at, (low, high, *_) in found.items() if low < high)
    n_ranges = sum(one.limited for one in found.values())
    apart = all(before[1] <= after[0] for before, after in pairwise(closed))
    if len(closed) < 2 or 2 * n_ranges < len(found) or not apart:
        return None
    numbers = read_numbers(values, RANGE, decimal, unit)
    middles = {(low + high) / 2 for low, high, *_ in found.values()}
    if 2 * len(found) > counts[list(found)].sum() or len(middles) < len(found):
        return None
    example = shown(values[min(at for _, _, at in closed)])
    return Numbers(numbers, RANGE, decimal, unit, example)


# Reading all values of a column in the same way, once its form is known.

READERS = {
    PLAIN: _read_plain,
    QUANTITY: _read_quantity,
    DURATION: _read_duration,
    RANGE: _read_middle,
    UNITS: _read_in_units,
}


def read_numbers(values: Sequence[str], form: str, decimal: str, unit: str) -> np.ndarray:
    """Return a number for each value, read in a known form; NaN if that is not possible."""
    return np.array([READERS[form](value, decimal, unit) for value in values], dtype=float)


def have_other_mark(
    values: Sequence[str], counts: np.ndarray, form: str, decimal: str, unit: str
) -> bool:
    """Return whether new values of a column have not the decimal mark `decimal`, but the other one.

    No value needs `decimal`, and the other is needed by all that depend on the mark, or by at least
    two cells and a tenth of them: "2,633" beside "0,561" is no thousand, one "2,00" is an error.
    """
    first = read_numbers(values, form, decimal, unit)
    is_first = ~np.isnan(first)
    if is_first.all():
        return False
    second = read_numbers(values, form, DECIMAL_MARKS[decimal], unit)
    is_second = ~np.isnan(second)
    n_needed = counts[is_second & ~is_first].sum()
    n_differ = n_needed + counts[is_second & is_first & (first != second)].sum()
    needs_first = (is_first & ~is_second).any()
    return not needs_first and n_needed >= max(1, min(n_differ, max(2, n_differ / 10)))


# in the order in which they are preferred
QUANTITIES = (_learn_measured, _learn_durations, _learn_ranges)


# What an unread column looks like.

_MONTH = re.compile(r"(?:0?[1-9]|1[0-2])/(?:19|20)\d\d")
# 120/80, 30 x 40 cm, 5'11"
_PAIR = re.compile(rf"\d+(?:[.,]\d+)?\s?[/x\u00d7'\u2032]\s?\d+(?:[.,]\d+)?\s?(?:{_WORD})?")


def looks_like(values: Sequence[str], decimal: str) -> str | None:
    """Return what most values look like, with the remedy; None if they are words."""
    few = values[:SAMPLE]

    def is_closed(value: str) -> bool:
        ends = _range(value, decimal)
        return ends is not None and ends.low < ends.high

    if not few or 2 * sum(any(map(str.isdigit, value)) for value in few) < len(few):
        return None
    marks = {
        mark: [read_number(value, mark) is not None for value in few] for mark in DECIMAL_MARKS
    }
    if all(map(any, zip(*marks.values(), strict=True))) and not any(map(all, marks.values())):
        odd = next((value for value in few if read_number(value, EITHER) is None), None)
        if odd is not None:
            what = f"decimal points and commas in one column, {shown(odd)} may be either"
            return f"{what} (write one of them)"
    looks: dict[Callable[[str], Any], str] = {
        _MONTH.fullmatch: "months, such as {} (write them as 2024-02)",
        _PAIR.fullmatch: "two numbers in a cell, such as {} (give each a column)",
        is_closed: "ranges that overlap, or codes, such as {} (give each end a column)",
    }
    for fits, words in looks.items():
        fitting = [value for value in few if fits(value)]
        if 2 * len(fitting) > len(few):
            return words.format(shown(fitting[0]))
    cells = [
        _read_cell(value, decimal) or _read_cell(value, DECIMAL_MARKS[decimal]) for value in few
    ]
    read = [cell is not None and bool(cell.unit or cell.limit or cell.mark) for cell in cells]
    examples: dict[str, str] = {}
    for value, cell in zip(few, cells, strict=True):
        if cell is not None:
            examples.setdefault(cell.currency + cell.unit, value)
    if 2 * sum(read) <= len(few) or len(examples) > min(MOST_UNITS, len(few) / 2):
        return None
    if None in cells:
        what = f"numbers with a unit or a mark, but for {shown(few[cells.index(None)])}"
        return f"{what} (mend it, or name it and all other marks by --missing)"
    if len(examples) == 1:
        return None
    several = " and ".join(map(shown, list(examples.values())[:2]))
    if all(read):
        return f"numbers of several units, {several} (write them in one)"
    return f"numbers with and without a unit, {several} (write it in all)"


# Numbers that may stand for something else: codes of missing cells such as -999, and a
# spreadsheet's day numbers. They are reported but not changed, since only the author of the table
# knows their meaning.

_NINES = [int("9" * n_digits) for n_digits in range(2, 10)]
# Repeated nines, and the limits of integer types; -9 among positive numbers.
SENTINELS = np.array(
    [*_NINES, *(-nines for nines in _NINES), -9, -32768, -(2**31), 2**31 - 1, 1e20, -1e20],
    dtype=float,
)
EPOCH = datetime.date(1970, 1, 1).toordinal()
_DATES = (
    "0001-01-01 1800-01-01 1899-12-30 1899-12-31 1900-01-01 1901-01-01 1970-01-01 2099-12-31 "
    "2999-12-31 9999-01-01 9999-12-31"
)
DATE_CODES = np.array(
    [datetime.date.fromisoformat(date).toordinal() - EPOCH for date in _DATES.split()], dtype=float
)
DATE_WORDS = re.compile("dates?|datum|day|tag|jour|fecha|dob|birthday|birthdate|geburtsdatum")
FIRST_DAY, LAST_DAY = 20_000, 60_000  # of a spreadsheet: 1954 to 2064
SPREADSHEET = datetime.date(1899, 12, 30)


def sentinel_note(values: np.ndarray, *, dates: bool = False) -> str | None:
    """Return e.g. "-999 in 12 rows" for a number that may mark missing cells, or None.

    It is one of the usual codes, is the smallest or largest number of a column, and is farther from
    the other numbers than these are from each other.
    """
    codes = DATE_CODES if dates else SENTINELS
    values = np.floor(values) if dates else values
    values = values[np.isfinite(values)]
    for end in (values.min(initial=np.inf), values.max(initial=-np.inf)):
        rest = values[~np.isin(values, codes)] if end in codes else values[:0]
        if len(rest) == 0:
            continue
        low, high = rest.min(), rest.max()
        gap = low - end if end < low else end - high
        if gap > high - low > 0:
            code = datetime.date.fromordinal(int(end) + EPOCH) if dates else f"{end:.10g}"
            return f"{code} in {counted(int((values == end).sum()), 'row')}"
    return None


def day_number_note(name: str, low: float, high: float) -> str | None:
    """Return e.g. "45351 would be 2024-02-29" for numbers that may be a spreadsheet's days.

    Return None if they are out of range, or if the column is not named like a date.
    """
    if not FIRST_DAY <= low <= high <= LAST_DAY or not any(
        map(DATE_WORDS.fullmatch, words_of(name))
    ):
        return None
    return f"{low:g} would be {SPREADSHEET + datetime.timedelta(days=int(low))}"
