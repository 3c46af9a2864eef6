"""NCA's penalty by held-out rows: descents on inner folds, each from the map of the smaller penalty before it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from .._callbacks import FitTask
from ..descent import Status
from ..neighbors import EXACT
from ..objectives.pair_weights import PairWeights
from ._folds import inner_folds, sample_rows
from .nca_problem import NCAProblem, NCARows, check_parameters
from .soft_neighbors import SoftNeighborsRegressor

ALPHAS = (0.015, 0.05, 0.15, 0.5)  # ascending: dimensions that a large penalty has shrunk to nothing do not come back
USUAL = 0.15
N_FOLDS, TOL, PATH_ITER = 3, 3e-3, 50  # a map that is only to be compared with others need not be final


def n_iterations(nca: Any) -> int | None:
    """Check the parameters; return how many iterations a fit reports at most, the descents that choose alpha included.

    None where the rows decide.
    """
    most = check_parameters(nca)
    return most if most is None or nca.alpha != "cv" else most + N_FOLDS * len(ALPHAS)


def choose_alpha(
    nca: Any, X: Any, pair_weights: PairWeights, m: int, task: FitTask, *, within_span: bool
) -> tuple[float, dict[float, float]]:
    """Return the penalty, and the mean held-out score of the soft vote for every penalty.

    The score of a row is 1 where its label is right, else 0; of a real-valued target minus the absolute error, on which
    an outlier has little effect. Nothing is drawn. Every descent is reported as an iteration of the fit.
    """
    labels = np.zeros(X.shape[0], dtype=int) if pair_weights.codes is None else pair_weights.codes
    chosen = sample_rows(X, labels)
    X, labels, pair_weights = X[chosen], labels[chosen], pair_weights.subset(chosen)
    targets = np.eye(labels.max() + 1)[labels] if pair_weights.codes is not None else pair_weights.targets[:, None]
    scores = []
    for train, test in inner_folds(X, labels, N_FOLDS):
        rows = NCARows.of(X[train], within_span=within_span, pair_weights=pair_weights.subset(train), search=EXACT)
        of_fold = []
        for B in _path(nca, rows, min(m, len(train) - 1)):
            A = rows.components(B)
            Z = X @ A.T
            votes = SoftNeighborsRegressor().fit(Z[train], targets[train]).predict(Z[test])
            right = votes.argmax(axis=1) == labels[test]
            task.iteration(partial(dict, components_=A))
            of_fold.append(right if pair_weights.codes is not None else -np.abs(votes - targets[test])[:, 0])
        scores.append(np.transpose(of_fold))
    of_rows = np.concatenate(scores).astype(np.float64)
    return best_alpha(of_rows), dict(zip(ALPHAS, of_rows.mean(axis=0).tolist(), strict=True))


def _path(nca: Any, rows: NCARows, m: int) -> Iterator[np.ndarray]:
    """Yield the map for every penalty; each descent begins where the one before has ended."""
    nca = copy(nca)
    nca.tol, nca.max_iter, nca.warm_start, nca.alpha = TOL, PATH_ITER, False, ALPHAS[0]
    problem = NCAProblem(nca, rows, m, np.random.RandomState(0))
    B = next(problem.inits())
    for nca.alpha in ALPHAS:
        found = problem.descend(B, None)
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        B = found.x
        yield B


def best_alpha(scores: np.ndarray) -> float:
    """Return the penalty nearest to 0.15, the larger of two, of those at most one standard error behind the best.

    It is the error of the mean difference of the scores (rows, penalties): without evidence the usual penalty stays.
    """
    means = scores.mean(axis=0)
    behind = scores[:, [means.argmax()]] - scores
    level = behind.mean(axis=0) <= behind.std(axis=0, ddof=1) / len(scores) ** 0.5 + 1e-12
    near = -np.abs(np.log(np.array(ALPHAS) / USUAL)).round(6)
    return max((ok, distance, alpha) for ok, distance, alpha in zip(level, near, ALPHAS, strict=True))[2]
