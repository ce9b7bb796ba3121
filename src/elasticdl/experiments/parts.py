"""The components of an experiment at work: streams of minibatches, and the compiled model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from elasticdl.contract.pieces import callbacks_maker
from elasticdl.contract.spec import Spec
from elasticdl.data.generators import PointSource
from elasticdl.data.ledger import Ledger
from elasticdl.data.streams import EvaluationStream, StreamData, TrainingStream
from elasticdl.engine.randomness import seed_everything
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import ContractError
from elasticdl.experiments import chain
from elasticdl.experiments.class_weights import class_weighting
from elasticdl.experiments.components import Components
from elasticdl.experiments.theirs import call

if TYPE_CHECKING:
    import keras

__all__ = ["Parts", "one_pass"]

DEV_BATCHES = 2


class Parts:
    """Makes each part when it is first asked for, always with the experiment's seed.

    Args:
      components: what the user wrote.
      few: go through all of it with two minibatches.
      warn: is told what the user should know.
    """

    def __init__(
        self, components: Components, *, few: bool = False, warn: Callable[[str], None]
    ) -> None:
        self.components = components
        self._few = few
        self._warn = warn

    @functools.cached_property
    def model(self) -> keras.Model:
        """The model as its builder made it, before data is read: both may draw random numbers."""
        import keras

        builder = self.components.model_builder
        seed_everything(self.components.config.seed)
        model = call(builder.get_compiled_model)
        if not isinstance(model, keras.Model):
            raise ContractError(
                f"{type(builder).__name__}.get_compiled_model returned a value of type "
                f"{type(model).__name__}. Return a compiled Keras model."
            )
        return model

    @functools.cached_property
    def spec(self) -> Spec:
        components = self.components
        builder = components.model_builder
        callbacks = getattr(builder, "get_callbacks", None)
        return Spec(
            name=type(builder).__name__,
            build_model=lambda: self.model,
            make_optimizer=lambda: self.model.optimizer,
            loss=None,
            batches=_not_ours,
            callbacks=callbacks_maker(functools.partial(call, callbacks) if callbacks else None),
            files=components.files,
            zoo=components.source,
            compiled=True,
        )

    @functools.cached_property
    def training(self) -> TrainingStream:
        assert self.model is not None  # made first
        weights = getattr(self.components.model_builder, "get_class_weight", None)
        convert = class_weighting(call(weights) if weights is not None else None)
        seed_everything(self.components.config.seed)
        return TrainingStream(self._make_training, convert=convert, warn=self._warn)

    @functools.cached_property
    def validation(self) -> EvaluationStream:
        """The validation data as the training looks at it, with its augmentation."""
        changes = bool(self.components.config.do_validation_augmentation)
        return EvaluationStream(self._make_validation, changes=changes, warn=self._warn)

    def reported(self, name: str) -> EvaluationStream:
        """The data that a report is made of, as it is."""
        if name == "validation" and not self.components.config.do_validation_augmentation:
            return self.validation
        return EvaluationStream(lambda: self._make_plain(name), changes=True, warn=self._warn)

    def trained_on(self, element: Any, *, trains: bool = True) -> TrainingModel:
        return TrainingModel(self.spec, element, trains=trains)

    def _make_training(self) -> StreamData:
        loader = self.components.data_loader

        def again() -> Iterator[Any]:
            return iter(call(loader.create_training_generator)[0])

        def wrap(points: Any, count: int) -> PointSource:
            return PointSource(points, again=again)

        return self._cut(self.components.training(wrap), None)

    def _make_validation(self) -> StreamData:
        wrap = _Exactly()
        return self._cut(self.components.validation(wrap), wrap.points)

    def _make_plain(self, name: str) -> StreamData:
        wrap, parts = _Exactly(), self.components
        data = chain.make(name, parts.data_loader, None, parts.preprocessor, wrap)
        return self._cut(data, wrap.points)

    def _cut(self, data: chain.Data, points: PointSource | None) -> StreamData:
        stream = StreamData(data.name, data.batches, data.num_batches, data.num_points, points)
        if self._few:
            stream = replace(stream, num_batches=min(DEV_BATCHES, data.num_batches))
        return stream


class _Exactly:
    """Lets through as many data points as there are said to be."""

    points: PointSource | None = None

    def __call__(self, points: Any, count: int) -> PointSource:
        self.points = PointSource(points, limit=count)
        return self.points


def one_pass(stream: EvaluationStream) -> Ledger:
    """A ledger for going through a stream once."""
    return Ledger([stream.shard], records_per_lease=stream.shard.num_records)


def _not_ours(*_: Any, **__: Any) -> Any:
    raise AssertionError("an experiment's minibatches are made by its preprocessor")
