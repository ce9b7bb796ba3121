"""Predicting in this process: a trained model, data without labels, and where the predictions go."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from elasticdl.contract.mode import Mode
from elasticdl.data.ledger import Ledger
from elasticdl.data.stamps import stamp
from elasticdl.engine.predictor import Predictor
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
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.predict_inputs import data_files, from_anywhere, refuse_inputs
from elasticdl.runtime.predict_job import fingerprint, open_output, resumed
from elasticdl.runtime.predict_sinks import FileSink, MemorySink, ProcessorSink, Sink
from elasticdl.runtime.result import Result
from elasticdl.runtime.standard_input import with_schema
from elasticdl.tracking.console import make_progress
from elasticdl.tracking.events import Events

__all__ = ["PredictionRun", "next_steps", "predict"]


def predict(config: JobConfig, objects: Mapping[str, Any], *, collect: bool = False) -> Result:
    """Predict with a trained model.

    Args:
      config: the job.
      objects: real Python objects in the place of the config's names.
      collect: whether predictions that go nowhere else are returned.
    """
    began = time.monotonic()
    output = open_output(config)
    if output is not None:
        output.check(resume=config.resume, overwrite=config.overwrite)
        config = resumed(config, output)
    if config.model_zoo:
        config = earlier.with_zoo(config)  # what is written down names a commit, and no credentials
    asked, files = config, data_files(config, objects)
    if output is not None:
        refuse_inputs(config, objects, output.files, files)
    read = stamp(files)
    config, columns = _prepared(config, objects)
    with Interrupt(objects.get("is_cancelled")) as interrupt, assembly.started(config):
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
            ledger = assembly.make_ledger(config, source)
            sinks: list[Sink] = []
            if spec.prediction_processor is not None:
                sinks.append(ProcessorSink(spec.prediction_processor(), predictor.form))
            if output is not None:
                schema, format_ = predictor.schema, output.format
                job = fingerprint(config, source.shards, read, training, schema, format_)
                asked = from_anywhere(asked, own_reader=spec.data_reader is not None)
                sinks.append(FileSink(output, job, asked, schema))
            memory = MemorySink(predictor.form, predictor.schema)
            run = PredictionRun(config, predictor, ledger, sinks or [memory], interrupt)
            run.predict()
    records = ledger.records_per_epoch if run.status == "completed" else run.records
    return Result(
        command="predict",
        status=run.status,
        records=records,
        num_predictions=records - run.left_out,
        predictions=None if sinks else memory.predictions(),
        output=output.place if output is not None else None,
        seconds=time.monotonic() - began,
        next_steps=next_steps(config, objects, run.status),
    )


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


class _Stopped(Exception):
    """Asked to stop in the middle of a lease, whose part is thrown away."""


@dataclass
class PredictionRun:
    """The loop over the leases that are not done yet."""

    config: JobConfig
    predictor: Predictor
    ledger: Ledger
    sinks: Sequence[Sink]
    interrupt: Interrupt
    status: str = "failed"
    records: int = 0
    """Records of leases that are done, now or before."""
    left_out: int = 0

    def predict(self) -> None:
        events = Events(*make_progress(self.config.log_level))
        self._emit = events.emit
        total = self.ledger.records_per_epoch
        try:
            for sink in self.sinks:
                sink.begin()
            events.emit("run_started", command="predict", records=total)
            self._skip(self.sinks[-1].done())
            for fault in self.sinks[-1].faults:
                events.emit("warning", message=fault)
            self.interrupt.listen()
            self._run_leases()
            if self.status == "completed":
                self.sinks[-1].complete(self._num_parts)
            if self.left_out:
                events.emit("warning", message=self._left_out())
        finally:
            for sink in self.sinks:
                sink.end()
            events.close()

    def _skip(self, done: set[int]) -> None:
        self._num_parts = len(done)
        self.ledger.restore({**self.ledger.snapshot(), "applied": sorted(done)})
        self.records = self.ledger.records_applied

    def _run_leases(self) -> None:
        try:
            while lease := self.ledger.lease():
                rows = self._run_lease(lease)
                self.left_out += lease.num_records - rows
                self.ledger.complete(lease)
                self._num_parts += 1
                self.records = self.ledger.records_applied
            self.ledger.close_epoch()
            self.status = "completed"
        except _Stopped:
            self.status = self.interrupt.status

    def _run_lease(self, lease: Any) -> int:
        rows = 0
        if self.interrupt.is_set():
            raise _Stopped
        with self.sinks[-1].part(lease.number) as write:
            for block in self.predictor.predict(lease, self.ledger.peek()):
                for sink in self.sinks[:-1]:
                    with sink.part(lease.number) as hand:
                        hand(block)
                write(block)
                rows += block.num_rows
                self._tell(rows)
                if self.interrupt.is_set() and rows < lease.num_records:
                    raise _Stopped
        return rows

    def _tell(self, rows: int) -> None:
        self._emit(
            "prediction_progress",
            records=self.records + rows,
            total=self.ledger.records_per_epoch,
        )

    def _left_out(self) -> str:
        total = self.ledger.records_per_epoch
        return (
            f"The dataset function did not give one example a record: {total} records made "
            f"{total - self.left_out} predictions. Let it filter nothing when the mode is prediction."
        )


def next_steps(
    config: JobConfig, objects: Mapping[str, Any], status: str
) -> tuple[tuple[str, str], ...]:
    """What to do with the predictions, or to go on with them."""
    if not config.output:
        return ()
    output = shlex.quote(config.output)
    if status == "completed":
        is_lines = config.output.endswith((".jsonl", ".json")) or config.output_format == "jsonl"
        command = "head" if is_lines else "elasticdl data inspect"
        return (("look at the predictions", f"{command} {output}"),)
    if objects:  # which only Python has
        return (("go on", f"elasticdl.predict(..., output={config.output!r}, resume=True)"),)
    return (("go on", f"elasticdl predict --resume --output={output}"),)
