"""What the users of a training pipeline subclass: five components and a config make an experiment."""

from __future__ import annotations
