"""`nearkin inspect`: what a saved model or adapter is, and what it does to the features."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from rich.table import Table as Grid
from rich.text import Text

from .._memory import human_bytes
from .._messages import counted, in_line, listed
from ..plotting import LEAST_EFFECT
from .console import opened_console, say
from .endings import printable
from .output import Outputs, draw_displays, picture_output
from .tables.model import Model, load_model
from .tables.reading import span
from .tables.words import WORDING, stated_p
from .vectors.adapter_file import SavedAdapter, is_adapter, load_adapter
from .vectors.thresholds import say_thresholds, thresholds

FEW = 10


def inspect(options: argparse.Namespace) -> int:
    """Show what a model does to the features, or describe an adapter."""
    if is_adapter(options.model):
        adapter = load_adapter(options.model)
        describe_adapter(adapter, options.model)
        if adapter.pair_rules is not None:
            rules = adapter.pair_rules.expecting(adapter.expect)
            say_thresholds(thresholds(rules, adapter.name, adapter.unanswerable))
        return 0
    model = load_model(options.model)
    outputs = Outputs(quiet=options.quiet, stderr=False)
    picture = picture_output(options, outputs)
    describe(model, Path(options.model))
    if picture:
        outputs.write(picture, "--picture", partial(draw_model, model), f"Picture: {picture}")
    return outputs.code


def describe(model: Model, path: Path) -> None:
    """Print what a model is, its held-out accuracy, and what it does to the features."""
    held_out, values = model.held_out, model.arrays["answers"]
    n_features, n_folds = len(model.feature_names), held_out["folds"]
    words, features = WORDING[model.score].at(held_out["raw"]), counted(n_features, "feature")
    # for a folder, or few labels
    part = "part of " * (n_folds == 1 and model.n_voters < model.n_rows)
    target = counted(len(model.classes), "class")
    if not model.classes:
        target = f"numbers {span(values.min(), values.max())}"
    say(
        f"{path}: {model.method}, learned from {part}{counted(model.n_rows, 'row')} of "
        f"{model.table} ({features}, {target} of {model.target!r}), saved by nearkin "
        f"{model.version}"
    )
    proof = []  # as far as it is known
    if {"low", "high"} <= held_out.keys():
        low, high = (words.signed(held_out[end]) for end in ("low", "high"))
        proof.append(f"95% interval of the difference {low} to {high}{words.points}")
    if "p_value" in held_out:
        proof.append(f"p {stated_p(held_out['p_value'])}")
    raw = words.other.format(words.figure(held_out["raw"]))
    vote = model.voting.format(model.vote)
    folds = f"{n_folds:.0f} folds" if n_folds > 1 else "one split"
    say(
        f"Held out: the {vote} {words.predicate(held_out['score'])} ({folds}), raw k-NN {raw}"
        + f" ({', '.join(proof)})" * bool(proof)
    )
    for doubt in model.doubts:
        say(f"Caution: {doubt}")
    ratio = f"{n_features / model.n_components:.1f}"
    smaller = f", {ratio} times smaller" * (float(ratio) > 1)
    size = human_bytes(path.stat().st_size)
    say(
        f"Vectors: {features} to {counted(model.n_components, 'coordinate')}{smaller}; the file "
        f"takes {size}"
    )
    shares = model.encoding_shares
    if len(shares) > 1:
        mixed = listed([f"{name} {share:.0%}" for name, share in shares.items()])
        say(f"Numbers are encoded in {len(shares)} ways, with these weights: {mixed}")
    if model.held_out_rows is not None:
        rows = counted(len(model.held_out_rows.places), "held-out row")
        say(f"It keeps {rows}: predict reports familiarity, and takes --coverage and --drift")
    if "spectrum" in model.arrays:
        values = [f"{value:.3g}" for value in model.arrays["spectrum"]]
        say(f"{model.spectrum_is}: {listed(values, 12)}")
    if model.effects is None:
        say("\nCoordinates follow a graph of the rows: no feature is stretched evenly everywhere.")
        return
    names, stretch, unit = model.effects
    say(f"\nHow far {unit}")
    grid = Grid.grid(padding=(0, 1, 0, 0))
    full = max(stretch.max(), LEAST_EFFECT)  # the length of a full bar
    order = np.argsort(-stretch, kind="stable").tolist()
    n_hidden = len(order) - 2 * FEW if len(order) > 3 * FEW else 0
    for place, feature in enumerate(order):
        if n_hidden and place == FEW:
            grid.add_row("", "", f"... {n_hidden:,} more")
        if place < FEW or place >= FEW + n_hidden:
            bar = "█" * round(20 * stretch[feature] / full)
            name = Text(printable(in_line(names[feature])), overflow="fold")
            grid.add_row(f"{stretch[feature]:.2f}", bar, name)
    opened_console().print(grid)


def describe_adapter(adapter: SavedAdapter, path: str) -> None:
    """Print what an adapter is, and its scores on held-out queries."""
    found = adapter.held_out
    side = {
        "query": "queries only: documents stay as they are",
        "document": "documents only: queries of the new model stay as they are",
    }.get(adapter.map.side, "queries and documents")
    say(f"{path}: {adapter.name}, learned from {adapter.table}, saved by nearkin {adapter.version}")
    say(
        f"Vectors: {adapter.map.n_features_in_} dimensions to {adapter.map.n_components_}, "
        f"{adapter.bytes} bytes each, of {side}"
    )
    say(
        f"Held out: {adapter.score} {100 * found['adapter']:.1f}, "
        f"{adapter.baseline} {100 * found['raw']:.1f} "
        f"(95% interval of the difference {100 * found['low']:+.1f} to {100 * found['high']:+.1f} "
        f"points), {found['n_queries']:,.0f} "
        f"queries{'' if adapter.part == 'queries' else f' of {adapter.part}'}"
    )


def draw_model(model: Model, path: Path) -> list[str]:
    """Draw what the learned map does to features or columns, and its spectrum; return remarks."""
    title = f"inspect: {model.method}, learned from {model.table}"
    return draw_displays(title, model.displays(), path)
