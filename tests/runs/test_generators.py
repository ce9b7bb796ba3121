"""Generators of every kind: that end early or never, that raise, that repeat, whose last batch is smaller."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from elasticdl.errors import ContractError, DataError
from elasticdl.experiments.stages import Experiment
from elasticdl.runtime.result import Result
from elasticdl.tracking.events import read_events
from runs.project_files import DATASET, PREPROCESSING, TRAINING, write_project, write_run

pytestmark = pytest.mark.usefixtures("tensorflow")


def run(root: Path, more: str = "", preprocessing: str = "", **config: Any) -> Result:
    """Train a project whose sources have some more classes."""
    write_project(root, dataset=DATASET + more, preprocessing=PREPROCESSING + preprocessing)
    write_run(root, **config)
    return Experiment(root, "one", mlflow=False, log_level="ERROR").run()


def warnings_of(root: Path) -> list[str]:
    events = read_events(root / "runs" / "one" / "events.jsonl")
    return [e["message"] for e in events if e["event"] == "warning"]


def examples_of(root: Path) -> list[int]:
    events = read_events(root / "runs" / "one" / "events.jsonl")
    return [e["examples"] for e in events if e["event"] == "epoch_audit"]


def test_generator_with_an_end_is_begun_again(tmp_path: Path) -> None:
    root = tmp_path / "p"
    run(root, FINITE, data_loader_class="dataset.Finite")
    assert examples_of(root) == [56, 56, 56]  # seven batches of eight, as n_iter says
    assert warnings_of(root) == []


def test_generator_that_ends_sooner_than_it_says_is_told(tmp_path: Path) -> None:
    root = tmp_path / "p"
    run(
        root,
        FINITE.replace("range(len(y))), len(y)", "range(5)), len(y)"),
        data_loader_class="dataset.Finite",
    )
    (warning,) = warnings_of(root)
    assert "gave 5 data points instead of the 53" in warning


@pytest.mark.parametrize("variant", ["generators", "datasets"])
def test_n_iter_that_is_too_small_leaves_no_point_out_of_a_report(
    tmp_path: Path, variant: str
) -> None:
    root = tmp_path / "p"
    preprocessing = f"""

class Few(In{variant.title()}):
    def _n_iter(self, n):
        return 1
"""
    run(root, preprocessing=preprocessing, variant=variant, preprocessor_class="preprocessing.Few")
    report = (root / "eval_reports" / "points" / "one" / "eval_report.csv").read_text()
    assert len(report.splitlines()) == 23
    assert len((root / "runs" / "one" / "validation_report.csv").read_text().splitlines()) == 22


FINITE = """

class Finite(Generators):
    def create_training_generator(self):
        x, y = self._part("training")
        return ((x[i], y[i], 1) for i in range(len(y))), len(y)
"""


def test_batches_that_end_early_are_begun_again_and_told(tmp_path: Path) -> None:
    root = tmp_path / "p"
    run(root, preprocessing=SHORT, preprocessor_class="preprocessing.Short")
    assert examples_of(root) == [56, 56, 56]
    (warning,) = warnings_of(root)
    assert "ended after 4 minibatches" in warning and "7" in warning


SHORT = """

class Short(InGenerators):
    def _batches(self, generator):
        for _, batch in zip(range(4), super()._batches(generator)):
            yield batch
"""


def test_dataset_without_repeat_is_whole_in_each_epoch(tmp_path: Path) -> None:
    root = tmp_path / "p"
    run(root, preprocessing=ONCE, variant="datasets", preprocessor_class="preprocessing.Once")
    assert examples_of(root) == [TRAINING] * 3  # the last batch is smaller
    assert warnings_of(root) == []


ONCE = """

class Once(InDatasets):
    def batchify(self, generator, n):
        return generator.batch(self.config.batch_size), self._n_iter(n)
"""


def test_test_data_that_has_fewer_points_than_it_says(tmp_path: Path) -> None:
    root = tmp_path / "p"
    run(root, FEWER, data_loader_class="dataset.Fewer")
    report = (root / "eval_reports" / "points" / "one" / "eval_report.csv").read_text()
    assert [line.split(",")[0] for line in report.splitlines()[1:]] == [
        f"t{i}.png" for i in range(13)
    ]
    assert "gave 13 data points instead of the 22" in warnings_of(root)[0]


FEWER = """

class Fewer(Generators):
    def create_test_generator(self):
        generator, n = super().create_test_generator()
        return (point for point, _ in zip(generator, range(13))), n
"""


def test_users_exception_in_a_generator_is_their_own(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="image 20 is not there") as caught:
        run(tmp_path / "p", RAISES, data_loader_class="dataset.Raises")
    lines = [str(entry.path) for entry in caught.traceback]
    assert lines[-1].endswith("dataset.py")


RAISES = """

class Raises(Generators):
    def create_training_generator(self):
        generator, n = super().create_training_generator()
        return self._until(generator), n

    def _until(self, generator):
        for number, point in enumerate(generator):
            if number == 20:
                raise LookupError("image 20 is not there")
            yield point
"""


def test_generator_that_gives_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gave no minibatch"):
        run(tmp_path / "p", EMPTY, data_loader_class="dataset.Empty")


EMPTY = """

class Empty(Generators):
    def create_training_generator(self):
        return iter(()), 5
"""


def test_shapes_that_change_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the first one had"):
        run(tmp_path / "p", CHANGING, data_loader_class="dataset.Changing")


CHANGING = """

class Changing(Generators):
    def create_training_generator(self):
        generator, n = super().create_training_generator()
        return ((x if i < 16 else x[:5], y, w) for i, (x, y, w) in enumerate(generator)), n
"""


def test_batch_of_the_wrong_form(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="A minibatch must be"):
        run(tmp_path / "p", preprocessing=ALONE, preprocessor_class="preprocessing.Alone")


ALONE = """

class Alone(InGenerators):
    def _batches(self, generator):
        for x, y, w in super()._batches(generator):
            yield x
"""


def test_n_iter_of_zero(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="n_iter 0"):
        run(tmp_path / "p", preprocessing=ZERO, preprocessor_class="preprocessing.Zero")


ZERO = """

class Zero(InGenerators):
    def batchify(self, generator, n):
        return generator, 0
"""


def test_dataset_that_repeats_for_ever_is_read_for_training_only(tmp_path: Path) -> None:
    """It counts what is read of it: as much as is trained on, and what is made ready ahead."""
    root = tmp_path / "p"
    run(root, COUNTED, variant="datasets", data_loader_class="dataset.Counted", epochs=2)
    read = len((root / "data" / "read").read_text())
    assert 2 * TRAINING <= read <= 2 * TRAINING + 40 * 8


COUNTED = """

class Counted(Datasets):
    def create_training_generator(self):
        dataset, n = super().create_training_generator()

        def count(x):
            with open(self.data_dir / "read", "a") as file:
                file.write(".")
            return x

        return dataset.map(
            lambda x, y, w: (tf.ensure_shape(tf.numpy_function(count, [x], tf.float32), [6]), y, w)
        ), n
"""


def test_memory_stays_flat(tmp_path: Path) -> None:
    """What a hundred more epochs leave behind in Python."""
    root = write_project(tmp_path / "p")
    sizes = []
    for name, epochs in (("short", 5), ("long", 105)):
        write_run(root, name, epochs=epochs, checkpoints_to_keep=1)
        tracemalloc.start()
        Experiment(root, name, mlflow=False, log_level="ERROR").train()
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    assert sizes[1] < sizes[0] + 2e6


def test_image_that_cannot_be_decoded(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Reading the training batches fails: .*JPEG"):
        run(tmp_path / "p", BROKEN, variant="datasets", data_loader_class="dataset.Broken")


BROKEN = """

class Broken(Datasets):
    def create_training_generator(self):
        dataset, n = super().create_training_generator()
        return dataset.map(lambda x, y, w: (tf.io.decode_jpeg(b"no image"), y, w)), n
"""


def test_dataset_that_gives_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gave no minibatch"):
        run(tmp_path / "p", NOTHING, variant="datasets", data_loader_class="dataset.Nothing")


NOTHING = """

class Nothing(Datasets):
    def create_training_generator(self):
        dataset, n = super().create_training_generator()
        return dataset.take(0), n
"""


def test_weight_that_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sample weight"):
        run(tmp_path / "p", NO_WEIGHT, data_loader_class="dataset.NoWeight")


NO_WEIGHT = """

class NoWeight(Generators):
    def create_training_generator(self):
        generator, n = super().create_training_generator()
        return ((x, y, None) for x, y, w in generator), n
"""


def test_ids_of_any_kind(tmp_path: Path) -> None:
    root = tmp_path / "p"
    run(root, ODD_IDS, data_loader_class="dataset.OddIds", epochs=1)
    report = (root / "eval_reports" / "points" / "one" / "eval_report.csv").read_text()
    assert [line.split(",")[0] for line in report.splitlines()[1:4]] == ["None", str(2**70), "x"]


ODD_IDS = """

class OddIds(Generators):
    def create_test_generator(self):
        generator, n = super().create_test_generator()
        ids = iter([None, 2**70, "x", *range(n)])
        return ((x, y, next(ids)) for x, y, _ in generator), n
"""
