"""t-distributed NCA: a map of labelled rows in the plane, which also places unseen rows.

`fit` takes three steps: it learns a space in which nearest neighbours tend to share a label; it
computes the weights with which a row is placed at the mean of its neighbours in this space; and it
finds the positions of these neighbours in the plane.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.manifold import TSNE
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._threads import parallel_map
from .._validation import (
    check_choice,
    check_estimator,
    check_integer,
    check_number,
    check_random_state,
)
from ..bandwidth import unit_distance
from ..descent import DescentStatus, adam, lbfgs
from ..neighbors import EXACT, neighbor_lists, squares_to_nearest
from ..objectives.candidates import ALL_PAIRS_ROWS
from ..objectives.stochastic import PairWeights, SameClass
from ..objectives.t_nca import PlacedNeighbors
from .base import Embedding
from .descent_embedding import directions
from .nca import NCA
from .validation import validate_rows, validate_with_target

SPACE = 32  # dimensions of the default space
MOST_LANDMARKS = 50_000  # with this many, placing a row takes about a millisecond
# The initial spread of the class means is this times the square root of their number, in units of
# the t distribution.
SPREAD = 3.0
LEAST_SPREAD = 1e-12  # a smaller spread counts as zero
MANY_CLASSES = 500  # with more, t-SNE places the class means by the Barnes-Hut method
COLUMNS = 8192  # landmarks that are compared with 256 rows at a time
# Up to EXACT_ROWS landmarks, L-BFGS is used. With more, an iteration is 30 steps of stochastic
# gradient, each for some anchors among some rows.
EXACT_ROWS = 4096
LBFGS_ITERATIONS = 100
SGD_ITERATIONS, STEPS_PER_ITERATION, FIRST_STEP = 10, 30, 0.03


class TDistributedNCA(CallbackSupportMixin, Embedding):
    """t-distributed NCA: a picture of labelled rows; unseen rows tend to fall in their own class.

    An estimator learns a space in which nearest neighbours tend to share a label; h_i is row i in
    this space. A row is placed at the weighted mean of the positions u_j of its k nearest
    neighbours,

        z(x) = sum_j s_j u_j        s_j ~ exp(-||h(x) - h_j||^2 / b^2)

    A training row is not its own neighbour: it is placed like an unseen row. The positions maximize
    the log-likelihood of NCA in the plane, with the weights of a Student-t distribution, minus a
    penalty that keeps positions close to the mean of their neighbours:

        1/n sum_i log q_i - alpha/n sum_i ||u_i - z_i||^2
        q_i = sum_(j in N_i) k_ij / sum_(j != i) k_ij        k_ij = 1 / (1 + ||z_i - z_j||^2)

    N_i are the k nearest rows of the same class in the space, not the whole class, so that classes
    do not shrink to points. A row is attracted by these neighbours and repelled by all others. The
    sum over i leaves out rows alone in their class, which have no such neighbours. If a row's
    neighbours are of several classes, it lies between these classes. With meaningless labels,
    unseen rows of all classes are mixed in the picture.

    Parameters
    ----------
    n_components : int, default=2
        m, the number of dimensions of the picture.
    estimator : transformer, "passthrough" or None, default=None
        Learns the space from X and y; it is cloned. None takes NCA to 32 dimensions by
        log-likelihood, with stochastic gradient for more than 8,000 rows. For a raw data frame, use
        `NCAClassifier()` or `NCARegressor()`. "passthrough" uses X itself, which should then be a
        learned space.
    target : {"classes", "continuous"}, default="classes"
        What y holds: class labels or real numbers. For numbers, N_i are the 3 k nearest rows with
        the weights w_ij of `NCA`. Set the target of a given `estimator` separately.
    n_neighbors : int, default=15
        k, for the placement and for N_i. A larger k gives a smoother picture.
    n_landmarks : "auto" or int, default="auto"
        Number of training rows that have positions and serve as neighbours. "auto" takes all rows,
        up to 50,000. They are drawn at random, from each class in proportion to its size, but k + 1
        rows of every class as far as half of the landmarks allow. The space is learned from all
        rows.
    alpha : float, default=0.3
        Weight of the penalty.
    max_iter : "auto" or int, default="auto"
        Up to 4,096 landmarks, the maximum number of iterations of L-BFGS; "auto" is 100. With more,
        the number of iterations, each of 30 steps of stochastic gradient; "auto" is 10 (l /
        10^4)^(1/4), at least 10.
    tol : float, default=1e-5
        L-BFGS has converged when an iteration lowers the loss by less than this, relative to
        max(loss, 1).
    random_state : int, RandomState or None, default=None
        Seed of the landmarks, of stochastic gradient, and of the default space for more than 8,000
        rows.

    Attributes
    ----------
    estimator_ : transformer or "passthrough"
        The estimator that learned the space.
    landmarks_ : ndarray of shape (l, r)
        h_j: the landmarks in the space.
    landmark_indices_ : ndarray of shape (l,)
        Their row indices, ascending.
    positions_ : ndarray of shape (l, m)
        u_j: their positions.
    embedding_ : ndarray of shape (l, m)
        z_j: where their neighbours place them, as if they were unseen rows.
    bandwidth_ : float
        b, for which the mean perplexity of exp(-||h_i - h_j||^2 / b^2) is 10.
    objective_ : float
        1/n sum_i log q_i; with stochastic gradient, a mean of the last estimates.
    target_bandwidth_ : float
        See `NCA`; for target="continuous".
    n_components_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.
    loss_curve_ : ndarray of shape (`n_iter_` + 1,)
        The loss before and after every iteration; with stochastic gradient, the first estimate,
        then means over iterations.

    See Also
    --------
    NCA : A linear map, whose axes are linear combinations of features.
    nearkin.plotting.EmbeddingDisplay : Plots held-out rows, with their accuracy.

    Notes
    -----
    A rare class that overlaps a large one is lost in the picture: where most of the k nearest rows
    are of the large class, their mean lies within it, and where rows are far apart, the nearest one
    alone decides. If such rows differ from the others in a few directions, a linear map, `NCA(2)`,
    ranks unseen rows much better. Compare both on held-out rows.

    Judge a picture by unseen rows. `transform` counts a training row among its own neighbours;
    `embedding_` does not, but the space was learned with the labels of these rows.

    Descents start from the class means, placed by t-SNE, with the rows of each class spread around
    its mean along the two principal directions within classes. Without classes they start from the
    two principal components of all rows.

    Cost: besides the space, a search among l^2 pairs. An iteration of L-BFGS takes O(l^2 + l k), a
    step of stochastic gradient O(512 max(4096, sqrt(250 l))). A new row is compared with all
    landmarks, O(l r). Memory is O(l (r + k)).

    A KeyboardInterrupt or a callback may end the descent. The current positions are kept, and the
    interrupt is raised again.

    References
    ----------
    M. R. Min, L. van der Maaten, Z. Yuan, A. Bonner, Z. Zhang: Deep Supervised t-Distributed
    Embedding. Proceedings of the 27th International Conference on Machine Learning (2010) 791-798.
    There the map is a deep network, and N_i is the whole class.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from nearkin import TDistributedNCA
    >>> X, y = load_digits(return_X_y=True)
    >>> X = X / 16
    >>> picture = TDistributedNCA().fit(X[:900], y[:900])
    >>> plane = picture.transform(X)
    >>> plane.shape
    (1797, 2)
    >>> vote = KNeighborsClassifier(5).fit(plane[:900], y[:900])
    >>> vote.score(plane[900:], y[900:]) > 0.9
    True
    """

    _needs_labels = True

    def __init__(
        self,
        n_components: int = 2,
        *,
        estimator: Any = None,
        target: str = "classes",
        n_neighbors: int = 15,
        n_landmarks: int | str = "auto",
        alpha: float = 0.3,
        max_iter: int | str = "auto",
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.estimator = estimator
        self.target = target
        self.n_neighbors = n_neighbors
        self.n_landmarks = n_landmarks
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @with_callbacks
    def fit(self, X: Any, y: Any) -> Self:
        """Learn the space, and the positions of the landmarks.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), or any input of `estimator`
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, where -1 is a class like any other; or real numbers
            that are not all equal.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, self._check_parameters())
        rng = check_random_state(self.random_state)
        H, pair_weights = self._learn_space(X, y, rng)
        rows, k = np.arange(len(H)), self.n_neighbors
        most = MOST_LANDMARKS if isinstance(self.n_landmarks, str) else self.n_landmarks
        if most < len(rows):
            codes = np.zeros(len(H), int) if pair_weights.codes is None else pair_weights.codes
            rows = stratified_sample(codes, most, k + 1, rng)
            H, pair_weights = H[rows], pair_weights.subset(rows)
        self.landmarks_, self.landmark_indices_ = H, rows
        self.bandwidth_ = unit_distance(H)
        k = min(k, len(H) - 1)
        S = placement(H, H, self.bandwidth_, k, own=True)
        loss = PlacedNeighbors(S, target_graph(H, pair_weights, k), self.alpha)
        U = initial_positions(H, pair_weights.codes, self.n_components)
        on_iteration = partial(task.iteration, lambda U: vars(self) | {"positions_": U})
        if (n := len(rows)) <= EXACT_ROWS:
            n_iter = LBFGS_ITERATIONS if isinstance(self.max_iter, str) else self.max_iter
            found = lbfgs(loss.value, U, max_iter=n_iter, tol=self.tol, on_iteration=on_iteration)
        else:
            n_drawn = min(n, max(EXACT_ROWS, int((250 * n) ** 0.5)))
            n_iter = int(SGD_ITERATIONS * max(1.0, n / 10_000) ** 0.25)
            n_iter = n_iter if isinstance(self.max_iter, str) else self.max_iter
            length = FIRST_STEP * float(np.linalg.norm(U))
            found = adam(
                lambda U, t: loss.estimate(U, rng.choice(n, n_drawn, replace=False)),
                U,
                n_batches=STEPS_PER_ITERATION,
                max_iter=n_iter,
                tol=self.tol,
                step=lambda t: length * (1 - t / (STEPS_PER_ITERATION * n_iter)),
                on_iteration=on_iteration,
            )
        self.positions_ = found.x.astype(H.dtype)
        self.embedding_ = (S @ found.x).astype(H.dtype)
        self.n_components_ = self.positions_.shape[1]
        self.n_iter_, self.loss_curve_ = found.n_iter, np.array(found.curve)
        self.objective_ = loss.log_likelihood(found.x, found.value)
        if found.status is DescentStatus.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self

    def _learn_space(self, X: Any, y: Any, rng: Any) -> tuple[np.ndarray, PairWeights]:
        """Return the rows in the space, and the pair weights."""
        if self.estimator is None or isinstance(self.estimator, str):
            X, pair_weights = validate_with_target(self, X, y)
            self.estimator_: Any = self.estimator
            if self.estimator is None:
                self.estimator_ = NCA(
                    min(SPACE, X.shape[1], X.shape[0] - 1),
                    objective="log_likelihood",
                    target=self.target,
                    solver="lbfgs" if X.shape[0] <= ALL_PAIRS_ROWS else "sgd",
                    random_state=rng.randint(2**31),
                )
                with warnings.catch_warnings():
                    # few rows, or copies, may span fewer dimensions: then the space has these
                    warnings.filterwarnings("ignore", "n_components=.* were requested")
                    self.estimator_.fit(X, y)
                X = self.estimator_.transform(X)
        else:
            self.estimator_ = clone(self.estimator).fit(X, y)
            X, pair_weights = validate_with_target(self, self.estimator_.transform(X), y)
            for name in ("n_features_in_", "feature_names_in_"):  # of X, not of the space
                if hasattr(self, name):
                    delattr(self, name)
                if hasattr(self.estimator_, name):
                    setattr(self, name, getattr(self.estimator_, name))
        if issparse(X):
            raise ValueError(
                f"estimator={self.estimator!r} leaves the rows sparse: take one that learns a few "
                "dimensions, such as the default."
            )
        return X, pair_weights

    def space(self, X: Any) -> np.ndarray:
        """Map rows into the learned space, shape (n, r), in which neighbours are searched.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), or any input of `estimator`
        """
        check_is_fitted(self, "positions_")
        if self.estimator is None or isinstance(self.estimator, str):
            X = validate_rows(self, X, reset=False)
        return X if isinstance(self.estimator_, str) else self.estimator_.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Place rows at the weighted mean of the positions of their neighbours.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), or any input of `estimator`

        Returns
        -------
        Z : ndarray of shape (n, m)
            float32 if the rows of the space are.
        """
        H = self.space(X)
        k = min(self.n_neighbors, len(self.landmarks_))
        Z = placement(H, self.landmarks_, self.bandwidth_, k) @ self.positions_
        return Z.astype(H.dtype, copy=False)

    def _check_parameters(self) -> int | None:
        """Raise an error for an invalid parameter; return max_iter, or None if it depends on n."""
        check_integer(self.n_components, "n_components", 1)
        if isinstance(self.estimator, str):
            check_choice(self.estimator, "estimator", ("passthrough",))
        elif self.estimator is not None:
            check_estimator(self.estimator, "estimator")
        check_choice(self.target, "target", ("classes", "continuous"))
        check_integer(self.n_neighbors, "n_neighbors", 1)
        for name, least in (("n_landmarks", 2), ("max_iter", 1)):
            value = getattr(self, name)
            if isinstance(value, str):
                check_choice(value, name, ("auto",))
            else:
                check_integer(value, name, least)
        check_number(self.alpha, "alpha", 0)
        check_number(self.tol, "tol", 0)
        return None if self.max_iter == "auto" else int(self.max_iter)

    @property
    def _n_features_out(self) -> int:
        return self.positions_.shape[1]


def placement(
    Q: np.ndarray, H: np.ndarray, bandwidth: float, k: int, *, own: bool = False
) -> csr_array:
    """Return S (n_queries, n), which places queries: the weights of their k nearest rows of H.

    With `own`, the queries are the rows of H, and no row is its own neighbour.
    """
    squares, neighbors = np.empty((len(Q), k)), np.empty((len(Q), k), np.int32)

    def search(rows: slice) -> None:
        found, near = squares_to_nearest(Q[rows], H, k + own)
        if own:
            mine = near == np.arange(rows.start, rows.stop)[:, None]
            mine[~mine.any(axis=1), 0] = True  # with many duplicates, the row itself may be missing
            found, near = (a[~mine].reshape(-1, k) for a in (found, near))
        squares[rows], neighbors[rows] = found, near

    parallel_map(search, row_blocks(len(Q), COLUMNS), len(Q) * len(H))
    if not np.isfinite(squares).all():
        raise ValueError(
            "X lies so far from the landmarks that distances are lost: scale its features like "
            "those of the training rows."
        )
    weights = softmax(-squares / bandwidth**2, axis=1)
    ends = k * np.arange(len(Q) + 1)
    return csr_array((weights.ravel(), neighbors.ravel(), ends), shape=(len(Q), len(H)))


def target_graph(H: np.ndarray, pair_weights: PairWeights, k: int) -> csr_array:
    """Return W (n, n): 1 for the k nearest rows of the same class.

    For real-valued targets, it is w_ij for the 3 k nearest rows, if it is not 0.
    """
    if isinstance(pair_weights, SameClass):
        W = neighbor_lists(H, pair_weights.codes, k, "same", EXACT)
        W.data = np.ones(len(W.data))
        return W
    W = neighbor_lists(H, None, 3 * k, "all", EXACT)
    i = np.repeat(np.arange(len(H)), np.diff(W.indptr))
    W.data = np.exp(pair_weights.log_weights(i, W.indices, np.float64))
    W.eliminate_zeros()
    return W


def stratified_sample(codes: np.ndarray, n_rows: int, fewest: int, rng: Any) -> np.ndarray:
    """Return n_rows row indices, ascending: some of every class, the others in proportion.

    A class gets `fewest` rows, but at most half of the sample is divided equally among classes.
    """
    sizes = np.bincount(codes)
    fewest = min(fewest, n_rows // (2 * int(np.count_nonzero(sizes))))
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    codes = codes[order]
    place = np.arange(len(codes)) - (np.cumsum(sizes) - sizes)[codes]
    share = np.where(place < fewest, 0.0, (place + rng.uniform(size=len(codes))) / sizes[codes])
    return np.sort(order[np.argsort(share, kind="stable")[:n_rows]])


def initial_positions(H: np.ndarray, codes: np.ndarray | None, m: int) -> np.ndarray:
    """Return initial positions (n, m): every row next to the place of its class.

    Within classes, rows are spread along the principal directions. A row alone in its class has no
    place of its own: it joins the class of the nearest mean.
    """
    codes = np.zeros(len(H), int) if codes is None else codes
    shared = np.bincount(codes)[codes] > 1
    shared |= not shared.any()
    # renumbered, since the landmarks may lack some classes
    places, counts = np.unique(codes[shared], return_inverse=True, return_counts=True)[1:]
    members = csr_array((np.ones(len(places)), places, np.arange(len(places) + 1)))
    means = (members.T @ H[shared]) / counts[:, None]
    codes = np.empty(len(H), int)
    codes[shared] = places
    if not shared.all():
        codes[~shared] = pairwise_distances_argmin(H[~shared], means)
    apart = H - means[codes]
    within = unit_spread(principal_coordinates(apart, m))
    if len(means) == 1:
        return SPREAD**2 * within
    return SPREAD * len(means) ** 0.5 * places_of_classes(means, m)[codes] + within


def places_of_classes(means: np.ndarray, m: int) -> np.ndarray:
    """Return the class means in m dimensions, scaled to unit spread.

    They are placed by t-SNE, unless there are so few that they fit exactly.
    """
    Z = principal_coordinates(means - means.mean(axis=0), m)
    n_classes = len(means)
    if n_classes > m + 1:
        Z = TSNE(
            m,
            perplexity=min(10.0, (n_classes - 1) / 3),
            init=1e-4 * unit_spread(Z).astype(np.float32),
            # for few means, starting threads takes far longer than computing all distances
            method="exact" if m > 3 or n_classes <= MANY_CLASSES else "barnes_hut",
            random_state=0,
        ).fit_transform(means)
    return unit_spread(Z.astype(np.float64))


def principal_coordinates(X: np.ndarray, m: int) -> np.ndarray:
    """Return the rows along their first m principal directions, padded with zeros."""
    Z = X @ directions("pca", X, min(m, *X.shape)).T
    return np.pad(Z, ((0, 0), (0, m - Z.shape[1])))


def unit_spread(Z: np.ndarray) -> np.ndarray:
    """Return the centred rows, divided by the root mean square of their coordinates."""
    Z = Z - Z.mean(axis=0)
    return Z / max(float(np.sqrt(np.mean(Z**2))), LEAST_SPREAD)
