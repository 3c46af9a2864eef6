"""What a comparison found, in sentences that may be quoted: never more than is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ..evaluation import RAW, Comparison, MethodResult, difference_test, first_repeat
from .one_split import SplitComparison
from .refusals import counted
from .wording import WORDING, Wording, stated_p

CONSTANT = {"majority": "always predicting the largest class", "mean": "always predicting the mean"}
PRIOR = "always predicting the shares of the classes"  # what a log loss judges of the same reference
SIGNIFICANT = 0.05

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
    """Return the outcome: what is shown, how the references compare, and what would have been shown."""
    return "\n".join([_finding(comparison), *_against_references(comparison), *_power(comparison)])


def quote(comparison: AnyComparison) -> str:
    """Return the outcome in one sentence, with the rows and folds that it rests on."""
    raw, first = comparison.raw, leader(comparison)
    rows = held_out(comparison)
    if first is raw:
        return f"On held-out rows ({rows}), raw k-NN {wording(comparison).says(raw.score.mean())}."
    return f"On held-out rows ({rows}), {_evidence(first, comparison, _named(first))}."


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


def _against_references(comparison: AnyComparison) -> Iterator[str]:
    """Yield how far the leading result is from the best reference, and whether it beats a constant."""
    if isinstance(comparison, SplitComparison):
        return
    first, words = leader(comparison), wording(comparison)
    subject = "raw k-NN" if first.name == RAW else _named(first).partition(" (")[0]
    best = next((r for r in comparison.references if r.name not in CONSTANT), None)
    if best is not None:
        ahead = first.sign * float(first.score[: len(best.score)].mean() - best.score.mean())
        where = f"{words.number(abs(ahead))}{words.points} {'ahead of' if ahead > 0 else 'behind'}"
        where = "level with" if words.is_zero(ahead) else where
        score, n, n_folds = words.says(best.score.mean(), rows=False), len(best.score), len(first.score)
        fewer = f" on the {n} of {n_folds} folds that references have; on these" if n < n_folds else ":"
        yield f"The best reference, {best.name}, {score}{fewer} {subject} is {where} it."
    for constant in (r for r in comparison.references if r.name in CONSTANT):
        test = difference_test(first, constant, comparison.folds, comparison.protocol.units)
        always = PRIOR if comparison.score.name == "log_loss" else CONSTANT[constant.name]
        what = f"{always} ({words.figure(constant.score.mean())})"
        if first.sign * test.difference <= 0 or words.is_zero(test.difference):
            yield f"{_capital(subject)} is no better than {what}: these features did not help it to predict."
        elif not test.p_value < SIGNIFICANT:
            yield f"{_capital(subject)} is not shown to be better than {what}."


def _power(comparison: AnyComparison) -> Iterator[str]:
    """Yield which difference would have been shown."""
    least, words = comparison.least_difference, WORDING[comparison.score.name]
    if np.isfinite(least) and least > 0:
        size = f"{words.factor * least:.2g}{words.points}"
        yield f"This table is large enough to show a true difference of about {size} in four of five cases."


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
