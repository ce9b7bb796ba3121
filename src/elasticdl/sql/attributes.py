"""WITH: what its keys mean. Each is known, of the right type, and at its place in an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from elasticdl.errors import StatementError, nearest
from elasticdl.sql.statements import WithSelect, Word

__all__ = [
    "JOB_NAMES",
    "Attributes",
    "EvaluateOptions",
    "ExplainOptions",
    "PredictOptions",
    "TrainOptions",
]


@dataclass(frozen=True)
class TrainOptions:
    """What a TRAIN says beside its model's parameters, which are `params`."""

    params: Mapping[str, Any] = field(default_factory=dict)
    job: Mapping[str, Any] = field(default_factory=dict)
    """Options of the job, by their names there."""
    num_epochs: int | None = None
    batch_size: int | None = None
    """Of one worker."""
    global_batch_size: int | None = None
    """Of all workers together."""
    seed: int | None = None
    validation_select: Word | None = None
    validation_split: float = 0.1
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictOptions:
    probabilities: bool = False
    overwrite: bool = False
    batch_size: int = 4096


@dataclass(frozen=True)
class EvaluateOptions:
    overwrite: bool = False
    batch_size: int = 4096


@dataclass(frozen=True)
class ExplainOptions:
    overwrite: bool = False
    repeats: int = 5
    rows: int = 2000
    plot: str | None = None
    seed: int = 0


_TRAIN = {
    "train.epoch": "num_epochs",
    "train.epochs": "num_epochs",
    "train.num_epochs": "num_epochs",
    "train.batch_size": "batch_size",
    "train.minibatch_size": "batch_size",
    "train.seed": "seed",
    "train.max_steps": "max_step",
    "train.max_step": "max_step",
    "train.num_workers": "num_workers",
    "train.global_batch_size": "global_batch_size",
    "train.worker_timeout": "worker_timeout",
    "train.max_bad_tasks": "max_bad_tasks",
    "train.ray_address": "ray_address",
    "train.log_every_n_iter": "log_loss_steps",
    "train.verbose": None,
    "validation.select": "select",
    "validation.split": "split",
    "validation.start_delay_secs": "evaluation_start_delay_secs",
    "validation.throttle_secs": "evaluation_throttle_secs",
    "validation.steps": None,
    "validation.metrics": None,
    "model.loss": "loss",
    "loss": "loss",
    "optimizer.learning_rate": "learning_rate",
    "epochs": "num_epochs",
    "num_epochs": "num_epochs",
    "batch_size": "batch_size",
    "seed": "seed",
    "export.metric": "export_metric",
    "export.mode": "export_mode",
}
"""What SQLFlow's keys and ours mean; None for those that are understood and have no effect."""

JOB_NAMES = {key: name for key, name in _TRAIN.items() if name is not None and name != key}
"""What the keys are called in a job, by whose names its errors speak."""

_OPTIMIZER = ("optimizer", "model.optimizer")
_SECTIONS = (
    "train",
    "validation",
    "model",
    "optimizer",
    "predict",
    "evaluate",
    "explain",
    "export",
)


class Attributes:
    """The WITH clause of one statement."""

    def __init__(self, statement: WithSelect) -> None:
        self._statement = statement
        self._words = statement.attributes

    def train(self) -> TrainOptions:
        given: dict[str, Any] = {"params": {}, "job": {}, "remarks": ()}
        for key, word in self._words.items():
            self._train_one(key, word, given)
        if given.get("batch_size") and given.get("global_batch_size"):
            raise self._twice(given)
        return TrainOptions(**given)

    def _twice(self, given: Mapping[str, Any]) -> StatementError:
        span = self._statement.attribute_spans["train.global_batch_size"]
        return StatementError(
            f"A batch_size of {given['batch_size']} and a global_batch_size of {given['global_batch_size']} are both "
            "given: the first is of one worker, the second of all together. Give one of them.",
            span.start,
            span.end,
        )

    def _train_one(self, key: str, word: Word, given: dict[str, Any]) -> None:
        section, _, name = key.rpartition(".")
        if key in _OPTIMIZER:
            given["params"]["optimizer"] = self._string(key)
        elif key in _TRAIN:
            self._known(_TRAIN[key], key, word, given)
        elif section in ("", "model") or (section and section.split(".")[0] not in _SECTIONS):
            given["params"][name if section in ("", "model") else key] = _as_param(word.value)
        elif section == "optimizer":
            given["params"][name] = _as_param(word.value)
        else:
            raise self._unknown(key, _TRAIN)

    def _known(self, name: str | None, key: str, word: Word, given: dict[str, Any]) -> None:
        if name is None:
            given["remarks"] += (f"{key} has no effect here.",)
        elif name in ("num_epochs", "batch_size", "global_batch_size"):
            given[name] = self._integer(key, minimum=1)
        elif name == "seed":
            given[name] = self._integer(key, minimum=0)
        elif name == "max_step":
            given["job"][name] = self._integer(key, minimum=1)
        elif name == "select":
            self._string(key)
            given["validation_select"] = word
        elif name == "split":
            given["validation_split"] = self._fraction(key)
        elif name == "learning_rate":
            given["params"][name] = self._number(key)
        else:
            given["job"][name] = word.value

    def predict(self) -> PredictOptions:
        return PredictOptions(
            **self._read(
                "predict",
                {
                    "probabilities": self._boolean,
                    "overwrite": self._boolean,
                    "batch_size": self._positive,
                },
            )
        )

    def evaluate(self) -> EvaluateOptions:
        return EvaluateOptions(
            **self._read(
                "evaluate",
                {
                    "overwrite": self._boolean,
                    "batch_size": self._positive,
                },
            )
        )

    def explain(self) -> ExplainOptions:
        return ExplainOptions(
            **self._read(
                "explain",
                {
                    "overwrite": self._boolean,
                    "repeats": self._positive,
                    "rows": self._positive,
                    "plot": self._string,
                    "seed": self._integer,
                },
            )
        )

    def _read(self, section: str, known: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
        """The keys of one section; a key may also stand without it."""
        given = {}
        for key in self._words:
            name = key.removeprefix(f"{section}.")
            if name not in known:
                raise self._unknown(key, [f"{section}.{one}" for one in known])
            given[name] = known[name](key)
        return given

    def _unknown(self, key: str, known: Any) -> StatementError:
        span = self._statement.attribute_spans[key]
        return StatementError(
            f"Unknown attribute {key!r}. {nearest(key, known)}", span.start, span.end
        )

    def _wrong(self, key: str, what: str) -> StatementError:
        word = self._words[key]
        return StatementError(
            f"Invalid {key} {word.value!r}: give {what}.", word.span.start, word.span.end
        )

    def _integer(self, key: str, minimum: int | None = None) -> int:
        value = self._words[key].value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._wrong(key, "a whole number")
        if minimum is not None and value < minimum:
            raise self._wrong(key, f"a whole number from {minimum} on")
        return value

    def _positive(self, key: str) -> int:
        return self._integer(key, minimum=1)

    def _number(self, key: str) -> float:
        value = self._words[key].value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a number")
        return value

    def _fraction(self, key: str) -> float:
        value = self._number(key)
        if not 0 <= value <= 0.9:
            raise self._wrong(key, "a fraction from 0, for none, to 0.9")
        return value

    def _boolean(self, key: str) -> bool:
        value = self._words[key].value
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def _string(self, key: str) -> str:
        value = self._words[key].value
        if not isinstance(value, str):
            raise self._wrong(key, "a string")
        return value


def _as_param(value: Any) -> Any:
    return [_as_param(one) for one in value] if isinstance(value, tuple) else value
