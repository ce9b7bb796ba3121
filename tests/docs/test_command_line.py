"""The page of flags is what its generator makes of the flags as they are."""

from __future__ import annotations

import runpy

from .blocks import ROOT


def test_page_of_flags_is_what_its_generator_gives() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    committed = made["PAGE"].read_text(encoding="utf-8")
    assert committed == made["page"](), "run `python docs/generate.py` and commit the page"
