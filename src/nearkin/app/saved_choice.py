"""From what a comparison has fitted to a `Model`: what `nearkin compare --save` keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight

from .. import __version__
from ..estimators import NCAClassifier, NCARegressor
from ..evaluation import Comparison, Doubt
from ..preprocessing import BinnedEncoder, TableEncoder, features_of
from .map_arrays import map_arrays, stored
from .model import MAX_DOUBT, MAX_NAME, NAMED_VOTERS, Model, embed, group_hashes
from .tables import Table


def new_model(
    steps: Sequence[Any],
    encoder: TableEncoder,
    *,
    bins: Any = None,
    soft_vote: Any = None,
    groups: tuple[str, Any] = ("", ()),
    doubts: Sequence[Doubt] = (),
    **header: Any,
) -> Model:
    """Return a model that maps rows as fitted steps (a scaler, a map, or none) do, and has no voters yet.

    `header` are task, score, method, classes, n_neighbors, soft, n_rows, target, table and held_out, see `Model`.
    Figures of `held_out` that are no finite numbers are left out: no p-value is NaN.
    """
    arrays, graph = map_arrays(steps)
    header["group"], labels = groups
    if header["group"]:
        arrays["groups"] = group_hashes(labels)
    header |= {name: header[name].encode(errors="replace").decode()[:MAX_NAME] for name in ("target", "table", "group")}
    header["held_out"] = {name: float(value) for name, value in header["held_out"].items() if np.isfinite(value)}
    return Model(
        prefix=type(steps[-1]).__name__.lower() if steps else "",
        columns=encoder.to_dict(),
        graph=graph,
        bins=bins or {},
        soft_vote=soft_vote or {},
        doubts=[doubt.text.encode(errors="replace").decode()[:MAX_DOUBT] for doubt in doubts],
        version=__version__,
        arrays=arrays,
        **header,
    )


def with_voters(model: Model, voters: Any, rows: np.ndarray, answers: np.ndarray) -> Model:
    """Return a model with these voters; none need to travel where rows are only mapped."""
    return replace(model, arrays=model.arrays | stored("voters", voters) | {"rows": rows, "answers": answers})


def _with_fill(model: Model, X: np.ndarray) -> Model:
    """Return a model that fills missing numbers of new rows, though it has met none: by the medians of its rows."""
    medians = np.array([np.median(column) for column in X.T])
    fill = (medians - model.arrays.get("mean", 0)) / model.arrays.get("scale", 1)
    return replace(model, arrays=model.arrays | {"fill": fill.astype(np.float64)})


def learned_model(comparison: Comparison, table: Table) -> Model:
    """Return the automatic choice of a comparison on the table, which it was refitted on, as a model."""
    assert comparison.winner is not None
    choice, protocol = comparison.choice, comparison.protocol
    steps = [step for name, step in comparison.winner.steps if name != "encode"]
    low, high = choice.interval
    figures = {"score": choice.score.mean(), "raw": comparison.raw.score.mean(), "low": low, "high": high}
    header = {
        "task": comparison.task.name,
        "score": comparison.score.name,
        "method": comparison.winner_method,
        "classes": comparison.classes.tolist(),
        "n_rows": table.X.shape[0],
        "target": table.target,
        "table": table.name,
        "held_out": figures | {"folds": len(comparison.folds), "p_value": choice.p_value},
        "groups": (table.group_name, table.groups),
        "doubts": comparison.doubts,
    }
    if isinstance(steps[-1], (NCAClassifier, NCARegressor)):
        return _with_all_votes(steps[-1], comparison, table, header)
    *steps, vote = steps
    model = new_model(steps, table.encoder, n_neighbors=vote.n_neighbors, soft=vote.weights != "uniform", **header)
    rows = comparison.winner_rows
    X = protocol.X if len(rows) == table.X.shape[0] else protocol.X[rows]
    model = model if issparse(X) or "fill" in model.arrays else _with_fill(model, X)
    return with_voters(model, embed(model, X), table.in_file(rows), protocol.y[rows])


def _with_all_votes(predictor: Any, comparison: Comparison, table: Table, header: dict[str, Any]) -> Model:
    """Return a model of a predictor for tables, in which the rows that it learned from vote."""
    protocol, rows = comparison.protocol, comparison.winner_rows
    bins = predictor.encoder_.to_dict() if isinstance(predictor.encoder_, BinnedEncoder) else {}
    header |= {"bins": bins, "soft_vote": asdict(predictor.vote_)}
    model = new_model([predictor], table.encoder, n_neighbors=min(NAMED_VOTERS, len(rows)), soft=True, **header)
    Z = embed(model, protocol.X[rows])
    columns = list(dict.fromkeys(feature.column for feature in features_of(table.encoder)))
    more = {"effects": predictor.feature_effects_[columns], "spectrum": Z.var(axis=0)}
    if getattr(predictor, "class_weight", None) is not None:
        labels = protocol.classes[protocol.y[rows]]
        more["class_weights"] = compute_class_weight(predictor.class_weight, classes=protocol.classes, y=labels)
    return with_voters(replace(model, arrays=model.arrays | more), Z, table.in_file(rows), protocol.y[rows])
