"""The page itself and the page of the API: files of this package, known by their names before anybody asks."""

from __future__ import annotations

import hashlib
import html
import mimetypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

__all__ = ["add_pages"]

STATIC = Path(__file__).parent / "static"
_NOT_PAGES = ("api", "static", "metrics", "healthz")
_MISSING = (
    "<!doctype html><title>ElasticDL</title><p>The page is not built. The data is under /api/runs."
)
_DOCS_CSS = (
    ":root{color-scheme:light dark}"
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "code{font-family:ui-monospace,monospace}li{margin:.6rem 0}"
)


@dataclass(frozen=True)
class _File:
    content: bytes
    kind: str
    tag: str

    @classmethod
    def of(cls, content: bytes, kind: str) -> _File:
        return cls(content, kind, f'"{hashlib.sha256(content).hexdigest()[:20]}"')

    def answer(self, request: Request) -> Response:
        headers = {"etag": self.tag}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.kind)


def add_pages(app: FastAPI) -> None:
    """Add the page, its files, and the page of the API: from memory, also while all threads wait for a remote disk."""
    files = _static_files()
    index = files.get("index.html", _File.of(_MISSING.encode(), "text/html; charset=utf-8"))

    @app.get("/static/{name:path}", include_in_schema=False)
    async def static(request: Request, name: str) -> Response:
        if name not in files:
            raise HTTPException(404, f"There is no file {name!r}.")
        return files[name].answer(request)

    @app.get("/api/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(_docs(app.openapi()), media_type="text/html; charset=utf-8")

    @app.get("/api/docs.css", include_in_schema=False)
    async def docs_css() -> Response:
        return Response(_DOCS_CSS, media_type="text/css; charset=utf-8")

    @app.get("/{path:path}", include_in_schema=False)
    async def any_page(request: Request, path: str) -> Response:
        top = path.partition("/")[0]
        if top in _NOT_PAGES or ".." in path.split("/"):
            raise HTTPException(404, "There is nothing here. What there is: /api/docs.")
        return index.answer(request)


def _static_files() -> dict[str, _File]:
    found = {}
    for path in sorted(STATIC.rglob("*")) if STATIC.is_dir() else ():
        if path.is_file():
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            kind += "; charset=utf-8" if kind.startswith("text/") else ""
            found[path.relative_to(STATIC).as_posix()] = _File.of(path.read_bytes(), kind)
    return found


def _docs(openapi: dict[str, Any]) -> str:
    """What can be asked for. FastAPI's own page loads its parts from elsewhere."""
    items = []
    for address, methods in openapi["paths"].items():
        about = methods["get"]
        names = [
            f"<code>{html.escape(_parameter(one))}</code>" for one in about.get("parameters", ())
        ]
        asked = f"<br>{', '.join(names)}" if names else ""
        items.append(
            f"<li><code>GET {html.escape(address)}</code><br>{html.escape(about.get('description', ''))}{asked}</li>"
        )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<title>ElasticDL dashboard: API</title><link rel="stylesheet" href="/api/docs.css">'
        "<h1>The API of the dashboard</h1><p>Read-only JSON. "
        'The same for programs: <a href="/api/openapi.json">openapi.json</a>.</p>'
        f"<ul>{''.join(items)}</ul></html>"
    )


def _parameter(about: dict[str, Any]) -> str:
    default = about.get("schema", {}).get("default")
    return about["name"] if default in (None, "") else f"{about['name']}={default}"
