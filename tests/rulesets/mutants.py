"""Changed instances: other shapes, ranks, constants and attributes.

Most make the left side ill-shaped or break a condition. The others are the traps: vectors
along another axis, operands that enlarge the result, paddings, strides, groups.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from rulesets.instance import Instance, Sample

SHAPES = ((), (1,), (2,), (3,), (4,), (5,), (1, 1), (3, 1), (1, 3), (1, 1, 1, 1), (2, 1, 1))


def random_mutants(instance: Instance, count: int, seed: int) -> Iterator[Instance]:
    """Yield instances that differ in one to four places; equal seeds give equal ones."""
    rng = Random(seed)
    for _ in range(count):
        changed = _renamed(instance, rng) if rng.random() < 0.6 else instance
        for _ in range(rng.choice((1, 1, 2, 3))):
            changed = rng.choice(list(mutants_of(changed)) or [changed])
        yield changed


def _renamed(instance: Instance, rng: Random) -> Instance:
    """Replace a size by another one wherever it stands, so that shapes still fit."""
    sizes = sorted({size for each in instance.tensors.values() for size in each.shape})
    if not sizes:
        return instance
    old, new = rng.choice(sizes), rng.choice((1, 2, 3, 4, *sizes))

    def renamed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(renamed, value))
        return new if type(value) is int and value == old else value

    return replace(
        instance,
        tensors={
            name: replace(sample, shape=renamed(sample.shape))
            for name, sample in instance.tensors.items()
        },
        attributes={
            name: renamed(value) if rng.random() < 0.7 else value
            for name, value in instance.attributes.items()
        },
    )


def mutants_of(instance: Instance) -> Iterator[Instance]:
    """Yield instances that differ from this one in one or two places."""
    for name, sample in instance.tensors.items():
        for changed in _samples(sample):
            yield replace(instance, tensors={**instance.tensors, name: changed})
    yield from _squares(instance)
    for attributes in _attributes(instance.attributes):
        yield replace(instance, attributes=attributes)


def _samples(sample: Sample) -> Iterator[Sample]:
    yield replace(sample, const=not sample.const)
    yield replace(sample, value=0.0)
    for value in (1.0, -1.0, -2.0, 2.0):
        yield replace(sample, value=value)
    if sample.dtype != "float":
        return
    yield replace(sample, sign="negative", value=None)
    yield replace(sample, value=None)
    if sample.const or len(sample.shape) < 2:
        for shape in SHAPES:
            yield replace(sample, shape=shape)
    for axis in range(len(sample.shape)):
        for size in (1, 2, 3, sample.shape[axis] + 1):
            shape = (*sample.shape[:axis], size, *sample.shape[axis + 1 :])
            yield replace(sample, shape=shape)
    yield replace(sample, shape=(1, *sample.shape))
    yield replace(sample, shape=(2, *sample.shape))


def _squares(instance: Instance) -> Iterator[Instance]:
    """Make all axes equally long, so that a wrong axis is not seen by its size."""
    for size in (2, 3):
        same = {
            name: replace(sample, shape=(size,) * len(sample.shape))
            for name, sample in instance.tensors.items()
        }
        yield replace(instance, tensors=same)
        for name, sample in same.items():
            if sample.const:
                for shape in ((size,), (size, 1), (1, size), (size, size), (size, 1, 1)):
                    changed = replace(sample, shape=shape)
                    yield replace(instance, tensors={**same, name: changed})


def _attributes(attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in attributes.items():
        if name.startswith(".."):
            for key, inner in value:
                for changed in _values(inner):
                    pairs = tuple((k, changed if k == key else v) for k, v in value)
                    yield {**attributes, name: pairs}
        else:
            for changed in _values(value):
                yield {**attributes, name: changed}


def _values(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for position, each in enumerate(value):
            for changed in _values(each):
                yield (*value[:position], changed, *value[position + 1 :])
        yield tuple(reversed(value))
        yield value[::-1][:1] + value[1:]
        for each in (0, 1, 2):
            yield (each,) * len(value)
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 0, 1, 2)
    elif isinstance(value, float):
        yield from (-value, value * 2, 0.0, value + 1.0)
