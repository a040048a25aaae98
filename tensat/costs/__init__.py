"""What operators cost, in seconds: asked by signature, answered by a cost source."""

from tensat.costs.roofline import Machine, Roofline
from tensat.costs.source import Argument, CostSource, Progress, Signature

__all__ = ["Argument", "CostSource", "Machine", "Progress", "Roofline", "Signature"]
