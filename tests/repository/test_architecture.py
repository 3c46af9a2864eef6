"""The layers: who may import whom, and what `import nearkin` must not load."""

import ast
import importlib
import pickle
import re
import subprocess
import sys
from functools import cache

import pytest

import nearkin
from benchmarks.tools.house import PICTURE, drawn
from benchmarks.tools.size import PACKAGE, circles, documented, files, imports

LEAVES = {
    "_blocks",
    "_callbacks",
    "_labels",
    "_memory",
    "_messages",
    "_threads",
    "_validation",
    "datasets",
    "folds",
    "linalg",
    "statistics",
    "testing",
}
# A module imports from the layers below its own: graphs never see solvers, solvers never see data.
GRAPHS = LEAVES | {"neighbors", "graphs", "bandwidth"}
SOLVERS = GRAPHS | {"scatter", "spectral", "objectives", "descent"}
ESTIMATORS = SOLVERS | {"estimators"}
JOBS = ESTIMATORS | {"tables", "vectors"}
ALLOWED = {
    **dict.fromkeys(LEAVES | {"neighbors", "graphs", "spectral"}, LEAVES),
    "bandwidth": LEAVES | {"neighbors"},
    "objectives": GRAPHS,
    "descent": LEAVES | {"objectives"},
    "scatter": GRAPHS,
    "estimators": SOLVERS,
    "tables": ESTIMATORS,
    "vectors": ESTIMATORS,
    "comparison": ESTIMATORS | {"tables"},  # of tables; vectors have their own
    "plotting": JOBS | {"comparison"},
    "app": JOBS | {"comparison", "plotting", "dask", "__init__"},
    "dask": ESTIMATORS,
    "__init__": JOBS,
    "__main__": {"app"},
    "evaluation": {"comparison", "statistics", "vectors"},  # a former name
}
TESTS = PACKAGE.parents[1] / "tests"
# Modules without tests of their name, and what tests them.
TESTED_ELSEWHERE = {
    "__main__": "app/test_endings.py starts it",
    "app/vectors/adapter_file": "app/vectors/test_adapt.py, test_match.py and test_saved_file.py: commands write and read it",
    "app/folders/cluster": "app/folders/test_compare.py and test_folder_rows.py run on it",
    "app/inspect": "app/tables/test_model.py describes and draws models, app/vectors/test_adapt.py adapters",
    "app/saved_fields": "app/test_saved_file.py forges each of them",
    "app/vectors/thresholds": "app/vectors/test_adapt.py reads what it prints",
    "estimators/transductive": "estimators/test_tdl.py and test_laplacian_eigenmaps.py",
    "objectives/network": "estimators/test_neural_nca.py, the one file that loads torch",
}
OF_ALL_MODULES = {"dask/test_contract", "dask/test_faults"}


@pytest.fixture(scope="module")
def graph():
    """Which modules of the package each of them imports."""
    return imports(PACKAGE)


@cache
def tree(path):
    return ast.parse(path.read_text())


def layer(module):
    return [*module.split("."), "__init__"][1]


def test_imports_go_one_way(graph):
    assert {layer(module) for module in graph} <= set(ALLOWED), (
        "a module has no layer: give it one in this file"
    )
    upwards = [
        f"{module} imports {name}"
        for module, names in graph.items()
        for name in names
        if layer(name) not in ALLOWED[layer(module)] | {layer(module)}
    ]
    assert upwards == []


@pytest.mark.slow
def test_the_picture_of_the_layers_is_true():
    """Else `python -m benchmarks.tools.house` draws it again."""
    assert PICTURE.read_text(encoding="utf-8") == drawn()


def documented_modules():
    """Return the modules that the API pages describe whole."""
    pages = (PACKAGE.parents[1] / "docs" / "api").glob("*.rst")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    return {f"nearkin.{name}" for name in re.findall(r"automodule:: nearkin\.(\S+)", text)}


def taken_by_guests(guest):
    """Yield the file, the module and the name of every import of a guest from the rest, but leaves."""
    for path in files(PACKAGE / guest):
        for node in ast.walk(tree(path)):
            if (
                isinstance(node, ast.ImportFrom)
                and node.level == len(path.relative_to(PACKAGE).parts)
                and node.module
                and node.module not in LEAVES
            ):
                yield from ((path.name, f"nearkin.{node.module}", one.name) for one in node.names)


@pytest.mark.parametrize("guest", ["app", "dask"])
def test_guests_use_what_is_there_for_guests(guest):
    """That is what `__all__` lists; of a module that has none, what an API page describes."""
    pytest.importorskip("distributed")
    public, strange = documented_modules(), []
    for file, module, name in taken_by_guests(guest):
        listed = getattr(importlib.import_module(module), "__all__", None)
        if name not in listed if listed is not None else module not in public:
            strange.append(f"{file}: {module}.{name}")
    assert strange == []


MOST_BELOW = 23


def test_guests_reach_below_few_folders():
    """Every name of a module inside a folder is a promise that its file cannot break alone."""
    below = [
        (file, module, name)
        for guest in ("app", "dask")
        for file, module, name in taken_by_guests(guest)
        if module.count(".") > 1
    ]
    assert len(below) <= MOST_BELOW


@pytest.mark.slow
def test_no_message_names_an_estimator_above_it():
    """What is below the estimators raises with a reason; the remedy stands with the caller."""
    names = {*nearkin.__all__} - {"ApproximateSearch", "load"}
    estimators = re.compile(rf"\b({'|'.join(names)})\b")
    found = []
    for path in files(PACKAGE):
        if path.relative_to(PACKAGE).with_suffix("").parts[0] not in SOLVERS:
            continue
        told = {id(node.body[0].value) for node in documented(tree(path))}
        found += [
            f"{path.relative_to(PACKAGE)}: {node.value}"
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in told
            and estimators.search(node.value)
        ]
    assert found == []


def test_decompositions_are_those_that_do_not_give_up():
    giving_up = re.compile(
        r"(?:from (?:scipy|numpy)\.linalg import .*|\blinalg\.)\b(?:svd|eigh|pinvh?|lstsq)\b"
    )
    others = [path for path in files(PACKAGE) if path.name != "linalg.py"]
    taken = [
        f"{path.name}: {found}" for path in others for found in giving_up.findall(path.read_text())
    ]
    assert taken == [], "take it from nearkin.linalg"


@pytest.mark.slow
def test_import_needs_no_private_name_of_others():
    """A release may rename it: where one is needed, it is imported in the function that needs it."""
    private = re.compile(r"(^|\.)_(?!_)")
    found = [
        f"{path.name}: {node.module}.{alias.name}"
        for path in files(PACKAGE)
        for node in tree(path).body
        if isinstance(node, ast.ImportFrom) and node.level == 0
        for alias in node.names
        if private.search(f"{node.module}.{alias.name}")
    ]
    assert found == []


@pytest.mark.slow
def test_validators_are_those_that_name_argument_and_remedy():
    """scikit-learn's say neither of many inputs; ours are in `_validation` and `_parameters`."""
    names = {
        "check_array",
        "check_consistent_length",
        "check_random_state",
        "check_X_y",
        "column_or_1d",
        "validate_data",
    }
    taken = [
        f"{path.relative_to(PACKAGE)}: {alias.name}"
        for path in files(PACKAGE)
        if path.name not in ("_validation.py", "_parameters.py")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn")
        for alias in node.names
        if alias.name in names
    ]
    # of Dask's arrays only the names of features are checked
    assert taken == ["dask/spectral.py: validate_data"], "take it from nearkin._validation"


def test_tests_stand_where_their_module_does():
    modules = {path.relative_to(PACKAGE).with_suffix("") for path in files(PACKAGE)}
    names = {
        module.with_name(f"test_{module.name.lstrip('_')}").as_posix(): module.as_posix()
        for module in modules
        if module.name == "__main__" or not module.name.startswith("__")
    }
    tests = {path.relative_to(TESTS).with_suffix("").as_posix() for path in files(TESTS)}
    lacking = {module for name, module in names.items() if name not in tests}
    assert lacking == set(TESTED_ELSEWHERE)
    homeless = [
        test
        for test in tests
        if "/test_" in f"/{test}"
        and not test.startswith(("repository/", "reproductions/"))
        and not any(test == name or test.startswith(f"{name}_") for name in names)
    ]
    assert set(homeless) == OF_ALL_MODULES, "name it test_<module>.py or test_<module>_<subject>.py"


def test_benchmarks_take_nothing_from_tests():
    taking = re.compile(r"^\s*(?:from|import) tests\b", re.MULTILINE)
    scripts = files(TESTS.parent / "benchmarks")
    assert [path.name for path in scripts if taking.search(path.read_text())] == []


def test_no_import_circle(graph):
    assert circles(graph) == []


@pytest.mark.long  # a process of its own
def test_import_needs_and_loads_nothing_optional():
    """One process shows both: what cannot be imported is neither needed nor loaded."""
    code = """
import sys
missing = ["distributed", "faiss", "matplotlib", "pandas", "pyarrow", "rich"]
sys.modules |= dict.fromkeys(missing)
import nearkin.datasets, nearkin.comparison
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


def test_help_and_refusals_load_nothing_that_takes_time(tmp_path):
    code = """
import sys
import nearkin
from nearkin.app import cli
cli.NEEDED = ()  # of which some may be absent here
for arguments in (["--version"], ["--help"], ["compare", "--help"], ["compare", "iris", "--folds", "x"],
                  ["compare", "no.csv"], ["predict", "no.safetensors", "no.csv"]):
    try:
        cli.main(arguments)
    except SystemExit:
        pass
heavy = {"joblib", "matplotlib", "numpy", "pandas", "pyarrow", "rich", "scipy", "sklearn"} & set(sys.modules)
print("loaded:", heavy or "nothing", file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    *_, no_table, no_model, loaded = done.stderr.splitlines()
    assert no_table.startswith("nearkin: no.csv: no such file; give a ")
    assert no_model.startswith("nearkin: no.safetensors cannot be read: no such file; give one ")
    assert loaded == "loaded: nothing"


def test_names_are_loaded_when_they_are_used():
    names: dict = {}
    exec("from nearkin import *", names)
    assert {"NCA", "ApproximateSearch"} <= set(nearkin.__all__) <= set(names)
    assert set(nearkin.__all__) < set(dir(nearkin))
    assert names["NCA"] is nearkin.NCA is nearkin.estimators.NCA
    assert repr(pickle.loads(pickle.dumps(nearkin.NCA(3)))) == "NCA(n_components=3)"
    assert nearkin.datasets.BUNDLED
    with pytest.raises(AttributeError, match="module 'nearkin' has no attribute 'NBA'"):
        nearkin.NBA  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name '_nothing'"):
        exec("from nearkin import _nothing")
