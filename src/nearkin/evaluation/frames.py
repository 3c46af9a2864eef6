"""A data frame with text, dates and gaps, whose target may be named, as numbers, labels and groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._labels import is_missing, merged_labels
from .._messages import quoted, shown
from .._validation import refuse_foreign
from ..preprocessing import TableEncoder
from ..preprocessing.numerals import learn_numbers
from .features import filled_note
from .task import REGRESSION, Task


def from_frame(X: Any, y: Any, groups: Any, task: Task) -> tuple[Any, Any, Any, TableEncoder | None, tuple[str, ...]]:
    """Return rows, targets and groups as arrays, the encoder of the rows where they need one, and remarks.

    They do if the target is a named column, and where columns of a data frame hold other things than numbers.
    """
    refuse_foreign(X)
    named = {what: name for what, name in (("y", y), ("groups", groups)) if isinstance(name, str)}
    if not (hasattr(X, "to_pandas") or (hasattr(X, "iloc") and hasattr(X, "columns"))):
        for what, name in named.items():
            raise TypeError(f"{what} names a column, {shown(name)}, but X is no data frame: give {what} as an array.")
        return X, y, groups, None, ()
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    labels = {what: _column(frame, what, name) for what, name in named.items()}
    features, remarks = frame.drop(columns=list(named.values())), list[str]()
    if "y" in named:
        labels["y"], remarks = _target(labels["y"], y, task)
    elif all(_is_numeric(dtype) for dtype in features.dtypes):
        return features if named else X, y, labels.get("groups", groups), None, ()
    encoder = TableEncoder(missing="keep")
    Z = encoder.fit_transform(features)
    filled = filled_note(Z, encoder.get_feature_names_out())
    return Z, labels.get("y", y), labels.get("groups", groups), encoder, (*encoder.remarks_, *filled, *remarks)


def _column(frame: Any, what: str, name: str) -> np.ndarray:
    """Return a column of labels."""
    names = frame.columns.tolist()
    if names.count(name) != 1:
        found = f"X has {names.count(name) or 'no'} columns {shown(name)}"
        raise ValueError(f"{found}: {what} must be the name of one, such as {quoted(names)}.")
    column = frame[name]
    if getattr(column.dtype, "kind", "O") in "mM":
        raise ValueError(f"{what} names a column of dates or times, {shown(name)}: give one of classes or numbers.")
    return column.to_numpy(dtype=None if _is_numeric(column.dtype) else object)


def _is_numeric(dtype: Any) -> bool:
    return getattr(dtype, "kind", "O") in "biuf"


def _target(y: np.ndarray, name: str, task: Task) -> tuple[np.ndarray, list[str]]:
    """Return labels with their spellings merged, or numbers, of text in any style that the encoder reads."""
    y, several = merged_labels(y)
    if task == REGRESSION:
        return _as_numbers(y, name)
    if y.dtype.kind == "f" and (y[~np.isnan(y)] % 1 == 0).all():  # whole numbers, which pandas keeps so beside gaps
        y = np.array([None if np.isnan(label) else int(label) for label in y.tolist()], dtype=object)
    return y, [f"{name}: {' and '.join(map(repr, found))} are one class" for found in several.values()]


def _as_numbers(y: np.ndarray, name: str) -> tuple[np.ndarray, list[str]]:
    """Return text as numbers where all of it is numbers, and a remark that says so."""
    if y.dtype.kind not in "OU":
        return y, []
    known = ~is_missing(y)
    texts, codes = np.unique(y[known].astype(str), return_inverse=True)
    found = learn_numbers(texts.tolist(), ".")
    if found is None:
        return y, []
    numbers = np.full(len(y), np.nan)
    numbers[known] = found[0][codes]
    return numbers, [f"{name}: read as numbers ({shown(texts[0].item())})"]
