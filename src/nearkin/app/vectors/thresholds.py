"""Similarity thresholds for matches with guaranteed precision: figures, a table, sentences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._messages import listed
from ...vectors import ALL, UNSEEN, MatchRules, Promise
from .. import console
from .adapter_file import PRECISIONS


def thresholds(rules: MatchRules, name: str, unanswerable: float) -> dict[str, Any]:
    """Return the thresholds for every part of the queries, and sentences (docs/guide/json.md).

    The figures are NaN if a precision cannot be guaranteed. A share of the queries has no answer.
    """
    parts = []
    for part, rule in rules.parts.items():
        curve = rule.curve
        unknown = [np.nan] * 7
        promises = [curve.promise(one) or Promise(one, *unknown) for one in PRECISIONS]
        parts.append(
            {
                "part": part,
                "queries": curve.n_queries,
                "candidates": rule.n_candidates or None,
                "promises": [figures_of(one) | {"cosine": one.threshold} for one in promises],
                "curve": {
                    "cosine": curve.thresholds,
                    "right": curve.expected,
                    "bound": curve.bound,
                    "recall": curve.recall,
                    "false_answers": curve.false_answers,
                },
            }
        )
    return {"sentences": sentences_of(parts, name, unanswerable), "parts": parts}


def index_of(n_candidates: int | None) -> str:
    """Return in words which index the held-out queries searched."""
    size = f"{n_candidates:,} rows" if n_candidates else "a size that the adapter does not know"
    return f"an index of {size}"


def figures_of(promise: Promise) -> dict[str, float]:
    """Return what a promise says, as shares."""
    return {
        "precision": promise.precision,
        "right": promise.expected,
        "recall": promise.recall,
        "recall_low": promise.recall_low,
        "recall_high": promise.recall_high,
        "false_answers": promise.false_answers,
    }


def interval_of(figures: dict[str, float]) -> str:
    """Return the 95 % interval of the recall in percent, if the rules know it."""
    if np.isnan(figures["recall_low"]):
        return ""
    return f" [{100 * figures['recall_low']:.1f}, {100 * figures['recall_high']:.1f}]"


def sentences_of(parts: list[dict[str, Any]], name: str, unanswerable: float) -> list[str]:
    """Return sentences on the table and on its queries."""
    n = listed(
        [f"{one['queries']:,}" + f" of {one['part']}" * (one["part"] != ALL) for one in parts],
        3,
    )
    # a comparison asks by a quarter of them
    every = ", all rows of these" * (parts[-1]["part"] == UNSEEN)
    lines = [
        f"Which cosine of {name} is a match: the lowest one at which the best candidates of "
        f"held-out queries ({n}{every}) reach the precision, with 95 % confidence, in "
        f"{index_of(parts[0]['candidates'])}. In percent; false answers are matches of queries "
        "without a right match. The confidence does not cover choosing the vectors by the same "
        "queries."
    ]
    if unanswerable:
        lines.append(f"It is assumed that {100 * unanswerable:g} % of queries have no right match.")
    refused = []
    for one in parts:
        unknown = [p["precision"] for p in one["promises"] if np.isnan(p["cosine"])]
        if unknown:
            of_part = f" for {one['part']}" * (one["part"] != ALL)
            refused.append(
                listed([f"{100 * precision:.0f}" for precision in unknown]) + f" %{of_part}"
            )
    if refused:
        lines.append(
            f"These held-out queries show no cosine that reaches {', or '.join(refused)}. "
            "`nearkin match` uses more than the cosine, and may promise it."
        )
    return lines


def say_thresholds(found: dict[str, Any]) -> None:
    """Print the table and the sentences."""
    about, *sentences = found["sentences"]
    console.say(about)
    lines = []
    for one in found["parts"]:
        for promise in one["promises"]:
            line = {"matches": one["part"], "precision": f"{100 * promise['precision']:.0f}"}
            is_known = np.isfinite(promise["cosine"])
            line["least cosine"] = f"{promise['cosine']:.4f}" if is_known else "none"
            for key in ("right", "recall", "false_answers"):
                line[key.replace("_", " ")] = f"{100 * promise[key]:.1f}" if is_known else ""
            line["recall"] += interval_of(promise)
            lines.append(line)
    console.print_grid(lines, ())
    for text in sentences:
        console.say(text)
