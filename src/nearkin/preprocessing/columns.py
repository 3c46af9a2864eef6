"""What a column of a table becomes: a number, a date, a column for each category, or the frequency of a category.

Each kind knows the names of the features that it makes, and writes them for any table that has the column. It is plain
state, so that a saved model can hold it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, get_origin, get_type_hints

import numpy as np

from .._messages import counted, quoted, shown
from .cells import Text
from .dates import CYCLES, LAYOUTS, TIME_OF_DAY, circular, read_days
from .numerals import EITHER, MARKS, TRUTH_UNIT, read_numbers
from .quantities import DURATION, FORMS, QUANTITY, read_quantities

NUMBER = re.compile(r"[+-]?\d+(\.0*)?")
MISSING = "(missing)"
DAYS = "days since 1970"
# What a spreadsheet or a program writes where there is no number; compared without regard to case.
MARKS_OF_MISSING = {
    *("na", "n/a", "n.a.", "nan", "-nan", "null", "none", "nil", "<na>", "?", "-", "--", ".", "..", "\u2013", "\u2014"),
    *("#n/a", "#na", "#n/a n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
    *("-1.#ind", "1.#ind", "-1.#qnan", "1.#qnan"),
    # keine Angabe, nicht verfügbar, nicht bekannt, entfällt, ohne Angabe
    *("k.a.", "k. a.", "n.v.", "n. v.", "n.b.", "n. b.", "entf.", "o.a.", "o. a.", "keine angabe", "fehlt"),
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
        """Return text without spaces around it, missing where nothing, or a value that counts as missing, is left."""
        missing = {"", *(self.missing_values or ())}
        stripped = [value.strip() for value in text.values]
        if stripped == list(text.values) and missing.isdisjoint(stripped):
            return text
        return text.replaced(None if value in missing else value for value in stripped)

    def without_marks(self, text: Text) -> Text:
        """Return cleaned text in which the usual marks count as missing, unless others were given."""
        if self.missing_values is not None or MARKS_OF_MISSING.isdisjoint(map(str.lower, text.values)):
            return text
        return text.replaced(None if value.lower() in MARKS_OF_MISSING else value for value in text.values)


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
        """Write the features of all rows of a column into `out`, zeros of shape (n, p'), and return what is unknown.

        Text that cannot be read raises a `MisreadError`.
        """
        raise NotImplementedError

    def fill(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules, place: Callable[[int], str]) -> str:
        """Do what `write` does; refuse what cannot be read by its place."""
        try:
            return self.write(out, given, rules)
        except MisreadError as error:
            found = f"{shown(self.name)} holds {error.found} {place(error.row)}"
            raise ValueError(f"{found}, but {error.learned} were learned from there: give {error.learned}.") from None

    def to_dict(self) -> dict[str, Any]:
        """Return kind and state, which JSON can hold."""
        return {"kind": self.kind, **asdict(self)}

    def _read(self, text: Text, rules: Rules, read: Callable[[list[str]], np.ndarray], what: str) -> np.ndarray:
        """Return what each row's text is read as, NaN where it is missing; refuse text that cannot be read."""
        text = rules.without_marks(rules.cleaned(text))
        values = read(list(text.values))
        values = values[:, None] if values.ndim == 1 else values
        bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
        if len(bad):
            raise MisreadError(shown(text.values[bad[0]]), text.first(bad[0]), what)
        return np.vstack([values, np.full(values.shape[1], np.nan)])[text.codes]


@dataclass(frozen=True)
class NumberColumn(Column):
    """Numbers, as they are; of text, by a decimal mark, and with a unit ("%", a currency, or "") or without.

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
        """Return kind and state; without a form as before there were any, so that every version reads it."""
        state = super().to_dict()
        return state if self.form else {name: value for name, value in state.items() if name != "form"}

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
            what = f"{self.form}s" if self.form != QUANTITY else f"numbers in {self.unit!r}" if self.unit else "numbers"
            what += self._clear_mark
            read = partial(read_quantities, form=self.form, decimal=self.decimal, unit=self.unit)
            return self._read(given, rules, read, what)[:, 0]
        marks = ["a decimal comma"] * (self.decimal == ",") + [repr(self.unit)] * (self.unit not in ("", TRUTH_UNIT))
        what = f"numbers with {' and '.join(marks)}" if marks else "numbers"
        what += self._clear_mark
        return self._read(given, rules, lambda values: read_numbers(values, self.decimal, self.unit), what)[:, 0]

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write the numbers."""
        out[:, 0] = self.scalars(given, rules)
        return ""


@dataclass(frozen=True)
class DateColumn(Column):
    """Dates: days since 1970, but for times of day, and sine and cosine on circles. A missing date is 0 on these."""

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
        parts = [*elapsed, *(f"{cycle}, {part}" for cycle in self.cycles for part in ("sin", "cos"))]
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
            days, clock = self._read(given, rules, lambda values: read_days(values, self.layout), what).T
            return days, clock
        _refuse_numbers(given, "dates")
        return given, given


@dataclass(frozen=True)
class CategoryColumn(Column):
    """Categories, sorted: a column of zeros and ones for each; one more for missing cells, if there were any."""

    kind, ordered = "category", False
    values: tuple[str, ...]
    missing: bool = False

    def __post_init__(self) -> None:
        _require(self.values and all(a < b for a, b in pairwise(self.values)), self.name)

    @property
    def names(self) -> list[str]:
        """Return e.g. "colour=red"."""
        return [f"{self.name}={value}" for value in (*self.values, *([MISSING] if self.missing else []))]

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
            given = Text(["" if value != value else f"{value:.17g}" for value in numbers.tolist()], codes.ravel())
        text = rules.cleaned(given)
        return text.replaced(map(canonical, text.values)) if all(map(NUMBER.fullmatch, self.values)) else text

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
            len(self.shares) == len(self.values) and np.isfinite([*self.shares, self.missing_share]).all(), self.name
        )

    @property
    def names(self) -> list[str]:
        """Return e.g. "city (frequency)"."""
        return [f"{self.name} (frequency)"]

    def write(self, out: np.ndarray, given: np.ndarray | Text, rules: Rules) -> str:
        """Write the shares."""
        text, known = self.text(given, rules), dict(zip(self.values, self.shares, strict=True))
        out[:, 0] = text.spread([known.get(value, 0.0) for value in text.values], self.missing_share)
        return self.unknown(text, np.array([value not in known for value in text.values], dtype=bool))


def _refuse_numbers(given: np.ndarray, learned: str) -> None:
    """Raise a `MisreadError` where plain numbers were given in place of what was learned; missing ones may be."""
    known = ~np.isnan(given)
    if known.any():
        row = int(known.argmax())
        raise MisreadError(f"the number {given[row]:g}", row, learned)


KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (NumberColumn, DateColumn, CategoryColumn, FrequencyColumn)
}


def indicator_names(columns: Sequence[Column], features: Sequence[int]) -> list[str]:
    """Return what the columns are called that say where features are missing, such as "age (missing)"."""
    names = [column.name for column in columns for _ in column.names]
    return [f"{names[at]} {MISSING}" for at in features]


def column_from(state: dict[str, Any]) -> Column:
    """Return the column of a state that `to_dict` wrote; raise an error where it is none."""
    kind = KINDS[state["kind"]]
    given = {name: tuple(value) if type(value) is list else value for name, value in state.items() if name != "kind"}
    if kind is NumberColumn:
        given.setdefault("form", "")  # of a state that was written before there were forms
    for name, hint in get_type_hints(kind).items():
        value, outer, inner = given.get(name), get_origin(hint) or hint, getattr(hint, "__args__", ())
        if outer is not ClassVar:
            fits = type(value) is outer and {type(item) for item in (value or () if inner else ())} <= {*inner}
            _require(fits, str(given.get("name")))
    return kind(**given)  # type: ignore[arg-type]


def _require(holds: Any, name: str) -> None:
    if not holds:
        raise ValueError(f"its column {shown(name)}")
