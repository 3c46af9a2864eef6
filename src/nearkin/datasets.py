"""Real data sets that need no download, and a toy data set from the papers.

Real data sets have names for their features and classes, which makes tables of results readable.
Four come from scikit-learn; balance_scale is generated from the rule that UCI's file follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from ._validation import check_choice, check_random_state


@dataclass(frozen=True)
class Dataset:
    """A table of rows with class labels.

    Attributes
    ----------
    X : ndarray of shape (n, p)
        Features, float64.
    y : ndarray of shape (n,)
        Class names.
    feature_names : list of str
        Names of the p features.
    name : str
        Name of the data set.
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
    """Load a real data set by its name.

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
    # weights and distances from 1 to 5, and the side that tips, B for balanced
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
    """Generate three classes on concentric circles in two features, plus noise of large variance.

    This is the toy data set of NMMP's figure 2. The paper does not give its geometry; here the
    radii are 1, 3 and 5. All class means coincide, so LDA finds nothing; noise of the default scale
    varies more than the circles, so PCA only finds noise.

    Parameters
    ----------
    n_samples : int, default=300
        Number of rows, dealt to the classes in turn.
    n_noise : int, default=8
        Number of noise features.
    noise_scale : float, default=3.0
        Standard deviation of these features.
    random_state : int, RandomState or None, default=None
        Seed of the angles and the noise.

    Returns
    -------
    X : ndarray of shape (n_samples, 2 + n_noise)
    y : ndarray of shape (n_samples,)
        0, 1 and 2, from the inside outwards.
    """
    rng = check_random_state(random_state)
    y = np.arange(n_samples) % 3
    radius = 1 + 2 * y + 0.2 * rng.standard_normal(n_samples)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    noise = noise_scale * rng.standard_normal((n_samples, n_noise))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), noise]), y
