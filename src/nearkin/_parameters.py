"""Validation of parameters: errors name the parameter, its value and what it may be."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import sklearn.utils

from ._messages import MAX_NAME, shortened, shown
from ._validation import explained


def check_choice(value: Any, name: str, choices: Iterable[str]) -> None:
    """Raise a ValueError that lists the choices if `value` is none of them."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, got {shown(value)}.")


def check_bool(value: Any, name: str) -> None:
    """Raise a TypeError unless `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {shown(value)}.")


def check_integer(value: Any, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` as an int; raise an error unless it is an integer between the bounds."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, got {shown(value)} ({type(value).__name__}).")
    if not minimum <= value <= (2**63 - 1 if maximum is None else maximum):
        bounds = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
        bounds += " and less than 2^63" if value >= 2**63 else ""
        raise ValueError(f"{name} must be {bounds}, got {_brief(value)}.")
    return int(value)


def check_number(value: Any, name: str, minimum: float) -> float:
    """Return `value` as a float; raise an error unless it is finite and at least `minimum`."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {shown(value)} ({type(value).__name__}).")
    number = value if isinstance(value, int) else float(value)  # float32 cannot hold the bounds
    if not max(minimum, -sys.float_info.max) <= number <= sys.float_info.max:
        least = f" of at least {minimum:g}" if np.isfinite(minimum) else ""
        raise ValueError(f"{name} must be a finite number{least}, got {_brief(value)}.")
    return float(value)


def check_positive(value: Any, name: str, *, or_infinite: bool = False) -> float:
    """Return `value` as a float; raise an error unless it is finite and greater than 0."""
    if or_infinite and isinstance(value, (float, np.floating)) and value == np.inf:
        return np.inf
    if check_number(value, name, -np.inf) <= 0:
        raise ValueError(f"{name} must be larger than 0, got {value}.")
    return float(value)


def check_random_state(seed: Any) -> np.random.RandomState:
    """Return the result of scikit-learn's `check_random_state`; errors name the remedy."""
    with explained("random_state", "give None, a number from 0 to 2^32 - 1, or a RandomState"):
        return sklearn.utils.check_random_state(seed)


def check_estimator(value: Any, name: str, kind: type = object) -> None:
    """Raise a TypeError unless `value` is an estimator, of this kind; a class is none."""
    is_estimator = all(hasattr(value, method) for method in ("fit", "get_params"))
    if isinstance(value, type) or not (is_estimator and isinstance(value, kind)):
        such_as = "" if kind is object else f" such as {kind.__name__}()"
        remedy = f": did you mean {value.__name__}()?" if isinstance(value, type) else "."
        raise TypeError(f"{name} must be an estimator{such_as}, got {shown(value)}{remedy}")


def equals(value: Any, word: str) -> bool:
    """Return whether a parameter is this word; `==` would compare the elements of an array."""
    return isinstance(value, str) and value == word


def _brief(value: Any) -> str:
    return shortened(str(value), MAX_NAME)
