"""Writing: an onnx_ir Model becomes files, atomically.

onnx_ir and onnx serialize; here a file appears under its name when it is complete, or not
at all, and a second file with weights appears before the one that refers to it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import onnx
import onnx_ir as ir
from google.protobuf.message import EncodeError

from tensat.errors import WriteError, one_line
from tensat.model.onnx_carry import show
from tensat.model.onnx_read import external_tensors
from tensat.model.put_file import is_special, put_file

__all__ = ["to_proto", "write", "write_stream"]

LIMIT = 2**31 - 2**20
"""Most bytes of weights in one ONNX message, a little less than protobuf allows."""

INLINE = 1024
"""Tensors of fewer bytes stay in the model when others go into a file of their own."""


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """The model as a ModelProto; weights are copied.

    Raises:
        WriteError: the model is too large for one message.
    """
    if (size := _weights(model)) > LIMIT:
        raise WriteError(
            f"weights of {size} bytes do not fit into one ONNX message (limit {LIMIT}); "
            "write the model to a file instead"
        )
    return _shown(ir.to_proto(_in_memory(model)))


def write(
    model: ir.Model, path: str | os.PathLike[str], *, external: bool | None = None
) -> None:
    """Write the model to a file, all or nothing.

    Args:
        model: The model.
        path: The file; an existing one is replaced, its permissions stay. To a device or
            pipe everything is written as one stream.
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
    if is_special(target):
        put_file(target, lambda file: write_stream(model, file))
        return
    if external is None:
        external = any(True for _ in external_tensors(model)) or _weights(model) > LIMIT
    try:
        # Beside the target, so that moving a complete file there is one step.
        with tempfile.TemporaryDirectory(prefix=".tensat-", dir=target.parent) as folder:
            _write_into(Path(folder), model, target, external)
    except OSError as error:
        raise WriteError(f"cannot write '{path}': {error.strerror or error}") from error
    except (ValueError, RuntimeError, EncodeError, ir.serde.SerdeError) as error:
        # Weights that cannot be read any more, or too many of them for one message.
        raise WriteError(f"cannot write '{path}': {one_line(_first(error))}") from error


def write_stream(model: ir.Model, file: BinaryIO) -> None:
    """Write the model with all its weights to an open binary file.

    Raises:
        WriteError: the model is too large for one message, or the file takes no more.
    """
    message = to_proto(model).SerializeToString()
    try:
        file.write(message)
        file.flush()
    except OSError as error:
        raise WriteError(f"cannot write the model: {error.strerror or error}") from error


def _write_into(folder: Path, model: ir.Model, target: Path, external: bool) -> None:
    """Write to a folder of ours, then move the files to the target's."""
    location = f"{target.name}.data"
    main = folder / target.name
    if external:
        ir.save(model, main, external_data=location, size_threshold_bytes=INLINE)
        proto = onnx.load(main, load_external_data=False)
        main.write_bytes(_shown(proto).SerializeToString())
    else:
        main.write_bytes(to_proto(model).SerializeToString())
    data = folder / location
    if data.exists():
        data.replace(target.with_name(location))
    if target.exists():
        shutil.copymode(target, main)
    main.replace(target)
    for tensor in external_tensors(model):
        # These bytes were read from the file that has just been replaced.
        if external and os.path.realpath(tensor.path) == str(target.with_name(location)):
            tensor.invalidate()


def _shown(proto: onnx.ModelProto) -> onnx.ModelProto:
    """The model with what onnx_ir could not hold, and without types of stored tensors."""
    stored = {tensor.name for tensor in proto.graph.initializer}
    kept = [value for value in proto.graph.value_info if value.name not in stored]
    proto.graph.ClearField("value_info")
    proto.graph.value_info.extend(kept)
    return show(proto)


def _first(error: BaseException) -> BaseException:
    """The error that others were raised from."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _in_memory(model: ir.Model) -> ir.Model:
    """The model with weights that lie in files of their own as ordinary tensors."""
    if next(iter(external_tensors(model)), None) is None:
        return model
    return ir.external_data.load_to_model(model.clone())


def _weights(model: ir.Model) -> int:
    """Bytes of all initializers."""
    return sum(
        tensor.nbytes for tensor in _tensors(model) if tensor.dtype != ir.DataType.STRING
    )


def _tensors(model: ir.Model) -> Iterator[ir.TensorProtocol]:
    for value in model.graph.initializers.values():
        if value.const_value is not None:
            yield value.const_value
