"""The page of what a command runs: whether there is one, and the line that tells where it is."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from upath import UPath

    from elasticdl.runtime.dashboard.serve import Dashboard

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["HELP", "VARIABLE", "no_dashboard", "page"]

VARIABLE = "ELASTICDL_DASHBOARD"
"""0 in the environment turns the page off, as --no_dashboard does."""
HELP = "Serve no page that shows how far it is."


def no_dashboard(command: F) -> F:
    """The option --no_dashboard."""
    return click.option("--no_dashboard", is_flag=True, help=HELP)(command)


@contextlib.contextmanager
def page(log_level: str, *, is_off: bool, only_lasting: bool = False) -> Iterator[None]:
    """Inside, each run that begins has a page, and a line says where; both end here.

    Args:
      only_lasting: leave out evaluations and predictions, whose directories do not stay.
    """
    if is_off or not _is_wanted(log_level):
        yield
        return
    from elasticdl.runtime.showing import showing

    with contextlib.closing(_Page()) as one, showing(one.show, only_lasting=only_lasting):
        try:
            yield
        except Exception:
            one.linger()
            raise
        one.linger()


def _is_wanted(log_level: str) -> bool:
    """Who asks for silence gets it. Nobody could open the page of a pod."""
    from elasticdl.artifacts.message import IMAGE_VARIABLE

    if os.environ.get(VARIABLE) == "0" or IMAGE_VARIABLE in os.environ:
        return False
    from elasticdl.runtime.dashboard.serve import is_installed

    return log_level in ("DEBUG", "INFO") and is_installed()


class _Page:
    """Served from the first run on; each later one comes to the others, at the same address."""

    def __init__(self) -> None:
        self._dashboard: Dashboard | None = None

    def show(self, directory: UPath) -> None:
        try:
            url = self._served(directory)
        except Exception as error:  # whatever it is: the run goes on without a page
            print(f"Note: there is no dashboard. {error}", file=sys.stderr, flush=True)
            return
        print(f"Dashboard: {url}", file=sys.stderr, flush=True)

    def _served(self, directory: UPath) -> str:
        from elasticdl.runtime.dashboard.runs import Run, address_of
        from elasticdl.runtime.dashboard.serve import start

        address = address_of(directory)
        if self._dashboard is None:
            self._dashboard = start([address])
        else:
            self._dashboard.add(address)
        main, _, token = self._dashboard.url.partition("?")
        return f"{main}run/{Run(directory, directory).id}{token and f'?{token}'}"

    def linger(self) -> None:
        if self._dashboard is not None:
            with contextlib.suppress(Exception):
                self._dashboard.linger()

    def close(self) -> None:
        if self._dashboard is not None:
            with contextlib.suppress(Exception):
                self._dashboard.stop()
            self._dashboard = None
