"""Writing: an onnx_ir Model becomes bytes, atomically.

Weights are streamed one by one, so that a model of half a gigabyte is not copied in memory.
A file appears under its name when it is complete, or not at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir

from tensat.errors import WriteError, one_line
from tensat.onnx_carry import show
from tensat.onnx_read import external_tensors

__all__ = ["to_proto", "write", "write_stream"]

LIMIT = 2**31 - 2**20
"""Most bytes of an ONNX file, a little less than protobuf allows."""

INLINE = 1024
"""Tensors of fewer bytes stay in the model when others go into a file of their own."""

ALIGNMENT = 64
"""Tensors in a file of their own start at multiples of this, for memory mapping."""

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # field numbers in onnx.proto


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as a ModelProto; weights are copied.

    Raises:
        WriteError: the model is too large for one message.
    """
    _check_size(model)
    proto = _skeleton(model)
    for tensor, name in _named(model):
        copy = proto.graph.initializer.add()
        if tensor.dtype == ir.DataType.STRING:
            copy.ParseFromString(_inline(tensor, name).head)
        else:
            copy.CopyFrom(_head(tensor, name))
            copy.raw_data = tensor.tobytes()
    return proto


def write(
    model: ir.Model, path: str | os.PathLike[str], *, external: bool | None = None
) -> None:
    """Write the model to a file, all or nothing.

    Args:
        model: The model.
        path: The file; an existing one is replaced, its permissions stay.
        external: Whether weights go into a second file, named like the first with ``.data``
            at the end. None: when the model has such weights now, or is too large.

    Raises:
        WriteError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise WriteError(f"cannot write '{path}': there is no folder '{target.parent}'")
    if target.is_dir():
        raise WriteError(f"cannot write '{path}': it is a folder")
    if external is None:
        external = any(True for _ in external_tensors(model)) or (_weights(model) > LIMIT)
    try:
        if external:
            _write_external(model, target)
        else:
            with _replacing(target) as file:
                write_stream(model, file)
    except OSError as error:
        raise WriteError(f"cannot write '{path}': {error.strerror or error}") from error
    except (ValueError, RuntimeError) as error:  # weights that cannot be read any more
        raise WriteError(f"cannot write '{path}': {one_line(error)}") from error


def write_stream(model: ir.Model, file: BinaryIO) -> None:
    """Write the model with all its weights to an open binary file.

    Raises:
        WriteError: the model is too large for one message.
    """
    _check_size(model)
    _stream(model, file, [_inline(tensor, name) for tensor, name in _named(model)])


# ------------------------------------------------------------------ the main file
def _skeleton(model: ir.Model) -> onnx.ModelProto:
    """The model without the initializers of its main graph."""
    graph = model.graph
    view = ir.GraphView(
        graph.inputs,
        graph.outputs,
        nodes=graph,
        doc_string=graph.doc_string,
        opset_imports=graph.opset_imports,
        name=graph.name,
        metadata_props=graph.metadata_props,
    )
    proto = onnx.ModelProto()
    ir.serde.serialize_model_into(
        proto,
        ir.Model(
            view,  # type: ignore[arg-type]  # serialization takes either
            ir_version=model.ir_version,
            producer_name=model.producer_name,
            producer_version=model.producer_version,
            domain=model.domain,
            model_version=model.model_version,
            doc_string=model.doc_string,
            functions=tuple(model.functions.values()),
            metadata_props=model.metadata_props,
            device_configurations=model.device_configurations,
        ),
    )
    return show(proto)


def _weights(model: ir.Model) -> int:
    """Bytes of all initializers."""
    return sum(_nbytes(tensor) for tensor, _ in _named(model))


def _check_size(model: ir.Model) -> None:
    if (size := _weights(model)) > LIMIT:
        raise WriteError(
            f"weights of {size} bytes do not fit into one ONNX message (limit {LIMIT}); "
            "write the model to a file instead"
        )


def _named(model: ir.Model) -> Iterator[tuple[ir.TensorProtocol, str]]:
    for name, value in model.graph.initializers.items():
        if value.const_value is not None:
            yield value.const_value, name


def _nbytes(tensor: ir.TensorProtocol) -> int:
    return 0 if tensor.dtype == ir.DataType.STRING else tensor.nbytes


# ------------------------------------------------------------------ tensors as bytes
@dataclass(frozen=True, slots=True)
class _Part:
    """A serialized TensorProto: its fields, then its data, fetched when it is written."""

    head: bytes
    tensor: ir.TensorProtocol | None = None

    @property
    def length(self) -> int:
        return len(self.head) + (0 if self.tensor is None else self.tensor.nbytes)

    def write(self, file: BinaryIO) -> None:
        file.write(self.head)
        if self.tensor is not None:
            _write_data(self.tensor, file)


def _write_data(tensor: ir.TensorProtocol, file: BinaryIO) -> None:
    if isinstance(tensor, ir.ExternalTensor) and tensor.length in (None, tensor.nbytes):
        tensor.tofile(file)  # copied by the system, not through memory
    else:
        file.write(memoryview(tensor.tobytes())[: tensor.nbytes])


def _head(tensor: ir.TensorProtocol, name: str) -> onnx.TensorProto:
    proto = onnx.TensorProto(name=name, data_type=tensor.dtype.value)
    proto.dims.extend(tensor.shape.numpy())
    if tensor.doc_string:
        proto.doc_string = tensor.doc_string
    return proto


def _inline(tensor: ir.TensorProtocol, name: str) -> _Part:
    """The tensor with its data inside the model."""
    proto = _head(tensor, name)
    if tensor.dtype == ir.DataType.STRING:
        proto.string_data.extend(tensor.numpy().ravel().tolist())
        return _Part(proto.SerializeToString())
    head = proto.SerializeToString() + _tag(_RAW_DATA) + _varint(tensor.nbytes)
    return _Part(head, tensor)


def _elsewhere(tensor: ir.TensorProtocol, name: str, location: str, offset: int) -> _Part:
    """The tensor with its data in another file."""
    proto = _head(tensor, name)
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (
        ("location", location),
        ("offset", str(offset)),
        ("length", str(tensor.nbytes)),
    ):
        proto.external_data.add(key=key, value=value)
    return _Part(proto.SerializeToString())


def _stream(model: ir.Model, file: BinaryIO, parts: Sequence[_Part]) -> None:
    """Write the model around its initializers.

    The graph is one message preceded by its length, so the lengths of all tensors are added
    up before any of their bytes is touched.
    """
    proto = _skeleton(model)
    graph = proto.graph.SerializeToString()
    proto.ClearField("graph")
    total = len(graph) + sum(1 + len(_varint(p.length)) + p.length for p in parts)
    file.write(proto.SerializeToString())
    file.write(_tag(_GRAPH) + _varint(total) + graph)
    for part in parts:
        file.write(_tag(_INITIALIZER) + _varint(part.length))
        part.write(file)


def _tag(field: int) -> bytes:
    """The key of a field whose value has a length."""
    return bytes([field << 3 | 2])


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)


# ------------------------------------------------------------------ files
def _write_external(model: ir.Model, target: Path) -> None:
    location = f"{target.name}.data"
    parts = []
    with _replacing(target) as file, _replacing(target.with_name(location)) as data:
        for tensor, name in _named(model):
            if _nbytes(tensor) < INLINE:
                parts.append(_inline(tensor, name))
                continue
            data.write(bytes(-data.tell() % ALIGNMENT))
            parts.append(_elsewhere(tensor, name, location, data.tell()))
            _write_data(tensor, data)
        _stream(model, file, parts)
    for external in external_tensors(model):
        # These bytes were read from the file that has just been replaced.
        if os.path.realpath(external.path) == str(target.with_name(location)):
            external.invalidate()


@contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A temporary file beside the target, which takes its place if all goes well."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
        if target.exists():
            shutil.copymode(target, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
