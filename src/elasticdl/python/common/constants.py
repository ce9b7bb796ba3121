"""The old import path of `Mode`."""

from elasticdl.contract.mode import Mode

__all__ = ["Mode"]
