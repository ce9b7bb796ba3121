"""How each kind of error is shown, on exceptions that Keras and TensorFlow really raised."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

from elasticdl.cli.failures import show
from elasticdl.cli.frames import is_users
from elasticdl.cli.presentation import Presentation
from elasticdl.errors import AuditFailure, ContractError, CorruptData, InvalidValue, StorageFailure
from elasticdl.quiet import load_tensorflow

ZOO = Path(__file__).parent / "fixtures"
FILE = ZOO / "broken_model.py"


@pytest.fixture(scope="module")
def broken() -> Iterator[ModuleType]:
    load_tensorflow()
    spec = importlib.util.spec_from_file_location("broken_model", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["broken_model"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["broken_model"]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The text for the exception that a function raises, without this file's frame on top."""

    def shown_for(function: Callable[[], object], code: int = 1, full: bool = False) -> str:
        with pytest.raises(BaseException) as raised:
            function()
        error = raised.value
        assert error.__traceback__ is not None
        error = error.with_traceback(error.__traceback__.tb_next)
        presentation = Presentation(full_traceback=full, model_zoo=str(ZOO))
        assert show(error, presentation) == code
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err

    return shown_for


def raising(error: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise error

    return fail


def frames(text: str) -> list[str]:
    """`file:line of code` for each frame that is shown."""
    lines = text.splitlines()
    return [
        Path(line.split('"')[1]).name + ": " + lines[i + 1].strip()
        for i, line in enumerate(lines)
        if line.strip().startswith('File "')
    ]


def test_an_error_of_ours_is_one_message(shown: Callable[..., str]) -> None:
    assert shown(raising(InvalidValue("It is wrong. Do that.")), code=2) == (
        "Error: It is wrong. Do that.\n"
    )
    assert (
        shown(raising(AuditFailure("Record 3 was lost.")), code=1) == "Error: Record 3 was lost.\n"
    )
    assert shown(raising(StorageFailure("No room.")), code=1) == "Error: No room.\n"
    assert shown(raising(StorageFailure(28, "No room.")), code=1) == "Error: No room.\n"


def test_an_error_of_ours_has_its_traceback_when_debugging(shown: Callable[..., str]) -> None:
    text = shown(raising(InvalidValue("It is wrong.")), code=2, full=True)
    assert text.startswith("Traceback")
    assert "InvalidValue: It is wrong." in text


def test_plain_exceptions_start_in_the_users_file(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    text = shown(broken.plain)
    assert frames(text) == ["broken_model.py: return 1 / 0"]
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("\nZeroDivisionError: division by zero\n")


def test_chained_exceptions_are_all_shown(broken: ModuleType, shown: Callable[..., str]) -> None:
    text = shown(broken.chained)
    assert "ZeroDivisionError: division by zero" in text
    assert "direct cause" in text
    assert text.endswith("RuntimeError: the second\n")


def test_frames_below_the_users_are_kept_when_they_are_of_other_libraries(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    names = [frame.partition(":")[0] for frame in frames(shown(broken.in_a_library))]
    assert names == ["broken_model.py", "__init__.py", "decoder.py", "decoder.py"]


def test_dataset_functions_are_shown_as_they_were_written(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    text = shown(broken.dataset_fn)
    assert frames(text) == [
        "broken_model.py: return tf.data.Dataset.range(2).map(parse)",
        "broken_model.py: if record > 0:",
        'broken_model.py: return features["missing"]',
    ]
    assert text.endswith("\nKeyError: 'missing'\n")


def test_a_lambda_is_called_one(broken: ModuleType, shown: Callable[..., str]) -> None:
    text = shown(broken.dataset_fn_of_a_lambda)
    assert frames(text)[-1] == 'broken_model.py: return features["missing"]'
    assert ", in <lambda>\n" in text


@pytest.mark.parametrize("name", ["call_in_graph", "call_eagerly"])
def test_a_models_call_is_shown_without_keras(
    broken: ModuleType, shown: Callable[..., str], name: str
) -> None:
    text = shown(getattr(broken, name))
    assert frames(text)[-1] == "broken_model.py: return tf.reshape(inputs, (7, 5))"
    assert {frame.partition(":")[0] for frame in frames(text)} == {"broken_model.py"}
    assert "Exception encountered when calling Net.call()" in text
    assert "\x1b" not in text


def test_a_loss_is_shown_without_autograph(broken: ModuleType, shown: Callable[..., str]) -> None:
    text = shown(broken.loss_in_graph)
    assert frames(text) == ["broken_model.py: return undefined_name + 1  # noqa: F821"]
    assert text.endswith("\nNameError: name 'undefined_name' is not defined\n")


def test_an_op_that_fails_while_running_points_to_its_line(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    text = shown(broken.fail_at_run_time)
    assert frames(text)[-1] == "broken_model.py: return tf.reshape(x, [-1, 7])"
    assert text.splitlines()[-1] == (
        "InvalidArgumentError: Input to reshape is a tensor with 8 values, "
        "but the requested shape requires a multiple of 7"
    )


def test_python_inside_of_a_dataset_is_named(broken: ModuleType, shown: Callable[..., str]) -> None:
    text = shown(broken.python_in_dataset)
    assert text.endswith("ValueError: from Python\n")
    assert "script_ops" not in text


def test_records_of_the_wrong_form_are_no_bug_of_ours(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    text = shown(broken.wrong_records)
    assert "Expect 2 fields but have 3 in record 0" in text
    assert "bug" not in text


def test_a_syntax_error_shows_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.py"
    path.write_text("def model(:\n")
    try:
        compile(path.read_text(), str(path), "exec")
    except SyntaxError as error:
        assert show(error.with_traceback(None), Presentation(model_zoo=str(tmp_path))) == 1
    text = capsys.readouterr().err
    assert f'File "{path}", line 1' in text
    assert "def model(:" in text
    assert "SyntaxError" in text


def test_our_errors_are_ours_when_autograph_rewrote_them(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    import tensorflow as tf

    @tf.function
    def trace() -> None:
        raise ContractError("The model has no output.")

    assert shown(trace, code=2) == "Error: The model has no output.\n"


def test_our_errors_are_ours_when_raised_below_a_dataset(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    import tensorflow as tf

    def read() -> Iterator[int]:
        raise CorruptData("The file x is cut short.\nMake it again.")
        yield 1

    data = tf.data.Dataset.from_generator(read, output_signature=tf.TensorSpec([], tf.int32))
    assert shown(lambda: list(data), code=2) == (
        "Error: The file x is cut short.\nMake it again.\n"
    )


def test_a_full_disk_names_the_path_and_what_to_do(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    text = shown(broken.no_space)
    assert text.startswith("Error: No space left on the device while writing '/data/checkpoint'.")
    assert "--resume" in text


def test_an_exception_without_user_frames_is_called_our_bug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    from elasticdl.data.source import ArraySpec

    try:
        ArraySpec()  # type: ignore[call-arg]
    except TypeError as error:
        assert show(error.with_traceback(None), Presentation()) == 1
    text = capsys.readouterr().err
    assert "TypeError" in text
    assert "this is a bug of ElasticDL" in text


def test_the_whole_traceback_is_shown_when_debugging(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    assert "/keras/" in shown(broken.call_eagerly, full=True)


def test_a_call_of_exit_in_the_users_code_is_told_with_its_line(
    broken: ModuleType, shown: Callable[..., str]
) -> None:
    text = shown(broken.leaves)
    assert text.startswith(f"Error: {FILE}, line ")
    assert "called exit(3)" in text
    assert text.endswith(" sys.exit(3)\n")


def test_the_launcher_is_no_file_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "bin" / "elasticdl"
    monkeypatch.setattr(sys, "argv", [str(launcher), "train"])
    assert not is_users(str(launcher), None)
    assert is_users(str(tmp_path / "model.py"), None)


def test_an_abort_is_130_and_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(click.Abort(), Presentation()) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["end_of_file", "broken_socket"])
def test_a_users_own_stream_error_is_not_taken_for_ours(
    broken: ModuleType, shown: Callable[..., str], name: str
) -> None:
    assert frames(shown(getattr(broken, name)))[0].startswith("broken_model.py: raise")


@pytest.mark.parametrize("args", [["--help"], ["completion", "zsh"]])
def test_nothing_is_said_when_the_reader_of_the_output_has_gone(args: list[str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "elasticdl", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    assert (process.wait(60), said) == (1, b"")
