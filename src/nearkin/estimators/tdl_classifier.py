"""Semi-supervised classification by a vote of labelled rows along a graph of all rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted

from .._blocks import row_blocks, unit_rows
from .._callbacks import CallbackSupportMixin, FitTask, with_callbacks
from .._labels import encode_partial_classes
from .._validation import check_estimator
from ..bandwidth import PERPLEXITY, nearest_squares, perplexity_bandwidth
from .base import SparseRowsMixin
from .soft_neighbors import SoftNeighborsClassifier, indicators
from .tdl import TDL
from .validation import validate_labelled_rows, validate_rows

PERPLEXITIES = (1.5, 3.0, 5.0, 10.0, 20.0, 50.0)  # for the vote, besides the default
# share of the size of P, added to every roughness, which is 0 for coordinates that only separate
# components
LEAST_ROUGHNESS = 0.01
EIGENVECTORS = 100  # or twice the number of classes, if that is larger
LABELS_PER_CLASS = 3  # minimum mean number of labels per class for them to choose the vote's space


class TDLClassifier(CallbackSupportMixin, ClassifierMixin, SparseRowsMixin, BaseEstimator):
    """Semi-supervised classification: labelled rows vote along a graph of all rows, or by features.

    Few rows have labels. A graph of all rows gives each row coordinates, those of `TDL`: v_j with j
    = 1, ..., m. Each coordinate is divided by its roughness v_j'Pv_j plus a hundredth of the mean
    eigenvalue of the penalty P, and every row is then scaled to unit length, as only the direction
    in which labels have moved a row is informative, not how far. In these coordinates the labelled
    rows vote for every unlabelled training row, near ones with the largest weights
    (`SoftNeighborsClassifier`), and for new rows in the coordinates of `TDL.transform`.

    **By default the labels do not shape the coordinates**: on the data sets of
    `benchmarks/choices/tdl.py` that gains nothing once enough coordinates are used. What remains of
    TDL is its embedding for an infinite weight of the penalty, Laplacian Eigenmaps, and its vote.
    The inner product of two rows is then that of their rows in the regularized Laplacian kernel (P
    + .01 I)^-1, up to the eigenvectors that are left out. Two rows are similar if random walks from
    both, which stop with a small probability at every step, visit the same rows.

    With at least three labels per class on average, the labels choose the space: each labelled row
    is predicted by the others, in these coordinates and in the features, at the bandwidth of lowest
    log loss. The space with more correct predictions is taken or, if the difference is within its
    standard error, the one with the lower log loss. Where the graph joins different classes, the
    choice is thus a soft vote in the features.

    Parameters
    ----------
    tdl : TDL or None, default=None
        The TDL that computes the coordinates, which labels may shape. It is cloned, and nothing
        else is tried. None takes the normalized Laplacian of the unweighted 5-NN graph without a
        cost of labels, `TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf,
        laplacian="normalized")`, where m is 100 or, if larger, twice the number of classes, at most
        n - 1.

    Attributes
    ----------
    tdl_ : TDL
        The fitted TDL.
    space_ : {"tdl", "features"}
        Where the labelled rows vote: in the coordinates or in the features.
    losses_, accuracies_ : dict of str to float
        For each space tried, at its best bandwidth, the mean log loss and the accuracy of labels
        predicted by the others. Empty with fewer than three labels per class, or if `tdl` is given;
        the bandwidth is then "auto".
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n,)
        The label of every training row: the given one, or the predicted one.
    label_distributions_ : ndarray of shape (n, n_classes)
        The class probabilities of every training row; for a labelled one, 1 for its label.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn.semi_supervised.LabelSpreading : Propagates the labels along the graph.

    Notes
    -----
    -1, None and NaN mark unlabelled rows (the string "-1" is a class). Tools that treat -1 as a
    class, such as stratified splits, should be applied to the labelled rows only.

    If `tdl` is given, labelled rows take their coordinates from `TDL.voting_embedding_`. If a graph
    is given (`fit(..., affinity=W)`), the features are not tried. The default was chosen on some of
    the data sets of `benchmarks/studies/few_labels.py`, which compares it with scikit-learn's
    LabelSpreading, 3-NN and 1-NN on others.

    Cost: mostly that of the coordinates of `TDL`: up to about 2,000 rows by LAPACK, O(n^3), for
    more by Lanczos, O(n (k + m)) per step. The votes of l labelled rows in m dimensions cost O(n l
    m), and the choice of the space O(l^2 (m + p)).

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral
    Dimensionality Reduction. ICML 2007, section 5. A. Smola, R. Kondor: Kernels and Regularization
    on Graphs. COLT 2003 (the regularized Laplacian). A. Ng, M. Jordan, Y. Weiss: On Spectral
    Clustering. Advances in Neural Information Processing Systems 14 (2001) (rows of unit length).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import TDLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(400) % 10, -1, y[:400])  # one label in ten
    >>> model = TDLClassifier().fit(X[:400], few)
    >>> bool(np.mean(model.transduction_ == y[:400]) > 0.9)
    True
    >>> bool(model.score(X[400:], y[400:]) > 0.8)
    True
    """

    def __init__(self, tdl: TDL | None = None) -> None:
        self.tdl = tdl

    @with_callbacks
    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> TDLClassifier:
        """Compute coordinates for all rows, and labels for the unlabelled ones.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, at least two classes; -1, None or NaN for unlabelled rows.
        affinity : array or sparse matrix of shape (n, n), optional
            See `TDL.fit`.

        Returns
        -------
        self
        """
        task = FitTask(self, X, y, n_iterations=0)
        X, self.classes_, codes = validate_labelled_rows(self, X, y, encode_partial_classes)
        labelled = codes >= 0
        n_classes = len(self.classes_)
        self.label_distributions_ = indicators(codes, n_classes)
        if self.tdl is None:
            m = min(max(EIGENVECTORS, 2 * n_classes), X.shape[0] - 1)
            tdl = TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf, laplacian="normalized")
            self.tdl_ = tdl.fit(X, affinity=affinity)
        else:
            check_estimator(self.tdl, "tdl", TDL)
            self.tdl_ = clone(self.tdl).fit(X, codes, affinity=affinity)
        spaces = {"tdl": self._profiles(self.tdl_.voting_embedding_)}
        found: dict[str, LeftOut] = {}
        if self.tdl is None and labelled.sum() >= LABELS_PER_CLASS * n_classes:
            # the space and the bandwidth at which labelled rows predict each other best
            if affinity is None:  # with a given graph, the features may be meaningless
                spaces["features"] = X
            for name, Z in spaces.items():
                found[name] = best_bandwidth(Z[labelled], codes[labelled])
        self.losses_ = {name: left_out.loss for name, left_out in found.items()}
        self.accuracies_ = {name: float(left_out.right.mean()) for name, left_out in found.items()}
        self.space_ = "tdl"
        if "features" in found:
            gains = found["features"].right.astype(int) - found["tdl"].right
            difference = gains.sum()
            if abs(difference) <= np.linalg.norm(gains):  # its standard error
                difference = self.losses_["tdl"] - self.losses_["features"]
            if difference > 0:
                self.space_ = "features"
        bandwidth = found[self.space_].bandwidth if found else "auto"
        Z = spaces[self.space_]
        self._voters = voters(Z, labelled, codes, bandwidth)
        if not labelled.all():
            self.label_distributions_[~labelled] = self._voters.predict_proba(Z[~labelled])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        task.end()
        return self

    def _profiles(self, V: np.ndarray) -> np.ndarray:
        return profile_coordinates(V, self.tdl_.roughness_, self.tdl_.penalty_size_)

    def predict_proba(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return class probabilities, shape (n_new, n_classes), in the order of `classes_`.

        `affinity` is required after a fit with an affinity; see `TDL.transform`.
        """
        check_is_fitted(self, "tdl_")
        X = validate_rows(self, X, reset=False)
        if self.space_ == "tdl":
            X = self._profiles(self.tdl_.transform(X, affinity=affinity))
        return self._voters.predict_proba(X)

    def predict(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the most probable class of every row; ties go to the first in `classes_`."""
        shares = self.predict_proba(X, affinity=affinity)
        return self.classes_[shares.argmax(axis=1)]


def profile_coordinates(V: np.ndarray, rough: np.ndarray, size: float) -> np.ndarray:
    """Return V with column j divided by epsilon plus its roughness v'Pv, then rows of unit length.

    epsilon is a hundredth of the size of P. If V holds all eigenvectors of P, without labels, inner
    products of rows before the scaling are those of rows of the regularized Laplacian kernel (P +
    epsilon I)^-1: two rows are similar if the kernel relates them similarly to all others.
    """
    return unit_rows(V / (rough + LEAST_ROUGHNESS * size))


def voters(Z: Any, rows: np.ndarray, codes: np.ndarray, bandwidth: float | str) -> Any:
    """Return a classifier in which the given rows vote with their labels.

    If these rows coincide, it predicts class frequencies.
    """
    spread, spread_of_all = (float((R.max(axis=0) - R.min(axis=0)).max()) for R in (Z[rows], Z))
    vote = SoftNeighborsClassifier(bandwidth=bandwidth)
    if spread <= 1e-10 * spread_of_all:
        vote = DummyClassifier(strategy="prior")
    return vote.fit(Z[rows], codes[rows])


class LeftOut(NamedTuple):
    """How well labels are predicted by the votes of all others.

    Attributes
    ----------
    bandwidth : float
        Of the votes.
    loss : float
        Mean log loss.
    right : array of bool
        Whether the label gets the most votes, for every label that is not the only one of its
        class.
    """

    bandwidth: float
    loss: float
    right: np.ndarray


def best_bandwidth(Z: Any, codes: np.ndarray) -> LeftOut:
    """Return the bandwidth of lowest mean leave-one-out log loss of the votes.

    The bandwidths tried are those of several perplexities; ties go to the default of
    `SoftNeighborsClassifier`. The vote shares of l rows count as l observations, to which the class
    frequencies add one, so that a label without votes has a finite loss. The only label of a class
    has no votes, and is left out.
    """
    n = Z.shape[0]
    counts = np.bincount(codes)
    half_a_class = n / len(counts) / 2
    squares_of_some = nearest_squares(Z)
    perplexities = (min(PERPLEXITY, half_a_class), *PERPLEXITIES)
    bandwidths = [perplexity_bandwidth(squares_of_some, perplexity) for perplexity in perplexities]
    Y = indicators(codes, len(counts))
    if not issparse(Z):  # far from 0, distances lose precision
        Z = Z - Z.mean(axis=0, dtype=np.float64)
    predicted = np.flatnonzero(counts[codes] > 1)
    losses = np.zeros(len(bandwidths))
    right = np.zeros((len(bandwidths), len(predicted)), dtype=bool)
    for block in row_blocks(len(predicted), n):
        rows = predicted[block]
        own = np.arange(len(rows))
        own_class = codes[rows]
        squares = euclidean_distances(Z[rows], Z, squared=True).astype(np.float64)
        squares[own, rows] = np.inf
        squares -= squares.min(axis=1, keepdims=True)
        for j, bandwidth in enumerate(bandwidths):
            shares = np.exp(-squares / bandwidth**2) @ Y
            shares /= shares.sum(axis=1, keepdims=True)
            share = shares[own, own_class]
            losses[j] -= np.log((n * share + counts[own_class] / n) / (n + 1)).sum()
            right[j, block] = shares.argmax(axis=1) == own_class
    best = int(losses.argmin())
    return LeftOut(bandwidths[best], float(losses[best] / len(predicted)), right[best])
