"""The `elasticdl` command: the list of its commands, and where a run of it begins and ends."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from elasticdl import __version__
from elasticdl.cli.frames import is_generated
from elasticdl.cli.lazy import LazyGroup
from elasticdl.cli.outcome import INTERRUPTED, PREEMPTED
from elasticdl.cli.presentation import Presentation

__all__ = ["cli", "main"]

PROGRAM = "elasticdl"
COMPLETE_VARIABLE = "_ELASTICDL_COMPLETE"

SETTINGS = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    # `--num-epochs` is `--num_epochs`: both spellings are on people's fingers.
    "token_normalize_func": lambda token: token.replace("-", "_"),
}

cli = LazyGroup(
    name=PROGRAM,
    help="Train Keras models: on this machine first, on a cluster with the same files.",
    context_settings=SETTINGS,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=lambda ctx, _, asked: _show_version(ctx) if asked else None,
            help="Show the version and exit.",
        )
    ],
    lazy={
        "train": ("elasticdl.cli.train:train", "Train a model."),
        "evaluate": ("elasticdl.cli.evaluate:evaluate", "Evaluate a trained model on data."),
        "predict": ("elasticdl.cli.predict:predict", "Predict with a trained model."),
        "run": ("elasticdl.cli.run:run", "Run an experiment: train, export, evaluate."),
        "scale": (
            "elasticdl.cli.scale:scale",
            "Change the number of workers of a running job.",
        ),
        "dashboard": ("elasticdl.cli.dashboard:dashboard", "Serve a page that shows runs."),
        "status": ("elasticdl.cli.jobs_show:status", "Show how far a job is."),
        "top": ("elasticdl.cli.top:top", "Show the runs that run now."),
        "compare": ("elasticdl.cli.compare:compare", "Compare the metrics and options of runs."),
        "plot": ("elasticdl.cli.plot:plot", "Draw the curves of runs."),
        "jobs": ("elasticdl.cli.jobs:jobs", "Look at jobs and stop them, wherever they run."),
        "new": ("elasticdl.cli.new:new", "Write a project with an experiment that runs."),
        "schema": ("elasticdl.cli.schema:schema", "Print the schema of an experiment's config."),
        "sql": ("elasticdl.cli.sql:sql", "Run SQL that may also train and predict."),
        "data": ("elasticdl.cli.data:data", "Prepare data files and look into them."),
        "model": ("elasticdl.cli.model:model", "Look into a trained model."),
        "zoo": ("elasticdl.cli.zoo:zoo", "Look into a directory of models."),
        "completion": (
            "elasticdl.cli.completion:completion",
            "Print the completion script for a shell.",
        ),
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 asked for wrongly."""
    args = list(sys.argv[1:] if argv is None else argv)
    _open_closed_streams()
    if instruction := os.environ.get(COMPLETE_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, PROGRAM, COMPLETE_VARIABLE, instruction)
    if argv is None:
        _show_warnings_once()
    presentation = Presentation()
    try:
        # Not `cli.main()`: it takes an EOFError or a broken pipe of the user's code for its own.
        with cli.make_context(PROGRAM, args, obj=presentation) as context:
            code: int | None = cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except KeyboardInterrupt as stopped:
        print("Stopped.", file=sys.stderr)
        _leave(PREEMPTED if stopped.args == (signal.SIGTERM,) else INTERRUPTED)
    except (Exception, SystemExit) as error:
        from elasticdl.cli.failures import show

        failed = show(error, presentation)
        if argv is None:
            _leave(failed)
        return failed
    if code in (INTERRUPTED, PREEMPTED) and argv is None:
        _leave(code)
    if "duckdb" in sys.modules and argv is None:
        _leave(code or 0)  # it lists at length whatever the interpreter leaves alone at its end
    if argv is None:
        gc.freeze()  # to look for garbage among all of TensorFlow's objects takes Python a second at its end
    return code or 0


def _show_warnings_once() -> None:
    """Keras says the same each time that a model is traced."""
    show, shown = warnings.showwarning, set[tuple[str, type[Warning]]]()

    def once(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if (str(message), category) not in shown:
            shown.add((str(message), category))
            show(message, category, *where, **more)

    warnings.showwarning = once


def _leave(code: int) -> NoReturn:
    """End at once. To unwind would let go of a reader, and wait for it for ever when it is stuck."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    _remove_temporary_files()
    os._exit(code)


def _remove_temporary_files() -> None:
    """Those that `atexit` would remove: models from afar, and AutoGraph's translations of functions."""
    if stored := sys.modules.get("elasticdl.artifacts.stored_model"):
        stored.remove_downloads()
    for name, module in list(sys.modules.items()):
        if is_generated(name):
            with contextlib.suppress(OSError):
                os.unlink(str(module.__file__))


def _open_closed_streams() -> None:
    """Python has None for a stream that the shell closed (`>&-`): nobody who prints expects it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def _show_version(context: click.Context) -> None:
    click.echo(f"{PROGRAM} {__version__}")
    context.exit()
