"""The server as a browser sees it: a real one, over HTTP, on real run directories."""

from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families
from run_directories import (
    Answer,
    append,
    ended,
    get,
    only_run,
    started,
    step,
    whole_run,
    write_run,
)

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import InvalidValue, UnknownName
from elasticdl.runtime.dashboard import events_view, schema
from elasticdl.runtime.dashboard import server as server_module
from elasticdl.runtime.dashboard.serve import Dashboard, start, try_start


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    one = write_run(runs / "one", whole_run(), {"minibatch_size": 32})
    (one / "logs").mkdir()
    (one / "logs" / "worker-0.log").write_text("first\nsecond\n")
    write_run(runs / "other", [started(), step(1), ended(2, "failed", error="It broke.")])
    (runs / "no run").mkdir()
    return runs


@pytest.fixture(scope="module")
def dashboard(directory: Path) -> Iterator[Dashboard]:
    with start([str(directory)]) as server:
        yield server


@pytest.fixture(scope="module")
def ids(dashboard: Dashboard) -> dict[str, str]:
    return {run["name"]: run["id"] for run in get(dashboard, "/api/runs").data["runs"]}


def refreshed(dashboard: Dashboard, path: str, has: Any) -> Any:
    """What the server answers once it has looked again."""
    for _ in range(200):
        data = get(dashboard, path).data
        if has(data):
            return data
        threading.Event().wait(0.05)
    raise AssertionError(data)


def test_every_answer_has_the_documented_form(dashboard: Dashboard, ids: dict[str, str]) -> None:
    id = ids["one"]
    forms = {
        "/api/runs": schema.RunList,
        f"/api/runs/{id}": schema.Detail,
        f"/api/runs/{id}/series": schema.SeriesList,
        f"/api/runs/{id}/series?points=10&start=2&end=9&x=time": schema.SeriesList,
        f"/api/runs/{id}/workers": schema.Timeline,
        f"/api/runs/{id}/ledger": schema.Ledger,
        f"/api/runs/{id}/events": schema.EventList,
        f"/api/runs/{id}/events?search=lost&level=warning&limit=1": schema.EventList,
        f"/api/runs/{id}/logs/worker-0.log?tail=1": schema.Log,
        f"/api/compare?ids={id},{ids['other']}": schema.Comparison,
    }
    for path, form in forms.items():
        answer = get(dashboard, path)
        assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
        form.model_validate(answer.data)


def test_list_tells_all_runs_and_nothing_else(dashboard: Dashboard) -> None:
    told = get(dashboard, "/api/runs").data
    found = {run["name"]: (run["status"], run["message"]) for run in told["runs"]}
    assert found == {"one": ("completed", None), "other": ("failed", "It broke.")}
    assert told["problems"] == []


def test_unchanged_answer_is_not_sent_again(dashboard: Dashboard, ids: dict[str, str]) -> None:
    for path in ("/api/runs", f"/api/runs/{ids['one']}/series", f"/api/runs/{ids['one']}", "/"):
        tag = get(dashboard, path).headers["etag"]
        again = get(dashboard, path, headers={"If-None-Match": tag})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)


def test_numbers_change_while_a_run_goes_on(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "run")
    with start([str(tmp_path)]) as server:
        with directory.held(resume=False, job={"command": "train"}):
            append(tmp_path / "run", started(), step(1))
            (run,) = refreshed(server, "/api/runs", lambda data: data["runs"])["runs"]
            assert (run["status"], run["step"]) == ("running", 1)
            path = f"/api/runs/{run['id']}/series"
            before = get(server, path)
            append(tmp_path / "run", step(2))
            told = refreshed(server, path, lambda data: data["series"][0]["total"] == 2)
            assert told["version"] != before.data["version"]
            append(tmp_path / "run", ended(3))
        refreshed(server, "/api/runs", lambda data: data["runs"][0]["status"] == "completed")


def test_run_that_vanishes_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "run", whole_run())
    with start([str(tmp_path / "runs")]) as server:
        id = only_run(server)["id"]
        shutil.rmtree(tmp_path / "runs")
        gone = refreshed(server, f"/api/runs/{id}/events", lambda data: "error" in data)
        assert "or no longer" in gone["error"]
        assert get(server, f"/api/runs/{id}").status == 404
        told = refreshed(server, "/api/runs", lambda data: data["problems"])
        assert told["runs"] == []
        assert get(server, "/healthz").data == {"status": "ok"}


def test_a_thousand_runs_are_listed(tmp_path: Path) -> None:
    for n in range(1000):
        write_run(tmp_path / f"run-{n}", [started(1e9 + n), step(1), ended(2)])
    with start([str(tmp_path)]) as server:
        runs = get(server, "/api/runs").data["runs"]
    assert len(runs) == 1000
    assert runs[0]["name"] == "run-999"  # the newest first


def test_a_hundred_thousand_events_are_told_in_few_points(tmp_path: Path) -> None:
    write_run(tmp_path / "run", [started(), *(step(n) for n in range(1, 100_001))])
    with start([str(tmp_path)]) as server:
        id = only_run(server)["id"]
        loss = get(server, f"/api/runs/{id}/series?points=500").data["series"][0]
        assert (loss["total"], len(loss["points"]) <= 500) == (100_000, True)
        events = get(server, f"/api/runs/{id}/events?limit=3").data
        assert [one["fields"]["step"] for one in events["events"]] == [99_998, 99_999, 100_000]


def test_list_does_not_wait_for_a_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path / "run", whole_run())
    searching, goes_on = threading.Event(), threading.Event()
    was_told: list[bool] = []
    real = events_view._found

    def slow(*given: Any) -> list[int]:
        searching.set()
        was_told.append(goes_on.wait(15))
        return real(*given)

    monkeypatch.setattr(events_view, "_found", slow)
    with start([str(tmp_path)]) as server:
        path = f"/api/runs/{only_run(server)['id']}/events?search=lost"
        answers: list[Answer] = []
        thread = threading.Thread(target=lambda: answers.append(get(server, path)))
        thread.start()
        try:
            assert searching.wait(30)
            append(tmp_path / "run", started(step=21), step(22))
            refreshed(server, "/api/runs", lambda data: data["runs"][0]["step"] == 22)
        finally:
            goes_on.set()
            thread.join()
    assert was_told == [True]  # the list came first
    assert answers[0].data["matched"] == 2


def test_wrong_questions_are_answered_in_words(dashboard: Dashboard, ids: dict[str, str]) -> None:
    id = ids["one"]
    for path, status in {
        "/api/runs/none": 404,
        f"/api/runs/{id}/nothing": 404,
        f"/api/runs/{id}/logs/worker-7.log": 404,
        f"/api/runs/{id}/report": 404,
        f"/api/runs/{id}/series?points=many": 422,
        f"/api/runs/{id}/events?level=loud": 422,
        "/api/compare": 422,
        "/api/compare?ids=": 400,
        f"/api/compare?ids={id},none": 404,
        "/static/none.js": 404,
        "/api": 404,
    }.items():
        answer = get(dashboard, path)
        assert answer.status == status, path
        assert isinstance(answer.data.get("error"), str), path


def test_openapi_and_its_page_tell_every_address(dashboard: Dashboard) -> None:
    told = get(dashboard, "/api/openapi.json").data
    page = get(dashboard, "/api/docs")
    assert page.headers["content-type"].startswith("text/html")
    for path in told["paths"]:
        assert path in page.body.decode()
    assert "/api/runs/{id}/workers" in told["paths"]
    assert "//" not in page.body.decode().replace("<!--", "")  # nothing from elsewhere


def test_metrics_can_be_read_by_prometheus(dashboard: Dashboard, ids: dict[str, str]) -> None:
    text = get(dashboard, "/metrics").body.decode()
    found = {one.name: one.samples for one in text_string_to_metric_families(text)}
    steps = {sample.labels["id"]: sample.value for sample in found["elasticdl_run_step"]}
    assert steps[ids["one"]] == 21
    assert {s.labels["status"]: s.value for s in found["elasticdl_runs"]} == {
        "completed": 1,
        "failed": 1,
    }


def test_metrics_of_numbers_beyond_measure_are_left_out(tmp_path: Path) -> None:
    huge = 10**400
    write_run(tmp_path / "run", [started(), {**step(5), "loss": huge}, {**step(6), "epoch": huge}])
    with start([str(tmp_path)]) as server:
        for path in ("/metrics", "/api/runs", f"/api/runs/{only_run(server)['id']}/events"):
            assert get(server, path).status == 200


def test_every_path_of_the_page_is_the_page(dashboard: Dashboard, ids: dict[str, str]) -> None:
    index = get(dashboard, "/").body
    assert index.startswith(b"<!doctype html>")
    for path in (f"/run/{ids['one']}", "/compare?ids=a,b", f"/run/{ids['one']}/events"):
        assert get(dashboard, path).body == index


def test_head_is_answered_without_content(dashboard: Dashboard) -> None:
    answer = get(dashboard, "/api/runs", method="HEAD")
    assert (answer.status, answer.body) == (200, b"")


def test_port_that_is_taken_is_evaded_and_a_given_one_is_not(tmp_path: Path) -> None:
    with start([str(tmp_path)]) as one, start([str(tmp_path)]) as other:
        assert one.url != other.url
        port = int(one.url.rsplit(":")[-1].strip("/"))
        with pytest.raises(InvalidValue, match=r"Give another host or port"):
            start([str(tmp_path)], port=port)
        with pytest.raises(InvalidValue, match="Invalid port 80000"):
            start([str(tmp_path)], port=80_000)
        dashboard, why = try_start([str(tmp_path)], port=port)
        assert dashboard is None
        assert "Give another host or port" in str(why)


def test_server_that_is_stopped_is_gone_at_once_and_for_good(tmp_path: Path) -> None:
    before = [thread.name for thread in threading.enumerate()].count("dashboard")
    server = start([str(tmp_path)])
    assert get(server, "/healthz").status == 200
    server.stop()
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        get(server, "/healthz")
    start([str(tmp_path)]).stop()  # before it is loaded
    assert [thread.name for thread in threading.enumerate()].count("dashboard") == before


def test_server_prints_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with start([str(tmp_path)]) as server:
        get(server, "/api/runs/x")
        where = server.url.split("/")[2].split(":")
        with socket.create_connection((where[0], int(where[1]))) as rude:
            rude.sendall(b"\x16\x03 this is no HTTP\r\n\r\n")
            rude.recv(1000)
    assert capfd.readouterr() == ("", "")


def test_clients_that_say_nothing_are_sent_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "HEADERS_S", 0.2)
    with start([str(tmp_path)]) as server, ExitStack() as stack:
        assert get(server, "/healthz").status == 200
        where = urlsplit(server.url)
        address = (str(where.hostname), where.port)
        silent = stack.enter_context(socket.create_connection(address, timeout=30))
        halting = stack.enter_context(socket.create_connection(address, timeout=30))
        halting.sendall(b"GET /healthz HTTP/1.1\r\nHost: local")
        again = stack.enter_context(socket.create_connection(address, timeout=30))
        again.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(5000).startswith(b"HTTP/1.1 200")
        again.sendall(b"GET /heal")
        for one in (silent, halting, again):
            while one.recv(5000):  # the end of what was asked for before
                pass


def test_one_connection_too_many_is_told_to_come_later(tmp_path: Path) -> None:
    with start([str(tmp_path)]) as server, ExitStack() as stack:
        assert get(server, "/healthz").status == 200
        where = urlsplit(server.url)
        for _ in range(server_module.MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection((str(where.hostname), where.port)))
        assert get(server, "/healthz").status == 503


def test_directories_can_be_added_while_it_serves(tmp_path: Path) -> None:
    write_run(tmp_path / "later" / "run", whole_run())
    (tmp_path / "first").mkdir()
    with start([str(tmp_path / "first")]) as server:
        assert get(server, "/api/runs").data["runs"] == []
        server.add(str(tmp_path / "later" / "run"))
        run = only_run(server)
        assert server.url_of(str(tmp_path / "later" / "run")).endswith(f"/run/{run['id']}")


def test_runs_at_a_remote_address_are_served() -> None:
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe_file("/served/run/job.json", b'{"command": "train"}')
    fs.pipe_file("/served/run/events.jsonl", json.dumps(started()).encode() + b"\n")
    try:
        with start(["memory://served"]) as server:
            run = only_run(server)
            assert (run["where"], run["status"]) == ("memory://served/run", "killed")
            assert get(server, f"/api/runs/{run['id']}").data["artifacts"]
    finally:
        fs.rm("/served", recursive=True)
    with pytest.raises(UnknownName, match="Unknown kind of address"):
        start(["s4://bucket/runs"])
