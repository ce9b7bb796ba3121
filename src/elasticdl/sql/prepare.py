"""What a training knows before its first step: the rows in files, the plan of their features, the model."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from pathlib import Path

from elasticdl.contract.zoo import Zoo
from elasticdl.errors import (
    DataError,
    StatementError,
    UnknownName,
    UserError,
    near_match,
    nearest,
)
from elasticdl.quiet import load_tensorflow
from elasticdl.sql.attributes import Attributes, TrainOptions
from elasticdl.sql.context import Context
from elasticdl.sql.labels import LabelCheck
from elasticdl.sql.places import at, in_select
from elasticdl.sql.registry import Version
from elasticdl.sql.selects import checked_select
from elasticdl.sql.spool import BLOCK, read_spool, write_rows, write_split
from elasticdl.sql.statements import Train, Word
from elasticdl.tabular.arrays import check_columns
from elasticdl.tabular.derive import Profile, derive
from elasticdl.tabular.models import ALIASES, BUILT_IN, targets_of, task_of
from elasticdl.tabular.plan import FeaturePlan
from elasticdl.tabular.types import find

__all__ = ["Prepared", "prepare"]

STEPS = 1000
"""As many steps as a training takes when nobody says how many epochs, of at most `MAX_EPOCHS`."""
MAX_EPOCHS = 100
_SHAPES = ("hidden_units", "batch_norm", "activation")
"""Parameters that decide what the weights are."""
LARGE = 50_000
"""From so many rows on minibatches are larger."""


@dataclass(frozen=True)
class Prepared:
    """What is known before a step is made.

    Attributes:
      options: what WITH says.
      model, model_zoo: as the job names them.
      plan: of the columns.
      training, validation: the files of the rows; None when none are set aside.
      old: the model whose weights it goes on from.
      remarks: what a user should know.
    """

    options: TrainOptions
    model: str
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
        """Of one worker where WITH says so, else of all together: their number does not change what is learnt."""
        said = self.options.batch_size or self.options.global_batch_size
        return said or (256 if self.num_rows > LARGE else 64)

    @property
    def num_epochs(self) -> int:
        steps = math.ceil(self.num_rows / self.batch_size)
        return self.options.num_epochs or max(1, min(MAX_EPOCHS, math.ceil(STEPS / steps)))


def prepare(context: Context, statement: Train, directory: Path) -> Prepared:
    options = Attributes(statement).train()
    options = replace(options, job={**context.train_defaults, **options.job})
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
    if old is not None:
        _check_as_before(statement, options, old)
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
        kept = write_rows(rows, training, profile.add, block=BLOCK)
        num_validation = _validation(context, options.validation_select, validation, profile)
    if not kept.num_rows:
        raise StatementError(
            "The SELECT gave no rows: there is nothing to train on.",
            statement.select_span.start,
            statement.select_span.end,
        )
    plan = _plan(statement, profile, label, model, zoo, old)
    if old is not None:
        _check_rows(statement, plan, profile, training)
        remarks += _unused(profile, plan)
    if options.validation_select is not None:
        _check_labels(plan, validation, options.validation_select)
    if not num_validation and options.validation_split:
        remarks += ("There are too few rows to set some aside for validation.",)
    return Prepared(
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
    written = str(statement.model)
    missing: UserError | None = None
    if context.model_zoo is not None:
        load_tensorflow()
        try:
            Zoo(context.model_zoo).find(written)
            return written, context.model_zoo
        except UserError as error:
            missing = error
    if _is_built_in(written):
        return ALIASES.get(written, written), str(BUILT_IN)
    known = [*ALIASES, *ALIASES.values()]
    if missing is None:
        missing = UnknownName(
            f"There is no model {written!r}. {nearest(written, known)} Models of your own are found "
            "with --model_zoo=DIR."
        )
    elif match := near_match(written, known, cutoff=0.8):
        missing = UnknownName(f"{missing} Built in is {match!r}.")
    raise at(statement.model, missing) from missing


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
        if old is not None and name != old.card["label"]:
            raise StatementError(
                f"{old} was trained to predict {old.card['label']}, and goes on with it. Leave LABEL out, or USING.",
                statement.label.span.start,
                statement.label.span.end,
            )
        return name, ()
    if old is not None:
        name = find(str(old.card["label"]), columns) or str(old.card["label"])
        return name, ()
    return columns[-1], (f"The label is {columns[-1]}, the last selected column.",)


def _check_as_before(statement: Train, options: TrainOptions, old: Version) -> None:
    """What an older model is made of cannot be said anew."""
    if statement.columns:
        calls = [call for group in statement.columns for call in group.columns]
        raise StatementError(
            f"{old} has its features already. Leave COLUMN out, or USING.",
            calls[0].span.start,
            calls[-1].span.end,
        )
    for key, span in statement.attribute_spans.items():
        name = key.removeprefix("model.")
        before = old.card["params"].get(name)
        if name in _SHAPES and options.params.get(name) != before:
            raise StatementError(
                f"{old} was trained with {name}={before if before is not None else 'its default'}, and goes on with "
                "the same. Leave it out, or USING.",
                span.start,
                span.end,
            )


def _check_rows(statement: Train, plan: FeaturePlan, profile: Profile, training: Path) -> None:
    """The rows have what the older model wants."""
    try:
        check_columns(profile.schema, [*plan.columns, *plan.label_columns])
        check = LabelCheck(plan)
        for batch in read_spool(training):
            check(batch)
    except UserError as error:
        raise in_select(statement, error) from error


def _unused(profile: Profile, plan: FeaturePlan) -> tuple[str, ...]:
    used = {column.name for column in (*plan.columns, *plan.label_columns)}
    rest = [name for name in profile.schema.names if find(name, used) is None]
    return (f"Not used, as the older model does not know them: {', '.join(rest)}.",) if rest else ()


def _check_labels(plan: FeaturePlan, validation: Path, word: Word) -> None:
    check = LabelCheck(plan)
    try:
        for batch in read_spool(validation):
            check(batch)
    except UserError as error:
        raise at(word, error) from error


def _validation(context: Context, word: Word, path: Path, profile: Profile) -> int:
    try:
        select = checked_select(str(word), context.database.dialect, "validation.select")
        rows = context.database.select(select)
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
    written = write_rows(rows, path).num_rows
    if not written:
        raise at(word, DataError("The validation.select gave no rows."))
    return written


def _plan(
    statement: Train,
    profile: Profile,
    label: str,
    model: str,
    zoo: str,
    old: Version | None,
) -> FeaturePlan:
    if old is not None:
        return FeaturePlan.from_json(old.card["plan"])  # other features would be another model
    try:
        return derive(
            profile,
            label=label,
            task=task_of(model),
            groups=statement.columns,
            targets=targets_of(model) if zoo == str(BUILT_IN) else None,
        )
    except StatementError:
        raise
    except DataError as error:
        if statement.label is not None and "label" in str(error):
            raise at(statement.label, error) from error
        raise in_select(statement, error) from error
