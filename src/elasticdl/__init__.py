"""ElasticDL: one training engine for Keras, from a laptop to a cluster to a SQL prompt.

Everything here is imported when it is first used, so `import elasticdl` costs nothing.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from elasticdl import callbacks, errors
    from elasticdl.api import Result, evaluate, predict, train
    from elasticdl.contract.elasticdl_spec import ElasticDLSpec
    from elasticdl.contract.mode import Mode
    from elasticdl.data.readers.custom import AbstractDataReader
    from elasticdl.errors import ElasticDLError
    from elasticdl.sql.api import sql

__all__ = [
    "AbstractDataReader",
    "ElasticDLError",
    "ElasticDLSpec",
    "Mode",
    "Result",
    "__version__",
    "callbacks",
    "errors",
    "evaluate",
    "predict",
    "sql",
    "train",
]

# TensorFlow reads these at its first operation. A step allocates the same large blocks as the one before it. If they
# went back to the system in between, it would clear every page of them anew: TensorFlow is to keep them, as many as it
# has.
os.environ.setdefault("TF_CPU_ALLOCATOR_USE_BFC", "true")
os.environ.setdefault("TF_CPU_BFC_MEM_LIMIT_IN_MB", str(1 << 24))

_MODULES = ("callbacks", "errors", "sql")
_HOMES = {
    "AbstractDataReader": "elasticdl.data.readers.custom",
    "ElasticDLError": "elasticdl.errors",
    "ElasticDLSpec": "elasticdl.contract.elasticdl_spec",
    "Mode": "elasticdl.contract.mode",
    "Result": "elasticdl.api",
    "evaluate": "elasticdl.api",
    "predict": "elasticdl.api",
    "train": "elasticdl.api",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"elasticdl.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'elasticdl' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext elasticdl` in a notebook: the magic `%%elasticdl`."""
    from elasticdl.sql.magic import load_ipython_extension as load

    load(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
