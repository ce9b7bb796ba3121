"""A Keras loss, made and called for each data point."""

import keras

from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    def get_eval_funcs(self):
        return {"cross entropy": cross_entropy}


def cross_entropy(y_true, y_pred):
    return keras.losses.SparseCategoricalCrossentropy()(y_true, y_pred).numpy()
