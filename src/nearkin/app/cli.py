"""The command line: `nearkin compare TABLE --target COLUMN`.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done, 2 bad input (one line says
what and how to mend it), 130 interrupted (what was finished is printed first).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from ..datasets import BUNDLED

if TYPE_CHECKING:
    from ..evaluation import Comparison
    from .tables import Table

BAD_INPUT = 2
INTERRUPTED = 130

EXAMPLES = f"""\
examples:
  nearkin compare balance_scale
  nearkin compare measurements.csv --target species
  nearkin compare scans.csv --target diagnosis --groups patient --picture scans.png

bundled sets: {", ".join(BUNDLED)}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    options = _parser().parse_args(arguments)
    missing = [name for name in ("pandas", "rich", "matplotlib") if find_spec(name) is None]
    if missing:
        return _fail(f"the command needs {', '.join(missing)}: pip install 'nearkin[app]'")
    from .tables import TableError

    try:
        return _compare(options)
    except (TableError, OSError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("nearkin: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nearkin", description="Learn the space in which nearest neighbours are right."
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"nearkin {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    compare = commands.add_parser(
        "compare",
        help="rank learned metrics by k-NN on held-out rows",
        description="""\
Rank k-NN on the raw features, PCA, LDA, NCA and every nearkin method by repeated
stratified cross-validation. Scaling and every choice (dimensions, DNE's k) are
made inside the training rows.""",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compare.add_argument("table", metavar="TABLE", help="a CSV or NPZ file, or the name of a bundled set")
    compare.add_argument("--target", metavar="COLUMN", help="the labels (NPZ: by default y; bundled sets need none)")
    compare.add_argument("--groups", metavar="COLUMN", help="keep rows of one group on one side of every split")
    compare.add_argument("--neighbors", metavar="K", type=_positive, default=3, help="k of the vote (default: 3)")
    compare.add_argument("--folds", metavar="N", type=_folds, default=5, help="folds of a repeat (default: 5)")
    compare.add_argument("--repeats", metavar="N", type=_positive, default=3, help="repeats (default: 3)")
    compare.add_argument("--no-scaling", action="store_true", help="do not standardize: the features share a unit")
    compare.add_argument("--seed", type=int, default=0, help="seed of the folds (default: 0)")
    compare.add_argument(
        "--time-budget", metavar="S", type=_amount, default=120.0, help="seconds for one method (default: 120)"
    )
    compare.add_argument(
        "--memory-budget", metavar="GB", type=_amount, help="memory for one fit (default: half of what is free)"
    )
    compare.add_argument("--picture", metavar="FILE", help="where to write the PNG (default: TABLE-nearkin.png here)")
    return parser


def _compare(options: argparse.Namespace) -> int:
    from ..evaluation import compare
    from . import console
    from .tables import TableError, read_table

    table = read_table(options.table, options.target, options.groups)
    picture = _picture_path(options.picture, table.name)
    _print_quietly(lambda: console.announce(table))
    try:
        with console.Progress() as progress:
            comparison = compare(
                table.X,
                table.y,
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
        raise TableError(f"{table.name}: {str(error).partition(chr(10))[0]}") from error
    _print_quietly(lambda: console.report(comparison))
    if comparison.interrupted:
        return INTERRUPTED
    _write_picture(picture, comparison, table)
    _print_quietly(lambda: console.say(f"Picture: {picture}"))
    return 0


def _print_quietly(report: Callable[[], None]) -> None:
    """Print; if the reader of a pipe has gone (`| head`), go on in silence: there is a picture to write."""
    try:
        report()
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # rich turns the first into the second
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _picture_path(wanted: str | None, name: str) -> Path:
    """Return where the picture goes; refuse a place that cannot be written to before any work is done."""
    from .tables import TableError

    path = Path(wanted or f"{name}-nearkin.png")
    if path.suffix.lower() != ".png":
        raise TableError(f"{path}: the picture is a PNG file: let its name end in .png.")
    try:
        part = _part(path)
        part.touch()
        part.unlink()
    except OSError as error:
        raise TableError(
            f"{path}: no file can be written there ({error.strerror}): choose another place with --picture."
        ) from error
    if path.is_dir():
        raise TableError(f"{path} is a folder: name a file with --picture.")
    return path


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")


def _write_picture(path: Path, comparison: Comparison, table: Table) -> None:
    """Draw the ranking and a 2-D map of held-out rows; the file appears whole or not at all."""
    from matplotlib.figure import Figure

    from ..evaluation import RAW
    from ..plotting import EmbeddingDisplay, RankingDisplay

    figure = Figure(figsize=(14, 6), layout="constrained")
    figure.suptitle(f"nearkin compare {table.name}", parse_math=False)
    learned = [result for result in comparison.results if result.name != RAW]
    axes = figure.subplots(1, 2 if learned else 1, squeeze=False)[0]
    RankingDisplay.from_comparison(comparison, ax=axes[0])
    if learned:
        shown = learned[0] if comparison.best.name == RAW else comparison.best
        EmbeddingDisplay.from_estimator(
            shown.mapping(2),
            table.X,
            table.y,
            split=comparison.folds[0],
            n_neighbors=comparison.n_neighbors,
            name=shown.name,
            ax=axes[1],
        )
    part = _part(path)
    try:
        figure.savefig(part, dpi=110, format="png")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def _folds(text: str) -> int:
    value = int(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"must be at least 2, got {value}")
    return value


def _amount(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def _fail(text: str) -> int:
    print(f"nearkin: {text}", file=sys.stderr)
    return BAD_INPUT
