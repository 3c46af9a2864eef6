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
from .._labels import known_labels
from ..evaluation import (
    CLASSIFICATION,
    RAW,
    REGRESSION,
    Comparison,
    HeldOutMap,
    MethodResult,
    confusion,
    first_repeat,
    held_out_map,
)
from .console import cells, rows_of, target_facts
from .sentences import WORDING, Wording, notes, summary, verdict
from .table import Table

MAX_POINTS = 1000
MAX_CONFUSION = 40
MAX_LABEL = 40
# What the page says of a score, of the colours of its maps, and of the vote.
WORDS = {
    CLASSIFICATION.name: {
        "score": "Share of held-out rows that the vote of the nearest neighbours gets right.",
        "colours": "click labels in the legend to hide or show them.",
        "vote": "{} nearest neighbours",
    },
    REGRESSION.name: {
        "score": "R² of the mean of the nearest neighbours on held-out rows: 1 is right everywhere, 0 no better than "
        "to say the mean. MAE is the mean error, in the unit of the target.",
        "colours": "its colour is its own value of the target.",
        "vote": "mean of the {} nearest neighbours",
    },
}

Curves = dict[str, dict[int, np.ndarray]]


def write_report(path: Path, comparison: Comparison, curves: Curves, table: Table, command: Sequence[str]) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
    comparison : Comparison
    curves : dict
        As `nearkin.evaluation.score_by_dimension` returns it.
    table : Table
        What was compared on.
    command : sequence of str
        The command that was given, program first.
    """
    from plotly.offline import get_plotlyjs

    pieces = {
        "title": escape(f"nearkin compare {table.name}"),
        "verdict": escape(verdict(comparison)),
        "facts": escape(_facts(table)),
        "ranking": _ranking(comparison),
        "notes": _items([*table.notes, *notes(comparison)]),
        "methods": _methods(comparison),
        "settings": _settings(comparison, table, command),
        "score": escape(WORDS[table.task]["score"]),
        "title_of_score": escape(WORDING[table.task].title),
        "colours": escape(WORDS[table.task]["colours"]),
        "confusion_hidden": "" if table.task == CLASSIFICATION.name else "hidden",
        "sample": escape(_sampling(comparison)),
        "spectrum_hidden": "" if _spectrum(comparison, table) else "hidden",
        "data": _json(_data(comparison, curves, table)),
        "plotly": get_plotlyjs(),
    }
    page = files(__package__) / "page"
    pieces |= {"style": (page / "page.css").read_text(), "script": (page / "page.js").read_text()}
    path.write_text(Template((page / "page.html").read_text()).substitute(pieces), encoding="utf-8")


def _facts(table: Table) -> str:
    return f"{rows_of(table, ',')}, {table.X.shape[1]:,} features, {target_facts(table)} of {table.target!r}"


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
        f'<tr class="{result.status}">' + "".join(f"<td>{escape(cell)}</td>" for cell in line.values()) + "</tr>"
        for result, line in zip(comparison.results, lines, strict=True)
    )
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"


def _items(lines: Sequence[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _methods(comparison: Comparison) -> str:
    described = [result.method for result in comparison.results]
    return "".join(f"<dt>{escape(method.name)}</dt><dd>{escape(summary(method))}</dd>" for method in described)


def _settings(comparison: Comparison, table: Table, command: Sequence[str]) -> str:
    """Return all that it takes to get these figures again, as table rows."""
    settings = {
        "command": shlex.join(command),
        "vote": WORDS[table.task]["vote"].format(comparison.n_neighbors),
        "scaling": "standardized on the rows that a method learns from"
        if comparison.n_unlabelled
        else "standardized on the training rows"
        if comparison.scale
        else "none",
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
    words, learned = WORDING[table.task], [result for result in comparison.results if result.name != RAW]
    labels, answers = _answers(table)
    return {
        "score": {"axis": words.axis, "prefix": words.prefix, "unit": words.unit, "decimals": words.decimals},
        "target": _text(table.target),
        "labels": labels,
        "range": [_digits(table.y.min(), 6), _digits(table.y.max(), 6)] if labels is None else None,
        "neighbors": comparison.n_neighbors,
        "ranking": [
            {
                "name": result.name,
                "verdict": result.status,
                "folds": _scaled(words, result.score),
                "mean": _scaled(words, result.score.mean()),
                "std": _scaled(words, result.score.std(ddof=1)),
            }
            for result in comparison.results
        ],
        "curves": [
            {
                "name": name,
                "dimension": list(scores),
                "mean": [_scaled(words, score.mean()) for score in scores.values()],
                "folds": [_scaled(words, score) for score in scores.values()],
            }
            for name, scores in curves.items()
        ],
        "maps": [_map(result, comparison, table, answers) for result in learned],
        "confusion": None if labels is None else _confusion(comparison, table, labels),
        "spectrum": _spectrum(comparison, table),
    }


def _answers(table: Table) -> tuple[list[str] | None, np.ndarray]:
    """Return the names of the classes, and every row's by its place there (none: -1); or None and the numbers."""
    if table.task != CLASSIFICATION.name:
        return None, table.y
    codes = np.full(len(table.y), -1)
    classes, codes[table.labelled] = np.unique(table.labels, return_inverse=True)
    return [_text(label) for label in classes.tolist()], codes


def _map(result: MethodResult, comparison: Comparison, table: Table, answers: np.ndarray) -> dict[str, Any]:
    """Return a sample of the held-out rows of the first fold, with the answers of their neighbours."""
    words, fold = WORDING[table.task], comparison.folds[0]
    seen = held_out_map(
        result.mapping(2),
        table.X,
        table.y,
        fold,
        comparison.n_neighbors,
        task=table.task,
        unlabelled=result.unlabelled[0],
    )
    shown = _sample(seen, comparison.random_state)
    Z = seen.embedding[shown]
    return {
        "name": result.name,
        "score": _scaled(words, seen.score),
        "said": f"{words.vote(seen.score)} {words.of_rows} {len(seen.rows)} held-out rows",
        "x": _digits(Z[:, 0]),
        "y": _digits(Z[:, 1]) if Z.shape[1] > 1 else None,
        "row": [_text(table.row_names[row]) for row in seen.rows[shown]],
        "answer": _digits(answers[seen.rows[shown]], 6),
        "near": _digits(answers[seen.neighbors[shown]], 6),
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
    fitted = (
        result.pipeline[:-1].set_params(map__n_components=None).fit(table.X[train], known_labels(table.y, train))[-1]
    )
    return {
        "values": _digits(fitted.eigenvalues_),
        "negative": fitted.n_components_,
        "k": fitted.n_neighbors,
        "chosen": int(result.dimension[0]),
    }


def _scaled(words: Wording, values: Any) -> Any:
    """Return scores as they are written, but finer."""
    return np.round(words.factor * np.asarray(values), words.decimals + 2).tolist()


def _digits(values: Any, digits: int = 4) -> Any:
    """Return numbers in a few digits, enough for a picture and a third of the bytes; whole ones as they are."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        values = np.vectorize(lambda value: float(f"{value:.{digits}g}"), otypes=[float])(values)
    return values.tolist()


def _text(value: Any) -> str:
    """Return a name that is short enough for a legend."""
    text = str(value)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _json(data: Any) -> str:
    """Return JSON that ends no script element."""
    return (
        json.dumps(data, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    )
