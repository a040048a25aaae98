"""Split a problem into independent ones.

Two e-classes depend on each other when an e-node connects them. After required e-classes
became roots many parts hang together no more; each is solved alone and the choices joined.
"""

from extraction.problem import Problem


def split(problem: Problem) -> list[Problem]:
    """Return the connected parts, in order of their smallest e-class; constant left out."""
    leader = {number: number for number in problem.members}

    def find(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    for number, nodes in problem.members.items():
        for node in nodes:
            for child in problem.children[node]:
                one, other = find(number), find(child)
                if one != other:
                    leader[max(one, other)] = min(one, other)
    groups: dict[int, list[int]] = {}
    for number in sorted(problem.members):
        groups.setdefault(find(number), []).append(number)
    return [_part(problem, group) for group in groups.values()]


def _part(problem: Problem, group: list[int]) -> Problem:
    members = {number: problem.members[number] for number in group}
    nodes = [node for number in group for node in members[number]]
    return Problem(
        members=members,
        children={node: problem.children[node] for node in nodes},
        cost={node: problem.cost[node] for node in nodes},
        roots=problem.roots & members.keys(),
        constant=0.0,
    )
