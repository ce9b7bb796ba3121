"""A sitting at an experiment whose model is not Keras': the builder fits it by itself, in one go.

There are no epochs here, so nothing to go on with and nothing to choose from: what `fit` returns is exported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from elasticdl.artifacts.experiment_directory import ESTIMATOR
from elasticdl.artifacts.stored_model import fetch_bare
from elasticdl.data.evaluation_stream import EvaluationStream
from elasticdl.errors import ContractError, NotFound
from elasticdl.experiments.estimators import load_estimator, save_estimator
from elasticdl.experiments.evaluation import Points
from elasticdl.experiments.exporting import CONFIG
from elasticdl.experiments.parts import first_of
from elasticdl.experiments.session import Session
from elasticdl.experiments.theirs import call
from elasticdl.reports.section import Section
from elasticdl.runtime.journal import Journal
from elasticdl.storage import new_directory

__all__ = ["EstimatorSession", "Passes"]


class Passes:
    """The minibatches that `fit` gets, as arrays: each data point once in a pass.

    A `for` loop over it is one pass; `next` goes on with the next pass, without end.
    """

    def __init__(self, stream: EvaluationStream) -> None:
        self._stream = stream
        self._endless = self._pass_after_pass()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        import tensorflow as tf

        for element in self._stream.fresh():
            yield tf.nest.map_structure(lambda tensor: tensor.numpy(), element)

    def __next__(self) -> tuple[Any, ...]:
        return next(self._endless)

    def _pass_after_pass(self) -> Iterator[tuple[Any, ...]]:
        while True:
            yield from self


class EstimatorSession(Session):
    """Fit, export, evaluate."""

    _estimator: Any = None
    _is_fitted = False

    def _prepare(self, evaluates: bool) -> None:
        self._streams = {name: self.parts.passes(name) for name in ("training", "validation")}
        for stream in self._streams.values():
            first_of(stream)  # it can be read
        if evaluates:
            self.components.evaluation_functions()
            self.components.validation_index(self._streams["validation"].num_points)
            first_of(self.parts.reported("test"))

    def _train(self, journal: Journal) -> None:
        journal.emit(
            "run_started",
            command="train",
            job=self.config.project_name,
            model=type(self.components.model_builder).__name__,
            records=self._streams["training"].num_points,
            num_epochs=1,
            step=0,
            seed=self.config.seed,
        )
        arguments: list[Any] = []
        for stream in self._streams.values():
            arguments += [Passes(stream), stream.shard.num_records]
        builder = self.components.model_builder
        self._estimator = call(builder.fit, *arguments)
        self._is_fitted = True
        if not hasattr(self._estimator, "predict"):
            raise ContractError(
                f"{type(builder).__name__}.fit returned a value of type {type(self._estimator).__name__}. "
                "Return the fitted model, which has a method `predict`."
            )
        with new_directory(self.directory.model, last=ESTIMATOR) as aside:
            (aside / CONFIG).write_text(self.config.to_yaml(), encoding="utf-8")
            save_estimator(self._estimator, aside)

    def _export(self, *, anew: bool) -> None:
        """Done by the training already."""
        if not self.directory.is_exported:
            raise NotFound("There is nothing to export: train first.")
        self.exported = self.directory.model
        if anew:
            self.tell("exported", path=str(self.exported), metric=None, value=None, epoch=0, step=0)

    def _load_exported(self) -> None:
        self._estimator = load_estimator(fetch_bare(str(self.directory.model)))

    def _section(self, name: str) -> Section | None:
        stream = self.parts.passes(name)
        is_test = name == "test"
        ids = None if is_test else self.components.validation_index(stream.num_points)
        points = Points(self.components.evaluation_functions(), ids)
        predict = getattr(self._estimator, "predict_proba", self._estimator.predict)
        for element in Passes(stream):
            if self.interrupt.is_set():
                return None
            points.add(element, np.asarray(predict(element[0])), with_ids=is_test)
            self.tell("evaluation_progress", records=len(points.table), total=stream.num_points)
        points.warn_of_names(name, self.warn)
        return Section(
            name, points.table, points.confusion.confusion(), metrics=self._own_metrics(stream)
        )

    def _own_metrics(self, stream: EvaluationStream) -> dict[str, float]:
        """What the builder's own `evaluate` says, when it has one and has fitted the model it speaks of."""
        evaluate = getattr(self.components.model_builder, "evaluate", None)
        if evaluate is None or not self._is_fitted:
            return {}
        found = call(evaluate, Passes(stream), stream.shard.num_records)
        return {str(name): float(value) for name, value in (found or {}).items()}
