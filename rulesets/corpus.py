"""Published equations as ours: shapes inferred, pads, groups and split sizes written out.

The operators are those of tensat's rule files. Ranks and sizes are not given there and
follow from use: every axis of a variable is a symbol, each operator demands equalities, and
what stays free gets a size of its own. A kernel has the size that TASO's generator gives
the variable. Convolutions are dense; where channels fit only if groups are implied, the
equation is read with that number of groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from rulesets.corpus_text import Published, Raw
from rulesets.corpus_text import read as read_text
from rulesets.equation import Equation
from rulesets.errors import CorpusError
from rulesets.ground import Ground, Leaf, constant, node, part
from rulesets.ops import Value, single
from rulesets.size import Size, evaluate, substitute, symbol, symbols
from rulesets.tensor import Shape

SAME, VALID = 0, 1
RELU = 2
RANKS = dict.fromkeys(("matmul", "transpose", "Imatmul"), 2) | dict.fromkeys(
    ("conv2d", "enlarge", "poolavg", "poolmax", "Cpool", "Iconv"), 4
)
FREE_SIZES = (2, 3, 4, 5, 6, 7)
"""Sizes for axes that nothing fixes, one after the other."""


@dataclass(frozen=True, slots=True)
class Read:
    """A published equation at concrete sizes.

    Attributes:
        source: As published.
        equation: In our operators.
        groups: Groups of its convolutions, 1 if they are dense.
    """

    source: Published
    equation: Equation
    groups: int = 1


def read(text: str, file: str) -> Iterator[Read | tuple[Published, str]]:
    """Yield each equation of a file, or it and the reason why no sizes fit.

    Raises:
        RuleFileError: A line is no equation.
    """
    for published in read_text(text, file):
        try:
            yield typed(published)
        except CorpusError as error:
            yield published, str(error)


def typed(
    published: Published, larger: int = 0, kernel: tuple[int, int] | None = None
) -> Read:
    """Return an equation at concrete sizes.

    Args:
        published: The equation.
        larger: Added to every size that is free.
        kernel: A kernel for weights that are enlarged, instead of TASO's.

    Raises:
        CorpusError: No sizes fit.
    """
    last = CorpusError("nothing was tried")
    for groups in (1, 2):
        shapes = _Shapes(_ranks(published.sides), groups, _enlarged_by(published, kernel))
        try:
            one, other = (shapes.of(side) for side in published.sides)
            shapes.same(one, other)
        except CorpusError as error:
            last = error
            continue
        builder = _Builder(shapes, shapes.choose(larger), groups)
        equation = Equation(*(builder.term(side) for side in published.sides))
        return Read(published, equation, groups)
    raise last


# -- ranks -------------------------------------------------------------------------------


def _ranks(sides: tuple[Raw, Raw]) -> dict[Raw, int]:
    """The rank of every subterm."""
    found: dict[Raw, int] = {}
    links: list[tuple[Raw, Raw]] = [sides]

    def visit(term: Raw) -> None:
        for tensor in term.tensors:
            visit(tensor)
        if term.name in RANKS:
            found.update(dict.fromkeys((term, *term.tensors), RANKS[term.name]))
        elif term.name == "smul":
            links.append((term, term.tensors[0]))
            found[term.tensors[1]] = 0
        else:
            links.extend((term, tensor) for tensor in term.tensors)

    for side in sides:
        visit(side)
    for _ in links:
        for one, other in links:
            rank = found.get(one, found.get(other))
            if rank is not None:
                found[one] = found[other] = rank
    return found


# -- sizes -------------------------------------------------------------------------------


def kernel_of(name: str) -> tuple[int, int] | None:
    """Return a weight's kernel: 3 by 3 for inputs 10-12, 1 by 1 to 15, 1 by 3 to 18."""
    number = int(name.removeprefix("input_"))
    return ((3, 3), (1, 1), (1, 3))[(number - 10) // 3] if 10 <= number <= 18 else None


def _enlarged_by(
    published: Published, kernel: tuple[int, int] | None
) -> dict[str, tuple[int, int]]:
    """The kernel of every variable that is enlarged."""
    if kernel is None:
        return {}
    terms = list(published.sides)
    for term in terms:
        terms += term.tensors
    inside = [term.tensors[0] for term in terms if term.name == "enlarge"]
    return {term.name: kernel for term in inside if term.variable}


@dataclass(slots=True)
class _Shapes:
    """Shapes of all terms, and what is known about the symbols in them."""

    ranks: dict[Raw, int]
    groups: int
    kernels: dict[str, tuple[int, int]]
    values: dict[str, Size] = field(default_factory=dict)
    known: dict[Raw, Shape] = field(default_factory=dict)

    def of(self, term: Raw) -> Shape:
        """The shape of a term; demands of its operators are solved on the way."""
        if term not in self.known:
            self.known[term] = self._of(term)
        return self.known[term]

    def _of(self, term: Raw) -> Shape:
        inner = [self.of(tensor) for tensor in term.tensors]
        match term.name, inner:
            case "ewadd" | "ewmul", [x, y]:
                self.same(x, y)
                return x
            case "smul" | "relu" | "split", [x, *_]:
                return x
            case "transpose", [x]:
                return (x[1], x[0])
            case "matmul", [x, y]:
                self.equal(x[1], y[0])
                return (x[0], y[1])
            case "conv2d" | "poolavg" | "poolmax", [x, *kernels]:
                return self._window(term, x, kernels)
            case "concat", [x, y]:
                return self._concat(term.numbers[0], x, y)
            case "enlarge", [w]:
                return (*w[:2], *term.numbers)
            case "split_0" | "split_1", [x]:
                return self._part(term, x)
            case _, []:
                return self._leaf(term)
        raise CorpusError(f"unknown operator {term.name!r} in the published text")

    def _leaf(self, term: Raw) -> Shape:
        if term.name in ("Cpool", "Iconv"):
            channels = self._fresh()
            return (channels, channels, *term.numbers)
        shape = tuple(self._fresh() for _ in range(self.ranks.get(term, 2)))
        kernel = self.kernels.get(term.name) if term.variable else None
        if kernel is None and term.variable and len(shape) == 4:
            kernel = kernel_of(term.name)
        if kernel is not None:
            return (*shape[:2], *kernel)
        if term.name == "Imatmul":
            self.equal(*shape)
        return shape

    def _fresh(self) -> Size:
        name = f"u{len(self.values)}"
        self.values[name] = symbol(name)
        return symbol(name)

    def _window(self, term: Raw, x: Shape, kernels: list[Shape]) -> Shape:
        """The shape behind a window that moves by one and keeps the image's size."""
        strides, pad = window_of(term)
        if strides != (1, 1) or pad != SAME:
            raise CorpusError(f"{term.name}, stride {strides}, pad {pad}: not read")
        for w in kernels:
            self.equal(x[1], w[1] * self.groups)
        return (x[0], kernels[0][0] if kernels else x[1], *x[2:])

    def _concat(self, axis: int, x: Shape, y: Shape) -> Shape:
        for at, (one, other) in enumerate(zip(x, y, strict=True)):
            if at != axis:
                self.equal(one, other)
        return (*x[:axis], x[axis] + y[axis], *x[axis + 1 :])

    def _part(self, term: Raw, x: Shape) -> Shape:
        axis, inner = split_of(term)
        first = self.cut(inner, axis)
        size = first if term.name == "split_0" else self.now(x[axis]) - self.now(first)
        return (*x[:axis], size, *x[axis + 1 :])

    def cut(self, term: Raw, axis: int) -> Size:
        """The size before the outermost cut of an axis.

        Raises:
            CorpusError: There is no concatenation inside.
        """
        match term.name:
            case "concat" if term.numbers[0] == axis:
                return self.of(term.tensors[0])[axis]
            case "matmul":
                return self.cut(term.tensors[axis], axis)
            case "conv2d":
                return self.cut(term.tensors[axis], 0)
            case "transpose":
                return self.cut(term.tensors[0], 1 - axis)
        if not term.tensors:
            raise CorpusError("a split of something that was never concatenated")
        return self.cut(term.tensors[0], axis)

    # ------------------------------------------------------------------ equalities
    def now(self, size: Size) -> Size:
        """A size with everything known put in."""
        while True:
            found = substitute(size, self.values) if not isinstance(size, int) else size
            if found == size:
                return size
            size = found

    def same(self, one: Shape, other: Shape) -> None:
        """Demand that two shapes are equal."""
        if len(one) != len(other):
            raise CorpusError(f"ranks {len(one)} and {len(other)} would have to be equal")
        for a, b in zip(one, other, strict=True):
            self.equal(a, b)

    def equal(self, one: Size, other: Size) -> None:
        """Demand that two sizes are equal; sums of axes are matched part by part."""
        one, other = self.now(one), self.now(other)
        rest = one - other
        if isinstance(rest, int):
            if rest:
                raise CorpusError(f"sizes {one} and {other} would have to be equal")
            return
        parts = [(str(m[0][0]), n) for m, n in rest.terms if m]
        plus = [name for name, n in parts if n > 0]
        minus = [name for name, n in parts if n < 0]
        if len(plus) == len(minus) > 1:
            for a, b in zip(plus, minus, strict=True):
                self.equal(symbol(a), symbol(b))
            return
        for name, number in parts:
            value = symbol(name) - rest * number
            if abs(number) == 1 and _is_size(value, name):
                self.values[name] = value
                return
        raise CorpusError(f"sizes {one} and {other} would have to be equal")

    def choose(self, larger: int) -> dict[str, int]:
        """A number for every symbol: one of its own for each that is free."""
        free = [name for name, value in self.values.items() if value == symbol(name)]
        sizes = [self.now(size) for shape in self.known.values() for size in shape]
        used = {name for size in sizes for name in symbols(size)}
        chosen = {}
        for place, name in enumerate(name for name in free if name in used):
            chosen[name] = FREE_SIZES[place % len(FREE_SIZES)] + larger
        return chosen


def _is_size(value: Size, name: str) -> bool:
    if isinstance(value, int):
        return value > 0
    return name not in symbols(value) and all(number > 0 for _, number in value.terms)


def window_of(term: Raw) -> tuple[tuple[int, ...], int]:
    """Return strides and pad of a convolution or a pool."""
    numbers = term.numbers[:3] if term.name == "conv2d" else term.numbers[2:5]
    return numbers[:2], numbers[2]


def split_of(term: Raw) -> tuple[int, Raw]:
    """Return the axis and what is split, in both spellings."""
    (inner,) = term.tensors
    if inner.name == "split":
        return inner.numbers[0], inner.tensors[0]
    return term.numbers[0], inner


# -- terms -------------------------------------------------------------------------------


@dataclass(slots=True)
class _Builder:
    """Writes terms in our operators, at the sizes chosen."""

    shapes: _Shapes
    sizes: dict[str, int]
    groups: int

    def shape(self, term: Raw) -> tuple[int, ...]:
        """The shape of a term in numbers."""
        return tuple(
            evaluate(self.shapes.now(size), self.sizes) for size in self.shapes.of(term)
        )

    def term(self, term: Raw) -> Ground:
        """A term in our operators."""
        if not term.tensors:
            return self._leaf(term)
        if term.name in ("split_0", "split_1"):
            axis, inner = split_of(term)
            first = evaluate(self.shapes.now(self.shapes.cut(inner, axis)), self.sizes)
            total = self.shape(inner)[axis]
            return part(axis, (first, total - first), int(term.name[-1]), self.term(inner))
        arguments = [self.term(tensor) for tensor in term.tensors]
        kernel = self.shape(term.tensors[1])[2:] if term.name == "conv2d" else ()
        match term.name:
            case "conv2d":
                given = {**self._window(kernel), "group": self.groups}
                made = node("Conv", given, *arguments)
                return node("Relu", {}, made) if term.numbers[3] == RELU else made
            case "poolavg" | "poolmax":
                return self._pool(term, arguments)
            case "enlarge":
                return _enlarged(arguments[0], self.shape(term.tensors[0]), term.numbers)
            case "transpose":
                return node("Transpose", {"perm": (1, 0)}, *arguments)
            case "concat":
                return node("Concat", {"axis": term.numbers[0]}, *arguments)
        made = node(_PLAIN[term.name], {}, *arguments)
        active = term.name == "matmul" and term.numbers == (RELU,)
        return node("Relu", {}, made) if active else made

    def _pool(self, term: Raw, arguments: list[Ground]) -> Ground:
        kernel = term.numbers[:2]
        given: dict[str, Value] = {**self._window(kernel), "kernel": kernel}
        if term.name == "poolmax":
            return node("MaxPool", given, *arguments)
        return node("AveragePool", {**given, "count_include_pad": 1}, *arguments)

    @staticmethod
    def _window(kernel: tuple[int, ...]) -> dict[str, Value]:
        before = tuple((size - 1) // 2 for size in kernel)
        after = tuple(size // 2 for size in kernel)
        return {"strides": (1, 1), "pads": before + after, "dilations": (1, 1)}

    def _leaf(self, term: Raw) -> Ground:
        shape = self.shape(term)
        match term.name:
            case "Imatmul":
                return constant("Eye", size=shape[0])
            case "Iewmul":
                return constant("Fill", value=1.0, shape=shape)
            case "Iconv":
                eye = constant("Eye", size=shape[0])
                flat = node("Unsqueeze", {"axes": (2, 3)}, eye)
                return _enlarged(flat, (*shape[:2], 1, 1), shape[2:])
            case "Cpool":
                value = single(1 / (shape[2] * shape[3]))
                band = constant(
                    "Band", rows=shape[0], cols=shape[0], lower=0, upper=0, value=value
                )
                flat = node("Unsqueeze", {"axes": (2, 3)}, band)
                return node("Expand", {"shape": shape}, flat)
        return Leaf(term.name, shape, f"r{'_'.join(map(str, shape))}_")


_PLAIN = {"ewadd": "Add", "ewmul": "Mul", "smul": "Mul", "relu": "Relu", "matmul": "MatMul"}


def _enlarged(w: Ground, shape: tuple[int, ...], kernel: tuple[int, ...]) -> Ground:
    """Zero-pad a kernel, centred."""
    more = [wide - narrow for wide, narrow in zip(kernel, shape[2:], strict=True)]
    if min(more) < 0:
        raise CorpusError(f"a kernel {shape[2:]} cannot be enlarged to {kernel}")
    if not any(more):
        return w
    before = [size // 2 for size in more]
    after = [size - half for size, half in zip(more, before, strict=True)]
    return node("Pad", {"pads": (0, 0, *before, 0, 0, *after)}, w)
