"""The house: who may import whom, and what `import nearkin` must not load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nearkin

ROOT = Path(nearkin.__file__).parent
# From the roof to the ground: a module imports only from storeys below its own, solvers never see data, graphs never
# see solvers.
LEAVES = {"_blocks", "_callbacks", "_labels", "_memory", "_parallel", "_validation", "_warn"}
ALLOWED = {
    **dict.fromkeys(LEAVES, LEAVES),
    "neighbors": LEAVES,
    "graphs": LEAVES,
    "scatter": LEAVES | {"graphs"},
    "spectral": LEAVES,
    "objectives": LEAVES,
    "descent": LEAVES,
    "estimators": LEAVES | {"neighbors", "graphs", "scatter", "spectral", "objectives", "descent"},
    "datasets": LEAVES,
    "evaluation": LEAVES | {"estimators", "neighbors"},
    "plotting": LEAVES | {"estimators", "evaluation"},
    "app": LEAVES | {"neighbors", "estimators", "evaluation", "plotting", "datasets", "dask", "__init__"},
    "dask": LEAVES | {"estimators", "neighbors", "graphs", "scatter", "spectral", "objectives"},
    "__init__": {"estimators", "neighbors"},
}


def room(path):
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imported_rooms(path):
    """Return the rooms that a file imports from, whatever the form of the import."""
    depth = len(path.relative_to(ROOT).parts)  # 1 for a module directly in the package
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == depth:
            yield from [node.module.split(".")[0]] if node.module else [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nearkin":
            yield [*node.module.split("."), "__init__"][1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "nearkin":
                    yield [*alias.name.split("."), "__init__"][1]


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_import_directions(path):
    here = room(path)
    assert here in ALLOWED, f"{here} has no place in the house: give it one in this file"
    names = {name if (ROOT / name).exists() or (ROOT / f"{name}.py").exists() else "__init__"
             for name in imported_rooms(path)}  # fmt: skip
    assert names - {here} <= ALLOWED[here]


@pytest.mark.slow  # a process of its own
def test_import_needs_and_loads_nothing_optional():
    """One process shows both: what cannot be imported is neither needed nor loaded."""
    code = """
import sys
missing = ["distributed", "faiss", "matplotlib", "pandas", "plotly", "pyarrow", "rich"]
sys.modules |= dict.fromkeys(missing)
import nearkin.datasets, nearkin.evaluation
print({"dask", "torch"} & set(sys.modules))  # SciPy asks sys.modules for these: None there would confuse it
try:
    import nearkin.dask
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded, message = done.stdout.splitlines()
    assert loaded == "set()"
    assert 'pip install "nearkin[dask]"' in message


def test_modules_stay_small_enough_to_read():
    longest = max((len(path.read_text().splitlines()), path.name) for path in ROOT.rglob("*.py"))
    assert longest[0] <= 450, f"{longest[1]} has {longest[0]} lines: split it along its ideas"
