"""A step in parts is the step on the whole, and one whose sum never comes has not happened."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.spec import Spec
from elasticdl.engine.group import GroupBroken
from elasticdl.engine.randomness import keras_seed_state
from elasticdl.engine.shared_step import APPLIED, EMPTY, FAILED, LAST, SharedStep, Sum, _read
from elasticdl.engine.state import TrainingModel

pytestmark = pytest.mark.usefixtures("tensorflow")
L = keras.layers
ROWS = 12


class Part:
    """One member of a group whose sums are made by hand.

    As long as there is no sum, `reduce` keeps the buffer that came and fails, as a sum that never comes does.
    """

    number, device = 1, "/device:CPU:0"
    wants_pause = wants_stop = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.name = f"worker-{rank}"
        self.names = tuple(f"worker-{i}" for i in range(size))
        self.kept: Any = None
        self.sum: Any = None

    def reduce(self, buffer: Any, keys: Any) -> Any:
        summed = tf.numpy_function(self._reduced, [buffer], buffer.dtype)
        return tf.ensure_shape(summed, [None])

    def _reduced(self, buffer: np.ndarray) -> np.ndarray:
        self.kept = buffer.copy()
        if self.sum is None:
            raise ValueError("broken")
        return np.asarray(self.sum)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.InvalidArgumentError as error:
            raise GroupBroken("broken") from error

    def gather(self, payload: Any) -> list[Any]:
        raise NotImplementedError

    def regroup(self, version: int, give: Any, *, may_admit: bool) -> Any:
        raise NotImplementedError


class Echo(Part):
    """A group of one, whose sum is what it gives; `say` may change what it is told in some turn, or raise."""

    def __init__(self, say: Callable[[int, np.ndarray], None] | None = None) -> None:
        super().__init__(0, 1)
        self.say = say or (lambda turn, tail: None)
        self.turns = 0

    def _reduced(self, buffer: np.ndarray) -> np.ndarray:
        summed = buffer.copy()
        self.turns += 1
        self.say(self.turns, summed[-7:])
        return summed


class Replica:
    def __init__(self, spec: Spec, element: Any, part: Part, *, shared: bool) -> None:
        self.group = part
        self.training = TrainingModel(spec, element)
        element_spec = tf.nest.map_structure(_spec_of, element)
        self.step = SharedStep(self.training, part, element_spec, shared=shared)

    def contribute(self, element: Any, version: int = 1, slot: int = APPLIED) -> np.ndarray:
        """The buffer that it would add to the sum; which does not come."""
        with pytest.raises(GroupBroken):
            self.step.run(_optionals(element), slot, version)
        assert self.step.taken == []
        return self.group.kept

    def take(self, summed: np.ndarray, element: Any, version: int, slot: int = APPLIED) -> Sum:
        """The same with the sum that everybody gets."""
        self.group.sum = summed
        self.step.run(_optionals(element), slot, version)
        self.group.sum = None
        (said,) = self.step.taken
        return said

    @property
    def state(self) -> dict[str, np.ndarray]:
        kept = {name: np.array(value) for name, value in self.training.save().items()}
        return kept | {"keras seed": np.array(keras_seed_state().numpy())}


def _optionals(*elements: Any) -> list[Any]:
    return [tf.experimental.Optional.from_value(one) for one in elements if one is not None]


def _spec_of(tensor: Any) -> Any:
    return tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype)


def replicas(spec: Spec, element: Any, size: int, *, shared: bool = False) -> list[Replica]:
    made = [Replica(spec, element, Part(rank, size), shared=shared) for rank in range(size)]
    for replica in made[1:]:
        replica.training.load(made[0].training.save())
    return made


def take_step(members: Sequence[Replica], elements: Sequence[Any], version: int = 1) -> Sum:
    """All contribute, the buffers are added by hand, all get the sum."""
    pairs = list(zip(members, elements, strict=True))
    summed = np.sum([member.contribute(element, version) for member, element in pairs], 0)
    said = [member.take(summed, element, version) for member, element in pairs]
    assert all(one == said[0] for one in said)
    return said[0]


def take_step_in_parts(member: Replica, elements: Sequence[Any], version: int = 1) -> Sum:
    """The same by one replica that stands for all in turn: contributing changes nothing."""
    buffers = []
    member.group.size = len(elements)
    for rank, element in enumerate(elements):
        member.group.rank = rank
        buffers.append(member.contribute(element, version))
    return member.take(np.sum(buffers, 0), elements[-1], version)


def cut(element: Any, edges: Sequence[int]) -> list[Any]:
    ends = [*edges, ROWS]
    return [
        tf.nest.map_structure(lambda t, a=a, b=b: t[a:b], element)
        for a, b in zip([0, *edges], ends, strict=True)
    ]


def make_spec(build: Callable[[], keras.Model], loss: Any = "mse", optimizer: Any = "sgd") -> Spec:
    batches: Any = None
    return Spec("test", build, lambda: keras.optimizers.get(optimizer), loss, batches)


def compiled_spec(build: Callable[[], keras.Model]) -> Spec:
    def unused() -> Any:
        raise AssertionError("the model has its own")

    batches: Any = None
    return Spec("test", build, unused, None, batches, compiled=True)


# --- models ---


def numbers(*shape: int, seed: int = 0) -> Any:
    return tf.constant(np.random.default_rng(seed).normal(size=(ROWS, *shape)), tf.float32)


def dense() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        return keras.Sequential(
            [keras.Input((4,)), L.Dense(5, "tanh", kernel_regularizer="l2"), L.Dense(1)]
        )

    return make_spec(build), (numbers(4), numbers(1, seed=1))


def weighed() -> tuple[Spec, Any]:
    spec, (features, labels) = dense()
    return spec, (features, labels, tf.linspace(0.0, 3.0, ROWS))


def adam() -> tuple[Spec, Any]:
    spec, element = dense()
    return make_spec(spec.build_model, optimizer="adam"), element


def embedding() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        return keras.Sequential(
            [keras.Input((3,), dtype="int32"), L.Embedding(9, 4), L.Flatten(), L.Dense(1)]
        )

    words = np.random.default_rng(2).integers(0, 9, (ROWS, 3))
    return make_spec(build), (tf.constant(words, tf.int32), numbers(1, seed=1))


def conv(*more: Any) -> tuple[Spec, Any]:
    def build() -> keras.Model:
        first = [keras.Input((6, 6, 1)), L.Conv2D(3, 3, activation="relu")]
        return keras.Sequential([*first, *more, L.Flatten(), L.Dense(2)])

    labels = tf.constant(np.arange(ROWS) % 2, tf.int32)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return make_spec(build, loss), (numbers(6, 6, 1), labels)


def convs() -> tuple[Spec, Any]:
    return conv(L.Conv2D(4, 3, activation="relu"))


def outputs() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        features = keras.Input((4,))
        hidden = L.Dense(5, "tanh")(features)
        return keras.Model(
            features, {"a": L.Dense(1, name="a")(hidden), "b": L.Dense(2, name="b")(hidden)}
        )

    labels = {"a": numbers(1, seed=1), "b": numbers(2, seed=2)}
    return make_spec(build, {"a": "mse", "b": "mae"}), (numbers(4), labels)


def mixed_dtypes() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        return keras.Sequential(
            [
                keras.Input((4,)),
                L.Dense(5, "tanh", dtype="float64"),
                L.Dense(3, dtype="float32"),
                L.Dense(1, dtype="mixed_bfloat16"),
            ]
        )

    def loss(labels: Any, output: Any, weights: Any) -> Any:
        return tf.square(labels - tf.cast(output, tf.float32))

    return make_spec(build, loss), (numbers(4), numbers(1, seed=1))


def unused_variable() -> tuple[Spec, Any]:
    class Model(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.other = L.Dense(1), L.Dense(1)

        def call(self, features: Any) -> Any:
            self.other(features)
            return self.used(features)

    return make_spec(Model), (numbers(4), numbers(1, seed=1))


MODELS = [dense, weighed, adam, embedding, conv, convs, outputs, mixed_dtypes, unused_variable]


def assert_close(state: dict[str, np.ndarray], other: dict[str, np.ndarray], rtol: float) -> None:
    assert state.keys() == other.keys()
    for name in state:
        np.testing.assert_allclose(state[name], other[name], rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_parts_of_any_size_give_the_step_on_the_whole(model: Any) -> None:
    spec, element = model()
    tolerance = 2e-2 if model is mixed_dtypes else 1e-5
    (member,) = replicas(spec, element, 1)
    begin = member.state
    begin.pop("keras seed")
    said = [take_step_in_parts(member, [element], version) for version in (1, 2)]
    whole = member.state
    for edges in ([5], [1, 10], [1, 2, 3, 7, 9]):
        member.training.load(begin)
        parts = cut(element, edges)
        again = [take_step_in_parts(member, parts, version) for version in (1, 2)]
        assert_close(member.state, whole, tolerance)
        for one, other in zip(said, again, strict=True):
            assert other.examples == one.examples == ROWS
            assert other.loss == pytest.approx(one.loss, rel=tolerance)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_slices_of_a_shared_minibatch_give_the_step_on_the_whole(model: Any) -> None:
    """Some of them empty, which not every model can compute with."""
    spec, element = model()
    tolerance = 2e-2 if model is mixed_dtypes else 1e-5
    (member,) = replicas(spec, element, 1, shared=True)
    begin = member.state
    begin.pop("keras seed")
    take_step_in_parts(member, [element])
    whole = member.state
    for size in (2, 3, 5, ROWS + 2):
        member.training.load(begin)
        assert take_step_in_parts(member, [element] * size).examples == ROWS
        assert_close(member.state, whole, tolerance)


def test_what_each_member_says_has_a_place_of_its_own() -> None:
    spec, element = dense()
    (member,) = replicas(spec, element, 1)
    member.group.size, buffers = 3, []
    for rank in range(3):
        member.group.rank, member.group.wants_pause = rank, rank == 1
        buffers.append(member.contribute(element, slot=rank + 2))
    said = _read(np.sum(buffers, 0)[-11:])
    assert said.slots == (2, 3, 4)
    assert said.shares == (ROWS,) * 3
    assert said.pause and not said.stop


def test_a_member_without_a_minibatch_adds_nothing_of_the_right_length() -> None:
    spec, element = dense()
    member, idle = replicas(spec, element, 2)
    begin = member.state
    begin.pop("keras seed")
    nothing = idle.contribute(None, slot=EMPTY)
    said = _read(nothing[-9:])
    buffer = member.contribute(element)
    assert nothing.shape == buffer.shape and nothing.dtype == buffer.dtype
    assert (said.examples, said.slots, said.shares) == (0, (0, 3), (0, 0))
    assert np.count_nonzero(nothing) == 2, "its slot, and that it has to look for more"
    take_step([member, idle], [element, None])
    assert_close(idle.state, member.state, 0.0)
    member.training.load(begin)
    take_step_in_parts(member, [element])
    assert_close(member.state, idle.state, 1e-6)


# --- what the forward pass changes ---


def batch_norm() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        return keras.Sequential(
            [keras.Input((4,)), L.BatchNormalization(momentum=0.5, name="norm"), L.Dense(1)]
        )

    return make_spec(build), (numbers(4), numbers(1, seed=1))


def test_moving_statistics_are_combined_by_examples() -> None:
    spec, element = batch_norm()
    (member,) = replicas(spec, element, 1)
    take_step_in_parts(member, cut(element, [3]))
    parts = [np.asarray(features) for features, _ in cut(element, [3])]
    seen = sum(len(part) * part.mean(0) for part in parts) / ROWS
    norm = member.training.model.get_layer("norm")
    np.testing.assert_allclose(norm.moving_mean.numpy(), 0.5 * seen, rtol=1e-5, atol=1e-6)
    spread = sum(len(part) * part.var(0) for part in parts) / ROWS
    np.testing.assert_allclose(norm.moving_variance.numpy(), 0.5 + 0.5 * spread, rtol=1e-5)


def compiled() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        model = keras.Sequential([keras.Input((4,)), L.Dense(3)])
        model.compile(
            "sgd",
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(2)],
        )
        return model

    return compiled_spec(build), (numbers(4), tf.constant(np.arange(ROWS) % 3, tf.int32))


def test_metrics_of_a_compiled_model_are_those_of_the_whole() -> None:
    spec, element = compiled()
    (member,) = replicas(spec, element, 1)
    begin = member.state
    begin.pop("keras seed")
    results = []
    for edges in ([], [2, 9]):
        member.training.load(begin)
        for version in (1, 2):
            take_step_in_parts(member, cut(element, edges), version)
        assert member.training.metrics is not None
        results.append(member.training.metrics.result())
    assert 0 < results[0]["accuracy"] <= 1
    assert results[1] == pytest.approx(results[0], rel=1e-5)


def dropout() -> tuple[Spec, Any]:
    def build() -> keras.Model:
        return keras.Sequential([keras.Input((50,)), L.Dropout(0.5, seed=1), L.Dense(1)])

    return make_spec(build), (tf.ones((ROWS, 50)), tf.zeros((ROWS, 1)))


def test_random_layers_differ_between_ranks_and_turns_and_can_be_repeated() -> None:
    spec, element = dropout()
    member, heir = replicas(spec, element, 2)

    def drawn(by: Replica, rank: int, version: int) -> np.ndarray:
        by.group.rank = rank
        return by.contribute(element, version)[:-8]

    one = drawn(member, 0, 7)
    assert not np.array_equal(one, drawn(member, 1, 7)), "ranks draw the same"
    assert not np.array_equal(one, drawn(member, 0, 8)), "turns draw the same"
    np.testing.assert_array_equal(one, drawn(member, 0, 7))
    np.testing.assert_array_equal(one, drawn(heir, 0, 7))


def everything() -> tuple[Spec, Any]:
    """All that a forward pass can change: statistics, seeds, metrics."""

    def build() -> keras.Model:
        model = keras.Sequential(
            [keras.Input((4,)), L.BatchNormalization(), L.Dropout(0.5), L.Dense(3)]
        )
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss, metrics=["accuracy"])
        return model

    return compiled_spec(build), (numbers(4), tf.constant(np.arange(ROWS) % 3, tf.int32))


@pytest.mark.parametrize("model", [everything, mixed_dtypes, adam], ids=lambda m: m.__name__)
@pytest.mark.parametrize("shared", [False, True])
def test_a_step_whose_sum_never_comes_changes_nothing(model: Any, shared: bool) -> None:
    spec, element = model()
    (member,) = replicas(spec, element, 1, shared=shared)
    take_step_in_parts(member, [element, element])  # not only what is there at the beginning
    before = member.state
    assert any("iteration" in name for name in before)
    for given in (element, None):
        member.contribute(given, version=2)
        assert_close(member.state, before, 0.0)
    take_step_in_parts(member, [element, element], version=2)
    assert any(not np.array_equal(before[name], member.state[name]) for name in before)


@pytest.mark.parametrize("shared", [False, True])
def test_a_step_without_examples_or_with_a_missing_part_changes_nothing(shared: bool) -> None:
    spec, element = everything()
    (member,) = replicas(spec, element, 1, shared=shared)
    member.group.size = 2
    before = member.state
    said = member.take(2 * member.contribute(None, slot=EMPTY), None, 1)
    assert not said.counts(shared=shared)
    assert_close(member.state, before, 0.0)
    half = member.contribute(element)
    member.group.rank = 1
    said = member.take(half + member.contribute(None, slot=FAILED), None, 1, FAILED)
    assert said.slots == (APPLIED, FAILED)
    assert said.counts(shared=shared) is not shared
    changed = any(not np.array_equal(before[name], member.state[name]) for name in before)
    assert changed is not shared


def raise_at(turn: int) -> Callable[[int, np.ndarray], None]:
    def say(now: int, tail: np.ndarray) -> None:
        if now == turn:
            raise ValueError("broken")

    return say


def ask_for_pause(turn: int) -> Callable[[int, np.ndarray], None]:
    def say(now: int, tail: np.ndarray) -> None:
        tail[2] = now == turn

    return say


def others_are_at_their_end(turn: int) -> Callable[[int, np.ndarray], None]:
    def say(now: int, tail: np.ndarray) -> None:
        tail[4] += now == turn

    return say


def lose_the_loss(turn: int) -> Callable[[int, np.ndarray], None]:
    def say(now: int, tail: np.ndarray) -> None:
        tail[0] = np.nan if now == turn else tail[0]

    return say


class Calls:
    """Calls with several minibatches, always from the same weights."""

    def __init__(self, model: Any, count: int) -> None:
        self.spec, element = model()
        rows = np.arange(ROWS)
        self.elements = [
            tf.nest.map_structure(lambda t, n=n: tf.gather(t, rows[n:]), element)
            for n in range(count)
        ]
        self._begin = TrainingModel(self.spec, element).save()

    def make(self, group: Part) -> Replica:
        replica = Replica(self.spec, self.elements[0], group, shared=False)
        replica.training.load(self._begin)
        keras_seed_state().assign([1, 2])
        return replica

    def one_by_one(self, count: int) -> tuple[Replica, list[Sum]]:
        replica, said = self.make(Echo()), []
        for version in range(count):
            replica.step.run(_optionals(self.elements[version]), APPLIED, version)
            said += replica.step.taken
        return replica, said


def test_several_steps_in_a_call_are_those_of_single_calls() -> None:
    calls = Calls(everything, 5)
    together = calls.make(Echo())
    together.step.run(_optionals(*calls.elements), APPLIED, 0)
    state = together.state
    apart, said = calls.one_by_one(5)
    assert together.step.taken == said
    assert [one.examples for one in said] == [ROWS, ROWS - 1, ROWS - 2, ROWS - 3, ROWS - 4]
    assert_close(state, apart.state, 0.0)


@pytest.mark.parametrize("turn", [1, 3, 5])
@pytest.mark.parametrize("say", [raise_at, ask_for_pause, others_are_at_their_end, lose_the_loss])
def test_a_call_ends_where_somebody_has_something_else_to_do(say: Any, turn: int) -> None:
    """With the steps before it, and that one if its sum came: no more and no less."""
    calls = Calls(dense, 5)
    replica = calls.make(Echo(say(turn)))
    with pytest.raises(GroupBroken) if say is raise_at else contextlib.nullcontext():
        replica.step.run(_optionals(*calls.elements), LAST, 0)
    taken = turn - 1 if say is raise_at else turn
    said = replica.step.taken
    assert [one.examples for one in said] == [ROWS - n for n in range(taken)]
    assert [one.slots for one in said] == [(APPLIED,)] * min(taken, 4) + [(LAST,)] * (taken == 5)
    if taken:
        assert 0 <= time.monotonic() - replica.step.taken_at < 60
    assert_close(replica.state, calls.one_by_one(taken)[0].state, 0.0)


def test_a_call_that_breaks_at_once_has_no_steps_of_the_one_before() -> None:
    calls = Calls(dense, 3)
    replica = calls.make(Echo(raise_at(4)))
    replica.step.run(_optionals(*calls.elements), APPLIED, 0)
    assert len(replica.step.taken) == 3
    with pytest.raises(GroupBroken):
        replica.step.run(_optionals(*calls.elements), APPLIED, 3)
    assert replica.step.taken == []


def test_warming_up_leaves_everything_as_it_was() -> None:
    spec, element = everything()
    (member,) = replicas(spec, element, 1)
    before = member.state
    member.group.sum = member.contribute(element)
    member.step.warm_up(element)
    assert_close(member.state, before, 0.0)


def test_replicas_stay_the_same_to_the_last_bit() -> None:
    spec, element = everything()
    members = replicas(spec, element, 3)
    for version in range(5):
        take_step(members, cut(element, [1 + version, 8]), version)
    for member in members[1:]:
        for name, value in member.state.items():
            np.testing.assert_array_equal(value, members[0].state[name], err_msg=name)
