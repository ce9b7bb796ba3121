"""The page on events, beside what runs write: neither has an event or a field that the other lacks."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elasticdl
from elasticdl.errors import NonFiniteLoss
from elasticdl.runtime.elastic.master import Master
from elasticdl.runtime.elastic.membership import NOTHING, Member

from .blocks import ROOT

PAGE = (ROOT / "docs" / "reference" / "events.md").read_text(encoding="utf-8")


OF_ANY_RUN = "## The events"
OF_EXPERIMENTS = "## The events of an experiment"
OF_WORKERS = "## The events of many workers"


def section(heading: str) -> str:
    return PAGE.partition(f"\n{heading}\n")[2].partition("\n## ")[0]


def documented(heading: str = OF_ANY_RUN) -> dict[str, set[str]]:
    parts = re.split(r"^### (\w+)$", section(heading), flags=re.MULTILINE)[1:]
    tables = zip(parts[::2], parts[1::2], strict=True)
    return {name: set(re.findall(r"^\| `([\w.]+)` \|", text, re.M)) for name, text in tables}


def examples(heading: str) -> list[dict[str, Any]]:
    blocks = re.findall(r"^```json\n(\{\"time\".*?)^```$", section(heading), re.M | re.S)
    return [json.loads(line) for block in blocks for line in block.splitlines()]


def train(output: str, rate: float = 0.01, **options: Any) -> list[dict[str, Any]]:
    import keras

    x = np.random.default_rng(0).random((100, 2))
    data = (x, x.sum(axis=1, keepdims=True))
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(rate)
    options = {"loss": "mse", "optimizer": optimizer, "output": output, **options}
    try:
        elasticdl.train(model, data, validation_data=data, minibatch_size=10, **options)
    except NonFiniteLoss:
        assert rate > 1
    return read(output)


def read(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(output, "events.jsonl").read_text().splitlines()]


def resumed_from_a_torn_checkpoint() -> list[dict[str, Any]]:
    train("torn", num_epochs=1, checkpoint_steps=4)
    newest = max(Path("torn", "checkpoints").iterdir())
    (newest / "tensors.safetensors").write_bytes(b"torn")
    return train("torn", num_epochs=1, checkpoint_steps=4, resume=True)


@pytest.mark.usefixtures("tensorflow")
def test_events_of_runs_are_those_of_the_page() -> None:
    events = train("whole", num_epochs=2, evaluation_steps=5, checkpoint_steps=5)
    events += train("failed", rate=1e30, num_epochs=2)
    events += train("stopped", max_step=3)
    events += resumed_from_a_torn_checkpoint()
    assert fields_of(events) == documented()
    assert {e["occasion"] for e in events if e["event"] == "evaluation"} == {
        "steps",
        "epoch",
        "end",
    }


def test_events_of_a_master_are_those_of_the_page() -> None:
    async def job() -> dict[int, dict[str, Any]]:
        master = Master("master.jsonl", (2, 2), 30.0)
        members = [Member(index, f"127.0.0.1:{index}", 11, "here") for index in range(2)]
        for member in members:
            await master.start(member.index)
        await asyncio.gather(*(master.arrive(m, 0, NOTHING, True, False) for m in members))
        await master.drain(1)
        await asyncio.gather(*(master.arrive(m, 1, 5, True, False) for m in members))
        await master.scale(1, 4)
        await master.lost(0, "its process was killed")
        back = Master("master.jsonl", (2, 2), 30.0)
        found: dict[int, dict[str, Any]] = (await back.watch(0))["events"]
        for one in (master, back):  # what the end of its process does
            one._journal._file.close()
        return found

    told = fields_of(list(asyncio.run(job()).values()))
    of_workers = {"worker_joined", "worker_lost", "worker_left"}
    assert told.keys() == {*of_workers, "scaled", "master_restarted"}
    assert told.items() <= documented(OF_WORKERS).items()


@pytest.mark.parametrize("heading", [OF_ANY_RUN, OF_EXPERIMENTS, OF_WORKERS])
def test_examples_of_the_page_have_the_fields_of_its_tables(heading: str) -> None:
    assert documented(heading)
    assert fields_of(examples(heading)) == documented(heading)


def fields_of(events: list[dict[str, Any]]) -> dict[str, set[str]]:
    """The fields of each kind of event; those of metrics are counted as one, `val_...`."""
    found: dict[str, set[str]] = {}
    for event in events:
        names = {"val_..." if name.startswith("val_") else name for name in event}
        found.setdefault(event["event"], set()).update(names - {"time", "event"})
    return found
