"""The application: addresses to views. It only reads, and knows nothing of tokens (`safety`) or sockets (`serve`)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from elasticdl.errors import ElasticDLError, InvalidValue, NotFound
from elasticdl.runtime.dashboard import page, schema
from elasticdl.runtime.dashboard.answers import to_json
from elasticdl.runtime.dashboard.api import Api, Limits
from elasticdl.runtime.dashboard.events_view import Wanted
from elasticdl.runtime.dashboard.hiding import hide
from elasticdl.runtime.dashboard.runs import Runs
from elasticdl.runtime.dashboard.safety import Safe

__all__ = ["make_app"]

Points = Annotated[int, Query(ge=10, le=20_000, description="About how many points of each curve.")]
Part = Annotated[float | None, Query(description="In steps, or in seconds since 1970.")]
Search = Annotated[str, Query(max_length=200, description="Words that must be in the line.")]
Ids = Annotated[str, Query(max_length=2000, description="Ids of runs, with commas between them.")]


def make_app(runs: Runs, *, token: str | None = None) -> Safe:
    """The application for these runs."""
    app = FastAPI(
        title="ElasticDL dashboard",
        version=version("elasticdl"),
        description="Runs, as their run directories tell of them. Read-only.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    api = Api(runs)
    _add_lists(app, api)
    _add_runs(app, api)
    _add_files(app, api)
    page.add_pages(app)
    app.add_exception_handler(ElasticDLError, _failed)
    app.add_exception_handler(HTTPException, _not_there)
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(Exception, _broken)
    return Safe(app, token)


def _add_lists(app: FastAPI, api: Api) -> None:
    @app.get("/api/runs", response_model=schema.RunList, tags=["runs"])
    def runs(request: Request) -> Response:
        """All runs, the newest first."""
        return api.runs(request)

    @app.get("/api/compare", response_model=schema.Comparison, tags=["runs"])
    def compare(request: Request, ids: Ids) -> Response:
        """Runs side by side: configurations with their differences, and metrics with the best."""
        return api.compare(request, [id for id in ids.split(",") if id])

    @app.get("/metrics", tags=["monitoring"])
    def metrics() -> Response:
        """All runs, for Prometheus."""
        return api.metrics()

    @app.get("/healthz", tags=["monitoring"])
    async def healthz() -> Response:
        """Whether the server answers."""
        return Response(to_json({"status": "ok"}), media_type="application/json")


def _add_runs(app: FastAPI, api: Api) -> None:
    @app.get("/api/runs/{id}", response_model=schema.Detail, tags=["run"])
    def detail(request: Request, id: str) -> Response:
        """One run: configuration, artifacts, commands."""
        return api.detail(request, id)

    @app.get("/api/runs/{id}/series", response_model=schema.SeriesList, tags=["run"])
    def series(
        request: Request,
        id: str,
        points: Points = 1000,
        start: Part = None,
        end: Part = None,
        x: Literal["step", "time"] = "step",
    ) -> Response:
        """The curves. Of more points than asked for the least and the largest of each part are kept."""
        return api.series(request, id, Limits(points, start, end, x))

    @app.get("/api/runs/{id}/workers", response_model=schema.Timeline, tags=["run"])
    def workers(request: Request, id: str) -> Response:
        """Who trained from when to when, and the groups that they formed."""
        return api.workers(request, id)

    @app.get("/api/runs/{id}/ledger", response_model=schema.Ledger, tags=["run"])
    def ledger(request: Request, id: str) -> Response:
        """The epochs with their audits, and the tasks of the open one."""
        return api.ledger(request, id)

    @app.get("/api/runs/{id}/events", response_model=schema.EventList, tags=["run"])
    def events(
        request: Request,
        id: str,
        after: Annotated[int | None, Query(description="Only events with a larger number.")] = None,
        before: Annotated[int | None, Query(description="Only those with a smaller one.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 200,
        search: Search = "",
        level: Literal["debug", "info", "warning", "error"] = "debug",
        kind: Annotated[str, Query(max_length=100)] = "",
    ) -> Response:
        """Events in words. Without `after` the last ones that fit."""
        return api.events(request, id, Wanted(after, before, limit, search, level, kind))


def _add_files(app: FastAPI, api: Api) -> None:
    @app.get("/api/runs/{id}/logs/{name}", response_model=schema.Log, tags=["run"])
    def log(
        request: Request,
        id: str,
        name: str,
        tail: Annotated[int, Query(ge=1, le=10_000)] = 500,
        search: Search = "",
    ) -> Response:
        """The last lines that a worker printed."""
        return api.log(request, id, name, tail, search)

    @app.get("/api/runs/{id}/report", include_in_schema=False)
    def report_page(request: Request, id: str) -> Response:
        return api.report(request, id, "report.html")

    @app.get("/api/runs/{id}/report/{file:path}", tags=["run"])
    def report(request: Request, id: str, file: str) -> Response:
        """The evaluation report of an experiment, and the tables and plots that belong to it."""
        return api.report(request, id, file or "report.html")


def _failed(request: Request, error: Exception) -> Response:
    status = 404 if isinstance(error, NotFound) else 400 if isinstance(error, InvalidValue) else 500
    return _said(status, hide(str(error)))


def _not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _said(error.status_code, str(error.detail))


def _misunderstood(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    told = [f"{one['loc'][-1]}: {one['msg']}" for one in error.errors()]
    return _said(422, f"Invalid question ({'; '.join(told)}). Look at /api/docs.")


def _broken(request: Request, error: Exception) -> Response:
    """What nobody has thought of; what it says may hold paths and more, so it is not told."""
    return _said(500, f"This answer could not be made ({type(error).__name__}).")


def _said(status: int, message: str) -> Response:
    return Response(to_json({"error": message}), status, media_type="application/json")
