"""The English of the command: the ranking as text, what a comparison found, and what is worth a
remark.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..evaluation import (
    CLASSIFICATION,
    RAW,
    SCORES,
    Comparison,
    Method,
    MethodResult,
    OwnVote,
    corrected_resampled_t_test,
    difference_test,
    first_repeat,
)
from ..evaluation.protocol import RARE
from .one_split import SplitComparison
from .readers import TableError, counted, listed
from .tables import Table

# How each score is written: in a column, in a sentence, as a difference.

DIGITS = 3  # of an error in the target's own unit


@dataclass(frozen=True)
class Wording:
    """How a score is written.

    Attributes
    ----------
    heading : str
        Of its column in the ranking.
    title : str
        What it is called in a sentence.
    phrase, other : str
        What a prediction with this score is, and another one beside it: "is right in {}" and "in
        {}".
    rows : str
        What follows the phrase.
    factor : int
        It is written times this.
    form, unit : str
        Of a written score. No form takes three digits of the number that `at` names.
    points : str
        What follows a difference.
    second : str
        The score that stands beside it in the ranking.
    """

    heading: str
    title: str
    phrase: str
    other: str = "one of {}"
    rows: str = " on held-out rows"
    factor: int = 1
    form: str = ".3f"
    unit: str = ""
    points: str = ""
    second: str = "accuracy"

    def at(self, score: float) -> Wording:
        """Return the wording for scores of about this size."""
        if self.form:
            return self
        order = int(np.floor(np.log10(abs(score)))) if score and np.isfinite(score) else 0
        return replace(
            self, form=f".{max(0, DIGITS - 1 - order)}f" if -4 <= order <= 6 else f".{DIGITS - 1}e"
        )

    def number(self, score: float) -> str:
        """Return a score as a column has it, e.g. "95.4" or "0.954"."""
        return _unsigned_zero(f"{self.factor * score:{self.at(score).form}}")

    def figure(self, score: float) -> str:
        """Return a score with its unit, e.g. "95.4%" or "0.954"."""
        return self.number(score) + self.unit

    def signed(self, difference: float) -> str:
        """Return a difference of scores, e.g. "+1.2"; never "-0.0"."""
        text = f"{self.factor * difference:+{self.at(difference).form}}"
        return text if float(text) else text.replace("-", "+")

    def says(self, score: float, *, rows: bool = True) -> str:
        """Return what a prediction with this score is, e.g. "is right in 95.4% of the held-out
        rows".
        """
        return self.phrase.format(self.figure(score)) + (self.rows if rows else "")

    def is_zero(self, difference: float) -> bool:
        """Return whether nothing is left of a difference when it is written."""
        return float(self.signed(difference)) == 0


def _unsigned_zero(text: str) -> str:
    return text if float(text) else text.removeprefix("-")


WORDING = {
    "accuracy": Wording(
        *(
            "accuracy %",
            "accuracy",
            "is right in {}",
            "in {}",
            " of the held-out rows",
            100,
            ".1f",
            "%",
            " points",
        ),
        second="balanced_accuracy",
    ),
    "balanced_accuracy": Wording(
        *(
            "balanced %",
            "balanced accuracy",
            "has a balanced accuracy of {}",
            "one of {}",
            " on held-out rows",
            100,
        ),
        *(".1f", "%", " points"),
    ),
    "f1": Wording("F1", "F1", "has a mean F1 of {}"),
    "auc": Wording("AUC", "AUC", "has an AUC of {}"),
    "log_loss": Wording("log loss", "log loss", "has a log loss of {}"),
    "r2": Wording("R²", "R²", "has an R² of {}", second="mae"),
    "mae": Wording(
        "MAE", "mean absolute error", "has a mean absolute error of {}", form="", second="r2"
    ),
    "rank_correlation": Wording(
        "rank corr.", "rank correlation", "has a rank correlation of {}", second="mae"
    ),
}


def format_p(p_value: float) -> str:
    """Return a p-value with two digits, or "<0.001"."""
    return f"{p_value:.2g}" if p_value >= 0.001 else "<0.001"


def stated_p(p_value: float) -> str:
    """Return a p-value with what stands before it in a sentence, e.g. "= 0.012" or "< 0.001"."""
    text = format_p(p_value)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


# What methods warned of, for who reads a ranking: each cause once, and what it means there.

NUMBER = re.compile(r"\d[\d,.]*(?:e[+-]?\d+)?")
# What a warning of the library means for a line of the ranking, by how it begins: its remedies are
# for who fits the method. None: nothing that is worth a line, such as features that repeat others,
# which the map leaves out.
MEANINGS: dict[str, str | None] = {
    "X varies by less than": None,
    "the objective is 0 in the directions found": (
        "found no direction in which neighbours of different classes differ, and took any. "
        "Nothing needs doing: the "
        "score is that of such a map"
    ),
    "No direction separates neighbours of different classes": (
        "found no direction that separates the classes locally, and kept the least bad "
        "one. Nothing needs doing: the "
        "score is that of this map"
    ),
    "max_iter=": (
        "ended before the fit had converged. Nothing needs doing: the map is good, not "
        "final, and the score is its own"
    ),
    "the iteration stopped after": (
        "ended before the solution was exact to the last digits. Nothing needs doing: the "
        "score is that of this map"
    ),
    "the eigenvectors have a residual of": (
        "found a solution that is not exact, as outliers make it. Nothing needs doing: the "
        "score is that of this map"
    ),
}


def warning_lines(warnings: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield a line for each cause, with the methods and how many of their fits had it.

    Parameters
    ----------
    warnings : dict of str to dict
        Of every method by its name: how often each text came.
    """
    found: dict[str, tuple[str, dict[str, int]]] = {}
    for name, texts in warnings.items():
        for text, count in texts.items():
            start = next((start for start in MEANINGS if text.startswith(start)), None)
            said = f"warned: {text}" if start is None else MEANINGS[start]
            if said is None:
                continue
            cause = start or NUMBER.sub("#", text)  # figures differ from fold to fold
            counts = found.setdefault(cause, (said, {}))[1]
            counts[name] = counts.get(name, 0) + count
    for said, counts in found.values():
        yield f"{listed([*counts])} ({counted(sum(counts.values()), 'fit')}) {said.rstrip('.')}."


# What a comparison found, in sentences that may be quoted: never more than is shown.

CONSTANT = {
    "majority": "always predicting the largest class",
    "mean": "always predicting the mean",
    "median": "always predicting the median",
}
PRIOR = (
    "always predicting the shares of the classes"  # what a log loss judges of the same reference
)
SIGNIFICANT = 0.05
MANY_TWINS = 0.1  # of the rows
# Scores by which a prediction may beat a constant without knowing anything: one that guesses, one
# near the median.
WON_BY_CHANCE = ("f1", "mae")
ORDERING = ("auc", "rank_correlation")  # scores that judge the order of the rows

AnyComparison = Comparison | SplitComparison


def wording(comparison: AnyComparison) -> Wording:
    """Return how the score that ranks is written."""
    return WORDING[comparison.score.name].at(comparison.raw.score.mean())


def held_out(comparison: AnyComparison) -> str:
    """Return how many rows were held out, e.g. "625 rows, 5 folds drawn 3 times"."""
    n_folds = len(comparison.raw.contributions)
    n_first = 1 if isinstance(comparison, SplitComparison) else len(first_repeat(comparison.folds))
    rows = counted(sum(map(len, comparison.raw.contributions[:n_first])), "row")
    if isinstance(comparison, Comparison) and n_folds < comparison.n_planned:
        return f"{rows}, {n_folds} of {comparison.n_planned} folds"
    times = f" drawn {'twice' if n_folds == 2 * n_first else f'{n_folds // n_first} times'}" * (
        n_folds > n_first
    )
    return f"{rows}, one split" if n_folds == 1 else f"{rows}, {n_first} folds{times}"


def verdict(comparison: AnyComparison) -> str:
    """Return the outcome: doubts, what is shown, how others compare, and what would have been
    shown.
    """
    lines = [
        *(f"In doubt: {doubt.text}" for doubt in comparison.doubts),
        _finding(comparison),
        *_ahead_of_choice(comparison),
        *_without_twins(comparison),
        *_against_references(comparison),
        *_power(comparison),
    ]
    return "\n".join(lines)


def quote(comparison: AnyComparison) -> str:
    """Return the outcome in one sentence, with the rows and folds that it rests on, and one for
    each doubt.
    """
    raw, first = comparison.raw, leader(comparison)
    rows = held_out(comparison)
    if first is raw:
        sentence = (
            f"On held-out rows ({rows}), raw k-NN {wording(comparison).says(raw.score.mean())}."
        )
    else:
        sentence = f"On held-out rows ({rows}), {_evidence(first, comparison, _named(first))}."
    return " ".join([sentence, *(f"In doubt: {doubt.text}" for doubt in comparison.doubts)])


def leader(comparison: AnyComparison) -> MethodResult:
    """Return the automatic choice; without one the best result, or where that is raw k-NN that
    which follows it.
    """
    chosen = [result for result in comparison.results if result.kind == "choice"]
    others = [result for result in comparison.results if result.name != RAW]
    best = [comparison.best] if comparison.best.name != RAW else others
    return next(iter([*chosen, *best]), comparison.raw)


def chosen_methods(result: MethodResult) -> Counter[str]:
    """Return in how many folds the automatic choice was which method."""
    return Counter(params["method"] for params in result.params)


def _named(result: MethodResult) -> str:
    """Return a result as the subject of a sentence, e.g. "the automatic choice (NCA in 13 of 15
    folds)".
    """
    if result.kind != "choice":
        return result.name
    ((name, n),), n_folds = chosen_methods(result).most_common(1), len(result.score)
    if n == 1 < n_folds:
        return f"the automatic choice (another method in each of the {n_folds} folds)"
    every = "both folds" if n_folds == 2 else f"all {n_folds} folds"
    folds = (
        "" if n_folds == 1 else f" in {every}" if n == n_folds else f" in {n} of {n_folds} folds"
    )
    return f"the automatic choice ({name}{folds})"


def _evidence(result: MethodResult, comparison: AnyComparison, subject: str) -> str:
    """Return what is known of a result beside raw k-NN."""
    words, n_tested = wording(comparison), sum(not np.isnan(r.p_value) for r in comparison.results)
    low, high = (words.signed(end).removeprefix("+") for end in result.interval)
    proof = f"95% interval {low} to {high}, p {stated_p(result.p_value)}"
    proof += f" after Holm over {n_tested} methods" if n_tested > 1 else ""
    proof += (
        ", not called better for the doubt above"
        if result.doubted and result.p_value < SIGNIFICANT
        else ""
    )
    other = words.other.format(words.figure(comparison.raw.score.mean()))
    change = f"{words.signed(result.difference)}{words.points}"
    return f"{subject} {words.says(result.score.mean())}, raw k-NN {other}: {change} ({proof})"


def _finding(comparison: AnyComparison) -> str:
    """Return whether the automatic choice, or else a method, is shown to be better than raw k-NN."""
    raw, first, best, words = (
        comparison.raw,
        leader(comparison),
        comparison.best,
        wording(comparison),
    )
    subject, score = _named(first), words.says(raw.score.mean())
    if first is raw:
        return f"Raw k-NN {score}; nothing to compare."
    if first.status == "better" or (first.status == "worse" and best is raw):
        return f"{_capital(_evidence(first, comparison, subject))}."
    if best is not raw:
        doubt = (
            f"{_capital(subject)} is not shown to beat raw k-NN: "
            f"{_evidence(first, comparison, 'it')}."
        )
        return f"{doubt} {best.name} is: {_evidence(best, comparison, 'it')}."
    if all(r.sign * r.difference <= 0 or words.is_zero(r.difference) for r in comparison.results):
        return f"No method is ahead of raw k-NN here, which {score}."
    none = "No method is shown to beat raw k-NN here"
    if words.is_zero(first.difference):
        return f"{none}, which {score}, as {subject} {score.split()[0]}."
    return f"{none}. {_capital(_evidence(first, comparison, subject))}."


def _ahead_of_choice(comparison: AnyComparison) -> Iterator[str]:
    """Yield which methods end before the automatic choice, and why they were not chosen."""
    first, words = leader(comparison), wording(comparison)
    if first.kind != "choice":
        return
    methods = [result for result in comparison.results if result.kind != "choice"]
    gains = {
        result.name: first.sign * float(result.score.mean() - first.score.mean())
        for result in methods
    }
    ahead = [name for name, gain in gains.items() if gain > 0 and not words.is_zero(gain)]
    if not ahead:
        return
    by = f"{words.number(gains[ahead[0]])}{words.points}"
    others = f" and {counted(len(ahead) - 1, 'other method')}" if len(ahead) > 1 else ""
    verb = "end" if others else "ends"
    at_most = " at most" if others else ""
    yield (
        f"{ahead[0]}{others} {verb} before the automatic choice, by {by}{at_most}. The "
        "choice is made inside the "
        f"training rows, which did not show this; and the first of {len(methods)} methods "
        "on the same held-out rows is "
        "in part the luckiest: expect less of it than its figure."
    )


def _without_twins(comparison: AnyComparison) -> Iterator[str]:
    """Yield that rows with a twin will be predicted better than the figures say, where they are
    many.
    """
    if isinstance(comparison, SplitComparison) or comparison.kept_twins:
        return
    share = comparison.n_twins / comparison.protocol.X.shape[0]
    if share >= MANY_TWINS:
        yield (
            f"{share:.0%} of the rows have an identical or nearly identical twin, and none "
            "was predicted from its own: "
            "of new rows that have a twin among the known ones, expect more."
        )


def _against_references(comparison: AnyComparison) -> Iterator[str]:
    """Yield how far the leading result is from the best reference, and whether it beats a constant."""
    if isinstance(comparison, SplitComparison):
        return
    first, words = leader(comparison), wording(comparison)
    subject = "raw k-NN" if first.name == RAW else _named(first).partition(" (")[0]
    best = next((r for r in comparison.references if r.name not in CONSTANT), None)
    if best is not None:
        ahead = first.sign * float(first.score.mean() - best.score.mean())
        where = f"{words.number(abs(ahead))}{words.points} {'ahead of' if ahead > 0 else 'behind'}"
        where = "level with" if words.is_zero(ahead) else where
        score = words.says(best.score.mean(), rows=False)
        which = (
            "best reference"
            if comparison.references[0] is best
            else "best reference that learns from the columns"
        )
        yield f"The {which}, {best.name}, {score}: {subject} is {where} it."
    for constant in (r for r in comparison.references if r.name in CONSTANT):
        test = difference_test(first, constant, comparison.folds, comparison.protocol.units)
        always = PRIOR if comparison.score.name == "log_loss" else CONSTANT[constant.name]
        what = f"{always} ({words.figure(constant.score.mean())})"
        if first.sign * test.difference <= 0 or words.is_zero(test.difference):
            helps = (
                _helps_otherwise(comparison, constant)
                or ": these features did not help it to predict"
            )
            yield f"{_capital(subject)} is no better than {what}{helps}."
        elif not test.p_value < SIGNIFICANT:
            yield f"{_capital(subject)} is not shown to be better than {what}."


def _helps_otherwise(comparison: Comparison, constant: MethodResult) -> str | None:
    """Return which prediction is shown to beat the constant by another score; None where none is.

    The best one by each score is tested on the folds, of a single split only by its order of the
    rows; at .05, divided by the number of predictions and scores.
    """
    results = [r for r in (*comparison.results, *comparison.references) if r.name not in CONSTANT]
    others = [
        score
        for score in SCORES[comparison.task.name].values()
        if score.name != comparison.score.name
    ]
    scores = [score for score in others if score.name not in WON_BY_CHANCE]
    n_test = float(np.mean([len(test) for _, test in comparison.folds]))
    n_train = float(np.mean([len(train) for train, _ in comparison.folds]))
    for score in scores:
        best = max(results, key=lambda result: score.sign * result.scores[score.name].mean())
        gains = score.sign * (best.scores[score.name] - constant.scores[score.name])
        if gains.mean() <= 0:
            continue
        if len(gains) > 1:
            p_value = corrected_resampled_t_test(gains, n_train, n_test)
            shown = p_value < SIGNIFICANT / (len(results) * len(scores))
        else:
            shown = score.name in ORDERING and gains[0] > 4 * _chance_of_order(comparison)
        if shown:
            words = WORDING[score.name].at(best.scores[score.name].mean())
            figures = (words.figure(one.scores[score.name].mean()) for one in (best, constant))
            return (
                f" by this score, but {best.name} is by another: {words.title} "
                f"{' against '.join(figures)}"
            )
    return None


def _chance_of_order(comparison: Comparison) -> float:
    """Return the standard deviation, by chance, of a rank correlation or an AUC of the held-out
    rows of a split.
    """
    (_, test), *_ = comparison.folds
    if comparison.task != CLASSIFICATION:
        return float(1 / np.sqrt(len(test) - 1))
    sizes = np.bincount(comparison.protocol.y[test], minlength=2)
    rare = sizes[sizes > 0].min()
    others = len(test) - rare
    return float(np.sqrt((len(test) + 1) / (12 * rare * max(1, others))))


def _power(comparison: AnyComparison) -> Iterator[str]:
    """Yield which difference would have been shown, and of what a single split tells."""
    if isinstance(comparison, Comparison) and comparison.n_chained:
        return
    least, words = comparison.least_difference, WORDING[comparison.score.name]
    if np.isfinite(least) and least > 0:
        size = f"{words.factor * least:.2g}{words.points}"
        yield (
            f"This table is large enough to show a true difference of about {size} in four of "
            "five cases."
        )
    if isinstance(comparison, SplitComparison) or comparison.of_fitted_models:
        yield (
            "One split tests these fitted models on new rows; how much the methods would "
            "differ when fitted to other "
            "rows, it does not show."
        )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


@dataclass(frozen=True)
class Summary:
    """A comparison in words.

    Attributes
    ----------
    cells, references : list of dict
        The lines of the ranking by heading, and those of the references below it; "verdict" is the
        status.
    caption : str
    verdict : str
        Sentences, each on a line of its own; the first says what was found.
    notes : list of str
    """

    cells: list[dict[str, str]]
    references: list[dict[str, str]]
    caption: str
    verdict: str
    notes: list[str]


def summarize(comparison: AnyComparison) -> Summary:
    """Return the ranking, the verdict and the remarks."""
    cells, references = (
        [_cells(result, comparison) for result in results]
        for results in (comparison.results, comparison.references)
    )
    remarks = comparison.notes if isinstance(comparison, SplitComparison) else notes(comparison)
    return Summary(cells, references, caption(comparison), verdict(comparison), list(remarks))


def _cells(result: MethodResult, comparison: AnyComparison) -> dict[str, str]:
    """Return a line of the ranking; of a reference only the score and the difference."""
    words, raw, second = wording(comparison), comparison.raw, WORDING[comparison.score.name].second
    low, middle, high = np.percentile(result.dimension, [0, 50, 100], method="nearest")
    seconds, reference = float(np.mean(result.fit_seconds)), result.kind == "reference"
    cells = {"method": result.name, words.heading: words.number(result.score.mean())}
    if second in raw.scores:
        beside = WORDING[second].at(raw.scores[second].mean())
        cells[beside.heading] = beside.number(result.scores[second].mean())
    cells |= {
        "dim": str(middle) if low == high else f"{middle} ({low}-{high})",
        "vote": usual_vote(result),
        "fit": f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s",
        "vs raw": "" if result is raw else _difference(result, words),
        "p": "" if np.isnan(result.p_value) else format_p(result.p_value),
        "verdict": result.status,
    }
    return cells | (dict.fromkeys(("dim", "vote", "fit"), "") if reference else {})


def _difference(result: MethodResult, words: Wording) -> str:
    """Return by how much a method differs from the raw features, a tested one with half the width
    of its interval.
    """
    if result.kind == "reference":
        return words.signed(result.difference)
    half = (result.interval[1] - result.interval[0]) / 2
    return f"{words.signed(result.difference)} ± {words.number(half)}"


def usual_vote(result: MethodResult) -> str:
    """Return the median of the chosen k with the kind that most folds chose, e.g. "soft 25-NN" or
    "all rows".
    """
    own = [vote for vote in result.votes if isinstance(vote, OwnVote)]
    if 2 * len(own) > len(result.votes):
        return str(own[0])
    votes = [vote for vote in result.votes if vote not in own]
    soft = np.mean([vote.soft for vote in votes]) > 0.5
    k = np.percentile([vote.n_neighbors for vote in votes], 50, method="nearest")
    return f"{'soft ' * bool(soft)}{k}-NN"


def caption(comparison: AnyComparison) -> str:
    """Return what the columns of the ranking mean."""
    title = WORDING[comparison.score.name].title + " (less is better)" * (comparison.score.sign < 0)
    n_tested = sum(not np.isnan(result.p_value) for result in comparison.results)
    columns = "vs raw: difference from raw k-NN ± half of its 95% interval"
    columns += f"; p after Holm over {n_tested} methods" if n_tested > 1 else ""
    if isinstance(comparison, SplitComparison):
        rows = (
            f"{comparison.n_train:,} training rows, {len(comparison.raw.contributions[0]):,} "
            "held-out rows"
        )
        vote = (
            f"{comparison.n_neighbors}-NN on "
            f"{'standardized' if comparison.scale else 'unscaled'} features"
        )
        return (
            f"{title[0].upper()}{title[1:]} of {vote}, {rows}, seed {comparison.random_state}; "
            f"{columns}"
        )
    protocol = comparison.protocol
    chosen = (
        "dimension, parameters and vote"
        if comparison.n_neighbors is None
        else "dimension and parameters"
    )
    scaled = "standardized" if protocol.scale else "unscaled"
    return (
        f"{title[0].upper()}{title[1:]} on held-out rows ({held_out(comparison)}, {scaled} "
        "features, seed "
        f"{protocol.random_state}); {chosen} chosen on inner folds of the training rows; {columns}"
    )


# Remarks


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what was reduced, sampled, skipped or warned of, a line each."""
    labelled, without = comparison.protocol.labelled, comparison.protocol.unlabelled
    if len(without):
        used = [
            r.name
            for r in comparison.results
            if isinstance(r.method, Method) and r.method.unlabelled
        ]
        share = f"{len(labelled):,} of {len(labelled) + len(without):,} rows"
        others = f"{', '.join(used) or 'no method'} learned from the others, too"
        yield f"{share} have a label: only these are held out and vote; {others}."
    if (
        comparison.classes.dtype.kind == "i"
        and comparison.classes.min() == -1
        and len(comparison.classes) > 2
    ):
        yield (
            "-1 was taken for a class: if it marks rows without a label, say unlabelled=-1 "
            "(--unlabelled -1)."
        )
    now = {
        "n_splits": (len(first_repeat(comparison.folds)), " folds"),
        "n_neighbors": (comparison.n_neighbors, "-NN"),
    }
    for name, (requested, reason) in comparison.reduced.items():
        reduced, unit = now[name]
        yield f"{requested}{unit} reduced to {reduced}{unit}: {reason}."
    yield from _why_auc(comparison)
    yield from _twins(comparison)
    yield from _samples(comparison)
    for reason in dict.fromkeys(comparison.skipped.values()):
        yield (
            f"{', '.join(name for name, why in comparison.skipped.items() if why == reason)} "
            f"skipped: {reason}"
        )
    ranked = (*comparison.results, *comparison.references)
    yield from warning_lines(
        {result.name: result.warnings for result in ranked if result.kind != "choice"}
    )
    yield from _unfinished(comparison)


def _why_auc(comparison: Comparison) -> Iterator[str]:
    """Yield why AUC ranks, and what that means for the labels."""
    if comparison.score.name != "auc":
        return
    y = comparison.protocol.y[comparison.protocol.labelled]
    share = np.bincount(y).max() / len(y)
    if share > RARE:
        yield (
            f"The largest class has {share:.0%} of the rows, so AUC ranks: it judges the "
            "order of the rows. A label is "
            "the most probable class; to find more of a rare one, put a threshold of your "
            "own on the probabilities "
            "that predict writes."
        )


def _twins(comparison: Comparison) -> Iterator[str]:
    """Yield how many rows have a twin, and what was done with these."""
    n, n_rows = comparison.n_twins, comparison.protocol.X.shape[0]
    if n:
        share = f"{n / n_rows:.0%} of the rows" if n >= n_rows / 100 else counted(n, "row")
        done = "twins stay on one side of every split (--keep-twins splits them like others)"
        if comparison.kept_twins:
            done = (
                "they were split like others, so some were predicted from their own twin "
                "(--keep-twins)"
            )
        yield f"{share} have an identical or nearly identical twin: {done}."


def _samples(comparison: Comparison) -> Iterator[str]:
    """Yield which methods learned from a sample of the training rows."""
    n_train, by_number = min(len(train) for train, _ in comparison.folds), dict[int, list[str]]()
    for result in (*comparison.results, *comparison.references):
        if result.kind != "choice" and result.n_learned < n_train:
            by_number.setdefault(result.n_learned, []).append(result.name)
    for n_learned, names in sorted(by_number.items()):
        yield f"Learned from {n_learned:,} of {n_train:,} training rows: {', '.join(names)}."


def _unfinished(comparison: Comparison) -> Iterator[str]:
    """Yield what an interruption, or the end of the time budget, left out."""
    n, planned = len(comparison.folds), comparison.n_planned
    finished = {result.name for result in comparison.results} | set(comparison.skipped)
    missing = [name for name in comparison.methods if name not in finished]
    if comparison.interrupted or n < planned:
        why = "Interrupted" if comparison.interrupted else "The time budget ran out"
        left = f"; not finished: {', '.join(missing)}" if missing else ""
        model = " No model was fitted." if comparison.interrupted else ""
        yield f"{why}: {n} of {planned} folds {'was' if n == 1 else 'were'} finished{left}.{model}"


def summary(method: Method) -> str:
    """Return what a method is: the first line of its documentation, and the parameters that are not
    the defaults.
    """
    if method.estimator is None:
        return "The features as they are, each counting by its spread: the baseline."
    first_line = (inspect.getdoc(type(method.estimator)) or method.name).partition("\n")[0]
    defaults = type(method.estimator)().get_params()
    changed = {
        name: value
        for name, value in method.estimator.get_params().items()
        if value != defaults[name]
    }
    return first_line + (
        f" ({', '.join(f'{name}={value!r}' for name, value in changed.items())})" if changed else ""
    )


def rows_of(table: Table) -> str:
    """Return how many rows there are, and how many of them have a label if not all do."""
    n_rows, n_labelled = table.X.shape[0], len(table.labelled)
    return counted(n_rows, "row") + ("" if n_labelled == n_rows else f" ({n_labelled:,} labelled)")


def target_facts(table: Table) -> str:
    """Return what the target holds."""
    values, counts = np.unique(table.labels, return_counts=True)
    if table.task == CLASSIFICATION.name:
        return class_facts(counts)
    return f"{counted(len(values), 'value')} {span(values[0], values[-1])}"


def span(low: float, high: float) -> str:
    """Return e.g. "from 0.125 to 63,770"."""
    return "from {} to {}".format(
        *(f"{end:{',.0f' if 1e3 <= abs(end) < 1e12 else '.4g'}}" for end in (low, high))
    )


def class_facts(sizes: np.ndarray) -> str:
    """Return how many classes there are, and of which sizes."""
    if sizes.min() == sizes.max():
        return f"{counted(len(sizes), 'class')} of {counted(sizes.max(), 'row')} each"
    largest = f"the largest: {sizes.max() / sizes.sum():.1%}"
    return (
        f"{counted(len(sizes), 'class')} of {sizes.min():,} to {counted(sizes.max(), 'row')} "
        f"({largest})"
    )


def first_line(error: Any) -> str:
    """Return the first line of what an error or a warning says."""
    return str(error).partition("\n")[0]


@contextmanager
def one_line(place: Any) -> Iterator[None]:
    """Make a TableError, with the name of a table, of an error that its rows caused."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise TableError(f"{place}: {first_line(error)}") from error
