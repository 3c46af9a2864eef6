"""What a fitted estimator says of itself in scikit-learn's diagrams: a line below its name, there and in pipelines. A leaf.

scikit-learn escapes and styles it, for light and dark notebooks alike.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._messages import counted

DOCUMENTATION = "https://nearkin.readthedocs.io/en/stable"


def caption_of(estimator: Any) -> str | None:
    """Return what was learned; None where nothing is, or not enough: of an interrupted fit, for example."""
    try:
        check_is_fitted(estimator)
        return "; ".join(estimator._learned())
    except Exception:  # a notebook must show any estimator
        return None


class LearnedMixin:
    """Says below the name of a fitted estimator what was learned: the dimension, the objective, what "auto" chose.

    An estimator names its objective, says what sets its dimension, or adds phrases to `_learned`; all of it from
    attributes that are there.
    """

    _doc_link_module = "nearkin"
    _doc_link_template = f"{DOCUMENTATION}/api/generated/nearkin.{{estimator_name}}.html"
    _objective_phrase: ClassVar[str] = "objective {objective_:.4g}"  # of parameters and fitted attributes
    _score_name: ClassVar[str] = "accuracy"  # of held-out rows, which choose what is "auto"

    @available_if(lambda self: caption_of(self) is not None)  # else scikit-learn draws what it draws of any estimator
    def _sk_visual_block_(self) -> Any:
        from sklearn.pipeline import _VisualBlock

        name = type(self).__name__
        return _VisualBlock("single", self, names=name, name_details=str(self), name_caption=caption_of(self))

    def _learned(self) -> list[str]:
        """Return what was learned, in phrases."""
        return [self._size(), self._objective_phrase.format_map(vars(self)), *self._chosen()]

    def _size(self) -> str:
        """Return the number of features and of dimensions, and what has set it."""
        size = counted(self.n_features_in_, "feature")  # type: ignore[attr-defined]
        m, requested = getattr(self, "n_components_", None), getattr(self, "n_components", None)
        if m is None:
            return size
        rule = self._dimension_rule()
        if isinstance(requested, Integral) and requested != m:
            rule = f"{requested} requested"
        return f"{size} → {counted(m, 'dimension')}{f' ({rule})' * bool(rule)}"

    def _dimension_rule(self) -> str:
        """Return what has set the dimension, where it was not the user."""
        return ""

    def _chosen(self) -> list[str]:
        """Return what "auto" or "cv" stands for, with the held-out score by which that was chosen, if one was."""
        found = vars(self)
        auto = [name for name, given in found.items() if isinstance(given, str) and given in ("auto", "cv")]
        phrases = []
        for name in auto:
            if (value := found.get(f"{name}_")) is None:
                continue
            kind = "n_neighbors" if name.startswith("n_neighbors") else name
            scores = found.get(f"{kind}_scores_")
            by = f"held-out {self._score_name} {np.mean(scores[value]):.3g}" if scores else found[name]
            phrases.append(f"{name} = {value if isinstance(value, str) else f'{value:.3g}'} ({by})")
        return phrases
