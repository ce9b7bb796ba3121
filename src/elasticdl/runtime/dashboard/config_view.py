"""The configuration of a run as rows, without secrets. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from elasticdl.job.config import COMMANDS, options
from elasticdl.runtime.dashboard.hiding import HIDDEN, hide, is_secret
from elasticdl.runtime.dashboard.shortening import fits, short

__all__ = ["config_rows", "config_values"]

DEEPEST = 8
LONGEST = 20_000
LARGEST = 4 << 20


def config_rows(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What was asked for, then the defaults. `job` is a job.json, or the config of an experiment."""
    given = config_values(job)
    rows = [{"key": key, "value": value, "is_default": False} for key, value in given.items()]
    command = job.get("command")
    if command in COMMANDS:
        rows += [
            {"key": one.name, "value": _shown(one.default), "is_default": True}
            for one in options(str(command))
            if one.name not in given and one.default is not None and not one.kubernetes
        ]
    return rows


def config_values(job: Mapping[str, Any]) -> dict[str, str]:
    """Each value as text, those in sections as `section.key`."""
    return dict(_flat(job, "", 0))


def _flat(section: Mapping[Any, Any], prefix: str, depth: int) -> Iterator[tuple[str, str]]:
    for name, value in section.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and value and depth < DEEPEST and not is_secret(key):
            yield from _flat(value, f"{key}.", depth + 1)
        else:
            yield key, HIDDEN if is_secret(key) and value else _shown(value)


def _shown(value: Any) -> str:
    if not fits(value, LARGEST):
        return "..."
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return short(hide(text), LONGEST)
