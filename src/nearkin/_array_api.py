"""Arrays of torch, CuPy and other libraries under scikit-learn's `array_api_dispatch`.

They are mapped on their device; learned arrays are copied there once.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import sklearn
from sklearn import get_config

# For every estimator and attribute: the learned array, and its copies by namespace, device and
# dtype. They are neither pickled nor cloned, and copies of an array are dropped after a new fit.
_COPIES: WeakKeyDictionary[Any, dict[str, tuple[np.ndarray, dict[tuple, Any]]]] = (
    WeakKeyDictionary()
)


def foreign_namespace(X: Any) -> Any:
    """Return the array namespace in which scikit-learn would compute on X, or None.

    It is None for NumPy, for objects that are not arrays (sparse matrices, data frames, lists), and
    without `array_api_dispatch`.
    """
    is_foreign = hasattr(X, "__dlpack__") and not isinstance(X, (np.ndarray, np.generic))
    if not (is_foreign and get_config()["array_api_dispatch"]):
        return None
    try:
        return _namespace_and_device(X)[0]
    except TypeError:  # an array of pyarrow
        return None


def _namespace_and_device(X: Any) -> tuple[Any, Any]:
    """Return the array namespace in which scikit-learn would compute on X, and the device of X."""
    try:  # a private name, which a release may change
        from sklearn.utils._array_api import get_namespace_and_device
    except ImportError as error:
        raise ImportError(
            f"nearkin does not know the `array_api_dispatch` of scikit-learn {sklearn.__version__}:"
            " turn it off, and pass NumPy arrays."
        ) from error
    xp, _, device = get_namespace_and_device(X)
    return xp, device


def moved(estimator: Any, name: str, X: Any) -> Any:
    """Return a learned array in the namespace and dtype of X, on its device.

    Parameters
    ----------
    estimator : fitted estimator
    name : str
        The attribute that holds the array.
    X : array that has a `foreign_namespace`
    """
    learned = getattr(estimator, name)
    xp, device = _namespace_and_device(X)
    source, copies = _COPIES.setdefault(estimator, {}).get(name, (None, {}))
    if source is not learned:
        copies = {}
        _COPIES[estimator][name] = learned, copies
    place = xp.__name__, str(device), str(X.dtype)
    if place not in copies:
        # copied because torch warns about read-only arrays
        copies[place] = xp.asarray(np.array(learned), dtype=X.dtype, device=device)
    return copies[place]
