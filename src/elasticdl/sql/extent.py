"""How far things of SQL go: a parenthesis, a plain statement, a routine with statements inside of it."""

from __future__ import annotations

from typing import NamedTuple

from elasticdl.sql.scan import Dialect, Token, scan

__all__ = ["Extent", "closing", "end_of_plain"]

_ROUTINES = ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT")
_DEEPER, _HIGHER = frozenset("([{"), frozenset(")]}")
_HEAD = 16  # words of a CREATE statement in which it says what it creates


class Extent(NamedTuple):
    """Where a statement ends, whether a semicolon closes it, and where the next may begin."""

    end: int
    closed: bool
    after: int


def closing(text: str, opening: Token, dialect: Dialect) -> Token | None:
    """What closes a bracket; None when nothing does."""
    depth = 0
    for token in scan(text, opening.start, dialect, coarse=True):
        if token.kind in _DEEPER:
            depth += 1
        elif token.kind in _HIGHER:
            depth -= 1
            if not depth:
                return token
    return None


def end_of_plain(text: str, start: int, dialect: Dialect) -> Extent:
    """The extent of a statement of the database's own."""
    if _is_routine(text, start, dialect):
        return _end_of_routine(text, start, dialect)
    depth, end = 0, start
    for token in scan(text, start, dialect, coarse=True):
        if token.kind in _DEEPER:
            depth += 1
        elif token.kind in _HIGHER:
            depth = max(depth - 1, 0)
        elif token.kind == ";" and not depth:
            return _extent(text, start, end, token)
        if token.kind != "word" or not text[token.start : token.end].isspace():
            end = token.end
    return _extent(text, start, end, None)


def _is_routine(text: str, start: int, dialect: Dialect) -> bool:
    """`CREATE TRIGGER` and the like, and MariaDB's `BEGIN NOT ATOMIC`: semicolons stand inside of them."""
    words: list[str] = []
    for token in scan(text, start, dialect):
        if token.kind in ("(", ";") or len(words) == _HEAD:
            break
        if token.kind == "word":
            words.append(text[token.start : token.end].upper())
        if words[:1] not in (["CREATE"], ["BEGIN"]):
            return False
    if words[:2] == ["BEGIN", "NOT"]:
        return True
    return words[:1] == ["CREATE"] and any(word in _ROUTINES for word in words)


def _end_of_routine(text: str, start: int, dialect: Dialect) -> Extent:
    """BEGIN and CASE open a block, END closes one, but `END IF` and `END LOOP` do not."""
    depth, end, ending = 0, start, False
    for token in scan(text, start, dialect):
        word = text[token.start : token.end].upper() if token.kind == "word" else ""
        if ending:
            depth -= word not in ("IF", "LOOP", "WHILE", "REPEAT")
            ending = False
            word = "" if word == "CASE" else word
        if token.kind == ";" and depth <= 0:
            return _extent(text, start, end, token)
        ending = word == "END"
        depth += word in ("BEGIN", "CASE")
        end = token.end
    return _extent(text, start, end, None)


def _extent(text: str, start: int, end: int, semicolon: Token | None) -> Extent:
    while end > start and text[end - 1].isspace():  # coarse tokens take spaces along
        end -= 1
    return Extent(end, semicolon is not None, semicolon.end if semicolon else len(text))
