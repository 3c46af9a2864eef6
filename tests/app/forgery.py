"""Model files that `save_model` would not write."""

import copy
import functools
import io
import json
import re
import warnings
import zipfile
from dataclasses import is_dataclass

import numpy as np
import skops.io

from nearkin.app.model_file import SCHEMA, TRUSTED

MISSING = object()


def members(data):
    """Return the members of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive(parts, prepare=lambda file: None, **options):
    """Return an archive; `prepare` may spoil the list of its members before that is written."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", **options) as file:
        warnings.simplefilter("ignore")  # two members of one name are meant
        for name, content in parts.items() if isinstance(parts, dict) else parts:
            file.writestr(name, content)
        prepare(file)
    return buffer.getvalue()


def schema(data):
    return json.loads(members(data)[SCHEMA])


def renumbered(data):
    """Return a file whose parts are numbered 1, 2, ...: by their place in memory no two runs would be alike."""
    parts, numbers = members(data), {}

    def renumber(match):
        return match[1] + str(numbers.setdefault(match[2], len(numbers) + 1))

    text = re.sub(r'("__id__": |"file": ")(\d+)', renumber, parts.pop(SCHEMA).decode())
    arrays = {f"{numbers[name.removesuffix('.npy')]}.npy": content for name, content in parts.items()}
    return archive(arrays | {SCHEMA: text})


def with_schema(data, changed):
    """Return a file with another schema: a JSON value, or text that shall be one."""
    text = changed if isinstance(changed, (str, bytes)) else json.dumps(changed)
    return archive(members(data) | {SCHEMA: text})


def edited(data, place, value):
    """Return a file in whose schema the value at a place is another one, or `MISSING`."""
    changed = schema(data)
    *way, last = place
    part = at(changed, way)
    if value is MISSING:
        del part[last]
    else:
        part[last] = value
    return with_schema(data, changed)


def at(part, place):
    for step in place:
        part = part[step]
    return part


def places(part, place=()):
    """Yield the way to every value in a schema but `is_json`, never read; of the types of keys only to the first."""
    inside = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for step, child in inside:
        if step != "is_json" and not (place[-2:] == ("key_types", "content") and step > 0):
            yield (*place, step)
            yield from places(child, (*place, step))


def nodes(data):
    """Return the way to every node of a file."""
    parts = schema(data)
    inside = (place for place in places(parts) if isinstance(at(parts, place), dict))
    return [(), *(place for place in inside if "__loader__" in at(parts, place))]


def place_of(data, *names):
    """Return the way to the node of an attribute, e.g. `"steps", 1, "components_"`."""
    place, node = (), schema(data)
    for name in names:
        way = ("content", "content", name) if node["__loader__"] == "ObjectNode" else ("content", name)
        place, node = (*place, *way), at(node, way)
    return place


def attributes(model):
    """Yield the way to every attribute, item and value of a model."""
    for name, value in vars(model).items():
        yield (name,)
        if name in ("held_out", "versions") or (name == "coordinates" and isinstance(value, dict)):
            yield from ((name, key) for key in value)
    yield from (("encoder", name) for name in vars(model.encoder))
    yield from (("encoder", "categories", number) for number in range(len(model.encoder.categories)))
    for number, step in enumerate(model.steps):
        yield from (("steps", number, *way) for way in _inside(step))


def _inside(step):
    """Yield the way to every attribute of a step, and of the graph that it may have."""
    for name, value in vars(step).items():
        yield (name,)
        if is_dataclass(value):
            yield from ((name, *way) for way in _inside(value))
            yield from (
                ((name, "rows", part) for part in value.rows) if isinstance(vars(value).get("rows"), dict) else ()
            )


@functools.cache
def _loaded(data):
    return skops.io.loads(data, trusted=TRUSTED)


def altered(data, *way_and_value):
    """Return a file written by skops, of a model with another value for an attribute."""
    *way, last, value = way_and_value
    model = part = copy.deepcopy(_loaded(data))
    for step in way:
        part = part[step] if isinstance(part, (list, dict)) else getattr(part, step)
    (part if isinstance(part, (list, dict)) else vars(part))[last] = value
    return skops.io.dumps(model)


def with_array(data, way, content):
    """Return a file in which the bytes of an array are others."""
    file = at(schema(data), place_of(data, *way))["file"]
    return archive(members(data) | {file: content})


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def headed(header, content=b"", version=1, length=None):
    """Return an array file with a header of any text."""
    header = header.encode() if isinstance(header, str) else header
    size = 2 if version == 1 else 4
    header += b" " * ((-len(header) - 9 - size) % 64) + b"\n"
    start = b"\x93NUMPY" + bytes([version, 0])
    return start + (len(header) if length is None else length).to_bytes(size, "little") + header + content
