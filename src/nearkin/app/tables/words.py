"""The wording of the command: how scores are written, and a comparison in sentences."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._messages import counted, format_p, listed, note, shown
from ...comparison import (
    CLASSIFICATION,
    RARE,
    Method,
    MethodResult,
    few_decide,
    first_repeat,
    leader,
)
from ...statistics import SIGNIFICANCE
from ...tables import Drift

# How each score is written: in a column, in a sentence, as a difference.

DIGITS = 3  # of an error in the unit of the target


@dataclass(frozen=True)
class Wording:
    """The format of a score.

    Attributes
    ----------
    heading : str
        Of its column in the ranking.
    title : str
        Its name in a sentence.
    template, other : str
        Descriptions of a prediction with this score, and of another one: "has an AUC of {} on
        held-out rows" and "one of {}".
    factor : int
        The score is multiplied by this.
    form, unit : str
        Of a formatted score. An empty form takes three digits of the number passed to `at`.
    points : str
        Suffix of a difference.
    second : str
        The additional score in the ranking.
    """

    heading: str
    title: str
    template: str
    other: str = "one of {}"
    factor: int = 1
    form: str = ".3f"
    unit: str = ""
    points: str = ""
    second: str = "accuracy"

    def at(self, score: float) -> Wording:
        """Return the format for scores of about this size."""
        if self.form:
            return self
        order = int(np.floor(np.log10(abs(score)))) if score and np.isfinite(score) else 0
        return replace(
            self, form=f".{max(0, DIGITS - 1 - order)}f" if -4 <= order <= 6 else f".{DIGITS - 1}e"
        )

    def number(self, score: float) -> str:
        """Return a score as in a column, e.g. "95.4" or "0.954"; never "-0.0"."""
        return f"{self.factor * score:z{self.form}}"

    def figure(self, score: float) -> str:
        """Return a score with its unit, e.g. "95.4%" or "0.954"."""
        return self.number(score) + self.unit

    def signed(self, difference: float) -> str:
        """Return a difference of scores, e.g. "+1.2"; never "-0.0"."""
        return f"{self.factor * difference:+z{self.form}}"

    def predicate(self, score: float) -> str:
        """Return a description of predictions with this score, e.g. "has an AUC of 0.954 ..."."""
        return self.template.format(self.figure(score))

    def is_zero(self, difference: float) -> bool:
        """Return whether a difference is 0 when formatted."""
        return float(self.signed(difference)) == 0


PERCENT: dict[str, Any] = {"factor": 100, "form": ".1f", "unit": "%", "points": " points"}
WORDING = {
    "accuracy": Wording(
        "accuracy %",
        "accuracy",
        "is right in {} of the held-out rows",
        other="in {}",
        second="balanced_accuracy",
        **PERCENT,
    ),
    "balanced_accuracy": Wording(
        "balanced %",
        "balanced accuracy",
        "has a balanced accuracy of {} on held-out rows",
        **PERCENT,
    ),
    "f1": Wording("F1", "F1", "has a mean F1 of {} on held-out rows"),
    "auc": Wording("AUC", "AUC", "has an AUC of {} on held-out rows"),
    "log_loss": Wording("log loss", "log loss", "has a log loss of {} on held-out rows"),
    "r2": Wording("R²", "R²", "has an R² of {} on held-out rows", second="mae"),
    "mae": Wording(
        "MAE",
        "mean absolute error",
        "has a mean absolute error of {} on held-out rows",
        form="",
        second="r2",
    ),
    "rank_correlation": Wording(
        "rank corr.",
        "rank correlation",
        "has a rank correlation of {} on held-out rows",
        second="mae",
    ),
}


def stated_p(p_value: float) -> str:
    """Return a p-value with its relation, as in a sentence, e.g. "= 0.012" or "< 0.001"."""
    return f"= {p_value:.2g}" if p_value >= 0.001 else "< 0.001"


def capital(text: str) -> str:
    """Return a text with an initial capital letter."""
    return text[0].upper() + text[1:]


# Warnings of methods, for readers of a ranking: each cause once, with its meaning there.

NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
# What a warning of the library means for a line of the ranking, by its first words; its own
# remedies are for users who fit the method. None if it needs no line, e.g. duplicate features,
# which the map leaves out.
MEANINGS: dict[str, str | None] = {
    "X varies by less than": None,
    "the objective is 0 in the directions found": (
        "found no direction in which neighbours of different classes differ, and took arbitrary "
        "ones. No action is needed: the score is that of such a map"
    ),
    "No direction separates neighbours of different classes": (
        "found no direction that separates the classes locally, and kept the least bad one. "
        "No action is needed: the score is that of this map"
    ),
    "max_iter=": (
        "stopped before the fit had converged. No action is needed: the score is that of the map "
        "it reached"
    ),
    "the iteration stopped after": (
        "stopped before the solution was exact to the last digits. No action is needed: the score "
        "is that of this map"
    ),
    "the eigenvectors have a residual of": (
        "found a solution that is not exact, as happens with outliers. No action is needed: the "
        "score is that of this map"
    ),
}


def warning_notes(warnings: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a line for each cause, with the methods and the number of their fits that had it.

    Parameters
    ----------
    warnings : dict of str to dict
        For every method, by name: how often each text occurred.
    """
    found: dict[str, tuple[str, dict[str, int]]] = {}
    for name, texts in warnings.items():
        for text, count in texts.items():
            start = next((start for start in MEANINGS if text.startswith(start)), None)
            meaning = f"warned: {text}" if start is None else MEANINGS[start]
            if meaning is None:
                continue
            cause = start or NUMBER.sub("#", text)  # numbers differ between folds
            counts = found.setdefault(cause, (meaning, {}))[1]
            counts[name] = counts.get(name, 0) + count
    for meaning, counts in found.values():
        fits = counted(sum(counts.values()), "fit")
        yield f"{listed([*counts])} ({fits}) {meaning.rstrip('.')}."


# What held-out rows say about new ones.


def unfamiliar_note(rows: list[int], n_rows: int) -> list[str]:
    """Return a remark on rows that are unlike the training rows; empty if there are none."""
    which, order = "is unfamiliar, so do not rely on its prediction", ""
    if len(rows) > 1:
        which = "are unfamiliar, so do not rely on their predictions"
        order = ", the least familiar first"
    what = f"{len(rows):,} of {counted(n_rows, 'row')} {which}; by number (the first is 0){order}"
    return note(what, [str(row) for row in rows])


def few_rows_note(n_held_out: int, coverage: float, n_ends: int) -> list[str]:
    """Return a remark if there are too few held-out rows for a coverage.

    Sets have one end, intervals two.
    """
    needed = int(np.ceil(n_ends / (1 - coverage) - 1e-9)) - 1
    if n_held_out >= needed:
        return []
    what = "every set holds all labels" if n_ends == 1 else "intervals are infinite"
    return [
        f"a coverage of {coverage:g} needs {counted(needed, 'held-out row')}, but the model has "
        f"{n_held_out:,}, so {what}"
    ]


def drift_finding(drift: Drift, n_rows: int) -> str:
    """Return whether new rows look like the training rows, and which columns have moved."""
    rows = counted(n_rows, "new row")
    if not drift.has_drifted:
        least = min([drift.familiarity, *drift.columns.values()])
        return (
            f"No drift is shown between the {rows} and the training rows (smallest p "
            f"{stated_p(least)} after Holm)."
        )
    moved = [f"{shown(name)} (p {stated_p(drift.columns[name])})" for name in drift.moved]
    columns = f"{counted(len(moved), 'column')} moved: {listed(moved)}"
    if not moved:
        columns = "no single column moved"
    return (
        f"Drift: the {rows} do not look like the training rows; {columns}; all columns together: "
        f"p {stated_p(drift.familiarity)} (all after Holm). Only labels of new rows can show "
        "whether predictions are worse."
    )


# A comparison in sentences that may be quoted: never more than is shown.

ALWAYS = {
    "majority": "always predicting the largest class",
    "mean": "always predicting the mean",
    "median": "always predicting the median",
}
LARGE_DIFFERENCE = 0.4  # a table that only detects larger ones is not called large enough
PRIOR = "always predicting the class frequencies"  # for a log loss, the same reference


class Summary:
    """A comparison in words: its ranking, verdict, and notes.

    Attributes
    ----------
    comparison : Comparison
    rows : sequence of MethodResult
        The methods, followed by the references.
    raw, leader : MethodResult
        The raw features, and the result presented as the answer.
    wording, second : Wording
        Of the ranking score, and of the additional score.
    n_tested : int
        Number of methods for the correction of p-values. An automatic choice that is the same
        method in every fold counts once.
    doubts : list of str
    """

    def __init__(self, comparison: Any) -> None:
        self.comparison, self.rows = comparison, comparison.ranking()
        (self.raw,) = (row for row in self.rows if row.kind == "baseline")
        self.leader = leader(self.rows)
        self.wording = WORDING[comparison.score.name].at(self.raw.score.mean())
        beside = self.wording.second
        self.second = WORDING[beside].at(np.mean(self.raw.scores.get(beside, np.nan)))
        self.n_tested = sum(row.is_tested and not row.is_repeated for row in self.rows)
        self.doubts = [f"Caution: {doubt.text}" for doubt in comparison.doubts]

    @property
    def lines(self) -> list[dict[str, str]]:
        """Return the lines of the ranking by heading; "verdict" is the status."""
        words, found = self.wording, []
        for row in self.rows:
            is_reference, seconds = row.kind == "reference", row.fit_seconds.mean()
            dimension = interval = ""
            if row.dimensions is not None:
                low, middle, high = row.dimensions
                dimension = str(middle) if low == high else f"{middle} ({low}-{high})"
                interval = f" ± {words.number(np.diff(row.interval).item() / 2)}"
            fit = f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
            cells = {"method": row.name, words.heading: words.number(row.score.mean())}
            if words.second in row.scores:
                second = row.scores[words.second].mean()
                cells[self.second.heading] = self.second.number(second)
            found.append(
                cells
                | {
                    "dim": dimension,
                    "vote": row.vote,
                    "fit": "" if is_reference else fit,
                    "vs raw": "" if row is self.raw else words.signed(row.difference) + interval,
                    "p": format_p(row.p_value) if row.is_tested else "",
                    "verdict": row.status,
                }
            )
        return found

    @property
    def caption(self) -> str:
        """Return an explanation of the columns of the ranking, and of how they were obtained."""
        comparison, protocol = self.comparison, self.comparison.protocol
        less = " (less is better)" * (comparison.score.sign < 0)
        holm = f"; p after Holm over {self.n_tested} methods" * (self.n_tested > 1)
        scaled = "standardized" if protocol.scale else "unscaled"
        chosen = "dimension, parameters and vote"
        if comparison.n_neighbors is not None:
            chosen = "dimension and parameters"
        return (
            f"{capital(self.wording.title)}{less} on held-out rows ({self._held_out}, {scaled} "
            f"features, seed {protocol.random_state}); {chosen} chosen on inner folds of the "
            "training rows; vs raw: difference from raw k-NN ± half of its 95% interval" + holm
        )

    @property
    def _held_out(self) -> str:
        """Return how many rows were held out, e.g. "625 rows, 5 folds drawn 3 times"."""
        folds = self.comparison.folds
        first, n_folds = first_repeat(folds), len(folds)
        rows, n_first = counted(sum(len(test) for _, test in first), "row"), len(first)
        if n_folds < self.comparison.n_planned:
            return f"{rows}, {n_folds} of {self.comparison.n_planned} folds"
        if n_folds == 1:
            return f"{rows}, one split"
        repeats = self.comparison.n_repeats
        times = "twice" if repeats == 2 else f"{repeats} times"
        return f"{rows}, {n_first} folds" + f" drawn {times}" * (repeats > 1)

    @property
    def quote(self) -> str:
        """Return the outcome in one sentence, with its rows and folds, and one for each doubt.

        If the answer does not beat a constant, this comes first.
        """
        found = f"raw k-NN {self.wording.predicate(self.raw.score.mean())}"
        if self.leader is not self.raw:
            found = self._evidence(self.leader, self._subject)
        first, *others = [*self._no_better, f"{found}."]
        first = f"On held-out rows ({self._held_out}), {first[0].lower()}{first[1:]}"
        return " ".join([first, *map(capital, others), *self.doubts])

    @property
    def verdict(self) -> str:
        """Return the outcome, one sentence per line.

        Doubts come first, then whether a constant does as well; then what is shown, how others
        compare, and what would have been detected.
        """
        comparison = self.comparison
        lines = [*self.doubts, *self._no_better, self._finding(), *self._ahead_of_choice()]
        lines += self._against_references()
        if not self._no_better:
            lines += self._against_constant()
        least, is_at_most_one = comparison.least_difference, comparison.score.sign > 0
        if not comparison.n_chained and 0 < least < (1 if is_at_most_one else np.inf):
            size = float(f"{self.wording.factor * least:.2g}")
            enough = "This table is large enough to detect a true difference of about"
            if is_at_most_one and least > LARGE_DIFFERENCE:
                enough = "These folds only detect a true difference of at least about"
            shown_size = f"{size:{',.0f' if 100 <= size < 1e12 else 'g'}}{self.wording.points}"
            lines.append(f"{enough} {shown_size} with a power of 80%.")
        if not comparison.n_chained and comparison.of_fitted_models:
            lines.append(
                "One split tests these fitted models on new rows. It does not show how much the "
                "methods would differ if fitted to other rows."
            )
        return "\n".join(lines)

    @property
    def _subject(self) -> str:
        """Return the leader as a subject, e.g. "the automatic choice (NCA in 13 of 15 folds)"."""
        if self.leader.kind != "choice":
            return self.leader.name
        ((name, n),), n_folds = self.leader.chosen.most_common(1), self.leader.chosen.total()
        if n_folds == 1:
            return f"the automatic choice ({name})"
        if n == 1:
            return f"the automatic choice (a different method in each of the {n_folds} folds)"
        folds = "all" if n == n_folds else f"{n} of"
        return f"the automatic choice ({name} in {folds} {n_folds} folds)"

    @property
    def _short_subject(self) -> str:
        """Return the leader as a subject, e.g. "the automatic choice"."""
        return "raw k-NN" if self.leader is self.raw else self._subject.partition(" (")[0]

    def _evidence(self, row: MethodResult, subject: str) -> str:
        """Return what is known about a method relative to raw k-NN."""
        words = self.wording
        low, high = (words.signed(end).removeprefix("+") for end in row.interval)
        proof = f"95% interval {low} to {high}, p {stated_p(row.p_value)}"
        if self.n_tested > 1:
            proof = (
                f"95% interval {low} to {high}, uncorrected; p {stated_p(row.p_value)} after Holm "
                f"over {self.n_tested} methods"
            )
        if row.status == "unclear" and row.p_value < SIGNIFICANCE:
            why = "because of the doubt above" if row.doubted else "as it does not beat a constant"
            proof += f", not called better {why}"
        other = words.other.format(words.figure(self.raw.score.mean()))
        change = f"{words.signed(row.difference)}{words.points}"
        return (
            f"{subject} {words.predicate(row.score.mean())}, raw k-NN {other}: {change} ({proof})"
        )

    def _finding(self) -> str:
        """Return whether the automatic choice, or else a method, significantly beats raw k-NN."""
        words, first, subject = self.wording, self.leader, self._subject
        raw = words.predicate(self.raw.score.mean())
        if first is self.raw:
            return f"Raw k-NN {raw}; nothing to compare."
        evidence = f"{capital(self._evidence(first, subject))}."
        best = [row for row in self.rows if row.kind == "method" and row.status == "better"]
        is_moot = first.p_value < SIGNIFICANCE and not first.beats_constant
        if first.status == "better" or (not best and (first.status == "worse" or is_moot)):
            return evidence
        if best:
            doubt = f"{capital(subject)} is not shown to beat raw k-NN"
            return (
                f"{doubt}: {self._evidence(first, 'it')}. {best[0].name} is: "
                f"{self._evidence(best[0], 'it')}."
            )
        sign = self.comparison.score.sign
        ahead = [
            sign * row.difference > 0 and not words.is_zero(row.difference)
            for row in self.rows
            if row.kind != "reference"
        ]
        if not any(ahead):
            return f"No method is ahead of raw k-NN, which {raw}."
        none = "No method is shown to beat raw k-NN"
        if words.is_zero(first.difference):
            return f"{none}, which {raw}, as {raw.split()[0]} {subject}."
        return f"{none} here. {evidence}"

    def _ahead_of_choice(self) -> Iterator[str]:
        """Yield the methods ranked before the automatic choice, and why they were not chosen."""
        words, sign = self.wording, self.comparison.score.sign
        if self.leader.kind != "choice":
            return
        methods = [row for row in self.rows if row.kind in ("baseline", "method")]
        lead = self.leader.score.mean()
        gains = {row.name: sign * (row.score.mean() - lead) for row in methods}
        ahead = [name for name, gain in gains.items() if gain > 0 and not words.is_zero(gain)]
        if not ahead:
            return
        rank, most = "ranks", ""
        if len(ahead) > 1:
            rank, most = f"and {counted(len(ahead) - 1, 'other method')} rank", "at most "
        name = capital(ahead[0]) if ahead[0] == self.raw.name else ahead[0]
        yield (
            f"{name} {rank} above the automatic choice, by {most}"
            f"{words.number(gains[ahead[0]])}{words.points}. The choice is made on the training "
            f"rows, which did not show this. The best of {len(methods)} methods on the same "
            "held-out rows is also partly lucky: expect it to do worse on new rows."
        )

    def _against_references(self) -> Iterator[str]:
        """Yield the difference of the leader from the best reference that learns."""
        comparison, first, words = self.comparison, self.leader, self.wording
        references = [row for row in self.rows if row.kind == "reference"]
        best = next((row for row in references if row.name not in ALWAYS), None)
        if best is not None:
            gain = first.score.mean() - best.score.mean()
            ahead, where = comparison.score.sign * gain, "level with"
            if not words.is_zero(ahead):
                side = "ahead of" if ahead > 0 else "behind"
                where = f"{words.number(abs(ahead))}{words.points} {side}"
            learns = "" if references[0] is best else " that learns from the columns"
            text = f"The best reference{learns}, {best.name}, {words.predicate(best.score.mean())}"
            if ahead > 0 and self.is_useless:  # not an achievement
                yield f"{text}, which is no better either."
            else:
                yield f"{text}: {self._short_subject} is {where} it."

    @property
    def is_useless(self) -> bool:
        """Return whether the leader is no better than a constant prediction."""
        test = self.leader.over_constant
        if test is None or self.leader.beats_constant:
            return False
        gain = self.comparison.score.sign * test.difference
        return gain <= 0 or self.wording.is_zero(gain)

    @property
    def _no_better(self) -> list[str]:
        """Return that the leader is no better than a constant, if that matters most.

        It does if the leader does not score higher, or would otherwise be called better.
        """
        is_first = self.is_useless or self.leader.p_value < SIGNIFICANCE
        return [*self._against_constant()] if is_first else []

    def _against_constant(self) -> Iterator[str]:
        """Yield that the leader does not significantly beat a constant prediction, if so."""
        comparison, first, words = self.comparison, self.leader, self.wording
        constant = comparison.constant
        if constant is None or first.beats_constant:
            return
        always = PRIOR if comparison.score.name == "log_loss" else ALWAYS[constant.name]
        what = f"{always} ({words.figure(constant.score.mean())})"
        subject = capital(self._short_subject)
        if self.is_useless:
            yield (
                f"{subject} is no better than {what}: these features did not help it predict. "
                "Do not use this model where this score counts."
            )
        else:
            yield f"{subject} is not shown to be better than {what}."

    @property
    def notes(self) -> Iterator[str]:
        """Yield what was reduced, sampled, skipped or warned about, one line each."""
        for notes in NOTES:
            yield from notes(self.comparison)


# Notes on a comparison, each a function that yields lines.


def _label_notes(comparison: Any) -> Iterator[str]:
    protocol = comparison.protocol
    if len(protocol.unlabelled):
        used = [
            result.name
            for result in comparison.results
            if isinstance(result.method, Method) and result.method.unlabelled
        ]
        others = f"{', '.join(used)} also learned" if used else "no method learned"
        yield (
            f"{len(protocol.labelled):,} of {protocol.X.shape[0]:,} rows have a label: only these "
            f"are held out and vote; {others} from the others."
        )
    classes = protocol.classes
    if classes.dtype.kind == "i" and classes.min() == -1 and len(classes) > 2:
        yield "-1 was taken as a class: if it marks rows without a label, give --unlabelled -1."
    yield from protocol.remarks
    taken = {
        "n_splits": (len(first_repeat(comparison.folds)), " folds"),
        "n_neighbors": (comparison.n_neighbors, "-NN"),
    }
    for name, (requested, reason) in comparison.reduced.items():
        reduced, unit = taken[name]
        yield f"{requested}{unit} reduced to {reduced}{unit}: {reason}."


def _row_notes(comparison: Any) -> Iterator[str]:
    name, protocol = comparison.score.name, comparison.protocol
    y, n, n_rows = protocol.y[protocol.labelled], protocol.n_twins, protocol.X.shape[0]
    if name == "auc" and (share := np.bincount(y).max() / len(y)) > RARE:
        yield (
            f"The largest class has {share:.0%} of the rows, so methods are ranked by AUC; to find "
            "more of a rare class, set a threshold on the probabilities of predict."
        )
    if protocol.task != CLASSIFICATION and few_decide(y):
        by_mae = ", so methods are ranked by MAE" * (name == "mae")
        yield (
            f"A few extreme numbers make up most of the squares{by_mae}: R² mainly depends on them."
        )
    if n:
        done = (
            "twins stay on one side of every split (unless --keep-twins), so new rows with one "
            "here may do better"
        )
        if protocol.keep_twins:
            done = (
                "they were split like other rows (--keep-twins), so some were predicted from their "
                "own twin"
            )
        rows = f"{n / n_rows:.0%} of the rows" if n >= n_rows / 100 else counted(n, "row")
        yield f"{rows} have a twin, identical or nearly so: {done}."


def _method_notes(comparison: Any) -> Iterator[str]:
    everyone = [one for one in comparison.ranking() if one.kind != "choice"]
    n_train = min(len(train) for train, _ in comparison.folds)
    samples, skipped = defaultdict[int, list[str]](list), defaultdict[str, list[str]](list)
    for result in everyone:
        if result.n_learned < n_train:
            samples[result.n_learned].append(result.name)
    for n_learned, names in sorted(samples.items()):
        yield f"Learned from {n_learned:,} of {n_train:,} training rows: {', '.join(names)}."
    for name, reason in comparison.skipped.items():
        skipped[reason].append(name)
    for reason, names in skipped.items():
        yield f"{', '.join(names)} skipped: {reason}"
    yield from warning_notes({result.name: result.warnings for result in everyone})


def _unfinished_note(comparison: Any) -> Iterator[str]:
    n, planned = len(comparison.folds), comparison.n_planned
    if comparison.interrupted or n < planned:
        why = "Interrupted" if comparison.interrupted else "The time budget ran out"
        finished = {result.name for result in comparison.results} | set(comparison.skipped)
        missing = [name for name in comparison.methods if name not in finished]
        left = f"; not finished: {', '.join(missing)}" if missing else ""
        model = " No model was fitted." * comparison.interrupted
        were = "was" if n == 1 else "were"
        yield f"{why}: {n} of {planned} folds {were} finished{left}.{model}"


NOTES = (_label_notes, _row_notes, _method_notes, _unfinished_note)
