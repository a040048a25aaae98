"""A bank's steps, types and constants at concrete sizes, to be looked up by rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rulesets.bank import Bank, plain
from rulesets.ground import FLOAT, Ground, Node, numbers, resize
from rulesets.ops import Value, freeze
from rulesets.tensor import Tensor


@dataclass(slots=True)
class Shelf:
    """A bank's steps and constants, at concrete sizes, to be looked up.

    Attributes:
        bank: The bank.
    """

    bank: Bank
    _tensors: dict[int, Tensor] = field(default_factory=dict)
    _plain: dict[int, dict[str, Value]] = field(default_factory=dict)
    _steps: dict[tuple[int, ...], dict[object, int]] = field(default_factory=dict)
    _constants: dict[Ground, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, term in enumerate(self.bank.base):
            if isinstance(term, Node):
                self._constants[resize(term, self.bank.family.sizes)] = place

    def tensor(self, number: int) -> Tensor:
        """Return a type."""
        if number not in self._tensors:
            shape = numbers(self.bank.types[number], self.bank.family.sizes)
            self._tensors[number] = Tensor(FLOAT, shape)
        return self._tensors[number]

    def attributes(self, step: int) -> dict[str, Value]:
        """Return the complete attributes of a step."""
        if step not in self._plain:
            self._plain[step] = plain(self.bank.steps[step], self.bank.family.sizes)
        return self._plain[step]

    def step(
        self,
        op: str,
        attributes: Mapping[str, Value],
        output: object,
        types: tuple[int, ...],
    ) -> int | None:
        """Return the step that applies an operator to types, None if there is none."""
        if types not in self._steps:
            found: dict[object, int] = {}
            for number in self.bank.applicable(*types):
                one = self.bank.steps[number]
                found[one.op, freeze(self.attributes(number)), one.index] = number
            self._steps[types] = found
        return self._steps[types].get((op, freeze(attributes), output))

    def constant(self, term: Ground) -> int | None:
        """Return the class of a constant."""
        return self._constants.get(term)
