"""The command line: `nearkin compare`, `predict`, `transform`, `inspect`.

Results go to standard output, progress, remarks and errors to standard error. Exit codes: 0 done, 2 bad input (one line
says what and how to mend it), 130 interrupted (what was finished is printed first).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from .. import __version__
from ..datasets import BUNDLED
from ..evaluation import CLASSIFICATION, TASKS

BAD_INPUT = 2
INTERRUPTED = 130
NEEDED = ("pandas", "rich", "matplotlib", "plotly", "pyarrow", "safetensors")
# Options of compare that a folder does not have, and what they are when they are not given.
TABLE_ONLY = {
    "task": CLASSIFICATION.name,
    "unlabelled": None,
    "groups": None,
    "report": None,
    "folds": 5,
    "repeats": 3,
    "time_budget": 120.0,
    "memory_budget": None,
}
TABLE = "a CSV, Parquet or NPZ file, - for standard input, or a bundled set"

COMPARE = f"""\
examples:
  nearkin compare balance_scale
  nearkin compare measurements.csv --target species --report species.html
  nearkin compare scans.parquet --target diagnosis --groups patient --save scans.safetensors
  nearkin compare houses.csv --target price --task regression
  nearkin compare partly.npz --unlabelled -1
  zcat big.csv.gz | nearkin compare - --target kind
  nearkin compare embeddings/ --target topic --dask --save topics.safetensors
  nearkin compare embeddings/ --target topic --dask tcp://scheduler:8786

bundled sets: {", ".join(BUNDLED)}
"""

PREDICT = """\
writes, for every row, its label and the share of the votes for it (or, by a model
of a regression, its value), and the numbers (the first row is 0) and distances of
the nearest rows that were learned from.

examples:
  nearkin predict scans.safetensors new.csv -o labels.csv
  nearkin predict scans.safetensors new.parquet | head
"""

TRANSFORM = """\
examples:
  nearkin transform scans.safetensors new.csv -o coordinates.parquet
  nearkin transform scans.safetensors new.npz -o coordinates.npz
  nearkin transform topics.safetensors embeddings/ -o short/ --dask
"""

INSPECT = """\
examples:
  nearkin inspect scans.safetensors
  nearkin inspect scans.safetensors --picture scans.png
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(arguments)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return _fail(f"the command needs {', '.join(missing)}: pip install 'nearkin[app]'")
    from . import commands, console, folder_commands
    from .model_file import ModelFileError
    from .table import TableError

    try:
        on = folder_commands if getattr(options, "dask", None) is not None else commands
        return getattr(on, options.command)(options, arguments)
    except (TableError, ModelFileError, OSError, ImportError) as error:
        return _fail(console.printable(str(error)))
    except MemoryError as error:
        return _fail(f"out of memory ({error}): take fewer rows or columns")
    except KeyboardInterrupt:
        print("nearkin: interrupted", file=sys.stderr)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="nearkin",
        description="Learn the space in which nearest neighbours are right.",
        epilog="nearkin COMMAND --help shows options and examples.",
    )
    parser.add_argument("--version", action="version", version=f"nearkin {__version__}")
    commands = parser.add_subparsers(required=True, title="commands", metavar="COMMAND", dest="command")
    _add_compare(commands)
    _add_model_commands(commands)
    return parser


def _command(
    commands: argparse._SubParsersAction, name: str, summary: str, epilog: str, description: str | None = None
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or f"{summary.capitalize()}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no remarks")
    return parser


def _add_compare(commands: argparse._SubParsersAction) -> None:
    compare = _command(
        commands,
        "compare",
        "rank learned metrics by k-NN on held-out rows",
        COMPARE,
        """\
Rank k-NN on the raw features, PCA, LDA, NCA and every nearkin method by repeated
cross-validation, stratified by class. Scaling and every choice (dimensions, DNE's k,
MFA's pairs) are made inside the training rows.

With --task regression, the mean of the nearest rows predicts a number: k-NN on the
raw features and on PCA are ranked by R^2.

Rows may have no label: an empty cell of the target. Only the others are held out and
vote. PCA and LPP, and TDL and DP, which join then, learn from all; the rest from the labelled
rows alone.

With --dask, TABLE is a folder of Parquet files with the same columns, numbers but for the
target, which may be larger than memory. k-NN on the raw features, PCA, LPP, DNE, NMMP and NCA,
each with half as many dimensions as features, at most 64, are ranked by one split: at most
20,000 rows are held out, all others learn and vote. The model of --save votes by at most
100,000 of them.""",
    )
    add = compare.add_argument
    add("table", metavar="TABLE", help=TABLE)
    add("--target", metavar="COLUMN", help="the labels, or numbers (NPZ: by default y; bundled sets need none)")
    add(
        "--task",
        choices=sorted(TASKS),
        default=TABLE_ONLY["task"],
        help="what the target holds: classes (the default), or numbers to predict",
    )
    add("--unlabelled", metavar="VALUE", help="what the target holds in rows without a label, beside empty cells")
    add("--groups", metavar="COLUMN", help="keep rows of one group on one side of every split")
    add("--report", metavar="FILE", help="write an interactive page (.html) that needs no network")
    add("--save", metavar="FILE", help="refit the winner on everything and save it (.safetensors)")
    add("--picture", metavar="FILE", help="where to write the PNG (default: TABLE-nearkin.png here)")
    add("--neighbors", metavar="K", type=_at_least(1), default=3, help="k of the vote (default: 3)")
    add("--folds", metavar="N", type=_at_least(2), default=TABLE_ONLY["folds"], help="folds of a repeat (default: 5)")
    add("--repeats", metavar="N", type=_at_least(1), default=TABLE_ONLY["repeats"], help="repeats (default: 3)")
    add("--no-scaling", action="store_true", help="do not standardize: the features share a unit")
    add("--seed", type=_at_least(0), default=0, help="seed of the folds (default: 0)")
    add(
        "--time-budget",
        metavar="S",
        type=_amount,
        default=TABLE_ONLY["time_budget"],
        help="seconds for one method (default: 120)",
    )
    add("--memory-budget", metavar="GB", type=_amount, help="memory for one fit (default: half of what is free)")
    _add_dask(compare)


def _add_model_commands(commands: argparse._SubParsersAction) -> None:
    predict = _command(commands, "predict", "label new rows, or predict numbers, by a saved model", PREDICT)
    transform = _command(commands, "transform", "map new rows into the learned space of a saved model", TRANSFORM)
    inspect = _command(commands, "inspect", "show which features a saved model stretches and which it ignores", INSPECT)
    for command in (predict, transform, inspect):
        command.add_argument("model", metavar="MODEL", help="a file written by nearkin compare --save")
    for command in (predict, transform):
        command.add_argument("table", metavar="TABLE", help=TABLE)
        command.add_argument(
            "-o",
            "--output",
            metavar="OUT",
            default="-",
            help=".csv, .parquet or .npz (default: CSV to standard output)",
        )
    predict.add_argument(
        "--search",
        choices=["exact", "approximate", "auto"],
        default="exact",
        help="how the nearest rows are found: exactly (the default), approximately (needs faiss; quicker for 100,000 "
        "rows learned from and more), or whichever their number suggests",
    )
    _add_dask(transform)
    inspect.add_argument("--picture", metavar="FILE", help="where to write the PNG (default: MODEL-features.png here)")


def _add_dask(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dask",
        metavar="ADDRESS",
        nargs="?",
        const="",
        help="TABLE is a folder of Parquet files that may be larger than memory; work on the cluster whose scheduler "
        "has this address, or, without one, on all cores of this machine (needs nearkin[dask])",
    )


def _at_least(minimum: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    read.__name__ = "whole number"  # argparse says: invalid whole number value
    return read


def _amount(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def _fail(text: str) -> int:
    print(f"nearkin: {text}", file=sys.stderr)
    return BAD_INPUT
