"""Text that is a number in one of the styles of spreadsheets: "12.3%", "€12.30", "1,234.5", "12,5", "(12.30)"."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

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
    thousands = (
        rf"[1-9]\d{{0,2}}(?P<group>[{MARKS[decimal]}{SPACES}'\u2019])\d{{3}}(?:(?P=group)\d{{3}})*(?:{mark}\d*)?"
    )
    # a whole number that begins with 0 is a code, such as a ZIP code
    digits = rf"{thousands}|(?:0|[1-9]\d*)|\d+{mark}\d*|{mark}\d+"
    number = rf"(?P<digits>(?:{digits})(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))"
    before, after = rf"(?P<before>{CURRENCY})?", rf"(?P<after>{CURRENCY}|%)?"
    bare = rf"(?P<sign>[+-])?[{SPACES}]?{before}[{SPACES}]?(?P<inner>[+-])?{number}[{SPACES}]?{after}"
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
    return (-number if {"-", "("} & set(signs) else number) / (100 if unit == "%" else 1) + 0.0, unit


def learn_numbers(values: list[str], decimal: str) -> tuple[np.ndarray, str, str] | None:
    """Return the numbers that all of some values are, the decimal mark and the unit; None where they do not agree.

    The other decimal mark is tried where the values are no numbers by the usual one, and then either.
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
