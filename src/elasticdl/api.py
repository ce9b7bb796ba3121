"""The Python front door: the command line's names, the command line's strings, and real objects too."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elasticdl.contract.pieces import OVERRIDES
from elasticdl.errors import InvalidValue
from elasticdl.job.config import DATA_OF, JobConfig, options
from elasticdl.runtime.result import Result

__all__ = ["Result", "evaluate", "predict", "run", "train"]

_MAY_BE_OBJECTS = (
    *OVERRIDES,
    "feed",
    "input_fn",
    "training_data",
    "validation_data",
    "prediction_data",
    "data",
)


def train(model: Any = None, data: Any = None, **flags: Any) -> Result:
    """Train a Keras model.

    Args:
      model: a `model_def` string, or a Keras model, a class, a function that returns one, or an
        `ElasticDLSpec`.
      data: a path (file, directory or glob; several with commas), or arrays: `(features, labels)`,
        a dict of arrays, a DataFrame.
      **flags: every flag of `elasticdl train`, by its name. `loss`, `optimizer`, `dataset_fn`,
        `eval_metrics_fn`, `callbacks` may be real objects.

    Returns:
      A `Result`, with the history, the metrics and the paths.

    Raises:
      ElasticDLError: what was given is wrong, or the run failed. See `elasticdl.errors`.

    Example:
      >>> result = elasticdl.train(                                            # doctest: +SKIP
      ...     model_zoo="model_zoo",
      ...     model_def="mnist.mnist_functional.custom_model",
      ...     data="model_zoo/data/digits/train",
      ...     num_epochs=2,
      ... )
      >>> result.history["loss"]                                               # doctest: +SKIP
    """
    return _call("train", model, data, flags)


def evaluate(model: Any = None, data: Any = None, **flags: Any) -> Result:
    """Evaluate a trained model. Takes what `train` takes, and `trained_model`.

    Example:
      >>> elasticdl.evaluate(                                                  # doctest: +SKIP
      ...     trained_model="my_model", data="model_zoo/data/digits/test"
      ... ).metrics
    """
    return _call("evaluate", model, data, flags)


def predict(model: Any = None, data: Any = None, **flags: Any) -> Result:
    """Predict with a trained model. Takes what `evaluate` takes, and `output`.

    Without an `output` the predictions are returned in the result, as `model.predict` gives them.

    Example:
      >>> elasticdl.predict(                                                   # doctest: +SKIP
      ...     data="model_zoo/data/digits/test", trained_model="my_model", output="digits.parquet",
      ... )
    """
    return _call("predict", model, data, flags)


def run(config: JobConfig, objects: Mapping[str, Any] | None = None) -> Result:
    """Run a job that was checked already: what the command line calls."""
    given = objects or {}
    config.refuse_parameter_servers()
    if config.cluster is not None:
        from elasticdl.runtime.kubernetes import submit

        return submit.run(config, given)
    config = as_begun(config)
    if config.command == "predict":
        # Who has a result at hand can take predictions from it; a command line cannot.
        return _predict(config, given, collect=objects is not None)
    if config.distribution_strategy == "AllreduceStrategy":
        from elasticdl.runtime.elastic import launch, split

        return {"train": launch.train, "evaluate": split.evaluate}[config.command](config, given)
    from elasticdl.runtime import local

    return {"train": local.train, "evaluate": local.evaluate}[config.command](config, given)


def as_begun(config: JobConfig) -> JobConfig:
    """What is resumed runs where it was begun, with workers or without, if nothing else is said."""
    is_said = config.cluster is not None or "distribution_strategy" in config.given
    if is_said or not (config.resume and config.output):
        return config
    from elasticdl.runtime import earlier

    return replace(config, distribution_strategy=earlier.strategy(config))


def _predict(config: JobConfig, objects: Mapping[str, Any], *, collect: bool) -> Result:
    from elasticdl.experiments import predicting

    if predicting.is_export(config, objects):
        return predicting.predict(config, collect=collect)
    if config.distribution_strategy == "AllreduceStrategy":
        from elasticdl.runtime.elastic import split

        return split.predict(config, objects, collect=collect)
    from elasticdl.runtime.predict import predict as predict_locally

    return predict_locally(config, objects, collect=collect)


def _call(command: str, model: Any, data: Any, flags: dict[str, Any]) -> Result:
    """Part real objects from names; the names are checked as those of the command line are."""
    names, objects = dict(flags), {}
    for key, value in (("model_def", model), ("data", data)):
        if value is not None:
            if names.get(key) is not None:
                raise InvalidValue(f"{key!r} was given twice. Give it once.")
            names[key] = value
    if names.get("model_def") is not None and not isinstance(names["model_def"], str):
        objects["model"] = names.pop("model_def")
    for key in _MAY_BE_OBJECTS:
        if names.get(key) is not None and not isinstance(names[key], str):
            objects[_canonical(command, key)] = names.pop(key)
    for key, value in names.items():
        if hasattr(value, "__fspath__"):
            names[key] = str(value)
    config = JobConfig.parse(command, names)
    if idle := as_begun(config).idle_cluster_options:
        where = (
            "when run locally" if config.distribution_strategy == "Local" else "without a cluster"
        )
        warnings.warn(f"Without effect {where}: {', '.join(idle)}.", stacklevel=3)
    return run(config, objects)


def _canonical(command: str, key: str) -> str:
    return {"feed": "dataset_fn", "input_fn": "dataset_fn", "data": DATA_OF[command]}.get(key, key)


def _signature(command: str) -> inspect.Signature:
    """What editors and notebooks show: every flag by name."""
    kinds = inspect.Parameter
    known = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=None) for name in ("model", "data")]
    known += [
        kinds(option.name, kinds.KEYWORD_ONLY, default=option.default)
        for option in options(command)
    ]
    return inspect.Signature(known, return_annotation=Result)


for _function in (train, evaluate, predict):
    setattr(_function, "__signature__", _signature(_function.__name__))  # noqa: B010
