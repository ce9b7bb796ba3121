"""What runs say and count, as a terminal shows it."""

from __future__ import annotations

__all__ = ["number", "plain", "seconds"]


def plain(text: str, *, indent: int | None = None) -> str:
    """A text of a run: what commands the terminal is shown, not obeyed.

    Args:
      indent: keep lines and tabs, with each line but the first moved by so much: none looks like one of ours. Without
        it all is one line, as a name is.

    >>> plain("a\\x1b[2Jb\\nc"), plain("a\\nb", indent=2)
    ('a\\\\x1b[2Jb\\\\nc', 'a\\n  b')
    """
    if text.isprintable():
        return text
    if indent is None:
        return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
    lines = ("\t".join(map(plain, line.split("\t"))) for line in text.split("\n"))
    return ("\n" + " " * indent).join(lines)


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
    >>> seconds(0.4), seconds(75), seconds(3725.0), seconds(-9.0), seconds(None)
    ('0 s', '1 min 15 s', '1 h 2 min', '0 s', '')
    """
    if value is None:
        return ""
    whole = max(0, int(value))
    minutes, hours = whole // 60, whole // 3600
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"
