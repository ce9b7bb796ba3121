"""Classes derived from ElasticDLSpec."""

import keras
import pytest
import tensorflow as tf

from elasticdl.contract.elasticdl_spec import ElasticDLSpec
from elasticdl.contract.load import load_spec
from elasticdl.contract.mode import Mode
from elasticdl.errors import ContractError, InvalidValue

from .conftest import WriteZoo


class Line(ElasticDLSpec):
    """A line through the origin."""

    def __init__(self, context=None, units=1):
        super().__init__(context=context)
        self.units = units

    def create_model(self):
        return keras.Sequential([keras.layers.Dense(self.units)])

    def create_optimizer(self, lr=0.1):
        return keras.optimizers.SGD(lr)

    def create_loss(self, outputs=None, labels=None):
        return tf.reduce_sum(outputs - 10 * labels)

    def create_dataset(self, dataset, mode):
        return dataset.map(lambda x: (x, mode == Mode.TRAINING))


class Measured(Line):
    def create_metrics(self, mode=Mode.TRAINING, outputs=None, labels=None, predictions=None):
        if mode == Mode.EVALUATION:
            labels = labels.flatten()
            return {"d": tf.reduce_sum(outputs - labels), "same": predictions is outputs}
        return {}


class Defined(Line):
    def create_metrics(self, mode=Mode.TRAINING, outputs=None, labels=None):
        return {"mae": keras.metrics.MeanAbsoluteError()} if mode == Mode.EVALUATION else {}


LABELS, OUTPUTS = tf.constant([1.0]), tf.constant([3.0])


@pytest.mark.parametrize("given", [Line, Line()], ids=["class", "instance"])
def test_a_spec_gives_every_part(given: object) -> None:
    spec = load_spec(given)
    assert spec.name == "Line"
    assert isinstance(spec.build_model(), keras.Sequential)
    assert spec.build_model() is not spec.build_model()
    assert float(spec.make_optimizer().learning_rate) == pytest.approx(0.1)
    assert float(spec.loss(LABELS, OUTPUTS, None)) == -7.0
    ((x, y),) = spec.batches(tf.data.Dataset.range(2), Mode.TRAINING, None, 2)
    assert (x.numpy().tolist(), y.numpy().tolist()) == ([0, 1], [True, True])
    assert (list(spec.metrics()), spec.metric_values, list(spec.callbacks())) == ([], None, [])


def test_params_reach_the_constructor_and_the_optimizer() -> None:
    spec = load_spec(Line, model_params={"units": 3, "learning_rate": 0.5})
    assert spec.build_model()(tf.ones([1, 1])).shape == (1, 3)
    assert float(spec.make_optimizer().learning_rate) == 0.5


def test_keywords_receive_all_params_and_context() -> None:
    received = {}

    class Open(Line):
        def __init__(self, context=None, **kwargs):
            super().__init__(context=context)
            received.update(kwargs, context=context)

    load_spec(Open, model_params={"a": 1, "lr": 0.5})
    assert received == {"a": 1, "lr": 0.5, "context": None}


def test_unknown_params_are_told() -> None:
    with pytest.raises(InvalidValue, match=r"no parameter 'unit'. Did you mean 'units'"):
        load_spec(Line, model_params={"unit": 3})
    with pytest.raises(InvalidValue, match="instance of Line"):
        load_spec(Line(), model_params={"units": 3})


@pytest.mark.parametrize("run", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_metrics_are_values_of_the_parameters_that_it_has(run: object) -> None:
    spec = load_spec(Measured)
    assert spec.metric_values is not None
    values = run(spec.metric_values)(tf.constant([[1]]), OUTPUTS)
    assert float(values["d"]) == 2.0
    assert bool(values["same"])


def test_metrics_may_be_definitions() -> None:
    spec = load_spec(Defined)
    assert spec.metric_values is None
    assert [m.name for m in spec.metrics()] == ["mae"]


def test_create_callbacks_is_optional() -> None:
    class Called(Line):
        def create_callbacks(self):
            return [keras.callbacks.History()]

    assert len(load_spec(Called).callbacks()) == 1


@pytest.mark.parametrize("part", ["loss", "optimizer"])
def test_a_missing_method_is_told(part: str) -> None:
    class Without(Line):
        pass

    setattr(Without, f"create_{part}", getattr(ElasticDLSpec, f"create_{part}"))
    with pytest.raises(
        ContractError, match=f"no {part}: looked for 'create_{part}' in the class Without"
    ):
        load_spec(Without)


def test_a_missing_model_is_told() -> None:
    with pytest.raises(ContractError, match="has no create_model"):
        load_spec(type("Empty", (ElasticDLSpec,), {}))


def test_the_bases_methods_say_what_is_missing() -> None:
    base = ElasticDLSpec()
    assert base.create_metrics() == {}
    with pytest.raises(ContractError, match="ElasticDLSpec has no create_loss"):
        base.create_loss()


def test_an_override_wins() -> None:
    spec = load_spec(Line, loss="mse", optimizer=keras.optimizers.Adam(0.25))
    assert spec.loss == "mse"
    assert isinstance(spec.make_optimizer(), keras.optimizers.Adam)


@pytest.mark.parametrize("name", ["m", "m.Mine", "m.made"])
def test_a_spec_is_named_in_a_zoo_and_may_carry_its_own_base(
    write_zoo: WriteZoo, name: str
) -> None:
    text = """
    import keras
    class Mine:
        def create_model(self): return keras.Sequential([keras.layers.Dense(1)])
        def create_loss(self, outputs, labels): return labels
        def create_optimizer(self): return keras.optimizers.SGD()
    made = Mine()
    """
    spec = load_spec(name, model_zoo=write_zoo({"m.py": text}))
    assert float(spec.loss(LABELS, OUTPUTS, None)) == 1.0
