"""The peer of the whole run: the same components with Keras, MLflow and pandas, in the usual way.

Everything is imported first. A checkpoint of the whole model and TensorBoard's callback in each epoch, MLflow told by
its own functions; then the best model is loaded and exported, and evaluated in batches and point by point.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import sys
from pathlib import Path

import keras
import mlflow
import numpy as np
import pandas as pd
import tensorflow as tf
import yaml

from abstractions.utils import ConfigStruct


class Tracking(keras.callbacks.Callback):
    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        mlflow.log_metrics({name: float(value) for name, value in logs.items()}, step=epoch)


def find(name: str) -> type:
    module, _, cls = name.rpartition(".")
    return getattr(__import__(module), cls)


def flat(config: dict, prefix: str = "config_") -> dict:
    found = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def train(model: keras.Model, train_data: tuple, validation: tuple, epochs: int, run: Path) -> None:
    best = run / "checkpoints"
    best.mkdir()
    model.fit(
        train_data[0],
        steps_per_epoch=train_data[1],
        validation_data=validation[0],
        validation_steps=validation[1],
        epochs=epochs,
        verbose=2,
        callbacks=[
            keras.callbacks.ModelCheckpoint(str(best / "{epoch:03d}-{val_loss:.6f}.keras")),
            keras.callbacks.TensorBoard(str(run / "logs")),
            Tracking(),
        ],
    )


def export(run: Path) -> keras.Model:
    files = (run / "checkpoints").glob("*.keras")
    model = keras.models.load_model(min(files, key=lambda file: float(file.stem.split("-", 1)[1])))
    model.export(run / "exported" / "savedmodel", verbose=False)
    model.save(run / "exported" / "model.keras")
    return model


def evaluate(model: keras.Model, batches: object, steps: int, ids: list | None, functions: dict):
    """A table of a row a data point."""
    xs, ys, thirds = [], [], []
    with contextlib.suppress(RuntimeError):  # a generator of batches whose data points end
        for _, (x, y, third) in zip(range(steps), batches, strict=False):
            xs.append(np.asarray(x))
            ys.append(np.asarray(y))
            thirds.append(np.asarray(third))
    labels, outputs = np.concatenate(ys), model.predict(np.concatenate(xs), verbose=0)
    if ids is None:
        ids = [one.decode() if isinstance(one, bytes) else one for one in np.concatenate(thirds)]
    rows = list(zip(labels, outputs, strict=True))[: len(ids)]
    columns = {name: [f(y, output) for y, output in rows] for name, f in functions.items()}
    return pd.DataFrame(columns, index=ids)


def measured(name: str, model: keras.Model, batches: object, steps: int) -> dict[str, float]:
    """What the model's own metrics say; test data has ids where weights would be."""
    if isinstance(batches, tf.data.Dataset):
        batches = batches.map(lambda x, y, _: (x, y))
    else:
        steps -= 1 if name == "test" else 0  # the last batch is never filled
        batches = ((x, y) for x, y, _ in itertools.islice(batches, steps))
    values = model.evaluate(batches, steps=steps, verbose=0, return_dict=True)
    return {f"{name}_{metric}": float(value) for metric, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("run_name", "data_dir", "project_root"):
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    root = Path(given.project_root)
    run = root / "runs" / given.run_name
    values = yaml.safe_load((run / "config.yaml").read_text())
    config = ConfigStruct(**values)
    sys.path.append(str(root / config.src_code_path))
    keras.utils.set_random_seed(101)
    loader = find(config.data_loader_class)(config, given.data_dir)
    preprocessor = find(config.preprocessor_class)(config)
    functions = find(config.evaluator_class)(config).get_eval_funcs()

    def data(name: str) -> tuple:
        return preprocessor.add_preprocess(*getattr(loader, f"create_{name}_generator")())

    mlflow.set_tracking_uri(f"sqlite:///{root}/mlflow.db")
    mlflow.set_experiment(config.project_name)
    with mlflow.start_run(run_name=given.run_name):
        mlflow.log_params(flat(values))
        mlflow.set_tag("session_type", "training")
        model = find(config.model_builder_class)(config).get_compiled_model()
        train(model, data("training"), data("validation"), config.epochs, run)
        model = export(run)
        mlflow.log_artifacts(str(run / "exported"), "exported")
        with mlflow.start_run(run_name=f"{given.run_name}_evaluation", nested=True):
            for name, ids in (("validation", list(loader.get_validation_index())), ("test", None)):
                table = evaluate(model, *data(name), ids, functions)
                table.to_csv(run / f"{name}_report.csv")
                means = {f"{name}_{column}": float(table[column].mean()) for column in table}
                mlflow.log_metrics(means | measured(name, model, *data(name)))
                mlflow.log_artifact(str(run / f"{name}_report.csv"))


if __name__ == "__main__":
    main()
