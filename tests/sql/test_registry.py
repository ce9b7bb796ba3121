"""Models by name and version: found when whole, never in part."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from elasticdl.errors import DataError, InvalidValue, UnknownName
from elasticdl.sql.registry import Registry, Version


@pytest.fixture(params=["local", "memory"])
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    local = request.param == "local"
    yield Registry(tmp_path / "models" if local else f"memory://{uuid.uuid4().hex}/models")


def add(registry: Registry, name: str = "pay") -> Version:
    version = registry.reserve(name)
    (version.path / "model").mkdir(parents=True, exist_ok=True)
    (version.path / "model" / "params").write_text("numbers")
    return registry.commit(version, {"label": "salary"})


def test_versions_count_and_the_newest_is_found(registry: Registry) -> None:
    assert registry.names() == []
    assert [add(registry).number for _ in range(3)] == [1, 2, 3]
    assert registry.find("pay").number == 3
    assert registry.find("pay@2").number == 2
    assert registry.find("pay").card["label"] == "salary"
    assert registry.names() == ["pay"]


def test_what_was_not_committed_is_not_there(registry: Registry) -> None:
    add(registry)
    begun = registry.reserve("pay")
    (begun.path / "model").mkdir(parents=True, exist_ok=True)
    assert registry.find("pay").number == 1
    registry.abandon(begun)
    assert registry.find("pay").number == 1
    only_begun = registry.reserve("other")
    assert registry.names() == ["pay"]
    registry.abandon(only_begun)


def test_a_version_that_is_dropped_is_gone_and_its_number_free(registry: Registry) -> None:
    add(registry)
    add(registry)
    registry.drop("pay@2")
    assert registry.find("pay").number == 1
    assert add(registry).number == 2
    assert [one.number for one in registry.drop("pay")] == [1, 2]
    assert registry.names() == []


def test_two_that_train_one_name_get_two_numbers(tmp_path: Path) -> None:
    one, other = Registry(tmp_path), Registry(tmp_path)
    first, second = one.reserve("pay"), other.reserve("pay")
    assert (first.number, second.number) == (1, 2)
    assert first.path.is_dir()
    other.commit(second, {})
    one.commit(first, {})
    assert [version.number for version in one.versions("pay")] == [1, 2]
    assert not list(tmp_path.glob("pay/.*"))


def test_what_a_kill_left_is_removed_by_the_next_training(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    left = registry.reserve("pay")
    (left.path / "half").write_text("")
    registry._locks.pop(("pay", 1)).close()  # as the end of its process does
    again = registry.reserve("pay")
    assert again.number == 1
    assert not (again.path / "half").exists()
    registry.abandon(again)


def test_an_unknown_name_or_version_is_told_with_the_nearest(registry: Registry) -> None:
    with pytest.raises(UnknownName, match="There are no models yet"):
        registry.find("pay")
    add(registry, "salaries")
    with pytest.raises(UnknownName, match="Did you mean 'salaries'"):
        registry.find("salarys")
    with pytest.raises(UnknownName, match="Known: salaries@1"):
        registry.find("salaries@7")
    with pytest.raises(UnknownName, match="no model"):
        registry.drop("pay")


@pytest.mark.parametrize(
    "name", ["../up", "a/../b", "a/b", "/etc", "", ".", "..", "a..b", "1a", "a b", "a\0", "x" * 101]
)
def test_a_name_that_leads_elsewhere_is_refused(registry: Registry, name: str) -> None:
    with pytest.raises(InvalidValue, match="Invalid model name"):
        registry.reserve(name)
    with pytest.raises(InvalidValue, match="Invalid model name"):
        registry.find(name)
    with pytest.raises(InvalidValue, match="Invalid model name"):
        registry.drop(name)


def test_a_version_that_is_no_number_is_refused(registry: Registry) -> None:
    with pytest.raises(InvalidValue, match="Invalid version 'two'"):
        registry.find("pay@two")


def test_a_card_that_was_altered_is_told(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    add(registry)
    (tmp_path / "pay" / "1.json").write_text("{")
    with pytest.raises(DataError, match="altered"):
        registry.find("pay")
