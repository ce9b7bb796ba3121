"""A project's directory: its runs, their configs, its sources and their version."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from upath import UPath

from elasticdl.errors import InvalidValue, NotFound
from elasticdl.experiments.config import RunConfig, load_config
from elasticdl.experiments.project import Project

from .conftest import write


def config_of(project: Project) -> RunConfig:
    return load_config(project.config_file, ())


def git(directory: Path, *arguments: str) -> str:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", "-C", str(directory), *who, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_a_run_is_found_from_the_project_root(project: Path) -> None:
    opened = Project.open(".", "first")
    assert opened.root == project
    assert str(opened.run_directory) == str(project / "runs" / "first")
    assert opened.config_file.name == "config.yaml"
    assert opened.source_directory(config_of(opened)) == project / "src"


@pytest.mark.parametrize("name", ["my.yml", "other.yaml"])
def test_the_config_may_have_any_name(project: Path, name: str) -> None:
    (project / "runs" / "first" / "config.yaml").rename(project / "runs" / "first" / name)
    assert Project.open(project, "first").config_file.name == name


def test_several_configs_are_refused_with_their_names(project: Path) -> None:
    write(project / "runs" / "first" / "other.yml", "a: 1")
    with pytest.raises(InvalidValue, match=r"2 configs in .*first: config\.yaml, other\.yml"):
        Project.open(project, "first")


def test_configs_of_exports_and_hidden_ones_do_not_count(project: Path) -> None:
    write(project / "runs" / "first" / "exported" / "config.yaml", "a: 1")
    write(project / "runs" / "first" / ".config.yaml", "a: 1")
    assert Project.open(project, "first").config_file.name == "config.yaml"


def test_a_run_without_a_config_lists_what_is_there(project: Path) -> None:
    write(project / "runs" / "second" / "config.json", "{}")
    with pytest.raises(NotFound, match=r"no config in .*second.* There is: config\.json"):
        Project.open(project, "second")
    (project / "runs" / "third").mkdir()
    with pytest.raises(NotFound, match=r"third is empty\. Put a config\.yaml there"):
        Project.open(project, "third")


def test_a_wrong_run_name_lists_the_runs(project: Path) -> None:
    (project / "runs" / "second").mkdir()
    with pytest.raises(NotFound, match=r"no run 'frist' .*'first'\? There is: first, second"):
        Project.open(project, "frist")


@pytest.mark.parametrize(
    ("name", "told"),
    [("runs/first", "Give the name alone: 'first'"), ("..", "Invalid run_name"), ("", "Invalid")],
)
def test_a_run_name_that_is_a_path_is_refused(project: Path, name: str, told: str) -> None:
    with pytest.raises(InvalidValue, match=told):
        Project.open(project, name)


def test_a_run_name_with_the_slash_of_a_shell_is_taken(project: Path) -> None:
    assert Project.open(project, "first/").run_name == "first"


def test_a_project_root_that_is_not_there_is_told(project: Path) -> None:
    with pytest.raises(NotFound, match="There is no project_root"):
        Project.open(project / "gone", "first")
    with pytest.raises(NotFound, match="runs does not exist"):
        Project.open(project / "src", "first")
    with pytest.raises(InvalidValue, match="Give a local directory"):
        Project.open("s3://bucket/project", "first")


def test_a_source_directory_that_is_not_there_names_the_nearest(project: Path) -> None:
    opened = Project.open(project, "first")
    config = load_config(opened.config_file, ["src_code_path=scr"])
    with pytest.raises(NotFound, match=r"'scr' does not exist.*Did you mean 'src'\?"):
        opened.source_directory(config)


def test_run_directories_may_be_elsewhere(project: Path, tmp_path: Path) -> None:
    opened = Project.open(project, "first", runs_dir="memory://runs")
    assert str(opened.run_directory) == "memory://runs/first"
    assert str(opened.config_file) == str(project / "runs" / "first" / "config.yaml")


def test_a_config_may_lie_beside_outputs_that_are_elsewhere(project: Path) -> None:
    text = (project / "runs" / "first" / "config.yaml").read_text()
    UPath("memory://others/mine/config.yaml").write_text(text)
    opened = Project.open(project, "mine", runs_dir="memory://others")
    assert str(opened.config_file) == "memory://others/mine/config.yaml"


def test_two_configs_of_one_run_that_differ_are_refused(project: Path) -> None:
    UPath("memory://twice/first/config.yaml").write_text("epochs: 1")
    with pytest.raises(InvalidValue, match="two configs that differ"):
        Project.open(project, "first", runs_dir="memory://twice")


def test_the_version_is_none_and_a_hash_without_a_repository(project: Path) -> None:
    opened = Project.open(project, "first")
    version = opened.code_version(config_of(opened))
    assert (version.commit, version.dirty, len(version.source_hash)) == ("none", False, 64)
    write(project / "src" / "helper.py", "other = 1")
    assert opened.code_version(config_of(opened)).source_hash != version.source_hash


def test_the_version_is_none_without_git(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    opened = Project.open(project, "first")
    assert opened.code_version(config_of(opened)).commit == "none"


def test_the_version_is_the_commit_in_a_repository(project: Path) -> None:
    git(project, "init", "-q")
    opened = Project.open(project, "first")
    config = config_of(opened)
    assert opened.code_version(config).commit == "none"  # nothing is committed
    git(project, "add", "src")
    git(project, "commit", "-qm", "first")
    version = opened.code_version(config)
    assert (version.commit, version.dirty) == (git(project, "rev-parse", "HEAD"), False)
    write(project / "src" / "helper.py", "other = 1")
    changed = opened.code_version(config)
    assert (changed.commit, changed.dirty) == (version.commit, True)
    assert str(changed) == f"{version.commit} with changes"


def test_the_version_is_none_for_a_copy_inside_of_another_repository(project: Path) -> None:
    git(project, "init", "-q")
    write(project / "README.md", "not the code")
    git(project, "add", "README.md")
    git(project, "commit", "-qm", "first")
    opened = Project.open(project, "first")
    assert opened.code_version(config_of(opened)).commit == "none"
