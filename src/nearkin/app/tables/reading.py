"""Files as X, y and names: the input of tables to the `nearkin` command.

What cannot be read with certainty raises a `TableError`: one line that names the place and the
remedy. Otherwise, every column that was ignored or encoded is named in the notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ..._labels import known_labels
from ..._messages import counted, note, shown
from ..._validation import is_missing
from ...comparison import CLASSIFICATION, REGRESSION, EncodedTable
from ...tables import (
    DECIMAL_MARKS,
    DIFFERS,
    MARK_NAMES,
    Rules,
    TableEncoder,
    filled_note,
    indicated_features,
    learn_target,
    merge_spellings,
)
from ..endings import TableError, one_line
from ..files.csv_file import CsvFile
from ..files.formats import opened
from ..files.readers import (
    AS_FOUND,
    BadCells,
    Progress,
    Reading,
    Source,
    find_name,
    ignore,
    require_length,
)
from ..places import is_bundled, table_name


@dataclass(frozen=True, kw_only=True)
class Table(EncodedTable):
    """The table in a file.

    Attributes
    ----------
    name : str
        Name of the table.
    encoder : TableEncoder
    row_names : sequence of n names
        Text that differs in every row, if a column has it; else the row numbers.
    group_name : str
        Name of the column of groups, or "".
    """

    name: str
    encoder: TableEncoder
    row_names: Sequence[Any]
    group_name: str = ""

    @property
    def labelled(self) -> np.ndarray:
        """Return the indices of the labelled rows."""
        return np.flatnonzero(~is_missing(self.y))

    @property
    def feature_names(self) -> list[str]:
        """Return the names of the columns of X, such as "width" or "colour=red"."""
        return self.encoder.get_feature_names_out().tolist()

    @property
    def labels(self) -> np.ndarray:
        """Return the labels of the labelled rows, in a plain type."""
        return known_labels(self.y, self.labelled)

    @property
    def all_notes(self) -> list[str]:
        """Return the notes, and those on columns that predict the target or look like groups."""
        return [*self.notes, *self.suspects.notes(self.target, self.task)]

    def facts(self) -> str:
        """Return a description of what was read."""
        n, p = self.X.shape
        n_labelled, n_columns = len(self.labels), len(self.encoder.columns_)
        labelled = f" ({n_labelled:,} labelled)" * (n_labelled < n)
        features = counted(p, "sparse feature" if issparse(self.X) else "feature")
        if p > n_columns:
            features += f" from {counted(n_columns, 'column')}"
        n_indicators = 0 if issparse(self.X) else len(indicated_features(np.isnan(self.X)))
        if n_indicators:
            features += f" and {counted(n_indicators, 'indicator')} of missing cells"
        values, counts = np.unique(self.labels, return_counts=True)
        target = class_facts(counts)
        if self.task != CLASSIFICATION.name:
            target = f"{counted(len(values), 'value')} {span(values[0], values[-1])}"
        if self.groups is not None:
            target += f", {counted(len(np.unique(self.groups)), 'group')}"
        return f"{self.name}: {counted(n, 'row')}{labelled}, {features}, {target}"


def read_table(
    source: str,
    target: str | None = None,
    groups: str | None = None,
    progress: Progress = ignore,
    *,
    task: str = CLASSIFICATION.name,
    unlabelled: str | None = None,
    reading: Reading = AS_FOUND,
    classes_only: bool = False,
) -> Table:
    """Return the table in a file, or a bundled one, to learn from.

    Tables that are unsuitable for a comparison raise an error.

    Parameters
    ----------
    source : str
        Path of a file; "-" for standard input; or, if no such file exists,
        one of `nearkin.datasets.BUNDLED`.
    target : str, optional
        Column of the classes or numbers. Required for CSV and Parquet files. In an NPZ file it is a
        key, by default "y"; bundled data sets have a default.
    groups : str, optional
        Column (CSV, Parquet) or key (NPZ) of the groups.
    progress : callable, optional
        Called as `progress(part that is read, whole)` while a CSV or Parquet file is read.
    task : str, default="classification"
        "classification" if the target contains classes, "regression" for numbers.
    unlabelled : str, optional
        The value of the target in unlabelled rows, besides missing values.
    reading : Reading, optional
        How the file is read, where this is not detected.
    classes_only : bool, default=False
        Whether the command, like `check`, has no regression; a class may then have a single row.
    """
    if is_bundled(source) and (
        groups or unlabelled or target not in (None, "target") or task == REGRESSION.name
    ):
        options = "--target, --groups, --task and --unlabelled"
        raise TableError(f"{source} is a bundled set with classes of its own: leave {options} out.")
    # empty rows have neither a label nor features
    with opened(source, progress, replace(reading, drop_empty_rows=True)) as file:
        target = find_name(file.path, file.names, target or file.default_target, "--target")
        groups = find_name(file.path, file.names, groups, "--groups") if groups else None
        if target == groups:
            raise TableError(
                f"{file.path}: --target and --groups both name {shown(target)}: give two columns."
            )
        columns = file.read(labels=[target, groups] if groups else [target])
        rules = Rules(file.reading.missing, decimal=file.decimal, strict=file.reading.strict)
        notes, group = list(columns.notes), None
        with one_line(file.path):
            y, remarks = learn_target(
                columns.labels[target],
                target,
                task,
                regression=None if classes_only else "--task regression",
                unlabelled=unlabelled,
                rules=rules,
                place=file.place,
            )
            notes += remarks
            if groups:
                group, remarks = merge_spellings(columns.labels[groups], groups, "group", rules)
                notes += remarks
        if groups and group is not None:
            bad = BadCells(True)
            bad.add([groups], np.where(is_missing(group), np.nan, 0)[:, None])
            bad.refuse(file.path, file.place)
        with one_line(file.path):
            encoder = TableEncoder(
                "keep",
                missing_values=file.reading.missing,
                decimal=file.decimal,
                strict=file.reading.strict,
            ).fit(columns)
        row_names: Any = range(len(y)) if file.row_numbers is None else file.row_numbers.tolist()
        differing = [name for name, why in encoder.dropped_.items() if why == DIFFERS]
        differing += [
            column.name
            for column in encoder.columns_
            if column.kind == "text" and len(columns.text[column.name].values) == len(y)
        ]
        if differing:
            text = columns.text[differing[0]]
            row_names = np.array(text.values, dtype=object)[text.codes]
        return Table.of_cells(
            columns,
            encoder,
            hints=groups is None and isinstance(file, Source),  # no column in NPZ files
            notes=notes,
            y=y,
            groups=group,
            group_name=groups or "",
            name=table_name(file.path),
            target=target,
            task=task,
            row_names=row_names,
            row_numbers=file.row_numbers,
        )


# Rows for a model that was learned from another table


def read_rows(
    source: str,
    encoder: TableEncoder,
    progress: Progress = ignore,
    reading: Reading = AS_FOUND,
    name: str | None = None,
    group: str = "",
    gaps: str = "filled by the median",
    effects: Any = None,
) -> tuple[Any, list[str], dict[str, Any]]:
    """Return rows for a model, X of shape (n, p), notes, and the cells of some columns by name.

    Notes are about what was ignored or is unknown to the model.

    Parameters
    ----------
    source, progress, reading
        See `read_table`.
    encoder : TableEncoder
        Defines the columns that are needed, in any order.
    name, group : str
        The columns whose cells are returned: identifiers, as the file has them, and `group`, if it
        exists.
    gaps : str
        What is done with missing cells.
    effects : ndarray, optional
        How much each column matters, see `TableEncoder.encode`.
    """
    as_learned = replace(reading, missing=encoder.missing_values, usual_decimal=encoder.decimal)
    with opened(source, progress, as_learned) as file:
        kinds = {column.name: column.kind for column in encoder.columns_}
        require_length(file.path, file.names, given_names(encoder))
        ids = None if name is None else find_name(file.path, file.names, name, "--id")
        names = [group] if group in file.names else []
        apart = [column for column in names if column not in kinds]
        # categories are text even if all of them are numbers
        text = [column.name for column in encoder.columns_ if not column.ordered]
        numbers = [name for name, kind in kinds.items() if kind == "number"]
        needed = list[str]()  # an NPZ file has its names in an array
        if isinstance(file, Source):  # of which some may be lacking, but not all
            needed = [name for name in kinds if name in file.names] or list(kinds)
        read = partial(file.read, [*needed, *apart], apart, [*text, *apart], numbers, ids)
        columns = read()
        if isinstance(file, CsvFile) and not reading.decimal and encoder.misses_mark_of(columns):
            # "13.255" beside "1,5" is no 13.255, unless "2.5" is there, too
            file.decimal = DECIMAL_MARKS[file.decimal]
            if not encoder.misses_mark_of(again := read()):
                columns = again
                marks = MARK_NAMES[file.decimal]
                columns.notes.insert(0, f"read with decimal {marks} (--decimal chooses another)")
        if not isinstance(file, Source):
            require_length(file.path, columns.names, given_names(encoder), is_array=True)
        labels = columns.labels
        if apart != names:  # a feature is read twice
            labels = file.read(names, names, names).labels
        strict = reading.strict or encoder.strict
        with one_line(file.path):
            X, faults, unknown = encoder.encode(columns, effects, strict=strict)
        notes = faults + unknown + filled_note(X, encoder.get_feature_names_out(), gaps)
        used = {*kinds, *names, ids}
        ignored = [name for name in columns.names if name not in used]
        if name is not None:
            labels |= {name: columns.ids}
        return X, [*columns.notes, *note("ignored, not learned from", ignored), *notes], labels


def given_names(encoder: TableEncoder) -> list[str]:
    """Return the columns that an encoder was fitted to, including those it left out."""
    return getattr(encoder, "feature_names_in_", np.array([], dtype=object)).tolist()


def number_encoder(names: list[str]) -> TableEncoder:
    """Return an encoder of numeric columns, which it leaves unchanged."""
    state = {
        "parameters": {"missing": "keep"},
        "n_features": len(names),
        "names": names,
        "numbers": names,
    }
    return TableEncoder.from_dict(state | {"columns": [], "indicated": [], "medians": []})


def span(low: float, high: float) -> str:
    """Return e.g. "from 0.125 to 63,770"."""
    return "from {} to {}".format(
        *(f"{end:{',.0f' if 1e3 <= abs(end) < 1e12 else '.4g'}}" for end in (low, high))
    )


def class_facts(sizes: np.ndarray) -> str:
    """Return a description of the number and sizes of classes."""
    if sizes.min() == sizes.max():
        return f"{counted(len(sizes), 'class')} of {counted(sizes.max(), 'row')} each"
    largest = f"the largest: {sizes.max() / sizes.sum():.1%}"
    return (
        f"{counted(len(sizes), 'class')} of {sizes.min():,} to {counted(sizes.max(), 'row')} "
        f"({largest})"
    )
