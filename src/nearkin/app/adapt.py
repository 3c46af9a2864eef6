"""`nearkin adapt`: vectors for search, shorter and more accurate, or left as they are."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from .._blocks import unit_rows
from .._messages import counted, listed, quoted
from ..evaluation import (
    FOLDS,
    UNSEEN,
    Adaptation,
    Judgements,
    Labels,
    PairedTest,
    Relevance,
    WayResult,
    compare_vectors,
    joined_groups,
    judged_matrix,
    twin_groups,
    ways_of,
)
from ..plotting import COLORS, GREY, MARKERS
from ..vectors import EmbeddingAdapter
from . import console
from .adapter_file import Header, SavedAdapter, save_adapter
from .model import SUFFIX
from .output import Outputs, check_writable
from .pictures import new_figure
from .readers import TableError
from .tables import reading
from .vectors import VectorTable, read_codes, read_folder, read_judgements, read_vectors, sampled
from .words import one_line

# What was found about vectors, as a table of text and a few sentences.

SHORT = {
    "precision@1": "P@1",
    "precision@10": "P@10",
    "recall@100": "R@100",
    "nDCG@10": "nDCG@10",
    "MRR": "MRR",
}
NEW_CLASSES = "Classes that no training row has"


def grid_of(found: Adaptation) -> list[dict[str, str]]:
    """Return a line for every way: its bytes, its scores in percent, and the difference to the raw
    vectors.
    """
    unseen = UNSEEN if UNSEEN in found.n_queries and found.part != UNSEEN else None
    lines = []
    for one in found.results:
        scores, is_raw = one.scores[found.part], one is found.raw
        line = {"vectors": one.way.name, "bytes": f"{one.way.bytes:,}"}
        line |= {short: f"{100 * scores[name]:.1f}" for name, short in SHORT.items()}
        line[f"{SHORT[found.score]} - raw"] = "" if is_raw else difference(one.tests[found.part])
        if unseen:
            line["unseen - raw"] = "" if is_raw else difference(one.tests[unseen])
        line |= {
            "fit, s": f"{one.seconds:.1f}" if one.seconds else "",
            "verdict": one.status if one.way.is_adapted else "",
        }
        lines.append(line)
    return lines


def difference(test: PairedTest) -> str:
    """Return a difference in points with its 95 % interval."""
    low, high = test.interval()
    return f"{100 * test.difference:+.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def verdict_of(found: Adaptation, chosen: WayResult) -> list[str]:
    """Return sentences: what to take, how it was judged, and what to mind."""
    raw, score = found.raw, found.score
    lines = [_advice(found, chosen)]
    if UNSEEN in chosen.tests and chosen is not raw:
        lines.append(
            f"{NEW_CLASSES}: {100 * chosen.scores[UNSEEN][score]:.1f} against "
            f"{100 * raw.scores[UNSEEN][score]:.1f} raw, {difference(chosen.tests[UNSEEN])} points."
        )
    queries = " and ".join(
        f"{count:,} held-out queries of {part}" for part, count in found.n_queries.items()
    )
    queries = queries.replace(" queries of queries", " queries")
    lines.append(
        f"Judged by {queries}, in {FOLDS} splits; {score} decides. Intervals hold 95 %, corrected "
        "for the training "
        'rows that splits share; "better" holds for all adapters together, which are '
        "tested from long to short."
    )
    settings = ", ".join(f"{name} {value:g}" for name, value in found.settings.items())
    lines.append(f"Settings of the adapters, chosen inside the training rows: {settings}.")
    if found.harmful:
        lines.append(
            f"Better on seen classes, probably worse on new ones: {listed(found.harmful, 4)} "
            "(--take NAME takes one)."
        )
    return lines


def _advice(found: Adaptation, chosen: WayResult) -> str:
    raw = found.raw
    if chosen is raw:
        return f"Keep the raw vectors: no adapter is shown to be better in {found.score}."
    before, after = (one.scores[found.part][found.score] for one in (raw, chosen))
    times = raw.way.bytes / chosen.way.bytes
    size = f"{times:.3g} times smaller" if times > 1 else "of the same size"
    text = (
        f"Take {chosen.way.name}: {found.score} {100 * after:.1f} against {100 * before:.1f} raw "
        f"({difference(chosen.tests[found.part])} points), {chosen.way.bytes:,} bytes a vector in "
        f"place of {raw.way.bytes:,}, {size}."
    )
    return text if chosen.status == "better" else f"{text} It is not shown to be better than raw."


# The page of `nearkin adapt`: quality against bytes, and the table, in one file that needs no
# network.

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
    "P@k: the share of relevant ones among the first k. R@100: the share of the relevant ones that "
    "is among the first 100. nDCG@10: gains of the first ten ranks, discounted by log2(1 + rank), "
    "relative to the ideal order. MRR: 1 / rank of the first relevant one. All in percent, "
    "candidates ranked by cosine."
)


def write_adapt_report(
    found: Adaptation, chosen: WayResult, facts: str, command: Sequence[str], path: Path
) -> None:
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
        "unseen": "\n".join(
            f"<p>{escape(line)}</p>" for line in sentences if line.startswith(NEW_CLASSES)
        ),
        "sentences": "\n".join(
            f"<p>{escape(line)}</p>" for line in sentences if not line.startswith(NEW_CLASSES)
        ),
        "notes": escape(NOTES),
        "command": escape(" ".join(command)),
    }
    path.write_text(PAGE.format(**page), encoding="utf-8", errors="replace")


def quality_pictures(found: Adaptation, chosen: WayResult) -> str:
    """Return the deciding score against the bytes of a vector, an SVG for every part of the
    queries.

    A ring marks the vectors that are advised, or were asked for by `--take`.
    """
    pictures = []
    for part in found.n_queries:
        figure, ax = new_figure("", 1)
        figure.suptitle("")
        figure.set_size_inches(6, 4.2)
        figure.patch.set_alpha(0)
        _draw_quality(ax, found, chosen, part)
        figure.legend(
            loc="outside lower center", ncols=3, frameon=False, labelcolor=GREY, fontsize="small"
        )
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        # grey enough for a light and for a dark page
        drawn = text.getvalue().replace(GREY, "currentColor")
        pictures.append(drawn[drawn.index("<svg") :])
    return "\n".join(pictures)


def _draw_quality(ax: Any, found: Adaptation, chosen: WayResult, part: str) -> None:
    raw, score = found.raw, found.score
    level = 100 * raw.scores[part][score]
    ax.axhline(level, color=GREY, linewidth=1, linestyle=":")
    kinds: dict[str, list[WayResult]] = {}
    for one in found.results:
        way = one.way
        words = (
            " ".join(word for word in (way.kind, way.quantize) if word)
            + ", rescored" * way.rescored
        )
        kinds.setdefault(words, []).append(one)
    for (kind, ways), color, marker in zip(kinds.items(), COLORED, MARKERS, strict=False):
        ways = sorted(ways, key=lambda one: one.way.bytes)
        half = [100 * (one.tests[part].interval()[1] - one.tests[part].difference) for one in ways]
        ax.errorbar(
            [one.way.bytes for one in ways],
            [100 * one.scores[part][score] for one in ways],
            yerr=None if ways[0] is raw else half,
            label=kind,
            marker=marker,
            markersize=5,
            linewidth=1,
            elinewidth=0.8,
            color=GREY if ways[0] is raw else color,
        )
    ax.plot(
        chosen.way.bytes,
        100 * chosen.scores[part][score],
        linestyle="none",
        marker="o",
        markersize=15,
        markerfacecolor="none",
        markeredgecolor=GREY,
        markeredgewidth=2,
        gid="chosen",
        label=f"{'advised' if chosen is found.chosen else 'taken'}: {chosen.way.name}",
    )
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


COMPARED_ROWS = 20_000  # the adapter that is saved learns from all


@dataclass(frozen=True)
class Source:
    """What the command was given.

    Attributes
    ----------
    table : VectorTable
        The vectors of the index.
    judgements, compared : Judgements
        What is known, and the part of it that is compared on.
    notes : list of str
    """

    table: VectorTable
    judgements: Judgements
    compared: Judgements
    notes: list[str]


def adapt(options: argparse.Namespace) -> int:
    """Compare adapted vectors with raw ones, print what was found, save the best adapter where one
    is better.
    """
    _check(options)
    report = options.report and check_writable(options.report, [".html", ".htm"], "--report")
    save = options.save and check_writable(options.save, [SUFFIX], "--save")
    source = _read(options)
    _check_take(options, source.table.X.shape[1])
    facts = (
        f"{counted(len(source.table.X), 'vector')} of {source.table.X.shape[1]} numbers: "
        f"{source.table.name}"
    )
    outputs = Outputs(quiet=options.quiet, stderr=False)
    outputs.note(facts, *(f"  {note}" for note in source.notes))
    with console.Progress("fits", quiet=options.quiet) as progress, one_line(options.table):
        found = compare_vectors(
            source.compared,
            sizes=options.sizes,
            side=options.side,
            score=options.score,
            unseen=options.unseen,
            random_state=options.seed,
            progress=partial(progress, "adapters fitted"),
        )
    console.print_grid(grid_of(found))
    chosen = found.chosen if options.take is None else _named(found, options.take)
    advice, *sentences = verdict_of(found, chosen)
    console.say(advice, "bold")
    for line in sentences:
        console.say(line)
    if report:
        command = ["nearkin", *options.arguments]
        outputs.write(
            report,
            "--report",
            partial(write_adapt_report, found, chosen, facts, command),
            f"Report: {report}",
        )
    if save and chosen.way.is_adapted:
        adapter = _saved(source, found, chosen)
        outputs.write(
            save,
            "--save",
            partial(save_adapter, adapter),
            f"Adapter: {save} ({adapter.bytes} bytes a vector)",
        )
    elif save:
        outputs.note("No adapter was saved: raw vectors need none.")
    return outputs.code


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not fit together."""
    given = [
        option for option in ("label", "pairs", "relevance") if getattr(options, option) is not None
    ]
    if len(given) > 1:
        both = " and ".join(f"--{option}" for option in given)
        raise TableError(f"{both} each say what is known of the vectors: give one of them.")
    if not given:
        raise TableError(
            "say what is known of the vectors by one of --label COLUMN, --pairs FILE, --relevance "
            "FILE."
        )
    if (options.relevance is None) != (options.queries is None):
        raise TableError(
            "--queries FILE holds the vectors of queries, --relevance FILE their documents: give "
            "both."
        )
    if options.unseen and options.label is None:
        raise TableError("--unseen holds out classes, and needs --label.")
    if options.groups is not None and (options.label is None or Path(options.table).is_dir()):
        raise TableError("--groups keeps rows of a file together, and needs --label.")
    if options.side == "query" and options.label is not None:
        raise TableError(
            "--side query adapts queries alone, and rows with labels are both: give --queries FILE."
        )


def _check_take(options: argparse.Namespace, p: int) -> None:
    """Refuse a name that is no adapter, before the work."""
    if options.take is None:
        return
    names = [
        way.name
        for way in ways_of(p, options.sizes, options.side)
        if way.is_adapted and not way.rescored
    ]
    if options.take not in names:
        why = " (a database does that with the bits of one adapter and the int8 of another)" * (
            "rescored" in options.take
        )
        raise TableError(
            f"--take {options.take!r} is none of the adapters: {quoted(names, 30)}{why}."
        )


def _named(found: Adaptation, name: str) -> WayResult:
    """Return the way of a name; a size is not compared where there are fewer rows."""
    ways = {one.way.name: one for one in found.results}
    if name not in ways:
        raise TableError(
            f"--take {name!r} was not compared, there are too few rows: choose among "
            f"{quoted(list(ways), 30)}."
        )
    return ways[name]


def _twins(X: np.ndarray, options: argparse.Namespace) -> np.ndarray:
    """Return groups of rows that are duplicates in direction."""
    with one_line(options.table):
        return twin_groups(unit_rows(X), scale=False)


def _read(options: argparse.Namespace) -> Source:
    if Path(options.table).is_dir():
        if options.label is None:
            raise TableError(
                f"{options.table} is a folder, of which labelled vectors are read: give --label."
            )
        table = read_folder(options.table, options.label, options.vectors, options.seed)
    else:
        names = {
            "label": options.label,
            "ids": options.id,
            "groups": options.groups,
            "vectors": options.vectors,
        }
        read = partial(read_vectors, options.table, **names, reading=reading(options))
        table = console.while_reading(options, lambda progress: read(progress=progress))
    if options.label is not None:
        return _labelled(table, options)
    if options.pairs is not None:
        left, right, grades = read_judgements(options.pairs)
        pairs = np.column_stack([table.rows_of(side, options.pairs) for side in (left, right)])
        if (grades <= 0).all() or (pairs[:, 0] == pairs[:, 1]).any():
            raise TableError(f"{options.pairs} needs pairs of two rows, some with a grade above 0.")
        judgements = Relevance.of_pairs(table.X, pairs, grades, _twins(table.X, options))
        return Source(table, judgements, judgements, table.notes)
    queries = read_vectors(options.queries, ids=options.id, columns=table.columns)
    query, document, grades = read_judgements(options.relevance)
    at = queries.rows_of(query, options.relevance), table.rows_of(document, options.relevance)
    R = judged_matrix(*at, grades, (len(queries.X), len(table.X)))
    if (np.diff(R.indptr) > 0).sum() < 8:
        raise TableError(
            f"{options.relevance} judges fewer than 8 queries that have a relevant document: give "
            "more."
        )
    judgements = Relevance(queries.X, table.X, R, _twins(queries.X, options))
    return Source(table, judgements, judgements, [*table.notes, *queries.notes])


def _labelled(table: VectorTable, options: argparse.Namespace) -> Source:
    """Return labelled vectors; of many, some are compared on."""
    assert table.labels is not None
    codes, rows, notes = (
        read_codes(table.labels, options.table, "--label"),
        np.arange(len(table.X)),
        table.notes,
    )
    if len(rows) > COMPARED_ROWS:
        rows = sampled(codes, COMPARED_ROWS, options.seed)
        notes = [
            *notes,
            f"compared on {COMPARED_ROWS:,} rows, drawn by lot; what is saved is learned from all",
        ]
    every = Labels(table.X, codes, np.arange(len(codes)))
    compared = every.some(rows)
    twins = _twins(compared.X, options)
    n_twins = len(rows) - len(np.unique(twins))
    if n_twins:
        notes = [*notes, f"{counted(n_twins, 'duplicate')}, kept on one side of every split"]
    groups = twins
    if table.groups is not None:
        groups = joined_groups(twins, np.unique(table.groups[rows], return_inverse=True)[1])
    return Source(table, every, replace(compared, groups=groups), notes)


def _saved(source: Source, found: Adaptation, chosen: WayResult) -> SavedAdapter:
    """Return the adapter of a way, learned from all that is known."""
    way, table, test = chosen.way, source.table, chosen.tests[found.part]
    adapter = source.judgements.fit(
        EmbeddingAdapter(way.size, side=found.side, quantize=way.quantize, **found.settings)
    )
    low, high = test.interval()
    figures = {
        "adapter": chosen.scores[found.part][found.score],
        "raw": found.raw.scores[found.part][found.score],
        **{
            "low": low,
            "high": high,
            "p_value": chosen.p_value,
            "n_queries": float(found.n_queries[found.part]),
        },
    }
    header = Header(
        way.name,
        table.column,
        table.columns,
        found.side,
        way.quantize,
        found.score,
        found.part,
        {name: float(value) for name, value in figures.items()},
        table.name,
    )
    return SavedAdapter(header, adapter)
