"""nearkin: learn the space in which nearest neighbours are right."""

from .estimators import *  # noqa: F403 - the names in its __all__
from .estimators import __all__ as _methods
from .neighbors import ApproximateSearch as ApproximateSearch
from .preprocessing import TableEncoder as TableEncoder

__version__ = "0.1.0"
__all__ = [*_methods, "ApproximateSearch", "TableEncoder"]
