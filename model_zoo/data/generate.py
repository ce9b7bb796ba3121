"""Writes the synthetic data of this directory: `python model_zoo/data/generate.py [DIRECTORY]`.

The same records come out on every machine: all chance is drawn from `RandomState`, whose stream
NumPy promises never to change, and no transcendental function decides a label by a rounding error.
"""

import csv
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf

from elasticdl.data.recordio import RecordWriter

Random = np.random.RandomState


def main(directory: Path) -> None:
    """Write everything below the directory."""
    write_census(directory / "census")
    write_shapes(directory / "shapes")
    write_clicks(directory / "clicks")


def write_census(directory: Path) -> None:
    """People whose income depends on education, occupation, age and hours.

    Doctors who farm and college people in tech are exceptions that a crossed column has to learn.
    """
    random = Random(1)
    header = ["age", "hours", "workclass", "education", "marital", "occupation", "income"]
    educations = ["School", "College", "Bachelor", "Master", "Doctorate"]
    occupations = ["Farming", "Sales", "Clerical", "Crafts", "Transport", "Tech", "Health", "Law"]
    pay = dict(zip(occupations, [-2, 0, -1, 0, -1, 2, 1, 3], strict=True))

    def person() -> list[object]:
        education, occupation = random.choice(educations), random.choice(occupations)
        age, hours = random.randint(18, 70), random.randint(15, 60)
        score = 2 * educations.index(education) + pay[occupation] + (hours - 38) // 8
        score += 2 if 35 <= age <= 60 else -1
        if (education, occupation) in {("Doctorate", "Farming"), ("College", "Tech")}:
            score = 6 - score
        score += random.randint(-2, 3)
        return [
            age,
            hours,
            random.choice(["Private", "Self-employed", "Government"]),
            education,
            random.choice(["Single", "Married", "Divorced"]),
            occupation,
            ">50K" if score > 5 else "<=50K",
        ]

    write_csv(directory / "train.csv", header, [person() for _ in range(800)])
    write_csv(directory / "test.csv", header, [person() for _ in range(200)])


def write_shapes(directory: Path) -> None:
    """Images of the size of CIFAR-10's: one of ten shapes in one colour before another."""
    random = Random(2)
    y, x = np.mgrid[:32, :32]

    def image(label: int) -> np.ndarray:
        cx, cy, size = random.randint(12, 20), random.randint(12, 20), random.randint(6, 11)
        dx, dy = abs(x - cx), abs(y - cy)
        distance = dx * dx + dy * dy
        period = size // 2 + 2
        mask = [
            (y + cy) % period < period // 2,  # horizontal stripes
            (x + cx) % period < period // 2,  # vertical stripes
            ((x + cx) // period + (y + cy) // period) % 2 == 0,  # a chessboard
            distance < size * size,  # a disc
            (distance < size * size) & (distance > (size - 3) ** 2),  # a ring
            np.maximum(dx, dy) < size - 1,  # a square
            (np.maximum(dx, dy) < size) & (np.maximum(dx, dy) >= size - 3),  # a frame
            (np.minimum(dx, dy) < 2) & (np.maximum(dx, dy) < size),  # a cross
            (abs(dx - dy) < 2) & (np.maximum(dx, dy) < size),  # a saltire
            (dx < 2) & (dy < size),  # a post
        ][label]
        dark, light = random.randint(0, 100, 3), random.randint(130, 256, 3)
        front, back = (dark, light) if random.randint(2) else (light, dark)
        return np.where(mask[..., None], front, back).astype(np.uint8)

    def examples(count: int) -> Iterable[bytes]:
        for label in random.permutation(np.arange(count) % 10):
            yield example(image=image(label).tobytes(), label=[label])

    for name, count in {"train/0": 500, "train/1": 500, "test/0": 200}.items():
        write_records(directory / f"{name}.recordio", examples(count))


def write_clicks(directory: Path) -> None:
    """Users, items and tags as ids: a user clicks what is of their taste or popular with all.

    Ids 1 to 39 are users, 40 to 79 items, 80 to 119 tags; a record holds one user, one item and
    up to eight tags. Taste is the remainder modulo four, so no id says much without another one.
    """
    random = Random(3)

    def record() -> bytes:
        user, item = random.randint(1, 40), random.randint(40, 80)
        tags = random.choice(np.arange(80, 120), random.randint(0, 9), replace=False)
        score = 4 * (user % 4 == item % 4) + 2 * (item % 7 < 2)
        score += sum(tag % 4 == user % 4 for tag in tags)
        score += random.randint(-2, 3)
        return example(ids=[user, item, *tags], label=[int(score > 2)])

    for name, count in {"train/0": 2000, "train/1": 2000, "test/0": 800}.items():
        write_records(directory / f"{name}.recordio", (record() for _ in range(count)))


def example(**columns: bytes | list[int]) -> bytes:
    """A `tf.train.Example` of bytes and whole numbers."""
    feature = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
        if isinstance(value, bytes)
        else tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        for name, value in columns.items()
    }
    message = tf.train.Example(features=tf.train.Features(feature=feature))
    return message.SerializeToString(deterministic=True)


def write_csv(path: Path, header: list[str], rows: Iterable[list[object]]) -> None:
    """A header and rows, with plain newlines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def write_records(path: Path, records: Iterable[bytes]) -> None:
    """A RecordIO file, compressed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file, RecordWriter(file, compression="gzip") as writer:
        for record in records:
            writer.write(record)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
