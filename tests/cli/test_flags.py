"""The flags of a job's commands, and what becomes of what was typed."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from elasticdl.cli.main import SETTINGS, cli, main
from elasticdl.cli.options import JobCommand, job_command
from elasticdl.cli.presentation import Presentation
from elasticdl.errors import InvalidValue, UnknownName
from elasticdl.job.config import JobConfig, options
from elasticdl.runtime.result import Result

FIXTURES = Path(__file__).parent / "fixtures"


def parse(*args: str, command: str = "train") -> JobConfig:
    """The job that the arguments ask for."""
    seen: list[JobConfig] = []

    def keep(config: JobConfig) -> Result:
        seen.append(config)
        return Result(command=command, status="completed")

    made = job_command(command)(keep)
    with made.make_context(command, list(args), obj=Presentation(), **SETTINGS) as context:
        made.invoke(context)
    return seen[0]


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_flags_are_those_of_the_frozen_list(command: str) -> None:
    flags = sorted(flag for param in JobCommand(command).params for flag in param.opts)
    frozen = (FIXTURES / f"{command}_flags.txt").read_text().split()
    assert flags == frozen, "a flag was added or lost: if that is meant, change the list"


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_every_option_of_the_table_is_in_the_help(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--help"]) == 0
    shown = capsys.readouterr().out
    for option in options(command):
        assert f"--{option.name}" in shown
        assert all(f"--{alias}" in shown for alias in option.aliases)


def test_help_has_headings_with_the_cluster_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line.rstrip(":") for line in lines if line.endswith(":") and line[0] != " "]
    assert headings == ["Model", "Data", "Run", "Evaluation", "Checkpoint", "Cluster", "Kubernetes"]


def test_help_shows_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Records in a minibatch. [default: 64]" in shown
    assert "in random order. [default: true]" in shown


@pytest.mark.parametrize(
    "args",
    [["--num_epochs=3"], ["--num_epochs", "3"], ["--num-epochs=3"], ["--num-epochs", "3"]],
)
def test_underscores_and_dashes_are_the_same(args: list[str]) -> None:
    assert parse(*args).num_epochs == 3


def test_values_keep_their_dashes_when_names_are_normalised() -> None:
    assert parse("--job-name=test-odps-iris").job_name == "test-odps-iris"
    assert parse("--job-name", "-x-").job_name == "-x-"


def test_aliases_stand_for_their_option() -> None:
    config = parse("--params=hidden_units=[10, 20]", "--data=d", "--input-fn=m.f")
    assert config.model_params == {"hidden_units": [10, 20]}
    assert config.training_data == "d"
    assert config.dataset_fn == "m.f"
    assert parse("--data=d", command="evaluate").validation_data == "d"


def test_two_names_of_one_option_are_refused_when_given_together() -> None:
    with pytest.raises(InvalidValue, match="two names of one option"):
        parse("--params=a=1", "--model_params=b=2")


def test_the_last_value_wins_when_an_option_is_repeated() -> None:
    assert parse("--num_epochs=1", "--num_epochs=2").num_epochs == 2


@pytest.mark.parametrize("word", ["true", "True", "yes", "t", "y", "1"])
def test_booleans_are_true_when_a_word_says_so(word: str) -> None:
    assert parse(f"--use_async={word}").use_async is True
    assert parse("--use_async", word).use_async is True
    assert parse("--use-async", word, "--num_epochs=2").use_async is True


@pytest.mark.parametrize("word", ["false", "no", "f", "N", "0"])
def test_booleans_are_false_when_a_word_says_so(word: str) -> None:
    assert parse(f"--shuffle_tasks={word}").shuffle_tasks is False
    assert parse("--shuffle_tasks", word).shuffle_tasks is False


def test_booleans_are_true_when_bare() -> None:
    assert parse("--use_async").use_async is True
    config = parse("--debug", "--num_epochs", "2", "--resume")
    assert (config.debug, config.num_epochs, config.resume) == (True, 2, True)


def test_booleans_are_unset_when_not_given() -> None:
    assert parse().use_async is None
    assert parse().shuffle_tasks is True


def test_a_boolean_is_refused_when_a_stray_word_follows_it() -> None:
    with pytest.raises(InvalidValue, match="Invalid overwrite 'output': give true or false"):
        parse("--overwrite", "output")


def test_an_option_without_its_value_is_noticed_when_a_flag_follows() -> None:
    with pytest.raises(
        InvalidValue, match="--output has no value: it is followed by '--overwrite'"
    ):
        parse("--output", "--overwrite")
    with pytest.raises(InvalidValue, match="--job_name has no value"):
        parse("--job_name", "--num-epochs=2")


def test_an_option_without_its_value_is_noticed_when_it_is_last() -> None:
    with pytest.raises(click.BadOptionUsage, match="--output"):
        parse("--output")


def test_an_unknown_flag_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"Unknown option '--modl_def'.* mean '--model_def'"):
        parse("--modl-def=x")


def test_a_flag_of_another_command_is_said_to_be_one() -> None:
    with pytest.raises(
        UnknownName, match=r"'--num_epochs' of 'evaluate'\. It is an option of train"
    ):
        parse("--num_epochs=2", command="evaluate")


def test_a_flag_with_one_dash_is_shown_with_two() -> None:
    with pytest.raises(UnknownName, match=r"'-model_def' of 'train'\. Write --model_def"):
        parse("-model_def=x")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["trian"], "Unknown command 'elasticdl trian'. Did you mean 'train'?"),
        (["data", "inspct"], "Unknown command 'elasticdl data inspct'. Did you mean 'inspect'?"),
        (["zoo", "lst"], "Unknown command 'elasticdl zoo lst'. Did you mean 'list'?"),
        (["--vresion"], "--version"),
        (["train", "--modl_zoo", "x"], "Did you mean '--model_zoo'?"),
        (["train", "--num_epochs=two"], "Error: Invalid num_epochs 'two'"),
        (["train", "stray"], "Unexpected 'stray': 'elasticdl train' takes options only."),
        (["train", "--output"], "'--output'"),
        (["completion", "fsh"], "Unknown shell 'fsh'. Did you mean 'fish'?"),
    ],
)
def test_the_exit_code_is_2_when_asked_wrongly(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(args) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.startswith("Error: ")
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_help_is_shown_when_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("Usage: elasticdl")


def test_the_list_of_commands_agrees_with_the_commands_themselves() -> None:
    context = click.Context(cli)
    for name, (_, told) in cli._lazy.items():
        command = cli.get_command(context, name)
        assert command is not None
        assert command.name == name
        assert (command.help or "").splitlines()[0] == told


def test_idle_cluster_options_are_named_when_the_job_is_local(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parse("--num_workers=2", "--namespace=n")
    assert capsys.readouterr().err == (
        "Note: --num_workers, --namespace have no effect with --distribution_strategy=Local.\n"
    )
