"""The words of our own clause, from TRAIN to the semicolon: the same in every dialect, with both quotes for strings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from elasticdl.errors import StatementError
from elasticdl.sql.scan import Dialect, Unfinished, end_of_comment

__all__ = ["Lexeme", "lex"]


class Lexeme(NamedTuple):
    """A piece of a clause.

    Attributes:
      kind: `run` (a word, number or name: signs that a model's name may have do not break it), `string`, `name` (in
        backticks), a sign such as `=`, or `end`.
      value: a string's content; otherwise as written.
    """

    kind: str
    value: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """In upper case, to be compared with a keyword; nothing for what was quoted."""
        return self.value.upper() if self.kind == "run" else ""


_TOKEN = re.compile(
    r"""(?P<skip>[\s\ufeff]+|--[^\n]*)
      | (?P<block>/\*)
      | (?P<run>(?:[\w$.:@+]|-(?!-)|/(?!\*))+)
      | (?P<string>'(?:[^'\\]++|\\.|'')*+'|"(?:[^"\\]++|\\.|"")*+")
      | (?P<name>`[^`]*+(?:``[^`]*+)*+`)
      | (?P<open>['"`])
      | (?P<end>;)
      | (?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\.|(['\"])\1", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


def lex(text: str, start: int, dialect: Dialect) -> Iterator[Lexeme]:
    """The lexemes from `start` to the semicolon, or the end of the text; the last is of the kind `end`.

    Raises:
      Unfinished: a string or comment that the text does not close.
    """
    position = start
    while found := _TOKEN.match(text, position):
        kind, begin, position = found.lastgroup, position, found.end()
        if kind == "run":
            yield Lexeme("run", found[0], begin, position)
        elif kind == "string" or kind == "name":
            yield Lexeme(kind, _content(found[0]), begin, position)
        elif kind == "block":
            position = end_of_comment(text, begin, dialect)
        elif kind == "end":
            yield Lexeme("end", "", begin, begin)
            return
        elif kind == "open":
            raise _never_closed(text, begin)
        elif kind == "sign" and found[0] == "#" and dialect.hash_comment:
            position = (text.find("\n", begin) + 1) or len(text)
        elif kind == "sign":
            yield Lexeme(found[0], found[0], begin, position)
    yield Lexeme("end", "", len(text), len(text))


def _content(quoted: str) -> str:
    r"""What a string says, as people write it: `it''s` and `it\'s`; `\d` of a pattern is left as it is."""
    quote, content = quoted[0], quoted[1:-1]
    if quote == "`":
        return content.replace("``", "`")

    def plain(found: re.Match[str]) -> str:
        if found[0][0] == "\\":
            return _ESCAPES.get(found[0][1], found[0])
        return quote if found[1] == quote else found[0]

    return _ESCAPE.sub(plain, content)


def _never_closed(text: str, start: int) -> StatementError:
    quote = text[start]
    message = f"This {quote} is never closed. Add {quote} where it ends"
    if quote != "`" and "\\" + quote in text[start:]:
        message += ". A backslash takes the quote after it along; write two for a backslash"
    return Unfinished(f"{message}.", start, start + 1)
