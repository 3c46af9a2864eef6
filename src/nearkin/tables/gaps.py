"""Missing cells: which columns say where they are, and what fills them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.impute import SimpleImputer

from .._messages import counted, note

LEAST_ROWS = 5  # in which a column is missing, and in which it is not
ROWS_PER_INDICATOR = 10


def indicated_features(missing: np.ndarray) -> np.ndarray:
    """Return which columns get an indicator, ascending.

    One that is missing in at least 5 rows and known in at least 5: of fewer nothing can be learned.
    Of columns that are missing in the same rows the first. And at most one indicator for every 10
    rows, those of largest variance: where the columns with gaps are more than the rows, most
    distances would be distances between gaps.

    Parameters
    ----------
    missing : ndarray of bool of shape (n, p)

    Returns
    -------
    features : ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin.tables import indicated_features
    >>> missing = np.zeros((100, 4), dtype=bool)
    >>> missing[:20, 1] = missing[:20, 2] = True  # together
    >>> missing[0, 3] = True  # once
    >>> indicated_features(missing)
    array([1])
    """
    n = len(missing)
    counts = missing.sum(axis=0)
    often = np.flatnonzero((counts >= LEAST_ROWS) & (counts <= n - LEAST_ROWS))
    packed = np.packbits(missing[:, often], axis=0)
    distinct = often[np.unique(packed, axis=1, return_index=True)[1]] if len(often) else often
    distinct = np.sort(distinct)
    rarest = np.minimum(counts, n - counts)[distinct]  # the variance grows with it
    most_varied = np.argsort(-rarest, kind="stable")[: n // ROWS_PER_INDICATOR]
    return np.sort(distinct[most_varied])


def median_known(numbers: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the median of the numbers that are not missing, (n,); of weights that of copies: the
    mean of the two in the middle where these differ.
    """
    if weights is None:
        return float(np.nanmedian(numbers))
    known = np.flatnonzero(~np.isnan(numbers))
    order = known[np.argsort(numbers[known], kind="stable")]
    below = np.cumsum(weights[order])
    middle = below[-1] / 2 * (1 + np.array([-1e-12, 1e-12]))  # a half is met but for rounding
    return float(numbers[order[np.searchsorted(below, middle)]].mean())


def missing_cells(X: Any) -> np.ndarray:
    """Return how many cells of each feature are missing: NaN; sparse rows have none."""
    return np.zeros(X.shape[1], dtype=int) if issparse(X) else np.isnan(X).sum(axis=0)


class Imputer(SimpleImputer):
    """Fills missing cells with the median of their column, and appends indicators: 1 where a cell
    was missing, else 0.

    Columns get one as `indicated_features` says, of the rows of `fit`.
    """

    def __init__(self) -> None:
        super().__init__(strategy="median", add_indicator=True, keep_empty_features=True)

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Imputer:
        """Learn medians, by the weights of rows, and which columns get an indicator."""
        super().fit(X, y)
        if sample_weight is not None:
            known = np.flatnonzero(~np.isnan(X).all(axis=0))
            self.statistics_[known] = [median_known(X[:, at], sample_weight) for at in known]
        self.indicator_.features_ = indicated_features(np.isnan(X))
        return self


def filled(X: Any) -> Any:
    """Return X as it is where no cell is missing, else filled by its own medians, with an indicator
    of every column that has one.
    """
    gaps = np.flatnonzero(missing_cells(X))
    if len(gaps) == 0:
        return X
    # of the columns with gaps alone: medians of all would take long
    medians = SimpleImputer(strategy="median", keep_empty_features=True)
    out = np.hstack([X, np.isnan(X[:, gaps])], dtype=X.dtype)
    out[:, gaps] = medians.fit_transform(X[:, gaps])
    return out


def filled_note(X: Any, names: Any, done: str = "filled by the median") -> list[str]:
    """Return a remark on the features with missing cells, and what is done with them; none without
    any.
    """
    gaps = [
        f"{name} ({counted(count, 'row')})"
        for name, count in zip(names, missing_cells(X), strict=True)
        if count
    ]
    return note(f"missing values, {done}", gaps)
