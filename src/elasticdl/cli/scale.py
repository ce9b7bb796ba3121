"""`elasticdl scale`."""

from __future__ import annotations

import click

__all__ = ["scale"]


@click.command()
@click.argument("job")
@click.option(
    "--num_workers",
    metavar="N|MIN:MAX",
    required=True,
    help="Number of workers, or the least and the most: `2:4`.",
)
def scale(job: str, num_workers: str) -> None:
    """Change the number of workers of a running job.

    JOB is the --output of the run, or the name of the job: then it is its newest run below elasticdl_runs/.
    Workers that join load while the others train. Workers that leave lose nothing.
    """
    from elasticdl.job.parse import parse_workers, workers_text
    from elasticdl.runtime.elastic.scaling import ask, find_run

    workers = parse_workers("num_workers", num_workers)
    event = ask(find_run(job), workers)
    before, after = (
        workers_text(parse_workers(name, event[name])) for name in ("before", "num_workers")
    )
    click.echo(f"scaling from {before} to {after} workers")
