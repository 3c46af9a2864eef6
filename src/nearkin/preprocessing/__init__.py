"""Tables to numbers."""

from .binned import BinnedEncoder as BinnedEncoder
from .binned import Feature as Feature
from .binned import Levels as Levels
from .binned import SparseEncoder as SparseEncoder
from .binned import features_of as features_of
from .binned import is_table as is_table
from .cells import Cells as Cells
from .cells import Text as Text
from .columns import DAYS as DAYS
from .columns import indicator_names as indicator_names
from .indicated import LEAST_ROWS as LEAST_ROWS
from .indicated import ROWS_PER_INDICATOR as ROWS_PER_INDICATOR
from .indicated import indicated_features as indicated_features
from .piecewise import Curve as Curve
from .piecewise import PiecewiseLinearEncoder as PiecewiseLinearEncoder
from .seasons import with_seasons as with_seasons
from .table import TableEncoder as TableEncoder
