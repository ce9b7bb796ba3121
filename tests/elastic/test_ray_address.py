"""Addresses of a Ray: which are understood, and what is said when nobody is there."""

from __future__ import annotations

import socket

import pytest

from elasticdl.errors import InvalidValue, RunError
from elasticdl.runtime.elastic.cluster import ray_cluster

pytest.importorskip("ray")


@pytest.mark.parametrize(
    "address", ["http://host:1", "nowhere", "host:port", "ray://", ":6379", "me@host:1", "h:1/x"]
)
def test_an_address_is_refused_when_it_is_of_no_known_form(address: str) -> None:
    with (
        pytest.raises(InvalidValue, match=r"Invalid ray_address .* Give auto, host:port or"),
        ray_cluster(address, num_cpus=1, runtime_env=None, log_level="INFO"),
    ):
        pass


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_answers_is_named(scheme: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(RunError, match=f"No Ray answers at {address}: Connection refused"),
            ray_cluster(address, num_cpus=1, runtime_env=None, log_level="INFO"),
        ):
            pass
