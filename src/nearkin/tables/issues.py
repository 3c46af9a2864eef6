"""Rows to check: labels that are probably wrong, contradictory twins, outliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.neighbors import NearestNeighbors

from .._blocks import filled
from .._labels import encode_groups, encode_labels, known_labels
from .._memory import require_memory
from .._messages import counted
from .._validation import (
    as_rows,
    check_consistent_length,
    check_integer,
    check_random_state,
    is_missing,
)
from ..folds import MAX_ROWS
from ..graphs import joined_groups
from ..neighbors import identical_rows, twin_groups
from .bins import features_of, is_table, text_as_one_number
from .columns import Feature
from .encoder import TableEncoder
from .predictors import NCAClassifier, TrainTest
from .target import column_of, learn_target

ROUNDS = 2  # fits to up to 2,000 rows: in the second, doubtful rows have less weight
LEAST_WEIGHT = 0.02  # of a doubtful row
CROSS_FITS = 3  # folds, and thus fits, for more rows
FOLDS = 5  # folds of each fit to up to 2,000 rows
FEWEST_DISTINCT = 20  # rows; among fewer, equal ones are cases of a kind rather than copies
SURE_SHARE = 0.5  # share of the rows, with the surest votes, from which e is estimated
FLOOR = 0.05  # lower bound of q, relative to e / (C - 1); see `label_issues`
LEAST_WRONG = 0.1  # number of wrong labels, if no sure vote contradicts any
MOST_RANDOM = 0.9  # upper bound of e, relative to the share that is wrong if labels are random
# If so many labels are probably wrong, or fewer than half of these are surely so, classes overlap.
OVERLAP, SURE = 0.3, 0.9
MIN_LISTED, MAX_LISTED = 100, 1000  # rows for which neighbours are found

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class FarRows:
    """Rows that lie far from all others.

    Attributes
    ----------
    rows : ndarray of int of shape (r,)
        The farthest first.
    ratios : ndarray of shape (r,)
        The distance to the fifth nearest other row, divided by the median of this distance over the
        rows for which it is not 0.
    columns : ndarray of int of shape (r,)
        The column of the table in which the row differs most from these five.
    """

    rows: np.ndarray
    ratios: np.ndarray
    columns: np.ndarray


@dataclass(frozen=True, eq=False)
class LabelIssues:
    """Result of `label_issues` for n labelled rows of C classes.

    Attributes
    ----------
    classes : ndarray of shape (C,)
    rows : ndarray of int of shape (n,)
        Row indices, by descending probability that the label is wrong.
    labels, predicted : ndarray of shape (n,)
        In the same order, the given label and the one with the largest held-out vote.
    probabilities : ndarray of shape (n,)
        The probability that the given label is wrong; descending except for ties. An upper bound
        where classes overlap.
    votes : ndarray of shape (n, C)
        The held-out votes; NaN for rows that are `alone`.
    neighbors : ndarray of int of shape (n_listed, n_neighbors)
        For the first rows (as many as are probably wrong, but between 100 and 1,000), the indices
        of their nearest other rows in the learned space; with groups, of rows in other groups.
    neighbor_labels : ndarray of shape (n_listed, n_neighbors)
    flip_rate : float
        The estimated share of wrong labels.
    alone : ndarray of int
        Rows whose label no other row (of another group) has, so that nothing votes for it. Their
        probability is the flip rate.
    twins : list of ndarray of int
        Groups of rows with equal features but different labels. Groups in which the smallest share
        of rows contradicts the most frequent label come first.
    far : FarRows
        Outliers among all rows, labelled or not.
    """

    classes: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray
    votes: np.ndarray
    neighbors: np.ndarray
    neighbor_labels: np.ndarray
    flip_rate: float
    alone: np.ndarray
    twins: list[np.ndarray]
    far: FarRows

    def __repr__(self) -> str:
        n, first = self.n_issues, ", ".join(map(str, self.rows[: min(self.n_issues, 5)]))
        rows = f" (rows {first}{', ...' * (n > 5)})" if n else ""
        are = "are wrong" if self.is_bound else "are probably wrong"
        return (
            f"<LabelIssues: {'at most ' * self.is_bound}about {n:,} of {len(self.rows):,} labels "
            f"{are}{rows}, "
            f"{counted(len(self.twins), 'group')} of contradictory twins, "
            f"{counted(len(self.far.rows), 'far row')}, {len(self.alone):,} alone in their class>"
        )

    @property
    def expected(self) -> np.ndarray:
        """Return the expected number of wrong labels among the first 1, 2, ..., n rows."""
        return np.cumsum(self.probabilities)

    @property
    def n_issues(self) -> int:
        """Return the expected number of wrong labels, i.e. how many of the first rows to check."""
        return round(float(self.probabilities.sum()))

    @property
    def n_sure(self) -> int:
        """Return the number of labels that are wrong with a probability of at least 0.9."""
        return int(np.count_nonzero(self.probabilities >= SURE))

    @property
    def is_bound(self) -> bool:
        """Return whether `n_issues` is only an upper bound, because classes overlap.

        Then even the surest votes often contradict the label, or most of the labels that count as
        wrong are not surely so; errors stand out from the other rows.
        """
        return self.flip_rate > OVERLAP or 2 * self.n_sure < self.n_issues > 1

    def to_frame(self) -> Any:
        """Return the ranking as a pandas DataFrame.

        The columns are row, label, predicted, probability and expected.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "row": self.rows,
                "label": self.labels,
                "predicted": self.predicted,
                "probability": self.probabilities,
                "expected": self.expected,
            }
        )


def label_issues(
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    n_neighbors: int = 5,
    features: Sequence[Feature] | None = None,
    random_state: Any = 0,
    progress: Progress | None = None,
) -> LabelIssues:
    r"""Rank the rows of a table by how likely their label is to be wrong.

    Every row is predicted by maps and votes of `NCAClassifier` that have not seen it. Rows are
    ranked by the vote V for their given label y, the lowest first. The probability assumes that a
    label was replaced with probability e, by each of the other C - 1 classes equally often, and
    that the votes are the distribution of the given labels. The true label t then has

    .. math:: P(t = y) = q = \frac{V - e/(C-1)}{1 - e - e/(C-1)}, \quad
       P(\text{wrong} \mid y) = \frac{(1 - q) \, e/(C-1)}{q \, (1 - e) + (1 - q) \, e/(C-1)},

    where q is at least a twentieth of e / (C - 1), since votes are not more accurate than that. If
    fewer than n e labels are then expected to be wrong, the odds of all rows are multiplied by a
    common factor that raises this number to n e. The share e is estimated as the share of rows
    whose label differs from the predicted one, among the half with the surest votes. This assumes
    that classes do not overlap there [1]_. If they do, e is too large, and the probabilities are
    upper bounds: an unlikely but correct label looks like a wrong one, so that of rows with a
    probability of .96 a third may be right, and half if the classes overlap a lot. The order of the
    rows does not depend on e.

    Parameters
    ----------
    X : data frame (pandas, polars or pyarrow), array or sparse matrix of shape (n, p)
    y : str, or array of shape (n,)
        The labels, or the name of their column in a data frame. Rows without a label (None, NaN)
        are left out of the ranking.
    groups : array of shape (n,), default=None
        Groups of rows that belong together, such as those of one patient. Each row is predicted by
        rows of other groups.
    n_neighbors : int, default=5
        Number of nearest rows to list.
    features : sequence of p Feature, default=None
        If X was encoded by `TableEncoder(missing="keep")`, the result of
        `nearkin.tables.features_of` for the encoder.
    random_state : int, RandomState or None, default=0
        Seed of the folds, and of other random choices for more than 2,000 rows.
    progress : callable, default=None
        Called as `progress(number of fits done, total number of fits)`.

    Returns
    -------
    LabelIssues

    Raises
    ------
    ValueError
        If labels are a regression target (real numbers, or more than 20 whole numbers of which more
        than a quarter occur in a single row), mix strings and numbers, or form a single class or
        more than 20 classes that are more than half the number of rows; if there is a single group;
        also for invalid input of `NCAClassifier.fit`.

    Notes
    -----
    For up to 2,000 rows, the held-out votes of two fits with different folds are averaged; in the
    second fit, every row is weighted by the first vote for its label, at least .02. With more rows
    there are three folds, each predicted by a fit to the others. All this takes two or three times
    as long as `NCAClassifier.fit`. Copies and far rows are searched among all pairs of rows, in
    O(n^2 p).

    Copies of a row, identical or nearly so (`nearkin.neighbors.twin_groups`), are held out
    together: no copy votes for another, and all together have one vote for other rows. In a table
    of fewer than 20 distinct rows, equal rows are independent cases.

    References
    ----------
    .. [1] Curtis G. Northcutt, Lu Jiang and Isaac L. Chuang, "Confident Learning: Estimating
       Uncertainty in Dataset Labels", Journal of Artificial Intelligence Research 70, 2021
       (class-conditional noise, estimated from confident rows).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nearkin import label_issues
    >>> flowers = load_iris(as_frame=True).frame
    >>> flowers.loc[[3, 80], "target"] = [1, 0]
    >>> found = label_issues(flowers, "target")
    >>> sorted(found.rows[:2].tolist())
    [3, 80]
    >>> found.to_frame().head(2).sort_values("row")["predicted"].tolist()
    [0, 1]
    """
    name = None
    if isinstance(y, str):
        name, X = y, X.to_pandas() if hasattr(X, "to_pandas") else X
        y = column_of(X, "y", name)
        X = X.drop(columns=[name])
    y, _ = learn_target(y, name, "classification", regression=None)
    if is_table(X):
        encoder = TableEncoder("keep").fit(X)
        X, features = encoder.transform(X), features_of(encoder)
    X = as_rows(X, missing=True)
    check_consistent_length(X, y, groups)
    labelled = np.flatnonzero(~is_missing(y))
    classes, codes = encode_labels(known_labels(y, labelled))
    n, n_classes = len(labelled), len(classes)
    require_memory(
        5 * 8 * n * n_classes,
        f"A vote of every row for each of {n_classes:,} classes in y",
        "merge or leave out rare classes",
    )
    complete, scale = text_as_one_number(filled(X[labelled]), features, scale=True)
    twins = twin_groups(complete, scale=scale)
    if twins.max() + 1 < FEWEST_DISTINCT:
        twins = np.arange(n)
    units = twins
    if groups is not None:
        units = joined_groups(twins, encode_groups(np.asarray(groups)[labelled]))
        if units.max() == 0:
            raise ValueError(
                "groups holds one group, once those that share a row are joined: give more, or "
                "leave groups out."
            )
    # copies of a row with equal labels are one row, whose weight is their share of all copies
    _, first, row_of, sizes = np.unique(
        twins * n_classes + codes, return_index=True, return_inverse=True, return_counts=True
    )
    shares = sizes / np.bincount(twins)[twins[first]]
    voted = (_by_members if len(first) <= MAX_ROWS else _by_folds)(
        X[labelled[first]], codes[first], units[first], shares, features, random_state, progress
    )
    votes = voted.votes[row_of]
    p, e = wrong_labels(votes, codes)
    alone = np.isnan(votes[:, 0])
    given = np.where(alone, np.inf, votes[np.arange(n), codes])
    order = np.lexsort((given, -p))
    predicted = np.where(alone, codes, np.where(alone[:, None], 0.0, votes).argmax(axis=1))
    n_listed = min(n, MAX_LISTED, max(MIN_LISTED, round(p.sum())))
    k = min(check_integer(n_neighbors, "n_neighbors", 1), len(first) - 1)
    neighbors = first[voted.neighbors(row_of[order[:n_listed]], k)]
    return LabelIssues(
        classes=classes,
        rows=labelled[order],
        labels=classes[codes[order]],
        predicted=classes[predicted[order]],
        probabilities=p[order],
        votes=votes[order],
        neighbors=labelled[neighbors],
        neighbor_labels=classes[codes[neighbors]],
        flip_rate=e,
        alone=labelled[alone],
        twins=[labelled[rows] for rows in contradictory_twins(X[labelled], codes)],
        far=far_rows(X, features),
    )


# Held-out votes for the rows, and their nearest rows.


@dataclass(frozen=True)
class Voted:
    """Votes (n, C) by maps that have not seen the row, and a search for nearest other rows.

    Votes are NaN for a row whose class the rows that voted lack. `neighbors` is a function of row
    indices and k.
    """

    votes: np.ndarray
    neighbors: Callable[[np.ndarray, int], np.ndarray]


def _by_members(
    X: Any,
    y: np.ndarray,
    units: np.ndarray,
    shares: np.ndarray,
    features: Sequence[Feature] | None,
    random_state: Any,
    progress: Progress | None,
) -> Voted:
    """Return the held-out votes, averaged over several fits to all rows."""
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    total, n_votes = np.zeros((len(y), y.max() + 1)), np.zeros((len(y), 1))
    weights = shares
    for done in range(1, ROUNDS + 1):
        folds = _folds(y, units, FOLDS, rng)
        model = NCAClassifier(random_state=random_state)
        model.fit_encoded(X, y, features, folds, weights)
        known = np.concatenate([np.isin(y[test], y[train]) for train, test in folds])
        rows = model.held_out_rows_[known]
        total[rows] += model.held_out_votes_[known]
        n_votes[rows] += 1
        votes = np.divide(total, n_votes, out=np.full(total.shape, np.nan), where=n_votes > 0)
        own = np.nan_to_num(votes[np.arange(len(y)), y], nan=1.0)
        weights = shares * np.maximum(own, LEAST_WEIGHT)
        if progress:
            progress(done, ROUNDS)

    def neighbors(queries: np.ndarray, k: int) -> np.ndarray:
        return _nearest_others(model, X[queries], k, units, units[queries])

    return Voted(votes, neighbors)


def _by_folds(
    X: Any,
    y: np.ndarray,
    units: np.ndarray,
    shares: np.ndarray,
    features: Sequence[Feature] | None,
    random_state: Any,
    progress: Progress | None,
) -> Voted:
    """Return the votes for every fold by a fit to the others."""
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    folds, fits = _folds(y, units, CROSS_FITS, rng), []
    fold_of, votes = np.full(len(y), 0), np.full((len(y), y.max() + 1), np.nan)
    for number, (train, test) in enumerate(folds):
        model = NCAClassifier(random_state=random_state)
        inner: dict[str, Any] = {}
        if len(train) > MAX_ROWS and 1 < len(np.unique(units[train])) < len(train):
            inner = _inner_split(y[train], units[train], rng)
        model.fit_encoded(X[train], y[train], features, sample_weight=shares[train], **inner)
        found = np.zeros((len(test), votes.shape[1]))
        found[:, model.classes_] = model.predict_proba(X[test])
        votes[test] = np.where(np.isin(y[test], model.classes_)[:, None], found, np.nan)
        fold_of[test] = number
        fits.append(model)
        if progress:
            progress(number + 1, len(folds))

    def neighbors(queries: np.ndarray, k: int) -> np.ndarray:
        out = np.empty((len(queries), k), dtype=int)
        for number, (train, _) in enumerate(folds):
            at = np.flatnonzero(fold_of[queries] == number)
            if len(at):
                rows = queries[at]
                near = _nearest_others(fits[number], X[rows], k, units[train], units[rows])
                out[at] = train[near]
        return out

    return Voted(votes, neighbors)


def _nearest_others(
    model: NCAClassifier, X: Any, k: int, own: np.ndarray, own_of_queries: np.ndarray
) -> np.ndarray:
    """Return the k training rows nearest to each query, with a different number in `own`.

    If there are too few of these, rows with the same number follow.
    """
    n_found = min(len(own), k + np.unique(own, return_counts=True)[1].max())
    found = model.kneighbors(X, n_found, return_distance=False)
    others_first = np.argsort(own[found] == own_of_queries[:, None], axis=1, kind="stable")
    return np.take_along_axis(found, others_first[:, :k], axis=1)


def _folds(
    y: np.ndarray, units: np.ndarray, n_splits: int, rng: np.random.Generator
) -> list[TrainTest]:
    """Return random folds that keep units together, and divide the units of every class.

    A unit counts as one of its rarest class.
    """
    units = np.unique(units, return_inverse=True)[1]
    rarest_first = np.argsort(np.bincount(y)[y], kind="stable")
    strata = y[rarest_first][np.unique(units[rarest_first], return_index=True)[1]]
    order = rng.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    n_splits = min(n_splits, len(strata))
    tests = [np.flatnonzero(np.isin(units, order[fold::n_splits])) for fold in range(n_splits)]
    return [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]


def _inner_split(y: np.ndarray, units: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """Return `folds` and `split` of `fit_encoded` for more than 2,000 rows; units stay together."""
    folds = _folds(y, units, FOLDS, rng)  # one may be a huge group
    rest, held = min(folds, key=lambda fold: abs(len(fold[1]) - len(y) / FOLDS))
    held = np.sort(rng.permutation(held)[:MAX_ROWS])
    of_each_class = rest[np.unique(y[rest], return_index=True)[1]]
    members = np.union1d(rng.permutation(rest)[:MAX_ROWS], of_each_class)
    return {"folds": [(members, held)], "split": (rest, held)}


def wrong_labels(votes: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probability that each label is wrong, and the share of wrong labels.

    See `label_issues`.

    Parameters
    ----------
    votes : ndarray of shape (n, C)
        Held-out probabilities of the classes; NaN in rows without any.
    codes : ndarray of int of shape (n,)
        The classes of the given labels.
    """
    rows = np.flatnonzero(~np.isnan(votes[:, 0]))
    if not len(rows):
        raise ValueError(
            "groups holds every class out with its group, so that no row can be labelled by other "
            "groups: give smaller ones."
        )
    V, y = votes[rows], codes[rows]
    disputed = (V.argmax(axis=1) != y)[np.argsort(-V.max(axis=1), kind="stable")]
    e = disputed[: max(1, round(SURE_SHARE * len(y)))].mean()
    # random labels are correct once in C
    e = float(np.clip(e, LEAST_WRONG / len(y), MOST_RANDOM * (1 - 1 / votes.shape[1])))
    of_one = e / (votes.shape[1] - 1)
    q = (V[np.arange(len(y)), y] - of_one) / (1 - e - of_one)
    q = np.clip(q, FLOOR * of_one, 1 - 1e-6)
    log_odds = np.log((1 - q) * of_one / (q * (1 - e)))
    p = np.full(len(codes), e)
    p[rows] = expit(log_odds)
    if p[rows].sum() < e * len(y):
        p[rows] = expit(log_odds + brentq(lambda t: expit(log_odds + t).sum() - e * len(y), 0, 100))
    return p, e


def contradictory_twins(X: Any, y: np.ndarray) -> list[np.ndarray]:
    """Return groups of rows with equal features that are not all of one class.

    Groups in which the smallest share of rows contradicts the most frequent class come first.
    """
    twins = identical_rows(filled(X))
    order = np.argsort(twins, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(twins[order])) + 1)
    groups = [rows for rows in groups if len(rows) > 1 and (y[rows] != y[rows[0]]).any()]

    def contradicting(rows: np.ndarray) -> tuple[float, int]:
        largest = np.bincount(y[rows]).max()
        return 1 - largest / len(rows), -len(rows)

    return sorted(groups, key=contradicting)


# Outliers.

FAR_NEIGHBORS = 5
FEWEST_ROWS = 20
WHISKER, LEAST_FACTOR = 3.0, 2.0


def far_rows(X: Any, features: Sequence[Feature] | None = None) -> FarRows:
    """Return rows whose fifth nearest other row is far.

    "Far" means that the logarithm of this distance is more than three interquartile ranges above
    the third quartile ("far out", Tukey 1977), and that the distance is more than twice that
    quartile. Distances are those of the table, with numbers in standard deviations and categories
    as 0 or 1, not those of a learned space, which ignores columns that do not separate the classes.
    Sparse rows, and fewer than 20 rows with a positive distance, are not examined.
    """
    nothing = FarRows(np.empty(0, dtype=int), np.empty(0), np.empty(0, dtype=int))
    n, p = X.shape
    if issparse(X) or n < FEWEST_ROWS:
        return nothing
    gaps = np.flatnonzero(np.isnan(X).any(axis=0))
    features = features or [Feature("", column) for column in range(p)]
    columns = np.array([feature.column for feature in features])
    levels = [j for j, feature in enumerate(features) if feature.is_level]
    with np.errstate(over="ignore", invalid="ignore"):  # numbers near 1e308
        Z = filled(X).astype(np.float64)
        units = Z.std(axis=0)
        units[levels] = 1
        units[p:] = 1  # the indicators of missing cells
        Z = (Z - Z.mean(axis=0)) / np.where(units > 0, units, 1)
    Z = Z[:, np.isfinite(Z).all(axis=0)]
    of_column = np.append(columns, columns[gaps])

    near, found = NearestNeighbors(n_neighbors=FAR_NEIGHBORS).fit(Z).kneighbors()
    distances = near[:, -1]
    apart = distances[distances > 0]
    if len(apart) < FEWEST_ROWS:
        return nothing
    low, median, high = np.quantile(np.log(apart), [0.25, 0.5, 0.75])
    limit = np.exp(high + max(WHISKER * (high - low), np.log(LEAST_FACTOR)))
    far = np.flatnonzero(distances > limit)
    far = far[np.argsort(-distances[far], kind="stable")]
    squares = np.mean((Z[far, None] - Z[found[far]]) ** 2, axis=1)
    sums = np.zeros((len(far), of_column.max() + 1))
    np.add.at(sums.T, of_column, squares.T)
    return FarRows(far, distances[far] / np.exp(median), sums.argmax(axis=1))
