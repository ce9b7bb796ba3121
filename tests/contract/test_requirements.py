"""What a zoo requires is looked up before any of its files runs."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path

import pytest

from elasticdl.cli.main import main
from elasticdl.contract.load import load_spec
from elasticdl.contract.requirements import check_requirements, unmet_requirements
from elasticdl.errors import InvalidValue, MissingPackage, NotFound

from .conftest import WriteZoo


def unmet(write_zoo: WriteZoo, text: str, **more: str) -> list[str]:
    zoo = write_zoo({"requirements.txt": text, **{f"{k}.txt": v for k, v in more.items()}})
    return [str(one) for one in unmet_requirements(zoo)]


def test_a_zoo_without_the_file_requires_nothing(tmp_path: Path) -> None:
    assert unmet_requirements(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "NumPy >= 2  # arrays",
        "# a comment",
        "numpy>=2,!=2.0.99 --hash=sha256:0123",
        "numpy \\\n  >=2",
        "not-there; python_version < '3'",
        f"not-there; platform_system != '{platform.system()}'",
        "moto[server]",
        "-e ./mine",
        "--index-url https://example.com/simple",
        "-c constraints.txt",
        "https://example.com/not_there-1.0-py3-none-any.whl",
        "git+https://example.com/not_there.git",
        "./not_there",
        "not_there-1.0-py3-none-any.whl",
        "-r ../outside.txt",
        "\ufeffnumpy",
    ],
)
def test_what_is_there_or_not_for_us_is_left_alone(write_zoo: WriteZoo, line: str) -> None:
    assert unmet(write_zoo, line) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("not-there", "not-there (not installed)"),
        ("not-there >= 2, < 3", "not-there<3,>=2 (not installed)"),
        ("not-there[extra]; python_version > '3'", "not-there[extra] (not installed)"),
        ("numpy<1", f"numpy<1 (installed: {version('numpy')})"),
        ("numpy>=99", f"numpy>=99 (installed: {version('numpy')})"),
        (
            "not-there @ https://me:secret@example.com/a.zip",
            "not-there @ https://example.com/a.zip (not installed)",
        ),
    ],
)
def test_what_is_missing_or_of_another_version_is_told(
    write_zoo: WriteZoo, line: str, told: str
) -> None:
    assert unmet(write_zoo, f"numpy\n{line}\n") == [told]


def test_an_extra_whose_packages_are_missing_is_told(write_zoo: WriteZoo) -> None:
    # fsspec is there, the driver that its extra for Azure takes is not.
    assert unmet(write_zoo, "fsspec[abfs]") == ["fsspec[abfs] (needs adlfs; not installed)"]


def test_files_of_the_zoo_that_the_file_names_are_read(write_zoo: WriteZoo) -> None:
    told = unmet(write_zoo, "-r more.txt\n", more="--requirement=requirements.txt\nnot-there\n")
    assert told == ["not-there (not installed)"]


def test_a_file_that_is_named_and_not_there_is_told_with_its_line(write_zoo: WriteZoo) -> None:
    with pytest.raises(NotFound, match=r"requirements\.txt, line 2: there is no .*more\.txt"):
        unmet(write_zoo, "numpy\n-r more.txt\n")


def test_a_line_that_cannot_be_read_is_told_with_its_number(write_zoo: WriteZoo) -> None:
    with pytest.raises(InvalidValue, match=r"requirements\.txt, line 3: cannot read 'numpy=>2'"):
        unmet(write_zoo, "# first\nkeras\nnumpy=>2\n")


def test_a_few_are_named_in_the_line_for_pip(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"requirements.txt": "not-there>=2\nnor-this\n"})
    with pytest.raises(MissingPackage, match=r"with: pip install 'not-there>=2' nor-this$"):
        check_requirements(zoo)


def test_many_are_left_to_the_file(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"requirements.txt": "a-not\nb-not\nc-not\nd-not\n"})
    with pytest.raises(MissingPackage, match=rf"with: pip install -r {zoo}/requirements\.txt$"):
        check_requirements(zoo)


def test_it_is_told_before_a_file_runs(write_zoo: WriteZoo) -> None:
    zoo = write_zoo({"requirements.txt": "not-there", "m.py": "raise AssertionError('it ran')"})
    with pytest.raises(MissingPackage, match="not-there"):
        load_spec("m.custom_model", model_zoo=zoo)


def test_a_job_says_it_with_the_exit_code_of_what_was_given(
    write_zoo: WriteZoo, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo = write_zoo({"requirements.txt": "not-there", "m.py": "import not_there"})
    job = [f"--model_zoo={zoo}", "--model_def=m.custom_model", "--data=none.csv"]
    assert main(["train", *job]) == 2
    assert "pip install not-there" in capsys.readouterr().err


def test_a_list_is_shown_all_the_same_and_what_is_missing_said(
    write_zoo: WriteZoo, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo = write_zoo({"requirements.txt": "not-there", "m.py": "def custom_model(): pass"})
    assert main(["zoo", "list", f"--model_zoo={zoo}"]) == 0
    shown = capsys.readouterr()
    assert "m.custom_model" in shown.out
    assert "pip install not-there" in shown.err
