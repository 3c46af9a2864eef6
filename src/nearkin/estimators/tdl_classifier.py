"""The classifier made of TDL: few labels in, labels for all rows out, and for new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._captions import Estimator
from .._labels import require_two_classes
from .._validation import validate_partly_labelled_rows, validate_rows
from ._label_cost import commute_coordinates, voters
from .base import SparseRowsMixin
from .tdl import TDL


class TDLClassifier(ClassifierMixin, SparseRowsMixin, Estimator):
    """Classify by the nearest labelled rows in the coordinates of `TDL`.

    Few rows have labels. `TDL` gives coordinates to all rows, v_j with j = 1, ..., m. They count by their smoothness:
    divided by the root of v_j'Pv_j (plus a hundredth of its mean, as it may be 0), P the penalty, which for a Laplacian
    without labels makes squared distances commute times. Then every row is scaled to unit length: how far labels have
    pushed a row out says nothing, in which direction says all. There the labelled rows vote, near ones with the largest
    weights (`SoftNeighborsClassifier` with its bandwidth "auto"), for every unlabelled training row, and for new rows
    in the coordinates of `TDL.transform`.

    Parameters
    ----------
    tdl : TDL or None, default=None
        The coordinates; it is cloned. None takes those of the normalized Laplacian of the 10-NN graph without weights,
        `TDL(m, n_neighbors=10, bandwidth=np.inf, laplacian="normalized")`, with m = 20, or twice as many as there are
        classes if that is more, at most n - 1.

    Attributes
    ----------
    tdl_ : TDL
        Fitted.
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

    The labelled rows have their coordinates from `TDL.voting_embedding_`. The default was chosen on the sets of
    `benchmarks/tdl_labels.py`, which compares it with scikit-learn's LabelSpreading and 3-NN.

    Cost: that of `TDL`, and O(n l m) for the votes of l labelled rows in m dimensions.

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral Dimensionality Reduction.
    ICML 2007, section 5. A. Smola, R. Kondor: Kernels and Regularization on Graphs. COLT 2003 (the regularized
    Laplacian: its cosines are those of the scaled rows without labels). A. Ng, M. Jordan, Y. Weiss: On Spectral
    Clustering. Advances in Neural Information Processing Systems 14 (2001): rows of unit length.

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
        m = min(max(20, 2 * len(self.classes_)), X.shape[0] - 1)
        default = TDL(m, n_neighbors=10, bandwidth=np.inf, laplacian="normalized")
        tdl = default if self.tdl is None else clone(self.tdl)
        self.tdl_ = tdl.fit(X, codes, affinity=affinity)

        Z, labelled = commute_coordinates(self.tdl_.voting_embedding_, self.tdl_.roughness_), codes >= 0
        self._voters = voters(Z, labelled, codes)
        self.label_distributions_ = np.eye(len(self.classes_))[codes]
        if not labelled.all():
            self.label_distributions_[~labelled] = self._voters.predict_proba(Z[~labelled])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def _phrases(self) -> list[str]:
        return self.tdl_._phrases()

    def predict_proba(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the shares of the votes for every class, in the order of `classes_`, shape (n_new, n_classes).

        `affinity` is required after a fit with an affinity, see `TDL.transform`.
        """
        check_is_fitted(self, "tdl_")
        X = validate_rows(self, X, reset=False)
        V = self.tdl_.transform(X, affinity=affinity)
        return self._voters.predict_proba(commute_coordinates(V, self.tdl_.roughness_))

    def predict(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the class with the most votes for every row; of equals the first in `classes_`."""
        shares = self.predict_proba(X, affinity=affinity)
        return self.classes_[shares.argmax(axis=1)]
