"""Raw data frames as input; numeric rows or predictions as output.

`cells` reads a table as numbers and text. `numbers`, `text` and `columns` decide what each column
becomes, `gaps` handles missing cells, and `encoder` combines these into numeric rows. `bins` makes
features that let a linear map bend, `members` learns such maps, `votes` predicts from mapped rows,
and `predictors` combines all of this. `held_out` quantifies how far predictions can be trusted, and
`issues` finds suspicious rows.
"""

from .bins import (
    BinnedEncoder,
    Curve,
    Encodings,
    Levels,
    SparseEncoder,
    features_of,
    is_table,
    text_as_one_number,
    with_seasons,
)
from .cells import (
    DIFFERS,
    MIN_ROWS,
    NEARLY_ALL,
    Cells,
    Text,
    numbered_names,
    says_group,
    text_of,
    words_of,
)
from .columns import (
    CYCLES,
    DAYS,
    LAYOUTS,
    MARKS_OF_MISSING,
    MOST_UNREAD,
    CategoryColumn,
    Column,
    DateColumn,
    Feature,
    NumberColumn,
    RejectColumn,
    Rules,
    indicator_names,
    merged_labels,
    target_numbers,
)
from .encoder import TableEncoder
from .gaps import LEAST_ROWS, ROWS_PER_INDICATOR, filled_note, indicated_features
from .held_out import Drift, HeldOutRows, check_coverage
from .issues import FEW_CLASSES, OVERLAP, FarRows, LabelIssues, label_issues, no_classes
from .numbers import DECIMAL_MARKS, EITHER, FORMS, MARK_NAMES, PLAIN, read_number
from .predictors import NCAClassifier, NCARegressor
from .text import SEPARATORS
from .votes import Mixture

__all__ = [
    "CYCLES",
    "DAYS",
    "DECIMAL_MARKS",
    "DIFFERS",
    "EITHER",
    "FEW_CLASSES",
    "FORMS",
    "LAYOUTS",
    "LEAST_ROWS",
    "MARKS_OF_MISSING",
    "MARK_NAMES",
    "MIN_ROWS",
    "MOST_UNREAD",
    "NEARLY_ALL",
    "OVERLAP",
    "PLAIN",
    "ROWS_PER_INDICATOR",
    "SEPARATORS",
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
    "Mixture",
    "NCAClassifier",
    "NCARegressor",
    "NumberColumn",
    "RejectColumn",
    "Rules",
    "SparseEncoder",
    "TableEncoder",
    "Text",
    "check_coverage",
    "features_of",
    "filled_note",
    "indicated_features",
    "indicator_names",
    "is_table",
    "label_issues",
    "merged_labels",
    "no_classes",
    "numbered_names",
    "read_number",
    "says_group",
    "target_numbers",
    "text_as_one_number",
    "text_of",
    "with_seasons",
    "words_of",
]
