"""Git repositories to fetch from: made on disk, served over HTTP on this machine."""

from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class Repository:
    """A repository that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "user.name", "A User")
        self.git("config", "user.email", "user@example.com")
        self.git("config", "commit.gpgsign", "false")

    @property
    def url(self) -> str:
        return f"file://{self.path}"

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, files: dict[str, str], links: dict[str, str] | None = None) -> str:
        """Write the files, commit them, and return the commit."""
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, target in (links or {}).items():
            (self.path / name).symlink_to(target)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=change")
        return self.git("rev-parse", "HEAD")


@contextmanager
def served(root: Path, password: str | None = None) -> Iterator[str]:
    """The repositories below a directory at an address, with `git http-backend` behind it."""

    class Handler(_Backend):
        project_root = str(root)
        wanted = password

    with _serving(Handler) as address:
        yield address


@contextmanager
def served_as_files(root: Path) -> Iterator[str]:
    """A directory on a server that knows nothing of Git."""

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(root))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _serving(Handler) as address:
        yield address


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Backend(BaseHTTPRequestHandler):
    """What git documents for any web server: CGI, in its least form."""

    project_root = ""
    wanted: str | None = None

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        if self.wanted and given != f"Basic {base64.b64encode(self.wanted.encode()).decode()}":
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="models"')
            self.end_headers()
            return
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": self.project_root,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "REMOTE_ADDR": "127.0.0.1",
        }
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=environment, capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        pass
