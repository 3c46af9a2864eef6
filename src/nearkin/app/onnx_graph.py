"""The map of an adapter as a graph of ONNX."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .. import __version__
from ..estimators.quantization import LARGEST
from .adapter_file import SavedAdapter

# Of 2020: a runtime reads what is older than itself, and nothing here is newer.
OPSET, IR_VERSION = 13, 7
INPUT, OUTPUT = "embeddings", "vectors"
KINDS: dict[str | None, type] = {None: np.float32, "int8": np.int8, "binary": np.uint8}


def onnx_bytes(adapter: SavedAdapter) -> bytes:
    """Return a checked model: float32 (n, p) "embeddings" to "vectors", float32 or codes, as by `transform`."""
    import onnx

    graph = _Graph()
    Z = graph.unit_rows(graph.affine(graph.unit_rows(INPUT), *_whole_bytes(adapter)))
    codes = {"int8": _int8, "binary": _binary}.get(adapter.header.quantize or "")
    last = codes(graph, Z, adapter) if codes else Z
    graph.add("Identity", last, name=OUTPUT)
    model = graph.model(adapter)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """Nodes in the order of their computation, each named by what it gives."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, kind: str, *inputs: str | np.ndarray | np.generic, name: str | None = None, **attributes: Any) -> str:
        """Add a node of names and constants, and return the name of what it gives."""
        from onnx import helper

        name = name or f"{kind.lower()}_{len(self._nodes)}"
        names = [self._named(value, f"{name}_{place}") for place, value in enumerate(inputs)]
        self._nodes.append(helper.make_node(kind, names, [name], name=name, **attributes))
        return name

    def _named(self, value: str | np.ndarray | np.generic, name: str) -> str:
        if isinstance(value, str):
            return value
        from onnx import numpy_helper

        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def unit_rows(self, rows: str) -> str:
        """Scale rows to unit length; a row of zeros stays, of which runtimes make NaN in their LpNormalization."""
        lengths = self.add("ReduceL2", rows, axes=[1], keepdims=1)
        is_zero = self.add("Equal", lengths, np.float32(0))
        return self.add("Div", rows, self.add("Where", is_zero, np.float32(1), lengths))

    def cast(self, values: str, kind: type) -> str:
        """Turn numbers into others, without rounding."""
        return self.add("Cast", values, to=_number(kind))

    def affine(self, rows: str, A: np.ndarray, b: np.ndarray) -> str:
        """Return A x + b of rows x."""
        return self.add("Gemm", rows, A, b, transB=1)

    def model(self, adapter: SavedAdapter) -> Any:
        """Return the graph as a model."""
        from onnx import helper

        header = adapter.header
        kind, width = KINDS[header.quantize], adapter.bytes if header.quantize == "binary" else adapter.n_components
        given = helper.make_tensor_value_info(INPUT, _number(np.float32), ["n", adapter.n_features])
        gives = helper.make_tensor_value_info(OUTPUT, _number(kind), ["n", width])
        model = helper.make_model(
            helper.make_graph(self._nodes, "adapter", [given], [gives], self._constants),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="nearkin",
            producer_version=__version__,
        )
        facts = {"name": header.name, "side": header.side, "codes": header.quantize, "scale": adapter.scale}
        helper.set_model_props(model, {"nearkin": json.dumps(facts)})
        return model


def _number(kind: type) -> int:
    """Return the number that stands for a type of NumPy."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(kind)))


def _whole_bytes(adapter: SavedAdapter) -> tuple[np.ndarray, np.ndarray]:
    """Return the map; for bits with coordinates that are always 0 up to a multiple of eight."""
    A, b = adapter.components, adapter.bias
    more = -len(A) % 8 if adapter.header.quantize == "binary" else 0
    return np.pad(A, ((0, more), (0, 0))), np.pad(b, (0, more))


def _int8(graph: _Graph, Z: str, adapter: SavedAdapter) -> str:
    """Return coordinates times 127 / scale, rounded half to even, clipped, as int8."""
    rounded = graph.add("Round", graph.add("Mul", Z, np.float32(LARGEST / adapter.scale)))
    clipped = graph.add("Clip", rounded, np.float32(-LARGEST), np.float32(LARGEST))
    return graph.cast(clipped, np.int8)


def _binary(graph: _Graph, Z: str, adapter: SavedAdapter) -> str:
    """Return signs, eight a byte, the first the highest bit: as sums of powers of two, which are exact."""
    bits = graph.cast(graph.add("Greater", Z, np.float32(0)), np.float32)
    places = np.kron(np.eye(adapter.bytes), 2.0 ** np.arange(7, -1, -1)[:, None]).astype(np.float32)
    return graph.cast(graph.add("MatMul", bits, places), np.uint8)
