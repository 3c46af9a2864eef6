"""Where a table comes from, as far as that is known before anything is read or loaded."""

from __future__ import annotations

import os
from pathlib import Path

STANDARD_INPUT = "-"
BUNDLED = ("iris", "wine", "breast_cancer", "digits", "balance_scale")  # those of nearkin.datasets
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|"}  # that are looked for
FILES = "a .csv, .parquet or .npz file"


def is_bundled(source: str) -> bool:
    """Return whether the name of a bundled set is meant, and no file."""
    return source in BUNDLED and not Path(source).is_file()


def missing_file(source: str) -> str | None:
    """Return a line on a file that does not exist."""
    if source == STANDARD_INPUT or is_bundled(source) or not is_absent(source):
        return None
    return f"{source}: no such file; give {FILES}, or a bundled set: {', '.join(BUNDLED)}."


def is_absent(path: str) -> bool:
    """Return whether there is nothing at a path; why else it cannot be read, its reader says."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
