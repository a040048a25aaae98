"""Which classes of the extraction problem stand for an e-class.

The plain value of an e-class is the class of that number. Where only one layout is made,
its value in another layout is one class beside it, and a reorder leads there. Where several
are made, there are more, for two reasons.

*No loops.* A reorder belongs to what users ask for, and takes what is made; were these one
class, each layout could be made of the other.

*Tight bounds.* Half a kernel on plain tensors and half a kernel on others would ask
for half of each layout of what they read, and the same again there: after a few operators
almost nothing is paid for. So there is a class ``any`` that says that a value is made at
all, which each kernel asks for besides the layout that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tensat.kernels.collect import Kernel
from tensat.kernels.kernel import Layout

type ClassId = int | str
"""A class of the problem: a number, or a number with what it is for behind a point."""


def eclass_of(identifier: object) -> int:
    """The e-class whose value, in some layout, a class of the problem is."""
    return int(str(identifier).split(".")[0])


class Places:
    """Which class of the problem a kernel belongs to, and which it asks for."""

    def __init__(self, kernels: Iterable[Kernel]) -> None:
        """Look at what is made, by all kernels, reorders included."""
        made: dict[int, set[Layout]] = {}
        self._inner: set[int] = set()
        for kernel in kernels:
            if kernel.rows:
                made.setdefault(kernel.eclass, set()).add(kernel.layout)
            if kernel.inner:
                self._inner.add(kernel.eclass)
        self._several = {c: found for c, found in made.items() if len(found) > 1}

    def result(self, kernel: Kernel) -> ClassId:
        """The class of which a kernel is an e-node."""
        eclass, layout = kernel.eclass, kernel.layout
        if not kernel.rows:
            return _wanted(eclass, layout)
        if eclass in self._inner and layout is Layout.PLAIN:
            return f"{eclass}.inner" if kernel.inner else f"{eclass}.other"
        return self._made(eclass, layout)

    def arguments(self, kernel: Kernel) -> tuple[ClassId, ...]:
        """The classes that a kernel asks for: first its arguments, in order."""
        if not kernel.rows:
            return tuple(self._made(*argument) for argument in kernel.arguments)
        asked: list[ClassId] = [
            f"{eclass}.other" if eclass in kernel.shuns else _wanted(eclass, layout)
            for eclass, layout in kernel.arguments
        ]
        asked += [f"{c}.any" for c, _ in kernel.arguments if c in self._several]
        return tuple(asked)

    def ways(self) -> Iterator[tuple[ClassId, ClassId]]:
        """E-nodes that cost nothing: a class, and another that makes it."""
        for eclass in sorted(self._inner):
            yield self._made(eclass, Layout.PLAIN), f"{eclass}.inner"
            yield self._made(eclass, Layout.PLAIN), f"{eclass}.other"
        for eclass in sorted(self._several):
            for layout in (each for each in Layout if each in self._several[eclass]):
                made = self._made(eclass, layout)
                yield _wanted(eclass, layout), made
                yield f"{eclass}.any", made

    def _made(self, eclass: int, layout: Layout) -> ClassId:
        wanted = _wanted(eclass, layout)
        return f"{eclass}.{layout}.made" if eclass in self._several else wanted


def _wanted(eclass: int, layout: Layout) -> ClassId:
    return eclass if layout is Layout.PLAIN else f"{eclass}.{layout}"
