"""The model: a small convolutional network."""

import keras

from abstractions import ModelBuilderBase


class ModelBuilder(ModelBuilderBase):
    """Image in, the probabilities of ten digits out."""

    def _set_defaults(self):
        self.n_filters = 16
        self.dropout_rate = 0.2
        self.learning_rate = 0.003
        self.input_shape = (28, 28, 1)

    def _load_params(self, config):
        self.n_filters = config.model_builder.n_filters
        self.dropout_rate = config.model_builder.dropout_rate
        self.learning_rate = config.model_builder.learning_rate
        self.input_shape = (config.input_height, config.input_width, config.input_channels)

    def get_compiled_model(self):
        model = keras.Sequential(
            [
                keras.Input(self.input_shape),
                keras.layers.Conv2D(self.n_filters, 3, strides=2, activation="relu"),
                keras.layers.Conv2D(2 * self.n_filters, 3, strides=2, activation="relu"),
                keras.layers.Flatten(),
                keras.layers.Dropout(self.dropout_rate),
                keras.layers.Dense(10, activation="softmax"),
            ]
        )
        model.compile(
            optimizer=keras.optimizers.Adam(self.learning_rate),
            loss=keras.losses.SparseCategoricalCrossentropy(),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
        )
        return model

    def get_callbacks(self):
        """Checkpoints, TensorBoard and MLflow are there already: this is for what is yours."""
        return [keras.callbacks.EarlyStopping(monitor="val_loss", patience=5)]
