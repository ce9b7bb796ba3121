"""Who may look at the dashboard, and that nothing but runs can be seen, whatever is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from run_directories import Answer, get, only_run, started, step, whole_run, write_run

from elasticdl.errors import InvalidValue
from elasticdl.runtime.dashboard.safety import PAGE_POLICY, is_loopback
from elasticdl.runtime.dashboard.serve import Dashboard, start

MARKUP = "<img src=x onerror=alert(1)>"
SECRET = "top secret"
TOKEN = "a-token-for-the-tests"


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is outside of the directory that is served."""
    outside = tmp_path_factory.mktemp("outside")
    write_run(outside / "private", whole_run(), {"model_def": SECRET})
    for name in ("secret.log", "secret_report.csv", "secret.png", "events.jsonl"):
        (outside / name).write_text(SECRET)
    return outside


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, secret: Path) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    run = write_run(
        runs / MARKUP, [started(job=MARKUP, model=MARKUP), step(1)], {"job_name": MARKUP}
    )
    (run / "logs").mkdir()
    (run / "logs" / "worker-0.log").write_text(MARKUP + "\n")
    (run / "logs" / "out.log").symlink_to(secret / "secret.log")
    (run / "report.html").write_text("<script>alert(1)</script>")
    (run / "a_report.csv").write_text("a,b\n")
    (run / "out_report.csv").symlink_to(secret / "secret_report.csv")
    (run / "plots").symlink_to(secret)
    os.mkfifo(run / "logs" / "pipe.log")
    (runs / "linked").symlink_to(secret / "private")
    return runs


@pytest.fixture(scope="module")
def dashboard(runs: Path) -> Iterator[Dashboard]:
    with start([str(runs)]) as server:
        yield server


@pytest.fixture(scope="module")
def run_path(dashboard: Dashboard) -> str:
    return f"/api/runs/{only_run(dashboard)['id']}"


# --- nothing outside of the directories ---


def test_link_to_a_run_elsewhere_is_not_followed(dashboard: Dashboard) -> None:
    assert only_run(dashboard)["name"] == MARKUP


def test_links_out_of_a_run_are_not_followed(dashboard: Dashboard, run_path: str) -> None:
    told = get(dashboard, run_path)
    assert [one["name"] for one in told.data["logs"]] == ["worker-0.log"]
    assert "plots/" not in [one["name"] for one in told.data["artifacts"]]
    for path in (
        "/logs/out.log",
        "/logs/pipe.log",
        "/report/out_report.csv",
        "/report/plots/secret.png",
    ):
        answer = get(dashboard, run_path + path)
        assert (answer.status, SECRET in answer.body.decode()) == (404, False), path


def test_events_that_are_a_link_out_are_not_read(tmp_path: Path, secret: Path) -> None:
    run = write_run(tmp_path / "runs" / "run", [])
    (run / "events.jsonl").unlink()
    (run / "events.jsonl").symlink_to(secret / "private" / "events.jsonl")
    with start([str(tmp_path / "runs")]) as server:
        id = only_run(server)["id"]
        assert get(server, f"/api/runs/{id}/events").data["total"] == 0


def test_job_that_is_a_link_out_is_not_read(tmp_path: Path) -> None:
    asked = {"validation_data": SECRET}
    other = write_run(tmp_path / "other", whole_run(), asked)
    run = write_run(tmp_path / "runs" / "run", whole_run())
    (run / "job.json").unlink()
    (run / "job.json").symlink_to(other / "job.json")
    with start([str(tmp_path / "runs")]) as server:
        id = only_run(server)["id"]
        assert SECRET not in get(server, f"/api/runs/{id}").body.decode()


@pytest.mark.parametrize("slash", ["/", "%2f", "%2F", "%252f", "\\", "%5c", "..%c0%af"])
@pytest.mark.parametrize("below", ["logs", "report", "report/plots", "static"])
def test_paths_that_climb_lead_nowhere(
    dashboard: Dashboard, run_path: str, secret: Path, below: str, slash: str
) -> None:
    base = "/static" if below == "static" else f"{run_path}/{below}"
    for target in ("secret.log", "secret_report.csv", "secret.png", "private/job.json"):
        for climb in range(1, 5):
            up = f"..{slash}" * climb
            answer = get(dashboard, f"{base}/{up}{secret.name}{slash}{target.replace('/', slash)}")
            assert answer.status in (400, 404), (answer.status, up)
            assert SECRET.encode() not in answer.body
    absolute = quote(str(secret / "secret.log"), safe="")
    assert get(dashboard, f"{base}/{absolute}").status == 404
    assert get(dashboard, f"{base}//etc/passwd").status == 404


def test_ids_are_no_paths(dashboard: Dashboard, secret: Path) -> None:
    for id in (quote(str(secret / "private"), safe=""), "..", "%2e%2e", "x" * 5000, "%00"):
        assert get(dashboard, f"/api/runs/{id}").status in (400, 404)


def test_files_of_a_run_that_are_no_report_are_not_served(
    dashboard: Dashboard, run_path: str
) -> None:
    for name in ("job.json", "events.jsonl", "model/params.safetensors", ".lock", "%00report.html"):
        assert get(dashboard, f"{run_path}/report/{name}").status == 404


# --- text is text ---


def test_markup_of_runs_is_never_html(dashboard: Dashboard, run_path: str) -> None:
    for path in ("/api/runs", run_path, f"{run_path}/events", f"{run_path}/logs/worker-0.log"):
        answer = get(dashboard, path)
        assert MARKUP in answer.body.decode()
        assert answer.headers["content-type"] == "application/json"
    for path in (
        "/metrics",
        "/api/docs",
        f"/{MARKUP}".replace(" ", "%20"),
        f"/api/{quote(MARKUP)}",
    ):
        answer = get(dashboard, path)
        is_html = answer.headers["content-type"].startswith("text/html")
        assert not (is_html and MARKUP in answer.body.decode())
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_report_is_shown_in_a_sandbox_without_scripts(dashboard: Dashboard, run_path: str) -> None:
    for path in (f"{run_path}/report", f"{run_path}/report/report.html"):
        answer = get(dashboard, path)
        assert (answer.status, answer.body) == (200, b"<script>alert(1)</script>")
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("sandbox allow-downloads; default-src 'none';")
        assert "script" not in policy
        assert "frame-ancestors 'self'" in policy
    table = get(dashboard, f"{run_path}/report/a_report.csv")
    assert (table.body, table.headers["content-disposition"][:10]) == (b"a,b\n", "attachment")


# --- headers, methods, hosts ---


def policy_of(answer: Answer) -> str:
    return answer.headers.get("content-security-policy", "")


def test_every_answer_has_the_policy(dashboard: Dashboard, run_path: str) -> None:
    for path in (
        "/",
        "/api/runs",
        run_path,
        "/api/docs",
        "/metrics",
        "/healthz",
        "/none/x",
        "/api/x",
    ):
        assert policy_of(get(dashboard, path)) == PAGE_POLICY
    assert policy_of(get(dashboard, "/", method="POST")) == PAGE_POLICY
    assert policy_of(get(dashboard, "/", headers={"Host": "evil.example"})) == PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert "http" not in PAGE_POLICY


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(dashboard: Dashboard, run_path: str, method: str) -> None:
    answer = get(dashboard, run_path, method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::2]:80"]
)
def test_other_names_of_loopback_are_refused(dashboard: Dashboard, host: str) -> None:
    answer = get(dashboard, "/api/runs", headers={"Host": host})
    assert answer.status in (400, 403)
    assert MARKUP not in answer.body.decode()


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:9", "[::1]:8280", "LOCALHOST:80", "[::1]"]
)
def test_own_names_are_let_in(dashboard: Dashboard, host: str) -> None:
    assert get(dashboard, "/api/runs", headers={"Host": host}).status == 200


# --- the token ---


@pytest.fixture(scope="module")
def guarded(runs: Path) -> Iterator[Dashboard]:
    with start([str(runs)], host="0.0.0.0") as server:
        where = urlsplit(server.url)
        server.url = where._replace(netloc=f"127.0.0.1:{where.port}").geturl()
        yield server


def token_of(guarded: Dashboard) -> str:
    return parse_qs(urlsplit(guarded.url).query)["token"][0]


def test_bound_elsewhere_nothing_is_told_without_the_token(guarded: Dashboard) -> None:
    token = token_of(guarded)
    assert len(token) >= 32
    for path in (
        "/",
        "/api/runs",
        "/metrics",
        "/healthz",
        "/api/runs?token=",
        "/?token=x",
        "/static/x",
    ):
        answer = get(guarded, path)
        assert (answer.status, "set-cookie" in answer.headers) == (401, False), path
        assert token not in answer.body.decode()
    for header in (
        {"Authorization": f"Bearer {token}x"},
        {"Authorization": f"Basic {token}"},
        {"Cookie": f"elasticdl={token}"},
        {"Authorization": "Bearer"},
    ):
        assert get(guarded, "/api/runs", headers=header).status == 401


def test_token_opens_once_and_the_cookie_from_then_on(guarded: Dashboard) -> None:
    answer = get(guarded, f"/?token={token_of(guarded)}")
    assert answer.status == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    again = get(guarded, "/api/runs", headers={"Cookie": cookie.partition(";")[0]})
    assert (again.status, "set-cookie" in again.headers) == (200, False)
    bearer = {"Authorization": f"Bearer {token_of(guarded)}", "Host": "my.cluster"}
    assert get(guarded, "/api/runs", headers=bearer).status == 200


def test_token_of_the_environment_is_asked_for_on_loopback_too(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTICDL_DASHBOARD_TOKEN", TOKEN)
    with start([str(runs)]) as server:
        assert server.url.endswith(f"/?token={TOKEN}")
        assert get(server, "/api/runs").status == 401
        assert get(server, f"/api/runs?token={TOKEN}").status == 200
    monkeypatch.setenv("ELASTICDL_DASHBOARD_TOKEN", "short")
    with pytest.raises(InvalidValue, match="at least 16") as caught:
        start([str(runs)])
    assert "short" not in str(caught.value).replace("shorter", "")


def test_loopback_is_known_by_address() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "", "localhost.example")))
