"""Flat images from 0 to 1, in batches, as a `tf.data.Dataset` and from Python generators."""

import numpy as np
import tensorflow as tf

from abstractions import PreprocessorBase


class _Scaled(PreprocessorBase):
    def _set_defaults(self):
        self.normalize_by, self.batch_size, self.size = 255, 8, 28 * 28

    def _load_params(self, config):
        self.normalize_by = config.preprocessor.normalize_by
        self.batch_size = config.batch_size
        self.size = config.input_height * config.input_width

    def label_preprocess(self, label):
        return label

    def _num_batches(self, n_data_points):
        return -(-n_data_points // self.batch_size)


class PreprocessorTF(_Scaled):
    def image_preprocess(self, image):
        return tf.reshape(image, (self.size,)) / self.normalize_by

    def add_image_preprocess(self, generator):
        return generator.map(lambda x, y, w: (self.image_preprocess(x), y, w))

    def add_label_preprocess(self, generator):
        return generator

    def batchify(self, generator, n_data_points):
        return generator.batch(self.batch_size).repeat(), self._num_batches(n_data_points)


class Preprocessor(_Scaled):
    def image_preprocess(self, image):
        return np.reshape(image, (self.size,)) / self.normalize_by

    def add_image_preprocess(self, generator):
        while True:
            x, y, w = next(generator)
            yield self.image_preprocess(x), y, w

    def add_label_preprocess(self, generator):
        while True:
            x, y, w = next(generator)
            yield x, self.label_preprocess(y), w

    def batchify(self, generator, n_data_points):
        return self._batches(generator), self._num_batches(n_data_points)

    def _batches(self, generator):
        while True:
            points = [next(generator) for _ in range(self.batch_size)]
            yield tuple(np.array(column) for column in zip(*points, strict=True))
