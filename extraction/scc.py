"""Strongly connected components of the e-classes; only inside one can a cycle run."""

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
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    component: dict[int, int] = {}
    trail: list[int] = []
    count = 0
    for start in below:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        trail.append(start)
        work = [(start, iter(below[start]))]
        while work:
            vertex, rest = work[-1]
            for child in rest:
                if child not in index:
                    if child in below:
                        index[child] = low[child] = len(index)
                        trail.append(child)
                        work.append((child, iter(below[child])))
                        break
                elif child not in component and index[child] < low[vertex]:
                    low[vertex] = index[child]
            else:
                work.pop()
                if work and low[vertex] < low[work[-1][0]]:
                    low[work[-1][0]] = low[vertex]
                if low[vertex] == index[vertex]:
                    member = -1
                    while member != vertex:
                        member = trail.pop()
                        component[member] = count
                    count += 1
    return component
