"""A model file, whatever is in it, loads as a sound model or is refused by one line.

It never executes anything, hangs, eats memory or shows a traceback: every file is opened in a `sandbox`, which allows
nothing else, and what loads there is used as the commands use it.
"""

import copy
import functools
import itertools
import json
import operator
import os
import pickle
import queue
import random
import socket
import struct
import subprocess
import sys
import zipfile
from collections import OrderedDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
import skops.io
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from skops.io._audit import NODE_TYPE_MAPPING

from nearkin.app.model_file import FOREIGN, MAX_SCHEMA, SCHEMA, TRUSTED, ModelFileError, save_model
from nearkin.app.tables import read_table

from .forgery import (
    MISSING,
    altered,
    archive,
    at,
    attributes,
    edited,
    headed,
    members,
    nodes,
    npy,
    place_of,
    places,
    renumbered,
    schema,
    with_array,
    with_schema,
)
from .sandbox import MISDEEDS
from .winners import N_ROWS, winner, write_tables

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork, limits and /proc")

PER_CHILD = 20
BASES = {
    "words": ("NMMP", "words table.csv", "kind", "classification"),
    "dense": ("LDA", "dense table.npz", None, "classification"),
    "sparse": ("raw k-NN", "sparse table.npz", None, "classification"),
    "numbers": ("PCA", "words table.csv", "width", "regression"),
    "graph": ("TDL", "dense table.npz", None, "classification"),
    "sparse graph": ("TDL", "sparse table.npz", None, "classification"),
}


class Sandboxes:
    """Sandboxes that share the work."""

    def __init__(self, folder, table, sound):
        self.folder = folder
        self.numbers = itertools.count()
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.app.sandbox", table, sound],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=Path(__file__).parents[2],
                env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},  # threads cannot be forked
            )
            for _ in range(min(4, os.cpu_count()))
        ]
        self.idle = queue.SimpleQueue()
        for process in self.processes:
            self.idle.put(process)

    def open(self, cases, table, opener="use", seconds=5, per_child=PER_CHILD):
        """Return what happened to every case, bytes or a function that makes something at a path."""
        paths = [self.folder / f"{next(self.numbers)}.skops" for _ in cases]
        for path, content in zip(paths, cases.values(), strict=True):
            content(path) if callable(content) else path.write_bytes(content)

        def answers(batch):
            process = self.idle.get()
            process.stdin.write(json.dumps([opener, seconds, table, [str(path) for path in batch]]) + "\n")
            process.stdin.flush()
            outcomes = json.loads(process.stdout.readline())
            self.idle.put(process)
            return [outcome | {"harm": harm(path, outcome)} for path, outcome in zip(batch, outcomes, strict=True)]

        batches = [paths[start : start + per_child] for start in range(0, len(paths), per_child)]
        with ThreadPoolExecutor(len(self.processes)) as pool:
            outcomes = [outcome for batch in pool.map(answers, batches) for outcome in batch]
        for path, outcome in zip(paths, outcomes, strict=True):
            if not outcome["harm"] and path.is_file():  # whatever did harm is left to be looked at
                path.unlink()
        return dict(zip(cases, outcomes, strict=True))

    def close(self):
        for process in self.processes:
            process.communicate()


def harm(path, outcome):
    """Return what a file did that it must not, or nothing."""
    if "died" in outcome:
        return f"{path}: {outcome['died']}"
    if outcome["events"] or "traceback" in outcome:
        return "\n".join([str(path), *outcome["events"], outcome.get("traceback", "")])
    if "refused" in outcome:
        text = outcome["refused"]
        said = text.startswith(f"{path} ") and text.isprintable() and len(text) < len(str(path)) + 500
    else:
        text = outcome.get("said", "")
        lines = text.splitlines()
        said = all(line.startswith("nearkin: ") for line in lines) and len(lines) == outcome["codes"].count(2)
        said = said and set(outcome["codes"]) <= {0, 2}
    return "" if said and "memory" not in text else f"{path}: {text}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    write_tables(folder)
    return folder


@pytest.fixture(scope="module")
def sound(folder):
    """Sound models and their files."""
    made = {}
    for name, (method, table, target, task) in BASES.items():
        model = winner(method, read_table(str(folder / table), target, task=task), scale=name != "dense")
        path = folder / f"{name}.skops"
        save_model(model, path)
        path.write_bytes(renumbered(path.read_bytes()))
        made[name] = model, path.read_bytes()
    return made


@pytest.fixture(scope="module")
def words(sound):
    return sound["words"][1]


@pytest.fixture(scope="module")
def new_rows(folder):
    return str(folder / "words new.csv")


@pytest.fixture(scope="module")
def sandboxes(folder, sound, new_rows):
    sandboxes = Sandboxes(folder, new_rows, str(folder / "words.skops"))
    yield sandboxes
    sandboxes.close()


@pytest.fixture
def harmless(folder, sandboxes):
    """Assert that none of some files does harm, and return how many loaded."""

    def check(cases, base="words"):
        outcomes = sandboxes.open(cases, str(folder / BASES[base][1].replace("table", "new")))
        assert {name: outcome["harm"] for name, outcome in outcomes.items() if outcome["harm"]} == {}
        return sum("codes" in outcome for outcome in outcomes.values())

    return check


@pytest.fixture
def refused(sandboxes, new_rows):
    """Assert that every one of some files is refused, with certain words, and does no harm."""

    def check(cases, says=""):
        outcomes = sandboxes.open(cases, new_rows)
        assert {name: outcome["harm"] for name, outcome in outcomes.items() if outcome["harm"]} == {}
        assert {name: found for name, found in outcomes.items() if says not in found.get("refused", "")} == {}
        assert all("refused" in outcome for outcome in outcomes.values())

    return check


# Whether the sandbox would notice


@pytest.mark.parametrize("event", [deed for deed in MISDEEDS if deed not in ("spin", "wait", "eat", "crash")])
def test_the_sandbox_notices(sandboxes, new_rows, event):
    outcome = sandboxes.open({event: event.encode()}, new_rows, opener="misbehave")[event]
    assert len(outcome["events"]) == 1
    assert outcome["events"][0].startswith(event.split()[0])
    assert outcome["harm"]


def test_the_sandbox_stops_what_takes_too_much(sandboxes, new_rows):
    deeds = {deed: deed.encode() for deed in ("spin", "wait", "eat", "crash")}
    outcomes = sandboxes.open(deeds, new_rows, opener="misbehave", seconds=1, per_child=1)
    assert outcomes["spin"]["died"] in ("SIGXCPU", "SIGALRM")  # where others use the processor, too
    assert outcomes["wait"]["died"] == "SIGALRM"
    assert outcomes["crash"]["died"] == "SIGSEGV"
    assert "MemoryError" in outcomes["eat"]["traceback"]
    assert all(outcome["harm"] for outcome in outcomes.values())


def test_the_sandbox_goes_on_after_harm(sandboxes, new_rows, words):
    cases = {deed: deed.encode() for deed in ("crash", "exec", "crash", "import")} | {"none": b"unknown"}
    outcomes = sandboxes.open(cases, new_rows, opener="misbehave")
    assert outcomes["crash"]["died"]
    assert outcomes["exec"]["events"]
    assert outcomes["import"]["events"]
    assert "KeyError" in outcomes["none"]["traceback"]


class Payload:
    def __reduce__(self):
        return os.system, ("true",)


def test_a_pickle_is_armed_and_no_model(sandboxes, new_rows, refused):
    case = {"pickle": pickle.dumps(Payload())}
    outcome = sandboxes.open(case, new_rows, opener="unpickle")["pickle"]
    assert outcome["events"] == ["pickle.find_class ('posix', 'system')"]
    refused(case, FOREIGN)


def test_a_skops_file_is_armed_where_it_is_trusted(sandboxes, new_rows, refused, words):
    case = {"armed": edited(words, place_of(words, "method"), called("posix", "system", "true"))}
    outcome = sandboxes.open(case, new_rows, opener="trust")["armed"]
    assert outcome["events"] == ["os.system (b'true',)"]
    refused(case, "holds posix.system (ConstructorFromReduceNode), which no model has: refused.")


# Damage


@pytest.mark.parametrize("base", BASES)
def test_flipped_bits_and_bytes(sound, harmless, base):
    chance, data = random.Random(f"flips of {base}"), sound[base][1]
    assert harmless({number: flipped(data, chance) for number in range(350)}, base) < 35


@pytest.mark.parametrize("base", BASES)
def test_flipped_bits_and_bytes_with_checksums_that_agree(sound, harmless, base):
    chance, parts = random.Random(f"flips in {base}"), members(sound[base][1])
    arrays = [name for name in parts if name != SCHEMA]
    chosen = chance.choices([SCHEMA, *arrays], [2 * len(arrays), *(1 for _ in arrays)], k=250)
    changed = (archive(parts | {name: flipped(parts[name], chance)}) for name in chosen)
    assert 0 < harmless(dict(enumerate(changed)), base) < 125


def test_every_beginning(words, refused):
    chance = random.Random("lengths")
    lengths = [*range(60), *chance.sample(range(60, len(words) - 120), 100), *range(len(words) - 120, len(words))]
    refused({length: words[:length] for length in lengths}, FOREIGN)


def flipped(data, chance):
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 1, 2, 3, 8])):
        change = 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(1, 256)
        data[chance.randrange(len(data))] ^= change
    return bytes(data)


# Other parts than a model has


@functools.cache
def foreign_parts():
    """Values that skops can write, and no model holds."""
    X, y = load_iris(return_X_y=True)
    return {
        "function": os.system,
        "class": subprocess.Popen,
        "class of ours": ModelFileError,
        "partial": functools.partial(os.system, "true"),
        "attrgetter": operator.attrgetter("__class__"),
        "methodcaller": operator.methodcaller("system", "true"),
        "method": SGDClassifier().fit,
        "ufunc": np.add,
        "array function": np.sum,
        "random state": np.random.RandomState(0),
        "random generator": np.random.default_rng(0),
        "bytes": b"bytes",
        "bytearray": bytearray(b"bytes"),
        "masked array": np.ma.masked_array([1.0, 2.0], [True, False]),
        "sparse matrix": csr_matrix(np.eye(3)),
        "sparse array": csr_array(np.eye(3)),
        "objects": np.array([os.system, "true"], dtype=object),
        "default dict": defaultdict(list),
        "ordered dict": OrderedDict(a=1),
        "set": {1, 2},
        "tuple": (1, 2),
        "slice": slice(3),
        "type of array": np.dtype("f8"),
        "scalar": np.float64(1),
        "what is called": timezone(timedelta(hours=1)),
        "function transformer": FunctionTransformer(os.system),
        "pipeline": Pipeline([("system", FunctionTransformer(os.system)), ("none", None)]),
        "tree": DecisionTreeClassifier().fit(X, y),
        "loss": SGDClassifier().fit(X, y),
    }


@pytest.mark.parametrize(
    "way", [("method",), ("steps", 1, "criterion"), ("held_out", "accuracy"), ("steps", 0)], ids=str
)
def test_parts_that_skops_knows_and_no_model_has(words, refused, way):
    refused({name: altered(words, *way, value) for name, value in foreign_parts().items()}, ": refused.")


CALLABLES = [
    ("os", "system"),
    ("posix", "system"),
    ("subprocess", "Popen"),
    ("builtins", "eval"),
    ("builtins", "exec"),
    ("builtins", "__import__"),
    ("builtins", "object"),
    ("pickle", "loads"),
    ("antigravity", "geohash"),
    ("numpy", "memmap"),
    ("numpy", "matrix"),
    ("nearkin.app.model_file", "load_model"),
    ("sklearn.preprocessing._function_transformer", "FunctionTransformer"),
    ("sklearn.pipeline", "Pipeline"),
    ("", ""),
    (".", "x"),
    ("nearkin.app.model.Model", "__init__"),
    ("builtins.dict\n", "x"),
    ("builtins", "dict\n"),
]


def test_types_swapped_for_what_can_be_called(words, refused):
    changed = {}
    for place in nodes(words):
        for module, name in CALLABLES:
            parts = schema(words)
            at(parts, place).update(__module__=module, __class__=name)
            changed[place, module, name] = with_schema(words, parts)
    refused(changed, "refused.")


def test_every_loader_in_every_place(words, harmless):
    loaders = sorted({name for name, _ in NODE_TYPE_MAPPING} | {"", "Node", "__init__"})
    changed = {
        (place, loader): edited(words, (*place, "__loader__"), loader)
        for place in nodes(words)
        for loader in loaders
        if at(schema(words), place)["__loader__"] != loader
    }
    assert harmless(changed) <= 1  # the version of scikit-learn beside a step is not used


def test_calls_in_every_place(words, refused):
    refused({place: edited(words, place, called("posix", "system", "true")) for place in nodes(words)[1:]}, "refused.")


def node(loader, module, name, number, **content):
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": number, **content}


def word(value, number):
    return node("JsonNode", "builtins", "str", number, content=json.dumps(value), is_json=True)


def called(module, name, argument):
    """Return the node of an object that is made by calling something."""
    arguments = node("TupleNode", "builtins", "tuple", 1002, content=[word(argument, 1003)])
    return node("ConstructorFromReduceNode", module, name, 1001, content=arguments)


# Broken schemas


DEEP = functools.reduce(lambda inner, _: [inner], range(200), "x")
VALUES = {"missing": MISSING, "null": None, "list": [], "dict": {}, "number": -1, "huge": 10**40, "text": "x",
          "odd text": "\ud800\n\x1b[2J", "deep": DEEP}  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_any_value_in_any_place_of_the_schema(words, harmless, value):
    harmless({place: edited(words, place, VALUES[value]) for place in places(schema(words))})


BROKEN = {
    "empty": "",
    "nonsense": "nonsense",
    "null": "null",
    "list": "[]",
    "deep lists": "[" * 100_000,
    "deep dicts": '{"a": ' * 100_000,
    "digits": "9" * 5000,
    "many parts": "[" + "{}," * (MAX_SCHEMA // 3 - 1) + "{}]",
    "too many parts": "[" + "{}," * (MAX_SCHEMA // 3) + "{}]",
    "no text": b"\xff\xfe\x00\xd8",
}


def test_schemas_that_are_none(words, refused):
    refused({name: with_schema(words, text) for name, text in BROKEN.items()})


def test_of_two_values_for_a_key_that_is_checked_which_skops_reads(words, harmless, refused):
    text, armed = members(words)[SCHEMA].decode(), json.dumps(called("posix", "system", "true"))
    assert harmless({"first": with_schema(words, text.replace('"method": {', f'"method": {armed}, "method": {{', 1))})
    refused({"last": with_schema(words, text.replace('"table": {', f'"method": {armed}, "table": {{', 1))}, "posix")


def test_protocols(words, refused):
    protocols = [-1, 0, 1, True, False, None, "2", 2.0, [2], 99, 10**40, -(10**4000)]
    refused({repr(protocol): edited(words, ("protocol",), protocol) for protocol in protocols})


def test_formats(words, refused):
    texts = ["0", "-1", "true", "null", "1.0", '"1"', "[1]", "NaN", "1", "2", "4", "9" * 4000, "", "[" * 9999, 1, None]
    refused({text: edited(words, (*place_of(words, "format"), "content"), text) for text in texts})


def test_parts_within_themselves(words, refused):
    inside = [(whole, part) for whole in nodes(words) for part in nodes(words) if whole == part[: len(whole)] != part]
    assert len(inside) > 100
    cycles = {(*pair,): edited(words, (*pair[1], "__id__"), at(schema(words), pair[0])["__id__"]) for pair in inside}
    refused(cycles, "refused.")


def test_one_number_for_several_parts(words, refused):
    method, steps, mean, scale = (
        place_of(words, *way) for way in [("method",), ("steps",), ("steps", 0, "mean_"), ("steps", 0, "scale_")]
    )
    parts = schema(words)
    refused(
        {
            "another's": edited(words, (*method, "__id__"), at(parts, steps)["__id__"]),
            "another array's": edited(words, (*scale, "__id__"), at(parts, mean)["__id__"]),
            "another array": edited(words, scale, at(parts, mean)),
            "another array's file": edited(words, (*scale, "file"), at(parts, mean)["file"]),
        },
        "refused.",
    )


def test_depth(words, refused):
    part = word(1, 5000)
    for number in range(200):
        part = node("ListNode", "builtins", "list", 2000 + number, content=[part])
    refused({"deep": edited(words, place_of(words, "method"), part)}, "too deep")


def test_an_array_used_by_thousands_of_parts(words, refused):
    large = with_array(words, ("encoder", "categories", 0), npy(np.array([f"{i:05}" for i in range(9999)])))
    changed = schema(large)
    at(changed, place_of(words, "encoder", "categories"))["content"] *= 2000
    refused({"shared": with_schema(large, changed)}, "does not hold just the arrays that it names")


def test_arrays_that_are_not_there_or_not_named(words, refused):
    mean = (*place_of(words, "steps", 0, "mean_"), "file")
    cases = {name: edited(words, mean, name) for name in ["missing.npy", SCHEMA, "../m.npy", "/etc/passwd", ""]}
    cases["one more"] = archive(members(words) | {"more.npy": npy(np.ones(3))})
    refused(cases, "does not hold just the arrays that it names")


# Odd values in sound schemas


ODD = {
    "nothing": None,
    "truth": True,
    "zero": 0,
    "minus": -1,
    "huge": 10**30,
    "beyond floats": 10**400,
    "half": 0.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "no text": "",
    "text": "x",
    "name of a method": "transform",
    "command of a terminal": "\x1b[2J\x07\x00",
    "no character": "\ud800",
    "lines": "a\nnearkin: b\r",
    "long text": "a b\n" * 50_000,
    "no list": [],
    "list": [1, "x"],
    "no dict": {},
    "dict": {"transform": "pandas", "a": 1},
    "numbered": {1: 2},
    "no dimension": np.array(1.0),
    "no rows": np.zeros(0),
    "no columns": np.zeros((3, 0)),
    "columns of no rows": np.zeros((0, 5)),
    "one number": np.ones(1),
    "row": np.ones(6),
    "many": np.ones(1000),
    "rows": np.ones((40, 6)),
    "columns": np.asfortranarray(np.ones((6, 40))),
    "zeros": np.zeros(6),
    "whole numbers": np.arange(6),
    "codes below": np.full(40, -1, dtype=np.int32),
    "codes beyond": np.full(40, 3, dtype=np.int32),
    "codes far beyond": np.full(40, 2**63 - 1),
    "no sign": np.full(40, 2**64 - 1, dtype=np.uint64),
    "truths": np.ones(6, dtype=bool),
    "single precision": np.ones(6, dtype=np.float32),
    "half precision": np.ones(6, dtype=np.float16),
    "more precision": np.ones(6, dtype=np.longdouble),
    "other end first": np.ones(6, dtype=">f8"),
    "nans": np.full((3, 6), np.nan),
    "infinities": np.full(6, np.inf),
    "largest": np.full((3, 6), 1.7e308),
    "smallest": np.full(6, 5e-324),
    "words": np.array(["a", "b", "c"]),
    "row of words": np.array([["a", "b", "c"]]),
    "twice the same": np.array(["a", "a"]),
    "many words": np.arange(50_000).astype(str),
    "long word": np.array(["x" * 300_000]),
    "commands of a terminal": np.array(["\x1b[2J", "\r", "\0x"]),
    "no characters": np.array(["\ud800", "b"]),
    "words, other end first": np.array(["a", "b"], dtype=">U1"),
    "a task": "classification",
    "the other task": "regression",
    "rising numbers": np.linspace(-1, 1, 40),
    "rising numbers, other end first": np.linspace(-1, 1, 40, dtype=">f8"),
    "rising numbers of single precision": np.linspace(-1, 1, 40, dtype=np.float32),
    "falling numbers": np.linspace(1, -1, 40),
    "rising far": np.linspace(-1e300, 1e300, 40),
    "rising to infinity": np.append(np.arange(39.0), np.inf),
}


NOT_OF_CLASSES = ("task", "codes", "classes", "held_out", "n_neighbors")


@pytest.mark.parametrize(
    ("base", "parts"),
    [
        ("words", ""),
        ("dense", "steps"),
        ("sparse", "coordinates"),
        ("numbers", NOT_OF_CLASSES),
        ("graph", "steps"),
        ("sparse graph", "steps"),
    ],
    ids=["words", "dense", "sparse", "numbers", "graph", "sparse graph"],
)
def test_any_value_for_any_attribute(sound, harmless, base, parts):
    model, data = sound[base]
    ways = [way for way in attributes(model) if way[0].startswith(parts)]
    harmless({(*way, name): altered(data, *way, odd) for way in ways for name, odd in ODD.items()}, base)


ATTRIBUTES = [
    *("transform", "fit", "__class__", "__dict__", "__sklearn_tags__", "__sklearn_is_fitted__"),
    *("_sklearn_output_config", "_skl_callbacks", "_n_features_out", "_validate_params", "feature_names_in_"),
    *("metric", "n_jobs", "names", "_known", "voters", "map"),
]


@pytest.mark.parametrize("part", [(), ("encoder",), ("steps", 0), ("steps", 1)], ids=str)
def test_attributes_that_no_part_has(words, refused, part):
    values = {"text": "x", "dict": {"transform": "pandas"}, "list": [], "array": np.ones(6), "number": 1}
    refused({(name, odd): altered(words, *part, name, value) for name in ATTRIBUTES for odd, value in values.items()})


@pytest.mark.parametrize("part", [(), ("encoder",), ("steps", 0), ("steps", 1), ("held_out",), ("versions",)], ids=str)
def test_attributes_under_another_name(words, harmless, part):
    place = (*place_of(words, *part), "content")
    place += () if part in [("held_out",), ("versions",)] else ("content",)
    changed = {}
    for name in at(schema(words), place):
        for other in ("x", "", f"{name}_", "\ud800"):
            parts = schema(words)
            inside = at(parts, place)
            inside[other] = inside.pop(name)
            changed[name, other] = with_schema(words, parts)
    assert harmless(changed) == 0


def test_steps_that_do_not_follow_each_other(sound, refused):
    model, data = sound["words"]
    scaler, learned = model.steps
    orders = {
        "two scalers": [scaler, scaler],
        "map first": [learned, scaler],
        "two maps": [learned, learned],
        "three steps": [scaler, learned, learned],
        "a model": [model],
        "an encoder": [scaler, model.encoder],
        "an array": [np.ones(3)],
    }
    refused({name: altered(data, "steps", [copy.deepcopy(step) for step in steps]) for name, steps in orders.items()})


def test_a_task_that_the_rest_is_not_of(sound, refused):
    words, numbers = sound["words"][1], sound["numbers"][1]
    figures = {task: sound[base][0].held_out for task, base in (("classification", "words"), ("regression", "numbers"))}
    values = sound["numbers"][0].classes
    turned = altered(words, "task", "regression"), altered(numbers, "task", "classification")
    refused({number: data for number, data in enumerate(turned)}, "its held-out figures")
    cases = {
        "classes that are words": altered(turned[0], "held_out", figures["regression"]),
        "numbers for classes": altered(turned[1], "held_out", figures["classification"]),
        "whole numbers": altered(numbers, "classes", np.arange(len(values))),
        "words for numbers": altered(numbers, "classes", np.sort(values.astype(str))),
        "truths": altered(numbers, "classes", np.array([False, True])),
        "falling": altered(numbers, "classes", -values),
        "twice the same": altered(numbers, "classes", np.zeros(len(values))),
        "not a number": altered(numbers, "classes", np.append(values[:-1], np.nan)),
        "infinite": altered(numbers, "classes", np.append(values[:-1], np.inf)),
        "beyond squares": altered(numbers, "classes", np.append(values[:-1], 1e150)),
        "too few": altered(numbers, "classes", values[:3]),
        "columns": altered(numbers, "classes", values[:, None]),
        "of half precision": altered(numbers, "classes", np.arange(len(values), dtype=np.float16) - 9),
    }
    half = cases.pop("of half precision")
    refused(cases, "its labels)")
    refused({"half": half}, "refused.")
    others = ["", "Regression", "regression ", "ranking", "__class__", None, 1]
    refused({other: altered(numbers, "task", other) for other in others}, "its task")


@pytest.mark.parametrize(
    ("name", "value"),
    [("r2", 1.01), ("r2", float("nan")), ("r2", float("-inf")), ("r2", -1e200), ("raw_r2", 1.01), ("std", -0.01),
     ("std", float("inf")), ("p_value", -0.1), ("p_value", 1.5), ("r2", 1), ("accuracy", 0.5), ("mae", 2.0)],
)  # fmt: skip
def test_figures_that_no_regression_has(sound, refused, name, value):
    refused({name: altered(sound["numbers"][1], "held_out", name, value)}, "its held-out figures")


def test_an_r2_below_zero_is_sound(sound, harmless):
    assert harmless({"bad": altered(sound["numbers"][1], "held_out", "raw_r2", -123.4)}, "numbers")


def test_sparse_rows_that_give_a_value_twice(sound, refused):
    model, data = sound["sparse"]
    indices = model.coordinates["indices"].copy()
    indices[1] = indices[0]
    refused({"twice": altered(data, "coordinates", "indices", indices)}, "its coordinates")


def test_a_code_point_that_no_character_has(words, refused):
    classes = npy(np.array(["a", "b", "c"])).replace(b"a\0\0\0", b"\0\0\0\x7f")
    refused({"classes": with_array(words, ("classes",), classes)}, "its labels")


# Sound models that ask for much


def test_more_classes_than_rows(words, harmless):
    assert harmless({"classes": altered(words, "classes", np.arange(1_000_000))})


def test_as_many_neighbours_as_rows(sound, harmless):
    for base in BASES:
        assert harmless({"k": altered(sound[base][1], "n_neighbors", N_ROWS)}, base)


def test_more_neighbours_than_anybody_asks_for(words, refused):
    many = {"coordinates": np.ones((9999, 6)), "codes": np.zeros(9999, dtype=np.int32), "n_neighbors": 9999}
    many |= {"rows": np.arange(9999), "n_rows": 9999}
    for name, value in many.items():
        words = altered(words, name, value)
    refused({"k": words}, "its number of neighbours")


def test_long_names(words, harmless, refused):
    names = {length: np.array(["width", "height", "x" * length]) for length in (5_000, 500_000)}
    files = {length: altered(words, "encoder", "numbers", known) for length, known in names.items()}
    assert harmless({"long": files[5_000]})
    refused({"too long": files[500_000]}, "its names of columns")
    long_value = np.array(["blue", "green", "x" * 500_000])
    assert harmless({"value": altered(words, "encoder", "categories", 0, long_value)})


def test_a_long_name_beside_many_values(words, refused):
    many = altered(words, "encoder", "categories", 0, np.array([f"{number:05}" for number in range(50_000)]))
    refused({"product": altered(many, "encoder", "text", np.array(["x" * 9_000]))}, "its values of text columns")


def test_many_features(sound, harmless):
    p = 20_000
    model = skops.io.loads(sound["dense"][1], trusted=TRUSTED)
    vars(model.map).update(n_features_in_=p, scalings_=np.ones((p, 2)), xbar_=np.zeros(p))
    vars(model.encoder).update(numbers=np.arange(p).astype(str))
    assert harmless({"wide": skops.io.dumps(model)})


def test_more_components_or_eigenvalues_than_features(words, refused):
    wider = altered(words, "coordinates", np.ones((N_ROWS, 5000)))
    cases = {
        "components": altered(wider, "steps", 1, "components_", np.ones((5000, 6))),
        "eigenvalues": altered(words, "steps", 1, "eigenvalues_", np.ones(500_000)),
    }
    refused(cases, "s_): save it again.")


# Arrays that are none


def header(shape, descr="'<f8'", order="False", tail=", "):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}{tail}}}"


SIX = bytes(48)
NO_ARRAYS = {
    "huge": headed(header("(9999999999,)")),
    "huge and flat": headed(header("(9999999999, 0)")),
    "of no width": headed(header("(999999999999,)", "'<U0'")),
    "larger than it is": headed(header("(7,)"), SIX),
    "smaller than it is": headed(header("(5,)"), SIX),
    "negative": headed(header("(-6,)"), SIX),
    "negative twice": headed(header("(-2, -3)"), SIX),
    "beyond 64 bits": headed(header("(99999999999999999999999,)")),
    "beyond 64 bits, by a product": headed(header("(4294967296, 4294967296)")),
    "fractional": headed(header("(6.0,)"), SIX),
    "true": headed(header("(True,)"), bytes(8)),
    "hexadecimal": headed(header("(0x6,)"), SIX),
    "underscored": headed(header("(6_0,)"), bytes(480)),
    "of Python 2": headed(header("(6L,)"), SIX),
    "three dimensions": headed(header("(1, 2, 3)"), SIX),
    "many dimensions": headed(header(f"({'1, ' * 80})"), bytes(8)),
    "shaped by a list": headed(header("[6]"), SIX),
    "shaped by a number": headed(header("6"), SIX),
    "objects": headed(header("(1,)", "'|O'"), pickle.dumps(np.array([Payload()]))),
    "one object": headed(header("(1,)", "'|O'"), pickle.dumps(Payload())),
    "a pickle": pickle.dumps(Payload()),
    "records": headed(header("(3,)", "[('a', '<f8'), ('b', '<f8')]"), SIX),
    "records of objects": headed(header("(1,)", "[('a', '|O')]"), pickle.dumps(Payload())),
    "records in records": headed(header("(1,)", f"{'[' * 50}('a', '<f8'){']' * 50}"), SIX),
    "arrays in arrays": headed(header("(1,)", "('<f8', (6,))"), SIX),
    "dates": npy(np.zeros(6, dtype="M8[s]")),
    "durations": npy(np.zeros(6, dtype="m8[s]")),
    "complex": npy(np.zeros(6, dtype=complex)),
    "bytes": npy(np.array([b"a", b"b"])),
    "void": npy(np.zeros(6, dtype="V8")),
    "no such type": headed(header("(6,)", "'<f3'"), bytes(18)),
    "a type's name": headed(header("(6,)", "'numpy.matrix'"), SIX),
    "huge width": headed(header("(1,)", "'<U999999999'"), SIX),
    "second version": headed(header("(6,)"), SIX, version=2),
    "third version": headed(header("(6,)"), SIX, version=3),
    "fourth version": headed(header("(6,)"), SIX, version=4),
    "no version": headed(header("(6,)"), SIX, version=0),
    "header longer than it is": headed(header("(6,)"), SIX, length=60_000),
    "header shorter than it is": headed(header("(6,)"), SIX, length=20),
    "no header": headed(header("(6,)"), SIX, length=0),
    "long header": headed(header("(6,)") + " " * 60_000, SIX),
    "code": headed("__import__('os').system('true')", SIX),
    "comprehension": headed("{k: v for k, v in ((1, 2),)}", SIX),
    "deep parentheses": headed("(" * 9000),
    "deep brackets": headed("[" * 199 + "]" * 199),
    "signs": headed("-" * 9000 + "1"),
    "sums": headed("1+" * 4000 + "1"),
    "lines": headed(header("(6,)").replace(", ", ",\n"), SIX),
    "double quotes": headed(header("(6,)").replace("'", '"'), SIX),
    "another key": headed(header("(6,)", tail=", 'x': 1"), SIX),
    "a key twice": headed(header("(6,)", tail=", 'shape': (9999999999,)"), SIX),
    "too few keys": headed("{'descr': '<f8'}", SIX),
    "null byte": headed(header("(6,)") + "\0", SIX),
    "no text": headed(header("(6,)").encode() + b"\xff\xfe", SIX),
    "only the magic": b"\x93NUMPY",
    "wrong magic": npy(np.ones(6)).replace(b"NUMPY", b"NUMPI"),
    "nothing": b"",
    "an archive": archive({"a.npy": npy(np.ones(6))}),
}


@pytest.mark.parametrize(
    "way", [("steps", 0, "mean_"), ("classes",), ("encoder", "numbers"), ("coordinates",)], ids=str
)
def test_arrays_that_are_none(words, refused, way):
    cases = {name: with_array(words, way, content) for name, content in NO_ARRAYS.items()}
    refused(cases, "which is not the array it claims to be: refused.")


def test_arrays_by_columns_are_sound(sound, harmless):
    model, data = sound["words"]
    by_columns = with_array(data, ("coordinates",), npy(np.asfortranarray(model.coordinates)))
    both = with_array(by_columns, ("steps", 1, "components_"), npy(np.asfortranarray(model.map.components_)))
    assert harmless({"coordinates": by_columns, "both": both}) == 2


# Archives


def spoilt(parts, number=0, **attributes):
    """Return an archive in whose list of members one has other attributes than it has."""

    def spoil(file):
        for name, value in attributes.items():
            setattr(file.infolist()[number], name, value)

    return archive(parts, spoil)


def ended(data, directory=None):
    """Return an archive with an end of 64 bits, which may claim that the list of members has another length."""
    members, size, start = struct.unpack("<10xH2L", data[-22:-2])
    wide = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, members, members, directory or size, start)
    return data[:-22] + wide + struct.pack("<4sLQL", b"PK\6\7", 0, len(data) - 22, 1) + data[-22:]


def test_compressed_members(words, refused):
    parts = members(words)
    first = next(iter(parts))
    bomb = parts | {first: npy(np.zeros(10_000_000)), SCHEMA: parts[SCHEMA] + b" " * 100_000_000}
    cases = {
        "deflated": archive(parts, compression=zipfile.ZIP_DEFLATED),
        "bzip2": archive(parts, compression=zipfile.ZIP_BZIP2),
        "lzma": archive(parts, compression=zipfile.ZIP_LZMA),
        "bomb": archive(bomb, compression=zipfile.ZIP_DEFLATED, compresslevel=1),
        "unknown": spoilt(parts, compress_type=99),
        "encrypted": spoilt(parts, flag_bits=1),
        "encrypted schema": spoilt(parts, -1, flag_bits=0x41),
        "patched": spoilt(parts, flag_bits=0x20),
    }
    refused(cases, "holds compressed or encrypted members, which nearkin never writes: refused.")


def test_sizes_and_places_that_lie(words, refused):
    parts = members(words)
    cases = {}
    for size in (0, 1, len(words), 10**6, 2**31, 2**40, 2**63 - 1):
        cases["file", size] = spoilt(parts, file_size=size)
        cases["compressed", size] = spoilt(parts, compress_size=size)
        cases["both", size] = spoilt(parts, file_size=size, compress_size=size)
        cases["schema", size] = spoilt(parts, -1, file_size=size, compress_size=size)
        cases["place", size] = spoilt(parts, 1, header_offset=size)
    refused(cases)


def test_members_that_overlap_or_share_a_name(words, refused):
    parts = members(words)
    twice = [*parts.items(), (SCHEMA, with_schema(words, {}))]
    refused({"overlapping": spoilt(parts, 1, header_offset=0)})
    refused({"schema": archive(twice), "array": archive([*parts.items(), *parts.items()])}, "two members of one name")


def test_members_of_odd_names(words, refused):
    names = ["../evil", "/etc/passwd", "C:\\evil", "folder/", "a\0b", "\x1b[2J\n", "ü" * 9000, "schema.json/", ".", " "]
    parts = members(words)
    refused({name: archive({name: b"", **parts}) for name in names}, ": refused.")
    refused({name: archive({name: npy(np.ones(6)), **parts}) for name in names}, ": refused.")


def test_too_many_members(words, refused):
    parts = members(words)
    many = archive({**parts, **{f"{number}.npy": b"" for number in range(100_000)}})
    cases = {"many": many, "long": ended(words, 2**40), "longest": ended(words, 2**64 - 1)}
    refused(cases, "lists more members than a model has: refused.")
    one = npy(np.ones(1))
    fewer = archive({**parts, **{f"{number}.npy": one for number in range(10_000)}})
    refused({"not named": fewer}, "does not hold just the arrays that it names")


def test_what_else_an_archive_may_claim(words, harmless):
    parts = members(words)
    cases = {
        "needs a newer program": spoilt(parts, extract_version=99),
        "link": spoilt(parts, external_attr=0o120777 << 16),
        "on another disk": spoilt(parts, volume=7),
        "extra": spoilt(parts, extra=b"\1\0\xff\xff"),
        "comment": spoilt(parts, comment=b"x" * 60_000),
        "other sum": spoilt(parts, CRC=1),
        "signature in its name": archive({"PK\5\6" + "\0" * 18: b"", **parts}),
    }
    harmless(cases)


def test_archives_that_are_odd_but_sound(words, harmless):
    cases = {"prepended": b"#!/bin/sh\nexit\n" + words, "end of 64 bits": ended(words), "link": linked("words.skops")}
    assert harmless(cases) == len(cases)


def test_no_archive_of_ours(words, refused, tmp_path):
    np.savez(tmp_path / "table.npz", X=np.ones((3, 2)))
    cases = {
        "appended": words + b"\n",
        "comment": archive(members(words), lambda file: setattr(file, "comment", b"hello")),
        "empty archive": archive({}),
        "no schema": archive({name: data for name, data in members(words).items() if name != SCHEMA}),
        "only an end": words[-22:],
        "npz": (tmp_path / "table.npz").read_bytes(),
        "text": b"a,b\n1,2\n" * 100,
        "empty": b"",
        "nulls": bytes(10_000),
        "end of 64 bits alone": ended(words)[-98:-22],
    }
    refused(cases, FOREIGN)
    refused({"a piece left out": words[:-200] + words[-22:]}, "is damaged")


def linked(target):
    return lambda path: path.symlink_to(target)


def bound(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def sparse(path):
    path.touch()
    os.truncate(path, 2**36)


def test_no_file(refused):
    cases = {
        "nothing": lambda path: None,
        "folder": Path.mkdir,
        "queue": os.mkfifo,
        "socket": bound,
        "much of nothing": sparse,
        "link to nothing": linked("missing"),
        "link to itself": lambda path: path.symlink_to(path.name),
    }
    for device in ("/dev/zero", "/dev/urandom", "/dev/null", "/dev/full", "/dev/tty", "/proc/self/mem", "/proc/kmsg"):
        cases[device] = linked(device)
    refused(cases)
