"""A Keras file or a SavedModel as a Keras model, without the code that made it and without running any.

Both formats can carry code. It is refused unless the user trusts the file.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticdl.artifacts.export import feature_names, quiet_saving
from elasticdl.artifacts.graph_ops import unsafe_operations
from elasticdl.artifacts.trained_model import KERAS, SAVED_MODELS
from elasticdl.errors import ContractError, CorruptData, DataError, InvalidValue, reason

if TYPE_CHECKING:
    import keras

__all__ = ["check_keras_file", "load_bare_model", "load_keras_file", "load_saved_model"]

GRAPH = "saved_model.pb"
_TRUST = "If you trust who made it, add --trust."


def load_bare_model(path: Path, *, trust: bool = False) -> keras.Model:
    """The model of a `.keras` file, of a SavedModel, or of a trained model that has one of them.

    A graph needs no classes of the user's and runs no code: a trained model falls back on it.
    """
    if (path / KERAS).is_file():
        try:
            return load_keras_file(path / KERAS, trust=trust)
        except (ContractError, DataError, InvalidValue):
            if _graph(path) is None:
                raise
    if graph := _graph(path):
        return load_saved_model(graph, trust=trust)
    if (path / GRAPH).is_file():
        return load_saved_model(path, trust=trust)
    if path.is_file():
        return load_keras_file(path, trust=trust)
    raise ContractError(
        f"The model of {path} was given as a Python object that could not be saved whole. Give it "
        "again in Python, with model=."
    )


def _graph(path: Path) -> Path | None:
    """The SavedModel inside of a trained model."""
    return next((path / name for name in SAVED_MODELS if (path / name).is_dir()), None)


def load_keras_file(path: Path, *, trust: bool = False) -> keras.Model:
    """The model of a `.keras` file, compiled if the file can say how."""
    import keras

    check_keras_file(path)
    with quiet_saving():
        try:
            return keras.models.load_model(path, safe_mode=not trust)
        except Exception:  # perhaps only of the loss or the optimizer
            try:
                return keras.models.load_model(path, compile=False, safe_mode=not trust)
            except Exception as error:  # of any kind: what is in the file decides
                raise _explained(path, error) from error


def check_keras_file(path: Path) -> None:
    """Refuse, in words, what is no Keras file whatever its name."""
    with path.open("rb") as file:
        start = file.read(8)
        is_zip = zipfile.is_zipfile(file)
    if is_zip:
        with zipfile.ZipFile(path) as archive:
            if not {"config.json", "metadata.json"} - set(archive.namelist()):
                return
        what = "it is a zip archive without a model's config.json and metadata.json"
    elif not start:
        what = "it is empty"
    elif start.startswith(b"PK"):
        what = "it was cut off, or its end is damaged. Copy it again"
    elif start.startswith(b"\x89HDF"):
        what = "it is an HDF5 file. Load it with Keras and save it as .keras"
    else:
        what = "it is no zip archive, as Keras files are"
    raise CorruptData(f"{path} is not a whole Keras file: {what}.")


def _explained(path: Path, error: Exception) -> Exception:
    text = str(error)
    if "safe_mode" in text or "unsafe" in text:
        return InvalidValue(
            f"{path} holds Python code, a Lambda layer, which would be run. {_TRUST}"
        )
    if unknown := re.search(r"Could not locate (?:class|function) '([^']+)'", text):
        return ContractError(
            f"{path} needs the Python code of {unknown[1]}, which is not in it. Name the model with "
            "--model_zoo=DIR and --model_def=file.name, or give it in Python with model=."
        )
    if "zip" in text.lower() or "crc-32" in text.lower():
        return CorruptData(f"{path} is not a whole Keras file: {reason(error).splitlines()[0]}.")
    return DataError(f"Keras cannot load {path}: {reason(error).splitlines()[0]}.")


def load_saved_model(path: Path, *, trust: bool = False) -> keras.Model:
    """A Keras model that calls the `serving_default` of a SavedModel."""
    import tensorflow as tf

    if not trust:
        _refuse_code(path)
    with quiet_saving():
        try:
            loaded = tf.saved_model.load(str(path))
        except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
            why = reason(error).splitlines()[0]
            raise CorruptData(f"The SavedModel {path} cannot be loaded: {why}.") from error
    signature = loaded.signatures.get("serving_default")
    if signature is None:
        known = ", ".join(loaded.signatures) or "none"
        raise ContractError(
            f"The SavedModel {path} has no signature serving_default (it has: {known}). Export it with one."
        )
    return _served(loaded, signature, path)


def _refuse_code(path: Path) -> None:
    """What a graph does beside computing, and code that Keras left beside it."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((path / GRAPH).read_bytes())
    except DecodeError as error:
        raise CorruptData(f"The SavedModel {path} is damaged: {GRAPH} cannot be read.") from error
    for graph in saved.meta_graphs:
        if found := unsafe_operations(graph):
            raise InvalidValue(
                f"The SavedModel {path} runs code or touches files when it is used ({', '.join(found)}). "
                f"{_TRUST}"
            )
    metadata = path / "keras_metadata.pb"
    if metadata.is_file() and b'"class_name": "Lambda"' in metadata.read_bytes():
        raise InvalidValue(
            f"The SavedModel {path} holds Python code, a Lambda layer ({metadata.name}). {_TRUST}"
        )


def _served(loaded: Any, signature: Any, path: Path) -> keras.Model:
    import keras

    specs = dict(sorted(signature.structured_input_signature[1].items()))

    class SavedModel(keras.Model):  # type: ignore[misc]
        """The graph, called with features by name, or with the only one."""

        def __init__(self) -> None:
            super().__init__(name="saved_model")
            self._loaded = loaded

        def __call__(self, features: Any, training: bool | None = None) -> Any:
            # Not in `call`: Keras would write its own words around an error.
            return super().__call__(_arguments(features, specs, path), training=training)

        def call(self, tensors: dict[str, Any], training: bool | None = None) -> Any:
            outputs = signature(**tensors)
            return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    return SavedModel()


def _arguments(features: Any, specs: dict[str, Any], path: Path) -> dict[str, Any]:
    """The tensors of a signature, of the types that it wants."""
    import tensorflow as tf

    flat = tf.nest.flatten(features)
    named = dict(zip(feature_names(features), flat, strict=True))
    if len(flat) == len(specs) == 1:
        named = dict(zip(specs, flat, strict=True))
    if missing := [name for name in specs if name not in named]:
        given = ", ".join(named) if isinstance(features, dict) else f"{len(flat)} without a name"
        raise ContractError(
            f"The SavedModel {path} takes the features {', '.join(specs)}, and the data has {given}: "
            f"{missing[0]} is missing. Give it a dataset function that yields them: --model_zoo=DIR "
            "--dataset_fn=file.function."
        )
    return {name: _fitting(named[name], spec, name, path) for name, spec in specs.items()}


def _fitting(tensor: Any, spec: Any, name: str, path: Path) -> Any:
    """A feature as the graph takes it; its own words about another would be about the graph."""
    import tensorflow as tf

    if isinstance(tensor, tf.RaggedTensor | tf.SparseTensor):
        raise _unfit(path, name, spec, f"a {type(tensor).__name__}")
    tensor = tf.convert_to_tensor(tensor)
    if _is_number(tensor.dtype) and _is_number(spec.dtype):
        tensor = tf.cast(tensor, spec.dtype)
    if tensor.dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
        raise _unfit(path, name, spec, f"{tensor.dtype.name} {_shape(tensor.shape)}")
    return tensor


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_floating or dtype.is_integer)


def _unfit(path: Path, name: str, spec: Any, given: str) -> DataError:
    return DataError(
        f"The feature {name} does not fit the SavedModel {path}: it takes {spec.dtype.name} "
        f"{_shape(spec.shape)}, and the data gives {given}. Give the data that it was made for, or a dataset "
        "function."
    )


def _shape(shape: Any) -> str:
    if shape.rank is None:
        return "of any shape"
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"
