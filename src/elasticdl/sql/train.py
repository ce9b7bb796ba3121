"""`SELECT ... TRAIN`: rows to a spool, a plan of their features, a job like any other, a version in the registry."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from elasticdl import api
from elasticdl.errors import DataError, StatementError, UserError, nearest
from elasticdl.job.config import JobConfig
from elasticdl.runtime.result import Result
from elasticdl.sql.attributes import Attributes, TrainOptions
from elasticdl.sql.context import Context
from elasticdl.sql.outcome import Outcome
from elasticdl.sql.places import at, in_attributes
from elasticdl.sql.registry import Version, check_name
from elasticdl.sql.rows import Rows
from elasticdl.sql.spool import write_rows, write_split
from elasticdl.sql.statements import Train
from elasticdl.tabular.derive import Profile, derive, describe
from elasticdl.tabular.models import ALIASES, BUILT_IN, task_of
from elasticdl.tabular.plan import FeaturePlan
from elasticdl.tabular.types import find

__all__ = ["dry_run", "train"]

STEPS = 1000
"""As many steps as a training takes when nobody says how many epochs, of at most `MAX_EPOCHS`."""
MAX_EPOCHS = 100
LARGE = 50_000
"""From so many rows on minibatches are larger."""


@dataclass(frozen=True)
class _Prepared:
    """What is known before a step is made."""

    options: TrainOptions
    model: str
    """As the job names it."""
    model_zoo: str
    plan: FeaturePlan
    num_rows: int
    num_validation: int
    training: Path
    validation: Path | None
    seed: int
    old: Version | None
    remarks: tuple[str, ...]

    @property
    def batch_size(self) -> int:
        return self.options.batch_size or (256 if self.num_rows > LARGE else 64)

    @property
    def num_epochs(self) -> int:
        steps = math.ceil(self.num_rows / self.batch_size)
        return self.options.num_epochs or max(1, min(MAX_EPOCHS, math.ceil(STEPS / steps)))


def train(context: Context, statement: Train) -> Outcome:
    """Train, and write a version of the model."""
    _check_into(context, statement)
    if statement.if_exists == "keep" and context.registry.versions(str(statement.into)):
        return Outcome(
            statement, message=f"The model {statement.into} exists already: nothing was done."
        )
    with context.job() as directory:
        prepared = _prepare(context, statement, directory)
        before = context.registry.versions(str(statement.into))
        version = context.registry.reserve(str(statement.into))
        try:
            result = _run(context, statement, prepared, version)
            if result.status in ("interrupted", "preempted"):
                raise StatementError("The training was stopped: no version was written.")
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
        prepared = _prepare(context, statement, directory)
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
        *((f"feature {column}", f"{source}: {words}") for column, source, words in describe(plan)),
        ("rows", f"{prepared.num_rows:,}"),
        ("validation rows", f"{prepared.num_validation:,}"),
        (
            "epochs",
            f"{prepared.num_epochs} of {math.ceil(prepared.num_rows / prepared.batch_size)} steps",
        ),
        ("would write", f"{statement.into} to {context.registry.root}"),
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


def _prepare(context: Context, statement: Train, directory: Path) -> _Prepared:
    options = Attributes(statement).train()
    model, zoo = _model(context, statement)
    old = context.find(statement.using) if statement.using is not None else None
    if old is not None and old.card["model_def"] != model:
        raise StatementError(
            f"{old} is a {old.card['model_def']}, and cannot go on as a {model}. TRAIN the same model, or leave "
            "USING out.",
            statement.model.span.start,
            statement.model.span.end,
        )
    seed = options.seed if options.seed is not None else context.seed
    seed = seed if seed is not None else random.SystemRandom().getrandbits(31)
    rows = context.select(statement)
    label, remarks = _label(statement, rows.schema.names, old)
    profile = Profile(rows.schema)
    training, validation = directory / "training.arrow", directory / "validation.arrow"
    if options.validation_select is None:
        kept, aside = write_split(
            rows,
            training,
            validation,
            fraction=options.validation_split,
            seed=seed,
            each=profile.add,
        )
        num_validation = aside.num_rows
    else:
        kept = write_rows(rows, training, profile.add, block=512)
        num_validation = _validation(context, options, validation, profile)
    if not kept.num_rows:
        raise StatementError(
            "The SELECT gave no rows: there is nothing to train on.",
            statement.select_span.start,
            statement.select_span.end,
        )
    plan = _plan(statement, profile, label, model, old)
    if not num_validation and options.validation_split:
        remarks += ("There are too few rows to set some aside for validation.",)
    return _Prepared(
        options=options,
        model=model,
        model_zoo=zoo,
        plan=plan,
        num_rows=kept.num_rows,
        num_validation=num_validation,
        training=training,
        validation=validation if num_validation else None,
        seed=seed,
        old=old,
        remarks=(*remarks, *options.remarks, *plan.remarks),
    )


def _model(context: Context, statement: Train) -> tuple[str, str]:
    """The model's name and its zoo: the user's own first, then what is built in."""
    from elasticdl.contract.zoo import Zoo

    written = str(statement.model)
    if context.model_zoo is not None:
        try:
            Zoo(context.model_zoo).find(written)
            return written, context.model_zoo
        except UserError as error:
            if not _is_built_in(written):
                raise at(statement.model, error) from error
    if not _is_built_in(written):
        known = [*ALIASES, *ALIASES.values()]
        raise StatementError(
            f"There is no model {written!r}. {nearest(written, known)} Models of your own are found with "
            "--model_zoo=DIR.",
            statement.model.span.start,
            statement.model.span.end,
        )
    return ALIASES.get(written, written), str(BUILT_IN)


def _is_built_in(name: str) -> bool:
    return name in ALIASES or name in ALIASES.values()


def _label(
    statement: Train, columns: list[str], old: Version | None
) -> tuple[str, tuple[str, ...]]:
    if statement.label is not None:
        name = find(str(statement.label), columns)
        if name is None:
            name = str(statement.label)
            raise StatementError(
                f"The label {name!r} is not selected. {nearest(name, columns)}",
                statement.label.span.start,
                statement.label.span.end,
            )
        return name, ()
    if old is not None and old.card["label"] in columns:
        return str(old.card["label"]), ()
    return columns[-1], (f"The label is {columns[-1]}, the last selected column.",)


def _validation(context: Context, options: TrainOptions, path: Path, profile: Profile) -> int:
    word = options.validation_select
    assert word is not None
    try:
        rows = context.database.select(str(word))
    except UserError as error:
        raise at(word, error) from error
    missing = [name for name in profile.schema.names if name not in rows.schema.names]
    if missing:
        rows.close()
        raise StatementError(
            f"The validation.select lacks {', '.join(missing)} of the training's columns.",
            word.span.start,
            word.span.end,
        )
    return write_rows(rows, path).num_rows


def _plan(
    statement: Train, profile: Profile, label: str, model: str, old: Version | None
) -> FeaturePlan:
    if old is not None:
        return FeaturePlan.from_json(old.card["plan"])  # other features would be another model
    task = task_of(model)
    try:
        return derive(profile, label=label, task=task, groups=statement.columns)
    except StatementError:
        raise
    except DataError as error:
        if statement.label is not None and "label" in str(error):
            raise at(statement.label, error) from error
        raise


def _config(context: Context, statement: Train, prepared: _Prepared, output: str) -> JobConfig:
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
                "minibatch_size": prepared.batch_size,
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
    return replace(config, feature_plan=prepared.plan.to_json())


def _run(context: Context, statement: Train, prepared: _Prepared, version: Version) -> Result:
    config = _config(context, statement, prepared, output=str(version.path))
    for remark in prepared.remarks:
        context.tell(remark)
    if idle := config.idle_cluster_options:
        context.tell(f"Without effect when run locally: {', '.join(idle)}.")
    try:
        return api.run(config, context.objects)
    except UserError as error:
        raise in_attributes(statement, error) from error


def _card(statement: Train, prepared: _Prepared, result: Result) -> Mapping[str, Any]:
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


def _message(version: Version, prepared: _Prepared, result: Result) -> str:
    shown = ", ".join(f"{name} {value:.4g}" for name, value in result.metrics.items())
    measured = f" Validation: {shown}." if shown else ""
    return (
        f"Trained {version} on {prepared.num_rows:,} rows in {result.seconds:.1f} s.{measured} Use it with: "
        f"SELECT ... PREDICT table.column USING {version.name};"
    )


def _few(values: Any) -> str:
    shown = [str(value) for value in values[:6]]
    return ", ".join([*shown, "..."] if len(values) > 6 else shown)
