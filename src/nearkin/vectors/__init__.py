"""Embeddings made shorter or more accurate: adapters, codes, matching, relevance judgements.

Raw, shorter and adapted vectors are compared by held-out queries (`compare_vectors`), and so are
the rows that a migration maps (`evaluate_migration`).
"""

from .adapter import EmbeddingAdapter
from .codes import LARGEST, QUANTIZERS
from .comparison import Adaptation, Way, WayResult, compare_vectors, ways_of
from .judgements import ALL, EXPECTED, FOLDS, UNSEEN, Labels, Relevance, judged_matrix
from .matching import (
    BestMatches,
    Matcher,
    MatchRules,
    Promise,
    comparison_accuracy,
)
from .migration import SIDES, Migration
from .mixture import model_parts
from .retrieval import RETRIEVAL_SCORES, Vectors, retrieval_scores
from .verdict import MigrationVerdict, evaluate_migration

__all__ = [
    "ALL",
    "EXPECTED",
    "FOLDS",
    "LARGEST",
    "QUANTIZERS",
    "RETRIEVAL_SCORES",
    "SIDES",
    "UNSEEN",
    "Adaptation",
    "BestMatches",
    "EmbeddingAdapter",
    "Labels",
    "MatchRules",
    "Matcher",
    "Migration",
    "MigrationVerdict",
    "Promise",
    "Relevance",
    "Vectors",
    "Way",
    "WayResult",
    "compare_vectors",
    "comparison_accuracy",
    "evaluate_migration",
    "judged_matrix",
    "model_parts",
    "retrieval_scores",
    "ways_of",
]
