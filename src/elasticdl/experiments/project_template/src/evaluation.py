"""What the reports say of each data point. The worst cases are those with the highest cross-entropy."""

import numpy as np

from abstractions import EvaluatorBase


class Evaluator(EvaluatorBase):
    """Functions of one data point: its label, and the ten probabilities that the model gives."""

    def get_eval_funcs(self):
        return {"cross entropy": cross_entropy, "correct": is_right, "confidence": confidence}


def cross_entropy(y_true, y_pred):
    return -np.log(max(y_pred[y_true], 1e-7))


def is_right(y_true, y_pred):
    return float(np.argmax(y_pred) == y_true)


def confidence(y_true, y_pred):
    return np.max(y_pred)
