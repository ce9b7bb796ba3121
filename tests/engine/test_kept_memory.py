"""What a step frees is kept for the next one: a page that the system hands out is cleared first, and that is slow."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import resource
from elasticdl.quiet import load_tensorflow
load_tensorflow()
import tensorflow as tf

@tf.function
def step(x):
    return tf.reduce_mean(x[:, None] * x[None, :], 0)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

x = step(tf.ones([5000]))
before = faults()
for _ in range(5):
    x = step(x)
print((faults() - before) * resource.getpagesize() >> 20)
"""
"""A tensor of 100 MB, more than the C library ever keeps; prints how many MB the system handed out in five steps."""


def test_large_tensors_of_a_step_are_kept_for_the_next() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, stdout=subprocess.PIPE, text=True
    )
    assert int(done.stdout) < 100
