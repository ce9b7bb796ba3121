"""Secrets in what runs tell: hidden here, for all views. Rather too much is hidden than too little. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["HIDDEN", "hide", "hide_fields", "hide_texts", "is_secret"]

HIDDEN = "(hidden)"
DEEPEST = 20
LONGEST = 100_000
"""Of a longer text no more is shown anywhere."""
_SECRET = re.compile(
    r"passw(or)?d|passphrase|secret|token(?!iz|s)|credential|(api|private|access|account)[_-]?key"
    r"|(^|[._-])(key|auth|authorization|pass|pwd|sig|signature|envs)$",
    re.IGNORECASE,
)
_FRONT = re.compile(r"[^/?#]*")
_NAMED = re.compile(
    r"""(?<![\w.-])(?:(?P<name>[\w.-]+)\\*["']?\s*[=:]\s*\\*|(?P<flag>--[\w-]+)\\*["']?,?\s+(?!--))"""
)
_VALUE = re.compile(
    r"""(?:(?:Bearer|Basic)\s+)?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s&;]+)""",
    re.IGNORECASE | re.DOTALL,
)


def is_secret(name: str) -> bool:
    """Whether what has this name is for nobody's eyes.

    >>> is_secret("storage_options.key"), is_secret("WANDB_KEY"), is_secret("keys"), is_secret("tokenizer")
    (True, True, False, False)
    """
    return bool(_SECRET.search(name))


def hide(text: str) -> str:
    """A text without the logins of addresses, and without the values of what has a secret's name.

    >>> hide("redis://:pass@host/0 https://host/x?a=1&sig=abc --password abc")
    'redis://(hidden)@host/0 https://host/x?a=1&sig=(hidden) --password (hidden)'
    """
    text = re.sub(r"\S+", lambda word: _without_logins(word[0]), text[:LONGEST])
    parts, at, begin = [], 0, 0
    while found := _NAMED.search(text, begin):
        begin = found.end()
        if not is_secret(found["name"] or found["flag"]):
            continue
        if value := _VALUE.match(text, begin):
            parts += [text[at:begin], HIDDEN]
            at = begin = value.end()
    return "".join((*parts, text[at:]))


def _without_logins(word: str) -> str:
    """A password may hold an @ or a /, so the last @ of the word ends it; without a password a / does."""
    last = word.rfind("@") + 1
    parts, at, begin = [], 0, 0
    while (begin := word.find("://", begin) + 3) > 2 and begin < last:
        end = _FRONT.match(word, begin).end()  # type: ignore[union-attr]
        front = word[begin:end]
        if ":" in front.partition("@")[0]:
            end = last
        elif "@" in front:
            end = begin + front.rfind("@") + 1
        else:
            begin = end
            continue
        parts += [word[at:begin], f"{HIDDEN}@"]
        at = begin = end
    return "".join((*parts, word[at:]))


def hide_texts(value: Any) -> Any:
    """The same data, with secrets hidden in all its texts."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, dict):
        return {name: hide_texts(one) for name, one in value.items()}
    return [hide_texts(one) for one in value] if isinstance(value, list | tuple) else value


def hide_fields(fields: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The fields of an event; those with a secret's name tell nothing but numbers."""
    return {name: _field(name, value, depth) for name, value in fields.items()}


def _field(name: str, value: Any, depth: int) -> Any:
    if is_secret(name) and isinstance(value, str | list | dict) and value:
        return HIDDEN
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return "..."
    if isinstance(value, dict):
        return hide_fields(value, depth + 1)
    if isinstance(value, list):
        return [_field("", one, depth + 1) for one in value]
    return hide(value) if isinstance(value, str) else value
