"""The comparison as one page that needs no network: figures as HTML, pictures by plotly, which is part of the file.

Everything that comes from a table is data: it is escaped where it becomes HTML, and by the page's script where plotly
would read markup.
"""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import scipy
import sklearn

from .. import __version__
from ..evaluation import RAW, Comparison, HeldOutMap, MethodResult, confusion, first_repeat, held_out_map
from .console import cells
from .table import Table

MAX_POINTS = 1000
MAX_CONFUSION = 40
MAX_LABEL = 40

Curves = dict[str, dict[int, np.ndarray]]


def write_report(path: Path, comparison: Comparison, curves: Curves, table: Table, command: Sequence[str]) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
    comparison : Comparison
    curves : dict
        As `nearkin.evaluation.accuracy_by_dimension` returns it.
    table : Table
        What was compared on.
    command : sequence of str
        The command that was given, program first.
    """
    from plotly.offline import get_plotlyjs

    pieces = {
        "title": escape(f"nearkin compare {table.name}"),
        "verdict": escape(comparison.verdict),
        "facts": escape(_facts(table)),
        "ranking": _ranking(comparison),
        "notes": _items([*table.notes, *comparison.notes]),
        "methods": _methods(comparison),
        "settings": _settings(comparison, table, command),
        "sample": escape(_sampling(comparison)),
        "spectrum_hidden": "" if _spectrum(comparison, table) else "hidden",
        "data": _json(_data(comparison, curves, table)),
        "plotly": get_plotlyjs(),
    }
    page = files(__package__) / "page"
    pieces |= {"style": (page / "page.css").read_text(), "script": (page / "page.js").read_text()}
    path.write_text(Template((page / "page.html").read_text()).substitute(pieces), encoding="utf-8")


def _facts(table: Table) -> str:
    classes = len(np.unique(table.y))
    return f"{table.X.shape[0]:,} rows, {table.X.shape[1]:,} features, {classes} classes of {table.target!r}"


def _sampling(comparison: Comparison) -> str:
    held_out = len(comparison.folds[0][1])
    if held_out <= MAX_POINTS:
        return f"All {held_out} held-out rows of the first fold are shown."
    return f"Shown are {MAX_POINTS:,} of {held_out:,} held-out rows, drawn with seed {comparison.random_state}."


def _ranking(comparison: Comparison) -> str:
    """Return the ranking as table rows."""
    lines = [cells(result) for result in comparison.results]
    head = "".join(f"<th>{escape(name)}</th>" for name in lines[0])
    body = "".join(
        f'<tr class="{result.verdict}">' + "".join(f"<td>{escape(cell)}</td>" for cell in line.values()) + "</tr>"
        for result, line in zip(comparison.results, lines, strict=True)
    )
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"


def _items(lines: Sequence[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _methods(comparison: Comparison) -> str:
    described = [result.method for result in comparison.results]
    return "".join(f"<dt>{escape(method.name)}</dt><dd>{escape(method.summary)}</dd>" for method in described)


def _settings(comparison: Comparison, table: Table, command: Sequence[str]) -> str:
    """Return all that it takes to get these figures again, as table rows."""
    settings = {
        "command": shlex.join(command),
        "vote": f"{comparison.n_neighbors} nearest neighbours",
        "scaling": "standardized on the training rows" if comparison.scale else "none",
        "folds": f"{len(comparison.folds)}, of {len(first_repeat(comparison.folds))} a repeat; every choice by "
        "validation inside the training rows",
        "test": "corrected resampled t-test, paired by fold; Holm over the methods",
        "seed": str(comparison.random_state),
        "target": table.target,
        "versions": f"nearkin {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}",
        "machine": platform.platform(),
    }
    return "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in settings.items())


def _data(comparison: Comparison, curves: Curves, table: Table) -> dict[str, Any]:
    """Return what the pictures show."""
    classes, codes = np.unique(table.y, return_inverse=True)
    learned = [result for result in comparison.results if result.name != RAW]
    return {
        "labels": [_text(label) for label in classes.tolist()],
        "neighbors": comparison.n_neighbors,
        "ranking": [
            {
                "name": result.name,
                "verdict": result.verdict,
                "folds": _percent(result.accuracy),
                "mean": _percent(result.accuracy.mean()),
                "std": _percent(result.accuracy.std(ddof=1)),
            }
            for result in comparison.results
        ],
        "curves": [
            {
                "name": name,
                "dimension": list(scores),
                "mean": [_percent(score.mean()) for score in scores.values()],
                "folds": [_percent(score) for score in scores.values()],
            }
            for name, scores in curves.items()
        ],
        "maps": [_map(result, comparison, table, codes) for result in learned],
        "confusion": _confusion(comparison, table, [_text(label) for label in classes.tolist()]),
        "spectrum": _spectrum(comparison, table),
    }


def _map(result: MethodResult, comparison: Comparison, table: Table, codes: np.ndarray) -> dict[str, Any]:
    """Return a sample of the held-out rows of the first fold, with the labels of their neighbours."""
    seen = held_out_map(result.mapping(2), table.X, table.y, comparison.folds[0], comparison.n_neighbors)
    shown = _sample(seen, comparison.random_state)
    Z = seen.embedding[shown]
    return {
        "name": result.name,
        "accuracy": _percent(seen.score),
        "held_out": len(seen.rows),
        "x": _digits(Z[:, 0]),
        "y": _digits(Z[:, 1]) if Z.shape[1] > 1 else None,
        "row": [_text(table.row_names[row]) for row in seen.rows[shown]],
        "label": codes[seen.rows[shown]].tolist(),
        "near": codes[seen.neighbors[shown]].tolist(),
        "near_row": [[_text(table.row_names[row]) for row in rows] for rows in seen.neighbors[shown]],
    }


def _sample(seen: HeldOutMap, random_state: int) -> np.ndarray:
    n_rows = len(seen.rows)
    if n_rows <= MAX_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(random_state).choice(n_rows, MAX_POINTS, replace=False))


def _confusion(comparison: Comparison, table: Table, labels: list[str]) -> dict[str, Any]:
    """Return the shares of each class's held-out rows by label, before and after; of many classes the most confused."""
    learned = next(result for result in comparison.results if len(comparison.results) == 1 or result.name != RAW)
    after = learned if comparison.best.name == RAW else comparison.best
    counts = {
        "before": confusion(comparison[RAW], comparison, table.y),
        "after": confusion(after, comparison, table.y),
    }
    errors = sum(matrix.sum(axis=1) - np.diag(matrix) for matrix in counts.values())
    shown = np.sort(np.argsort(-errors, kind="stable")[:MAX_CONFUSION])
    return {
        "name": after.name,
        "labels": [labels[number] for number in shown],
        "classes": len(labels),
        **{when: _shares(matrix)[np.ix_(shown, shown)].tolist() for when, matrix in counts.items()},
    }


def _shares(counts: np.ndarray) -> np.ndarray:
    return np.round(100 * counts / counts.sum(axis=1, keepdims=True), 2)


def _spectrum(comparison: Comparison, table: Table) -> dict[str, Any] | None:
    """Return DNE's eigenvalues on the training rows of the first fold, with the k chosen there."""
    result = next((result for result in comparison.results if result.name == "DNE"), None)
    if result is None:
        return None
    train, _ = comparison.folds[0]
    fitted = result.pipeline[:-1].set_params(map__n_components=None).fit(table.X[train], table.y[train])[-1]
    return {
        "values": _digits(fitted.eigenvalues_),
        "negative": fitted.n_components_,
        "k": fitted.n_neighbors,
        "chosen": int(result.dimension[0]),
    }


def _percent(values: Any) -> Any:
    return np.round(100 * np.asarray(values), 3).tolist()


def _digits(values: np.ndarray) -> list[float]:
    """Return numbers in four digits: enough for a picture, a third of the bytes."""
    return [float(f"{value:.4g}") for value in values]


def _text(value: Any) -> str:
    """Return a name that is short enough for a legend."""
    text = str(value)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _json(data: Any) -> str:
    """Return JSON that ends no script element."""
    return (
        json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )
