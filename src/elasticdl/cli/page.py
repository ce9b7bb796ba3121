"""The page of what a command runs: whether there is one, and the line that tells where it is."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from upath import UPath

    from elasticdl.runtime.dashboard.serve import Dashboard

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["HELP", "VARIABLE", "has_dashboard", "no_dashboard", "page"]

VARIABLE = "ELASTICDL_DASHBOARD"
"""0 in the environment turns the page off, as --no_dashboard does."""
HELP = "Serve no page that shows how far it is."
NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def no_dashboard(command: F) -> F:
    """The option --no_dashboard."""
    return click.option("--no_dashboard", is_flag=True, help=HELP)(command)


def has_dashboard() -> bool:
    """Whether what serves it is installed."""
    return all(find_spec(name) is not None for name in NEEDED)


@contextlib.contextmanager
def page(log_level: str, *, is_off: bool) -> Iterator[None]:
    """Inside, each run that begins has a page, and a line says where; both end here."""
    if is_off or not _is_wanted(log_level):
        yield
        return
    from elasticdl.runtime.showing import showing

    with contextlib.closing(_Page()) as one, showing(one.show):
        yield


def _is_wanted(log_level: str) -> bool:
    """Who asks for silence gets it. Nobody could open the page of a pod."""
    from elasticdl.artifacts.message import IMAGE_VARIABLE

    is_off = os.environ.get(VARIABLE) == "0" or IMAGE_VARIABLE in os.environ
    return not is_off and log_level in ("DEBUG", "INFO") and has_dashboard()


class _Page:
    """Served from the first run on."""

    def __init__(self) -> None:
        self._dashboard: Dashboard | None = None

    def show(self, directory: UPath) -> None:
        try:
            from elasticdl.runtime.dashboard.serve import start

            if self._dashboard is None:
                self._dashboard = start([str(directory)])
            else:
                self._dashboard.add(str(directory))
            url = self._dashboard.url_of(str(directory))
        except Exception as error:  # whatever it is: the run goes on without a page
            print(f"Note: there is no dashboard: {error}", file=sys.stderr, flush=True)
            return
        print(f"Dashboard: {url}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._dashboard is not None:
            with contextlib.suppress(Exception):
                self._dashboard.stop()
