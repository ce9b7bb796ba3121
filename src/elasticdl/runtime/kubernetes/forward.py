"""A pod's port on this machine: what connects to a local address speaks to the pod, through the API server."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from elasticdl.runtime.kubernetes.access import import_kubernetes

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster

__all__ = ["forward"]

PART = 64 * 1024
END_S = 2.0
"""How long the end waits for each connection: none of them has anything to save."""

DATA, ERROR = 0, 1  # the channels of the one port that is asked for
CLOSE = 0x8  # RFC 6455: the peer closes the web socket


@contextmanager
def forward(cluster: Cluster, pod: str, port: int) -> Iterator[str]:
    """A local URL for a port of a pod, until the block ends.

    It listens on loopback only, on the same port where that is free. A connection that breaks ends
    alone: the next one is made anew.

    Args:
      cluster: where the pod is.
      pod: its name.
      port: its port.
    """
    proxy = _Proxy(cluster, pod, port)
    try:
        yield f"http://127.0.0.1:{proxy.port}"
    finally:
        proxy.close()


class _Proxy:
    """Accepts connections, each served by a thread of its own."""

    def __init__(self, cluster: Cluster, pod: str, port: int) -> None:
        self._cluster, self._pod, self._remote_port = cluster, pod, port
        self._listener = _listener(port)
        self.port: int = self._listener.getsockname()[1]
        self._is_closed = False
        self._open: dict[_Connection, threading.Thread] = {}
        self._thread = threading.Thread(target=self._accept, name=f"forward-{port}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._is_closed = True
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", self.port), END_S),
        ):
            pass  # wakes the thread that waits for connections
        self._thread.join(END_S)
        self._listener.close()
        for connection, thread in list(self._open.items()):
            connection.stop()
            thread.join(END_S)

    def _accept(self) -> None:
        while True:
            try:
                local, _ = self._listener.accept()
            except OSError:
                return
            if self._is_closed:
                local.close()
                return
            connection = _Connection(local)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._open[connection] = thread
            thread.start()

    def _serve(self, connection: _Connection) -> None:
        try:
            connection.carry(lambda: _web_socket(self._cluster, self._pod, self._remote_port))
        finally:
            self._open.pop(connection, None)


class _Connection:
    """Bytes both ways between a local socket and a pod's port, until one of the two ends.

    The client library has something like it, but its thread shows a traceback when a network breaks.
    One thread does both ways: two may not use one TLS connection at the same time.
    """

    def __init__(self, local: socket.socket) -> None:
        self._local = local
        self._remote: Any = None
        self._opened: set[int] = set()

    def carry(self, dial: Callable[[], Any]) -> None:
        try:
            # Whatever breaks, on either side, is the end of this connection and of nothing else.
            with contextlib.suppress(Exception):
                self._remote = dial()
                self._both_ways()
        finally:
            self._local.close()
            if self._remote is not None:
                self._remote.shutdown()

    def stop(self) -> None:
        """Wake the thread: closing its sockets would not."""
        ends: list[Any] = [self._local, getattr(self._remote, "sock", None)]
        for end in filter(None, ends):
            with contextlib.suppress(OSError, ValueError):
                end.shutdown(socket.SHUT_RDWR)

    def _both_ways(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._local, selectors.EVENT_READ, self._up)
            ready.register(self._remote.sock, selectors.EVENT_READ, self._down)
            while all(key.data() for key, _ in ready.select()):
                pass

    def _up(self) -> bool:
        data = self._local.recv(PART)
        if data:
            self._remote.send_binary(bytes([DATA]) + data)
        return bool(data)

    def _down(self) -> bool:
        while self._frame():
            pending = getattr(self._remote.sock, "pending", None)  # TLS has read more than it gave
            if pending is None or not pending():
                return True
        return False

    def _frame(self) -> bool:
        """Pass one frame on; false at the end."""
        code, frame = self._remote.recv_data_frame(True)
        if code == CLOSE or not frame.data:
            return bool(code != CLOSE)
        channel = frame.data[0]
        if channel not in self._opened:
            self._opened.add(channel)  # its first frame tells the port only
        elif channel == ERROR:
            return False
        else:
            self._local.sendall(frame.data[1:])
        return True


def _listener(wanted: int) -> socket.socket:
    try:
        return socket.create_server(("127.0.0.1", wanted))
    except OSError:
        return socket.create_server(("127.0.0.1", 0))


def _web_socket(cluster: Cluster, pod: str, port: int) -> Any:
    configuration = cluster.configuration
    bearer = configuration.auth_settings().get("BearerToken")  # fresh: it may have been renewed
    headers = {"authorization": bearer["value"]} if bearer else {}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod}/portforward"
    address = f"{configuration.host}{path}?{urlencode({'ports': port})}"
    module = import_kubernetes("stream.ws_client")
    return module.create_websocket(configuration, module.get_websocket_url(address), headers)
