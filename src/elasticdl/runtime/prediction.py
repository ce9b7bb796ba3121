"""A prediction that several processes can work on: accepted once, opened by each, finished once.

request = accept(config, objects)                       # who is asked; no TensorFlow
with holding(request) as output:                        # the same process
    with opened_prediction(request, objects) as prediction:    # each worker
        begun = prediction.begin()                             # one worker, before the others write
        rows = prediction.run_lease(lease)                     # any worker, any lease that is not done
    finish(output, Outcome(...))                        # who holds the output
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from elasticdl.contract.mode import Mode
from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.source import Shard, Source
from elasticdl.data.stamps import stamp
from elasticdl.engine.predictor import Block, Predictor
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import InvalidValue
from elasticdl.job.config import JobConfig
from elasticdl.runtime import assembly, earlier
from elasticdl.runtime.columns import (
    Columns,
    open_like_training,
    telling_what_is_missing,
    trained_columns,
)
from elasticdl.runtime.predict_inputs import data_files, from_anywhere, refuse_inputs
from elasticdl.runtime.predict_job import Output, fingerprint, open_output, resumed
from elasticdl.runtime.predict_sinks import FileSink, MemorySink, ProcessorSink, Sink
from elasticdl.runtime.predict_work import LeaseWork
from elasticdl.runtime.standard_input import with_schema

__all__ = [
    "Begun",
    "Prediction",
    "Request",
    "accept",
    "check_prediction",
    "holding",
    "opened_prediction",
]


@dataclass(frozen=True)
class Request:
    """What was asked and found acceptable. It can be pickled: every worker opens the same.

    Attributes:
      config: the job, with the options of the prediction that it goes on with.
      stamp: of the data's files, as they were then.
      token: tells the processes that work on it from those of another one.
    """

    config: JobConfig
    stamp: str
    token: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True)
class Begun:
    """Where a prediction starts: the numbers of leases that are done, and what a user should know of them."""

    done: frozenset[int]
    faults: tuple[str, ...]


def accept(config: JobConfig, objects: Mapping[str, Any]) -> Request:
    """Look at the output and the data by name, once, and refuse what cannot be. Nothing is written."""
    output = open_output(config)
    if output is not None:
        output.check(resume=config.resume, overwrite=config.overwrite)
        config = resumed(config, output)
    if config.model_zoo:
        config = earlier.with_zoo(config)  # what is written down names a commit, and no credentials
    files = data_files(config, objects)
    if output is not None:
        refuse_inputs(config, objects, output.files, files)
    return Request(config, stamp(files))


def check_prediction(request: Request, objects: Mapping[str, Any]) -> None:
    """Refuse, before TensorFlow is loaded, what the trained model and its data cannot be."""
    _prepared(request.config, objects)


@contextlib.contextmanager
def holding(request: Request) -> Iterator[Output | None]:
    """The output, held by this process while workers write its parts."""
    output = open_output(request.config)
    with output.files.holding() if output is not None else contextlib.nullcontext():
        yield output


@contextlib.contextmanager
def opened_prediction(
    request: Request,
    objects: Mapping[str, Any],
    *,
    collect: bool = False,
    worker_id: int = 0,
    zoo_copy: str | None = None,
) -> Iterator[Prediction]:
    """The model, the data and the sinks of an accepted prediction, in this process.

    Args:
      request: what `accept` gave.
      objects: real Python objects in the place of the config's names.
      collect: whether predictions that go nowhere else are wanted in memory.
      worker_id: which of the job's workers this is, from 0.
      zoo_copy: where the files of the request's model zoo are on this machine, if elsewhere.
    """
    zoo = zoo_copy or request.config.model_zoo
    config, columns = _prepared(replace(request.config, model_zoo=zoo), objects)
    with assembly.started(config):
        _check_weights(config, objects)
        spec = assembly.load(config, objects)
        _check_goal(config, spec.prediction_processor is not None, collect)
        source = open_like_training(config, spec, "prediction_data", objects, columns)
        with assembly.make_pipeline(config, spec, source, Mode.PREDICTION) as pipeline:
            with telling_what_is_missing(source, columns):
                element = assembly.first_minibatch(config, pipeline, source)
                training = TrainingModel(spec, element, predicts=True)
            assembly.start_from(config, objects, training)
            predictor = Predictor(training, pipeline, element)
            output = open_output(request.config)
            sinks: list[Sink] = []
            if spec.prediction_processor is not None:
                sinks.append(ProcessorSink(spec.prediction_processor(), predictor.form, worker_id))
            if output is not None:
                schema, format_ = predictor.schema, output.format
                job = fingerprint(config, source.shards, request.stamp, training, schema, format_)
                asked = from_anywhere(request.config, own_reader=spec.data_reader is not None)
                sinks.append(FileSink(output, job, asked, schema))
            sinks = sinks or [MemorySink(predictor.form, predictor.schema)]
            yield Prediction(config, predictor, source, output, sinks)


@dataclass(frozen=True)
class Prediction:
    """One process' share in a prediction.

    Attributes:
      config: the job, with what the trained model says of it.
      sinks: who takes the predictions; the last one decides which leases are done.
    """

    config: JobConfig
    predictor: Predictor
    source: Source
    output: Output | None
    sinks: Sequence[Sink]

    @property
    def shards(self) -> Sequence[Shard]:
        """With `records_per_lease`, what a ledger needs elsewhere."""
        return self.source.shards

    @property
    def records_per_lease(self) -> int:
        if self.output is None:
            return assembly.records_per_lease(self.config, self.source)
        # The parts of an output are the same however many workers make them.
        return self.config.minibatch_size * self.config.num_minibatches_per_task

    def ledger(self) -> Ledger:
        """A fresh one over all records."""
        return assembly.make_ledger(self.config, self.source)

    def begin(self) -> Begun:
        """Make the held output ready for parts, in one process, before any is written.

        Should that process be lost before it answers, another one begins again.
        """
        last = self.sinks[-1]
        if isinstance(last, FileSink):
            last.begin_held()
        return Begun(frozenset(last.done()), tuple(last.faults))

    def join(self, token: str) -> Begun:
        """As `begin`, at any time, by any process that has the request's token: what one has begun stays as it is."""
        last = self.sinks[-1]
        if isinstance(last, FileSink):
            last.join(token)
        return Begun(frozenset(last.done()), tuple(last.faults))

    def run_lease(
        self,
        lease: Lease,
        following: Lease | None = None,
        *,
        on_rows: Callable[[int], None] = lambda rows: None,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> int:
        """Predict a lease, and say how many rows that made: see `LeaseWork.run`."""
        work = LeaseWork(self.predictor, self.sinks)
        return work.run(lease, following, on_rows=on_rows, is_stopped=is_stopped)

    @property
    def memory(self) -> MemorySink | None:
        """Where the predictions are when they go nowhere else."""
        last = self.sinks[-1]
        return last if isinstance(last, MemorySink) else None

    def take(self, number: int) -> list[Block]:
        """The predictions of a lease that was just run, to be sent to who collects them; none if they are elsewhere."""
        return [] if self.memory is None else self.memory.take(number)

    def collector(self) -> MemorySink:
        """Empty, and to be pickled: collects in another process what is taken from several."""
        return MemorySink(self.predictor.form, self.predictor.schema)


def _prepared(config: JobConfig, objects: Mapping[str, Any]) -> tuple[JobConfig, Columns]:
    """The job with what the trained model says of it, and the columns of its training."""
    if config.trained_model is None and "model" not in objects:
        raise InvalidValue(
            "No trained model was given. Name the --output of a training with --trained_model=DIR."
        )
    columns = trained_columns(config, with_labels=False)
    config = earlier.with_zoo(earlier.as_trained(config, objects))
    config = with_schema(replace(config, seed=config.seed or 0), objects)
    assembly.check_given(config, objects, "prediction_data")
    return config, columns


def _check_weights(config: JobConfig, objects: Mapping[str, Any]) -> None:
    """A model that is only about to be made has learned nothing."""
    import keras

    if not config.trained_model and not isinstance(objects["model"], keras.Model):
        raise InvalidValue(
            "The model has no weights yet. Give a Keras model, or name the output of a training with "
            "trained_model=DIR."
        )


def _check_goal(config: JobConfig, has_processor: bool, collect: bool) -> None:
    if not config.output and not has_processor and not collect:
        raise InvalidValue(
            "The predictions have nowhere to go. Give --output=FILE.parquet (or .csv, .jsonl, .recordio, "
            ".tfrecord, or a directory), or add a PredictionOutputsProcessor to the model file."
        )
