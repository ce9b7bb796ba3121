"""What all tests share: TensorFlow loaded once, quietly, and every run in a directory of its own."""

from __future__ import annotations

import gc
import os
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.elastic import nursery
from processes import read_at_import, start_nursery

# Test modules import TensorFlow themselves: their subprocesses and they are to be as quiet as users'.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("ELASTICDL_DASHBOARD", "0")  # thousands of commands, which nobody looks at
# Some virtual machines show AMX and end who uses it; only a test of bfloat16 would.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")
if "PYTEST_XDIST_WORKER" in os.environ:  # no fewer processes than processors: each has one at most
    for pool in ("TF_NUM_INTRAOP", "OPENBLAS_NUM", "OMP_NUM"):
        os.environ.setdefault(f"{pool}_THREADS", "1")

pytest_plugins = ("object_stores",)

ROOT = Path(__file__).resolve().parent.parent


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: some test always waits, for a disk, a server or a process."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_finish() -> None:
    gc.freeze()  # TensorFlow's objects are no garbage: to look at them again and again takes long


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """What ElasticDL sets for TensorFlow and gRPC in this process is not for the programs that later tests start."""
    before = read_at_import(os.environ)
    result = yield
    for name in read_at_import(os.environ).keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)
    return result


@pytest.fixture(scope="session")
def tensorflow() -> None:
    load_tensorflow()


@pytest.fixture(scope="session", autouse=True)
def _forked_nurseries() -> None:
    """Jobs with workers that are run in this process start sooner."""
    nursery.start_python = start_nursery


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELASTICDL_CACHE", str(tmp_path / ".elasticdl_cache"))
    yield


@pytest.fixture
def make_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a file system of its own size, to be filled up."""
    disk = tmp_path / "disk"

    def make(size: str) -> Path:
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
            pytest.skip("needs the right to mount a small file system")
        return disk

    yield make
    if disk.is_mount():
        subprocess.run(["umount", str(disk)], check=True)
