"""Texts that hold several values, such as '3,5,7': whether they do, and of which rows not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as _compute

from elasticdl.tabular.types import Array

__all__ = ["as_texts", "misfits", "several", "shown"]

pc: Any = _compute
_NUMBERS = {
    "sequence": r"-?\d{1,18}",
    "vector": r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?",
}


def several(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """What a column must hold for a feature: whole numbers (`sequence`), or so many of any (`vector`)."""
    form: dict[str, Any] = {"kind": kind, "separator": params["separator"]}
    return {**form, "size": params["size"]} if kind == "vector" else form


def shown(form: Mapping[str, Any]) -> str:
    """In words."""
    what = (
        "whole numbers"
        if form["kind"] == "sequence"
        else f"{form['size']} number{'s'[: form['size'] > 1]}"
    )
    return what if form.get("size") == 1 else f"{what} with {form['separator']!r} between them"


def misfits(texts: Array, form: Mapping[str, Any]) -> Array:
    """The texts that do not hold what they should. An empty one and NULL hold nothing, which is no fault."""
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[\[\]]", ""))
    fits = pc.match_substring_regex(bare, _pattern(form))
    if form["kind"] == "vector":
        between = r"\s+" if form["separator"] == " " else re.escape(form["separator"])
        count = pc.add(pc.count_substring_regex(bare, between), 1)
        fits = pc.and_(fits, pc.equal(count, form["size"]))
    wrong = pc.and_(pc.invert(fits), pc.not_equal(bare, ""))
    return texts.filter(pc.fill_null(wrong, False))


def _pattern(form: Mapping[str, Any]) -> str:
    number = _NUMBERS[form["kind"]]
    if form["separator"] == " ":
        return rf"^{number}(?:\s+{number})*$"
    separator = re.escape(form["separator"])
    if form["kind"] == "vector":
        return rf"^{number}(?:\s*{separator}\s*{number})*$"
    return rf"^(?:{number})?(?:\s*{separator}\s*(?:{number})?)*$"  # a part may be empty


def as_texts(values: list[Any]) -> Array:
    """Values of a sample as an Arrow array."""
    return pa.array(
        [v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in values],
        pa.string(),
    )
