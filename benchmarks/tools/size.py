"""Print how much there is to read: `python -m benchmarks.tools.size [FOLDER]`, by default of src/nearkin.

* Tokens are those of Python's `tokenize`, without comments, docstrings and layout: lines can be
  packed, tokens cannot.
* A function is used once if its name is read in one place of all the code, its own body apart: the
  reader has to jump for a step that could stand there.
* Circles are groups of files that import each other, directly or not, in whatever place.
* Cyclomatic complexity is ruff's count (C901).
* A walk is one call: the files, and the functions with a name, of the package that it crosses.
"""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_wine

PACKAGE = Path(__file__).parents[2] / "src" / "nearkin"
MAX_COMPLEXITY = 10
LAYOUT = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
    *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def files(folder: Path) -> list[Path]:
    """Return the Python files of a folder, at any depth."""
    return sorted(folder.rglob("*.py"))


def lines_of(nodes: Iterator[ast.stmt]) -> set[int]:
    """Return the numbers of the lines of some statements."""
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}


def documented(tree: ast.AST) -> list[ast.Module | ast.ClassDef | ast.FunctionDef]:
    """Return the nodes whose body begins with a docstring."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
        and ast.get_docstring(node, clean=False) is not None
    ]


def code_tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens that are code."""
    docstrings = lines_of(node.body[0] for node in documented(ast.parse(text)))
    return [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in LAYOUT
        and not (token.type == tokenize.STRING and token.start[0] in docstrings)
    ]


def import_lines(text: str) -> set[int]:
    """Return the numbers of the lines of imports."""
    nodes = ast.walk(ast.parse(text))
    return lines_of(node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))


def functions(text: str) -> list[str]:
    """Return the name of every function and method."""
    return [node.name for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS)]


def reads(tree: ast.AST, own: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield every name that is read, as a name or an attribute, but a function's own within it."""
    if isinstance(tree, FUNCTIONS):
        own = own | {tree.name}
    if isinstance(tree, ast.Name) and isinstance(tree.ctx, ast.Load) and tree.id not in own:
        yield tree.id
    if isinstance(tree, ast.Attribute) and isinstance(tree.ctx, ast.Load) and tree.attr not in own:
        yield tree.attr
    for child in ast.iter_child_nodes(tree):
        yield from reads(child, own)


def used_once(texts: list[str]) -> list[str]:
    """Return the functions whose name is read in one place alone."""
    count = Counter(name for text in texts for name in reads(ast.parse(text)))
    return [name for text in texts for name in functions(text) if count[name] == 1]


def imports(folder: Path) -> dict[str, set[str]]:
    """Return for every module in a package's folder which of its modules it imports, in whatever
    form and place.
    """
    names = {
        path: ".".join((folder.name, *path.relative_to(folder).with_suffix("").parts))
        for path in files(folder)
    }
    modules = {name.removesuffix(".__init__"): path for path, name in names.items()}
    found: dict[str, set[str]] = {module: set() for module in modules}
    for module, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                package = names[path].split(".")[: -node.level] if node.level else []
                base = ".".join([*package, *([node.module] if node.module else [])])
                full = [f"{base}.{alias.name}" for alias in node.names]
                targets = [name if name in modules else base for name in full]
            else:
                continue
            found[module] |= set(targets) & set(modules) - {module}
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other."""
    names = list(graph)
    edges = [(names.index(a), names.index(b)) for a in names for b in graph[a]]
    rows, columns = np.array(edges, dtype=int).reshape(-1, 2).T
    _, labels = connected_components(
        csr_array((np.ones(len(edges)), (rows, columns)), shape=(len(names),) * 2),
        connection="strong",
    )
    groups = [
        [names[i] for i in np.flatnonzero(labels == label)] for label in range(labels.max() + 1)
    ]
    return [group for group in groups if len(group) > 1]


def complex_functions(folder: Path) -> list[str]:
    """Return a line of ruff for every function whose cyclomatic complexity is above the limit."""
    limit = f"lint.mccabe.max-complexity={MAX_COMPLEXITY}"
    chosen = ["--isolated", "--select", "C901", "--config", limit, "--output-format", "concise"]
    command = [sys.executable, "-m", "ruff", "check", *chosen, "--no-cache", "."]
    found = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return [line for line in found.stdout.splitlines() if "C901" in line]


def walk(call: Callable[[], object]) -> tuple[int, int]:
    """Return how many files and named functions of the package a call crosses; it is made twice,
    so that what is loaded or computed once does not count.
    """
    import nearkin

    package = os.path.dirname(nearkin.__file__)
    crossed = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        named = not code.co_name.startswith("<")  # no lambda, no comprehension
        if event == "call" and named and code.co_filename.startswith(package):
            crossed.add((code.co_filename, code.co_qualname))

    call()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({path for path, _ in crossed}), len(crossed)


def walks() -> Iterator[tuple[str, int, int]]:
    """Yield five calls, and the files and functions that each crosses."""
    import nearkin
    from nearkin.app.cli import main as command

    wine = load_wine(as_frame=True)
    X, y = wine.data.to_numpy(), wine.target.to_numpy()
    frame = wine.data.iloc[:, -4:].assign(kind=np.where(X[:, 0] > 13, "high", "low"))
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 12)
    vectors = rng.normal(size=(30, 24))[labels] + rng.normal(size=(360, 24))

    def run(*arguments: str) -> None:
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
            code = command(arguments)
        if code:
            raise RuntimeError(said.getvalue())

    compare = ("compare", "table.csv", "--target", "target", "--methods", "NCA")
    adapt = ("adapt", "vectors.npz", "--label", "y")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        frame.assign(target=np.array(["a", "b", "c"])[y]).to_csv("table.csv", index=False)
        np.savez("vectors.npz", X=vectors, y=labels)
        yield "LDE().fit(X, y)", *walk(lambda: nearkin.LDE().fit(X, y))
        yield "NCA(2).fit(X, y)", *walk(lambda: nearkin.NCA(2).fit(X, y))
        yield "NCAClassifier().fit(frame, y)", *walk(lambda: nearkin.NCAClassifier().fit(frame, y))
        yield "nearkin compare table.csv --methods NCA", *walk(lambda: run(*compare))
        yield "nearkin adapt vectors.npz --label y", *walk(lambda: run(*adapt))


def main(folder: Path) -> None:
    """Print the figures of a package, and the walks through nearkin."""
    texts = {path: path.read_text() for path in files(folder)}
    tokens: Counter[str] = Counter()
    n_lines = n_imports = 0
    for path, text in texts.items():
        code = code_tokens(text)
        tokens[path.relative_to(folder).parts[0]] += len(code)
        n_lines += len({n for token in code for n in range(token.start[0], token.end[0] + 1)})
        n_imports += len(import_lines(text))
    for part, n_tokens in tokens.most_common():
        print(f"{n_tokens:7,}  {part}")
    n_functions = len([name for text in texts.values() for name in functions(text)])
    once = used_once(list(texts.values()))
    groups = circles(imports(folder))
    tangled = complex_functions(folder)
    print(f"{tokens.total():7,}  tokens in {len(texts)} files")
    print(f"{tokens.total() / n_lines:7.1f}  tokens a line of code, of which there are {n_lines:,}")
    print(f"{n_imports / n_lines:7.1%}  of these are imports")
    print(f"{len(once):7}  of {n_functions:,} functions are used in one place alone")
    print(f"{len(groups):7}  import circles{': ' * bool(groups)}{'; '.join(map(str, groups))}")
    print(f"{len(tangled):7}  functions of cyclomatic complexity above {MAX_COMPLEXITY}")
    for line in tangled:
        print(f"         {line}")
    if folder == PACKAGE:
        print("  files / functions that a call crosses")
        for call, n_files, n_crossed in walks():
            print(f"{n_files:7} / {n_crossed:3}  {call}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
