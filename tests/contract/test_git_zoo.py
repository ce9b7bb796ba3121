"""A zoo in a Git repository: which commit, from where, and what never happens on the way."""

from __future__ import annotations

import json
import os
import socket
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from elasticdl.cli.main import main
from elasticdl.contract.git_address import parse_address
from elasticdl.contract.git_zoo import as_begun, cache_directory, fetch_zoo
from elasticdl.contract.zoo import Zoo
from elasticdl.errors import (
    InvalidValue,
    MissingPackage,
    NotFound,
    StorageFailure,
    UnknownName,
)

from .git_server import Repository, served, served_as_files

MODEL = """
import keras

def custom_model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="NAME")])

def dataset_fn(dataset, mode):
    import tensorflow as tf
    return dataset.map(lambda row: (tf.strings.to_number(row[:2]), tf.strings.to_number(row[2:])))

loss = "mse"
optimizer = "sgd"
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a git without settings of whoever runs the tests."""
    monkeypatch.setenv("ELASTICDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return tmp_path / "cache"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "served" / "models")
    made.commit({"m.py": "x = 1\n"})
    return made


def text(zoo: str) -> str:
    return (fetch_zoo(zoo).directory / "m.py").read_text()


# --- addresses ---


@pytest.mark.parametrize(
    ("given", "url", "ref"),
    [
        ("https://host/me/models", "https://host/me/models", None),
        ("https://host/me/models.git@main", "https://host/me/models.git", "main"),
        ("https://host/me/models@feature/a-b", "https://host/me/models", "feature/a-b"),
        ("https://me:token@host/models@v1.0", "https://host/models", "v1.0"),
        ("https://token@host/models", "https://host/models", None),
        ("https://host/@me/models", "https://host/@me/models", None),
        ("https://host/@me/models@main", "https://host/@me/models", "main"),
        ("https://host:8443/models/", "https://host:8443/models", None),
        ("http://host/models", "http://host/models", None),
        ("git+https://host/models@main", "https://host/models", "main"),
        ("ssh://git@host:22/models@main", "ssh://git@host:22/models", "main"),
        ("ssh://git:secret@host/models", "ssh://git@host/models", None),
        ("git+ssh://git@host/models", "ssh://git@host/models", None),
        ("git@host:me/models", "git@host:me/models", None),
        ("git@host:me/models.git@main", "git@host:me/models.git", "main"),
        ("file:///srv/models@main", "file:///srv/models", "main"),
    ],
)
def test_an_address_is_a_url_and_a_ref(given: str, url: str, ref: str | None) -> None:
    address = parse_address(given)
    assert address is not None
    assert (address.url, address.ref) == (url, ref)
    assert parse_address(str(address)) == parse_address(str(parse_address(str(address))))


@pytest.mark.parametrize("path", ["models", "/srv/models", "./a@b", "~/models", "a:b", "C:\\zoo"])
def test_a_path_is_no_address(path: str) -> None:
    assert parse_address(path) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("s3://bucket/zoo", r"neither a directory nor in a Git repository"),
        ("htps://host/models", r"Did you mean 'https'"),
        ("ext::sh -c touch", r"not a directory"),
        ("https://host", r"names no repository"),
        ("https://host/models@", r"no branch, tag or commit"),
        ("https://host/models@--upload-pack=touch", r"no branch, tag or commit"),
        ("https://host/models@a..b", r"no branch, tag or commit"),
        ("ssh://-oProxyCommand=touch/models", r"names no repository"),
        ("git@host:-x", r"names no repository"),
        ("https://host/my models", r"no blanks"),
        ("https://host/models#subdir=a", r"no #subdir="),
        ("https://host/models#subdirectory=../a", r"not inside the repository"),
        ("https://host/models#subdirectory=/a", r"not inside the repository"),
    ],
)
def test_what_is_no_address_is_told(given: str, message: str) -> None:
    with pytest.raises((InvalidValue, UnknownName, NotFound), match=message):
        fetch_zoo(given)


def test_no_credentials_are_shown_by_an_address() -> None:
    address = parse_address("https://me:t0ken@host/models@main")
    assert "t0ken" not in f"{address} {address!r}"


@pytest.mark.parametrize("password", ["t0k/en", "t0k#en", "t0k?/@en"])
def test_no_part_of_a_password_that_is_misread_is_shown(password: str) -> None:
    with pytest.raises(InvalidValue, match="cannot be read") as raised:
        parse_address(f"https://me:{password}@host/models@main")
    assert "t0k" not in str(raised.value)


def test_a_host_may_be_a_number() -> None:
    address = parse_address("http://me:t0ken@[::1]:8080/models")
    assert address is not None
    assert address.url == "http://[::1]:8080/models"


# --- which commit ---


def test_the_default_branch_is_fetched(repository: Repository) -> None:
    assert text(repository.url) == "x = 1\n"
    assert Zoo(repository.url).find("m.x").value == 1


def test_a_branch_a_tag_and_a_commit_are_fetched(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.git("tag", "--annotate", "--message=one", "v1")
    repository.git("switch", "--quiet", "--create", "feature/two")
    repository.commit({"m.py": "x = 2\n"})
    assert text(f"{repository.url}@main") == "x = 1\n"
    assert text(f"{repository.url}@v1") == "x = 1\n"
    assert text(f"{repository.url}@feature/two") == "x = 2\n"
    assert text(f"{repository.url}@{first}") == "x = 1\n"
    assert text(f"{repository.url}@{first[:8]}") == "x = 1\n"


def test_a_branch_that_moved_is_looked_up_anew(repository: Repository) -> None:
    assert text(f"{repository.url}@main") == "x = 1\n"
    repository.commit({"m.py": "x = 2\n"})
    assert text(f"{repository.url}@main") == "x = 2\n"


def test_the_name_stands_for_the_commit(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    zoo = fetch_zoo(f"{repository.url}@main")
    assert zoo.name == f"{repository.url}@{first}#ref=main"
    repository.commit({"m.py": "x = 2\n"})
    assert text(zoo.name) == "x = 1\n"
    assert fetch_zoo(zoo.name) == zoo


def test_a_commit_that_is_cached_needs_no_server(repository: Repository, tmp_path: Path) -> None:
    name = fetch_zoo(repository.url).name
    repository.path.rename(tmp_path / "gone")
    assert text(name) == "x = 1\n"


def test_a_subdirectory_may_be_the_zoo(repository: Repository) -> None:
    repository.commit({"zoos/one/m.py": "x = 'one'\n", "zoos/one/requirements.txt": ""})
    assert text(f"{repository.url}@main#subdirectory=zoos/one") == "x = 'one'\n"
    with pytest.raises(NotFound, match=r"no directory 'zoos/on'.*Did you mean 'zoos/one'"):
        fetch_zoo(f"{repository.url}#subdirectory=zoos/on")


def test_a_run_that_goes_on_keeps_its_commit(repository: Repository) -> None:
    begun = fetch_zoo(f"{repository.url}@main").name
    repository.commit({"m.py": "x = 2\n"})
    assert as_begun(f"{repository.url}@main", begun) == begun
    other = f"{repository.url}@feature"
    assert as_begun(other, begun) == other
    assert as_begun("there", begun) == "there"
    given = as_begun("https://me:t0ken@host/a@b", f"https://host/a@{'0' * 40}#ref=b")
    assert given == f"https://me:t0ken@host/a@{'0' * 40}#ref=b"


# --- errors ---


def test_a_branch_that_is_not_there_is_told_with_the_nearest(repository: Repository) -> None:
    with pytest.raises(UnknownName, match=r"no branch, tag or commit 'mian'\. Did you mean 'main'"):
        fetch_zoo(f"{repository.url}@mian")


@pytest.mark.parametrize("commit", ["0" * 40, "0123456"])
def test_a_commit_that_is_not_there_is_told(repository: Repository, commit: str) -> None:
    with pytest.raises(UnknownName, match=rf"no .*commit.* '?{commit}"):
        fetch_zoo(f"{repository.url}@{commit}")


def test_a_repository_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no Git repository at file://.*by its path alone"):
        fetch_zoo(f"file://{tmp_path}")


def test_a_repository_without_a_commit_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no commit yet"):
        fetch_zoo(Repository(tmp_path / "empty").url)


def test_a_page_of_a_repository_is_told_how_to_write(repository: Repository) -> None:
    with served(repository.path.parent) as server, pytest.raises(NotFound) as raised:
        fetch_zoo(f"{server}/models/tree/main/zoos")
    assert f"Give {server}/models@main#subdirectory=zoos." in str(raised.value)


def test_without_git_it_is_told(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingPackage, match="needs git, which is not installed"):
        fetch_zoo(repository.url)


def test_a_server_that_is_gone_is_told_with_what_is_cached(repository: Repository) -> None:
    commit = repository.git("rev-parse", "HEAD")
    with served(repository.path.parent) as server:
        url = f"{server}/models"
        name = fetch_zoo(f"{url}@main").name
    with pytest.raises(StorageFailure, match="cannot be reached") as raised:
        fetch_zoo(f"{url}@main")
    assert str(raised.value).endswith(f"give {url}@{commit}")
    assert text(f"{url}@{commit}") == text(name) == "x = 1\n"
    with pytest.raises(StorageFailure, match="cannot be reached") as raised:
        fetch_zoo(f"{url}@other")
    assert "last fetched" not in str(raised.value)


def test_a_server_of_plain_files_will_do(repository: Repository) -> None:
    first = repository.git("rev-parse", "HEAD")
    repository.commit({"m.py": "x = 2\n"})
    repository.git("update-server-info")
    with served_as_files(repository.path) as server:
        assert text(f"{server}/.git@main") == "x = 2\n"
        assert text(f"{server}/.git@{first}") == "x = 1\n"


def test_a_server_that_says_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELASTICDL_GIT_TIMEOUT", "0.5")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/models"
        with pytest.raises(StorageFailure, match=r"no answer within 0\.5 seconds"):
            fetch_zoo(url)


# --- credentials ---


def test_credentials_open_the_door_and_are_written_nowhere(
    repository: Repository, cache: Path
) -> None:
    with served(repository.path.parent, password="me:t0ken") as server:
        url = f"{server}/models@main"
        given = url.replace("http://", "http://me:t0ken@")
        zoo = fetch_zoo(given)
        assert "t0ken" not in zoo.name
        assert text(given) == text(zoo.name) == "x = 1\n"
        with pytest.raises(StorageFailure, match=r"refused.*credential helper.*Git says") as raised:
            fetch_zoo(url.replace("http://", "http://me:wr0ng@"))
        assert "wr0ng" not in str(raised.value)
        with pytest.raises(StorageFailure, match="refused"):
            fetch_zoo(url)
    written = [str(path) for path in cache.rglob("*")]
    written += [path.read_text() for path in cache.rglob("*") if path.is_file()]
    assert written
    assert not any("t0ken" in one for one in written)


# --- what never happens ---


def test_no_hook_and_no_filter_runs(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        (hooks / name).chmod(0o755)
    repository.commit({".gitattributes": "*.py filter=theirs export-ignore\n", ".gitconfig": ""})
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(hooks.parent))
    (tmp_path / "gitconfig").write_text(
        f"[init]\n\ttemplateDir = {hooks.parent}\n[core]\n\thooksPath = {hooks}\n"
    )
    assert text(repository.url) == "x = 1\n"
    assert not list(tmp_path.glob("ran-*"))


def test_submodules_are_left_out(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit({"n.py": "y = 1\n"})
    allow = ("-c", "protocol.file.allow=always")
    repository.git(*allow, "submodule", "--quiet", "add", other.url, "inner")
    repository.commit({})
    assert list((fetch_zoo(repository.url).directory / "inner").iterdir()) == []


def test_links_stay_inside(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("x = 'secret'\n")
    repository.commit(
        {"a/b.py": "x = 'b'\n"},
        {
            "inside.py": "a/b.py",
            "a/up.py": "../m.py",
            "folder": "a",
            "absolute.py": str(tmp_path / "secret.py"),
            "out.py": "../../../../../secret.py",
            "step": "/",
            "through.py": f"step{tmp_path}/secret.py",
            "circle.py": "circle.py",
            "nowhere.py": "none.py",
        },
    )
    zoo = fetch_zoo(repository.url).directory
    links = {path.name for path in zoo.rglob("*") if path.is_symlink()}
    assert {"inside.py", "up.py", "folder"} <= links
    assert not {"absolute.py", "out.py", "step", "circle.py"} & links
    for path in zoo.rglob("*"):
        assert path.resolve().is_relative_to(zoo.resolve())
    assert (zoo / "inside.py").read_text() == "x = 'b'\n"
    assert Zoo(repository.url).find("folder.b.x").value == "b"


def test_settings_of_another_repository_are_not_taken(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")  # as when a hook of git calls us
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    assert text(f"file://{repository.path}") == "x = 1\n"


# --- the cache ---


def test_the_cache_holds_whole_commits_and_nothing_else(
    repository: Repository, cache: Path
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    zoo = fetch_zoo(repository.url).directory
    assert zoo.parent.parent == cache / "zoos"
    assert zoo.name == commit
    assert {path.name for path in zoo.parent.iterdir()} == {commit, ".refs"}
    assert [path.name for path in zoo.iterdir()] == ["m.py"]
    assert not stat.S_IMODE((zoo / "m.py").stat().st_mode) & 0o222
    with pytest.raises(UnknownName):
        fetch_zoo(f"{repository.url}@{'0' * 40}")
    assert {path.name for path in zoo.parent.iterdir()} == {commit, ".refs"}


def test_many_may_fetch_at_once(repository: Repository, cache: Path) -> None:
    repository.commit({f"d{n}/m{n}.py": f"x = {n}\n" for n in range(50)})
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fetch_zoo(f"{repository.url}@main"), range(8)))
    assert len({zoo.directory for zoo in found}) == 1
    assert len(list(found[0].directory.rglob("m*.py"))) == 51
    assert not list(cache.rglob(".aside-*"))


def test_what_a_killed_process_left_is_swept_out(repository: Repository) -> None:
    root = fetch_zoo(repository.url).directory.parent
    for name, age in ((".aside-old", 2 * 24 * 3600), (".aside-new", 0)):
        (root / name).mkdir()
        os.utime(root / name, (os.stat(root).st_mtime - age,) * 2)
    repository.commit({"m.py": "x = 2\n"})
    assert text(repository.url) == "x = 2\n"
    assert [path.name for path in root.glob(".aside-*")] == [".aside-new"]


def test_a_cache_that_cannot_be_written_is_told(
    repository: Repository, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file")
    with pytest.raises(StorageFailure, match=f"Cannot write to {cache}"):
        fetch_zoo(repository.url)


def test_the_cache_is_where_the_system_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ELASTICDL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "elasticdl"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_directory() == tmp_path / ".cache" / "elasticdl"


def test_two_repositories_with_a_file_of_one_name_do_not_collide(
    repository: Repository, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "elsewhere" / "models")
    other.commit({"m.py": "x = 'other'\n"})
    assert Zoo(repository.url).find("m.x").value == 1
    assert Zoo(other.url).find("m.x").value == "other"


# --- jobs ---


def test_the_models_of_a_repository_are_listed(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit({"sums.py": MODEL})
    assert main(["zoo", "list", f"{repository.url}@main"]) == 0
    shown = capsys.readouterr()
    assert "sums.custom_model" in shown.out
    assert f"Fetching the model zoo {repository.url} at commit" in shown.err
    assert main(["zoo", "list", f"--model_zoo={repository.url}", "--json"]) == 0
    shown = capsys.readouterr()
    assert [model["name"] for model in json.loads(shown.out)] == ["sums.custom_model"]
    assert shown.err == ""


@pytest.mark.usefixtures("tensorflow")
def test_a_run_trains_and_goes_on_with_the_commit_that_it_began_with(
    repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.commit({"sums.py": MODEL.replace("NAME", "first")})
    commit = repository.git("rev-parse", "HEAD")
    (tmp_path / "data.csv").write_text("a,b,sum\n" + "1,2,3\n" * 8)
    job = ["--model_def=sums.custom_model", "--data=data.csv", "--minibatch_size=4"]
    job += ["--output=run", "--checkpoint_steps=1"]
    with served(repository.path.parent, password="me:t0ken") as server:
        zoo = f"--model_zoo={server.replace('http://', 'http://me:t0ken@')}/models@main"
        assert main(["train", zoo, *job, "--log_level=WARNING"]) == 0
        assert "Fetching" not in capsys.readouterr().err
        repository.commit({"sums.py": "raise AssertionError('the new code ran')"})
        assert main(["train", zoo, *job, "--num_epochs=2", "--resume"]) == 0
    assert main(["train", "--output=run", "--num_epochs=3", "--resume"]) == 0
    assert main(["evaluate", "--trained_model=run", "--data=data.csv"]) == 0
    with served(repository.path.parent, password="me:t0ken") as another:
        secret = another.replace("http://", "http://me:t0ken@")
        job = [f"--model_zoo={secret}/models@{commit}", "--model_def=sums.custom_model"]
        job += ["--trained_model=run", "--data=data.csv"]
        assert main(["evaluate", *job]) == 0
        assert main(["predict", *job, "--output=run/predictions"]) == 0
    assert list((tmp_path / "run" / "predictions").iterdir())
    began = json.loads((tmp_path / "run" / "job.json").read_text())
    assert began["model_zoo"] == f"{server}/models@{commit}#ref=main"
    shown = capsys.readouterr()
    written = [p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()]
    assert not any(b"t0ken" in one for one in written)
    assert "t0ken" not in shown.out + shown.err


@pytest.mark.usefixtures("tensorflow")
def test_python_takes_the_same_address(repository: Repository, tmp_path: Path) -> None:
    import elasticdl

    repository.commit({"zoo/sums.py": MODEL})
    (tmp_path / "data.csv").write_text("a,b,sum\n" + "1,2,3\n" * 8)
    result = elasticdl.train(
        "sums.custom_model",
        "data.csv",
        model_zoo=f"{repository.url}@main#subdirectory=zoo",
        minibatch_size=4,
        output="run",
    )
    assert result.steps == 2
