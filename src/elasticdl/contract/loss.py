"""A user's loss in one form, whatever the order and names of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elasticdl.contract.bind import Bound, Role, bind, describe
from elasticdl.contract.keras_names import keras_names
from elasticdl.contract.legacy import hand_labels
from elasticdl.contract.spec import LossFn, Tensors
from elasticdl.errors import ContractError, UnknownName, nearest

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["LABELS", "OUTPUTS", "bind_loss"]

LABELS = Role.of(
    "labels", "label", "y_true", "y", "target", "targets", "true", "truth", "label_batch"
)
OUTPUTS = Role.of(
    "outputs", "output", "predictions", "prediction", "preds", "pred", "y_pred", "y_hat",
    "logits", "logit", "model_output", "model_outputs", "probabilities", "probs",
)  # fmt: skip
_WEIGHT = Role.of("sample_weight", "sample_weights", by_name=True)


def bind_loss(loss: Any) -> LossFn | Any:
    """A `LossFn` of a user's function; a Keras loss, a name or a dict as it is."""
    import keras

    if isinstance(loss, type) and issubclass(loss, keras.losses.Loss):
        return loss()
    if isinstance(loss, str):
        return _checked_name(loss)
    if isinstance(loss, keras.losses.Loss | dict | list):
        return loss
    if not callable(loss):
        raise ContractError(
            f"The loss is {loss!r} ({type(loss).__name__}). Give a function loss(labels, output), "
            "a Keras loss or "
            "its name, for example 'mse'."
        )
    bound = bind("loss", loss, (LABELS, OUTPUTS, _WEIGHT))
    if not bound.takes("labels") and not bound.takes("outputs"):
        return bind_loss(loss())
    return _UserLoss(bound)


def _checked_name(name: str) -> str:
    import keras

    try:
        keras.losses.get(name)
    except ValueError:
        known = nearest(name, keras_names("losses"))
        raise UnknownName(f"Keras has no loss {name!r}. {known}") from None
    return name


class _UserLoss:
    """Calls the user's function and reduces what it returns to one number."""

    def __init__(self, bound: Bound) -> None:
        self._bound = bound
        self.__name__ = getattr(bound.fn, "__name__", "loss")

    def __call__(
        self, labels: Tensors, outputs: Tensors, sample_weight: Tensors | None = None
    ) -> tf.Tensor:
        import tensorflow as tf

        value = self._bound(
            labels=hand_labels(self._bound.fn, labels), outputs=outputs, sample_weight=sample_weight
        )
        if value is None:
            raise ContractError(
                f"{describe('loss', self._bound.fn)} returned nothing (None). Return the loss as a "
                "tensor."
            )
        value = tf.convert_to_tensor(value)
        if sample_weight is None or self._bound.takes("sample_weight"):
            return value if value.shape.rank == 0 else tf.reduce_mean(value)
        return _weighted(value, sample_weight, self._bound.fn)


def _weighted(value: tf.Tensor, weight: Tensors, fn: Callable[..., Any]) -> tf.Tensor:
    """Weighted as Keras does it: the sum of weight times loss, over the number of losses."""
    import tensorflow as tf

    if value.shape.rank == 0:
        raise ContractError(
            f"{describe('loss', fn)} returns one number for a batch, so the sample weights of the "
            "dataset "
            "cannot be applied. Return a value an example, or add a parameter sample_weight and "
            "use it."
        )
    weight = tf.reshape(tf.cast(weight, value.dtype), [-1])
    by_example = tf.reshape(value, [tf.shape(weight)[0], -1])
    return tf.reduce_sum(by_example * weight[:, tf.newaxis]) / tf.cast(tf.size(value), value.dtype)
