"""Images from JPEG files, as a `tf.data.Dataset` and from Python generators."""

import numpy as np
import pandas as pd
import skimage.io
import tensorflow as tf

from abstractions import DataLoaderBase


class _Labelled(DataLoaderBase):
    def _set_defaults(self):
        self.shuffle = True

    def _load_params(self, config):
        self.shuffle = config.data_loader.shuffle

    def get_validation_index(self):
        return self._table("validation")["image name"].values

    def _table(self, part):
        table = pd.read_csv(self.data_dir / part / "labels.csv")
        table["path"] = [str(self.data_dir / part / name) for name in table["image name"]]
        return table


class DataLoaderTF(_Labelled):
    def create_training_generator(self):
        table = self._table("train")
        points = self._points(table, tf.ones(len(table)))
        return points.shuffle(len(table)) if self.shuffle else points, len(table)

    def create_validation_generator(self):
        table = self._table("validation")
        return self._points(table, tf.ones(len(table))), len(table)

    def create_test_generator(self):
        table = self._table("test")
        return self._points(table, table["image name"]), len(table)

    def _points(self, table, third):
        slices = tf.data.Dataset.from_tensor_slices
        images = slices(table["path"]).map(lambda path: tf.image.decode_jpeg(tf.io.read_file(path)))
        return tf.data.Dataset.zip((images, slices(table["label"]), slices(third)))


class DataLoader(_Labelled):
    def create_training_generator(self):
        table = self._table("train")
        return self._endless(table, self.shuffle), len(table)

    def create_validation_generator(self):
        table = self._table("validation")
        return self._endless(table, False), len(table)

    def create_test_generator(self):
        table = self._table("test")
        return self._once(table), len(table)

    def _endless(self, table, shuffle):
        order = np.arange(len(table))
        while True:
            if shuffle:
                np.random.shuffle(order)
            for i in order:
                yield read_image(table["path"][i]), table["label"][i], 1

    def _once(self, table):
        columns = (table["path"], table["label"], table["image name"])
        for path, label, name in zip(*columns, strict=True):
            yield read_image(path), label, name


def read_image(path):
    return skimage.io.imread(path, as_gray=True)
