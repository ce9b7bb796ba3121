"""Predicting in this process: all that `prediction` splits over several, one after the other."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elasticdl.data.ledger import Lease, Ledger
from elasticdl.engine.predictor import Predictor
from elasticdl.job.config import JobConfig
from elasticdl.runtime.brief import telling
from elasticdl.runtime.interrupt import Interrupt
from elasticdl.runtime.predict_end import Outcome, made_result, next_steps, tell_left_out
from elasticdl.runtime.predict_sinks import Sink
from elasticdl.runtime.predict_work import LeaseWork, Stopped
from elasticdl.runtime.prediction import accept, opened_prediction
from elasticdl.runtime.result import Result

__all__ = ["PredictionRun", "next_steps", "predict"]


def predict(config: JobConfig, objects: Mapping[str, Any], *, collect: bool = False) -> Result:
    """Predict with a trained model.

    Args:
      config: the job.
      objects: real Python objects in the place of the config's names.
      collect: whether predictions that go nowhere else are returned.
    """
    began = time.monotonic()
    request = accept(config, objects)
    with (
        Interrupt(objects.get("is_cancelled")) as interrupt,
        opened_prediction(request, objects, collect=collect) as prediction,
    ):
        config, ledger = prediction.config, prediction.ledger()
        run = PredictionRun(config, prediction.predictor, ledger, prediction.sinks, interrupt)
        run.predict()
    memory = prediction.memory
    return made_result(
        config,
        objects,
        run.outcome,
        output=prediction.output,
        seconds=time.monotonic() - began,
        predictions=memory.predictions() if memory is not None else None,
    )


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
        with telling(self.config) as self._emit:
            try:
                self._predict()
            finally:
                for sink in self.sinks:
                    sink.end()

    def _predict(self) -> None:
        for sink in self.sinks:
            sink.begin()
        self._emit("run_started", command="predict", records=self.ledger.records_per_epoch)
        self._skip(self.sinks[-1].done())
        for fault in self.sinks[-1].faults:
            self._emit("warning", message=fault)
        self.interrupt.listen()
        self._run_leases()
        if self.status == "completed":
            self.sinks[-1].complete(self._num_parts)
        if self.left_out:
            self._emit("warning", message=self._left_out())

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
        except Stopped as stopped:
            self.interrupt.keep(stopped)  # and with it the frames that read
            self.status = self.interrupt.status

    def _run_lease(self, lease: Lease) -> int:
        return LeaseWork(self.predictor, self.sinks).run(
            lease, self.ledger.peek(), on_rows=self._tell, is_stopped=self.interrupt.is_set
        )

    def _tell(self, rows: int) -> None:
        self._emit(
            "prediction_progress",
            records=self.records + rows,
            total=self.ledger.records_per_epoch,
        )

    @property
    def outcome(self) -> Outcome:
        return Outcome(
            status=self.status,
            total=self.ledger.records_per_epoch,
            records=self.records,
            num_parts=self._num_parts,
            left_out=self.left_out,
        )

    def _left_out(self) -> str:
        return tell_left_out(self.ledger.records_per_epoch, self.left_out)
