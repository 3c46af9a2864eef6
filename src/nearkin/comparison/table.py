"""A table to compare methods on: rows as numbers, their target, and what its columns give away.

It comes from a data frame with text, dates and gaps, from an array, or from the cells of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse

from .._validation import (
    as_rows,
    check_consistent_length,
    refuse_foreign,
    rows_of,
    weighted_rows,
)
from ..tables import Cells, TableEncoder, filled_note, learn_target
from ..tables.cells import read_cells
from ..tables.target import column_of
from .scores import CLASSIFICATION
from .suspects import RawColumn, Suspects, find_suspects, raw_columns

# Categories, above which boosting is better with target statistics than with indicators, of 1,500
# rows; see `default_references`
MANY = 50


@dataclass(frozen=True)
class Categories:
    """Columns of many categories, which references encode in their own way.

    Attributes
    ----------
    codes : ndarray of int of shape (n, n_columns)
        The values; missing cells are a value, too.
    indicators : ndarray of int
        The features of X that indicate some of these values.
    """

    codes: np.ndarray
    indicators: np.ndarray


@dataclass(frozen=True, kw_only=True)
class EncodedTable:
    """Rows, their target, and how they were obtained.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, p)
        Features, NaN for missing numbers.
    y : ndarray of shape (n,)
        Classes, with None or NaN for unlabelled rows; for a regression float64, NaN for none.
    groups : ndarray of shape (n,) or None
        Groups of rows that belong together.
    weights : ndarray of shape (n,) or None
        Weights of the rows, larger than 0.
    task : str
        "classification" or "regression".
    target : str
        Name of the column of y.
    encoder : TableEncoder or None
        Encodes rows of other tables with these columns like X.
    categories : Categories or None
        The columns of many categories, for references.
    suspects : Suspects
        The columns that are suspicious, and those that look like groups.
    notes : list of str
        What was ignored or encoded.
    row_numbers : ndarray of shape (n,) or None
        Row numbers in the file (the first is 0), if empty rows were left out.
    """

    X: Any
    y: np.ndarray
    groups: Any = None
    weights: np.ndarray | None = None
    task: str = CLASSIFICATION.name
    target: str = "the target"
    encoder: TableEncoder | None = None
    categories: Categories | None = None
    suspects: Suspects = field(default_factory=Suspects)
    notes: list[str] = field(default_factory=list)
    row_numbers: np.ndarray | None = None

    @classmethod
    def of_cells(
        cls,
        cells: Cells,
        encoder: TableEncoder,
        *,
        hints: bool,
        notes: Sequence[str] = (),
        **given: Any,
    ) -> Self:
        """Return cells as rows of an encoder that was fitted to them, which overwrites them.

        With `hints`, columns are named that look like groups. The other attributes are given.
        """
        columns = raw_columns(encoder, cells)
        suspects = find_suspects(columns, given["y"], given["task"], hints=hints)
        categories = many_categories(encoder, columns)
        X, *_ = encoder.encode(cells)  # what it found is among its remarks
        names, done = encoder.get_feature_names_out(), "filled by the median (kept by NCA tables)"
        notes = [*notes, *encoder.remarks_, *filled_note(X, names, done)]
        return cls(
            X=X, encoder=encoder, suspects=suspects, categories=categories, notes=notes, **given
        )

    def in_file(self, rows: np.ndarray) -> np.ndarray:
        """Return the row numbers of some rows in their file."""
        return rows if self.row_numbers is None else self.row_numbers[rows]


def from_frame(
    X: Any, y: Any, groups: Any, task: str, unlabelled: Any = None, sample_weight: Any = None
) -> EncodedTable:
    """Return a data frame or an array as a table, without rows of weight 0.

    Rows are encoded if the target is a named column, or if a column of a data frame is not numeric.
    """
    refuse_foreign(X)
    named = {what: name for what, name in (("y", y), ("groups", groups)) if isinstance(name, str)}
    frame = X.to_pandas() if hasattr(X, "to_pandas") else X
    is_frame = hasattr(frame, "iloc") and hasattr(frame, "columns")
    columns = {what: column_of(frame, what, name) for what, name in named.items()}
    features = frame.drop(columns=list(named.values())) if named else frame
    y, groups = (columns.get(what, values) for what, values in (("y", y), ("groups", groups)))
    check_consistent_length(features, y, groups)
    features, y, weights, kept = weighted_rows(features, y, sample_weight)
    if groups is not None:
        groups = rows_of(groups, kept)
    y, notes = learn_target(y, named.get("y"), task, unlabelled=unlabelled)
    given = {"y": y, "groups": groups, "weights": weights, "task": task}
    if "y" in named:
        given["target"] = named["y"]
    elif not is_frame or all(getattr(of, "kind", "O") in "biuf" for of in features.dtypes):
        rows = as_rows(features, missing=True)
        names = [*features.columns] if is_frame else [f"column {j}" for j in range(rows.shape[1])]
        if issparse(rows):
            return EncodedTable(X=rows, **given)
        hints = is_frame and groups is None
        suspects = Suspects.of_numbers(names, rows, y, task, hints=hints)
        return EncodedTable(X=rows, suspects=suspects, **given)
    # The encoder sees the rows of all folds, but no target. What it learns of them is harmless: a
    # value that only held-out rows have is constant in the training rows.
    cells = read_cells(features, strict=False)
    encoder = TableEncoder(missing="keep").fit(cells, sample_weight=weights)
    return EncodedTable.of_cells(cells, encoder, hints=groups is None, notes=notes, **given)


def many_categories(encoder: TableEncoder, columns: Sequence[RawColumn]) -> Categories | None:
    """Return the columns of many categories, or None.

    These have more than 50 values, but not half as many as rows: those of text mostly differ.
    """
    codes, indicators, first = list[np.ndarray](), list[int](), 0
    for column, raw in zip(encoder.columns_, columns, strict=False):  # none of sparse rows
        features = column.features
        if not column.ordered:
            values, of_column = np.unique(raw.values, return_inverse=True)
            if MANY < len(values) <= len(of_column) / 2:
                codes.append(of_column)
                levels = (at for at, feature in enumerate(features, first) if feature.is_level)
                indicators += levels
        first += len(features)
    return Categories(np.column_stack(codes), np.array(indicators, int)) if codes else None
