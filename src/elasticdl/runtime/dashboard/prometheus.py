"""The runs as metrics of Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["metrics_text"]

_NUMBERS = {
    "step": "Steps so far.",
    "epoch": "The epoch, counted from 1.",
    "fraction": "How much is done, from 0 to 1.",
    "eta_s": "Seconds until the end, as of the last event.",
    "loss": "The last training loss.",
    "examples_per_s": "Examples a second.",
    "started": "When it began, in seconds since 1970.",
    "updated": "When it told something for the last time, in seconds since 1970.",
}
_NAMES = {"eta_s": "eta_seconds", "examples_per_s": "examples_per_second"}
_TIMES = {"started": "started_timestamp_seconds", "updated": "updated_timestamp_seconds"}


def metrics_text(views: Sequence[dict[str, Any]]) -> bytes:
    """All runs, in the text format. `views` are those of the list of runs."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Told(Collector):
        def collect(self) -> Iterable[Any]:
            return _families(views)

    registry = CollectorRegistry()
    registry.register(Told())
    return bytes(generate_latest(registry))


def _families(views: Sequence[dict[str, Any]]) -> Iterable[Any]:
    from prometheus_client.core import GaugeMetricFamily

    statuses = Counter(view["status"] for view in views)
    family = GaugeMetricFamily("elasticdl_runs", "Runs by their status.", labels=["status"])
    for status, count in sorted(statuses.items()):
        family.add_metric([status], count)
    yield family
    for key, help_ in _NUMBERS.items():
        name = f"elasticdl_run_{(_NAMES | _TIMES).get(key, key)}"
        family = GaugeMetricFamily(name, help_, labels=["run", "id"])
        for view in views:
            if view[key] is not None:
                family.add_metric([_text(view["name"]), view["id"]], view[key])
        yield family
    workers = GaugeMetricFamily(
        "elasticdl_run_workers", "Who trains together.", labels=["run", "id"]
    )
    live = GaugeMetricFamily("elasticdl_run_live", "1 while it runs.", labels=["run", "id"])
    metric = GaugeMetricFamily(
        "elasticdl_run_metric", "The last evaluation's.", labels=["run", "id", "metric"]
    )
    for view in views:
        labels = [_text(view["name"]), view["id"]]
        workers.add_metric(labels, len(view["workers"]))
        live.add_metric(labels, int(view["is_live"]))
        for name, value in view["metrics"].items():
            if value is not None:
                metric.add_metric([*labels, _text(name)], value)
    yield from (workers, live, metric)


def _text(name: str) -> str:
    """A file's name may have bytes that are no text."""
    return name.encode("utf-8", "replace").decode()
