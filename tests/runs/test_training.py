"""What a model builder, an augmentor and an evaluator may ask of a training."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from elasticdl.errors import ContractError, UnknownName
from elasticdl.experiments.stages import Experiment
from elasticdl.runtime.result import Result
from elasticdl.tracking.events import read_events
from runs.project_files import MODELS, PREPROCESSING, VALIDATION, write_project, write_run

pytestmark = pytest.mark.usefixtures("tensorflow")


def make(root: Path, sources: dict[str, str] | None = None, **config: Any) -> Experiment:
    write_project(root, **(sources or {}))
    write_run(root, **config)
    return Experiment(root, "one", mlflow=False, log_level="ERROR")


def events_of(root: Path, kind: str) -> list[dict[str, Any]]:
    return [e for e in read_events(root / "runs" / "one" / "events.jsonl") if e["event"] == kind]


LINEAR = """
import keras
from abstractions import ModelBuilderBase


class Builder(ModelBuilderBase):
    def get_compiled_model(self):
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3, "softmax")])
        model.compile(
            keras.optimizers.SGD(0.1),
            "sparse_categorical_crossentropy",
            weighted_metrics=["accuracy"],
        )
        return model

    def get_class_weight(self):
        return {0: 3.0, 1: 0.5}
"""

WEIGHTED = """

class Weighted(Datasets):
    def create_training_generator(self):
        x, y = self._part("training")
        weights = np.linspace(0.5, 2, len(y)).astype("float32")
        return tf.data.Dataset.from_tensor_slices((x, y, weights)), len(y)
"""


def test_class_and_sample_weights_are_multiplied(tmp_path: Path) -> None:
    """`fit` takes one of them only: it gets their product."""
    from runs.project_files import DATASET

    sources = {"models": LINEAR, "dataset": DATASET + WEIGHTED}
    root = tmp_path / "p"
    experiment = make(root, sources, variant="datasets", data_loader_class="dataset.Weighted")
    result = experiment.train()

    data = np.load(root / "data" / "points.npz")
    x, y = data["training_x"] / 2, data["training_y"]
    weights = np.linspace(0.5, 2, len(y)) * np.array([3.0, 0.5, 1.0])[y]
    model = experiment._load().model_builder.get_compiled_model()
    keras.utils.set_random_seed(101)
    model = experiment._load().model_builder.get_compiled_model()
    history = model.fit(
        x, y, sample_weight=weights, batch_size=8, epochs=3, shuffle=False, verbose=0
    ).history
    np.testing.assert_allclose(result.history["loss"], history["loss"], rtol=1e-4)
    np.testing.assert_allclose(result.history["accuracy"], history["accuracy"], rtol=1e-4)


@pytest.mark.parametrize("weights", ["[1, 2]", "{'cat': 2}", "{0: -1}", "{0: float('nan')}"])
def test_class_weights_of_the_wrong_form(tmp_path: Path, weights: str) -> None:
    models = LINEAR.replace("{0: 3.0, 1: 0.5}", weights)
    with pytest.raises(ContractError, match="get_class_weight returned"):
        make(tmp_path / "p", {"models": models}).train()


CALLBACKS = (
    MODELS
    + """
    def get_callbacks(self):
        return [
            keras.callbacks.EarlyStopping("val_loss", patience=1, min_delta=100),
            keras.callbacks.CSVLogger("log.csv"),
        ]
"""
)


def test_callbacks_of_the_builder(tmp_path: Path) -> None:
    experiment = make(tmp_path / "p", {"models": CALLBACKS}, epochs=9)
    result = experiment.train()
    assert result.status == "stopped" and len(result.history["loss"]) == 2
    header = Path("log.csv").read_text().splitlines()[0]
    assert header == "epoch,accuracy,loss,val_accuracy,val_loss"


AUGMENTATION = """
from abstractions import AugmentorBase


class Augmentor(AugmentorBase):
    def add_augmentation(self, generator):
        for x, y, w in generator:
            yield x + 100, y, w

    def add_validation_augmentation(self, generator):
        for x, y, w in generator:
            yield x - 100, y, w
"""

SEEN = (
    PREPROCESSING
    + """

class Seen(InGenerators):
    def _batches(self, generator):
        for batch in super()._batches(generator):
            with open("seen.txt", "a") as file:
                print(round(float(batch[0].mean()), -1), file=file)
            yield batch
"""
)


@pytest.mark.parametrize(
    ("switches", "seen"),
    [({}, {0}), ({"do_train_augmentation": True}, {0, 50}),
     ({"do_train_augmentation": True, "do_validation_augmentation": True}, {0, 50, -50})],
)  # fmt: skip
def test_augmentation_where_it_is_switched_on(
    tmp_path: Path, switches: dict[str, bool], seen: set[int]
) -> None:
    experiment = make(
        tmp_path / "p",
        {"augmentation": AUGMENTATION, "preprocessing": SEEN},
        augmentor_class="augmentation.Augmentor",
        preprocessor_class="preprocessing.Seen",
        **switches,
    )
    experiment.run()
    # The reports are on the data as it is, so 0 is always among them.
    found = {int(float(line)) for line in Path("seen.txt").read_text().split()}
    assert found == seen


def test_seed_decides(tmp_path: Path) -> None:
    histories = [
        make(tmp_path / name, seed=seed).train().history["loss"]
        for name, seed in (("a", 5), ("b", 5), ("c", 6))
    ]
    assert histories[0] == histories[1] != histories[2]


def test_export_metric_that_is_never_logged(tmp_path: Path) -> None:
    with pytest.raises(UnknownName) as caught:
        make(tmp_path / "p", export={"metric": "val_acuracy", "mode": "max"}).train()
    message = str(caught.value)
    assert "Did you mean 'val_accuracy'?" in message and "loss, accuracy, val_loss" in message
    assert not (tmp_path / "p" / "runs" / "one" / "events.jsonl").exists()


def test_export_by_a_training_metric(tmp_path: Path) -> None:
    root = tmp_path / "p"
    make(root, export={"metric": "accuracy", "mode": "MAX"}).run()
    (exported,) = events_of(root, "exported")
    values = {e["epoch"]: e["accuracy"] for e in events_of(root, "epoch")}
    assert exported["value"] == max(values.values()) == values[exported["epoch"]]


def test_model_that_is_not_compiled(tmp_path: Path) -> None:
    models = MODELS.replace("        model.compile(", "        dict(a=").replace(
        'dict(a="adam", "sparse_categorical_crossentropy", metrics=["accuracy"])', "pass"
    )
    with pytest.raises(ContractError, match="not compiled"):
        make(tmp_path / "p", {"models": models}).train()


def test_builder_that_returns_no_model(tmp_path: Path) -> None:
    models = MODELS.replace("return model", "return None")
    with pytest.raises(ContractError, match="get_compiled_model returned"):
        make(tmp_path / "p", {"models": models}).train()


def test_custom_losses_are_resumed_and_evaluated(tmp_path: Path) -> None:
    models = MODELS.replace('"sparse_categorical_crossentropy"', "own").replace(
        "class Builder",
        "def own(y, p):\n    return keras.losses.sparse_categorical_crossentropy(y, p) * 2\n\n\nclass Builder",
    )
    root = tmp_path / "p"
    make(root, {"models": models}).train()
    result = Experiment(root, "one", mlflow=False, log_level="ERROR", overrides=["epochs=4"]).run()
    assert result.test_metrics["loss"] == pytest.approx(2 * result.test_metrics["ce"], rel=1e-4)


def test_evaluator_without_functions(tmp_path: Path) -> None:
    evaluation = """
from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    def get_eval_funcs(self):
        return None
"""
    result = make(tmp_path / "p", {"evaluation": evaluation}).run()
    assert set(result.test_metrics) == {"loss", "accuracy"}


def test_no_evaluator_at_all(tmp_path: Path) -> None:
    result = make(tmp_path / "p", evaluator_class=None).run()
    assert set(result.test_metrics) == {"loss", "accuracy"}


def test_users_evaluation_function_that_raises(tmp_path: Path) -> None:
    evaluation = """
from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    def get_eval_funcs(self):
        return {"odd": lambda y, p: 1 / 0}
"""
    with pytest.raises(ZeroDivisionError) as caught:
        make(tmp_path / "p", {"evaluation": evaluation}).run()
    assert "odd" in caught.value.__notes__[0] and "v0" in caught.value.__notes__[0]


ESTIMATOR = """
import numpy as np
from abstractions import GenericModelBuilderBase
from sklearn.linear_model import LogisticRegression


class Builder(GenericModelBuilderBase):
    def fit(self, train_data_gen, n_iter_train, val_data_gen, n_iter_val):
        batches = [next(train_data_gen) for _ in range(n_iter_train)]
        self.seen = sum(len(y) for _, y, _ in batches)
        assert self.seen == sum(len(y) for _, y, _ in train_data_gen)
        x, y, w = (np.concatenate(part) for part in zip(*batches))
        self.model = LogisticRegression().fit(x, y, sample_weight=w)
        return self.model

    def evaluate(self, data_gen, n_iter):
        return {"score": np.mean([self.model.score(x, y) for x, y, _ in data_gen])}
"""


@pytest.mark.parametrize("variant", ["generators", "datasets"])
def test_scikit_learn_model(tmp_path: Path, variant: str) -> None:
    root = tmp_path / "p"
    experiment = make(root, {"models": ESTIMATOR}, variant=variant)
    checked = dict(experiment.check().facts)
    assert checked["training"].startswith("53 data points")
    result = experiment.run()
    assert result.status == "completed" and 0 < result.test_metrics["score"] <= 1
    assert len((root / "runs/one/validation_report.csv").read_text().splitlines()) == VALIDATION + 1
    assert (root / "runs" / "one" / "exported" / "model.skops").is_file()
    again = Experiment(root, "one", mlflow=False, log_level="ERROR").run()
    assert again.test_metrics["ce"] == result.test_metrics["ce"]


def test_check_tells_what_a_run_would_do(tmp_path: Path) -> None:
    root = tmp_path / "p"
    facts = dict(make(root).check().facts)
    assert "7 batches: features float32 of shape (8, 6)" in facts["training"]
    assert facts["logged"] == "loss, accuracy, val_loss, val_accuracy"
    assert facts["evaluation"] == "ce, hit"
    assert [path.name for path in (root / "runs" / "one").iterdir()] == ["config.yaml"]


def test_trial_run_goes_through_everything_and_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "p"
    write_project(root)
    write_run(root)
    before = sorted(path for path in root.rglob("*") if "__pycache__" not in path.parts)
    result: Result = Experiment(
        root, "one", mlflow=False, log_level="ERROR", fast_dev_run=True
    ).run()
    assert result.steps == 2 and set(result.test_metrics) == {"loss", "accuracy", "ce", "hit"}
    assert sorted(p for p in root.rglob("*") if "__pycache__" not in p.parts) == before


@pytest.mark.parametrize(
    ("evaluation", "message"),
    [
        ('return {"a": lambda y: 1.0}', "is called with (y_true, y_pred)"),
        ('return "text"', "get_eval_funcs"),
    ],
)
def test_evaluator_is_looked_at_before_the_first_epoch(
    tmp_path: Path, evaluation: str, message: str
) -> None:
    text = f"""
from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    def get_eval_funcs(self):
        {evaluation}
"""
    root = tmp_path / "p"
    with pytest.raises(ContractError, match=re.escape(message)):
        make(root, {"evaluation": text}).run()
    assert not (root / "runs" / "one" / "events.jsonl").exists()


def test_data_that_does_not_fit_is_named(tmp_path: Path) -> None:
    from runs.project_files import DATASET

    dataset = (
        DATASET
        + """

class Wide(Datasets):
    def create_test_generator(self):
        dataset, n = super().create_test_generator()
        return dataset.map(lambda x, y, i: (tf.concat([x, x], 0), y, i)), n
"""
    )
    experiment = make(
        tmp_path / "p", {"dataset": dataset}, variant="datasets", data_loader_class="dataset.Wide"
    )
    with pytest.raises(ContractError, match="Of the test data: The model cannot take") as caught:
        experiment.run()
    assert "preprocessor" in str(caught.value)


def test_model_compiled_without_a_loss(tmp_path: Path) -> None:
    models = MODELS.replace(
        '"adam", "sparse_categorical_crossentropy", metrics=["accuracy"]', '"adam"'
    )
    with pytest.raises(ContractError, match="compiled without a loss"):
        make(tmp_path / "p", {"models": models}).train()


RATES = (
    MODELS
    + """
    def get_callbacks(self):
        class Own(keras.callbacks.Callback):
            def on_epoch_end(self, epoch, logs=None):
                logs["val_own"] = float(epoch)

        return [keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 / (epoch + 1)), Own()]
"""
)


@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_what_callbacks_log_is_logged_and_can_be_exported_by(tmp_path: Path) -> None:
    root = tmp_path / "p"
    result = make(root, {"models": RATES}, export={"metric": "val_own", "mode": "max"}).run()
    assert result.history["learning_rate"] == pytest.approx([0.1, 0.05, 0.1 / 3])
    (exported,) = events_of(root, "exported")
    assert (exported["epoch"], exported["value"]) == (2, 2.0)


TWO_OUTPUTS = """
import keras
from abstractions import ModelBuilderBase


class Builder(ModelBuilderBase):
    def get_compiled_model(self):
        inputs = keras.Input((6,))
        outputs = {
            "a": keras.layers.Dense(3, "softmax", name="a")(inputs),
            "b": keras.layers.Dense(1, name="b")(inputs),
        }
        model = keras.Model(inputs, outputs)
        model.compile("sgd", {"a": "sparse_categorical_crossentropy", "b": "mse"})
        return model
"""


def test_losses_of_several_outputs_are_the_same_in_report_and_history(tmp_path: Path) -> None:
    preprocessing = (
        PREPROCESSING
        + """

class Two(InDatasets):
    def add_label_preprocess(self, generator):
        return generator.map(lambda x, y, w: (x, {"a": y, "b": tf.cast(y, tf.float32)[None]}, w))
"""
    )
    root = tmp_path / "p"
    result = make(
        root,
        {"models": TWO_OUTPUTS, "preprocessing": preprocessing},
        variant="datasets",
        preprocessor_class="preprocessing.Two",
        evaluator_class=None,
        epochs=1,
    ).run()
    for name in ("loss", "a_loss", "b_loss"):
        assert result.metrics[name] == pytest.approx(result.history[f"val_{name}"][0], rel=1e-5)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize(
    "model", ["tree.DecisionTreeClassifier", "ensemble.RandomForestClassifier"]
)
def test_trees_are_exported_too(tmp_path: Path, model: str) -> None:
    module, name = model.split(".")
    models = ESTIMATOR.replace("linear_model import LogisticRegression", f"{module} import {name}")
    models = models.replace("LogisticRegression()", f"{name}()")
    result = make(tmp_path / "p", {"models": models}).run()
    assert 0 < result.test_metrics["score"] <= 1
