"""Training with the dashboard's page open against training without it: the page must cost nothing that can be measured.

Both train the same model on the same arrays in one process, by turns. With the page: the process serves it, as a
command does, and another one asks for all that the page of a run asks for, every two seconds, with the answers'
versions as a browser has them. What is compared is the time of all epochs but the first, which compiles; the shortest
of some rounds. A step is told of every 20 steps, five times as often as by default, so that each look sees something.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import report

BATCH = 64
ROUNDS = 4
EPOCHS = {"iris DNN": 45, "MNIST conv net": 9}
EVERY_S = 2.0
ASKED = ("", "/series?points=1000", "/workers", "/ledger", "/events?limit=200")


def look(server: str, run: str) -> None:
    """What an open page does, until this process is ended; a line for each answer that is new."""
    urls = [f"{server}api/runs", *(f"{server}api/runs/{run}{rest}" for rest in ASKED)]
    versions: dict[str, str] = {}
    while True:
        for url in urls:
            asked = urllib.request.Request(url, headers={"If-None-Match": versions.get(url, "")})
            try:
                with urllib.request.urlopen(asked, timeout=10) as answer:
                    json.load(answer)
                    versions[url] = answer.headers.get("ETag", "")
                    print(url, flush=True)
            except urllib.error.HTTPError as error:
                if error.code not in (304, 404):  # nothing new, or no run yet
                    raise
        time.sleep(EVERY_S)


@contextmanager
def looked_at(directory: Path) -> Iterator[None]:
    """Inside, this process serves the page of the run, and another one looks at it."""
    from upath import UPath

    from elasticdl.runtime.dashboard.runs import Run
    from elasticdl.runtime.dashboard.serve import start

    run = Run(UPath(directory), UPath(directory)).id
    with start([str(directory)]) as dashboard:
        command = [sys.executable, __file__, "look", dashboard.url, run]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as browser:
            assert browser.stdout is not None
            try:
                yield
                assert browser.poll() is None, "nobody looks any more"
            finally:
                browser.terminate()
            new = [line for line in browser.stdout if "/series" in line]
    assert len(new) >= 2, "the page saw no more than one state of the run"


def seconds(name: str, data: tuple, *, is_looked_at: bool) -> float:
    """Of all epochs but the first."""
    from contextlib import nullcontext

    import keras
    from train import CASES, loss

    import elasticdl

    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory, "run")
        with looked_at(output) if is_looked_at else nullcontext():
            elasticdl.train(
                CASES[name][0](),
                data,
                loss=loss(),
                optimizer=keras.optimizers.SGD(0.1),
                minibatch_size=BATCH,
                num_epochs=EPOCHS[name],
                log_loss_steps=20,
                log_level="ERROR",
                output=str(output),
            )
        events = [json.loads(line) for line in (output / "events.jsonl").read_text().splitlines()]
    ends = [event["time"] for event in events if event["event"] == "epoch"]
    return ends[-1] - ends[0]


def main() -> None:
    import numpy as np
    from train import CASES

    rng = np.random.default_rng(0)
    for name, epochs in EPOCHS.items():
        _, shape, classes, steps = CASES[name]
        count = steps * BATCH
        data = (rng.random((count, *shape), dtype=np.float32), rng.integers(0, classes, count))
        best = {True: 1e9, False: 1e9}
        for n in range(2 * ROUNDS):
            is_looked_at = n % 4 in (1, 2)  # each comes first as often as the other
            best[is_looked_at] = min(
                best[is_looked_at], seconds(name, data, is_looked_at=is_looked_at)
            )
        rate = {key: count * (epochs - 1) / value for key, value in best.items()}
        report.add(f"{name}, page open: no page", rate[True], rate[False], "examples/s", 0.98)
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["look"]:
        look(*sys.argv[2:])
    main()
