"""List the figures of the documentation, and make them again: `python -m benchmarks [NAME ...]`, at
the root of the repository.

Without a name it runs all canaries (`canaries.py`), which takes minutes, and lists the commands, what
they write and how long they took, and which numbers of the code have changed since. "all" makes the
figures that are older than the numbers of their code, one after the other. What cannot be made here
is skipped, with the reason. Each is recorded as soon as it is made: what was interrupted goes on with
the next one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import packages_distributions, version
from pathlib import Path

import nearkin

from .canaries import CANARIES, Numbers, flown, moved
from .figures import DATA, ROOT, Figure, Record, read_figures, read_record, write_record
from .tools.document import with_tables

ALL = "all"
PACKAGES = ("numpy", "scipy", "scikit-learn")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the figures that the arguments name, or list all of them without a name; return 1 if one
    failed.
    """
    figures, record = read_figures(), read_record()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"as the list has them, or {ALL}")
    names = parser.parse_args(arguments).names
    if unknown := sorted(set(names) - {*figures, ALL}):
        parser.error(f"{', '.join(unknown)}: no such figure; without a name they are listed")
    if not names:
        print(listing(figures, record, flown(CANARIES)))
        return 0
    if ALL in names:
        now = flown(CANARIES)
        names = [name for name, figure in figures.items() if older(figure, record, now)]
    failed = []
    for name in names:
        if unmet := figures[name].unmet():
            print(f"{name}: skipped, it needs {', '.join(unmet)}", flush=True)
            continue
        try:
            make(figures[name], record)
        except (subprocess.CalledProcessError, ValueError) as error:
            failed.append(name)
            print(f"{name}: failed: {error}", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return bool(failed)


def listing(figures: Mapping[str, Figure], record: Record, now: Mapping[str, Numbers | str]) -> str:
    """Return what there is to say of every figure, and of all."""
    n_older, seconds = 0, 0
    parts = []
    for name, figure in figures.items():
        known = record.get(name, {})
        made = f"made {known['date']}" if "date" in known else "nobody knows when it was made"
        if known.get("seconds") is not None:
            made += f", in {known['seconds'] / 60:.1f} minutes, on {known['machine']}"
        changes = older(figure, record, now)
        if figure.no_canary:
            made += f"; renew it by hand: {figure.no_canary}"
        else:
            made += f"; older: {'; '.join(changes)}" if changes else "; current"
        n_older += bool(changes)
        seconds += (known.get("seconds") or 0) * bool(changes)
        places = {
            "writes": dict.fromkeys([*figure.writes, *figure.pictures]),
            "prints the tables of": figure.prints,
            "prints, to be copied by hand,": figure.by_hand,
            "needs": figure.needs,
        }
        lines = [f"{what} {', '.join(where)}" for what, where in places.items() if where]
        wrap = textwrap.TextWrapper(
            100,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        parts += [name, *(f"  $ {command}" for command in figure.commands)]
        parts += [wrap.fill(line) for line in [*lines, made]] + [""]
    known = f"{seconds / 60:.0f} minutes, as far as that is known"
    return "\n".join([*parts, f"{n_older} of {len(figures)} are older; they took {known}"])


def older(figure: Figure, record: Record, now: Mapping[str, Numbers | str]) -> list[str]:
    """Return what the canaries of a figure find that they did not find when it was made."""
    then = record.get(figure.name, {}).get("canaries", {})
    own = {name: now[name] for name in figure.canaries}
    return [f"{name}, {change}" for name, change in moved(then, own).items()]


def make(figure: Figure, record: Record) -> None:
    """Run the commands of a figure, put the tables that they print into its pages, and record it."""
    now = flown(figure.canaries) if figure.canaries else {}
    if failed := [f"{name} {found}" for name, found in now.items() if isinstance(found, str)]:
        raise ValueError("; ".join(failed))
    known = record.get(figure.name, {})
    if figure.keeps and moved(known.get("begun", {}), now):
        forget(ROOT / figure.keeps, figure.ours)  # what it kept is not of this code
        record[figure.name] = known | {"begun": now}
        write_record(record)
    start = time.perf_counter()
    # a blank line ends the tables of each command
    printed = "\n\n".join(run(command) for command in figure.commands)
    seconds = time.perf_counter() - start
    for path, anchors in figure.sections_printed().items():
        page = ROOT / path
        text, without_place = with_tables(page.read_text(encoding="utf-8"), anchors, printed)
        page.write_text(text, encoding="utf-8")
        for head in without_place:
            print(f"{figure.name}: no table of {path} begins with {head}")
    record[figure.name] = {
        "date": time.strftime("%Y-%m-%d"),
        "seconds": round(seconds),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "versions": {"nearkin": nearkin.__version__} | versions(figure),
        "canaries": now,
    }
    write_record(record)
    print(f"{figure.name}: made in {seconds / 60:.1f} minutes", flush=True)
    for place in figure.by_hand:
        print(f"{figure.name}: copy what {place} has of it by hand", flush=True)


def versions(figure: Figure) -> dict[str, str]:
    """Return the versions of what every figure takes, and of the packages that this one needs."""
    names = packages_distributions()
    needed = [names[need][0] for need in figure.needs if need in names]
    return {name: version(name) for name in (*PACKAGES, *needed)}


def forget(path: Path, ours: Sequence[str]) -> None:
    """Remove the results of our methods from a file, or all of them if none is named."""
    if not ours:
        path.unlink(missing_ok=True)
    elif path.exists():
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if json.loads(line)["method"] not in ours]
        path.write_text("".join(kept), encoding="utf-8")


def run(command: str) -> str:
    """Run a command that stands on a page, and return what it prints; it is shown as it comes."""
    print(f"$ {command}", flush=True)
    words, environment = shlex.split(command), dict(os.environ)
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        if name != DATA:  # the page says "folder"; which one that is, the caller's environment says
            environment[name] = value
    programs = {"python": [sys.executable], "nearkin": [sys.executable, "-m", "nearkin"]}
    words = [*programs[words[0]], *map(os.path.expandvars, words[1:])]
    lines = []
    with subprocess.Popen(
        words, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return "".join(lines)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader has left, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit("interrupted: what was made is recorded")
