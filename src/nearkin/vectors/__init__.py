"""Embeddings in, better or shorter ones out: adapters, codes, and what is known of relevance."""

from .adapter import EmbeddingAdapter as EmbeddingAdapter
from .judgements import FOLDS as FOLDS
from .judgements import UNSEEN as UNSEEN
from .judgements import Judgements as Judgements
from .judgements import Labels as Labels
from .judgements import Relevance as Relevance
from .judgements import judged_matrix as judged_matrix
from .procrustes import Procrustes as Procrustes
from .retrieval import RETRIEVAL_SCORES as RETRIEVAL_SCORES
from .retrieval import Vectors as Vectors
from .retrieval import retrieval_scores as retrieval_scores

__all__ = ["EmbeddingAdapter", "Procrustes"]
