"""Optimize ONNX models: equality saturation, exact extraction, measured costs.

``tensat.optimize(model)`` does it in one call; the command ``tensat`` does it for files.
``tensat.compare(model)`` shows what TASO's search, greedy and exact extraction find;
``tensat.profile(model)`` predicts and measures what a model takes, kernel by kernel.
"""

from tensat.compare import CompareOptions, compare
from tensat.comparison.row import Comparison, Row
from tensat.errors import (
    ExecutionError,
    InputNotFoundError,
    InternalError,
    ModelError,
    TargetError,
    TensatError,
    UnsoundRuleError,
    UsageError,
    WriteError,
)
from tensat.explanation import Explanation
from tensat.job import versions as _versions
from tensat.optimize import Result
from tensat.options import Options
from tensat.profile import ProfileOptions, profile
from tensat.profiling.result import NodeCost, Profile
from tensat.report import ModelSummary, Report
from tensat.stages import Progress
from tensat.target import runnable
from tensat.taso import TasoGraph, TensorHandle, export_onnx, load_onnx, new_graph, optimize

__all__ = [
    "CompareOptions",
    "Comparison",
    "ExecutionError",
    "Explanation",
    "InputNotFoundError",
    "InternalError",
    "ModelError",
    "ModelSummary",
    "NodeCost",
    "Options",
    "Profile",
    "ProfileOptions",
    "Progress",
    "Report",
    "Result",
    "Row",
    "TargetError",
    "TasoGraph",
    "TensatError",
    "TensorHandle",
    "UnsoundRuleError",
    "UsageError",
    "WriteError",
    "__version__",
    "compare",
    "export_onnx",
    "load_onnx",
    "new_graph",
    "optimize",
    "profile",
    "runnable",
]

__version__ = _versions()["tensat"]
