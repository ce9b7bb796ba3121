"""The master without Ray: what it must not forget when its process is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from elasticdl.runtime.elastic.master import Master
from elasticdl.runtime.elastic.membership import Member, Orders, View

Make = Callable[[], Master]
FOREVER_S = 2.0
"""Nothing here takes longer, but what waits for ever."""


def member(index: int) -> Member:
    return Member(index, f"127.0.0.1:{9000 + index}")


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a master; each one after the first is one that comes back."""
    made = []

    def make() -> Master:
        made.append(Master(str(tmp_path / "journal.jsonl"), (2, 2), timeout_s=60.0))
        return made[-1]

    yield make
    for master in made:
        master._journal._file.close()


async def together(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    return await asyncio.wait_for(asyncio.gather(*calls), FOREVER_S)


async def two_members(master: Master) -> View:
    for index in (0, 1):
        await master.start(index)
    views = await together(*(master.arrive(member(i), 0, -1, True, False) for i in (0, 1)))
    assert views[0] == views[1]
    return views[0]


def test_members_get_the_same_view_and_what_each_gave(make: Make) -> None:
    async def run() -> None:
        master = make()
        view = await two_members(master)
        assert view.indices == {0, 1}
        met = await together(*(master.meet(i, view.number, 1, f"of {i}") for i in (1, 0)))
        assert met == [["of 0", "of 1"]] * 2

    asyncio.run(run())


def test_nobody_gets_what_a_lost_member_did_not_give(make: Make) -> None:
    async def run() -> None:
        master = make()
        view = await two_members(master)
        met = await together(master.meet(0, view.number, 1, "mine"), master.lost(1, "killed"))
        assert met[0] is None

    asyncio.run(run())


def test_a_master_that_comes_back_answers_a_call_again(make: Make) -> None:
    async def run() -> None:
        master = make()
        view = await two_members(master)
        await together(*(master.meet(i, view.number, 1, i) for i in (0, 1)))
        other = make()
        assert await together(other.arrive(member(1), 0, -1, True, False)) == [view]
        assert await together(other.meet(1, view.number, 1, 1)) == [[0, 1]]

    asyncio.run(run())


def test_a_cut_line_at_the_end_of_the_journal_is_left_out(make: Make, tmp_path: Path) -> None:
    async def run() -> None:
        view = await two_members(make())
        with (tmp_path / "journal.jsonl").open("a") as journal:
            journal.write('{"membership": {"mini')
        other = make()
        assert await together(other.arrive(member(0), 0, -1, True, False)) == [view]

    asyncio.run(run())


def test_a_master_that_comes_back_remembers_that_the_job_stops(make: Make) -> None:
    async def run() -> None:
        master = make()
        await two_members(master)
        await master.stop()
        assert (await master.beat(0, Orders())).stop
        assert (await make().beat(0, Orders())).stop

    asyncio.run(run())


def test_a_worker_hears_at_once_what_is_new_and_only_that(make: Make) -> None:
    async def run() -> None:
        master = make()
        await two_members(master)
        known = await master.beat(0, Orders())
        assert known == Orders(number=1)
        waiting = asyncio.create_task(master.beat(0, known))
        await master.start(2)  # which is nobody's affair
        await asyncio.sleep(0.05)
        assert not waiting.done()
        began = time.monotonic()
        await master.lost(1, "it was killed")
        assert (await waiting).abort
        assert time.monotonic() - began < 1.0

    asyncio.run(run())


def test_a_master_that_comes_back_remembers_the_scale(make: Make) -> None:
    async def run() -> None:
        master = make()
        await two_members(master)
        await master.scale(1, 5)
        assert (await master.watch(0))["missing"] == 3
        assert (await make().watch(0))["missing"] == 3

    asyncio.run(run())


def test_nobody_waits_for_a_meeting_that_only_some_have_heard_of(make: Make) -> None:
    """The answer reached member 0, which went on; the master was lost before member 1 had it."""

    async def run() -> None:
        master = make()
        view = await two_members(master)
        given = [(0, {"a": "state"}), None]
        await together(*(master.meet(i, view.number, 1, given[i]) for i in (0, 1)))
        met = await together(make().meet(1, view.number, 1, given[1]))
        assert met in ([None], [given])

    asyncio.run(run())


def test_what_two_members_tell_of_an_epoch_is_kept_once(make: Make) -> None:
    audit = {"time": 1.0, "event": "epoch_audit", "epoch": 4, "records": 9}
    step = {"time": 1.0, "event": "step", "step": 12, "epoch": 4}

    async def told(master: Master) -> list[tuple[str, float]]:
        events = (await master.watch(0))["events"].values()
        return [(e["event"], e["time"]) for e in events if e["event"] in ("epoch_audit", "step")]

    async def run() -> None:
        master = make()
        await master.tell("worker-0", [{**audit, "seq": 1}, {**step, "seq": 2}])
        await master.tell("worker-1", [{**audit, "time": 2.0, "seq": 1}])
        assert await told(master) == [("epoch_audit", 1.0), ("step", 1.0)]
        # One that comes back knows what it was told. Who goes on from a checkpoint may come to the same epoch again.
        other = make()
        await other.tell("worker-2", [{**audit, "time": 3.0, "seq": 1}])
        began = {"time": 4.0, "event": "run_started", "seq": 1}
        await other.tell("worker-3", [began, {**audit, "time": 5.0, "seq": 2}])
        assert await told(other) == [("epoch_audit", 1.0), ("step", 1.0), ("epoch_audit", 5.0)]

    asyncio.run(run())
