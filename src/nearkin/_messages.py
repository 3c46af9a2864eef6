"""Text of messages (short quoted names and lists), and warnings."""

from __future__ import annotations

import difflib
import inspect
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

MAX_NAME = 60
MAX_IN_REMARK = 40  # of a name among others
MAX_LIST, MAX_REMARK = 160, 110  # characters, without " and 3 more"
FEW, EXAMPLES = 5, 3  # items of a remark: a few are all named, of more only examples


def note(what: str, items: list[str]) -> list[str]:
    """Return a list that holds a remark of one line on the items, or on none an empty list."""
    most, room = FEW if len(items) <= FEW else EXAMPLES, MAX_REMARK - len(what)
    return [in_line(f"{what}: {listed(items, most, max(room, MAX_NAME))}")] if items else []


def quoted(names: Iterable[Any], most: int = 10) -> str:
    """Return "'a', 'b', 'c'", truncated after `most` names."""
    return listed([shown(name) for name in names], most)


def shown(name: Any) -> str:
    """Return a name in quotes, short enough for a message."""
    return shortened(repr(name), MAX_NAME)


def listed(items: Sequence[str], most: int = 10, room: int = MAX_LIST) -> str:
    """Return "a, b, c", truncated after `most` items, or earlier if they need more room."""
    short = [shortened(item, 2 * MAX_NAME) for item in items[:most]]
    while len(short) > 1 and len(", ".join(short)) > room:
        short.pop()
    return ", ".join(short) + (
        f" and {len(items) - len(short):,} more" if len(items) > len(short) else ""
    )


def similar(name: str, names: Sequence[str]) -> str:
    """Return the most similar of the names, whatever their case, in quotes, or "".

    Only the last thousand short names are searched, as the search is slow.
    """
    short = [other for other in names if len(other) <= MAX_NAME][-1000:]
    plain = {other.strip().casefold(): other for other in short}
    close = difflib.get_close_matches(name.strip().casefold(), plain, n=1)
    return "".join(shown(plain[one]) for one in close)


def counted(number: int, noun: str) -> str:
    """Return "1 row", "1,234 rows" or "2 classes"."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def in_line(text: str) -> str:
    """Return the text in a line: one blank for line breaks and blanks, but those that indent it."""
    return re.sub(r"(?<=\S)[ \t-\r\u2028\u2029]+", " ", text)


def shortened(text: str, most: int = MAX_IN_REMARK) -> str:
    """Return the text in a line, of more than `most` characters the beginning and the end.

    Names that begin alike, such as the answers to one question, differ at the end.
    """
    text = in_line(text)
    if len(text) <= most:
        return text
    n_last = most // 3
    return f"{text[: most - n_last]}...{text[-n_last:]}"


def in_row(row: int) -> str:
    """Return the location of a row in a table without lines."""
    return f"in row {row} (counted from 0)"


PASSED_THROUGH = {"nearkin", "sklearn", "joblib"}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if from the nearest calling line outside nearkin, scikit-learn and joblib."""
    frame, level = inspect.currentframe(), 1  # from Python 3.12 on, skip_file_prefixes does this
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_THROUGH:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def format_p(p_value: float) -> str:
    """Return a p-value with two digits, or "<0.001"."""
    return f"{p_value:.2g}" if p_value >= 0.001 else "<0.001"
