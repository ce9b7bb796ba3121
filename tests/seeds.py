"""The model files of the seed documents, composed as the documents mean them.

The documents show a file in pieces and leave its imports out. Here the pieces are read out of the
document and put together under a header of imports; nothing else is changed, except one slip that the
third document is known to have: its `create_loss` says `logits=output` where the argument is `outputs`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf

SEEDS = Path(__file__).resolve().parents[1].parent / "shared" / "seeds"
MISSING = f"the seed documents are not beside this project ({SEEDS.name}/ is not there)"

_HEADER = """\
import numpy as np
import PIL.Image
import tensorflow as tf
from tensorflow.python.framework.ops import EagerTensor

from elasticdl import ElasticDLSpec
from elasticdl.python.common.constants import Mode
"""


def seed_files() -> Iterator[tuple[str, str]]:
    """Each model file of the documents: its name, and its text. None when they are not there."""
    for number, name in (("000", "functions"), ("001", "first")):
        document = _document(number)
        if document is None:
            return
        functions = _blocks(document, r"def \w+\(")
        for kind, model in (
            ("functional", _blocks(document, r"inputs = tf\.keras\.Input")),
            ("subclass", _blocks(document, r"class MnistModel\(")),
        ):
            yield f"{name}_{kind}", "\n\n".join([_HEADER, *model, *functions])
    document = _document("002")
    if document is not None:
        (spec,) = _blocks(document, r"\s*class MnistElasticDLSpec\(")
        yield "spec", f"{_HEADER}\n{spec.replace('logits=output,', 'logits=outputs,')}"


def model_def(name: str) -> str:
    """The `--model_def` of a seed file that was written as `<name>.py`."""
    return f"{name}.MnistElasticDLSpec" if name == "spec" else f"{name}.model"


def examples(name: str, count: int, *, labelled: bool = True) -> list[bytes]:
    """Records as the file of this name reads them: pixels as numbers, or as bytes for the first form."""
    random = np.random.default_rng(7)
    return [
        _example(
            random.integers(0, 256, 784), i % 10 if labelled else None, name.startswith("first")
        )
        for i in range(count)
    ]


def notebook() -> list[str]:
    """The Python cells of the fourth document in their order; none when it is not there."""
    document = _document("003")
    if document is None:
        return []
    # Not by pairs of fences: one in this document is never closed.
    return re.findall(r"^```python\n(.*?)^```\s*$", document, re.MULTILINE | re.DOTALL)


def config_of_notebook() -> str:
    """The config that the fourth document prints as a list of keys, as YAML."""
    lines = (_document("003") or "").partition("## Define your `config.yaml`")[2].splitlines()
    keys = [line for line in lines if re.match(r"\s*- `\w+`:", line)]
    return "\n".join(re.sub(r"^(\s*)- `(\w+)`", r"\1\2", line) for line in keys) + "\n"


def _example(pixels: np.ndarray, label: int | None, as_bytes: bool) -> bytes:
    if as_bytes:
        image = tf.train.Feature(
            bytes_list=tf.train.BytesList(value=[pixels.astype(np.uint8).tobytes()])
        )
    else:
        image = tf.train.Feature(float_list=tf.train.FloatList(value=pixels.astype(np.float32)))
    features = {"image": image}
    if label is not None:
        features["label"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _document(number: str) -> str | None:
    found = sorted(SEEDS.glob(f"{number}_*.txt"))
    return found[0].read_text() if found else None


def _blocks(document: str, start: str) -> list[str]:
    """The fenced blocks of code that begin with a pattern."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", document, re.MULTILINE | re.DOTALL)
    return [block for block in fenced if re.match(start, block)]
