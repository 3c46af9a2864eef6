"""`nearkin check`: rows of a table to look at."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ..._messages import counted, listed, note, shortened
from ..._validation import check_spread
from ...tables import OVERLAP, LabelIssues, features_of, label_issues
from .. import console
from ..document import MAX_LISTED, short_text, show, table_facts, write_document
from ..endings import one_line
from ..files.formats import reading
from ..output import Outputs
from .reading import Table, read_table

# on the console: rows if labels are probably wrong, groups of twins, far rows
SHOWN_ROWS, SAID_TWINS, SAID_FAR = 10, 5, 3
MOST_SHOWN = 20  # rows if so many stand out
MOST_NEAREST = 3  # rows named on the console
# A class is named as rare if at least so many labels are probably wrong, at least this share of
# them are of this class, and at most this share of the rows are.
FEWEST_OF_RARE, NEARLY_ALL, MOST_RARE = 5, 0.9, 0.2


def check(options: argparse.Namespace) -> int:
    """Show rows to look at; write a page and JSON on request."""
    start = time.monotonic()
    read = partial(
        read_table,
        options.table,
        options.target,
        options.groups,
        unlabelled=options.unlabelled,
        reading=reading(options),
        classes_only=True,
    )
    table = console.while_reading(options, read)
    outputs = Outputs(quiet=options.quiet, stderr=False)
    outputs.note(table.facts(), *(f"  {note}" for note in table.all_notes))
    with console.Progress("fits", quiet=options.quiet) as progress, one_line(table.name):
        check_spread(table.X, table.feature_names)
        issues = label_issues(
            table.X,
            table.y,
            groups=table.groups,
            features=features_of(table.encoder),
            random_state=options.seed,
            progress=partial(progress, "checked"),
        )
    found = {"seed": options.seed, "seconds": time.monotonic() - start} | found_in(table, issues)
    n_shown = options.rows
    if n_shown is None:
        stand_out = min(issues.n_sure, MOST_SHOWN) if issues.is_bound else 0
        n_shown = max(SHOWN_ROWS, stand_out) if issues.n_issues else 0
    show(grid_of(found["rows"][:n_shown]), found["sentences"], ("nearest rows",))
    write_document(options, outputs, found)
    return outputs.code


def found_in(table: Table, issues: LabelIssues) -> dict[str, Any]:
    """Return all results (docs/guide/checking.md)."""

    def labelled(rows: np.ndarray) -> list[dict[str, Any]]:
        numbers = table.in_file(rows).tolist()
        return [
            {"row": number, "label": short_text(table.y[row])}
            for row, number in zip(rows.tolist(), numbers, strict=True)
        ]

    first, far, expected = issues.rows[: len(issues.neighbors)], issues.far, issues.expected
    names = table.encoder.feature_names_in_
    labels = np.unique(table.labels, return_counts=True)
    found = {
        "expected": expected[-1],
        "flip_rate": issues.flip_rate,
        "rows": [
            one
            | {
                "name": short_text(table.row_names[row]),
                "predicted": short_text(issues.predicted[at]),
                "probability": issues.probabilities[at],
                "expected": expected[at],
                "neighbors": labelled(issues.neighbors[at]),
            }
            for at, (row, one) in enumerate(zip(first, labelled(first), strict=True))
        ],
        "alone": labelled(issues.alone[:MAX_LISTED]),
        "twins": {
            "groups": len(issues.twins),
            "rows": sum(map(len, issues.twins)),
            "first": [labelled(rows) for rows in issues.twins[:MAX_LISTED]],
        },
        "far": {
            "rows": len(far.rows),
            "first": [
                {"row": row, "ratio": ratio, "column": short_text(names[column])}
                for row, ratio, column in zip(
                    table.in_file(far.rows[:MAX_LISTED]).tolist(),
                    far.ratios,
                    far.columns,
                    strict=False,
                )
            ],
        },
    }
    facts = table_facts(table) | {
        "classes": [
            {"label": short_text(label), "rows": size} for label, size in zip(*labels, strict=True)
        ]
    }
    sentences = [*sentences_of(issues, found, short_text(table.target))]
    return {"table": facts, "sentences": sentences, "notes": table.all_notes} | found


def grid_of(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return rows as text by columns."""
    return [
        {
            "row": f"{one['row']:,}",
            "label": one["label"],
            "probably": one["predicted"],
            "wrong": f"{min(max(100 * one['probability'], 1), 99):.0f}%",  # never certain
            "expected": f"{one['expected']:.1f}",
            "nearest rows": ", ".join(
                f"{near['row']:,} {near['label']}" for near in one["neighbors"][:MOST_NEAREST]
            ),
        }
        for one in rows
    ]


def sentences_of(issues: LabelIssues, found: dict[str, Any], target: str) -> Iterator[str]:
    """Yield the findings, one or two sentences per line; the first is about the labels."""
    n, n_issues, expected = len(issues.rows), issues.n_issues, issues.expected
    if issues.is_bound:
        look = f": look at the first {issues.n_sure:,}, which stand out" * (issues.n_sure > 0)
        if issues.flip_rate > OVERLAP:
            look = ": even the surest votes often contradict the label"
        yield (
            f"At most about {n_issues:,} of {n:,} labels are wrong, and probably far fewer, as "
            f"the classes overlap, or the columns do not tell them apart{look}."
        )
    elif n_issues:
        are = "labels is" if n_issues == 1 else "labels are"
        among = [
            f"{expected[first - 1]:.1f} among the first {first:,}"
            for first in sorted({min(10, n), n_issues})
        ]
        yield (
            f"About {n_issues:,} of {n:,} {are} probably wrong, or fewer where classes "
            f"overlap: expect up to {listed(among)}."
        )
    else:
        yield f"No label is likely to be wrong: expect {expected[-1]:.1f} wrong labels among {n:,}."
    yield from _of_rare_class(issues)
    twins, far = found["twins"], found["far"]
    if twins["groups"]:
        groups = [
            " and ".join(f"{one['row']:,} ({one['label']})" for one in rows[:4])
            + f" and {len(rows) - 4:,} more" * (len(rows) > 4)
            for rows in twins["first"][:SAID_TWINS]
        ]
        more = twins["groups"] - len(groups)
        yield (
            f"Contradictory twins, equal in all features but not in {target}: "
            f"{counted(twins['rows'], 'row')} in {counted(twins['groups'], 'group')}: "
            + "; ".join(groups)
            + f"; and {counted(more, 'group')} more" * (more > 0)
        )
    farthest = [
        f"{one['row']:,} ({one['ratio']:.2g}, {shortened(one['column'])})"
        for one in far["first"][:SAID_FAR]
    ]
    more = far["rows"] - len(farthest)
    if farthest:
        yield (
            f"Far from all others (times the usual distance, main column): {', '.join(farthest)}"
            + f" and {more:,} more" * (more > 0)
        )
    alone = [f"{one['row']:,} ({one['label']})" for one in found["alone"]]
    yield from note(f"Rows with a {target} of their own, for which no other row votes", alone)


def _of_rare_class(issues: LabelIssues) -> Iterator[str]:
    """Yield a note if nearly all labels that are probably wrong are of one rare class.

    Rare events look like errors.
    """
    first = issues.labels[: issues.n_issues]
    if len(first) < FEWEST_OF_RARE:
        return
    labels, sizes = np.unique(issues.labels, return_counts=True)
    counts = np.array([np.count_nonzero(first == label) for label in labels])
    at = counts.argmax()
    if counts[at] < NEARLY_ALL * len(first) or sizes[at] > MOST_RARE * sizes.sum():
        return
    nearly = "Nearly all" if counts[at] < len(first) else "All"
    yield (
        f"{nearly} of these are of the class {short_text(labels[at])} ({counts[at]:,} of its "
        f"{sizes[at]:,} rows), which is rare: such rows may be rare events rather than errors."
    )
