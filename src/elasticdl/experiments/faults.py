"""The faults of a config in words: the key, what was received, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from elasticdl.errors import near_match

__all__ = ["Give", "faults_of"]


@dataclass(frozen=True)
class Give:
    """What a key's value is to be; stands beside the type."""

    what: str


def faults_of(errors: Iterable[Mapping[str, Any]], model: type[BaseModel]) -> Iterator[str]:
    """One line a key, whatever number of rules it broke."""
    told: set[str] = set()
    for error in errors:
        key, owner = _place(error["loc"], model)
        if key not in told:
            told.add(key)
            yield f"{key}: {_words(error, key.rpartition('.')[2], owner)}"


def _place(place: tuple[Any, ...], model: type[BaseModel]) -> tuple[str, type[BaseModel]]:
    """The dotted key, and the model that it is a key of; what lies deeper is pydantic's own."""
    first = str(place[0])
    field = model.model_fields.get(first)
    inner = field.annotation if field else None
    if isinstance(inner, type) and issubclass(inner, BaseModel) and len(place) > 1:
        return f"{first}.{place[1]}", inner
    return first, model


def _words(error: Mapping[str, Any], key: str, owner: type[BaseModel]) -> str:
    field = owner.model_fields.get(key)
    if error["type"] == "missing":
        return f"is missing. Give {_wanted(field)}."
    if field is None:
        match = near_match(key, owner.model_fields)
        advice = f"Did you mean {match!r}?" if match else _elsewhere(owner)
        return f"is no key of a config; received {error['input']!r}. {advice}"
    return f"received {error['input']!r}. Give {_wanted(field)}.{_quotes(error)}"


def _elsewhere(owner: type[BaseModel]) -> str:
    if len(owner.model_fields) > 5:
        return "Take it out, or put it into a section of yours, such as model_builder."
    return f"Known: {', '.join(owner.model_fields)}."


def _wanted(field: FieldInfo | None) -> str:
    if field is None:
        return "a value"
    what = next((part.what for part in field.metadata if isinstance(part, Give)), "a value")
    example = field.examples[0] if field.examples else None
    shown = str(example).lower() if isinstance(example, bool) else example
    return what if example is None else f"{what}, for example {shown}"


def _quotes(error: Mapping[str, Any]) -> str:
    number = isinstance(error["input"], int | float) and not isinstance(error["input"], bool)
    return " Put quotes around it." if error["type"] == "string_type" and number else ""
