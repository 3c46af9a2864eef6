"""Saved files of `nearkin compare --save` and `nearkin adapt --save`, in safetensors format.

They contain arrays and a JSON header, and no object to build or run. safetensors checks that the
arrays fill the file exactly, and a checksum detects damage. Neither can detect a forged file, which
would take a signature.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from .._memory import require_memory
from .endings import TableError, first_line

# The formats that can be read, by the command that saves them; the last one is written. Models of
# format 9 had no text and no lists, adapters of format 1 no matches, and those of format 2 did not
# know the size of the index.
FORMATS = {"compare": range(9, 11), "adapt": range(1, 4)}
CSR = ("data", "indices", "indptr")  # the parts of a sparse matrix
MADE_BY = {
    "compare": "nearkin compare TABLE --save model.safetensors",
    "adapt": "nearkin adapt VECTORS --save adapter.safetensors",
}
MOST_SAID = 200  # characters of an error, which may quote the contents of a file


def write_parts(path: Path, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write a header and arrays; sparse matrices become three arrays each."""
    from safetensors.numpy import save

    text, dense = json.dumps(header), dict[str, np.ndarray]()
    for name, array in arrays.items():
        if issparse(array):
            dense |= {f"{name}.{part}": getattr(array, part) for part in CSR}
        else:
            dense[name] = np.ascontiguousarray(array)
    # save_file would make the file unreadable for other users
    path.write_bytes(save(dense, {"nearkin": text, "checksum": _checksum(text, dense)}))


@contextmanager
def saved_parts(path: str | Path, command: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the header and the arrays of a file saved by a command; sparse arrays by their parts.

    Any problem with them, or with their use by the caller, becomes one line.
    """
    from safetensors import safe_open

    path = Path(path)
    try:
        if path.exists() and not path.is_file():  # reading a pipe or a device may take forever
            raise TableError(f"{path} is not a file.")
        path.open("rb").close()  # reports why it cannot be read, which safetensors does not
        require_memory(2.0 * path.stat().st_size, "reading it", "close other programs")
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if not metadata.keys() >= {"nearkin", "checksum"}:
            raise ValueError("it has no header of nearkin")
        header = json.loads(metadata["nearkin"])
        _check_format(path, header)  # first, since a newer checksum may differ
        if _checksum(metadata["nearkin"], arrays) != metadata["checksum"]:
            raise ValueError("its checksum is wrong")
        for start in [name.removesuffix("indptr") for name in arrays if name.endswith("indptr")]:
            # held-out rows had another separator, and no name, up to version 0.3
            name = "held_out_cells" if start == "held_out_" else start[:-1]
            arrays[name] = {part: arrays.pop(start + part) for part in CSR}
        yield header, arrays
    except TableError:
        raise
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise TableError(f"{path} does not fit into memory ({error}).") from error
    except Exception as error:  # any file may be given, with any header
        raise TableError(
            f"{path} is not a nearkin model, or is damaged ({first_line(error)[:MOST_SAID]}): make "
            f"it again with `{MADE_BY[command]}`."
        ) from error


def _check_format(path: Path, header: dict[str, Any]) -> None:
    """Raise an error for a file written by a newer nearkin, or by one that is too old."""
    if type(header) is not dict or type(header.get("format")) is not int:
        raise ValueError("its header has no format")
    command = "adapt" if "adapter" in header else "compare"
    written, readable = header["format"], FORMATS[command]
    if written > readable[-1]:
        raise TableError(
            f"{path} was written by a newer nearkin (format {written}): install a newer nearkin."
        )
    if written < readable[0]:
        raise TableError(
            f"{path} has a format that nearkin no longer reads ({written}): make it again with "
            f"`{MADE_BY[command]}`."
        )


def _checksum(header: str, arrays: dict[str, np.ndarray]) -> str:
    """Return a checksum that changes with any flipped byte of header and arrays."""
    total = zlib.crc32(header.encode())
    for name, array in sorted(arrays.items()):
        total = zlib.crc32(
            array.data, zlib.crc32(f"{name} {array.dtype.str} {array.shape}".encode(), total)
        )
    return str(total)
