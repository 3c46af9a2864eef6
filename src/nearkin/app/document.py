"""A comparison as one JSON document: what `--json` writes and what the page is drawn from (docs/guide/json.md)."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.sparse import issparse

from .. import __version__
from ..evaluation import (
    CHOICE,
    CLASSIFICATION,
    SCORES,
    Comparison,
    Method,
    MethodResult,
    OwnVote,
    confusion,
    first_repeat,
)
from .column_curves import learned_columns
from .maps import drawn_maps
from .plain import digits, short_text, to_json
from .sentences import summarize, summary
from .tables import Table
from .verdicts import quote, wording
from .wording import WORDING

FORMAT = 1
MAX_NOTE = 1000
MAX_CLASSES, MAX_LISTED, MAX_NOTES, MAX_FOLDS = 1000, 50, 100, 500
MAX_CONFUSION = 40
TEST = (
    "paired by held-out row, with a variance corrected for the training rows that folds share, at least that of the "
    "folds (with two to four folds by their number of degrees of freedom); Holm over the methods"
)
TEST_OF_A_SPLIT = "paired by held-out row, of the two fitted models; Holm over the methods"

Curves = dict[str, dict[int, np.ndarray]]


def comparison_document(comparison: Comparison, curves: Curves, table: Table, command: Sequence[str]) -> dict[str, Any]:
    """Return all that was found, in plain types.

    Parameters
    ----------
    comparison : Comparison
    curves : dict
        As `nearkin.evaluation.score_by_dimension` returns it.
    table : Table
        What was compared on.
    command : sequence of str
        The command that was given, program first.
    """
    found, everyone = summarize(comparison), (*comparison.results, *comparison.references)
    classes, answers = _classes(comparison)
    return {
        "format": FORMAT,
        "nearkin": __version__,
        "command": [str(word) for word in command],
        "versions": {
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "SciPy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": platform.platform(),
        "seed": comparison.protocol.random_state,
        "seconds": digits(comparison.seconds),
        "table": _table(comparison, table, classes),
        "protocol": _protocol(comparison),
        "score": _score(comparison.score.name, comparison),
        "beside": _score(WORDING[comparison.score.name].second, comparison),
        "verdict": found.verdict,
        "doubts": [{"kind": doubt.kind, "text": short_text(doubt.text, MAX_NOTE)} for doubt in comparison.doubts],
        "quote": quote(comparison),
        "notes": _notes(table, found.notes),
        "ranking": [_line(result, comparison) for result in everyone],
        "curves": [_curve(name, scores) for name, scores in curves.items() if scores],
        "columns": learned_columns(comparison, table),
        **drawn_maps(comparison, table, answers),
        "confusion": _confusion(comparison),
    }


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the document as one line of UTF-8."""
    path.write_text(to_json(document) + "\n", encoding="utf-8")


def _classes(comparison: Comparison) -> tuple[list[dict[str, Any]] | None, np.ndarray]:
    """Return the classes with their rows, and of every row the place of its class, -1 for none, or its number.

    Beyond the 1,000 largest classes the others share a place at the end.
    """
    y = comparison.protocol.y
    if comparison.task != CLASSIFICATION:
        return None, y
    sizes = np.bincount(y[y >= 0], minlength=len(comparison.classes))
    kept = np.sort(np.argsort(-sizes, kind="stable")[:MAX_CLASSES])
    named = [{"label": short_text(comparison.classes[place]), "rows": int(sizes[place])} for place in kept]
    if len(kept) == len(sizes):
        return named, y
    places = np.full(len(sizes) + 1, len(kept))  # the last one is that of -1
    places[kept], places[-1] = np.arange(len(kept)), -1
    others = f"the {len(sizes) - len(kept):,} other classes"
    return [*named, {"label": others, "rows": int(sizes.sum() - sizes[kept].sum())}], places[y]


def _table(comparison: Comparison, table: Table, classes: list[dict[str, Any]] | None) -> dict[str, Any]:
    protocol, found = comparison.protocol, table.suspects
    y, (n, p) = protocol.y[protocol.labelled], protocol.X.shape
    return {
        "name": short_text(table.name, 200),
        "rows": n,
        "labelled": len(protocol.labelled),
        "columns": len(table.encoder.columns_),
        "features": p,
        "sparse": bool(issparse(protocol.X)),
        "target": short_text(table.target, 200),
        "task": comparison.task.name,
        "n_classes": None if classes is None else len(comparison.classes),
        "classes": classes,
        "largest_class": None if classes is None else f"{np.bincount(y).max() / len(y):.1%}",
        "range": None if classes is not None else digits([y.min(), y.max()], 6),
        "groups": None if table.groups is None else len(np.unique(table.groups)),
        "n_left_out": len(found.left_out),
        "left_out": [{"column": short_text(name), "reason": reason} for name, reason in found.left_out[:MAX_LISTED]],
        "suspicious": [{"column": short_text(name), "score": digits(s)} for name, s in found.suspicious[:MAX_LISTED]],
        "missing": _missing(comparison, table),
        "group_hints": [short_text(name) for name, _ in found.group_hints[:MAX_LISTED]],
        "twins": {
            "rows": comparison.n_twins,
            "share": digits(comparison.n_twins / n),
            "kept": comparison.kept_twins,
        },
    }


def _missing(comparison: Comparison, table: Table) -> dict[str, Any]:
    """Return how many cells are missing, and in which features the most."""
    counts = comparison.protocol.missing_cells
    most = np.argsort(-counts, kind="stable")[:MAX_LISTED]
    listed = [{"feature": short_text(table.feature_names[j]), "rows": int(counts[j])} for j in most if counts[j]]
    return {"cells": int(counts.sum()), "n_features": int(np.count_nonzero(counts)), "features": listed}


def _protocol(comparison: Comparison) -> dict[str, Any]:
    protocol, folds = comparison.protocol, comparison.folds
    return {
        "folds": len(folds),
        "repeats": comparison.n_repeats,
        "held_out_rows": sum(len(test) for _, test in first_repeat(folds)),
        "training_rows": round(float(np.mean([len(train) for train, _ in folds]))),
        "scaled": protocol.scale,
        "neighbors": comparison.n_neighbors,
        "test": TEST_OF_A_SPLIT if comparison.of_fitted_models else TEST,
        "tests": sum(result.kind in ("method", "choice") for result in comparison.results),
        "detectable": digits(comparison.least_difference),
    }


def _score(name: str, comparison: Comparison) -> dict[str, Any]:
    """Return a score and how it is written."""
    words = WORDING[name].at(comparison.raw.scores[name].mean())
    title = words.title[0].upper() + words.title[1:]
    return {
        "name": name,
        "title": title,
        "axis": f"{title} on held-out rows{', %' * (words.unit == '%')}",
        "factor": words.factor,
        "unit": words.unit,
        "decimals": int(words.form[1:-1]) if words.form.endswith("f") else None,
        "sign": SCORES[comparison.task.name][name].sign,
    }


def _notes(table: Table, found: Sequence[str]) -> list[str]:
    """Return remarks on the table and on the comparison, but for those on columns, which `table` holds."""
    said = set(table.suspects.notes(table.target, table.task))
    notes = [note for note in table.notes if note not in said]
    return [short_text(note, MAX_NOTE) for note in [*notes, *found][:MAX_NOTES]]


def _line(result: MethodResult, comparison: Comparison) -> dict[str, Any]:
    """Return a contestant or reference of the ranking."""
    n, is_raw, is_reference = len(result.score), result.kind == "baseline", result.kind == "reference"
    votes = [] if is_reference else [vote for vote in result.votes if not isinstance(vote, OwnVote)]
    words = wording(comparison)
    second = WORDING[words.second].at(comparison.raw.scores[words.second].mean())
    return {
        "name": short_text(result.name),
        "kind": result.kind,
        "status": result.status,
        "score": digits(result.score.mean(), 6),
        "deviation": digits(result.score.std(ddof=1)) if n > 1 else None,
        "folds": digits(result.score[:MAX_FOLDS], 5),
        "scores": {name: digits(values.mean(), 6) for name, values in result.scores.items()},
        "difference": digits(result.difference, 6),
        "written": {  # as the command prints them: a browser rounds halves otherwise
            "score": words.number(result.score.mean()),
            "second": second.number(result.scores[words.second].mean()),
            "difference": words.signed(result.difference),
            "low": words.signed(result.interval[0]),
            "high": words.signed(result.interval[1]),
        },
        "low": None if is_raw else digits(result.interval[0], 6),
        "high": None if is_raw else digits(result.interval[1], 6),
        "p": digits(result.p_value),
        "dimension": None if is_reference else _spread(result.dimension),
        "neighbors": _spread([vote.n_neighbors for vote in votes]) if votes else None,
        "soft": digits(np.mean([vote.soft for vote in votes])) if votes else None,
        "choices": _choices(result),
        "fit_seconds": digits(result.fit_seconds.mean(), 3),
        "learned_rows": result.n_learned,
        "summary": summary(result.method) if isinstance(result.method, Method) else "",
    }


def _choices(result: MethodResult) -> list[dict[str, Any]]:
    """Return what the inner folds chose beside dimension and vote, and in how many folds, the most usual first."""
    params = [{k: v for k, v in chosen.items() if k != "n_components"} for chosen in result.params]
    if not any(params):
        return []
    texts = Counter(tuple((name, short_text(value)) for name, value in chosen.items()) for chosen in params)
    return [{"folds": count, "params": dict(chosen)} for chosen, count in texts.most_common(5)]


def _spread(values: Any) -> list[float]:
    """Return the smallest value, the median and the largest."""
    return [int(value) for value in np.percentile(values, [0, 50, 100], method="nearest")]


def _curve(name: str, scores: dict[int, np.ndarray]) -> dict[str, Any]:
    folds = np.array([*scores.values()])
    ends = {"mean": folds.mean(axis=1), "low": folds.min(axis=1), "high": folds.max(axis=1)}
    return {"name": short_text(name), "dimension": [*map(int, scores)]} | {key: digits(v, 5) for key, v in ends.items()}


def _confusion(comparison: Comparison) -> dict[str, Any] | None:
    """Return percentages of each class's held-out rows by label; of many classes the most confused."""
    if comparison.task != CLASSIFICATION or all(result.kind != "method" for result in comparison.results):
        return None
    counts = [confusion(result, comparison) for result in (comparison.raw, comparison.choice)]
    errors = sum(matrix.sum(axis=1) - np.diag(matrix) for matrix in counts)
    shown = np.sort(np.argsort(-errors, kind="stable")[:MAX_CONFUSION])
    before, after = (
        digits(100.0 * matrix[np.ix_(shown, shown)] / np.maximum(matrix[shown].sum(axis=1, keepdims=True), 1))
        for matrix in counts
    )
    labels = [short_text(label) for label in comparison.classes[shown].tolist()]
    return {"name": CHOICE, "labels": labels, "classes": len(comparison.classes), "before": before, "after": after}
