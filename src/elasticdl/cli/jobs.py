"""`elasticdl jobs`: look at jobs, and change what they do, wherever they run."""

from __future__ import annotations

from elasticdl.cli.lazy import LazyGroup

__all__ = ["jobs"]

jobs = LazyGroup(
    name="jobs",
    help="Look at jobs and stop them, wherever they run.",
    lazy={
        "list": ("elasticdl.cli.jobs_show:list_", "List jobs, the newest first."),
        "status": ("elasticdl.cli.jobs_show:status", "Show how far a job is."),
        "logs": ("elasticdl.cli.jobs_logs:logs", "Show what a job says."),
        "stop": ("elasticdl.cli.jobs_stop:stop", "Stop a job with a checkpoint."),
        "scale": ("elasticdl.cli.scale:scale", "Change the number of workers of a running job."),
        "wait": ("elasticdl.cli.jobs_stop:wait", "Wait until a job has ended."),
    },
)
