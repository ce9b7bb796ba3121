"""The old import path of the base of a user's data reader."""

from elasticdl.data.readers.custom import AbstractDataReader

__all__ = ["AbstractDataReader"]
