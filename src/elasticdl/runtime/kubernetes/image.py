"""The image of a job: ElasticDL as it is here, what it needs, and the model zoo on top.

What changes most comes last, so that an edited model file is one small layer.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elasticdl.contract.snapshot import REQUIREMENTS
from elasticdl.errors import InvalidValue, NotFound
from elasticdl.runtime.kubernetes.build_context import (
    OWN,
    ZOO,
    files_of_zoo,
    left_out_line,
    pack,
)
from elasticdl.runtime.kubernetes.docker_engine import DockerEngine, build, connected
from elasticdl.runtime.kubernetes.logins import without_login
from elasticdl.runtime.kubernetes.own_wheel import own_wheel, own_wheel_name
from elasticdl.runtime.kubernetes.pins import pins
from elasticdl.runtime.kubernetes.push import push

__all__ = [
    "DockerEngine",
    "ImagePlan",
    "build_and_push",
    "check_repository",
    "default_base",
    "dockerfile",
]

HERE = f"/opt/{OWN}"
ZOO_THERE = f"/{ZOO}"

_WGET = (
    "RUN command -v wget > /dev/null || (apt-get update && apt-get install -y --no-install-recommends wget "
    "&& rm -rf /var/lib/apt/lists/*)"
)
"""KubeRay asks a pod with wget whether it is well, and Python's own slim images have none."""

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::\d+)?/)?{_PART}(?:/{_PART})*")
_INDEX = re.compile(r"https?://[^\s/?#:][^\s]*")
_IMAGE = re.compile(r"(?!-)[^\s@]+(?:@\w+:[0-9a-f]+)?")
_OF_THE_ZOO = re.compile(
    r"\s*(?:-[rcef]\b|--(?:requirement|constraint|editable|find-links)\b|\.|file:|[^#]*@\s*file:)"
)
"""A line of a requirements file that needs other files of the zoo."""


@dataclass(frozen=True, kw_only=True)
class ImagePlan:
    """What an image is made of.

    Attributes:
      base: the image to start from, with Python and pip.
      zoo: a local directory, which becomes /model_zoo; None where the base has one.
      extra_index: one more index for pip, without credentials: they would stay in the image's history.
      include: patterns of files that are taken though they look like data or secrets.
    """

    base: str
    zoo: Path | None
    extra_index: str | None = None
    include: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _IMAGE.fullmatch(self.base):
            raise InvalidValue(
                f"Invalid image_base {without_login(self.base)!r}: give the name of an image, such as "
                f"{default_base()}."
            )
        if self.extra_index is not None:
            _check_index(self.extra_index)
        if self.zoo is not None and not self.zoo.is_dir():
            raise NotFound(
                f"There is no model zoo {self.zoo}. Give --model_zoo a directory of this machine."
            )


def default_base() -> str:
    """Python's own image, of the version that runs here."""
    return f"docker.io/library/python:{sys.version_info.major}.{sys.version_info.minor}-slim"


def _check_index(address: str) -> None:
    shown = without_login(address)
    if "@" in address:
        raise InvalidValue(
            f"Invalid extra_pypi_index {shown}: it has credentials, which everybody who gets the image could read. "
            "Give --image_base an image whose pip knows the index, or --image_name one that is built already."
        )
    if not _INDEX.fullmatch(address):
        raise InvalidValue(
            f"Invalid extra_pypi_index {shown!r}: give an address such as https://pypi.example.com/simple."
        )


def check_repository(repository: str) -> None:
    """Raise `InvalidValue` unless images can be pushed under that name."""
    name = repository.partition("@sha256:")[0]
    if "@" in name:
        raise InvalidValue(
            f"Invalid docker_image_repository {without_login(name)!r}: it has credentials, and everybody who may "
            "look at the job reads its image's name. Leave them out, and log in with docker login."
        )
    if not _REPOSITORY.fullmatch(repository):
        raise InvalidValue(
            f"Invalid docker_image_repository {repository!r}: give a registry and a name in lower case without a tag, "
            "such as registry.example.com/team/models or localhost:5000/models."
        )


def dockerfile(plan: ImagePlan) -> str:
    """What the image is built by."""
    pip = "RUN pip install"
    if plan.extra_index:
        pip += f" --extra-index-url {shlex.quote(plan.extra_index)}"
    wheel = own_wheel_name()
    lines = [
        f"FROM {plan.base}",
        "ENV PYTHONUNBUFFERED=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore "
        "PIP_PROGRESS_BAR=off",
        _WGET,
        f"COPY {OWN}/requirements.txt {OWN}/constraints.txt {HERE}/",
        f"{pip} -r {HERE}/requirements.txt -c {HERE}/constraints.txt",
        f"COPY {OWN}/{wheel} {HERE}/",
        f"RUN pip install --no-deps --force-reinstall {HERE}/{wheel}",
        *(_zoo_lines(plan.zoo, pip) if plan.zoo else ()),
    ]
    return "".join(f"{line}\n" for line in lines)


def _zoo_lines(zoo: Path, pip: str) -> list[str]:
    copy = f"COPY {ZOO} {ZOO_THERE}"
    workdir = f"WORKDIR {ZOO_THERE}"
    requirements = zoo / REQUIREMENTS
    if not requirements.is_file():
        return [workdir, copy]
    install = f"{pip} -r {ZOO_THERE}/{REQUIREMENTS}"
    lines = requirements.read_text(encoding="utf-8", errors="replace").splitlines()
    if any(_OF_THE_ZOO.match(line) for line in lines):
        return [workdir, copy, install]
    return [workdir, f"COPY {ZOO}/{REQUIREMENTS} {ZOO_THERE}/", install, copy]


def build_and_push(
    plan: ImagePlan, repository: str, name: str, engine: DockerEngine, say: Callable[[str], None]
) -> str:
    """Build the image, push it, and return what a cluster pulls: `repository@sha256:...`.

    Args:
      repository: where it is pushed, without a tag.
      name: of the job; it stands at the beginning of the tag.
      say: gets the lines of the log.

    Raises:
      InvalidValue, NotFound: the plan does not hold.
      MissingPackage: Docker's SDK or Ray is not installed.
      RunError: no engine, a step that failed, or a registry that does not take it.
    """
    check_repository(repository)
    with connected(engine, say) as connection, tempfile.TemporaryFile() as context:
        names: list[str] = []
        if plan.zoo is not None:
            files = files_of_zoo(plan.zoo, plan.include)
            names = files.taken
            if files.left_out:
                say(left_out_line(files.left_out))
        digest = pack(context, _own_files(plan), plan.zoo, names)
        tag = tag_of(name, digest)
        build(connection, context, f"{repository}:{tag}", say)
        return f"{repository}@{push(connection, repository, tag, say)}"


def _own_files(plan: ImagePlan) -> dict[str, bytes]:
    pinned, wheel = pins(), own_wheel()
    return {
        "Dockerfile": dockerfile(plan).encode(),
        f"{OWN}/requirements.txt": pinned.requirements.encode(),
        f"{OWN}/constraints.txt": pinned.constraints.encode(),
        f"{OWN}/{wheel.name}": wheel.content,
    }


def tag_of(name: str, digest: str) -> str:
    """A tag that says whose image it is, and differs when the files do.

    >>> tag_of("My job!", "0123456789abcdef")
    'my-job-0123456789ab'
    """
    short = re.sub(r"[^a-z0-9_.-]+", "-", name.lower()).strip("-.")[:40] or "job"
    return f"{short}-{digest[:12]}"
