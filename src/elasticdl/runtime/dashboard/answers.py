"""Answers as JSON, made once for as long as what they are made of stays the same."""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

__all__ = ["Answers", "tag_of", "to_json"]

MOST_BYTES = 32 << 20


class Answers:
    """The last answers, by what they depend on."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], Any]) -> bytes:
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = to_json(make())
        with self._lock:
            self._bytes += len(made) - len(self._made.pop(key, b""))
            self._made[key] = made
            while self._bytes > MOST_BYTES and len(self._made) > 1:
                self._bytes -= len(self._made.popitem(last=False)[1])
        return made


def to_json(data: Any) -> bytes:
    """Plain ASCII: a file's name may have bytes that are no text in any encoding."""
    try:
        return _dumped(data)
    except ValueError:  # rare enough to be looked for only then
        return _dumped(_finite(data))


def _dumped(data: Any) -> bytes:
    return json.dumps(data, allow_nan=False, separators=(",", ":"), default=str).encode("ascii")


def _finite(data: Any) -> Any:
    """JSON has no infinity and nothing that is not a number."""
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def tag_of(*parts: Hashable) -> str:
    """An ETag of what an answer depends on."""
    text = json.dumps([str(part) for part in parts])
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:20]}"'
