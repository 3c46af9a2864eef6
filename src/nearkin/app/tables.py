"""Files to X, y and names: every table of the `nearkin` command comes in here.

What cannot be read with certainty is refused by a `TableError`: one line that names the place and the remedy. What can
go on goes on visibly: every column that was ignored or encoded is named in `Table.notes`.
"""

from __future__ import annotations

from pathlib import Path

from ..datasets import BUNDLED, load
from .csv_table import read_csv
from .npz_table import read_npz
from .table import Table, TableError, listed, without_constants

__all__ = ["Table", "TableError", "read_table"]


def read_table(source: str, target: str | None = None, groups: str | None = None) -> Table:
    """Return the table in a file, or a bundled one.

    Parameters
    ----------
    source : str
        Path of a .csv or .npz file; or, where no such file exists, one of `nearkin.datasets.BUNDLED`.
    target : str, optional
        Column of the classes. A CSV needs it; in an NPZ it is a key, by default "y"; bundled sets know theirs.
    groups : str, optional
        Column (CSV) or key (NPZ) of the groups.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If there is no such table, or it cannot be compared on.
    """
    path = Path(source)
    try:
        if source in BUNDLED and not path.is_file():
            return _read_bundled(source, target, groups)
        if path.is_dir():
            raise TableError(f"{source} is a folder: give a .csv or .npz file.")
        if not path.exists():
            raise TableError(f"{source}: no such file; give a .csv or .npz file, or a bundled set: {listed(BUNDLED)}.")
        if path.suffix.lower() == ".csv":
            return read_csv(path, target, groups)
        if path.suffix.lower() == ".npz":
            return read_npz(path, target or "y", groups)
    except MemoryError as error:
        raise TableError(f"{source} does not fit into memory: take fewer rows or columns.") from error
    except OSError as error:
        raise TableError(f"{source} cannot be read: {error.strerror or error}.") from error
    raise TableError(f"{source}: only .csv and .npz files are supported: save the table as one of them.")


def _read_bundled(name: str, target: str | None, groups: str | None) -> Table:
    if target not in (None, "target") or groups is not None:
        raise TableError(
            f"{name} is a bundled set with its own classes and no groups: leave --target and --groups out."
        )
    dataset = load(name)
    X, names, notes = without_constants(name, dataset.X, dataset.feature_names)
    return Table(X, dataset.y, None, names, name, notes)
