"""The page of the config is what its generator makes of the config as it is."""

from __future__ import annotations

import runpy

from elasticdl.experiments.config import RunConfig

from .blocks import ROOT


def test_page_of_the_config_is_what_its_generator_gives() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate_config.py"))
    committed = made["PAGE"].read_text(encoding="utf-8")
    assert committed == made["page"](), "run `python docs/generate_config.py` and commit the page"


def test_page_of_the_config_names_every_key() -> None:
    text = (ROOT / "docs" / "reference" / "experiment_config.md").read_text(encoding="utf-8")
    for name in RunConfig.model_fields:
        assert f"\n| `{name}` |" in text
