"""What NCA tables has learned of every column, for the page: how far it moves rows, and where its values lie."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..evaluation import Comparison, chosen_predictor
from ..preprocessing import Curve, Levels, with_seasons
from .plain import digits, short_text
from .tables import Table

MAX_COLUMNS = 50  # whose effects are listed
MAX_CURVED, MAX_PANELS, MAX_LEVELS = 6, 9, 20  # columns whose curves are drawn, curves, and values of a category
LEAST_REACH = 0.04  # of a curve, as a part of the largest
MAX_AXES, LEAST_SHARE = 3, 0.02  # axes of the learned space along which curves are drawn


def learned_columns(comparison: Comparison, table: Table) -> dict[str, Any] | None:
    """Return effects and curves of the columns where the automatic choice is a predictor for tables."""
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
        "axes": digits(shares[:n_axes]),
        "n_columns": len(order),
        "effects": [{"column": short_text(names[j]), "effect": digits(effects[j])} for j in order[:MAX_COLUMNS]],
        "curves": _curves(with_seasons(predictor.curves()), comparison, order[:MAX_CURVED], n_axes),
    }


def _curves(curves: dict[str, Any], comparison: Comparison, columns: Any, m: int) -> list[dict[str, Any]]:
    """Return where the values of some columns lie along m axes, the most important column first.

    Parts of a column that hardly move a row, such as the day of the week of a date, are left out.
    """
    X, place = comparison.protocol.X, {f.name: at for at, f in enumerate(comparison.protocol.features or [])}
    found = {
        name: _places(curve, X[:, place[name]] if isinstance(curve, Curve) else None, m)
        for column in columns
        for name, curve in curves.items()
        if curve.column == column
    }
    reach = {key: max(np.ptp(curve["places"], axis=1), default=0.0) for key, curve in found.items()}
    kept = [key for key in found if reach[key] >= LEAST_REACH * max(reach.values())]
    return [{"name": short_text(key)} | found[key] for key in kept[:MAX_PANELS]]


def _places(curve: Curve | Levels, x: Any, m: int) -> dict[str, Any]:
    """Return values of a column, numbers or texts, with their places about the mean, and that of a missing number."""
    if isinstance(curve, Levels):
        values = curve.values[:m]
        kept = np.sort(np.argsort(-np.abs(values).max(axis=0), kind="stable")[:MAX_LEVELS])
        levels = [short_text(curve.names[at]) for at in kept]
        return {"edges": None, "levels": levels, "places": digits(values[:, kept]), "missing": None}
    low, high = np.nanmin(x), np.nanmax(x)  # the edges of a curve may lie beyond
    edges = np.union1d([low, high], curve.edges[(curve.edges > low) & (curve.edges < high)])
    centre = [np.nanmean(np.interp(x, curve.edges, values)) for values in curve.values[:m]]
    places = [np.interp(edges, curve.edges, values) for values in curve.values[:m]] - np.array(centre)[:, None]
    missing = None if curve.missing is None else digits(curve.missing[:m] - centre)
    return {"edges": digits(edges, 6), "levels": None, "places": digits(places), "missing": missing}
