"""What `compare` and `transform` do with a folder of Parquet files larger than memory: `--dask`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .._memory import human_bytes
from ..neighbors import choose_search, searcher
from . import console, pictures
from .cli import TABLE_ONLY
from .distributed import MIN_ROWS, MOST_VOTERS, Contest, Split, class_sizes, cluster
from .mapped_folder import map_folder
from .model import MAX_NEIGHBORS
from .model_file import SUFFIX, load_model, save_model
from .one_split import n_held_out
from .output import STANDARD_OUTPUT, check_writable, claim_folder, whole, whole_folder
from .parquet_folder import Folder, find_target, open_folder, require_numbers
from .table import TableError, note, quoted

DONE = 0
INTERRUPTED = 130


def compare(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Rank the methods on a folder by one split; write a picture, and on request the winner."""
    _refuse_table_only(options)
    folder = open_folder(Path(options.table))
    target = find_target(folder, options.target)
    features, notes = folder.features(target)
    _check_size(folder, options)
    picture = check_writable(options.picture or f"{folder.name}-nearkin.png", [".png"], "--picture")
    save = options.save and check_writable(options.save, [SUFFIX], "--save")
    if save and options.neighbors > MAX_NEIGHBORS:
        raise TableError(f"{save}: a model votes by at most {MAX_NEIGHBORS} neighbours: lower --neighbors.")
    with cluster(options.dask) as client, console.Progress("rows", quiet=options.quiet) as progress:
        classes, sizes = class_sizes(folder, target, client, lambda *rows: progress("classes", *rows))
        split = Split.of(folder, features, target, classes, options.seed)
        facts = [f"{len(folder.files)} files", f"{folder.n_rows} rows", f"{len(features)} features"]
        if not options.quiet:
            console.print_quietly(lambda: console.announce_folder(folder.name, sizes, facts, notes))
        contest = Contest.of(split, options.neighbors, not options.no_scaling, options.seed, client, progress)
        ranking = contest.ranking(progress)
        console.print_quietly(lambda: console.report_split(ranking))
        if ranking.interrupted:
            return INTERRUPTED
        model = contest.model(ranking, split) if save else None
    with whole(picture) as part:
        pictures.draw_ranking(ranking, folder.name, part)
    written = [f"Picture: {picture}"]
    if model is not None:
        with whole(save) as part:
            save_model(model, part)
            load_model(part)
        learned = "raw k-NN, since no method is shown to beat it" if model.is_raw else model.method
        votes = f"all {split.n_train}" if split.n_train <= MOST_VOTERS else f"{len(model.arrays['rows'])} evenly drawn"
        written.append(
            f"Model: {save} ({human_bytes(save.stat().st_size)}), {learned}, learned from the {split.n_train} training "
            f"rows, of which {votes} vote"
        )
    if not options.quiet:
        console.print_quietly(lambda: console.say("\n".join(written)))
    return DONE


def transform(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Map a folder into the learned space: a file of coordinates for every file, in a folder that appears when done."""
    if options.output == STANDARD_OUTPUT:
        raise TableError("with --dask coordinates are written as files: name a folder for them with -o.")
    out = claim_folder(options.output, "-o")
    model = load_model(Path(options.model))
    folder = open_folder(Path(options.table))
    if len(model.encoder.text):
        raise TableError(
            f"{folder.path}: the model learned from text in {quoted(model.encoder.text.tolist(), 5)}, and --dask maps "
            "numbers: transform the files one by one, without --dask."
        )
    require_numbers(folder, model.encoder.columns)
    known = set(model.encoder.columns)
    remarks = note("ignored, not learned from", [name for name in folder.names if name not in known])
    console.remark(remarks, quiet=options.quiet)
    with (
        whole_folder(out) as part,
        cluster(options.dask) as client,
        console.Progress("rows", quiet=options.quiet) as progress,
    ):
        try:
            map_folder(model, folder, part, client, lambda *rows: progress("rows mapped", *rows))
        except (ValueError, TypeError) as error:
            raise TableError(f"{folder.path}: {str(error).partition(chr(10))[0]}") from error
    console.remark(
        [f"{folder.n_rows} rows mapped by {model.method}: {out} ({len(folder.files)} files)"], quiet=options.quiet
    )
    return DONE


def _refuse_table_only(options: argparse.Namespace) -> None:
    """Refuse options that a folder does not have, before anything is read."""
    given = [f"--{name.replace('_', '-')}" for name, default in TABLE_ONLY.items() if getattr(options, name) != default]
    if given:
        raise TableError(
            f"{', '.join(given)} {'is' if len(given) == 1 else 'are'} not for --dask, which ranks classifiers by one "
            f"split: leave {'it' if len(given) == 1 else 'them'} out."
        )


def _check_size(folder: Folder, options: argparse.Namespace) -> None:
    """Refuse a folder that is too small for one split, and a search that cannot be made, before anything is read."""
    if folder.n_rows < MIN_ROWS:
        raise TableError(
            f"{folder.path} has {folder.n_rows} rows, too few for one split (at least {MIN_ROWS}): write them into one "
            "file, and leave --dask out."
        )
    if options.neighbors > MIN_ROWS // 2:
        raise TableError(f"--neighbors is {options.neighbors}, with --dask at most {MIN_ROWS // 2}: lower it.")
    n_train = folder.n_rows - n_held_out(folder.n_rows)
    searcher(choose_search(n_train), n_train)  # needs faiss, from 100,000 rows on
