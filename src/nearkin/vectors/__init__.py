"""Embeddings made shorter or more accurate: adapters, codes, matching, and relevance judgements."""

from .adapter import EmbeddingAdapter
from .codes import LARGEST, QUANTIZERS
from .judgements import ALL, FOLDS, UNSEEN, Judgements, Labels, Relevance, judged_matrix
from .matching import BestMatches, HeldOutLists, Matcher, MatchRules, Promise, Space
from .migration import SIDES, Migration
from .retrieval import RETRIEVAL_SCORES, Vectors, retrieval_scores

__all__ = [
    "ALL",
    "FOLDS",
    "LARGEST",
    "QUANTIZERS",
    "RETRIEVAL_SCORES",
    "SIDES",
    "UNSEEN",
    "BestMatches",
    "EmbeddingAdapter",
    "HeldOutLists",
    "Judgements",
    "Labels",
    "MatchRules",
    "Matcher",
    "Migration",
    "Promise",
    "Relevance",
    "Space",
    "Vectors",
    "judged_matrix",
    "retrieval_scores",
]
