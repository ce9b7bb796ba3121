"""What the engine knows of the processes that train together. How they find and lose each other is not its affair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Change", "Group", "GroupBroken", "State"]


class GroupBroken(Exception):
    """A member is gone, or is to come: what was being done together has not happened."""


@dataclass(frozen=True)
class State:
    """All that a member needs that has nothing, or only what one needs that missed the last step."""

    tensors: dict[str, Any]
    last: Any
    """The `Sum` of the last step."""
    rest: dict[str, Any] | None = None
    """Progress, ledger and the rest of a training; None for who only missed a step."""


@dataclass(frozen=True)
class Change:
    """A new membership."""

    names: tuple[str, ...]
    version: int
    """The step that the group stands at."""
    state: State | None
    """What this member has to take over; None when it has it."""
    is_truth: bool = False
    """Whether it is this member's state that the others took over."""


class Group(Protocol):
    """The members, each with a rank; rank 0 leads: it alone writes."""

    @property
    def number(self) -> int:
        """Which membership this is."""

    @property
    def name(self) -> str:
        """This member's own."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def names(self) -> Sequence[str]:
        """The members' names by rank: a name is never used again."""

    @property
    def device(self) -> str: ...

    @property
    def wants_pause(self) -> bool:
        """Whether somebody waits to come in, or is to leave."""

    @property
    def wants_stop(self) -> bool: ...

    def reduce(self, buffer: Any, keys: Any) -> Any:
        """In a graph: the sum of everybody's buffer. `keys`: number, size, ..."""

    def guarded(self) -> AbstractContextManager[None]:
        """Inside, something is done together: raises `GroupBroken` when it cannot be."""

    def gather(self, payload: Any) -> list[Any]:
        """What every member gave, by rank. Raises `GroupBroken`."""

    def regroup(self, version: int, give: Callable[[bool], State], *, may_admit: bool) -> Change:
        """Wait for the next membership. `give(whole)` makes the state for who needs it."""
