"""The components of an experiment at work: streams of minibatches, and the compiled model."""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from elasticdl.contract.pieces import callbacks_maker
from elasticdl.contract.spec import Spec
from elasticdl.data.evaluation_stream import EvaluationStream
from elasticdl.data.generators import PointSource
from elasticdl.data.ledger import Ledger
from elasticdl.data.streams import Stream, StreamData
from elasticdl.data.training_stream import TrainingStream
from elasticdl.engine.explain import reading
from elasticdl.engine.inputs import num_examples, split_minibatch
from elasticdl.engine.randomness import seed_everything
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import ContractError, DataError
from elasticdl.experiments import chain
from elasticdl.experiments.chain import SourceWrapper
from elasticdl.experiments.class_weights import class_weighting
from elasticdl.experiments.components import Components
from elasticdl.experiments.theirs import call

if TYPE_CHECKING:
    import keras

__all__ = ["Parts", "check_fits", "first_of", "one_pass"]

DEV_BATCHES = 2
GRACE_S = 2.0
_ENGINE = re.compile(r"[/\\]elasticdl[/\\](engine|data|experiments)[/\\]")


class Parts:
    """Makes each part when it is first asked for, always with the experiment's seed; at the end lets go of all.

    Args:
      components: what the user wrote.
      few: go through all of it with two minibatches.
      warn: is told what the user should know.
      is_hurried: whether somebody waits for the end, so that a generator that is stuck is not waited for.
    """

    def __init__(
        self,
        components: Components,
        *,
        few: bool = False,
        warn: Callable[[str], None],
        is_hurried: Callable[[], bool] = lambda: False,
    ) -> None:
        self.is_hurried = is_hurried
        self.components = components
        self._few = few
        self._warn = warn
        self._streams: list[Stream] = []

    def __enter__(self) -> Parts:
        return self

    def __exit__(
        self, kind: object, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, KeyboardInterrupt):
            return  # the process is about to be left at once, be a generator stuck or not
        _forget_iterators(trace)
        closing = threading.Thread(target=self._close, name="closing", daemon=True)
        closing.start()
        closing.join(GRACE_S if self.is_hurried() else None)

    def _close(self) -> None:
        for stream in self._streams:
            stream.close()

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
            callbacks=callbacks_maker(
                functools.partial(call, callbacks) if callbacks else None,
                f"{type(builder).__name__}.get_callbacks",
            ),
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
        stream = TrainingStream(self._make_training, convert=convert, warn=self._warn)
        self._streams.append(stream)
        return stream

    @functools.cached_property
    def validation(self) -> EvaluationStream:
        """The validation data as the training looks at it, with its augmentation."""
        changes = bool(self.components.config.do_validation_augmentation)
        return self._opened(self._make_validation, changes)

    def reported(self, name: str) -> EvaluationStream:
        """The data that a report is made of, as it is."""
        if name == "validation" and not self.components.config.do_validation_augmentation:
            return self.validation
        return self._opened(lambda: self._make_plain(name), True)

    def passes(self, name: str) -> EvaluationStream:
        """Any part of the data, the training data too, to be gone through from its begin to its end."""
        if name == "test":
            return self.reported(name)
        seed_everything(self.components.config.seed)
        make = self.components.training if name == "training" else self.components.validation
        changes = name == "training"
        return self._opened(lambda: self._exactly(make), changes)

    def _opened(self, make: Callable[[], StreamData], changes: bool) -> EvaluationStream:
        stream = EvaluationStream(make, changes=changes, warn=self._warn)
        self._streams.append(stream)
        return stream

    def trained_on(self, element: Any, name: str, *, trains: bool = True) -> TrainingModel:
        """The model, seen to fit a minibatch of the data of this name."""
        with _naming(name):
            return TrainingModel(self.spec, element, trains=trains)

    def _make_training(self) -> StreamData:
        loader = self.components.data_loader

        def again() -> Iterator[Any]:
            return iter(call(loader.create_training_generator)[0])

        def wrap(points: Any, count: int) -> PointSource:
            def ended(given: int) -> None:
                if given < count:
                    self._warn(
                        f"The training generator gave {given} data points instead of the {count} that it is said to "
                        "have. It is begun again inside of an epoch."
                    )

            return PointSource(points, again=again, on_end=ended)

        return self._cut(self.components.training(wrap), None)

    def _make_validation(self) -> StreamData:
        return self._exactly(self.components.validation)

    def _make_plain(self, name: str) -> StreamData:
        loader, preprocessor = self.components.data_loader, self.components.preprocessor
        return self._exactly(lambda wrap: chain.make(name, loader, None, preprocessor, wrap))

    def _exactly(self, make: Callable[[SourceWrapper], chain.Data]) -> StreamData:
        wrap = _Exactly()
        return self._cut(make(wrap), wrap.points)

    def _cut(self, data: chain.Data, points: PointSource | None) -> StreamData:
        stream = StreamData(data.name, data.batches, data.num_batches, data.num_points, points)
        if self._few:
            few = min(DEV_BATCHES, data.num_batches)
            stream = replace(stream, num_batches=few, limit=few)
        return stream


class _Exactly:
    """Lets through as many data points as there are said to be."""

    points: PointSource | None = None

    def __call__(self, points: Any, count: int) -> PointSource:
        self.points = PointSource(points, limit=count)
        return self.points


def _forget_iterators(trace: TracebackType | None) -> None:
    """An error's traceback keeps the engine's iterators alive, and with them threads that are in Python."""
    while trace is not None:
        if _ENGINE.search(trace.tb_frame.f_code.co_filename):
            with contextlib.suppress(RuntimeError):  # it still runs
                trace.tb_frame.clear()
        trace = trace.tb_next


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    try:
        yield
    except ContractError as error:
        raise ContractError(f"Of the {name} data: {error}") from error


def check_fits(model: TrainingModel, stream: EvaluationStream) -> None:
    """See that the labelled features of a stream go through the model and its loss."""
    with _naming(stream.name):
        model.check(split_minibatch(first_of(stream)[:2]))


def one_pass(stream: Stream) -> Ledger:
    """A ledger for going through a stream once."""
    return Ledger([stream.shard], records_per_lease=stream.shard.num_records)


def first_of(stream: TrainingStream | EvaluationStream) -> Any:
    """A stream's first minibatch, or in words why there is none."""
    lease = one_pass(stream).lease()
    assert lease is not None
    with reading(stream, lease):
        element = stream.first
        if int(num_examples(element[0])) == 0:
            raise DataError(f"The first minibatch of {stream.shard.name} has no rows.")
        return element


def _not_ours(*_: Any, **__: Any) -> Any:
    raise AssertionError("an experiment's minibatches are made by its preprocessor")
