"""What all displays share."""

from __future__ import annotations

from typing import Any, Self

# Okabe and Ito's colours, which colour-blind readers can distinguish (without yellow, too pale for a dot); with eight
# markers no two of 56 classes look alike.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
GREY = "#888888"


class Display:
    """What the pictures share; each has `_draw`."""

    _size: tuple[float, float] | None = None  # of a new figure, in inches

    def plot(self, *, ax: Any = None) -> Self:
        """Draw the picture."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt
            except ImportError as error:
                raise ImportError("Drawing needs matplotlib: pip install 'nearkin[plot]'.") from error
            ax = plt.subplots(figsize=self._size, layout="constrained")[1]
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw(self, ax: Any) -> None:
        raise NotImplementedError


def shortened(text: str, length: int = 24) -> str:
    """Return a legend's text: short, and not starting with the underscore by which matplotlib hides it."""
    text = " " + text if text.startswith("_") else text
    return text if len(text) <= length else text[: length - 1] + "…"
