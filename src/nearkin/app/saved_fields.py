"""What a saved file may hold: the type, range and shape of each header field and each array.

Anybody may have written a file, and NumPy and SciPy trust what they are given: a file is checked
against these declarations before its contents are used.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from .._messages import quoted
from ..tables import (
    CYCLES,
    DECIMAL_MARKS,
    EITHER,
    FORMS,
    LAYOUTS,
    PLAIN,
    SEPARATORS,
    Encodings,
    Mixture,
    TableEncoder,
    features_of,
)
from ..vectors import EXPECTED, QUANTIZERS, SIDES

# How many there are of what several fields count, by name. A name such as ".values" counts within
# the object that holds the field; "2" is a number.
Sizes = dict[str, int]
MOST = {False: np.finfo(np.float64).max.item(), True: np.iinfo(np.int64).max}  # whole numbers: True
MOST_EDGES = 1024  # of the bins of a column
MOST_WEIGHT = 100  # of an n-gram: 1 plus the logarithm of a number of texts
# The square of a larger number overflows. In double precision: arrays may be float32.
SQUARED = np.float64(1e150)
ROUNDING = 1e-6
SHARES: dict[str, Any] = {"low": 0, "high": 1 + ROUNDING}  # sums may be a little above 1


# What a field may hold: returns the value of the field with this name, if it may have it, and
# otherwise raises a ValueError that names both.
Declaration = Callable[[Any, str, Sizes], Any]


def refuse(name: str, value: Any, expected: str) -> None:
    """Raise a ValueError for a field."""
    raise ValueError(f"{name} is {reprlib.repr(value)}, not {expected}")


def require_size(size: str, count: int, name: str, sizes: Sizes) -> None:
    """Raise a ValueError if a field counts something differently than the fields before it."""
    size = name.rpartition(".")[0] + size if size.startswith(".") else size
    known = int(size) if size.isdigit() else sizes.setdefault(size, count)
    if count != known:
        what = "items" if size.isdigit() else size.rpartition(".")[2]
        raise ValueError(f"{name} has {count} {what}, not {known}")


@dataclass(frozen=True)
class Text:
    """Valid Unicode, perhaps one of some choices."""

    choices: Collection[str] = ()

    def __call__(self, value: Any, name: str, sizes: Sizes) -> str:
        """Return the text."""
        is_text = type(value) is str and value.encode(errors="replace").decode() == value
        if not is_text or (self.choices and value not in self.choices):
            refuse(name, value, f"one of {quoted(self.choices)}" if self.choices else "text")
        return value


def flag(value: Any, name: str, sizes: Sizes) -> bool:
    """Return a truth value."""
    if type(value) is not bool:
        refuse(name, value, "true or false")
    return value


@dataclass(frozen=True)
class Range:
    """Finite numbers from `low` to `high`, which may be sizes; only whole or positive ones."""

    low: float | str | None = None
    high: float | str | None = None
    whole: bool = False
    positive: bool = False

    def ends(self, name: str, sizes: Sizes) -> tuple[float, float]:
        """Return the lowest and the highest number."""

        def end(given: float | str | None, otherwise: float) -> float:
            if isinstance(given, str):
                return sizes[name.rpartition(".")[0] + given if given.startswith(".") else given]
            return otherwise if given is None else given

        return end(self.low, -MOST[self.whole]), end(self.high, MOST[self.whole])


@dataclass(frozen=True)
class Number(Range):
    """A number; one that need not be `finite` may also be infinite or NaN."""

    finite: bool = True

    def __call__(self, value: Any, name: str, sizes: Sizes) -> float:
        """Return the number."""
        low, high = self.ends(name, sizes)
        valid = type(value) is int or (type(value) is float and not self.whole)
        if valid and (self.finite or np.isfinite(value)):
            valid = low <= value <= high and (value > 0 or not self.positive)
        if not valid:
            refuse(name, value, f"a number from {low:g} to {high:g}")
        return value


Whole = partial(Number, whole=True)


@dataclass(frozen=True)
class Items:
    """A list, perhaps in strictly ascending order."""

    item: Declaration
    size: str = ""
    least: int = 0
    most: float = np.inf
    ascending: bool = False

    def __call__(self, value: Any, name: str, sizes: Sizes) -> list[Any]:
        """Return the list."""
        if type(value) is not list or not self.least <= len(value) <= self.most:
            most = f" and at most {self.most}" * (self.most < np.inf)
            refuse(name, value, f"a list of at least {self.least}{most} items")
        items = [self.item(one, f"{name}[{at}]", sizes) for at, one in enumerate(value)]
        if self.ascending and not all(one < other for one, other in pairwise(items)):
            refuse(name, value, "in ascending order, without repetition")
        if self.size:
            require_size(self.size, len(items), name, sizes)
        return items


@dataclass(frozen=True)
class Fields:
    """An object with these fields, and no others."""

    required: Mapping[str, Declaration]
    optional: Mapping[str, Declaration] = field(default_factory=dict)

    def __call__(self, value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
        """Return the object."""
        declared, start = {**self.required, **self.optional}, f"{name}." * bool(name)
        if type(value) is not dict:
            refuse(name or "the header", value, "an object with fields")
        if lacking := [one for one in self.required if one not in value]:
            raise ValueError(f"{start}{lacking[0]} is missing")
        if strange := [one for one in value if one not in declared]:
            raise ValueError(f"{start}{strange[0]} is not a field of such a file")
        return {
            one: declaration(value[one], start + one, sizes)
            for one, declaration in declared.items()
            if one in value
        }


@dataclass(frozen=True)
class OrNull:
    """A field that may lack a value."""

    of: Declaration

    def __call__(self, value: Any, name: str, sizes: Sizes) -> Any:
        """Return the value."""
        return None if value is None else self.of(value, name, sizes)


@dataclass(frozen=True)
class Array(Range):
    """An array of finite numbers.

    Attributes
    ----------
    shape : str
        A size for each axis, "*" for any.
    least : int
        Of the length of each axis.
    index_of : str
        The size of what the numbers count, from 0, if they do.
    gaps : bool
        Whether numbers may be NaN.
    sparse : bool
        Whether it may be a CSR array, with as many columns as there are features.
    """

    shape: str = "*"
    least: int = 1
    index_of: str = ""
    gaps: bool = False
    sparse: bool = False

    def __call__(self, value: Any, name: str, sizes: Sizes) -> Any:
        """Return the array, assembled if it is sparse."""
        if isinstance(value, dict):
            return self._csr(value, name, sizes)
        if self.index_of:
            last = sizes[self.index_of] - 1
            plain = replace(self, index_of="", low=0, high=last, whole=True)
            return plain(value, name, sizes)
        kinds = ("int64", "int32") if self.whole else ("float64", "float32")
        if value.dtype.name not in kinds:
            refuse(f"{name}.dtype", value.dtype.name, " or ".join(kinds))
        axes = self.shape.split()
        if value.ndim != len(axes) or min(value.shape) < self.least:
            refuse(f"{name}.shape", value.shape, f"({', '.join(axes)})")
        for size, count in zip(axes, value.shape, strict=True):
            if size != "*":
                require_size(size, count, name, sizes)
        low, high = self.ends(name, sizes)
        valid = np.isfinite(value)
        if self.positive or self.low is not None:
            valid &= (value > 0) if self.positive else (value >= low)
        if self.high is not None:
            valid &= value <= high
        if self.gaps:
            valid |= np.isnan(value)
        if not valid.all():
            refuse(f"a number of {name}", value[~valid][0].item(), "in its range")
        return value

    def _csr(self, parts: dict[str, Any], name: str, sizes: Sizes) -> csr_array:
        """Return a sparse array: with other parts than these, SciPy reads beyond its memory."""
        if not self.sparse:
            raise ValueError(f"{name} is sparse, but has to be dense")
        stored = Array(shape="stored", least=0)
        own = {"features": sizes["features"]}
        data = stored(parts["data"], f"{name}.data", own)
        indices = replace(stored, index_of="features")(parts["indices"], f"{name}.indices", own)
        ends = Array(low=0, high="stored", whole=True)
        indptr = ends(parts["indptr"], f"{name}.indptr", own)
        if indptr[0] or indptr[-1] != own["stored"] or (np.diff(indptr) < 0).any():
            raise ValueError(f"{name}.indptr does not ascend from 0 to {own['stored']}")
        require_size(self.shape.split()[0], len(indptr) - 1, name, sizes)
        array = csr_array((data, indices, indptr), shape=(len(indptr) - 1, own["features"]))
        array.check_format(full_check=True)
        return array


@dataclass(frozen=True)
class Rows:
    """An array with a declaration for each row."""

    rows: tuple[Array, ...]

    def __call__(self, value: Any, name: str, sizes: Sizes) -> np.ndarray:
        """Return the array."""
        if value.ndim != 2 or len(value) != len(self.rows):
            refuse(f"{name}.shape", value.shape, f"({len(self.rows)}, *)")
        for at, row in enumerate(self.rows):
            row(value[at], f"{name}[{at}]", sizes)
        return value


TEXT, TEXTS = Text(), Items(Text())
NONE = Fields({})


def has(value: Any, name: str) -> bool:
    """Return whether a value is an object with this field."""
    return type(value) is dict and name in value


# The columns of a table, see `TableEncoder.to_dict`.

NAMED: dict[str, Declaration] = {"kind": TEXT, "name": TEXT}
CATEGORY = NAMED | {"values": Items(TEXT, ".values", 1, ascending=True), "missing": flag}
# of which models of format 9 say nothing
WORDS: dict[str, Declaration] = {"words": Items(TEXT, ascending=True)}
NGRAMS = Fields(
    {
        "terms": Items(TEXT, ".terms", 1, ascending=True),
        "idf": Items(Number(0, MOST_WEIGHT), ".terms"),
        "components": Items(Items(Number(-1, 1), ".width", 1), ".terms"),
    }
)
COLUMNS = {
    "number": Fields(
        NAMED | {"decimal": Text((*DECIMAL_MARKS, EITHER)), "unit": TEXT, "plain": flag},
        {"form": Text((PLAIN, *FORMS))} | WORDS,
    ),
    "date": Fields(NAMED | {"layout": Text(LAYOUTS), "cycles": Items(Text(CYCLES))}, WORDS),
    "category": Fields(CATEGORY),
    "text": Fields(CATEGORY | {"values": Items(TEXT, ascending=True), "ngrams": OrNull(NGRAMS)}),
    "list": Fields(
        NAMED | {"items": Items(TEXT, least=1, ascending=True), "separator": Text(SEPARATORS)}
    ),
    "frequency": Fields(
        CATEGORY | {"shares": Items(Number(0, 1), ".values"), "missing_share": Number(0, 1)}
    ),
}


def column(value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
    """Return the state of a column of any kind."""
    kind = value["kind"] if has(value, "kind") else None
    declared = COLUMNS[kind] if kind in [*COLUMNS] else Fields({"kind": Text(COLUMNS)})
    return declared(value, name, sizes)


@dataclass(frozen=True)
class Encoder(Fields):
    """The state of an encoder, which says how many features there are."""

    def __call__(self, value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
        """Return the state, and set its sizes."""
        state = super().__call__(value, name, sizes)
        encoder = TableEncoder.from_dict(state)
        features = features_of(encoder)
        sizes["columns"], sizes["features"] = len(encoder.columns_), len(features)
        sizes["numbers"] = sum(feature.is_number for feature in features)
        return state


ENCODER = Encoder(
    {
        "parameters": Fields(
            {"missing": Text(("keep",))},
            {
                "missing_values": OrNull(TEXTS),
                "max_categories": Whole(1),
                "decimal": Text(DECIMAL_MARKS),
                "drop_identifiers": flag,
                "strict": flag,
            },
        ),
        "names": Items(TEXT, ".names", 1),
        "n_features": Whole(".names", ".names"),
        "numbers": TEXTS,
        "columns": Items(column),
        "indicated": Items(TEXT, "0"),  # the model has them instead
        "medians": Items(TEXT, "0"),
    }
)


def labels(value: Any, name: str, sizes: Sizes) -> list[Any]:
    """Return the labels of classes, which have the type of the first one."""
    first = value[0] if type(value) is list and value else ""
    unsigned = np.iinfo(np.uint64).max  # labels may be
    items: dict[type, Declaration] = {int: Whole(high=unsigned), bool: flag}
    item = items.get(type(first), TEXT)
    return Items(item, "classes", 2, ascending=True)(value, name, sizes)


# The predictor for tables, see `NCAClassifier.to_arrays`.

VOTE = Fields({"temperature": Number(positive=True), "distance": Text(("squared", "plain"))})
LINES = Fields({"spread": Number(positive=True), "ridge": Number(positive=True)})


def predictor(value: Any, name: str, sizes: Sizes) -> dict[str, Any]:
    """Return local lines, which predict numbers, or a vote."""
    is_line = has(value, "ridge") and "classes" not in sizes
    return (LINES if is_line else VOTE)(value, name, sizes)


def of_scores(value: Any, name: str, sizes: Sizes) -> bool:
    """Return whether normal scores are predicted; those of classes are not."""
    if flag(value, name, sizes) and "classes" in sizes:
        refuse(name, value, "false for classes")
    return value


def prior(value: Any, name: str, sizes: Sizes) -> float | None:
    """Return the weight of a mixture against equal rows, which classes do not have."""
    if value is not None and "classes" in sizes:
        refuse(name, value, "null for classes")
    return OrNull(Number(positive=True))(value, name, sizes)


EXPERT = Fields(
    {
        "predictor": predictor,
        "axes": Items(Whole(0, "coordinates"), "2", ascending=True),
        "share": Number(high=1 + ROUNDING, positive=True),
    },
    {"of_scores": of_scores},
)
EXPERTS = Fields({"experts": Items(EXPERT, least=1)}, {"prior": prior})
BINS = Fields(
    {
        "edges": Items(Items(Number(), most=MOST_EDGES, ascending=True), "numbers"),
        "missing": Items(flag, "numbers"),
        "medians": Items(Number(), "numbers"),
    }
)
ENCODING = Fields(
    {
        "n_bins": Whole(1),
        "bins": OrNull(BINS),
        "centre": Items(Number()),
        "rate": Items(Number(0)),
        "mean": Items(Number()),
        "scale": Items(Number(0)),
    }
)
ENCODINGS = Fields({"encodings": Items(ENCODING, least=1)})


# The arrays of the steps of a model, see `tables.model`, by one that each has.

LINEAR_MAP = {
    "components": Array(shape="coordinates inputs", low=-SQUARED, high=SQUARED),
    "spectrum": Array(least=0),
    "offset": Array(shape="coordinates"),
}
STEPS = {
    "scale": Fields(
        {"scale": Array(shape="features", positive=True)}, {"mean": Array(shape="features")}
    ),
    "fill": Fields(
        {"fill": Array(shape="features")}, {"indicated": Array(least=0, index_of="features")}
    ),
    "components": Fields(LINEAR_MAP),
    # see `TDL.to_arrays`
    "rule.sources": Fields(
        {
            "rule.sources": Array(shape="nodes coordinates"),
            "rule.values": Array(shape="coordinates"),
            "rule.constant": Array(shape="coordinates"),
            "graph.rows": Array(shape="nodes inputs", sparse=True),
            "spectrum": Array(least=0),
        },
        {"graph.origin": Array(shape="inputs")},  # of dense rows
    ),
}
MAPS = {"components", "rule.sources"}
GRAPH = Fields(
    {"n_neighbors": Whole(1, "nodes"), "bandwidth": Number(positive=True), "normalized": flag}
)
# what steps have besides, by name; encodings of sparse rows have nothing
STATES = {"graph": GRAPH, Encodings.saved_as: ENCODINGS, Mixture.saved_as: EXPERTS}


def model_arrays(header: dict[str, Any], arrays: dict[str, Any]) -> Fields:
    """Return what the arrays of a model may hold, see `model_fields`."""
    is_regression = header.get("task") == "regression"
    required: dict[str, Declaration] = {
        "rows": Array(shape="voters", low=0, whole=True),
        "answers": Array(shape="voters", index_of="" if is_regression else "classes"),
        "voters": Array(shape="voters coordinates", sparse=MAPS.isdisjoint(arrays)),
    }
    optional = dict[str, Declaration]()
    if header.get(Mixture.saved_as):  # see `NCAClassifier.to_arrays`
        votes = {"shape": "held_out"} if is_regression else {"shape": "held_out classes"} | SHARES
        required |= LINEAR_MAP | {
            "effects": Array(shape="columns", low=0),
            "held_out_places": Array(shape="held_out", least=2, index_of="voters"),
            "held_out_votes": Array(**votes),
            "held_out_weights": Array(shape="held_out", positive=True),
            "held_out_folds": Array(shape="held_out", index_of="held_out"),
            "held_out_cells": Array(shape="held_out features", gaps=True, sparse=True),
        }
        optional["offset"] = required.pop("offset")  # of sparse rows
        optional["class_weights"] = Array(shape="classes", positive=True)
    else:
        found = {*arrays, *["rule.sources"] * bool(header.get("graph"))}
        for step in [step for name, step in STEPS.items() if name in found]:
            required, optional = {**required, **step.required}, {**optional, **step.optional}
    if header.get("group"):
        required["groups"] = Array(whole=True)
    return Fields(required, optional)


def model_fields(header: dict[str, Any], arrays: dict[str, Any]) -> Fields:
    """Return what a model may hold, according to which fields it has.

    First come those that say how many features, classes and voters there are.
    """
    from ..comparison import SCORES  # which adapters do not need

    task = "regression" if header.get("task") == "regression" else "classification"
    required: dict[str, Declaration] = {
        "format": Whole(1),
        "task": Text(SCORES),
        "columns": ENCODER,
        "classes": Items(TEXT, "0") if task == "regression" else labels,
        "arrays": model_arrays(header, arrays),
        "score": Text(SCORES[task]),
        "method": TEXT,
        "prefix": TEXT,
        "n_neighbors": Whole(1, "voters"),
        "soft": flag,
        "n_rows": Whole("voters"),
        "target": TEXT,
        "table": TEXT,
        "held_out": Fields(
            {"score": Number(), "raw": Number(), "folds": Number(1)},
            {"low": Number(), "high": Number(), "p_value": Number(0, 1)},
        ),
        "version": TEXT,
    }
    optional: dict[str, Declaration] = {"group": TEXT, "doubts": TEXTS}
    is_predictor = bool(header.get(Mixture.saved_as))
    for name, state in STATES.items():
        of_others = (name == "graph") == is_predictor
        optional[name] = NONE if of_others or not header.get(name) else state
    return Fields(required, optional)


# Adapters, see `EmbeddingAdapter.to_arrays` and `MatchRule.to_arrays`.

ADAPTER = Fields(
    {
        "name": TEXT,
        "column": TEXT,
        "columns": Items(TEXT, "dimensions"),
        "score": TEXT,
        "part": TEXT,
        "held_out": Fields(
            {
                "adapter": Number(),
                "raw": Number(),
                "n_queries": Number(0),
                # of too few queries there is no interval
                "low": Number(finite=False),
                "high": Number(finite=False),
                "p_value": Number(0, 1, finite=False),
            }
        ),
        "table": TEXT,
        "version": TEXT,
        "side": Text(("both", *SIDES)),
        "quantize": OrNull(Text(QUANTIZERS)),
    },
    {"unanswerable": Number(0, 1), "expect": Text(EXPECTED), "baseline": TEXT},
)
MAP = {
    "components": Array(shape="coordinates dimensions"),
    "bias": Array(shape="coordinates"),
    "scale": Array(shape="1", positive=True),
}
SHARE, SHARE_OR_NONE = Array(**SHARES), Array(**SHARES, gaps=True)
RULE: dict[str, Declaration] = {
    "coefficients": Array(shape="coefficients"),
    "logistic": Array(shape="2"),
    "knots": Rows((SHARE, SHARE)),
    # thresholds, expected, bound, recall, false answers
    "curve": Rows((Array(), SHARE_OR_NONE, SHARE, SHARE_OR_NONE, SHARE_OR_NONE)),
    "n_queries": Array(shape="1", low=0, whole=True),
}
# of which files up to version 0.3 say nothing
LATER: dict[str, Declaration] = {
    "recall_interval": Rows((SHARE_OR_NONE, SHARE_OR_NONE)),
    "n_candidates": Array(shape="1", low=0, whole=True),
}
RULES = ("pair_rules", "list_rules")


def adapter_fields(arrays: dict[str, Any]) -> Fields:
    """Return what an adapter with these arrays may hold."""
    parts = {name.rpartition("/")[0] for name in arrays if name.startswith(RULES)}
    if parts:  # neither a file of format 1 nor a map of `nearkin migrate`
        parts |= {f"{kind}/" for kind in RULES}  # for all queries
    rules = {f"{part}/{name}": array for part in parts for name, array in RULE.items()}
    later = {f"{part}/{name}": array for part in parts for name, array in LATER.items()}
    return Fields(
        {"format": Whole(1), "arrays": Fields({**MAP, **rules}, later), "adapter": ADAPTER}
    )
