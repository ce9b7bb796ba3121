"""SQL that trains and predicts: a statement is read, typed, and becomes the same job as every other way in.

The package can be called: `elasticdl.sql("SELECT ...")` is `elasticdl.sql.api.sql`.
"""

from __future__ import annotations

import sys
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elasticdl.sql.api import SqlResult


class _CallablePackage(ModuleType):
    def __call__(
        self,
        text: str,
        db: str | PathLike[str] | None = None,
        models: str | PathLike[str] = "models",
        model_zoo: str | None = None,
        **options: Any,
    ) -> SqlResult:
        """Run SQL that may also train and predict: see `elasticdl.sql.api.sql`."""
        from elasticdl.sql.api import sql

        return sql(text, db=db, models=models, model_zoo=model_zoo, **options)


sys.modules[__name__].__class__ = _CallablePackage
