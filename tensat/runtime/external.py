"""Initializers of small models whose values the runtime's process makes itself."""

from __future__ import annotations

from onnx import TensorProto

from tensat.runtime.messages import Filling


def external(filling: Filling) -> TensorProto:
    """Return an initializer whose values come from outside the model."""
    result = TensorProto(
        name=filling.name,
        data_type=filling.onnx_type,
        dims=filling.dims,
        data_location=TensorProto.EXTERNAL,
    )
    result.external_data.add(key="location", value="made in the runtime's process")
    return result
