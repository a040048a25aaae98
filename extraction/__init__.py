"""Exact extraction from e-graphs: an e-graph in, a choice with its proof or gap out."""

from extraction.choice import Choice
from extraction.egraph import EGraph, ENode
from extraction.egraph_json import read, write
from extraction.errors import (
    ChoiceError,
    CostError,
    CyclicChoiceError,
    ExtractionError,
    FormatError,
    GraphError,
    IncompleteChoiceError,
    MissingRootError,
    UnderivableRootError,
    UnknownMethodError,
    WrongClassError,
)
from extraction.registry import METHODS, extract

__all__ = [
    "METHODS",
    "Choice",
    "ChoiceError",
    "CostError",
    "CyclicChoiceError",
    "EGraph",
    "ENode",
    "ExtractionError",
    "FormatError",
    "GraphError",
    "IncompleteChoiceError",
    "MissingRootError",
    "UnderivableRootError",
    "UnknownMethodError",
    "WrongClassError",
    "extract",
    "read",
    "write",
]
