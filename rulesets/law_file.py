"""A file of laws of several narrow families, one section for each.

Narrow families give a few laws each. Those about one subject share a file; generating a
family again replaces its section and leaves the others alone.
"""

import re
from collections.abc import Iterable, Sequence

from rulesets.errors import RuleFileError

HEADER = """\
# Laws of narrow families, found by enumeration, made wide, proved; see rulesets.generate.
# They say what is true, in every direction, not what pays: `derive` and `origins` use them,
# `optimize` does not. Each section names its family and is written by
# `python -m rulesets generate --family F --size N --widen --laws THIS --about OPERATORS`.
"""

_BACK = re.compile(r'^name = ".*\.reverse"$', re.MULTILINE)
_NARROW = re.compile(r"(dim|rank) \?\w+ ?\d* = [1-9]\d*\"|\?p\d")
_SECTION = re.compile(r"^# -- (\S+), up to \d+ operators?$", re.MULTILINE)


def with_laws(text: str, family: str, size: int, laws: Iterable[str]) -> str:
    """Return a file's text with the section of a family replaced, or added at its end.

    Args:
        text: The file as it was; empty for a new one.
        family: The family.
        size: The most operators of a side.
        laws: Tables of rules, named without the family.

    Raises:
        RuleFileError: The text is no such file.
    """
    if text and not text.startswith(HEADER):
        raise RuleFileError("a file of laws begins with its header; this one does not")
    sections = sections_of(text)
    tables = [re.sub(r'^name = "', f'name = "{family}/', each, flags=re.M) for each in laws]
    sections[family] = f"# -- {family}, up to {size} operator{'s' if size > 1 else ''}\n\n"
    sections[family] += "\n".join(each.strip() + "\n" for each in tables)
    return HEADER + "\n" + "\n".join(each for each in sections.values() if "[[" in each)


def worth_shipping(tables: Iterable[str], about: Sequence[str]) -> list[str]:
    """Return the laws of a family that belong into its file.

    Left out are laws without the operators the family is about, which other families find
    as well, and narrow ways back: a wide law says more in its one direction.

    Args:
        tables: Tables of rules.
        about: Names of operators; empty for all.
    """
    return [
        table
        for table in tables
        if (not about or any(f"({op}" in table for op in about))
        and not (_BACK.search(table) and _NARROW.search(table))
    ]


def sections_of(text: str) -> dict[str, str]:
    """Return the text of each family's section, in their order."""
    found = list(_SECTION.finditer(text))
    ends = [each.start() for each in found[1:]] + [len(text)][: len(found)]
    return {
        each[1]: text[each.start() : end].strip() + "\n"
        for each, end in zip(found, ends, strict=True)
    }
