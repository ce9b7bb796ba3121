"""The reports of a run: tables of data points, statistics, plots, and a page to read them in."""

from __future__ import annotations

from elasticdl.reports.confusion import Confusion, ConfusionCounter
from elasticdl.reports.drawing import warm_up
from elasticdl.reports.section import Section
from elasticdl.reports.table import PointTable
from elasticdl.reports.write import Reports, write_reports

__all__ = [
    "Confusion",
    "ConfusionCounter",
    "PointTable",
    "Reports",
    "Section",
    "warm_up",
    "write_reports",
]
