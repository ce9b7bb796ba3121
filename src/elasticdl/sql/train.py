"""`SELECT ... TRAIN`: rows to a spool, a plan of their features, a job like any other, a version in the registry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from elasticdl import api
from elasticdl.artifacts.stored_model import find_trained_model
from elasticdl.errors import (
    RunError,
    StatementError,
    Stopped,
    UserError,
)
from elasticdl.job.config import JobConfig
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.result import Result
from elasticdl.sql.context import Context
from elasticdl.sql.outcome import Outcome, counted
from elasticdl.sql.places import at, in_attributes
from elasticdl.sql.prepare import Prepared, prepare
from elasticdl.sql.registry import Version, check_name
from elasticdl.sql.rows import Rows
from elasticdl.sql.show import features_of
from elasticdl.sql.statements import Train
from elasticdl.tabular.models import BUILT_IN

__all__ = ["dry_run", "train"]


def train(context: Context, statement: Train) -> Outcome:
    """Train, and write a version of the model."""
    _check_into(context, statement)
    if statement.if_exists == "keep" and context.registry.versions(str(statement.into)):
        return Outcome(
            statement, message=f"The model {statement.into} exists already: nothing was done."
        )
    with context.job() as directory:
        prepared = prepare(context, statement, directory)
        before = context.registry.versions(str(statement.into))
        version = context.registry.reserve(str(statement.into))
        try:
            result = _run(context, statement, prepared, version)
            if result.status in ("interrupted", "preempted"):
                raise Stopped("The training was stopped: no version was written.", result.status)
            result = replace(result, metrics=_kept_metrics(version, result))
            version = context.registry.commit(version, _card(statement, prepared, result))
        except BaseException:
            context.registry.abandon(version)
            raise
        if statement.if_exists == "replace":
            for old in before:
                context.registry.drop(str(old))
    return Outcome(statement, message=_message(version, prepared, result), result=result)


def dry_run(context: Context, statement: Train) -> Outcome:
    """What a training would do: its features, label, rows, model, and what it would write."""
    _check_into(context, statement)
    with context.job() as directory:
        prepared = prepare(context, statement, directory)
        config = _config(context, statement, prepared, output="dry_run")
    plan, label = prepared.plan, prepared.plan.label
    assert label is not None
    classes = f", {len(label.classes)} classes: {_few(label.classes)}" if label.classes else ""
    written = [
        ("model", prepared.model),
        (
            "model parameters",
            ", ".join(f"{k}={v!r}" for k, v in config.model_params.items()) or "its defaults",
        ),
        ("label", f"{label.name} ({label.task}{classes})"),
        *features_of(plan),
        ("rows", f"{prepared.num_rows:,}"),
        ("validation rows", f"{prepared.num_validation:,}"),
        (
            "epochs",
            f"{prepared.num_epochs} of {math.ceil(prepared.num_rows / prepared.batch_size)} steps",
        ),
        (
            "would write",
            f"{context.registry.following(str(statement.into))} to {context.registry.root}",
        ),
        *(("remark", remark) for remark in prepared.remarks),
    ]
    table = pa.table({"what": [a for a, _ in written], "value": [b for _, b in written]})
    return Outcome(
        statement, rows=Rows.of(table), message="A dry run: nothing was trained or written."
    )


def _check_into(context: Context, statement: Train) -> None:
    try:
        check_name(str(statement.into))
    except UserError as error:
        raise at(statement.into, error) from error
    if statement.if_exists == "refuse" and context.registry.versions(str(statement.into)):
        raise StatementError(
            f"The model {statement.into} exists already. Write CREATE OR REPLACE MODEL, or train a new version "
            f"with SELECT ... TRAIN ... INTO {statement.into}.",
            statement.into.span.start,
            statement.into.span.end,
        )


def _config(context: Context, statement: Train, prepared: Prepared, output: str) -> JobConfig:
    options = prepared.options
    params = dict(options.params)
    if prepared.old is not None:
        params = {**prepared.old.card["params"], **params}
    job = dict(options.job)
    if prepared.model_zoo != str(BUILT_IN) and "optimizer" in params:
        job["optimizer"] = params.pop("optimizer")
    if prepared.validation is not None:
        job.setdefault("export_metric", "loss")
    try:
        config = JobConfig.parse(
            "train",
            {
                "model_zoo": prepared.model_zoo,
                "model_def": prepared.model,
                "model_params": params,
                "training_data": str(prepared.training),
                "validation_data": str(prepared.validation) if prepared.validation else None,
                "num_epochs": prepared.num_epochs,
                _batch(prepared): prepared.batch_size,
                "seed": prepared.seed,
                "output": output,
                "job_name": str(statement.into),
                "log_level": context.shown_level,
                "trained_model": str(prepared.old.path) if prepared.old else None,
                **job,
            },
        )
    except UserError as error:
        raise in_attributes(statement, error) from error
    return replace(_distributed(config), feature_plan=prepared.plan.to_json())


def _batch(prepared: Prepared) -> str:
    """Whose the size of a batch is: of each worker when WITH says so, else of all together."""
    options = prepared.options
    is_shared = options.global_batch_size or "num_workers" in options.job
    return "global_batch_size" if is_shared and not options.batch_size else "minibatch_size"


def _distributed(config: JobConfig) -> JobConfig:
    """Several workers, or a cluster that is named, mean that the job runs on Ray."""
    if config.workers == (1, 1) and config.ray_address is None:
        return replace(config, num_workers=None)
    return replace(config, distribution_strategy="AllreduceStrategy")


def _run(context: Context, statement: Train, prepared: Prepared, version: Version) -> Result:
    config = _config(context, statement, prepared, output=str(version.path))
    for remark in prepared.remarks:
        context.tell(remark)
    if idle := config.idle_cluster_options:
        context.tell(f"Without effect when run locally: {', '.join(idle)}.")
    try:
        return api.run(config, {**context.objects, **_stopping(prepared)})
    except UserError as error:
        if config.ray_address is not None and prepared.training.exists():
            _explain_out_of_reach(prepared, error)
        raise in_attributes(statement, error) from error


def _explain_out_of_reach(prepared: Prepared, error: UserError) -> None:
    """Workers of a cluster may be on other machines, and the rows are in files of this one."""
    if str(prepared.training.parent) in str(error):
        raise RunError(
            f"A worker cannot read the rows, which were copied to {prepared.training.parent} on this machine. Set "
            "TMPDIR to a directory that all machines of the cluster see, or leave train.ray_address out."
        ) from error


def _stopping(prepared: Prepared) -> dict[str, Any]:
    """Who names no number of epochs wants as many as it takes: none that makes the validation worse."""
    is_ours = prepared.model_zoo == str(BUILT_IN)
    if prepared.options.num_epochs or prepared.validation is None or not is_ours:
        return {}
    load_tensorflow()
    import keras

    patience = max(5, prepared.num_epochs // 10)
    return {"callbacks": [keras.callbacks.EarlyStopping("val_loss", patience=patience, mode="min")]}


def _kept_metrics(version: Version, result: Result) -> dict[str, float]:
    """Those of the version that was kept, which is the best by its validation, not of the last epoch."""
    kept = find_trained_model(str(version.path)).message.metrics
    validated = {k.removeprefix("val_"): v for k, v in kept.items() if k.startswith("val_")}
    return validated or dict(result.metrics)


def _card(statement: Train, prepared: Prepared, result: Result) -> Mapping[str, Any]:
    label = prepared.plan.label
    assert label is not None
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "statement": statement.text,
        "model": str(statement.model),
        "model_def": prepared.model,
        "params": {
            **(prepared.old.card["params"] if prepared.old else {}),
            **prepared.options.params,
        },
        "label": label.name,
        "task": label.task,
        "rows": prepared.num_rows,
        "validation_rows": prepared.num_validation,
        "epochs": len(result.history.get("loss", ())),
        "steps": result.steps,
        "seconds": round(result.seconds, 3),
        "seed": prepared.seed,
        "metrics": {name: float(value) for name, value in result.metrics.items()},
        "from": str(prepared.old) if prepared.old else None,
        "plan": prepared.plan.to_json(),
    }


def _message(version: Version, prepared: Prepared, result: Result) -> str:
    shown = ", ".join(f"{name} {value:.4g}" for name, value in result.metrics.items())
    measured = f" Validation: {shown}." if shown else ""
    return (
        f"Trained {version} on {counted(prepared.num_rows)} in {result.seconds:.1f} s.{measured} Use it with: "
        f"SELECT ... PREDICT table.column USING {version.name};"
    )


def _few(values: Any) -> str:
    shown = [str(value) for value in values[:6]]
    return ", ".join([*shown, "..."] if len(values) > 6 else shown)
