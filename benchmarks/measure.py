"""How studies and benchmarks run: from the command line, timed, in a process of its own, and with
results that are kept.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from benchmarks.tools.document import renew


def command(*parts: Callable[..., Any], threads: int | None = None) -> None:
    """Run the parts that the command line names, the first by default.

    The options of a part are its parameters, with their defaults; several values are a tuple. A text
    that it returns is printed, and with --document stands between the marks of the part in a page.
    """
    by_name = {part.__name__.replace("_", "-"): part for part in parts}
    parser = argparse.ArgumentParser(
        description=sys.modules["__main__"].__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    choices = [*by_name, "all"]
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(choices))
    parser.add_argument("--document", type=Path, help="a page whose marked parts are replaced")
    defaults = {
        name: one.default for part in parts for name, one in signature(part).parameters.items()
    }
    for name, default in defaults.items():
        how: dict[str, Any] = {"nargs": "+"} if isinstance(default, tuple) else {}
        first = default[0] if isinstance(default, tuple) and default else default
        if isinstance(default, bool):
            how = {"action": "store_true", "default": None}
        elif first != ():
            how["type"] = type(first)
        parser.add_argument(f"--{name.replace('_', '-')}", **how)
    given = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    names = given.pop("parts") or [next(iter(by_name))]
    if unknown := set(names) - set(choices):
        parser.error(f"{', '.join(unknown)}: no such part; there are {', '.join(choices)}")
    with threadpool_limits(threads), warnings.catch_warnings(action="ignore"):
        for name in by_name if "all" in names else names:
            part = by_name[name]
            text = part(**{key: given[key] for key in signature(part).parameters if key in given})
            if isinstance(text, str):
                print(text, flush=True)
                if "document" in given:
                    renew(given["document"], part.__name__, text)


class Timed(NamedTuple):
    """The seconds of a call, on the clock and of the processor, and what it returned."""

    seconds: float
    processor: float
    result: Any


def timed(function: Callable[..., Any], *arguments: Any, repeats: int = 1) -> Timed:
    """Return the quickest of some calls."""
    found = []
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        result = function(*arguments)
        found.append(Timed(time.perf_counter() - clock, time.process_time() - processor, result))
    return min(found, key=lambda one: one.seconds)


def memory(field: str = "VmHWM") -> int:
    """Return a field of the status of this process, in bytes: by default the largest resident size
    so far (Linux).
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _send(sender: Connection, limit: int, function: Callable[..., Any], arguments: Any) -> None:
    """Send what a function returns, or why it does not; beyond the limit the system ends the process."""
    if limit:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
    try:
        with warnings.catch_warnings(action="ignore"):
            sender.send((None, function(*arguments)))
    except Exception as error:
        sender.send((f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}", None))


class FailedError(Exception):
    """What was measured apart ended without a result."""


def apart(
    function: Callable[..., Any], *arguments: Any, limit: int = 0, start: str = "spawn"
) -> Any:
    """Return what a function finds in a process of its own, whose memory and end are its own.

    Parameters
    ----------
    limit : int
        Processor seconds at most; 0 for no limit.
    start : "spawn" or "fork"
        A fresh interpreter, which imports what it needs, or a copy of this one.
    """
    context = multiprocessing.get_context(start)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, limit, function, arguments))
    process.start()
    sender.close()
    try:
        why, result = receiver.recv()
    except EOFError:
        process.join()
        is_slow = process.exitcode == -signal.SIGXCPU
        raise FailedError(
            f"too slow: {limit} s" if is_slow else f"failed: exit code {process.exitcode}"
        ) from None
    if why:
        raise FailedError(f"failed: {why}")
    return result


class Kept:
    """Results in a file, a JSON line each, so that a run that was stopped goes on where it was.

    Parameters
    ----------
    path : Path
    keys : tuple of str
        What tells one job from another.
    """

    def __init__(self, path: Path, *keys: str) -> None:
        self.path, self.keys = path, keys
        text = path.read_text() if path.exists() else ""
        self.lines = [json.loads(line) for line in text.splitlines()]
        self.done = {tuple(line[key] for key in keys) for line in self.lines}

    def add(self, job: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        line = dict(job) | dict(found)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)
        self.done.add(tuple(line[key] for key in self.keys))
        named = ", ".join(str(line[key]) for key in self.keys)
        print(f"{time.strftime('%H:%M:%S')} {named}: {line.get('status', 'ok')}", file=sys.stderr)


def stamp(packages: Iterable[str]) -> dict[str, Any]:
    """Return the date, and the versions of the packages that are installed."""
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"date": time.strftime("%Y-%m-%d"), "versions": versions}
