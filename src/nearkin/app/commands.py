"""What each command does, step by step."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._memory import human_bytes
from ..evaluation import CLASSIFICATION, Comparison, score_by_dimension
from ..evaluation import compare as run_comparison
from . import console, pictures
from .columns import Progress
from .model import MAX_NEIGHBORS, Model, embed, learned_model
from .model import predict as predict_rows
from .model_file import SUFFIX, load_model, save_model
from .output import STANDARD_OUTPUT, TABLE_SUFFIXES, check_writable, whole, write_columns
from .report import write_report
from .tables import Table, TableError, read_rows, read_table

DONE = 0
INTERRUPTED = 130


def compare(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Rank the methods on a table; write a picture, and on request a report and the winner."""
    table = _reading(
        options,
        lambda progress: read_table(
            options.table,
            options.target,
            options.groups,
            progress,
            task=options.task,
            unlabelled=options.unlabelled,
        ),
    )
    picture = check_writable(options.picture or f"{table.name}-nearkin.png", [".png"], "--picture")
    report = options.report and check_writable(options.report, [".html", ".htm"], "--report")
    save = options.save and check_writable(options.save, [SUFFIX], "--save")
    if save and options.neighbors > MAX_NEIGHBORS:
        raise TableError(f"{save}: a model votes by at most {MAX_NEIGHBORS} neighbours: lower --neighbors.")
    if not options.quiet:
        console.print_quietly(lambda: console.announce(table))
    with console.Progress("folds", quiet=options.quiet) as progress:
        comparison = _run(table, options, progress)
        curves = {}
        if report and not comparison.interrupted:
            curves = score_by_dimension(comparison, table.X, table.y, progress=progress)
    console.print_quietly(lambda: console.report(comparison))
    if comparison.interrupted:
        return INTERRUPTED
    with whole(picture) as part:
        pictures.draw_comparison(comparison, table, part)
    written = [f"Picture: {picture}"]
    if report:
        with whole(report) as part:
            write_report(part, comparison, curves, table, command=["nearkin", *arguments])
        written.append(f"Report: {report} ({human_bytes(report.stat().st_size)})")
    if save:
        model = learned_model(comparison, table)
        with whole(save) as part:
            save_model(model, part)
            load_model(part)  # nothing is kept that could not be read again
        written.append(f"Model: {save} ({human_bytes(save.stat().st_size)}), {_what_was_saved(model)}")
    if not options.quiet:
        console.print_quietly(lambda: console.say("\n".join(written)))
    return DONE


def predict(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Label new rows, or predict their numbers, with the rows that speak for it."""
    predicted = partial(_predicted, search=options.search)
    return _apply(options, lambda model: "labelled" if model.question is CLASSIFICATION else "predicted", predicted)


def transform(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Map new rows into the learned space."""
    return _apply(options, lambda model: "mapped", _transformed)


def inspect(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Show what a model does to the features."""
    model = load_model(Path(options.model))
    picture = check_writable(options.picture or f"{Path(options.model).stem}-features.png", [".png"], "--picture")
    console.print_quietly(lambda: console.describe(model, Path(options.model)))
    with whole(picture) as part:
        pictures.draw_model(model, part)
    if not options.quiet:
        console.print_quietly(lambda: console.say(f"Picture: {picture}"))
    return DONE


def _reading(options: argparse.Namespace, read: Callable[[Progress], Any]) -> Any:
    """Read a table, with progress on a terminal only: it is soon done."""
    with console.Progress("%", quiet=options.quiet, lines=False) as progress:
        return read(lambda done, total: progress(f"reading {options.table}", 100 * done // max(total, 1), 100))


def _run(table: Table, options: argparse.Namespace, progress: console.Progress) -> Comparison:
    try:
        return run_comparison(
            table.X,
            table.y,
            task=table.task,
            groups=table.groups,
            n_neighbors=options.neighbors,
            n_splits=options.folds,
            n_repeats=options.repeats,
            scale=not options.no_scaling,
            time_budget=options.time_budget,
            memory_budget=options.memory_budget and options.memory_budget * 1e9,
            random_state=options.seed,
            progress=progress,
        )
    except ValueError as error:
        raise TableError(f"{table.name}: {_first_line(error)}") from error


def _what_was_saved(model: Model) -> str:
    if model.is_raw:
        return "raw k-NN, since no method is shown to beat it: scaling and all rows"
    return f"{model.method} refitted on all rows"


def _apply(options: argparse.Namespace, verb: Callable[[Model], str], compute: Callable[..., dict[str, Any]]) -> int:
    """Read rows, compute columns from them and write these; the verb is for what is said of it."""
    output = None if options.output == STANDARD_OUTPUT else check_writable(options.output, TABLE_SUFFIXES, "-o")
    model = load_model(Path(options.model))
    done = verb(model)
    X, notes = _reading(options, lambda progress: read_rows(options.table, model.encoder, progress))
    console.remark(notes, quiet=options.quiet)
    with console.Progress("rows", quiet=options.quiet) as progress, np.errstate(all="ignore"):
        try:
            columns = compute(model, X, output, lambda rows, total: progress(f"rows {done}", rows, total))
        except (ValueError, TypeError) as error:  # the latter for sparse rows where dense ones were learned from
            raise TableError(f"{options.table}: {_first_line(error)}") from error
    if output is None:
        console.print_quietly(lambda: write_columns(columns, None))
    else:
        write_columns(columns, output)
        console.remark([f"{X.shape[0]} rows {done} by {model.method}: {output}"], quiet=options.quiet)
    return DONE


def _predicted(model: Model, X: Any, output: Path | None, progress: Any, *, search: str) -> dict[str, Any]:
    found = predict_rows(model, X, progress, search)
    columns: dict[str, Any] = dict(found.answer)
    if output is not None and output.suffix.lower() == ".npz":
        return columns | {"nearest": found.nearest, "distance": found.distance}
    for number in range(model.n_neighbors):
        columns[f"nearest_{number + 1}"] = found.nearest[:, number]
    for number in range(model.n_neighbors):
        columns[f"distance_{number + 1}"] = found.distance[:, number]
    return columns


def _transformed(model: Model, X: Any, output: Path | None, progress: Any) -> dict[str, Any]:
    Z = embed(model, X, progress)
    archive = output is not None and output.suffix.lower() == ".npz"
    if issparse(Z):
        if not archive:
            raise TableError(f"{output or 'standard output'} cannot hold sparse coordinates: write an .npz file by -o.")
        return {"data": Z.data, "indices": Z.indices, "indptr": Z.indptr, "shape": np.array(Z.shape), "format": "csr"}
    if archive:
        return {"X": Z, "feature_names": np.array(model.names)}
    return dict(zip(model.names, Z.T, strict=True))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
