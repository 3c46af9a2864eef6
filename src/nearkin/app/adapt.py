"""`nearkin adapt`: vectors for search, shorter and more accurate, or left as they are."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from .._blocks import unit_rows
from ..estimators import EmbeddingAdapter
from ..evaluation import (
    Adaptation,
    Judgements,
    Labels,
    Relevance,
    WayResult,
    compare_vectors,
    joined_groups,
    judged_matrix,
    twin_groups,
    ways_of,
)
from . import console
from .adapt_report import write_adapt_report
from .adapter_file import Header, SavedAdapter, load_adapter, save_adapter
from .model_file import SUFFIX
from .output import Outputs, check_writable
from .refusals import TableError, counted, quoted
from .sentences import one_line
from .tables import reading
from .vector_text import grid_of, verdict_of
from .vectors import VectorTable, read_codes, read_folder, read_judgements, read_vectors, sampled

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
    """Compare adapted vectors with raw ones, print what was found, save the best adapter where one is better."""
    _check(options)
    report = options.report and check_writable(options.report, [".html", ".htm"], "--report")
    save = options.save and check_writable(options.save, [SUFFIX], "--save")
    source = _read(options)
    _check_take(options, source.table.X.shape[1])
    facts = f"{counted(len(source.table.X), 'vector')} of {source.table.X.shape[1]} numbers: {source.table.name}"
    console.remark([facts, *(f"  {note}" for note in source.notes)], quiet=options.quiet, stderr=False)
    with console.Progress("fits", quiet=options.quiet) as progress, one_line(options.table):
        found = compare_vectors(
            source.compared, sizes=options.sizes, side=options.side, score=options.score, unseen=options.unseen,
            random_state=options.seed, progress=partial(progress, "adapters fitted"),
        )  # fmt: skip
    console.print_grid(grid_of(found))
    chosen = found.chosen if options.take is None else _named(found, options.take)
    advice, *sentences = verdict_of(found, chosen)
    console.say(advice, "bold")
    for line in sentences:
        console.say(line)
    outputs = Outputs(partial(console.remark, quiet=options.quiet, stderr=False))
    if report:
        command = ["nearkin", *options.arguments]
        outputs.write(
            report, "--report", partial(write_adapt_report, found, chosen, facts, command), f"Report: {report}"
        )
    if save and chosen.way.is_adapted:
        adapter = _saved(source, found, chosen)
        outputs.write(save, "--save", partial(_write, adapter), f"Adapter: {save} ({adapter.bytes} bytes a vector)")
    elif save:
        console.remark(["No adapter was saved: raw vectors need none."], quiet=options.quiet, stderr=False)
    return outputs.code


def _write(adapter: SavedAdapter, path: Path) -> None:
    save_adapter(adapter, path)
    load_adapter(path)  # nothing is kept that could not be read again


def _check(options: argparse.Namespace) -> None:
    """Refuse options that do not fit together."""
    given = [option for option in ("label", "pairs", "relevance") if getattr(options, option) is not None]
    if len(given) > 1:
        both = " and ".join(f"--{option}" for option in given)
        raise TableError(f"{both} each say what is known of the vectors: give one of them.")
    if not given:
        raise TableError("say what is known of the vectors by one of --label COLUMN, --pairs FILE, --relevance FILE.")
    if (options.relevance is None) != (options.queries is None):
        raise TableError("--queries FILE holds the vectors of queries, --relevance FILE their documents: give both.")
    if options.unseen and options.label is None:
        raise TableError("--unseen holds out classes, and needs --label.")
    if options.groups is not None and (options.label is None or Path(options.table).is_dir()):
        raise TableError("--groups keeps rows of a file together, and needs --label.")
    if options.side == "query" and options.label is not None:
        raise TableError("--side query adapts queries alone, and rows with labels are both: give --queries FILE.")


def _check_take(options: argparse.Namespace, p: int) -> None:
    """Refuse a name that is no adapter, before the work."""
    if options.take is None:
        return
    names = [way.name for way in ways_of(p, options.sizes, options.side) if way.is_adapted and not way.rescored]
    if options.take not in names:
        why = " (a database does that with the bits of one adapter and the int8 of another)" * (
            "rescored" in options.take
        )
        raise TableError(f"--take {options.take!r} is none of the adapters: {quoted(names, 30)}{why}.")


def _named(found: Adaptation, name: str) -> WayResult:
    """Return the way of a name; a size is not compared where there are fewer rows."""
    ways = {one.way.name: one for one in found.results}
    if name not in ways:
        raise TableError(
            f"--take {name!r} was not compared, there are too few rows: choose among {quoted(list(ways), 30)}."
        )
    return ways[name]


def _twins(X: np.ndarray, options: argparse.Namespace) -> np.ndarray:
    """Return groups of rows that are duplicates in direction."""
    with one_line(options.table):
        return twin_groups(unit_rows(X), scale=False)


def _read(options: argparse.Namespace) -> Source:
    if Path(options.table).is_dir():
        if options.label is None:
            raise TableError(f"{options.table} is a folder, of which labelled vectors are read: give --label.")
        table = read_folder(options.table, options.label, options.vectors, options.seed)
    else:
        names = {"label": options.label, "ids": options.id, "groups": options.groups, "vectors": options.vectors}
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
        raise TableError(f"{options.relevance} judges fewer than 8 queries that have a relevant document: give more.")
    judgements = Relevance(queries.X, table.X, R, _twins(queries.X, options))
    return Source(table, judgements, judgements, [*table.notes, *queries.notes])


def _labelled(table: VectorTable, options: argparse.Namespace) -> Source:
    """Return labelled vectors; of many, some are compared on."""
    assert table.labels is not None
    codes, rows, notes = read_codes(table.labels, options.table, "--label"), np.arange(len(table.X)), table.notes
    if len(rows) > COMPARED_ROWS:
        rows = sampled(codes, COMPARED_ROWS, options.seed)
        notes = [*notes, f"compared on {COMPARED_ROWS:,} rows, drawn by lot; what is saved is learned from all"]
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
        **{"low": low, "high": high, "p_value": chosen.p_value, "n_queries": float(found.n_queries[found.part])},
    }
    header = Header(
        way.name, table.column, table.columns, found.side, way.quantize, found.score, found.part,
        {name: float(value) for name, value in figures.items()}, table.name,
    )  # fmt: skip
    return SavedAdapter.of(adapter, header)
