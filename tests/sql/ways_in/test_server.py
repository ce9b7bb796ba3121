"""The server, asked by a plain gRPC client in this process."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from elasticdl.errors import InvalidValue
from elasticdl.sql.server import ServerConfig, SqlServer
from elasticdl.sql.server_access import Access
from elasticdl.sql.server_messages import SERVICE, messages

from .conftest import Serve
from .fake_session import FakeSession


def stub(channel: grpc.Channel, method: str = "Run") -> Callable[..., Iterator[Any]]:
    made = messages()
    return channel.unary_stream(
        f"/{SERVICE}/{method}",
        request_serializer=made.Request.SerializeToString,
        response_deserializer=made.Response.FromString,
    )


def ask(server: SqlServer, sql: str, metadata: Any = (), **session: str) -> list[Any]:
    request = messages().Request(sql=sql, session=messages().Session(**session))
    with grpc.insecure_channel(server.address) as channel:
        return list(stub(channel)(request, metadata=metadata, timeout=30))


def kinds(responses: list[Any]) -> list[str]:
    return [response.WhichOneof("response") for response in responses]


def test_rows_come_between_a_head_and_an_end(serve: Serve) -> None:
    answer = ask(serve(), "SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, NULL ORDER BY a")
    assert kinds(answer) == ["head", "row", "row", "eoe"]
    assert list(answer[0].head.column_names) == ["a", "b"]
    assert [cell.type_url.rpartition("/")[2] for cell in answer[2].row.data] == [
        "google.protobuf.Int64Value",
        "proto.Row.Null",
    ]
    assert answer[-1].eoe.sql.startswith("SELECT 1 AS a")


def test_a_training_tells_what_it_does_while_it_does_it(serve: Serve) -> None:
    answer = ask(serve(), "SELECT * FROM t TRAIN m; SELECT 1")
    said = [response.message.message for response in answer if response.HasField("message")]
    assert said == [
        "The label is salary, the last selected column.",
        "epoch 1/2 done  loss 0.5000",
        "epoch 2/2 done  loss 0.2500",
        "Trained m, version 1.",
    ]
    assert kinds(answer)[4:] == ["eoe", "head", "row", "eoe"]
    assert answer[4].eoe.spent_time_seconds == 2


def test_an_empty_row_set_is_a_message_when_more_follows_and_a_head_when_it_is_the_last(
    serve: Serve,
) -> None:
    answer = ask(serve(), "SELECT 1 AS a WHERE false; SELECT 2 AS b WHERE false")
    assert kinds(answer) == ["message", "message", "eoe", "head"]
    assert answer[0].message.message == "No rows. Columns: a."


def test_every_row_arrives_when_there_are_many(serve: Serve) -> None:
    answer = ask(serve(), "SELECT range AS i FROM range(5000)")
    assert kinds(answer) == ["head", *["row"] * 5000, "eoe"]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("BREAK", grpc.StatusCode.INVALID_ARGUMENT, "line 1, column 1:\n  BREAK\n  ^^^^^"),
        ("BUG", grpc.StatusCode.INTERNAL, "ZeroDivisionError: nobody thought of it"),
        ("LEAVE", grpc.StatusCode.ABORTED, "SystemExit(3)"),
    ],
)
def test_an_error_becomes_a_status_with_its_words(
    serve: Serve, text: str, code: grpc.StatusCode, words: str
) -> None:
    server = serve()
    with pytest.raises(grpc.RpcError) as caught:
        ask(server, f"SELECT 1; {text}")
    assert caught.value.code() is code
    assert words in caught.value.details()
    assert kinds(ask(server, "SELECT 1")) == ["head", "row", "eoe"]


def test_a_job_that_is_fetched_is_at_its_end(serve: Serve) -> None:
    made = messages()
    with grpc.insecure_channel(serve().address) as channel:
        fetch = channel.unary_unary(
            f"/{SERVICE}/Fetch", made.FetchRequest.SerializeToString, made.FetchResponse.FromString
        )
        assert fetch(made.FetchRequest(job=made.Job(id="x")), timeout=30).eof


def test_a_client_that_goes_away_cancels_its_statement_and_nobody_elses(serve: Serve) -> None:
    server = serve()
    with grpc.insecure_channel(server.address) as channel:
        call = stub(channel)(messages().Request(sql="HANG"))
        assert FakeSession.hanging.wait(30)
        assert kinds(ask(server, "SELECT 1")) == ["head", "row", "eoe"]
        call.cancel()  # type: ignore[attr-defined]
    assert FakeSession.ended.wait(30)
    assert kinds(ask(server, "SELECT 1")) == ["head", "row", "eoe"]


def test_a_client_that_does_not_read_stops_at_a_few_rows(serve: Serve) -> None:
    server = serve()
    with grpc.insecure_channel(server.address) as channel:
        call = stub(channel)(messages().Request(sql="SELECT range FROM range(1000000)"))
        assert next(call).HasField("head")  # type: ignore[call-overload]
        call.cancel()  # type: ignore[attr-defined]
    assert kinds(ask(server, "SELECT 1")) == ["head", "row", "eoe"]


def test_many_clients_are_served_at_once(serve: Serve) -> None:
    server, together = serve(), threading.Barrier(8)

    def one(number: int) -> list[str]:
        together.wait(30)
        return kinds(ask(server, f"SELECT {number}; SELECT range FROM range(2000)"))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(one, range(8)))
    assert answers == [["head", "row", "eoe", "head", *["row"] * 2000, "eoe"]] * 8


def test_a_stop_cancels_what_runs(serve: Serve) -> None:
    server = serve()
    with grpc.insecure_channel(server.address) as channel:
        call = stub(channel)(messages().Request(sql="HANG"))
        assert FakeSession.hanging.wait(30)
        server.stop(grace_s=10)
        with pytest.raises(grpc.RpcError, match="It was cancelled"):
            list(call)


class TestAccess:
    def test_without_the_token_nothing_is_run(self, serve: Serve) -> None:
        server = serve(access=Access(token="s3cret"))
        for shown in ({}, {"token": "s3cre"}, {"token": "s3crets"}):
            with pytest.raises(grpc.RpcError) as caught:
                ask(server, "SELECT 1", **shown)
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert "s3c" not in caught.value.details()

    def test_the_token_opens_in_the_session_or_in_the_header(self, serve: Serve) -> None:
        server = serve(access=Access(token="s3cret"))
        assert ask(server, "SELECT 1", token="s3cret")
        assert ask(server, "SELECT 1", metadata=[("authorization", "Bearer s3cret")])

    def test_the_token_is_in_no_log_and_no_representation(self, serve: Serve) -> None:
        lines: list[str] = []
        access = Access(token="s3cret", db=None)
        server = serve(access=access, log=lines.append)
        ask(server, "SELECT 1", token="s3cret")
        with pytest.raises(grpc.RpcError):
            ask(server, "BUG", token="s3cret")
        assert len(lines) == 3
        assert "s3cret" not in "".join(lines) + repr(access)

    def test_a_client_may_name_the_servers_database_and_no_other(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        own, other = str(tmp_path / "own.db"), str(tmp_path / "other.db")
        server = serve(access=Access(db=own))
        ask(server, "CREATE TABLE t AS SELECT 7 AS x", db_conn_str=own)
        assert kinds(ask(server, "SELECT * FROM t")) == ["head", "row", "eoe"]
        with pytest.raises(grpc.RpcError, match="--allow_any_db") as caught:
            ask(server, "SELECT 1", db_conn_str=other)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert not Path(other).exists()

    def test_any_database_can_be_named_when_the_server_allows_it(
        self, serve: Serve, tmp_path: Path
    ) -> None:
        server = serve(access=Access(allow_any_db=True))
        ask(server, "CREATE TABLE t AS SELECT 7 AS x", db_conn_str=str(tmp_path / "other.db"))
        assert (tmp_path / "other.db").exists()

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "db.example.org"])
    def test_an_address_for_others_needs_a_token(self, host: str) -> None:
        with pytest.raises(InvalidValue, match="--token"):
            ServerConfig(host=host)
        ServerConfig(host=host, access=Access(token="x"))
        ServerConfig(host=host, insecure=True)

    def test_a_port_in_use_is_refused(self, serve: Serve) -> None:
        with (
            socket.create_server(("127.0.0.1", 0)) as taken,
            pytest.raises(InvalidValue, match="Give another --port"),
        ):
            serve(port=taken.getsockname()[1])
        first = serve()
        with pytest.raises(InvalidValue, match="Give another --port"):
            serve(port=int(first.address.rpartition(":")[2]))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    directory = tmp_path_factory.mktemp("tls")
    key, cert = directory / "key.pem", directory / "cert.pem"
    asked = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    subprocess.run(
        ["openssl", *asked.split(), "-addext", names, "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


def test_tls_is_spoken_when_a_certificate_is_given(
    serve: Serve, certificate: tuple[str, str]
) -> None:
    cert, key = certificate
    server = serve(tls_cert=cert, tls_key=key)
    trust = grpc.ssl_channel_credentials(Path(cert).read_bytes())
    with grpc.secure_channel(server.address, trust) as channel:
        answer = list(stub(channel)(messages().Request(sql="SELECT 1"), timeout=30))
    assert kinds(answer) == ["head", "row", "eoe"]
    with pytest.raises(grpc.RpcError):
        ask(server, "SELECT 1")


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="belong together"):
        ServerConfig(tls_cert="cert.pem")


def test_only_our_own_words_are_said_when_the_port_is_in_use() -> None:
    """In a process of its own, where gRPC reads its settings anew."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [
            sys.executable,
            "-c",
            "from elasticdl.sql.server import *\n"
            f"SqlServer(ServerConfig(port={taken.getsockname()[1]}), None).bind()",
        ]
        done = subprocess.run(command, capture_output=True, text=True)
    assert "Give another --port" in done.stderr
    assert "add_port" not in done.stderr
