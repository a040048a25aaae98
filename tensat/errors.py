"""The errors of tensat: every text is one line that says what was asked and what was found.

    TensatError
    ├── ModelError     the model cannot be read, or is no valid ONNX model
    │   ├── InputNotFoundError  an operator is given a tensor that its graph does not have
    │   └── TargetError    the model is for another machine, and nothing else is there
    ├── UsageError     an argument or option makes no sense (also a ValueError)
    ├── WriteError     the result cannot be written
    ├── ExecutionError the runtime refused a model, crashed on it or did not end in time
    ├── UnsoundRuleError  a rewrite rule equated two tensors of different type
    └── InternalError  a bug of ours: a graph that we built cannot be written as ONNX

The command line turns ``ModelError`` and ``WriteError`` into exit status 3, ``UsageError``
into 2.
"""

from __future__ import annotations

__all__ = [
    "ExecutionError",
    "InputNotFoundError",
    "InternalError",
    "ModelError",
    "TargetError",
    "TensatError",
    "UnsoundRuleError",
    "UsageError",
    "WriteError",
    "one_line",
]


class TensatError(Exception):
    """Base of all errors that this package raises on purpose."""


class ModelError(TensatError):
    """A model cannot be read or is invalid; the text says what and where."""


class InputNotFoundError(ModelError):
    """An operator is given something that is no tensor of its graph."""


class TargetError(ModelError):
    """A model is for another machine and its portable form is missing."""


class UsageError(TensatError, ValueError):
    """An argument or an option makes no sense; the text lists what is possible."""


class WriteError(TensatError):
    """A result cannot be written; nothing half-written is left behind."""


class ExecutionError(TensatError):
    """The runtime refused a model, crashed on it or did not end in time."""


class UnsoundRuleError(TensatError):
    """A rewrite rule made equal what is not: two tensors of different type met."""


class InternalError(TensatError):
    """A bug of ours: a graph that we built ourselves is not one that we can write."""


def one_line(text: object, limit: int = 300) -> str:
    """The text with single blanks between its words, cut after ``limit`` characters."""
    words = " ".join(str(text).split())
    return words if len(words) <= limit else words[: limit - 1] + "…"
