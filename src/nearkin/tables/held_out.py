"""Uncertainty from held-out rows: prediction sets and intervals, familiarity, drift.

A held-out row has votes by maps that have not seen it (`held_out_votes_` of a predictor), its own
label or number, and its distances to the other held-out rows. The functions below take such arrays;
`HeldOutRows` holds the arrays and caches the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from scipy.stats import betabinom, chi2_contingency, fisher_exact, ks_2samp
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._blocks import row_blocks
from .._validation import check_number
from ..statistics import holm
from .columns import REPEATED, Feature, of_text, places_by_column

# Split-conformal prediction (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World",
# 2005): what holds for a share of the held-out rows holds for about that share of new rows.

ROUNDING = 1e-9  # tolerance for (n + 1) level being a whole number


def check_coverage(coverage: Any) -> float:
    """Return the share of rows to be covered; raise an error if it is invalid."""
    if not 0 < check_number(coverage, "coverage", 0) < 1:
        raise ValueError(f"coverage must be between 0 and 1, such as 0.9 for 90 %, got {coverage}.")
    return float(coverage)


def check_levels(q: Any) -> np.ndarray:
    """Return the levels of quantiles, shape (k,); raise an error if they are invalid."""
    try:
        levels = np.atleast_1d(np.asarray(q, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"q must hold numbers, got {q!r}.") from None
    if levels.ndim > 1 or levels.size == 0 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"q must be one or more numbers between 0 and 1, got {q!r}.")
    return levels


def conformal_quantile(scores: np.ndarray, level: float, weights: np.ndarray) -> float:
    """Return the smallest score that reaches a level among held-out rows and a new one.

    It is the smallest t with sum_(s_i <= t) w_i >= level (1 + sum_i w_i), for equal weights the
    score of rank ceil((n + 1) level) of n. The new row has weight 1 and counts as if its score were
    infinite, so t is infinite if there are too few held-out rows for the level.

    Parameters
    ----------
    scores, weights : ndarray of shape (n,)
        Weights of mean 1.
    level : float
        Between 0 and 1.
    """
    order = np.argsort(scores, kind="stable")
    reached = np.cumsum(weights[order]) >= level * (1 + weights.sum()) - ROUNDING
    return float(scores[order][reached.argmax()]) if reached.any() else np.inf


def label_scores(votes: np.ndarray, *, allow_empty: bool = False) -> np.ndarray:
    """Return the nonconformity score of each label, (n, n_classes).

    It is 1 - p_c, but 0 for the most probable label unless `allow_empty` is set (Sadinle, Lei and
    Wasserman, "Least Ambiguous Set-Valued Classifiers With Bounded Error Levels", 2019). Sets of
    the labels up to a threshold are the smallest of their coverage; with the 0, the smallest that
    are never empty.
    """
    if allow_empty:
        return 1 - votes
    return np.where(votes == votes.max(axis=1, keepdims=True), 0.0, 1 - votes)


def label_thresholds(
    scores: np.ndarray, labels: np.ndarray, weights: np.ndarray, coverage: float, *, by_class: bool
) -> np.ndarray:
    """Return, for each label, the largest score with which it is in a set, (n_classes,).

    Parameters
    ----------
    scores : ndarray of shape (n, n_classes)
        The scores of the held-out rows.
    labels : ndarray of int of shape (n,)
        The classes of these rows.
    weights : ndarray of shape (n,)
    coverage : float
    by_class : bool
        Whether each label has a threshold from the rows of its class alone, infinite if there are
        too few of these.
    """
    own = scores[np.arange(len(labels)), labels]
    n_classes = scores.shape[1]
    if not by_class:
        return np.full(n_classes, conformal_quantile(own, coverage, weights))
    thresholds = np.full(n_classes, np.inf)
    for c in np.unique(labels):
        of_class = labels == c
        relative = weights[of_class] / weights[of_class].mean()
        thresholds[c] = conformal_quantile(own[of_class], coverage, relative)
    return thresholds


# The distribution of a number: the prediction plus the errors of held-out rows, where nearby rows
# have the largest weights. The numbers of nearby rows would not do: in a space learned from them,
# rows are too close to rows with equal numbers, so what holds for training rows does not hold for
# new ones.

LEVELS = np.arange(0.05, 0.96, 0.05)  # over which a pinball loss is averaged
NEIGHBORS = (15, 30, 60, 120, 240)  # ranks that define a bandwidth; equal weights are tried, too
CHOOSING = 500  # maximum number of rows on which bandwidths are compared


def pinball_loss(y: np.ndarray, quantiles: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the losses of quantiles (n, len(q)) for numbers y, averaged over q, shape (n,)."""
    error = y[:, None] - quantiles
    return np.maximum(q * error, (q - 1) * error).mean(axis=1)


def local_weights(D2: np.ndarray, weights: np.ndarray, n_neighbors: int | None) -> np.ndarray:
    """Return w_j exp(-d_ij^2 / b_i^2) for squared distances (n, n_h).

    b_i is the distance to the row of rank `n_neighbors`. If that is None, the weight is w_j for
    every row at a finite distance. A row has an infinite distance to itself, and thus no weight.
    """
    if n_neighbors is None:
        return np.where(np.isfinite(D2), weights, 0.0)
    k = min(n_neighbors, D2.shape[1] - 1) - 1
    bandwidth = np.partition(D2, k, axis=1)[:, k : k + 1]
    with np.errstate(over="ignore"):  # if b_i is 0, rows at a distance have no weight
        return weights * np.exp(-D2 / np.maximum(bandwidth, np.finfo(np.float64).tiny))


def weighted_quantiles(W: np.ndarray, values: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return quantiles of values, (m,) or (n, m), with weights W (n, m), shape (n, len(q)).

    A quantile is the smallest value up to which the weights sum to at least a share q of all.
    """
    order = np.atleast_2d(np.argsort(values, axis=-1, kind="stable"))
    reached = np.cumsum(np.take_along_axis(W, order, axis=1), axis=1)
    reached /= reached[:, -1:]
    places = [np.sum(reached < level - ROUNDING, axis=1) for level in q]
    ranks = np.minimum(np.stack(places, axis=1), W.shape[1] - 1)
    return np.take_along_axis(np.atleast_2d(values), np.take_along_axis(order, ranks, axis=1), 1)


# Familiarity: the distance to the nearest rows, in columns whose weights do not depend on labels.

NEAREST = 5
VARIES = 1e-12  # smaller deviations, relative to the mean, are rounding errors
MOST_DEVIATIONS = 1e6  # from the mean; beyond, squares lose precision
UNFAMILIAR = 0.01  # familiarity up to which a row is unfamiliar
CHANCE = 0.025  # probability, at each of two levels, of as many unfamiliar rows by chance


def mean_nearest(D: np.ndarray) -> np.ndarray:
    """Return the mean of the 5 smallest of distances (n, n_h), shape (n,).

    If n_h is at most 5, the largest is left out, since a held-out row has only n_h - 1 others.
    Means are rounded, so that equal ones stay equal.
    """
    k = min(NEAREST, D.shape[1] - 1)
    return np.round(np.partition(D, k - 1, axis=1)[:, :k].mean(axis=1), 6)


# Drift of a table: two-sample tests, corrected for their number (Holm 1979).

# The level for adjusted p-values. If these were exact, the smallest would be below 0.05 in 5 % of
# the tables without drift. They are approximate, so the level is half of that to keep the false
# alarm rate at 5 %.
LEVEL = 0.025
EXACT = 100  # with more rows, the exact distribution takes long and gives about the same p-value
LEAST_EXPECTED = 5.0  # rows per level for the chi-squared approximation; rarer levels are pooled


@dataclass(frozen=True)
class Drift:
    """Whether new rows look like the training rows.

    All p-values are adjusted together by Holm's method. An alarm requires one of at most 0.025;
    without drift, the probability of an alarm is well below 5 %.

    Attributes
    ----------
    has_drifted : bool
        Whether any p-value is at most 0.025.
    familiarity : float
        The p-value of a test of all columns together: whether the rows are less familiar than
        further training rows would be, whose familiarities are uniformly distributed.
    columns : dict of str to float
        The p-value of each column, the smallest first. A date is also tested for its position in
        the year, the week and the day, such as "visit (week, sin)". A number is tested for its
        known values and its share of missing cells; a category for the shares of its values or, if
        it has many values, for how frequent they were in training; a text also for the
        share of rows with known words.
    moved : list of str
        The columns with a p-value of at most 0.025.
    """

    has_drifted: bool
    familiarity: float
    columns: dict[str, float]
    moved: list[str]


def same_distribution(x: np.ndarray, y: np.ndarray, alternative: str = "two-sided") -> float:
    """Return the p-value of the two-sample Kolmogorov-Smirnov test, 1 if a sample is empty.

    The alternative "greater" is that y has larger values.
    """
    if not len(x) or not len(y):
        return 1.0
    method = "exact" if max(len(x), len(y)) <= EXACT else "asymp"
    return float(ks_2samp(x, y, alternative, method).pvalue)


def same_shares(counts: np.ndarray, others: Any = (0, 0)) -> float:
    """Return the p-value of a test that two samples have equal shares of all levels.

    Parameters
    ----------
    counts : ndarray of shape (2, number of levels)
        Levels with fewer than 5 expected rows in a sample are pooled. Two levels are tested by
        Fisher's exact test, more by the chi-squared test; for one level the result is 1.
    others : pair of int
        Number of rows in each sample whose level is not among these; they count as rare.
    """
    sizes = counts.sum(axis=1) + others
    if not sizes.all():
        return 1.0
    rare = counts.sum(axis=0) * sizes.min() / sizes.sum() < LEAST_EXPECTED
    counts = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1) + others])
    counts = counts[:, counts.any(axis=0)]
    if counts.shape[1] < 2:
        return 1.0
    return float((fisher_exact if counts.shape[1] == 2 else chi2_contingency)(counts).pvalue)


def same_frequencies(before: np.ndarray, after: np.ndarray) -> float:
    """Return the p-value of a test that new rows have values as frequent as those of training rows.

    The number c of training rows with a value is random, and includes each row itself, while new
    rows may have no known value. (A number below two may be given as 0.) The Kolmogorov-Smirnov
    tests therefore compare the counts of new rows with c + sqrt(c) + 1 for larger ones, and with
    c - sqrt(c) - 1 for smaller ones: a margin of one row and one standard deviation of c.

    Parameters
    ----------
    before, after : ndarray
        Number of training rows with the value of each training row, and of each new row.
    """
    slack = np.sqrt(before) + 1
    larger = same_distribution(before + slack, after, "greater")
    smaller = same_distribution(-np.maximum(before - slack, 0), -after, "greater")
    return min(1.0, 2 * min(larger, smaller))


def column_tests(
    before: Any, after: Any, features: Sequence[Feature]
) -> Iterator[tuple[str, float]]:
    """Yield tests of the columns of encoded rows: the name of the column, and the p-value.

    There is one test for each category, and one or, if cells are missing, two for each number. Of
    the words of a text, the share of rows that have any is tested: the words were learned from the
    training rows, to which they fit better than to new rows. `before` are training rows, `after`
    are new rows.
    """
    if issparse(before):
        before, after = before.tocsc(), after.tocsc()

    def column(X: Any, at: int) -> np.ndarray:
        return X[:, [at]].toarray()[:, 0] if issparse(X) else X[:, at]

    for at, feature in enumerate(features):
        if not feature.is_number:
            continue
        x, y = column(before, at), column(after, at)
        gaps = [np.isnan(x), np.isnan(y)]
        yield feature.column_name, same_distribution(x[~gaps[0]], y[~gaps[1]])
        if any(missing.any() for missing in gaps):
            counts = np.array([[missing.sum(), (~missing).sum()] for missing in gaps])
            yield feature.column_name, same_shares(counts)
    for places in places_by_column(features, lambda feature: feature.is_level):
        name = features[places[0]].column_name
        counts = np.array([X[:, places].sum(axis=0) for X in (before, after)]).round().astype(int)
        # rows whose value was not seen in `fit` have none of the levels
        others = np.array([before.shape[0], after.shape[0]]) - counts.sum(axis=1)
        if features[places[0]].of_many:  # values that were frequent in training are rarer later
            frequencies = (X[:, places] @ counts[0] for X in (before, after))
            yield name, same_frequencies(*frequencies)
        else:
            yield name, same_shares(counts, others)
    for places in places_by_column(features, lambda feature: feature.is_word):
        known = [X[:, places].any(axis=1) for X in (before, after)]
        counts = np.array([[rows.sum(), (~rows).sum()] for rows in known])
        yield features[places[0]].column_name, same_shares(counts)


# All of this, for the held-out rows of one predictor.


@dataclass(frozen=True)
class HeldOutRows:
    """Training rows with the votes of maps that have not seen them.

    Attributes
    ----------
    places : ndarray of int of shape (n_h,)
        The indices of the held-out rows among the voting rows; n_h is at most about 2,000.
    cells : ndarray or csr_array of shape (n_h, p)
        The rows as `TableEncoder(missing="keep")` encodes them.
    Z : ndarray of shape (n_h, m)
        The rows in the learned space.
    targets : ndarray of shape (n_h,)
        The class codes or the numbers of the rows.
    votes : ndarray of shape (n_h, n_classes) or (n_h,)
    features : sequence of p Feature
        The features of the cells.
    weights : ndarray of shape (n_h,)
        The weights of the rows, of mean 1.
    folds : ndarray of int of shape (n_h,)
        Equal for rows that were held out together, counted from 0.
    """

    places: np.ndarray
    cells: Any
    Z: np.ndarray
    targets: np.ndarray
    votes: np.ndarray
    features: Sequence[Feature]
    weights: np.ndarray
    folds: np.ndarray

    def rows_of_folds(self) -> list[np.ndarray]:
        """Return, for each fold, the indices of its held-out rows among the voting rows."""
        return [self.places[self.folds == fold] for fold in range(self.folds.max() + 1)]

    def label_sets(
        self, votes: np.ndarray, coverage: float, *, by_class: bool, allow_empty: bool
    ) -> np.ndarray:
        """Return which labels are in the prediction sets for votes (n, n_classes), as booleans."""
        own = label_scores(self.votes, allow_empty=allow_empty)
        thresholds = label_thresholds(own, self.targets, self.weights, coverage, by_class=by_class)
        return label_scores(votes, allow_empty=allow_empty) <= thresholds

    def quantiles(self, Z: np.ndarray, predicted: np.ndarray, q: np.ndarray) -> np.ndarray:
        """Return quantiles of the numbers of embedded rows, (n, len(q)), for ascending levels q.

        Each error is added to a prediction made like that of its held-out row, without the rows of
        its fold (Barber, Candes, Ramdas and Tibshirani, "Predictive Inference with the Jackknife+",
        2021): the prediction by all rows may differ a lot if a few numbers are huge. Each level is
        then shifted by the conformal quantile of the amount by which held-out numbers exceed it, a
        quantile below the median downwards and the others upwards (Romano, Patterson and Candes,
        "Conformalized Quantile Regression", 2019).

        Parameters
        ----------
        Z : ndarray of shape (n, m)
        predicted : ndarray of shape (n, number of folds)
            For each fold, the predictions by the rows outside it.
        q : ndarray
        """
        out = np.empty((len(Z), len(q)))
        for rows in row_blocks(len(Z), len(self.Z)):
            D2 = euclidean_distances(Z[rows], self.Z, squared=True)
            W = local_weights(D2, self.weights, self._n_neighbors)
            out[rows] = weighted_quantiles(W, predicted[rows][:, self.folds] + self._errors, q)
        return np.sort(out + self._shifts(q), axis=1)

    def _shifts(self, q: np.ndarray) -> np.ndarray:
        """Return the shift of each level; the result is cached."""
        levels = tuple(q.tolist())
        if levels not in self._known_shifts:
            own = self._own_quantiles(np.arange(len(self.Z)), self._n_neighbors, q)
            self._known_shifts[levels] = np.array(
                [
                    conformal_quantile(above, level, self.weights)
                    if level >= 0.5
                    else -conformal_quantile(-above, 1 - level, self.weights)
                    for level, above in zip(q, (self._errors[:, None] - own).T, strict=True)
                ]
            )
        return self._known_shifts[levels]

    @cached_property
    def _known_shifts(self) -> dict[tuple[float, ...], np.ndarray]:
        return {}

    @property
    def _errors(self) -> np.ndarray:
        return self.targets - self.votes

    @cached_property
    def _n_neighbors(self) -> int | None:
        """Return the rank of the bandwidth with the smallest held-out pinball loss."""
        rows = np.argsort(self.votes)[:: -(-len(self.Z) // CHOOSING)]
        weights, errors = self.weights[rows], self._errors[rows]
        losses = {
            k: float(weights @ pinball_loss(errors, self._own_quantiles(rows, k, LEVELS), LEVELS))
            for k in (*(k for k in NEIGHBORS if 2 * k <= len(self.Z)), None)
        }
        return min(losses, key=losses.__getitem__)

    def _own_quantiles(
        self, rows: np.ndarray, n_neighbors: int | None, q: np.ndarray
    ) -> np.ndarray:
        """Return quantiles of the errors of some held-out rows, from the errors of all others."""
        D2 = euclidean_distances(self.Z[rows], self.Z, squared=True)
        D2[np.arange(len(rows)), rows] = np.inf
        return weighted_quantiles(local_weights(D2, self.weights, n_neighbors), self._errors, q)

    @cached_property
    def _of_many(self) -> list[tuple[list[int], np.ndarray]]:
        """Return, for each category of many values, their places and numbers of held-out rows."""
        places = places_by_column(self.features, lambda feature: feature.of_many)
        return [(own, self.cells[:, own].sum(axis=0)) for own in places]

    @cached_property
    def _of_words(self) -> list[list[int]]:
        """Return the places of the words of each text."""
        return places_by_column(self.features, lambda feature: feature.is_word)

    def _condensed(self, cells: Any, *, as_new: bool = False) -> Any:
        """Return cells in which text is one or two numbers.

        They are the number of held-out rows with the same value, `as_new` without the row itself,
        and whether it has known words. The words themselves were learned from the held-out rows,
        which are thus farther from each other than new rows are from them.
        """
        if not self._of_many and not self._of_words:
            return cells
        frequencies = [cells[:, own] @ counts for own, counts in self._of_many]
        if as_new:  # a value of two training rows would have no indicator without one of them
            frequencies = [np.where(count > REPEATED, count - 1, 0) for count in frequencies]
        known = [cells[:, own].any(axis=1) for own in self._of_words]
        kept = [at for at, f in enumerate(self.features) if not of_text(f)]
        return np.column_stack([cells[:, kept], *frequencies, *known])

    @cached_property
    def _units(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean of each column of the condensed cells, and 1 over its deviation.

        The mean of sparse cells, which are not centred, is 0. So is 1 over the deviation of a
        column that does not vary.
        """
        cells = self._condensed(self.cells)
        if issparse(cells):
            variance = mean_variance_axis(cells, axis=0)[1]
            mean = np.zeros(cells.shape[1])
        else:
            known = np.ma.masked_invalid(cells.astype(np.float64))
            mean, variance = known.mean(axis=0).filled(0.0), known.var(axis=0).filled(0.0)
        deviation, rate = np.sqrt(variance), np.zeros(len(mean))
        np.divide(1.0, deviation, out=rate, where=deviation > VARIES * np.abs(mean))
        return mean, rate

    def _scaled(self, cells: Any) -> Any:
        """Return scaled rows, clipped at MOST_DEVIATIONS; missing cells become the mean."""
        mean, rate = self._units
        with np.errstate(over="ignore"):
            if issparse(cells):
                scaled = (cells.astype(np.float64) @ diags_array(rate)).tocsr()
                scaled.data = np.clip(scaled.data, -MOST_DEVIATIONS, MOST_DEVIATIONS)
                return scaled
            scaled = np.clip((cells - mean) * rate, -MOST_DEVIATIONS, MOST_DEVIATIONS)
        return np.nan_to_num(scaled)

    @cached_property
    def _own_scaled(self) -> Any:
        return self._scaled(self._condensed(self.cells))

    @cached_property
    def _own_distances(self) -> np.ndarray:
        """Return the distance of each held-out row to the nearest others, shape (n_h,).

        As for a new row, the others alone define the scale of a column. Without a row that alone
        has a value, for example, the indicator of this value does not vary.
        """
        Z, cells = self._own_scaled, self._condensed(self.cells, as_new=True)
        Q = self._scaled(cells)
        mean, squares = Z.mean(axis=0), Z * Z
        if issparse(Z):  # what is 0 hardly changes the scale of its column
            z, mean, n = Z.data, mean[Z.indices], Z.shape[0]
        else:
            z, n = Z, np.maximum(np.sum(~np.isnan(cells), axis=0), 2)
        # A scaled column has variance 1; the squares of the others about their mean sum to n times
        # this. Divided by n rather than n - 1, a value has the same scale as for a new row if it
        # occurs as often among the others as among all held-out rows.
        variance = 1 - (z - mean) ** 2 / (n - 1)
        excess = np.divide(1.0, variance, out=np.zeros_like(z), where=variance > VARIES) - 1
        if issparse(Z):
            excess = csr_array((excess, Z.indices, Z.indptr), Z.shape)
        # sum_k (1 + excess_ik) (q_ik - z_jk)^2
        own = Q + excess * Q
        products = excess @ squares.T - 2 * (own @ Z.T)
        D2 = (own * Q).sum(axis=1)[:, None] + squares.sum(axis=1)
        D2 += products.toarray() if issparse(Z) else products
        np.fill_diagonal(D2, np.inf)
        return mean_nearest(np.sqrt(np.maximum(D2, 0)))

    def _distances(self, cells: Any) -> np.ndarray:
        """Return the distance of encoded rows to the nearest held-out rows, shape (n,)."""
        blocks = row_blocks(cells.shape[0], len(self.places))
        scaled = self._scaled(self._condensed(cells))
        return np.concatenate(
            [mean_nearest(euclidean_distances(scaled[rows], self._own_scaled)) for rows in blocks]
        )

    def familiarity(self, cells: Any) -> np.ndarray:
        """Return the familiarity of encoded rows (n, p), as p-values of shape (n,).

        For a row at distance d these are (1 + sum_(d_i >= d) w_i) / (1 + sum_i w_i), with the
        distances d_i of the held-out rows.
        """
        order = np.argsort(self._own_distances)
        nearer = np.append(0.0, np.cumsum(self.weights[order]))
        total = nearer[-1]
        at = np.searchsorted(self._own_distances[order], self._distances(cells), side="left")
        return (1 + (total - nearer[at])) / (1 + total)

    def unfamiliar(self, familiarity: np.ndarray) -> np.ndarray:
        """Return the rows to report as unfamiliar, the least familiar first.

        These are the rows with a familiarity of at most 0.01, if there are more of them than chance
        explains, or else the rows farther than every held-out row, under the same condition. Among
        n rows exchangeable with n_h held-out ones, the number with a p-value of at most k /
        (n_h + 1) has the beta-binomial distribution of n draws with the parameters k and
        n_h + 1 - k. By chance, the number is called too large with a probability of at most 2.5 %
        at each of the two levels, so of at most 5 % at either. Row weights are ignored here.

        Parameters
        ----------
        familiarity : ndarray of shape (n,)

        Returns
        -------
        ndarray of int of shape (number of unfamiliar rows,)
        """
        n, total = len(familiarity), len(self.places) + 1
        for k in (int(UNFAMILIAR * total), 1):
            found = np.flatnonzero(familiarity <= k / total + ROUNDING)
            if k and betabinom.sf(len(found) - 1, n, k, total - k) <= CHANCE:
                return found[np.argsort(familiarity[found], kind="stable")]
        return np.empty(0, dtype=int)

    def drift(self, cells: Any) -> Drift:
        """Return whether encoded rows (n, p) look like the held-out rows, weights ignored."""
        tests = list(column_tests(self.cells, cells, self.features))
        # one-sided: training rows given as new rows find themselves as neighbours; this is no drift
        of_rows = same_distribution(self._own_distances, self._distances(cells), "greater")
        adjusted = holm([of_rows, *(p_value for _, p_value in tests)])
        columns: dict[str, float] = {}
        for (name, _), p_value in zip(tests, adjusted[1:], strict=True):
            columns[name] = min(p_value, columns.get(name, 1.0))
        columns = dict(sorted(columns.items(), key=lambda item: item[1]))
        moved = [name for name, p_value in columns.items() if p_value <= LEVEL]
        return Drift(min(adjusted) <= LEVEL, adjusted[0], columns, moved)

    def to_arrays(self) -> dict[str, Any]:
        """Return the state of the rows for a saved model, which also stores the voting rows."""
        return {
            "held_out_places": self.places,
            "held_out_votes": self.votes,
            "held_out_weights": self.weights,
            "held_out_folds": self.folds,
            "held_out_cells": self.cells,
        }

    @classmethod
    def from_arrays(
        cls,
        arrays: dict[str, Any],
        features: Sequence[Feature],
        voters: np.ndarray,
        answers: np.ndarray,
    ) -> HeldOutRows:
        """Return the rows from the result of `to_arrays`.

        `voters` are all voting rows, (n, m); `answers` are their class codes or their numbers,
        (n,). A ValueError is raised if one fold holds all of them, as other folds vote, or if cells
        are not of one value of each category.
        """
        places, folds = arrays["held_out_places"], arrays["held_out_folds"]
        cells = arrays["held_out_cells"]
        if np.bincount(folds).max() >= len(voters):
            raise ValueError("held_out_folds has all voters in one fold")
        levels = [at for at, feature in enumerate(features) if feature.is_level]
        columns = np.array([features[at].column for at in levels], dtype=int)
        indicators = cells[:, levels]
        n_values = indicators @ (columns[:, None] == np.unique(columns)).astype(float)
        if not np.isin(n_values, (0, 1)).all() or (indicators != 0).sum() != n_values.sum():
            raise ValueError("held_out_cells has rows with several values of a category")
        return cls(
            places,
            cells,
            voters[places],
            answers[places],
            arrays["held_out_votes"],
            features,
            arrays["held_out_weights"],
            folds,
        )
