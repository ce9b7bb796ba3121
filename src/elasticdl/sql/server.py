"""A server of SQL over gRPC: SQLFlow's own clients, its notebook magic and its command can ask it.

server = SqlServer(ServerConfig(port=0), open_session)
server.start()      # server.address says where
server.stop()
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elasticdl.errors import ElasticDLError, InvalidValue, NotFound, Stopped, UserError, reason
from elasticdl.sql.server_access import Access, Refused, check_address
from elasticdl.sql.server_messages import SERVICE, messages
from elasticdl.sql.server_request import OpenSession, run_request

__all__ = ["ServerConfig", "SqlServer"]

CLIENTS = 64
REQUEST_LIMIT = 16 * 2**20
"""Bytes of a request: a text longer than this is not a statement."""
OPTIONS = {
    "grpc.max_receive_message_length": REQUEST_LIMIT,
    "grpc.max_send_message_length": -1,
    # Else two servers would share a port, each with half of the clients.
    "grpc.so_reuseport": 0,
}
DETAILS_LIMIT = 2000
"""Characters of an error: it travels in a header, and those are small."""


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """Where to listen, and for whom."""

    host: str = "127.0.0.1"
    port: int = 50051
    access: Access = field(default_factory=Access)
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    log: Callable[[str], None] = lambda line: None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InvalidValue(f"Invalid --port {self.port}: give a number from 0 to 65535.")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidValue("--tls_cert and --tls_key belong together. Give both.")
        check_address(self.host, token=self.access.token, insecure=self.insecure)


class SqlServer:
    """Answers SQLFlow's `Run`; each request has a session and a thread of its own."""

    def __init__(self, config: ServerConfig, open_session: OpenSession) -> None:
        self._config = config
        self._open_session = open_session
        self._stopping = threading.Event()
        self.address = ""

    def bind(self) -> None:
        """Take the port, without answering yet; `address` says which it is."""
        # Else it prints the failure to take a port as well, before our own words.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        import grpc

        self._server = grpc.server(
            ThreadPoolExecutor(CLIENTS, thread_name_prefix="sql-server"),
            handlers=[self._handlers()],
            maximum_concurrent_rpcs=CLIENTS,
            options=list(OPTIONS.items()),
        )
        host = self._config.host.strip("[]")
        host = f"[{host}]" if ":" in host else host
        wanted = f"{host}:{self._config.port}"
        try:
            port = self._take_port(grpc, wanted)
        except RuntimeError as error:
            raise InvalidValue(
                f"Cannot listen on {wanted}: the port is in use, or the address is not of this machine. "
                "Give another --port."
            ) from error
        self.address = f"{host}:{port}"

    def start(self) -> None:
        """Answer, from threads of its own."""
        if not self.address:
            self.bind()
        self._server.start()

    def stop(self, grace_s: float = 5.0) -> None:
        """Take no more requests, cancel what runs, and wait for its end for a while."""
        self._stopping.set()
        self._server.stop(grace_s).wait()

    def _take_port(self, grpc: Any, address: str) -> int:
        if self._config.tls_cert is None or self._config.tls_key is None:
            return int(self._server.add_insecure_port(address))
        pair = (_read(self._config.tls_key, "tls_key"), _read(self._config.tls_cert, "tls_cert"))
        return int(self._server.add_secure_port(address, grpc.ssl_server_credentials([pair])))

    def _handlers(self) -> Any:
        import grpc

        made = messages()
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Run": grpc.unary_stream_rpc_method_handler(
                    self._run, made.Request.FromString, made.Response.SerializeToString
                ),
                "Fetch": grpc.unary_unary_rpc_method_handler(
                    self._fetch, made.FetchRequest.FromString, made.FetchResponse.SerializeToString
                ),
            },
        )

    def _run(self, request: Any, context: Any) -> Iterator[Any]:
        begun, status = time.monotonic(), "OK"
        try:
            self._config.access.check(_token(request, context))
            db = self._config.access.database(request.session.db_conn_str)
            yield from run_request(request.sql, db, self._open_cancellable, context.add_callback)
        except Exception as error:
            status, details = _status(error, self._config.log)
        seconds = time.monotonic() - begun
        if not context.is_active():
            status = "client gone"
        self._config.log(f"{context.peer()}  {status}  {seconds:.1f} s")
        if status not in ("OK", "client gone"):
            import grpc

            context.abort(getattr(grpc.StatusCode, status), details)

    def _open_cancellable(
        self, db: str | None, *, is_cancelled: Callable[[], bool], **told: Any
    ) -> Any:
        """A session that ends with its client, or with the server."""
        return self._open_session(
            db, is_cancelled=lambda: is_cancelled() or self._stopping.is_set(), **told
        )

    def _fetch(self, request: Any, context: Any) -> Any:
        """For jobs that run elsewhere; here a statement's messages come with the answer to `Run`."""
        return messages().FetchResponse(eof=True)


def _token(request: Any, context: Any) -> str:
    """What SQLFlow's clients put into the session; others may send `authorization: Bearer ...`."""
    if request.session.token:
        return str(request.session.token)
    for name, value in context.invocation_metadata():
        if name == "authorization":
            return str(value).removeprefix("Bearer ").strip()
    return ""


def _status(error: Exception, log: Callable[[str], None]) -> tuple[str, str]:
    """The name of gRPC's status, and the words."""
    if isinstance(error, Refused):
        name = "UNAUTHENTICATED" if error.wrong_token else "PERMISSION_DENIED"
        return name, str(error)
    if isinstance(error, ElasticDLError):
        words = "\n".join([str(error), *getattr(error, "__notes__", ())])
        kinds = {UserError: "INVALID_ARGUMENT", Stopped: "CANCELLED", ElasticDLError: "ABORTED"}
        return next(name for kind, name in kinds.items() if isinstance(error, kind)), _cut(words)
    log("".join(traceback.format_exception(error)))
    return "INTERNAL", _cut(f"{type(error).__name__}: {reason(error)}")


def _cut(text: str) -> str:
    return text if len(text) <= DETAILS_LIMIT else f"{text[:DETAILS_LIMIT]} ..."


def _read(path: str, name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise NotFound(f"Cannot read --{name} {path!r}: {reason(error)}.") from error
