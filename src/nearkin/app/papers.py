"""`nearkin papers`: the experiments of the papers, listed or run."""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import sklearn
from threadpoolctl import threadpool_limits

from .. import __version__
from ..papers import EXPERIMENTS, Data, Experiment, MissingDataError, Run
from ..papers.document import heading, renewed
from . import console
from .output import check_writable, whole
from .table import TableError

EVERYTHING = "all"
SKIPPED = "Skipped"


def papers(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Run experiments, and print what they yield; without any named, list them."""
    if not options.experiments:
        _list()
        return 0
    experiments = _chosen(options.experiments)
    document = check_writable(options.document, [".md"], "--document") if options.document else None
    figures = _folder(Path(options.figures), "--figures")
    link = os.path.relpath(figures, document.parent if document else ".")
    data = Data(_data_folder(options.data), options.download)
    for experiment in experiments:
        with console.Progress("splits", quiet=options.quiet, lines=False) as progress:
            run = Run(data, figures, "" if link == "." else f"{link}/", options.splits, options.quick, progress)
            text = _told(experiment, run)
        if document and text:  # after each: what is interrupted loses one
            with whole(document) as part:
                part.write_text(renewed(document, {experiment.name: text}), encoding="utf-8")
    return 0


def _told(experiment: Experiment, run: Run) -> str | None:
    """Run an experiment, print its section as it grows, and return it; None without its data: older words stay."""
    command = f"nearkin papers {experiment.name}"
    command += f" --splits {run.n_splits}" * bool(run.n_splits) + " --quick" * run.quick
    start = time.perf_counter()

    pieces: list[str] = []
    top = heading(experiment, command)
    console.show(top)
    # what a warning says, a table shows: fewer directions than asked for, descents that were ended
    with threadpool_limits(experiment.threads), warnings.catch_warnings(action="ignore"):
        try:
            for piece in experiment.run(run):
                console.show(piece)
                pieces.append(piece)
        except MissingDataError as missing:
            console.show(f"{SKIPPED}: {missing}.")
    if all(piece.startswith(SKIPPED) for piece in pieces):
        return None
    end = f"{time.perf_counter() - start:.0f} s, nearkin {__version__}, scikit-learn {sklearn.__version__}."
    console.show(end)
    return "\n\n".join([top, *pieces, end])


def _list() -> None:
    width = max(map(len, EXPERIMENTS))
    for name, experiment in EXPERIMENTS.items():
        console.say(f"{name:{width}}  {experiment.title}")


def _chosen(names: Sequence[str]) -> list[Experiment]:
    unknown = [name for name in names if name not in EXPERIMENTS and name != EVERYTHING]
    if unknown:
        raise TableError(
            f"{unknown[0]}: no such experiment; `nearkin papers` lists them, `{EVERYTHING}` runs them all."
        )
    return [experiment for name, experiment in EXPERIMENTS.items() if name in names or EVERYTHING in names]


def _data_folder(given: str | None) -> Path | None:
    name = given or os.environ.get("NEARKIN_DATA")
    if name and not Path(name).is_dir():
        raise TableError(
            f"{name} is no folder: name one that holds NPZ files ({'--data' if given else 'NEARKIN_DATA'})."
        )
    return Path(name) if name else None


def _folder(path: Path, option: str) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(
            f"{path}: no folder can be made there ({error.strerror}): choose another ({option})."
        ) from error
    return path
