"""The contestants: what is compared, and what inner validation chooses for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from ..estimators import DNE, LDE, LFDA, LMNN, LPP, MFA, NCA, NMMP, RCA, TDL, DiscriminativeProjections
from ..neighbors import BYTES_PER_NEIGHBOR

DIMENSIONS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200)
TDL_DIMENSIONS = 20  # of a graph, not of the features: there may be more than these

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
        For a target of numbers, the number of rows is the size of a single class.
    growth : int
        Power of the number of rows that the time of a fit grows with.
    most : function of p and the number of classes that returns the largest n_components there is
        The number of classes is 1 for a target of numbers.
    unlabelled : bool
        Whether it also learns from rows without a label, where a table has some: with y, the number of the class or
        -1; of a target of numbers NaN.
    summary : str
        What it does, in a sentence or two.
    """

    name: str
    estimator: BaseEstimator | None
    settings: Callable[[int], Sequence[Params]] = lambda p: [{}]
    nested: bool = True
    memory: Callable[[np.ndarray], float] = lambda sizes: 0.0
    growth: int = 2
    most: Callable[[int, int], int] = lambda p, n_classes: p
    unlabelled: bool = False
    summary: str = ""

    def leaves_choice(self, p: int) -> bool:
        """Say whether there is anything to choose among for p features: settings, or the leading dimensions of one."""
        return self.estimator is not None and (self.nested or len(self.settings(p)) > 1)


RAW = "raw k-NN"


def raw_features() -> Method:
    """Return the baseline: no map at all."""
    return Method(
        RAW,
        None,
        summary="The features as they are, each counting by its spread. The bar that the others must pass.",
    )


def pca() -> Method:
    """Return PCA, which takes any target: it sees none."""
    return Method(
        "PCA",
        PCA(svd_solver="full"),
        growth=1,
        unlabelled=True,
        summary="Keeps the directions in which all rows vary most (Principal Component Analysis). Does not see the "
        "target, so it may drop what tells about it.",
    )


def regression_methods() -> list[Method]:
    """Return the contestants for a target of numbers: the raw features, PCA and NCA, the quick ones first.

    A method whose `fit` takes y is given the numbers.
    """
    return [raw_features(), pca(), nca("continuous")]


def nca(target: str = "classes") -> Method:
    """Return NCA for labels or for numbers."""
    return Method(
        "NCA",
        NCA(target=target),
        lambda p: [{"n_components": min(p, 50)}],
        nested=False,
        summary="Raises how often a row agrees with a near neighbour drawn at random (Neighbourhood "
        "Components Analysis), by descent, with a penalty against learning the rows by heart.",
    )


def default_methods() -> list[Method]:
    """Return the raw features, PCA, LDA and every nearkin method for labels, the quick ones first."""
    return [
        raw_features(),
        pca(),
        Method(
            "LDA",
            LinearDiscriminantAnalysis(),
            growth=1,
            most=lambda p, n_classes: min(p, n_classes - 1),
            summary="Pulls every class to its mean and the means apart (Linear Discriminant Analysis). Right where "
            "each class is one cloud; at most one dimension fewer than there are classes.",
        ),
        Method(
            "RCA",
            RCA(),
            growth=1,
            summary="Whitens what varies within the classes (Relevant Component Analysis): LDA that is not limited to "
            "classes - 1 dimensions.",
        ),
        Method(
            "LPP",
            LPP(),
            unlabelled=True,
            summary="Keeps near rows near (Locality Preserving Projections). Knows no labels: the local counterpart of "
            "PCA.",
        ),
        Method(
            "LFDA",
            LFDA(),
            summary="LDA that pulls only near kin together (Local Fisher Discriminant Analysis): a class may lie in "
            "several places, and there may be more than classes - 1 dimensions.",
        ),
        Method(
            "LDE",
            LDE(),
            summary="Pulls near kin together and pushes near strangers apart, the more so the nearer they are (Local "
            "Discriminant Embedding), by the ratio trace.",
        ),
        Method(
            "MFA",
            MFA(),
            lambda p: [{"n_pairs": k} for k in (20, 200)],
            memory=lambda sizes: BYTES_PER_NEIGHBOR * 200.0 * np.sum(sizes),
            summary="Pulls near kin together and pushes apart the closest pairs across the margins of the classes "
            "(Marginal Fisher Analysis), by the ratio trace.",
        ),
        Method(
            "DNE",
            DNE(),
            lambda p: [{"n_neighbors": k} for k in (1, 3, 10)],
            summary="Pulls each row to its nearest kin and pushes its nearest strangers away (Discriminant "
            "Neighborhood Embedding). The negative eigenvalues say how many dimensions help.",
        ),
        Method(
            "NMMP ratio trace",
            NMMP(criterion="ratio_trace"),
            memory=_nmmp_memory,
            summary="Pulls mutual kin together and pushes mutual strangers apart (Neighborhood MinMax Projections), by "
            "the ratio trace: free to stretch every direction, so units do not matter.",
        ),
        Method(
            "NMMP",
            NMMP(),
            lambda p: _dimensions(p, (1, 2, 3, 5, 10, 20, 40, 60, 100)),
            nested=False,
            memory=_nmmp_memory,
            summary="Pulls mutual kin together and pushes mutual strangers apart (Neighborhood MinMax Projections), by "
            "the exact trace ratio: turns the space and leaves out what does not help.",
        ),
        nca(),
        Method(
            "NCA log",
            NCA(objective="log_likelihood"),
            lambda p: [{"n_components": min(p, 50)}],
            nested=False,
            summary="NCA that raises the probability that all rows are labelled right: it gives up no row, and suits "
            "clean labels.",
        ),
        Method(
            "LMNN",
            LMNN(),
            lambda p: [{"n_components": min(p, 50)}],
            nested=False,
            summary="Keeps strangers a margin farther away than the nearest kin (Large Margin Nearest Neighbour), by "
            "descent: made for the vote of the nearest.",
        ),
    ]


def semi_supervised_methods() -> list[Method]:
    """Return the contestants that join a table of classes where some rows have no label."""
    return [
        Method(
            "DP",
            DiscriminativeProjections(),
            lambda p: [{"n_components": min(p, 50)}],
            unlabelled=True,
            summary="Maps rows and labels into one space, rows near their own label and far from the others, near rows "
            "near (Discriminative Projections). Learns from rows without a label.",
        ),
        Method(
            "TDL",
            TDL(TDL_DIMENSIONS),
            growth=1,  # from the 1,000 rows of a pilot, which are solved densely, to the Lanczos iteration of many
            most=lambda p, n_classes: TDL_DIMENSIONS,
            unlabelled=True,
            summary="Gives all rows coordinates that vary little along a graph of near rows, bent so that labelled kin "
            "are near and labelled strangers apart (Transductive Distance Learning). Learns from rows without a label.",
        ),
    ]


def _dimensions(p: int, candidates: Sequence[int]) -> list[Params]:
    return [{"n_components": m} for m in candidates if m < p] + [{"n_components": p}] * (p <= max(candidates))


def _nmmp_memory(sizes: np.ndarray) -> float:
    return BYTES_PER_NEIGHBOR * float(np.sum(sizes * (sizes / 2 + 2)))
