"""How operators by themselves run on blocked tensors."""

from __future__ import annotations

from collections.abc import Mapping

from tensat.kernels.blocked_conv import conv_alone
from tensat.kernels.kernel import Blocked

BLOCKED_SINGLE: Mapping[str, Blocked] = {"Conv": conv_alone}
"""By canonical operator: the ways in which it runs on blocked tensors."""
