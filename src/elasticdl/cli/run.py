"""`elasticdl run`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.options import cluster_job, cluster_params, refuse_slips, write_groups
from elasticdl.cli.outcome import report
from elasticdl.cli.page import no_dashboard as no_dashboard_option
from elasticdl.cli.page import page
from elasticdl.cli.presentation import Presentation
from elasticdl.errors import InvalidValue, UnknownName, near_match
from elasticdl.job.config import JobConfig

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = ["run"]

EXAMPLE = """
\b
Example, with the project that `elasticdl new demo` writes:
  cd demo
  elasticdl run --run_name baseline --data_dir data
  elasticdl run --run_name baseline --data_dir data --set epochs=2 --overwrite
"""

STAGES = ("all", "train", "export", "evaluate")
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class _RunCommand(click.Command):
    """Takes options only, and notices a value that was forgotten."""

    allow_extra_args = True  # click's own word on them is short

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            refuse_slips(self, ctx)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self, ctx, formatter, "Options")


@click.command(cls=_RunCommand, epilog=EXAMPLE, params=cluster_params())
@click.option(
    "--run_name",
    metavar="TEXT",
    required=True,
    help="The run: a directory in runs/ that holds its config.yaml.",
)
@click.option(
    "--data_dir",
    metavar="TEXT",
    help="The data: a directory or an address.  [default: data_dir of the config]",
)
@click.option(
    "--project_root",
    metavar="TEXT",
    default=".",
    help="The project's directory.  [default: the working directory]",
)
@click.option(
    "--runs_dir",
    metavar="TEXT",
    help="Where run directories are, also an address.  [default: runs/ of the project]",
)
@click.option(
    "--eval_reports_dir",
    metavar="TEXT",
    help="Where reports on test data go.  [default: eval_reports/ of the project]",
)
@click.option(
    "--mlflow_tracking_uri",
    metavar="TEXT",
    help="MLflow's server or database.  [default: MLFLOW_TRACKING_URI, else mlflow.db of the project]",
)
@click.option("--no_mlflow", is_flag=True, help="Tell MLflow nothing.")
@click.option(
    "--set",
    "overrides",
    metavar="KEY=VALUE",
    multiple=True,
    help="Replace a value of the config: model_builder.n_filters=256. May be repeated.",
)
@click.option(
    "--stage",
    metavar=f"[{'|'.join(STAGES)}]",
    default="all",
    help="What to do; all skips what was done before.  [default: all]",
)
@click.option("--check", is_flag=True, help="Check config, classes and one batch; train nothing.")
@click.option("--fast_dev_run", is_flag=True, help="Go through everything with two batches.")
@click.option("--overwrite", is_flag=True, help="Start anew: remove what the run wrote before.")
@click.option(
    "--num_workers",
    metavar="N|MIN:MAX",
    help="Processes that train together, or the least and the most: 2:4.  [default: this one alone]",
)
@click.option(
    "--distribution_strategy",
    metavar="TEXT",
    help="Local or AllreduceStrategy.  [default: by --num_workers]",
)
@click.option(
    "--ray_address",
    metavar="TEXT",
    help="A Ray cluster: auto, ray://host:port or host:port.  [default: a Ray of the run's own]",
)
@click.option(
    "--worker_timeout",
    metavar="FLOAT",
    help="Seconds after which a worker that does not answer is expelled.  [default: 30]",
)
@click.option(
    "--log_level",
    metavar=f"[{'|'.join(LEVELS)}]",
    default="INFO",
    help="How much to say: WARNING shows no progress, DEBUG whole tracebacks.  [default: INFO]",
)
@no_dashboard_option
@click.pass_obj
def run(
    presentation: Presentation,
    /,
    project_root: str,
    run_name: str,
    stage: str,
    check: bool,
    no_mlflow: bool,
    log_level: str,
    no_dashboard: bool,
    **options: Any,
) -> int:
    """Run an experiment: train, export, evaluate.

    The experiment is <project_root>/runs/<run_name>/config.yaml. A training that was stopped goes on; one
    that is done is not done again.
    """
    stage = _chosen("stage", stage.lower(), STAGES)
    log_level = _chosen("log_level", log_level.upper(), LEVELS)
    if check and stage != "all":
        raise InvalidValue(
            f"Invalid --check with --stage {stage}: a check is of all. Give one of them."
        )
    presentation.full_traceback = log_level == "DEBUG"
    presentation.model_zoo = os.path.abspath(project_root)
    job = cluster_job(options, "ray_address", "distribution_strategy")
    if job.cluster is not None:
        if check:
            raise InvalidValue(
                "Invalid --check with --cluster: a check runs here. Give one of them."
            )
        return report(
            _on_cluster(job, project_root, run_name, stage, no_mlflow, log_level, options)
        )
    from elasticdl.experiments.stages import Experiment

    experiment = Experiment(
        project_root,
        run_name,
        mlflow=not no_mlflow,
        log_level=log_level,
        worker_resource_request=job.worker_resource_request,
        **options,
    )
    action = "check" if check else "run" if stage == "all" else stage
    with page(log_level, is_off=no_dashboard):
        result: Result = getattr(experiment, action)()
        return report(result)


def _on_cluster(
    job: JobConfig,
    project_root: str,
    run_name: str,
    stage: str,
    no_mlflow: bool,
    log_level: str,
    options: dict[str, Any],
) -> Result:
    from elasticdl.experiments.on_cluster import run_on_cluster

    flags = [f"--stage={stage}", f"--log_level={log_level}"]
    flags += [f"--{name}" for name in ("fast_dev_run", "overwrite") if options.pop(name)]
    if options["worker_timeout"] is not None:
        flags.append(f"--worker_timeout={options['worker_timeout']}")
    if no_mlflow:
        flags.append("--no_mlflow")
        options["mlflow_tracking_uri"] = None
    for name in ("num_workers", "distribution_strategy", "ray_address", "worker_timeout"):
        options.pop(name)
    return run_on_cluster(job, project_root, run_name, flags=flags, **options)


def _chosen(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value in choices:
        return value
    match = near_match(value, choices)
    advice = f"Did you mean {match!r}?" if match else f"Give one of {', '.join(choices)}."
    raise UnknownName(f"Invalid --{name} {value!r}. {advice}")
