"""Taking a clause's lexemes one by one: names, paths, values; what is wrong is said at its place."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from elasticdl.errors import StatementError
from elasticdl.sql.lexer import Lexeme
from elasticdl.sql.statements import Word
from elasticdl.sql.words import CLAUSES
from elasticdl.tabular.expression import Span

__all__ = ["Reader"]

_NUMBER = re.compile(r"[+-]?(?:(\d+)|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)\Z", re.ASCII)
_COLUMN = re.compile(r"[^\W\d][\w$]*(?:\.[\w$]+)*")
_LITERALS = {"TRUE": True, "FALSE": False, "NULL": None}
_DEPTH, _DIGITS = 32, 300


class Reader:
    """A place in a clause."""

    def __init__(
        self, text: str, lexemes: Sequence[Lexeme], stops: Collection[str] = CLAUSES
    ) -> None:
        self.text, self.stops = text, stops
        self._lexemes, self._at = lexemes, 0

    def peek(self, ahead: int = 0) -> Lexeme:
        return self._lexemes[min(self._at + ahead, len(self._lexemes) - 1)]

    @property
    def last(self) -> Lexeme:
        """The end, to say there what is missing."""
        return self._lexemes[-1]

    def take(self) -> Lexeme:
        lexeme = self.peek()
        self._at = min(self._at + 1, len(self._lexemes) - 1)
        return lexeme

    def skip(self, *words: str) -> bool:
        """Step over these words or signs, if they come next."""
        for i, word in enumerate(words):
            if word not in (self.peek(i).word, self.peek(i).kind):
                return False
        self._at += len(words)
        return True

    def has(self, word: str) -> bool:
        """Whether a clause that begins with the word comes, now or later."""
        rest = self._lexemes[max(self._at - 1, 0) :]
        return any(
            lexeme.word == word and before.kind not in ("=", ",") and after.kind != "="
            for before, lexeme, after in zip(rest, rest[1:], rest[2:], strict=False)
        )

    @property
    def is_over(self) -> bool:
        return self.peek().kind == "end"

    @property
    def is_at_stop(self) -> bool:
        """Whether a word comes that begins another clause; `label=...` is an attribute."""
        return self.peek().word in self.stops and self.peek(1).kind != "="

    def fail(self, message: str, lexeme: Lexeme | None = None) -> NoReturn:
        """Say what is wrong with a lexeme, the next one if none is given; at the end, after what was last."""
        lexeme = lexeme or self.peek()
        if lexeme.kind == "end":
            place = self._lexemes[-2].end if len(self._lexemes) > 1 else lexeme.start
            raise StatementError(message, place, place)
        raise StatementError(message, lexeme.start, lexeme.end)

    def shown(self, lexeme: Lexeme | None = None) -> str:
        """A lexeme as it was written, to stand in a message."""
        lexeme = lexeme or self.peek()
        if lexeme.kind == "end":
            return "the end"
        written = self.text[lexeme.start : lexeme.end]
        return repr(written if len(written) <= 40 else written[:37] + "...")

    def finish(self, what: str) -> None:
        if not self.is_over:
            self.fail(
                f"Unexpected {self.shown()} after {what}. Leave it out, or end with a semicolon."
            )

    def name(self, of: str) -> Word:
        """A name of a model: `a.b-c/d:1`, `name@2`, or anything in quotes."""
        lexeme = self.peek()
        if lexeme.kind not in ("run", "string", "name") or self._is_missing():
            self.fail(f"Expected {of}, got {self.shown()}.")
        if not lexeme.value:
            self.fail(f"Expected {of}, got an empty name.")
        self.take()
        return Word(lexeme.value, Span(lexeme.start, lexeme.end), quoted=lexeme.kind != "run")

    def _is_missing(self) -> bool:
        """Whether a clause's word stands where a name or value should: `INTO LABEL y`, not `INTO label`."""
        following = self.peek(1)
        ends = following.kind in ("end", ",", ")", "]", ".") or following.word in self.stops
        return self.is_at_stop and not ends

    def column(self, of: str) -> Word:
        """A name of one column: a word, or anything in quotes."""
        lexeme = self.peek()
        if lexeme.kind == "run" and not _COLUMN.fullmatch(lexeme.value):
            self.fail(f"Expected {of}, got {self.shown()}. Put an unusual name into quotes.")
        return self.name(of)

    def path(self, of: str, most: int) -> list[Word]:
        """Names with dots between them, each bare or in quotes."""
        start = self.peek()
        words: list[Word] = []
        wants_name = True
        while True:
            if wants_name and self.peek().kind == "[":
                words.append(self._bracketed())
                wants_name = False
            elif wants_name and self.peek().kind in ("string", "name"):
                words.append(self.name(of))
                wants_name = False
            elif self.peek().kind == "run" and (wants_name or self.peek().value[0] == "."):
                if wants_name and self._is_missing():
                    break
                wants_name = self._dotted(words, wants_name, of)
            else:
                break
        if wants_name:
            self.fail(f"Expected {of}, got {self.shown()}.")
        if len(words) > most:
            self.fail(f"Expected {of}, got {len(words)} names with dots between them.", start)
        return words

    def _dotted(self, words: list[Word], wants_name: bool, of: str) -> bool:
        """Take a run such as `a.b`, `a.` or `.b`; whether a name must follow."""
        lexeme = self.peek()
        parts = lexeme.value.split(".")
        place = lexeme.start
        for i, part in enumerate(parts):
            is_edge = (i == 0 and not wants_name) or i == len(parts) - 1
            if (not part and not is_edge) or not re.fullmatch(r"[\w$]*", part):
                self.fail(f"Expected {of}, got {self.shown()}. Put an unusual name into quotes.")
            if part:
                if i == 0 and not wants_name:
                    self.fail(f"Expected {of}, got {self.shown()}.")
                words.append(Word(part, Span(place, place + len(part))))
            place += len(part) + 1
        self.take()
        return not parts[-1]

    def _bracketed(self) -> Word:
        """`[a name]` as SQLite writes it."""
        opening = self.take()
        while self.peek().kind not in ("]", "end"):
            self.take()
        if self.is_over:
            self.fail("This [ is never closed. Add ] where it ends.", opening)
        closing = self.take()
        content = self.text[opening.end : closing.start]
        return Word(content, Span(opening.start, closing.end), quoted=True)

    def value(self, of: str) -> Word:
        """A number, string, bare word, true, false, null, or a list of these as a tuple."""
        start = self.peek().start
        value = self._value(of, 0)
        return Word(value, Span(start, self._lexemes[self._at - 1].end))

    def _value(self, of: str, depth: int) -> Any:
        lexeme = self.peek()
        if lexeme.kind == "[":
            return self._list(of, depth + 1)
        if lexeme.kind in ("string", "name"):
            return self.take().value
        if lexeme.kind == "(":
            self.fail("A list is written in square brackets: [1, 2].")
        if lexeme.kind != "run" or self._is_missing():
            self.fail(f"Expected {of}, got {self.shown()}.")
        value = self.scalar(lexeme)
        self.take()
        return value

    def _list(self, of: str, depth: int) -> tuple[Any, ...]:
        opening, values = self.take(), []
        self.check_depth(depth, opening)
        while not self.skip("]"):
            values.append(self._value(of, depth))
            self.separator("]", opening)
        return tuple(values)

    def separator(self, closing: str, opening: Lexeme) -> None:
        """Step over a comma, which may be left out before what closes."""
        if self.skip(",") or self.peek().kind == closing:
            return
        if self.is_over:
            self.fail(f"This {opening.kind} is never closed. Add {closing}", opening)
        self.fail(f"Expected a comma or {closing}, got {self.shown()}.")

    def check_depth(self, depth: int, lexeme: Lexeme) -> None:
        if depth > _DEPTH:
            self.fail(
                f"More than {_DEPTH} brackets inside of each other are not supported.", lexeme
            )

    def scalar(self, lexeme: Lexeme) -> str | int | float | bool | None:
        """What a bare run means."""
        if lexeme.word in _LITERALS:
            return _LITERALS[lexeme.word]
        number = _NUMBER.match(lexeme.value)
        if number is None:
            if re.match(r"[+-]|\.?\d", lexeme.value):
                self.fail(
                    f"{self.shown(lexeme)} is no number. Put it into quotes if it is a string.",
                    lexeme,
                )
            return lexeme.value
        if len(lexeme.value) > _DIGITS or (not number[1] and math.isinf(float(lexeme.value))):
            self.fail("This number is too large.", lexeme)
        return int(lexeme.value) if number[1] else float(lexeme.value)
