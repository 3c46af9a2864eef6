"""The command line: `nearkin compare`, `predict`, `transform`, `inspect`, and for vectors `adapt`, `export`.

Results go to standard output, progress, remarks and errors to standard error. What help and refused options need is
here and in the modules of options, and nothing else is loaded for it.
"""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from . import vector_options as vector_options  # declares its commands
from .endings import BAD_INPUT, Terminated, ended_by, say, signals_raise
from .options import COMMANDS, PARSER, compare
from .places import STANDARD_INPUT, is_absent, missing_file

SHELLS = ("bash", "zsh", "fish")
NEEDED = ("pandas", "rich", "matplotlib", "pyarrow", "safetensors")
# The option whose value may stand alone behind a command's files by mistake.
MEANT = {
    "compare": ("target", "--target"),
    "adapt": ("label", "--label"),
    "predict": ("output", "-o"),
    "transform": ("output", "-o"),
    "inspect": ("picture", "--picture"),
}
# Options of compare that a folder does not have.
TABLE_ONLY = (
    *("task", "score", "methods", "unlabelled", "groups", "report", "json", "folds", "repeats"),
    *("quick", "all", "keep_twins", "no_references", "time_budget"),
    *("sep", "decimal", "missing", "refuse_missing"),
)


class _PrintCompletion(argparse.Action):
    """Print a completion script for a shell, and end."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, shell: Any, option: str | None = None) -> None:
        try:
            from .completion import script

            print(script(shell))
        except ImportError as error:
            parser.exit(say(f"completion needs {error.name}: pip install 'nearkin[app]'", BAD_INPUT))
        parser.exit()


PARSER.add_argument(
    "--print-completion",
    metavar="SHELL",
    choices=SHELLS,
    action=_PrintCompletion,
    help="print a completion script for bash, zsh or fish: commands, options, files and methods",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options, surplus = PARSER.parse_known_args(arguments, argparse.Namespace(arguments=arguments))
    if surplus:
        return say(_not_understood(options, surplus), BAD_INPUT)
    unfit = _unfit(options)
    return say(unfit, BAD_INPUT) if unfit else _run(options)


def _not_understood(options: argparse.Namespace, surplus: Sequence[str]) -> str:
    """Return a line on arguments that a command does not have, with the option that may be meant."""
    first, command = surplus[0], options.command
    meant = ""
    if first.startswith("-"):
        known = COMMANDS.choices[command]._option_string_actions  # argparse offers no other way to ask
        close = difflib.get_close_matches(first.partition("=")[0], list(known), n=1)
        meant = f": did you mean {close[0]}?" if close else ""
    elif command in MEANT:
        name, option = MEANT[command]
        given = getattr(options, name) not in (None, "-")
        meant = "" if given else f": did you mean {option} {first}?"
    return f"{command} has no argument {' '.join(surplus)}{meant} (nearkin {command} --help)"


def _unfit(options: argparse.Namespace) -> str | None:
    """Return why a command cannot run, if that can be told before anything is loaded."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        return f"the command needs {', '.join(missing)}: pip install 'nearkin[app]'"
    if getattr(options, "dask", None) is not None and options.command == "compare":
        given = [name for name in TABLE_ONLY if getattr(options, name) != compare.get_default(name)]
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            return f"without --dask only: {names}. A folder is classified, and ranked by one split."
    if "model" in options and is_absent(options.model):
        return f"{options.model} cannot be read: no such file; give one that nearkin compare or adapt --save wrote."
    for name in ("pairs", "queries", "relevance"):
        if absent := missing_file(getattr(options, name, None) or STANDARD_INPUT):
            return absent
    is_table = "table" in options and getattr(options, "dask", None) is None
    return missing_file(options.table) if is_table else None


def _run(options: argparse.Namespace) -> int:
    """Run a command, and say in one line what its input is unfit for."""
    from . import commands
    from .model_file import ModelFileError
    from .output import refuse_overwriting
    from .refusals import TableError

    try:
        with signals_raise():
            refuse_overwriting(options)
            code: int = getattr(commands, options.command)(options)
        return code
    except (TableError, ModelFileError, OSError, ImportError) as error:
        return say(str(error), BAD_INPUT)
    except MemoryError as error:
        return say(f"out of memory ({error}): take fewer rows or columns", BAD_INPUT)
    except KeyboardInterrupt:
        return ended_by(signal.SIGINT)
    except Terminated as end:
        return ended_by(end.args[0])
