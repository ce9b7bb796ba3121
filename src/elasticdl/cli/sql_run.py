"""A run of statements from the command line: a session, and what each statement came to on the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.presentation import Presentation
from elasticdl.cli.sql_rows import RowsFile, check_output, show_rows
from elasticdl.errors import InvalidValue, NotFound, StatementError, reason

if TYPE_CHECKING:
    from elasticdl.sql.outcome import Outcome
    from elasticdl.sql.session import Session

__all__ = ["Settings", "read_text", "run", "start_prompt"]

SHOWN_ROWS = 40


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the flags say."""

    db: str | None = None
    models: str = "models"
    model_zoo: str | None = None
    log_level: str = "INFO"
    seed: int | None = None
    format: str | None = None
    output: str | None = None
    overwrite: bool = False
    limit: int | None = None
    train_defaults: Mapping[str, Any] = field(default_factory=dict)
    spool: str | None = None

    def open_session(self) -> Session:
        from elasticdl.sql.session import Session

        return Session(
            self.db,
            models=self.models,
            model_zoo=self.model_zoo,
            tell=_remark,
            log_level=self.log_level,
            seed=self.seed,
            train_defaults=self.train_defaults,
            spool=self.spool,
        )


def run(text: str, settings: Settings) -> None:
    """Run a text, and show what it comes to."""
    check_output(settings.output, settings.format, overwrite=settings.overwrite)
    with settings.open_session() as session:
        if settings.output is not None:
            _check_one_result(text, session.database.dialect)
        present(session.run(text), settings)


def _check_one_result(text: str, dialect: str) -> None:
    """Refuse, before anything is run, a text of which several statements return rows: a file has those of one."""
    from elasticdl.sql.parse import parse
    from elasticdl.sql.statements import returns_rows

    try:
        statements = parse(text, dialect)
    except StatementError:
        return  # which is told better when it is run
    shown = [" ".join(one.text.split())[:40] for one in statements if returns_rows(one)]
    if len(shown) > 1:
        raise InvalidValue(
            f"--output is for the rows of one statement, and {len(shown)} return rows: {shown[0]!r}, {shown[1]!r}"
            f"{' ...' if len(shown) > 2 else ''}. Nothing was run. Run them one by one, with an --output each."
        )


def start_prompt(settings: Settings, presentation: Presentation) -> int:
    """Read statements from the terminal until the user leaves."""
    if settings.output is not None:
        raise InvalidValue("--output is for statements that are given, not for the prompt.")
    from elasticdl.cli.failures import show
    from elasticdl.sql.prompt import Prompt

    with settings.open_session() as session:

        def run_one(text: str) -> None:
            try:
                present(session.run(text), settings)
            except KeyboardInterrupt:
                print("Stopped.", file=sys.stderr)
            except (Exception, SystemExit) as error:
                show(error, presentation)

        return Prompt(session, run_one).run()


def read_text(file: str) -> str:
    """The statements of a file."""
    try:
        return Path(file).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise NotFound(f"Cannot read --file {file!r}: {reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise InvalidValue(f"--file {file!r} is not a text in UTF-8: {reason(error)}.") from error


def present(outcomes: Iterable[Outcome], settings: Settings) -> None:
    """Show what each statement came to, as they come."""
    file: RowsFile | None = None
    if settings.output is not None:
        file = RowsFile(settings.output, settings.format, settings.limit)
    # Whoever reads rows from a pipe wants nothing between them.
    rows_alone = file is None and settings.format in ("csv", "json")
    for outcome in outcomes:
        if outcome.rows is not None and file is not None:
            from elasticdl.sql.outcome import counted

            click.echo(f"Wrote {counted(file.write(outcome.rows))} to {settings.output}.")
        elif outcome.rows is not None:
            limit = SHOWN_ROWS if settings.limit is None else settings.limit
            show_rows(
                outcome.rows, settings.format or "table", settings.limit if rows_alone else limit
            )
        if outcome.message:
            click.echo(outcome.message, err=rows_alone)


def _remark(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
