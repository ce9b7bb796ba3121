"""Who trains together, as events tell it: what changed, why, and how long the training stood still for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from elasticdl.tracking.words import count, some

__all__ = ["Change", "GroupChanges"]


@dataclass(frozen=True)
class Change:
    """The members train, after something has changed.

    Attributes:
      members: who trains now.
      step: where they go on.
      who: who came and went, in words.
      why: the same, with the reasons of losses.
      stall_s: seconds without training.
      redone: steps that were taken before and are taken again.
      is_first: whether nobody trained before: then nothing stood still.
      went_back: whether all members were lost, and others go on from the last checkpoint.
      time: when the first step after it was taken, in seconds since 1970.
    """

    members: tuple[str, ...]
    step: int
    who: str
    why: str
    stall_s: float
    redone: int
    is_first: bool
    went_back: bool
    time: float

    @property
    def num_workers(self) -> str:
        return count(len(self.members), "worker")


class GroupChanges:
    """Listens to the events of a run; answers with a change when the group trains again."""

    def __init__(self) -> None:
        self._members: tuple[str, ...] = ()
        self._joined: list[str] = []
        self._lost: dict[str, str] = {}
        self._left: dict[str, str] = {}
        self._lost_at = 0.0
        self._step = 0
        self._began = False
        """Whether the training was begun since it was heard of a group: from a checkpoint, or from the beginning."""

    def heard(self, event: Mapping[str, Any]) -> Change | None:
        kind = event["event"]
        if kind == "worker_joined":
            self._joined.append(event["worker"])
        elif kind == "worker_lost":
            self._note_lost(event)
        elif kind == "worker_left":
            self._left[event["worker"]] = event["reason"]
        elif kind in ("progress", "step"):
            self._step = event["step"]
        elif kind == "run_started":
            self._began = True
        elif kind == "group_formed":
            return self._formed(event)
        return None

    def _note_lost(self, event: Mapping[str, Any]) -> None:
        """One that was lost before it trained changes nothing."""
        if event["worker"] in (*self._members, *self._joined):
            self._lost_at = self._lost_at or event["time"]
            self._lost[event["worker"]] = event["reason"]

    def _formed(self, event: Mapping[str, Any]) -> Change:
        members = tuple(event["members"])
        stall_s, redone = event["stall_s"] or 0.0, event.get("redone", 0)
        # A newcomer may have taken over the state, and be all that is left before its group took a step.
        all_new = bool(self._members) and not set(members) & set(self._members)
        went_back = all_new and self._began
        if went_back:  # nobody is left who knows since when, or how far the training was
            stall_s = max(stall_s, event["time"] - (self._lost_at or event["time"]))
            redone = max(0, self._step - event["step"])
        change = Change(
            members=members,
            step=event["step"],
            who=self._words(members, ""),
            why=self._words(members, " ({reason})"),
            stall_s=stall_s,
            redone=redone,
            is_first=not self._members,
            went_back=went_back,
            time=event["time"],
        )
        self._members, self._step, self._began = members, event["step"], False
        self._joined, self._lost, self._left, self._lost_at = [], {}, {}, 0.0
        return change

    def _words(self, members: tuple[str, ...], because: str) -> str:
        left = {name: self._left.get(name, "") for name in self._gone(members)}
        joined = [name for name in self._joined if name in members]
        words = [*_by_reason(self._lost, "lost", because), *_by_reason(left, "left", because)]
        words += [f"{some(joined)} joined"] if joined else []
        return ", ".join(words) or "formed anew"

    def _gone(self, members: tuple[str, ...]) -> list[str]:
        return [name for name in self._members if name not in (*members, *self._lost)]


def _by_reason(names: Mapping[str, str], what: str, because: str) -> list[str]:
    found: dict[str, list[str]] = {}
    for name, reason in names.items():
        found.setdefault(because.format(reason=reason) if reason else "", []).append(name)
    return [f"{some(some_names)} {what}{reason}" for reason, some_names in found.items()]
