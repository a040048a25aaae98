"""Reading: a path, a ModelProto or an onnx_ir Model becomes a checked onnx_ir Model.

Weights in files of their own stay there (they are mapped into memory when looked at). Every
fault of a file is a ``ModelError`` of one line that names the file and what is wrong.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir

from tensat.errors import ModelError, UsageError, one_line
from tensat.model.embedded_data import check_embedded_data
from tensat.model.onnx_carry import hide

__all__ = ["ModelLike", "read"]

type ModelLike = str | os.PathLike[str] | bytes | onnx.ModelProto | ir.Model


def read(model: ModelLike) -> ir.Model:
    """The model, ready for ``to_graph``.

    Args:
        model: Path of an ONNX file, its content, or a model in memory. A model in memory
            is not changed and shares its tensors with the result.

    Raises:
        ModelError: there is no such file, it is no ONNX model, or data of a tensor is
            missing, in the file or in others.
        UsageError: the argument is something else.
    """
    if isinstance(model, ir.Model):
        return model
    if isinstance(model, onnx.ModelProto):
        return _from_proto(hide(model, own=False), "the model", "")
    if isinstance(model, bytes):
        return _from_proto(hide(_parse(model), own=True), "the model", "")
    if isinstance(model, str | os.PathLike):
        path = Path(model)
        proto = hide(_load(path), own=True)
        return _from_proto(proto, f"'{path}'", str(path.parent))
    raise UsageError(
        f"a model is a path, bytes, an onnx.ModelProto or an onnx_ir.Model, "
        f"not {type(model).__name__}"
    )


def _load(path: Path) -> onnx.ModelProto:
    if not path.exists():
        folder = path.parent
        what = "file" if folder.is_dir() else f"folder '{folder}' for file"
        raise ModelError(f"cannot read '{path}': no such {what}")
    if not path.is_file():
        raise ModelError(f"cannot read '{path}': it is no file")
    try:
        if path.stat().st_size == 0:
            raise ModelError(f"cannot read '{path}': the file is empty")
        return onnx.load(str(path), load_external_data=False)
    except OSError as error:
        raise ModelError(f"cannot read '{path}': {error.strerror or error}") from error
    except ModelError:
        raise
    except Exception as error:  # each parser of protobuf has errors of its own
        raise ModelError(
            f"cannot read '{path}': it is no ONNX model, or cut off ({one_line(error)})"
        ) from error


def _parse(data: bytes) -> onnx.ModelProto:
    if not data:
        raise ModelError("cannot read the model: it is empty")
    try:
        return onnx.load_model_from_string(data)
    except Exception as error:  # protobuf has an error of its own for each implementation
        raise ModelError(
            f"cannot read the model: it is no ONNX model, or cut off ({one_line(error)})"
        ) from error


def _from_proto(proto: onnx.ModelProto, what: str, folder: str) -> ir.Model:
    if not proto.HasField("graph"):
        raise ModelError(f"{what} is no ONNX model: it has no graph")
    if not proto.ir_version or (proto.ir_version >= 3 and not proto.opset_import):
        raise ModelError(f"{what} is no ONNX model: it names no version of ONNX")
    check_embedded_data(proto, what)
    try:
        with _quiet():
            model = ir.serde.deserialize_model(proto)
    except Exception as error:  # whatever the model provokes
        raise ModelError(f"{what} is invalid: {one_line(_root(error))}") from error
    _attach_external_data(model, what, folder)
    return model


def _attach_external_data(model: ir.Model, what: str, folder: str) -> None:
    """Bind external tensors to the folder of the model and see that their bytes exist."""
    sizes: dict[str, int] = {}
    for tensor in external_tensors(model):
        tensor.base_dir = folder
        path = tensor.path
        if path not in sizes:
            sizes[path] = os.path.getsize(path) if os.path.isfile(path) else -1
        if sizes[path] < 0:
            raise ModelError(
                f"{what}: the data of tensor '{tensor.name}' should be in '{path}', "
                "which does not exist"
            )
        length = tensor.length or tensor.nbytes
        if length < tensor.nbytes:
            raise ModelError(
                f"{what}: tensor '{tensor.name}' needs {tensor.nbytes} bytes of data, "
                f"but its data in '{path}' has {length}"
            )
        end = (tensor.offset or 0) + length
        if end > sizes[path]:
            raise ModelError(
                f"{what}: the data of tensor '{tensor.name}' should end at byte {end} of "
                f"'{path}', which has {sizes[path]}"
            )


def external_tensors(model: ir.Model) -> Iterator[ir.ExternalTensor]:
    """Tensors of the main graph and its subgraphs whose data is in other files."""
    for graph in model.graphs():
        for value in graph.initializers.values():
            if isinstance(value.const_value, ir.ExternalTensor):
                yield value.const_value
        for node in graph:
            for attribute in node.attributes.values():
                if attribute.type == ir.AttributeType.TENSOR:
                    if isinstance(attribute.value, ir.ExternalTensor):
                        yield attribute.value
                elif attribute.type == ir.AttributeType.TENSORS:
                    yield from (
                        t
                        for t in attribute.as_tensors()
                        if isinstance(t, ir.ExternalTensor)
                    )


def _root(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error


@contextmanager
def _quiet() -> Iterator[None]:
    """Without onnx_ir's warnings: what they announce is found, and raised, later."""
    logger = logging.getLogger("onnx_ir.serde")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
