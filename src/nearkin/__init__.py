"""nearkin: learn the space in which nearest neighbours are right."""

from .estimators import DNE as DNE
from .estimators import LPP as LPP
from .estimators import NMMP as NMMP
from .estimators import RCA as RCA

__version__ = "0.1.0"
__all__ = ["DNE", "LPP", "NMMP", "RCA"]
