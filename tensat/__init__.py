"""Optimize ONNX models: equality saturation, exact extraction, measured costs.

``tensat.optimize(model)`` does it in one call; the command ``tensat`` does it for files.
"""

from tensat.errors import (
    ExecutionError,
    InternalError,
    ModelError,
    TensatError,
    UnsoundRuleError,
    UsageError,
    WriteError,
)
from tensat.optimize import Result, optimize
from tensat.options import Options
from tensat.report import ModelSummary, Report
from tensat.stages import Progress

__all__ = [
    "ExecutionError",
    "InternalError",
    "ModelError",
    "ModelSummary",
    "Options",
    "Progress",
    "Report",
    "Result",
    "TensatError",
    "UnsoundRuleError",
    "UsageError",
    "WriteError",
    "optimize",
]
