"""Tables as people have them: a data frame in, rows of numbers or a prediction out."""

from .bins import BinnedEncoder as BinnedEncoder
from .bins import Curve as Curve
from .bins import Feature as Feature
from .bins import Levels as Levels
from .bins import PiecewiseLinearEncoder as PiecewiseLinearEncoder
from .bins import SparseEncoder as SparseEncoder
from .bins import features_of as features_of
from .bins import is_table as is_table
from .bins import with_seasons as with_seasons
from .cells import Cells as Cells
from .cells import Text as Text
from .columns import DAYS as DAYS
from .columns import indicator_names as indicator_names
from .encoder import LEAST_ROWS as LEAST_ROWS
from .encoder import ROWS_PER_INDICATOR as ROWS_PER_INDICATOR
from .encoder import TableEncoder as TableEncoder
from .encoder import indicated_features as indicated_features
from .predictors import NCAClassifier as NCAClassifier
from .predictors import NCARegressor as NCARegressor

__all__ = ["NCAClassifier", "NCARegressor", "TableEncoder"]
