"""Forged files: each field of a header and each array of a saved file, changed in every way."""

import json
from copy import deepcopy

import numpy as np
from safetensors.numpy import load

WRONG = (
    None,
    True,
    "x",
    "\ud800",
    -1,
    0,
    0.5,
    10**9,
    10**400,
    -1e308,
    np.nan,
    np.inf,
    [],
    {},
    [[]],
)


def parts(data):
    """Return the header and the arrays of a file."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["nearkin"])
    return header, dict(sorted(load(data).items()))  # in a fixed order


def fields(value, path=()):
    """Yield the path and the value of each field of a header, and of the first items of lists."""
    if path:
        yield path, value
    if isinstance(value, dict):
        for name, item in value.items():
            yield from fields(item, (*path, name))
    elif isinstance(value, list):
        for place, item in enumerate(value[:2]):
            yield from fields(item, (*path, place))


def forged_headers(header):
    """Yield the name of each forgery, and the header."""
    for path, value in fields(header):
        wrong = [(repr(other), other) for other in WRONG]
        if isinstance(value, list):
            wrong += [("longer", value + value[-1:]), ("shorter", value[:-1])]
            wrong += [("backwards", value[::-1]), ("many times", value[:1] * 10_000)]
        for what, other in (*wrong, ("missing", None), ("another beside it", None)):
            forged = deepcopy(header)
            *above, last = path
            holder = forged
            for name in above:
                holder = holder[name]
            if what == "missing":
                del holder[last]
            elif what != "another beside it":
                holder[last] = other
            elif isinstance(holder, dict):
                holder["another"] = value
            yield f"{'.'.join(map(str, path))}: {what}", forged


def forged_arrays(arrays):
    """Yield the name of each forgery, and the arrays."""
    kinds = ("f8", "f4", "f2", "i8", "i4", "u8", "i1", "?")
    for name, array in arrays.items():
        others = {
            "missing": None,
            "empty": array[:0],
            "shorter": array[:-1],
            "longer": np.concatenate([array, array[-1:]]),
            "another axis": array[None],
            "flat": array.ravel(),
            "transposed": array.T,
            "wider": np.repeat(array, 2, axis=-1),
        }
        with np.errstate(all="ignore"):
            others |= {kind: array.astype(kind) for kind in kinds}
        numbers = [-1, 0, 1, 10**9, -(10**9)]
        if array.dtype.kind == "f":
            numbers += [np.nan, np.inf, -np.inf, 1e300, 1e-300]
        else:
            numbers += [np.iinfo(array.dtype).min, np.iinfo(array.dtype).max]
        for number in numbers:
            with np.errstate(all="ignore"):
                number = np.array(number).astype(array.dtype)
            others[f"all {number}"] = np.full_like(array, number)
            for place in (0, -1):
                others[f"{number} at {place}"] = changed = array.copy()
                changed.flat[place : place + 1 or None] = number
        for what, other in others.items():
            forged = {n: a for n, a in (arrays | {name: other}).items() if a is not None}
            yield f"{name}: {what}", forged
    yield "another array", arrays | {"another": np.zeros(3)}


def forgeries(data):
    """Yield the name, the header and the arrays of every forgery of a file."""
    header, arrays = parts(data)
    for name, forged in forged_headers(header):
        yield name, forged, arrays
    for name, forged in forged_arrays(arrays):
        yield name, header, forged
