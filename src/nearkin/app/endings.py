"""How the command ends: always with a line and an exit code.

A signal ends the command at once while modules are loaded, and raises an exception while it works,
so that incomplete files are removed. This module is loaded first and imports nothing slow.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import signal
import sys
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

UNWRITTEN = 1
BAD_INPUT = 2
EXIT_CODES = """\
exit codes:
  0    done
  1    some output could not be written: standard error says which, and why
  2    the input or an option cannot be used: one line says why, and what to do
  130  interrupted by Ctrl-C
  143  terminated by SIGTERM (129: the terminal was closed)
"""
SIGNALS: dict[int, str] = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "terminated, as the terminal was closed",
}
IN_ASCII = str.maketrans({"±": "+-", "²": "2", "─": "-", "█": "#", "…": "..."})


class TableError(Exception):
    """An unusable table; the text is a single line that names the place and the remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(" ".join(text.splitlines()))  # a file may have any name


class Terminated(BaseException):
    """A signal that asks the command to end; its number is the argument."""


class Output(io.FileIO):
    """Standard output or error of a command that continues if nothing can be written.

    There may still be files to write.

    Attributes
    ----------
    failure : OSError or None
        Why output was lost. A reader that stops early (`| head`) is not a failure.
    """

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Write bytes, or drop them."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.failure = error
            return len(data)


def run(command: Callable[[], int]) -> int:
    """Run the command of a process with all endings handled, and return its exit code."""
    begin()
    try:
        return _finish(command())
    except SystemExit as end:  # from argparse
        raise SystemExit(_finish(end.code)) from None


def begin() -> None:
    """Set up the handling of all endings, before anything else is loaded."""
    codecs.register_error("in_ascii", _in_ascii)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        old: Any = getattr(sys, name)
        stream = old
        if old is None:  # closed: the next file opened would get its number
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115
        elif name != "stdin":
            old.flush()
            buffer = io.BufferedWriter(Output(old.fileno(), "w", closefd=False))
            at_once = old.line_buffering or old.write_through
            stream = io.TextIOWrapper(buffer, old.encoding, "in_ascii", line_buffering=at_once)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    warnings.simplefilter("ignore", RuntimeWarning)  # from arithmetic, whose results are checked
    _handle(_end_at_once)


def _finish(code: Any) -> Any:
    """Return the exit code for a command that returned `code`, another one if output was lost."""
    sys.stdout.flush()
    failure = getattr(getattr(sys.stdout.buffer, "raw", None), "failure", None)
    if failure is not None:
        return fail(
            f"standard output could not be written ({failure.strerror}): free some space, or "
            "choose another place.",
            code or UNWRITTEN,
        )
    return code


@contextmanager
def signals_raise() -> Iterator[None]:
    """Let signals raise exceptions in this context, so that incomplete files are removed.

    SIGINT raises KeyboardInterrupt, other signals raise Terminated.
    """

    def unwind(number: int, frame: Any) -> None:
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        _handle(signal.SIG_IGN)  # the first one is enough: files are being removed
        raise Terminated(number)

    before = _handle(unwind)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ended_by(number: int) -> int:
    """Report the signal that ended the command, and return its exit code."""
    return fail(SIGNALS[number], 128 + number)


def first_line(error: Any) -> str:
    """Return the first line of the text of an error or a warning."""
    return str(error).partition("\n")[0]


@contextmanager
def one_line(place: Any) -> Iterator[None]:
    """Convert an error caused by the rows of a table to a TableError with its name."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise TableError(f"{place}: {first_line(error)}") from error


def fail(text: str, code: int) -> int:
    """Print why the command ends, and return its exit code."""
    print(f"nearkin: {printable(text)}", file=sys.stderr)
    return code


def printable(text: str, escape: Callable[[str], str] = repr) -> str:
    """Return text in which characters that are not seen are escaped, but for spaces and line ends.

    All text from tables and files passes here on its way to a terminal or a page: control
    characters could command the terminal, and marks of direction reorder what stands around them.
    """

    def shown(mark: re.Match[str]) -> str:
        is_seen = mark[0].isprintable() or unicodedata.category(mark[0]) == "Zs"
        return mark[0] if is_seen else escape(mark[0])[1:-1]

    return re.sub(r"[^ -~\n]", shown, text)


def _handle(handler: Any) -> dict[int, Any]:
    """Set the handler of all signals that are not ignored (as by nohup); return the old ones."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    return {
        number: signal.signal(number, handler)
        for number, old in before.items()
        if old != signal.SIG_IGN
    }


def _end_at_once(number: int, frame: Any) -> None:
    with suppress(OSError):
        os.write(2, f"nearkin: {SIGNALS[number]}\n".encode())
    os._exit(128 + number)


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace what the encoding of a stream lacks, e.g. "±" by "+-"."""
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(IN_ASCII)
    return text.encode("ascii", "backslashreplace").decode(), error.end
