"""Repeat the experiments of the papers, or list them: `python -m reproductions`, at the root of the
repository.

Prints our numbers beside the printed ones, with what the paper leaves open. What needs data that
are not at hand is skipped, with a line that says where to get them.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from threadpoolctl import threadpool_limits

from .data import Data, MissingDataError
from .document import heading, renewed
from .experiment import Experiment, Run
from .registry import EXPERIMENTS

EVERYTHING = "all"
SKIPPED = "Skipped"
EXAMPLES = """\
examples:
  python -m reproductions
  python -m reproductions nmmp-table4 --data folder
  python -m reproductions dne-figure1 nmmp-figure2 --figures pictures
  python -m reproductions all --quick
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the experiments that the arguments name and return 0; without any, list them."""
    options = _options(arguments)
    if not options.experiments:
        width = max(map(len, EXPERIMENTS))
        print(
            "\n".join(
                f"{name:{width}}  {experiment.title}" for name, experiment in EXPERIMENTS.items()
            )
        )
        return 0
    document = options.document
    link = os.path.relpath(options.figures, document.parent if document else ".")
    chosen = EXPERIMENTS if EVERYTHING in options.experiments else options.experiments
    for name in sorted(set(chosen), key=list(EXPERIMENTS).index):
        run = Run(
            data=Data(options.data, options.download),
            figures=options.figures,
            link="" if link == "." else f"{link}/",
            n_splits=options.splits,
            quick=options.quick,
            progress=_ignore if options.quiet or not sys.stderr.isatty() else _overwrite_line,
        )
        section, skipped = _section(EXPERIMENTS[name], run)
        if document:  # after each: what is interrupted loses one
            document.write_text(
                renewed(document, {name: section}, keep_older=skipped), encoding="utf-8"
            )
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m reproductions",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    names = [*EXPERIMENTS, EVERYTHING]
    add(
        "experiments",
        nargs="*",
        metavar="EXPERIMENT",
        type=_one_of(names),
        help="names, or all; none: list them",
    )
    add("--data", metavar="DIR", type=_folder, default=os.environ.get("NEARKIN_DATA") or None,
        help="a folder of NPZ files (default: NEARKIN_DATA)")  # fmt: skip
    add("--download", action="store_true", help="fetch from OpenML what is not in the folder")
    add(
        "--splits",
        metavar="N",
        type=_splits,
        help="random splits (default: as many as the paper has)",
    )
    add(
        "--quick",
        action="store_true",
        help="few splits, and of large sets a part: all in 15 minutes",
    )
    add(
        "--figures",
        metavar="DIR",
        type=_new_folder,
        default=".",
        help="where pictures go (default: here)",
    )
    add(
        "--document",
        metavar="FILE",
        type=_markdown,
        help="renew the sections of these experiments in a Markdown file",
    )
    add("-q", "--quiet", action="store_true", help="no progress")
    return parser.parse_args(arguments)


def _one_of(names: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(
                f"{text}: no such experiment; without a name they are listed"
            )
        return text

    return read


def _splits(text: str) -> int:
    if not text.isdecimal() or int(text) < 2:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 2, got {text}")
    return int(text)


def _folder(text: str) -> Path:
    if not Path(text).is_dir():
        raise argparse.ArgumentTypeError(
            f"{text} is no folder: name one that holds NPZ files (or set NEARKIN_DATA)"
        )
    return Path(text)


def _new_folder(text: str) -> Path:
    try:
        Path(text).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{text}: no folder can be made there ({error.strerror})"
        ) from error
    return Path(text)


def _markdown(text: str) -> Path:
    path = Path(text)
    if path.suffix != ".md" or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(
            f"{text}: name a file that ends in .md, in a folder that exists"
        )
    return path


def _section(experiment: Experiment, run: Run) -> tuple[str, bool]:
    """Run an experiment, print its section as it grows, and return it, and whether all of it was
    skipped.
    """
    command = f"python -m reproductions {experiment.name}"
    command += f" --splits {run.n_splits}" * bool(run.n_splits) + " --quick" * run.quick

    pieces: list[str] = []
    top = heading(experiment, command)
    _show(top)
    # what a warning says, a table shows: fewer directions than requested, descents that were ended
    with threadpool_limits(experiment.threads), warnings.catch_warnings(action="ignore"):
        try:
            for piece in experiment.run(run):
                _show(piece)
                pieces.append(piece)
        except MissingDataError as missing:
            pieces.append(f"{SKIPPED}: {missing}.")
            _show(pieces[-1])
    return "\n\n".join([top, *pieces]), all(piece.startswith(SKIPPED) for piece in pieces)


def _show(markdown: str) -> None:
    """Print Markdown: laid out on a terminal, as it is elsewhere."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(markdown))
    else:
        print(markdown)
    print(flush=True)


def _ignore(what: str, done: int, total: int) -> None:
    pass


def _overwrite_line(what: str, done: int, total: int) -> None:
    line = f"{what}: {done} of {total} splits" if done < total else ""
    print(f"\r\x1b[2K{line}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
