"""The `git` program: run without hooks, prompts or a shell, within a time, and its words as errors."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from pathlib import Path

from elasticdl.contract.git_address import GitAddress
from elasticdl.errors import (
    ElasticDLError,
    InvalidValue,
    MissingPackage,
    NotFound,
    StorageFailure,
)

__all__ = ["Git", "Unreachable"]

TIME_LIMIT = "ELASTICDL_GIT_TIMEOUT"
_SAFE = (
    # No code of the repository, of a template or of a watcher runs.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "init.templateDir=",
    "protocol.ext.allow=never",
    # Links are made by us, after a look at where they lead.
    "core.symlinks=false",
    "core.autocrlf=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "advice.detachedHead=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # A server that stops sending is given up.
    "http.lowSpeedLimit=1",
    "http.lowSpeedTime=60",
)
_OF_ANOTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_TEMPLATE_DIR",
    "GIT_SHALLOW_FILE",
)
"""Set in a hook or an alias of git, from which a user may well call us."""

_UNREACHABLE = re.compile(
    "could not resolve|name resolution|name or service not known|failed to connect|connection (refused|timed out"
    "|reset|closed)|couldn't connect|unreachable|no route to host|operation too slow|unable to connect|empty reply"
    "|operation timed out|returned error: 5|hung up unexpectedly|early eof",
    re.I,
)
_DENIED = re.compile(
    "authentication failed|could not read (username|password)|permission denied|access denied|returned error: 40[13]"
    "|host key verification|terminal prompts disabled|not authorized|dubious ownership",
    re.I,
)
_ABSENT = re.compile(
    "not found|does not appear to be a git repository|does not exist|no such file|not exported|returned error: 404",
    re.I,
)


class Unreachable(StorageFailure):
    """No answer from a server: what is in the cache may be of use."""


class Git:
    """Runs git for one address."""

    def __init__(self, address: GitAddress) -> None:
        self._address = address

    def run(self, *arguments: str | Path, limit_s: float) -> bytes:
        """What git printed. Raises what an error of git means."""
        limit_s = _time_limit(limit_s)
        command = ["git", *(word for setting in _SAFE for word in ("-c", setting))]
        try:
            process = subprocess.Popen(
                [*command, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(),
                # No terminal to ask at, and one group to end when it is to be ended.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise MissingPackage(
                f"The model zoo {self._address} needs git, which is not installed. Install it, for "
                "example with: apt-get install git"
            ) from error
        with process:
            try:
                out, words = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired as error:
                _end(process)
                raise Unreachable(
                    f"Cannot fetch the model zoo {self._address}: no answer within {limit_s:g} "
                    f"seconds. Try again, or allow more with {TIME_LIMIT}=SECONDS."
                ) from error
            except BaseException:
                _end(process)
                raise
        if process.returncode != 0:
            raise self._meaning(words.decode(errors="replace"))
        return out

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in _OF_ANOTHER_REPOSITORY}
        kept |= {
            "LC_ALL": "C",
            "LANGUAGE": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "SSH_ASKPASS_REQUIRE": "never",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_ALLOW_PROTOCOL": "https:http:ssh:git:file",
        }
        if whole := self._address.url_with_credentials:
            # Not among the arguments, which every user of the machine can see.
            number = int(kept.get("GIT_CONFIG_COUNT") or 0)
            kept |= {
                "GIT_CONFIG_COUNT": str(number + 1),
                f"GIT_CONFIG_KEY_{number}": f"url.{whole}.insteadOf",
                f"GIT_CONFIG_VALUE_{number}": self._address.url,
            }
        return kept

    def _meaning(self, words: str) -> ElasticDLError:
        said = self._without_credentials(_the_point_of(words))
        cannot = f"Cannot fetch the model zoo {self._address}"
        if _DENIED.search(words):
            return StorageFailure(
                f"{cannot}: it was refused, which is also what many servers say of a repository that "
                "is not there. Check the address, and set up a credential helper of git or an ssh "
                f"key that may read it. Git says: {said}"
            )
        if _UNREACHABLE.search(words):
            return Unreachable(
                f"{cannot}: the server cannot be reached. Check the address and the network. "
                f"Git says: {said}"
            )
        if _ABSENT.search(words):
            local = self._address.url.startswith("file:")
            remedy = "A directory is given by its path alone." if local else "Check the address."
            return NotFound(
                f"There is no Git repository at {self._address.url}. {remedy}"
                f"{self._address.browsed()} Git says: {said}"
            )
        return StorageFailure(f"{cannot}. Git says: {said}")

    def _without_credentials(self, text: str) -> str:
        secrets = (self._address.url_with_credentials or "").partition("://")[2].split("/")[0]
        for secret in sorted(filter(None, re.split("[:@]", secrets)[:-1]), key=len, reverse=True):
            text = text.replace(secret, "***")
        text = re.sub(r"(?<=https://)[^/\s]*@|(?<=http://)[^/\s]*@", "", text)
        # A server's words may hold what changes a terminal.
        return "".join(letter for letter in text if letter.isprintable())


def _time_limit(limit_s: float) -> float:
    given = os.environ.get(TIME_LIMIT)
    if not given:
        return limit_s
    try:
        return float(given)
    except ValueError as error:
        raise InvalidValue(f"Invalid {TIME_LIMIT} {given!r}: give seconds, such as 600.") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """git and the programs that it started: its transport would go on alone."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _the_point_of(words: str) -> str:
    """The lines that say what went wrong, without `remote:` chatter and hints."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    told = [line for line in lines if re.match("(fatal|error|ssh|remote: error)", line, re.I)]
    return "; ".join((told or lines)[:3]) or "nothing"
