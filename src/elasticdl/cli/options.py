"""The flags of a job's command, made from the one table of options in `elasticdl.job.config`.

Values stay strings here: `JobConfig.parse` checks them, so the Python API says the same of the same
mistake.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli import page
from elasticdl.cli.outcome import report
from elasticdl.cli.presentation import Presentation
from elasticdl.errors import InvalidValue, UnknownName, near_match
from elasticdl.job.config import COMMANDS, JobConfig, Option, options
from elasticdl.job.parse import parse_bool

if TYPE_CHECKING:
    from elasticdl.runtime.result import Result

__all__ = [
    "NO_DASHBOARD",
    "JobCommand",
    "JobOption",
    "cluster_job",
    "cluster_params",
    "job_command",
    "refuse_slips",
    "write_groups",
]

METAVARS = {
    "str": "TEXT",
    "int": "INT",
    "float": "NUMBER",
    "bool": "[true|false]",
    "params": "NAME=VALUE,...",
    "workers": "N|MIN:MAX",
}
NO_DASHBOARD = Option("no_dashboard", page.HELP, "Run", "bool", False)
"""Of the command, not of the job: what becomes of the job is the same."""
PATHS = {
    "model_zoo",
    "trained_model",
    "output",
    "training_data",
    "validation_data",
    "prediction_data",
    "tensorboard_log_dir",
    "checkpoint_dir",
    "checkpoint_dir_for_init",
    "cluster_spec",
    "yaml",
}


class JobOption(click.Option):
    """One spelling of one option; an alias is hidden and shown beside the name it stands for."""

    def __init__(self, option: Option, spelling: str) -> None:
        # A flag value beside `is_flag=False` is click's way to say that the value may be left out.
        bare: dict[str, Any] = (
            {"is_flag": False, "flag_value": "true"} if option.type == "bool" else {}
        )
        super().__init__(
            [f"--{spelling}", spelling],
            type=str,
            hidden=spelling != option.name,
            shell_complete=self._complete,
            **bare,
        )
        self.option = option

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        if self.hidden:
            return None
        option = self.option
        names = ", ".join(f"--{name}" for name in (option.name, *option.aliases))
        metavar = f"[{'|'.join(option.choices)}]" if option.choices else METAVARS[option.type]
        return f"{names} {metavar}", option.help + _shown_default(option)

    def _complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[click.shell_completion.CompletionItem]:
        from click.shell_completion import CompletionItem

        if self.option.name in PATHS:
            return [CompletionItem(incomplete, type="file")]
        choices = ("true", "false") if self.option.type == "bool" else self.option.choices
        return [CompletionItem(choice) for choice in choices if choice.startswith(incomplete)]


class JobCommand(click.Command):
    """A command whose flags are the options of a job, shown under their groups' headings."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        params: list[click.Parameter] = [
            JobOption(option, spelling)
            for option in options(name)
            for spelling in (option.name, *option.aliases)
        ]
        params.append(JobOption(NO_DASHBOARD, NO_DASHBOARD.name))
        settings = {"allow_extra_args": True}  # click's own word on them is short
        super().__init__(name, params=params, context_settings=settings, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise UnknownName(self._unknown(ctx, error.option_name, given)) from None
        if not ctx.resilient_parsing:
            refuse_slips(self, ctx)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_groups(self, ctx, formatter, "Run")

    def _unknown(self, ctx: click.Context, name: str, given: list[str]) -> str:
        if not name.startswith("--"):
            name = next((arg for arg in given if arg.startswith(name)), name).partition("=")[0]
        plain = name.lstrip("-").replace("-", "_")
        known = [opt for param in self.get_params(ctx) for opt in param.opts]
        owners = [c for c in COMMANDS if any(plain in (o.name, *o.aliases) for o in options(c))]
        if owners:
            advice = f"It is an option of {' and '.join(owners)}."
            advice = f"Write --{plain}." if f"--{plain}" in known else advice
        else:
            match = near_match(f"--{plain}", known)
            advice = f"Did you mean {match!r}?" if match else ""
        return f"Unknown option '{name}' of '{ctx.command_path}'. {advice}".rstrip() + (
            f"\nTry '{ctx.command_path} --help'."
        )


def write_groups(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter, others: str
) -> None:
    """The help of a command's options, under headings; `others` is that of those which are not a job's."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for param in command.get_params(ctx):
        if record := param.get_help_record(ctx):
            group = param.option.group if isinstance(param, JobOption) else others
            groups.setdefault(group, []).append(record)
    # The cluster's options are many and, on a laptop, of no use: they come last.
    for group in sorted(groups, key=["Cluster", "Kubernetes"].__contains__):
        with formatter.section(group):
            formatter.write_dl(groups[group])


_OF_CLUSTERS = ("job_name", "worker_resource_request")
"""Options of a job that say something of a cluster, beside those that are for nothing else."""


def cluster_params() -> list[click.Parameter]:
    """The options that a command which is no job's own has for Kubernetes."""
    return [
        JobOption(replace(option, group="Kubernetes"), option.name)
        for option in options("train")
        if option.kubernetes or option.name in _OF_CLUSTERS
    ]


def cluster_job(values: dict[str, Any], *others: str) -> JobConfig:
    """What those options say, taken out of the values of a command; `others` are looked at where there is a cluster."""
    names = [str(param.name) for param in cluster_params()]
    given = {name: values.pop(name) for name in names}
    if given["cluster"] is not None:
        given |= {name: values[name] for name in others}
    config = JobConfig.parse("train", {**given, "num_workers": values["num_workers"]})
    idle = [name for name in config.given if config.cluster is None and name not in _NOT_IDLE]
    if idle:
        names_ = ", ".join(f"--{name}" for name in sorted(idle))
        raise InvalidValue(
            f"{names_} {'is' if len(idle) == 1 else 'are'} for --cluster=kubernetes. Add it."
        )
    return config


_NOT_IDLE = ("num_workers", "worker_resource_request")


def refuse_slips(command: click.Command, ctx: click.Context) -> None:
    """`--output --overwrite` means a value forgotten, not a directory named `--overwrite`."""
    known = {opt.replace("-", "_") for param in command.get_params(ctx) for opt in param.opts}
    for name, value in ctx.params.items():
        if isinstance(value, str) and value.partition("=")[0].replace("-", "_") in known:
            raise InvalidValue(
                f"The option --{name} has no value: it is followed by {value!r}. "
                f"Give it one: --{name}=..."
            )
    if ctx.args:
        raise InvalidValue(
            f"Unexpected {ctx.args[0]!r}: '{ctx.command_path}' takes options only. "
            "If it belongs to the option before it, put quotes around the whole value."
        )


def job_command(
    name: str, *, epilog: str = ""
) -> Callable[[Callable[[JobConfig], Result]], click.Command]:
    """Make a command of a function that runs a job; its docstring is the command's help."""

    def decorate(run: Callable[[JobConfig], Result]) -> click.Command:
        @click.pass_obj
        def callback(presentation: Presentation, /, **values: str | None) -> int:
            presentation.full_traceback = values.get("log_level") == "DEBUG"
            presentation.model_zoo = values.get("model_zoo")
            has_no_page = parse_bool("no_dashboard", values.pop("no_dashboard") or False)
            config = JobConfig.parse(name, values)
            _say_what_is_idle(config)
            with page.page(config.log_level, is_off=has_no_page or config.cluster is not None):
                return report(run(config))

        return JobCommand(name, callback=callback, help=run.__doc__, epilog=epilog)

    return decorate


def _shown_default(option: Option) -> str:
    if option.default is None or option.default is False:
        return ""
    shown = str(option.default).lower() if option.type == "bool" else option.default
    return f"  [default: {shown}]"


def _say_what_is_idle(config: JobConfig) -> None:
    from elasticdl.api import as_begun

    config = as_begun(config)
    if idle := config.idle_cluster_options:
        names = ", ".join(f"--{name}" for name in idle)
        verb = "has" if len(idle) == 1 else "have"
        why = (
            "with --distribution_strategy=Local"
            if config.distribution_strategy == "Local"
            else "without --cluster=kubernetes"
        )
        print(f"Note: {names} {verb} no effect {why}.", file=sys.stderr)
