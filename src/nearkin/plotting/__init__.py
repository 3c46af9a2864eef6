"""Pictures as scikit-learn draws them: a Display holds the figures, `from_...` computes them, `plot` draws them.

`plot` draws on the matplotlib axes `ax`, by default on a new figure, and sets `ax_` and `figure_`. No map is drawn
without the score of a k-NN vote on the held-out rows in it: a map of the rows that it was learned from separates even
random labels. matplotlib (`nearkin[plot]`) is imported when something is drawn.
"""

from .base import COLORS, GREY, MARKERS
from .columns import ColumnsDisplay
from .displays import (
    MAX_BARS,
    SCORES,
    SEQUENTIAL,
    STATUS_COLORS,
    EmbeddingDisplay,
    FeatureDisplay,
    RankingDisplay,
    SpectrumDisplay,
    feature_stretch,
)

__all__ = [
    "COLORS",
    "GREY",
    "MARKERS",
    "MAX_BARS",
    "SCORES",
    "SEQUENTIAL",
    "STATUS_COLORS",
    "ColumnsDisplay",
    "EmbeddingDisplay",
    "FeatureDisplay",
    "RankingDisplay",
    "SpectrumDisplay",
    "feature_stretch",
]
