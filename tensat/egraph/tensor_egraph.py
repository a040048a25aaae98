"""An e-graph of tensors: egglog's e-graph and what rules need to know of each class.

Handles are small integers: one per e-node put in, the smallest of a class being the class's
*canonical* handle. Types, constness and values live here in Python; the columns that rules
join on (rank, constant, literal, attribute) are written to egglog as well. The class builds
right-hand sides for `rulesets` (it is a ``Builder``): nodes are hash-consed here first, so
that a match whose right side already exists costs one dictionary look-up and no egglog
statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rulesets.errors import ShapeError
from rulesets.ops import OPERATORS, complete, freeze
from rulesets.tensor import FLOATS, Tensor
from tensat.egraph.attribute_numbers import AttributeNumbers, FrozenAttributes
from tensat.egraph.constant_values import (
    LARGE,
    Affine,
    Array,
    Constant,
    array_key,
    constant_value,
    contradict,
    leaf_value,
    widened,
)
from tensat.egraph.engine import Engine, Tables
from tensat.egraph.tensor_types import byte_size, unified
from tensat.errors import UnsoundRuleError

SLACK_BYTES = 1024
"""A folded constant may exceed the constants it is made of by this much (and by 1 % of the
model's constants)."""

GENERATORS = frozenset({"Fill", "Band", "Eye"})
"""Operators without tensor arguments whose value is a constant."""

NEVER_FOLDED = frozenset({"Opaque", "Input"})


@dataclass(frozen=True, slots=True)
class ENodeKey:
    """Operator, number of its attributes and canonical argument handles."""

    operator: str
    attributes: int
    arguments: tuple[int, ...]


class TensorEGraph:
    """E-graph of tensors under construction.

    Args:
        literals: values that rules compare scalars with; each gets a column value.
        constant_bytes: bytes of all constants of the model, for the folding budget.
        data: elements of a stored constant by its key; None where it has none.
    """

    def __init__(
        self,
        literals: Sequence[float] = (),
        constant_bytes: int = 0,
        data: Callable[[str], Array | None] = lambda _: None,
    ) -> None:
        self.engine = Engine()
        self.numbers = AttributeNumbers(self.engine.state)
        self.outputs: list[tuple[Tensor, ...]] = []
        self.constants: list[Constant | None] = []
        self.canonical: list[int] = []
        self.ancestors: list[int] = []
        self.original: list[int] = []
        self.rule_of: list[str | None] = []
        self.key_of: list[ENodeKey] = []
        self.rule: str | None = None
        self._literals = tuple(literals)
        self._data = data
        self._slack = max(SLACK_BYTES, constant_bytes // 100)
        self._memo: dict[ENodeKey, int] = {}
        self._by_value: dict[object, int] = {}
        self._unsent = 0
        self._unions: list[tuple[int, int, str | None]] = []

    # ------------------------------------------------------------------ what rules ask
    def find(self, handle: int) -> int:
        """The canonical handle as of the last ``refresh``."""
        return self.canonical[handle]

    def tensor(self, handle: int) -> Tensor:
        """Type of the class's (first) output."""
        return self.outputs[self.canonical[handle]][0]

    def constant(self, handle: int) -> bool:
        """Whether the class is made of constants and small enough to be stored folded."""
        return self.constants[self.canonical[handle]] is not None

    def array(self, handle: int) -> Array | None:
        """The value of a small constant."""
        known = self.constants[self.canonical[handle]]
        return None if known is None else known.array

    def scalar(self, handle: int) -> float | None:
        """The value of a constant with one element."""
        value = self.array(handle)
        if value is None or value.size != 1 or value.dtype.kind not in "fiu":
            return None
        return float(value.reshape(()))

    def attributes(self, number: int) -> FrozenAttributes:
        """The attributes with that number, sorted by name."""
        return self.numbers.attributes(number)

    def evaluated(self, handle: int) -> bool:
        """Whether the class is a constant whose value is known.

        Other ways to write it are of no use: it costs nothing, and classes of equal values
        are one already.
        """
        known = self.constants[self.canonical[handle]]
        if known is None or known.value is None:
            return False
        return not isinstance(known.value, Affine) or not known.value.own

    def size(self) -> int:
        """Number of different e-nodes."""
        return len(self._memo)

    def depends(self, first: int, second: int) -> bool:
        """Whether the first value is computed from the second, as original nodes tell."""
        mine = self.original[self.canonical[second]]
        return bool(self.ancestors[self.canonical[first]] & mine) if mine else False

    # ------------------------------------------------------------------ building
    def node(self, op: str, attrs: Mapping[str, Any], args: Sequence[int]) -> int:
        """The handle of an operator application, new or known.

        Raises:
            ShapeError: the application is ill-shaped, or folding it would lose its value.
        """
        attrs = complete(OPERATORS[op], attrs)
        arguments = tuple(self.canonical[argument] for argument in args)
        key = ENodeKey(op, self.number_of(freeze(attrs)), arguments)
        known = self._memo.get(key)
        if known is not None:
            return self.canonical[known]
        if op == "Output":
            index = attrs["index"]
            assert isinstance(index, int)
            outputs: tuple[Tensor, ...] = (self.outputs[arguments[0]][index],)
        else:
            outputs = OPERATORS[op].infer(attrs, tuple(self.tensor(a) for a in arguments))
        constant = self._fold(op, attrs, arguments, outputs)
        return self._add(key, outputs, constant)

    def put(self, op: str, attrs: Mapping[str, Any], args: Sequence[int],
            outputs: tuple[Tensor, ...]) -> int:  # fmt: skip
        """As ``node``, with outputs that are known already (imported nodes)."""
        arguments = tuple(self.canonical[argument] for argument in args)
        return self._put(ENodeKey(op, self.number_of(freeze(attrs)), arguments), outputs)

    def over(self, handle: int, arguments: tuple[int, ...]) -> int:
        """The operator of a handle over other canonical arguments of the same types."""
        key = replace(self.key_of[handle], arguments=arguments)
        return self._put(key, self.outputs[handle])

    def _put(self, key: ENodeKey, outputs: tuple[Tensor, ...]) -> int:
        known = self._memo.get(key)
        if known is not None:
            return self.canonical[known]
        try:
            attributes = dict(self.attributes(key.attributes))
            constant = self._fold(key.operator, attributes, key.arguments, outputs)
        except ShapeError:  # the model itself computes infinity: that stays its business
            constant = None
        return self._add(key, outputs, constant)

    def stored(self, key: str, tensor: Tensor, array: Array | None, size: int) -> int:
        """The handle of a stored constant.

        Args:
            key: its name in the graph's constants.
            tensor: its type.
            array: its value, if small.
            size: its bytes.
        """
        handle = len(self.outputs)
        value: Array | Affine | None = None if array is None else widened(array)
        if value is None and tensor.shape is not None and tensor.dtype in FLOATS:
            value = leaf_value(handle, len(tensor.shape))
        constant = Constant(frozenset({handle}), size, value)
        number = self.number_of((("key", key),))
        return self._add(ENodeKey("Constant", number, ()), (tensor,), constant)

    def literal(self, value: float, dtype: str) -> int:
        """The handle of a scalar constant."""
        return self.node("Fill", {"value": value, "shape": (), "dtype": dtype}, ())

    def set_original(self, handle: int, index: int) -> None:
        """Say that the class holds node ``index`` of the graph."""
        self.ancestors[handle] |= 1 << index
        self.original[handle] |= 1 << index

    def union(self, first: int, second: int) -> None:
        """Make two classes one, at the next ``refresh``."""
        self._unions.append((first, second, self.rule))

    def number_of(self, attributes: FrozenAttributes) -> int:
        """The number of interned attributes."""
        return self.numbers.number(attributes)

    def handle_of(self, operator: str, attributes: int, arguments: tuple[int, ...]) -> int:
        """The handle under which an e-node of canonical arguments was put in."""
        return self._memo[ENodeKey(operator, attributes, arguments)]

    # ------------------------------------------------------------------ transactions
    def mark(self) -> int:
        """A point to return to with ``rollback``."""
        return len(self.outputs)

    def rollback(self, mark: int) -> None:
        """Forget every node added since the mark (nothing of them was sent yet)."""
        for key in self.key_of[mark:]:
            del self._memo[key]
        for handle in range(mark, len(self.outputs)):
            value = self.value_key(handle)
            if value is not None and self._by_value.get(value) == handle:
                del self._by_value[value]
        self._unions = [pair for pair in self._unions if max(pair[0], pair[1]) < mark]
        columns: tuple[list[Any], ...] = (
            self.outputs, self.constants, self.canonical,
            self.ancestors, self.original, self.rule_of, self.key_of,
        )  # fmt: skip
        for column in columns:
            del column[mark:]

    def refresh(self) -> Tables:
        """Send what is new and learn which classes became one.

        Raises:
            UnsoundRuleError: two classes of different static type, or two constants of
            different values, became one.
        """
        self._send()
        tables = self.engine.tables()
        merged = False
        for handle, canonical in tables.canonical.items():
            if canonical != self.canonical[handle]:
                self._merge(self.canonical[handle], canonical)
                merged = True
        for handle, canonical in tables.canonical.items():
            self.canonical[handle] = canonical
        if merged:
            self._rebuild_memo()
        return tables

    # ------------------------------------------------------------------ inside
    def _send(self) -> None:
        for handle in range(self._unsent, len(self.outputs)):
            key = self.key_of[handle]
            symbol = self.engine.symbol(key.operator, len(key.arguments))
            self.engine.put(handle, symbol, key.attributes, key.arguments)
            shape = self.outputs[handle][0].shape
            if shape is not None:
                self.engine.state(f"(set (rank (node {handle})) {len(shape)})")
            if self.constants[handle] is not None:
                self.engine.state(f"(constant (node {handle}))")
                self._send_literal(handle)
        self._unsent = len(self.outputs)
        for first, second, _ in self._unions:
            self.engine.union(first, second)
        self._unions.clear()

    def _send_literal(self, handle: int) -> None:
        constant = self.constants[handle]
        if constant is None or constant.array is None or constant.array.size != 1:
            return
        if constant.array.dtype.kind not in "fiu":
            return
        dtype = self.outputs[handle][0].dtype
        rounding = np.dtype(dtype if dtype in {"float16", "float64"} else "float32")
        value = constant.array.reshape(()).astype(rounding)
        for number, literal in enumerate(self._literals):
            if value == np.asarray(literal).astype(rounding):
                self.engine.state(f"(set (literal (node {handle})) {number})")
                return

    def _add(
        self, key: ENodeKey, outputs: tuple[Tensor, ...], constant: Constant | None
    ) -> int:
        handle = len(self.outputs)
        self.outputs.append(outputs)
        self.constants.append(constant)
        self.canonical.append(handle)
        self.rule_of.append(self.rule)
        self.key_of.append(key)
        bits = 0
        for argument in key.arguments:
            bits |= self.ancestors[argument]
        self.ancestors.append(bits)
        self.original.append(0)
        self._memo[key] = handle
        value = self.value_key(handle)
        if value is not None:
            twin = self._by_value.setdefault(value, handle)
            if twin != handle:
                self._unions.append((twin, handle, None))
        return handle

    def value_key(self, handle: int) -> object:
        """Equal for constants of equal type and value; None if the value is not known."""
        constant, tensor = self.constants[handle], self.outputs[handle][0]
        if constant is None or constant.value is None:
            return None
        if isinstance(constant.value, Affine):
            return (tensor, constant.value.key(tensor.dtype))
        return array_key(constant.value, tensor.dtype)

    def _fold(self, op: str, attributes: Mapping[str, Any], arguments: Sequence[int],
              outputs: Sequence[Tensor]) -> Constant | None:  # fmt: skip
        """The constant that the application is, if it is one and fits the budget."""
        if op in NEVER_FOLDED or len(outputs) != 1 or not (arguments or op in GENERATORS):
            return None
        sources = []
        for argument in arguments:
            source = self.constants[argument]
            if source is None:
                return None
            sources.append(source)
        size = byte_size(outputs[0])
        leaves = frozenset[int]().union(*(source.leaves for source in sources))
        if size is None or size > self._slack + self._bytes_of(leaves):
            return None
        value = constant_value(
            op, attributes, sources, outputs[0], len(self.outputs), self._elements
        )
        return Constant(leaves, size, value)

    def _elements(self, leaf: int) -> Array | None:
        """The elements of a stored constant that is not too large to be summed here."""
        key = self.key_of[leaf] if leaf < len(self.key_of) else None
        constant = self.constants[leaf] if key is not None else None
        if key is None or key.operator != "Constant" or constant is None:
            return None
        width = byte_size(Tensor(self.outputs[leaf][0].dtype, (1,))) or 1
        if constant.bytes > LARGE * width:
            return None
        return self._data(str(dict(self.attributes(key.attributes))["key"]))

    def _bytes_of(self, leaves: Iterable[int]) -> int:
        total = 0
        for leaf in leaves:
            constant = self.constants[leaf]
            total += 0 if constant is None else constant.bytes
        return total

    def _merge(self, gone: int, kept: int) -> None:
        """Let the kept class know the better of two classes' facts."""
        known, mine = self.constants[gone], self.constants[kept]
        if known is not None:
            if mine is not None and contradict(mine, known):
                raise self._unsound("their values differ", gone, kept)
            if mine is None or (mine.array is None and known.array is not None):
                self.constants[kept] = known
        self.outputs[kept] = tuple(
            self._unified(a, b, gone, kept)
            for a, b in zip(self.outputs[kept], self.outputs[gone], strict=True)
        )
        self.ancestors[kept] &= self.ancestors[gone]
        self.original[kept] |= self.original[gone]

    def _unified(self, first: Tensor, second: Tensor, gone: int, kept: int) -> Tensor:
        tensor = unified(first, second)
        if tensor is None:
            raise self._unsound("their types differ", gone, kept)
        return tensor

    def _unsound(self, what: str, gone: int, kept: int) -> UnsoundRuleError:
        rules = sorted({str(self.rule_of[gone]), str(self.rule_of[kept])})
        return UnsoundRuleError(
            f"classes {kept} {self.outputs[kept][0]} and {gone} {self.outputs[gone][0]}"
            f" became one; {what}; last rules: {', '.join(rules)}"
        )

    def _rebuild_memo(self) -> None:
        """Restate keys with canonical arguments; the older of two equal nodes stays."""
        memo: dict[ENodeKey, int] = {}
        canonical = self.canonical
        for handle, key in enumerate(self.key_of):
            arguments = tuple(canonical[argument] for argument in key.arguments)
            if arguments != key.arguments:
                key = ENodeKey(key.operator, key.attributes, arguments)
                self.key_of[handle] = key
            memo.setdefault(key, handle)
        self._memo = memo
