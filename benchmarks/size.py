"""Print the size of the code: `python benchmarks/size.py [FOLDER]`, by default of src/nearkin.

Code lines hold code: no docstring, comment or blank line. A function is as long as its code lines.
It is used once if its name is read in one place of all the code, its own body apart: the reader has
to jump for a step that could stand there. Circles are groups of files that import each other,
directly or not, in whatever place of the file.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

PACKAGE = Path(__file__).parents[1] / "src" / "nearkin"
MAX_LINES = 300
MAX_FUNCTION = 15
LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines that hold code."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in LAYOUT
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS))
            and ast.get_docstring(node, clean=False) is not None
        ):
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the code lines of every function and method."""
    lines = code_lines(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, FUNCTIONS):
            yield node.name, len(lines & set(range(node.lineno, node.end_lineno + 1)))


def reads(tree: ast.AST, own: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield every name that is read, as a name or an attribute, but for functions' within
    themselves.
    """
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
    return [name for text in texts for name, _ in functions(text) if count[name] == 1]


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


def files(folder: Path) -> list[Path]:
    """Return the Python files of a folder, at any depth."""
    return sorted(folder.rglob("*.py"))


def long_files(folder: Path) -> list[str]:
    """Return the files of more than 300 lines all told, with their lengths."""
    lengths = {path: len(path.read_text().splitlines()) for path in files(folder)}
    return [f"{path.relative_to(folder)} ({n})" for path, n in lengths.items() if n > MAX_LINES]


def main(folder: Path) -> None:
    """Print the figures of a package."""
    texts = {path: path.read_text() for path in files(folder)}
    parts: Counter[str] = Counter()
    for path, text in texts.items():
        parts[path.relative_to(folder).parts[0]] += len(code_lines(text))
    for part, lines in sorted(parts.items()):
        print(f"{lines:7,}  {part}")
    sizes = np.array([size for text in texts.values() for _, size in functions(text)])
    once = used_once(list(texts.values()))
    longest = long_files(folder)
    groups = circles(imports(folder))
    print(f"{parts.total():7,}  code lines in {len(texts)} files")
    print(
        f"{len(longest):7}  files over {MAX_LINES} lines{': ' * bool(longest)}{', '.join(longest)}"
    )
    print(
        f"{np.mean(sizes <= MAX_FUNCTION):7.1%}  of {len(sizes):,} functions within "
        f"{MAX_FUNCTION} code lines"
    )
    print(f"{len(once):7}  functions used in one place alone")
    print(
        f"{len(groups):7}  import "
        f"circles{': ' * bool(groups)}{'; '.join(', '.join(group) for group in groups)}"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PACKAGE)
