"""`elasticdl sql serve`."""

from __future__ import annotations

import functools
import signal
import sys
import threading
from typing import Any

import click

from elasticdl.cli.outcome import INTERRUPTED, PREEMPTED
from elasticdl.cli.presentation import Presentation
from elasticdl.cli.sql_options import (
    LEVELS,
    chosen,
    db_option,
    level_option,
    models_option,
    zoo_option,
)
from elasticdl.job.parse import parse_int

__all__ = ["serve"]

EXAMPLE = """
\b
Example, with SQLFlow's client:
  elasticdl sql serve --db duckdb:///shop.db
  SQLFLOW_SERVER=127.0.0.1:50051 sqlflow "SELECT * FROM customers LIMIT 5"
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--host",
    metavar="TEXT",
    default="127.0.0.1",
    help="Address to listen on.  [default: 127.0.0.1]",
)
@click.option(
    "--port", metavar="INT", default="50051", help="0 for any free one.  [default: 50051]"
)
@db_option()
@click.option("--allow_any_db", is_flag=True, help="Let clients name a database of their own.")
@models_option()
@zoo_option()
@click.option("--tls_cert", metavar="FILE", help="The certificate, to speak TLS.")
@click.option("--tls_key", metavar="FILE", help="Its private key.")
@click.option(
    "--token",
    metavar="TEXT",
    envvar="ELASTICDL_SQL_TOKEN",
    help="What clients have to show.  [default: ELASTICDL_SQL_TOKEN, which nobody else sees]",
)
@click.option("--insecure", is_flag=True, help="Let other machines ask without a token.")
@level_option()
@click.pass_obj
def serve(presentation: Presentation, /, **options: Any) -> int:
    """Serve SQL over gRPC, for SQLFlow's clients.

    The protocol is SQLFlow's: its Python client, its %%sqlflow magic and its command can ask this server. Whoever can
    ask it can run any SQL. Without --db each request has a database of its own, in memory.
    """
    level = chosen("log_level", options["log_level"], LEVELS)
    presentation.full_traceback = level == "DEBUG"
    presentation.model_zoo = options["model_zoo"]
    port = parse_int("port", options["port"])
    from elasticdl.quiet import load_tensorflow
    from elasticdl.sql.server import ServerConfig, SqlServer
    from elasticdl.sql.server_access import Access, is_loopback
    from elasticdl.sql.session import Session

    config = ServerConfig(
        host=options["host"],
        port=port,
        access=Access(
            token=options["token"] or None,
            db=options["db"],
            allow_any_db=options["allow_any_db"],
        ),
        tls_cert=options["tls_cert"],
        tls_key=options["tls_key"],
        insecure=options["insecure"],
        log=_log if level in ("DEBUG", "INFO") else lambda line: None,
    )
    if not is_loopback(config.host) and config.tls_cert is None:
        _log(
            "Warning: without --tls_cert others on the network can read what is sent, the token too."
        )
    open_session = functools.partial(
        Session, models=options["models"], model_zoo=options["model_zoo"], log_level=level
    )
    server = SqlServer(config, open_session)
    open_session(options["db"]).close()  # a wrong address is told now
    server.bind()
    load_tensorflow()  # the first client need not wait, and two threads must not load it at once
    server.start()
    return _serve_until_asked_to_stop(server)


def _serve_until_asked_to_stop(server: Any) -> int:
    stop, received = threading.Event(), [signal.SIGINT]

    def ask_to_stop(number: int, frame: object) -> None:
        received[0] = signal.Signals(number)
        stop.set()

    before = {one: signal.signal(one, ask_to_stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        click.echo(f"Serving on {server.address}. Ctrl-C stops.")
        sys.stdout.flush()
        stop.wait()
        _log("Stopping: what runs is cancelled.")
        server.stop()
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    return PREEMPTED if received[0] == signal.SIGTERM else INTERRUPTED


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
