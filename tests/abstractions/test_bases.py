"""The bases that users subclass, and the names under which they are found."""

from __future__ import annotations

import importlib
import logging
import pathlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from upath import UPath

import abstractions
from abstractions import (
    AugmentorBase,
    BaseClass,
    DataLoaderBase,
    EvalFunc,
    EvaluatorBase,
    GenericModelBuilderBase,
    ModelBuilderBase,
    PreprocessorBase,
    TFKerasTrainer,
    Trainer,
)
from abstractions.train import from_environment
from abstractions.utils import (
    ConfigStruct,
    check_for_config_file,
    get_logger,
    load_config_as_dict,
    load_config_file,
)
from elasticdl.errors import InvalidValue, NotFound
from elasticdl.experiments.estimators import save_estimator

SURFACE = [
    "AugmentorBase",
    "BaseClass",
    "DataLoaderBase",
    "EvalFunc",
    "EvaluatorBase",
    "GenericModelBuilderBase",
    "GenericTrainer",
    "ModelBuilderBase",
    "Orchestrator",
    "PreprocessorBase",
    "TFKerasTrainer",
    "Trainer",
]
MODULES = [
    "augmentation",
    "base_class",
    "data_loading",
    "evaluate",
    "evaluation",
    "model_building",
    "orchestration",
    "preprocessing",
    "train",
    "training",
    "utils",
]


def test_all_is_the_frozen_list() -> None:
    assert sorted(abstractions.__all__) == SURFACE == sorted(abstractions._HOMES)
    assert set(SURFACE) <= set(dir(abstractions))
    for name in SURFACE:
        home = importlib.import_module(f"abstractions.{abstractions._HOMES[name]}")
        assert getattr(abstractions, name) is getattr(home, name)
        assert name in home.__all__


@pytest.mark.parametrize("name", MODULES)
def test_modules_have_the_names_that_users_know(name: str) -> None:
    importlib.import_module(f"abstractions.{name}")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'DataLoder'"):
        abstractions.DataLoder  # noqa: B018


def test_nothing_heavy_is_imported_with_the_bases() -> None:
    look = (
        "import sys; from abstractions import *; import abstractions.utils; "
        "print({'tensorflow', 'keras', 'numpy', 'mlflow', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


class Component(BaseClass):
    def _set_defaults(self) -> None:
        self.rate = 0.5

    def _load_params(self, config: Any) -> None:
        self.rate = config.model_builder.rate


def test_defaults_hold_without_a_config() -> None:
    component = Component()
    assert (component.rate, component.config) == (0.5, None)
    assert Component(None).rate == 0.5


def test_a_config_wins_over_defaults() -> None:
    config = ConfigStruct(model_builder={"rate": 0.1})
    assert Component(config).rate == 0.1
    assert Component(config).config is config
    assert Component({"model_builder": {"rate": 0.2}}).rate == 0.2


def test_a_component_needs_neither_hook() -> None:
    class Bare(BaseClass):
        pass

    assert Bare(ConfigStruct()).config == ConfigStruct()


class Loader(DataLoaderBase):
    def create_training_generator(self) -> Any:
        return iter(()), 0

    create_validation_generator = create_test_generator = create_training_generator


def test_the_data_directory_is_a_path() -> None:
    assert Loader(None, "some/where").data_dir == pathlib.Path("some/where")
    assert Loader(ConfigStruct(data_dir="there")).data_dir == pathlib.Path("there")
    assert Loader(ConfigStruct(data_dir="there"), "here").data_dir == pathlib.Path("here")
    assert Loader({"data_dir": "there"}).data_dir == pathlib.Path("there")
    assert Loader().data_dir is None
    assert isinstance(Loader(None, "memory://data").data_dir, UPath)
    assert Loader().get_validation_index() is None


def test_a_base_cannot_be_made_without_its_methods() -> None:
    for base in (DataLoaderBase, AugmentorBase, PreprocessorBase, ModelBuilderBase, EvaluatorBase):
        with pytest.raises(TypeError, match="abstract"):
            base()


class Preprocessor(PreprocessorBase):
    def image_preprocess(self, image: Any) -> Any:
        return image + 1

    def label_preprocess(self, label: Any) -> Any:
        return -label

    def add_image_preprocess(self, generator: Any) -> Any:
        return [(self.image_preprocess(x), y, w) for x, y, w in generator]

    def add_label_preprocess(self, generator: Any) -> Any:
        return [(x, self.label_preprocess(y), w) for x, y, w in generator]

    def batchify(self, generator: Any, n_data_points: int) -> Any:
        return [generator], 1


def test_weights_are_passed_on_when_their_hooks_are_not_written() -> None:
    assert Preprocessor().add_preprocess([(1, 2, 3)], 1) == ([[(2, -2, 3)]], 1)
    assert Preprocessor().weight_preprocess(0.5) == 0.5


def test_weights_are_preprocessed_when_their_hooks_are_written() -> None:
    class Weighted(Preprocessor):
        def add_weight_preprocess(self, generator: Any) -> Any:
            return [(x, y, 2 * w) for x, y, w in generator]

    assert Weighted().add_preprocess([(1, 2, 3)], 1) == ([[(2, -2, 6)]], 1)


def test_an_own_add_preprocess_needs_none_of_the_steps() -> None:
    class Whole(PreprocessorBase):
        def add_preprocess(self, generator: Any, n_data_points: int) -> Any:
            return generator, n_data_points

    class Further(Whole):
        pass

    assert Further().add_preprocess([1], 1) == ([1], 1)


def test_validation_data_is_augmented_as_training_data_is() -> None:
    class Augmentor(AugmentorBase):
        def add_augmentation(self, generator: Any) -> Any:
            return [x + 1 for x in generator]

    assert Augmentor().add_validation_augmentation([1]) == [2]


def test_an_evaluation_function_has_a_name() -> None:
    class Named(EvalFunc):
        name = "named"

        def get_func(self) -> Any:
            return max

    assert (EvalFunc("a", min).name, EvalFunc("a", min).get_func()) == ("a", min)
    assert (Named().name, Named().get_func()) == ("named", max)
    with pytest.raises(TypeError, match="a has no function"):
        EvalFunc("a").get_func()


def test_an_evaluation_function_may_say_what_is_better() -> None:
    class Error(EvalFunc):
        higher_is_better = False

    assert EvalFunc("a", min).higher_is_better is None
    assert EvalFunc("a", min, higher_is_better=True).higher_is_better is True
    assert Error("a", min).higher_is_better is False


class Builder(ModelBuilderBase):
    def get_compiled_model(self) -> Any:
        model = keras.Sequential([keras.Input((3,)), Doubled()])
        model.compile(loss="mse")
        return model


class Doubled(keras.layers.Layer):
    def call(self, inputs: Any) -> Any:
        return 2 * inputs


@pytest.mark.usefixtures("tensorflow")
def test_a_builder_loads_what_it_built_with_its_own_classes(tmp_path: Path) -> None:
    builder = Builder()
    assert (builder.get_callbacks(), builder.get_class_weight()) == ([], None)
    builder.get_compiled_model().save(tmp_path / "model.keras")
    for where in (tmp_path, tmp_path / "model.keras"):
        loaded = builder.load(where)
        np.testing.assert_array_equal(loaded(np.ones((1, 3))), np.full((1, 3), 2.0))
    with pytest.raises(NotFound, match="There is no exported model"):
        builder.load(tmp_path / "gone")


def test_a_generic_builder_loads_what_it_fitted(tmp_path: Path) -> None:
    from sklearn.dummy import DummyClassifier

    class Generic(GenericModelBuilderBase):
        def fit(self, *_: Any) -> Any:
            return DummyClassifier().fit([[0]], [1])

    save_estimator(Generic().fit(), tmp_path)
    assert Generic().load(tmp_path).predict([[5]]) == [1]
    assert Generic().evaluate(iter(()), 0) == {}


def test_a_config_file_is_read_whatever_keys_it_has(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("mine: {rate: 1e-3}\nepochs: 2\n")
    config = load_config_file(tmp_path / "config.yaml")
    assert (config.mine.rate, config.epochs, config.seed) == (1e-3, 2, 101)
    assert load_config_as_dict(tmp_path / "config.yaml") == {"mine": {"rate": 1e-3}, "epochs": 2}
    assert check_for_config_file(tmp_path) == tmp_path / "config.yaml"
    with pytest.raises(NotFound, match="There is no config"):
        load_config_file(tmp_path / "gone.yaml")
    (tmp_path / "other.yaml").write_text("1: 2\n")
    with pytest.raises(InvalidValue, match="has the key 1, which is no text"):
        load_config_file(tmp_path / "other.yaml")
    with pytest.raises(InvalidValue, match="2 configs"):
        check_for_config_file(tmp_path)


def test_a_logger_writes_each_line_once(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        logger = get_logger("one of mine")
    try:
        assert len(logger.handlers) == 1
        logger.info("hello")
        assert capsys.readouterr().err.count("hello") == 1
    finally:
        logging.getLogger("one of mine").handlers.clear()


def test_a_trainer_knows_whether_its_run_has_an_export(tmp_path: Path) -> None:
    assert Trainer is TFKerasTrainer
    trainer = TFKerasTrainer(None, tmp_path / "runs" / "one")
    assert not trainer.check_for_exported()
    (tmp_path / "runs" / "one" / "exported" / "savedmodel").mkdir(parents=True)
    assert trainer.check_for_exported()


def test_the_environment_gives_what_was_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVAL_REPORTS_DIR", raising=False)
    assert from_environment(["--run_name=a"]) == []
    monkeypatch.setenv("EVAL_REPORTS_DIR", "/reports")
    assert from_environment(["--run_name=a"]) == ["--eval_reports_dir=/reports"]
    assert from_environment(["--eval-reports-dir", "/mine"]) == []


@pytest.mark.parametrize("module", ["abstractions.train", "abstractions.evaluate"])
def test_the_old_commands_show_errors_as_the_new_one(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--run_name", "gone"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("Error: There is no run 'gone'")
