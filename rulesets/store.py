"""Rule files: TOML tables that become rules.

[[rule]]
name      = "transpose-of-transpose"
lhs       = "(Transpose[perm=?q] (Transpose[perm=?p] ?x))"    # or a list of terms
rhs       = "(Transpose[perm=(pick ?p ?q)] ?x)"
where     = []                       # conditions, default none
dtypes    = "any"                    # or "float", the default
direction = "both"                   # also NAME.reverse; default "forward"
over      = { F = ["Relu", "Tanh"] } # one rule NAME[Relu] for each, F replaced
float     = { tag = "exact" }        # or reassociates, risky
note      = "why it is there"
proof     = { verdict = "all-sizes", ranks = "1-3" }   # written by the audit
origin    = { kind = "derived", rounds = 2 }           # written by `origins`
instances = [{ x = "2,3,4", p = [1, 0, 2], q = [2, 1, 0] }]
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from rulesets.condition import parse_condition
from rulesets.errors import RuleError, RuleFileError
from rulesets.instance import parse_instance
from rulesets.origin import read_origin
from rulesets.rule import TIERS, Rule
from rulesets.term import applications, parse_term
from rulesets.validate import (
    attribute_variables,
    check_rule,
    rest_variables,
    tensor_variables,
)

KEYS = (
    *("name", "lhs", "rhs", "where", "dtypes", "direction", "over", "float", "note"),
    *("instances", "proof", "origin", "costs"),
)
DTYPES = ("float", "any")
DIRECTIONS = ("forward", "both")
COSTS = ("any", "measured")
FLOAT_TAGS = ("exact", "reassociates", "risky")
RECORDS = frozenset({"deviations.toml", "manifest.toml", "refused.toml"})
"""Files beside the rules that hold no rules to use."""


def rule_files(folder: Path | None = None) -> tuple[Path, ...]:
    """Return the rule files of a folder, by default the shipped one, by name."""
    folder = shipped_folder() if folder is None else folder
    return tuple(p for p in sorted(folder.glob("*.toml")) if p.name not in RECORDS)


def shipped_folder() -> Path:
    """Return the folder of the shipped rules."""
    return Path(str(files("rulesets"))) / "data"


def load(folder: Path | None = None) -> tuple[Rule, ...]:
    """Read all rule files of a folder, by default the shipped ones.

    Returns:
        The rules, file by file in the order of file names.

    Raises:
        RuleFileError: A file, a rule or a name is wrong.
    """
    rules = [
        rule
        for path in rule_files(folder)
        for rule in parse_file(path.read_text(encoding="utf-8"), path.name)
    ]
    seen: dict[str, str] = {}
    for rule in rules:
        if rule.name in seen:
            raise RuleFileError(
                f"rule {rule.name!r} is in {seen[rule.name]}.toml and in "
                f"{rule.family}.toml; names must be unique"
            )
        seen[rule.name] = rule.family
    return tuple(rules)


def relevant(rules: Iterable[Rule], operators: Iterable[str]) -> tuple[Rule, ...]:
    """Keep the rules that can ever match a graph of these operators.

    A rule stays if all operators of its left sides are in the graph or on the right
    side of a rule that stays.
    """
    rules = tuple(rules)
    waiting, known = list(rules), {*operators, "Output"}
    kept: list[Rule] = []
    while True:
        usable = [rule for rule in waiting if _operators(rule.lhs) <= known]
        if not usable:
            chosen = {rule.name for rule in kept}
            return tuple(rule for rule in rules if rule.name in chosen)
        waiting = [rule for rule in waiting if not _operators(rule.lhs) <= known]
        kept += usable
        for rule in usable:
            known |= _operators(rule.rhs)


def _operators(terms: Iterable[object]) -> set[str]:
    return {each.op for term in terms for each in applications(term)}  # type: ignore[arg-type]


def parse_file(text: str, file: str) -> tuple[Rule, ...]:
    """Read the text of one rule file.

    Raises:
        RuleFileError: The text is wrong; the error names file, line and rule.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RuleFileError(f"{file} is not TOML: {error}") from error
    unknown = set(document) - {"rule"}
    if unknown:
        raise RuleFileError(f"{file} has the table {min(unknown)!r}; possible: [[rule]]")
    rules: list[Rule] = []
    for table in document.get("rule", []):
        name = str(table.get("name", ""))
        try:
            rules += rules_of(table, file.removesuffix(".toml"))
        except RuleError as error:
            line = _line_of(text, name)
            raise RuleFileError(f"rule {name!r} ({file}, line {line}): {error}") from error
    return tuple(rules)


def _line_of(text: str, name: str) -> int:
    found = re.search(rf'^\s*name\s*=\s*"{re.escape(name)}"', text, re.MULTILINE)
    return text.count("\n", 0, found.end()) + 1 if found else 1


def rules_of(table: Mapping[str, object], family: str) -> Iterator[Rule]:
    """Yield the rules of one row of a file.

    Raises:
        RuleError: What is wrong with the row.
    """
    unknown = [key for key in table if key not in KEYS]
    if unknown:
        raise RuleError(f"unknown key {unknown[0]!r}; possible: {', '.join(KEYS)}")
    for key in ("name", "lhs", "rhs", "float", "instances"):
        if not table.get(key):
            raise RuleError(f"it has no {key!r}; needed: name, lhs, rhs, float, instances")
    for suffix, replaced in _versions(table):
        rule = _rule(replaced, family, f"{table['name']}{suffix}")
        yield rule
        if _choice(table, "direction", DIRECTIONS) == "both":
            yield _reverse(rule)


def _versions(
    table: Mapping[str, object],
) -> Iterator[tuple[str, Mapping[str, object]]]:
    over = table.get("over")
    if over is None:
        yield "", table
        return
    if not isinstance(over, dict) or len({len(names) for names in over.values()}) != 1:
        raise RuleError(f"'over' is {over!r}; possible: lists of equal length")
    for choice in zip(*over.values(), strict=True):
        replaced = dict(table)
        for letter, op in zip(over, choice, strict=True):
            pattern = re.compile(rf"\(\s*{re.escape(letter)}\b")
            for key in ("lhs", "rhs"):
                replaced[key] = [pattern.sub(f"({op}", t) for t in _texts(replaced, key)]
        yield f"[{','.join(choice)}]", replaced


def _texts(table: Mapping[str, object], key: str) -> list[str]:
    value = table.get(key, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise RuleError(f"{key!r} is {value!r}; possible: a text or a list of texts")
    return texts


def _choice(table: Mapping[str, object], key: str, possible: tuple[str, ...]) -> str:
    value = table.get(key, possible[0])
    if value not in possible:
        raise RuleError(f"{key!r} is {value!r}; possible: {', '.join(possible)}")
    return str(value)


def _rule(table: Mapping[str, object], family: str, name: str) -> Rule:
    lhs = tuple(parse_term(text) for text in _texts(table, "lhs"))
    rhs = tuple(parse_term(text) for text in _texts(table, "rhs"))
    where = tuple(parse_condition(text) for text in _texts(table, "where"))
    check_rule(lhs, rhs, where)
    evidence = table["float"]
    if not isinstance(evidence, dict):
        raise RuleError(f"'float' is {evidence!r}; possible: {{ tag = \"exact\" }}")
    tensors, rests = tensor_variables(lhs), rest_variables(lhs)
    labels = {a.label for side in lhs for a in applications(side)}
    known = (tensors - labels) | rests | attribute_variables(lhs)
    instances = []
    for instance in table["instances"]:  # type: ignore[attr-defined]
        parsed = parse_instance(instance, tensors, rests)
        _check_instance(instance, known)
        instances.append(parsed)
    return Rule(
        name,
        lhs,
        rhs,
        where,
        _choice(table, "dtypes", DTYPES),
        _choice(evidence, "tag", FLOAT_TAGS),
        family,
        tuple(instances),
        str(table.get("note", "")),
        *_proof(table),
        read_origin(table.get("origin")),
        measured_only=_choice(table, "costs", COSTS) == "measured",
    )


def _proof(table: Mapping[str, object]) -> tuple[str, str]:
    """Return verdict and ranks; both empty if the row has no proof."""
    proof = table.get("proof")
    if proof is None:
        return "", ""
    if not isinstance(proof, dict) or set(proof) != {"verdict", "ranks"}:
        raise RuleError(
            f'\'proof\' is {proof!r}; possible: {{ verdict = "all-sizes", ranks = "1-3" }}'
        )
    return _choice(proof, "verdict", TIERS), str(proof["ranks"])


def _check_instance(instance: Mapping[str, object], known: frozenset[str]) -> None:
    names = {name.removeprefix("..") for name in known}
    for name in instance:
        if name not in names:
            raise RuleError(
                f"an instance gives {name!r}; variables: {', '.join(sorted(names))}"
            )
    for name in sorted(names - set(instance)):
        if f"..{name}" not in known:
            raise RuleError(f"an instance gives no {name!r}")


def _reverse(rule: Rule) -> Rule:
    """Swap the sides of a rule; its variables must all be bound by the new left."""
    check_rule(rule.rhs, rule.lhs, rule.where)
    return replace(rule, name=f"{rule.name}.reverse", lhs=rule.rhs, rhs=rule.lhs)
