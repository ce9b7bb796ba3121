"""The model files of the seed documents train and evaluate as they are printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.contract.load import load_spec
from elasticdl.data.recordio import RecordWriter
from seeds import MISSING, examples, model_def, seed_files

FILES = dict(seed_files())
NAMES = ["functions_functional", "functions_subclass", "first_functional", "first_subclass", "spec"]

pytestmark = pytest.mark.skipif(not FILES, reason=MISSING)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_file_trains_and_evaluates(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(FILES[name])
    data = tmp_path / "data.recordio"
    with data.open("wb") as file, RecordWriter(file) as writer:
        for record in examples(name, 40):
            writer.write(record)
    result = elasticdl.train(
        model_zoo=str(tmp_path),
        model_def=model_def(name),
        data=str(data),
        validation_data=str(data),
        num_epochs=4,
        minibatch_size=16,
        num_minibatches_per_task=2,
        seed=1,
    )
    assert result.steps == 4 * 3
    assert np.isfinite(result.history["loss"]).all()
    if not name.startswith("first"):  # the first contract has no metrics
        assert 0 <= result.metrics["accuracy"] <= 1


def test_the_seed_file_of_functions_prepares_an_image(tmp_path: Path) -> None:
    import PIL.Image

    (tmp_path / "m.py").write_text(FILES["functions_functional"])
    image = tmp_path / "3" / "a.png"
    image.parent.mkdir()
    PIL.Image.fromarray(np.zeros((28, 28), np.uint8)).save(image)
    spec = load_spec("m.model", model_zoo=tmp_path)
    assert spec.prepare_data is not None
    example = tf.train.Example.FromString(spec.prepare_data(str(image)))
    assert list(example.features.feature["label"].int64_list.value) == [3]
