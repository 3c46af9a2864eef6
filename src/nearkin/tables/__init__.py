"""Tables as people have them: a data frame in, rows of numbers or a prediction out.

`cells` reads a table as numbers and texts; `numbers` and `columns` decide what each column becomes,
`gaps` what becomes of missing cells, and `encoder` makes rows of numbers of all; `bins` makes
features of these in which a linear map can bend, `members` learns such maps, `votes` predicts by
mapped rows, and `predictors` do all of it. `held_out` says how far to trust them, and `issues`
finds rows to look at.
"""

from .bins import (
    BinnedEncoder,
    Curve,
    Encodings,
    Levels,
    PiecewiseLinearEncoder,
    SparseEncoder,
    features_of,
    is_table,
    with_seasons,
)
from .cells import Cells, Text
from .columns import (
    DAYS,
    MARKS_OF_MISSING,
    CategoryColumn,
    Column,
    DateColumn,
    Feature,
    NumberColumn,
    RejectColumn,
    Rules,
    indicator_names,
    target_numbers,
)
from .encoder import TableEncoder
from .gaps import LEAST_ROWS, ROWS_PER_INDICATOR, filled_note, indicated_features
from .held_out import Drift, HeldOutRows
from .issues import FarRows, LabelIssues, label_issues, no_classes
from .numbers import read_number
from .predictors import NCAClassifier, NCARegressor

__all__ = [
    "DAYS",
    "LEAST_ROWS",
    "MARKS_OF_MISSING",
    "ROWS_PER_INDICATOR",
    "BinnedEncoder",
    "CategoryColumn",
    "Cells",
    "Column",
    "Curve",
    "DateColumn",
    "Drift",
    "Encodings",
    "FarRows",
    "Feature",
    "HeldOutRows",
    "LabelIssues",
    "Levels",
    "NCAClassifier",
    "NCARegressor",
    "NumberColumn",
    "PiecewiseLinearEncoder",
    "RejectColumn",
    "Rules",
    "SparseEncoder",
    "TableEncoder",
    "Text",
    "features_of",
    "filled_note",
    "indicated_features",
    "indicator_names",
    "is_table",
    "label_issues",
    "no_classes",
    "read_number",
    "target_numbers",
    "with_seasons",
]
