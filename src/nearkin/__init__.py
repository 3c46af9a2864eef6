"""nearkin: learn the space in which nearest neighbours are right."""

from .estimators import DNE as DNE
from .estimators import LDE as LDE
from .estimators import LFDA as LFDA
from .estimators import LMNN as LMNN
from .estimators import LPP as LPP
from .estimators import MFA as MFA
from .estimators import NCA as NCA
from .estimators import NMMP as NMMP
from .estimators import RCA as RCA
from .estimators import TDL as TDL
from .estimators import DiscriminativeProjections as DiscriminativeProjections
from .estimators import DiscriminativeProjectionsClassifier as DiscriminativeProjectionsClassifier
from .estimators import DiscriminativeProjectionsRegressor as DiscriminativeProjectionsRegressor
from .estimators import LaplacianEigenmaps as LaplacianEigenmaps
from .estimators import PairNCA as PairNCA
from .estimators import SoftNeighborsClassifier as SoftNeighborsClassifier
from .estimators import SoftNeighborsRegressor as SoftNeighborsRegressor
from .estimators import TDLClassifier as TDLClassifier
from .neighbors import ApproximateSearch as ApproximateSearch

__version__ = "0.1.0"
__all__ = [
    "DNE",
    "LDE",
    "LFDA",
    "LMNN",
    "LPP",
    "MFA",
    "NCA",
    "NMMP",
    "RCA",
    "TDL",
    "ApproximateSearch",
    "DiscriminativeProjections",
    "DiscriminativeProjectionsClassifier",
    "DiscriminativeProjectionsRegressor",
    "LaplacianEigenmaps",
    "PairNCA",
    "SoftNeighborsClassifier",
    "SoftNeighborsRegressor",
    "TDLClassifier",
]
