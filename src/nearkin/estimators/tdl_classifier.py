"""The classifier made of TDL: few labels in, labels for all rows out, and for new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._captions import Estimator
from .._labels import require_two_classes
from .._validation import validate_partly_labelled_rows, validate_rows
from ._label_cost import best_bandwidth, profile_coordinates, voters
from .base import SparseRowsMixin
from .tdl import TDL

EIGENVECTORS = 100  # or twice as many as there are classes
LABELS_PER_CLASS = 3  # mean number from which on the labels choose


class TDLClassifier(ClassifierMixin, SparseRowsMixin, Estimator):
    """Classify by votes of the labelled rows along a graph of all rows, or among their features.

    Few rows have labels. A graph of all rows, with or without labels, gives them coordinates: those of `TDL`, v_j with
    j = 1, ..., m. Each is divided by its roughness v_j'Pv_j plus a hundredth of the mean eigenvalue of the penalty P.
    Then every row is scaled to unit length: how far labels have pushed a row out says nothing, in which direction says
    all. There the labelled rows vote, near ones with the largest weights (`SoftNeighborsClassifier`), for every
    unlabelled training row, and for new rows in the coordinates of `TDL.transform`.

    **By default the labels do not shape the coordinates**: on the sets of `benchmarks/few_labels.py` that gains nothing
    once enough coordinates are taken. What is left of TDL is its embedding for an infinite weight of the penalty,
    Laplacian Eigenmaps, and its vote. The inner product of two rows in it is that of their rows in the regularized
    Laplacian kernel (P + .01 I)^-1, but for the eigenvectors that are left out: two rows are alike where random walks
    from both, which end with a small probability at every step, visit the same rows. From three labels a class on,
    on average, the labels choose: each labelled row is predicted by the others, in these coordinates and among the
    features themselves, at several bandwidths, and what has the least log loss is taken. Where the graph joins the
    classes, that is a soft vote on the features.

    Parameters
    ----------
    tdl : TDL or None, default=None
        The coordinates, which labels may shape; it is cloned, and nothing else is tried. None takes the normalized
        Laplacian of the 5-NN graph without weights and no cost of labels,
        `TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf, laplacian="normalized")`, with m = 100, or twice as many as
        there are classes if that is more, at most n - 1.

    Attributes
    ----------
    tdl_ : TDL
        Fitted.
    space_ : {"tdl", "features"}
        Where the labelled rows vote: in the coordinates, or among the features.
    losses_ : dict of str to float
        For each space that was tried, the mean log loss of the labels that the others predict, at the best bandwidth.
        Empty with fewer than three labels a class, or a `tdl` of yours: then the bandwidth is "auto".
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n,)
        The label of every training row: the given one, or that of the vote.
    label_distributions_ : ndarray of shape (n, n_classes)
        The shares of the votes for every training row; for a labelled one, 1 for its label.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn.semi_supervised.LabelSpreading : Propagates the labels along the graph.

    Notes
    -----
    -1, None and NaN mark unlabelled rows (the string "-1" is a class). Tools that take -1 for a class, such as
    stratified splits, should split the labelled rows only.

    With a `tdl` of yours the labelled rows have their coordinates from `TDL.voting_embedding_`. With a graph of yours (`fit(..., affinity=W)`) the features are not tried. The default was
    chosen on some of the sets of `benchmarks/tdl_labels.py`, which compares it with scikit-learn's LabelSpreading and
    3-NN on others.

    Cost: that of `TDL`, whose coordinates take most of it: up to 4,000 rows or so by LAPACK, O(n^3), beyond by Lanczos,
    O(n (k + m)) a step. O(n l m) for the votes of l labelled rows in m dimensions, and O(l^2 (m + p)) for the choice.

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral Dimensionality Reduction.
    ICML 2007, section 5. A. Smola, R. Kondor: Kernels and Regularization on Graphs. COLT 2003 (the regularized
    Laplacian). A. Ng, M. Jordan, Y. Weiss: On Spectral Clustering. Advances in Neural Information Processing Systems 14
    (2001): rows of unit length.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import TDLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(400) % 10, -1, y[:400])  # one label in ten
    >>> model = TDLClassifier().fit(X[:400], few)
    >>> bool(np.mean(model.transduction_ == y[:400]) > 0.9), bool(model.score(X[400:], y[400:]) > 0.8)
    (True, True)
    """

    def __init__(self, tdl: TDL | None = None) -> None:
        self.tdl = tdl

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> TDLClassifier:
        """Give coordinates to all rows, and labels to those that have none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, of at least two classes; -1, None or NaN for unlabelled rows.
        affinity : array or sparse matrix of shape (n, n), optional
            A graph of yours, see `TDL.fit`.

        Returns
        -------
        self
        """
        X, self.classes_, codes = validate_partly_labelled_rows(self, X, y)
        require_two_classes(self.classes_)
        labelled = codes >= 0
        if self.tdl is None:
            Z, bandwidth = self._choose_space(X, codes, affinity)
        else:
            self.tdl_ = clone(self.tdl).fit(X, codes, affinity=affinity)
            self.space_, self.losses_ = "tdl", {}
            Z, bandwidth = self._profiles(self.tdl_.voting_embedding_), "auto"
        self._voters = voters(Z, labelled, codes, bandwidth)
        self.label_distributions_ = np.eye(len(self.classes_))[codes]
        if not labelled.all():
            self.label_distributions_[~labelled] = self._voters.predict_proba(Z[~labelled])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def _choose_space(self, X: Any, codes: np.ndarray, affinity: Any) -> tuple[Any, float | str]:
        """Return all rows in the space where labelled rows predict each other best, and the bandwidth of the vote."""
        n_classes = len(self.classes_)
        m = min(max(EIGENVECTORS, 2 * n_classes), X.shape[0] - 1)
        tdl = TDL(m, reg=np.inf, n_neighbors=5, bandwidth=np.inf, laplacian="normalized")
        self.tdl_ = tdl.fit(X, affinity=affinity)
        spaces = {"tdl": self._profiles(self.tdl_.embedding_)}
        labelled = codes >= 0
        if labelled.sum() < LABELS_PER_CLASS * n_classes:
            self.space_, self.losses_ = "tdl", {}
            return spaces["tdl"], "auto"
        if affinity is None:  # beside a graph of the user, the features may say nothing
            spaces["features"] = X
        best = {name: best_bandwidth(Z[labelled], codes[labelled]) for name, Z in spaces.items()}
        self.losses_ = {name: loss for name, (loss, _) in best.items()}
        self.space_ = min(self.losses_, key=lambda name: self.losses_[name])
        return spaces[self.space_], best[self.space_][1]

    def _profiles(self, V: np.ndarray) -> np.ndarray:
        return profile_coordinates(V, self.tdl_.roughness_, self.tdl_.penalty_size_)

    def _phrases(self) -> list[str]:
        return self.tdl_._phrases()

    def predict_proba(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the shares of the votes for every class, in the order of `classes_`, shape (n_new, n_classes).

        `affinity` is required after a fit with an affinity, see `TDL.transform`.
        """
        check_is_fitted(self, "tdl_")
        X = validate_rows(self, X, reset=False)
        in_space = X if self.space_ == "features" else self._profiles(self.tdl_.transform(X, affinity=affinity))
        return self._voters.predict_proba(in_space)

    def predict(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the class with the most votes for every row; of equals the first in `classes_`."""
        shares = self.predict_proba(X, affinity=affinity)
        return self.classes_[shares.argmax(axis=1)]
