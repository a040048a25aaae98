"""Published equations on numbers: at which sizes does one fail?

The published text gives no sizes, so an equation claims to hold wherever both sides are
well-shaped. It is tried at the sizes of its generator, at larger ones, and with other
kernels where a kernel is enlarged: an even difference can be centred, an odd one cannot.
"""

from rulesets.corpus import Read, typed
from rulesets.corpus_text import Published
from rulesets.counterexample import Counterexample, compared
from rulesets.errors import CorpusError
from rulesets.fingerprint import inputs, value_of
from rulesets.ground import leaves

KERNELS = (None, (3, 3), (1, 3), (3, 1), (2, 2), (2, 3))
"""Kernels for weights that are enlarged; None is the generator's."""


def counterexample(published: Published, seed: int = 3) -> Counterexample | None:
    """Return values at which an equation fails, None if none was found.

    Raises:
        CorpusError: No sizes fit at all.
    """
    tried = 0
    last = CorpusError("no sizes fit")
    for kernel in KERNELS:
        for larger in (0, 1):
            try:
                found = typed(published, larger, kernel)
            except CorpusError as error:
                last = error
                continue
            tried += 1
            wrong = _differs(found, seed)
            if wrong is not None:
                return wrong
    if not tried:
        raise last
    return None


def _differs(found: Read, seed: int) -> Counterexample | None:
    equation = found.equation
    variables = tuple(dict.fromkeys(leaves(equation.lhs) + leaves(equation.rhs)))
    values = inputs(variables, {}, exact=False, seed=seed)
    left, right = (
        value_of(side, {}, values)[0, 0] for side in (equation.lhs, equation.rhs)
    )
    shapes = {leaf.name: values[leaf].shape[2:] for leaf in variables}
    return compared(left, right, shapes)
