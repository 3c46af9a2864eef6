"""One method a file, named after it; each reads as its paper."""

from ._rows import Rows as Rows
from ._rows import TableRows as TableRows
from .base import SpectralEmbedding as SpectralEmbedding
from .discriminative_predictors import DiscriminativeProjectionsClassifier as DiscriminativeProjectionsClassifier
from .discriminative_predictors import DiscriminativeProjectionsRegressor as DiscriminativeProjectionsRegressor
from .discriminative_projections import DiscriminativeProjections as DiscriminativeProjections
from .dne import DNE as DNE
from .laplacian_eigenmaps import LaplacianEigenmaps as LaplacianEigenmaps
from .lde import LDE as LDE
from .lfda import LFDA as LFDA
from .lmnn import LMNN as LMNN
from .lpp import LPP as LPP
from .mfa import MFA as MFA
from .nca import NCA as NCA
from .nmmp import NMMP as NMMP
from .pair_nca import PairNCA as PairNCA
from .rca import RCA as RCA
from .soft_neighbors import SoftNeighborsClassifier as SoftNeighborsClassifier
from .soft_neighbors import SoftNeighborsRegressor as SoftNeighborsRegressor
from .tdl import TDL as TDL
from .tdl_classifier import TDLClassifier as TDLClassifier

# `nearkin.evaluation.compare` runs those with an attribute `compared_as` in this order: quick ones first.
__all__ = [  # noqa: RUF022
    "RCA", "LPP", "LFDA", "LDE", "MFA", "DNE", "NMMP", "NCA", "LMNN", "DiscriminativeProjections", "TDL",
    "DiscriminativeProjectionsClassifier", "DiscriminativeProjectionsRegressor", "LaplacianEigenmaps", "PairNCA",
    "SoftNeighborsClassifier", "SoftNeighborsRegressor", "TDLClassifier",
]  # fmt: skip
