"""Similarity thresholds for matches with guaranteed precision: a table, sentences, a picture."""

from __future__ import annotations

from typing import Any

from .._messages import listed
from ..plotting import COLORS, GREY
from ..vectors import ALL, MatchRules
from . import console
from .adapter_file import PRECISIONS
from .report import inline_svg


def threshold_lines(rules: MatchRules) -> list[dict[str, str]]:
    """Return a line for every precision and part of the queries: the threshold and its recall.

    The threshold is "none" if the precision cannot be guaranteed.
    """
    lines = []
    for part, rule in rules.parts.items():
        for precision in PRECISIONS:
            line = {"matches": part, "precision": f"{100 * precision:.0f}"}
            promise = rule.curve.promise(precision)
            cells = ["none", "", "", ""]
            if promise is not None:
                figures = (promise.expected, promise.recall, promise.false_answers)
                cells = [f"{promise.threshold:.4f}", *(f"{100 * f:.1f}" for f in figures)]
            names = ("cosine at least", "right", "recall", "false answers")
            lines.append(line | dict(zip(names, cells, strict=True)))
    return lines


def threshold_sentences(rules: MatchRules, name: str, unanswerable: float) -> list[str]:
    """Return sentences on the table and on its queries, of which a share has no answer."""
    sizes = {part: f"{rule.curve.n_queries:,}" for part, rule in rules.parts.items()}
    n = listed([size if part == ALL else f"{size} of {part}" for part, size in sizes.items()], 3)
    lines = [
        f"Which cosine of {name} is a match: the lowest one at which the best candidates of "
        f"held-out queries ({n}) reach the precision, with 95 % confidence. In percent; false "
        "answers are matches of queries that have no right one. The confidence does not allow for "
        "a choice of the vectors by the same queries."
    ]
    if unanswerable:
        lines.append(f"It is assumed that {100 * unanswerable:g} % of queries have no right one.")
    refused = [
        f"{100 * precision:.0f} %" + f" for {part}" * (part != ALL)
        for part, rule in rules.parts.items()
        for precision in PRECISIONS
        if rule.curve.promise(precision) is None
    ]
    if refused:
        lines.append(
            f"These held-out queries show no cosine that reaches {listed(refused, 6)}. "
            "`nearkin match` uses more than the cosine, and may guarantee it."
        )
    return lines


def say_thresholds(rules: MatchRules, name: str, unanswerable: float) -> None:
    """Print the table and the sentences."""
    about, *sentences = threshold_sentences(rules, name, unanswerable)
    console.say(about)
    console.print_grid(threshold_lines(rules), ())
    for line in sentences:
        console.say(line)


def threshold_picture(rules: MatchRules, part: str) -> str:
    """Return precision (with its bound) and recall against the threshold, as SVG."""
    curve = rules.parts[part].curve

    def draw(ax: Any) -> None:
        expected, bound = 100 * curve.expected, 100 * curve.bound
        shown = bound > 0
        ax.plot(curve.thresholds, expected, color=COLORS[0], label="precision")
        ax.fill_between(
            curve.thresholds[shown],
            bound[shown],
            expected[shown],
            color=COLORS[0],
            alpha=0.3,
            linewidth=0,
            label="with 95 % confidence",
        )
        ax.plot(curve.thresholds, 100 * curve.recall, color=COLORS[1], label="recall")
        false = 100 * curve.false_answers
        ax.plot(curve.thresholds, false, color=GREY, linestyle=":", label="false answers")
        promised: dict[float, str] = {}
        for precision in PRECISIONS:
            if promise := curve.promise(precision):
                promised[promise.threshold] = f"{100 * precision:.0f} %"
        for threshold, text in promised.items():
            ax.axvline(threshold, color=COLORS[0], linewidth=1, linestyle="--")
            ax.text(threshold, 3, f" {text}", color=COLORS[0])
        ax.set_xlabel("minimum cosine of a match")
        ax.set_ylabel("%")
        ax.set_title(f"matches, {part} ({curve.n_queries:,} queries)")

    return inline_svg(draw)
