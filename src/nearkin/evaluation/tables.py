"""From a table to the protocol of its comparison: what is refused, and which score ranks by default."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._labels import encode_labels, is_missing, known_labels
from .._messages import counted
from .._validation import as_rows, check_spread
from .features import filled
from .protocol import NO_ROWS, SPLIT_ROWS, Protocol
from .scores import SCORES
from .task import CLASSIFICATION, Task
from ..graphs import joined_groups
from .twins import chained_rows, n_with_twin, twin_groups

TWIN_QUERIES = 20_000  # rows up to which the near-twins of all are looked for; of more, of those with a label
RARE = 0.75  # share of the largest class above which AUC ranks by default
FEWEST_NUMBERS = 30  # of fewer a single one often has half of the sum of squares
HALF = 0.5  # of the sum of squares about the median: where 1 % of the numbers have more, they decide R²


def make_protocol(
    X: Any, y: Any, groups: Any, task: Task, unlabelled: Any, score: str | None, in_folds: bool, **rules: Any
) -> tuple[Protocol, int]:
    """Return the protocol of a table, and how many rows have a twin."""
    X, y, classes, groups = _check_table(X, y, groups, task, unlabelled)
    complete = filled(X)
    check_spread(complete)
    missing = y < 0 if task == CLASSIFICATION else np.isnan(y)
    labelled = np.flatnonzero(~missing)
    queries = None if len(y) <= TWIN_QUERIES else labelled
    if len(labelled) > SPLIT_ROWS and groups is None and not in_folds:
        queries = NO_ROWS  # `Protocol.one_split` looks for those of the held-out rows
    twins = twin_groups(complete, scale=rules["scale"], queries=queries)
    units = np.arange(len(y)) if rules["keep_twins"] else twins
    protocol = Protocol(
        X=X,
        y=y,
        classes=classes,
        units=units if groups is None else joined_groups(units, groups),
        task=task,
        score=SCORES[task.name][_score_name(score, task, y[~missing])],
        grouped=groups is not None,
        unlabelled=np.flatnonzero(missing),
        n_chained=chained_rows(complete, y, scale=rules["scale"]) if groups is None else 0,
        **rules,
    )
    return protocol, n_with_twin(twins)


def _score_name(score: str | None, task: Task, y: np.ndarray) -> str:
    """Return the name of the score.

    By default it does not depend on where a probability is cut in two, where one class is most of the rows, nor on a
    few huge numbers.
    """
    known = SCORES[task.name]
    if score is None:
        if task == CLASSIFICATION:
            return "auc" if task.sizes(y).max() > RARE * len(y) else "accuracy"
        return "mae" if few_decide(y) else "r2"
    if score not in known:
        raise ValueError(f"score must be one of {', '.join(map(repr, known))}, got {score!r}.")
    return score


def few_decide(y: np.ndarray) -> bool:
    """Say whether a few numbers decide R²: the farthest hundredth has more than half the squares about the median."""
    if len(y) < FEWEST_NUMBERS:
        return False
    squares = np.sort((y - np.median(y)) ** 2)
    n_few = max(1, len(y) // 100)
    return bool(squares[-n_few:].sum() > HALF * squares.sum())


def _check_table(
    X: Any, y: Any, groups: Any, task: Task, unlabelled: Any
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return rows, positions of their classes (or numbers), the classes and groups."""
    X = as_rows(X, missing=True)
    check_consistent_length(X, y, groups)
    y = column_or_1d(y)
    if unlabelled is not None:
        marked = np.array([same is True for same in (label == unlabelled for label in y.tolist())])  # not pandas' NA
        if not marked.any():
            raise ValueError(
                f"unlabelled is {unlabelled!r}, which y does not hold: leave it out, or give the value that it holds."
            )
        y = np.where(marked, None, y.astype(object))
    y, classes = task.check_target(y), np.array([])
    known = np.flatnonzero(~is_missing(y))
    if task == CLASSIFICATION:
        labels, y = known_labels(y, known), np.full(len(y), -1)
        classes, y[known] = encode_labels(labels)
    if groups is not None:
        groups = column_or_1d(groups)
        if is_missing(groups).any():
            raise ValueError("groups has missing values: give every row a group, if need be one of its own.")
        groups = np.unique(groups, return_inverse=True)[1]
        n_groups = len(np.unique(groups[known]))
        if n_groups < 3:
            among = " of labelled rows" if len(known) < len(y) else ""
            raise ValueError(
                f"groups holds {counted(n_groups, 'group')}{among}: at least 3 are needed to hold some out."
            )
    return X, y, classes, groups
