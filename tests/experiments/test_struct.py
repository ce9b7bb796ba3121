"""A config as user code sees it."""

from __future__ import annotations

import copy
import pickle

import pytest

from elasticdl.errors import ElasticDLError, UnknownKey
from elasticdl.experiments.struct import ConfigStruct, Struct


@pytest.fixture
def config() -> ConfigStruct:
    return ConfigStruct(
        epochs=3,
        model_builder={"n_filters": 8, "layers": [{"units": 4}], "class_weight": {0: 1.0, 1: 2.5}},
    )


def test_sections_are_attributes_at_every_depth(config: ConfigStruct) -> None:
    assert config.model_builder.n_filters == 8
    assert config.model_builder.layers[0].units == 4


def test_defaults_are_there_when_they_were_not_given(config: ConfigStruct) -> None:
    assert (config.seed, config.export.metric, config.export.mode) == (101, "val_loss", "min")
    assert config.augmentor is None
    assert config.data_dir is None


def test_a_mapping_stays_a_dict_when_its_keys_are_numbers(config: ConfigStruct) -> None:
    assert config.model_builder.class_weight == {0: 1.0, 1: 2.5}


def test_a_missing_key_names_its_section_and_the_nearest(config: ConfigStruct) -> None:
    with pytest.raises(UnknownKey, match=r"'model_builder' has no key 'n_filtrs'.*'n_filters'\?"):
        config.model_builder.n_filtrs  # noqa: B018
    with pytest.raises(AttributeError, match=r"section 'model_builder.layers\[0\]' has no key"):
        config.model_builder.layers[0].unit_count  # noqa: B018
    with pytest.raises(ElasticDLError, match=r"The config has no key 'epoch'\. .*'epochs'"):
        config.epoch  # noqa: B018


def test_python_idioms_for_missing_attributes_work(config: ConfigStruct) -> None:
    assert not hasattr(config.model_builder, "dropout")
    assert getattr(config.model_builder, "dropout", 0.1) == 0.1
    assert config.model_builder.get("dropout", 0.2) == 0.2
    assert "n_filters" in config.model_builder
    assert "dropout" not in config.model_builder
    assert list(Struct(b=1, a=2)) == ["b", "a"]


def test_a_key_may_have_the_name_of_a_method() -> None:
    section = Struct(get=1, to_dict=2, self=3)
    assert (section.get, section.to_dict, section.self) == (1, 2, 3)


def test_it_becomes_plain_again(config: ConfigStruct) -> None:
    section = {"n_filters": 8, "layers": [{"units": 4}], "class_weight": {0: 1.0, 1: 2.5}}
    assert config.model_builder.to_dict() == section
    assert ConfigStruct(**config.to_dict()) == config


def test_copies_are_equal_and_still_know_their_section(config: ConfigStruct) -> None:
    for other in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):  # noqa: S301
        assert other == config
        with pytest.raises(UnknownKey, match="section 'model_builder'"):
            other.model_builder.nothing  # noqa: B018


def test_an_assigned_mapping_becomes_a_section(config: ConfigStruct) -> None:
    config.model_builder.optimizer = {"name": "adam"}
    assert config.model_builder.optimizer.name == "adam"


def test_the_representation_shows_the_values() -> None:
    assert repr(Struct(a=1, b={"c": "x"})) == "Struct(a=1, b=Struct(c='x'))"
