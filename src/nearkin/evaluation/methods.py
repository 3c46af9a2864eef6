"""The contestants: what is compared, and what inner validation chooses for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from ..estimators import DNE, LPP, NMMP
from ..estimators.nmmp import BYTES_PER_LISTED_NEIGHBOR

DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)

Params = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A contestant: an unfitted map, and what inner validation chooses for it.

    Attributes
    ----------
    name : str
    estimator : transformer with a parameter `n_components`, or None for the raw features
    settings : function of the number of features p that returns the parameter settings to choose among
    nested : bool
        Whether the first m columns of a fit are the fit with m components; one fit then serves every dimension of
        `DIMENSIONS`. Otherwise `settings` must vary `n_components` itself.
    memory : function of the class sizes that returns the bytes a fit needs beyond the data
    growth : int
        Power of the number of rows that the time of a fit grows with.
    most : function of p and the number of classes that returns the largest n_components there is
    """

    name: str
    estimator: BaseEstimator | None
    settings: Callable[[int], Sequence[Params]] = lambda p: [{}]
    nested: bool = True
    memory: Callable[[np.ndarray], float] = lambda sizes: 0.0
    growth: int = 2
    most: Callable[[int, int], int] = lambda p, n_classes: p


RAW = "raw k-NN"


def default_methods(random_state: int | None = 0) -> list[Method]:
    """Return the raw features, PCA, LDA, every nearkin method and scikit-learn's NCA, the quick ones first."""
    return [
        Method(RAW, None),
        Method("PCA", PCA(svd_solver="full"), growth=1),
        Method("LDA", LinearDiscriminantAnalysis(), growth=1, most=lambda p, n_classes: min(p, n_classes - 1)),
        Method("LPP", LPP()),
        Method("DNE", DNE(), lambda p: [{"n_neighbors": k} for k in (1, 3, 10)]),
        Method("NMMP ratio trace", NMMP(criterion="ratio_trace"), memory=_nmmp_memory),
        Method(
            "NMMP",
            NMMP(),
            lambda p: _dimensions(p, (1, 2, 3, 5, 10, 20, 40, 60, 100)),
            nested=False,
            memory=_nmmp_memory,
        ),
        Method(
            "NCA (sklearn)",
            NeighborhoodComponentsAnalysis(random_state=random_state),
            lambda p: _dimensions(p, (2, 10)),
            nested=False,
            memory=lambda sizes: 40.0 * sizes.sum() ** 2,  # five n x n arrays of float64
        ),
    ]


def _dimensions(p: int, candidates: Sequence[int]) -> list[Params]:
    return [{"n_components": m} for m in candidates if m < p] + [{"n_components": p}] * (p <= max(candidates))


def _nmmp_memory(sizes: np.ndarray) -> float:
    return BYTES_PER_LISTED_NEIGHBOR * float(np.sum(sizes * (sizes / 2 + 2)))
