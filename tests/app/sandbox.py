"""A process that opens files with its hands tied: `python -m tests.app.sandbox OPENER SECONDS TABLE SOUND < PATHS`.

Everything is imported, and a sound model used, once. Then a child is forked for every path (one a line): of all that
Python tells its audit hooks, it may only read that file and the table; it has little time and memory. What happened is
written as a line of JSON.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

MEGABYTES = 200
SEAT_BELT = 4  # times the seconds of work: for a file that makes its reader wait
# Where nearkin asks how much memory there is.
SYSTEM = ("/proc/meminfo", *(f"/sys/fs/cgroup/memory.{name}" for name in ("stat", "current", "max")))
CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def use(path: str, table: str) -> dict[str, Any]:
    """Do what the commands do with a model, but for the picture."""
    from nearkin.app import console
    from nearkin.app.cli import main
    from nearkin.app.model_file import ModelFileError, load_model

    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        try:
            model, _ = load_model(Path(path))
        except ModelFileError as error:
            return {"refused": str(error)}
        console.describe(model, Path(path))
        codes = [main([command, path, table, "-q"]) for command in ("predict", "transform")]
    return {"codes": codes, "said": said.getvalue()}


def unpickle(path: str, table: str) -> dict[str, Any]:
    """Open a file as no model may be opened."""
    return {"said": str(pickle.loads(Path(path).read_bytes()))}


def eat(path: str, table: str) -> dict[str, Any]:
    """Take memory without end."""
    hoard = []
    while True:
        hoard.append(bytes(2**20))


def spin(path: str, table: str) -> dict[str, Any]:
    """Take time without end."""
    while True:
        pass


def wait(path: str, table: str) -> dict[str, Any]:
    """Do nothing without end."""
    return {"said": str(os.read(os.pipe()[0], 1))}


OPENERS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    function.__name__: function for function in (use, unpickle, eat, spin, wait)
}


def main() -> None:
    """Open every file that standard input names."""
    opener, seconds, table, sound = OPENERS[sys.argv[1]], int(sys.argv[2]), sys.argv[3], sys.argv[4]
    assert use(sound, table) == {"codes": [0, 0], "said": ""}
    for line in sys.stdin:
        path = line.rstrip("\n")
        print(json.dumps(_opened_by_a_child(opener, seconds, path, table)), flush=True)


def _opened_by_a_child(opener: Callable[[str, str], dict[str, Any]], seconds: int, path: str, table: str) -> Any:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            found = _opened_under_guard(opener, seconds, path, table)
            json.dump(found, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if status or not told:
        return {"died": signal.Signals(status).name if os.WIFSIGNALED(status) else str(status)}
    return json.loads(told)


def _opened_under_guard(
    opener: Callable[[str, str], dict[str, Any]], seconds: int, path: str, table: str
) -> dict[str, Any]:
    signal.alarm(SEAT_BELT * seconds)
    _limit(resource.RLIMIT_CPU, seconds)
    _limit(resource.RLIMIT_DATA, _memory_in_use() + MEGABYTES * 2**20)
    events: list[str] = []
    allowed = {path, table, *SYSTEM}

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if not _is_harmless(event, arguments, allowed):
            events.append(f"{event} {arguments!r}"[:200])

    sys.addaudithook(note)
    try:
        return opener(path, table) | {"events": events}
    except BaseException:
        return {"events": events.copy(), "traceback": traceback.format_exc()}


def _is_harmless(event: str, arguments: tuple[Any, ...], allowed: set[str]) -> bool:
    if event == "open":
        return str(arguments[0]) in allowed and not arguments[2] & CHANGES
    # numpy parses the headers of arrays; to run what was parsed is an event of its own
    return event in ("builtins.id", "object.__getattr__") or (event == "compile" and arguments[1] == "<unknown>")


def _limit(kind: int, most: int) -> None:
    resource.setrlimit(kind, (most, most))


def _memory_in_use() -> int:
    data = re.search(r"^VmData:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert data is not None
    return 1024 * int(data[1])


if __name__ == "__main__":
    main()
