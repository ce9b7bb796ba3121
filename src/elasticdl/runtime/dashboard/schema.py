"""The form of the answers, for OpenAPI. Answers are made by the views; tests hold them against this."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "Comparison",
    "Detail",
    "EventList",
    "Ledger",
    "Log",
    "RunList",
    "RunRow",
    "SeriesList",
    "Timeline",
]

Level = Literal["debug", "info", "warning", "error"]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", protected_namespaces=())


class Best(_Form):
    metric: str
    value: float
    step: int
    mode: Literal["min", "max"]


class RunRow(_Form):
    """Times are seconds since 1970; what is not known is null."""

    id: str
    version: str = Field(description="Changes when something has changed.")
    name: str
    where: str = Field(description="The run directory.")
    command: str
    status: str
    said: str = Field(description="The status in words.")
    message: str | None
    model: str | None
    is_live: bool
    step: int | None
    epoch: int | None = Field(description="Counted from 1.")
    num_epochs: int | None
    total_steps: int | None = Field(description="As far as it can be foreseen.")
    fraction: float | None
    eta_s: float | None = Field(description="Seconds from `updated` to the end.")
    loss: float | None
    metrics: dict[str, float | None]
    best: Best | None
    started: float | None
    ended: float | None
    updated: float | None = Field(description="The time of the last event.")
    duration_s: float | None
    workers: list[str]
    num_workers: str | None = Field(description="As it was asked for: 2, or 2:4.")
    examples_per_s: float | None
    warning: str | None
    num_problems: int


class Problem(_Form):
    where: str
    message: str


class RunList(_Form):
    runs: list[RunRow]
    problems: list[Problem]
    now: float


class Option(_Form):
    key: str
    value: str
    is_default: bool


class Artifact(_Form):
    name: str
    path: str
    kind: str
    bytes: int | None
    modified: float | None


class Command(_Form):
    purpose: str
    command: str


class Link(_Form):
    name: str
    command: str | None = None
    url: str | None = None


class Report(_Form):
    url: str


class LogName(_Form):
    name: str
    bytes: int


class Goodput(_Form):
    fraction: float
    stalled_s: float
    evaluating_s: float
    redone_steps: int
    total_s: float


class Detail(RunRow):
    config: list[Option]
    model_summary: str | None
    artifacts: list[Artifact]
    commands: list[Command]
    links: list[Link]
    report: Report | None
    logs: list[LogName]
    goodput: Goodput | None
    problems: list[str]


class Series(_Form):
    key: str
    label: str
    kind: Literal["loss", "metric", "speed", "workers"]
    points: list[tuple[float, float, float]] = Field(description="[step, time, value]")
    total: int


class SeriesList(_Form):
    version: str
    series: list[Series]


class Span(_Form):
    from_: float | None = Field(alias="from")
    to: float | None
    end: Literal["lost", "left", "ended"] | None
    reason: str | None


class Worker(_Form):
    name: str
    node: str | None
    pid: int | None
    spans: list[Span]
    examples_per_s: float | None
    is_here: bool


class Group(_Form):
    time: float
    members: list[str]
    stall_s: float
    step: int
    redone: int
    text: str


class Timeline(_Form):
    version: str
    workers: list[Worker]
    groups: list[Group]


class Epoch(_Form):
    epoch: int = Field(description="Counted from 0.")
    records: int | None
    examples: int | None
    applied_once: bool | None
    finished: float | None


class Tasks(_Form):
    todo: int
    leased: int
    done: int
    redone: int


class Ledger(_Form):
    version: str
    epochs: list[Epoch]
    tasks: Tasks | None


class EventLine(_Form):
    number: int
    time: float | None
    event: str
    level: Level
    text: str
    fields: dict[str, Any]


class EventList(_Form):
    version: str
    events: list[EventLine]
    total: int
    matched: int
    broken_lines: int
    kinds: list[str]


class LogLine(_Form):
    number: int
    text: str


class Log(_Form):
    lines: list[LogLine]
    bytes: int
    is_cut: bool


class Compared(_Form):
    key: str
    values: list[str | None]
    differs: bool


class ComparedMetric(_Form):
    name: str
    values: list[float | None]
    best: int | None


class Comparison(_Form):
    runs: list[RunRow]
    config: list[Compared]
    metrics: list[ComparedMetric]
