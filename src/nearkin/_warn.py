"""Warnings that point at the line of the user. A leaf."""

from __future__ import annotations

import inspect
import warnings

PASSED_THROUGH = {"nearkin", "sklearn", "joblib"}


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as from the nearest line outside of nearkin, and of scikit-learn and joblib, through which it is called."""
    frame, level = inspect.currentframe(), 1  # Python 3.12 can do this by itself: skip_file_prefixes
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED_THROUGH:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
