"""List the figures of the documentation, and make them again: `python -m benchmarks [NAME ...]`, at
the root of the repository.

Without a name it lists what makes each section and picture, how long that took, and the code that
has changed since. "all" makes those that are older than their code, one after the other, and may be
interrupted: what is made is recorded. Figures that cannot be made here are named, with the reason.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nearkin

from .document import with_tables
from .figures import DATA, ROOT, Figure, digest, read_figures, read_record, write_record

ALL = "all"
PACKAGES = ("numpy", "scipy", "scikit-learn")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the figures that the arguments name, or list all of them without a name; return 1 if one
    failed.
    """
    figures, record = read_figures(), read_record()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument(
        "names", nargs="*", metavar="NAME", choices=[[], *figures, ALL], help=f"or {ALL}"
    )
    names = parser.parse_args(arguments).names
    if not names:
        for one in figures.values():
            print(f"{described(one, record.get(one.name, {}))}\n")
        return 0
    if ALL in names:
        names = [one.name for one in figures.values() if state(one, record.get(one.name, {}))]
    failed = []
    for name in names:
        if unmet := figures[name].unmet():
            print(f"{name}: skipped, it needs {', '.join(unmet)}", flush=True)
            continue
        try:
            make(figures[name], record)
        except (subprocess.CalledProcessError, ValueError) as error:
            failed.append(name)
            print(f"{name}: failed, {error}", flush=True)
        except KeyboardInterrupt:
            print(f"{name}: interrupted; the same command goes on from here", flush=True)
            return 130
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


def described(figure: Figure, known: Mapping[str, Any]) -> str:
    """Return what the list says of a figure."""
    lines = [figure.name, *(f"  $ {command}" for command in figure.commands)]
    lines += [f"  writes {', '.join(figure.writes)}"] if figure.writes else []
    lines += [f"  prints the tables of {', '.join(figure.prints)}"] if figure.prints else []
    lines += [f"  printed, to copy by hand: {', '.join(figure.by_hand)}"] if figure.by_hand else []
    lines += [f"  needs {', '.join(figure.needs)}"] if figure.needs else []
    seconds = known.get("seconds")
    took = "" if seconds is None else f" in {seconds / 60:.1f} minutes"
    made = f"made {known['date']}{took}" if "date" in known else "nobody knows when it was made"
    return "\n".join([*lines, f"  {made}: {state(figure, known) or 'current'}"])


def state(figure: Figure, known: Mapping[str, Any]) -> str:
    """Return what a figure is older than; nothing if it is current."""
    older = figure.older_than(known.get("code", {}))
    return f"older than {', '.join(older)}" if older else ""


def make(figure: Figure, record: dict[str, dict[str, Any]]) -> None:
    """Run the commands of a figure, put the tables that they print into its pages, and record it."""
    code = {path: digest(ROOT / path) for path in figure.code}
    known = record.setdefault(figure.name, {})
    if figure.keeps and known.get("begun") != code:  # results of other code do not count
        forget(ROOT / figure.keeps)
        known["begun"] = code
        write_record(record)
    print(f"{figure.name}:", flush=True)
    start = time.perf_counter()
    printed = "".join(map(run, figure.commands))
    seconds = time.perf_counter() - start
    for page in dict.fromkeys(place.partition("#")[0] for place in figure.prints):
        anchors = [place.partition("#")[2] for place in figure.prints if place.startswith(page)]
        path = ROOT / page
        text, placeless = with_tables(path.read_text(encoding="utf-8"), anchors, printed)
        path.write_text(text, encoding="utf-8")
        for head in placeless:
            print(f"{figure.name}: {page} has no table that begins with {head}")
    versions = {"nearkin": nearkin.__version__} | {name: version(name) for name in PACKAGES}
    record[figure.name] = {
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds),
        "versions": versions,
        "code": code,
    }
    write_record(record)
    places = ", ".join(figure.by_hand)
    print(f"{figure.name}: made" + f"; copy by hand what stands in {places}" * bool(places))


def forget(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def run(command: str) -> str:
    """Run a command as a page shows it, and return what it prints, which is shown, too."""
    print(f"$ {command}", flush=True)
    words = shlex.split(command)
    environment = dict(os.environ)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        if name != DATA:  # whose folder is that of the caller
            environment[name] = value
    python = {"python": [sys.executable], "nearkin": [sys.executable, "-m", "nearkin"]}
    words = [*python[words[0]], *map(os.path.expandvars, words[1:])]
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        lines = []
        for line in process.stdout or ():
            lines.append(line)
            print(line, end="", flush=True)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return "".join(lines)


if __name__ == "__main__":
    sys.exit(main())
