"""All views in one place: what the server answers, the terminal's commands show too, without a server.

    run = open_run("elasticdl_runs/mnist-1")
    run_view(run)["fraction"]; series(run.digest); timeline(run.digest, is_live=run.is_live)

Each is a function of what was read; `run.refresh()` reads what is new.
"""

from __future__ import annotations

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.errors import NotFound
from elasticdl.runtime.dashboard.compare import compare
from elasticdl.runtime.dashboard.config_view import config_rows
from elasticdl.runtime.dashboard.detail_view import artifacts, commands, detail_view, links
from elasticdl.runtime.dashboard.events_view import Wanted, events_view
from elasticdl.runtime.dashboard.ledger_view import ledger
from elasticdl.runtime.dashboard.logs_view import log_names, log_view
from elasticdl.runtime.dashboard.run_view import run_view
from elasticdl.runtime.dashboard.runs import Run, Runs
from elasticdl.runtime.dashboard.series import series
from elasticdl.runtime.dashboard.timeline import goodput, timeline
from elasticdl.storage import place

__all__ = [
    "Run",
    "Runs",
    "Wanted",
    "artifacts",
    "commands",
    "compare",
    "config_rows",
    "detail_view",
    "events_view",
    "goodput",
    "ledger",
    "links",
    "log_names",
    "log_view",
    "open_run",
    "run_view",
    "series",
    "timeline",
]


def open_run(directory: str | RunDirectory) -> Run:
    """A run, read as far as it is written.

    Raises:
      NotFound: the directory holds no run.
    """
    path = directory.path if isinstance(directory, RunDirectory) else place(directory)
    run = Run(path, path)
    run.refresh()
    if not run.is_there:
        raise NotFound(f"{path} is no run: it has neither job.json nor events.jsonl.")
    return run
