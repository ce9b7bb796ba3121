"""The model zoo: every command of its README trains to what the README promises."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from elasticdl.cli.main import main
from elasticdl.data.recordio import index, read_chunk
from elasticdl.tracking.events import read_events
from processes import run_python

ROOT = Path(__file__).parents[1]
ZOO = ROOT / "model_zoo"

EXPECTED = {
    "mnist_functional": ("accuracy", 0.94),
    "mnist_subclass": ("accuracy", 0.94),
    "mnist_spec": ("accuracy", 0.93),
    "cifar10_functional": ("accuracy", 0.95),
    "cifar10_subclass": ("accuracy", 0.88),
    "iris": ("accuracy", 0.9),
    "census": ("accuracy", 0.8),
    "regressor": ("rmse", 62.0),
    "classifier": ("accuracy", 0.9),
    "deepfm": ("auc", 0.75),
}
"""What each `--output` of the README must reach; the RMSE, an error, must stay below.

A little less than the README says: the last digits differ from one processor to the next.
"""


def readme_commands() -> dict[str, list[str]]:
    """The arguments of each training in the README, by the name of its output."""
    blocks = re.findall(r"```bash\n(.*?)```", (ZOO / "README.md").read_text(), re.DOTALL)
    commands = [shlex.split(block.replace("\\\n", " "))[1:] for block in blocks]
    return {Path(option(args, "output")).name: args for args in commands}


def option(args: list[str], name: str) -> str:
    (value,) = [arg.partition("=")[2] for arg in args if arg.startswith(f"--{name}=")]
    return value


def final_metrics(output: Path) -> dict[str, float]:
    evaluations = [e for e in read_events(output / "events.jsonl") if e["event"] == "evaluation"]
    return evaluations[-1]["metrics"]


def test_readme_has_a_command_for_every_model() -> None:
    commands = readme_commands()
    assert set(commands) == set(EXPECTED)
    modules = {option(args, "model_def").rpartition(".")[0] for args in commands.values()}
    files = {ZOO.joinpath(*module.split(".")).with_suffix(".py") for module in modules}
    assert files == {path for path in ZOO.rglob("*.py") if path.parent.name != "data"}


@pytest.mark.parametrize("name", EXPECTED)
def test_readme_command_reaches_what_it_promises(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    args = [arg for arg in readme_commands()[name] if not arg.startswith("--output=")]
    assert main([*args, f"--output={tmp_path / name}", "--seed=1"]) == 0
    metric, bound = EXPECTED[name]
    value = final_metrics(tmp_path / name)[metric]
    assert value < bound if metric == "rmse" else value > bound


def test_first_command_of_the_old_documentation_works_to_the_letter(tmp_path: Path) -> None:
    columns = "['sepal.length', 'sepal.width', 'petal.length', 'petal.width', 'variety']"
    command = [
        *("-m", "elasticdl.python.elasticdl.client", "train"),
        f"--model_zoo={ZOO}",
        "--model_def=odps_iris_dnn_model.odps_iris_dnn_model.custom_model",
        f"--training_data={ZOO}/data/iris.csv",
        f"--validation_data={ZOO}/data/iris.csv",
        f"--data_reader_params=columns={columns}; sep=','",
        "--num_epochs=2",
        "--minibatch_size=64",
        "--num_minibatches_per_task=20",
        "--distribution_strategy=Local",
        "--job_name=test-odps-iris",
        "--evaluation_steps=20",
        "--output=iris_dnn_model",
    ]
    done = run_python(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in final_metrics(tmp_path / "iris_dnn_model")


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("data")
    load_script(ZOO / "data" / "generate.py").main(directory)
    return directory


def test_generate_reproduces_the_committed_tables(generated: Path) -> None:
    for path in generated.glob("*/*.csv"):
        assert path.read_bytes() == (ZOO / "data" / path.relative_to(generated)).read_bytes()


def test_generate_reproduces_the_committed_records(generated: Path) -> None:
    """Record by record: how gzip squeezes them may differ from one zlib to the next."""
    paths = list(generated.rglob("*.recordio"))
    assert len(paths) == 6
    for path in paths:
        assert records(path) == records(ZOO / "data" / path.relative_to(generated))


def test_prepare_data_makes_a_record_that_the_model_reads(tmp_path: Path) -> None:
    import tensorflow as tf

    from elasticdl import Mode

    model_file = load_script(ZOO / "mnist" / "mnist_functional.py")
    path = tmp_path / "7" / "image.png"
    path.parent.mkdir()
    pixels = tf.cast(tf.reshape(tf.range(784) % 256, (28, 28, 1)), tf.uint8)
    path.write_bytes(tf.io.encode_png(pixels).numpy())

    record = model_file.prepare_data_for_a_single_file(str(path))
    dataset = model_file.dataset_fn(tf.data.Dataset.from_tensors(record), Mode.EVALUATION)
    (features, label) = next(iter(dataset))

    assert label == 7
    assert tf.reduce_all(tf.cast(features["image"] * 255, tf.uint8) == pixels[..., 0])


def records(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return [record for chunk in index(file) for record in read_chunk(file, chunk)]


def load_script(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
