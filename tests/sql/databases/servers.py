"""A real PostgreSQL and a real MariaDB on loopback, each in a temporary directory and on a free port."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

PASSWORD = "tiger's:eye@5/6?"
"""With every character that has a meaning in an address."""
QUOTED = "tiger%27s%3Aeye%405%2F6%3F"


@dataclass(frozen=True)
class Server:
    """A running server: where it is, and its process."""

    port: int
    process: subprocess.Popen[bytes]
    scheme: str

    def url(self, database: str = "test", user: str = "scott", password: str = QUOTED) -> str:
        return f"{self.scheme}://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def start_postgres() -> Iterator[Server]:
    """A PostgreSQL of its own. It refuses to run as root, so that it runs as somebody else then."""
    tools = [_program("initdb"), _program("postgres")]
    with _directory("postgres") as (directory, identity):
        words, data, port = directory / "password", directory / "data", free_port()
        words.write_text(PASSWORD)
        words.chmod(0o644)
        make = [
            "-D",
            data,
            "-U",
            "scott",
            "-A",
            "scram-sha-256",
            f"--pwfile={words}",
            "-N",
            "-E",
            "UTF8",
        ]
        _run([tools[0], *make, "--locale=C.UTF-8", "--no-instructions"], identity)
        settings = {
            "fsync": "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": port,
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with _server(
            [tools[1], "-D", data, *options], identity, directory, "ready to accept"
        ) as process:
            server = Server(port, process, "postgresql")
            _ask_postgres(server, "CREATE DATABASE test")
            yield server


@contextmanager
def start_mariadb() -> Iterator[Server]:
    """A MariaDB of its own."""
    tools = [_program("mariadb-install-db"), _program("mariadbd")]
    with _directory("mysql") as (directory, identity):
        data, port = directory / "data", free_port()
        temporary = (
            directory / "tmp"
        )  # a server that starts removes what others have in a shared one
        temporary.mkdir()
        temporary.chmod(0o777)
        small = [
            "--no-defaults",
            f"--datadir={data}",
            f"--tmpdir={temporary}",
            "--innodb-log-file-size=8M",
        ]
        make = ["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]
        _run([tools[0], *small, *make, *([] if identity else [f"--user={_me()}"])], identity)
        secret = PASSWORD.replace("'", "''")
        first = directory / "first.sql"
        first.write_text(
            f"CREATE DATABASE test;\nCREATE USER scott@'127.0.0.1' IDENTIFIED BY '{secret}';\n"
            "GRANT ALL ON *.* TO scott@'127.0.0.1';\n"
        )
        first.chmod(0o644)
        settings = [
            "--bind-address=127.0.0.1",
            f"--port={port}",
            f"--socket={directory / 'socket'}",
        ]
        settings += [
            f"--init-file={first}",
            "--skip-name-resolve",
            f"--pid-file={directory / 'pid'}",
        ]
        settings += ["--innodb-flush-log-at-trx-commit=0", "--character-set-server=utf8mb4"]
        command = [tools[1], *small, *settings, *([] if identity else [f"--user={_me()}"])]
        with _server(command, identity, directory, "ready for connections") as process:
            yield Server(port, process, "mysql")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    with start_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[Server]:
    with start_mariadb() as server:
        yield server


def _program(name: str) -> str:
    places = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join(
        [os.environ.get("PATH", ""), *map(str, places), "/usr/sbin", "/usr/local/sbin"]
    )
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"{name} is not installed: apt install postgresql mariadb-server")
    return found


def _me() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


@contextmanager
def _directory(user: str) -> Iterator[tuple[Path, dict[str, object]]]:
    """A directory, and who is to run in it: root gives way to the database's own user, or to nobody."""
    directory = Path(tempfile.mkdtemp(prefix="elasticdl_"))
    identity: dict[str, object] = {}
    if os.geteuid() == 0:
        known = {entry.pw_name: entry for entry in pwd.getpwall()}
        entry = known.get(user) or known["nobody"]
        os.chown(directory, entry.pw_uid, entry.pw_gid)
        identity = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    try:
        yield directory, identity
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _run(command: list[object], identity: dict[str, object]) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, cwd="/", **identity)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def _server(
    command: list[object], identity: dict[str, object], directory: Path, ready: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs, from when its log says that it is ready."""
    log = directory / "log"
    # PostgreSQL has processes and shared memory of its own to end; MariaDB takes its time for files that go.
    end = signal.SIGQUIT if "postgres" in str(command[0]) else signal.SIGKILL
    if setpriv := shutil.which("setpriv"):  # a server does not outlive tests that are killed
        command = [setpriv, "--pdeathsig", end.name.removeprefix("SIG"), *command]
    with log.open("w") as file:
        process: subprocess.Popen[bytes] = subprocess.Popen(
            [str(word) for word in command],
            **{"stdout": file, "stderr": file, "start_new_session": True, "cwd": "/", **identity},  # type: ignore[call-overload]
        )
    try:
        while ready not in log.read_text():
            assert process.poll() is None, log.read_text()
            threading.Event().wait(0.05)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(end)
            process.wait()


def _ask_postgres(server: Server, sql: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(sql).close()
