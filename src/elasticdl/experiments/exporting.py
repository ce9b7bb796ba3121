"""The export of an experiment: the best epoch as a trained model, with the config that it came of."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from upath import UPath

from elasticdl.engine.best import Best
from elasticdl.errors import NotFound
from elasticdl.experiments.parts import first_of
from elasticdl.experiments.training import job_of
from elasticdl.runtime.trained import TrainedModels
from elasticdl.storage import remove

if TYPE_CHECKING:
    from elasticdl.experiments.session import Session

__all__ = ["CONFIG", "best_of", "export"]

CONFIG = "config.yaml"


def best_of(session: Session) -> Best:
    """The best epoch that the newest checkpoint knows; the model gets the weights of the last one."""
    checkpoint, faults = session.store.latest()
    if checkpoint is None:
        raise NotFound(f"There is nothing to export: train first. {' '.join(faults)}".rstrip())
    session.model.load(checkpoint.tensors, only_model=True)
    rule = session.config.export
    best = Best(rule.metric, rule.mode, by_epoch=True)
    if not best.restore(checkpoint.tensors, checkpoint.state.get("best")):
        _choose_again(session, best)
    return best


def _choose_again(session: Session, best: Best) -> None:
    """The run was trained with another rule: what is left to choose from are the checkpoints that were kept."""
    epochs = []
    for checkpoint in session.store.whole():
        progress = checkpoint.state["progress"]
        epochs.append(len(progress["history"].get("loss", ())))
        logs = {name: values[-1] for name, values in progress["history"].items()}
        weights = {n: v for n, v in checkpoint.tensors.items() if n.startswith("model/")}
        best.offer(logs, progress["step"], epochs[-1] - 1, functools.partial(dict, weights))
    session.warn(
        f"The run was trained with another export metric or mode. By {best.metric} the best is chosen among the "
        f"epochs whose checkpoints are kept: {', '.join(map(str, epochs))}."
    )


def export(session: Session, best: Best) -> UPath:
    """Write `exported/`, whole or not at all, and tell of it."""
    where, config = session.directory.model, session.config
    stream = session.parts.validation
    models = TrainedModels(
        job_of(config),
        session.model,
        element=first_of(stream),
        element_spec=stream.element_spec,
        objects={},
        source=None,
        saved_model="savedmodel",
        about={"experiment": {"project": config.project_name, "run": session.project.run_name}},
        more={CONFIG: config.to_yaml().encode()},
    )
    remove(where)
    is_known = best.value is not None
    remarks = models.save(
        where,
        values=best.parameters if is_known else None,
        metrics=best.metrics,
        steps=best.step,
        chosen=str(best) if is_known else "last",
    )
    for remark in remarks:
        session.warn(remark)
    session.tell(
        "exported",
        path=str(where),
        metric=best.metric,
        value=best.value,
        epoch=best.epoch,
        step=best.step,
    )
    return where
