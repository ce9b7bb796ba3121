"""One hidden layer."""

import keras

from abstractions import ModelBuilderBase


class ModelBuilder(ModelBuilderBase):
    def _set_defaults(self):
        self.n_filters, self.dropout_rate, self.size = 512, 0.2, 28 * 28

    def _load_params(self, config):
        self.n_filters = config.model_builder.n_filters
        self.dropout_rate = config.model_builder.dropout_rate
        self.size = config.input_height * config.input_width

    def get_compiled_model(self):
        model = keras.Sequential(
            [
                keras.Input((self.size,)),
                keras.layers.Dense(self.n_filters, activation="relu"),
                keras.layers.Dropout(self.dropout_rate),
                keras.layers.Dense(10, activation="softmax"),
            ]
        )
        model.compile(
            optimizer="adam",
            loss=keras.losses.SparseCategoricalCrossentropy(),
            metrics=[keras.metrics.SparseCategoricalAccuracy()],
        )
        return model
