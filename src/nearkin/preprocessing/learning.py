"""What the columns of a table become, decided for each column as a whole, and said in a line."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from scipy.sparse import issparse

from .._messages import counted, note, shown
from .cells import Cells, Text
from .columns import CategoryColumn, Column, DateColumn, FrequencyColumn, NumberColumn, Rules, canonical
from .dates import DATES, TIME_OF_DAY, learn_cycles, learn_dates, read_days
from .identifiers import CONSTANT, EMPTY, REASONS, UNREAD, Ends, differs, ends_of, useless_numbers
from .numerals import EITHER, learn_numbers, read_number
from .quantities import DURATION, RANGE, learn_quantities, looks_like
from .sentinels import day_number_note, may_be_sentinel, sentinel_note

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
            filter(self.dropped.__contains__, cells.names), key=lambda name: reasons.index(self.dropped[name])
        )
        self.dropped = {name: self.dropped[name] for name in said}

    @property
    def remarks(self) -> list[str]:
        """Return a line for each thing that was done to some columns."""
        reasons: dict[str, list[str]] = {}
        for name, reason in self.dropped.items():
            reasons.setdefault(f"ignored, {reason}", []).append(name)
        return [line for what, items in (reasons | self._notes).items() for line in note(what, items)]

    @property
    def missing_rows(self) -> list[str]:
        """Return e.g. "age (12 rows)" for each column of numbers or dates with missing cells."""
        return [f"{name} ({counted(count, 'row')})" for name, count in self.missing.items() if name not in self.dropped]

    def _note(self, what: str, item: str) -> None:
        self._notes.setdefault(what, []).append(item)

    def _text(self, name: str, text: Text) -> Column | str:
        """Return what a column of text becomes, or why it is left out."""
        text = self.rules.cleaned(text)
        used = text.counts > 0
        if not used.all():
            text = text.replaced(value if use else None for value, use in zip(text.values, used, strict=True))
        if not text.is_category:
            unmarked = self.rules.without_marks(text)
            found = self._numbers(name, unmarked) or self._dates(name, unmarked) or self._quantities(name, unmarked)
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
                f"{shown(name)} holds {shown(values[at])} {self.place(text.first(at))}: change or drop it."
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
        how = f", {layout}" * layout.endswith("first") + ", though the other order would fit as well" * ambiguous
        self._note(
            "read as times of day" if layout == TIME_OF_DAY else "read as dates", f"{name} ({shown(values[0])}{how})"
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
            self._note("missing values, a category of their own", f"{name} ({counted(n_missing, 'row')})")
        values = tuple(sorted(text.values))
        if n_values <= self.rules.max_categories:
            self._note("one-hot encoded", f"{name} ({counted(n_values, 'value')})")
            return CategoryColumn(name, values, n_missing > 0)
        shares = dict(zip(text.values, (text.counts / len(text.codes)).tolist(), strict=True))
        if len({*shares.values(), n_missing / len(text.codes)} - {0.0}) == 1:
            return EVEN
        self._note("encoded as the share of the rows that have the value", f"{name} ({counted(n_values, 'value')})")
        return FrequencyColumn(
            name, values, n_missing > 0, tuple(map(shares.__getitem__, values)), n_missing / len(text.codes)
        )

    def _note_misfit(self, name: str, text: Text) -> bool:
        """Note what makes text of a column of which some values are numbers, or most are dates or quantities.

        Return whether most of its values are such.
        """
        values = list(text.values)
        numbers = [read_number(value) or read_number(value, ",") for value in values]
        units = {found[1]: value for found, value in zip(numbers, values, strict=True) if found}
        fits = [found is not None or value.isdigit() for found, value in zip(numbers, values, strict=True)]  # or a code
        layouts = [np.isfinite(read_days(values[:SAMPLE], layout)[:, 0]).mean() for layout in DATES] if values else [0]
        if max(layouts) > 0.5:
            fits = np.isfinite(read_days(values, list(DATES)[int(np.argmax(layouts))])[:, 0]).tolist()
        most = 2 * sum(fits) > len(fits)
        look = None if most and not all(fits) else looks_like(values, self.rules.decimal)
        if look is not None:
            self._note("read as text", f"{name} looks like {look}")
            return True
        if any(fits) and not all(fits):
            odd = shown(values[fits.index(False)])
            self._note("read as text because of", f"{odd} in {name} (mend it, or let it count as missing)")
        elif len(units) > 1:
            self._note("read as text because units differ", f"{' and '.join(map(shown, units.values()))} in {name}")
        return most and any(numbers)


def _missing(cells: Cells, ends: Ends | None) -> dict[str, int]:
    """Return the columns of numbers with missing cells, and how many they have; sparse ones have no `ends`."""
    if ends is None:
        return {}
    return {cells.number_names[at]: int(np.isnan(cells.numbers[:, at]).sum()) for at in np.flatnonzero(ends.missing)}


def _is_plain(value: str) -> bool:
    with suppress(ValueError):
        return float(value) is not None and "_" not in value
    return False
