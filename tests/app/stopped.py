"""Send the command a signal at a moment of its work: python stopped.py TERM-writing HUP-reading ...

Every command runs in a fork of this process, which has loaded all modules, in a folder of its own
below the working directory; its exit code, what it prints and the files that it leaves are written
to standard output, as JSON.
"""

import importlib
import json
import os
import runpy
import shutil
import signal
import sys
import threading
from fnmatch import fnmatch
from pathlib import Path

QUICK = "compare t.csv --target kind --methods PCA --no-references --folds 2 --save m.safetensors"
# What happens at a moment, to a file whose name ends like this, the how many-th time, and how much later
# to stop.
MOMENTS = {
    "loading": ("import", "pandas", 1, 0.0),
    "waiting": ("open", "stdin", 1, 0.1),  # standard input is copied into this file
    "reading": ("open", "t.csv", 2, 0.0),  # the header is read before
    "comparing": ("open", "m.safetensors.*.part", 1, 0.1),  # whether it can be written is tried
    "writing": ("open", "m.safetensors.*.part", 4, 0.0),  # each draft is made, then opened
}


def stop(number, moment):
    """Send this process a signal at a moment to come."""
    event, name, left, delay = MOMENTS[moment]

    def watch(happened, arguments):
        nonlocal left
        if happened == event and fnmatch(str(arguments[0]), f"*{name}"):
            left -= 1
            if left == 0 and delay:
                threading.Timer(delay, os.kill, (os.getpid(), number)).start()
            elif left == 0:
                os.kill(os.getpid(), number)

    sys.addaudithook(watch)


def work(name):
    """Run a command in this process, with streams of its own, and end it."""
    signal_name, _, moment = name.partition("-")
    # nothing ever comes
    source, _ = os.pipe() if moment == "waiting" else (os.open(os.devnull, os.O_RDONLY), 0)
    for place, file in enumerate(
        (source, *(os.open(end, os.O_CREAT | os.O_RDWR) for end in ("out", "err")))
    ):
        os.dup2(file, place)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(place, mode, closefd=False) for place, mode in enumerate("rww")
    )
    given = QUICK.replace("t.csv", "-" if moment == "waiting" else "t.csv")
    # of which some are still to come when the signal does
    repeats = 20 if moment == "comparing" else 1
    sys.argv = ["nearkin", *given.split(), "--repeats", str(repeats)]
    stop(signal.Signals[f"SIG{signal_name}"], moment)
    try:
        runpy.run_module("nearkin", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code)
    finally:
        os._exit(99)


def stopped(name):
    """Run a command in a fork, and return how it ended."""
    here = Path(name)
    (here / "temporary").mkdir(parents=True)
    shutil.copy("t.csv", here)
    process = os.fork()
    if process == 0:
        os.chdir(here)
        os.environ["TMPDIR"] = "temporary"
        work(name)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    left = sorted(str(path.relative_to(here)) for path in here.rglob("*"))
    return {
        "code": code,
        "out": (here / "out").read_text(),
        "err": (here / "err").read_text(),
        "left": left,
    }


if __name__ == "__main__":
    # what started the tests may ignore signals, such as nohup
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    names = sys.argv[1:]
    early = [name for name in names if name.endswith("loading")]
    found = {name: stopped(name) for name in early}
    for module in ("nearkin.app.commands", "matplotlib.backends.backend_agg", "pyarrow.csv"):
        importlib.import_module(module)
    print(json.dumps(found | {name: stopped(name) for name in names if name not in early}))
