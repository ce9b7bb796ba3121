"""`elasticdl run --check`: everything that can be wrong before the first epoch, found in seconds."""

from __future__ import annotations

from elasticdl.engine.best import Best
from elasticdl.engine.evaluator import Evaluator
from elasticdl.engine.explain import describe
from elasticdl.engine.inputs import split_minibatch
from elasticdl.experiments.assembled import logged_names
from elasticdl.experiments.components import Components
from elasticdl.experiments.evaluation import Points
from elasticdl.experiments.parts import Parts, check_fits, first_of, one_pass

__all__ = ["check"]

Facts = list[tuple[str, str]]


def check(components: Components) -> Facts:
    """Put a minibatch of each kind of data through the model, and say what was seen.

    Raises what a run would raise, sooner.
    """
    facts: Facts = [("data", str(components.data_dir))]

    def warn(message: str) -> None:
        facts.append(("warning", message))

    with Parts(components, warn=warn) as parts:
        look = _look_at_estimator if components.is_generic else _look
        return facts + look(parts)


def _look(parts: Parts) -> Facts:
    facts: Facts = []
    components = parts.components
    stream = parts.training
    model = parts.trained_on(first_of(stream), "training")
    parts.spec.callbacks()
    facts.append(("model", f"{parts.spec.name}, {model.model.count_params():,} parameters"))
    facts.append(
        ("training", _shown(first_of(stream), stream.shard.num_records, stream.num_points))
    )
    evaluator = Evaluator(model, parts.validation, lambda: one_pass(parts.validation))
    names = logged_names(evaluator.names(first_of(parts.validation)))
    best = Best(components.config.export.metric, components.config.export.mode, by_epoch=True)
    best.check(names)
    facts.append(("logged", ", ".join(names)))
    facts.append(("export metric", f"{best.metric} ({components.config.export.mode})"))
    for name in ("validation", "test"):
        reported = parts.reported(name)
        element = first_of(reported)
        batch = split_minibatch(element[:2])
        check_fits(model, reported)
        ids = components.validation_index(reported.num_points) if name == "validation" else None
        points = Points(components.evaluation_functions(), ids)
        outputs = model.model(model.bind(batch.features), training=False)
        points.add(element, outputs, with_ids=name == "test")
        facts.append((name, _shown(element, reported.shard.num_records, reported.num_points)))
    facts.append(("evaluation", ", ".join(points.table.columns) or "the model's own metrics only"))
    return facts


def _look_at_estimator(parts: Parts) -> Facts:
    """Its model is made by its own `fit`: what can be looked at is the data."""
    facts = [("model", f"{type(parts.components.model_builder).__name__}, which fits it itself")]
    for name in ("training", "validation", "test"):
        stream = parts.passes(name)
        facts.append((name, _shown(first_of(stream), stream.shard.num_records, stream.num_points)))
    functions = parts.components.evaluation_functions()
    return [*facts, ("evaluation", ", ".join(functions or ()) or "none")]


def _shown(element: tuple[object, ...], num_batches: int, num_points: int) -> str:
    parts = zip(("features", "labels", "third"), element, strict=False)
    shapes = "; ".join(f"{name} {describe(part)}" for name, part in parts)
    return f"{num_points:,} data points in {num_batches:,} batches: {shapes}"
