"""`report.html`: one file with all in it, which reaches for nothing outside of itself."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from upath import UPath

from elasticdl.errors import MissingPackage
from elasticdl.reports.history import Event, curves_of
from elasticdl.reports.parts import flat, results, section_parts
from elasticdl.reports.pictures import Plot
from elasticdl.reports.section import Section
from elasticdl.reports.shown import shown, shown_duration, shown_time
from elasticdl.storage import write_file

__all__ = ["Page", "render", "write_page"]


@dataclass(frozen=True)
class Page:
    """What the page tells of a run."""

    project: str
    run: str
    sections: Sequence[Section] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    epochs: Sequence[Event] = ()
    exported: Event | None = None
    model: str | None = None
    date: float | None = None
    duration_s: float | None = None
    curves: Sequence[Plot] = ()
    plots: Mapping[str, Sequence[Plot]] = field(default_factory=dict)
    """By the name of a section."""
    directory: UPath | None = None
    """Where the page will lie: links are relative to it."""


def render(page: Page) -> str:
    """The page as HTML.

    Raises:
        MissingPackage: Jinja is not installed.
    """
    css = _resource("report.css")
    sections = []
    for section in page.sections:
        plots = [_embedded(plot) for plot in page.plots.get(section.name, ())]
        sections.append(section_parts(section, plots, page.directory))
    text: str = _template().render(
        title=f"{page.project} / {page.run}",
        facts=_facts(page),
        css=css,
        policy=_policy(css),
        results=results(page.sections),
        curves=[_embedded(plot) for plot in page.curves],
        num_curves=len(curves_of(page.epochs)),
        sections=sections,
        config=flat(page.config),
    )
    return text


def write_page(where: UPath, page: Page) -> None:
    """Write the page, whole or not at all."""
    write_file(where, render(page).encode("utf-8", "backslashreplace"))


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingPackage(
            "The page of a report needs Jinja, which is not installed. Install it with: "
            "pip install 'elasticdl[abstractions]'"
        ) from error
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(_resource("report.html.jinja"))


def _resource(name: str) -> str:
    files = importlib.resources.files("elasticdl.reports") / "templates"
    return (files / name).read_text(encoding="utf-8")


def _policy(css: str) -> str:
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _facts(page: Page) -> list[tuple[str, str]]:
    facts = {
        "Model": page.model,
        "Date": shown_time(page.date),
        "Duration": shown_duration(page.duration_s),
        "Epochs": str(len(page.epochs)) if page.epochs else None,
        "Exported": _exported(page.exported),
    }
    return [(name, value) for name, value in facts.items() if value]


def _exported(event: Event | None) -> str | None:
    if event is None:
        return None
    parts = [f"epoch {int(event['epoch']) + 1}" if event.get("epoch") is not None else "the model"]
    if event.get("metric") is not None:
        parts.append(f"{event['metric']} {shown(event.get('value'))}")
    return ", ".join(parts)


def _embedded(plot: Plot) -> dict[str, Any]:
    width, height = struct.unpack(">II", plot.png[16:24])  # of the PNG's first chunk
    data = "data:image/png;base64," + base64.b64encode(plot.png).decode()
    # Drawn at more dots than a screen's, to be sharp: shown at the size that was meant.
    return {"data": data, "alt": plot.alt, "width": width * 4 // 5, "height": height * 4 // 5}
