"""Results as plain types, short enough for a file that is read by a browser, and as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

MAX_LABEL = 40
NO_MARKUP = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&"}  # JSON that ends no script element of HTML


def to_json(document: Any) -> str:
    """Return a document as JSON, without what UTF-8 has no bytes for and without the marks of HTML."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).translate(NO_MARKUP)
    return text.encode("utf-8", "replace").decode("utf-8")


def digits(values: Any, count: int = 4) -> Any:
    """Return numbers in a few digits, None for those that are not finite; whole ones as they are."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        rounded = [float(f"{value:.{count}g}") if np.isfinite(value) else None for value in values.ravel().tolist()]
        values = np.array(rounded, dtype=object).reshape(values.shape)
    return values.tolist()


def short_text(value: Any, most: int = MAX_LABEL) -> str:
    """Return a name that is short enough for a legend."""
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"
