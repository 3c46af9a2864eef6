"""`nearkin match`: rows of two files, or of one, that belong together."""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array

from ..._messages import counted, listed
from ...graphs import connected_components
from ...vectors import ALL, BestMatches
from .. import console
from ..document import write_document
from ..endings import TableError, one_line
from ..files.formats import reading
from ..output import Outputs, table_output, write_result
from ..places import STANDARD_INPUT
from .adapter_file import load_adapter
from .reading import VectorTable, read_vectors
from .thresholds import figures_of, index_of, interval_of

OF_ONE_FILE = (
    "They belong together like those that the adapter learned from, such as rows with the same "
    "label. For near duplicates, learn from pairs of them: nearkin adapt --pairs."
)


def match(options: argparse.Namespace) -> int:
    """Find the best match of every row, and write those that are certain enough."""
    output, suffix = table_output(options)
    if options.table == options.index == STANDARD_INPUT:
        raise TableError("- and -: only one of the files can be standard input, so name the other.")
    adapter = load_adapter(options.adapter)
    expect = options.expect or adapter.expect
    with one_line(options.adapter):
        matcher = adapter.matcher(options.adapter, expect)
    if adapter.map.side == "query" and options.index is None:
        raise TableError(
            f"{options.adapter} adapts only queries: give two files, of queries and of documents."
        )
    if options.one_to_one and options.index is None:
        raise TableError(
            "--one-to-one is for two files. Of one file, the column cluster of the output says "
            "which rows belong together: leave the option out."
        )
    with one_line(options.adapter):  # fails before the search if there is no guarantee
        matcher.list_rules_.promises(options.precision)
    read = partial(
        read_vectors,
        ids=options.id,
        vectors=options.vectors,
        columns=adapter.columns,
        reading=reading(options),
    )
    tables = [
        console.while_reading(options, partial(read, source, beside=other))
        for source, other in ((options.table, options.index), (options.index, options.table))
        if source is not None
    ]
    A, B = tables[0], tables[-1]
    A.require_names(options.id, options.table)
    B.require_names(options.id, options.index or options.table)
    if options.index is None and len(A.X) < 2:
        raise TableError(f"{options.table} holds one row: give at least two, or a second file.")
    outputs = Outputs(quiet=options.quiet)
    n_zeros = sum(int((~table.X.any(axis=1)).sum()) for table in tables)
    zeros = [f"{counted(n_zeros, 'row')} of zeros have no direction, and no match"] * (n_zeros > 0)
    notes = [*(note for table in tables for note in table.notes), *zeros]
    outputs.note(*notes)
    is_own = options.index is None
    with one_line(options.table), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "precision=.* is not promised")  # said below
        found = matcher.best_match(A.X, None if is_own else B.X, options.precision)
    kept = found if is_own else found.one_to_one()
    n_repeated = np.count_nonzero(found.rows != kept.rows)
    if options.one_to_one:
        found = kept
    rows, pairs = accepted_pairs(found, own=is_own)
    columns = pair_names(A, B, pairs, options.id) | {
        "similarity": found.similarities[rows],
        "probability": found.probabilities[rows],
    }
    if is_own:
        columns["cluster"] = clusters_of(pairs)
    rules = matcher.list_rules_
    document = {
        "adapter": {"name": adapter.name, "learned_from": adapter.table},
        "tables": [{"name": table.name, "rows": len(table.X)} for table in tables],
        "notes": notes,
        "precision": options.precision,
        "unanswerable": adapter.unanswerable,
        "expect": expect,
        "candidates": rules.every.n_candidates or None,
        "promises": [
            {
                "part": part,
                "queries": rules.parts[part].curve.n_queries,
                "bound": promise.bound,
                "kept": promise.is_kept,
            }
            | figures_of(promise)
            for part, promise in rules.promises(options.precision, len(B.X)).items()
        ],
        "one_to_one": options.one_to_one,
        "repeated": None if is_own else n_repeated,
        "matched": np.count_nonzero(found.rows >= 0),
        "pairs": len(rows),
        "clusters": len(np.unique(columns["cluster"])) if is_own else None,
    }
    document["sentences"] = sentences_of(document)
    outputs.note(*document["sentences"])
    write_result(options, outputs, output, suffix, columns, counted(len(rows), "pair"))
    write_document(options, outputs, document)
    return outputs.code


def accepted_pairs(found: BestMatches, *, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with a match, and the rows of each pair, (n, 2).

    For a single file, a pair has the smaller row first. If both rows are each other's best match,
    the pair is listed for the row whose match is more probable.
    """
    rows = np.flatnonzero(found.rows >= 0)
    pairs = np.column_stack([rows, found.rows[rows]])
    if own:
        order = np.argsort(-found.probabilities[rows], kind="stable")
        pairs, first = np.unique(np.sort(pairs[order], axis=1), axis=0, return_index=True)
        rows = rows[order[first]]
    return rows, pairs


def clusters_of(pairs: np.ndarray) -> np.ndarray:
    """Return the cluster (0, 1, ...) of every pair: the connected component of its rows."""
    rows, places = np.unique(pairs, return_inverse=True)
    of_pairs = (np.ones(len(pairs)), places.reshape(-1, 2).T)
    return connected_components(csr_array(of_pairs, shape=(len(rows), len(rows))))[places[:, 0]]


def pair_names(
    A: VectorTable, B: VectorTable, pairs: np.ndarray, column: str | None
) -> dict[str, Any]:
    """Return the names of the rows of pairs, or their indices."""
    a, b = pairs.T
    if A.ids is None or B.ids is None:
        return {"row_a": a, "row_b": b}
    return {f"{column}_a": A.ids.take(pa.array(a)), f"{column}_b": B.ids.take(pa.array(b))}


def sentences_of(document: dict[str, Any]) -> list[str]:
    """Return sentences: how many rows match, with which precision, and what is left out."""
    first, *others = document["tables"]
    promises, precision = document["promises"], document["precision"]
    n, searched = document["candidates"], document["tables"][-1]["rows"]
    shown = [
        f"of {one['queries']:,} {'' if one['part'] == ALL else 'queries of '}{one['part']} "
        f"{100 * one['recall']:.1f} %{interval_of(one)} got a right match, and "
        f"{100 * one['right']:.1f} % of the matches were right"
        for one in promises
    ]
    if all(one["kept"] for one in promises):
        said = f"At least {100 * precision:g} % of the matches are right, with 95 % confidence"
    else:
        most = min(one["bound"] for one in promises)
        said = (
            f"That {100 * precision:g} % of the matches are right is not promised (at most "
            f"{100 * most:.1f} % can be, by the threshold that is taken)"
        )
    if n is not None and n < searched:
        said += (
            f", in an index of {searched:,} rows, in which a wrong match is taken to be "
            f"{searched / n:.3g} times as likely (an upper bound), in probabilities too"
        )
    clusters = counted(document["clusters"] or 0, "cluster")
    where = f" in {others[0]['name']}" if others else f", in {clusters}"
    lines = [
        f"{document['matched']:,} of {counted(first['rows'], 'row')} of {first['name']} have a "
        f"match{where}.",
        f"{said}, for rows like the queries held out from {document['adapter']['learned_from']}, "
        f"which searched {index_of(n)}: {'; '.join(shown)}.",
    ]
    false = [
        f"{100 * one['false_answers']:.1f} %" + f" ({one['part']})" * (len(promises) > 1)
        for one in promises
        if np.isfinite(one["false_answers"])
    ]
    if false:
        lines.append(
            f"Of queries that have no right match, {listed(false)} got a match. Their share is "
            f"assumed to be {100 * document['unanswerable']:g} %: nearkin adapt --unanswerable "
            "sets another one."
        )
    if others and document["repeated"]:
        repeated = f"{counted(document['repeated'], 'row')} of {first['name']}"
        lines.append(
            f"{repeated} left out: a more probable one has the same match. The precision should "
            f"hold if no row of {others[0]['name']} has several right ones."
            if document["one_to_one"]
            else f"{repeated} share their match with a more probable one; --one-to-one leaves them "
            "out."
        )
    return lines if others else [*lines, OF_ONE_FILE]
