"""Adam's update in one pass over the memory.

Keras writes it as some twelve operations on whole tensors, each of which goes through all of the memory: for a layer of
some hundred thousand weights that is most of a step. TensorFlow has one kernel for the same formula. The numbers
differ by rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["fuse_update"]


def fuse_update(optimizer: keras.optimizers.Optimizer) -> None:
    """Let an Adam or AdamW of Keras' own update dense variables by the kernel; leave all others alone.

    What Keras does around the update (clipping, decay, accumulation, averages, counting) stays Keras'.
    """
    import keras
    import tensorflow as tf

    if type(optimizer) not in (keras.optimizers.Adam, keras.optimizers.AdamW) or optimizer.amsgrad:
        return
    plain = optimizer.update_step

    def update_step(gradient: Any, variable: Any, learning_rate: Any) -> None:
        if isinstance(gradient, tf.IndexedSlices) or not isinstance(variable, tf.Variable):
            plain(gradient, variable, learning_rate)
        else:
            _apply(optimizer, gradient, variable, learning_rate)

    optimizer.update_step = update_step


def _apply(optimizer: Any, gradient: tf.Tensor, variable: tf.Variable, learning_rate: Any) -> None:
    import tensorflow as tf

    def scalar(value: Any) -> tf.Tensor:
        return tf.cast(value, variable.dtype)

    index = optimizer._get_variable_index(variable)
    step = scalar(optimizer.iterations + 1)
    beta_1, beta_2 = scalar(optimizer.beta_1), scalar(optimizer.beta_2)
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=optimizer._momentums[index].value.handle,
        v=optimizer._velocities[index].value.handle,
        beta1_power=tf.pow(beta_1, step),
        beta2_power=tf.pow(beta_2, step),
        lr=scalar(learning_rate),
        beta1=beta_1,
        beta2=beta_2,
        epsilon=scalar(optimizer.epsilon),
        grad=scalar(gradient),
    )
