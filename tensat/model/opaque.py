"""Which opaque nodes may be merged with equal ones, and under which key.

Merging is sound for nodes whose results depend on their inputs alone. That is not so for
random numbers, and not known for operators of other domains and for functions of the model.
Nodes with subgraphs are never merged either: equality of subgraphs is not worth deciding.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping

import onnx
import onnx_ir as ir

from tensat.model.captures import bodies
from tensat.model.graph import OpaqueNode

__all__ = ["opaque_key", "reason_to_keep_apart"]

_RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"}
_RANDOM |= {"RandomUniform", "RandomUniformLike"}


def reason_to_keep_apart(
    node: ir.Node,
    opsets: Mapping[str, int],
    functions: Collection[tuple[str, str, str]],
) -> str:
    """Why the node must never be merged with an equal one; "" if it may be."""
    if node.op_identifier() in functions:
        return "a function of the model"
    if any(True for _ in bodies(node)):
        return "has subgraphs"
    if node.domain == "" and node.op_type in _RANDOM:
        return "random"
    try:
        schema = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return f"not in operator set '{node.domain or 'ai.onnx'}'"
    if getattr(schema, "non_deterministic", False):
        return "not deterministic"
    return ""


def opaque_key(record: OpaqueNode, index: int) -> str:
    """The key of an opaque node: equal for nodes that may be merged, else of its own.

    Args:
        record: The node.
        index: Position of the node in the model.
    """
    if record.unique:
        return f"{record.operator}@{index}"
    content = hashlib.blake2b(digest_size=16)
    node = record.node
    content.update(repr((node.overload, record.arity)).encode())
    content.update(repr([bool(value.name) for value in node.outputs]).encode())
    for name in sorted(node.attributes):
        attribute = ir.serde.serialize_attribute(node.attributes[name])
        attribute.ClearField("doc_string")
        if attribute.HasField("t"):
            attribute.t.ClearField("name")
        data = attribute.SerializeToString()
        content.update(len(data).to_bytes(8, "little"))
        content.update(data)
    return f"{record.operator}#{content.hexdigest()}"
