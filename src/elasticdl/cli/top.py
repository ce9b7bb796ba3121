"""`elasticdl top`: the runs that run now, in the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.places import check_places
from elasticdl.cli.run_words import number, plain, seconds
from elasticdl.cli.table import columns
from elasticdl.errors import InvalidValue

if TYPE_CHECKING:
    from rich.table import Table

    from elasticdl.runtime.dashboard.runs import Runs

__all__ = ["top"]

HEADER = ["run", "command", "status", "progress", "step", "epoch", "loss", "best"]
HEADER += ["workers", "examples/s", "left"]
BAR = 10
LONGEST_S = 3600
GONE = "the terminal is gone"
"""In the place of a key: nobody is there to press one."""


@click.command()
@click.argument("places", nargs=-1, metavar="[DIR]...")
@click.option("--all", "shows_all", is_flag=True, help="Show also runs that have ended.")
@click.option(
    "--interval",
    metavar="SECONDS",
    type=float,
    default=1.0,
    help="Between two looks.  [default: 1]",
)
def top(places: tuple[str, ...], shows_all: bool, interval: float) -> None:
    """Show the runs that run now.

    DIR is a run directory or a directory of runs, here or at an address. Without one they are elasticdl_runs and runs.
    It is kept up to date; q or Ctrl-C leaves. Where the output is no terminal it is printed once.
    """
    if not 0.1 <= interval <= LONGEST_S:
        raise InvalidValue(f"Invalid --interval {interval}: give seconds from 0.1 to {LONGEST_S}.")
    from elasticdl.runtime.dashboard.chosen import default_directories
    from elasticdl.runtime.dashboard.runs import Runs

    check_places(places)
    runs = Runs(places or default_directories())
    if not sys.stdout.isatty():
        _print_once(_views(runs, shows_all), places)
        return
    with contextlib.suppress(KeyboardInterrupt):
        _keep_showing(runs, shows_all, interval)


def _views(runs: Runs, shows_all: bool) -> list[dict[str, Any]]:
    from elasticdl.runtime.dashboard.run_view import run_view

    views = [run_view(run) for run in runs.all()]
    return [view for view in views if shows_all or view["is_live"]]


def _print_once(views: list[dict[str, Any]], places: tuple[str, ...]) -> None:
    if views:
        click.echo(columns(HEADER, [[cell or "-" for cell in _cells(view)] for view in views]))
    else:
        click.echo(f"Nothing runs in {', '.join(places) or 'elasticdl_runs and runs'}.")


def _keep_showing(runs: Runs, shows_all: bool, interval: float) -> None:
    from rich.live import Live

    with _keys() as wait, Live(_table([]), screen=True, auto_refresh=False) as live:
        while True:
            live.update(_table(_views(runs, shows_all)), refresh=True)
            if wait(interval) in ("q", "Q", "\x03", GONE):
                return


def _table(views: list[dict[str, Any]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    caption = "q leaves" if views else "Nothing runs here yet. q leaves"
    table = Table(box=box.SIMPLE_HEAD, caption=caption, caption_justify="left", expand=True)
    for name in HEADER:
        table.add_column(name, no_wrap=True, overflow="ellipsis")
    for view in views:
        table.add_row(*(Text(plain(cell)) for cell in _cells(view)))  # a name is text, never markup
    return table


def _cells(view: dict[str, Any]) -> list[str]:
    best = view["best"]
    epochs = f"{view['epoch']}/{view['num_epochs'] or '?'}" if view["epoch"] is not None else ""
    return [
        view["name"],
        view["command"] or "",
        view["said"],
        _bar(view["fraction"]),
        "" if view["step"] is None else f"{view['step']:,}",
        epochs,
        number(view["loss"]),
        f"{best['metric']} {number(best['value'])}" if best else "",
        str(len(view["workers"])) if view["workers"] else "",
        number(view["examples_per_s"]),
        seconds(view["eta_s"]),
    ]


def _bar(fraction: float | None) -> str:
    """
    >>> _bar(0.35), _bar(1.0), _bar(None)
    ('###.......  35%', '########## 100%', '')
    """
    if fraction is None:
        return ""
    full = int(fraction * BAR)
    return f"{'#' * full}{'.' * (BAR - full)} {fraction:4.0%}"


@contextlib.contextmanager
def _keys() -> Iterator[Any]:
    """Waits so many seconds for a key; the terminal hands over each at once, and shows none."""
    if not sys.stdin.isatty():
        yield lambda seconds_: select.select([], [], [], seconds_) and ""
        return
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)

    def wait(seconds_: float) -> str:
        if not select.select([keyboard], [], [], seconds_)[0]:
            return ""
        try:
            typed = os.read(keyboard, 1)
        except OSError:
            typed = b""
        return typed.decode(errors="replace") if typed else GONE

    try:
        yield wait
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
