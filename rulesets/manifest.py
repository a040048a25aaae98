"""The manifest of a rule folder: what is in its files, and what decided it.

`data/manifest.toml` counts the rules of each family by verdict, names the versions of the
packages with which they were proved, and holds a hash over the files. A test compares
counts and hash with the files, so that a changed file without a new audit is noticed.
"""

import hashlib
import platform
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from rulesets.errors import RuleFileError
from rulesets.refused import FILE as REFUSED
from rulesets.refused import load_refused
from rulesets.rule import Rule
from rulesets.store import load, shipped_folder

FILE = "manifest.toml"
LAWS = "laws"
DECIDING = ("numpy", "z3-solver")
HEADER = "# Written by `python -m rulesets manifest --write` and by `audit --write`.\n"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder holds.

    Attributes:
        sha256: Of all files but the manifest, names included.
        versions: Of Python and the packages that decide; when the verdicts were found.
        rules: For each family of rules in use how many have which verdict.
        laws: The same for the laws, which `derive` uses.
        refused: How many wrong rewrites are known.
    """

    sha256: str
    versions: Mapping[str, str]
    rules: Mapping[str, Mapping[str, int]]
    laws: Mapping[str, Mapping[str, int]]
    refused: int


def manifest_of(folder: Path | None = None, versions: Mapping[str, str] = {}) -> Manifest:
    """Make the manifest of a folder as it is.

    Args:
        folder: By default the shipped one.
        versions: Those with which the verdicts were found; default: see `installed`.
    """
    folder = shipped_folder() if folder is None else folder
    laws = folder / LAWS
    refused = folder / REFUSED
    return Manifest(
        content_hash(folder),
        versions or installed(),
        _counts(load(folder)),
        _counts(load(laws)) if laws.is_dir() else {},
        len(load_refused(refused)) if refused.exists() else 0,
    )


def installed() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide."""
    return {"python": platform.python_version()} | {n: version(n) for n in DECIDING}


def content_hash(folder: Path) -> str:
    """Return the SHA-256 of a folder's files but the manifest, whatever their line ends."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.toml")):
        if path.name != FILE:
            text = path.read_text(encoding="utf-8")
            digest.update(f"{path.relative_to(folder).as_posix()}\n{text}\n".encode())
    return digest.hexdigest()


def _counts(rules: tuple[Rule, ...]) -> dict[str, dict[str, int]]:
    families = sorted({rule.family for rule in rules})
    found = Counter((rule.family, rule.verdict or "none") for rule in rules)
    return {
        family: {tier: count for (one, tier), count in found.items() if one == family}
        for family in families
    }


def read(path: Path | None = None) -> Manifest:
    """Read a manifest, by default the shipped one.

    Raises:
        RuleFileError: It is no manifest.
    """
    path = shipped_folder() / FILE if path is None else path
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        return Manifest(
            found["sha256"],
            found["versions"],
            found["rules"],
            found["laws"],
            found["refused"],
        )
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise RuleFileError(f"{path.name} is no manifest: {error}") from error


def write(path: Path, manifest: Manifest) -> None:
    """Write a manifest."""
    lines = [HEADER, f'sha256 = "{manifest.sha256}"', f"refused = {manifest.refused}"]
    lines += ["", "[versions]"]
    lines += [f'{name} = "{each}"' for name, each in manifest.versions.items()]
    for title, families in (("rules", manifest.rules), ("laws", manifest.laws)):
        lines += ["", f"[{title}]"]
        for family, counts in families.items():
            inside = ", ".join(f"{tier} = {count}" for tier, count in counts.items())
            lines.append(f"{family} = {{ {inside} }}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stale(kept: Manifest, found: Manifest) -> list[str]:
    """Say where a manifest is not that of the files; versions are not compared."""
    pairs = [(w, getattr(kept, w), getattr(found, w)) for w in ("rules", "laws", "refused")]
    wrong = [f"{what}: kept {a}, found {b}" for what, a, b in pairs if a != b]
    if kept.sha256 != found.sha256:
        wrong.append(f"sha256: kept {kept.sha256[:12]}…, found {found.sha256[:12]}…")
    return wrong
