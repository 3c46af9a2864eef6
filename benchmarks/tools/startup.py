"""Print how long imports and the command take to start: `python -m benchmarks.tools.startup [ROUNDS]`, by
default 10.

Every line is a process of its own, started in turn with the others, after a round that is not
counted. The least processor time and the least time on the clock are printed; for imports less
those of `python -c pass`.
"""

import subprocess
import sys
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter

PYTHON = "python -c pass"
IMPORTS = {
    "import sklearn": "import sklearn",
    "scikit-learn's NCA": "from sklearn.neighbors import NeighborhoodComponentsAnalysis",
    "import nearkin": "import nearkin",
    "nearkin's NCA": "from nearkin import NCA",
    "nearkin.comparison": "import nearkin.comparison",
}
COMMANDS = ("--version", "--help", "compare --help", "compare nowhere.csv")
RATIOS = (("import nearkin", "import sklearn"), ("nearkin's NCA", "scikit-learn's NCA"))


def seconds(arguments: list[str]) -> tuple[float, float]:
    """Return the processor time and the time on the clock of a process."""
    before, start = getrusage(RUSAGE_CHILDREN), perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
    clock, after = perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def main() -> None:
    """Measure and print."""
    n_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    processes = {PYTHON: ["-c", "pass"]} | {name: ["-c", code] for name, code in IMPORTS.items()}
    processes |= {f"nearkin {line}": ["-m", "nearkin", *line.split()] for line in COMMANDS}
    least = dict.fromkeys(processes, (float("inf"), float("inf")))
    for number in range(n_rounds + 1):
        for name, arguments in processes.items():
            used, clock = seconds(arguments)
            if number:
                least[name] = min(least[name][0], used), min(least[name][1], clock)
    for name in IMPORTS:
        least[name] = least[name][0] - least[PYTHON][0], least[name][1] - least[PYTHON][1]
    print(f"{'seconds':27s} processor    clock")
    for name, (used, clock) in least.items():
        print(f"{name:27s} {used:9.3f} {clock:8.3f}")
    for ours, theirs in RATIOS:
        print(f"{ours} / {theirs}: {least[ours][0] / least[theirs][0]:.2f}")


if __name__ == "__main__":
    main()
