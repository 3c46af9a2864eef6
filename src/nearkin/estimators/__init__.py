"""One method a file, named after it; each reads as its paper."""

from .dne import DNE as DNE
from .lpp import LPP as LPP
from .nmmp import NMMP as NMMP
from .rca import RCA as RCA
