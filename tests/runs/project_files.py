"""A small project with the five components, in both variants, written where a test wants it.

200 points of 3 classes in `data/points.npz`: 53 to train on, 21 to validate, 22 to test; batches of 8 never fit.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import yaml

TRAINING, VALIDATION, TEST = 53, 21, 22
BATCH = 8

DATASET = '''
import numpy as np
import tensorflow as tf
from abstractions import DataLoaderBase


class Loader(DataLoaderBase):
    def __init__(self, config, data_dir):
        super().__init__(config, data_dir)
        self.points = dict(np.load(self.data_dir / "points.npz"))

    def _part(self, name):
        return self.points[f"{name}_x"], self.points[f"{name}_y"]

    def get_validation_index(self):
        return [f"v{i}" for i in range(len(self.points["validation_y"]))]


class Generators(Loader):
    """Without end for training and validation, with an end for the test, as the first projects had it."""

    def create_training_generator(self):
        x, y = self._part("training")
        return self._endless(x, y, True), len(y)

    def create_validation_generator(self):
        x, y = self._part("validation")
        return self._endless(x, y, False), len(y)

    def create_test_generator(self):
        x, y = self._part("test")
        return ((x[i], y[i], f"t{i}.png") for i in range(len(y))), len(y)

    def _endless(self, x, y, shuffle):
        order = np.arange(len(y))
        while True:
            if shuffle:
                np.random.shuffle(order)
            for i in order:
                yield x[i], y[i], 1


class Datasets(Loader):
    def create_training_generator(self):
        x, y = self._part("training")
        dataset = tf.data.Dataset.from_tensor_slices((x, y, tf.ones(len(y))))
        return dataset.shuffle(len(y)), len(y)

    def create_validation_generator(self):
        x, y = self._part("validation")
        return tf.data.Dataset.from_tensor_slices((x, y, tf.ones(len(y)))), len(y)

    def create_test_generator(self):
        x, y = self._part("test")
        ids = [f"t{i}.png" for i in range(len(y))]
        return tf.data.Dataset.from_tensor_slices((x, y, ids)), len(y)
'''

PREPROCESSING = """
import numpy as np
import tensorflow as tf
from abstractions import PreprocessorBase


class Common(PreprocessorBase):
    def image_preprocess(self, image):
        return image / 2

    def label_preprocess(self, label):
        return label

    def _n_iter(self, n):
        return -(-n // self.config.batch_size)


class InGenerators(Common):
    def add_image_preprocess(self, generator):
        while True:
            x, y, w = next(generator)
            yield self.image_preprocess(x), y, w

    def add_label_preprocess(self, generator):
        return generator

    def batchify(self, generator, n):
        return self._batches(generator), self._n_iter(n)

    def _batches(self, generator):
        while True:
            points = [next(generator) for _ in range(self.config.batch_size)]
            yield tuple(np.array(part) for part in zip(*points))


class InDatasets(Common):
    def add_image_preprocess(self, generator):
        return generator.map(lambda x, y, w: (self.image_preprocess(x), y, w))

    def add_label_preprocess(self, generator):
        return generator

    def batchify(self, generator, n):
        return generator.batch(self.config.batch_size).repeat().prefetch(2), self._n_iter(n)
"""

MODELS = """
import keras
from abstractions import ModelBuilderBase


class Builder(ModelBuilderBase):
    def _set_defaults(self):
        self.units = 8

    def _load_params(self, config):
        self.units = config.model_builder.units

    def get_compiled_model(self):
        model = keras.Sequential([
            keras.Input((6,)),
            keras.layers.Dense(self.units, "relu"),
            keras.layers.Dropout(0.3),
            keras.layers.Dense(3, "softmax"),
        ])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model
"""

EVALUATION = """
import numpy as np
from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    def get_eval_funcs(self):
        return {"ce": lambda y, p: -np.log(p[y]), "hit": lambda y, p: np.argmax(p) == y}
"""

CONFIG: dict[str, Any] = {
    "src_code_path": "src",
    "data_loader_class": "dataset.Generators",
    "preprocessor_class": "preprocessing.InGenerators",
    "model_builder_class": "models.Builder",
    "evaluator_class": "evaluation.Evaluator",
    "epochs": 3,
    "batch_size": BATCH,
    "model_builder": {"units": 8},
    "export": {"metric": "val_loss", "mode": "min"},
    "project_name": "points",
    "data_dir": "data",
}
VARIANTS = {
    "generators": {},
    "datasets": {
        "data_loader_class": "dataset.Datasets",
        "preprocessor_class": "preprocessing.InDatasets",
    },
}


def write_project(root: Path, **sources: str) -> Path:
    """The sources (more of them, or others, by keyword) and the data; no run yet."""
    files = {
        "dataset": DATASET,
        "preprocessing": PREPROCESSING,
        "models": MODELS,
        "evaluation": EVALUATION,
    }
    (root / "src").mkdir(parents=True)
    for name, text in (files | sources).items():
        (root / "src" / f"{name}.py").write_text(textwrap.dedent(text))
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(3, 6)) * 2
    arrays = {}
    for part, count in (("training", TRAINING), ("validation", VALIDATION), ("test", TEST)):
        y = rng.integers(0, 3, count)
        arrays[f"{part}_y"] = y
        arrays[f"{part}_x"] = (centres[y] + rng.normal(size=(count, 6))).astype("float32")
    (root / "data").mkdir()
    np.savez(root / "data" / "points.npz", **arrays)
    return root


def write_run(root: Path, name: str = "one", variant: str = "generators", **config: Any) -> Path:
    """A run directory with its config; keywords change it."""
    directory = root / "runs" / name
    directory.mkdir(parents=True)
    text = yaml.safe_dump(CONFIG | VARIANTS[variant] | config)
    (directory / "config.yaml").write_text(text)
    return directory
