"""What a comparison found, in sentences that may be quoted: never more than is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ..evaluation import (
    CLASSIFICATION,
    RAW,
    SCORES,
    Comparison,
    MethodResult,
    corrected_resampled_t_test,
    difference_test,
    first_repeat,
)
from .one_split import SplitComparison
from .refusals import counted
from .wording import WORDING, Wording, stated_p

CONSTANT = {
    "majority": "always predicting the largest class",
    "mean": "always predicting the mean",
    "median": "always predicting the median",
}
PRIOR = "always predicting the shares of the classes"  # what a log loss judges of the same reference
SIGNIFICANT = 0.05
MANY_TWINS = 0.1  # of the rows
# Scores by which a prediction may beat a constant without knowing anything: one that guesses, one near the median.
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
    times = f" drawn {'twice' if n_folds == 2 * n_first else f'{n_folds // n_first} times'}" * (n_folds > n_first)
    return f"{rows}, one split" if n_folds == 1 else f"{rows}, {n_first} folds{times}"


def verdict(comparison: AnyComparison) -> str:
    """Return the outcome: doubts, what is shown, how others compare, and what would have been shown."""
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
    """Return the outcome in one sentence, with the rows and folds that it rests on, and one for each doubt."""
    raw, first = comparison.raw, leader(comparison)
    rows = held_out(comparison)
    if first is raw:
        sentence = f"On held-out rows ({rows}), raw k-NN {wording(comparison).says(raw.score.mean())}."
    else:
        sentence = f"On held-out rows ({rows}), {_evidence(first, comparison, _named(first))}."
    return " ".join([sentence, *(f"In doubt: {doubt.text}" for doubt in comparison.doubts)])


def leader(comparison: AnyComparison) -> MethodResult:
    """Return the automatic choice; without one the best result, or where that is raw k-NN that which follows it."""
    chosen = [result for result in comparison.results if result.kind == "choice"]
    others = [result for result in comparison.results if result.name != RAW]
    best = [comparison.best] if comparison.best.name != RAW else others
    return next(iter([*chosen, *best]), comparison.raw)


def chosen_methods(result: MethodResult) -> Counter[str]:
    """Return in how many folds the automatic choice was which method."""
    return Counter(params["method"] for params in result.params)


def _named(result: MethodResult) -> str:
    """Return a result as the subject of a sentence, e.g. "the automatic choice (NCA in 13 of 15 folds)"."""
    if result.kind != "choice":
        return result.name
    ((name, n),), n_folds = chosen_methods(result).most_common(1), len(result.score)
    if n == 1 < n_folds:
        return f"the automatic choice (another method in each of the {n_folds} folds)"
    every = "both folds" if n_folds == 2 else f"all {n_folds} folds"
    folds = "" if n_folds == 1 else f" in {every}" if n == n_folds else f" in {n} of {n_folds} folds"
    return f"the automatic choice ({name}{folds})"


def _evidence(result: MethodResult, comparison: AnyComparison, subject: str) -> str:
    """Return what is known of a result beside raw k-NN."""
    words, n_tested = wording(comparison), sum(not np.isnan(r.p_value) for r in comparison.results)
    low, high = (words.signed(end).removeprefix("+") for end in result.interval)
    proof = f"95% interval {low} to {high}, p {stated_p(result.p_value)}"
    proof += f" after Holm over {n_tested} methods" if n_tested > 1 else ""
    proof += ", not called better for the doubt above" if result.doubted and result.p_value < SIGNIFICANT else ""
    other = words.other.format(words.figure(comparison.raw.score.mean()))
    change = f"{words.signed(result.difference)}{words.points}"
    return f"{subject} {words.says(result.score.mean())}, raw k-NN {other}: {change} ({proof})"


def _finding(comparison: AnyComparison) -> str:
    """Return whether the automatic choice, or else a method, is shown to be better than raw k-NN."""
    raw, first, best, words = comparison.raw, leader(comparison), comparison.best, wording(comparison)
    subject, score = _named(first), words.says(raw.score.mean())
    if first is raw:
        return f"Raw k-NN {score}; nothing to compare."
    if first.status == "better" or (first.status == "worse" and best is raw):
        return f"{_capital(_evidence(first, comparison, subject))}."
    if best is not raw:
        doubt = f"{_capital(subject)} is not shown to beat raw k-NN: {_evidence(first, comparison, 'it')}."
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
    gains = {result.name: first.sign * float(result.score.mean() - first.score.mean()) for result in methods}
    ahead = [name for name, gain in gains.items() if gain > 0 and not words.is_zero(gain)]
    if not ahead:
        return
    by = f"{words.number(gains[ahead[0]])}{words.points}"
    others = f" and {counted(len(ahead) - 1, 'other method')}" if len(ahead) > 1 else ""
    verb = "end" if others else "ends"
    at_most = " at most" if others else ""
    yield (
        f"{ahead[0]}{others} {verb} before the automatic choice, by {by}{at_most}. The choice is made inside the "
        f"training rows, which did not show this; and the first of {len(methods)} methods on the same held-out rows is "
        "in part the luckiest: expect less of it than its figure."
    )


def _without_twins(comparison: AnyComparison) -> Iterator[str]:
    """Yield that rows with a twin will be predicted better than the figures say, where they are many."""
    if isinstance(comparison, SplitComparison) or comparison.kept_twins:
        return
    share = comparison.n_twins / comparison.protocol.X.shape[0]
    if share >= MANY_TWINS:
        yield (
            f"{share:.0%} of the rows have an identical or nearly identical twin, and none was predicted from its own: "
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
        which = "best reference" if comparison.references[0] is best else "best reference that learns from the columns"
        yield f"The {which}, {best.name}, {score}: {subject} is {where} it."
    for constant in (r for r in comparison.references if r.name in CONSTANT):
        test = difference_test(first, constant, comparison.folds, comparison.protocol.units)
        always = PRIOR if comparison.score.name == "log_loss" else CONSTANT[constant.name]
        what = f"{always} ({words.figure(constant.score.mean())})"
        if first.sign * test.difference <= 0 or words.is_zero(test.difference):
            helps = _helps_otherwise(comparison, constant) or ": these features did not help it to predict"
            yield f"{_capital(subject)} is no better than {what}{helps}."
        elif not test.p_value < SIGNIFICANT:
            yield f"{_capital(subject)} is not shown to be better than {what}."


def _helps_otherwise(comparison: Comparison, constant: MethodResult) -> str | None:
    """Return which prediction is shown to beat the constant by another score; None where none is.

    The best one by each score is tested on the folds, of a single split only by its order of the rows; at .05, divided
    by the number of predictions and scores.
    """
    results = [r for r in (*comparison.results, *comparison.references) if r.name not in CONSTANT]
    others = [score for score in SCORES[comparison.task.name].values() if score.name != comparison.score.name]
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
            return f" by this score, but {best.name} is by another: {words.title} {' against '.join(figures)}"
    return None


def _chance_of_order(comparison: Comparison) -> float:
    """Return the standard deviation, by chance, of a rank correlation or an AUC of the held-out rows of a split."""
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
        yield f"This table is large enough to show a true difference of about {size} in four of five cases."
    if isinstance(comparison, SplitComparison) or comparison.of_fitted_models:
        yield (
            "One split tests these fitted models on new rows; how much the methods would differ when fitted to other "
            "rows, it does not show."
        )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
