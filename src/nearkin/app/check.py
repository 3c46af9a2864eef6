"""`nearkin check`: rows of a table to look at."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from .._messages import counted, listed, note, shortened
from .._validation import check_spread
from ..tables import OVERLAP, LabelIssues, features_of, label_issues
from . import console
from .output import Outputs, check_outputs
from .readers import one_line
from .report import fill_page, plain, short_text, write_json
from .table_comparison import facts_of
from .tables import Table, read_table, reading

FORMAT = 1
MAX_LISTED = 50  # groups of twins, far rows and columns
SAID_TWINS, SAID_FAR = 5, 3  # on the console
MOST_NEAREST = 3  # rows named on the console
# A class is named as rare if at least so many labels are probably wrong, at least this share of
# them are of this class, and at most this share of the rows are.
FEWEST_OF_RARE, NEARLY_ALL, MOST_RARE = 5, 0.9, 0.2


def check(options: argparse.Namespace) -> int:
    """Show rows to look at; write a page and JSON on request."""
    check_outputs(options)
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
    outputs.note(facts_of(table), *(f"  {note}" for note in table.notes))
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
    command = ["nearkin", *options.arguments]
    found = Check(table, issues, command, options.seed, time.monotonic() - start)
    console.print_grid(found.lines[: options.rows], ("nearest rows",))
    first, *others = found.sentences
    console.say(first, style="bold")
    for text in others:
        console.say(text)
    if options.report:
        write = partial(write_check, found=found)
        outputs.write(options.report, "--report", write, f"Report: {options.report}")
    if options.json:
        write = partial(write_json, document=found.document)
        outputs.write(options.json, "--json", write, f"JSON: {options.json}")
    return outputs.code


@dataclass(frozen=True)
class Check:
    """The results, in words and as a document.

    Attributes
    ----------
    table : Table
    issues : LabelIssues
    command : sequence of str
        The command that was given, program first.
    seed : int
    seconds : float
    """

    table: Table
    issues: LabelIssues
    command: Sequence[str]
    seed: int
    seconds: float

    @property
    def lines(self) -> list[dict[str, str]]:
        """Return the first rows as text by columns."""
        return [
            {
                "row": f"{one['row']:,}",
                "label": one["label"],
                "probably": one["predicted"],
                "wrong": _percent(one["probability"]),
                "expected": f"{one['expected']:.1f}",
                "nearest rows": ", ".join(
                    f"{near['row']:,} {near['label']}" for near in one["neighbors"][:MOST_NEAREST]
                ),
            }
            for one in self.rows
        ]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Return the first rows, whose neighbours are known."""
        issues, number = self.issues, self.table.in_file
        n = len(issues.neighbors)
        near = number(issues.neighbors).tolist()
        return [
            {
                "row": row,
                "name": short_text(self.table.row_names[at]),
                "label": short_text(label),
                "predicted": short_text(predicted),
                "probability": probability,
                "expected": expected,
                "neighbors": [
                    {"row": other, "label": short_text(of_other)}
                    for other, of_other in zip(others, labels, strict=True)
                ],
            }
            for at, row, label, predicted, probability, expected, others, labels in zip(
                issues.rows[:n].tolist(),
                number(issues.rows[:n]).tolist(),
                issues.labels[:n].tolist(),
                issues.predicted[:n].tolist(),
                issues.probabilities[:n].tolist(),
                issues.expected[:n].tolist(),
                near,
                issues.neighbor_labels.tolist(),
                strict=True,
            )
        ]

    @property
    def twins(self) -> list[list[dict[str, Any]]]:
        """Return the rows of the first groups of contradictory twins, with their labels."""
        return [
            [
                {"row": number, "label": short_text(self.table.y[row])}
                for row, number in zip(rows, self.table.in_file(rows).tolist(), strict=True)
            ]
            for rows in self.issues.twins[:MAX_LISTED]
        ]

    @property
    def far(self) -> list[dict[str, Any]]:
        """Return the rows farthest from all others."""
        far, names = self.issues.far, self.table.encoder.feature_names_in_
        numbers = self.table.in_file(far.rows).tolist()
        found = zip(numbers, far.ratios.tolist(), far.columns.tolist(), strict=True)
        return [
            {"row": row, "ratio": ratio, "column": short_text(names[column])}
            for row, ratio, column in list(found)[:MAX_LISTED]
        ]

    @property
    def alone(self) -> list[dict[str, Any]]:
        """Return rows that do not share their label with any other row."""
        numbers = self.table.in_file(self.issues.alone).tolist()
        return [
            {"row": number, "label": short_text(self.table.y[row])}
            for row, number in list(zip(self.issues.alone.tolist(), numbers, strict=True))
        ][:MAX_LISTED]

    @property
    def sentences(self) -> list[str]:
        """Return the findings, one or two sentences per line; the first is about the labels."""
        issues, target = self.issues, short_text(self.table.target)
        n, n_issues, expected = len(issues.rows), issues.n_issues, issues.expected
        found = [f"No label is probably wrong: expect {expected[-1]:.1f} wrong labels among {n:,}."]
        if issues.is_bound:
            look = f": look at the first {issues.n_sure:,}, which stand out" * (issues.n_sure > 0)
            if issues.flip_rate > OVERLAP:
                look = ": even the surest votes often contradict the label"
            found = [
                f"At most about {n_issues:,} of {n:,} labels are wrong, and probably far fewer, as "
                f"the classes overlap, or the columns do not tell them apart{look}."
            ]
        elif n_issues:
            are = "labels is" if n_issues == 1 else "labels are"
            among = [
                f"{expected[first - 1]:.1f} among the first {first:,}"
                for first in sorted({min(10, n), n_issues})
            ]
            found = [
                f"About {n_issues:,} of {n:,} {are} probably wrong, or fewer where classes "
                f"overlap: expect up to {listed(among)}."
            ]
        found += self._of_rare_class()
        if issues.twins:
            groups = [
                " and ".join(f"{one['row']:,} ({one['label']})" for one in rows[:4])
                + f" and {len(rows) - 4:,} more" * (len(rows) > 4)
                for rows in self.twins[:SAID_TWINS]
            ]
            n_rows = sum(map(len, issues.twins))
            more = len(issues.twins) - len(groups)
            found.append(
                f"Contradictory twins, equal in all features but not in {target}: "
                f"{counted(n_rows, 'row')} in {counted(len(issues.twins), 'group')}: "
                + "; ".join(groups)
                + f"; and {counted(more, 'group')} more" * (more > 0)
            )
        far = [
            f"{one['row']:,} ({one['ratio']:.2g}, {shortened(one['column'])})"
            for one in self.far[:SAID_FAR]
        ]
        more = len(issues.far.rows) - len(far)
        if far:
            found.append(
                f"Far from all others (times the usual distance, main column): {', '.join(far)}"
                + f" and {more:,} more" * (more > 0)
            )
        alone = [f"{one['row']:,} ({one['label']})" for one in self.alone]
        found += note(f"Rows with a {target} of their own, for which no other row votes", alone)
        return found

    def _of_rare_class(self) -> Iterator[str]:
        """Yield a note if nearly all labels that are probably wrong are of one rare class.

        Rare events look like errors.
        """
        labels, sizes = np.unique(self.issues.labels, return_counts=True)
        first = self.issues.labels[: self.issues.n_issues]
        if len(first) < FEWEST_OF_RARE:
            return
        counts = np.array([np.count_nonzero(first == label) for label in labels])
        at = counts.argmax()
        if counts[at] < NEARLY_ALL * len(first) or sizes[at] > MOST_RARE * sizes.sum():
            return
        nearly = "Nearly all" if counts[at] < len(first) else "All"
        yield (
            f"{nearly} of these are of the class {short_text(labels[at])} ({counts[at]:,} of its "
            f"{sizes[at]:,} rows), which is rare: such rows may be rare events rather than errors."
        )

    @property
    def document(self) -> dict[str, Any]:
        """Return all results in plain types (docs/guide/json.md)."""
        table, issues = self.table, self.issues
        suspects, dropped = table.suspects, table.encoder.dropped_
        labels, sizes = np.unique(table.labels, return_counts=True)
        return dict(
            plain(
                {
                    "format": FORMAT,
                    "nearkin": __version__,
                    "command": self.command,
                    "seed": self.seed,
                    "seconds": self.seconds,
                    "table": {
                        "name": short_text(table.name, 200),
                        "target": short_text(table.target, 200),
                        "rows": table.X.shape[0],
                        "labelled": len(issues.rows),
                        "columns": len(table.encoder.columns_),
                        "classes": [
                            {"label": short_text(label), "rows": size}
                            for label, size in zip(labels.tolist(), sizes.tolist(), strict=True)
                        ],
                        "groups": None if table.groups is None else len(np.unique(table.groups)),
                        "left_out": [
                            {"column": short_text(name), "reason": reason}
                            for name, reason in list(dropped.items())[:MAX_LISTED]
                        ],
                        "suspicious": [
                            {"column": short_text(name), "score": score}
                            for name, score in suspects.suspicious[:MAX_LISTED]
                        ],
                        "group_hints": [short_text(name) for name, _ in suspects.group_hints],
                    },
                    "sentences": self.sentences,
                    "notes": table.notes,
                    "expected": issues.expected[-1],
                    "flip_rate": issues.flip_rate,
                    "rows": self.rows,
                    "alone": self.alone,
                    "twins": {
                        "groups": len(issues.twins),
                        "rows": sum(map(len, issues.twins)),
                        "first": self.twins,
                    },
                    "far": {"rows": len(issues.far.rows), "first": self.far},
                }
            )
        )


def _percent(share: float) -> str:
    """Return a probability as text, never 0% or 100%."""
    return f"{min(max(100 * share, 1), 99):.0f}%"


# The page.

FEWEST_SHOWN, MOST_SHOWN = 25, 200  # rows
WIDTH, HEIGHT, MARGIN = 640, 260, 44  # of the curve, in pixels


def write_check(path: Path, found: Check) -> None:
    """Write the page: rows to look at, in one file without external resources."""
    verdict, *sentences = found.sentences
    n_issues = found.issues.n_issues
    rows = found.rows[: min(MOST_SHOWN, max(FEWEST_SHOWN, n_issues))]
    fill_page(
        path,
        "check.html",
        title=escape(f"nearkin check {short_text(found.table.name, 200)}"),
        verdict=escape(verdict),
        sentences="".join(f"<p>{escape(text)}.</p>" for text in sentences if text[-1] != ".")
        + "".join(f"<p>{escape(text)}</p>" for text in sentences if text[-1] == "."),
        facts=escape(facts_of(found.table)),
        notes="".join(f"<li>{escape(text)}</li>" for text in found.table.notes),
        curve=_curve(found.issues.expected[: len(found.rows)]),
        rows="\n".join(_row(row, at < n_issues) for at, row in enumerate(rows)),
        n_shown=str(len(rows)),
        target=escape(short_text(found.table.target)),
        twins="".join(
            "<tr><td>" + ", ".join(_labelled(one) for one in group) + "</td></tr>"
            for group in found.twins
        )
        or "<tr><td>none</td></tr>",
        far="".join(
            f"<tr><td>{one['row']:,}</td><td>{one['ratio']:.3g}</td>"
            f"<td>{escape(one['column'])}</td></tr>"
            for one in found.far
        )
        or '<tr><td colspan="3">none</td></tr>',
        command=escape(shlex.join(found.command)),
    )


def _labelled(one: dict[str, Any]) -> str:
    return f'<span class="near">{one["row"]:,} <b>{escape(one["label"])}</b></span>'


def _row(row: dict[str, Any], is_expected: bool) -> str:
    """Return a line of the table of rows, greyed out beyond the expected number of wrong labels."""
    share, faint = 100 * row["probability"], ' class="rest"'
    name = "" if row["name"] == str(row["row"]) else f" <small>{escape(row['name'])}</small>"
    return (
        f'<tr{"" if is_expected else faint}><td class="number">{row["row"]:,}{name}</td>'
        f"<td>{escape(row['label'])}</td><td>{escape(row['predicted'])}</td>"
        f'<td class="number">{_percent(row["probability"])}</td>'
        f'<td><span class="track"><span style="width:{share:.0f}%"></span></span></td>'
        f'<td class="number minor">{row["expected"]:.1f}</td>'
        f'<td class="minor">{", ".join(map(_labelled, row["neighbors"]))}</td></tr>'
    )


def _curve(expected: np.ndarray) -> str:
    """Return the expected number of wrong labels among the first rows, as SVG."""
    n = len(expected)
    most = max(float(expected[-1]), 1.0)
    x = MARGIN + (WIDTH - 2 * MARGIN) * np.arange(n + 1) / n
    y = HEIGHT - MARGIN - (HEIGHT - 1.5 * MARGIN) * np.append(0, expected) / most
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    bottom, right = HEIGHT - MARGIN, WIDTH - MARGIN
    all_wrong = min(n, most)
    to = (
        MARGIN + (right - MARGIN) * all_wrong / n,
        bottom - (bottom - MARGIN / 2) * all_wrong / most,
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
        'aria-label="Expected wrong labels among the first rows">'
        f'<path class="grid" d="M{MARGIN},{MARGIN / 2} V{bottom} H{right}"/>'
        f'<path class="dashed" d="M{MARGIN},{bottom} L{to[0]:.1f},{to[1]:.1f}"/>'
        f'<polyline class="curve unclear" points="{line}"/>'
        f'<g class="axis"><text x="{MARGIN - 6}" y="{bottom}" text-anchor="end">0</text>'
        f'<text x="{MARGIN - 6}" y="{MARGIN / 2 + 5}" text-anchor="end">{most:.0f}</text>'
        f'<text x="{MARGIN}" y="{bottom + 18}">0</text>'
        f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{n:,}</text>'
        f'<text x="{(MARGIN + right) / 2}" y="{bottom + 34}" text-anchor="middle">'
        "rows looked at, in this order</text></g></svg>"
    )
