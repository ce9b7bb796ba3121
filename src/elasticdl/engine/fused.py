"""What Keras writes as a row of operations on whole tensors, by the one kernel that TensorFlow has for it.

Each of these operations goes through all of the memory. Adam's update are some twelve: for a layer of some hundred
thousand weights that is most of a step. Batch normalization's two directions are some fifteen, over all that a
convolution puts out, which fits into no cache; and where several processes share a machine they share its memory.
The numbers differ by rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras
    import tensorflow as tf

__all__ = ["fuse_normalizations", "fuse_update"]


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


def fuse_normalizations(model: keras.Model) -> None:
    """Let Keras' own batch normalizations of pictures train by the kernel; leave all others, and all else, alone.

    Tried on processors only: on graphics cards Keras' own operations stay.
    """
    import keras
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return
    for layer in model._flatten_layers():
        is_plain = type(layer) is keras.layers.BatchNormalization and "call" not in vars(layer)
        if is_plain and not (layer.renorm or layer.synchronized):
            _fuse_normalization(layer)


def _fuse_normalization(layer: keras.layers.BatchNormalization) -> None:
    import tensorflow as tf

    plain = layer.call

    def call(inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        fits = tf.is_tensor(inputs) and inputs.shape.rank == 4 and inputs.dtype != tf.float64
        if training is True and layer.trainable and mask is None and fits and layer.axis in (-1, 3):
            return _normalized(layer, inputs)
        return plain(inputs, training=training, mask=mask)

    layer.call = call


def _normalized(layer: Any, inputs: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    channels = layer.moving_mean.shape
    outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
        x=tf.cast(inputs, tf.float32),
        scale=layer.gamma if layer.scale else tf.ones(channels),
        offset=layer.beta if layer.center else tf.zeros(channels),
        mean=tf.zeros([0]),
        variance=tf.zeros([0]),
        epsilon=layer.epsilon,
        is_training=True,
    )
    # The kernel gives the estimate for all there is, n / (n - 1) of the minibatch's own variance, which Keras keeps.
    count = tf.cast(tf.reduce_prod(tf.shape(inputs)[:-1]), tf.float32)
    variance *= (count - 1.0) / count
    for moving, value in ((layer.moving_mean, mean), (layer.moving_variance, variance)):
        before = tf.convert_to_tensor(moving)
        moving.assign(before * layer.momentum + value * (1.0 - layer.momentum))
    return tf.cast(outputs, layer.compute_dtype)
