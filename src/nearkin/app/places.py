"""The source of a table, as far as it is known before anything is read or loaded."""

from __future__ import annotations

import os
from pathlib import Path

STANDARD_INPUT = "-"
BUNDLED = ("iris", "wine", "breast_cancer", "digits", "balance_scale")  # those of nearkin.datasets
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}  # that are searched for
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip")
FILES = "a .csv, .xlsx, .json, .parquet or .npz file"


def is_bundled(source: str) -> bool:
    """Return whether a name is that of a bundled data set, and not of a file."""
    return source in BUNDLED and not Path(source).is_file()


def missing_file(source: str) -> str | None:
    """Return a line about a file that does not exist."""
    if source == STANDARD_INPUT or is_bundled(source) or not is_absent(source):
        return None
    return f"{source}: no such file; give {FILES}, or a bundled set: {', '.join(BUNDLED)}."


def is_absent(path: str) -> bool:
    """Return whether nothing exists at a path; other problems are reported by its reader."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False


def table_name(path: Path) -> str:
    """Return the name of a table: that of its file, without suffixes."""
    return Path(path.stem).stem if path.suffix.lower() in COMPRESSED else path.stem
