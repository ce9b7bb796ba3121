"""What an image is made of, without an engine: its Dockerfile, its files, ElasticDL's wheel and its pins."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import packaging
import pytest

import elasticdl
from elasticdl.errors import InvalidValue, NotFound, RunError
from elasticdl.runtime.kubernetes.build_context import files_of_zoo, left_out_line, pack
from elasticdl.runtime.kubernetes.build_log import BuildLog
from elasticdl.runtime.kubernetes.image import (
    DockerEngine,
    ImagePlan,
    build_and_push,
    check_repository,
    default_base,
    dockerfile,
)
from elasticdl.runtime.kubernetes.own_wheel import own_distribution, own_wheel
from elasticdl.runtime.kubernetes.pins import installed_extras, pins
from elasticdl.runtime.kubernetes.push import registry_of


def write(zoo: Path, *names: str, content: str = "x = 1\n") -> Path:
    for name in names:
        (zoo / name).parent.mkdir(parents=True, exist_ok=True)
        (zoo / name).write_text(content)
    return zoo


def steps(zoo: Path | None, **more: str) -> list[str]:
    return dockerfile(ImagePlan(base="python:3.11-slim", zoo=zoo, **more)).splitlines()  # type: ignore[arg-type]


def test_a_dockerfile_ends_with_the_files_that_change_most(tmp_path: Path) -> None:
    write(tmp_path, "model.py")
    write(tmp_path, "requirements.txt", content="scikit-learn\n")
    found = steps(tmp_path)
    assert found[0] == "FROM python:3.11-slim"
    assert found[-3:] == [
        "COPY model_zoo/requirements.txt /model_zoo/",
        "RUN pip install -r /model_zoo/requirements.txt",
        "COPY model_zoo /model_zoo",
    ]
    pinned = next(n for n, line in enumerate(found) if "-c /opt/elasticdl/constraints" in line)
    own = next(n for n, line in enumerate(found) if "--force-reinstall" in line)
    assert pinned < own < len(found) - 3


def test_requirements_are_installed_only_when_the_zoo_has_them(tmp_path: Path) -> None:
    write(tmp_path, "model.py")
    assert steps(tmp_path)[-2:] == ["WORKDIR /model_zoo", "COPY model_zoo /model_zoo"]


@pytest.mark.parametrize(
    "line",
    ["-r more.txt", "--constraint=more.txt", "./vendored", "-e .", "a @ file:///model_zoo/a"],
)
def test_all_files_come_first_when_requirements_need_them(tmp_path: Path, line: str) -> None:
    write(tmp_path, "requirements.txt", content=f"{line}\n")
    assert steps(tmp_path)[-2:] == [
        "COPY model_zoo /model_zoo",
        "RUN pip install -r /model_zoo/requirements.txt",
    ]


def test_there_is_no_zoo_in_the_dockerfile_when_the_base_has_one() -> None:
    assert not any("model_zoo" in line for line in steps(None))


def test_every_pip_that_looks_for_packages_gets_the_extra_index(tmp_path: Path) -> None:
    write(tmp_path, "requirements.txt", content="scikit-learn\n")
    index = "https://pypi.example.com/simple?a=1&b=2"
    asked = [line for line in steps(tmp_path, extra_index=index) if " -r " in line]
    assert len(asked) == 2
    assert all(f"--extra-index-url '{index}'" in line for line in asked)


def test_the_default_base_is_this_python() -> None:
    assert default_base() == f"docker.io/library/python:3.{sys.version_info.minor}-slim"


def test_credentials_of_an_index_are_refused_and_not_repeated() -> None:
    with pytest.raises(
        InvalidValue, match=r"extra_pypi_index https://\.\.\.@pypi.example.com"
    ) as error:
        ImagePlan(base="b", zoo=None, extra_index="https://scott:tiger@pypi.example.com/simple")
    assert "tiger" not in str(error.value)


@pytest.mark.parametrize(
    "index", ["scott:tiger@pypi.example.com", "https://scott:ti/tiger@pypi.example.com/simple"]
)
def test_credentials_are_not_repeated_however_the_address_is_written(index: str) -> None:
    with pytest.raises(InvalidValue, match="it has credentials") as error:
        ImagePlan(base="b", zoo=None, extra_index=index)
    assert "tiger" not in str(error.value) and "pypi.example.com" in str(error.value)


@pytest.mark.parametrize("index", ["pypi.example.com", "file:///opt", "https://a b", ""])
def test_an_index_that_is_no_address_is_refused(index: str) -> None:
    with pytest.raises(InvalidValue, match="give an address such as"):
        ImagePlan(base="b", zoo=None, extra_index=index)


@pytest.mark.parametrize("base", ["", "a b", "python\nRUN rm", "--platform=x"])
def test_a_base_that_is_no_image_is_refused(base: str) -> None:
    with pytest.raises(InvalidValue, match="Invalid image_base"):
        ImagePlan(base=base, zoo=None)


def test_a_zoo_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="There is no model zoo"):
        ImagePlan(base="b", zoo=tmp_path / "gone")


@pytest.mark.parametrize("name", ["me/models", "localhost:5000/models", "gcr.io/my-project/a/b_c"])
def test_names_of_repositories_are_taken(name: str) -> None:
    check_repository(name)


@pytest.mark.parametrize(
    "name",
    ["", "Me/Models", "https://gcr.io/x", "gcr.io/x:latest", "a//b", "a b", "gcr.io/x@sha256:0"],
)
def test_names_that_are_no_repository_are_refused(name: str) -> None:
    with pytest.raises(InvalidValue, match="without a tag, such as"):
        check_repository(name)


@pytest.mark.parametrize("after", ["", ":1", "@sha256:00"])
def test_a_password_in_the_name_of_an_image_is_refused_and_not_repeated(after: str) -> None:
    name = f"scott:tiger@gcr.io/x{after}"
    with pytest.raises(InvalidValue, match=r"'\.\.\.@gcr.io/x.*docker login") as error:
        check_repository(name)
    with pytest.raises(InvalidValue, match="Invalid image_base") as of_base:
        ImagePlan(base=name, zoo=None)
    assert "tiger" not in f"{error.value} {of_base.value}"


def test_a_base_may_be_named_by_its_digest() -> None:
    base = f"localhost:5000/a/b:1@sha256:{'0' * 64}"
    assert ImagePlan(base=base, zoo=None).base == base


@pytest.mark.parametrize(
    ("repository", "registry"),
    [
        ("me/models", "docker.io"),
        ("localhost/models", "localhost"),
        ("localhost:5000/models", "localhost:5000"),
        ("gcr.io/project/models", "gcr.io"),
    ],
)
def test_the_registry_to_log_in_to_is_known(repository: str, registry: str) -> None:
    assert registry_of(repository) == registry


def test_a_key_is_left_out_whatever_its_name(tmp_path: Path) -> None:
    write(tmp_path, "model.py", "words.txt")
    write(tmp_path, "account.json", content='{"private_key": "-----BEGIN PRIVATE KEY-----"}')
    found = files_of_zoo(tmp_path)
    assert (found.taken, found.left_out) == (["model.py", "words.txt"], ["account.json"])


def test_environments_and_tokens_are_left_out_but_not_tokenizers_and_source(tmp_path: Path) -> None:
    secrets = ["HF_TOKEN", "api-token.json", "db_password.txt", "prod.env", "token.txt"]
    needed = ["tokenizer.json", "tokens.txt", "tokens/special_tokens_map.json", "token.py"]
    found = files_of_zoo(write(tmp_path, *secrets, *needed))
    assert (found.taken, found.left_out) == (sorted(needed), secrets)


@pytest.mark.parametrize(
    "line",
    [
        "--extra-index-url https://scott:tiger@pypi.example.com/simple",
        "words @ git+https://tiger@pypi.example.com/words.git@v1",
        "# -i http://scott:tiger@pypi.example.com",
    ],
)
@pytest.mark.parametrize("file", ["requirements.txt", "requirements/dev.txt", "more/base.txt"])
def test_a_password_in_a_file_for_pip_is_refused_and_not_repeated(
    tmp_path: Path, file: str, line: str
) -> None:
    write(tmp_path, "requirements.txt", content="numpy\n-r more/base.txt  # ours\n")
    write(tmp_path, file, content=f"numpy\n{line}\n")
    with pytest.raises(InvalidValue, match=f"{file} .* line 2 .*@pypi.example.com") as error:
        files_of_zoo(tmp_path)
    assert "tiger" not in str(error.value)
    assert file in files_of_zoo(tmp_path, [file]).taken  # who asks for it has it


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://scott:${PASSWORD}@pypi.example.com/simple",
        "words @ git+ssh://git@github.com/me/words.git@v1",
        "words @ https://example.com/words@1.zip",
    ],
)
def test_addresses_without_a_password_are_taken(tmp_path: Path, line: str) -> None:
    write(tmp_path, "requirements.txt", content=f"{line}\n")
    assert files_of_zoo(tmp_path).taken == ["requirements.txt"]


def test_patterns_take_what_they_name_and_nothing_beside_it(tmp_path: Path) -> None:
    write(
        tmp_path, "model.py", ".env", "keys/a.pem", "keys/b.pem", ".cache/words.bin", ".cache/x.py"
    )
    taken = files_of_zoo(tmp_path, ["keys/a.pem", ".cache/*.bin"]).taken
    assert taken == [".cache/words.bin", "keys/a.pem", "model.py"]


def test_a_pattern_of_a_name_does_not_enter_environments(tmp_path: Path) -> None:
    write(tmp_path, "model.py", "a.key", "venv/pyvenv.cfg", "venv/b.key", ".git/c.key")
    assert files_of_zoo(tmp_path, ["*.key"]).taken == ["a.key", "model.py"]


def test_a_directory_is_taken_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path, "model.py", ".data/a/1.csv", ".data/2.csv", ".other/3.csv")
    assert files_of_zoo(tmp_path, [".data/"]).taken == [".data/2.csv", ".data/a/1.csv", "model.py"]


def test_a_pattern_that_names_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"Invalid image_include 'wrods\*'"):
        files_of_zoo(write(tmp_path, "words.txt"), ["wrods*"])


def test_a_dockerignore_holds_but_not_for_what_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "model.py", "notes.md", "old/a.py", "old/b.py", "requirements.txt")
    write(tmp_path, ".dockerignore", content="# ours\n*.md\nold\n!old/b.py\nrequirements.txt\n")
    assert files_of_zoo(tmp_path).taken == ["model.py", "old/b.py", "requirements.txt"]
    assert "notes.md" in files_of_zoo(tmp_path, ["*.md"]).taken


def test_what_is_left_out_is_one_line() -> None:
    line = left_out_line([".env", "a.bin", "b.bin", "c.bin", "d.bin"])
    assert "5 files" in line and ".env, a.bin, b.bin and 2 more." in line
    assert line.endswith("--image_include=PATTERN")


def test_the_same_files_pack_to_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path, "model.py", "run.sh")
    (tmp_path / "run.sh").chmod(0o700)
    first, second = io.BytesIO(), io.BytesIO()
    digest = pack(first, {"Dockerfile": b"FROM x\n"}, tmp_path, ["model.py", "run.sh"])
    (tmp_path / "model.py").touch()
    (tmp_path / "run.sh").chmod(0o744)
    assert pack(second, {"Dockerfile": b"FROM x\n"}, tmp_path, ["model.py", "run.sh"]) == digest
    assert first.getvalue() == second.getvalue()
    with tarfile.open(fileobj=first) as tar:
        assert tar.getnames() == [
            "Dockerfile",
            "model_zoo",
            "model_zoo/model.py",
            "model_zoo/run.sh",
        ]
        assert tar.getmember("model_zoo/run.sh").mode == 0o755


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with nothing but the wheel's packages."""
    wheel, directory = own_wheel(), tmp_path_factory.mktemp("wheel")
    (directory / wheel.name).write_bytes(wheel.content)
    there = directory / "there"
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    target = ["--target", str(there), str(directory / wheel.name)]
    subprocess.run([sys.executable, *pip, *target], check=True, timeout=60)
    return there


def run_there(there: Path, code: str) -> str:
    """What Python prints when it has no other packages than these and `packaging`."""
    link = there / "packaging"
    if not link.exists():
        link.symlink_to(Path(packaging.__file__).parent)
    command = [sys.executable, "-S", "-B", "-c", code]
    done = subprocess.run(command, env={"PYTHONPATH": str(there)}, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_the_wheel_installs_both_packages_and_the_command(installed: Path) -> None:
    show = "import elasticdl, abstractions; print(elasticdl.__file__, elasticdl.__version__)"
    shown = run_there(installed, show).split()
    assert shown == [f"{installed}/elasticdl/__init__.py", elasticdl.__version__]
    assert (installed / "bin" / "elasticdl").is_file()
    assert (installed / "elasticdl" / "py.typed").is_file()


def test_the_wheel_has_the_same_bytes_and_no_caches() -> None:
    wheel = own_wheel()
    assert own_wheel() == wheel
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        assert not any("__pycache__" in name for name in archive.namelist())


def test_the_wheel_of_a_checkout_that_comes_first_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = own_wheel()
    about = tmp_path / "elasticdl.egg-info"  # what `pip install -e .` leaves beside the packages
    about.mkdir()
    with zipfile.ZipFile(io.BytesIO(whole.content)) as archive:
        for name, file in {"METADATA": "PKG-INFO", "entry_points.txt": "entry_points.txt"}.items():
            content = archive.read(f"elasticdl-{elasticdl.__version__}.dist-info/{name}")
            (about / file).write_bytes(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert own_distribution().read_text("METADATA") is None
    assert own_wheel() == whole


def test_an_image_needs_ray_here(installed: Path) -> None:
    said = run_there(installed, "from elasticdl.runtime.kubernetes.pins import pins; pins()")
    assert "MissingPackage: A job in a cluster runs on Ray" in said
    assert said.rstrip().endswith("pip install 'elasticdl[ray]'")


def test_packages_are_pinned_to_what_is_installed_here() -> None:
    found = pins()
    requirements, constraints = found.requirements.split(), found.constraints.split()
    assert f"keras=={version('keras')}" in requirements
    assert f"ray[default]=={version('ray')}" in requirements
    assert f"msgpack=={version('msgpack')}" in constraints  # ray's
    assert f"msgpack=={version('msgpack')}" not in requirements
    assert {line.partition("==")[0].partition("[")[0] for line in requirements} <= {
        line.partition("==")[0] for line in constraints
    }
    assert not any(line.startswith(("elasticdl", "pytest", "ruff")) for line in constraints)
    assert "ray" in installed_extras() and "dev" not in installed_extras()


def test_a_log_is_told_by_lines_and_a_failure_has_its_own_step() -> None:
    said: list[str] = []
    log = BuildLog(said.append)
    log.take(
        "STEP 1/2: FROM x\n--> 0123\nSTEP 2/2: RUN pip install -r /model_zoo/requirements.txt\nColl"
    )
    log.take("ecting a\nRequirement already satisfied: b\n\x1b[91mERROR: No a\x1b[0m")
    failure = log.failure("exit status 1")
    assert said[-2:] == ["Collecting a", "ERROR: No a"]
    assert "0123" not in failure
    assert "\n  Collecting a\n  ERROR: No a\n  exit status 1\nMend requirements.txt" in failure


def test_it_is_said_how_to_start_an_engine_when_none_answers(tmp_path: Path) -> None:
    engine = DockerEngine(base_url=f"unix://{tmp_path}/none.sock")
    with pytest.raises(RunError, match="No Docker engine answers at unix://") as error:
        build_and_push(ImagePlan(base="b", zoo=None), "me/models", "job", engine, print)
    assert "podman system service" in str(error.value) and "--image_name" in str(error.value)


@pytest.mark.parametrize("given", [{"tlscert": "c"}, {"base_url": "tcp://h:1", "tlskey": "k"}])
def test_a_certificate_without_its_key_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidValue, match="Give both, or none"):
        DockerEngine(**given)
