"""The comparison as one page that needs no network: figures as HTML, pictures by plotly, which is part of the file.

Everything that comes from a table is data: it is escaped where it becomes HTML, and by the page's script where plotly
would read markup.
"""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import scipy
import sklearn

from .. import __version__
from ..evaluation import CLASSIFICATION, RAW, Comparison, MethodResult, confusion, first_repeat
from .pictures import first_map
from .sentences import WORDING, leader, rows_of, summarize, summary, target_facts
from .tables import Table

MAX_POINTS = 1000
MAX_CONFUSION = 40
MAX_LABEL = 40
NO_MARKUP = {ord(mark): f"\\u{ord(mark):04x}" for mark in "<>&"}  # JSON that ends no script element

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

    found, data, n_held_out = summarize(comparison), _data(comparison, curves, table), len(comparison.folds[0][1])
    facts = f"{rows_of(table, ',')}, {table.X.shape[1]:,} features, {target_facts(table)} of {table.target!r}"
    sample = f"All {n_held_out} held-out rows of the first fold are shown."
    if n_held_out > MAX_POINTS:
        sample = f"Shown are {MAX_POINTS:,} of {n_held_out:,} held-out rows, drawn with seed {comparison.random_state}."
    methods = [result.method for result in comparison.results]
    texts = {"title": f"nearkin compare {table.name}", "verdict": found.verdict, "facts": facts, "sample": sample}
    texts |= {"title_of_score": WORDING[table.task].title, "task": table.task}
    page = files(__package__) / "page"
    html = {
        "head": _elements("th", found.cells[0]),
        "body": "".join(f'<tr class="{row["verdict"]}">{_elements("td", row.values())}</tr>' for row in found.cells),
        "notes": _elements("li", [*table.notes, *found.notes]),
        "methods": "".join(_elements("dt", [m.name]) + _elements("dd", [summary(m)]) for m in methods),
        "settings": "".join(
            f"<tr>{_elements('th', [name])}{_elements('td', [value])}</tr>"
            for name, value in _settings(comparison, table, command).items()
        ),
        "data": json.dumps(data, separators=(",", ":")).translate(NO_MARKUP),
        "plotly": get_plotlyjs(),
        "style": (page / "page.css").read_text(),
        "script": (page / "page.js").read_text(),
    }
    pieces = {name: escape(text) for name, text in texts.items()} | html
    path.write_text(Template((page / "page.html").read_text()).substitute(pieces), encoding="utf-8")


def _elements(tag: str, texts: Iterable[str]) -> str:
    """Return an HTML element for each text."""
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _settings(comparison: Comparison, table: Table, command: Sequence[str]) -> dict[str, str]:
    """Return all that it takes to get these figures again."""
    learned = "rows that a method learns from" if comparison.n_unlabelled else "training rows"
    return {
        "command": shlex.join(command),
        "vote": f"{comparison.n_neighbors} nearest neighbours",
        "scaling": f"standardized on the {learned}" if comparison.scale else "none",
        "folds": f"{len(comparison.folds)}, of {len(first_repeat(comparison.folds))} a repeat; every choice by "
        "validation inside the training rows",
        "test": "corrected resampled t-test, paired by fold; Holm over the methods",
        "seed": str(comparison.random_state),
        "versions": f"nearkin {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {scipy.__version__}, scikit-learn {sklearn.__version__}",
        "machine": platform.platform(),
    }


def _data(comparison: Comparison, curves: Curves, table: Table) -> dict[str, Any]:
    """Return what the pictures show; scores as they are written, but finer."""
    words, learned = WORDING[table.task], [result for result in comparison.results if result.name != RAW]
    labels, answers = None, table.y
    if table.task == CLASSIFICATION.name:  # the place of every row's class, -1 for none
        classes, codes = np.unique(table.labels, return_inverse=True)
        labels, answers = [_text(label) for label in classes.tolist()], np.full(len(table.y), -1)
        answers[table.labelled] = codes

    return {
        "score": {"axis": words.axis, "prefix": words.prefix, "unit": words.unit, "decimals": words.decimals},
        "target": _text(table.target),
        "labels": labels,
        "range": [_digits(table.y.min(), 6), _digits(table.y.max(), 6)] if labels is None else None,
        "neighbors": comparison.n_neighbors,
        "ranking": [
            {"name": r.name, "status": r.status, "folds": _digits(words.factor * r.score, 6)}
            for r in comparison.results
        ],
        "curves": [
            {"name": name, "dimension": list(scores), "folds": _digits(words.factor * np.array([*scores.values()]), 6)}
            for name, scores in curves.items()
        ],
        "maps": [_map(result, comparison, table, answers) for result in learned],
        "confusion": None if labels is None else _confusion(comparison, table, labels),
    }


def _map(result: MethodResult, comparison: Comparison, table: Table, answers: np.ndarray) -> dict[str, Any]:
    """Return a sample of the held-out rows of the first fold, with the answers of their neighbours."""
    words, seen = WORDING[table.task], first_map(comparison, result, table)
    shown = np.sort(np.random.default_rng(comparison.random_state).permutation(len(seen.rows))[:MAX_POINTS])
    Z = seen.embedding[shown]
    return {
        "name": result.name,
        "score": _digits(words.factor * seen.score, 6),
        "said": f"{words.vote(seen.score)} {words.of_rows} {len(seen.rows)} held-out rows",
        "x": _digits(Z[:, 0]),
        "y": _digits(Z[:, 1]) if Z.shape[1] > 1 else None,
        "row": [_text(table.row_names[row]) for row in seen.rows[shown]],
        "answer": _digits(answers[seen.rows[shown]], 6),
        "near": _digits(answers[seen.neighbors[shown]], 6),
        "near_row": [[_text(table.row_names[row]) for row in rows] for rows in seen.neighbors[shown]],
    }


def _confusion(comparison: Comparison, table: Table, labels: list[str]) -> dict[str, Any]:
    """Return the shares of each class's held-out rows by label, before and after; of many classes the most confused."""
    after = leader(comparison)
    before, with_map = (confusion(result, comparison, table.y) for result in (comparison[RAW], after))
    errors = sum(matrix.sum(axis=1) - np.diag(matrix) for matrix in (before, with_map))
    shown = np.sort(np.argsort(-errors, kind="stable")[:MAX_CONFUSION])
    shares = [_digits(100.0 * m[shown][:, shown] / m[shown].sum(axis=1, keepdims=True)) for m in (before, with_map)]

    shown_labels = [labels[number] for number in shown]
    return {"name": after.name, "labels": shown_labels, "classes": len(labels), "before": shares[0], "after": shares[1]}


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
