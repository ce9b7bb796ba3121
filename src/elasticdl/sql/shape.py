"""Whether our clause begins at a word of a SELECT: told by its shape, as columns may have the same names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from elasticdl.errors import StatementError, near_match
from elasticdl.sql.lexer import Lexeme, lex
from elasticdl.sql.scan import Dialect, Token
from elasticdl.sql.words import CLAUSES, EXPECTING, SQL_WORDS, VERBS

__all__ = ["begins_clause", "look_ahead"]

_NO_NAMES = SQL_WORDS | {*CLAUSES, *VERBS, "TO"}
_LOOK_AHEAD = 14


def _may_end_select(before: Sequence[Token], text: str) -> bool:
    """Whether a SELECT may be over after the tokens before: they end in a name, a value or a closing bracket."""
    if not before:
        return False
    last, earlier = before[-1], before[-2] if len(before) > 1 else None
    if last.kind == "word":
        word = _word(text, last)
        if word == "ALL":
            return _word(text, earlier) != "SELECT"
        return word not in EXPECTING or (earlier is not None and earlier.kind == ".")
    if last.kind in ("*", "%"):
        return _is_no_operator(last.kind, before, text)
    return last.kind in ("number", "quoted", ")", "]", "}")


def _is_no_operator(sign: str, before: Sequence[Token], text: str) -> bool:
    """`SELECT *`, `, *` and `t.*`; `SAMPLE 10%` and `LIMIT 10%`."""
    place = -2 if sign == "*" else -3
    if len(before) < -place:
        return False
    token = before[place]
    word = _word(text, token)
    if sign == "*":
        return token.kind in (",", ".") or word in ("SELECT", "DISTINCT", "ALL")
    return before[-2].kind == "number" and (word in ("SAMPLE", "LIMIT") or token.kind == "(")


def _word(text: str, token: Token | None) -> str:
    return text[token.start : token.end].upper() if token and token.kind == "word" else ""


def begins_clause(text: str, start: int, before: Sequence[Token], dialect: Dialect) -> bool:
    """Whether a clause of ours begins at the word at `start`; the last few tokens are those before it."""
    if not _may_end_select(before, text):
        return False
    ahead = look_ahead(text, start, dialect)
    if ahead[0].word != "TO":
        return _is_bare_clause(ahead)
    if ahead[1].word in VERBS:
        return True
    return ahead[1].word.isalpha() and _is_misspelt_clause(ahead[1:])


def look_ahead(text: str, start: int, dialect: Dialect) -> list[Lexeme]:
    """The next few lexemes, and then some ends, so that there is always one more to look at."""
    ahead: list[Lexeme] = []
    # A string that is not closed is somebody else's to complain about: the clause's, or the SELECT's.
    with suppress(StatementError):
        for lexeme in islice(lex(text, start, dialect), _LOOK_AHEAD):
            ahead.append(lexeme)
    return ahead + [Lexeme("end", "", len(text), len(text))] * 4


def _is_bare_clause(ahead: Sequence[Lexeme]) -> bool:
    if ahead[0].word not in VERBS:
        return _is_misspelt_clause(ahead) and bool(near_match(ahead[0].value, VERBS, 0.7))
    if ahead[1].word == "WITH":
        return _is_attribute(ahead[2:])
    if ahead[1].word == "USING":
        return ahead[0].word == "PREDICT" and _is_using(ahead[1:])
    if not _is_name(ahead[1]) and (ahead[0].word != "PREDICT" or ahead[1].kind != "["):
        return False
    rest = _after_name(ahead[1:])
    return rest[0].kind == "end" or _is_subclause(rest) or _is_nearly_subclause(rest)


def _is_misspelt_clause(ahead: Sequence[Lexeme]) -> bool:
    """`TARIN m WITH a=1`: two names in a row and then a clause of ours are no SQL."""
    if not (_is_name(ahead[0]) and _is_name(ahead[1])):
        return False
    return _is_subclause(_after_name(ahead[1:]))


def _is_name(lexeme: Lexeme) -> bool:
    if lexeme.kind in ("string", "name"):
        return True
    return lexeme.kind == "run" and lexeme.value != "." and lexeme.word not in _NO_NAMES


def _after_name(ahead: Sequence[Lexeme]) -> Sequence[Lexeme]:
    """What follows a name, or a path of names such as `"my table"."my column"`."""
    at = _after_part(ahead, 0)
    while ahead[at].value[:1] == "." or (
        ahead[at - 1].word[-1:] == "." and ahead[at].kind != "end"
    ):
        at = _after_part(ahead, at)
    return ahead[at:]


def _after_part(ahead: Sequence[Lexeme], at: int) -> int:
    if ahead[at].kind == "[":  # SQLite's `[my table]`
        while ahead[at].kind not in ("]", "end"):
            at += 1
    return at if ahead[at].kind == "end" else at + 1


def _is_subclause(ahead: Sequence[Lexeme]) -> bool:
    word, following = ahead[0].word, ahead[1:]
    if word == "WITH":
        return _is_attribute(following)
    if word == "USING":
        return _is_using(ahead)
    if word == "INTO":
        return following[0].kind != "(" and following[1].word != "FROM" and following[1].kind != ","
    return word in ("COLUMN", "LABEL")


def _is_attribute(ahead: Sequence[Lexeme]) -> bool:
    return ahead[0].kind == "end" or ahead[1].kind == "="


def _is_using(ahead: Sequence[Lexeme]) -> bool:
    """No `JOIN ... USING (id)`, and no `USING SAMPLE 10 ROWS`."""
    name, following = ahead[1], ahead[2]
    if name.word == "SAMPLE":
        return following.kind == "end" or following.word in CLAUSES
    return name.kind != "("


def _is_nearly_subclause(ahead: Sequence[Lexeme]) -> bool:
    word = ahead[0].word
    if not word or word in SQL_WORDS or word in CLAUSES:
        return False
    return bool(near_match(word, CLAUSES, 0.7)) or ahead[1].kind == "=" or ahead[2].kind == "="
