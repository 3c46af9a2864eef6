"""The page of `nearkin adapt`: quality against bytes, and the table, in one file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

from ..evaluation import Adaptation, WayResult
from ..plotting.base import COLORS, GREY, MARKERS
from .pictures import new_figure
from .vector_text import NEW_CLASSES, SHORT, grid_of, verdict_of

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
.wide {{ overflow-x: auto; }}
.pictures {{ display: flex; flex-wrap: wrap; color: var(--faint); }}
.pictures svg {{ flex: 1 1 20rem; max-width: 32rem; min-width: 18rem; height: auto; }}
.ways {{ font-size: 0.85rem; }}
.ways td, .ways th {{ text-align: right; padding: 0.15rem 0.4rem; white-space: nowrap; }}
.ways td:first-child, .ways th:first-child, .ways td:last-child {{ text-align: left; }}
tr.better td {{ color: var(--better); }}
tr.worse td {{ color: var(--worse); }}
tr.chosen td {{ font-weight: 700; }}
</style>
</head>
<body>
<h1>{title}</h1>
<h2>{advice}</h2>
<p>{facts}</p>
{unseen}
<div class="pictures">{picture}</div>
<div class="wide"><table class="ways">
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
{sentences}
<p>{notes}</p>
<p><code>{command}</code></p>
</body>
</html>
"""
COLORED = (GREY, GREY, *COLORS[1:6], COLORS[0])  # of raw and centred vectors, then of the others
NOTES = (
    "P@k: the share of relevant ones among the first k. R@100: the share of the relevant ones that is among the "
    "first 100. nDCG@10: gains of the first ten ranks, discounted by log2(1 + rank), relative to the ideal order. MRR: "
    "1 / rank of the first relevant one. All in percent, candidates ranked by cosine."
)


def write_adapt_report(found: Adaptation, chosen: WayResult, facts: str, command: Sequence[str], path: Path) -> None:
    """Write the page."""
    lines = grid_of(found)
    advice, *sentences = verdict_of(found, chosen)
    rows = [
        f'<tr class="{one.status}{" chosen" * (one is chosen)}">'
        + "".join(f"<td>{escape(cell)}</td>" for cell in line.values())
        + "</tr>"
        for one, line in zip(found.results, lines, strict=True)
    ]
    page = {
        "title": escape(f"nearkin adapt {facts.rpartition(': ')[2]}"),
        "style": (files(__package__) / "page" / "page.css").read_text(encoding="utf-8"),
        "advice": escape(advice),
        "facts": escape(facts),
        "picture": quality_pictures(found, chosen),
        "head": "".join(f"<th>{escape(name)}</th>" for name in lines[0]),
        "rows": "\n".join(rows),
        "unseen": "\n".join(f"<p>{escape(line)}</p>" for line in sentences if line.startswith(NEW_CLASSES)),
        "sentences": "\n".join(f"<p>{escape(line)}</p>" for line in sentences if not line.startswith(NEW_CLASSES)),
        "notes": escape(NOTES),
        "command": escape(" ".join(command)),
    }
    path.write_text(PAGE.format(**page), encoding="utf-8", errors="replace")


def quality_pictures(found: Adaptation, chosen: WayResult) -> str:
    """Return the deciding score against the bytes of a vector, an SVG for every part of the queries.

    A ring marks the vectors that are advised, or were asked for by `--take`.
    """
    pictures = []
    for part in found.n_queries:
        figure, ax = new_figure("", 1)
        figure.suptitle("")
        figure.set_size_inches(6, 4.2)
        figure.patch.set_alpha(0)
        _draw_quality(ax, found, chosen, part)
        figure.legend(loc="outside lower center", ncols=3, frameon=False, labelcolor=GREY, fontsize="small")
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        drawn = text.getvalue().replace(GREY, "currentColor")  # grey enough for a light and for a dark page
        pictures.append(drawn[drawn.index("<svg") :])
    return "\n".join(pictures)


def _draw_quality(ax: Any, found: Adaptation, chosen: WayResult, part: str) -> None:
    raw, score = found.raw, found.score
    level = 100 * raw.scores[part][score]
    ax.axhline(level, color=GREY, linewidth=1, linestyle=":")
    kinds: dict[str, list[WayResult]] = {}
    for one in found.results:
        way = one.way
        words = " ".join(word for word in (way.kind, way.quantize) if word) + ", rescored" * way.rescored
        kinds.setdefault(words, []).append(one)
    for (kind, ways), color, marker in zip(kinds.items(), COLORED, MARKERS, strict=False):
        ways = sorted(ways, key=lambda one: one.way.bytes)
        half = [100 * (one.tests[part].interval()[1] - one.tests[part].difference) for one in ways]
        ax.errorbar(
            [one.way.bytes for one in ways], [100 * one.scores[part][score] for one in ways],
            yerr=None if ways[0] is raw else half, label=kind, marker=marker, markersize=5, linewidth=1,
            elinewidth=0.8, color=GREY if ways[0] is raw else color,
        )  # fmt: skip
    ax.plot(
        chosen.way.bytes, 100 * chosen.scores[part][score], linestyle="none", marker="o", markersize=15,
        markerfacecolor="none", markeredgecolor=GREY, markeredgewidth=2, gid="chosen",
        label=f"{'advised' if chosen is found.chosen else 'taken'}: {chosen.way.name}",
    )  # fmt: skip
    ax.set_xscale("log", base=2)
    sizes = sorted({one.way.bytes for one in found.results})
    ticks = sorted({*(size for size in sizes if size & (size - 1) == 0), sizes[-1]})
    ax.set_xticks(ticks, [f"{size:,}" for size in ticks])
    ax.set_xlabel("bytes a vector")
    ax.set_ylabel(f"{SHORT[score]} of held-out queries, %")
    queries = f"{found.n_queries[part]:,} queries"
    ax.set_title(queries if part == "queries" else f"{part} ({queries})")
    ax.patch.set_alpha(0)
    ax.tick_params(colors=GREY)
    for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
        text.set_color(GREY)
    for side in ax.spines.values():
        side.set_color(GREY)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
