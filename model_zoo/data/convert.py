"""Writes the real data of this directory: `python model_zoo/data/convert.py [DIRECTORY]`.

The sets come with scikit-learn, which the models do not need: `pip install scikit-learn` first.
"""

import sys
from pathlib import Path

import numpy as np
from generate import Random, example, write_csv, write_records
from sklearn import datasets


def main(directory: Path) -> None:
    """Write everything below the directory."""
    write_digits(directory / "digits")
    write_iris(directory / "iris.csv")
    write_table(directory / "diabetes", datasets.load_diabetes(scaled=False), num_test=92)
    write_table(directory / "wine", datasets.load_wine(), num_test=50)


def write_digits(directory: Path) -> None:
    """1437 images to train on and 360 to test with, each digit in both in the same proportion."""
    digits = datasets.load_digits()
    order = Random(4).permutation(len(digits.target))
    by_digit = order[np.argsort(digits.target[order], kind="stable")]
    is_test = np.isin(order, by_digit[::5])
    train, test = order[~is_test], order[is_test]
    for name, rows in {"train/0": train[:719], "train/1": train[719:], "test/0": test}.items():
        records = (
            example(image=enlarged(digits.images[row]).tobytes(), label=[int(digits.target[row])])
            for row in rows
        )
        write_records(directory / f"{name}.recordio", records)


def enlarged(image: np.ndarray) -> np.ndarray:
    """8x8 pixels from 0 to 16 as 20x20 pixels from 0 to 255 with a margin of 4, as MNIST has it."""
    positions = np.linspace(0, 7, 20)
    wide = np.stack([np.interp(positions, np.arange(8), row) for row in image])
    high = np.stack([np.interp(positions, np.arange(8), column) for column in wide.T], axis=1)
    return np.pad(np.floor(high * 255 / 16 + 0.5).astype(np.uint8), 4)


def write_iris(path: Path) -> None:
    """All 150 rows in one file, in random order, with the variety by its name."""
    iris = datasets.load_iris()
    header = ["sepal.length", "sepal.width", "petal.length", "petal.width", "variety"]
    names = [str(name).capitalize() for name in iris.target_names]
    order = Random(5).permutation(len(iris.target))
    write_csv(path, header, [[*iris.data[i], names[iris.target[i]]] for i in order])


def write_table(directory: Path, table: object, num_test: int) -> None:
    """Numbers with the target as the last column, in random order."""
    order = Random(6).permutation(len(table.target))
    rows = [[f"{v:g}" for v in (*table.data[i], table.target[i])] for i in order]
    header = [*table.feature_names, "target"]
    write_csv(directory / "test.csv", header, rows[:num_test])
    write_csv(directory / "train.csv", header, rows[num_test:])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
