"""The answers under /api/: views of runs, with ETags, made again only when something has changed."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from elasticdl.errors import InvalidValue, NotFound, StorageFailure
from elasticdl.runtime.dashboard import views
from elasticdl.runtime.dashboard.answers import Answers, tag_of, to_json
from elasticdl.runtime.dashboard.detail_view import REPORT
from elasticdl.runtime.dashboard.files import is_inside, read_bytes
from elasticdl.runtime.dashboard.hiding import hide_texts
from elasticdl.runtime.dashboard.prometheus import metrics_text
from elasticdl.runtime.dashboard.runs import Run, Runs
from elasticdl.runtime.dashboard.safety import REPORT_POLICY
from elasticdl.storage import is_local

__all__ = ["Api", "Limits"]

DETAIL_S, REMOTE_DETAIL_S = 2.0, 30.0
"""How long the sizes of a run's files are new enough."""
BUSY_S = 0.5
"""So long the list waits for a run that is just being read."""
MOST_COMPARED = 20
_REPORT_FILES = {
    re.compile(r"report\.html"): "text/html; charset=utf-8",
    re.compile(r"plots/[A-Za-z0-9_][\w .-]*\.png", re.ASCII): "image/png",
    re.compile(r"[A-Za-z0-9_][\w .-]*_report[\w .-]*\.csv", re.ASCII): "text/csv; charset=utf-8",
}
LARGEST_REPORT = 64 << 20


@dataclass(frozen=True)
class Limits:
    """Which part of the curves."""

    points: int = 1000
    start: float | None = None
    end: float | None = None
    x: str = "step"


@dataclass(frozen=True)
class _Row:
    """A run in the list, as it was at a version."""

    version: str
    view: dict[str, Any]
    json: bytes


class Api:
    """One method an address."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._answers = Answers()
        self._rows: dict[str, _Row] = {}

    def runs(self, request: Request) -> Response:
        found = self._runs.all()
        problems = hide_texts(self._runs.problems)
        tag = tag_of("runs", *(f"{run.id}{run.version}" for run in found), str(problems))
        if _is_known(request, tag):
            return _unchanged(tag)
        rest = to_json({"problems": problems, "now": round(time.time(), 3)})
        rows = b",".join(row.json for row in self._shown(found))
        return _tagged(request, tag, b'{"runs":[' + rows + b"]," + rest[1:])

    def compare(self, request: Request, ids: Sequence[str]) -> Response:
        if not 1 <= len(ids) <= MOST_COMPARED:
            raise InvalidValue(
                f"{len(ids)} runs cannot be compared. Give 1 to {MOST_COMPARED} ids."
            )
        found = [self._runs.get(id) for id in ids]
        tag = tag_of("compare", *(f"{run.id}{run.version}" for run in found))
        return self._answer(request, tag, lambda: views.compare(found))

    def metrics(self) -> Response:
        shown = [row.view for row in self._shown(self._runs.all())]
        return Response(metrics_text(shown), media_type="text/plain; version=0.0.4; charset=utf-8")

    def detail(self, request: Request, id: str) -> Response:
        run = self._runs.get(id)
        bucket = int(time.monotonic() / (DETAIL_S if is_local(run.path) else REMOTE_DETAIL_S))
        with run.locked():
            made = self._answers.get(
                ("detail", id, run.version, bucket), lambda: views.detail_view(run)
            )
        return _tagged(request, tag_of(made), made)

    def series(self, request: Request, id: str, limits: Limits) -> Response:
        def made(run: Run) -> Any:
            found = views.series(
                run.digest, points=limits.points, start=limits.start, end=limits.end, x=limits.x
            )
            return {"series": found}

        return self._of_run(request, id, ("series", astuple(limits)), made)

    def workers(self, request: Request, id: str) -> Response:
        return self._of_run(
            request, id, "workers", lambda run: views.timeline(run.digest, is_live=run.is_live)
        )

    def ledger(self, request: Request, id: str) -> Response:
        return self._of_run(request, id, "ledger", lambda run: views.ledger(run.digest))

    def events(self, request: Request, id: str, wanted: views.Wanted) -> Response:
        if not wanted.search:
            return self._of_run(
                request, id, wanted, lambda run: views.events_view(run.reading, wanted)
            )
        run = self._runs.get(id)
        with run.searching:  # the list of runs does not wait for it
            with run.locked():
                version, reading = run.version, run.reading.copied()
            return self._answer(
                request,
                tag_of(id, version, wanted),
                lambda: {"version": version, **views.events_view(reading, wanted)},
            )

    def log(self, request: Request, id: str, name: str, tail: int, search: str) -> Response:
        run = self._runs.get(id)
        with run.locked():
            known = views.log_names(run).get(name)
        tag = tag_of("log", id, name, tail, search, "" if known is None else known.mark)
        return self._answer(
            request, tag, lambda: views.log_view(run, name, tail=tail, search=search)
        )

    def report(self, request: Request, id: str, file: str) -> Response:
        """The page that the run wrote, in a sandbox; nothing but the names that a report has."""
        run = self._runs.get(id)
        kind = next((kind for name, kind in _REPORT_FILES.items() if name.fullmatch(file)), None)
        path = run.path / file
        if kind is None or REPORT not in run.found or not is_inside(path, run.path):
            raise NotFound(f"The run {run.name} has no report {file!r}.")
        data = read_bytes(path, run.path, 0, LARGEST_REPORT)
        if not data:
            raise NotFound(f"The run {run.name} has no report {file!r}.")
        headers = {"content-security-policy": REPORT_POLICY}
        if file.endswith(".csv"):
            headers["content-disposition"] = f'attachment; filename="{file}"'
        return Response(data, headers=headers, media_type=kind)

    def _shown(self, found: Sequence[Run]) -> list[_Row]:
        """Each run's row, made when the run has changed."""
        kept: dict[str, _Row] = {}
        for run in found:
            known = self._rows.get(run.id)
            with contextlib.suppress(StorageFailure), run.locked(BUSY_S):
                if known is None or known.version != run.version:
                    view = views.run_view(run)
                    known = _Row(run.version, view, to_json(view))
            if known is not None:  # else it is told of as soon as it answers
                kept[run.id] = known
        self._rows = kept
        return list(kept.values())

    def _of_run(
        self, request: Request, id: str, what: Hashable, make: Callable[[Run], Any]
    ) -> Response:
        run = self._runs.get(id)
        with run.locked():
            tag = tag_of(id, run.version, what)
            return self._answer(request, tag, lambda: {"version": run.version, **make(run)})

    def _answer(self, request: Request, tag: str, make: Callable[[], Any]) -> Response:
        if _is_known(request, tag):
            return _unchanged(tag)
        return _tagged(request, tag, self._answers.get(tag, make))


def _tagged(request: Request, tag: str, body: bytes) -> Response:
    if _is_known(request, tag):
        return _unchanged(tag)
    return Response(body, headers={"etag": tag}, media_type="application/json")


def _unchanged(tag: str) -> Response:
    return Response(status_code=304, headers={"etag": tag})


def _is_known(request: Request, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return tag in [one.strip().removeprefix("W/") for one in given.split(",")]
