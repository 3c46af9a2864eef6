"""The result of a comparison: scores on every fold, and a ranking, perhaps without a winner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from ..statistics import (
    PairedTest,
    detectable_difference,
    holm,
    paired_test,
    paired_test_by_rows,
    status_of,
)
from ..tables import TableEncoder
from .contestants import CHOICE, Outcome, Skipped, automatic
from .doubts import Doubt
from .methods import CONSTANTS, RAW, Method, Params, Reference
from .protocol import NO_ROWS, Protocol, TrainTest, first_repeat, weight_parameters
from .scores import OwnVote, Score, Task, Vote

Found = dict[str, Any]  # by method name: an Outcome, or Skipped
# the order of results with equal scores
ORDER = ("choice", "baseline", "method", "reference")


@dataclass(frozen=True)
class MethodResult:
    """The scores of a method on every held-out fold, and its difference from the raw features.

    Attributes
    ----------
    name : str
    sign : int
        1 if a larger score is better, -1 if a smaller one is.
    kind : {"choice", "baseline", "method", "reference"}
        The automatic choice of a method on inner folds, the raw features, a map, or a predictor of
        another kind.
    method : Method or Reference or None
        None for the automatic choice.
    score : ndarray of shape (n_folds,)
        The ranking score of the vote on the held-out rows; see `Comparison.score`.
    scores : dict of str to ndarray of shape (n_folds,)
        All scores of the task: "accuracy", "balanced_accuracy", "f1", "auc", "log_loss"; or "r2",
        "mae", "rank_correlation".
    dimension : ndarray of shape (n_folds,)
        Number of dimensions used, as chosen inside the training rows.
    params : tuple of dict
        The chosen parameters of each fold; for the automatic choice also "method".
    votes : tuple of Vote
        The chosen vote of each fold.
    fit_seconds : ndarray of shape (n_folds,)
        Time of one fit with the chosen parameters, without the choice.
    n_learned : int
        Number of rows from which the map was learned, the training rows or a sample of them; the
        smallest over the folds.
    predictions : tuple of ndarray
        The predicted labels, or numbers, for the held-out rows of each fold.
    contributions : tuple of ndarray
        The contributions of the held-out rows of each fold, whose mean is `score`.
    warnings : dict of str to int
        The distinct warnings of the scored fits, and how often each occurred over the folds.
    difference : float
        Mean score minus that of the raw features, paired by row.
    interval : tuple of float
        95 % interval of the difference, for this method alone.
    p_value : float
        Of the hypothesis of no difference, Holm-corrected over the methods. An automatic choice
        that is the same method in every fold is not counted again. NaN for the raw features and the
        references.
    doubted : bool
        Whether the folds split groups of rows that belong together; then no difference is called
        better.
    over_constant : PairedTest or None
        Test of the difference from a constant prediction by the held-out rows
        (`paired_test_by_rows`), not corrected; None for the references, and if the constant was not
        finished.
    """

    name: str
    sign: int
    kind: str
    method: Method | Reference | None
    score: np.ndarray
    scores: dict[str, np.ndarray]
    dimension: np.ndarray
    params: tuple[Params, ...]
    votes: tuple[Vote, ...]
    fit_seconds: np.ndarray
    n_learned: int
    predictions: tuple[np.ndarray, ...]
    contributions: tuple[np.ndarray, ...]
    warnings: dict[str, int] = field(default_factory=dict)
    difference: float = 0.0
    interval: tuple[float, float] = (0.0, 0.0)
    p_value: float = float("nan")
    doubted: bool = False
    over_constant: PairedTest | None = None

    @property
    def chosen(self) -> Counter[str]:
        """Return how often the automatic choice took each method; empty for other results."""
        return Counter(params["method"] for params in self.params if self.kind == "choice")

    @property
    def beats_constant(self) -> bool:
        """Return whether it is significantly better than a constant; True if that is unknown."""
        test = self.over_constant
        return test is None or status_of(self.sign * test.difference, test.p_value) == "better"

    @property
    def status(self) -> str:
        """Return "baseline", "reference", "better", "worse", or "unclear" if chance may explain it.

        A result that does not significantly beat a constant prediction is never "better".
        """
        if self.kind in ("baseline", "reference"):
            return self.kind
        status = status_of(self.sign * self.difference, self.p_value)
        is_moot = self.doubted or not self.beats_constant
        return "unclear" if status == "better" and is_moot else status

    def __repr__(self) -> str:
        """Return mean score, difference and status, without values per row."""
        p = "" if np.isnan(self.p_value) else f"  p = {self.p_value:.2g}"
        change = "" if self.kind == "baseline" else f"  {self.difference:+.3f}{p}"
        return f"{self.name:22} {self.score.mean():.3f}{change}  {self.status}"

    @property
    def is_tested(self) -> bool:
        """Return whether the difference from the raw features was tested."""
        return not np.isnan(self.p_value)

    @property
    def is_repeated(self) -> bool:
        """Return whether it is the automatic choice, and the same method in every fold."""
        return len(self.chosen) == 1

    @property
    def deviation(self) -> float:
        """Return the standard deviation of the score over the folds; NaN for one fold."""
        return float(self.score.std(ddof=1)) if len(self.score) > 1 else np.nan

    @property
    def dimensions(self) -> tuple[int, int, int] | None:
        """Return the smallest, middle and largest dimension; None for a reference."""
        return None if self.kind == "reference" else _spread(self.dimension)

    @property
    def neighbors(self) -> tuple[int, int, int] | None:
        """Return the smallest, middle and largest k of the k-NN votes, or None without any."""
        votes = self._votes(own=False)
        return _spread([vote.n_neighbors for vote in votes]) if votes else None

    @property
    def soft(self) -> float:
        """Return the share of the k-NN votes that are soft; NaN without any."""
        votes = self._votes(own=False)
        return float(np.mean([vote.soft for vote in votes])) if votes else np.nan

    @property
    def vote(self) -> str:
        """Return the most common vote: "soft 25-NN", "all rows"; empty for a reference."""
        own, neighbors = self._votes(own=True), self.neighbors
        if 2 * len(own) > len(self.votes):
            return str(own[0])
        return "" if neighbors is None else str(Vote(neighbors[1], self.soft > 0.5))

    def _votes(self, *, own: bool) -> list[Vote]:
        """Return the votes of a method that are its own, or those of the nearest rows."""
        votes = () if self.kind == "reference" else self.votes
        return [vote for vote in votes if isinstance(vote, OwnVote) == own]

    @property
    def settings(self) -> list[tuple[dict[str, str], int]]:
        """Return other choices of the inner folds with their numbers of folds, the usual first.

        For the automatic choice this includes "method".
        """
        settings = Counter(
            tuple((key, str(value)) for key, value in params.items() if key != "n_components")
            for params in self.params
        )
        return [(dict(found), n) for found, n in settings.most_common() if any(settings)]


def _spread(values: Any) -> Any:
    """Return the smallest, the middle and the largest value."""
    return tuple(np.percentile(values, [0, 50, 100], method="nearest").tolist())


def leader(rows: Sequence[MethodResult]) -> MethodResult:
    """Return the result that a comparison presents as its answer.

    This is the automatic choice. Without one, it is the best method that is significantly better
    than the raw features, or else the first method, or else the raw features.
    """
    methods = [row for row in rows if row.kind in ("choice", "method")]
    choice = [row for row in methods if row.kind == "choice"]
    better = [row for row in methods if row.status == "better"]
    baseline = [row for row in rows if row.kind == "baseline"]
    return [*choice, *better, *methods, *baseline][0]


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`, which `extend` can continue.

    `choice` is the automatic choice as evaluated on the folds, `winner` the automatic choice made
    on all rows. A notebook shows the table of `to_frame`; `nearkin.plotting.RankingDisplay` draws
    it.

    Attributes
    ----------
    results : tuple of MethodResult
        Finished methods, including the raw features and the automatic choice, best mean score
        first.
    references : tuple of MethodResult
        Predictors of other kinds on the same folds, best first.
    winner : Pipeline or None
        The automatic choice, fitted to all labelled rows; its expected score is that of `choice`.
        None with `refit=False` and after an interruption: `extend(comparison, [])` then fits it.
    winner_method : str
        Name of the winner's method.
    winner_rows : ndarray of int
        The rows that vote in the winner: all labelled rows or, if there are very many, those from
        which a predictor for tables learned.
    contestants : tuple of Method and Reference
        In the order in which they ran.
    found : tuple of dict of name to Outcome or Skipped
        For every fold, the results of the contestants.
    skipped : dict of method name to reason
    reduced : dict of "n_splits" or "n_neighbors" to (requested, reason)
        Requests that the rows do not allow.
    folds : tuple of (training rows, held-out rows)
        Row indices; all of these rows are labelled.
    n_planned : int
        Planned number of folds; fewer are finished after an interruption, or at the end of the time
        budget.
    protocol : Protocol
        Rows and rules of the comparison.
    n_neighbors : int or None
        k of the vote, if given; None if inner folds chose it.
    encoder : TableEncoder or None
        The encoder of the table, if any, which is the first step of the winner.
    remarks : tuple of str
        Remarks on how the data frame was read.
    doubts : tuple of Doubt
        Reasons why the scores may not hold for new rows.
    seconds : float
    interrupted : bool
        Whether the run was stopped early; results are those of the folds and methods finished until
        then.
    least_difference : float
        The difference from the raw features that this table can show with a power of about 80 %.
    """

    protocol: Protocol
    folds: tuple[TrainTest, ...]
    n_planned: int
    reduced: dict[str, tuple[int, str]]
    encoder: TableEncoder | None = None
    remarks: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    contestants: tuple[Method | Reference, ...] = ()
    found: tuple[Found, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)
    results: tuple[MethodResult, ...] = ()
    references: tuple[MethodResult, ...] = ()
    least_difference: float = np.nan
    interrupted: bool = False
    winner: Pipeline | None = None
    winner_method: str = RAW
    winner_rows: np.ndarray = field(default_factory=NO_ROWS.copy)
    seconds: float = 0.0

    def with_found(
        self, found: Sequence[Found], contestants: Sequence[Method | Reference]
    ) -> Comparison:
        """Return the comparison with these results of contestants on its folds, without a winner.

        Contestants that did not finish every fold are not ranked. In every fold, the automatic
        choice is among the methods that finished this fold.
        """
        protocol, methods = self.protocol, [one for one in contestants if isinstance(one, Method)]
        chosen = []
        for of_fold, (train, _) in zip(found, self.folds, strict=True):
            choices = {
                name: one.choice for name, one in of_fold.items() if isinstance(one, Outcome)
            }
            chosen.append(automatic(choices, methods, protocol, train))
        skipped, collected = dict[str, str](), []
        for one in contestants:
            outcomes = [of_fold.get(one.name) for of_fold in found]
            failed = [outcome for outcome in outcomes if isinstance(outcome, Skipped)]
            if failed:
                skipped[one.name] = failed[0].reason
            elif all(outcomes):
                collected.append(_collected(one.name, one, outcomes, protocol))
        outcomes = [of_fold[name] for name, of_fold in zip(chosen, found, strict=True)]
        choice = _collected(CHOICE, None, outcomes, protocol)
        params = zip(chosen, choice.params, strict=True)
        choice = replace(choice, params=tuple({"method": name} | of for name, of in params))
        results, least = ranked([*collected, choice], self.folds, protocol.units)
        return replace(
            self,
            results=tuple(result for result in results if result.kind != "reference"),
            references=tuple(result for result in results if result.kind == "reference"),
            contestants=tuple(contestants),
            found=tuple(found),
            skipped=skipped,
            least_difference=least,
            interrupted=False,
            winner=None,
            winner_method=RAW,
            winner_rows=NO_ROWS,
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the names of all methods in the order in which they ran."""
        return tuple(one.name for one in self.contestants if isinstance(one, Method))

    @property
    def task(self) -> Task:
        """Return the task: classification or regression."""
        return self.protocol.task

    @property
    def score(self) -> Score:
        """Return the score by which methods are ranked."""
        return self.protocol.score

    @property
    def classes(self) -> np.ndarray:
        """Return the sorted classes; empty for a regression."""
        return self.protocol.classes

    @property
    def n_neighbors(self) -> int | None:
        """Return k of the vote if it was given; None if inner folds chose it."""
        votes = self.protocol.votes
        return votes[0].n_neighbors if len(votes) == 1 else None

    @property
    def unweighted(self) -> tuple[str, ...]:
        """Return the names of contestants fitted without weights, since their `fit` takes none.

        They were nevertheless scored with weights.
        """
        if self.protocol.weights is None:
            return ()
        return tuple(
            one.name
            for one in self.contestants
            if one.estimator is not None and not weight_parameters(one.estimator)
        )

    @property
    def notes(self) -> list[str]:
        """Return notes on the comparison: doubts, methods fitted without weights, and remarks."""
        notes = [f"Caution: {doubt.text}" for doubt in self.doubts]
        if self.unweighted:
            notes.append(f"Fitted without weights: {', '.join(self.unweighted)}")
        return [*notes, *self.remarks]

    @property
    def n_repeats(self) -> int:
        """Return the number of repetitions of the split into folds."""
        return len(self.folds) // len(first_repeat(self.folds))

    @property
    def of_fitted_models(self) -> bool:
        """Return whether a single split compares fitted models, not methods; see `PairedTest`."""
        return len(self.folds) == 1

    @property
    def n_chained(self) -> int:
        """Return the number of rows in tight groups of more than ten that the folds split."""
        return self.protocol.n_chained

    def __getitem__(self, name: str) -> MethodResult:
        """Return the result of a method or reference by its name."""
        for result in self.ranking():
            if result.name == name:
                return result
        raise KeyError(
            f"{name!r}; finished were {', '.join(result.name for result in self.results)}"
        )

    @property
    def raw(self) -> MethodResult:
        """Return the result of the raw features."""
        return self[RAW]

    @property
    def constant(self) -> MethodResult | None:
        """Return the result of a constant prediction, or None if it was not finished."""
        finished = {result.name: result for result in self.references}
        names = [one.name for one in self.contestants if one.name in CONSTANTS]
        return next((finished[name] for name in names if name in finished), None)

    @property
    def choice(self) -> MethodResult:
        """Return the result of the automatic choice."""
        return self[CHOICE]

    def mapping(self, result: MethodResult, n_components: int) -> Pipeline | None:
        """Return the unfitted steps up to the map of a method, with `n_components`.

        The parameters of the map are those of the first fold. Return None if the result is not a
        map, or is the automatic choice, which may be several methods.
        """
        method = result.method
        if not isinstance(method, Method) or method.estimator is None or method.own_vote:
            return None
        m = min(n_components, self.protocol.max_components(method))
        estimator = clone(method.estimator).set_params(**result.params[0] | {"n_components": m})
        return Pipeline([*self.protocol.preprocessing(), ("map", estimator)])

    def __repr__(self) -> str:
        """Return the ranking as text, one line per method."""
        folds = "one split" if len(self.folds) == 1 else f"{len(self.folds)} folds"
        head = (
            f"Comparison by {self.score.name} ({len(self.protocol.labelled)} labelled rows, "
            f"{folds}):"
        )
        return "\n".join([head, *map(str, self.ranking()), *self.notes])

    def _repr_html_(self) -> str | None:
        """Return the ranking as a table, if pandas is there."""
        with suppress(ImportError):
            lines = [repr(self).partition("\n")[0], *self.notes]
            text = "".join(f"<p>{escape(line)}</p>" for line in lines)
            return f"{text}{self.to_frame().to_html()}"
        return None

    def ranking(self) -> list[MethodResult]:
        """Return all results, best first, followed by the references."""
        return [*self.results, *self.references]

    def to_frame(self) -> Any:
        """Return the ranking as a pandas DataFrame, one row per contestant, the references last.

        Needs pandas.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame() needs pandas: pip install pandas (or nearkin[app])"
            ) from error
        return pd.DataFrame(
            {
                "method": one.name,
                "kind": one.kind,
                **{name: values.mean() for name, values in one.scores.items()},
                "dimension": np.median(one.dimension),
                "fit_seconds": one.fit_seconds.mean(),
                "learned_rows": one.n_learned,
                "difference": one.difference,
                "low": one.interval[0],
                "high": one.interval[1],
                "p_value": one.p_value,
                "status": one.status,
            }
            for one in self.ranking()
        )


def _collected(
    name: str, method: Method | Reference | None, outcomes: Sequence[Any], protocol: Protocol
) -> MethodResult:
    """Return the result of a method from its outcomes on the folds."""
    if isinstance(method, Method):
        kind = "baseline" if name == RAW else "method"
    else:
        kind = "choice" if method is None else "reference"
    scores = {key: np.array([one.scores[key] for one in outcomes]) for key in outcomes[0].scores}
    predictions = [outcome.predicted for outcome in outcomes]
    if len(protocol.classes):
        predictions = [protocol.classes[predicted] for predicted in predictions]
    return MethodResult(
        name=name,
        sign=protocol.score.sign,
        kind=kind,
        method=method,
        score=scores[protocol.score.name],
        scores=scores,
        dimension=np.array([outcome.dimension for outcome in outcomes]),
        params=tuple(outcome.choice.params for outcome in outcomes),
        votes=tuple(outcome.choice.vote for outcome in outcomes),
        fit_seconds=np.array([outcome.seconds for outcome in outcomes]),
        n_learned=min(outcome.n_learned for outcome in outcomes),
        predictions=tuple(predictions),
        contributions=tuple(outcome.contributions for outcome in outcomes),
        warnings=dict(sum((outcome.warnings for outcome in outcomes), Counter())),
        doubted=protocol.n_chained > 0,
    )


def ranked(
    finished: Sequence[MethodResult], folds: Sequence[TrainTest], units: np.ndarray | None = None
) -> tuple[list[MethodResult], float]:
    """Return the results, best first, with tests against the raw features and the constant.

    An automatic choice that is the same method in every fold is not tested again: its p-value is
    that of the method. The second value is the detectable difference.
    """
    raw = next(result for result in finished if result.name == RAW)
    others = [result for result in finished if result is not raw]
    tests = {result.name: difference_test(result, raw, folds, units) for result in others}
    repeated = {one.name: next(iter(one.chosen)) for one in others if len(one.chosen) == 1}
    tested = {
        one.name: tests[one.name]
        for one in others
        if one.kind != "reference" and one.name not in repeated
    }
    p_values = dict(zip(tested, holm([test.p_value for test in tested.values()]), strict=True))
    p_values |= {choice: p_values.get(method, 1.0) for choice, method in repeated.items()}
    constants = (one for one in finished if one.kind == "reference" and one.name in CONSTANTS)
    constant = next(constants, None)
    # By the rows alone, even in few folds: where the features say nothing about the target, no fit
    # is better than the constant, so that chance in fitting cannot make a method look better.
    over_constant = {
        one.name: difference_test(one, constant, folds, units, paired_test_by_rows)
        for one in finished
        if constant is not None and one.kind != "reference"
    }
    results = [replace(raw, over_constant=over_constant.get(RAW))]
    for result in others:
        difference, interval = tests[result.name].difference, tests[result.name].interval()
        p_value = p_values.get(result.name, np.nan)
        results.append(
            replace(
                result,
                difference=difference,
                interval=interval,
                p_value=p_value,
                over_constant=over_constant.get(result.name),
            )
        )
    results.sort(key=lambda r: (-r.sign * round(r.score.mean(), 12), ORDER.index(r.kind)))
    least = [
        detectable_difference(test.standard_error, test.dof, len(tested))
        for test in tested.values()
    ]
    return results, float(np.median(least)) if least else np.nan


def difference_test(
    result: MethodResult,
    other: MethodResult,
    folds: Sequence[TrainTest],
    units: np.ndarray | None = None,
    test: Callable[..., PairedTest] = paired_test,
) -> PairedTest:
    """Return the test of the difference in score between two results."""
    n_train = float(np.mean([len(train) for train, _ in folds]))
    rows = [held_out for _, held_out in folds]
    return test(result.contributions, other.contributions, rows, n_train, units)
