"""Digits moved a little, so that the model does not learn where they stand."""

import tensorflow as tf

from abstractions import AugmentorBase


class Augmentor(AugmentorBase):
    """Moves each image by up to `shift` pixels."""

    def _set_defaults(self):
        self.shift = 2
        self.seed = 101

    def _load_params(self, config):
        self.shift = config.augmentor.shift
        self.seed = config.seed

    def add_augmentation(self, generator):
        return generator.map(lambda image, label, weight: (self.move(image), label, weight))

    def move(self, image):
        margin = [[self.shift, self.shift], [self.shift, self.shift], [0, 0]]
        return tf.image.random_crop(tf.pad(image, margin), tf.shape(image), seed=self.seed)
