"""One method per file, named after it and written as in its paper."""

from .base import SpectralEmbedding as SpectralEmbedding
from .discriminative_projections import (
    DiscriminativeProjections,
    DiscriminativeProjectionsClassifier,
    DiscriminativeProjectionsRegressor,
)
from .dmlmj import DMLMJ
from .dne import DNE
from .gmml import GMML
from .itml import ITML
from .lap_rls import LapRLSClassifier, LapRLSRegressor
from .laplacian_eigenmaps import LaplacianEigenmaps
from .lde import LDE
from .lfda import LFDA
from .lmnn import LMNN
from .lpp import LPP
from .mfa import MFA
from .mlkr import MLKR
from .nca import NCA
from .neural_nca import NeuralNCA
from .nmmp import NMMP
from .pair_nca import PairNCA
from .rca import RCA
from .rows import Rows as Rows
from .rows import SharedRows as SharedRows
from .sda import SDA
from .soft_neighbors import SoftNeighborsClassifier, SoftNeighborsRegressor
from .t_nca import TDistributedNCA
from .tdl import TDL
from .tdl_classifier import TDLClassifier

__all__ = [
    "DMLMJ",
    "DNE",
    "GMML",
    "ITML",
    "LDE",
    "LFDA",
    "LMNN",
    "LPP",
    "MFA",
    "MLKR",
    "NCA",
    "NMMP",
    "RCA",
    "SDA",
    "TDL",
    "DiscriminativeProjections",
    "DiscriminativeProjectionsClassifier",
    "DiscriminativeProjectionsRegressor",
    "LapRLSClassifier",
    "LapRLSRegressor",
    "LaplacianEigenmaps",
    "NeuralNCA",
    "PairNCA",
    "SoftNeighborsClassifier",
    "SoftNeighborsRegressor",
    "TDLClassifier",
    "TDistributedNCA",
]
