"""A pod's port on this machine."""

from __future__ import annotations

import hashlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from api_server import ApiServer

from elasticdl.runtime.kubernetes.client import Cluster
from elasticdl.runtime.kubernetes.forward import forward


class Dashboard(BaseHTTPRequestHandler):
    """What listens in the pod: it tells what it was asked, or sends back what it got."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(f"asked for {self.path}".encode())

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def pod(server: ApiServer) -> Iterator[str]:
    """A pod whose port 8265 serves pages."""
    server.put("pods", {"metadata": {"name": "head"}})
    with ThreadingHTTPServer(("127.0.0.1", 0), Dashboard) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, args=(0.01,))
        thread.start()
        server.ports["head", 8265] = http_server.server_port
        yield "head"
        http_server.shutdown()
        thread.join()


def fetch(url: str, data: bytes | None = None) -> bytes:
    with urllib.request.urlopen(url, data=data, timeout=30) as answer:
        return bytes(answer.read())


def test_pages_of_a_pod_come_through(cluster: Cluster, pod: str) -> None:
    with forward(cluster, pod, 8265) as url:
        assert fetch(f"{url}/a?b=c") == b"asked for /a?b=c"
        assert fetch(f"{url}/again") == b"asked for /again"


def test_large_bodies_come_through_whole(cluster: Cluster, pod: str) -> None:
    body = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(100_000))
    with forward(cluster, pod, 8265) as url:
        assert fetch(url, body) == body


def test_several_connections_at_once(cluster: Cluster, pod: str) -> None:
    with forward(cluster, pod, 8265) as url:
        address = urlsplit(url).netloc
        kept = [http.client.HTTPConnection(address, timeout=30) for _ in range(5)]
        for turn in range(2):  # each is kept open, and asked again
            for number, connection in enumerate(kept):
                connection.request("GET", f"/{number}/{turn}")
                assert connection.getresponse().read() == f"asked for /{number}/{turn}".encode()
        for connection in kept:
            connection.close()


def test_it_listens_on_loopback_only(cluster: Cluster, pod: str) -> None:
    with forward(cluster, pod, 8265) as url:
        assert urlsplit(url).hostname == "127.0.0.1"
        others = [info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)]
        for other in {address for address in others if not str(address).startswith("127.")}:
            with pytest.raises(OSError):
                socket.create_connection((other, urlsplit(url).port or 0), timeout=5).close()


def test_a_port_that_is_taken_here_is_replaced_by_another(cluster: Cluster, pod: str) -> None:
    with forward(cluster, pod, 8265) as one, forward(cluster, pod, 8265) as two:
        assert one != two
        assert fetch(one) == fetch(two)


def test_a_connection_that_breaks_ends_alone(server: ApiServer, cluster: Cluster, pod: str) -> None:
    with forward(cluster, pod, 8265) as url:
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)
        connection.request("GET", "/")
        connection.getresponse().read()
        server.break_forwards()
        with pytest.raises((OSError, http.client.HTTPException)):
            while True:
                connection.request("GET", "/")
                connection.getresponse().read()
        connection.close()
        assert fetch(f"{url}/later") == b"asked for /later"


@pytest.mark.parametrize("trouble", ["no such pod", "nobody listens", "forbidden"])
def test_a_pod_that_cannot_be_reached_closes_the_connection(
    server: ApiServer, cluster: Cluster, pod: str, trouble: str
) -> None:
    if trouble == "nobody listens":
        del server.ports["head", 8265]
    if trouble == "forbidden":
        server.refuse(403, "pods/portforward is forbidden", path="portforward")
    name = "gone" if trouble == "no such pod" else "head"
    with forward(cluster, name, 8265) as url, pytest.raises((OSError, http.client.HTTPException)):
        fetch(url)


def test_the_end_closes_connections_that_are_open(cluster: Cluster, pod: str) -> None:
    with forward(cluster, pod, 8265) as url:
        where = (urlsplit(url).hostname, urlsplit(url).port)
        still = socket.create_connection(where, timeout=30)
        still.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert still.recv(10)
    with still:
        while still.recv(100):
            pass
    with pytest.raises(OSError):
        socket.create_connection(where, timeout=5)
    assert not _forwarding()


def _forwarding(name: Callable[[threading.Thread], str] = lambda thread: thread.name) -> list[str]:
    return [name(thread) for thread in threading.enumerate() if name(thread).startswith("forward")]
