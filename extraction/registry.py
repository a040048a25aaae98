"""Every extractor, and what each guarantees.

To add one: write one file with a function of the `Extractor` protocol, add one line here.
"""

import dataclasses
import time
from dataclasses import dataclass

from extraction.choice import Choice
from extraction.deadline import Deadline
from extraction.egraph import EGraph
from extraction.errors import UnknownMethodError
from extraction.exhaustive import extract_exhaustive
from extraction.extractor import Extractor, Limits
from extraction.greedy import extract_greedy
from extraction.greedy_dag import extract_greedy_dag
from extraction.greedy_tree import extract_greedy_tree
from extraction.ilp import extract_ilp
from extraction.local_search import extract_search


@dataclass(frozen=True, slots=True)
class Method:
    """One extractor as the registry lists it.

    Attributes:
        name: What `extract(…, method=name)` asks for.
        extractor: The function that does it.
        guarantee: What its choices are certain to be, in a few words.
        exact: Whether it proves optimality, time permitting.
        slow_start: Whether it loads a solver.
    """

    name: str
    extractor: Extractor
    guarantee: str
    exact: bool = False
    slow_start: bool = False


METHODS = (
    Method("greedy-tree", extract_greedy_tree, "least tree cost"),
    Method("greedy-dag", extract_greedy_dag, "a choice, good where bills overlap"),
    Method("greedy", extract_greedy, "the better of the two greedy choices"),
    Method("search", extract_search, "never worse than greedy; better with time"),
    Method("exhaustive", extract_exhaustive, "least DAG cost; small e-graphs", exact=True),
    Method(
        "ilp",
        extract_ilp,
        "least DAG cost, or a proven gap at the deadline",
        exact=True,
        slow_start=True,
    ),
)


def find_method(name: str) -> Method:
    """Return the method called `name`.

    Raises:
        UnknownMethodError: There is none.
    """
    for method in METHODS:
        if method.name == name:
            return method
    known = ", ".join(method.name for method in METHODS)
    raise UnknownMethodError(f"method {name!r} was asked for; known: {known}")


def extract(
    graph: EGraph,
    method: str = "ilp",
    *,
    seconds: float = 30.0,
    seed: int = 0,
    workers: int = 1,
) -> Choice:
    """Extract the roots of an e-graph.

    Args:
        graph: The e-graph.
        method: A name of the registry.
        seconds: Time limit; the best choice known by then is returned.
        seed: Random seed.
        workers: Threads a solver may use.

    Returns:
        A choice that has passed `Choice.check`.

    Raises:
        UnknownMethodError: The registry has no such method.
        UnderivableRootError: A root has no finite derivation.
    """
    extractor = find_method(method).extractor
    start = time.monotonic()
    limits = Limits(Deadline(start + seconds), seed, workers)
    choice = extractor(graph, limits)
    return dataclasses.replace(choice, seconds=time.monotonic() - start, method=method)
