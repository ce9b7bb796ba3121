"""The prompt: statements are typed, over several lines, until their semicolon."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from elasticdl.errors import ElasticDLError, UnknownName, nearest
from elasticdl.sql.prompt_words import offers

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History

__all__ = ["Prompt"]

HELP = r"""A statement ends with a semicolon; Enter before it begins a new line. TAB completes.

\d            the tables
\d TABLE      the columns of a table
\models       the trained models
\h            this help
\q            leave, as Ctrl-D does

SELECT ... TO TRAIN DNNClassifier LABEL y INTO name;     train a model
SELECT ... TO PREDICT USING name;                        predict, and show the rows
SELECT ... TO PREDICT table.column USING name;           predict into a table
EXPLAIN SELECT ... TO TRAIN ...;                         what a training would do

Ctrl-C stops what is running, or clears the line."""


class AsksSession(Protocol):
    """What the prompt needs of a session."""

    @property
    def database(self) -> Any: ...
    def models(self) -> list[str]: ...


class Prompt:
    """Reads statements and has them run, until the user leaves.

    Args:
      session: whose tables and models are offered.
      run: runs a text and shows what it came to, errors too.
      say: shows a text.
    """

    def __init__(
        self, session: AsksSession, run: Callable[[str], None], say: Callable[[str], None] = print
    ) -> None:
        self._session = session
        self._run = run
        self._say = say
        self._names = _Names(session)

    def run(self) -> int:
        """Returns the exit code, which is 0: a statement that failed was shown."""
        asking = self._make()
        self._say(f"Connected to {_shown(self._session)}. \\h for help, \\q to leave.")
        while True:
            try:
                text = asking.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return 0
            if _word(text) in ("\\q", "quit", "exit"):
                return 0
            self._take(text)

    def _take(self, text: str) -> None:
        self._names.forget()
        try:
            if _word(text) in ("help", "?"):
                self._say(HELP)
            elif text.strip().startswith("\\"):
                self._say(self._answer(*text.strip().rstrip(";").split()))
            elif text.strip():
                self._run(text)
        except ElasticDLError as error:
            self._say(f"Error: {error}")

    def _answer(self, command: str, *args: str) -> str:
        if command == "\\d" and args:
            return "\n".join(self._columns(args[0]))
        if command == "\\d":
            return "\n".join(self._session.database.tables()) or "There are no tables."
        if command == "\\models":
            return "\n".join(self._session.models()) or "There are no models yet."
        if command in ("\\h", "\\?", "\\help"):
            return HELP
        raise UnknownName(f"Unknown command {command!r}. Known: \\d, \\models, \\h, \\q.")

    def _columns(self, table: str) -> Sequence[str]:
        tables = self._session.database.tables()
        if table not in tables:
            raise UnknownName(f"There is no table {table!r}. {nearest(table, tables)}")
        columns: Sequence[str] = self._session.database.columns(table)
        return columns

    def _make(self) -> PromptSession[str]:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.lexers import PygmentsLexer
        from pygments.lexers.sql import SqlLexer  # type: ignore[import-untyped]

        asking: PromptSession[str] = PromptSession(
            "sql> ",
            history=_history(),
            completer=_completer(self._names),
            complete_while_typing=False,
            lexer=PygmentsLexer(SqlLexer),
            multiline=Condition(lambda: self._is_unfinished(asking.default_buffer.text)),
            prompt_continuation=lambda width, line, wrapped: "...> ",
            enable_open_in_editor=True,
        )
        return asking

    def _is_unfinished(self, text: str) -> bool:
        from elasticdl.sql.parse import needs_more

        word = text.strip()
        if not word or word.startswith("\\") or word.lower() in ("quit", "exit", "help", "?"):
            return False
        return needs_more(text, self._session.database.dialect)


def _word(text: str) -> str:
    return text.strip().rstrip(";").strip().lower()


class _Names:
    """The names of a session, asked for once between two statements."""

    def __init__(self, session: AsksSession) -> None:
        self._session = session
        self._known: dict[str, Sequence[str]] = {}

    def forget(self) -> None:
        self._known.clear()

    def tables(self) -> Sequence[str]:
        return self._ask("tables", lambda: self._session.database.tables())

    def columns(self, table: str) -> Sequence[str]:
        return self._ask(f"columns {table}", lambda: self._session.database.columns(table))

    def models(self) -> Sequence[str]:
        return self._ask("models", self._session.models)

    def _ask(self, what: str, ask: Callable[[], Sequence[str]]) -> Sequence[str]:
        if what not in self._known:
            try:
                self._known[what] = ask()
            except (
                ElasticDLError
            ):  # a name that is half typed, a database that is gone: offer nothing
                self._known[what] = ()
        return self._known[what]


def _completer(names: _Names) -> Completer:
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    class SqlCompleter(Completer):
        def get_completions(
            self, document: Document, complete_event: object
        ) -> Iterator[Completion]:
            for offer in offers(document.text_before_cursor, names):
                yield Completion(offer.text, -offer.length, display_meta=offer.kind)

    return SqlCompleter()


def _history() -> History:
    """A file that nobody else can read: statements hold what is nobody else's business."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    file = Path(state).expanduser() / "elasticdl" / "sql_history"
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        file.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def _shown(session: AsksSession) -> str:
    return str(getattr(session.database, "shown", "") or session.database.dialect)
