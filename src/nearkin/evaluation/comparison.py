"""`compare`: from a table to a ranking and a fitted winner."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._messages import counted, listed, quoted, shown
from .._validation import (
    check_integer,
    is_missing,
    merged_labels,
    refuse_foreign,
    rows_of,
    weighted_rows,
)
from ..tables import RejectColumn, TableEncoder, features_of, target_numbers
from ..tables.gaps import filled_note
from .contestants import Choice, automatic, contestant
from .methods import (
    RAW,
    Method,
    Reference,
    all_methods,
    constant_reference,
    default_methods,
    default_references,
)
from .protocol import Fold, Protocol, TrainTest, few_decide, huge_numbers, make_protocol
from .results import Comparison, Doubt
from .scores import BY_CLASS, CLASSIFICATION, VOTES, Task, Vote, named_task
from .work import Findings, Job, Progress, Run, progress_bar

# A data frame with text, dates and gaps, whose target may be named, as numbers, labels and groups.


@dataclass(frozen=True)
class EncodedTable:
    """Rows, targets and groups as arrays.

    Attributes
    ----------
    X, y, groups : array
    encoder : TableEncoder or None
        Of the rows, where they need one.
    remarks : tuple of str
    """

    X: Any
    y: Any
    groups: Any
    encoder: TableEncoder | None = None
    remarks: tuple[str, ...] = ()


def from_frame(
    X: Any, y: Any, groups: Any, task: Task, weights: np.ndarray | None = None
) -> EncodedTable:
    """Return a table as arrays.

    Rows need an encoder if the target is a named column, and where columns of a data frame hold
    other things than numbers.
    """
    refuse_foreign(X)
    named = {what: name for what, name in (("y", y), ("groups", groups)) if isinstance(name, str)}
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
        for what, name in named.items():
            raise TypeError(
                f"{what} names a column, {shown(name)}, but X is no data frame: give {what} as an "
                "array."
            )
        return EncodedTable(X, y, groups)
    labels = {"y": y, "groups": groups}
    labels |= {what: _column(frame, what, name) for what, name in named.items()}
    features, remarks = frame.drop(columns=list(named.values())), list[str]()
    if "y" in named:
        labels["y"], remarks = _target(labels["y"], y, task)
    elif all(_is_numeric(dtype) for dtype in features.dtypes):
        return EncodedTable(features if named else X, **labels)
    encoder = TableEncoder(missing="keep")
    Z = encoder.fit(features, sample_weight=weights).transform(features)
    filled = filled_note(Z, encoder.get_feature_names_out())
    remarks = [*encoder.remarks_, *filled, *remarks]
    return EncodedTable(Z, **labels, encoder=encoder, remarks=tuple(remarks))


def _column(frame: Any, what: str, name: str) -> np.ndarray:
    """Return a column of labels."""
    names = frame.columns.tolist()
    if names.count(name) != 1:
        found = f"X has {names.count(name) or 'no'} columns {shown(name)}"
        raise ValueError(f"{found}: {what} must be the name of one, such as {quoted(names)}.")
    column = frame[name]
    if getattr(column.dtype, "kind", "O") in "mM":
        raise ValueError(
            f"{what} names a column of dates or times, {shown(name)}: give one of classes or "
            "numbers."
        )
    return column.to_numpy(dtype=None if _is_numeric(column.dtype) else object)


def _is_numeric(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _target(y: np.ndarray, name: str, task: Task) -> tuple[np.ndarray, list[str]]:
    """Return labels with their spellings merged, or numbers, and remarks on either.

    Numbers may be text in any style that the encoder reads.
    """
    y, several = merged_labels(y)
    if task == CLASSIFICATION:
        # whole numbers, which pandas keeps as decimals beside gaps
        if y.dtype.kind == "f" and (y[~np.isnan(y)] % 1 == 0).all():
            whole = [None if np.isnan(label) else int(label) for label in y.tolist()]
            y = np.array(whole, dtype=object)
        merged = [" and ".join(map(repr, spellings)) for spellings in several.values()]
        return y, [f"{name}: {spellings} are one class" for spellings in merged]
    if y.dtype.kind in "OU":
        numbers, known = np.full(len(y), np.nan), ~is_missing(y)
        with suppress(RejectColumn):
            numbers[known], remarks = target_numbers(name, y[known])
            return numbers, remarks
    return y, []


# the key of what is done on all rows, and what progress is called with
FINAL_CHOICE = "chosen on all rows"
MOST_NAMED = 5  # rows with a huge number


def compare(
    X: Any,
    y: Any,
    *,
    task: str = "classification",
    groups: Any = None,
    sample_weight: Any = None,
    methods: Sequence[Method] | None = None,
    references: Sequence[Reference] | None = None,
    score: str | None = None,
    n_neighbors: int | None = None,
    n_splits: int | None = None,
    n_repeats: int | None = None,
    scale: bool = True,
    keep_twins: bool = False,
    choice_rows: int | None = None,
    refit: bool = True,
    time_budget: float | None = None,
    random_state: int = 0,
    unlabelled: Any = None,
    encoder: TableEncoder | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool = False,
) -> Comparison:
    """Compare learned metrics by the vote of the nearest rows on held-out rows.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n, p)
        Numbers, NaN where a cell of a dense array is missing. A data frame (pandas, polars or
        pyarrow) may hold text and dates: it is encoded by a `TableEncoder`, as it is whenever y is
        a name.
    y : array of shape (n,), or str
        The target, or the name of its column in X: class labels, each at least twice; or numbers,
        with `task="regression"`. Rows may have none: None or NaN. -1 is a class like any other, see
        `unlabelled`. Labels of a named column are stripped, "1.0" is "1"; its numbers may be
        text that `TableEncoder` reads as numbers, such as "12 kg".
    task : {"classification", "regression"}, default="classification"
        What is predicted: classes by the vote of the nearest rows, on stratified folds; numbers by
        their mean.
    groups : array of shape (n,) or str, default=None
        Groups, or the name of their column in X. Rows of one group are never on both sides of a
        split.
    sample_weight : array of shape (n,), default=None
        At least 0: a row of weight 2 counts as two equal rows in fits and in scores, and so in the
        tests; one of weight 0 is absent, also from the numbers of rows in the result, which are
        places in `np.flatnonzero(sample_weight)`. Only the ratios matter.
    methods : sequence of Method, default=None
        None takes `default_methods(task)`, which answer first, semi-supervised ones among them
        where some rows have no label; `extend` adds others, such as `all_methods(task)`. The raw
        features are always compared.
    references : sequence of Reference, default=None
        Predictors of another kind, ranked apart; None takes `default_references(task)`. The
        constant among these is always computed: no method is called better that is not shown to
        beat it.
    score : str, default=None
        What ranks and chooses: "accuracy", "balanced_accuracy", "f1", "auc" or "log_loss"; of
        numbers "r2", "mae" or "rank_correlation". None takes accuracy, but auc where the largest
        class has more than 75 % of the rows; of numbers r2, but mae where a few of them decide it:
        see `few_decide`.
    n_neighbors : int, default=None
        k of a hard vote. None leaves it, and whether the vote is soft, to the inner folds: see
        `VOTES`.
    n_splits, n_repeats : int, default=None
        Folds, and how often they are drawn anew. None takes 5 folds, repeated until about 1,500
        rows have been held out (at most 3 times); of more than 20,000 rows a single split, which
        holds out 5,000. Folds are reduced to the size of the smallest class (of numbers, to half
        the rows): see `Comparison.reduced`. Of fewer than 5 folds in all, only a large difference
        is called "better" or "worse" (see `paired_test`): they hardly tell luck from merit.
    scale : bool, default=True
        Whether to standardize the features on the training rows (sparse X: divide by the deviation
        only).
    keep_twins : bool, default=False
        Whether identical rows and near-twins (`twin_groups`) are split like others; else they stay
        on one side.
    choice_rows : int, default=None
        Training rows on which dimension, parameters and vote are chosen, at most. None takes 2,000;
        of more than 131 features those with 2^18 entries, but at least 700; at most 2,000.
    refit : bool, default=True
        Whether the automatic choice is made again on all rows and fitted to them:
        `Comparison.winner`. A predictor for tables that every fold has chosen is not chosen again:
        it has no settings.
    time_budget : float, default=None
        Seconds in all, after which what is finished is ranked: at least one fold, of a single split
        the raw features and one method. None for any; then the answer depends on the rows and the
        seed alone.
    random_state : int, default=0
        Seed of all that is drawn.
    unlabelled : label, default=None
        A value of y that means "no label", as None and NaN do: -1, for labels as the
        semi-supervised estimators take them.
    encoder : TableEncoder, default=None
        What X was encoded by, with `missing="keep"`, where it is an array: it tells which features
        are of one column, and the winner begins with it. A data frame is encoded here.
    n_jobs : int, default=None
        Processes, each of which works on a fold with one thread; None takes one a core, as -1 does.
        Small tables take one process.
    progress : bool or callable, default=False
        True shows a bar (needs rich). A callable is called as `progress(what, done, total)`, in
        fits of a method on a fold.

    Returns
    -------
    Comparison
        After a KeyboardInterrupt it holds what was finished; with nothing finished the interrupt is
        raised again.

    Notes
    -----
    In every fold, dimension, parameters and vote of a method are chosen on three inner folds of the
    training rows, of many on a sample of 2,000. The automatic choice also chooses the method so; it
    is a contestant like the others: the predictor for tables, unless the paired test on the rows
    that the inner folds hold out shows another method to be better. A map is learned from all
    training rows, or, where these are many, from a sample (`Method.most_rows`); all vote.

    Differences from the raw features are tested by `paired_test`, with Holm's correction for the
    number of methods. "better" is what is shown to be better than the raw features and than a
    constant prediction: on noise many a method does better than raw k-NN. A single split tests the
    fitted models: it shows which of them is better on new rows, not which method would be, if all
    were fitted again to other rows (`PairedTest.of_fitted_models`).

    Where some rows have no label, the folds are cut over the others: only these are held out, and
    only these vote. Methods that can (`Method.unlabelled`: PCA, LPP, DP, SDA, TDL) learn from the
    training rows and all rows without a label, their scaler too; with groups, not from those of a
    group that is held out. The others are ranked as if the rows without a label were not there.

    Missing cells are filled with the median of the training rows after scaling, and indicators are
    appended, 1 where the cell was missing and else 0: for columns that at least 5 of these rows
    lack and 5 have, of columns with the same gaps for one, and at most one for every 10 rows
    (`nearkin.tables.indicated_features`).

    With `sample_weight`, what has weights in its `fit` is fitted with them, of a pipeline every
    such step; `Comparison.unweighted` names the others. The k nearest rows of a vote are k
    distinct rows, which count once each. Folds, samples and degrees of freedom of the tests count
    rows.

    "NCA tables" (`NCAClassifier`, `NCARegressor`) is no map for the vote of the k nearest, but a
    predictor with a vote of its own, in the folds of three members. It takes the table unscaled and
    with its gaps, and chooses penalty, temperature and distance in `fit`. Its members are learned
    on the inner folds, and their votes for the rows that these hold out score it for the automatic
    choice.

    Costs, for every method and fold, 3 fits for each of its settings and one more; for a predictor
    one.
    """
    start = time.perf_counter()
    deadline = np.inf if time_budget is None else time.time() + time_budget
    for name, value, fewest in (
        ("n_splits", n_splits, 2),
        ("n_repeats", n_repeats, 1),
        ("n_neighbors", n_neighbors, 1),
        ("choice_rows", choice_rows, 10),
    ):
        if value is not None:
            check_integer(value, name, fewest)
    check_integer(random_state, "random_state", 0, 2**32 - 1)
    kind = named_task(task)
    X, y, groups, weights = _present(X, y, groups, sample_weight)
    table = from_frame(X, y, groups, kind, weights)
    encoder = table.encoder or encoder
    protocol = make_protocol(
        table.X,
        table.y,
        table.groups,
        kind,
        unlabelled=unlabelled,
        weights=weights,
        score=score,
        in_folds=n_splits is not None or n_repeats is not None,
        votes=VOTES if n_neighbors is None else (Vote(n_neighbors),),
        scale=scale,
        keep_twins=keep_twins,
        choice_rows=choice_rows,
        random_state=random_state,
        features=None if encoder is None else features_of(encoder),
    )
    if methods is None:
        methods = default_methods(task, **_kinds(protocol))
    if references is None:
        sizes = protocol.X.shape[1], max(1, len(protocol.classes))
        references = default_references(task, *sizes, protocol.score.name)
    methods = [Method(RAW, None), *(method for method in methods if method.name != RAW)]
    constant = constant_reference(task, protocol.score.name)
    references = [one for one in references if one.name != constant.name]
    folds, reduced = protocol.folds(n_splits, n_repeats)
    if n_neighbors is not None and (n_rows := protocol.fewest_rows(folds)) < n_neighbors:
        reduced["n_neighbors"] = (n_neighbors, f"a fold leaves {n_rows} rows to learn from")
        protocol = replace(protocol, votes=(Vote(n_rows),))
    # a predictor for tables is fitted to all rows meanwhile: very likely it will be chosen
    likely = [method for method in methods if method.own_vote]
    if not refit or time_budget is not None or len(likely) != 1:
        likely = []
    # the constant costs nothing, and comes early, as the statuses of the methods rest on it
    contestants: list[Method | Reference] = [methods[0], constant, *methods[1:], *references]
    with progress_bar(progress) as show:
        run = Run(n_jobs, deadline, show)
        findings = run.do(
            protocol,
            _jobs(folds, contestants),
            [Job(FINAL_CHOICE, "pipeline", (protocol.labelled,), likely)],
        )
        complete = findings.complete(methods)
        if not complete:
            raise KeyboardInterrupt
        comparison = Comparison(
            folds=tuple(folds[number] for number in complete),
            n_planned=len(folds),
            reduced=reduced,
            protocol=protocol,
            encoder=encoder,
            remarks=table.remarks,
            doubts=tuple(_doubts(protocol)),
        )
        comparison = comparison.with_found([*complete.values()], contestants)
        comparison = _ended(comparison, findings, run, refit)
    return replace(comparison, seconds=time.perf_counter() - start)


def _present(
    X: Any, y: Any, groups: Any, sample_weight: Any
) -> tuple[Any, Any, Any, np.ndarray | None]:
    """Return the rows whose weight is not 0, with their targets, groups and weights; what is named
    stays a name.
    """
    if sample_weight is None:
        return X, y, groups, None
    refuse_foreign(X)
    given = {"y": y, "groups": groups}
    arrays = {what: of for what, of in given.items() if not (of is None or isinstance(of, str))}
    check_consistent_length(X, *arrays.values())
    X, _, weights, kept = weighted_rows(X, None, sample_weight)
    given |= {what: rows_of(of, kept) for what, of in arrays.items()}
    return X, given["y"], given["groups"], weights


def extend(
    comparison: Comparison,
    methods: Sequence[Method] | None = None,
    *,
    refit: bool = True,
    time_budget: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | bool = False,
) -> Comparison:
    """Compare further methods on the folds of a comparison.

    Parameters
    ----------
    comparison : Comparison
    methods : sequence of Method, default=None
        Those that it has are not run again; None takes `all_methods`. Of none, `[]`, the automatic
        choice is fitted where it was not.
    refit, time_budget, n_jobs, progress
        See `compare`.

    Returns
    -------
    Comparison
        With the tests corrected for all methods, and the automatic choice among all. After a
        KeyboardInterrupt, with the methods that were finished on every fold; with none `comparison`
        as it is, but for `interrupted`.
    """
    start, protocol = time.perf_counter(), comparison.protocol
    if methods is None:
        methods = all_methods(protocol.task.name, **_kinds(protocol))
    known = {one.name for one in comparison.contestants}
    added = [method for method in methods if method.name not in known]
    deadline = np.inf if time_budget is None else time.time() + time_budget
    with progress_bar(progress) as show:
        run = Run(n_jobs, deadline, show)
        findings = run.do(protocol, _jobs(comparison.folds, added))
        later = [findings.found.get(number, {}) for number in range(len(comparison.folds))]
        finished = set.intersection(*map(set, later))
        found = [
            before | {name: one for name, one in of_fold.items() if name in finished}
            for before, of_fold in zip(comparison.found, later, strict=True)
        ]
        contestants = [*comparison.contestants, *added]
        contestants.sort(key=lambda one: isinstance(one, Reference))  # these come last
        extended = _ended(comparison.with_found(found, contestants), findings, run, refit)
    return replace(extended, seconds=comparison.seconds + time.perf_counter() - start)


def _jobs(folds: Sequence[TrainTest], contestants: Sequence[Method | Reference]) -> list[Job]:
    """Return the evaluation of contestants on every fold."""
    return [Job(number, "evaluate", fold, contestants) for number, fold in enumerate(folds)]


def _kinds(protocol: Protocol) -> dict[str, bool]:
    """Return which methods suit the table beside those that suit every table."""
    return {
        "semi_supervised": len(protocol.unlabelled) > 0,
        "balanced": protocol.score.name in BY_CLASS,
    }


def _doubts(protocol: Protocol) -> Iterator[Doubt]:
    """Yield why rows that were held out may have been known too well."""
    if protocol.keep_twins and protocol.n_twins:
        yield Doubt(
            "twins",
            "twins were split like other rows, so that some were predicted from their own twin. "
            "Expect less of new rows.",
        )
    if protocol.task != CLASSIFICATION and few_decide(protocol.y[protocol.labelled]):
        yield huge_doubt(protocol.y)
    if protocol.n_chained:
        about = "" if protocol.n_chained == len(protocol.labelled) else "about "
        yield Doubt(
            "chains",
            f"{about}{protocol.n_chained:,} rows hang together in groups of more than ten: near "
            "copies that share their target, as the rows around them do not. Give groups "
            "(--groups): without these no method is called better.",
        )


def huge_doubt(
    y: np.ndarray, number_of: Callable[[np.ndarray], np.ndarray] = lambda rows: rows
) -> Doubt:
    """Return the doubt that a few huge numbers decide R²; NaN is none.

    Parameters
    ----------
    y : ndarray of shape (n,)
    number_of : callable
        Returns the numbers by which rows are named, of their positions.
    """
    known = np.flatnonzero(~np.isnan(y))
    values, huge = y[known], huge_numbers(y[known])
    squares, median = (values - np.median(values)) ** 2, np.median(values)
    share = squares[huge].sum() / squares.sum()
    named = [
        f"row {number} ({value:.6g})"
        for number, value in zip(
            number_of(known[huge]).tolist(), values[huge].tolist(), strict=True
        )
    ]
    times, ends = "", np.sort(values[huge])[[0, -1]] / (median or np.nan)
    # of numbers of both signs the median says nothing of what is usual
    if values.min() >= 0 and ends[0] >= 2:
        low, high = (f"{end:,.0f}" for end in ends)
        times = f", {low}{f' to {high}' * (low != high)} times the median,"
    hold, these, are = "hold", "these", "are typing errors, correct or drop them: they are"
    if len(huge) == 1:
        hold, these, are = "holds", "this", "is a typing error, correct or drop it: it is"
    return Doubt(
        "huge",
        f"{counted(len(huge), 'number')} of {len(values):,}{times} {hold} {share:.0%} of the "
        f"squares about the median ({median:.6g}): {listed(named, MOST_NAMED)}. If {these} {are} "
        f"learned from, too, and {'spoils' if len(huge) == 1 else 'spoil'} predictions.",
    )


def _ended(comparison: Comparison, findings: Findings, run: Run, refit: bool) -> Comparison:
    """Return a comparison that says how it ended: by an interrupt, or else for which methods there
    was no time left; where that is requested with the automatic choice, fitted to all rows.
    """
    if findings.interrupted:
        return replace(comparison, interrupted=True)
    known = {result.name for result in comparison.results} | comparison.skipped.keys()
    late = [name for name in comparison.methods if name not in known]
    skipped = comparison.skipped | dict.fromkeys(late, "the time budget ended before its turn")
    comparison = replace(comparison, skipped=skipped)
    if not refit:
        return comparison
    try:
        method, choice = _final_choice(comparison, run)
        already = findings.of(FINAL_CHOICE)
        if method.name in already:
            winner, rows = already[method.name]
        else:
            run.progress(f"fitting {method.name}", 0, 1)
            fold = Fold(comparison.protocol, comparison.protocol.labelled)
            # `MethodResult.warnings` holds those of the folds
            with warnings.catch_warnings(action="ignore"):
                winner, rows = contestant(method).pipeline(fold, choice)
    except KeyboardInterrupt:
        return replace(comparison, interrupted=True)
    if comparison.encoder is not None:
        winner.steps.insert(0, ("encode", comparison.encoder))
    return replace(comparison, winner=winner, winner_method=method.name, winner_rows=rows)


def _final_choice(comparison: Comparison, run: Run) -> tuple[Method, Choice]:
    """Return the method, with its settings, that is fitted to all rows.

    It is chosen on all rows as in the folds: but a single split has chosen already, and so have
    folds that all took the same predictor for tables, which has no settings. Where time ran out, it
    is what most folds chose.
    """
    protocol = comparison.protocol
    methods = [one for one in comparison.contestants if isinstance(one, Method)]
    by_name = {method.name: method for method in methods}
    names = [params["method"] for params in comparison.choice.params]
    usual = Counter(names).most_common(1)[0][0]
    taken = by_name[usual], comparison.found[names.index(usual)][usual].choice
    is_settled = set(names) == {usual} and by_name[usual].own_vote
    if len(comparison.folds) == 1 or is_settled or time.time() >= run.deadline:
        return taken
    show = run.progress
    quiet = replace(run, progress=lambda what, done, total: show(FINAL_CHOICE, done, total))
    methods = [method for method in methods if method.name not in comparison.skipped]
    job = Job(FINAL_CHOICE, "choose", (protocol.labelled,), methods)
    findings = quiet.do(protocol, [job])
    if findings.interrupted:
        raise KeyboardInterrupt
    choices = findings.of(FINAL_CHOICE)
    if not choices or time.time() >= run.deadline:
        return taken
    name = automatic(choices, methods, protocol, protocol.labelled)
    return by_name[name], choices[name]
