"""What the model gets: pixels from 0 to 1, in batches."""

import tensorflow as tf

from abstractions import PreprocessorBase


class Preprocessor(PreprocessorBase):
    """Scales images and makes batches. The third value of a data point is left as it is."""

    def _set_defaults(self):
        self.normalize_by = 255
        self.input_shape = (28, 28, 1)
        self.batch_size = 16

    def _load_params(self, config):
        self.normalize_by = config.preprocessor.normalize_by
        self.input_shape = (config.input_height, config.input_width, config.input_channels)
        self.batch_size = config.batch_size

    def image_preprocess(self, image):
        return tf.cast(tf.ensure_shape(image, self.input_shape), tf.float32) / self.normalize_by

    def label_preprocess(self, label):
        return label

    def add_image_preprocess(self, generator):
        return generator.map(lambda image, label, rest: (self.image_preprocess(image), label, rest))

    def add_label_preprocess(self, generator):
        return generator

    def batchify(self, generator, n_data_points):
        # The last batch may be smaller: every data point is used, and used once.
        return generator.batch(self.batch_size).repeat(), -(-n_data_points // self.batch_size)
