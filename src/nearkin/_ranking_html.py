"""Rankings as HTML tables for notebooks in light and dark themes, with pictures of differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ._messages import format_p

WIDTH, HEIGHT = 180, 26  # of the picture in a line
COLORS = {
    "better": "#009E73",
    "worse": "#D55E00",
    "unclear": "#0072B2",
    "baseline": "currentColor",
    "reference": "gray",
}


@dataclass(frozen=True)
class Line:
    """A line of a ranking.

    Attributes
    ----------
    cells : sequence of str
        The cells before the picture; the first is the name.
    difference : float
        From the baseline.
    interval : pair of float
    p_value : float
        NaN if not tested.
    status : str
    is_chosen : bool
    """

    cells: Sequence[str]
    difference: float
    interval: tuple[float, float]
    p_value: float
    status: str
    is_chosen: bool


def comparison_html(found: Any) -> str:
    """Return the result of `compare` as a table: methods, automatic choice, and references."""
    lines, size = list[Line](), abs(found.results[0].score.mean())
    decimals = int(np.clip(3 - np.ceil(np.log10(size)), 0, 6)) if size > 0 else 3
    for row in found.ranking():
        spread = "" if np.isnan(row.deviation) else f" ± {row.deviation:.{decimals}f}"
        dimension = "" if row.dimensions is None else f"{row.dimension:g}"
        cells = [row.name, f"{row.score:.{decimals}f}{spread}", dimension]
        interval, is_choice = (row.low, row.high), row.kind == "choice"
        lines.append(Line(cells, row.difference, interval, row.p_value, row.status, is_choice))
    caption = [repr(found).partition("\n")[0].rstrip(":")]
    if found.winner is not None:
        caption.append(f"The automatic choice on all rows is {found.winner_method}.")
    score = found.score.name.replace("_", " ") + " (less is better)" * (found.score.sign < 0)
    score += " ± std" * (len(found.folds) > 1)
    return ranking_html([*caption, *found.notes], ["method", score, "dimension"], lines, decimals)


def adaptation_html(found: Any) -> str:
    """Return the result of `compare_vectors` as a table: raw, shorter and adapted vectors."""
    chosen, lines = found.chosen, []
    for one in found.results:
        test, p_value = one.tests[found.part], one.p_value if one.way.is_adapted else np.nan
        cells = [one.way.name, f"{one.scores[found.part][found.score]:.3f}", f"{one.way.bytes:,}"]
        lines.append(
            Line(cells, test.difference, test.interval(), p_value, one.status, one is chosen)
        )
    head = (
        f"Vectors compared by {found.score} of {found.n_queries[found.part]:,} held-out queries "
        f"({found.part})"
    )
    return ranking_html([head], ["vectors", found.score, "bytes"], lines, 3)


def ranking_html(
    caption: Sequence[str], names: Sequence[str], lines: Sequence[Line], decimals: int
) -> str:
    """Return a ranking as HTML, with the chosen line in bold; all texts are escaped."""
    ends = np.array(
        [(line.difference, *line.interval) for line in lines if line.status != "reference"]
    )
    ends = ends[np.isfinite(ends).all(axis=1)]  # the line of the raw features is finite
    span = [ends.min(), ends.max()] if np.ptp(ends) else [0.0]
    head = [*names, "difference", "p", "95 % interval (dashed: raw)", "verdict"]
    rows = [_row([escape(name) for name in head], "th scope='col'", "bold")]
    for line in lines:
        difference = "" if line.status == "baseline" else f"{line.difference:+z.{decimals}f}"
        p = "" if np.isnan(line.p_value) else format_p(line.p_value)
        drawn = [escape(cell) for cell in (*line.cells, difference, p)]
        drawn += [_picture(line, span, decimals), line.status]
        rows.append(_row(drawn, "td", "bold" if line.is_chosen else "normal"))
    return f"<table><caption>{'<br>'.join(map(escape, caption))}</caption>{''.join(rows)}</table>"


def _row(cells: Sequence[str], tag: str, weight: str) -> str:
    sides = ["left", *["right"] * (len(cells) - 3), "left", "left"]  # numbers are right-aligned
    style = f"padding: 0 0.5em; font-weight: {weight}; white-space: nowrap"
    written = [
        f"<{tag} style='text-align: {side}; {style}'>{cell}</{tag[:2]}>"
        for side, cell in zip(sides, cells, strict=True)
    ]
    return f"<tr>{''.join(written)}</tr>"


def _picture(line: Line, span: Sequence[float], decimals: int) -> str:
    """Return the difference of a line from the baseline, with its interval, as an SVG picture.

    An arrow marks a difference out of range.
    """
    ends = [line.difference, *line.interval]
    margin, middle, color = 8, HEIGHT / 2, COLORS[line.status]
    places = np.linspace(margin, WIDTH - margin, len(span))
    raw, dot, low, high = np.interp(np.nan_to_num([0.0, *ends]), span, places)
    mark = f'<circle cx="{dot:.1f}" cy="{middle}" r="{6 if line.is_chosen else 4}" fill="{color}"/>'
    if not span[0] <= line.difference <= span[-1]:
        arrow = "←" if line.difference < span[0] else "→"
        mark = (
            f'<text x="{dot:.1f}" y="{middle + 5}" text-anchor="middle" '
            f'fill="{color}">{arrow}</text>'
        )
    difference, *interval = [f"{end:+z.{decimals}f}" for end in ends]
    text = f"difference {difference}, 95 % interval {' to '.join(interval)}"
    return (
        f'<svg role="img" aria-label="{text}" width="{WIDTH}" height="{HEIGHT}" '
        f'style="display: block"><title>{text}'
        f'</title><path d="M{raw:.1f} 0V{HEIGHT}" stroke="currentColor" '
        'stroke-dasharray="3" opacity="0.6"/>'
        f'<path d="M{low:.1f} {middle}H{high:.1f}" stroke="{color}" stroke-width="2"/>'
        f"{mark}</svg>"
    )
