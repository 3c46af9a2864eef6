"""One method a file, named after it; each reads as its paper."""

from ._rows import Rows as Rows
from ._rows import TableRows as TableRows
from ._shared_rows import SharedRows as SharedRows
from .base import SpectralEmbedding as SpectralEmbedding
from .discriminative_predictors import DiscriminativeProjectionsClassifier as DiscriminativeProjectionsClassifier
from .discriminative_predictors import DiscriminativeProjectionsRegressor as DiscriminativeProjectionsRegressor
from .discriminative_projections import DiscriminativeProjections as DiscriminativeProjections
from .dmlmj import DMLMJ as DMLMJ
from .dne import DNE as DNE
from .embedding_adapter import EmbeddingAdapter as EmbeddingAdapter
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
from .nca_predictors import NCAClassifier as NCAClassifier
from .nca_predictors import NCARegressor as NCARegressor
from .neural_nca import NeuralNCA as NeuralNCA
from .nmmp import NMMP as NMMP
from .pair_nca import PairNCA as PairNCA
from .procrustes import Procrustes as Procrustes
from .rca import RCA as RCA
from .sda import SDA as SDA
from .soft_neighbors import SoftNeighborsClassifier as SoftNeighborsClassifier
from .soft_neighbors import SoftNeighborsRegressor as SoftNeighborsRegressor
from .tdl import TDL as TDL
from .tdl_classifier import TDLClassifier as TDLClassifier

# `nearkin.evaluation.compare` runs those with an attribute `compared_as` in this order: quick ones first.
__all__ = [  # noqa: RUF022
    "RCA", "GMML", "LPP", "LFDA", "LDE", "MFA", "DMLMJ", "DNE", "NMMP", "NCA", "LMNN", "MLKR",
    "DiscriminativeProjections", "SDA", "TDL", "DiscriminativeProjectionsClassifier",
    "DiscriminativeProjectionsRegressor", "EmbeddingAdapter", "LapRLSClassifier", "LapRLSRegressor",
    "LaplacianEigenmaps", "NCAClassifier", "NCARegressor", "NeuralNCA", "PairNCA", "Procrustes",
    "SoftNeighborsClassifier", "SoftNeighborsRegressor", "TDLClassifier",
]  # fmt: skip
