"""What families about images and kernels have in common: sizes and windows."""

from rulesets.families.narrow import OTHERS, SIZES
from rulesets.family import Step, step
from rulesets.size import symbol

B, C, H, W = symbol("b"), symbol("c"), symbol("h"), symbol("w")
IMAGE = {**SIZES, "b": 2, "c": 3, "h": 5, "w": 6, "k": 4, "n": 2}
IMAGES = {**OTHERS, "b": 3, "c": 2, "h": 7, "w": 5, "k": 5, "n": 3}
MATMUL = step("MatMul")


def window(op: str, rank: int = 2, **attributes: object) -> Step:
    """Return an operator with a window: strides and dilations 1, no pads, unless given."""
    ones = (1,) * rank
    given = {"strides": ones, "pads": (0, 0) * rank, "dilations": ones, **attributes}
    return step(op, **given)  # type: ignore[arg-type]


CONV, TURNED = window("Conv"), window("ConvTranspose", output_padding=(0, 0))
