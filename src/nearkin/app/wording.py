"""How each score is written: in a column, in a sentence, as a difference."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

DIGITS = 3  # of an error in the target's own unit


@dataclass(frozen=True)
class Wording:
    """How a score is written.

    Attributes
    ----------
    heading : str
        Of its column in the ranking.
    title : str
        What it is called in a sentence.
    phrase, other : str
        What a prediction with this score is, and another one beside it: "is right in {}" and "in {}".
    rows : str
        What follows the phrase.
    factor : int
        It is written times this.
    form, unit : str
        Of a written score. No form takes three digits of the number that `at` names.
    points : str
        What follows a difference.
    second : str
        The score that stands beside it in the ranking.
    """

    heading: str
    title: str
    phrase: str
    other: str = "one of {}"
    rows: str = " on held-out rows"
    factor: int = 1
    form: str = ".3f"
    unit: str = ""
    points: str = ""
    second: str = "accuracy"

    def at(self, score: float) -> Wording:
        """Return the wording for scores of about this size."""
        if self.form:
            return self
        order = int(np.floor(np.log10(abs(score)))) if score and np.isfinite(score) else 0
        return replace(self, form=f".{max(0, DIGITS - 1 - order)}f" if -4 <= order <= 6 else f".{DIGITS - 1}e")

    def number(self, score: float) -> str:
        """Return a score as a column has it, e.g. "95.4" or "0.954"."""
        return _unsigned_zero(f"{self.factor * score:{self.at(score).form}}")

    def figure(self, score: float) -> str:
        """Return a score with its unit, e.g. "95.4%" or "0.954"."""
        return self.number(score) + self.unit

    def signed(self, difference: float) -> str:
        """Return a difference of scores, e.g. "+1.2"; never "-0.0"."""
        text = f"{self.factor * difference:+{self.at(difference).form}}"
        return text if float(text) else text.replace("-", "+")

    def says(self, score: float, *, rows: bool = True) -> str:
        """Return what a prediction with this score is, e.g. "is right in 95.4% of the held-out rows"."""
        return self.phrase.format(self.figure(score)) + (self.rows if rows else "")

    def is_zero(self, difference: float) -> bool:
        """Return whether nothing is left of a difference when it is written."""
        return float(self.signed(difference)) == 0


def _unsigned_zero(text: str) -> str:
    return text if float(text) else text.removeprefix("-")


WORDING = {
    "accuracy": Wording(
        *("accuracy %", "accuracy", "is right in {}", "in {}", " of the held-out rows", 100, ".1f", "%", " points"),
        second="balanced_accuracy",
    ),
    "balanced_accuracy": Wording(
        *("balanced %", "balanced accuracy", "has a balanced accuracy of {}", "one of {}", " on held-out rows", 100),
        *(".1f", "%", " points"),
    ),
    "f1": Wording("F1", "F1", "has a mean F1 of {}"),
    "auc": Wording("AUC", "AUC", "has an AUC of {}"),
    "log_loss": Wording("log loss", "log loss", "has a log loss of {}"),
    "r2": Wording("R²", "R²", "has an R² of {}", second="mae"),
    "mae": Wording("MAE", "mean absolute error", "has a mean absolute error of {}", form="", second="r2"),
    "rank_correlation": Wording("rank corr.", "rank correlation", "has a rank correlation of {}", second="mae"),
}


def format_p(p_value: float) -> str:
    """Return a p-value with two digits, or "<0.001"."""
    return f"{p_value:.2g}" if p_value >= 0.001 else "<0.001"


def stated_p(p_value: float) -> str:
    """Return a p-value with what stands before it in a sentence, e.g. "= 0.012" or "< 0.001"."""
    text = format_p(p_value)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"
