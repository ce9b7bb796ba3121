"""The base of all components: defaults first, then what the config says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elasticdl.experiments.struct import ConfigStruct

__all__ = ["BaseClass"]


class BaseClass:
    """A component with parameters.

    Set the parameters' defaults in `_set_defaults` and take them from the config in `_load_params`.
    Either may be left out. With `config=None` the defaults hold: so a component can be tried alone.

    Args:
      config: the run's config, a dict like it, or None.
    """

    def __init__(self, config: ConfigStruct | Mapping[str, Any] | None = None) -> None:
        given = ConfigStruct(**config) if isinstance(config, Mapping) else config
        self._set_defaults()
        self.config = given
        if given is not None:
            self._load_params(given)

    def _set_defaults(self) -> None:
        """Set every parameter to its default."""

    def _load_params(self, config: Any) -> None:
        """Set the parameters to what the config says."""
