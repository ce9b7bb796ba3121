"""The statements of a text, and in each the SELECT and the clause that is ours.

The SELECT is not parsed: the database does that, and gets it verbatim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from elasticdl.errors import StatementError, near_match
from elasticdl.sql.extent import closing, end_of_plain
from elasticdl.sql.lexer import Lexeme, lex
from elasticdl.sql.scan import Dialect, Token, scan
from elasticdl.sql.shape import begins_clause, look_ahead
from elasticdl.sql.words import EXPLAIN_OPTIONS, ROWS, SQL_WORDS, VERBS
from elasticdl.tabular.expression import Span

__all__ = ["Piece", "split"]

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE")


@dataclass(frozen=True)
class Piece:
    """A statement in a text.

    Attributes:
      span: from its first word to its last.
      closed: whether a semicolon ends it.
      after: where the next one may begin.
      lexemes: of our own part, with an `end`: a clause, what CREATE MODEL says before AS, or all of `SHOW MODELS`.
        None for plain SQL.
      select: the SELECT, without comments before and after it.
      explained: EXPLAIN in front of it, with options.
    """

    span: Span
    closed: bool
    after: int
    lexemes: Sequence[Lexeme] | None = None
    select: Span | None = None
    explained: Span | None = None


def split(text: str, dialect: Dialect) -> Iterator[Piece]:
    """The statements of a text; empty ones are left out.

    Raises:
      StatementError: a string, a comment, or a parenthesis before our clause, that is not closed.
    """
    position = 0
    while piece := _read(text, position, dialect):
        position = piece.after
        if piece.span.end > piece.span.start:
            yield piece


def _read(text: str, start: int, dialect: Dialect) -> Piece | None:
    """The statement from `start` on; None when there is nothing more."""
    first = head = next(tokens := scan(text, start, dialect), None)
    if first is None:
        return None
    while head and head.kind == "hint":
        head = next(tokens, None)
    word = _word(text, head)
    if head is None or head.kind == ";":
        return _plain(text, first.start, dialect)
    if word in ROWS or head.kind == "(":
        piece = _rows(text, head, dialect)
    elif word == "EXPLAIN":
        piece = _explained(text, head, dialect)
    elif word == "CREATE":
        piece = _create_model(text, head, dialect)
    elif word in ("SHOW", "DESCRIBE", "DESC", "DROP"):
        piece = _command(text, head, dialect)
    else:
        piece = None
    if piece is None:
        return _plain(text, first.start, dialect)
    select = piece.select
    if select and select.start == head.start:
        select = Span(first.start, select.end)
    return replace(piece, span=Span(first.start, piece.span.end), select=select)


def _plain(text: str, start: int, dialect: Dialect) -> Piece:
    extent = end_of_plain(text, start, dialect)
    return Piece(Span(start, extent.end), extent.closed, extent.after)


def _rows(text: str, head: Token, dialect: Dialect) -> Piece | None:
    """A SELECT with a clause of ours; None without."""
    found = _clause(text, head, dialect)
    if found is None:
        return None
    select, start = found
    lexemes = list(lex(text, start, dialect))
    return _ours(text, head.start, lexemes, select)


def _ours(text: str, start: int, lexemes: Sequence[Lexeme], select: Span | None = None) -> Piece:
    """A piece that goes as far as its lexemes."""
    end = lexemes[-1].start
    closed = end < len(text)
    return Piece(Span(start, lexemes[-2].end), closed, end + closed, lexemes, select)


def _clause(text: str, head: Token, dialect: Dialect) -> tuple[Span, int] | None:
    """The SELECT from `head` on, and where its clause begins; None when there is no clause."""
    before: list[Token] = []
    tokens, may_change = scan(text, head.start, dialect), _word(text, head) == "WITH"
    while token := next(tokens, None):
        word = _word(text, token)
        if token.kind == ";" or (may_change and word in _CHANGES and before[-1].kind == ")"):
            return None
        if token.kind in ("(", "[", "{"):
            closed = closing(text, token, dialect)
            if closed is None:
                _refuse_open(text, token, dialect)
                return None
            token, tokens = closed, scan(text, closed.end, dialect)
        elif _may_be_verb(word) and begins_clause(text, token.start, before, dialect):
            return Span(head.start, before[-1].end), token.start
        before = [*before[-2:], token]
    return None


def _may_be_verb(word: str) -> bool:
    """Whether it is one, or may be a misspelt one."""
    return word in VERBS or word == "TO" or (4 <= len(word) <= 9 and word not in SQL_WORDS)


def _refuse_open(text: str, opening: Token, dialect: Dialect) -> None:
    """Complain of a bracket that is not closed, if a clause of ours comes after it."""
    before: list[Token] = []
    for token in scan(text, opening.end, dialect):
        word = _word(text, token)
        verb = word == "TO" or word in VERBS
        if verb and begins_clause(text, token.start, before, dialect):
            message = f"This {opening.kind} is not closed before {word}. Close it."
            raise StatementError(message, opening.start, opening.end)
        before = [*before[-2:], token]


def _explained(text: str, head: Token, dialect: Dialect) -> Piece | None:
    """EXPLAIN before one of ours: a dry run."""
    explained = Span(head.start, head.end)
    tokens = scan(text, head.end, dialect)
    while token := next(tokens, None):
        word = _word(text, token)
        if word in ROWS or (token.kind == "(" and _holds_rows(text, token, dialect)):
            piece = _rows(text, token, dialect)
            return piece and replace(piece, explained=explained)
        if word == "CREATE":
            piece = _create_model(text, token, dialect)
            return piece and replace(piece, explained=explained)
        if token.kind == "(":
            closed = closing(text, token, dialect)
            if closed is None:
                return None
            token, tokens = closed, scan(text, closed.end, dialect)
        elif word not in EXPLAIN_OPTIONS and token.kind != "=":
            return None
        explained = Span(head.start, token.end)
    return None


def _holds_rows(text: str, opening: Token, dialect: Dialect) -> bool:
    inside = next((t for t in scan(text, opening.end, dialect) if t.kind != "("), None)
    return _word(text, inside) in ROWS


def _create_model(text: str, head: Token, dialect: Dialect) -> Piece | None:
    """`CREATE [OR REPLACE] MODEL ... AS SELECT ...`."""
    ahead = look_ahead(text, head.start, dialect)
    words = [lexeme.word for lexeme in ahead]
    at = 3 if words[1:3] == ["OR", "REPLACE"] else 1
    if words[at] != "MODEL":
        if "OPTIONS" in words[at:] and near_match(words[at], ["MODEL"], 0.75):
            raise StatementError(
                f"Unknown {ahead[at].value!r} after CREATE. Did you mean MODEL?",
                ahead[at].start,
                ahead[at].end,
            )
        return None
    lexemes = _until_as(text, head.start, dialect)
    if lexemes[-1].value != "AS":
        return _ours(text, head.start, lexemes)
    body = next(scan(text, lexemes[-1].end, dialect), None)
    return _trained_on(text, head, lexemes, body, dialect)


def _until_as(text: str, start: int, dialect: Dialect) -> list[Lexeme]:
    """What CREATE MODEL says before its SELECT; the last lexeme is an end, called AS when AS is there."""
    lexemes: list[Lexeme] = []
    depth = 0
    for lexeme in lex(text, start, dialect):
        depth += (lexeme.kind in ("(", "[")) - (lexeme.kind in (")", "]"))
        if lexeme.word == "AS" and depth == 0:
            return [*lexemes, Lexeme("end", "AS", lexeme.start, lexeme.end)]
        lexemes.append(lexeme)
    return lexemes


def _trained_on(
    text: str, head: Token, lexemes: Sequence[Lexeme], body: Token | None, dialect: Dialect
) -> Piece:
    if body is None or not (_word(text, body) in ROWS or body.kind == "("):
        place = body or Token("", lexemes[-1].end, lexemes[-1].end)
        raise StatementError("Write a SELECT after AS.", place.start, place.end)
    if found := _clause(text, body, dialect):
        at = next(islice(lex(text, found[1], dialect), 1))
        raise StatementError(
            "CREATE MODEL trains already: leave out the clause after its SELECT.", at.start, at.end
        )
    extent = end_of_plain(text, body.start, dialect)
    select = Span(body.start, extent.end)
    return Piece(Span(head.start, extent.end), extent.closed, extent.after, lexemes, select)


def _command(text: str, head: Token, dialect: Dialect) -> Piece | None:
    """`SHOW MODELS`, `SHOW TRAIN m`, `DESCRIBE MODEL m`, `DROP MODEL m`; others are the database's."""
    verb, what, following = look_ahead(text, head.start, dialect)[:3]
    named = following.kind != "end"
    if (verb.word, what.word) in (("SHOW", "MODELS"), ("DROP", "MODEL")):
        ours = True
    elif what.word == "TRAIN":
        ours = verb.word == "SHOW" and named
    else:
        ours = verb.word in ("DESCRIBE", "DESC") and what.word == "MODEL" and named
    return _ours(text, head.start, list(lex(text, head.start, dialect))) if ours else None


def _word(text: str, token: Token | None) -> str:
    return text[token.start : token.end].upper() if token and token.kind == "word" else ""
