"""Tables as people have them: a data frame in, rows of numbers or a prediction out."""

from .bins import (
    BinnedEncoder,
    Curve,
    Feature,
    Levels,
    PiecewiseLinearEncoder,
    SparseEncoder,
    features_of,
    is_table,
    with_seasons,
)
from .cells import Cells, Text
from .columns import DAYS, indicator_names
from .encoder import LEAST_ROWS, ROWS_PER_INDICATOR, TableEncoder, indicated_features
from .predictors import NCAClassifier, NCARegressor

__all__ = [
    "DAYS",
    "LEAST_ROWS",
    "ROWS_PER_INDICATOR",
    "BinnedEncoder",
    "Cells",
    "Curve",
    "Feature",
    "Levels",
    "NCAClassifier",
    "NCARegressor",
    "PiecewiseLinearEncoder",
    "SparseEncoder",
    "TableEncoder",
    "Text",
    "features_of",
    "indicated_features",
    "indicator_names",
    "is_table",
    "with_seasons",
]
