"""Callbacks that write, in several processes that train together: played by several sets of callbacks here."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from elasticdl.engine.callbacks import Callbacks

pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation:DeprecationWarning"
)  # Keras

LOSSES = (0.5, 0.3, 0.4, 0.2)


@dataclass
class Players:
    """Members with callbacks of their own; who leads is a matter of a number."""

    make: Callable[[], list[Any]]
    leader: int | None = None
    members: list[Callbacks] = field(default_factory=list)
    models: list[Any] = field(default_factory=list)

    def join(self) -> Callbacks:
        import keras

        number = len(self.members)
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        self.models.append(model)
        member = Callbacks(
            self.make(), model, leads=lambda: self.leader == number, epochs=len(LOSSES), verbose=0
        )
        self.members.append(member)
        return member

    def begin(self, members: int) -> None:
        for _ in range(members):
            self.join()
        self.leader = 0
        for member in self.members:
            member.train_begin()

    def epoch(self, epoch: int, *, lost_in_it: bool = False) -> None:
        alive = self.members[self.leader or 0 :]
        for member in alive:
            member.epoch_begin(epoch)
            member.steps_begin(epoch)
            member.steps_end(epoch, LOSSES[epoch])
            member.evaluation_begin()
        if lost_in_it:
            self.lose_leader()
            alive = alive[1:]
        for member in alive:
            member.evaluation_end({"loss": LOSSES[epoch]})
            member.epoch_end(epoch, {"loss": LOSSES[epoch], "val_loss": LOSSES[epoch]})

    def lose_leader(self) -> None:
        """Files of a process that is gone are closed."""
        assert self.leader is not None
        for callback in self.members[self.leader]._callbacks:
            if getattr(callback, "csv_file", None):
                callback.csv_file.close()
        self.leader += 1

    def end(self) -> None:
        for member in self.members[self.leader or 0 :]:
            member.train_end({})


def rows(path: Path) -> list[str]:
    with path.open() as file:
        return [row["epoch"] for row in csv.DictReader(file)]


def test_log_has_each_epoch_once_when_who_leads_is_lost(tmp_path: Path) -> None:
    import keras

    path = tmp_path / "log.csv"
    players = Players(lambda: [keras.callbacks.CSVLogger(str(path))])
    players.begin(3)
    players.epoch(0)
    players.epoch(1, lost_in_it=True)
    players.epoch(2)
    players.lose_leader()
    players.epoch(3)
    players.end()
    assert rows(path) == ["0", "1", "2", "3"]


def test_log_is_gone_on_with_after_a_checkpoint(tmp_path: Path) -> None:
    import keras

    path = tmp_path / "log.csv"
    path.write_text("epoch,loss,val_loss\n0,0.5,0.5\n")
    players = Players(lambda: [keras.callbacks.CSVLogger(str(path))])
    resumed = players.join()
    resumed.restore(*resumed.snapshot())
    players.leader = 0
    resumed.train_begin()
    players.epoch(1)
    players.end()
    assert rows(path) == ["0", "1"]


def test_best_version_is_saved_by_who_leads_and_known_to_all(tmp_path: Path) -> None:
    import keras

    path = tmp_path / "best" / "of.keras"
    players = Players(lambda: [keras.callbacks.ModelCheckpoint(str(path), save_best_only=True)])
    players.begin(2)
    for number, model in enumerate(players.models):
        model.set_weights([weight * 0 + number for weight in model.get_weights()])
    players.epoch(0)
    assert float(keras.saving.load_model(path).weights[1][0]) == 0
    path.unlink()
    players.epoch(1, lost_in_it=True)
    assert float(keras.saving.load_model(path).weights[1][0]) == 1
    path.unlink()
    players.epoch(2)
    assert not path.exists(), "it is worse than what was best while the other one led"
    players.epoch(3)
    assert path.exists()


@pytest.mark.parametrize("update_freq", ["epoch", 1])
def test_curves_are_written_by_who_leads(tmp_path: Path, update_freq: Any) -> None:
    import keras

    players = Players(
        lambda: [keras.callbacks.TensorBoard(str(tmp_path / "curves"), update_freq=update_freq)]
    )
    players.begin(2)
    players.epoch(0)
    assert len(list(tmp_path.rglob("train/*tfevents*"))) == 1
    players.epoch(1, lost_in_it=True)
    players.epoch(2)
    players.end()
    assert len(list(tmp_path.rglob("train/*tfevents*"))) == 2


def test_weights_of_a_backup_are_not_taken_by_one_member(tmp_path: Path) -> None:
    import keras

    make = lambda: [keras.callbacks.BackupAndRestore(str(tmp_path / "backup"))]  # noqa: E731
    before = Players(make)
    before.begin(2)
    before.epoch(0)
    assert (tmp_path / "backup" / "latest.weights.h5").exists()
    after = Players(make)
    after.begin(2)
    kernels = [player.get_weights()[0].tolist() for player in (*before.models, *after.models)]
    assert kernels[2] != kernels[0]
    after.epoch(0)
    after.end()
    assert not (tmp_path / "backup").exists()


def test_other_callbacks_are_called_on_every_member() -> None:
    import keras

    called: list[int] = []
    players = Players(
        lambda: [
            keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: called.append(epoch))
        ]
    )
    players.begin(2)
    players.epoch(0)
    assert called == [0, 0]
