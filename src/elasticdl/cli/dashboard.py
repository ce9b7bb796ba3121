"""`elasticdl dashboard`."""

from __future__ import annotations

import contextlib
import sys

import click

from elasticdl.cli.outcome import INTERRUPTED
from elasticdl.cli.places import check_places
from elasticdl.errors import InvalidValue, StorageFailure
from elasticdl.job.parse import parse_int

__all__ = ["dashboard"]

EXAMPLE = """
\b
Examples:
  elasticdl dashboard
  elasticdl dashboard elasticdl_runs s3://bucket/runs --port=8080
"""


@click.command(epilog=EXAMPLE)
@click.argument("places", nargs=-1, metavar="[DIR]...")
@click.option(
    "--host",
    metavar="TEXT",
    default="127.0.0.1",
    help="Where to listen. Elsewhere than here a token is asked for.  [default: 127.0.0.1]",
)
@click.option("--port", metavar="INT", help="The port.  [default: 8280, or a free one]")
@click.option(
    "--token",
    metavar="TEXT",
    help="Who looks must know it.  [default: ELASTICDL_DASHBOARD_TOKEN, else none here, elsewhere a random one]",
)
@click.option("--open", "opens", is_flag=True, help="Open it in a browser.")
def dashboard(
    places: tuple[str, ...], host: str, port: str | None, token: str | None, opens: bool
) -> int:
    """Serve a page that shows runs.

    DIR is a run directory or a directory of runs, here or at an address. Without one they are elasticdl_runs and runs.
    It shows how running runs go on, only reads, and ends with Ctrl-C.
    """
    number = 0 if port is None else parse_int("port", port)
    if port is not None and not 0 < number < 65536:
        raise InvalidValue(f"Invalid --port {port!r}: give a number from 1 to 65535.")
    from elasticdl.runtime.dashboard.chosen import default_directories
    from elasticdl.runtime.dashboard.serve import start

    check_places(places)
    with (
        contextlib.suppress(KeyboardInterrupt),
        start(places or default_directories(), host=host, port=number, token=token) as served,
    ):
        _say_where(served.url)
        click.echo("Ctrl-C ends it.", err=True)
        if opens:
            import webbrowser

            webbrowser.open(served.url)
        served.wait()
    return INTERRUPTED  # nothing else ends it


def _say_where(url: str) -> None:
    try:
        click.echo(f"Dashboard: {url}")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"Cannot print the address of the dashboard: {error.strerror or error}."
        raise StorageFailure(f"{reason} Give the command another output.") from error
