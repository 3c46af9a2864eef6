"""What the columns of a table become, decided for each column as a whole, and said in a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, get_origin, get_type_hints

import numpy as np
from scipy.sparse import issparse

from .._messages import counted, note, quoted, shown
from .cells import (
    CONSTANT,
    EMPTY,
    REASONS,
    UNREAD,
    Cells,
    Ends,
    Text,
    differs,
    ends_of,
    useless_numbers,
)
from .dates import (
    CYCLES,
    DATES,
    LAYOUTS,
    TIME_OF_DAY,
    circular,
    learn_cycles,
    learn_dates,
    read_days,
)
from .numbers import (
    DURATION,
    EITHER,
    FORMS,
    MARKS,
    QUANTITY,
    RANGE,
    TRUTH_UNIT,
    day_number_note,
    learn_numbers,
    learn_quantities,
    looks_like,
    may_be_sentinel,
    read_number,
    read_numbers,
    read_quantities,
    sentinel_note,
)

# What a column of a table becomes: a number, a date, a column for each category, or the frequency
# of a category.
#
# Each kind knows the names of the features that it makes, and writes them for any table that has
# the column. It is plain state, so that a saved model can hold it.

NUMBER = re.compile(r"[+-]?\d+(\.0*)?")
MISSING = "(missing)"
DAYS = "days since 1970"
# What a spreadsheet or a program writes where there is no number; compared without regard to case.
MARKS_OF_MISSING = {
    *(
        "na",
        "n/a",
        "n.a.",
        "nan",
        "-nan",
        "null",
        "none",
        "nil",
        "<na>",
        "?",
        "-",
        "--",
        ".",
        "..",
        "\u2013",
        "\u2014",
    ),
    *("#n/a", "#na", "#n/a n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
    *("-1.#ind", "1.#ind", "-1.#qnan", "1.#qnan"),
    # keine Angabe, nicht verfügbar, nicht bekannt, entfällt, ohne Angabe
    *(
        "k.a.",
        "k. a.",
        "n.v.",
        "n. v.",
        "n.b.",
        "n. b.",
        "entf.",
        "o.a.",
        "o. a.",
        "keine angabe",
        "fehlt",
    ),
    # non disponible, non communiqué, non renseigné, sans objet; sin datos, no disponible
    *("n.d.", "n. d.", "n/d", "nd", "n.c.", "n.r.", "s.o.", "s/o", "s/d", "s.d.", "manquant"),
}


@dataclass(frozen=True)
class Rules:
    """How cells are read; the parameters of `TableEncoder`."""

    missing_values: tuple[str, ...] | None = None
    max_categories: int = 100
    decimal: str = "."
    drop_identifiers: bool = True

    def cleaned(self, text: Text) -> Text:
        """Return text without spaces around it, missing where nothing, or a value that counts as
        missing, is left.
        """
        missing = {"", *(self.missing_values or ())}
        stripped = [value.strip() for value in text.values]
        if stripped == list(text.values) and missing.isdisjoint(stripped):
            return text
        return text.replaced(None if value in missing else value for value in stripped)

    def without_marks(self, text: Text) -> Text:
        """Return cleaned text in which the usual marks count as missing, unless others were given."""
        if self.missing_values is not None or MARKS_OF_MISSING.isdisjoint(
            map(str.lower, text.values)
        ):
            return text
        return text.replaced(
            None if value.lower() in MARKS_OF_MISSING else value for value in text.values
        )


def canonical(value: str) -> str:
    """Return a whole number without decimals."""
    return value.split(".")[0] if NUMBER.fullmatch(value) else value


class MisreadError(ValueError):
    """Text of a row that is not what was learned from its column."""

    def __init__(self, found: str, row: int, learned: str) -> None:
        super().__init__(found, row, learned)
        self.found, self.row, self.learned = found, row, learned


@dataclass(frozen=True)
class Column:
    """A column that is kept."""

    kind: ClassVar[str]
    may_miss: ClassVar[bool] = False  # its first feature is NaN where a cell is missing
    ordered: ClassVar[bool] = True
    name: str

    @property
    def names(self) -> list[str]:
        """Return the names of the features that it becomes."""
        return [self.name]

    def scalars(self, given: np.ndarray | Text, rules: Rules) -> np.ndarray:
        """Return a number for each row: where not `ordered` one that only tells values apart."""
        raise NotImplementedError

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write the features of all rows of a column into `out`, zeros of shape (n, p'), and return
        what is unknown.

        Text that cannot be read raises a `MisreadError`.
        """
        raise NotImplementedError

    def fill(
        self, out: np.ndarray, given: np.ndarray | Text, rules: Rules, place: Callable[[int], str]
    ) -> str:
        """Do what `write` does; refuse what cannot be read by its place."""
        try:
            return self.write(out, given, rules)
        except MisreadError as error:
            found = f"{shown(self.name)} holds {error.found} {place(error.row)}"
            raise ValueError(
                f"{found}, but {error.learned} were learned from there: give {error.learned}."
            ) from None

    def to_dict(self) -> dict[str, Any]:
        """Return kind and state, which JSON can hold."""
        return {"kind": self.kind, **asdict(self)}

    def _read(
        self, text: Text, rules: Rules, read: Callable[[list[str]], np.ndarray], what: str
    ) -> np.ndarray:
        """Return what each row's text is read as, NaN where it is missing; refuse text that cannot
        be read.
        """
        text = rules.without_marks(rules.cleaned(text))
        values = read(list(text.values))
        values = values[:, None] if values.ndim == 1 else values
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise MisreadError(shown(text.values[bad[0]]), text.first(bad[0]), what)
        return np.vstack([values, np.full(values.shape[1], np.nan)])[text.codes]


@dataclass(frozen=True)
class NumberColumn(Column):
    """Numbers, as they are; of text, by a decimal mark, and with a unit ("%", a currency, or "") or
    without.

    Of text of a form (`quantities`), by the rules of that form.
    """

    kind, may_miss = "number", True
    decimal: str = "."
    unit: str = ""
    plain: bool = False  # came as a number, not as text
    form: str = ""  # one of `FORMS`, or ""

    def __post_init__(self) -> None:
        _require(self.decimal in (*MARKS, EITHER) and self.form in ("", *FORMS), self.name)

    def to_dict(self) -> dict[str, Any]:
        """Return kind and state; without a form as before there were any, so that every version
        reads it.
        """
        state = super().to_dict()
        return (
            state if self.form else {name: value for name, value in state.items() if name != "form"}
        )

    @property
    def _clear_mark(self) -> str:
        return " whose decimal mark is clear" if self.decimal == EITHER else ""

    def scalars(self, given: np.ndarray | Text, rules: Rules) -> np.ndarray:
        """Return the numbers."""
        if not isinstance(given, Text):
            if self.form == DURATION:
                _refuse_numbers(given, "durations")
            return given
        if self.form:
            what = (
                f"{self.form}s"
                if self.form != QUANTITY
                else f"numbers in {self.unit!r}"
                if self.unit
                else "numbers"
            )
            what += self._clear_mark
            read = partial(read_quantities, form=self.form, decimal=self.decimal, unit=self.unit)
            return self._read(given, rules, read, what)[:, 0]
        marks = ["a decimal comma"] * (self.decimal == ",") + [repr(self.unit)] * (
            self.unit not in ("", TRUTH_UNIT)
        )
        what = f"numbers with {' and '.join(marks)}" if marks else "numbers"
        what += self._clear_mark
        return self._read(
            given, rules, lambda values: read_numbers(values, self.decimal, self.unit), what
        )[:, 0]

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write the numbers."""
        out[:, 0] = self.scalars(given, rules)
        return ""


@dataclass(frozen=True)
class DateColumn(Column):
    """Dates: days since 1970, but for times of day, and sine and cosine on circles. A missing date
    is 0 on these.
    """

    kind = "date"
    layout: str
    cycles: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(self.layout in LAYOUTS and set(self.cycles) <= CYCLES.keys(), self.name)

    @property
    def may_miss(self) -> bool:  # type: ignore[override]
        """Return whether it has days, which are NaN where a cell is missing."""
        return self.layout != TIME_OF_DAY

    @property
    def names(self) -> list[str]:
        """Return e.g. "visit (days since 1970)", "visit (year, sin)", "visit (year, cos)"."""
        elapsed = [DAYS] if self.may_miss else []
        parts = [
            *elapsed,
            *(f"{cycle}, {part}" for cycle in self.cycles for part in ("sin", "cos")),
        ]
        return [f"{self.name} ({part})" for part in parts]

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write days and circles."""
        days, clock = self._days(given, rules)
        circles = [np.nan_to_num(part) for cycle in self.cycles for part in circular(clock, cycle)]
        elapsed = [days] if self.may_miss else []
        for place, feature in enumerate([*elapsed, *circles]):
            out[:, place] = feature
        return ""

    def scalars(self, given: np.ndarray | Text, rules: Rules) -> np.ndarray:
        """Return the days, or the time of day."""
        return self._days(given, rules)[0]

    def _days(self, given: np.ndarray | Text, rules: Rules) -> tuple[np.ndarray, np.ndarray]:
        """Return the days in UTC and by the clock of the place."""
        if isinstance(given, Text):
            what = f"dates ({self.layout})" if self.layout.endswith("first") else "dates"
            days, clock = self._read(
                given, rules, lambda values: read_days(values, self.layout), what
            ).T
            return days, clock
        _refuse_numbers(given, "dates")
        return given, given


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Categories, sorted: a column of zeros and ones for each; one more for missing cells, if there
    were any.
    """

    kind, ordered = "category", False
    values: tuple[str, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        _require(self.values and all(a < b for a, b in pairwise(self.values)), self.name)

    @property
    def names(self) -> list[str]:
        """Return e.g. "colour=red"."""
        return [
            f"{self.name}={value}" for value in (*self.values, *([MISSING] if self.missing else []))
        ]

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write the ones."""
        text = self.text(given, rules)
        known = {value: at for at, value in enumerate(self.values)}
        found = np.array([known.get(value, -1) for value in text.values], dtype=int)
        codes = text.spread(found, len(self.values) if self.missing else -1)
        rows = np.flatnonzero(codes >= 0)
        out[rows, codes[rows]] = 1
        return self.unknown(text, found < 0)

    def scalars(self, given: np.ndarray | Text, rules: Rules) -> np.ndarray:
        """Return the positions of the values among those of the table."""
        return self.text(given, rules).codes

    def text(self, given: np.ndarray | Text, rules: Rules) -> Text:
        """Return the column as cleaned text."""
        if not isinstance(given, Text):
            numbers, codes = np.unique(given, return_inverse=True)
            given = Text(
                ["" if value != value else f"{value:.17g}" for value in numbers.tolist()],
                codes.ravel(),
            )
        text = rules.cleaned(given)
        return (
            text.replaced(map(canonical, text.values))
            if all(map(NUMBER.fullmatch, self.values))
            else text
        )

    def knows_none(self, given: np.ndarray | Text, rules: Rules) -> bool:
        """Return whether there are values, none of which was there to learn from."""
        values = self.text(given, rules).values
        return len(values) > 0 and set(self.values).isdisjoint(values)

    def unknown(self, text: Text, unknown: np.ndarray) -> str:
        """Return the values that were not there to learn from."""
        n_rows = int(text.counts[unknown].sum())
        values = sorted(value for value, new in zip(text.values, unknown, strict=True) if new)
        return f"{quoted(values, 3)} in {self.name} ({counted(n_rows, 'row')})" if values else ""


@dataclass(frozen=True)
class FrequencyColumn(CategoryColumn):
    """The share of the rows of `fit` that have a category; 0 for one that was not there."""

    kind = "frequency"
    shares: tuple[float, ...] = ()
    missing_share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _require(
            len(self.shares) == len(self.values)
            and np.isfinite([*self.shares, self.missing_share]).all(),
            self.name,
        )

    @property
    def names(self) -> list[str]:
        """Return e.g. "city (frequency)"."""
        return [f"{self.name} (frequency)"]

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write the shares."""
        text, known = self.text(given, rules), dict(zip(self.values, self.shares, strict=True))
        out[:, 0] = text.spread(
            [known.get(value, 0.0) for value in text.values], self.missing_share
        )
        return self.unknown(
            text, np.array([value not in known for value in text.values], dtype=bool)
        )


def _refuse_numbers(given: np.ndarray, learned: str) -> None:
    """Raise a `MisreadError` where plain numbers were given in place of what was learned; missing
    ones may be.
    """
    known = ~np.isnan(given)
    if known.any():
        row = int(known.argmax())
        raise MisreadError(f"the number {given[row]:g}", row, learned)


KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (NumberColumn, DateColumn, CategoryColumn, FrequencyColumn)
}


def indicator_names(columns: Sequence[Column], features: Sequence[int]) -> list[str]:
    """Return what the columns are called that say where features are missing, such as "age
    (missing)".
    """
    names = [column.name for column in columns for _ in column.names]
    return [f"{names[at]} {MISSING}" for at in features]


def column_from(state: dict[str, Any]) -> Column:
    """Return the column of a state that `to_dict` wrote; raise an error where it is none."""
    kind = KINDS[state["kind"]]
    given = {
        name: tuple(value) if type(value) is list else value
        for name, value in state.items()
        if name != "kind"
    }
    if kind is NumberColumn:
        given.setdefault("form", "")  # of a state that was written before there were forms
    for name, hint in get_type_hints(kind).items():
        value, outer, inner = (
            given.get(name),
            get_origin(hint) or hint,
            getattr(hint, "__args__", ()),
        )
        if outer is not ClassVar:
            fits = type(value) is outer and {
                type(item) for item in (value or () if inner else ())
            } <= {*inner}
            _require(fits, str(given.get("name")))
    return kind(**given)  # type: ignore[arg-type]


def _require(holds: Any, name: str) -> None:
    if not holds:
        raise ValueError(f"its column {shown(name)}")


MAX_TEXT = 500
EVEN = "every value occurs as often as the others"
LONG = f"text of more than {MAX_TEXT} characters"
SENTINEL = "may mark missing cells (name it by --missing, in Python by missing_values)"
DAY_NUMBERS = "may be day numbers of a spreadsheet (write them as dates)"

SAMPLE = 100  # values by which a layout of dates is recognized


class Learned:
    """The columns that are kept, those that are left out and why, and remarks on both.

    Parameters
    ----------
    cells : Cells
    rules : Rules
    """

    def __init__(self, cells: Cells, rules: Rules) -> None:
        self.rules, self.place = rules, cells.place
        self.columns: list[Column] = []
        ends = None if issparse(cells.numbers) else ends_of(cells.numbers)
        self.dropped: dict[str, str] = useless_numbers(cells, ends, rules.drop_identifiers)
        self._notes: dict[str, list[str]] = {}
        self.missing = _missing(cells, ends)  # in how many rows a number or a date is missing
        self.medians: dict[str, float] = {}  # of those that came as text
        for name in cells.number_names:
            if name not in self.dropped:
                self.columns.append(NumberColumn(name, plain=True))
        for name in cells.names:
            if name in cells.text:
                found = self._text(name, cells.text[name])
                if isinstance(found, str):
                    self.dropped[name] = found
                else:
                    self.columns.append(found)
        if ends is not None:
            self._note_oddities(cells, ends)
        reasons = [*REASONS, LONG, EVEN]
        said = sorted(
            filter(self.dropped.__contains__, cells.names),
            key=lambda name: reasons.index(self.dropped[name]),
        )
        self.dropped = {name: self.dropped[name] for name in said}

    @property
    def remarks(self) -> list[str]:
        """Return a line for each thing that was done to some columns."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.dropped.items():
            reasons.setdefault(f"ignored, {reason}", []).append(name)
        return [
            line for what, items in (reasons | self._notes).items() for line in note(what, items)
        ]

    @property
    def missing_rows(self) -> list[str]:
        """Return e.g. "age (12 rows)" for each column of numbers or dates with missing cells."""
        return [
            f"{name} ({counted(count, 'row')})"
            for name, count in self.missing.items()
            if name not in self.dropped
        ]

    def _note(self, what: str, item: str) -> None:
        self._notes.setdefault(what, []).append(item)

    def _text(self, name: str, text: Text) -> Column | str:
        """Return what a column of text becomes, or why it is left out."""
        text = self.rules.cleaned(text)
        used = text.counts > 0
        if not used.all():
            text = text.replaced(
                value if use else None for value, use in zip(text.values, used, strict=True)
            )
        if not text.is_category:
            unmarked = self.rules.without_marks(text)
            found = (
                self._numbers(name, unmarked)
                or self._dates(name, unmarked)
                or self._quantities(name, unmarked)
            )
            if found is not None:
                return found
        return self._categories(name, text)

    def _numbers(self, name: str, text: Text) -> Column | str | None:
        values = list(text.values)
        learned = learn_numbers(values, self.rules.decimal)
        if learned is None:
            return None
        numbers, decimal, unit = learned
        if np.isinf(numbers).any():
            at = int(np.isinf(numbers).argmax())
            raise ValueError(
                f"{shown(name)} holds {shown(values[at])} {self.place(text.first(at))}: "
                "change or drop it."
            )
        if len(np.unique(numbers)) + (text.n_missing > 0) == 1:
            return CONSTANT
        styled = [value for value in values if not _is_plain(value)]
        if styled:
            comma = ", decimal comma" * (decimal == "," and "," in styled[0])
            comma += ", decimal points and commas" * (decimal == EITHER)
            self._note("read as numbers", f"{name} ({shown(styled[0])}{comma})")
        self._summarize(name, text, numbers)
        return NumberColumn(name, decimal, unit)

    def _dates(self, name: str, text: Text) -> Column | str | None:
        values = list(text.values)
        learned = learn_dates(values, self.rules.decimal)
        if learned is None:
            return None
        layout, ambiguous, days = learned
        if len(np.unique(days[:, 0])) + (text.n_missing > 0) == 1:
            return CONSTANT
        how = (
            f", {layout}" * layout.endswith("first")
            + ", though the other order would fit as well" * ambiguous
        )
        self._note(
            "read as times of day" if layout == TIME_OF_DAY else "read as dates",
            f"{name} ({shown(values[0])}{how})",
        )
        if layout != TIME_OF_DAY:
            self._summarize(name, text, days[:, 0], dates=True)
        return DateColumn(name, layout, learn_cycles(days[:, 1], layout))

    def _quantities(self, name: str, text: Text) -> Column | str | None:
        found = learn_quantities(list(text.values), text.counts, self.rules.decimal)
        if found is None:
            return None
        if len(np.unique(found.numbers)) + (text.n_missing > 0) == 1:
            return CONSTANT
        how = {DURATION: "read as durations, in days", RANGE: "read as ranges, each by its middle"}
        self._note(how.get(found.form, "read as numbers"), f"{name} ({found.how})")
        self._summarize(name, text, found.numbers)
        return NumberColumn(name, found.decimal, found.unit, form=found.form)

    def _note_oddities(self, cells: Cells, ends: Ends) -> None:
        """Note numbers that may stand for missing cells, or for days."""
        once = np.ones(cells.n_rows, dtype=int)
        suspicious = may_be_sentinel(ends.low, ends.high)
        for at, name in enumerate(cells.number_names):
            if name in self.dropped:
                continue
            found = sentinel_note(cells.numbers[:, at], once) if suspicious[at] else None
            if found is not None:
                self._note(SENTINEL, f"{name} ({found})")
            days = day_number_note(name, ends.low[at], ends.high[at])
            if days is not None:
                self._note(DAY_NUMBERS, f"{name} ({days})")

    def _summarize(self, name: str, text: Text, values: np.ndarray, *, dates: bool = False) -> None:
        found = sentinel_note(values, text.counts, dates=dates)
        if found is not None:
            self._note(SENTINEL, f"{name} ({found})")
        self.medians[name] = float(np.median(np.repeat(values, text.counts)))
        if text.n_missing:
            self.missing[name] = text.n_missing

    def _categories(self, name: str, text: Text) -> Column | str:
        numbers = [read_number(value) is not None for value in text.values]
        if all(numbers):  # of a categorical type
            text = text.replaced(map(canonical, text.values))
        n_values, n_missing = len(text.values), text.n_missing
        if n_values + (n_missing > 0) <= 1:
            return CONSTANT if n_values else EMPTY
        unread = not text.is_category and self._note_misfit(name, text)
        reason = differs(n_values, len(text.codes) - n_missing, len(text.codes))
        if reason and self.rules.drop_identifiers and not text.is_category:
            return UNREAD if unread else reason
        if max(map(len, text.values)) > MAX_TEXT:
            return LONG
        if len({value.lower() for value in text.values}) < n_values:
            self._note("values that differ in case alone are several", name)
        if n_missing:
            self._note(
                "missing values, a category of their own", f"{name} ({counted(n_missing, 'row')})"
            )
        values = tuple(sorted(text.values))
        if n_values <= self.rules.max_categories:
            self._note("one-hot encoded", f"{name} ({counted(n_values, 'value')})")
            return CategoryColumn(name, values, n_missing > 0)
        shares = dict(zip(text.values, (text.counts / len(text.codes)).tolist(), strict=True))
        if len({*shares.values(), n_missing / len(text.codes)} - {0.0}) == 1:
            return EVEN
        self._note(
            "encoded as the share of the rows that have the value",
            f"{name} ({counted(n_values, 'value')})",
        )
        return FrequencyColumn(
            name,
            values,
            n_missing > 0,
            tuple(map(shares.__getitem__, values)),
            n_missing / len(text.codes),
        )

    def _note_misfit(self, name: str, text: Text) -> bool:
        """Note what makes text of a column of which some values are numbers, or most are dates or
        quantities.

        Return whether most of its values are such.
        """
        values = list(text.values)
        numbers = [read_number(value) or read_number(value, ",") for value in values]
        units = {found[1]: value for found, value in zip(numbers, values, strict=True) if found}
        fits = [
            found is not None or value.isdigit()
            for found, value in zip(numbers, values, strict=True)
        ]  # or a code
        layouts = (
            [np.isfinite(read_days(values[:SAMPLE], layout)[:, 0]).mean() for layout in DATES]
            if values
            else [0]
        )
        if max(layouts) > 0.5:
            fits = np.isfinite(
                read_days(values, list(DATES)[int(np.argmax(layouts))])[:, 0]
            ).tolist()
        most = 2 * sum(fits) > len(fits)
        look = None if most and not all(fits) else looks_like(values, self.rules.decimal)
        if look is not None:
            self._note("read as text", f"{name} looks like {look}")
            return True
        if any(fits) and not all(fits):
            odd = shown(values[fits.index(False)])
            self._note(
                "read as text because of", f"{odd} in {name} (mend it, or let it count as missing)"
            )
        elif len(units) > 1:
            self._note(
                "read as text because units differ",
                f"{' and '.join(map(shown, units.values()))} in {name}",
            )
        return most and any(numbers)


def _missing(cells: Cells, ends: Ends | None) -> dict[str, int]:
    """Return the columns of numbers with missing cells, and how many they have; sparse ones have no
    `ends`.
    """
    if ends is None:
        return {}
    return {
        cells.number_names[at]: int(np.isnan(cells.numbers[:, at]).sum())
        for at in np.flatnonzero(ends.missing)
    }


def _is_plain(value: str) -> bool:
    with suppress(ValueError):
        return float(value) is not None and "_" not in value
    return False
