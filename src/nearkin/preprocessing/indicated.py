"""Which columns with missing cells get an indicator: a feature that is 1 where the cell is missing, else 0."""

from __future__ import annotations

import numpy as np

LEAST_ROWS = 5  # in which a column is missing, and in which it is not
ROWS_PER_INDICATOR = 10


def indicated_features(missing: np.ndarray) -> np.ndarray:
    """Return which columns get an indicator, ascending.

    One that is missing in at least 5 rows and known in at least 5: of fewer nothing can be learned. Of columns that are
    missing in the same rows the first. And at most one indicator for every 10 rows, those of largest variance: where
    the columns with gaps are more than the rows, most distances would be distances between gaps.

    Parameters
    ----------
    missing : ndarray of bool of shape (n, p)

    Returns
    -------
    features : ndarray of int

    Examples
    --------
    >>> import numpy as np
    >>> from nearkin.preprocessing import indicated_features
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
