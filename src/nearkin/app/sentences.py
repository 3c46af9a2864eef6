"""The English of the command: the ranking as text, what a comparison found, and what is worth a remark."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluation import CLASSIFICATION, Comparison, Method, MethodResult, OwnVote, first_repeat
from ..evaluation.tables import RARE
from .one_split import SplitComparison
from .refusals import TableError, counted
from .tables import Table
from .verdicts import AnyComparison, held_out, verdict, wording
from .verdicts import leader as leader
from .warned import warning_lines
from .wording import WORDING as WORDING
from .wording import Wording, format_p


@dataclass(frozen=True)
class Summary:
    """A comparison in words.

    Attributes
    ----------
    cells, references : list of dict
        The lines of the ranking by heading, and those of the references below it; "verdict" is the status.
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
        [_cells(result, comparison) for result in results] for results in (comparison.results, comparison.references)
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
    """Return by how much a method differs from the raw features, a tested one with half the width of its interval."""
    if result.kind == "reference":
        return words.signed(result.difference)
    half = (result.interval[1] - result.interval[0]) / 2
    return f"{words.signed(result.difference)} ± {words.number(half)}"


def usual_vote(result: MethodResult) -> str:
    """Return the median of the chosen k with the kind that most folds chose, e.g. "soft 25-NN" or "all rows"."""
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
        rows = f"{comparison.n_train:,} training rows, {len(comparison.raw.contributions[0]):,} held-out rows"
        vote = f"{comparison.n_neighbors}-NN on {'standardized' if comparison.scale else 'unscaled'} features"
        return f"{title[0].upper()}{title[1:]} of {vote}, {rows}, seed {comparison.random_state}; {columns}"
    protocol = comparison.protocol
    chosen = "dimension, parameters and vote" if comparison.n_neighbors is None else "dimension and parameters"
    scaled = "standardized" if protocol.scale else "unscaled"
    return (
        f"{title[0].upper()}{title[1:]} on held-out rows ({held_out(comparison)}, {scaled} features, seed "
        f"{protocol.random_state}); {chosen} chosen on inner folds of the training rows; {columns}"
    )


# Remarks


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what was reduced, sampled, skipped or warned of, a line each."""
    labelled, without = comparison.protocol.labelled, comparison.protocol.unlabelled
    if len(without):
        used = [r.name for r in comparison.results if isinstance(r.method, Method) and r.method.unlabelled]
        share = f"{len(labelled):,} of {len(labelled) + len(without):,} rows"
        others = f"{', '.join(used) or 'no method'} learned from the others, too"
        yield f"{share} have a label: only these are held out and vote; {others}."
    if comparison.classes.dtype.kind == "i" and comparison.classes.min() == -1 and len(comparison.classes) > 2:
        yield "-1 was taken for a class: if it marks rows without a label, say unlabelled=-1 (--unlabelled -1)."
    now = {"n_splits": (len(first_repeat(comparison.folds)), " folds"), "n_neighbors": (comparison.n_neighbors, "-NN")}
    for name, (requested, reason) in comparison.reduced.items():
        reduced, unit = now[name]
        yield f"{requested}{unit} reduced to {reduced}{unit}: {reason}."
    yield from _why_auc(comparison)
    yield from _twins(comparison)
    yield from _samples(comparison)
    for reason in dict.fromkeys(comparison.skipped.values()):
        yield f"{', '.join(name for name, why in comparison.skipped.items() if why == reason)} skipped: {reason}"
    ranked = (*comparison.results, *comparison.references)
    yield from warning_lines({result.name: result.warnings for result in ranked if result.kind != "choice"})
    yield from _unfinished(comparison)


def _why_auc(comparison: Comparison) -> Iterator[str]:
    """Yield why AUC ranks, and what that means for the labels."""
    if comparison.score.name != "auc":
        return
    y = comparison.protocol.y[comparison.protocol.labelled]
    share = np.bincount(y).max() / len(y)
    if share > RARE:
        yield (
            f"The largest class has {share:.0%} of the rows, so AUC ranks: it judges the order of the rows. A label is "
            "the most probable class; to find more of a rare one, put a threshold of your own on the probabilities "
            "that predict writes."
        )


def _twins(comparison: Comparison) -> Iterator[str]:
    """Yield how many rows have a twin, and what was done with these."""
    n, n_rows = comparison.n_twins, comparison.protocol.X.shape[0]
    if n:
        share = f"{n / n_rows:.0%} of the rows" if n >= n_rows / 100 else counted(n, "row")
        done = "twins stay on one side of every split (--keep-twins splits them like others)"
        if comparison.kept_twins:
            done = "they were split like others, so some were predicted from their own twin (--keep-twins)"
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
    """Return what a method is: the first line of its documentation, and the parameters that are not the defaults."""
    if method.estimator is None:
        return "The features as they are, each counting by its spread: the baseline."
    first_line = (inspect.getdoc(type(method.estimator)) or method.name).partition("\n")[0]
    defaults = type(method.estimator)().get_params()
    changed = {name: value for name, value in method.estimator.get_params().items() if value != defaults[name]}
    return first_line + (f" ({', '.join(f'{name}={value!r}' for name, value in changed.items())})" if changed else "")


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
    return "from {} to {}".format(*(f"{end:{',.0f' if 1e3 <= abs(end) < 1e12 else '.4g'}}" for end in (low, high)))


def class_facts(sizes: np.ndarray) -> str:
    """Return how many classes there are, and of which sizes."""
    if sizes.min() == sizes.max():
        return f"{counted(len(sizes), 'class')} of {counted(sizes.max(), 'row')} each"
    largest = f"the largest: {sizes.max() / sizes.sum():.1%}"
    return f"{counted(len(sizes), 'class')} of {sizes.min():,} to {counted(sizes.max(), 'row')} ({largest})"


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
