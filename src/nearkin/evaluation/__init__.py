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

from .._statistics import holm
from ..graphs import joined_groups
from ..neighbors import n_with_twin, twin_groups
from ..vectors.judgements import FOLDS, UNSEEN, Judgements, Labels, Relevance, judged_matrix
from ..vectors.retrieval import RETRIEVAL_SCORES, Vectors, retrieval_scores
from .adaptation import Adaptation, Way, WayResult, compare_vectors, ways_of
from .comparison import FINAL_CHOICE, compare, extend, huge_doubt, many_categories
from .contestants import CHOICE
from .embeddings import (
    Shares,
    comparison_accuracy,
    held_out_accuracy,
    neighborhood_preservation,
    same_class_among,
)
from .methods import RAW, Method, Reference, all_methods, default_methods, default_references
from .migration import MigrationVerdict, evaluate_migration
from .protocol import RARE, Categories, are_left_out, few_decide, first_repeat
from .results import Comparison, Doubt, MethodResult, RankingRow, difference_test, leader, ranked
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
from .statistics import SIGNIFICANCE, PairedTest, corrected_resampled_t_test, status_of
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
    "FINAL_CHOICE",
    "FOLDS",
    "RARE",
    "RAW",
    "REGRESSION",
    "RETRIEVAL_SCORES",
    "SCORES",
    "SIGNIFICANCE",
    "TASKS",
    "UNSEEN",
    "Adaptation",
    "Categories",
    "Comparison",
    "Doubt",
    "HeldOutMap",
    "Judgements",
    "Labels",
    "Method",
    "MethodResult",
    "MigrationVerdict",
    "OwnVote",
    "PairedTest",
    "RankingRow",
    "Reference",
    "Relevance",
    "Score",
    "Shares",
    "Task",
    "Vectors",
    "Vote",
    "Way",
    "WayResult",
    "all_methods",
    "are_left_out",
    "chosen_predictor",
    "compare",
    "compare_vectors",
    "comparison_accuracy",
    "confusion",
    "corrected_resampled_t_test",
    "default_methods",
    "default_references",
    "difference_test",
    "evaluate_migration",
    "extend",
    "few_decide",
    "first_map",
    "first_picture",
    "first_repeat",
    "held_out_accuracy",
    "held_out_map",
    "holm",
    "huge_doubt",
    "joined_groups",
    "judged_matrix",
    "leader",
    "many_categories",
    "n_with_twin",
    "named_task",
    "neighborhood_preservation",
    "ranked",
    "retrieval_scores",
    "same_class_among",
    "score_by_dimension",
    "status_of",
    "twin_groups",
    "ways_of",
]
