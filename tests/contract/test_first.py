"""The first contract: input_fn(records), feature_columns() and label_columns()."""

import numpy as np
import pytest
import tensorflow as tf

from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.contract.records import decode_example
from elasticdl.contract.spec import Spec
from elasticdl.errors import ContractError, DataError

from .conftest import WriteZoo

HEAD = """
import keras
import numpy as np
import tensorflow as tf
column = tf.feature_column.numeric_column
def loss(output, labels): return tf.reduce_mean(tf.square(output[:, 0] - tf.cast(labels, tf.float32)))
def optimizer(lr=0.1): return tf.train.GradientDescentOptimizer(lr)
"""
COLUMNS = """
def feature_columns(): return [column(key="x", dtype=tf.float32, shape=[1, 2])]
def label_columns(): return [column(key="y", dtype=tf.int64, shape=[1])]
"""
INPUT = """
def input_fn(records):
    x = np.stack([np.reshape(r["x"], (2,)) for r in records]).astype(np.float64)
    y = np.array([[r["y"].astype(np.int32)] for r in records])
    return {"x": x}, y
"""
FUNCTIONAL = "i = keras.Input((2, 1))\nmodel = keras.Model(i, keras.layers.Dense(1)(keras.layers.Flatten()(i)))"
SUBCLASS = """
class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.d = keras.layers.Dense(1)
    def call(self, inputs):
        return self.d(keras.layers.Flatten()(inputs))
model = Net()
"""


def example(**features: object) -> bytes:
    made = {}
    for key, value in features.items():
        values = np.ravel(value).tolist() if not isinstance(value, bytes) else [value]
        if isinstance(values[0], bytes):
            made[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif isinstance(values[0], int):
            made[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            made[key] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


@pytest.fixture
def load(write_zoo: WriteZoo):
    def loaded(*parts: str) -> Spec:
        return load_spec("m", model_zoo=write_zoo({"m.py": HEAD + "\n".join(parts)}))

    return loaded


def records(count: int = 4, *, labelled: bool = True) -> tf.data.Dataset:
    made = [example(x=[float(i), 1.0], **({"y": i} if labelled else {})) for i in range(count)]
    return tf.data.Dataset.from_tensor_slices(made)


def test_an_example_is_decoded_by_what_it_holds() -> None:
    found = decode_example(example(image=b"\x01\x02", one=3, many=[1, 2], float=0.5))
    assert found["image"] == b"\x01\x02"
    assert found["one"].astype(np.int32) == 3
    assert found["many"].tolist() == [1, 2]
    assert found["float"].dtype == np.float32


def test_a_record_that_is_no_example_is_told() -> None:
    with pytest.raises(DataError, match=r"5 bytes is not a serialized tf\.train\.Example"):
        decode_example(b"\xff\xff\xff\xff\xff")


@pytest.mark.parametrize("model", [FUNCTIONAL, SUBCLASS], ids=["functional", "subclass"])
def test_batches_have_the_types_of_the_columns_and_flat_labels(load, model: str) -> None:
    spec = load(COLUMNS, INPUT, model)
    batches = spec.batches(records(3), Mode.TRAINING, None, 2)
    features, labels = batches.element_spec
    assert features.dtype == tf.float32
    assert features.shape == ([None, 2, 1] if model == FUNCTIONAL else [None, 2])
    assert (labels.dtype, labels.shape) == (tf.int64, [None])
    assert [y.numpy().tolist() for _, y in batches] == [[0, 1], [2]]


@pytest.mark.parametrize("model", [FUNCTIONAL, SUBCLASS], ids=["functional", "subclass"])
def test_the_first_contract_trains_in_a_graph_without_a_batch_before(load, model: str) -> None:
    spec = load(COLUMNS, INPUT, model)
    net, optimizer = spec.build_model(), spec.make_optimizer()

    def loss_of(serialized: tf.Tensor) -> tf.Tensor:
        data = tf.data.Dataset.from_tensor_slices(serialized)
        total = tf.constant(0.0)
        for features, labels in spec.batches(data, Mode.TRAINING, None, 2):
            total += spec.loss(labels, net(features), None)
        return total

    made = [example(x=[float(i), 1.0], y=i) for i in range(4)]
    assert np.isfinite(float(tf.function(loss_of)(tf.constant(made))))
    assert len(net.trainable_variables) == 2
    optimizer.build(net.trainable_variables)


def test_prediction_gives_an_input_fn_that_reads_labels_zeros(load) -> None:
    spec = load(COLUMNS, INPUT, SUBCLASS)
    (features,) = spec.batches(records(2, labelled=False), Mode.PREDICTION, None, 2)
    assert features.numpy().tolist() == [[0.0, 1.0], [1.0, 1.0]]


def test_records_may_be_named_values(load) -> None:
    spec = load(COLUMNS, INPUT, SUBCLASS)
    rows = tf.data.Dataset.from_tensor_slices({"y": [5, 6], "x": [[1.0, 2.0], [3.0, 4.0]]})
    ((features, labels),) = spec.batches(rows, Mode.TRAINING, None, 2)
    assert features.numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert labels.numpy().tolist() == [5, 6]


def test_two_features_go_to_the_inputs_in_the_order_of_the_columns(load) -> None:
    spec = load(
        """
def feature_columns(): return [column(key=k, dtype=tf.float32, shape=[1]) for k in ("b", "a")]
def label_columns(): return [column(key="y", dtype=tf.int64, shape=[1])]
def input_fn(records):
    def stack(k): return np.array([[r[k]] for r in records])
    return {"a": stack("a"), "b": stack("b")}, stack("y")
one, two = keras.Input((1,), name="one"), keras.Input((1,), name="two")
model = keras.Model([one, two], keras.layers.Subtract()([one, two]))
"""
    )
    data = tf.data.Dataset.from_tensor_slices([example(a=1.0, b=5.0, y=0)])
    ((features, _),) = spec.batches(data, Mode.TRAINING, None, 1)
    assert spec.build_model()(features).numpy() == [[4.0]]


def test_a_feature_of_varying_length_keeps_its_rank_only(load) -> None:
    spec = load(
        """
def feature_columns(): return [column(key="x", dtype=tf.float32, shape=[1])]
def label_columns(): return [column(key="y", dtype=tf.int64, shape=[1])]
def input_fn(records):
    return {"x": np.zeros((len(records), 3 + len(records)))}, np.array([r["y"] for r in records])
""",
        SUBCLASS,
    )
    batches = spec.batches(records(3), Mode.TRAINING, None, 2)
    assert batches.element_spec[0].shape == [None, None]
    assert [x.shape for x, _ in batches] == [(2, 5), (1, 4)]


def test_an_input_fn_that_cannot_take_zeros_still_works_eagerly(load) -> None:
    strict = "def input_fn(records):\n    assert all(r['x'][1] == 1 for r in records)\n"
    spec = load(COLUMNS, strict + INPUT.split("\n", 2)[2], SUBCLASS)
    batches = spec.batches(records(2), Mode.TRAINING, None, 2)
    assert batches.element_spec[0].shape.rank is None
    ((features, _),) = batches
    assert features.shape == (2, 2)


def test_missing_columns_are_told(load) -> None:
    with pytest.raises(ContractError, match=r"must have a function feature_columns\(\)"):
        load(INPUT, SUBCLASS)
    features = COLUMNS.split("def label")[0]
    with pytest.raises(ContractError, match=r"must have a function label_columns\(\)"):
        load(INPUT, SUBCLASS, features)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("{'x': 1}", r"Return the pair \(model_inputs, labels\)"),
        ("{'z': 1}, 1", "columns name 'x'"),
    ],
)
def test_a_wrong_return_value_is_told(load, returned: str, message: str) -> None:
    spec = load(COLUMNS, SUBCLASS, f"def input_fn(records): return {returned}")
    with pytest.raises(tf.errors.OpError, match=message):
        list(spec.batches(records(), Mode.TRAINING, None, 2))


def test_records_of_another_kind_are_told(load) -> None:
    rows = tf.data.Dataset.from_tensor_slices([["1", "2"]])
    with pytest.raises(DataError, match="needs serialized"):
        load(COLUMNS, INPUT, SUBCLASS).batches(rows, Mode.TRAINING, None, 2)
