"""What a fitted estimator says of itself in scikit-learn's diagrams: a line below its name, in
pipelines, too. A leaf.

scikit-learn escapes and styles that line, for light and dark notebooks alike.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._messages import counted

DOCUMENTATION = "https://nearkin.readthedocs.io/en/stable"
EIGENVALUES = "sum of the eigenvalues {objective_:.4g}"  # the objective of most spectral methods


def caption_of(estimator: Any) -> str | None:
    """Return what was learned; None where that is nothing, or not enough: of an interrupted fit,
    for example.
    """
    try:
        check_is_fitted(estimator)
        return "; ".join(estimator._phrases())
    except Exception:  # a notebook must show any estimator
        return None


class Estimator(BaseEstimator):
    """scikit-learn's estimator, whose diagram says what was learned: the dimension, the objective,
    what "auto" chose.

    A method writes its `_objective_phrase`, says what has set its dimension in `_dimension_rule`,
    or extends `_phrases`. All of it comes from attributes that are there: nothing is computed.
    """

    _doc_link_module = "nearkin"
    _doc_link_template = f"{DOCUMENTATION}/api/generated/nearkin.{{estimator_name}}.html"
    _objective_phrase: ClassVar[str] = "objective {objective_:.4g}"  # of parameters and attributes

    @available_if(lambda self: caption_of(self) is not None)  # type: ignore[untyped-decorator]
    def _sk_visual_block_(self) -> Any:
        """Return the diagram; without a caption scikit-learn draws what it draws of any estimator."""
        from sklearn.pipeline import _VisualBlock

        name = type(self).__name__
        return _VisualBlock(
            "single", self, names=name, name_details=str(self), name_caption=caption_of(self)
        )

    def _phrases(self) -> list[str]:
        """Return what was learned, in phrases."""
        return [self._size(), self._objective(), *self._chosen()]

    def _size(self) -> str:
        """Return the number of features and of dimensions, and what has set it."""
        size = counted(self.n_features_in_, "feature")
        m, requested = getattr(self, "n_components_", None), getattr(self, "n_components", None)
        if m is None:
            return size
        fewer = isinstance(requested, Integral) and int(requested) > m
        rule = f"{requested} requested" if fewer else self._dimension_rule()
        return f"{size} → {counted(m, 'dimension')}{f' ({rule})' * bool(rule)}"

    def _dimension_rule(self) -> str:
        """Return what has set the dimension, where that was not a number of the user's."""
        return ""

    def _objective(self) -> str:
        """Return what the objective is, and what it has reached."""
        found = vars(self)
        last = {"last_loss": found["loss_curve_"][-1]} if "loss_curve_" in found else {}
        return self._objective_phrase.format_map(found | last).replace("_", " ")

    def _chosen(self) -> list[str]:
        """Return the numbers that "auto" or "cv" has chosen, with their score on held-out rows
        where there is one.
        """
        found, phrases = vars(self), []
        score = "held-out score" if found.get("target") == "continuous" else "held-out accuracy"
        for name, given in self.get_params(deep=False).items():
            value = found.get(f"{name}_")
            if isinstance(given, str) and given in ("auto", "cv") and isinstance(value, Real):
                scores = found.get(
                    "n_neighbors_scores_" if name.startswith("n_neighbors") else f"{name}_scores_"
                )
                by = f"{score} {np.mean(scores[value]):.3g}" if scores else given
                phrases.append(f"{name} = {value:.3g} ({by})")
        return phrases
