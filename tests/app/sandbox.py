"""A process that opens files with its hands tied: `python -m tests.app.sandbox TABLE MODEL`.

Everything is imported, and a sound model used, once. Then children are forked that open the files which standard input
asks for. Of all that Python tells its audit hooks, they may only read the file that is due and the table, and little
time and memory is theirs. (A list of what is allowed needs no idea of what a file might try.) What happened is written
as JSON; whoever did harm opens no further file.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

if sys.platform == "linux":  # elsewhere the tests are only collected
    import resource

MEGABYTES = 200
PATIENCE = 3  # seconds of waiting for each second of work
# Where nearkin asks how much memory there is.
SYSTEM = ("/proc/meminfo", *(f"/sys/fs/cgroup/memory.{name}" for name in ("stat", "current", "max")))
CHANGES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

Outcome = dict[str, Any]


def use(path: str, table: str) -> Outcome:
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


def trust(path: str, table: str) -> Outcome:
    """Open a skops file as one must not: whatever it asks for is granted."""
    import skops.io

    skops.io.load(path, trusted=skops.io.get_untrusted_types(file=path))
    return {}


def unpickle(path: str, table: str) -> Outcome:
    """Open a file as one must not."""
    pickle.loads(Path(path).read_bytes())
    return {}


def misbehave(path: str, table: str) -> Outcome:
    """Do the deed that the file names."""
    MISDEEDS[Path(path).read_text()](path)
    return {}


def _spin(path: str) -> None:
    while True:
        pass


def _eat(path: str) -> None:
    hoard = []
    while True:
        hoard.append(bytes(2**20))


PARSED = compile("1", "somewhere", "eval")
# By the event that gives them away, or else by what they do.
MISDEEDS = {
    "os.system": lambda path: os.system("true"),
    "os.exec": lambda path: os.execv("/bin/true", ["true"]),
    "os.fork": lambda path: os.fork(),
    "os.posix_spawn": lambda path: os.posix_spawn("/bin/true", ["true"], {}),
    "os.remove": lambda path: os.remove(path),
    "os.rename": lambda path: os.rename(path, f"{path}.gone"),
    "os.mkdir": lambda path: os.mkdir(f"{path}.folder"),
    "subprocess.Popen": lambda path: subprocess.run(["true"]),
    "socket.__new__": lambda path: socket.socket(),
    "ctypes.dlopen": lambda path: ctypes.CDLL(None),
    "import": lambda path: __import__("this"),
    "compile": lambda path: eval("1"),
    "exec": lambda path: eval(PARSED),
    "open": lambda path: Path(path).write_text("changed"),
    "open elsewhere": lambda path: Path("/etc/hostname").read_text(),
    "spin": _spin,
    "wait": lambda path: os.read(os.pipe()[0], 1),
    "eat": _eat,
    "crash": lambda path: signal.raise_signal(signal.SIGSEGV),
}
OPENERS = {function.__name__: function for function in (use, trust, unpickle, misbehave)}


def main() -> None:
    """Answer every request."""
    from rich.cells import cell_len

    table, sound = sys.argv[1:]
    assert use(sound, table) == {"codes": [0, 0], "said": ""}
    cell_len("模")  # rich reads its table of wide characters when it meets the first
    for line in sys.stdin:
        opener, seconds, table, paths = json.loads(line)
        outcomes: list[Outcome] = []
        while len(outcomes) < len(paths):
            outcomes += _opened_by_a_child(opener, seconds, table, paths[len(outcomes) :])
        print(json.dumps(outcomes), flush=True)


def _opened_by_a_child(opener: str, seconds: int, table: str, paths: list[str]) -> list[Outcome]:
    """Return what happened to the first files, up to one that did harm."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            guard = Guard(table)
            for path in paths:
                outcome = guard.opened(opener, seconds, path)
                print(json.dumps(outcome), file=pipe, flush=True)
                if outcome["events"] or "traceback" in outcome:
                    break
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        outcomes = [json.loads(line) for line in pipe]
    _, status = os.waitpid(child, 0)
    return [*outcomes, {"died": signal.Signals(os.WTERMSIG(status)).name}] if os.WIFSIGNALED(status) else outcomes


class Stopped(BaseException):
    """Raised in the midst of what must not be; nobody catches it by habit."""


class Guard:
    """Notes and stops, from now on and in this process, everything but reading a few files."""

    def __init__(self, table: str) -> None:
        self.table = table
        self.readable: set[str] = set()
        self.events: list[str] = []
        self.on_duty = False
        memory = _memory_in_use() + MEGABYTES * 2**20
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
        sys.addaudithook(self._watch)

    def opened(self, opener: str, seconds: int, path: str) -> Outcome:
        """Return what happens when a file is opened."""
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + 1 + seconds, most))
        signal.alarm(PATIENCE * seconds)
        self.readable = {path, self.table, *SYSTEM}
        self.on_duty = True
        try:
            found = OPENERS[opener](path, self.table)
        except BaseException:
            self.on_duty = False
            found = {"traceback": traceback.format_exc()}
        self.on_duty = False
        return found | {"events": self.events}

    def _watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.on_duty and not self._is_harmless(event, arguments):
            self.events.append(f"{event} {arguments!r}"[:200])
            raise Stopped

    def _is_harmless(self, event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open":
            return str(arguments[0]) in self.readable and not arguments[2] & CHANGES
        # numpy parses the headers of arrays; to run what was parsed is an event of its own
        return event in ("builtins.id", "object.__getattr__") or (event == "compile" and arguments[1] == "<unknown>")


def _memory_in_use() -> int:
    data = re.search(r"^VmData:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert data is not None
    return 1024 * int(data[1])


if __name__ == "__main__":
    main()
