"""Predicting with an experiment's export: its own data loader and preprocessor read the test data.

`elasticdl predict --trained_model=runs/R/exported` needs nothing but that directory and the data: the sources and
the config are inside. Files of features go to the model as they do for any other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from elasticdl.artifacts.stored_model import (
    StoredModel,
    find_trained_model,
    is_bare,
    load_parameters,
)
from elasticdl.artifacts.trained_model import PARAMETERS, ZOO
from elasticdl.data.evaluation_stream import EvaluationStream
from elasticdl.data.ledger import Lease, Ledger
from elasticdl.data.source import ArraySpec, Shard
from elasticdl.engine.explain import reading
from elasticdl.engine.predictor import Block, Predictor
from elasticdl.engine.state import TrainingModel
from elasticdl.errors import ElasticDLError, InvalidValue, NotFound
from elasticdl.experiments.components import load_components
from elasticdl.experiments.config import load_config
from elasticdl.experiments.exporting import CONFIG
from elasticdl.experiments.parts import Parts, first_of
from elasticdl.experiments.project import Project
from elasticdl.job.config import JobConfig
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.predict import PredictionRun, next_steps
from elasticdl.runtime.predict_job import fingerprint, open_output
from elasticdl.runtime.predict_sinks import FileSink, MemorySink, Sink
from elasticdl.runtime.result import Result
from elasticdl.storage import place, storage_errors

__all__ = ["is_export", "predict"]

ID = "data_id"


def is_export(config: JobConfig, objects: Mapping[str, Any]) -> bool:
    """Whether the job is to read an experiment's test data: its export is named, and no file of features."""
    if not config.trained_model or config.model_def or objects:
        return False
    data = config.prediction_data
    try:
        if is_bare(config.trained_model) or "experiment" not in _stored(config).job:
            return False
    except ElasticDLError:  # who reads the trained model tells what is wrong
        return False
    if data is None:
        return True
    where = place(data)
    with storage_errors(where, doing="read"):
        return where.is_dir()


def _stored(config: JobConfig) -> StoredModel:
    assert config.trained_model is not None
    return find_trained_model(config.trained_model)


def predict(config: JobConfig, *, collect: bool) -> Result:
    """The predictions of each test data point, with its id."""
    began = time.monotonic()
    output = open_output(config)
    if output is not None:
        output.check(resume=config.resume, overwrite=config.overwrite)
    elif not collect:
        raise InvalidValue(
            "The predictions have nowhere to go. Give --output=FILE.parquet (or .csv, .jsonl, .recordio, "
            ".tfrecord, or a directory)."
        )
    with Interrupt() as interrupt, _opened(config) as parts:
        stream = parts.reported("test")
        predictor = _predictor(config, parts, stream)
        sinks: list[Sink] = []
        if output is not None:
            named = fingerprint(
                config, [stream.shard], "", predictor.training, predictor.schema, output.format
            )
            sinks.append(FileSink(output, named, config, predictor.schema))
        memory = MemorySink(predictor.form, predictor.schema)
        points = Shard(stream.shard.name, stream.num_points, sequential=True)
        ledger = Ledger([points], records_per_lease=points.num_records)
        run = _Run(config, predictor, ledger, sinks or [memory], interrupt)
        run.predict()
    return Result(
        command="predict",
        status=run.status,
        records=predictor.num_rows,
        num_predictions=predictor.num_rows,
        predictions=None if sinks else memory.predictions(),
        output=output.place if output is not None else None,
        seconds=time.monotonic() - began,
        next_steps=next_steps(config, {}, run.status),
    )


def _opened(config: JobConfig) -> Parts:
    """The components that the export holds, on the data that was named, or on that of the run."""
    here = _stored(config).fetch(PARAMETERS, ZOO, CONFIG)
    known = load_config(place(here / CONFIG)).model_copy(update={"src_code_path": ZOO})
    load_tensorflow()
    project = Project(Path(here), here.name, place(here), place(here / CONFIG))
    try:
        components = load_components(project, known, config.prediction_data)
    except NotFound as error:
        if config.prediction_data is None and known.data_dir and not Path(known.data_dir).exists():
            raise NotFound(
                f"The data of the run is not where it was, in {known.data_dir}. Name a data directory of the same "
                "form with --data=DIR."
            ) from error
        raise
    return Parts(components, warn=lambda message: print(f"Warning: {message}", file=sys.stderr))


def _predictor(config: JobConfig, parts: Parts, stream: EvaluationStream) -> PointPredictor:
    model = parts.trained_on(first_of(stream)[:2], "test", trains=False)
    model.load(load_parameters(_stored(config).fetch(PARAMETERS)), only_model=True)
    return PointPredictor(model, stream)


class _Run(PredictionRun):
    """Counts data points."""

    def _left_out(self) -> str:
        said = self.ledger.records_per_epoch
        return f"The test data is said to have {said} data points; it gave {said - self.left_out}."


class PointPredictor(Predictor):
    """A predictor that also hands out what the data points are called."""

    def __init__(self, training: TrainingModel, stream: EvaluationStream) -> None:
        features, _, *third = first_of(stream)
        super().__init__(training, stream, features, stream.element_spec[0])
        self.training = training
        self.num_rows = 0
        self._stream = stream
        kind = third[0].numpy().dtype if third else np.dtype(np.int64)
        self.schema = {ID: ArraySpec(np.dtype(kind), ()), **self.schema}

    def predict(self, lease: Lease, following: Lease | None = None) -> Iterator[Block]:
        """A minibatch at a time: reading it takes longer than the model does."""
        with reading(self._stream, lease):
            for features, _, *third in self._stream.elements(lease):
                columns = zip(self.form.names, self._step(features), strict=True)
                arrays = {name: tensor.numpy() for name, tensor in columns}
                count = len(next(iter(arrays.values())))
                numbers = np.arange(self.num_rows, self.num_rows + count)
                ids = third[0].numpy() if third else numbers
                self.num_rows += count
                yield Block({ID: ids, **arrays}, [count])
