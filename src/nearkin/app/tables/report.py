"""The document of a comparison (docs/guide/json.md)."""

from __future__ import annotations

import inspect
import platform
from contextlib import suppress
from typing import Any

import numpy as np
import scipy
import sklearn
from scipy.sparse import issparse

from ...comparison import (
    CHOICE,
    CLASSIFICATION,
    SCORES,
    Comparison,
    Method,
    MethodResult,
    chosen_predictor,
    confusion,
    first_map,
    first_repeat,
)
from ...tables import Curve, Levels, with_seasons
from ..document import MAX_LISTED, short_text, table_facts
from .reading import Table
from .words import Summary, Wording, capital

# Maps of held-out rows for the page.

MAX_POINTS, MAX_DRAWN = 1000, 10_000  # rows of a map, and of all maps
MAX_NEAR = 3  # neighbours of a drawn row
# features shown of a row; none are shown if there are more than the second number
MAX_VALUES, MAX_FEATURES = 4, 100
# of a 2-D map
FAILURES = (ValueError, TypeError, ArithmeticError, MemoryError)


def drawn_maps(found: Summary, table: Table, answers: np.ndarray) -> dict[str, Any]:
    """Return the maps of the methods, the automatic choice of the first fold first, and their rows.

    All show the same held-out rows, together with their neighbours.
    """
    comparison = found.comparison
    first = next((params["method"] for params in comparison.choice.params), None)
    methods = [result for result in comparison.results if result.kind == "method"]
    maps = []
    for result in sorted(methods, key=lambda result: result.name != first):
        with suppress(*FAILURES):
            maps.append((short_text(result.name), first_map(comparison, result)))
    if not maps:
        return {"rows": None, "maps": []}
    X, held_out = comparison.protocol.X, maps[0][1].rows
    order = np.random.default_rng(comparison.protocol.random_state).permutation(len(held_out))
    shown = np.sort(order[: min(MAX_POINTS, MAX_DRAWN // len(maps))])
    near = [seen.neighbors[shown, :MAX_NEAR] for _, seen in maps]
    others = np.unique(np.concatenate([rows.ravel() for rows in near]))
    rows = np.concatenate([held_out[shown], others])
    n_values = 0 if issparse(X) or X.shape[1] > MAX_FEATURES else MAX_VALUES
    return {
        "rows": {
            "held_out": len(held_out),
            "name": [short_text(table.row_names[row]) for row in rows.tolist()],
            "answer": answers[rows],
            "values": {
                short_text(name): X[held_out[shown], j]
                for j, name in enumerate(table.feature_names[:n_values])
            },
        },
        "maps": [
            {
                "name": name,
                "vote": str(seen.vote),
                "score": seen.score,
                "said": found.wording.predicate(seen.score),
                "x": seen.embedding[shown, 0],
                "y": seen.embedding[shown, 1] if seen.embedding.shape[1] > 1 else None,
                "near": len(shown) + np.searchsorted(others, neighbors),
            }
            for (name, seen), neighbors in zip(maps, near, strict=True)
        ],
    }


# What NCA tables has learned about every column, for the page: how far it moves rows, and where its
# values are.

MAX_COLUMNS = 50  # whose effects are listed
MAX_CURVED, MAX_PANELS, MAX_LEVELS = 6, 9, 20  # columns with curves, curves, labels per column
LEAST_REACH = 0.04  # of a curve, relative to the largest
MAX_AXES, LEAST_SHARE = 3, 0.02  # axes of the learned space along which curves are drawn


def learned_columns(comparison: Comparison, table: Table) -> dict[str, Any] | None:
    """Return effects and curves of columns, if the automatic choice is a predictor for tables."""
    predictor, protocol = chosen_predictor(comparison), comparison.protocol
    if predictor is None:
        return None
    shares = predictor.transform(protocol.X[protocol.labelled]).var(axis=0)
    shares = shares / max(shares.sum(), np.finfo(float).tiny)
    n_axes = max(1, int(np.count_nonzero(shares[:MAX_AXES] >= LEAST_SHARE)))
    names, effects = table.encoder.feature_names_in_, predictor.feature_effects_
    order = np.argsort(-effects, kind="stable")
    order = order[effects[order] > 0]
    return {
        "squared": predictor.distance_ == "squared",
        "axes": shares[:n_axes],
        "n_columns": len(order),
        "effects": [
            {"column": short_text(names[j]), "effect": effects[j]} for j in order[:MAX_COLUMNS]
        ],
        "curves": _curves(with_seasons(predictor.curves()), comparison, order[:MAX_CURVED], n_axes),
    }


def _curves(
    curves: dict[str, Any], comparison: Comparison, columns: Any, m: int
) -> list[dict[str, Any]]:
    """Return the positions of some columns' values along m axes, the most important column first.

    Parts of a column that hardly move a row, such as the weekday of a date, are left out.
    """
    X = comparison.protocol.X
    place = {feature.name: at for at, feature in enumerate(comparison.protocol.features or [])}
    found = {
        name: _levels(curve, m) if isinstance(curve, Levels) else _line(curve, X[:, place[name]], m)
        for column in columns
        for name, curve in curves.items()
        if curve.column == column
    }
    reach = {key: max(np.ptp(curve["places"], axis=1), default=0.0) for key, curve in found.items()}
    kept = [key for key in found if reach[key] >= LEAST_REACH * max(reach.values())]
    return [{"name": short_text(key)} | found[key] for key in kept[:MAX_PANELS]]


def _levels(curve: Levels, m: int) -> dict[str, Any]:
    """Return the values of a column as text with their positions."""
    values = curve.values[:m]
    kept = np.sort(np.argsort(-np.abs(values).max(axis=0), kind="stable")[:MAX_LEVELS])
    levels = [short_text(curve.names[at]) for at in kept]
    return {"edges": None, "levels": levels, "places": values[:, kept], "missing": None}


def _line(curve: Curve, x: np.ndarray, m: int) -> dict[str, Any]:
    """Return the edges of a numeric column with their positions, and that of a missing cell.

    Positions are relative to their mean over x.
    """
    low, high = np.nanmin(x), np.nanmax(x)  # the edges of a curve may extend further
    edges = np.union1d([low, high], curve.edges[(curve.edges > low) & (curve.edges < high)])
    centre = np.array([np.nanmean(np.interp(x, curve.edges, row)) for row in curve.values[:m]])
    places = [np.interp(edges, curve.edges, row) for row in curve.values[:m]] - centre[:, None]
    missing = None if curve.missing is None else curve.missing[:m] - centre
    return {"edges": edges, "levels": None, "places": places, "missing": missing}


# All of it.

MAX_CLASSES, MAX_FOLDS, MAX_CONFUSION = 1000, 500, 40
TEST = (
    "paired by held-out row; the larger of the variance over rows, corrected for shared training "
    "rows, and that over folds (two to four folds: with their degrees of freedom); Holm over the "
    "methods"
)
TEST_OF_A_SPLIT = "paired by held-out row, of the two fitted models; Holm over the methods"

Curves = dict[str, dict[int, np.ndarray]]


def comparison_document(comparison: Comparison, curves: Curves, table: Table) -> dict[str, Any]:
    """Return all results.

    Parameters
    ----------
    comparison : Comparison
    curves : dict
        From `nearkin.comparison.score_by_dimension`.
    table : Table
        The table of the comparison.
    """
    found, protocol, folds = Summary(comparison), comparison.protocol, comparison.folds
    classes, answers = _classes(comparison)
    return {
        "versions": {
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "SciPy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "machine": platform.platform(),
        "seed": protocol.random_state,
        "seconds": comparison.seconds,
        "table": _table(comparison, table, classes),
        "protocol": {
            "folds": len(folds),
            "repeats": comparison.n_repeats,
            "held_out_rows": sum(len(test) for _, test in first_repeat(folds)),
            "training_rows": round(np.mean([len(train) for train, _ in folds])),
            "scaled": protocol.scale,
            "neighbors": comparison.n_neighbors,
            "test": TEST_OF_A_SPLIT if comparison.of_fitted_models else TEST,
            "tests": found.n_tested,
            "detectable": comparison.least_difference,
        },
        "score": _score(comparison.score.name, found.wording, comparison),
        "beside": _score(found.wording.second, found.second, comparison),
        "verdict": found.verdict,
        "doubts": [{"code": doubt.code, "text": doubt.text} for doubt in comparison.doubts],
        "quote": found.quote,
        "notes": [*table.notes, *found.notes],
        "ranking": [_ranked(row, found) for row in found.rows],
        "curves": [
            {
                "name": short_text(name),
                "dimension": [*scores],
                "mean": np.mean([*scores.values()], axis=1),
                "low": np.min([*scores.values()], axis=1),
                "high": np.max([*scores.values()], axis=1),
            }
            for name, scores in curves.items()
            if scores
        ],
        "columns": learned_columns(comparison, table),
        **drawn_maps(found, table, answers),
        "confusion": _confusion(comparison),
    }


def _classes(comparison: Comparison) -> tuple[list[dict[str, Any]] | None, np.ndarray]:
    """Return the classes with their sizes, and for every row the position of its class.

    For a regression, return None and the numbers. The position is -1 for unlabelled rows. Classes
    beyond the 1,000 largest share a position at the end.
    """
    y = comparison.protocol.y
    if comparison.task != CLASSIFICATION:
        return None, y
    sizes = np.bincount(y[y >= 0], minlength=len(comparison.classes))
    kept = np.sort(np.argsort(-sizes, kind="stable")[:MAX_CLASSES])
    named = [
        {"label": short_text(comparison.classes[place]), "rows": sizes[place]} for place in kept
    ]
    places = np.full(len(sizes) + 1, len(kept))  # the last one is for -1
    places[kept], places[-1] = np.arange(len(kept)), -1
    if len(kept) < len(sizes):
        others = f"the {len(sizes) - len(kept):,} other classes"
        named.append({"label": others, "rows": sizes.sum() - sizes[kept].sum()})
    return named, places[y]


def _table(
    comparison: Comparison, table: Table, classes: list[dict[str, Any]] | None
) -> dict[str, Any]:
    protocol = comparison.protocol
    y, n = protocol.y[protocol.labelled], protocol.X.shape[0]
    gaps = protocol.missing_cells
    n_gaps = np.count_nonzero(gaps)
    most_gaps = np.argsort(-gaps, kind="stable")[:n_gaps][:MAX_LISTED]
    return table_facts(table) | {
        "features": protocol.X.shape[1],
        "sparse": issparse(protocol.X),
        "task": comparison.task.name,
        "n_classes": None if classes is None else len(protocol.classes),
        "classes": classes,
        "largest_class": None if classes is None else f"{np.bincount(y).max() / len(y):.1%}",
        "range": None if classes is not None else [y.min(), y.max()],
        "n_left_out": len(table.encoder.dropped_),
        "missing": {
            "cells": gaps.sum(),
            "n_features": n_gaps,
            "features": [
                {"feature": short_text(table.feature_names[j]), "rows": gaps[j]} for j in most_gaps
            ],
        },
        "twins": {
            "rows": protocol.n_twins,
            "share": protocol.n_twins / n,
            "kept": protocol.keep_twins,
        },
    }


def _score(name: str, words: Wording, comparison: Comparison) -> dict[str, Any]:
    """Return a score and its formatting."""
    title = capital(words.title)
    return {
        "name": name,
        "title": title,
        "axis": f"{title} on held-out rows{', %' * (words.unit == '%')}",
        "factor": words.factor,
        "unit": words.unit,
        "decimals": int(words.form[1:-1]) if words.form.endswith("f") else None,
        "sign": SCORES[comparison.task.name][name].sign,
    }


def _ranked(row: MethodResult, found: Summary) -> dict[str, Any]:
    """Return a contestant or reference of the ranking."""
    words, is_raw = found.wording, row.kind == "baseline"
    low, high = row.interval
    scores = {name: values.mean() for name, values in row.scores.items()}
    return {
        "name": short_text(row.name),
        "kind": row.kind,
        "status": row.status,
        "score": row.score.mean(),
        "deviation": row.deviation,
        "folds": row.score[:MAX_FOLDS],
        "scores": scores,
        "difference": row.difference,
        "written": {  # as printed by the command; a browser rounds halves differently
            "score": words.number(row.score.mean()),
            "second": found.second.number(scores[words.second]),
            "difference": words.signed(row.difference),
            "low": words.signed(low),
            "high": words.signed(high),
        },
        "low": None if is_raw else low,
        "high": None if is_raw else high,
        "p": row.p_value,
        "dimension": row.dimensions,
        "neighbors": row.neighbors,
        "soft": row.soft,
        "choices": [
            {"folds": n, "params": {name: short_text(value) for name, value in params.items()}}
            for params, n in row.settings[:5]
        ],
        "fit_seconds": row.fit_seconds.mean(),
        "learned_rows": row.n_learned,
        "summary": described(row.method) if isinstance(row.method, Method) else "",
    }


def described(method: Method) -> str:
    """Return the summary of a method's docstring, with the parameters that are not defaults."""
    if method.estimator is None:
        return "The features as they are, each weighted by its spread: the baseline."
    documentation = inspect.getdoc(type(method.estimator)) or method.name
    summary = documentation.partition("\n\n")[0].replace("\n", " ")
    defaults = type(method.estimator)().get_params()
    params = method.estimator.get_params().items()
    changed = [f"{name}={value!r}" for name, value in params if value != defaults[name]]
    return summary + f" ({', '.join(changed)})" * bool(changed)


def _confusion(comparison: Comparison) -> dict[str, Any] | None:
    """Return percentages of each class's held-out rows by predicted label.

    If there are many classes, only the most confused ones are included.
    """
    kinds = [result.kind for result in comparison.results]
    if comparison.task != CLASSIFICATION or "method" not in kinds:
        return None
    counts = [confusion(result, comparison) for result in (comparison.raw, comparison.choice)]
    errors = sum(matrix.sum(axis=1) - np.diag(matrix) for matrix in counts)
    shown = np.sort(np.argsort(-errors, kind="stable")[:MAX_CONFUSION])
    before, after = (
        100 * matrix[np.ix_(shown, shown)] / np.maximum(matrix[shown].sum(axis=1, keepdims=True), 1)
        for matrix in counts
    )
    return {
        "name": CHOICE,
        "labels": [short_text(label) for label in comparison.classes[shown].tolist()],
        "classes": len(comparison.classes),
        "before": before,
        "after": after,
    }
