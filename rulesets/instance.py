"""Instances: concrete tensors and attributes a rule is tested with.

In a rule file an instance is a table from variable names to

    "2,3,4"   "const 4,5"   "const positive 3"   "bool 2,3"   "const 1 = 0.5"   "const = 6"

for a tensor variable (words, sizes, the value of every element; ``const`` for a tensor
that depends on no input), a list of such texts for a rest variable, and a plain value for
an attribute variable. A bundle is a table of the attributes that differ from defaults.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rulesets.errors import RuleError
from rulesets.match import Value

SIGNS = ("any", "positive", "negative")


@dataclass(frozen=True, slots=True)
class Sample:
    """A concrete tensor.

    Attributes:
        shape: Its sizes.
        const: Whether it depends on no input of the model.
        sign: One of `SIGNS`: what its elements may be.
        dtype: ``float``, ``int64`` or ``bool``.
        value: The value of every element, or None for random ones.
    """

    shape: tuple[int, ...]
    const: bool = False
    sign: str = "any"
    dtype: str = "float"
    value: float | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """Concrete tensors and attributes for the variables of a rule.

    Attributes:
        tensors: A sample for each tensor variable; elements of a rest variable ``xs``
            are called ``xs.0``, ``xs.1``, …
        attributes: A value for each attribute variable; for ``..k`` the attributes that
            differ from defaults, as (name, value).
        count: How many elements the rest variables have.
    """

    tensors: Mapping[str, Sample] = field(default_factory=dict)
    attributes: Mapping[str, Value] = field(default_factory=dict)
    count: int = 1


_SAMPLE = re.compile(
    r"(?P<words>(?:[a-z][a-z0-9]*\s*)*)(?P<sizes>\d+(?:\s*,\s*\d+)*)?"
    r"(?:\s*=\s*(?P<value>-?(?:inf|nan|[\d.]+(?:e-?\d+)?)))?"
)
_WORDS = {"const", "positive", "negative", "float", "int64", "bool"}


def parse_sample(text: str) -> Sample:
    """Read a sample.

    Raises:
        RuleError: The text is no sample.
    """
    found = _SAMPLE.fullmatch(text.strip())
    words = found["words"].split() if found else []
    if found is None or not _WORDS.issuperset(words):
        raise RuleError(
            f"{text!r} is no tensor; possible: {' '.join(sorted(_WORDS))}, then sizes "
            "'2,3', then '= value'"
        )
    sizes = found["sizes"]
    return Sample(
        tuple(int(size) for size in sizes.split(",")) if sizes else (),
        "const" in words,
        next((word for word in words if word in SIGNS), "any"),
        next((word for word in words if word in ("int64", "bool")), "float"),
        float(found["value"]) if found["value"] else None,
    )


def parse_instance(
    table: Mapping[str, object], tensors: frozenset[str], rests: frozenset[str]
) -> Instance:
    """Read an instance.

    Args:
        table: The table of the rule file.
        tensors: The tensor variables of the rule.
        rests: Its rest variables.

    Raises:
        RuleError: A text is no tensor, or rest variables differ in length.
    """
    samples: dict[str, Sample] = {}
    attributes: dict[str, Value] = {}
    counts = set()
    for name, given in table.items():
        if name in rests and isinstance(given, list):
            counts.add(len(given))
            for position, text in enumerate(given):
                samples[f"{name}.{position}"] = parse_sample(str(text))
        elif name in tensors:
            samples[name] = parse_sample(str(given))
        elif isinstance(given, dict):
            pairs = ((key, _value(each)) for key, each in given.items())
            attributes[f"..{name}"] = tuple(sorted(pairs))
        else:
            attributes[name] = _value(given)
    if len(counts) > 1:
        raise RuleError(f"rest variables of one instance have lengths {sorted(counts)}")
    return Instance(samples, attributes, counts.pop() if counts else 1)


def _value(given: object) -> Value:
    if isinstance(given, list):
        return tuple(_value(each) for each in given)
    if isinstance(given, int | float | str):
        return given
    raise RuleError(f"{given!r} is no attribute value; possible: number, text, list")
