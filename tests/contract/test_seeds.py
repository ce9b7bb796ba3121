"""The model files of the seed documents load and train as they are printed."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.contract.spec import Spec
from seeds import MISSING, examples, model_def, seed_files

FILES = dict(seed_files())
pytestmark = pytest.mark.skipif(not FILES, reason=MISSING)
NAMES = ["functions_functional", "functions_subclass", "first_functional", "first_subclass", "spec"]


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def spec(name: str, tmp_path: Path) -> Spec:
    (tmp_path / f"{name}.py").write_text(FILES[name])
    return load_spec(model_def(name), model_zoo=tmp_path)


def records(name: str, count: int = 8, *, labelled: bool = True) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(name, count, labelled=labelled))


def test_a_seed_file_takes_two_steps_eagerly(name: str, spec: Spec) -> None:
    model, optimizer = spec.build_model(), spec.make_optimizer()
    losses = []
    for features, labels in spec.batches(records(name), Mode.TRAINING, None, 4):
        with tf.GradientTape() as tape:
            loss = spec.loss(labels, model(features, training=True), None)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        losses.append(float(loss))
    assert len(losses) == 2
    assert np.isfinite(losses).all()


def test_a_seed_file_takes_two_steps_in_a_graph(name: str, spec: Spec) -> None:
    model, optimizer = spec.build_model(), spec.make_optimizer()
    first = next(iter(spec.batches(records(name), Mode.TRAINING, None, 4)))
    model(first[0])
    optimizer.build(model.trainable_variables)
    before = [v.numpy() for v in model.trainable_variables]

    @tf.function
    def train(serialized: tf.Tensor) -> tf.Tensor:
        data = tf.data.Dataset.from_tensor_slices(serialized)
        total = tf.constant(0.0)
        for features, labels in spec.batches(data, Mode.TRAINING, None, 4):
            with tf.GradientTape() as tape:
                loss = spec.loss(labels, model(features, training=True), None)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply(gradients, model.trainable_variables)
            total += loss
        return total

    assert np.isfinite(float(train(tf.constant(examples(name, 8)))))
    after = [v.numpy() for v in model.trainable_variables]
    assert any(np.abs(a - b).max() > 0 for a, b in zip(after, before, strict=True))
    assert int(optimizer.iterations) == 2


def test_a_seed_file_gives_metrics_and_predictions(name: str, spec: Spec) -> None:
    model = spec.build_model()
    if spec.metric_values is not None:
        (features, labels), *_ = spec.batches(records(name), Mode.EVALUATION, None, 8)
        values = spec.metric_values(labels, model(features))
        assert 0 <= float(values["accuracy"]) <= 1
    batches = spec.batches(records(name, labelled=False), Mode.PREDICTION, None, 8)
    assert [model(features).shape for features in batches] == [(8, 10)]


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
