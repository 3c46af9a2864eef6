"""Transductive Distance Learning (Li, Yang and Wang, ICML 2007): costs that are not linear in the
squared distances, which eq. 1 allows and the paper's discussion leaves to future work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse import csr_array, diags_array
from sklearn.preprocessing import minmax_scale

from nearkin.estimators import TDL
from nearkin.estimators.tdl import label_costs
from nearkin.statistics import corrected_resampled_t_test, holm

from ..data import MissingDataError
from ..experiment import Experiment, Run, table
from ..splits import Split, codes_of, some_labels
from .experiments import TABLE_1

Slope = Callable[[np.ndarray], np.ndarray]

# The derivative of a concave g(c), c the cost of a row relative to the mean |c| by the paper's.
SLOPES: dict[str, Slope] = {
    "clipped": lambda c: (c < 0).astype(np.float64),
    "softly clipped": lambda c: np.exp(-np.maximum(c, 0)),
    "1 - exp(-c)": lambda c: np.exp(np.minimum(-c, LARGEST)),
    "1 - exp(-c / 5)": lambda c: np.exp(np.minimum(-c / 5, LARGEST)),
}
SQUARED = "squared"
LOSSES = (SQUARED, *SLOPES)
MAX_STEPS = 30
LARGEST = 20.0  # exponent: rows far from other classes may count for ever more
LABELLED, WRONG = 0.1, 0.2  # shares of the rows, and of their labels


def row_costs(A: csr_array, V: np.ndarray) -> np.ndarray:
    """Return the cost of every row, sum_j a_ij ||v_i - v_j||^2."""
    A = A.tocoo()
    return np.bincount(A.row, A.data * np.sum((V[A.row] - V[A.col]) ** 2, axis=1), minlength=len(V))


def majorized(X: np.ndarray, few: np.ndarray, m: int, slope: Slope) -> TDL:
    """Minimize the sum of g(c_i) and the penalty of `TDL(m, reg=1)`.

    A concave g lies below its tangent at the last c: weighted with g'(c_i), the costs are linear in
    the squared distances again, and the eigenvectors lower the objective. From Laplacian
    Eigenmaps, until the weights stay as they are.
    """
    A = label_costs(X, few, 20)
    linear = TDL(m, reg=1.0).fit(X, few)
    tdl = TDL(m, reg=np.inf).fit(X, few)
    unit = np.abs(row_costs(A, linear.embedding_)[few >= 0]).mean()
    weights = np.zeros(len(X))
    for _ in range(MAX_STEPS):
        last, weights = weights, slope(row_costs(A, tdl.embedding_) / unit)
        if np.allclose(weights, last, rtol=1e-3):
            break
        weighted = diags_array(weights) @ A
        tdl = TDL(m, reg=1.0, reg_unit=linear.reg_unit_)
        tdl.fit(X, few, cost=(weighted + weighted.T) / 2)
    return tdl


def with_wrong_labels(few: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """Return labels of which a random share of the known ones is that of another class."""
    given, n_classes = few.copy(), few.max() + 1
    known = np.flatnonzero(few >= 0)
    wrong = rng.permutation(known)[: round(share * len(known))]
    given[wrong] = (few[wrong] + rng.integers(1, n_classes, len(wrong))) % n_classes
    return given


def accuracies(X: np.ndarray, y: np.ndarray, few: np.ndarray, m: int) -> dict[str, float]:
    """Return the percentage of unlabelled rows that the labels vote right, by loss."""
    fits = {SQUARED: TDL(m, reg=1.0).fit(X, few)}
    fits |= {name: majorized(X, few, m, slope) for name, slope in SLOPES.items()}
    known = few >= 0
    found = {}
    for name, tdl in fits.items():
        Z = tdl.voting_embedding_
        found[name] = Split(Z[known], few[known], Z[~known], y[~known]).accuracy(5)
    return found


def losses(run: Run) -> Iterator[str]:
    """Every loss on UCI's sets, with labels that are right, and with some that are wrong."""
    n_splits = run.splits(20)
    found: dict[str, dict[str, np.ndarray]] = {}  # accuracies of all splits, by column and loss
    sizes = {}
    for problem in TABLE_1:
        try:
            X, y = run.data.rows(problem.file)
        except MissingDataError as missing:
            yield f"Skipped: {missing}."
            continue
        X, y = minmax_scale(X), codes_of(y)
        for share, suffix in ((0.0, ""), (WRONG, f", {WRONG:.0%} wrong")):
            column = problem.name + suffix
            scores = []
            for _, rng in run.repeat(column, n_splits):
                few = with_wrong_labels(some_labels(y, LABELLED, rng), share, rng)
                scores.append(accuracies(X, y, few, problem.m))
            found[column] = {name: np.array([score[name] for score in scores]) for name in LOSSES}
            sizes[column] = len(y)
    yield f"5-NN on the unlabelled rows, {n_splits} splits:"
    rows = []
    for name in LOSSES:
        columns = [scores[name] for scores in found.values()]
        means = [np.mean(one) for one in columns]
        rows.append([name, *(f"{mean:.1f}" for mean in (*means, np.mean(means)))])
    yield table(["loss", *found, "mean"], rows)
    yield _verdict(found, sizes)


def _verdict(found: dict[str, dict[str, np.ndarray]], sizes: dict[str, int]) -> str:
    """Return where a loss is ahead of the paper's, and where behind it."""
    cells, gains, p_values = [], [], []
    for column, scores in found.items():
        n_train = round(LABELLED * sizes[column])
        n_test = sizes[column] - n_train
        for name in SLOPES:
            gain = scores[name] - scores[SQUARED]
            cells.append(f"{name} on {column} ({gain.mean():+.1f})")
            gains.append(gain.mean())
            p_values.append(corrected_resampled_t_test(gain, n_train, n_test, 100 / n_test))
    told = [
        (cell, gain) for cell, gain, p in zip(cells, gains, holm(p_values), strict=True) if p < 0.05
    ]
    ahead = ", ".join(cell for cell, gain in told if gain > 0) or "none"
    behind = ", ".join(cell for cell, gain in told if gain < 0) or "none"
    return (
        f"Ahead of the paper's cost: {ahead}. Behind it: {behind}. (p < 0.05, corrected resampled "
        "t-test, Holm.)"
    )


EXPERIMENTS = (
    Experiment(
        "tdl-losses",
        "TDL, equation 1: costs that are not linear in the squared distances",
        (
            "The paper has no experiment. Sets and labels of Table 1, this library's graph, reg = 1; "
            "labelled rows vote from `voting_embedding_`.",
            "Squared: the paper's c, in units of its mean |c|; clipped: min(c, 0); softly clipped: c "
            "below 0, 1 - exp(-c) above. Solved by majorization.",
        ),
        losses,
    ),
)
