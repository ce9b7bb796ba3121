"""SQL in a notebook.

    %load_ext elasticdl

    %%elasticdl --db duckdb:///shop.db
    SELECT * FROM customers TO TRAIN DNNClassifier LABEL left INTO leaving;

The options are remembered: the next cell asks the same database. `%elasticdl SELECT 1` is for one line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from elasticdl.errors import ElasticDLError, UnknownName, nearest
from elasticdl.sql.api import SqlResult, collect
from elasticdl.sql.environment import database_address, models_address
from elasticdl.sql.progress_lines import progress_lines

__all__ = ["SqlMagic", "load_ipython_extension"]

OPTIONS = ("db", "models", "model_zoo")
CLOSE = "close"
_OPTION = re.compile(
    r"""\s*--(\w[\w-]*)(?:(?:\s*=\s*|\s+)("[^"]*"|'[^']*'|[^\s"'-]\S*))?(?=\s|$)"""
)


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext elasticdl.sql.magic` calls."""
    from IPython.core.magic import no_var_expand

    magic = SqlMagic()

    @no_var_expand  # type: ignore[untyped-decorator]  # braces and dollars belong to the SQL
    def elasticdl(line: str, cell: str | None = None) -> SqlResult | None:
        return magic.run(line, cell)

    elasticdl.__doc__ = __doc__
    shell.register_magic_function(elasticdl, magic_kind="line_cell", magic_name="elasticdl")


class SqlMagic:
    """One session for a notebook, opened when it is first needed and again when the options change."""

    def __init__(self, open_session: Callable[..., Any] | None = None) -> None:
        self._options: dict[str, str] = {}
        self._open_session = open_session
        self._session: Any = None

    def run(self, line: str, cell: str | None = None) -> SqlResult | None:
        """Run a cell. An error of ours is shown by its message alone."""
        try:
            rest = self._take_options(line)
            text = "\n".join(part for part in (rest, cell) if part)
            return collect(self._opened().run(text)) if text.strip() else None
        except ElasticDLError as error:
            _show_plainly(error)
            raise

    def close(self) -> None:
        """Let go of the database."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _opened(self) -> Any:
        if self._session is None:
            opener = self._open_session or _session_class()
            told = {"tell": _print, "on_event": progress_lines(_print)}
            places = {
                "db": database_address(self._options.get("db")),
                "models": models_address(self._options.get("models")),
            }
            self._session = opener(**{**self._options, **places}, **told)
        return self._session

    def _take_options(self, line: str) -> str:
        """What follows the options of a line; they are kept."""
        given: dict[str, str] = {}
        while match := _OPTION.match(line):
            name, value = match[1].replace("-", "_"), match[2]
            if name == CLOSE:
                self.close()
                line = line.replace(f"--{CLOSE}", "", 1)
                continue
            if name not in OPTIONS or value is None:
                raise UnknownName(_wrong_option(name, value))
            given[name] = value.strip("\"'")
            line = line[match.end() :]
        if given and {**self._options, **given} != self._options:
            self.close()
            self._options.update(given)
        return line.strip()


def _session_class() -> Callable[..., Any]:
    from elasticdl.sql.session import Session

    return Session


def _wrong_option(name: str, value: str | None) -> str:
    if name in OPTIONS:
        return f"The option --{name} has no value. Give it one: --{name}=..."
    return f"Unknown option '--{name}' of %elasticdl. {nearest(name, [*OPTIONS, CLOSE])}"


def _print(line: str) -> None:
    print(line, flush=True)


def _show_plainly(error: ElasticDLError) -> None:
    """IPython asks an error for how to show it; a traceback through our code helps nobody."""
    lines = [f"Error: {error}", *getattr(error, "__notes__", ())]
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
