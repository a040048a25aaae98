"""Random small e-graphs: cyclic, several roots, ties, free and dead parts."""

import random

from extraction.egraph import EGraph, ENode

COSTS = (
    (0.0, 0.0, 1.0, 1.0, 2.0, 3.0),
    (1.0,),
    (0.0, 0.1, 0.25, 0.3, 1.7, 12.5),
)
"""Price lists; one of them, or uniformly random floats, per e-graph."""


def random_egraph(seed: int, classes: int = 8) -> EGraph:
    """Return the e-graph of a seed; its roots may be underivable.

    Args:
        seed: Any integer.
        classes: The most e-classes it has.
    """
    rng = random.Random(seed)
    count = rng.randint(1, classes)
    prices = rng.choice((*COSTS, None))
    width = rng.choice((1, 2, 2, 3))
    most = rng.choice((1, 2, 3, 4))
    leaves = rng.choice((0.1, 0.3, 0.5))
    nodes: list[ENode] = []
    for number in range(count):
        for _ in range(rng.randint(1, most)):
            arity = 0 if rng.random() < leaves else rng.randint(1, width)
            nodes.append(
                ENode(
                    f"op{len(nodes)}",
                    number,
                    tuple(rng.randrange(count) for _ in range(arity)),
                    rng.random() * 10 if prices is None else rng.choice(prices),
                )
            )
    roots = [rng.randrange(count) for _ in range(rng.randint(1, 3))]
    return EGraph(nodes, roots)
