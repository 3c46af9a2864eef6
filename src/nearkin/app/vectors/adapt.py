"""`nearkin adapt`: shorter and more accurate vectors for search, if better than raw ones."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ..._blocks import unit_rows
from ..._messages import counted, listed, quoted, shown
from ...graphs import joined_groups
from ...neighbors import twin_groups
from ...vectors import (
    FOLDS,
    UNSEEN,
    Adaptation,
    Labels,
    MatchRules,
    Relevance,
    WayResult,
    compare_vectors,
    judged_matrix,
    ways_of,
)
from .. import console
from ..document import interval_of, points, show, write_document
from ..endings import TableError, one_line
from ..files.formats import reading
from ..files.judgements import JudgementFile, check_names, read_judgements, write_runs
from ..output import Outputs
from .adapter_file import SavedAdapter, save_adapter
from .reading import (
    VectorTable,
    is_judgement,
    read_codes,
    read_folder,
    read_vectors,
    sampled,
)
from .thresholds import say_thresholds, thresholds

COMPARED_ROWS = 20_000  # the saved adapter learns from all rows


def adapt(options: argparse.Namespace) -> int:
    """Compare adapted vectors with raw ones; save the best adapter if one is better."""
    _check(options)
    with one_line(options.table):
        table, queries, known, compared, notes = _read(options)
    if options.run is not None:
        check_names([*queries.row_names, *table.row_names])
    p = table.X.shape[1]
    ways = ways_of(compared, options.sizes, options.side)
    names = [way.name for way in ways if way.is_adapted and not way.rescored]
    if options.take is not None and options.take not in names:
        raise TableError(f"--take {options.take!r} is not an adapter: give {quoted(names, 30)}.")
    facts = f"{counted(len(table.X), 'vector')} of {p} dimensions: {table.name}"
    outputs = Outputs(quiet=options.quiet, stderr=False)
    outputs.note(facts, *(f"  {note}" for note in notes))
    with console.Progress("fits", quiet=options.quiet) as progress, one_line(options.table):
        found = compare_vectors(
            compared,
            sizes=options.sizes,
            side=options.side,
            score=options.score,
            expect=options.expect,
            random_state=options.seed,
            progress=partial(progress, "adapters fitted"),
        )
    by_name = {one.way.name: one for one in found.results}
    if options.take not in (None, *by_name):
        raise TableError(
            f"--take {options.take!r} was not compared, as there are too few rows: choose one of "
            f"{quoted(by_name, 30)}."
        )
    chosen = by_name.get(options.take, found.chosen)
    lists = found.held_out_lists(chosen.way)
    rules = partial(MatchRules.fitted, lists, options.unanswerable)
    pair_rules = rules(of_pairs=True)
    expected = pair_rules.expecting(options.expect)
    document = {
        "seed": options.seed,
        "table": {"name": table.name, "rows": len(table.X), "dimensions": p},
        "notes": notes,
        **found_in(found, chosen),
        "matches": thresholds(expected, chosen.way.name, options.unanswerable),
    }
    show(grid_of(document), document["sentences"], SPARED)
    say_thresholds(document["matches"])
    if options.save:
        adapter = replace(
            _saved_adapter(table, known, found, chosen),
            pair_rules=pair_rules,
            list_rules=rules(of_pairs=False),
            unanswerable=options.unanswerable,
            expect=options.expect,
        )
        done = f"Adapter: {options.save} ({adapter.bytes:,} bytes a vector)"
        if chosen is found.raw:
            done = (
                f"Raw vectors, for `nearkin match`: {options.save} (it changes only their length)"
            )
        outputs.write(options.save, "--save", partial(save_adapter, adapter), done)
    write_document(options, outputs, document)
    if options.run and isinstance(compared, Relevance):
        write_runs(Path(options.run), found, chosen, compared, queries.row_names, table.row_names)
        outputs.note(f"Held-out rankings: {options.run}")
    return outputs.code


# Input of the command.


def _check(options: argparse.Namespace) -> None:
    """Raise an error for options that contradict each other."""
    given = [f"--{name}" for name in ("label", "pairs", "relevance") if getattr(options, name)]
    if len(given) > 1:
        raise TableError(
            f"{' and '.join(given)} each say what to learn from: give only one of them."
        )
    if not given:
        raise TableError(
            "say what to learn from, by one of --label COLUMN, --pairs FILE, --relevance FILE."
        )
    if (options.relevance is None) != (options.queries is None):
        raise TableError(
            "--queries FILE holds the vectors of queries, --relevance FILE their relevant "
            "documents: give both."
        )
    if options.run is not None:
        run = Path(options.run)
        if options.label is not None or run.exists():
            what = "exists" if options.label is None else "needs judgements, not labels"
            raise TableError(f"--run {run} {what}: give --pairs or --relevance, and a new folder.")
        if not os.access(run.absolute().parent, os.W_OK):
            raise TableError(f"--run {run}: no folder can be made there: choose another place.")
    if options.expect != "both" and options.label is None:
        raise TableError(f"--expect {options.expect} is about classes: it needs --label.")
    if options.groups is not None and (options.label is None or Path(options.table).is_dir()):
        raise TableError("--groups keeps rows of a file together: it needs a file, and --label.")
    if options.side == "query" and options.sizes is not None:
        raise TableError(
            "--sizes is for shorter vectors, but --side query compares queries with documents as "
            "they are: leave one of them out."
        )
    if options.side == "query" and options.label is not None:
        raise TableError(
            "--side query adapts only queries, but labelled rows are also documents: give "
            "--queries FILE."
        )


def _read(
    options: argparse.Namespace,
) -> tuple[VectorTable, VectorTable, Labels | Relevance, Labels | Relevance, list[str]]:
    """Return the vectors, those of queries (possibly the same), judgements twice, and notes.

    The judgements are first all of them, then the part used in the comparison.
    """
    text = reading(options)
    if Path(options.table).is_dir():
        if options.label is None:
            raise TableError(
                f"{options.table} is a folder, which must hold labelled vectors: give --label."
            )
        table = read_folder(options.table, options.label, options.vectors, options.seed)
    else:
        read = partial(
            read_vectors,
            options.table,
            label=options.label,
            ids=options.id,
            groups=options.groups,
            vectors=options.vectors,
            beside=options.queries,
            reading=text,
        )
        table = console.while_reading(options, read)
    if options.label is not None:
        table, _ = table.directed()
    if table.labels is not None:
        codes = read_codes(table.labels, options.table, "--label")
        known = Labels(table.X, codes, np.arange(len(codes)))
        rows, notes = known.groups, list(table.notes)
        if len(rows) > COMPARED_ROWS:
            rows = sampled(codes, COMPARED_ROWS, options.seed)
            notes.append(
                f"compared on {COMPARED_ROWS:,} rows, drawn at random; the saved adapter learns "
                "from all"
            )
        compared = known.some(rows)
        groups = _twins(compared.X)
        n_twins = len(rows) - len(np.unique(groups))
        if n_twins:
            notes.append(f"{counted(n_twins, 'duplicate')}, kept on one side of every split")
        if table.groups is not None:
            given = np.unique(table.groups[rows], return_inverse=True)[1]
            groups = joined_groups(groups, given)
        return table, table, known, replace(compared, groups=groups), notes
    if options.pairs is not None:
        of_rows = replace(text, is_row=partial(is_judgement, table, table))
        stated = read_judgements(options.pairs, reading=of_rows)
        pairs, grades, remarks = judged_rows(stated, table, table, options.pairs)
        if (grades <= 0).all() or (pairs[:, 0] == pairs[:, 1]).any():
            raise TableError(f"{options.pairs} needs pairs of two rows, some with grades above 0.")
        of_pairs = Relevance.of_pairs(table.X, pairs, grades, _twins(table.X))
        table, rows = table.directed()
        of_pairs = of_pairs.some(rows)
        return table, table, of_pairs, of_pairs, [*table.notes, *remarks]
    queries = read_vectors(
        options.queries,
        ids=options.id,
        columns=table.columns,
        beside=options.table,
        reading=text,
    )
    queries, table, R, remarks = read_relevance(options, queries, table)
    queries, of_queries = queries.directed()
    table, of_documents = table.directed()
    R = R[of_queries][:, of_documents]
    judged = Relevance(queries.X, table.X, R, _twins(queries.X))
    if len(judged) < 8:
        raise TableError(
            f"{options.relevance} has fewer than 8 queries with a relevant document: give more."
        )
    return table, queries, judged, judged, [*table.notes, *queries.notes, *remarks]


def read_relevance(
    options: argparse.Namespace, queries: VectorTable, documents: VectorTable
) -> tuple[VectorTable, VectorTable, csr_array, list[str]]:
    """Return the queries and the documents, perhaps named by --relevance, the grades, and notes.

    The grades have a row for each query and a column for each document.
    """
    path = options.relevance
    of_rows = replace(reading(options), is_row=partial(is_judgement, queries, documents))
    stated = read_judgements(path, names=options.id is None, reading=of_rows)
    queries, documents = (
        table.named(names, path)
        for table, names in ((queries, stated.queries), (documents, stated.documents))
    )
    rows, grades, remarks = judged_rows(stated, queries, documents, path)
    left, right = rows.T
    R = judged_matrix(left, right, grades, (len(queries.X), len(documents.X)))
    return queries, documents, R, remarks


def judged_rows(
    stated: JudgementFile, queries: VectorTable, documents: VectorTable, where: str
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the rows of judgements, (n, 2), their grades, and notes.

    Those of rows without a vector are left out; raise an error if these are more than half.
    """
    sides = (queries, stated.left), (documents, stated.right)
    rows = np.column_stack([table.rows_of(names, where) for table, names in sides])
    known = (rows >= 0).all(axis=1)
    if known.all():
        return rows, stated.grades, [stated.note]
    table, unknown = next(
        (table, list(dict.fromkeys(names[found < 0].tolist())))
        for (table, names), found in zip(sides, rows.T, strict=True)
        if (found < 0).any()
    )
    n = len(rows) - int(known.sum())
    if 2 * n > len(rows):
        raise TableError(
            f"{where} names {quoted(unknown, 3)}, which the column --id of {table.name} does not "
            "contain."
        )
    lost = f"{counted(n, 'judgement')} left out, of rows without a vector"
    return rows[known], stated.grades[known], [stated.note, f"{lost}, such as {shown(unknown[0])}"]


def _twins(X: np.ndarray) -> np.ndarray:
    """Return groups of rows with equal directions."""
    return twin_groups(unit_rows(X), scale=False)


def _saved_adapter(
    table: VectorTable, known: Labels | Relevance, found: Adaptation, chosen: WayResult
) -> SavedAdapter:
    """Return the adapter of a way, learned from all judgements; for raw vectors the identity."""
    way, part = chosen.way, found.part
    low, high = chosen.tests[part].interval()
    figures = {
        "adapter": chosen.scores[part][found.score],
        "raw": found.raw.scores[part][found.score],
        "low": low,
        "high": high,
        "p_value": chosen.p_value,
        "n_queries": found.n_queries[part],
    }
    return SavedAdapter(
        found.adapter(way, known),
        way.name,
        table.column,
        table.columns,
        found.score,
        part,
        {name: float(value) for name, value in figures.items()},
        table.name,
    )


# Results as a table of text and a few sentences.

SHORT = {
    "precision@1": "P@1",
    "precision@10": "P@10",
    "recall@100": "R@100",
    "nDCG@10": "nDCG@10",
    "MAP": "MAP",
    "MRR": "MRR",
}
ASKED = ("MAP",)  # scores that are only shown if they decide
# columns omitted on a narrow terminal
SPARED = ("fit, s", "MRR", "R@100", "nDCG@10", "P@1")


def found_in(found: Adaptation, chosen: WayResult) -> dict[str, Any]:
    """Return what was found, with the way that is chosen (docs/guide/json.md)."""
    vectors = []
    for one in found.results:
        kind = " ".join(filter(None, [one.way.kind, one.way.quantize]))
        vectors.append(
            {
                "name": one.way.name,
                "kind": kind + ", rescored" * one.way.rescored,
                "dimensions": one.way.size,
                "bytes": one.way.bytes,
                "status": one.status,
                "p": one.p_value if one.way.is_adapted else None,
                "fit_seconds": one.seconds or None,
                "by_part": {
                    part: {"scores": scores} | interval_of(one.tests[part])
                    for part, scores in one.scores.items()
                },
            }
        )
    return {
        "score": found.score,
        "part": found.part,
        "queries": found.n_queries,
        "settings": settings_in(found, chosen),
        "sentences": verdict_of(found, chosen),
        "recommended": found.chosen.way.name,
        "taken": chosen.way.name,
        "vectors": vectors,
    }


def settings_in(found: Adaptation, chosen: WayResult) -> dict[str, Any]:
    """Return the settings of the chosen kind of adapter or, if it has none, of the others."""
    return found.settings.get(chosen.way.kind) or next(iter(found.settings.values()))


def grid_of(document: dict[str, Any]) -> list[dict[str, str]]:
    """Return a line for every way: bytes, scores in percent, and difference from raw."""
    lines, score, decisive = [], document["score"], document["part"]
    for one in document["vectors"]:
        parts = one["by_part"]
        line = {"vectors": one["name"], "bytes": f"{one['bytes']:,}"}
        line |= {
            short: f"{100 * parts[decisive]['scores'][name]:.1f}"
            for name, short in SHORT.items()
            if name not in ASKED or name == score
        }
        is_raw, is_adapted = one["status"] == "baseline", one["p"] is not None
        line[f"{SHORT[score]} - raw"] = "" if is_raw else points(parts[decisive])
        if UNSEEN in parts and decisive != UNSEEN:
            line["unseen - raw"] = "" if is_raw else points(parts[UNSEEN])
        line["fit, s"] = f"{one['fit_seconds']:.1f}" if one["fit_seconds"] else ""
        line["verdict"] = one["status"] if is_adapted else ""
        lines.append(line)
    return lines


def verdict_of(found: Adaptation, chosen: WayResult) -> list[str]:
    """Return sentences: the advice, how ways were evaluated, and caveats."""
    raw, score = found.raw, found.score

    def against_raw(part: str) -> tuple[str, str]:
        after, before = (100 * one.scores[part][score] for one in (chosen, raw))
        return f"{after:.1f} against {before:.1f} raw", points(interval_of(chosen.tests[part]))

    if chosen is raw:
        better = [one.way for one in found.results if one.status == "better"]
        ruled_out = ["probably lose on unseen classes"] * bool(found.harmful)
        if any(way.rescored for way in better):
            ruled_out.append("need two files of vectors")
        why = f"no others are shown to be better in {score}"
        if better:
            why = f"those shown to be better in {score} {' or '.join(ruled_out)}"
        lines = [f"Keep the raw vectors: {why}."]
    else:
        times = raw.way.bytes / chosen.way.bytes
        size = f"{chosen.way.bytes:,} bytes a vector"
        if times > 1:
            size += f" instead of {raw.way.bytes:,}, {times:.3g} times smaller"
        doubts = {"better": "", "worse": " It is shown to be worse than raw."}
        doubt = doubts.get(chosen.status, " It is not shown to be better than raw.")
        scores, gain = against_raw(found.part)
        lines = [f"Take {chosen.way.name}: {score} {scores} ({gain} points), {size}.{doubt}"]
        if UNSEEN in chosen.tests:
            scores, gain = against_raw(UNSEEN)
            lines.append(f"Classes unseen in training: {scores}, {gain} points.")
    queries = " and ".join(
        f"{count:,} held-out queries{'' if part == 'queries' else f' of {part}'}"
        for part, count in found.n_queries.items()
    )
    settings = ", ".join(f"{name} {value}" for name, value in settings_in(found, chosen).items())
    lines += [
        f"Evaluated on {queries}, in {FOLDS} splits; {score} decides. Intervals are 95 % "
        'intervals, corrected for the training rows that splits share; "better" allows for testing '
        "several kinds of vectors, from long to short.",
        f"Settings of the adapters, chosen within the training rows: {settings}.",
    ]
    if isinstance(found.judgements, Relevance):
        lines.append(
            "Documents without a judgement count as not relevant. If only the results of a search "
            "were judged, as with clicks, this favours the vectors of that search: relevant "
            'documents that only others find count as wrong, and may cause a "worse" or "unclear".'
        )
    if found.harmful:
        lines.append(
            "Better on seen classes, probably worse on new ones than raw or truncated vectors: "
            f"{listed(found.harmful, 4)} (--take NAME takes one)."
        )
    return lines
