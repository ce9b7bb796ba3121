"""The words and signs of SQL in a database's dialect: just enough to know what is a string, a comment or a parenthesis.

A scanner of our own, not sqlglot's, for three reasons: a text changes its rules for quotes where our clause begins,
so it has to be read piece by piece; a long INSERT must cost next to nothing; and what does not concern us
must reach the database as it is, however odd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from elasticdl.errors import InvalidValue, StatementError, nearest

__all__ = ["DIALECTS", "Dialect", "Token", "Unfinished", "dialect_of", "end_of_comment", "scan"]

_DOUBLED = r"{0}[^{0}]*+(?:{0}{0}[^{0}]*+)*+{0}"
_BACKSLASHED = r"{0}(?:[^{0}\\]++|\\.|{0}{0})*+{0}"
_SPACE = r"[\s\ufeff]+"  # a file may begin with a byte order mark


class Unfinished(StatementError):
    """The text ends inside of a string or a comment: more of it may come."""


class Token(NamedTuple):
    """A piece of SQL: `kind` is word, number, quoted, hint, or the sign itself."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True)
class Dialect:
    """How a database writes strings, names and comments; by sqlglot's name."""

    name: str
    quotes: str = "'\"`"
    """What may begin a string or a name; the same sign ends it, and stands for itself when doubled."""
    backslash: str = ""
    """Those of the quotes in which a backslash takes the sign after it along."""
    brackets: bool = False
    """`[a name]`."""
    dollars: bool = False
    """`$tag$ a string $tag$`, and `E'it\\'s'`."""
    nested_comments: bool = False
    open_comment: bool = False
    """The end of the text may close a comment."""
    hash_comment: bool = False
    dashes_need_space: bool = False

    @cached_property
    def quoted(self) -> Mapping[str, re.Pattern[str]]:
        forms = {q: _BACKSLASHED if q in self.backslash else _DOUBLED for q in self.quotes}
        return {q: re.compile(form.format(q), re.DOTALL) for q, form in forms.items()}

    @cached_property
    def token(self) -> re.Pattern[str]:
        return self._pattern(r"(?P<word>[^\W\d][\w$]*)|(?P<number>\.?\d[\w.]*)")

    @cached_property
    def coarse(self) -> re.Pattern[str]:
        """Like `token`, with all that is neither quoted nor nests anything taken together, spaces too."""
        return self._pattern(r"(?P<word>[^'\"`$/#\-()\[\]{};]+)")

    def _pattern(self, words: str) -> re.Pattern[str]:
        line = r"--(?=[\s\x00-\x1f]|\Z)[^\n]*" if self.dashes_need_space else r"--[^\n]*"
        if self.hash_comment:
            line += r"|\#[^\n]*"
        openings = self.quotes + (r"\[" if self.brackets else "")
        dollar = r"(?P<dollar>(?<![\w$])\$(?:[^\W\d]\w*)?\$)|" if self.dollars else ""
        skipped = rf"(?P<space>{_SPACE})|(?P<line>{line})|(?P<block>/\*)"
        return re.compile(
            rf"{words}|{skipped}|(?P<quote>[{openings}])|{dollar}(?P<sign>.)", re.DOTALL
        )


_KNOWN = (
    Dialect("duckdb", dollars=True, nested_comments=True),
    Dialect("sqlite", brackets=True, open_comment=True),
    Dialect("postgres", quotes="'\"", dollars=True, nested_comments=True),
    Dialect("mysql", backslash="'\"", hash_comment=True, dashes_need_space=True),
)
DIALECTS: Mapping[str, Dialect] = {dialect.name: dialect for dialect in _KNOWN}
_ESCAPE_STRING = re.compile(_BACKSLASHED.format("'"), re.DOTALL)
_COMMENT_ENDS = re.compile(r"/\*|\*/")


def dialect_of(name: str) -> Dialect:
    if name not in DIALECTS:
        raise InvalidValue(f"Unknown SQL dialect {name!r}. {nearest(name, DIALECTS)}")
    return DIALECTS[name]


def scan(text: str, start: int, dialect: Dialect, *, coarse: bool = False) -> Iterator[Token]:
    """The tokens from `start` on, without spaces and comments.

    Args:
      coarse: words, numbers, spaces and signs that nest nothing come in heaps, several times faster.

    Raises:
      Unfinished: a string, name or comment that the text does not close.
    """
    match = (dialect.coarse if coarse else dialect.token).match
    position = start
    while found := match(text, position):
        kind, begin, position = found.lastgroup, position, found.end()
        if kind == "word" or kind == "number":
            yield Token(kind, begin, position)
        elif kind == "sign":
            yield Token(text[begin], begin, position)
        elif kind == "quote":
            position = _end_of_quoted(text, begin, dialect)
            yield Token("quoted", begin, position)
        elif kind == "block":
            position = end_of_comment(text, begin, dialect)
            if _speaks_to_database(text, begin, dialect):
                yield Token("hint", begin, position)
        elif kind == "dollar":
            position = _end_of_dollars(text, begin, position)
            yield Token("quoted", begin, position)


def _end_of_quoted(text: str, start: int, dialect: Dialect) -> int:
    quote = text[start]
    if quote == "[":
        end = text.find("]", start) + 1
    else:
        escapes = dialect.dollars and quote == "'" and _follows_e(text, start)
        found = (_ESCAPE_STRING if escapes else dialect.quoted[quote]).match(text, start)
        end = found.end() if found else 0
    if not end:
        closing = "]" if quote == "[" else quote
        raise Unfinished(
            f"This {quote} is never closed. Add {closing} where it ends.", start, start + 1
        )
    return end


def _follows_e(text: str, start: int) -> bool:
    """Whether the quote belongs to an E'...' string."""
    before = text[max(start - 2, 0) : start]
    is_e = before[-1:] in ("e", "E")
    return is_e and not (len(before) == 2 and (before[0].isalnum() or before[0] in "_$"))


def _end_of_dollars(text: str, start: int, opened: int) -> int:
    tag = text[start:opened]
    end = text.find(tag, opened)
    if end < 0:
        raise Unfinished(
            f"This {tag} is never closed. Add another {tag} where it ends.", start, opened
        )
    return end + len(tag)


def end_of_comment(text: str, start: int, dialect: Dialect) -> int:
    """Where the comment that begins at `start` with `/*` ends."""
    depth = 0
    for found in _COMMENT_ENDS.finditer(text, start):
        if found[0] == "/*":
            depth += 1 if dialect.nested_comments or not depth else 0
        else:
            depth -= 1
        if not depth:
            return found.end()
    if dialect.open_comment:
        return len(text)
    raise Unfinished("This comment is never closed. Add */ where it ends.", start, start + 2)


def _speaks_to_database(text: str, start: int, dialect: Dialect) -> bool:
    """A comment that means something: an optimizer's hint, or MySQL's `/*!40101 SET ... */`."""
    if dialect.name == "mysql" and text.startswith(("/*!", "/*M!"), start):
        return True
    return text.startswith("/*+", start)
