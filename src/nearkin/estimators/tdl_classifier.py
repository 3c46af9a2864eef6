"""The classifier's face of TDL: few labels in, labels for all rows out, and for new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._labels import encode_partial_labels, require_two_classes
from .._validation import validate_labelled_rows, validate_rows
from ._label_cost import voters
from .tdl import TDL


class TDLClassifier(ClassifierMixin, BaseEstimator):
    """Classify by the near labelled rows in the coordinates of TDL, which all rows shape and labels bend.

    Few rows have labels. `TDL` gives coordinates to all; there the labelled rows vote, near ones most
    (`SoftNeighborsClassifier` with its bandwidth "auto"), for every training row without a label, and for new rows once
    `TDL.transform` has placed them.

    Parameters
    ----------
    n_components : int, default=20
        Coordinates of TDL, at most n - 1.
    reg, n_cost_neighbors, n_neighbors, affinity, bandwidth, laplacian, kernel, n_landmarks, random_state, search
        As for `nearkin.TDL`; `reg="auto"` chooses by labels that are hidden from the fit.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    transduction_ : ndarray of shape (n,)
        The label of every training row: the given one, or that of the vote.
    label_distributions_ : ndarray of shape (n, n_classes)
        The shares of the votes for every training row; for a labelled one, 1 for its label.
    tdl_ : TDL
        The fitted coordinates.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    sklearn.semi_supervised.LabelSpreading : Spreads the labels along the graph.

    Notes
    -----
    -1 means: no label (None and NaN, too; the string "-1" is a class). Tools that take the -1 for a class, as
    stratified splits do, should split the labelled rows only.

    Cost: that of TDL, and O(n l m) for the votes of l labelled rows in m dimensions.

    References
    ----------
    F. Li, J. Yang, J. Wang: A Transductive Framework of Distance Metric Learning by Spectral Dimensionality Reduction.
    ICML 2007, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from nearkin import TDLClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> few = np.where(np.arange(1000) % 10, -1, y[:1000])  # one label in ten
    >>> tdl = TDLClassifier().fit(X[:1000], few)
    >>> bool(np.mean(tdl.transduction_ == y[:1000]) > 0.85), bool(tdl.score(X[1000:], y[1000:]) > 0.85)
    (True, True)
    """

    def __init__(
        self,
        n_components: int = 20,
        *,
        reg: float | str = 1024.0,
        n_cost_neighbors: int = 20,
        n_neighbors: int = 20,
        affinity: str = "knn",
        bandwidth: float | None = None,
        laplacian: str | None = "unnormalized",
        kernel: Any = None,
        n_landmarks: int | None = None,
        random_state: Any = None,
        search: Any = "exact",
    ) -> None:
        self.n_components = n_components
        self.reg = reg
        self.n_cost_neighbors = n_cost_neighbors
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.bandwidth = bandwidth
        self.laplacian = laplacian
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.search = search

    def fit(self, X: Any, y: Any, *, affinity: Any = None) -> TDLClassifier:
        """Give coordinates to all rows, and labels to those that have none.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
            n >= 2 rows that are not all equal.
        y : array of shape (n,)
            Class labels, of at least two classes; -1, None or NaN for rows without one.
        affinity : array or sparse matrix of shape (n, n), optional
            A graph of yours, see `nearkin.TDL.fit`.

        Returns
        -------
        self

        Raises
        ------
        TypeError
            If X is a Dask collection or a torch tensor, or a parameter has a wrong type.
        ValueError
            If X, y or affinity is not as above or not finite, or a parameter is out of bounds.
        """
        X, codes = validate_labelled_rows(self, X, y, encode_partial_labels)
        self.classes_ = encode_partial_labels(y)[0]
        require_two_classes(self.classes_)
        self.tdl_ = TDL(**self.get_params(deep=False)).fit(X, codes, affinity=affinity)

        known = codes >= 0
        self._vote = voters(self.tdl_.embedding_, np.flatnonzero(known), codes)
        self.label_distributions_ = np.eye(len(self.classes_))[codes]
        if not known.all():
            self.label_distributions_[~known] = self._vote.predict_proba(self.tdl_.embedding_[~known])
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def predict_proba(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the shares of the votes for every class, in the order of `classes_`, shape (n_new, n_classes).

        `affinity` is required if the fit was given its graph, see `nearkin.TDL.transform`.
        """
        check_is_fitted(self, "tdl_")
        X = validate_rows(self, X, reset=False)
        return self._vote.predict_proba(self.tdl_.transform(X, affinity=affinity))

    def predict(self, X: Any, *, affinity: Any = None) -> np.ndarray:
        """Return the class with the most votes for every row; of equals the first in `classes_`."""
        votes = self.predict_proba(X, affinity=affinity)
        return self.classes_[votes.argmax(axis=1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
