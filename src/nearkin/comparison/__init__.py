"""Comparison of learned metrics by k-NN on held-out rows; the raw features may turn out best.

Every method is scored by the vote of the nearest rows (for real-valued targets, their mean) on the
same held-out rows. Open parameters (dimension, DNE's k, the number of voting rows, and the method
itself in the automatic choice) are chosen by validation inside the training rows, from which the
scaling is learned, too. Differences from the raw features are paired by row, and tested with Holm's
correction for the number of methods. Twins, i.e. identical or nearly identical rows, stay on the
same side of a split.

Rows may be unlabelled: only labelled rows are held out, and only these vote. Methods that can learn
from all rows do so, and are ranked together with those that cannot.
"""

from ..neighbors import n_with_twin, twin_groups
from .comparison import FINAL_CHOICE, compare, extend
from .contestants import CHOICE
from .doubts import DOUBTS, Doubt
from .methods import (
    RAW,
    Method,
    Reference,
    all_methods,
    default_methods,
    default_references,
    methods_by_name,
)
from .protocol import RARE, few_decide, first_repeat
from .results import Comparison, MethodResult, leader, ranked
from .scores import (
    CLASSIFICATION,
    REGRESSION,
    SCORES,
    TASKS,
    OwnVote,
    Score,
    Task,
    Vote,
    named_task,
)
from .table import Categories, EncodedTable, Suspects
from .views import (
    HeldOutMap,
    chosen_predictor,
    confusion,
    first_map,
    first_picture,
    held_out_map,
    score_by_dimension,
)

__all__ = [
    "CHOICE",
    "CLASSIFICATION",
    "DOUBTS",
    "FINAL_CHOICE",
    "RARE",
    "RAW",
    "REGRESSION",
    "SCORES",
    "TASKS",
    "Categories",
    "Comparison",
    "Doubt",
    "EncodedTable",
    "HeldOutMap",
    "Method",
    "MethodResult",
    "OwnVote",
    "Reference",
    "Score",
    "Suspects",
    "Task",
    "Vote",
    "all_methods",
    "chosen_predictor",
    "compare",
    "confusion",
    "default_methods",
    "default_references",
    "extend",
    "few_decide",
    "first_map",
    "first_picture",
    "first_repeat",
    "held_out_map",
    "leader",
    "methods_by_name",
    "n_with_twin",
    "named_task",
    "ranked",
    "score_by_dimension",
    "twin_groups",
]
