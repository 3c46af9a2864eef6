"""NCA from pairs of similar rows, without labels (Goldberger et al., NIPS 2004, section 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._callbacks import FitTask, with_callbacks
from .._validation import (
    check_array,
    check_choice,
    check_positive,
    check_random_state,
    number_of_rows,
    relative_weights,
    weighted_rows,
)
from ..bandwidth import perplexity
from ..descent import minimize
from ..neighbors import searcher
from ..objectives.candidates import number_near
from ..objectives.loss import Ridge
from ..objectives.nca import SimilarPairs
from ..scatter import second_moment, total_scatter
from ..spectral import ratio_trace
from .descent_embedding import (
    INIT_ROWS,
    DescentEmbedding,
    RowsInPlace,
    ScaledRows,
    UnitRows,
    check_descent,
    check_n_components,
    directions,
    reporter,
)
from .pairs import check_pair_weights, check_pairs, validate_given_pairs
from .validation import validate_rows


class PairNCA(DescentEmbedding):
    """NCA from weighted pairs of similar rows: makes them close, compared with all pairs of rows.

    With weights w_ab of the pairs (a, b), the map A minimizes

        -1 / sum w  sum_(a,b) w_ab log( exp(-||A x_a - A x_b||^2)
                                        / sum_{c != d} exp(-||A x_c - A x_d||^2) )         (eq. 8)

    plus `alpha / sqrt(n) ||A||^2 u^2`. It makes the given pairs likely among all ordered pairs of
    rows. The typical distance of neighbours, u, makes alpha independent of the scale of the
    features.

    With weights s of the rows (`sample_weight` of `fit`), a pair (a, b) has weight `s_a s_b w_ab`
    and the denominator becomes `sum_{c != d} s_c s_d exp(-||A x_c - A x_d||^2)`. A row of weight 2
    counts as two equal rows that do not form a pair; a row of weight 0 is left out with its pairs.
    Only the ratios of weights matter. u and the scale of the init do not depend on them.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or for p > n the rank of the centred rows.
    n_candidates : "auto", int or None, default="auto"
        None sums over all ordered pairs of rows: O(n^2) per iteration. An integer k sums, for every
        row, over its k nearest rows in the current embedding, searched again every 15 iterations,
        and 500 evenly drawn rows that represent all others. "auto" is exact up to 8,000 rows, and k
        = 50 for more; with solver="sgd", "auto" is always k = 15.
    search
        See `NCA`.
    alpha : float, default=0.15
        Weight of the penalty; 0 for none.
    init : {"auto", "identity", "pca", "random"}, default="auto"
        Where the descent begins. "auto" takes the identity if all dimensions are kept, else PCA. If
        X is dense, it also tries the directions in which pairs differ least relative to all rows,
        and takes the init of lower loss. Directions are scaled as for `NCA`, or smaller, to a mean
        squared distance of the pairs of m / 2.
    n_init : int, default=1
        Number of descents: one from `init`, the others from random directions. The map of the
        lowest loss is kept.
    solver, batch_size, max_iter, tol
        See `NCA`. With solver="sgd", for many rows, a step uses some rows, their candidates, and
        the given pairs whose first row is among them.
    random_state : int, RandomState or None, default=None
        Seed of the random directions; with solver="sgd", of all random choices.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A.
    n_components_ : int
        m.
    objective_ : float
        Cost at A, without the penalty, for a pair of weight 1. It is `log(n (n - 1))` if the pairs
        are as close as any others. Row weights are scaled to mean 1.
    objective_error_, perplexity_, n_iter_, search_
        See `NCA`.
    loss_curve_ : ndarray of shape (at least `n_iter_` + 1,)
        Cost plus penalty, before and after every iteration; see `NCA`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    NCA : Learns from labels.
    GMML : From similar and dissimilar pairs, in closed form.

    Notes
    -----
    The scale of the features, warnings, precision and interrupts are as for `NCA`. The logarithm of
    a sum over some of the rows is on average a little less than that over all rows, so steps of
    solver="sgd" are biased, more so for fewer rows.

    Cost: as for `NCA`, an iteration takes O(n^2 m + n p m); with k candidates O(n k m + n p m), and
    a search every 15 iterations. Memory is O(n (p + m + k)), never n x n.

    References
    ----------
    See `NCA`.

    Examples
    --------
    A slow signal and fast noise, where rows next to each other in time are similar:

    >>> import numpy as np
    >>> from nearkin import PairNCA
    >>> time = np.linspace(0, 10, 200)
    >>> X = np.column_stack([np.sin(time), np.random.default_rng(0).normal(size=200)])
    >>> slow, noise = np.abs(PairNCA(1).fit(X).components_[0])
    >>> bool(slow > 10 * noise)
    True
    """

    _needs_labels = False

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_candidates: int | str | None = "auto",
        search: Any = "exact",
        alpha: float = 0.15,
        init: str = "auto",
        n_init: int = 1,
        solver: str = "lbfgs",
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_candidates = n_candidates
        self.search = search
        self.alpha = alpha
        self.init = init
        self.n_init = n_init
        self.solver = solver
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @staticmethod
    def graded_weights(differences: Any, scale: Any) -> np.ndarray:
        """Return the weights of pairs that are more or less similar (section 5).

            w_ab = exp(-1/2 sum_q (difference_q / scale_q)^2)

        This is a Gaussian density divided by its maximum, so equal rows have weight 1. The pairs of
        faces in the paper differ by noise of 1.22 degrees in angle and of 1.5 pixels in size.

        Parameters
        ----------
        differences : array of shape (n_pairs,) or (n_pairs, q)
            Differences within each pair in what should agree.
        scale : float or array of shape (q,)
            Standard deviation of each difference, greater than 0.

        Returns
        -------
        ndarray of shape (n_pairs,)
            The argument `weights` of `fit`.
        """
        differences = check_array(
            differences, ensure_2d=False, dtype=np.float64, input_name="differences"
        )
        scale = np.array([check_positive(one, "scale") for one in np.ravel(scale)])
        if differences.ndim > 2 or len(scale) not in (1, *differences.shape[1:]):
            raise ValueError(
                f"scale must hold one number, or one per column of differences {differences.shape}."
            )
        relative = differences.reshape(len(differences), -1) / scale
        return np.exp(-0.5 * np.sum(relative**2, axis=1))

    def fit_pairs(
        self, pairs: Any, y: Any = None, *, X: Any = None, weights: Any = None
    ) -> PairNCA:
        """Learn the map from pairs of rows, or of row indices.

        Parameters
        ----------
        pairs : array of shape (n_pairs, 2, p), or int array of shape (n_pairs, 2)
            The two rows of each pair, or with X their indices.
        y : array of shape (n_pairs,), default=None
            1 for similar pairs, at least one; -1 for others, whose rows only take part in the
            denominator of eq. 8. None if all pairs are similar.
        X : array or sparse matrix of shape (n, p), default=None
            The rows to which the indices in `pairs` refer; all take part. None takes the distinct
            rows that occur in the pairs.
        weights : array of shape (n_pairs,), default=None
            See `fit`; a pair of weight 0 is left out.

        Returns
        -------
        self
        """
        given = validate_given_pairs(self, pairs, y, X, weights).merged()
        similar = given.similar
        rows = given.X if X is None else X  # keeps feature names
        return self.fit(rows, pairs=given.numbers[similar], weights=given.weights[similar])

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        pairs: Any = None,
        weights: Any = None,
    ) -> PairNCA:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : ignored
        sample_weight : array of shape (n,), default=None
            Weights of the rows, at least 0; None for equal weights.
        pairs : array of shape (n_pairs, 2), default=None
            Indices of two similar rows each. None pairs each row with the next row of positive
            weight, as for rows in order of time.
        weights : array of shape (n_pairs,), default=None
            Weights of the pairs, at least 0; None for equal weights. `graded_weights` computes
            those of the paper.

        Returns
        -------
        self
        """
        check_choice(self.init, "init", ("auto", "identity", "pca", "random"))
        task = FitTask(self, X, y, check_descent(self))
        present, _, row_weights, numbers = weighted_rows(X, None, sample_weight)
        n_given, X = number_of_rows(X), validate_rows(self, present, reset=True)
        shape = np.asarray(y).shape
        if pairs is None and len(shape) == 2:
            raise ValueError(
                f"y is ignored, and its shape {shape} looks like that of pairs: pass pairs=..."
            )
        if pairs is None:
            pairs = numbers[check_pairs(None, len(numbers))]
        pairs = check_pairs(pairs, n_given)
        weights = check_pair_weights(weights, len(pairs))
        row_weights = relative_weights(row_weights)
        counts = np.zeros(n_given)
        counts[numbers] = 1.0 if row_weights is None else row_weights
        weights = weights * counts[pairs].prod(axis=1)
        if not weights.any():
            raise ValueError(
                "sample_weight is 0 for a row of every pair that counts: there is nothing to learn "
                "from."
            )
        n, kept = X.shape[0], weights > 0
        m, rng = check_n_components(self, X.shape[1]), check_random_state(self.random_state)
        in_place = self.solver == "sgd" and n > INIT_ROWS
        rows = RowsInPlace.of(X) if in_place else UnitRows.of(X, m)
        k, search = number_near(self.n_candidates, n, self.solver), searcher(self.search, n)
        pairs, weights = np.searchsorted(numbers, pairs[kept]), weights[kept] / weights.sum()
        loss = SimilarPairs(rows, search, k, pairs, weights, row_weights)
        ridge = Ridge(self.alpha, n)
        names = [self.init] + ["random"] * (self.n_init - 1)
        found = minimize(
            loss + ridge,
            (self._named_init(loss, rows, m, rng, name) for name in names),
            solver=self.solver,
            batch_size=self.batch_size,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
            on_iteration=reporter(task, rows, X.dtype),
        )
        self.objective_ = found.value - ridge(found.x)[0]
        self.objective_error_ = found.error
        self.perplexity_ = perplexity(rows.nearest_squares(found.x))
        self.search_ = search.name
        return self._set_map(found, rows, X.dtype, task)

    def _named_init(
        self, loss: SimilarPairs, rows: ScaledRows, m: int, rng: np.random.RandomState, name: str
    ) -> np.ndarray:
        """Return the init of a given name, found on at most 10,000 rows and pairs.

        "auto" is the one of lower loss. Directions are scaled to a perplexity of 10, or smaller, to
        a mean squared distance of the pairs of m / 2. For evenly distributed rows, this minimizes
        eq. 8 over the scale.
        """
        n, m, take = rows.shape[0], min(m, rows.shape[1]), loss.rows.take
        some = slice(None) if n <= INIT_ROWS else np.sort(rng.choice(n, INIT_ROWS, replace=False))
        X, step = take(some), -(-len(loss.pairs) // INIT_ROWS)
        (a, b), weights = loss.pairs[::step].T, loss.weights[::step, None]
        difference = take(a) - take(b)
        is_auto = name == "auto" and m < X.shape[1]
        found = [directions("pca" if is_auto else name, X, m, rng) * rows.varies()]
        if is_auto and not issparse(X):
            # the directions in which pairs differ least, relative to all rows
            within = second_moment(difference, weights[:, 0])
            found.append(ratio_trace(within, total_scatter(X), m).vectors.T)
        inits = []
        for B in found:
            if len(B) == m:
                mean_square = np.sum(weights * np.square(difference @ B.T)) / np.sum(weights)
                r = max(1, np.count_nonzero(B.any(axis=1)))  # without constant features
                inits.append(rows.scaled_init(B, self.alpha, (2 * mean_square / r) ** 0.5))
        penalized = loss + Ridge(self.alpha, n)
        return inits[0] if len(inits) == 1 else min(inits, key=penalized.evaluate)
