"""A small project of five components without TensorFlow, for what is done before a model is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from elasticdl.experiments.components import Components, load_components
from elasticdl.experiments.config import load_config
from elasticdl.experiments.project import Project

CONFIG = """
project_name: numbers
src_code_path: src
data_loader_class: dataset.DataLoader
augmentor_class: augmentation.Augmentor
preprocessor_class: preprocessing.Preprocessor
model_builder_class: models.ModelBuilder
evaluator_class: evaluation.Evaluator
epochs: 2
batch_size: 4
data_loader:
  n: 10
"""

FILES = {
    "dataset.py": """
from abstractions import DataLoaderBase
from helper import points


class DataLoader(DataLoaderBase):
    def _load_params(self, config):
        self.n = config.data_loader.n

    def create_training_generator(self):
        return points(self.n), self.n

    def create_validation_generator(self):
        return points(6), 6

    def create_test_generator(self):
        return points(3), 3

    def get_validation_index(self):
        return [f"point {i}" for i in range(6)]
""",
    "helper.py": """
def points(n):
    for i in range(n):
        yield i, i, 1
""",
    "augmentation.py": """
from abstractions import AugmentorBase


class Augmentor(AugmentorBase):
    def add_augmentation(self, generator):
        return ((x + 100, y, w) for x, y, w in generator)
""",
    "preprocessing.py": """
import itertools

from abstractions import PreprocessorBase


class Preprocessor(PreprocessorBase):
    def _load_params(self, config):
        self.batch_size = config.batch_size

    def image_preprocess(self, image):
        return 2 * image

    def label_preprocess(self, label):
        return -label

    def add_image_preprocess(self, generator):
        return ((self.image_preprocess(x), y, w) for x, y, w in generator)

    def add_label_preprocess(self, generator):
        return ((x, self.label_preprocess(y), w) for x, y, w in generator)

    def batchify(self, generator, n_data_points):
        batches = iter(lambda: list(itertools.islice(generator, self.batch_size)), [])
        return batches, -(-n_data_points // self.batch_size)
""",
    "models.py": """
from abstractions import ModelBuilderBase


class ModelBuilder(ModelBuilderBase):
    def get_compiled_model(self):
        raise AssertionError("not here")
""",
    "evaluation.py": """
from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    def get_eval_funcs(self):
        return {"error": lambda y_true, y_pred: abs(y_true - y_pred)}
""",
}

Load = Callable[..., Components]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project's directory, which is the working directory too."""
    for name, text in FILES.items():
        write(tmp_path / "src" / name, text)
    write(tmp_path / "runs" / "first" / "config.yaml", CONFIG)
    (tmp_path / "data").mkdir()
    return tmp_path


@pytest.fixture
def load(project: Path) -> Load:
    """Load the project's components, with overrides of its config."""

    def load_it(*overrides: str, data_dir: str | None = "data") -> Components:
        opened = Project.open(project, "first")
        return load_components(opened, load_config(opened.config_file, overrides), data_dir)

    return load_it


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
