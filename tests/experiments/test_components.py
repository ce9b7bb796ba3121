"""The five components: found, checked, constructed, and called in their order."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from upath import UPath

from abstractions import EvalFunc
from elasticdl.errors import (
    ContractError,
    DataError,
    InvalidValue,
    NotFound,
    UnknownKey,
    UnknownName,
)
from elasticdl.experiments.eval_functions import named_functions

from .conftest import FILES, Load, write

PREPROCESSOR_WITHOUT_BASE = """
class Preprocessor:
    def __init__(self, config):
        self.batch_size = config.batch_size

    def add_image_preprocess(self, generator):
        return generator

    def add_label_preprocess(self, generator):
        return generator

    def batchify(self, generator, n):
        return list(generator), n
"""


def change(project: Path, name: str, old: str, new: str) -> None:
    """Replace a part of one of the project's files."""
    text = (project / "src" / name).read_text()
    assert old in text
    write(project / "src" / name, text.replace(old, new))


def test_components_are_loaded_from_the_projects_own_files(load: Load, project: Path) -> None:
    loaded = load()
    assert loaded.data_loader.data_dir == project / "data"
    assert isinstance(loaded.data_loader.data_dir, Path)
    assert loaded.data_loader.config.data_dir == str(project / "data")
    assert loaded.source == project / "src"
    assert set(loaded.files) == {name for name in FILES if name != "augmentation.py"}
    assert loaded.augmentor is None
    assert not loaded.is_generic
    assert str(project) not in sys.path
    assert "dataset" not in sys.modules


def test_an_installed_package_does_not_shadow_the_projects_module(
    load: Load, project: Path
) -> None:
    write(project / "src" / "packaging.py", FILES["dataset.py"])  # is installed as well
    loaded = load("data_loader_class=packaging.DataLoader")
    assert loaded.training().num_points == 10


def test_a_class_may_come_from_an_installed_package(load: Load) -> None:
    with pytest.raises(ContractError, match=r"EvalFunc .* lacks get_eval_funcs"):
        load("evaluator_class=abstractions.evaluation.EvalFunc")


def test_batches_go_through_the_whole_chain(load: Load) -> None:
    loaded = load("do_train_augmentation=true")
    training, validation, test = loaded.training(), loaded.validation(), loaded.test()
    assert (training.num_points, training.num_batches, training.name) == (10, 3, "training")
    batches = list(training.batches)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert batches[0][1] == (202, -1, 1)  # augmented, then preprocessed
    assert next(validation.batches)[1] == (2, -1, 1)
    assert next(test.batches)[1] == (2, -1, 1)
    assert training.kind == "iterator"


def test_validation_data_is_augmented_only_when_asked(load: Load) -> None:
    loaded = load("do_validation_augmentation=true")
    assert next(loaded.training().batches)[1] == (2, -1, 1)
    assert next(loaded.validation().batches)[1] == (202, -1, 1)
    assert next(loaded.test().batches)[1] == (2, -1, 1)


def test_a_wrapper_stands_between_the_loader_and_the_rest(load: Load) -> None:
    seen: list[Any] = []

    def wrapper(generator: Any, num_points: int) -> Any:
        seen.append(num_points)
        return (seen.append(point) or point for point in generator)

    list(load("do_train_augmentation=true").training(wrapper).batches)
    assert seen == [10, *((i, i, 1) for i in range(10))]


def test_a_wrapper_is_not_asked_when_the_data_is_no_iterator(load: Load, project: Path) -> None:
    change(project, "dataset.py", "return points(self.n)", "return list(points(self.n))")
    change(project, "preprocessing.py", "return ((self.image", "return iter((self.image")
    change(project, "preprocessing.py", "for x, y, w in generator)", "for x, y, w in [*generator])")
    load().training(lambda *_: pytest.fail("was called"))


@pytest.mark.usefixtures("tensorflow")
def test_a_dataset_is_known_as_one(load: Load, project: Path) -> None:
    change(
        project,
        "preprocessing.py",
        "return batches, -(",
        "import tensorflow as tf\n        return tf.data.Dataset.range(3), -(",
    )
    assert load().training().kind == "dataset"


def test_the_validation_index_is_one_id_a_data_point(load: Load, project: Path) -> None:
    assert load().validation_index(6) == [f"point {i}" for i in range(6)]
    with pytest.raises(ContractError, match=r"returned 6 ids, .* there are 7"):
        load().validation_index(7)
    change(project, "dataset.py", 'return [f"point {i}" for i in range(6)]', "return None")
    assert load().validation_index(6) is None


@pytest.mark.parametrize(
    ("returned", "names"),
    [
        ('{"a": min, "b": max}', ["a", "b"]),
        ("[min, max]", ["min", "max"]),
        ('[EvalFunc("a", min), max]', ["a", "max"]),
        ("None", None),
        ("{}", None),
    ],
)
def test_evaluation_functions_come_in_every_shape(
    load: Load, project: Path, returned: str, names: list[str] | None
) -> None:
    change(project, "evaluation.py", "import EvaluatorBase", "import EvalFunc, EvaluatorBase")
    change(
        project, "evaluation.py", '{"error": lambda y_true, y_pred: abs(y_true - y_pred)}', returned
    )
    functions = load().evaluation_functions()
    assert (functions and list(functions)) == names


class Named:
    """As a list of other people's objects may hold it."""

    name = "volume"

    def __init__(self, better: Any) -> None:
        self.higher_is_better = better

    def get_func(self) -> Any:
        return max


def named(*functions: Any) -> dict[str, Any]:
    return named_functions(SimpleNamespace(get_eval_funcs=lambda: list(functions))) or {}


def test_an_object_says_for_its_function_what_is_better() -> None:
    found = named(Named(True), EvalFunc("width", min, higher_is_better=False), EvalFunc("a", abs))
    assert found["volume"].higher_is_better is True
    assert found["width"].higher_is_better is False
    assert found["volume"](1, 3) == 3
    assert found["a"] is abs
    with pytest.raises(ContractError, match=r"'volume' has 'yes' as higher_is_better\. Set it to"):
        named(Named("yes"))


@pytest.mark.parametrize("returned", ["abs", "[1]", '{"a": 3}', "[abs, abs]"])
def test_evaluation_functions_of_another_shape_are_refused(
    load: Load, project: Path, returned: str
) -> None:
    change(
        project, "evaluation.py", '{"error": lambda y_true, y_pred: abs(y_true - y_pred)}', returned
    )
    with pytest.raises(ContractError, match=r"Evaluator\.get_eval_funcs .* returned"):
        load().evaluation_functions()


def test_no_evaluator_means_no_functions(load: Load) -> None:
    loaded = load("evaluator_class=null")
    assert loaded.evaluator is None
    assert loaded.evaluation_functions() is None


# --- constructors ---


@pytest.mark.parametrize(
    "constructor",
    [
        "def __init__(self, config, data_dir):\n        super().__init__(config, data_dir)",
        "def __init__(self, config):\n        super().__init__(config)",
        "def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
        "def __init__(self, conf, where):\n        super().__init__(conf, where)",
        "def __init__(self, *, data_dir, config=None):\n        super().__init__(config, data_dir)",
    ],
)
def test_both_generations_of_constructors_are_called(
    load: Load, project: Path, constructor: str
) -> None:
    base = "class DataLoader(DataLoaderBase):\n"
    change(project, "dataset.py", base, f"{base}    {constructor}\n\n")
    loader = load().data_loader
    assert (loader.n, loader.data_dir) == (10, project / "data")


def test_a_constructor_that_wants_more_is_refused(load: Load, project: Path) -> None:
    base = "class Evaluator(EvaluatorBase):\n"
    change(
        project, "evaluation.py", base, f"{base}    def __init__(self, config, threshold): ...\n\n"
    )
    with pytest.raises(ContractError, match=r"constructor of Evaluator .* 'threshold'"):
        load()


def test_an_exception_of_a_constructor_is_the_users_own(load: Load, project: Path) -> None:
    change(
        project,
        "models.py",
        "    def get",
        "    def _set_defaults(self):\n        1 / 0\n\n    def get",
    )
    with pytest.raises(ZeroDivisionError) as raised:
        load()
    assert traceback.extract_tb(raised.value.__traceback__)[-1].filename.endswith("src/models.py")


def test_an_exception_of_an_import_is_the_users_own(load: Load, project: Path) -> None:
    write(project / "src" / "models.py", "import no_such_package\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        load()
    write(project / "src" / "models.py", "def broken(:\n")
    with pytest.raises(SyntaxError):
        load()


def test_a_missing_key_is_told_with_the_line_that_asked(load: Load) -> None:
    with pytest.raises(UnknownKey, match="section 'data_loader' has no key 'n'") as raised:
        load("data_loader={num: 3}")
    (note,) = raised.value.__notes__
    assert "dataset.py, line 8: self.n = config.data_loader.n" in note


def test_a_missing_section_is_named(load: Load) -> None:
    with pytest.raises(AttributeError, match="NoneType") as raised:
        load("data_loader=null")
    assert raised.value.__notes__ == [
        "The config has no section 'data_loader': write one, with 'n' in it."
    ]


# --- what is not there ---


def test_a_class_that_is_not_in_its_file_lists_those_that_are(load: Load) -> None:
    with pytest.raises(UnknownName) as raised:
        load("data_loader_class=dataset.Dataloder")
    told = str(raised.value)
    assert "src/dataset.py does not have. Did you mean 'DataLoader'?" in told
    assert told.endswith("Classes there: DataLoader.")  # the base is not the file's own


def test_a_file_that_is_not_there_says_what_was_tried(load: Load, project: Path) -> None:
    with pytest.raises(NotFound) as raised:
        load("data_loader_class=datset.DataLoader")
    told = str(raised.value)
    assert f"no {project}/src/datset.py and no {project}/src/datset/__init__.py" in told
    assert told.endswith("Did you mean 'dataset'?")
    with pytest.raises(NotFound, match="Did you mean 'dataset'"):
        load("data_loader_class=src.dataset.DataLoader")


def test_what_is_no_class_is_refused(load: Load) -> None:
    with pytest.raises(ContractError, match=r"'helper\.points' is no class but <function points"):
        load("evaluator_class=helper.points")


def test_a_class_in_a_package_is_found(load: Load, project: Path) -> None:
    write(project / "src" / "parts" / "__init__.py", "")
    write(project / "src" / "parts" / "evaluation.py", FILES["evaluation.py"])
    assert load("evaluator_class=parts.evaluation.Evaluator").evaluator is not None


def test_data_that_was_not_given_or_is_not_there_is_told(load: Load, project: Path) -> None:
    with pytest.raises(InvalidValue, match=r"No data_dir was given\. Give --data_dir"):
        load(data_dir=None)
    with pytest.raises(NotFound, match=r"There is no .*/gone, .* Check --data_dir"):
        load(data_dir="gone")
    with pytest.raises(NotFound, match="Check data_dir in the config"):
        load("data_dir=gone", data_dir=None)


def test_the_configs_data_directory_is_seen_from_the_project(
    load: Load, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "src")
    assert load("data_dir=data", data_dir=None).data_loader.data_dir == project / "data"


def test_data_at_an_address_is_a_universal_path(load: Load) -> None:
    UPath("memory://numbers/a.txt").write_text("x")
    where = load(data_dir="memory://numbers").data_loader.data_dir
    assert (where / "a.txt").read_text() == "x"


# --- methods ---


def test_all_missing_methods_are_told_at_once(load: Load, project: Path) -> None:
    change(project, "dataset.py", "create_test_generator", "create_tst_generator")
    change(project, "preprocessing.py", "batchify", "make_batches")
    write(project / "src" / "models.py", "class ModelBuilder:\n    pass\n")
    change(project, "evaluation.py", "get_eval_funcs", "get_eval_functions")
    with pytest.raises(ContractError) as raised:
        load()
    first, *lines = str(raised.value).splitlines()
    assert first == "4 methods are missing:"
    told = [line.strip().replace(str(project), "") for line in lines]
    assert told == [
        "DataLoader (/src/dataset.py, the data_loader_class) lacks create_test_generator. Write: "
        "def create_test_generator(self): ...  # return generator, num_data_points",
        "Preprocessor (/src/preprocessing.py, the preprocessor_class) lacks batchify. Write: "
        "def batchify(self, generator, n_data_points): ...  # return generator, n_iter",
        "ModelBuilder (/src/models.py, the model_builder_class) lacks get_compiled_model. Write: "
        "def get_compiled_model(self): ...  # return a compiled Keras model",
        "Evaluator (/src/evaluation.py, the evaluator_class) lacks get_eval_funcs. Write: "
        "def get_eval_funcs(self): ...  # return {'name': function_of_y_true_and_y_pred}",
    ]


def test_methods_are_checked_before_anything_is_constructed(load: Load, project: Path) -> None:
    change(project, "dataset.py", "self.n = ", "1 / 0\n        self.n = ")
    change(project, "evaluation.py", "get_eval_funcs", "get_eval_functions")
    with pytest.raises(ContractError, match="lacks get_eval_funcs"):
        load()


def test_components_need_not_derive_from_the_bases(load: Load, project: Path) -> None:
    write(project / "src" / "preprocessing.py", PREPROCESSOR_WITHOUT_BASE)
    data = load().training()
    assert (len(data.batches), data.kind) == (10, "iterable")


def test_a_builder_that_fits_is_generic(load: Load, project: Path) -> None:
    write(
        project / "src" / "models.py",
        "class ModelBuilder:\n    def fit(self, train, n_train, val, n_val): ...\n",
    )
    assert load().is_generic


def test_an_augmentor_is_asked_for_what_is_switched_on(load: Load, project: Path) -> None:
    write(
        project / "src" / "augmentation.py",
        "class Augmentor:\n    def add_augmentation(self, generator):\n        return generator\n",
    )
    load("do_train_augmentation=true")
    with pytest.raises(ContractError, match="lacks add_validation_augmentation"):
        load("do_validation_augmentation=true")


# --- what methods return ---


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("None", "returned None. Return generator, num_data_points."),
        ("points(3)", "returned a value of type generator. Return generator, num_data_points."),
        ("points(3), 3, 4", "returned a tuple of 3 (generator, int, int)."),
        ("points, 3", "returned the function points where a generator belongs. Call it."),
        ("None, 3", "returned None where a generator belongs. Is a return missing?"),
        ('points(3), "3"', "returned a value of type str as its second value."),
        ("points(3), 3.0", "returned 3.0 as its second value."),
        ("points(3), True", "returned True as its second value."),
    ],
)
def test_a_loader_that_returns_something_else_is_told(
    load: Load, project: Path, returned: str, told: str
) -> None:
    change(project, "dataset.py", "return points(self.n), self.n", f"return {returned}")
    with pytest.raises(ContractError) as raised:
        load().training()
    assert told in str(raised.value)
    assert "DataLoader.create_training_generator" in str(raised.value)
    assert "dataset.py, line 10" in str(raised.value)


@pytest.mark.parametrize("count", [0, -2])
def test_no_data_points_are_an_error(load: Load, count: int) -> None:
    with pytest.raises(DataError, match=f"found {count} data points. Check data_dir"):
        load(f"data_loader.n={count}").training()


@pytest.mark.parametrize("count", ["0", "-1", "n_data_points // 100"])
def test_no_batches_are_an_error(load: Load, project: Path, count: str) -> None:
    change(project, "preprocessing.py", "-(-n_data_points // self.batch_size)", count)
    with pytest.raises(ContractError, match=r"batchify .* n_iter .* for 10 data points"):
        load().training()


def test_numbers_of_numpy_are_numbers(load: Load, project: Path) -> None:
    change(
        project,
        "dataset.py",
        "return points(self.n), self.n",
        "import numpy\n        return points(self.n), numpy.int64(self.n)",
    )
    assert load().training().num_points == 10


def test_an_augmentor_that_returns_nothing_is_told(load: Load, project: Path) -> None:
    change(project, "augmentation.py", "return (", "_ = (")
    with pytest.raises(ContractError, match=r"Augmentor\.add_augmentation .* Is a return missing"):
        load("do_train_augmentation=true").training()


def test_an_exception_of_a_method_is_the_users_own(load: Load, project: Path) -> None:
    change(project, "dataset.py", "return points(self.n)", "1 / 0; return points(self.n)")
    with pytest.raises(ZeroDivisionError) as raised:
        load().training()
    names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert names[-1] == "create_training_generator"
