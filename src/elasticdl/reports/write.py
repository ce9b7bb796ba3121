"""The front door: all reports of one run, from what its evaluations found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from upath import UPath

from elasticdl.errors import MissingPackage
from elasticdl.reports.files import write_table
from elasticdl.reports.history import Event, duration_of, epochs_of, last
from elasticdl.reports.page import Page, write_page
from elasticdl.reports.pictures import Plot, draw_curves, draw_section
from elasticdl.reports.section import Section
from elasticdl.storage import storage_errors, write_file

__all__ = ["Reports", "write_reports"]


@dataclass
class Reports:
    """What was written; `tables` and `plots` by the name of the section."""

    page: UPath | None = None
    curves: list[UPath] = field(default_factory=list)
    tables: dict[str, list[UPath]] = field(default_factory=dict)
    plots: dict[str, list[UPath]] = field(default_factory=dict)

    def files(self, section: str) -> list[UPath]:
        """The tables and plots of a section, as its `report` event lists them."""
        return [*self.tables.get(section, ()), *self.plots.get(section, ())]


def write_reports(
    run_directory: UPath,
    eval_reports: UPath,
    *,
    project: str,
    run: str,
    config: Mapping[str, Any],
    events: Sequence[Event],
    sections: Sequence[Section],
    warn: Callable[[str], None] | None = None,
) -> Reports:
    """Write the tables, the plots and the page of a run.

    Args:
        run_directory: gets `validation_report.csv` and its like, `plots/` and `report.html`.
        eval_reports: gets `<project>/<run>/eval_report.csv` and its like, of the section `test`.
        config: the configuration, as it is shown.
        events: the run's events, of all its sittings.
        sections: what was evaluated: `Section("validation", ...)`, `Section("test", ...)` or one of them.
        warn: is told when a package for plots or page is missing; the tables are there then.

    Raises:
        MissingPackage: likewise, without `warn`.
    """
    reports = Reports()
    for section in sections:
        is_test = section.name == "test"
        directory = eval_reports / project / run if is_test else run_directory
        stem = "eval_report" if is_test else f"{section.name}_report"
        if section.table is not None:
            reports.tables[section.name] = write_table(
                directory, stem, section.table, worst_by=section.worst_by
            )
    try:
        sections = [replace(one, files=reports.tables.get(one.name, [])) for one in sections]
        _draw_and_write(reports, run_directory, project, run, config, events, sections)
    except MissingPackage as missing:
        if warn is None:
            raise
        warn(str(missing))
    return reports


def _draw_and_write(
    reports: Reports,
    run_directory: UPath,
    project: str,
    run: str,
    config: Mapping[str, Any],
    events: Sequence[Event],
    sections: Sequence[Section],
) -> None:
    epochs, exported = epochs_of(events), last(events, "exported")
    curves = draw_curves(epochs, exported)
    plots = {section.name: draw_section(section) for section in sections}
    reports.curves = _write_plots(run_directory, curves)
    reports.plots = {name: _write_plots(run_directory, drawn) for name, drawn in plots.items()}
    started = last(events, "run_started") or {}
    page = Page(
        project=project,
        run=run,
        model=started.get("model"),
        date=events[-1]["time"] if events else None,
        duration_s=duration_of(events),
        config=config,
        epochs=epochs,
        exported=exported,
        sections=sections,
        curves=curves,
        plots=plots,
        directory=run_directory,
    )
    write_page(run_directory / "report.html", page)
    reports.page = run_directory / "report.html"


def _write_plots(run_directory: UPath, plots: Sequence[Plot]) -> list[UPath]:
    directory = run_directory / "plots"
    with storage_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    for plot in plots:
        write_file(directory / plot.file, plot.png)
    return [directory / plot.file for plot in plots]
