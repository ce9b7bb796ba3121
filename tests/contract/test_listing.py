"""The models of a zoo are listed without importing anything."""

from pathlib import Path

import pytest

from elasticdl.contract.listing import list_models
from elasticdl.errors import NotFound

from .conftest import WriteZoo

FILES = {
    "mnist/functional.py": '''
        """Digits."""
        raise RuntimeError("must not run")
        def custom_model(units, name="n", *, rate=0.5):
            """Image in, logits out.

            More words.
            """
        ''',
    "mnist/instance.py": '"""An instance."""\nmodel = object()',
    "mnist/first.py": "def input_fn(records): pass\nmodel = 1",
    "credit/__init__.py": """
        class Base(ElasticDLSpec):
            def __init__(self, context=None, units=3): pass
        class Credit(Base):
            'Who pays back.'
            def create_model(self): pass
        """,
    "regressor.py": """
        import keras
        class DNN(keras.Model):
            def __init__(self, hidden_units=(10, 20), learning_rate=0.1): pass
            default_loss = "mse"
        class Layer(keras.layers.Layer): pass
        class Part(keras.Model): pass
        """,
    "imported.py": "from regressor import loss\nclass Net(tf.keras.Model): pass",
    "helper.py": "def f(): pass",
    "broken.py": "def (:",
    ".hidden/m.py": "model = 1",
    "__pycache__/m.py": "model = 1",
}


@pytest.fixture
def zoo(write_zoo: WriteZoo) -> Path:
    return write_zoo(FILES)


def test_every_form_is_found(zoo: Path) -> None:
    found = {m.name: m.form for m in list_models(zoo)}
    assert found == {
        "broken": "syntax error",
        "credit.Credit": "ElasticDLSpec",
        "imported.Net": "Keras class",
        "mnist.first.model": "first contract",
        "mnist.functional.custom_model": "functions",
        "mnist.instance.model": "functions",
        "regressor.DNN": "Keras class",
    }


def test_parameters_and_words_are_those_of_the_source(zoo: Path) -> None:
    found = {m.name: m for m in list_models(zoo)}
    functional = found["mnist.functional.custom_model"]
    assert functional.parameters == (("units", None), ("name", "'n'"), ("rate", "0.5"))
    assert functional.summary == "Image in, logits out."
    assert found["mnist.instance.model"].summary == "An instance."
    assert found["credit.Credit"].parameters == (("units", "3"),)
    assert found["credit.Credit"].file == "credit/__init__.py"
    assert found["regressor.DNN"].parameters == (
        ("hidden_units", "(10, 20)"),
        ("learning_rate", "0.1"),
    )
    assert "invalid syntax" in found["broken"].summary


def test_a_missing_zoo_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="not a directory"):
        list_models(tmp_path / "nowhere")
