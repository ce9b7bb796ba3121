"""`--set model_builder.n_filters=256`: a value of the config, replaced for one run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from elasticdl.errors import InvalidValue, UnknownName, near_match, nearest
from elasticdl.experiments.yaml_text import parse_yaml

__all__ = ["override"]

_NEARLY = 0.8
"""Above this a new key is taken for a slip of one that is there."""


def override(config: dict[Any, Any], text: str, known: Collection[str]) -> None:
    """Put one `key=value` into a config that is not yet checked.

    Args:
      config: is changed.
      text: a dotted key, and its value in YAML.
      known: the keys that a config may have at its top.

    >>> config = {"model_builder": {"n_filters": 512}}
    >>> override(config, "model_builder.n_filters=256", known=["model_builder"])
    >>> config
    {'model_builder': {'n_filters': 256}}
    """
    dotted, equals, value = text.partition("=")
    path = [part.strip() for part in dotted.split(".")]
    if not equals or not all(path):
        raise InvalidValue(
            f"Invalid --set {text!r}: give key=value, for example --set model_builder.n_filters=256."
        )
    if path[0] not in known:
        raise UnknownName(
            f"Invalid --set {text!r}: a config has no key {path[0]!r}. {nearest(path[0], known)}"
        )
    section = config
    for depth, part in enumerate(path[:-1]):
        section = _enter(section, part, ".".join(path[: depth + 1]), text)
    key = _key(section, path[-1])
    if len(path) > 1:
        _refuse_slip(section, key, ".".join(path[:-1]), text)
    section[key] = parse_yaml(value, f"The value of --set {text!r}")


def _enter(section: dict[Any, Any], part: str, dotted: str, text: str) -> dict[Any, Any]:
    key = _key(section, part)
    if section.get(key) is None:
        section[key] = {}
    inner = section[key]
    if not isinstance(inner, dict):
        raise InvalidValue(
            f"Invalid --set {text!r}: {dotted} is {inner!r}, not a section. Give it a value as a "
            f"whole: --set {dotted}=..."
        )
    return inner


def _key(section: dict[Any, Any], part: str) -> Any:
    """The key that is there under this text: a key may be a number."""
    return next((key for key in section if str(key) == part), part)


def _refuse_slip(section: dict[Any, Any], key: Any, dotted: str, text: str) -> None:
    if key not in section and (match := near_match(str(key), map(str, section), _NEARLY)):
        raise UnknownName(
            f"Invalid --set {text!r}: {dotted} has no key {key!r}. Did you mean {match!r}? If both are "
            "meant, put the new one into the config file."
        )
