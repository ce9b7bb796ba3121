"""The page that documents the API names every field of every answer, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from elasticdl.runtime.dashboard import schema

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "dashboard_api.md"
FORMS = {
    "GET /api/runs": schema.RunList,
    "A run": schema.RunRow,
    "GET /api/runs/{id}": schema.Detail,
    "GET /api/runs/{id}/series": schema.SeriesList,
    "GET /api/runs/{id}/workers": schema.Timeline,
    "GET /api/runs/{id}/ledger": schema.Ledger,
    "GET /api/runs/{id}/events": schema.EventList,
    "GET /api/runs/{id}/logs/{name}": schema.Log,
    "GET /api/compare": schema.Comparison,
}


def section(heading: str) -> str:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(rf"^##+ {re.escape(heading)}$(.*?)(?=^##|\Z)", text, re.M | re.S)
    assert found, heading
    return found[1]


def inner_fields(form: type[BaseModel]) -> set[str]:
    """The fields of what the lists in an answer hold, which the page names in their row."""
    found: set[str] = set()
    for field in form.model_fields.values():
        for inner in re.findall(r"schema\.(\w+)", str(field.annotation)):
            model = getattr(schema, inner)
            if model is not schema.RunRow:
                found |= {one.alias or name for name, one in model.model_fields.items()}
                found |= inner_fields(model)
    return found


@pytest.mark.parametrize("heading", FORMS)
def test_table_of_the_page_has_the_fields_of_the_answer(heading: str) -> None:
    form = FORMS[heading]
    own = set(form.model_fields)
    if form is schema.Detail:  # the page tells of those of a row above
        own -= set(schema.RunRow.model_fields)
    text = section(heading)
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == own
    named = set(re.findall(r"`(\w+)`", text))
    told_above = {*schema.RunRow.model_fields, *schema.Best.model_fields}
    assert inner_fields(form) - told_above <= named
