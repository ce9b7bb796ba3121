"""Numbers and times as people read them."""

from __future__ import annotations

import math
import time
from typing import Any

__all__ = ["shown", "shown_duration", "shown_time"]


def shown(value: Any) -> str:
    """A number with four significant digits; a count as it is.

    >>> shown(0.123456), shown(1234.56), shown(500), shown(3e-9)
    ('0.1235', '1235', '500', '3.000e-09')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "\N{EN DASH}"
    if isinstance(value, float) and math.isinf(value):
        return "\N{INFINITY}" if value > 0 else "-\N{INFINITY}"
    return f"{value:#.4g}".rstrip(".") if isinstance(value, float) else str(value)


def shown_time(seconds: float | None) -> str | None:
    """A point in time, in UTC.

    >>> shown_time(0)
    '1970-01-01 00:00 UTC'
    """
    return None if seconds is None else time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


def shown_duration(seconds: float | None) -> str | None:
    """
    >>> shown_duration(7.26), shown_duration(75), shown_duration(7380)
    ('7.3 s', '1 min 15 s', '2 h 3 min')
    """
    if seconds is None:
        return None
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
