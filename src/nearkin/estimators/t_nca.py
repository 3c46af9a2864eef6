"""t-distributed NCA: rows in a plane, as near to their own class as unseen rows can be placed.

Three steps, the three calls of `fit`: a space in which nearest neighbours are right, the weights by
which a row is placed at the mean of its neighbours there, and the positions of these neighbours in
the plane.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.special import softmax
from sklearn.base import clone
from sklearn.manifold import TSNE
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._blocks import parallel_map, row_blocks
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._validation import check_choice, check_integer, check_number, validate_rows
from ..descent import DescentResult, OnIteration, Status, adam, lbfgs
from ..neighbors import nearest, nearest_same_class, squares_to_nearest
from ..objectives.stochastic import PairWeights, SameClass, Value
from ..objectives.t_nca import log_mass, log_similarity
from .base import Embedding
from .descent_embedding import FLOAT64_ROWS, directions, unit_distance
from .descents import ALL_PAIRS_ROWS
from .nca import NCA, validate_with_target

SPACE = 32  # dimensions of the default space
PERPLEXITY = 10.0  # of the weights of neighbours
MOST_LANDMARKS = 50_000  # of as many, a row is placed in about a millisecond
# Of the plane, in units of the t distribution: how far classes lie apart at first, for one class.
SPREAD = 3.0
FLAT = 1e-12  # a spread that is none
MANY_CLASSES = 500  # of more, t-SNE places the means by the method of Barnes and Hut
COLUMNS = 8192  # of landmarks, with which 256 rows are compared at once
# The descent: iterations of L-BFGS up to so many landmarks; beyond, of so many steps of stochastic
# gradient, each for some anchors among some rows.
EXACT_ROWS = 4096
ITERATIONS = 100
STEPS, ROUND, ANCHORS, LENGTH = 300, 30, 512, 0.03


class TDistributedNCA(CallbackSupportMixin, Embedding):
    """t-distributed NCA: a picture of labelled rows, in which unseen rows fall among their own
    class.

    An estimator learns a space in which nearest neighbours are right; h_i is row i there. A row is
    placed at the weighted mean of the positions u_j of its k nearest neighbours,

        z(x) = sum_j s_j u_j        s_j ~ exp(-||h(x) - h_j||^2 / b^2)

    where a training row is not its own neighbour: it is placed as a row that has not been seen. The
    positions maximize the log-likelihood of NCA in the plane, whose weights are those of a
    Student-t distribution, minus a penalty by which positions stay near the mean of their
    neighbours:

        1/n sum_i log q_i - alpha/n sum_i ||u_i - z_i||^2
        q_i = sum_(j in N_i) k_ij / sum_(j != i) k_ij        k_ij = 1 / (1 + ||z_i - z_j||^2)

    N_i are the k nearest rows of the class of row i in the space, so that classes do not shrink to
    points: a row is pulled by its neighbours of the same class, and pushed by all others. It lies
    between classes where its neighbours are of several, and labels that mean nothing give a picture
    in which unseen rows lie mixed.

    Parameters
    ----------
    n_components : int, default=2
        m, the dimensions of the picture.
    estimator : transformer, "passthrough" or None, default=None
        What learns the space from X and y; it is cloned. None takes NCA to 32 dimensions by the
        log-likelihood, for more than 8,000 rows by stochastic gradient. Of a data frame as it is,
        take `NCAClassifier()` or `NCARegressor()`. "passthrough" takes X itself, which then should
        be a learned space.
    target : {"classes", "continuous"}, default="classes"
        What y holds: labels, or real numbers. Then N_i are the 3 k nearest rows, each counted by
        the weight w_ij of `NCA`. An `estimator` that is given needs a setting of its own.
    n_neighbors : int, default=15
        k, of the placement and of N_i. More give a smoother picture.
    n_landmarks : "auto" or int, default="auto"
        How many training rows, drawn at random, have positions and are neighbours; "auto" takes all
        up to 50,000. The space is learned from all rows.
    alpha : float, default=0.3
        Weight of the penalty.
    max_iter : "auto" or int, default="auto"
        Iterations: of L-BFGS up to 4,096 landmarks, where "auto" allows 100; beyond, of 30 steps of
        stochastic gradient, where "auto" takes 10 (n / 10^4)^(1/4) or more, at least 10.
    tol : float, default=1e-5
        L-BFGS ends when an iteration lowers the loss by less.
    random_state : int, RandomState or None, default=None
        Of landmarks, of stochastic gradient, and of the default space for more than 8,000 rows.

    Attributes
    ----------
    estimator_ : transformer or "passthrough"
        What learned the space.
    landmarks_ : ndarray of shape (l, r)
        The landmarks in the space: h_j.
    landmark_indices_ : ndarray of shape (l,)
        Their row numbers, ascending.
    positions_ : ndarray of shape (l, m)
        Their positions: u_j.
    embedding_ : ndarray of shape (l, m)
        Where they are placed by their neighbours: z_j, as rows that have not been seen.
    bandwidth_ : float
        b: the mean perplexity of exp(-||h_i - h_j||^2 / b^2) is 10.
    objective_ : float
        The mean log q_i; of stochastic gradient a mean of the last estimates.
    target_bandwidth_ : float
        As of `NCA`, for target="continuous".
    n_components_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.
    loss_curve_ : ndarray of shape (`n_iter_` + 1,)
        What is minimized, before and after every iteration; of stochastic gradient the first
        estimate, then means over iterations.

    See Also
    --------
    NCA : A linear map, whose axes are sums of features.
    nearkin.plotting.EmbeddingDisplay : Draws rows that were held out, with their accuracy.

    Notes
    -----
    Judge a picture by rows that it has not seen. `transform` of the training rows counts a row
    among its own neighbours; `embedding_` does not, but the space knows their labels.

    Descents begin with the means of the classes, placed by t-SNE, and around each the two principal
    directions within classes. Without classes, with two principal directions of all rows.

    Cost: beside that of the space, neighbours among l^2 pairs; an iteration of L-BFGS takes O(l^2 +
    l k), a step of stochastic gradient O(512 max(4096, sqrt(250 l))). A new row is compared with
    all landmarks, O(l r). Memory is O(l (r + k)).

    KeyboardInterrupt, or a callback, ends the descent; the positions so far are kept, and the
    interrupt is raised again.

    References
    ----------
    M. R. Min, L. van der Maaten, Z. Yuan, A. Bonner, Z. Zhang: Deep Supervised t-Distributed
    Embedding. Proceedings of the 27th International Conference on Machine Learning (2010) 791-798.
    There a deep network is the map, and N_i is the whole class.

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
        X : array or sparse matrix of shape (n, p), or what `estimator` takes
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, -1 a class like any other; or real numbers that are
            not all equal.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, self._check_parameters())
        rng = check_random_state(self.random_state)
        H, pair_weights = self._learn_space(X, y, rng)
        rows = np.arange(len(H))
        most = MOST_LANDMARKS if isinstance(self.n_landmarks, str) else self.n_landmarks
        if most < len(rows):
            rows = np.sort(rng.choice(len(rows), most, replace=False))
            H, pair_weights = H[rows], pair_weights.subset(rows)
        self.landmarks_, self.landmark_indices_ = H, rows
        self.bandwidth_ = unit_distance(H, mean_perplexity=PERPLEXITY)
        k = min(self.n_neighbors, len(H) - 1)
        S = placement(H, H, self.bandwidth_, k, own=True)
        W = right_neighbors(H, pair_weights, k)
        U = initial_positions(H, pair_weights.codes, self.n_components)
        on_iteration = partial(task.iteration, lambda U: vars(self) | {"positions_": U})
        if len(rows) <= EXACT_ROWS:
            found = lbfgs(
                partial(self._loss, S, W),
                U,
                max_iter=ITERATIONS if isinstance(self.max_iter, str) else self.max_iter,
                tol=self.tol,
                on_iteration=on_iteration,
            )
        else:
            found = self._by_minibatches(S, W, U, rng, on_iteration)
        return self._set_positions(found, S, H.dtype, task)

    def _learn_space(self, X: Any, y: Any, rng: Any) -> tuple[np.ndarray, PairWeights]:
        """Return the rows in the space, and which neighbours are right."""
        if self.estimator is None or isinstance(self.estimator, str):
            X, pair_weights = validate_with_target(self, X, y)
            self.estimator_: Any = self.estimator
            if self.estimator is None:
                self.estimator_ = NCA(
                    min(SPACE, X.shape[1]),
                    objective="log_likelihood",
                    target=self.target,
                    solver="lbfgs" if X.shape[0] <= ALL_PAIRS_ROWS else "sgd",
                    random_state=rng.randint(2**31),
                ).fit(X, y)
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

    def _loss(self, S: csr_array, W: csr_array, U: np.ndarray) -> Value:
        """Return the loss of positions, and its gradient."""
        Z = S @ U
        rows = about_mean(Z)
        similarity, *pulls = log_similarity(rows, rows, W)
        mass, *pushes = log_mass(rows, rows, own=True)
        slope = (sum(pushes) - sum(pulls)) / len(Z)
        cost, from_cost = self._penalty(S, np.arange(len(U)), U, Z)
        return (mass - similarity) / len(Z) + cost, S.T @ slope + from_cost

    def _by_minibatches(
        self, S: csr_array, W: csr_array, init: np.ndarray, rng: Any, on_iteration: OnIteration
    ) -> DescentResult:
        """Descend by steps that shrink to nothing. A step is for some anchors, all their right
        neighbours, and some other landmarks that stand for all.
        """
        n = len(init)
        n_drawn = min(n, max(EXACT_ROWS, int((250 * n) ** 0.5)))
        n_iter = int(STEPS / ROUND * max(1.0, n / 10_000) ** 0.25)
        if not isinstance(self.max_iter, str):
            n_iter = self.max_iter
        n_steps, length = ROUND * n_iter, LENGTH * float(np.linalg.norm(init))

        def estimate(U: np.ndarray, t: int) -> Value:
            drawn = rng.choice(n, n_drawn, replace=False)
            anchors, others = drawn[:ANCHORS], drawn[ANCHORS:]
            near, places = np.unique(W[anchors].indices, return_inverse=True)
            rows = np.concatenate([anchors, near, others])
            S_rows = S[rows]
            Z = S_rows @ U
            ends = np.cumsum([len(anchors), len(near)])
            z, z_near, z_others = np.split(about_mean(Z), ends)
            right = csr_array((W[anchors].data, places, W[anchors].indptr))
            similarity, pull, pull_near = log_similarity(z, z_near, right)
            mass, push, push_others = log_mass(z, z_others)
            slope = np.concatenate([push - pull, -pull_near, push_others]) / len(anchors)
            cost, from_cost = self._penalty(S_rows, rows, U, Z)
            return (mass - similarity) / len(anchors) + cost, S_rows.T @ slope + from_cost

        return adam(
            estimate,
            init,
            n_batches=ROUND,
            max_iter=n_iter,
            tol=self.tol,
            step=lambda t: length * (1 - t / n_steps),
            on_iteration=on_iteration,
        )

    def _penalty(self, S: csr_array, rows: np.ndarray, U: np.ndarray, Z: np.ndarray) -> Value:
        """Return `alpha mean ||u_i - z_i||^2` of some landmarks, which may be listed twice, and its
        gradient; S are the rows that place them.
        """
        apart = U[rows] - Z
        slope = 2 * self.alpha / len(rows) * apart
        gradient = -(S.T @ slope)
        np.add.at(gradient, rows, slope)
        return self.alpha * float(np.sum(apart**2)) / len(rows), gradient

    def _set_positions(self, found: DescentResult, S: csr_array, dtype: Any, task: FitTask) -> Self:
        """Set what was found; raise the interrupt that ended the descent."""
        Z = S @ found.x
        self.positions_ = found.x.astype(dtype)
        self.embedding_ = Z.astype(dtype)
        self.n_components_ = self.positions_.shape[1]
        self.n_iter_, self.loss_curve_ = found.n_iter, np.array(found.curve)
        cost, _ = self._penalty(S, np.arange(len(Z)), found.x, Z)
        self.objective_ = cost - found.value
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        task.end()
        return self

    def space(self, X: Any) -> np.ndarray:
        """Return rows in the learned space, (n, r), in which their neighbours are found.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), or what `estimator` takes
        """
        check_is_fitted(self, "positions_")
        if self.estimator is None or isinstance(self.estimator, str):
            X = validate_rows(self, X, reset=False)
        return X if isinstance(self.estimator_, str) else self.estimator_.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Place rows at the weighted mean of the positions of their neighbours.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p), or what `estimator` takes

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
        """Raise an error that names a bad parameter; return the iterations allowed, None if n
        decides.
        """
        check_integer(self.n_components, "n_components", 1)
        if isinstance(self.estimator, str):
            check_choice(self.estimator, "estimator", ("passthrough",))
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
    """Return S (n_queries, n), the weights of the k nearest rows of H by which queries are placed;
    if the queries are these rows, of the others.
    """
    squares, neighbors = np.empty((len(Q), k)), np.empty((len(Q), k), np.int32)

    def search(rows: slice) -> None:
        found, near = squares_to_nearest(Q[rows], H, k + own)
        if own:
            mine = near == np.arange(rows.start, rows.stop)[:, None]
            mine[~mine.any(axis=1), 0] = True  # of many duplicates the row itself may be missing
            found, near = (a[~mine].reshape(-1, k) for a in (found, near))
        squares[rows], neighbors[rows] = found, near

    parallel_map(search, row_blocks(len(Q), COLUMNS), len(Q) * len(H))
    if not np.isfinite(squares).all():
        raise ValueError(
            "X lies so far from the landmarks that distances are lost: scale its features as those "
            "of the training rows."
        )
    weights = softmax(-squares / bandwidth**2, axis=1)
    ends = k * np.arange(len(Q) + 1)
    return csr_array((weights.ravel(), neighbors.ravel(), ends), shape=(len(Q), len(H)))


def right_neighbors(H: np.ndarray, pair_weights: PairWeights, k: int) -> csr_array:
    """Return W (n, n): 1 for the k nearest rows of the same class; of numbers, w_ij for the 3 k
    nearest.
    """
    if isinstance(pair_weights, SameClass):
        W = nearest_same_class(H, pair_weights.codes, k)
        W.data = np.ones(len(W.data))
        return W
    W = nearest(H, min(3 * k, len(H) - 1))
    i = np.repeat(np.arange(len(H)), np.diff(W.indptr))
    W.data = np.exp(pair_weights.log_weights(i, W.indices, np.float64))
    return W


def about_mean(Z: np.ndarray) -> np.ndarray:
    """Return rows about their mean; of many in float32."""
    return (Z - Z.mean(axis=0)).astype(np.float64 if len(Z) <= FLOAT64_ROWS else np.float32)


def initial_positions(H: np.ndarray, codes: np.ndarray | None, m: int) -> np.ndarray:
    """Return positions (n, m) with which a descent begins: every row beside the place of its class,
    in the principal directions within classes.
    """
    # landmarks may lack some classes
    codes = np.zeros(len(H), int) if codes is None else np.unique(codes, return_inverse=True)[1]
    members = csr_array((np.ones(len(H)), (codes, np.arange(len(H)))))
    means = (members @ H) / np.bincount(codes)[:, None]
    apart = H - means[codes]
    within = unit_spread(coordinates(apart, m))
    if len(means) == 1:
        return SPREAD**2 * within
    return SPREAD * len(means) ** 0.5 * places_of_classes(means, m)[codes] + within


def places_of_classes(means: np.ndarray, m: int) -> np.ndarray:
    """Return the means of classes in m dimensions, of unit spread: by t-SNE, unless there are so
    few that they fit.
    """
    Z = coordinates(means - means.mean(axis=0), m)
    n_classes = len(means)
    if n_classes > m + 1:
        Z = TSNE(
            m,
            perplexity=min(10.0, (n_classes - 1) / 3),
            init=1e-4 * unit_spread(Z).astype(np.float32),
            # of few, threads take far longer to start than all distances
            method="exact" if m > 3 or n_classes <= MANY_CLASSES else "barnes_hut",
            random_state=0,
        ).fit_transform(means)
    return unit_spread(Z.astype(np.float64))


def coordinates(X: np.ndarray, m: int) -> np.ndarray:
    """Return centred rows along their m principal directions, with zeros where these are fewer."""
    Z = X @ directions("pca", X, min(m, *X.shape)).T
    return np.pad(Z, ((0, 0), (0, m - Z.shape[1])))


def unit_spread(Z: np.ndarray) -> np.ndarray:
    """Return rows about their mean, divided by the root mean square of their coordinates."""
    Z = Z - Z.mean(axis=0)
    return Z / max(float(np.sqrt(np.mean(Z**2))), FLAT)
