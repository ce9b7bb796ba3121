"""Tables of the reference, beside the code that they are about."""

from __future__ import annotations

import dataclasses
import re

from elasticdl import Result, errors
from elasticdl.contract import dataset, loss
from elasticdl.contract.bind import Role
from elasticdl.contract.keras_class import _DEFAULTS

from .blocks import ROOT

CONTRACTS = (ROOT / "docs" / "reference" / "contracts.md").read_text(encoding="utf-8")
PYTHON = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
ROLES: dict[str, Role] = {
    "dataset": dataset._DATASET,
    "mode": dataset._MODE,
    "metadata": dataset._METADATA,
    "training": dataset._TRAINING,
    "labels": loss.LABELS,
    "outputs": loss.OUTPUTS,
    "sample weight": loss._WEIGHT,
}


def section(page: str, heading: str) -> str:
    level = heading.partition(" ")[0]
    return page.partition(f"\n{heading}\n")[2].partition(f"\n{level} ")[0]


def rows(text: str) -> dict[str, str]:
    return dict(re.findall(r"^\| (.+?) \| (.+?) \|", text, re.MULTILINE))


def test_names_that_bind_arguments_are_those_of_the_page() -> None:
    table = rows(section(CONTRACTS, "## How arguments are bound"))
    for what, role in ROLES.items():
        assert set(re.findall(r"`(\w+)`", table[what])) == role.names


def test_defaults_of_a_class_are_those_of_the_page() -> None:
    table = rows(section(CONTRACTS, "## Keras class"))
    documented = {name.strip("`"): same.strip("`") for name, same in table.items() if "`" in name}
    assert documented == {attribute: part for part, attribute in _DEFAULTS.items()}


def test_attributes_of_a_result_are_those_of_the_page() -> None:
    names = [name.strip("`") for name in rows(section(PYTHON, "## Result")) if "`" in name]
    assert names == [field.name for field in dataclasses.fields(Result)]


def test_tree_of_errors_is_that_of_the_page() -> None:
    tree = section(PYTHON, "## errors").partition("```\n")[2].partition("```")[0]
    drawn = re.findall(r"^[^\w]*(\w+)(?: \((\w+)\))?", tree, re.MULTILINE)
    assert {name for name, _ in drawn} == {
        name for name in errors.__all__ if isinstance(getattr(errors, name), type)
    }
    for name, builtin in drawn:
        bases = {base.__name__ for base in getattr(errors, name).__mro__}
        assert not builtin or builtin in bases
