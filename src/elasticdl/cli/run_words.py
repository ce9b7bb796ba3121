"""The numbers of runs as a terminal shows them."""

from __future__ import annotations

__all__ = ["number", "seconds"]


def number(value: float | None) -> str:
    """
    >>> number(0.123456), number(15360.0), number(1234567.8), number(None)
    ('0.1235', '15,360', '1,234,568', '')
    """
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def seconds(value: float | None) -> str:
    """
    >>> seconds(0.4), seconds(75), seconds(3725.0), seconds(None)
    ('0 s', '1 min 15 s', '1 h 2 min', '')
    """
    if value is None:
        return ""
    whole = int(value)
    minutes, hours = whole // 60, whole // 3600
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
