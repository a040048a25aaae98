"""Strongly connected components of the e-classes; only inside one can a cycle run."""

from collections.abc import Iterator

from extraction.problem import Problem


def components_of(problem: Problem) -> dict[int, int]:
    """Return e-class -> component number; a child's number is never above its parent's.

    Source: R. Tarjan, Depth-first search and linear graph algorithms, 1972; iterative here
    because e-graphs are tens of thousands of e-classes deep.
    """
    below = {
        number: sorted({child for node in nodes for child in problem.children[node]})
        for number, nodes in problem.members.items()
    }
    return strong_components(below)


def strong_components(below: dict[int, list[int]]) -> dict[int, int]:
    """Return vertex -> component number of a directed graph given as adjacency lists.

    Successors that are no vertices are ignored.
    """
    search = _Tarjan(below)
    for start in below:
        if start not in search.index:
            search.visit(start)
    return search.component


class _Tarjan:
    """The state of the depth-first search."""

    def __init__(self, below: dict[int, list[int]]) -> None:
        self.below = below
        self.index: dict[int, int] = {}
        self.low: dict[int, int] = {}
        self.component: dict[int, int] = {}
        self.trail: list[int] = []
        self.count = 0

    def visit(self, start: int) -> None:
        """Visit everything below a new vertex."""
        index, low, component = self.index, self.low, self.component
        work = [(start, self._enter(start))]
        while work:
            vertex, rest = work[-1]
            for child in rest:
                if child not in index:
                    if child in self.below:
                        work.append((child, self._enter(child)))
                        break
                elif child not in component and index[child] < low[vertex]:
                    low[vertex] = index[child]
            else:
                work.pop()
                self._leave(vertex)
                if work and low[vertex] < low[work[-1][0]]:
                    low[work[-1][0]] = low[vertex]

    def _enter(self, vertex: int) -> Iterator[int]:
        self.index[vertex] = self.low[vertex] = len(self.index)
        self.trail.append(vertex)
        return iter(self.below[vertex])

    def _leave(self, vertex: int) -> None:
        """Close the component whose first vertex this is, if it is one's first."""
        if self.low[vertex] < self.index[vertex]:
            return
        member = -1
        while member != vertex:
            member = self.trail.pop()
            self.component[member] = self.count
        self.count += 1
