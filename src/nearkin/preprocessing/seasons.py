"""The curves of dates to look at: sine and cosine of a place in the year, the week or the day as one."""

from __future__ import annotations

import numpy as np

from .binned import Levels
from .dates import CYCLES, MONTHS, circular
from .piecewise import Curve

HOURS = range(0, 24, 3)
# Of each cycle the name of its places, their names, and their days since 1970-01-01, a Thursday
PLACES = {
    "year": ("month", [month.title() for month in MONTHS], CYCLES["year"] * (np.arange(12) + 0.5) / 12),
    "week": ("day of the week", ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], np.arange(4.0, 11.0)),
    "day": ("time of day", [f"{hour}:00" for hour in HOURS], np.array(HOURS) / 24),
}
BEYOND = 0.1  # how far a sine may lie outside those of the rows


def with_seasons(curves: dict[str, Curve | Levels]) -> dict[str, Curve | Levels]:
    """Return curves in which the sine and the cosine of a date are one: the places of months, weekdays or hours.

    Those that the rows do not reach are left out, as far as the ranges of sine and cosine tell; where fewer than two
    are left, sine and cosine stay. The places are about their mean.
    """
    found = dict[str, Curve | Levels]()
    for name, curve in curves.items():
        column, _, cycle = name.removesuffix(", sin)").removesuffix(", cos)").rpartition(" (")
        sine, cosine = (curves.get(f"{column} ({cycle}, {part})") for part in ("sin", "cos"))
        if cycle in PLACES and isinstance(sine, Curve) and isinstance(cosine, Curve):
            title, names, days = PLACES[cycle]
            parts = list(zip((sine, cosine), circular(days, cycle), strict=True))
            reached = [(one.edges[0] - BEYOND <= x) & (x <= one.edges[-1] + BEYOND) for one, x in parts]
            at = np.flatnonzero(np.all(reached, axis=0))
            if len(at) > 1:
                values = sum(np.array([np.interp(x[at], one.edges, row) for row in one.values]) for one, x in parts)
                values = values - np.mean(values, axis=1, keepdims=True)
                name, curve = f"{column} ({title})", Levels(curve.column, [names[j] for j in at], values, ordered=True)
        found[name] = curve
    return found
