"""Large Margin Nearest Neighbour (Weinberger, Blitzer and Saul, NIPS 2005)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics import euclidean_distances

from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import check_shared_labels
from .._validation import check_integer, check_n_neighbors, check_number, validate_labelled_rows
from ..descent import DescentResult, Status
from ..neighbors import nearest_same_class
from ..objectives.lmnn import impostors_within, large_margin, target_squares
from ..objectives.nca import embed
from . import _starts
from ._descending import UnitRows, chain, descend, keep, report, telling
from .base import LinearEmbedding

EXACT_ROWS = 4000  # up to here to look for impostors at every step costs little
SLACK = 1.0  # a second margin: who is within it is listed, and may invade before impostors are looked up again
WORTH = 1 / 256  # share of all pairs from which on it is quicker to look at all of them
MOST = 2**25  # impostors that count in all, but for
ALWAYS = 100  # of every row
GAPS = 2**23  # looked at to choose the scale of the start


class LMNN(CallbackSupportMixin, LinearEmbedding):
    """Large Margin Nearest Neighbour: the map that keeps strangers farther from a row than its nearest kin.

    The targets of row i are its k nearest rows of the same class, in the space of the features. With the learned
    squared distances d_ij = ||A x_i - A x_j||^2 the map A minimizes

        1/n ( 1/2 sum_ij d_ij  +  1/2 sum_ijl max(0, 1 + d_ij - d_il) )

    over rows i, their targets j, and all rows l of other classes: targets are pulled near, and impostors, which come
    nearer than a target and a margin of 1, are pushed away. (The loss of the papers, mu = 1/2, as a mean over rows.)
    The margin is in units of what is learned, so the units of the features do not matter: the map makes up for them.
    For a square map the minimum is global: the loss is a convex function of the metric A'A.

    Parameters
    ----------
    n_components : int or None, default=None
        m, at most p. None keeps all dimensions: p, or the rank of the centred rows for p > n.
    n_neighbors : int, default=3
        k: targets of a row; all its kin where these are fewer. A row alone in its class has none, but may be an
        impostor.
    n_passes : int, default=1
        Descents. Each but the first begins where the one before has ended, with the nearest kin in the space learned
        so far for targets.
    max_iter : int, default=200
        Iterations allowed to a descent.
    tol : float, default=1e-4
        A descent has converged when an iteration lowers the loss by less, relative to the loss or, where that is less,
        to what the targets cost at the start.

    Attributes
    ----------
    components_ : ndarray of shape (m, p)
        A. It has a scale: the margin is 1 between squared distances of `transform(X)`.
    n_components_ : int
        m.
    objective_ : float
        The loss at A.
    n_iter_ : int
        Iterations, over all passes.
    loss_curve_ : ndarray of shape (at least n_iter_ + 1,)
        The loss before and after every iteration, of each pass. Above 4,000 rows it counts listed impostors only
        (below), and may jump where they are looked up again.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ConvergenceWarning
        If max_iter ended the (last) descent.

    Notes
    -----
    The scale of the features decides who the targets are: standardize first unless the units are comparable. There is
    no penalty: with about as many features as rows the map learns the rows by heart; reduce them first, e.g. with PCA.
    The descent begins with the identity, or with PCA for fewer components, in the scale that has the lowest loss.

    Up to 4,000 rows impostors are looked up at every step. Beyond, those within two margins are listed every 15
    iterations, and only they count until then, unless they make up more than 1/256 of all pairs; what is compared after
    that is the loss among all impostors. A descent that has let others in is undone, and goes on with impostors looked
    up at every step. Where more than 2^25 count in all (for a row, more than 2^25 / n, and more than 100), the farthest
    of each row do not.

    Cost: an iteration takes O(q (m + k) + n p m) time for q impostors, often some 10 to 30 a row, and a look-up, a
    product of matrices, O(n^2 m); memory is O(n (p + m + k) + q), never n x n. Up to 2,000 rows everything is computed
    in float64, beyond in float32 with float64 sums. Sparse X stays sparse if n_components is given.

    KeyboardInterrupt ends the descent, and is raised again once the best map so far has been kept: the estimator can
    be used. So it can when a callback asks to stop.

    References
    ----------
    K. Q. Weinberger, J. Blitzer, L. K. Saul: Distance Metric Learning for Large Margin Nearest Neighbor
    Classification. Advances in Neural Information Processing Systems 18 (2005).
    K. Q. Weinberger, L. K. Saul: Distance Metric Learning for Large Margin Nearest Neighbor Classification. Journal of
    Machine Learning Research 10 (2009) 207-244.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from nearkin import LMNN
    >>> X, y = load_wine(return_X_y=True)
    >>> lmnn = LMNN().fit(scale(X), y)
    >>> lmnn.transform(scale(X)).shape
    (178, 13)
    """

    compared_as: ClassVar[dict] = {"LMNN": {"settings": lambda p: [{"n_components": min(p, 50)}], "nested": False}}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 3,
        n_passes: int = 1,
        max_iter: int = 200,
        tol: float = 1e-4,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_passes = n_passes
        self.max_iter = max_iter
        self.tol = tol

    @with_callbacks
    def fit(self, X: Any, y: Any) -> LMNN:
        """Learn the map.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes, one of at least two rows; -1 is a class like any other.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X or y is not as above or not finite, or a parameter is out of bounds.
        KeyboardInterrupt
            After the best map so far has been kept.
        """
        task = FitTask(self, X, y, n_steps=self._check_parameters())
        X, codes = validate_labelled_rows(self, X, y)
        check_shared_labels(codes)
        p = X.shape[1]
        m = p if self.n_components is None else check_integer(self.n_components, "n_components", 1, p)
        rows = UnitRows.of(X, within_span=not (issparse(X) and m < p))
        told = telling(task, rows, X.dtype)

        targets = target_neighbors(rows.X, codes, self.n_neighbors)
        start = _start(rows.X, min(m, rows.X.shape[1]), codes, targets)
        one = partial(descend, max_iter=self.max_iter, tol=self.tol, on_iteration=told, exact=True)
        one = partial(one, unit=_pull(start, rows.X, targets) or 1.0)
        best = DescentResult(start, np.inf, 0, 0, [], Status.MAX_ITER)
        for number in range(self.n_passes):
            if number:
                targets = target_neighbors(embed(best.x, rows.X), codes, self.n_neighbors)
            loss, look_up = _problem(rows.X, codes, targets)
            best = chain(best, one(loss, best.x, look_up=look_up))
            keep(self, best, rows, X.dtype)
            self.objective_ = best.value
            if best.status in (Status.STOPPED, Status.INTERRUPTED):
                break
        report(best, best.status, self.max_iter)
        task.end()
        return self

    def _check_parameters(self) -> int:
        """Raise an error that names what is wrong; return the number of iterations allowed."""
        check_n_neighbors(self.n_neighbors)
        check_number(self.tol, "tol", 0)
        return check_integer(self.n_passes, "n_passes", 1) * check_integer(self.max_iter, "max_iter", 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def target_neighbors(Z: Any, codes: np.ndarray, k: int) -> np.ndarray:
    """Return the k nearest rows of the same class of every row, shape (n, k or fewer); its own number for none."""
    kin = nearest_same_class(Z, codes, k)
    n_kin = np.diff(kin.indptr)
    targets = np.repeat(np.arange(len(codes), dtype=kin.indices.dtype)[:, None], n_kin.max(), axis=1)
    targets[np.arange(n_kin.max()) < n_kin[:, None]] = kin.indices
    return targets


def _start(X: Any, m: int, codes: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the identity, or PCA for fewer dimensions, in the scale that has the lowest loss."""
    (name,) = _starts.default_inits(X, m, None)
    V = _starts.directions(name, X, m, None, None)
    margin = balanced_margin(embed(V, X), codes, targets)
    return _starts.scaled(V, X) if margin is None else V / margin**0.5


def balanced_margin(Z: np.ndarray, codes: np.ndarray, targets: np.ndarray) -> float | None:
    """Return the margin c for which the loss of the map A / sqrt(c) is the lowest; None where that is the map 0.

    A triple with the gap g = d_il - d_ij counts while g < c. The derivative of the loss along the scale is 0 where the
    gaps of those that count sum up to the pull, sum_ij d_ij: there one of them ceases to count, so c is a little more.
    Some rows, evenly drawn, stand for all.
    """
    some = _starts.drawn_evenly(Z, max(8, GAPS // targets.size))
    near = target_squares(Z, targets)[some, None, :]
    gaps = euclidean_distances(Z[some], Z, squared=True)[:, :, None] - near
    gaps = np.sort(gaps[(codes[some, None] != codes)[:, :, None] & np.isfinite(near)])
    enough = (gaps > 0) & (np.cumsum(gaps, dtype=np.float64) >= near.sum(where=np.isfinite(near), dtype=np.float64))
    return 1.01 * float(gaps[enough.argmax()]) if enough.any() else None


def _pull(A: np.ndarray, X: Any, targets: np.ndarray) -> float:
    """Return what the targets cost, their share of the loss."""
    near = target_squares(embed(A, X), targets)
    return float(near.sum(where=np.isfinite(near), dtype=np.float64)) / 2 / len(near)


def _problem(X: Any, codes: np.ndarray, targets: np.ndarray) -> tuple[Callable, Callable | None]:
    """Return the loss of a map among listed impostors, and what lists them; None where the loss looks them up."""
    n = X.shape[0]

    def impostors(A: np.ndarray, slack: float) -> csr_array:
        Z = embed(A, X)
        reach = 1 + target_squares(Z, targets).max(axis=1)
        return impostors_within(Z, codes, reach + slack, max(ALWAYS, MOST // n))

    def loss(A: np.ndarray, listed: csr_array | None) -> tuple[float, np.ndarray]:
        value, gradient = large_margin(A, X, targets, impostors(A, 0.0) if listed is None else listed)
        return value / n, gradient / n

    def look_up(A: np.ndarray) -> csr_array | None:
        listed = impostors(A, SLACK)
        return listed if listed.nnz < min(WORTH * n * n, MOST / 2) else None

    return loss, None if n <= EXACT_ROWS else look_up
