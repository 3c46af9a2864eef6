"""One method a file, named after it; each reads as its paper."""

from .base import SpectralEmbedding as SpectralEmbedding
from .discriminative_projections import DiscriminativeProjections as DiscriminativeProjections
from .discriminative_projections import (
    DiscriminativeProjectionsClassifier as DiscriminativeProjectionsClassifier,
)
from .discriminative_projections import (
    DiscriminativeProjectionsRegressor as DiscriminativeProjectionsRegressor,
)
from .dmlmj import DMLMJ as DMLMJ
from .dne import DNE as DNE
from .gmml import GMML as GMML
from .lap_rls import LapRLSClassifier as LapRLSClassifier
from .lap_rls import LapRLSRegressor as LapRLSRegressor
from .laplacian_eigenmaps import LaplacianEigenmaps as LaplacianEigenmaps
from .lde import LDE as LDE
from .lfda import LFDA as LFDA
from .lmnn import LMNN as LMNN
from .lpp import LPP as LPP
from .mfa import MFA as MFA
from .mlkr import MLKR as MLKR
from .nca import NCA as NCA
from .neural_nca import NeuralNCA as NeuralNCA
from .nmmp import NMMP as NMMP
from .pair_nca import PairNCA as PairNCA
from .rca import RCA as RCA
from .rows import Rows as Rows
from .rows import SharedRows as SharedRows
from .rows import TableRows as TableRows
from .sda import SDA as SDA
from .soft_neighbors import SoftNeighborsClassifier as SoftNeighborsClassifier
from .soft_neighbors import SoftNeighborsRegressor as SoftNeighborsRegressor
from .tdl import TDL as TDL
from .tdl import TDLClassifier as TDLClassifier

# `nearkin.evaluation.compare` runs those with an attribute `compared_as` in this order: quick ones
# first.
__all__ = [  # noqa: RUF022
    "RCA", "GMML", "LPP", "LFDA", "LDE", "MFA", "DMLMJ", "DNE", "NMMP", "NCA", "LMNN", "MLKR",
    "DiscriminativeProjections", "SDA", "TDL", "DiscriminativeProjectionsClassifier",
    "DiscriminativeProjectionsRegressor", "LapRLSClassifier", "LapRLSRegressor", "LaplacianEigenmaps",
    "NeuralNCA", "PairNCA", "SoftNeighborsClassifier", "SoftNeighborsRegressor", "TDLClassifier",
]  # fmt: skip
