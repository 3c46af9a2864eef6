"""Real sets that need no download, and the toy sets of the papers.

Real sets come with their names: `load("wine")` says what was measured and which class every row
belongs to, so that a table of results can be read. Four are scikit-learn's; balance_scale is made
from the rule that UCI's file follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.utils import check_random_state

from ._validation import check_choice


@dataclass(frozen=True)
class Dataset:
    """A table whose rows belong to classes.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Features, float64.
    y : ndarray of shape (n,)
        Names of the classes.
    feature_names : list of str
        Names of the p features.
    name : str
        Name of the set.
    """

    X: np.ndarray
    y: np.ndarray
    feature_names: list[str]
    name: str


_SCIKIT_LEARN = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}

BUNDLED = (*_SCIKIT_LEARN, "balance_scale")


def load(name: str) -> Dataset:
    """Return a real set by its name.

    Parameters
    ----------
    name : {"iris", "wine", "breast_cancer", "digits", "balance_scale"}

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from nearkin.datasets import load
    >>> wine = load("wine")
    >>> wine.X.shape, wine.feature_names[0], str(wine.y[0])
    ((178, 13), 'alcohol', 'class_0')
    """
    # weights and distances from 1 to 5, and the side that goes down, B for none
    if name == "balance_scale":
        X = np.array(list(product(range(1, 6), repeat=4)), dtype=np.float64)
        torque = X[:, 0] * X[:, 1] - X[:, 2] * X[:, 3]
        features = ["left_weight", "left_distance", "right_weight", "right_distance"]
        return Dataset(X, np.select([torque > 0, torque < 0], ["L", "R"], "B"), features, name)
    check_choice(name, "name", BUNDLED)
    bunch = _SCIKIT_LEARN[name]()
    y = bunch.target_names.astype(str)[bunch.target]
    return Dataset(
        np.asarray(bunch.data, dtype=np.float64), y, list(map(str, bunch.feature_names)), name
    )


def make_concentric_classes(
    n_samples: int = 300, n_noise: int = 8, noise_scale: float = 3.0, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return three classes on concentric circles in the first two features; the others are noise of
    large variance.

    The toy set of NMMP's figure 2. The paper gives no geometry; here the radii are 1, 3 and 5. All
    class means coincide, so LDA sees nothing; noise of the default scale varies more than the
    circles, so PCA sees only noise.

    Parameters
    ----------
    n_samples : int, default=300
        Rows, dealt to the classes in turn.
    n_noise : int, default=8
        Features of noise.
    noise_scale : float, default=3.0
        Standard deviation of these features.
    random_state : int, RandomState or None, default=None
        Seed of the angles and of the noise.

    Returns
    -------
    X : ndarray of shape (n_samples, 2 + n_noise)
    y : ndarray of shape (n_samples,)
        0, 1 and 2 from the inside outwards.
    """
    rng = check_random_state(random_state)
    y = np.arange(n_samples) % 3
    radius = 1 + 2 * y + 0.2 * rng.standard_normal(n_samples)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    noise = noise_scale * rng.standard_normal((n_samples, n_noise))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), noise]), y
