"""`nearkin migrate`: a new model for an old index, or the advice to embed everything again."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._messages import counted, quoted
from ...vectors import EmbeddingAdapter, Migration, MigrationVerdict, evaluate_migration
from ..document import interval_of, points, show, write_document
from ..endings import TableError, one_line
from ..files.formats import reading
from ..output import Outputs
from .adapter_file import SavedAdapter, save_adapter
from .reading import VectorTable, read_codes, read_vectors, same_names

SIDES = {"old": "query", "new": "document"}  # by the target space
NAMES = {"query": "migrated queries", "document": "migrated documents"}


def migrate(options: argparse.Namespace) -> int:
    """Learn a map between the vectors of two models, report what it preserves, and save it."""
    side = SIDES[options.into]
    if options.label is not None and options.relevance is not None:
        raise TableError("--label and --relevance each say what is right: give only one of them.")
    if (options.relevance is None) != (options.queries is None):
        raise TableError(
            "--queries OLD NEW holds the vectors of queries by both models, --relevance FILE their "
            "relevant items: give both."
        )
    with one_line(options.old):
        read = partial(read_vectors, ids=options.id, reading=reading(options))
        old = read(options.old, label=options.label, vectors=options.vectors, beside=options.new)
        new = read(options.new, vectors=options.vectors, beside=options.old)
    rows_old, rows_new, notes = matched(old, new, (options.old, options.new), options.id)
    codes = queries = relevance = None
    if old.labels is not None:
        codes = read_codes(old.labels[rows_old], options.old, "--label")
    if options.queries is not None:
        from .adapt import read_relevance  # and with it the comparison of vectors

        with one_line(options.relevance):
            q_old, q_new = (
                read(path, columns=one.columns, beside=options.old)
                for path, one in zip(options.queries, (old, new), strict=True)
            )
            of_old, of_new, about_queries = matched(q_old, q_new, options.queries, options.id)
            queries = q_old.X[of_old], q_new.X[of_new]
            _, _, R, remarks = read_relevance(options, q_old, old)
            relevance = R[of_old][:, rows_old]
            notes += [*about_queries, *remarks]
    outputs = Outputs(quiet=options.quiet, stderr=False)
    outputs.note(
        f"{counted(len(rows_old), 'row')} embedded by both models: {old.X.shape[1]} dimensions of "
        f"{old.name}, {new.X.shape[1]} of {new.name}",
        *(f"  {note}" for note in notes),
    )
    X_old, X_new = old.X[rows_old], new.X[rows_new]
    with one_line(options.old):
        found = evaluate_migration(
            X_old,
            X_new,
            side=side,
            labels=codes,
            queries=queries,
            relevance=relevance,
            random_state=options.seed,
        )
    document = {
        "seed": options.seed,
        "old": {"name": old.name, "rows": len(old.X), "dimensions": old.X.shape[1]},
        "new": {"name": new.name, "rows": len(new.X), "dimensions": new.X.shape[1]},
        "items": len(rows_old),
        "notes": notes,
        **found_in(found),
        "sentences": verdict_of(found, len(rows_old)),
    }
    show(grid_of(document), document["sentences"], ())
    if options.save:
        source = new if side == "query" else old
        X, Y = (X_new, X_old) if side == "query" else (X_old, X_new)
        model = found.map.same_setting(len(X) / max(found.curve)).fit(X, Y, labels=codes)
        saved = saved_map(model, source, found)
        done = f"Map: {options.save} (of {NAMES[side]}, {saved.bytes:,} bytes a vector)"
        outputs.write(options.save, "--save", partial(save_adapter, saved), done)
    write_document(options, outputs, document)
    return outputs.code


def matched(
    old: VectorTable, new: VectorTable, paths: Sequence[str], column: str | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the rows of both files that are the same items, in the same order, and notes."""
    notes = [*old.notes, *new.notes]
    if old.ids is None or new.ids is None:
        if len(old.X) != len(new.X):
            raise TableError(
                f"{paths[0]} has {len(old.X):,} rows and {paths[1]} {len(new.X):,}: name the "
                "column that identifies items with --id."
            )
        rows = np.arange(len(old.X))
        return rows, rows, [*notes, "rows are matched by number, not by name (no --id)"]
    for one, path in zip((old, new), paths, strict=True):
        one.require_names(str(column), path)
    names = same_names(old.ids.to_pylist(), new.ids.to_pylist())
    for ids, path in zip(names, paths, strict=True):
        if several := [name for name, count in Counter(ids).items() if count > 1]:
            raise TableError(
                f"{path}: the column {column} has several rows of {quoted(several, 3)}: give each "
                "item once."
            )
    of_new = {name: row for row, name in enumerate(names[1])}
    pairs = [(row, of_new[name]) for row, name in enumerate(names[0]) if name in of_new]
    if not pairs:
        raise TableError(
            f"{paths[0]} and {paths[1]} have no item of {column} in common: give the same items, "
            "embedded by both models."
        )
    for ids, path in zip(names, paths, strict=True):
        if alone := len(ids) - len(pairs):
            notes.append(f"{counted(alone, 'row')} only in {path}: left out")
    rows_old, rows_new = np.array(pairs).T
    return rows_old, rows_new, notes


def saved_map(model: Migration, source: VectorTable, found: MigrationVerdict) -> SavedAdapter:
    """Return a fitted map with its metadata."""
    arrays = {
        "components": model.components_.astype(np.float32),
        "bias": model.bias_.astype(np.float32),
        "scale": np.ones(1, np.float32),
    }
    low, high = found.test.interval()
    held_out = {
        "adapter": found.scores["migration"][found.score],
        "raw": found.scores[found.reference][found.score],
        "low": low,
        "high": high,
        "p_value": found.test.p_value,
        "n_queries": found.n_queries,
    }
    return SavedAdapter(
        EmbeddingAdapter.from_arrays(arrays, side=model.side),
        NAMES[model.side],
        source.column,
        source.columns,
        found.score,
        "queries",
        {name: float(value) for name, value in held_out.items()},
        source.name,
        baseline=found.reference,
    )


# Results as a table of text and a few sentences.


def found_in(found: MigrationVerdict) -> dict[str, Any]:
    """Return what was found (docs/guide/json.md)."""
    low, high = found.interval
    unseen = found.unseen
    return {
        "verdict": found.verdict,
        "score": found.score,
        "reference": found.reference,
        "searches": [{"name": name, "scores": scores} for name, scores in found.scores.items()],
        "test": interval_of(found.test) | {"p": found.test.p_value},
        "kept": {"share": found.kept, "low": low, "high": high},
        "unseen": unseen
        and {"migration": unseen.migration, "reference": unseen.reference}
        | interval_of(unseen.test),
        "queries": found.n_queries,
        "documents": found.n_documents,
        "curve": [{"rows": rows, "score": score} for rows, score in found.curve.items()],
        "growth": interval_of(found.growth),
        "gain_of_more": found.gain_of_more,
        "rows_needed": found.rows_needed,
    }


def grid_of(document: dict[str, Any]) -> list[dict[str, str]]:
    """Return a line for every kind of search."""
    return [
        {"search": one["name"]} | {name: f"{100 * s:.1f}" for name, s in one["scores"].items()}
        for one in document["searches"]
    ]


def verdict_of(found: MigrationVerdict, n: int) -> list[str]:
    """Return sentences: the advice, what is preserved, how that was evaluated, further gains."""
    score, migrated = found.score, found.scores["migration"]
    low, high = (100 * end for end in found.interval)
    against = "embedding everything again" if found.reference != "old model" else "the old model"
    shares = [100 * found.scores[way]["recall@10"] for way in ("migration", "old model")]
    if score == "recall@10":
        lines = [
            f"{found.verdict.capitalize()}: the map finds {shares[0]:.1f} % of the new model's own "
            f"ten neighbours ({100 * found.kept:.1f} % corrected for chance [{low:.1f}, "
            f"{high:.1f}]), the old model by itself {shares[1]:.1f} %.",
            {
                "migrate": "Whatever is relevant, precision at ten differs from the new model's by "
                "at most the share not found.",
                "embed again": "Results of other queries contain as many of these: either the "
                "models have nothing in common, or the rows of the files are not the same items.",
                "unknown": "Whether the other results are worse, as good or better, and whether "
                "the new model is better than the old one, only labels or judgements can show: "
                "give --label, or --queries and --relevance.",
            }[found.verdict],
        ]
    else:
        lines = [
            f"{found.verdict.capitalize()}: {score} {100 * migrated[score]:.1f} against "
            f"{100 * found.scores[found.reference][score]:.1f} by {against}, "
            f"{100 * found.kept:.1f} % kept [{low:.1f}, {high:.1f}].",
            f"The map finds {shares[0]:.1f} % of the new model's own ten neighbours, the old model "
            f"{shares[1]:.1f} %.",
        ]
    if score == "nDCG@10":
        lines.append(
            "Items without a judgement count as not relevant: if only the results of the old model "
            "were judged, this favours it, and its map."
        )
    if found.unseen is not None:
        is_lost = found.verdict == "migrate with a loss" and low >= 100 * found.enough
        line = (
            f"{'The loss is of classes' if is_lost else 'Classes'} without labels in the sample: "
            f"{100 * found.unseen.migration:.1f} against "
            f"{100 * found.unseen.reference:.1f}, {points(interval_of(found.unseen.test))} points"
        )
        if found.verdict == "migrate" and found.unseen.test.interval()[1] < 0:
            line += ": a loss, but not shown to be more than 5 %"
        lines.append(f"{line}.")
    lines.append(
        f"Evaluated on {found.n_queries:,} held-out queries among {found.n_documents:,} held-out "
        f"documents, by a map learned from {max(found.curve):,} rows; the one that --save writes "
        f"learns from all {n:,}. Intervals are 95 % intervals."
    )
    return [*lines, _growth(found)]


def _growth(found: MigrationVerdict) -> str:
    """Return a sentence on the gain from a larger sample."""
    scores = ", ".join(f"{100 * s:.1f} from {n:,} rows" for n, s in found.curve.items())
    said = f"Scores: {scores}; the last doubling adds {points(interval_of(found.growth))} points"
    if not found.gain_of_more:
        return f"{said}, so more rows are not shown to help."
    if found.rows_needed == max(found.curve):
        return f"{said}."
    said += f", all further ones about {100 * found.gain_of_more:.1f} (extrapolated)"
    if np.isfinite(found.rows_needed):
        return f"{said}: about {found.rows_needed:,.0f} rows would keep {100 * found.enough:.0f} %."
    return f"{said}: no number of rows is expected to keep {100 * found.enough:.0f} %."
