"""How long `nearkin compare` takes on tables of ordinary sizes, and whether its shortcuts change
its verdicts.

    python benchmarks/compare.py times                  # seconds and peak memory of the first answer
    python benchmarks/compare.py verdicts               # against the full protocol: no samples, five folds, three times

print Markdown. Times are those of `nearkin.evaluation.compare` with its defaults on all cores, in a
process of its own; verdicts are those on all methods.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np

from nearkin.datasets import load
from nearkin.evaluation import Comparison, all_methods, compare

SIZES = {"balance_scale": 20, "5000x30": 60, "2000x500": 120, "50000x30": 180, "500000x50": 600}
SETS = ("iris", "wine", "breast_cancer", "balance_scale", "1500x20", "2000x30")
ALL = 10**9


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a bundled set; or of "5000x30", rows of four classes of three clusters each, in twelve
    directions.
    """
    if "x" not in name or not name[0].isdigit():
        dataset = load(name)
        return dataset.X, dataset.y
    n, p = map(int, name.split("x"))
    rng, q = np.random.default_rng(0), 12
    centres = 1.3 * rng.normal(size=(12, q))
    cluster = rng.integers(12, size=n)
    X = rng.normal(size=(n, p)).astype(np.float32)
    X[:, :q] += centres[cluster]
    return X @ np.linalg.qr(rng.normal(size=(p, p)))[0].astype(np.float32), cluster % 4


def one_time(name: str) -> None:
    """Print a row of the table of times."""
    X, y = rows_of(name)
    start = time.perf_counter()
    found = compare(X, y, refit=False)
    seconds = time.perf_counter() - start
    peak = (
        sum(
            resource.getrusage(who).ru_maxrss
            for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        / 1e6
    )
    n_ranked = f"{sum(r.kind == 'method' for r in found.results)} of {len(found.methods) - 1}"
    figures = (
        f"{found.raw.score.mean():.3f} | {found.choice.score.mean():.3f} | {found.choice.status}"
    )
    folds = f"{len(found.folds)} x {len(found.folds[0][1])}"
    print(
        f"| {name} | {seconds:.0f} | {SIZES[name]} | {peak:.1f} | {n_ranked} | {folds} | {figures} "
        "|",
        flush=True,
    )


def statuses(found: Comparison) -> dict[str, str]:
    """Return the verdict on every method."""
    return {result.name: result.status for result in found.results if result.kind == "method"}


def one_verdict(name: str) -> None:
    """Print how the verdicts of the usual and of the full protocol agree on a set."""
    X, y = rows_of(name)
    full = {"n_splits": 5, "n_repeats": 3, "choice_rows": ALL}
    methods = all_methods()
    quick = compare(X, y, methods=methods, refit=False)
    methods = [replace(method, most_rows=ALL) for method in methods]
    slow = compare(X, y, methods=methods, refit=False, **full)
    pairs = {method: (status, statuses(slow)[method]) for method, status in statuses(quick).items()}
    opposite = [method for method, pair in pairs.items() if set(pair) == {"better", "worse"}]
    differing = (
        ", ".join(f"{method}: {a} / {b}" for method, (a, b) in pairs.items() if a != b) or "none"
    )
    both = f"{quick.choice.status} / {slow.choice.status}"
    print(
        f"| {name} | {quick.seconds:.0f} / {slow.seconds:.0f} | {both} | {len(opposite)} | "
        f"{differing} |",
        flush=True,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["times", "verdicts"])
    parser.add_argument("names", nargs="*", help="sets, or sizes such as 5000x30")
    options = parser.parse_args()
    one = {"times": one_time, "verdicts": one_verdict}[options.what]
    if len(options.names) == 1:
        one(options.names[0])
        sys.exit()
    heads = {
        "times": "| table | seconds | limit | peak GB | ranked | folds x rows | raw k-NN | choice "
        "| verdict |",
        "verdicts": "| table | seconds, quick / full | automatic choice | opposite | verdicts "
        "that differ |",
    }
    print(
        heads[options.what],
        "|" + " --- |" * (heads[options.what].count("|") - 1),
        sep="\n",
        flush=True,
    )
    for name in options.names or {"times": SIZES, "verdicts": SETS}[options.what]:
        subprocess.run([sys.executable, __file__, options.what, name], check=True)
