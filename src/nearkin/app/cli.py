"""The command line: `nearkin compare`, `predict`, `transform`, `inspect`.

Results go to standard output, progress, remarks and errors to standard error. Exit codes: 0 done, 2 bad input (one line
says what and how to mend it), 130 interrupted (what was finished is printed first).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from inspect import cleandoc
from typing import Any

from .. import __version__
from ..datasets import BUNDLED
from ..evaluation import CLASSIFICATION, TASKS

BAD_INPUT = 2
INTERRUPTED = 130
NEEDED = ("pandas", "rich", "matplotlib", "plotly", "pyarrow", "safetensors")
# Options of compare that a folder does not have.
TABLE_ONLY = ("task", "unlabelled", "groups", "report", "folds", "repeats", "time_budget", "memory_budget")
TABLE = f"a CSV, Parquet or NPZ file, - for standard input, or a bundled set ({', '.join(BUNDLED)})"


PARSER = argparse.ArgumentParser(
    prog="nearkin",
    description="Learn the space in which nearest neighbours are right.",
    epilog="nearkin COMMAND --help shows options and examples.",
)
PARSER.add_argument("--version", action="version", version=f"nearkin {__version__}")
COMMANDS = PARSER.add_subparsers(required=True, title="commands", metavar="COMMAND", dest="command")


def command(add_options: Callable[[Callable[..., Any]], None]) -> argparse.ArgumentParser:
    """Make a command of a function that adds its options; its documentation is the help."""
    name, text = add_options.__name__, cleandoc(add_options.__doc__ or "")
    summary, layout = text.partition("\n")[0].rstrip("."), argparse.RawDescriptionHelpFormatter
    parser = COMMANDS.add_parser(name, help=summary, description=text, formatter_class=layout)
    add_options(parser.add_argument)
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no remarks")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = PARSER.parse_args(arguments, argparse.Namespace(arguments=arguments))
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return _fail(f"the command needs {', '.join(missing)}: pip install 'nearkin[app]'")
    if options.command == "compare" and options.dask is not None:
        given = [name for name in TABLE_ONLY if getattr(options, name) != compare.get_default(name)]
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            return _fail(f"without --dask only: {names}. A folder is classified, and ranked by one split.")
    from . import commands, console
    from .model_file import ModelFileError
    from .refusals import TableError

    try:
        getattr(commands, options.command)(options)
        return 0
    except (TableError, ModelFileError, OSError, ImportError) as error:
        return _fail(console.printable(str(error)))
    except MemoryError as error:
        return _fail(f"out of memory ({error}): take fewer rows or columns")
    except KeyboardInterrupt:
        print("nearkin: interrupted", file=sys.stderr)
        return INTERRUPTED


def _add_model_and_tables(add: Callable[..., Any]) -> None:
    add("model", metavar="MODEL", help="a file written by nearkin compare --save")
    add("table", metavar="TABLE", help=TABLE)
    text = ".csv, .parquet or .npz (default: CSV to standard output)"
    add("-o", "--output", metavar="OUT", default="-", help=text)


def _add_dask(add: Callable[..., Any]) -> None:
    text = "TABLE is a folder of Parquet files that may be larger than memory; work on the cluster whose scheduler "
    text += "has this address, or, without one, on all cores of this machine (needs nearkin[dask])"
    add("--dask", metavar="ADDRESS", nargs="?", const="", help=text)


def _at_least(minimum: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"must be at least {minimum}, got {value}")
        return value

    read.__name__ = "whole number"  # argparse says: invalid whole number value
    return read


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


@command
def compare(add: Callable[..., Any]) -> None:
    """Rank learned metrics by k-NN on held-out rows.

    k-NN on the raw features, PCA, LDA, NCA and every nearkin method are ranked by repeated
    cross-validation. Scaling and every choice (dimensions, DNE's k, MFA's pairs) are made
    inside the training rows. Rows without a label (an empty cell) are never held out and
    do not vote, but PCA, LPP, TDL and DP are fitted to them, too.

    With --dask, a folder of Parquet files that may be larger than memory is ranked by one
    split: at most 20,000 rows are held out, the others are trained on and vote.

    For example:
      nearkin compare balance_scale
      nearkin compare measurements.csv --target species --report species.html
      nearkin compare scans.parquet --target diagnosis --groups patient --save scans.safetensors
      nearkin compare houses.csv --target price --task regression
      zcat big.csv.gz | nearkin compare - --target kind
      nearkin compare embeddings/ --target topic --dask --save topics.safetensors
    """
    add("table", metavar="TABLE", help=TABLE)
    add("--target", metavar="COLUMN", help="the labels, or numbers (NPZ: by default y; bundled sets need none)")
    text = "what the target holds: classes (the default), or numbers to predict"
    add("--task", choices=sorted(TASKS), default=CLASSIFICATION.name, help=text)
    add("--unlabelled", metavar="VALUE", help="what the target holds in rows without a label, beside empty cells")
    add("--groups", metavar="COLUMN", help="keep rows of one group on one side of every split")
    add("--report", metavar="FILE", help="write an interactive page (.html) that needs no network")
    add("--save", metavar="FILE", help="refit the winner on all rows and save it (.safetensors)")
    add("--picture", metavar="FILE", help="where to write the PNG (default: TABLE-nearkin.png here)")
    add("--neighbors", metavar="K", type=_at_least(1), default=3, help="k of the vote (default: 3)")
    add("--folds", metavar="N", type=_at_least(2), default=5, help="folds of a repeat (default: 5)")
    add("--repeats", metavar="N", type=_at_least(1), default=3, help="repeats (default: 3)")
    add("--no-scaling", action="store_true", help="do not standardize: the features share a unit")
    add("--seed", type=_at_least(0), default=0, help="seed of the folds (default: 0)")
    add("--time-budget", metavar="S", type=_positive, default=120.0, help="seconds for one method (default: 120)")
    add("--memory-budget", metavar="GB", type=_positive, help="memory for one fit (default: half of what is free)")
    _add_dask(add)


@command
def predict(add: Callable[..., Any]) -> None:
    """Label new rows, or predict numbers, with a saved model.

    For every row its label and the label's share of the vote (in a regression, the value) are
    written, and the row numbers (the first row is 0) and distances of the nearest voters.

    For example:
      nearkin predict scans.safetensors new.csv -o labels.csv
      nearkin predict scans.safetensors new.parquet | head
    """
    _add_model_and_tables(add)
    text = "search of the nearest voters: exact (the default), approximate (needs faiss; quicker for 100,000 voters "
    text += "and more), or chosen by their number"
    add("--search", choices=["exact", "approximate", "auto"], default="exact", help=text)


@command
def transform(add: Callable[..., Any]) -> None:
    """Map new rows into the learned space of a saved model.

    For example:
      nearkin transform scans.safetensors new.csv -o coordinates.parquet
      nearkin transform scans.safetensors new.npz -o coordinates.npz
      nearkin transform topics.safetensors embeddings/ -o short/ --dask
    """
    _add_model_and_tables(add)
    _add_dask(add)


@command
def inspect(add: Callable[..., Any]) -> None:
    """Show which features a saved model stretches and which it ignores.

    For example:
      nearkin inspect scans.safetensors
      nearkin inspect scans.safetensors --picture scans.png
    """
    add("model", metavar="MODEL", help="a file written by nearkin compare --save")
    add("--picture", metavar="FILE", help="where to write the PNG (default: MODEL-features.png here)")


def _fail(text: str) -> int:
    print(f"nearkin: {text}", file=sys.stderr)
    return BAD_INPUT
