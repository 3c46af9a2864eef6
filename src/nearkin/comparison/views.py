"""Details of a comparison, all on held-out rows: dimensions, confusion matrices, 2-D maps."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import accuracy_score, confusion_matrix, r2_score
from sklearn.pipeline import Pipeline

from .._labels import known_labels
from ..estimators import TDistributedNCA
from .comparison import Progress
from .contestants import FAILURES, MapWithVote, contestant
from .methods import DIMENSIONS, Method, Params
from .protocol import NO_ROWS, Fold, TrainTest, first_repeat
from .results import Comparison, MethodResult
from .scores import CLASSIFICATION, Vote, named_task, nearest_voters, possible_votes

NEAREST = Vote(5)  # of the coordinates of a predictor with its own vote


@dataclass(frozen=True)
class HeldOutMap:
    """Held-out rows in the first dimensions of a map that was learned from other rows.

    Attributes
    ----------
    embedding : ndarray of shape (n, 1) or (n, 2)
    rows : ndarray of shape (n,)
        The indices of these rows.
    neighbors : ndarray of shape (n, k)
        Row indices of the nearest training rows in these coordinates, nearest first.
    score : float
        The score of the vote of these neighbours: the ranking score of a comparison, or, from
        `held_out_map`, accuracy or R².
    vote : Vote
    predictions : ndarray of shape (n,), default=None
        The predictions of this vote.
    unlabelled : ndarray of shape (n_u, 1) or (n_u, 2), default=None
        Coordinates of the unlabelled rows.
    full_score, full_dimension : float and int, default=None
        The score of the same vote in all dimensions of the space that the plane shows, and their
        number; None if the plane is that space.
    fitted : estimator, default=None
        The map, which can place other rows.
    """

    embedding: np.ndarray
    rows: np.ndarray
    neighbors: np.ndarray
    score: float
    vote: Vote
    predictions: np.ndarray | None = None
    unlabelled: np.ndarray | None = None
    full_score: float | None = None
    full_dimension: int | None = None
    fitted: Any = None


def score_by_dimension(
    comparison: Comparison, *, progress: Progress = lambda *_: None
) -> dict[str, dict[int, np.ndarray]]:
    """Return the held-out score of every method for each number of dimensions.

    Only the folds of the first repeat are used.

    Parameters
    ----------
    comparison : Comparison
    progress : callable
        Called as `progress("METHOD, dimensions", folds done, number of folds)`.

    Returns
    -------
    dict of method name to dict of dimension to ndarray of scores, one per fold
        Other parameters, and the vote, are those that each fold chose inside its training rows.
        Dimensions that some fold cannot have are left out. The raw features have a single dimension
        (the largest, if folds differ in the indicators of missing cells). "NCA tables", which has
        no dimension to choose, is left out.

    Notes
    -----
    Do not choose a dimension by these scores: it would be chosen on the held-out rows.
    """
    folds = [Fold(comparison.protocol, *rows) for rows in first_repeat(comparison.folds)]
    curves = {}
    for result in comparison.results:
        if not isinstance(result.method, Method) or result.method.own_vote:
            continue
        by_fold = []
        for number, fold in enumerate(folds):
            params, vote = result.params[number], result.votes[number]
            by_fold.append(_curve(fold, result.method, params, vote))
            progress(f"{result.name}, dimensions", number + 1, len(folds))
        if result.method.estimator is None:
            largest = max(max(of_fold) for of_fold in by_fold)
            by_fold = [{largest: score} for of_fold in by_fold for score in of_fold.values()]
        shared = sorted(set.intersection(*map(set, by_fold)))
        curves[result.name] = {m: np.array([scores[m] for scores in by_fold]) for m in shared}
    return curves


def _curve(fold: Fold, method: Method, params: Params, vote: Vote) -> dict[int, float]:
    """Return the score on a fold by dimension."""
    scores, settings = dict[int, float](), method.settings(fold.protocol.X.shape[1])
    # the first columns of one fit serve all dimensions
    if method.nested and method.estimator is not None:
        most = fold.protocol.max_components(method)
        settings = [params | {"n_components": min(most, max(DIMENSIONS), len(fold.rows) - 1)}]
    for setting in settings:
        # a fit may warn (see `MethodResult.warnings`), or fail for this dimension
        with warnings.catch_warnings(action="ignore"), suppress(*FAILURES):
            found = MapWithVote(method).fit(fold, setting)
            for m in method.cuts(found.Z.shape[1]):
                scores[m] = _score(fold, found.Z[:, :m], found.queries[:, :m], vote)
    return scores


def _score(fold: Fold, Z: Any, queries: Any, vote: Vote) -> float:
    """Return the score of a vote on a fold."""
    (prediction,) = fold.predictions(Z, queries, [vote])
    return float(fold.contributions(prediction).mean())


def confusion(result: MethodResult, comparison: Comparison) -> np.ndarray:
    """Return the number of held-out rows by true class (rows) and predicted class (columns).

    Classes are sorted. Rows are counted over all folds, without weights.
    """
    protocol = comparison.protocol
    if protocol.task != CLASSIFICATION:
        raise ValueError(
            f"confusion counts classes, and this is a {protocol.task.name}: look at "
            "result.predictions."
        )
    truth = np.concatenate([protocol.classes[protocol.y[test]] for _, test in comparison.folds])
    return confusion_matrix(truth, np.concatenate(result.predictions), labels=protocol.classes)


def first_map(comparison: Comparison, result: MethodResult) -> HeldOutMap:
    """Return the held-out rows of the first fold in two dimensions of a method, with its vote.

    The map is learned from the training rows of this fold. For a predictor for tables, the result
    is that of `first_picture`.
    """
    fold, method, params = _on_first_fold(comparison, result)
    if method.own_vote:
        return first_picture(comparison, result)
    if method.estimator is not None:
        params |= {"n_components": min(2, comparison.protocol.max_components(method))}
    with warnings.catch_warnings(action="ignore"):
        found = MapWithVote(method).fit(fold, params)
    Z, queries = (np.asarray(rows)[:, :2] for rows in (found.Z, found.queries))
    return _seen(fold, Z, queries, result.votes[0])


def first_picture(comparison: Comparison, result: MethodResult) -> HeldOutMap:
    """Return the held-out rows of the first fold in a plane learned by `TDistributedNCA`.

    The plane is learned from the rows in the space of a method, and 5 neighbours vote in it. The
    score of the method itself, in all dimensions, is included.
    """
    fold, method, params = _on_first_fold(comparison, result)
    is_classes, protocol = comparison.task == CLASSIFICATION, comparison.protocol
    with warnings.catch_warnings(action="ignore"):
        if not method.own_vote:
            found = MapWithVote(method).fit(fold, params)
            H, queries = found.Z, found.queries
        elif (space := comparison.found[0][method.name].space) is not None:
            H, queries = space
        else:
            predictor, _ = contestant(method).fit(fold)
            H, queries = (
                predictor.transform(protocol.X[rows]) for rows in (fold.rows, fold.queries)
            )
        plane = TDistributedNCA(
            estimator="passthrough",
            target="classes" if is_classes else "continuous",
            random_state=protocol.random_state,
        ).fit(H, fold.labels)
    seen = _seen(fold, plane.transform(H), plane.transform(queries), NEAREST)
    full_score = float(result.scores[comparison.score.name][0])
    return replace(seen, full_score=full_score, full_dimension=H.shape[1])


def _on_first_fold(
    comparison: Comparison, result: MethodResult
) -> tuple[Fold, Method, dict[str, Any]]:
    """Return the first fold, the method of a result or the one chosen there, and its parameters."""
    method, params = result.method, dict(result.params[0])
    if result.kind == "choice":
        method = _finished(comparison, params.pop("method"))
    if not isinstance(method, Method):
        raise ValueError(
            f"{result.name} is no map, or did not finish every fold: take another result."
        )
    return Fold(comparison.protocol, *comparison.folds[0]), method, params


def _seen(fold: Fold, Z: np.ndarray, queries: np.ndarray, vote: Vote) -> HeldOutMap:
    """Return the held-out rows of a fold in some coordinates, with a vote of the training rows."""
    (vote,) = possible_votes([vote], len(fold.rows))
    near = nearest_voters(Z, queries, vote.n_neighbors)[1]
    score = _score(fold, Z, queries, vote)
    return HeldOutMap(queries, fold.queries, fold.rows[near], score, vote)


def _finished(comparison: Comparison, name: str) -> Any:
    """Return a method that finished every fold, or None."""
    return next((result.method for result in comparison.results if result.name == name), None)


def chosen_predictor(comparison: Comparison) -> Any:
    """Return the predictor that was chosen, fitted to all labelled rows, or None if a map was.

    It is the last step of the winner; for a comparison without one, the choice of most folds.
    """
    if comparison.winner is not None:
        last = comparison.winner[-1]
        return last if hasattr(last, "fit_encoded") else None
    ((usual, _),) = comparison.choice.chosen.most_common(1)
    method = _finished(comparison, usual)
    if method is None or not method.own_vote:
        return None
    fold = Fold(comparison.protocol, comparison.protocol.labelled)
    with warnings.catch_warnings(action="ignore"):
        return contestant(method).pipeline(fold)[0][-1]


def held_out_map(
    mapping: Any,
    X: Any,
    y: Any,
    fold: TrainTest,
    n_neighbors: int,
    *,
    task: str = "classification",
    unlabelled: np.ndarray = NO_ROWS,
) -> HeldOutMap:
    """Learn a clone of `mapping` on a fold, and return its held-out rows in two dimensions.

    `unlabelled` are indices of unlabelled rows to learn from, such as those of `Protocol.beside`.
    If there are fewer training rows than `n_neighbors`, all vote.
    """
    (train, test), target, y = fold, named_task(task), np.asarray(y)
    X = getattr(X, "iloc", X)  # so that data frames and arrays are indexed alike
    labels, truth = known_labels(y, train), known_labels(y, test)
    rows, targets, none = np.append(train, unlabelled), labels, np.nan
    if len(unlabelled):
        if target == CLASSIFICATION:
            targets, none = np.unique(labels, return_inverse=True)[1], -1
        targets = np.append(targets, np.full(len(unlabelled), none))
    fitted = clone(mapping).fit(X[rows], targets)
    (Z, space), (queries, queries_in_space) = (_plane_and_space(fitted, X[some]) for some in fold)
    (vote,) = possible_votes([Vote(n_neighbors)], len(train))
    voters = vote.estimator(target).fit(Z, labels)
    predictions = voters.predict(queries)
    measure = accuracy_score if target == CLASSIFICATION else r2_score
    seen = HeldOutMap(
        embedding=queries,
        rows=test,
        neighbors=train[voters.kneighbors(queries, return_distance=False)],
        score=float(measure(truth, predictions)),
        vote=vote,
        predictions=predictions,
        unlabelled=np.asarray(fitted.transform(X[unlabelled]))[:, :2] if len(unlabelled) else None,
        fitted=fitted,
    )
    if space.shape[1] == Z.shape[1]:
        return seen
    full_score = vote.estimator(target).fit(space, labels).score(queries_in_space, truth)
    return replace(seen, full_score=float(full_score), full_dimension=space.shape[1])


def _plane_and_space(fitted: Any, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return rows in the plane of a fitted map, (n, 1) or (n, 2), and in its space, (n, m).

    The plane is the first two columns of `transform(X)`. The space is `space(X)` of the last step
    if it has this method, i.e. if the map first learns a space and then a plane that shows it; else
    it is all columns.
    """
    Z, last = np.asarray(fitted.transform(X)), fitted
    while isinstance(last, Pipeline):
        X, last = last[:-1].transform(X) if len(last) > 1 else X, last[-1]
    return Z[:, :2], np.asarray(last.space(X)) if hasattr(last, "space") else Z
