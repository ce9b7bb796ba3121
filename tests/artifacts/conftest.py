"""A zoo whose model needs several files, trained once for all tests here."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import elasticdl

FILES = {
    "shop/__init__.py": "",
    "shop/model.py": """
import keras
import tensorflow as tf
from pathlib import Path

from elasticdl import Mode
from shop.losses import loss

WORDS = (Path(__file__).parent / "words" / "colours.txt").read_text().split()


def custom_model(units=4):
    inputs = {
        "size": keras.Input((2,), name="size"),
        "colour": keras.Input((), name="colour", dtype="string"),
    }
    colour = keras.layers.StringLookup(vocabulary=WORDS, output_mode="one_hot")(inputs["colour"])
    size = keras.layers.Reshape((1, 2, 1))(inputs["size"])
    size = keras.layers.Flatten()(keras.layers.RandomFlip("horizontal")(size))
    x = keras.layers.Concatenate()([size, colour])
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dense(units)(x)))


def optimizer(lr=0.01):
    return keras.optimizers.Adam(lr)


def eval_metrics_fn():
    return {"mae": keras.metrics.MeanAbsoluteError()}


def dataset_fn(dataset, mode, metadata):
    from shop import columns

    def parse(row):
        values = dict(zip(metadata.column_names, tf.unstack(row)))
        features = columns.features(values)
        if mode == Mode.PREDICTION:
            return features
        return features, [tf.strings.to_number(values["price"])]

    return dataset.map(parse)
""",
    "shop/losses.py": "def loss(labels, output):\n    return (labels - output) ** 2\n",
    "shop/columns.py": """
import tensorflow as tf


def features(values):
    numbers = [tf.strings.to_number(values[name]) for name in ("width", "height")]
    return {"size": tf.stack(numbers), "colour": values["colour"]}
""",
    "shop/words/colours.txt": "red green blue",
    "shop/unused.py": "raise RuntimeError('nobody imports this')\n",
    "other.py": "raise RuntimeError('nor this')\n",
    ".env": "SECRET=1\n",
}


@dataclass(frozen=True)
class Trained:
    """A run whose zoo is gone, and where it was and its data are."""

    run: Path
    zoo: Path
    data: Path
    result: elasticdl.Result

    @property
    def model(self) -> Path:
        return self.run / "model"


def write_zoo(root: Path) -> Path:
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def write_data(path: Path) -> Path:
    random = np.random.default_rng(0)
    sizes = random.random((120, 2))
    colours = random.choice(["red", "green", "blue"], 120)
    rows = [
        f"{w:.4f},{h:.4f},{c},{w * h + (c == 'red'):.4f}"
        for (w, h), c in zip(sizes, colours, strict=True)
    ]
    path.write_text("\n".join(["width,height,colour,price", *rows]) + "\n")
    return path


@pytest.fixture(scope="session")
def trained(tensorflow: None, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    root = tmp_path_factory.mktemp("trained")
    zoo, data = write_zoo(root / "zoo"), write_data(root / "shop.csv")
    result = elasticdl.train(
        model_zoo=str(zoo),
        model_def="shop.model.custom_model",
        model_params="units=6, lr=0.02",
        data=str(data),
        validation_data=str(data),
        num_epochs=2,
        minibatch_size=20,
        output=str(root / "run"),
        log_level="WARNING",
    )
    shutil.rmtree(zoo)
    (root / "run" / "job.json").unlink()
    return Trained(root / "run", zoo, data, result)


@pytest.fixture
def copied(trained: Trained, tmp_path: Path) -> Path:
    """A copy of the trained model that a test may damage."""
    return Path(shutil.copytree(trained.model, tmp_path / "copied"))
