"""Experiments of five components, on the example that they come with: 1,000 images, batches of 8.

The classes are those of `mnist_project`; the images are prototypes of ten classes with noise, as JPEG files. The
peers use the same classes:

- epochs: `fit` with `steps_per_epoch`, `validation_data` and `validation_steps`, by turns in one process; the fastest
  epoch after the first, with its validation. Ours is a whole `elasticdl` run: it also writes events, curves,
  checkpoints and to MLflow.
- evaluation: a `predict` call for each data point, and the same function of it.
- bookkeeping: the same training without MLflow, TensorBoard and checkpoints; all its epochs but the first.
- memory: the same process, twenty epochs earlier.
- the whole run: `original.py`, a process that does the same with Keras, MLflow and pandas.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import report

HERE = Path(__file__).parent
PARTS = {"train": 1000, "validation": 500, "test": 500}
KINDS = {"tf_data": ("tf.data", 2.0), "python": ("Python generators", 1.5)}
WHOLE = {"tf_data": 0.7, "python": None}  # with generators most of it is the user's own reading
ROUNDS = 3
LONG = 120
EARLY, LATE = 5, 25
SINGLE_POINTS = 60


def write_images(directory: Path) -> None:
    import numpy as np
    import skimage.io

    rng = np.random.default_rng(0)
    prototypes = rng.integers(0, 200, (10, 28, 28))
    for part, count in PARTS.items():
        (directory / part).mkdir(parents=True)
        labels = rng.integers(0, 10, count)
        noise = rng.integers(0, 56, (count, 28, 28))
        images = (prototypes[labels] + noise).astype(np.uint8)
        names = [f"image_{i}.jpg" for i in range(count)]
        for name, image in zip(names, images, strict=True):
            skimage.io.imsave(directory / part / name, image, check_contrast=False)
        rows = "".join(f"{name},{label}\n" for name, label in zip(names, labels, strict=True))
        (directory / part / "labels.csv").write_text("image name,label\n" + rows)


@contextmanager
def project() -> Iterator[Path]:
    """A fresh project; its images are made once, by the first process."""
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-") as directory:
        root = Path(directory, "project")
        shutil.copytree(HERE / "mnist_project", root, ignore=shutil.ignore_patterns("__pycache__"))
        yield root


def experiment(root: Path, run: str, **options: Any) -> Any:
    from elasticdl.experiments.stages import Experiment

    data = os.environ["BENCH_IMAGES"]
    return Experiment(root, run, data_dir=data, log_level="ERROR", **options)


def epoch_ends(root: Path, run: str) -> list[float]:
    lines = (root / "runs" / run / "events.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    return [event["time"] for event in told if event["event"] == "epoch"]


def lengths(ends: list[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(ends)]


def fit(kind: str) -> list[float]:
    """The ends of the epochs of a plain `fit` on the generators that the classes make."""
    import keras

    from elasticdl.experiments.components import load_components
    from elasticdl.experiments.config import load_config
    from elasticdl.experiments.project import Project

    class Ends(keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.at: list[float] = []

        def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
            self.at.append(time.time())

    with project() as root:
        opened = Project.open(root, kind, None)
        config = load_config(opened.config_file)
        parts = load_components(opened, config, os.environ["BENCH_IMAGES"])
        training, validation = parts.training(), parts.validation()
        ends = Ends()
        parts.model_builder.get_compiled_model().fit(
            training.batches,
            steps_per_epoch=training.num_batches,
            validation_data=validation.batches,
            validation_steps=validation.num_batches,
            epochs=config.epochs,
            verbose=0,
            callbacks=[ends],
        )
    return ends.at


def measure_epochs(kind: str) -> dict[str, float]:
    best = {"ours": 1e9, "fit": 1e9}
    for _ in range(ROUNDS):
        with project() as root:
            experiment(root, kind).train()
            best["ours"] = min(best["ours"], *lengths(epoch_ends(root, kind)))
        best["fit"] = min(best["fit"], *lengths(fit(kind)))
    return best


class Timed:
    """The seconds that calls of a function take in all."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.seconds = 0.0
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return self._function(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - started


def measure_evaluation(kind: str) -> dict[str, float]:
    """Seconds a data point, of the validation and the test data together."""
    from elasticdl.experiments import session
    from elasticdl.experiments.components import Components

    whole, theirs = session.evaluate, Components.evaluation_functions
    points = PARTS["validation"] + PARTS["test"]
    with project() as root:
        run = experiment(root, kind, overrides=["epochs=1"])
        run.train()
        run.export()
        functions = {name: Timed(f) for name, f in theirs(run._load()).items()}
        session.evaluate = timed = Timed(whole)
        Components.evaluation_functions = lambda self: functions
        started = time.perf_counter()
        run.evaluate()
        stage = time.perf_counter() - started
        session.evaluate, Components.evaluation_functions = whole, theirs
        users = sum(function.seconds for function in functions.values())
        single = predict_singly(run)
    return {
        "ours": timed.seconds / points,
        "functions": users / points,
        "single": single,
        "stage": stage,
    }


def predict_singly(run: Any) -> float:
    """Seconds a data point when each is a `predict` call of its own."""
    parts = run._load()
    model = parts.model_builder.get_compiled_model()
    data = parts.test().batches.unbatch().batch(1).as_numpy_iterator()
    functions = parts.evaluation_functions()
    model.predict(next(data)[0], verbose=0)
    started = time.perf_counter()
    for x, y, _ in itertools.islice(data, SINGLE_POINTS):
        output = model.predict(x, verbose=0)
        for function in functions.values():
            function(y[0], output[0])
    return (time.perf_counter() - started) / SINGLE_POINTS


def measure_bookkeeping(kind: str) -> dict[str, float]:
    """Seconds an epoch with all that is written, and with nothing but the events' file."""
    from elasticdl.runtime import journal
    from elasticdl.runtime.run import Run

    class Nothing:
        def __init__(self, *_: Any) -> None: ...
        def receive(self, *_: Any) -> None: ...
        def close(self) -> None: ...

    curves, save = journal.TensorBoard, Run.save
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(ROUNDS):
        for way in seconds:
            if way == "without":
                journal.TensorBoard, Run.save = Nothing, lambda *_: None
            with project() as root:
                run = experiment(root, kind, overrides=[f"epochs={LONG}"], mlflow=way == "with")
                run.train()
                ends = epoch_ends(root, kind)
            journal.TensorBoard, Run.save = curves, save
            seconds[way].append((ends[-1] - ends[0]) / (len(ends) - 1))
    return {way: min(times) for way, times in seconds.items()}


def measure_memory(kind: str) -> dict[str, float]:
    """MB resident at the ends of two epochs."""
    from elasticdl.engine.trainer import Trainer

    resident: list[float] = []
    end_epoch = Trainer._end_epoch

    def looking(trainer: Trainer, epoch: int) -> None:
        end_epoch(trainer, epoch)
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        resident.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)

    Trainer._end_epoch = looking
    with project() as root:
        experiment(root, kind, overrides=[f"epochs={LATE}"]).train()
    return {"early": resident[EARLY - 1], "late": resident[LATE - 1]}


def whole_run(kind: str, *, peer: bool) -> float:
    """Seconds of a process that trains, exports and evaluates."""
    with project() as root:
        data = os.environ["BENCH_IMAGES"]
        places = [f"--run_name={kind}", f"--data_dir={data}", f"--project_root={root}"]
        command = ["-m", "elasticdl", "run", "--log_level=ERROR"]
        if peer:
            command = [str(HERE / "original.py")]
        started = time.perf_counter()
        whole = [sys.executable, *command, *places]
        subprocess.run(whole, cwd=root, check=True, capture_output=True)
        return time.perf_counter() - started


def apart(what: str, kind: str) -> dict[str, float]:
    """A measurement in a process of its own."""
    command = [sys.executable, __file__, what, kind]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def report_all() -> None:
    for kind, (name, goal) in KINDS.items():
        best = apart("epochs", kind)
        rates = {who: PARTS["train"] / seconds for who, seconds in best.items()}
        report.add(f"{name}, epochs: plain fit", rates["ours"], rates["fit"], "examples/s", goal)
    points = apart("evaluation", "tf_data")
    name = "evaluation: predict for each point"
    report.add(name, 1 / points["ours"], 1 / points["single"], "points/s", 20)
    name = "evaluation, of it the user's functions: all"
    report.add(name, 1000 * points["functions"], 1000 * points["ours"], "ms/point", 0.5)
    epoch = apart("bookkeeping", "tf_data")  # whose epochs are the shorter ones
    name = "tf.data, epoch with MLflow, curves, checkpoints: without"
    add_less(name, epoch["with"], epoch["without"], "s", 1.1)
    for kind, (name, _) in KINDS.items():
        memory = apart("memory", kind)
        name = f"{name}, memory after epoch {LATE}: epoch {EARLY}"
        add_less(name, memory["late"], memory["early"], "MB", 1.02)
    for kind, (name, _) in KINDS.items():
        times = [(whole_run(kind, peer=False), whole_run(kind, peer=True)) for _ in range(ROUNDS)]
        ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
        add_less(f"{name}, whole run: the original's way", ours, theirs, "s", WHOLE[kind])
    report.finish()


def add_less(name: str, ours: float, peer: float, unit: str, goal: float | None) -> None:
    report.add(name, ours, peer, unit, goal, more_is_better=False)


def main() -> None:
    if len(sys.argv) == 3:
        from elasticdl.quiet import load_tensorflow

        load_tensorflow()
        measure = globals()[f"measure_{sys.argv[1]}"]
        print(json.dumps(measure(sys.argv[2])))
        return
    with tempfile.TemporaryDirectory(prefix="elasticdl-bench-images-") as images:
        write_images(Path(images))
        os.environ["BENCH_IMAGES"] = images
        report_all()


if __name__ == "__main__":
    main()
