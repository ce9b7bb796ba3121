"""The names that users import, frozen: adding or losing one is a decision, not an accident."""

from __future__ import annotations

import importlib

import pytest

import elasticdl

SURFACE = [
    "AbstractDataReader",
    "ElasticDLError",
    "ElasticDLSpec",
    "Mode",
    "Result",
    "__version__",
    "callbacks",
    "errors",
    "evaluate",
    "predict",
    "sql",
    "train",
]

OLD_PATHS = {
    "elasticdl.python.common.constants": "Mode",
    "elasticdl.python.data.reader.data_reader": "AbstractDataReader",
    "elasticdl.python.elasticdl.client": "main",
}


def test_all_is_the_frozen_list() -> None:
    assert sorted(elasticdl.__all__) == SURFACE
    assert set(SURFACE) <= set(dir(elasticdl))


@pytest.mark.parametrize("name", SURFACE)
def test_every_name_is_there_when_asked_for(name: str) -> None:
    value = getattr(elasticdl, name)
    if name in elasticdl._HOMES:
        assert value is getattr(importlib.import_module(elasticdl._HOMES[name]), name)


def test_every_lazy_name_is_exported() -> None:
    assert {*elasticdl._HOMES, *elasticdl._MODULES, "__version__"} == set(elasticdl.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        elasticdl.trian  # noqa: B018


@pytest.mark.parametrize(("module", "name"), OLD_PATHS.items())
def test_old_import_paths_still_lead_there(module: str, name: str) -> None:
    old = importlib.import_module(module)
    assert old.__all__ == [name]
    assert hasattr(old, name)
