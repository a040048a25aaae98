"""Wrong rewrites that are known: traps of history and unsound published equations.

`data/refused.toml` keeps them, so that nobody ships one again. A row is a rule or a
published equation, as they were written by somebody, with where it comes from:

[[rule]]                                  # sides and instances as in any rule file
source = "onnx/optimizer #269"
counterexample = "at [0, 1]: …"           # written by `python -m rulesets refute --write`

[[equation]]
text = "conv2d(…) == conv2d(…)"           # see rulesets.corpus_text
source = "…"
counterexample = "at [1, 0]: …"
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rulesets.corpus_check import counterexample
from rulesets.corpus_text import Published, read
from rulesets.counterexample import Counterexample, differing
from rulesets.errors import CorpusError, RuleError, RuleFileError
from rulesets.rule import Rule
from rulesets.store import rules_of, shipped_folder

FILE = "refused.toml"
SEEDS = (1, 2, 3)
_KEYS = ("source", "counterexample")


@dataclass(frozen=True, slots=True)
class Refused:
    """A wrong rewrite.

    Attributes:
        name: The name of the rule, or the text of the equation.
        wrong: The rule or the equation.
        source: Where it was published or shipped, or "planted".
        counterexample: The line that refutes it, as kept.
    """

    name: str
    wrong: Rule | Published
    source: str
    counterexample: str


def load_refused(path: Path | None = None) -> tuple[Refused, ...]:
    """Read the wrong rewrites of a file, by default the shipped one.

    Raises:
        RuleFileError: The file is wrong; the error names the row.
    """
    path = shipped_folder() / FILE if path is None else path
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise RuleFileError(f"{path.name} is not TOML: {error}") from error
    unknown = set(document) - {"rule", "equation"}
    if unknown:
        raise RuleFileError(
            f"{path.name} has the table {min(unknown)!r}; possible: [[rule]], [[equation]]"
        )
    rows = [_rule_row(table, path.name) for table in document.get("rule", [])]
    return (
        *rows,
        *(_equation_row(each, path.name) for each in document.get("equation", [])),
    )


def _rule_row(table: Mapping[str, object], file: str) -> Refused:
    plain = {key: value for key, value in table.items() if key not in _KEYS}
    try:
        (rule,) = rules_of(plain, file.removesuffix(".toml"))
    except (RuleError, ValueError) as error:
        raise RuleFileError(f"rule {table.get('name')!r} ({file}): {error}") from error
    return Refused(rule.name, rule, *_evidence(table, rule.name, file))


def _equation_row(table: Mapping[str, object], file: str) -> Refused:
    text = str(table.get("text", ""))
    (equation,) = read(text, file)
    return Refused(text, equation, *_evidence(table, text, file))


def _evidence(table: Mapping[str, object], name: str, file: str) -> tuple[str, str]:
    if not table.get("source"):
        raise RuleFileError(f"{name!r} ({file}) has no 'source'; say where it comes from")
    return str(table["source"]), str(table.get("counterexample", ""))


def refute(wrong: Rule | Published) -> Counterexample | None:
    """Return where a rewrite fails, None if it was not found to.

    A rule must fail on every one of its instances, for they are given as counterexamples;
    the line tells of the first.
    """
    if isinstance(wrong, Published):
        try:
            return counterexample(wrong)
        except CorpusError as error:
            return Counterexample({}, fault=str(error))
    found = [_on(wrong, instance) for instance in wrong.instances]
    return found[0] if all(found) else None


def _on(rule: Rule, instance: object) -> Counterexample | None:
    tried = (differing(rule, instance, seed) for seed in SEEDS)  # type: ignore[arg-type]
    return next((each for each in tried if each is not None), None)


def refutable(text: str, file: str, source: str) -> Iterator[Refused]:
    """Yield the equations of a published file that fail somewhere.

    Args:
        text: The file, see `rulesets.corpus_text`.
        file: Its name, for errors.
        source: Where the file was published; the line is added.
    """
    for equation in read(text, file):
        found = refute(equation)
        if found is not None:
            where = f"{source}, line {equation.line}"
            yield Refused(equation.text, equation, where, str(found))


def write(path: Path, rows: Iterable[Refused]) -> None:
    """Write counterexamples into a file, and the equations that it does not have.

    What stands there is kept as it is, comments included.
    """
    found = {row.name: row for row in rows}
    lines = list(_written(path.read_text(encoding="utf-8").split("\n"), found))
    known = {row.name for row in load_refused(path)}
    for row in found.values():
        if row.name not in known:
            lines += ["[[equation]]", f"text = {_quoted(row.name)}"]
            lines += [f"source = {_quoted(row.source)}"]
            lines += [f"counterexample = {_quoted(row.counterexample)}", ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _written(lines: Iterable[str], found: Mapping[str, Refused]) -> Iterator[str]:
    row = None
    for line in lines:
        name = re.match(r'(?:name|text)\s*=\s*"(.*)"$', line)
        if name is not None:
            row = found.get(name[1])
        if row is not None and line.startswith("counterexample ="):
            continue
        yield line
        if row is not None and line.startswith("source ="):
            yield f"counterexample = {_quoted(row.counterexample)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
