"""The picture of the package's layers: `python -m benchmarks.tools.house` draws
`docs/images/house.svg` from the imports. A test compares the two.

A room stands one level above the highest room that it imports. An arrow is an import; those that
follow from others are left out, and so are those of the leaves, which all may import.
"""

from functools import cache

from .size import PACKAGE, imports

PICTURE = PACKAGE.parents[1] / "docs" / "images" / "house.svg"
FORMER = {"__init__", "__main__", "evaluation"}  # names, not rooms
ROOMS = {  # of those with an arrow: the columns that a room takes of three, and what it is for
    "app": (0, 3, "the command: files in, tables, vectors and folders, a page out"),
    "plotting": (0, 1, "displays"),
    "comparison": (0, 1, "which method, for tables"),
    "tables": (0, 1, "a frame in, a prediction out"),
    "vectors": (1, 1, "shorter and better embeddings"),
    "dask": (2, 1, "rows on a cluster"),
    "estimators": (0, 3, "one method a file; each reads as its paper"),
    "descent": (0, 1, "solvers"),
    "objectives": (0, 1, "losses and their gradients"),
    "bandwidth": (0, 1, "perplexities"),
    "neighbors": (0, 1, "k nearest rows"),
    "scatter": (1, 1, "X'LX of rows and a graph"),
    "graphs": (1, 1, "weights and Laplacians"),
    "spectral": (2, 1, "scatters become directions"),
}
COLUMN, LEVEL, BOX = 250, 66, 44  # pixels: width of a column, height of a level and of a box


def rooms() -> dict[str, set[str]]:
    """Return for every folder or module of the package the others that it imports."""
    found: dict[str, set[str]] = {}
    for module, names in imports(PACKAGE).items():
        room, *others = ([*name.split("."), "__init__"][1] for name in (module, *names))
        found[room] = found.get(room, set()) | set(others) - {room} - FORMER
    return {room: names for room, names in found.items() if room not in FORMER}


def drawn() -> str:
    """Return the picture."""
    graph = rooms()
    leaves = sorted(set(graph) - set(ROOMS))

    @cache
    def below(room: str) -> frozenset[str]:
        direct = graph[room] - set(leaves)
        return frozenset(direct).union(*map(below, direct))

    @cache
    def level(room: str) -> int:
        return 1 + max(map(level, below(room)), default=0)

    top = max(map(level, ROOMS))
    y = {room: (top - level(room)) * LEVEL + 2 for room in ROOMS}
    middle = {room: (first + width / 2) * COLUMN for room, (first, width, _) in ROOMS.items()}
    lines = []
    for room in ROOMS:
        direct = graph[room] - set(leaves)
        for other in sorted(direct - frozenset().union(*map(below, direct))):
            x = max(middle[room], middle[other], key=lambda x: abs(x - 1.5 * COLUMN))
            lines.append(
                f'<path d="M{x:g} {y[room] + BOX}V{y[other] - 3}" marker-end="url(#arrow)"/>'
            )
    boxes = [
        box(first * COLUMN + 8, y[room], width * COLUMN - 16, room, what)
        for room, (first, width, what) in ROOMS.items()
    ]
    names = ", ".join(name for name in leaves if not name.startswith("_"))
    n_private = sum(name.startswith("_") for name in leaves)
    ground = box(8, top * LEVEL + 2, 3 * COLUMN - 16, "leaves", f"{names}, and {n_private} private")
    size = (3 * COLUMN, top * LEVEL + BOX + 4)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
            'font-family="system-ui, sans-serif" font-size="13">',
            '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
            'markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#7a8590"/></marker>',
            '<g stroke="#7a8590" stroke-width="1.5" fill="none">',
            *lines,
            "</g>",
            *boxes,
            ground,
            "</svg>\n",
        ]
    )


def box(x: int, y: int, width: int, name: str, what: str) -> str:
    """Return a box with the name of a room and what it is for."""
    middle = x + width / 2
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{BOX}" rx="6" fill="#e8f1f8" stroke="#0072b2"/>'
        f'<text x="{middle:g}" y="{y + 18}" text-anchor="middle" font-weight="600" fill="#222832">{name}</text>'
        f'<text x="{middle:g}" y="{y + 35}" text-anchor="middle" fill="#222832">{what}</text>'
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
