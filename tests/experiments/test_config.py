"""A run's config: what is taken, and what is told of one that is wrong."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from upath import UPath

from elasticdl.errors import ElasticDLError, InvalidValue, StorageFailure, UnknownName
from elasticdl.experiments.config import RunConfig, json_schema, load_config

SEED = """
input_height: 28
input_width: 28
src_code_path: 'src' # required
data_loader_class: 'dataset.DataLoaderTF'
preprocessor_class: 'preprocessing.PreprocessorTF'
model_builder_class: 'models.ModelBuilder'
evaluator_class: 'evaluator_class: evaluation.Evaluator'
epochs: 10
batch_size: 8
data_loader:
  shuffle: True
model_builder:
  name: "baseline-unet"
  n_filters: 512
  learning_rate: 1e-4
  class_weight: {0: 1, 1: 2}
  layers: [{units: 3}]
preprocessor:
  normalize_by: 255
export:
  metric: "val_loss"
  mode: "min"
project_name: 'mnist'
"""


def load(text: str, *overrides: str) -> RunConfig:
    path = Path("config.yaml")
    path.write_text(text)
    return load_config(UPath(str(path)), overrides)


def faults(text: str, *overrides: str) -> list[str]:
    with pytest.raises(InvalidValue) as raised:
        load(text, *overrides)
    return [line.strip() for line in str(raised.value).splitlines()[1:]]


def test_the_seeds_config_is_taken_with_its_slip() -> None:
    config = load(SEED)
    assert config.evaluator_class == "evaluation.Evaluator"
    assert (config.epochs, config.batch_size, config.seed) == (10, 8, 101)
    assert config.struct.model_builder.name == "baseline-unet"
    assert config.struct.data_loader.shuffle is True


@pytest.mark.parametrize("key", ["data_loader_class", "preprocessor_class", "model_builder_class"])
def test_the_slip_is_understood_for_every_class(key: str) -> None:
    config = load(SEED, f"{key}='{key}: some.Class'")
    assert getattr(config, key) == "some.Class"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("1.5e3", 1500.0),
        ("-2E6", -2e6),
        (".5e1", 5.0),
        ("1_000", 1000),
        ("12", 12),
        ("'1e-4'", "1e-4"),
        ("1e5x", "1e5x"),
        ("2024-05-06", datetime.date(2024, 5, 6)),
    ],
)
def test_numbers_are_numbers_as_people_write_them(text: str, value: Any) -> None:
    section = load(SEED, f"model_builder.x={text}").model_builder
    assert section is not None
    assert section["x"] == value
    assert type(section["x"]) is type(value)


def test_all_faults_are_told_at_once() -> None:
    told = faults(
        """
        epoch: 10
        batch_size: 0
        epochs: ten
        project_name: 3
        export: {metrc: a, mode: most}
        src_code_path: ''
        data_loader_class: dataset
        model_builder: [1]
        do_train_augmentation: true
        seed: true
        """
    )
    assert sorted(told) == sorted(
        [
            "epoch: is no key of a config; received 10. Did you mean 'epochs'?",
            "batch_size: received 0. Give a whole number of 1 or more, for example 8.",
            "epochs: received 'ten'. Give a whole number of 1 or more, for example 10.",
            "project_name: received 3. Give text without slashes, for example mnist. Put quotes around it.",
            "export.metrc: is no key of a config; received 'a'. Did you mean 'metric'?",
            "export.mode: received 'most'. Give min, max or auto, for example min.",
            "src_code_path: received ''. Give text, for example src.",
            "data_loader_class: received 'dataset'. Give the file and the class in it, for example "
            "dataset.DataLoader.",
            "preprocessor_class: is missing. Give the file and the class in it, for example "
            "preprocessing.Preprocessor.",
            "model_builder_class: is missing. Give the file and the class in it, for example "
            "models.ModelBuilder.",
            "model_builder: received [1]. Give a section of indented `key: value` lines, or leave it out.",
            "seed: received True. Give a whole number from 0 to 4294967295, for example 101.",
            "augmentor_class: is missing, and do_train_augmentation is true. Name your augmentor, for "
            "example augmentation.Augmentor, or switch augmentation off.",
        ]
    )


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("epochs=2.5", "epochs: received 2.5"),
        ("epochs='3'", "epochs: received '3'"),
        ("project_name=a/b", "project_name: received 'a/b'"),
        ("project_name=..", "project_name: received '..'"),
        ("export=best", "export: received 'best'. Give a section with metric and mode."),
        ("input_width=-1", "input_width: received -1"),
        ("evaluator_class=src/evaluation.py", "evaluator_class: received 'src/evaluation.py'"),
        ("do_validation_augmentation=true", "augmentor_class: is missing"),
        ("checkpoints_to_keep=0", "checkpoints_to_keep: received 0"),
    ],
)
def test_a_value_of_the_wrong_form_is_refused(override: str, told: str) -> None:
    (line,) = faults(SEED, override)
    assert line.startswith(told)


@pytest.mark.parametrize("mode", ["MIN", "Max", "auto"])
def test_the_export_mode_is_understood_in_any_letters(mode: str) -> None:
    assert load(SEED, f"export.mode={mode}").export.mode == mode.lower()


def test_an_augmentation_that_is_off_needs_no_augmentor() -> None:
    assert load(SEED, "do_train_augmentation=false").augmentor_class is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty. Write `key: value` lines"),
        ("# only a comment\n", "is empty"),
        ("- epochs: 1\n", "is a list, not a mapping"),
        ("hello", "is the single value 'hello', not a mapping"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "(line 4, column 3): the key 'c' is there twice"),
        ("epochs: 1\nepochs: 2\n", "(line 2, column 1): the key 'epochs' is there twice"),
        ("a:\n\t- 1\n", "(line 2, column 1): a tab stands where spaces belong"),
        ("a: b: c\n", "(line 1, column 5): a second colon stands in one line"),
        ("a: 'x\n", "a quote is not closed"),
        ("a: [1, 2\n", "a bracket is not closed"),
        ("a: !!python/object/apply:os.getcwd []\n", "tags are not read"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("a: &x [*x]\n", "Circular reference"),
        ("d: 2024-13-45\n", "Put quotes around it"),
        ("a: @x\n", "Put quotes around the value"),
    ],
)
def test_what_is_no_yaml_is_told_in_words(text: str, told: str) -> None:
    with pytest.raises(InvalidValue) as raised:
        load(text)
    assert told in str(raised.value)
    assert "config.yaml" in str(raised.value)


def test_a_file_of_other_bytes_is_refused() -> None:
    Path("config.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(InvalidValue, match="not plain text in UTF-8"):
        load_config(UPath("config.yaml"), ())


def test_a_file_that_is_not_there_is_told() -> None:
    with pytest.raises(StorageFailure, match=r"Cannot read gone\.yaml"):
        load_config(UPath("gone.yaml"), ())


def test_a_merged_mapping_may_be_overridden() -> None:
    config = load(SEED.replace("  n_filters: 512", "  n_filters: 512\n  <<: {n_filters: 1, b: 2}"))
    assert config.model_builder is not None
    assert (config.model_builder["n_filters"], config.model_builder["b"]) == (512, 2)


def test_overrides_replace_and_add_values() -> None:
    config = load(
        SEED,
        "epochs=3",
        "model_builder.n_filters=256",
        "model_builder.optimizer.name=adam",
        "model_builder.class_weight.1=9",
        "evaluator={threshold: 0.5}",
        "export.metric=val_accuracy",
    )
    builder = config.struct.model_builder
    assert (config.epochs, builder.n_filters, builder.optimizer.name) == (3, 256, "adam")
    assert builder.class_weight == {0: 1, 1: 9}
    assert config.evaluator == {"threshold": 0.5}
    assert (config.export.metric, config.export.mode) == ("val_accuracy", "min")


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("epoch=3", "a config has no key 'epoch'. Did you mean 'epochs'?"),
        ("modle_builder.x=3", "Did you mean 'model_builder'?"),
        (
            "model_builder.n_filtrs=3",
            "model_builder has no key 'n_filtrs'. Did you mean 'n_filters'?",
        ),
        ("epochs.x=3", "epochs is 10, not a section"),
        ("epochs", "give key=value"),
        ("=3", "give key=value"),
        ("model_builder..x=3", "give key=value"),
        ("epochs=[1", "is not valid YAML"),
    ],
)
def test_an_override_that_means_nothing_is_refused(override: str, told: str) -> None:
    with pytest.raises(ElasticDLError) as raised:
        load(SEED, override)
    assert told in str(raised.value)


def test_a_wrong_override_is_a_wrong_name() -> None:
    with pytest.raises(UnknownName):
        load(SEED, "epoch=3")


def test_it_is_written_as_it_is_read() -> None:
    config = load(SEED, "model_builder.when=2024-05-06")
    assert load(config.to_yaml()) == config
    assert RunConfig.parse(config.to_dict()) == config


def test_flat_keys_are_dotted_and_their_values_text() -> None:
    flat = load(SEED).flat()
    assert flat["model_builder.n_filters"] == "512"
    assert flat["model_builder.learning_rate"] == "0.0001"
    assert flat["model_builder.class_weight.1"] == "2"
    assert flat["model_builder.layers"] == '[{"units": 3}]'
    assert flat["export.metric"] == "val_loss"
    assert "augmentor" not in flat


def test_what_user_code_changes_stays_its_own() -> None:
    config = load(SEED)
    config.struct.model_builder.class_weight[0] = 7
    config.struct.model_builder.layers.append(1)
    assert config == load(SEED)


def test_the_data_directory_is_filled_in() -> None:
    assert load(SEED).with_data_dir("/data").struct.data_dir == "/data"


def test_the_schema_is_valid_and_agrees_with_the_check() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    good = load(SEED).to_dict()
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "epoch": 1})
    assert not validator.is_valid({**good, "epochs": 0})
    assert not validator.is_valid({**good, "export": {"mode": "most"}})
    assert not validator.is_valid({k: v for k, v in good.items() if k != "project_name"})
    assert all(part.get("description") for part in schema["properties"].values())


def test_a_config_can_be_at_an_address() -> None:
    place = UPath("memory://configs/config.yaml")
    place.write_text(SEED)
    assert load_config(place, ()).project_name == "mnist"


def test_the_order_of_keys_stays_when_it_is_written() -> None:
    section = yaml.safe_load(load(SEED).to_yaml())["model_builder"]
    assert list(section)[:2] == ["name", "n_filters"]
