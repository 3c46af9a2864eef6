"""The steps of `predict` and `transform`; the other commands have files of their own."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._blocks import row_blocks
from .._messages import counted, note
from ..estimators import TDistributedNCA
from ..plotting import EmbeddingDisplay
from . import console
from .endings import TableError, one_line
from .files.formats import reading
from .files.readers import find_name
from .folders.parquet_folder import open_folder
from .folders.rows import Answer, Mapping, coordinates, names_read, predictions
from .output import (
    STANDARD_OUTPUT,
    Outputs,
    atomic_folder,
    beside,
    draw_displays,
    table_output,
    with_empty_rows,
    write_result,
)
from .tables.model import Model, as_table, embed, far_features, load_model
from .tables.model import predict as predict_rows
from .tables.reading import read_rows
from .tables.words import drift_finding, few_rows_note, unfamiliar_note
from .vectors.adapter_file import is_adapter, load_adapter
from .vectors.reading import read_vectors


def predict(options: argparse.Namespace) -> int:
    """Label new rows, or predict their numbers, with the rows that vote for them."""
    if options.dask is not None:
        return _predict_folder(options)

    def columns(model: Model, X: Any, suffix: str, progress: Any) -> dict[str, Any]:
        found = predict_rows(model, X, progress, options.search, options.coverage)
        return found if suffix == ".npz" else as_table(model, found)

    return _apply(options, columns)


def transform(options: argparse.Namespace) -> int:
    """Map new rows into the learned space, or vectors by an adapter; draw the rows on request."""
    if options.picture and (options.dask is not None or is_adapter(options.model)):
        raise TableError(
            "--picture draws the rows of one table with a model of `nearkin compare`: leave it "
            "out for a folder or an adapter."
        )
    if options.dask is not None:
        return _transform_folder(options)
    if is_adapter(options.model):
        return _transform_vectors(options)
    if options.vectors is not None:
        raise TableError("--vectors is for adapters: leave it out with a model of a table.")

    def columns(model: Model, X: Any, suffix: str, progress: Any) -> dict[str, Any]:
        return model.as_columns(embed(model, X, progress), suffix)

    return _apply(options, columns)


def _apply(options: argparse.Namespace, compute: Callable[..., dict[str, Any]]) -> int:
    """Read rows, compute columns from them and write the columns."""
    output, suffix = table_output(options)
    is_prediction = options.command == "predict"
    model = load_model(options.model)
    done = "mapped"
    if is_prediction:
        remarks = _remarks_on_held_out(options, model)
        done = _predicted(model)
    read = partial(
        read_rows,
        options.table,
        model.encoder,
        group=model.group,
        name=options.id,
        reading=reading(options),
        gaps=model.of_gaps,
        effects=model.arrays.get("effects"),
    )
    X, notes, labels = console.while_reading(options, read)
    if model.group in labels and model.knows_no_group(labels[model.group]):
        notes = [
            *notes,
            f"every {model.group} is new: expect worse predictions than for held-out rows",
        ]
    empty = np.zeros(X.shape[0], dtype=bool)
    if not model.takes_gaps and not issparse(X):
        if suffix != ".npz":  # which cannot have empty cells
            empty = np.isnan(X).all(axis=1)
        X = X[~empty] if empty.any() else X
        if np.isnan(X).any() or not len(X):
            raise TableError(
                f"{options.table}: {notes[-1]}, which this model cannot handle: fill them first."
            )
    far = note("far outside the training rows", far_features(model, X))
    outputs = Outputs(quiet=options.quiet)
    outputs.note(*notes, *far)
    with (
        # a written file gets its own line
        console.Progress("rows", quiet=options.quiet, lines=output is None) as progress,
        np.errstate(all="ignore"),
        one_line(options.table),
    ):
        columns = compute(model, X, suffix, partial(progress, f"rows {done}"))
        if is_prediction and model.held_out_rows is not None:
            familiarity = columns["familiarity"]
            rows = model.held_out_rows.unfamiliar(familiarity)
            outputs.note(*unfamiliar_note(rows.tolist(), len(familiarity)), *remarks)
            if options.drift:  # a result, which --quiet does not suppress
                drift = model.held_out_rows.drift(X)
                console.say(drift_finding(drift, X.shape[0]), stderr=True)
    if empty.any():
        columns = with_empty_rows(columns, empty)
    if options.id is not None:
        columns = beside(options.id, labels[options.id], columns)
    elif is_prediction:
        columns = {"row": np.arange(len(empty))} | columns
    done = f"{counted(len(empty), 'row')} {done} by {model.method}"
    write_result(options, outputs, output, suffix, columns, done)
    if not is_prediction and options.picture:
        done = f"Picture: {options.picture}"
        with one_line(options.table):
            outputs.write(options.picture, "--picture", partial(draw_rows, model, X), done)
    return outputs.code


def _predicted(model: Model) -> str:
    """Return what a model does with new rows, for messages."""
    return "labelled" if model.classes else "predicted"


def draw_rows(model: Model, X: Any, path: Path) -> list[str]:
    """Draw rows, with their predictions, in a plane learned from the rows of the model.

    Return remarks.
    """
    answers = model.arrays["answers"]
    plane = TDistributedNCA(
        estimator="passthrough",
        target="classes" if model.classes else "continuous",
        random_state=0,
    ).fit(model.arrays["voters"], answers)
    predicted = predict_rows(model, X)["label" if model.classes else "value"]
    display = EmbeddingDisplay(
        plane.transform(embed(model, X)),
        predicted,
        None,
        model.vote,
        f"t-NCA of {model.method}",
        model.task,
        target=model.target,
    )
    title = f"transform: {model.method}, learned from {model.table}"
    return draw_displays(title, [display], path)


def _remarks_on_held_out(options: argparse.Namespace, model: Model) -> list[str]:
    """Return a remark if held-out rows are few for --coverage.

    Raise an error for options that need held-out rows if the model has none.
    """
    given = ["--coverage"] * (options.coverage is not None) + ["--drift"] * options.drift
    if given and model.held_out_rows is None:
        raise TableError(
            f"{options.model}: {given[0]} needs held-out rows, which only models of NCA tables "
            f"have, but this is one of {model.method}: make one with `nearkin compare TABLE "
            "--methods nca-tables --save model.safetensors`."
        )
    if options.coverage is None or model.held_out_rows is None:
        return []
    ends = 1 if model.classes else 2
    return few_rows_note(len(model.held_out_rows.places), options.coverage, ends)


def _transform_vectors(options: argparse.Namespace) -> int:
    """Read, adapt and write vectors."""
    output, suffix = table_output(options)
    if Path(options.table).is_dir():
        raise TableError(f"{options.table} is a folder: add --dask to read its Parquet files.")
    adapter = load_adapter(options.model)
    read = partial(
        read_vectors,
        options.table,
        ids=options.id,
        vectors=options.vectors,
        columns=adapter.columns,
        reading=replace(reading(options), strict=True),  # vectors have no odd cells
    )
    table = console.while_reading(options, read)
    outputs = Outputs(quiet=options.quiet)
    n_zeros = int(np.count_nonzero(~table.X.any(axis=1)))
    zeros = [f"{counted(n_zeros, 'row')} of zeros: without a direction, all get the same vector"]
    outputs.note(*table.notes, *zeros * (n_zeros > 0))
    Z = np.concatenate([adapter.transform(table.X[rows]) for rows in row_blocks(*table.X.shape)])
    columns = adapter.as_columns(Z, suffix)
    if options.id is not None:
        columns = {options.id: table.ids} | columns
    done = f"{counted(len(Z), 'vector')} adapted ({adapter.name}, {adapter.bytes:,} bytes each)"
    write_result(options, outputs, output, suffix, columns, done)
    return outputs.code


def _predict_folder(options: argparse.Namespace) -> int:
    """Predict the rows of every file of a folder."""
    model = load_model(options.model)
    remarks = _remarks_on_held_out(options, model)
    begin = partial(predictions, search=options.search, coverage=options.coverage)
    done = f"{_predicted(model)} by {model.method}"
    return _apply_to_folder(options, model, begin, done, remarks)


def _transform_folder(options: argparse.Namespace) -> int:
    """Map the rows of every file of a folder."""
    if is_adapter(options.model):
        adapter = load_adapter(options.model)
        return _apply_to_folder(options, adapter, coordinates, f"mapped by {adapter.name}")
    model = load_model(options.model)
    # the workers do not need the voters
    mapped = replace(model, arrays=model.arrays | {"voters": model.arrays["voters"][:0]})
    return _apply_to_folder(options, mapped, coordinates, f"mapped by {model.method}")


def _apply_to_folder(
    options: argparse.Namespace,
    mapping: Mapping,
    begin: Callable[[Any], Answer],
    done: str,
    remarks: Sequence[str] = (),
) -> int:
    """Write a result for every file of a folder into a new folder.

    The new folder appears when all files are written.
    """
    if options.output == STANDARD_OUTPUT:
        raise TableError("--dask writes files: name a new folder for them with -o.")
    folder, out = open_folder(Path(options.table)), Path(options.output)
    names = names_read(mapping, folder)
    ids = options.id and find_name(folder.path, folder.names, options.id, "--id")
    ignored = [name for name in folder.names if name not in (*names, ids)]
    from .folders.cluster import cluster, write_folder

    outputs = Outputs(quiet=options.quiet)
    with (
        atomic_folder(out) as part,
        cluster(options.dask) as client,
        console.Progress("rows", quiet=options.quiet) as progress,
        one_line(folder.path),
    ):
        outputs.note(*note("ignored, not learned from", ignored), *remarks)
        missing = write_folder(
            folder,
            part,
            client,
            partial(progress, f"rows {done.partition(' ')[0]}"),
            mapping=mapping,
            begin=begin,
            names=names,
            ids=ids,
            numbered=options.command == "predict" and ids is None,
        )
    if isinstance(mapping, Model):
        gaps = [f"{name} ({counted(missing[name], 'row')})" for name in names if missing[name]]
        outputs.note(*note(f"missing values, {mapping.of_gaps}", gaps))
    rows, files = counted(folder.n_rows, "row"), counted(len(folder.files), "file")
    outputs.note(f"{rows} {done}: {out} ({files})")
    return 0
