"""Which items belong together, and which queries have no match: calibrated probabilities, and
thresholds whose precision is guaranteed by held-out queries.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.sparse import csr_array
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, precision_recall_curve, roc_auc_score, roc_curve
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks, unit_rows
from .._labels import encode_groups
from .._messages import warn_user
from .._validation import (
    check_choice,
    check_consistent_length,
    check_estimator,
    check_number,
    check_random_state,
)
from ..estimators.pairs import (
    check_pair_labels,
    check_pair_weights,
    check_row_numbers,
    unstacked,
    validate_pairs,
    validate_tuples,
)
from ..estimators.validation import validate_dense_rows
from ..graphs import connected_components, joined_groups
from ..neighbors import searcher, twin_groups
from .adapter import UnitEmbedding
from .judgements import (
    EXPECTED,
    FOLDS,
    UNSEEN,
    Judgements,
    Labels,
    Pairs,
    Relevance,
    Split,
    check_grades,
    expected_parts,
    quarters,
    relevance_matrix,
    usable_splits,
)

# Scores of the best candidates of held-out queries, correct or not.

CONFIDENCE = 0.95  # one-sided, of the bound on a precision
# Tests of a precision start where these shares of the answerable queries are accepted, each with a
# fifth of the error probability; 0 is a quarter, but at least 63, which can show 95 % with the four
# fifths of the other starts (.95^63 < .04), and at most 160. Half of them may be as few as 30.
STARTS = np.array([1 / 2, 1 / 4, 1 / 4, 0, 0])
FEWEST_HALF, FIRST = 30, (63, 160)
THRESHOLDS = 200  # candidate thresholds: quantiles of the scores
FEWEST_ACCEPTED = 20  # fewest queries above a threshold from which its precision is estimated
NO_RULES = (
    "This %(name)s has no rules for matches yet: call `fit`, `fit_relevance`, or `fit_pairs` "
    "with numbers of rows."
)
KNOTS = 51  # at quantiles of the scores, to interpolate a logistic function
FOLDS_OF_CHOICE = 4  # of queries, to compare isotonic regression with a logistic function


@dataclass(frozen=True)
class ScoredMatches:
    """Matches of held-out queries and their scores.

    Attributes
    ----------
    scores : array of shape (n,)
    right : bool array of shape (n,)
        Whether the match belongs to its query.
    answerable : bool array of shape (n,)
        Whether the query has a correct candidate.
    weights : array of shape (n,)
        0 for matches that only count as false answers.
    units : int array of shape (n,)
        Groups of dependent queries.
    """

    scores: np.ndarray
    right: np.ndarray
    answerable: np.ndarray
    weights: np.ndarray
    units: np.ndarray


@dataclass(frozen=True)
class Calibration:
    """The probability that a match of score s is correct, g(sigmoid(slope s + intercept)).

    It does not fall with the score. Below the scores of all held-out matches, where nothing shows
    what is correct, it falls to 0, by about a factor of e for every standard deviation of these
    scores. Above them it is constant.

    Attributes
    ----------
    slope, intercept : float
        They standardize the scores of held-out matches.
    knots : array of shape (2, k)
        g is linear between these points and constant above the last one. The first is (0, 0); the
        others are those of a logistic regression of "right" on the score, or of isotonic
        regression.
    """

    slope: float
    intercept: float
    knots: np.ndarray

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities."""
        return np.interp(expit(self.slope * scores + self.intercept), *self.knots)

    def lowest_score(self, probability: float) -> float:
        """Return the score from which on the probability is at least a given one, or inf."""
        u, p = self.knots
        if p[-1] < probability:
            return np.inf
        i = int(np.argmax(p >= probability))
        between = u[i - 1] + (probability - p[i - 1]) / (p[i] - p[i - 1]) * (u[i] - u[i - 1])
        return float((logit(between) - self.intercept) / self.slope)

    @classmethod
    def fitted(cls, matches: ScoredMatches) -> Self:
        """Return a logistic function or isotonic regression, by the smaller held-out log loss.

        Groups of dependent queries are held out together.
        """
        every = np.flatnonzero(matches.weights > 0)
        units = matches.units[every]
        kinds = (cls._logistic, cls._isotonic)
        n_folds = min(FOLDS_OF_CHOICE, len(np.unique(units)))
        losses = np.zeros(len(kinds))
        if n_folds > 1:
            for fold in GroupKFold(n_folds).split(every, groups=units):
                train, test = (every[part] for part in fold)
                for kind, fit in enumerate(kinds):
                    p = fit(matches, train)(matches.scores[test])
                    right, weights = matches.right[test], matches.weights[test]
                    losses[kind] += log_loss(right, p, sample_weight=weights, labels=[0, 1])
        return kinds[int(np.argmin(losses))](matches, every)

    @classmethod
    def _logistic(cls, matches: ScoredMatches, rows: np.ndarray) -> Self:
        s = matches.scores[rows]
        # with one correct match more at the highest score, and one wrong one at the lowest
        scores = np.append(s, [s.max(), s.min()])[:, None] / (s.std() or 1.0)
        right = np.append(matches.right[rows], [True, False])
        weights = np.append(matches.weights[rows], [1.0, 1.0])
        fitted = LogisticRegression(C=1e6, max_iter=1000).fit(scores, right, weights)
        at = np.unique(np.quantile(s, np.linspace(0, 1, KNOTS)))
        p = fitted.predict_proba(at[:, None] / (s.std() or 1.0))[:, 1]
        if fitted.coef_[0, 0] <= 0:  # a higher score is never evidence against a match
            p[:] = np.average(right, weights=weights)
        return cls._through(at, p, s)

    @classmethod
    def _isotonic(cls, matches: ScoredMatches, rows: np.ndarray) -> Self:
        s = matches.scores[rows]
        g = IsotonicRegression().fit(s, matches.right[rows], matches.weights[rows])
        return cls._through(g.X_thresholds_, g.y_thresholds_, s)

    @classmethod
    def _through(cls, at: np.ndarray, p: np.ndarray, scores: np.ndarray) -> Self:
        """Return the function of probabilities p at ascending scores, standardized by `scores`."""
        most = 1 - 1 / (len(scores) + 2)  # no match is certain, even if all matches are correct
        slope = float(1 / (scores.std() or 1.0))
        intercept = float(-slope * scores.mean())
        u = expit(slope * at + intercept)
        p = np.clip(p, 1 - most, most)
        return cls(slope, intercept, np.array([np.append(0, u), np.append(0, p)]))


@dataclass(frozen=True)
class Promise:
    """A threshold and its guarantees.

    Attributes
    ----------
    precision : float
        The requested precision.
    threshold : float
        Matches of at least this score are accepted.
    expected : float
        Share of correct matches among the accepted matches of held-out queries.
    bound : float
        Lower bound of that share, with a confidence of 95 %; see `PrecisionCurve`.
    recall : float
        Share of the queries with an answer for which the correct one is accepted.
    false_answers : float
        Share of the queries without an answer for which one is accepted.
    recall_low, recall_high : float
        The 95 % interval of `recall` at a threshold that is given.
    """

    precision: float
    threshold: float
    expected: float
    bound: float
    recall: float
    false_answers: float
    recall_low: float
    recall_high: float

    @property
    def is_kept(self) -> bool:
        """Return whether the bound is at least the requested precision."""
        return self.bound >= self.precision


class PrecisionCurve(NamedTuple):
    """Precision and recall of held-out queries as functions of the threshold.

    If the threshold is chosen because its bound is high enough, chance is part of the choice: among
    many thresholds on the same queries, one passes too often. `bound` accounts for this. It is the
    largest precision pi that passes these tests (the fallback procedure of Wiens 2003):

    * Thresholds are tested from the highest one downwards, each by a pointwise bound
      (`precision_bound`).
    * Tests start at three thresholds: where half of the answerable queries are accepted, a quarter,
      and 160. The first brings a fifth of the error probability of 5 %, the others two fifths each.
      If a quarter are fewer than 160, both are a quarter, but none is above the threshold that 63
      queries reach (or all), and that of one half not above the one that 30 reach. Where starts
      coincide, their probabilities add up.
    * A threshold that passes hands the error probability on to the next one. A failure ends the
      tests until the next start.

    Then the probability that a threshold of too low a precision passes is at most 5 %. Let t* be
    the score at which the true precision of the matches above falls below pi. A threshold below t*
    only passes if the first one tested below t* passes, at most with the error probability of all
    starts above t*, or one of the starts below t*, with its own. Thresholds are quantiles of the
    scores, so the number of accepted queries is fixed in advance, not the score. Given the number
    of queries above t*, their matches are wrong with probability 1 - pi, independently of each
    other, and matches between the threshold and t* with a larger probability. The number of errors
    is thus at least binomial, and each test is as valid as that of a fixed threshold. This assumes
    that the precision, once below pi, does not rise again as more matches are accepted.

    In an index of r times as many rows, a wrong match is at most r times as likely at the same
    threshold. Let F be the probability that none of the n wrong rows of a query is accepted instead
    of the right one, or instead of none. Of r n rows, none is with the probability F^r, and

        1 - E[F^r] <= 1 - E[F]^r <= r (1 - E[F]),   r >= 1,

    by Jensen's inequality, whatever distinguishes the queries. At least as many queries are
    accepted, so a share of wrong matches of at most 1 - `bound` becomes one of at most r (1 -
    `bound`). If there are more right rows as well, it is smaller.

    Attributes
    ----------
    thresholds : array of shape (k,)
        Ascending.
    expected, bound, recall, false_answers, recall_low, recall_high : arrays of shape (k,)
        See `Promise`.
    n_queries : int

    References
    ----------
    B. L. Wiens. A fixed sequence Bonferroni procedure for testing multiple endpoints.
    Pharmaceutical Statistics 2 (2003), 211-215.

    A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan and L. Lei. Learn then Test:
    calibrating predictive algorithms to achieve risk control. arXiv:2110.01052, 2021.
    """

    thresholds: np.ndarray
    expected: np.ndarray
    bound: np.ndarray
    recall: np.ndarray
    false_answers: np.ndarray
    recall_low: np.ndarray
    recall_high: np.ndarray
    n_queries: int

    @classmethod
    def of(cls, matches: ScoredMatches) -> Self:
        """Return the curve of some matches, at quantiles of the scores of answerable queries."""
        answerable = matches.answerable
        scores = np.sort(matches.scores[answerable])
        n_queries = len(scores)
        thresholds = np.unique(np.quantile(scores, np.arange(THRESHOLDS) / THRESHOLDS))
        reached = n_queries - np.searchsorted(scores, thresholds)
        first = np.clip(n_queries / 4, *FIRST)
        fewest = np.minimum([FEWEST_HALF, *[first] * (len(STARTS) - 1)], n_queries)
        counts = np.maximum(STARTS * n_queries, fewest)
        starts = np.array([np.flatnonzero(reached >= count)[-1] for count in counts])
        share = (1 - CONFIDENCE) / len(starts)
        confidences = 1 - share * np.arange(1, len(starts) + 1)
        expected, recall, false_answers, low, high = np.full((5, len(thresholds)), np.nan)
        pointwise = np.empty((len(starts), len(thresholds)))
        for i, threshold in enumerate(thresholds):
            accepted = matches.scores >= threshold
            expected[i], pointwise[:, i] = precision_bound(matches, accepted, confidences)
            found = accepted & matches.right
            recall[i] = np.mean(found[answerable])
            low[i], high[i] = share_interval(found[answerable], matches.units[answerable])
            if not answerable.all():
                false_answers[i] = np.mean(accepted[~answerable])
        bound = fallback_bound(pointwise, starts)
        return cls(thresholds, expected, bound, recall, false_answers, low, high, n_queries)

    def promise(self, precision: float, growth: float = 1.0) -> Promise | None:
        """Return the lowest threshold whose bound is at least the precision, or None.

        The bound is that in an index which is `growth` times as large. If it is too low there for
        all thresholds, but not in an index of the same size, the promise is not kept
        (`Promise.is_kept`): the threshold is then the one of the largest bound.
        """
        if not (self.bound >= precision).any():
            return None
        bound = self.bound - (growth - 1) * (1 - self.bound)
        i = np.argmax(bound >= min(precision, bound.max()))
        found = self._replace(bound=np.maximum(bound, 0))
        return Promise(precision, *(float(values[i]) for values in found[:7]))


def fallback_bound(pointwise: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the largest precision that passes at each threshold.

    Parameters
    ----------
    pointwise : array of shape (s, k)
        The pointwise bounds at ascending thresholds, for the error probability of 1, ..., s starts.
    starts : int array of shape (s,)
        Ascending indices of the thresholds at which tests start; several may be equal.
    """
    bound = np.zeros(pointwise.shape[1])
    for start in starts:
        passes = 1.0
        for i in range(start, -1, -1):
            n_starts = np.count_nonzero((starts >= i) & (starts <= start))
            passes = min(passes, pointwise[n_starts - 1, i])
            bound[i] = max(bound[i], passes)
    return bound


def precision_bound(
    matches: ScoredMatches, accepted: np.ndarray, confidence: Any = CONFIDENCE
) -> tuple[float, Any]:
    """Return the share of correct matches among accepted ones, and its one-sided lower bound.

    For an array of confidences, the bound is an array. It holds for accepted matches that were not
    chosen by it. The share P = sum w r / sum w of G groups of queries has the variance `G/(G - 1)
    sum_groups (sum w (r - P))^2 / (sum w)^2`. The bound is that of Clopper and Pearson for the
    effective number of matches, `P (1 - P) / variance` (at most their actual number), times a
    factor for the G - 1 degrees of freedom (Korn and Graubard, Survey Methodology 24, 1998). Since
    a few groups without an error do not show that there is none, the variance is at least that with
    one more group of mean size, half of it wrong. With few matches, a single group, or only wrong
    matches, the bound is 0.
    """
    rows = np.flatnonzero(accepted & (matches.weights > 0))
    if not len(rows):
        return np.nan, 0.0
    w, right, units = matches.weights[rows], matches.right[rows], matches.units[rows]
    total, wrong, G = w.sum(), w[~right].sum(), np.count_nonzero(np.bincount(units))
    P = float(1 - wrong / total)  # exactly 1 if all matches are correct
    if G < 2 or len(rows) < FEWEST_ACCEPTED or P == 0:
        return P, 0.0
    # the number of equal weights; an unseen wrong match may be one of the heaviest
    n = min(total**2 / (w @ w), total / matches.weights.max())
    ratio = ndtri(confidence) / stdtrit(G - 1, confidence)
    for unmet in (0.0, total / G):
        p = 1 - (wrong + unmet / 2) / (total + unmet)
        sums = np.append(np.bincount(units, w * (right - p)), unmet * (0.5 - p))
        variance = G / (G - 1) * sums @ sums / (total + unmet) ** 2
        if variance > 0:
            n = np.minimum(n, p * (1 - p) / variance * ratio**2)
    return P, betaincinv(n * P, n * (1 - P) + 1, 1 - confidence)


def share_interval(found: np.ndarray, units: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of a share, for groups of dependent queries."""
    every, ones = np.ones(len(found), dtype=bool), np.ones(len(found))
    ends = [
        precision_bound(ScoredMatches(ones, right, every, ones, units), every, 0.975)[1]
        for right in (found, ~found)
    ]
    return ends[0], 1 - ends[1]


# The lists that a search returns for held-out queries, and what they imply for a new list.

LIST = 10  # candidates per list
METRICS = ("auto", "cosine", "euclidean")
STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")
FEW = 3  # of the candidates of a list, whose mean is a feature
N_FEATURES = 6
OF_PAIRS = np.eye(N_FEATURES)[0]  # the score of a pair is the similarity alone


@dataclass(frozen=True)
class Space:
    """Queries and candidates, in a learned space and in the original one.

    Attributes
    ----------
    Q, C : arrays of shape (q, m) and (c, m)
    X, Y : arrays of shape (q, p) and (c, p)
    metric : {"cosine", "euclidean"}
        With "cosine" all rows have unit length.
    """

    Q: np.ndarray
    C: np.ndarray
    X: np.ndarray
    Y: np.ndarray
    metric: str

    @classmethod
    def of(cls, Q: Any, C: Any, X: Any, Y: Any, metric: str) -> Self:
        """Return the rows, scaled as the metric requires."""
        if metric == "cosine":
            Q, C, X, Y = map(unit_rows, (Q, C, X, Y))
        return cls(Q, C, X, Y, metric)

    def similarities(self, rows: slice) -> np.ndarray:
        """Return the cosines, or minus the distances, of some queries to all candidates, (q, c)."""
        if self.metric == "cosine":
            return self.Q[rows] @ self.C.T
        return -euclidean_distances(self.Q[rows], self.C)

    def features(self, rows: slice, listed: np.ndarray, S: np.ndarray) -> np.ndarray:
        """Return the features of the first candidate of each list, (q, 6).

        These are its similarity and the mean similarity of the list, in the learned and in the
        original space, and the mean similarity of the first three candidates in both.

        Parameters
        ----------
        rows : slice
            Of the queries.
        listed : int array of shape (q, k)
            Candidates, the most similar one first.
        S : array of shape (q, k)
            Their similarities; -inf for rows that are not candidates. A list of only such rows
            gives NaN.
        """
        X, Y = self.X[rows], self.Y[listed]
        if self.metric == "cosine":
            R = np.einsum("qp,qkp->qk", X, Y)
        else:
            R = -np.linalg.norm(X[:, None] - Y, axis=2)
        has = np.isfinite(S)

        def mean(of_list: np.ndarray, k: int) -> np.ndarray:
            n = np.where(has[:, 0], has[:, :k].sum(axis=1), np.nan)
            return np.where(has, of_list, 0)[:, :k].sum(axis=1) / n

        whole = [S[:, 0], mean(S, LIST), R[:, 0], mean(R, LIST)]
        return np.column_stack([*whole, mean(S, FEW), mean(R, FEW)])


def first_of(S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ten candidates of largest similarity, and their similarities, (q, 10)."""
    k = min(LIST, S.shape[1])
    listed = np.argpartition(-S, k - 1, axis=1)[:, :k]
    listed = np.take_along_axis(
        listed, np.argsort(-np.take_along_axis(S, listed, axis=1), axis=1, kind="stable"), axis=1
    )
    return listed, np.take_along_axis(S, listed, axis=1)


@dataclass(frozen=True)
class HeldOutLists:
    """What a search returns for held-out queries, with and without their relevant candidates.

    Without them, a query has no answer.

    Attributes
    ----------
    answered, unanswered : arrays of shape (q, 6)
        `Space.features`; NaN if all candidates are relevant.
    right : bool array of shape (q,)
        Whether the first candidate is relevant, among all candidates.
    units : dict of str to int array of shape (q,)
        For each part of the queries, such as "unseen classes": groups of dependent queries, -1 for
        queries of other parts.
    n_candidates : int
        The largest number of rows that held-out queries were compared with. Those of seen classes
        may have three quarters of them as candidates, right and wrong ones alike.
    """

    answered: np.ndarray
    unanswered: np.ndarray
    right: np.ndarray
    units: dict[str, np.ndarray]
    n_candidates: int

    @classmethod
    def of(cls, searches: Iterable[tuple[Space, Split]], judgements: Judgements) -> Self:
        """Return the lists of the held-out queries of several splits, in O(q c m) each.

        Different parts have distinct units.
        """
        answered, unanswered, right = [], [], []
        parts: dict[str, list[np.ndarray]] = {}
        n_candidates = 0
        for space, split in searches:
            n_candidates = max(n_candidates, len(space.C))
            # includes the rows gathered for the lists
            entries = max(len(space.C), LIST * space.X.shape[1])
            for rows in row_blocks(len(space.Q), entries):
                S, queries = space.similarities(rows), split.queries[rows]
                S[judgements.withheld(queries, split.candidates)] = -np.inf
                relevant = judgements.gains(queries, split.candidates) > 0
                listed, largest = first_of(S)
                right.append(np.take_along_axis(relevant, listed[:, :1], axis=1)[:, 0])
                answered.append(space.features(rows, listed, largest))
                S[relevant] = -np.inf
                unanswered.append(space.features(rows, *first_of(S)))
            for name, part in split.parts.items():
                of_queries = np.where(part, judgements.units(name)[split.queries], -1)
                parts.setdefault(name, []).append(of_queries)
        units, n_units = dict[str, np.ndarray](), 0
        for name, of_splits in parts.items():
            of_part = np.concatenate(of_splits)
            units[name] = np.where(of_part >= 0, of_part + n_units, -1)
            n_units += int(of_part.max()) + 1
        with_answer, without, is_right = map(np.concatenate, (answered, unanswered, right))
        return cls(with_answer, without, is_right, units, n_candidates)

    def matches(
        self, coefficients: np.ndarray, unanswerable: float, parts: Sequence[str]
    ) -> ScoredMatches:
        """Return the matches of some parts of the queries.

        A share `unanswerable` of the queries has no answer. Scores are linear combinations of the
        features. Queries without an answer are of classes not seen in training, if such were held
        out, like queries whose class is missing from an index.
        """
        units = np.max([self.units[part] for part in parts], axis=0)
        without_answer = self.units.get(UNSEEN, units)
        rows = np.flatnonzero(units >= 0)
        without = np.flatnonzero((without_answer >= 0) & np.isfinite(self.unanswered[:, 0]))
        odds = unanswerable / (1 - unanswerable) * len(rows) / max(len(without), 1)
        counts = [len(rows), len(without)]
        return ScoredMatches(
            np.concatenate([self.answered[rows], self.unanswered[without]]) @ coefficients,
            np.concatenate([self.right[rows], np.zeros(len(without), dtype=bool)]),
            np.repeat([True, False], counts),
            np.repeat([1.0, odds], counts),
            np.concatenate([units[rows], without_answer[without]]),
        )

    def coefficients(self, parts: Sequence[str]) -> np.ndarray:
        """Return the coefficients of a logistic regression of "right" on the features.

        Half of the queries have no answer.
        """
        matches = self.matches(np.eye(N_FEATURES), 0.5, parts)  # every feature is a score
        F, right = matches.scores, matches.right
        if right.all() or not right.any():
            return OF_PAIRS
        spread = np.where(F.std(axis=0) > 0, F.std(axis=0), 1)
        standard = (F - F.mean(axis=0)) / spread
        fitted = LogisticRegression(max_iter=1000).fit(standard, right, matches.weights)
        return fitted.coef_[0] / spread


@dataclass(frozen=True)
class MatchRule:
    """The score of a match, its probability, and its precision curve, for a part of the queries.

    Attributes
    ----------
    coefficients : array of shape (6,)
        The score is the sum of `Space.features` times these.
    calibration : Calibration
    curve : PrecisionCurve
    n_candidates : int
        Of the held-out queries; 0 if it is not known (up to version 0.3).
    """

    coefficients: np.ndarray
    calibration: Calibration
    curve: PrecisionCurve
    n_candidates: int

    @classmethod
    def fitted(
        cls, lists: HeldOutLists, parts: Sequence[str], unanswerable: float, *, of_pairs: bool
    ) -> Self:
        """Return the rule for single pairs (the score is the similarity) or the rule for lists."""
        coefficients = OF_PAIRS if of_pairs else lists.coefficients(parts)
        matches = lists.matches(coefficients, unanswerable, parts)
        curve = PrecisionCurve.of(matches)
        return cls(coefficients, Calibration.fitted(matches), curve, lists.n_candidates)

    def growth(self, n_candidates: int | None) -> float:
        """Return how many times as large an index is, at least 1; 1 if a size is not known."""
        if not (n_candidates and self.n_candidates):
            return 1.0
        return max(n_candidates / self.n_candidates, 1.0)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state as arrays."""
        c, curve = self.calibration, self.curve
        return {
            "coefficients": self.coefficients,
            "logistic": np.array([c.slope, c.intercept]),
            "knots": c.knots,
            "curve": np.array(curve[:5]),
            "recall_interval": np.array(curve[5:7]),
            "n_queries": np.array([curve.n_queries]),
            "n_candidates": np.array([self.n_candidates]),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Return a rule from the arrays of `to_arrays`."""
        (slope, intercept), knots = map(float, arrays["logistic"]), arrays["knots"]
        if knots[:, 0].any():  # saved by version 0.3, which was constant below the first knot
            knots = np.column_stack([[0.0, 0.0], knots])
        # up to version 0.3 there was neither the interval nor the number
        interval = arrays.get("recall_interval", np.full((2, arrays["curve"].shape[1]), np.nan))
        of_thresholds = np.vstack([arrays["curve"], interval])
        curve = PrecisionCurve._make([*of_thresholds, int(arrays["n_queries"].item())])
        n_candidates = int(arrays.get("n_candidates", np.zeros(1)).item())
        coefficients = np.zeros(N_FEATURES)
        coefficients[: len(arrays["coefficients"])] = arrays["coefficients"]  # 4 of version 0.3
        calibration = Calibration(slope, intercept, knots)
        return cls(coefficients, calibration, curve, n_candidates)


@dataclass(frozen=True)
class MatchRules:
    """A rule for every part of the queries, and one for all of these parts.

    Attributes
    ----------
    parts : dict of str to MatchRule
    every : MatchRule
    """

    parts: dict[str, MatchRule]
    every: MatchRule

    @classmethod
    def fitted(cls, lists: HeldOutLists, unanswerable: float, *, of_pairs: bool) -> Self:
        """Return the rules for all queries, of which a share `unanswerable` has no answer."""
        rule = partial(MatchRule.fitted, lists, unanswerable=unanswerable, of_pairs=of_pairs)
        parts = {part: rule([part]) for part in lists.units}
        return cls(parts, rule([*parts]))

    def expecting(self, expect: str) -> Self:
        """Return the rules for the expected classes: "known", "new", or "both".

        Parts that are not defined by classes are always included.
        """
        kept = expected_parts(self.parts, expect)
        if expect == "new" and UNSEEN not in kept:
            raise ValueError("expect='new' holds out classes: give eight or more with enough rows.")
        if not kept:  # saved by version 0.3
            raise ValueError("expect='known' has no rules, only new classes have: leave it out.")
        if kept == [*self.parts]:
            return self
        return replace(
            self, parts={part: self.parts[part] for part in kept}, every=self.parts[kept[0]]
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state as arrays.

        Names are such as "unseen classes/knots", or "/knots" for the rule for all queries.
        """
        return {
            f"{part}/{name}": array
            for part, rule in (*self.parts.items(), ("", self.every))
            for name, array in rule.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Return rules from the arrays of `to_arrays`."""
        by_part: dict[str, dict[str, np.ndarray]] = {}
        for path, array in arrays.items():
            part, _, name = path.partition("/")
            by_part.setdefault(part, {})[name] = array
        rules = {part: MatchRule.from_arrays(of_part) for part, of_part in by_part.items()}
        every = rules.pop("")
        return cls(rules, every)

    def promises(self, precision: float, n_candidates: int | None = None) -> dict[str, Promise]:
        """Return the promise for every part; raise a ValueError if there is none for some part.

        In an index of more rows than the held-out queries were compared with, it may not be kept;
        see `PrecisionCurve.promise`. None is an index of as many rows.
        """
        found = {}
        for part, rule in self.parts.items():
            promise = rule.curve.promise(precision, rule.growth(n_candidates))
            if promise is None:
                most, n = rule.curve.bound.max(), rule.curve.n_queries
                remedy = "or give more rows"
                if part == UNSEEN:
                    remedy = (
                        "give more classes, or expect known ones alone (expect='known', nearkin "
                        "adapt --expect known)"
                    )
                raise ValueError(
                    f"precision={precision:g} cannot be promised for {part}: with a confidence of "
                    f"95 % no threshold reaches more than {most:.3f} by {n:,} held-out queries. "
                    f"Ask for less, {remedy}."
                )
            found[part] = promise
        return found

    def threshold(self, precision: float) -> float:
        """Return the lowest score at which the precision is guaranteed for every part."""
        return max(promise.threshold for promise in self.promises(precision).values())

    def accept(
        self, features: np.ndarray, precision: float, n_candidates: int | None = None
    ) -> np.ndarray:
        """Return which matches the rules of all parts accept, (q,)."""
        promises = self.promises(precision, n_candidates)
        return np.all(
            [features @ self.parts[p].coefficients >= promises[p].threshold for p in promises],
            axis=0,
        )

    def probability(self, features: np.ndarray, n_candidates: int | None = None) -> np.ndarray:
        """Return the probability that each match is correct, (q,).

        In an index which is r times as large, a wrong row of a given score is at most r times as
        likely, and so are the odds that the match is wrong: the probability is a lower bound.
        """
        p = self.every.calibration(features @ self.every.coefficients)
        return p / (1 + (self.every.growth(n_candidates) - 1) * (1 - p))


@dataclass(frozen=True)
class BestMatches:
    """The best match of every query.

    Attributes
    ----------
    rows : int array of shape (q,)
        The index of the matching row; -1 for none.
    similarities : array of shape (q,)
        Similarity of the best candidate, whether accepted or not.
    probabilities : array of shape (q,)
        The probability that this candidate belongs to the query; a lower bound in an index of more
        rows than the held-out queries were compared with.
    """

    rows: np.ndarray
    similarities: np.ndarray
    probabilities: np.ndarray

    def one_to_one(self) -> Self:
        """Return the matches without those whose row of the index has a better one.

        As a query has one accepted candidate, keeping the most probable match of every row is the
        assignment of the largest number of pairs and of the largest sum of probabilities. Of
        equally probable ones, the most similar is kept, then the first.

        If no item of the index has more than one right match, a promised precision P of at least
        one half still holds. Of k matches of one row, k - 1 are dropped, at most one of which is
        right, and this only if another one was more probable. As long as the more probable one of
        a right and a wrong match is right at least half of the time, at most half of the dropped
        matches are right in expectation, so the share of right ones among the others does not fall.
        """
        matched = np.flatnonzero(self.rows >= 0)
        keys = (-self.similarities[matched], -self.probabilities[matched])
        best_first = matched[np.lexsort(keys)]
        rows, place = np.unique(self.rows[best_first], return_index=True)
        kept = np.full_like(self.rows, -1)
        kept[best_first[place]] = rows
        return replace(self, rows=kept)


class Matcher(BaseEstimator):
    """Predicts whether two items belong together, and which queries have no match.

    The estimator learns a space from some of the rows, and the others serve as queries, whose best
    candidates are correct or not. Over four splits every row is held out once. With eight classes
    or more, every class is also held out once, as one not seen in training; all its rows are then
    queries of all labelled rows but their own group. Near copies (`nearkin.comparison.twin_groups`)
    and rows of given groups are held out together. From the held-out queries, the matcher derives

    * a calibrated probability, from the similarity of two rows or from the list that a search
      returns: isotonic regression or a logistic function, whichever has the smaller held-out log
      loss;
    * the lowest threshold at which the precision of accepted matches is at least the requested one,
      with a confidence of 95 %. The bound is that of Clopper and Pearson, corrected for dependent
      queries: near copies, given groups and, for new classes, rows of the same class. The
      confidence accounts for the choice of the threshold by the fallback procedure (Wiens 2003; see
      `PrecisionCurve` of `nearkin.vectors`). If no threshold guarantees the precision, an error is
      raised.

    The score of a list is a logistic regression of its largest similarity and the means of its
    three and ten largest, both in the learned and in the original space. A best candidate far more
    similar than the rest of its list may be a chance hit, and what an estimator has learned from
    known classes misleads about new ones.

    Parameters
    ----------
    estimator : transformer, default=None
        Learns the space, such as `EmbeddingAdapter` or `NCA`. None compares the original rows. A
        `FrozenEstimator` is not fitted: call `fit` with rows that it has not seen.
    metric : {"auto", "cosine", "euclidean"}, default="auto"
        How rows of the space are compared: by cosine, or by minus the Euclidean distance. "auto"
        takes the cosine for adapters and for the original rows.
    expect : {"both", "known", "new"}, default="both"
        The classes of future queries: those seen in training, new ones, or both. With "both", a
        threshold has the requested precision for either; probabilities are of a mixture by the
        numbers of held-out queries, about three of known classes to four of new ones.
    unanswerable : float, default=0.0
        Expected share of queries without an answer, in [0, 1). They are simulated by leaving out
        the relevant candidates of held-out queries, of classes not seen in training or, if none are
        held out, of all classes.
    random_state : int, RandomState instance or None, default=0
        Seed of the splits.

    Attributes
    ----------
    estimator_ : transformer or None
        The estimator, fitted to all rows.
    metric_ : {"cosine", "euclidean"}
        The metric used.
    pair_rules_, list_rules_ : MatchRules
        Rules for single pairs, and for the lists of a search. Not available after `fit_pairs` with
        pairs of both kinds, given as rows.
    threshold_ : float
        Pairs of at least this similarity are predicted to belong together. After `fit`, it is the
        similarity from which on the probability is at least one half, or inf if there is none. For
        pairs of both kinds, see `fit_pairs`.

    See Also
    --------
    EmbeddingAdapter, NCA, PairNCA

    Notes
    -----
    The guarantee holds for queries like the held-out ones, and for an index of any size. In one of
    r times as many rows as the held-out queries were compared with
    (`list_rules_.every.n_candidates`), `best_match` takes wrong matches as r times as likely, which
    they are at most: a precision of .95 needs a threshold that guarantees 1 - .05 / r among the
    held-out queries, and the odds that a match is wrong are multiplied by r. If no threshold does,
    a warning says that nothing is promised. `threshold` does not know the index: for a larger one,
    request 1 - .05 / r. If half of the queries have no answer and `unanswerable` does not account
    for it, it does not hold. Near copies are taken as one item, so they do not count as answers to
    each other in `fit`: to find near duplicates, learn from pairs of them by `fit_pairs`.

    The confidence refers to the whole procedure: if the rows were drawn and a precision requested
    repeatedly, a wrong guarantee would be given in at most 5 % of all cases, including refusals.
    Among the guarantees that are *given*, more may be wrong. If hardly any threshold has the
    precision, nearly all requests are refused, and the few that are granted owe it to chance. No
    test can exclude that. With `expect="both"`, the 5 % apply to known and to new classes
    separately.

    Calibrated probabilities do not affect the guarantee, since they do not change the order of
    matches. The score of a list does: its six coefficients are fitted to the same queries, which
    the bound does not account for. `threshold`, for single pairs, has no coefficients.

    Cost: four fits, one more on all rows, and O(n^2 m) for the similarities, in blocks.

    References
    ----------
    A. N. Angelopoulos, S. Bates, E. J. Candes, M. I. Jordan and L. Lei. Learn then Test:
    calibrating predictive algorithms to achieve risk control. arXiv:2110.01052, 2021.

    E. L. Korn and B. I. Graubard. Confidence intervals for proportions with small expected number
    of positive counts estimated from survey data. Survey Methodology 24, 1998.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import EmbeddingAdapter, Matcher
    >>> X, y = load_digits(return_X_y=True)
    >>> matcher = Matcher(EmbeddingAdapter(16, start="pca", max_iter=5), expect="known")
    >>> matcher = matcher.fit(X[:600], y[:600])
    >>> found = matcher.best_match(X[900:], X[:600], precision=0.95)
    >>> has = found.rows >= 0  # -1 for none
    >>> bool((y[found.rows] == y[900:])[has].mean() > 0.95)
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        metric: str = "auto",
        expect: str = "both",
        unanswerable: float = 0.0,
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.expect = expect
        self.unanswerable = unanswerable
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.requires_fit = self.estimator is not None
        return tags

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Learn from labelled rows: rows of the same class belong together.

        Parameters
        ----------
        X : array of shape (n, p)
        y : array of shape (n,)
            Class labels; -1, None or NaN for unlabelled rows, which are used by estimators that
            learn from them, such as `EmbeddingAdapter`.
        groups : array of shape (n,), default=None
            Groups of dependent rows, such as all measurements of a patient. Like near copies, rows
            of one group are held out together, and are no matches of each other.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If there are too few rows or classes to hold some out.
        """
        X = validate_dense_rows(self, X, reset=True)
        check_consistent_length(X, y)
        return self._calibrate(Labels.of(X, y, self._units(X, groups)))

    def fit_pairs(self, X: Any, pairs: Any = None, y: Any = None, groups: Any = None) -> Self:
        """Learn from pairs of rows that belong together, and pairs that do not.

        If pairs are given as row indices, those that belong together are held out as queries and
        searched among all rows.

        If pairs of both kinds are given as rows, nothing is guaranteed about searches, and there is
        no probability. A quarter of the pairs is held out at a time, and compared under a metric
        learned from the others; `threshold_` has the largest accuracy on the held-out pairs. The
        final metric is learned from all pairs. Pairs that are connected by shared rows are held out
        together, unless this would put more than half of them in one group; then held-out pairs may
        share rows with others.

        Parameters
        ----------
        X : array of shape (n, p) or (n_pairs, 2, p)
            Rows; or, without `pairs`, the two rows of each pair. In the second case y may come
            second: `fit_pairs(X, y)`.
        pairs : int array of shape (n_pairs, 2), default=None
            Indices of two rows each.
        y : array of shape (n_pairs,), default=None
            Grades; at most 0 for pairs that do not belong together. The default is 1.
        groups : array of shape (n,), default=None
            Groups of dependent rows, which are held out together like near copies. It needs pairs
            of row indices.

        Returns
        -------
        self
        """
        rows, pairs, y = unstacked(X, pairs, y, "pairs", 2)
        is_stacked = rows is not X
        if is_stacked and groups is not None:
            raise ValueError("groups are of rows: give X (n, p), and pairs as indices of its rows.")
        is_fitted = self.estimator is None or isinstance(self.estimator, FrozenEstimator)
        if not (is_fitted or hasattr(self.estimator, "fit_pairs")):
            raise TypeError(
                f"estimator must have a fit_pairs to learn from pairs, got {self.estimator!r}: "
                "take one such as GMML(), or fit it before, and pass FrozenEstimator(estimator)."
            )
        X = validate_dense_rows(self, rows, reset=True)
        pairs = check_row_numbers(pairs, "pairs", 2, len(X))
        grades = check_grades(y, len(pairs))
        if is_stacked and not grades.all():
            return self._cross_fit(X, pairs, grades > 0)
        return self._calibrate(Relevance.of_pairs(X, pairs, grades, self._units(X, groups)))

    def fit_relevance(
        self, queries: Any, documents: Any, relevance: Any, groups: Any = None
    ) -> Self:
        """Learn from queries and their relevant documents.

        Parameters
        ----------
        queries : array of shape (n_queries, p)
        documents : array of shape (n_documents, p)
        relevance : array of shape (n_judgements, 2 or 3), or sparse matrix
            See `EmbeddingAdapter.fit_relevance`.
        groups : array of shape (n_queries,), default=None
            Groups of dependent queries, which are held out together like near copies.

        Returns
        -------
        self
        """
        documents = validate_dense_rows(self, documents, reset=True)
        queries = validate_dense_rows(self, queries, reset=False)
        R = relevance_matrix(relevance, (len(queries), len(documents)))
        return self._calibrate(Relevance(queries, documents, R, self._units(queries, groups)))

    @classmethod
    def from_rules(cls, estimator: Any, pair_rules: MatchRules, list_rules: MatchRules) -> Self:
        """Return the matcher of a fitted estimator (or None), with saved rules."""
        matcher = cls(None if estimator is None else FrozenEstimator(estimator))
        matcher._set_space(estimator)
        return matcher._set_rules(pair_rules, list_rules)

    def match_probability(self, X: Any, Y: Any) -> np.ndarray:
        """Return the probability that rows belong together, for each pair.

        Parameters
        ----------
        X, Y : arrays of shape (n, p)
            Queries, and the row with which each is compared.

        Returns
        -------
        array of shape (n,)
            The probability that a match of this similarity is correct, as calibrated on held-out
            queries and their best candidates. It does not fall with the similarity. Pairs less
            similar than all these matches are taken as no match: below, it falls to 0, by about a
            factor of e for every standard deviation of their similarities.
        """
        check_is_fitted(self, "pair_rules_", msg=NO_RULES)
        return self.pair_rules_.every.calibration(self._similarity(X, Y))

    def threshold(self, precision: float = 0.95) -> float:
        """Return the lowest similarity of pairs at which a precision is guaranteed.

        Parameters
        ----------
        precision : float, default=0.95
            Lower bound on the share of correct matches among accepted ones (95 % confidence), in an
            index of as many rows as the held-out queries were compared with; see Notes.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the held-out queries cannot guarantee it.
        """
        check_is_fitted(self, "pair_rules_", msg=NO_RULES)
        return self.pair_rules_.threshold(check_share(precision, "precision"))

    def best_match(self, queries: Any, index: Any = None, precision: float = 0.95) -> BestMatches:
        """Find the best match of every query, or none.

        Parameters
        ----------
        queries : array of shape (q, p)
        index : array of shape (n, p), default=None
            None searches the queries among each other, e.g. for near duplicates.
        precision : float, default=0.95
            Lower bound on the share of correct matches; see `threshold`. Queries whose best
            candidate is not certain enough have no match.

        Returns
        -------
        BestMatches

        Raises
        ------
        ValueError
            If the held-out queries cannot guarantee the precision.

        Warns
        -----
        UserWarning
            If they can, but not in an index of so many rows.
        """
        check_is_fitted(self, "list_rules_", msg=NO_RULES)
        check_share(precision, "precision")
        space = self._space(queries, index)
        if index is None and len(space.C) < 2:
            raise ValueError("queries hold one row, and index=None: give an index, or more rows.")
        listed, S = nearest_lists(space, own=index is None)
        blocks = row_blocks(len(listed), LIST * space.X.shape[1])
        features = np.concatenate([space.features(rows, listed[rows], S[rows]) for rows in blocks])
        rules, n = self.list_rules_, len(space.C)
        broken = [one for one in rules.promises(precision, n).values() if not one.is_kept]
        if broken:
            warn_user(
                f"precision={precision:g} is not promised in an index of {n:,} rows: held-out "
                f"queries were compared with {rules.every.n_candidates:,}, and among more rows a "
                "wrong one may come nearer. The threshold of the highest bound is taken. Ask for "
                "less, or learn from more rows."
            )
        accepted = rules.accept(features, precision, n)
        if space.metric == "cosine":  # rows of zeros have no direction
            accepted &= space.X.any(axis=1) & space.Y[listed[:, 0]].any(axis=1)
        return BestMatches(
            np.where(accepted, listed[:, 0], -1), S[:, 0], rules.probability(features, n)
        )

    # Decisions for given pairs, as in metric-learn.

    def decision_function(self, pairs: Any) -> np.ndarray:
        """Return the similarity of the rows of each pair.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)

        Returns
        -------
        array of shape (n_pairs,)
            Cosines, or minus Euclidean distances.
        """
        pairs = validate_pairs(pairs)
        with warnings.catch_warnings():  # the rows of pairs have no feature names
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            return self._similarity(pairs[:, 0], pairs[:, 1])

    def predict(self, pairs: Any) -> np.ndarray:
        """Predict 1 for pairs whose similarity is at least `threshold_`, else -1.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)

        Returns
        -------
        int array of shape (n_pairs,)
        """
        check_is_fitted(self, "threshold_")
        return np.where(self.decision_function(pairs) >= self.threshold_, 1, -1)

    def score(self, pairs: Any, y: Any) -> float:
        """Return the area under the ROC curve of the similarities.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)
        y : array of shape (n_pairs,)
            1 for pairs that belong together, -1 for others; both must occur.
        """
        pairs = validate_pairs(pairs)
        similar = check_both_kinds(y, len(pairs))
        return float(roc_auc_score(similar, self.decision_function(pairs)))

    def set_threshold(self, threshold: float) -> Self:
        """Set the lowest similarity at which `predict` takes pairs as belonging together."""
        self.threshold_ = check_number(threshold, "threshold", -np.inf)
        return self

    def calibrate_threshold(
        self,
        pairs: Any,
        y: Any,
        strategy: str = "accuracy",
        *,
        min_rate: float | None = None,
        beta: float = 1.0,
    ) -> Self:
        """Set the threshold of `predict` from labelled pairs.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p)
            Preferably pairs that were not used for learning.
        y : array of shape (n_pairs,)
            1 for pairs that belong together, -1 for others; both must occur.
        strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}, default="accuracy"
            What is maximized: the accuracy; the F score with `beta`; the true positive rate subject
            to a true negative rate of at least `min_rate`; or vice versa.
        min_rate : float, default=None
            In [0, 1]; required for the last two.
        beta : float, default=1.0
            Weight of recall in the F score, at least 0; with 0 the score is the precision.

        Returns
        -------
        self
        """
        check_choice(strategy, "strategy", STRATEGIES)
        pairs = validate_pairs(pairs)
        similar = check_both_kinds(y, len(pairs))
        if strategy in ("max_tpr", "max_tnr"):
            if min_rate is None:
                raise ValueError(f"strategy={strategy!r} needs min_rate, a number in [0, 1].")
            if check_number(min_rate, "min_rate", 0) > 1:
                raise ValueError(f"min_rate must be at most 1, got {min_rate!r}.")
        check_number(beta, "beta", 0)
        scores = self.decision_function(pairs)
        return self.set_threshold(best_threshold(similar, scores, strategy, min_rate, beta))

    def _units(self, X: np.ndarray, groups: Any) -> np.ndarray:
        """Return groups of dependent rows: near copies, joined with the groups that are given."""
        is_frozen = isinstance(self.estimator, FrozenEstimator)
        estimator = self.estimator.estimator if is_frozen else self.estimator
        by_cosine = self._metric_of(estimator) == "cosine"
        if by_cosine and X.shape[1] == 1:
            raise ValueError(
                "X has 1 feature(s), and rows of one number have cosines of 1 or -1: give more "
                "features, or metric='euclidean'."
            )
        copies = twin_groups(unit_rows(X) if by_cosine else X, scale=not by_cosine)
        if groups is None:
            return copies
        check_consistent_length(X, groups)
        return joined_groups(copies, encode_groups(groups))

    def _calibrate(self, judgements: Judgements) -> Self:
        """Hold queries out four times and learn from the others; finally learn from all."""
        check_choice(self.metric, "metric", METRICS)
        check_choice(self.expect, "expect", EXPECTED)
        if self.estimator is not None:
            check_estimator(self.estimator, "estimator")
        if check_number(self.unanswerable, "unanswerable", 0) >= 1:
            raise ValueError(f"unanswerable must be below 1, got {self.unanswerable!r}.")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        queries, documents = judgements.vectors()

        def searches() -> Iterator[tuple[Space, Split]]:
            for split in usable_splits(judgements, rng):
                self._set_space(self._learned(split.train))
                for part in split.apart():
                    yield self._space(queries[part.queries], documents[part.candidates]), part

        held_out = HeldOutLists.of(searches(), judgements)
        self._set_space(self._learned(judgements))
        rules = (
            MatchRules.fitted(held_out, self.unanswerable, of_pairs=of_pairs)
            for of_pairs in (True, False)
        )
        return self._set_rules(*(of_all.expecting(self.expect) for of_all in rules))

    def _cross_fit(self, X: np.ndarray, pairs: np.ndarray, similar: np.ndarray) -> Self:
        """Hold pairs out four times and learn from the others; finally learn from all.

        The threshold is set from the similarities of held-out pairs.
        """
        check_choice(self.metric, "metric", METRICS)

        def learned(some: np.ndarray) -> Any:
            """Return the estimator, fitted to some pairs and their rows."""
            of_pairs = Pairs.of(X, pairs[some], 1.0 * similar[some], np.arange(len(X)))
            return self._learned(of_pairs.some(np.unique(pairs[some])))

        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        quarter = quarters(linked_pairs(pairs, len(X)), rng)
        scores = np.empty(len(pairs))
        for i in range(FOLDS):
            train, test = quarter != i, quarter == i
            if not 0 < similar[train].sum() < train.sum() or not test.any():
                raise ValueError(
                    f"too few pairs to hold out a quarter of them, four times: {similar.sum()} "
                    f"similar and {(~similar).sum()} dissimilar ones, some of which share rows; "
                    "give more."
                )
            self._set_space(learned(train))
            scores[test] = self._similarity(*X[pairs[test].T])
        self._set_space(learned(np.ones(len(pairs), dtype=bool)))
        for name in ("pair_rules_", "list_rules_"):  # from an earlier fit
            self.__dict__.pop(name, None)
        return self.set_threshold(best_threshold(similar, scores, "accuracy", None, 1.0))

    def _set_rules(self, pair_rules: MatchRules, list_rules: MatchRules) -> Self:
        """Set the rules, and the threshold of `predict` at a probability of one half."""
        self.pair_rules_, self.list_rules_ = pair_rules, list_rules
        self.threshold_ = pair_rules.every.calibration.lowest_score(0.5)
        return self

    def _learned(self, judgements: Judgements | None) -> Any:
        """Return the estimator fitted to some judgements, or None for the original rows."""
        if isinstance(self.estimator, FrozenEstimator):
            return self.estimator.estimator
        if self.estimator is None or judgements is None:
            return None
        return judgements.fit(clone(self.estimator))

    def _set_space(self, estimator: Any) -> None:
        """Set the fitted estimator and the metric of its space."""
        if not (estimator is None or hasattr(estimator, "transform")):
            raise TypeError(f"estimator must have a transform, got {estimator!r}.")
        self.estimator_ = estimator
        self.metric_ = self._metric_of(estimator)

    def _metric_of(self, estimator: Any) -> str:
        """Return the metric of the space of an estimator."""
        if self.metric != "auto":
            return self.metric
        by_cosine = estimator is None or isinstance(estimator, UnitEmbedding)
        return "cosine" if by_cosine else "euclidean"

    def _space(self, queries: Any, candidates: Any = None) -> Space:
        """Return queries and candidates (None: the queries) in the space of the estimator."""
        X = Y = validate_dense_rows(self, queries, reset=False)
        if candidates is not None:
            Y = validate_dense_rows(self, candidates, reset=False)
        transform = getattr(self.estimator_, "transform", np.asarray)  # of None: as they are
        embed = getattr(self.estimator_, "compared", transform)
        Q = C = embed(X)
        if getattr(self.estimator_, "side", "both") == "query":
            C = Y
        elif Y is not X:
            C = embed(Y)
        return Space.of(Q, C, X, Y, self.metric_)

    def _similarity(self, X: Any, Y: Any) -> np.ndarray:
        """Return the similarities of rows of X and Y, pair by pair."""
        if not hasattr(self, "metric_"):
            if self.estimator is not None and not isinstance(self.estimator, FrozenEstimator):
                check_is_fitted(self, "pair_rules_")
            self._set_space(self._learned(None))
        check_consistent_length(X, Y)
        space = self._space(X, Y)
        if space.metric == "cosine":
            return np.einsum("ij,ij->i", space.Q, space.C)
        return -np.linalg.norm(space.Q - space.C, axis=1)


def comparison_accuracy(model: Any, comparisons: Any, sample_weight: Any = None) -> float:
    """Return the share of distance comparisons that a metric orders correctly.

    Parameters
    ----------
    model : fitted estimator or None
        Anything with `transform`: a learned metric, a pipeline that ends with one, an
        `EmbeddingAdapter` (rows are compared by cosine), or a `Matcher`. None takes the Euclidean
        distance of the original rows.
    comparisons : array of shape (n, 3, p) or (n, 4, p)
        Triplets of rows (a, b, c), where a is closer to b than to c, or quadruplets (a, b, c, d),
        where a is closer to b than c is to d. Use comparisons from which the metric was not
        learned.
    sample_weight : array of shape (n,), default=None
        Weights of the comparisons, at least 0; None for equal weights.

    Returns
    -------
    float
        Between 0 and 1. Equal distances count as half correct, so an uninformative metric gets 0.5.

    Notes
    -----
    Cost: that of `transform` on 4 n rows.

    Examples
    --------
    >>> from nearkin.vectors import comparison_accuracy
    >>> comparison_accuracy(None, [[[0.0], [1.0], [3.0]], [[0.0], [1.0], [-1.0]]])
    0.75
    """
    shape = np.shape(comparisons)
    if len(shape) != 3 or shape[1] not in (3, 4):
        raise ValueError(
            f"comparisons must have the shape (n, 3, p) or (n, 4, p), got {shape}: with numbers of "
            "rows, pass X[numbers]."
        )
    comparisons = validate_tuples(comparisons, "comparisons", shape[1])
    weights = check_pair_weights(sample_weight, len(comparisons), "sample_weight")
    if model is None:
        matcher = Matcher(metric="euclidean")
    elif isinstance(model, Matcher):
        matcher = model
    elif hasattr(model, "transform"):
        matcher = Matcher(FrozenEstimator(model))
    else:
        raise TypeError(f"model must be None, a Matcher or have a transform, got {model!r}.")
    near = matcher.decision_function(comparisons[:, :2])
    far = matcher.decision_function(comparisons[:, [-2, -1] if shape[1] == 4 else [0, 2]])
    return float(np.average((near > far) + 0.5 * (near == far), weights=weights))


def check_both_kinds(y: Any, n_pairs: int) -> np.ndarray:
    """Return which pairs are similar; y must contain both 1 and -1."""
    similar = check_pair_labels(y, n_pairs)
    if similar.all() or not similar.any():
        raise ValueError(
            f"y must mark some pairs as similar (1) and some as not (-1), got {2 * similar[0] - 1} "
            f"for all {n_pairs}."
        )
    return similar


def linked_pairs(pairs: np.ndarray, n: int) -> np.ndarray:
    """Return the group of every pair of n rows: the connected component of its rows.

    If a component contains more than half of the pairs, only equal pairs form a group.
    """
    graph = csr_array((np.ones(len(pairs)), pairs.T), shape=(n, n))
    groups = connected_components(graph)[pairs[:, 0]]
    if 2 * np.bincount(groups).max() > len(pairs):
        groups = np.unique(np.sort(pairs, axis=1), axis=0, return_inverse=True)[1]
    return groups


def best_threshold(
    similar: np.ndarray, scores: np.ndarray, strategy: str, min_rate: float | None, beta: float
) -> float:
    """Return the lowest score of a similar pair, by a strategy of `calibrate_threshold`."""
    if strategy == "f_beta":
        precision, recall, thresholds = precision_recall_curve(similar, scores)
        with np.errstate(invalid="ignore"):
            F = (1 + beta**2) * precision * recall / (beta**2 * precision + recall)
        return float(thresholds[np.nanargmax(F[:-1])])
    false, true, thresholds = roc_curve(similar, scores, drop_intermediate=False)
    share = similar.mean()
    value = {
        "accuracy": share * true + (1 - share) * (1 - false),
        "max_tpr": np.where(1 - false >= (min_rate or 0), true, -1),
        "max_tnr": np.where(true >= (min_rate or 0), 1 - false, -1),
    }[strategy]
    best = thresholds[np.argmax(value)]
    # roc_curve starts with a threshold of inf, above all scores
    return float(best if np.isfinite(best) else np.nextafter(scores.max(), np.inf))


def nearest_lists(space: Space, *, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidates of largest similarity, and their similarities, (q, 10), descending.

    With `own`, the queries are the candidates, but not of themselves.
    """
    k = min(LIST + own, len(space.C))
    distances, listed = searcher("auto", len(space.C)).index(space.C, k)(space.Q, k)
    S = -distances
    if space.metric == "cosine":  # as for held-out queries, to the last digit
        blocks = row_blocks(len(listed), k * space.C.shape[1])
        S = np.concatenate(
            [np.einsum("qm,qkm->qk", space.Q[rows], space.C[listed[rows]]) for rows in blocks]
        )
        order = np.argsort(-S, axis=1, kind="stable")
        listed, S = (np.take_along_axis(array, order, axis=1) for array in (listed, S))
    if own:
        is_own = listed == np.arange(len(listed))[:, None]
        others = np.argsort(is_own, axis=1, kind="stable")[:, : k - 1]
        listed, S = (np.take_along_axis(array, others, axis=1) for array in (listed, S))
    return listed, S


def check_share(value: Any, name: str) -> float:
    """Return a number in (0, 1], or raise an error that names the invalid argument."""
    if not 0 < check_number(value, name, 0) <= 1:
        raise ValueError(f"{name} must be above 0 and at most 1, got {value!r}.")
    return float(value)
