"""Real sets that need no download, and the toy sets of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.utils import check_random_state


@dataclass(frozen=True)
class Dataset:
    """A table with names.

    Attributes
    ----------
    name : str
    X : ndarray of shape (n, p)
    y : ndarray of shape (n,)
        Class names, strings.
    feature_names : list of str
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    feature_names: list[str]


_SCIKIT_LEARN = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}
BUNDLED = (*_SCIKIT_LEARN, "balance_scale")


def load(name: str) -> Dataset:
    """Return one of the `BUNDLED` sets: four of scikit-learn's, and balance_scale, made from its rule.

    Raises
    ------
    ValueError
        If there is no set of this name.
    """
    if name == "balance_scale":
        return _balance_scale()
    if name not in _SCIKIT_LEARN:
        raise ValueError(f"no bundled data set {name!r}: choose one of {', '.join(BUNDLED)}.")
    bunch = _SCIKIT_LEARN[name]()
    return Dataset(name, bunch.data, np.asarray(bunch.target_names, dtype=str)[bunch.target], list(bunch.feature_names))


def _balance_scale() -> Dataset:
    """Return the UCI set: which side of a balance goes down, for all weights and distances from 1 to 5."""
    X = np.array(list(product(range(1, 6), repeat=4)), dtype=np.float64)
    torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
    y = np.select([torque > 0, torque < 0], ["L", "R"], "B")
    return Dataset("balance_scale", X, y, ["left_weight", "left_distance", "right_weight", "right_distance"])


def make_concentric_classes(
    n_samples: int = 300, n_noise: int = 8, random_state: int | np.random.RandomState | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return three classes on concentric circles in the first two features, and noise of large variance in the others.

    The toy set of NMMP's figure 2. The paper gives no geometry: radii are 1, 2 and 3 here with noise of 0.1, and the
    noise features have a standard deviation of 3.

    Returns
    -------
    X : ndarray of shape (n_samples, 2 + n_noise)
    y : ndarray of shape (n_samples,)
        0, 1, 2 from the inside outwards.
    """
    rng = check_random_state(random_state)
    y = np.arange(n_samples) % 3
    radius, angle = y + 1 + 0.1 * rng.standard_normal(n_samples), rng.uniform(0, 2 * np.pi, n_samples)
    circles = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.hstack([circles, 3 * rng.standard_normal((n_samples, n_noise))]), y
