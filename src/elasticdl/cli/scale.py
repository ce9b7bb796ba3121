"""`elasticdl scale`, which is `elasticdl jobs scale` too."""

from __future__ import annotations

import click

from elasticdl.cli.jobs_options import on_cluster

__all__ = ["scale"]


@click.command()
@click.argument("job")
@click.option(
    "--num_workers",
    metavar="N|MIN:MAX",
    required=True,
    help="Number of workers, or the least and the most: `2:4`.",
)
@on_cluster
def scale(job: str, num_workers: str, cluster: str | None, namespace: str | None) -> None:
    """Change the number of workers of a running job.

    JOB is the --output of the run, or the name of the job: then it is its newest run below elasticdl_runs/. With
    --cluster it is the name of the job in the cluster.
    Workers that join load while the others train. Workers that leave lose nothing.
    """
    from elasticdl.job.parse import parse_workers
    from elasticdl.runtime.jobs.jobs import jobs_at

    workers = parse_workers("num_workers", num_workers)
    with jobs_at(cluster, namespace) as jobs:
        jobs.scale(job, workers, click.echo)
