"""What the packages declare as public is there, documented, and nothing else."""

import importlib
import types

import pytest

PACKAGES = ("extraction", "rulesets", "tensat")


@pytest.mark.parametrize("package", PACKAGES)
def test_all_lists_what_is_public(package: str) -> None:
    """``__all__`` is sorted as ruff sorts it, and holds every public name but modules."""
    module = importlib.import_module(package)
    listed = set(getattr(module, "__all__", ()))
    found = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert found == {name for name in listed if not name.startswith("_")}


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_documented(package: str) -> None:
    """Every public function and class has a docstring."""
    module = importlib.import_module(package)
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if callable(value):
            assert value.__doc__, f"{package}.{name}"
