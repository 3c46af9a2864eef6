"""Missing cells: which columns get an indicator, and imputation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.impute import SimpleImputer

from .._blocks import missing_cells
from .._messages import counted, note, shortened

# In which the column is missing, and in which it is known; also, in which a word among numbers
# occurs. With 2, 5, 10 and 20, log losses of drawn tables with 30 words are .48, .51, .53, .53 for
# one half of words, and .49, .48, .48, .48 for a tenth (`benchmarks/choices/mixed_cells.py`).
LEAST_ROWS = 5
ROWS_PER_INDICATOR = 10


def indicated_features(missing: np.ndarray) -> np.ndarray:
    """Return which columns get an indicator of missing cells, ascending.

    These are columns with at least 5 missing and 5 known cells, as nothing can be learned from
    fewer. Among columns that are missing in the same rows, only the first counts. There is at most
    one indicator for every 10 rows, and those of largest variance are kept: if there were more
    indicators than rows, most distances would be distances between gaps.

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
    rarest = np.minimum(counts, n - counts)[distinct]  # the variance increases with it
    most_varied = np.argsort(-rarest, kind="stable")[: n // ROWS_PER_INDICATOR]
    return np.sort(distinct[most_varied])


def median_known(numbers: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Return the median of the known numbers among (n,).

    A weight counts as a number of copies. If the two middle copies differ, the median is their
    mean.
    """
    if weights is None:
        return float(np.nanmedian(numbers))
    known = np.flatnonzero(~np.isnan(numbers))
    order = known[np.argsort(numbers[known], kind="stable")]
    below = np.cumsum(weights[order])
    middle = below[-1] / 2 * (1 + np.array([-1e-12, 1e-12]))  # a half, up to rounding
    return float(numbers[order[np.searchsorted(below, middle)]].mean())


class Imputer(SimpleImputer):
    """Fill missing cells with the median of their column, and append indicators of missing cells.

    Which columns get an indicator is decided by `indicated_features` on the rows of `fit`.
    """

    def __init__(self) -> None:
        super().__init__(strategy="median", add_indicator=True, keep_empty_features=True)

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Imputer:
        """Learn the (weighted) medians, and which columns get an indicator."""
        super().fit(X, y)
        if sample_weight is not None:
            known = np.flatnonzero(~np.isnan(X).all(axis=0))
            self.statistics_[known] = [median_known(X[:, at], sample_weight) for at in known]
        self.indicator_.features_ = indicated_features(np.isnan(X))
        return self


def filled_note(X: Any, names: Any, done: str = "filled by the median") -> list[str]:
    """Return remarks on features with missing cells and their treatment; none without these."""
    gaps = [
        f"{shortened(name)} ({counted(count, 'row')})"
        for name, count in zip(names, missing_cells(X), strict=True)
        if count
    ]
    return note(f"missing values, {done}", gaps)
