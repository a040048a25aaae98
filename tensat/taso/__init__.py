"""The interface of TASO (SOSP 2019) on our optimizer: same names, same parameters.

Reading order: `search` (the functions), `graph` (the graph object), `operators_compute` and
`operators_move` (its methods), `model_builder` (the ONNX model behind it).
"""

from tensat.taso.graph import TasoGraph
from tensat.taso.handle import TensorHandle
from tensat.taso.search import export_onnx, load_onnx, new_graph, optimize

__all__ = [
    "TasoGraph",
    "TensorHandle",
    "export_onnx",
    "load_onnx",
    "new_graph",
    "optimize",
]
