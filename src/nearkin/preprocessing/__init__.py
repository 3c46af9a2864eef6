"""Tables to numbers."""

from .piecewise import Curve as Curve
from .piecewise import PiecewiseLinearEncoder as PiecewiseLinearEncoder
