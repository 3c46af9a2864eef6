"""Tables to numbers."""

from .cells import Cells as Cells
from .cells import Text as Text
from .columns import indicator_names as indicator_names
from .piecewise import Curve as Curve
from .piecewise import PiecewiseLinearEncoder as PiecewiseLinearEncoder
from .table import TableEncoder as TableEncoder
