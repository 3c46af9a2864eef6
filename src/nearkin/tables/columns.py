"""Kinds of columns: a number, a date, categories, text, lists.

Each kind learns from text or rejects it, names its features, and writes them for any table that has
the column. A learned column is plain data, which a saved model can hold.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.sparse import issparse

from .._messages import counted, listed, quoted, shortened, shown
from .cells import (
    CONSTANT,
    EMPTY,
    EVEN,
    LONG,
    MAX_TEXT,
    NAMED,
    NEARLY_ALL,
    UNREAD,
    Cells,
    Text,
    differs,
    nearly_all_differ,
    says_id,
    useless_numbers,
)
from .gaps import LEAST_ROWS
from .numbers import (
    DECIMAL_MARKS,
    DURATION,
    EITHER,
    EPOCH,
    FEWEST_NUMBERS,
    MARK_NAMES,
    PLAIN,
    QUANTITIES,
    QUANTITY,
    RANGE,
    SAMPLE,
    SENTINELS,
    TRUTH,
    TRUTH_UNIT,
    UNITS,
    Numbers,
    day_number_note,
    have_other_mark,
    is_number,
    learn_numbers,
    learn_units,
    limits_note,
    looks_like,
    read_number,
    read_numbers,
    sentinel_note,
    unit_of,
)
from .text import Words, indicators, items_of, separator_of

NUMBER = re.compile(r"[+-]?\d+(\.0*)?")
CODE = re.compile(r"0\d+")  # such as a ZIP code
# Share of the filled cells that have to be numbers or dates for the column to be that, with words
# among them. On drawn tables (shares from 0.1 to 0.9, 4 or 30 words) and in folds of the training
# rows of `wild/`, held-out scores of this reading are nowhere worse than those of a category: log
# loss .49 / .51 at 0.1, .51 / .60 at 0.5, .50 / .66 at 0.9, R2 .925 / .895
# (`benchmarks/choices/mixed_cells.py`). So one share is enough; it is one half, since with fewer
# the column is words.
LEAST_READ = 0.5
MANY = 1000  # different values, from which on a sample shows which readings are worth trying
PROBED = 500  # rows in that sample
WORDS = "words"  # in names: "mileage (words)"
MISSING = "(missing)"
DAYS, FREQUENCY = "days since 1970", "frequency"  # in names: "day (days since 1970)"
# all of them: with marks given by the user, the usual marks of missing cells are not used
BY_MISSING = "list all marks in --missing or missing_values"
SENTINEL = f"may mark missing cells (if so, {BY_MISSING})"
MOSTLY_LIMITS = (
    "read as text because more than half of the filled cells are limits (write numbers alone)"
)
MARKS_KEPT = f"marks of missing cells, kept as words (for gaps, {BY_MISSING})"
MAX_UNKNOWN = 60  # characters of new values in a remark
FEW = 100  # values of a column, each of which gets an indicator
# Rows in which one of many values occurs, to get an indicator. With 150, 300 and 900 drawn stores
# in 1,500 rows, each with an effect, the log loss of NCA is .354, .389, .548; with 3 rows .354,
# .409, .619; with cross-fitted target statistics instead of indicators .361, .408, .531.
REPEATED = 2
MOST_INDICATORS = 2**27  # cells of the indicators of one column
DAY_NUMBERS = "may be day numbers of a spreadsheet (write them as dates)"
READ_AS = {
    PLAIN: "read as numbers",
    QUANTITY: "read as numbers",
    DURATION: "read as durations, in days",
    RANGE: "read as ranges, each by its middle",
    UNITS: "read as numbers of several units",
}
# What spreadsheets and programs write in place of a number, compared in lower case. The last two
# lines abbreviate: keine Angabe, nicht verfügbar, nicht bekannt, entfällt, ohne Angabe; non
# disponible, non communiqué, non renseigné, sans objet; sin datos, no disponible.
_MARKS = (
    "na|n/a|n.a.|nan|-nan|null|none|nil|<na>|?|-|--|.|..|\u2013|\u2014|"
    "#n/a|#na|#n/a n/a|#div/0!|#value!|#ref!|#name?|#num!|#null!|"
    "-1.#ind|1.#ind|-1.#qnan|1.#qnan|"
    "k.a.|k. a.|n.v.|n. v.|n.b.|n. b.|entf.|o.a.|o. a.|keine angabe|fehlt|"
    "n.d.|n. d.|n/d|nd|n.c.|n.r.|s.o.|s/o|s/d|s.d.|manquant"
)
MARKS_OF_MISSING = set(_MARKS.split("|"))


@dataclass(frozen=True)
class Rules:
    """How cells are read; the parameters of `TableEncoder`."""

    missing_values: tuple[str, ...] | None = None
    max_categories: int = 1000
    decimal: str = "."
    drop_identifiers: bool = True
    strict: bool = False

    @property
    def missing_numbers(self) -> list[float]:
        """Return the missing-value marks that are numbers."""
        found = []
        for text in self.missing_values or ():
            with suppress(ValueError):
                found.append(float(text))
        return found

    def cleaned(self, text: Text, *, numeric: bool) -> Text:
        """Return text stripped of surrounding spaces.

        A cell is missing if it is empty or a mark in `missing_values`. If none were given, the
        usual marks count in columns of numbers and dates (`numeric`).
        """
        missing = {"", *(self.missing_values or ())}
        marks = MARKS_OF_MISSING if numeric and self.missing_values is None else set[str]()
        stripped = [value.strip() for value in text.values]
        kept = [None if value in missing or value.lower() in marks else value for value in stripped]
        return text if kept == list(text.values) else text.replaced(kept)


DEFAULT_RULES = Rules()
Given = np.ndarray | Text  # the cells from which a column is written


class RejectColumn(ValueError):  # noqa: N818 - nobody's error
    """The text of a column does not fit a kind of column."""


class Written(NamedTuple):
    """What was found while the cells of a column were written.

    Attributes
    ----------
    unknown : str
        The values of a category not seen in training, for a remark; "" if there are none.
    all_new : bool
        Whether none of the values was seen in training.
    unread : ndarray of int
        The rows whose cell does not fit what was learned.
    """

    unknown: str = ""
    all_new: bool = False
    unread: np.ndarray = np.empty(0, dtype=int)


@dataclass(frozen=True)
class Learned:
    """What a kind of column has learned from text.

    Attributes
    ----------
    column : Column or None
    numbers : ndarray of shape (n,) or (0,)
        For columns of numbers and dates, the value of every row, NaN for missing cells.
    how : str
        An example of the values and how it was read; "" for plain numbers.
    notes : list of (what, item)
        Remarks on the column.
    reason : str
        Why there is no column, if there is none.
    """

    column: Column | None
    numbers: np.ndarray = field(default_factory=lambda: np.empty(0))
    how: str = ""
    notes: Sequence[tuple[str, str]] = ()
    reason: str = ""


class Feature(NamedTuple):
    """A feature of encoded rows.

    Attributes
    ----------
    name : str
    column : int
        The index of its column in the table.
    level : str or None
        The value of a category that it indicates by 1 or 0; None for a number.
    cycle : {"year", "week", "day"} or None
        The circle, for the sine or the cosine of a date.
    is_word : bool
        Whether it is one of the numbers that text becomes, which mean something only together.
    of_many : bool
        Whether other values of the category have no indicator, as rows rarely have them.
    """

    name: str
    column: int = 0
    level: str | None = None
    cycle: str | None = None
    is_word: bool = False
    of_many: bool = False

    @property
    def is_number(self) -> bool:
        """Return whether it is a number on its own."""
        return not (self.is_level or self.is_word)

    @property
    def is_level(self) -> bool:
        """Return whether it indicates a value of a category."""
        return self.level is not None

    @property
    def column_name(self) -> str:
        """Return the name of the column if the feature stands for it, else that of the feature.

        A category, words, and the days of a date stand for their column.
        """
        if self.is_word:
            return self.name.rpartition(" (")[0]
        if self.is_level:
            return self.name.removesuffix(f"={self.level}")
        return self.name.removesuffix(f" ({FREQUENCY})").removesuffix(f" ({DAYS})")


def places_by_column(
    features: Sequence[Feature], chosen: Callable[[Feature], bool]
) -> list[list[int]]:
    """Return the places of some features, those of each column together."""
    places = defaultdict[int, list[int]](list)
    for at, feature in enumerate(features):
        if chosen(feature):
            places[feature.column].append(at)
    return list(places.values())


def of_text(feature: Feature) -> bool:
    """Return whether a feature is one of many of a text."""
    return feature.is_word or feature.of_many


@dataclass(frozen=True)
class Column:
    """A column that is kept."""

    kind: ClassVar[str]
    may_miss: ClassVar[bool] = False  # its first feature is NaN for a missing cell
    ordered: ClassVar[bool] = True
    name: str

    @property
    def features(self) -> list[Feature]:
        """Return the features of the column, as if it were the first of a table."""
        return [Feature(self.name)]

    @property
    def names(self) -> list[str]:
        """Return the names of the features."""
        return [feature.name for feature in self.features]

    def scalars(self, given: Given) -> np.ndarray:
        """Return a number for each row; unless `ordered`, numbers only distinguish values."""
        raise NotImplementedError

    def write(self, out: np.ndarray, given: Given) -> Written:
        """Write the features of all rows of a column into `out`, zeros of shape (n, p')."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the state, which JSON can hold."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class ReadColumn(Column):
    """Numbers or dates, and words among them.

    A cell that cannot be read is a missing one. If it holds one of the `words`, which occurred in
    at least 5 rows of `fit`, their indicators say so.
    """

    words: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def holds(self) -> str:
        """Return what the cells are, for messages."""
        raise NotImplementedError

    def misfits(self, n_cells: int) -> str:
        """Return e.g. "3 cells are not numbers", the start of a remark."""
        what = (
            f"are not {self.holds}"
            if n_cells > 1
            else re.sub(r"^(\w+)s", r"is not a \1", self.holds)
        )
        return f"{self.name}: {counted(n_cells, 'cell')} {what}"

    @property
    def takes_numbers(self) -> bool:
        """Return whether numbers that are no text can be taken as they are."""
        return False

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the words that have an indicator."""
        return self.words

    @property
    def _of_levels(self) -> list[Feature]:
        """Return their indicators."""
        return [Feature(f"{self.name}={level}", level=level) for level in self.levels]

    def level_of(self, value: str, is_read: bool) -> str:
        """Return the word of a cell that may have an indicator."""
        return "" if is_read else value

    def in_form_of(self, given: Given) -> tuple[Self, str] | None:
        """Return the column with the form in which new cells are written, and what this is; None if
        it is the one that was learned, or unknown.
        """
        raise NotImplementedError

    def _read(self, values: list[str]) -> np.ndarray:
        """Return what each text is read as, shape (n,) or (n, q), not finite if that fails."""
        raise NotImplementedError

    def _features(self, read: np.ndarray) -> np.ndarray:
        """Return the features without those of words, given what each row is read as, (n, q)."""
        return read

    def _rows(self, given: Given) -> np.ndarray:
        """Return what each row is read as, NaN if missing or unread, shape (n, q)."""
        if not isinstance(given, Text):
            return (given if self.takes_numbers else np.full_like(given, np.nan))[:, None]
        read = self._read(list(given.values))
        read = read[:, None] if read.ndim == 1 else read
        read = np.where(np.isfinite(read).all(axis=1, keepdims=True), read, np.nan)
        return np.vstack([read, np.full(read.shape[1], np.nan)])[given.codes]

    def scalars(self, given: Given) -> np.ndarray:
        """Return the numbers, for dates the days or the time of day."""
        return self._rows(given)[:, 0]

    def write(self, out: np.ndarray, given: Given) -> Written:
        """Write the numbers or dates, and the indicators of words."""
        read = self._rows(given)
        features = self._features(read)
        out[:, : features.shape[1]] = features
        known = ~np.isnan(read[:, 0])
        if not isinstance(given, Text):
            return Written(unread=np.flatnonzero(~known & ~np.isnan(given)))
        is_read = np.zeros(len(given.values), dtype=bool)
        is_read[given.codes[known]] = True
        place = {level: features.shape[1] + at for at, level in enumerate(self.levels)}
        levels = map(self.level_of, given.values, is_read.tolist())
        of_value = [place.get(level, -1) for level in levels]
        places = given.spread(np.array(of_value, dtype=int), -1)
        rows = np.flatnonzero(places >= 0)
        out[rows, places[rows]] = 1
        return Written(unread=np.flatnonzero(~known & (given.codes >= 0) & (places < 0)))


@dataclass(frozen=True)
class NumberColumn(ReadColumn):
    """Numbers, as they are.

    Text is read with a decimal mark and a unit: "%", a currency, or "" for none. Text in one of
    `FORMS` is read by the rules of that form. Of several units, joined by "|", each has an
    indicator.
    """

    kind, may_miss = "number", True
    decimal: str = "."
    unit: str = ""
    plain: bool = False  # a number originally, not text
    form: str = PLAIN  # or one of `FORMS`

    @classmethod
    def learn(
        cls,
        name: str,
        text: Text,
        rules: Rules,
        learn: Callable[..., Numbers | None] = learn_numbers,
    ) -> Learned:
        """Learn text that has a number in some rows.

        The numbers have one spreadsheet format or, if learned by one of `QUANTITIES`, are
        quantities with a unit, durations or ranges.
        """
        found = learn(text.values, rules.decimal, text.counts)
        if found is None:
            raise RejectColumn
        has_unit = found.form in (PLAIN, QUANTITY) and found.unit not in ("", TRUTH_UNIT)
        if (
            rules.strict
            and has_unit
            and not all(unit_of(one, found.decimal) for one in text.values)
        ):
            raise RejectColumn
        column = cls(name, found.decimal, found.unit, form=found.form)
        notes = [(READ_AS[found.form], f"{name} ({found.how})")] if found.how else []
        return Learned(column, text.spread(found.numbers, np.nan), found.how, notes)

    @property
    def takes_numbers(self) -> bool:
        """Return whether numbers need no unit."""
        return self.form != DURATION

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the units, if there are several, and the words."""
        return (*(self.unit.split("|") if self.form == UNITS else ()), *self.words)

    def level_of(self, value: str, is_read: bool) -> str:
        """Return the unit of a number, if there are several; otherwise the word of a cell."""
        if is_read and self.form == UNITS:
            return unit_of(value, self.decimal)
        return super().level_of(value, is_read)

    @property
    def features(self) -> list[Feature]:
        """Return e.g. "mileage" and "mileage=unknown"."""
        return [Feature(self.name), *self._of_levels]

    @property
    def holds(self) -> str:
        """Return e.g. "numbers in 'kg'"."""
        marks = ["a decimal comma"] * (self.decimal == ",")
        marks += [repr(self.unit)] * (self.unit not in ("", TRUTH_UNIT))
        what = f"numbers with {' and '.join(marks)}" if marks else "numbers"
        if self.form in (QUANTITY, UNITS):
            what = f"numbers in {self.unit.replace('|', ' or ')!r}" if self.unit else "numbers"
        elif self.form:
            what = f"{self.form}s"
        return what + " whose decimal mark is clear" * (self.decimal == EITHER)

    def misses_mark_of(self, given: Given) -> bool:
        """Return whether new cells have the other decimal mark."""
        if not isinstance(given, Text) or self.decimal == EITHER:
            return False
        return have_other_mark(given.values, given.counts, self.form, self.decimal, self.unit)

    def in_form_of(self, given: Given) -> tuple[Self, str] | None:
        """Return the column with the decimal mark of new cells."""
        if not self.misses_mark_of(given):
            return None
        mark = DECIMAL_MARKS[self.decimal]
        return replace(self, decimal=mark), f"decimal {MARK_NAMES[mark]}"

    def _read(self, values: list[str]) -> np.ndarray:
        return read_numbers(values, self.form, self.decimal, self.unit)


# Text that is a date, a date and time, or a time of day becomes days, and positions in the year,
# the week and the day.

TIME = (
    r"(?P<H>\d{1,2}):(?P<M>\d{2})(?::(?P<S>\d{2}(?:[.,]\d+)?))?(?:\s?(?P<half>[aApP])\.?[mM]\.?)?"
)
ZONE = r"(?:\s?(?P<zone>Z|UTC|GMT|(?P<side>[+-])(?P<zone_H>\d{2})(?::?(?P<zone_M>\d{2}))?))?"
YEAR = r"(?P<y>\d{4}|\d{2})"
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = rf"(?P<m>(?i:{'|'.join(MONTHS)})[a-z]*)\.?"
YEAR_FIRST, DAY_FIRST, MONTH_FIRST = "year first", "day first", "month first"
DATES = {
    YEAR_FIRST: r"(?P<y>\d{4})(?P<sep>[-/.])(?P<m>\d{1,2})(?:(?P=sep)(?P<d>\d{1,2}))?",
    DAY_FIRST: rf"(?P<d>\d{{1,2}})(?P<sep>[-/.])(?P<m>\d{{1,2}})(?P=sep){YEAR}",
    MONTH_FIRST: rf"(?P<m>\d{{1,2}})(?P<sep>[-/.])(?P<d>\d{{1,2}})(?P=sep){YEAR}",
    "day, month, year": rf"(?P<d>\d{{1,2}})\.?[- ]{MONTH},?[- ]{YEAR}",
    "month, day, year": rf"{MONTH} (?P<d>\d{{1,2}}),? {YEAR}",
}
YEAR_AT_FRONT = re.compile(rf"{DATES[YEAR_FIRST]}(?!\d)")
TIME_OF_DAY = "time of day"
LAYOUTS = (*DATES, TIME_OF_DAY)
CYCLES = {"year": 365.2425, "week": 7.0, "day": 1.0}  # days
YEARLY_FROM = 60  # minimum span of the dates, in days
WEEKLY_FROM = 5  # minimum number of weekdays that occur
LONGEST_DATE = 60  # maximum number of characters


def read_days(values: list[str], layout: str) -> np.ndarray:
    """Return the days since 1970 for each value, in UTC and by its own clock, shape (n, 2).

    Other text gives NaN. A date with the year first, which is unambiguous, is read in every layout
    of dates. Each distinct day and time of day is parsed once.
    """
    day, time = cache(lambda text: _day(text, layout)), cache(_time)
    clock, ahead = np.full(len(values), np.nan), np.zeros(len(values))
    for row, value in enumerate(values):
        hours, start = value.find(":"), len(value) + 1
        if hours > 0:
            start = 1 + max(value.rfind(" ", 0, hours), value.rfind("T", 0, hours))
        part, ahead[row] = time(value[start:])
        clock[row] = part + day(value[: max(start - 1, 0)].removesuffix(","))
    return np.column_stack([clock - ahead, clock])


def _day(text: str, layout: str) -> float:
    """Return the days since 1970; 0 for a time of day, NaN if the text is no date of the layout."""
    if layout == TIME_OF_DAY:
        return np.nan if text else 0
    found = re.fullmatch(DATES[layout], text) or re.fullmatch(DATES[YEAR_FIRST], text)
    if found is None:
        return np.nan
    year, month = int(found["y"]), found["m"]
    if len(found["y"]) == 2:
        year += 1900 if year >= 69 else 2000  # as in POSIX
    number = int(month) if month.isdigit() else 1 + MONTHS.index(month[:3].lower())
    try:
        return datetime.date(year, number, int(found["d"] or 1)).toordinal() - EPOCH
    except ValueError:
        return np.nan


def _time(text: str) -> tuple[float, float]:
    """Return a time as a fraction of the day, or NaN, and the offset of its zone from UTC."""
    if not text:
        return 0.0, 0.0
    found = re.fullmatch(TIME + ZONE, text)
    if found is None:
        return np.nan, 0.0
    hours, minutes = int(found["H"]), int(found["M"])
    seconds = float((found["S"] or "0").replace(",", "."))
    if found["half"]:
        hours = hours % 12 + (12 if found["half"] in "pP" else 0) if 1 <= hours <= 12 else 24
    ahead = (int(found["zone_H"] or 0) + int(found["zone_M"] or 0) / 60) / 24
    exists = hours < 24 and minutes < 60 and seconds < 61
    day = (hours + minutes / 60 + seconds / 3600) / 24 if exists else np.nan
    return day, -ahead if found["side"] == "-" else ahead


def circular(days: np.ndarray, cycle: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the sine and cosine of the position on a circle, rounded.

    Due to the rounding, the same day of different weeks has the same position.
    """
    angle = 2 * np.pi * days / CYCLES[cycle]
    return np.sin(angle).round(9), np.cos(angle).round(9)


@dataclass(frozen=True)
class DateColumn(ReadColumn):
    """Dates: days since 1970 (except for times of day), and sine and cosine on circles.

    For a missing date, sine and cosine are 0.
    """

    kind = "date"
    layout: str
    cycles: tuple[str, ...]

    @classmethod
    def learn(cls, name: str, text: Text, rules: Rules) -> Learned:
        """Learn text that is a date in some rows, in one layout or with the year first.

        The layout is that which reads most rows. If both orders of day and month do, slashes have
        the month first (the day, among numbers with a decimal comma); points and hyphens have the
        day first.
        """
        values, fitting, most = list(text.values), dict[str, np.ndarray](), 0
        for layout in LAYOUTS:
            days = read_days(values, layout)
            n_rows = int(text.counts[np.isfinite(days[:, 0])].sum())
            if n_rows > most:
                fitting, most = {}, n_rows
            if n_rows == most > 0:
                fitting[layout] = days
            if most == text.counts.sum() and layout != DAY_FIRST:
                break  # only of that, another layout may fit all rows, too
        if not fitting or (rules.strict and most < text.counts.sum()):
            raise RejectColumn
        layout = next(iter(fitting))
        known = np.isfinite(fitting[layout][:, 0])
        dated = [value for value, is_date in zip(values, known.tolist(), strict=True) if is_date]
        how = f", {layout}" * layout.endswith("first")
        if layout == DAY_FIRST and MONTH_FIRST in fitting:
            layout = MONTH_FIRST if "/" in dated[0] and rules.decimal == "." else DAY_FIRST
            known = np.isfinite(fitting[layout][:, 0])
            how = f", {layout}"
            if not np.array_equal(fitting[DAY_FIRST], fitting[MONTH_FIRST], equal_nan=True):
                how += ", though the other order would fit as well"
        days, clock = fitting[layout].T
        clock = clock[known]
        what, cycles = "read as times of day", ["day"]
        if layout != TIME_OF_DAY:
            dates = np.floor(clock).astype(int).astype("M8[D]")
            # the weekdays of the first days of months carry no information
            firsts = (dates.astype("M8[M]").astype("M8[D]") == dates).all()
            several = len(np.unique(dates.astype(int) % 7)) >= WEEKLY_FROM
            needed = np.ptp(clock) > YEARLY_FROM, several and not firsts, np.ptp(clock % 1) > 1e-9
            what = "read as dates"
            cycles = [cycle for cycle, needs in zip(CYCLES, needed, strict=True) if needs]
        iso = list(map(bool, map(YEAR_AT_FRONT.match, dated)))
        other = layout != YEAR_FIRST and any(iso)
        how = f"{shown(dated[iso.index(False) if other else 0])}{how}"
        if other:  # a date with the year first is read in every layout
            how += f"; {shown(dated[iso.index(True)])}, {YEAR_FIRST}"
        column = cls(name, layout, tuple(cycles))
        return Learned(column, text.spread(days, np.nan), how, [(what, f"{name} ({how})")])

    @property
    def may_miss(self) -> bool:  # type: ignore[override]
        """Return whether it has days, which are NaN for missing cells."""
        return self.layout != TIME_OF_DAY

    @property
    def features(self) -> list[Feature]:
        """Return e.g. "visit (days since 1970)", "visit (year, sin)", "visit (year, cos)"."""
        days = [Feature(f"{self.name} ({DAYS})")] if self.may_miss else []
        circles = [
            Feature(f"{self.name} ({cycle}, {part})", cycle=cycle)
            for cycle in self.cycles
            for part in ("sin", "cos")
        ]
        return [*days, *circles, *self._of_levels]

    @property
    def holds(self) -> str:
        """Return e.g. "dates (year first)"."""
        return f"dates ({self.layout})" if self.layout.endswith("first") else "dates"

    def in_form_of(self, given: Given) -> tuple[Self, str] | None:
        """Return the column with the layout that reads most of new cells.

        Slashes between numbers that may be days as well as months are read in no other layout.
        """
        if not isinstance(given, Text) or not self.may_miss:
            return None
        values = list(given.values)
        n_rows = {
            layout: given.counts[np.isfinite(read_days(values, layout)[:, 0])].sum()
            for layout in DATES
        }
        layout = max(n_rows, key=n_rows.__getitem__)
        either = n_rows[DAY_FIRST] == n_rows[MONTH_FIRST] == n_rows[layout]
        if n_rows[layout] <= max(n_rows[self.layout], given.counts.sum() / 2):
            return None
        if either and any("/" in value for value in values):
            return None
        column = replace(self, layout=layout)
        return column, column.holds

    def _read(self, values: list[str]) -> np.ndarray:
        """Return the days in UTC and in local time."""
        return read_days(values, self.layout)

    def _features(self, read: np.ndarray) -> np.ndarray:
        """Return the days, and sine and cosine on each circle."""
        days, clock = np.broadcast_to(read.T, (2, len(read)))
        circles = [np.nan_to_num(part) for cycle in self.cycles for part in circular(clock, cycle)]
        return np.column_stack([days, *circles] if self.may_miss else circles)


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Categories, sorted: an indicator of each, and one of missing cells if there were any."""

    kind, ordered = "category", False
    values: tuple[str, ...]
    missing: bool = False

    @classmethod
    def learn(cls, name: str, text: Text, rules: Rules) -> Learned:
        """Learn categories, lists, or text that has too many values; any text fits."""
        # numbers get here if they have a categorical type, or different units
        if all(read_number(value) is not None for value in text.values):
            text = text.replaced(map(without_decimals, text.values))
        n_values, has_missing = len(text.values), text.n_missing > 0
        if n_values + has_missing <= 1:
            return Learned(None, reason=CONSTANT if n_values else EMPTY)
        notes, is_numeric = list[tuple[str, str]](), False
        if not text.is_category:
            notes, is_numeric = _misfit(name, rules.cleaned(text, numeric=True), rules.decimal)
            if not notes and (lists := ListColumn.learned(name, text, rules)):
                return lists
        limit = rules.max_categories if text.is_category else min(FEW, rules.max_categories)
        words, reason = _words_of(text, limit, is_numeric, rules.drop_identifiers)
        is_category = words is None and n_values <= limit
        values = text.values if is_category else _frequent(text, rules.max_categories)
        if reason or (words is None and not values):
            return Learned(None, notes=notes, reason=reason or EVEN)
        notes += _category_notes(name, text, rules)
        if is_category:
            notes.append(("one-hot encoded", f"{name} ({counted(n_values, 'value')})"))
            return Learned(CategoryColumn(name, tuple(sorted(values)), has_missing), notes=notes)
        if words is not None:
            notes.append(("encoded by its words", f"{name} ({counted(words.width, 'number')})"))
        if values:
            of_all = f"{name} ({len(values):,} of {n_values:,} values)"
            notes.append(("one-hot encoded where several rows share a value", of_all))
        return Learned(TextColumn(name, tuple(sorted(values)), has_missing, words), notes=notes)

    @property
    def features(self) -> list[Feature]:
        """Return e.g. "colour=red"."""
        values = self.values + (MISSING,) * self.missing
        return [Feature(f"{self.name}={value}", level=value) for value in values]

    def write(self, out: np.ndarray, given: Given) -> Written:
        """Write the indicators."""
        text = self.text(given)
        known = {value: place for place, value in enumerate(self.values)}
        places = np.array([known.get(value, -1) for value in text.values], dtype=int)
        self._write(out, text, places)
        new = places < 0
        if not new.any():
            return Written()
        names = sorted(value for value, is_new in zip(text.values, new, strict=True) if is_new)
        n_rows = counted(int(text.counts[new].sum()), "row")
        folded = {value.casefold(): value for value in self.values}
        close = [folded.get(name.casefold()) for name in names]
        named = [
            shown(name) + f" (learned as {shown(other)})" * (other is not None)
            for name, other in zip(names, close, strict=True)
        ]
        values = listed(named, 3, MAX_UNKNOWN)
        return Written(f"{values} in {shortened(self.name)} ({n_rows})", bool(new.all()))

    def _write(self, out: np.ndarray, text: Text, places: np.ndarray) -> None:
        """Write the features of the values, given their positions among the known ones (or -1)."""
        codes = text.spread(places, len(self.values) if self.missing else -1)
        rows = np.flatnonzero(codes >= 0)
        out[rows, codes[rows]] = 1

    def scalars(self, given: Given) -> np.ndarray:
        """Return the positions of the values among those of the given cells."""
        return self.text(given).codes

    def text(self, given: Given) -> Text:
        """Return the column as text; whole numbers have no decimals."""
        given = as_text(given)
        if all(map(NUMBER.fullmatch, self.values)):
            return given.replaced(map(without_decimals, given.values))
        return given


def _words_of(
    text: Text, limit: int, is_numeric: bool, drops_identifiers: bool
) -> tuple[Words | None, str]:
    """Return the words of text that is no category of up to `limit` values, if it has any.

    And return why the column is left out, "" if it is not.
    """
    n_rows, n_values = len(text.codes), len(text.values)
    reason = None if text.is_category else differs(n_values, n_rows - text.n_missing, n_rows)
    is_long = max(map(len, text.values)) > MAX_TEXT
    if not (reason or is_long or n_values > limit):
        return None, ""
    words = Words.learn(text.values, text.shares)
    if words is None and reason and drops_identifiers:
        return None, UNREAD if is_numeric else reason
    return words, LONG if words is None and is_long else ""


def _category_notes(name: str, text: Text, rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield remarks on the values of categories or text."""
    if len({value.lower() for value in text.values}) < len(text.values):
        yield "values that differ in case alone are kept apart", name
    if text.n_missing:
        missing = f"{name} ({counted(text.n_missing, 'row')})"
        yield "missing values, a category of their own", missing
    if marks := _marks_kept(text, rules):
        yield MARKS_KEPT, f"{name} ({quoted(marks, 3)})"


def _frequent(text: Text, most: int) -> list[str]:
    """Return the most frequent values that at least two rows have, and that are not long.

    Of values that occur equally often, the first in alphabetical order are taken.
    """
    ranked = sorted(
        (-count, value)
        for value, count in zip(text.values, text.counts.tolist(), strict=True)
        if count >= REPEATED and len(value) <= MAX_TEXT
    )
    most = min(most, max(FEW, MOST_INDICATORS // len(text.codes)))
    return [value for _, value in ranked[:most]]


@dataclass(frozen=True)
class TextColumn(CategoryColumn):
    """Text of many values: an indicator of each of the most frequent ones, and its words.

    Rarer and new values have no indicator. A missing cell has no words.
    """

    kind = "text"
    ngrams: Words | None = None

    @property
    def features(self) -> list[Feature]:
        """Return e.g. "title=Mr", "title (words 1)"."""
        width = 0 if self.ngrams is None else self.ngrams.width
        numbers = (f"{self.name} (words {number})" for number in range(1, width + 1))
        return [
            *(feature._replace(of_many=True) for feature in super().features),
            *(Feature(number, is_word=True) for number in numbers),
        ]

    def write(self, out: np.ndarray, given: Given) -> Written:
        """Write the indicators and the words."""
        n_levels = len(self.values) + self.missing
        super().write(out[:, :n_levels], given)
        if self.ngrams is not None:
            text = self.text(given)
            numbers = self.ngrams.transform(text.values)
            out[:, n_levels:] = np.vstack([numbers, np.zeros(self.ngrams.width)])[text.codes]
        return Written()


@dataclass(frozen=True)
class ListColumn(Column):
    """Lists: an indicator of each item. A missing cell is an empty list."""

    kind, ordered = "list", False
    items: tuple[str, ...]
    separator: str

    @classmethod
    def learned(cls, name: str, text: Text, rules: Rules) -> Learned | None:
        """Learn the items that occur in at least 5 rows; None if the text is not lists."""
        separator = separator_of(text.values)
        if separator is None:
            return None
        counts = Counter[str]()
        for value, count in zip(text.values, text.counts.tolist(), strict=True):
            counts.update(dict.fromkeys(items_of(value, separator), count))
        ranked = sorted((-count, item) for item, count in counts.items() if count >= LEAST_ROWS)
        if not ranked:
            return None
        items = tuple(sorted(item for _, item in ranked[: rules.max_categories]))
        notes = [("read as lists", f"{name} ({counted(len(items), 'item')})")]
        return Learned(cls(name, items, separator), notes=notes)

    @property
    def features(self) -> list[Feature]:
        """Return e.g. "extras has garage"."""
        return [Feature(f"{self.name} has {item}") for item in self.items]

    def write(self, out: np.ndarray, given: Given) -> Written:
        """Write the indicators."""
        text = as_text(given)
        found = indicators(text.values, self.items, self.separator)
        out[:] = np.vstack([found, np.zeros(len(self.items))])[text.codes]
        return Written()

    def scalars(self, given: Given) -> np.ndarray:
        """Return the positions of the lists among those of the given cells."""
        return as_text(given).codes


@dataclass(frozen=True)
class FrequencyColumn(CategoryColumn):
    """The share of the rows of `fit` that have a category, in models saved by version 0.3."""

    kind = "frequency"
    shares: tuple[float, ...] = ()
    missing_share: float = 0.0

    @property
    def features(self) -> list[Feature]:
        """Return "city (frequency)"."""
        return [Feature(f"{self.name} ({FREQUENCY})")]

    def _write(self, out: np.ndarray, text: Text, places: np.ndarray) -> None:
        out[:, 0] = text.spread(np.append(self.shares, 0.0)[places], self.missing_share)


def as_text(given: Given) -> Text:
    """Return cells as text, also those that are numbers."""
    if isinstance(given, Text):
        return given
    numbers, codes = np.unique(given, return_inverse=True)
    values = [f"{value:.17g}" if value == value else None for value in numbers.tolist()]
    return Text([], codes.ravel()).replaced(values)


def without_decimals(value: str) -> str:
    """Return a whole number without decimals, and other text unchanged."""
    return value.split(".")[0] if NUMBER.fullmatch(value) else value


def _misfit(name: str, text: Text, decimal: str) -> tuple[list[tuple[str, str]], bool]:
    """Return notes on why a column stays text, and whether most of its values look like numbers.

    There are notes if many cells look like numbers, dates or quantities. Marks of missing cells are
    already removed.
    """
    values, counts = list(text.values), text.counts
    if not values:
        return [], False
    numbers = [read_number(value) or read_number(value, ",") for value in values]
    # digits with a leading 0 are a code; they fit as well
    fits = np.array(
        [
            number is not None or value.isdigit()
            for number, value in zip(numbers, values, strict=True)
        ]
    )
    shares = [np.isfinite(read_days(values[:SAMPLE], layout)[:, 0]).mean() for layout in DATES]
    what = "numbers"
    if max(shares) > 0.5:
        layout, what = list(DATES)[int(np.argmax(shares))], "dates"
        fits = np.isfinite(read_days(values, layout)[:, 0])
    most = bool(2 * fits.sum() > len(fits))
    if limits := limits_note(values, counts, decimal):
        return [(MOSTLY_LIMITS, f"{name} ({limits})")], True
    look = None if most and not fits.all() else looks_like(values, decimal)
    if look is not None:
        return [("read as text", f"{name} looks like {look}")], True
    notes = list[tuple[str, str]]()
    units = {found[1]: value for found, value in zip(numbers, values, strict=True) if found}
    if not fits.all() and (most or 2 * counts[fits].sum() > counts.sum()):
        odd = np.flatnonzero(~fits).tolist()
        if what == "numbers":  # values with a limit would be read, but for the others
            odd = [at for at in odd if not is_number(values[at])] or odd
        reason = (
            f"read as text because of cells that are not {what} (correct them, or {BY_MISSING})"
        )
        named = f"{_forms([values[at] for at in odd], counts[odd])} in {name}"
        n_rows = counted(int(counts[odd].sum()), "row")
        notes = [(reason, f"{named} ({n_rows})")]
    elif fits.all() and len(units) > 1:
        several = f"{' and '.join(map(shown, units.values()))} in {name}"
        notes = [("read as text because units differ", several)]
    return notes, most and any(numbers)


def _forms(values: list[str], counts: np.ndarray) -> str:
    """Return up to three values, one per pattern of digits, the most frequent pattern first."""
    examples, n_rows = dict[str, str](), Counter[str]()
    for value, count in zip(values, counts.tolist(), strict=True):
        form = re.sub(r"\d+", "0", value)
        examples.setdefault(form, value)
        n_rows[form] += count
    return quoted([examples[form] for form, _ in n_rows.most_common()], 3)


def _marks_kept(text: Text, rules: Rules) -> list[str]:
    """Return the usual marks of missing cells among words, the most frequent first."""
    if rules.missing_values is not None or text.is_category:
        return []
    kept = [
        (-count, value)
        for value, count in zip(text.values, text.counts.tolist(), strict=True)
        if value.lower() in MARKS_OF_MISSING
    ]
    return [value for _, value in sorted(kept)]


Learn = Callable[[str, Text, Rules], Learned]
OF_SEVERAL_UNITS: Learn = partial(NumberColumn.learn, learn=learn_units)
# in the order in which they are preferred
READINGS: tuple[Learn, ...] = (
    NumberColumn.learn,
    DateColumn.learn,
    *(partial(NumberColumn.learn, learn=learn) for learn in QUANTITIES),
    OF_SEVERAL_UNITS,
)


def learn_numeric(name: str, text: Text, rules: Rules) -> Learned:
    """Return what the kind of number or date has learned that reads most rows of the text.

    It has to read at least half of the filled cells or, if `strict` or if there are codes such as
    "01234", all of them. Otherwise, a `RejectColumn` is raised.
    """
    text = rules.cleaned(text, numeric=True)
    if 2 * text.counts[list(map(_may_be_read, text.values))].sum() < max(text.counts.sum(), 1):
        raise RejectColumn
    is_strict = rules.strict or any(map(CODE.fullmatch, text.values))
    least, tried = 1.0 if is_strict else LEAST_READ, READINGS
    if len(text.values) > MANY:
        few = _sample(text)
        shares = [_reading(name, few, rules, learn)[0] for learn in READINGS]
        worth = max(least / 2, max(shares) - (1 - NEARLY_ALL))
        tried = tuple(
            learn for learn, share in zip(READINGS, shares, strict=True) if share >= worth
        )
    found = list[tuple[float, Learned | None]]()
    for learn in tried:
        done = any(share >= (NEARLY_ALL if learn is OF_SEVERAL_UNITS else 1) for share, _ in found)
        if done or (learn is OF_SEVERAL_UNITS and is_strict):
            break
        found.append(_reading(name, text, rules, learn))
    share, best = max(found, key=itemgetter(0), default=(0.0, None))
    if best is None or share < least:
        raise RejectColumn
    if share == 1:
        return best
    if len(np.unique(best.numbers[~np.isnan(best.numbers)])) < FEWEST_NUMBERS:
        raise RejectColumn
    return _with_words(best, text, rules)


def _may_be_read(value: str) -> bool:
    """Return whether it may be worth reading a text as a number or a date."""
    has_digits = len(value) <= LONGEST_DATE and any(map(str.isdigit, value))
    return has_digits or value.lower() in TRUTH


def _reading(name: str, text: Text, rules: Rules, learn: Learn) -> tuple[float, Learned | None]:
    """Return the share of the filled cells that a kind of number or date reads, and what it has
    learned.
    """
    try:
        learned = learn(name, text, rules)
    except RejectColumn:
        return 0.0, None
    if not rules.strict:
        learned.numbers[np.isinf(learned.numbers)] = np.nan
    return np.count_nonzero(~np.isnan(learned.numbers)) / text.counts.sum(), learned


def _sample(text: Text) -> Text:
    """Return some filled cells, each in two rows, so that values that differ do not look like
    identifiers.
    """
    order = sorted(range(len(text.values)), key=text.values.__getitem__)  # not that of the rows
    rows = np.cumsum(text.counts[order])
    drawn = np.random.default_rng(0).integers(rows[-1], size=PROBED)
    chosen, codes = np.unique(np.searchsorted(rows, drawn, side="right"), return_inverse=True)
    return Text([text.values[order[at]] for at in chosen.tolist()], np.tile(codes, 2))


def _with_words(learned: Learned, text: Text, rules: Rules) -> Learned:
    """Return what was learned with the words that occur often, and a remark on all words."""
    column, is_read = learned.column, np.zeros(len(text.values), dtype=bool)
    assert isinstance(column, ReadColumn)
    is_read[text.codes[~np.isnan(learned.numbers)]] = True
    rows = {text.values[at]: int(text.counts[at]) for at in np.flatnonzero(~is_read).tolist()}
    words = sorted(rows, key=lambda word: (-rows[word], word))
    often = [word for word in words if rows[word] >= LEAST_ROWS and len(word) <= MAX_TEXT]
    column = replace(column, words=tuple(sorted(often[: rules.max_categories])))
    what = f"{column.misfits(sum(rows.values()))}, missing there"
    mark = dict.fromkeys(column.words, ", with an indicator")
    items = [f"{shown(word)} ({rows[word]:,}{mark.get(word, '')})" for word in words]
    return replace(learned, column=column, notes=[*learned.notes, *((what, one) for one in items)])


def learn_column(name: str, text: Text, rules: Rules) -> Learned:
    """Return what the first kind of column that accepts the text has learned."""
    text = rules.cleaned(text, numeric=False)
    used = text.counts > 0
    if not used.all():
        text = text.replaced(
            value if use else None for value, use in zip(text.values, used, strict=True)
        )
    try:
        if text.is_category:
            raise RejectColumn
        learned = learn_numeric(name, text, rules)
    except RejectColumn:
        return CategoryColumn.learn(name, text, rules)
    # false if there is a NaN: a constant column with gaps is kept
    if learned.numbers.min() == learned.numbers.max():
        return replace(learned, column=None, notes=(), reason=CONSTANT)
    if (
        rules.drop_identifiers
        and isinstance(learned.column, NumberColumn)
        and says_id(name)
        and nearly_all_differ(learned.numbers)
    ):
        return replace(learned, column=None, notes=(), reason=NAMED)
    code = sentinel_note(learned.numbers, dates=isinstance(learned.column, DateColumn))
    more = [(SENTINEL, f"{name} ({code})")] if code else []
    return replace(learned, notes=[*learned.notes, *more])


def learn_columns(cells: Cells, rules: Rules) -> dict[str, Learned]:
    """Return what every column of a table has learned, text columns first.

    Infinite numbers in text raise a ValueError.
    """
    learned = dict[str, Learned]()
    for name in filter(cells.text.__contains__, cells.names):
        text = cells.text[name]
        learned[name] = learn_column(name, text, rules)
        infinite = np.flatnonzero(np.isinf(learned[name].numbers))
        if len(infinite):
            cell = shown(text.values[text.codes[infinite[0]]].strip())
            where = f"{shown(name)} holds {cell} {cells.place(int(infinite[0]))}"
            raise ValueError(f"{where}: change or drop it.")
    useless = useless_numbers(cells, rules.drop_identifiers)
    ends = None if issparse(cells.numbers) else np.transpose(cells.ends[:2])
    for at, name in enumerate(cells.number_names):
        if name in useless:
            learned[name] = Learned(None, reason=useless[name])
            continue
        numbers, notes = np.empty(0), list[tuple[str, str]]()
        if ends is not None:  # numbers that may stand for missing cells or days
            numbers = cells.numbers[:, at]
            if np.isin(ends[at], SENTINELS).any() and (code := sentinel_note(numbers)):
                notes.append((SENTINEL, f"{name} ({code})"))
            if day := day_number_note(name, *ends[at]):
                notes.append((DAY_NUMBERS, f"{name} ({day})"))
        learned[name] = Learned(NumberColumn(name, rules.decimal, plain=True), numbers, notes=notes)
    return learned


def indicator_names(columns: Sequence[Column], features: Sequence[int]) -> list[str]:
    """Return the names of the indicators of missing cells, such as "age (missing)"."""
    names = [column.name for column in columns for _ in column.names]
    return [f"{names[at]} {MISSING}" for at in features]


KINDS: dict[str, type[Column]] = {
    kind.kind: kind
    for kind in (
        NumberColumn,
        DateColumn,
        CategoryColumn,
        TextColumn,
        ListColumn,
        FrequencyColumn,
    )
}


def column_from(state: dict[str, Any]) -> Column:
    """Return a column from the result of `to_dict`."""
    given: dict[str, Any] = {
        name: tuple(value) if type(value) is list else value
        for name, value in state.items()
        if name != "kind"
    }
    if given.get("ngrams"):
        given["ngrams"] = Words.from_dict(given["ngrams"])
    return KINDS[state["kind"]](**given)
