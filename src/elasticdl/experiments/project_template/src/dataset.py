"""Where the digits come from: PNG files, and a labels.csv beside them."""

import csv
from pathlib import Path

import tensorflow as tf

from abstractions import DataLoaderBase


class DataLoader(DataLoaderBase):
    """Reads `train`, `validation` and `test` below the data directory."""

    def _set_defaults(self):
        self.shuffle = True
        self.seed = 101

    def _load_params(self, config):
        self.shuffle = config.data_loader.shuffle
        self.seed = config.seed

    def create_training_generator(self):
        names, labels = self._table("train")
        order = tf.data.Dataset.from_tensor_slices((self._paths("train", names), labels))
        if self.shuffle:
            # Of paths, not of images: the buffer stays small. Another order in each epoch.
            order = order.shuffle(len(names), seed=self.seed)
        return self._weighted(order), len(names)

    def create_validation_generator(self):
        names, labels = self._table("validation")
        order = tf.data.Dataset.from_tensor_slices((self._paths("validation", names), labels))
        return self._weighted(order), len(names)

    def create_test_generator(self):
        names, labels = self._table("test")
        points = tf.data.Dataset.from_tensor_slices((self._paths("test", names), labels, names))
        return points.map(lambda path, label, name: (read_image(path), label, name)), len(names)

    def get_validation_index(self):
        return self._table("validation")[0]

    def _weighted(self, order):
        """Images for paths, and a weight for each data point."""
        return order.map(lambda path, label: (read_image(path), label, 1.0))

    def _table(self, part):
        """The names of the files of a part, and their labels."""
        with Path(self.data_dir, part, "labels.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [row["image"] for row in rows], [int(row["label"]) for row in rows]

    def _paths(self, part, names):
        return [str(Path(self.data_dir, part, name)) for name in names]


def read_image(path):
    """28 x 28 x 1 bytes."""
    return tf.io.decode_png(tf.io.read_file(path), channels=1)
