"""A cluster behind TLS, as all real ones are: trust, and each kind of connection through it."""

from __future__ import annotations

import ipaddress
import threading
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server import ApiServer, api_server
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kuberay import KubeRay

from elasticdl.runtime.kubernetes.client import connect
from elasticdl.runtime.kubernetes.follow import Detached, follow
from elasticdl.runtime.kubernetes.forward import forward
from elasticdl.runtime.kubernetes.refusals import Unreachable

Manifest = Callable[..., dict[str, Any]]


def write_certificate(path: Path, *, days: int = 1) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    end = datetime.now(UTC) + timedelta(days=days)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(end - timedelta(days=30))
        .not_valid_after(end)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    kind = serialization.Encoding.PEM
    private = key.private_bytes(
        kind, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(kind) + private)
    return path


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls") / "server.pem")


@pytest.fixture
def server(certificate: Path) -> Iterator[ApiServer]:
    with api_server(certificate) as server:
        yield server


@pytest.fixture
def kubeconfig(
    server: ApiServer, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    path = server.kubeconfig(tmp_path / "kubeconfig", authority=certificate)
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.mark.usefixtures("kubeconfig")
def test_a_job_is_submitted_asked_and_followed(kuberay: KubeRay, manifest: Manifest) -> None:
    shown: list[str] = []
    with connect() as cluster:
        cluster.check("mnist")
        cluster.create(manifest("mnist"))
        kuberay.starts("mnist")
        kuberay.server.on_exec = lambda pod, argv: (0, "x" * 100_000)
        assert cluster.exec_in_head("mnist", ["true"]) == (0, "x" * 100_000)
        kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1", "epoch 2"))
        state = follow(cluster, "mnist", lambda line: None, show=shown.append, poll_s=0.01)
    assert state.succeeded
    assert shown == ["epoch 1", "epoch 2"]


@pytest.mark.usefixtures("kubeconfig")
def test_ctrl_c_ends_what_waits_for_output(
    kuberay: KubeRay, manifest: Manifest, ctrl_c: Callable[[str], None]
) -> None:
    with connect() as cluster:
        cluster.create(manifest("mnist"))
        kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1")[:-1])
        with pytest.raises(Detached):
            follow(
                cluster,
                "mnist",
                lambda line: None,
                show=ctrl_c,
                poll_s=0.01,
            )
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("output")]


@pytest.mark.usefixtures("kubeconfig")
def test_a_port_is_forwarded(server: ApiServer) -> None:
    class Echo(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server.put("pods", {"metadata": {"name": "head"}})
    body = bytes(range(256)) * 10_000
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, args=(0.01,))
        thread.start()
        server.ports["head", 8265] = http_server.server_port
        with connect() as cluster, forward(cluster, "head", 8265) as url:
            for _ in range(3):
                with urllib.request.urlopen(url, data=body, timeout=30) as answer:
                    assert answer.read() == body
        http_server.shutdown()
        thread.join()


@pytest.mark.parametrize("trust", ["another authority", "no authority"])
def test_a_server_that_nobody_vouches_for_is_not_trusted(
    server: ApiServer, kubeconfig: Path, tmp_path: Path, trust: str
) -> None:
    other = write_certificate(tmp_path / "other.pem") if trust == "another authority" else None
    server.kubeconfig(kubeconfig, authority=other)
    with (
        connect() as cluster,
        pytest.raises(Unreachable, match=r"is not trusted:.*certificate verify failed"),
    ):
        cluster.check("mnist")


def test_a_certificate_that_has_expired_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path / "old.pem", days=-1)
    with api_server(certificate) as server:
        path = server.kubeconfig(tmp_path / "kubeconfig", authority=certificate)
        monkeypatch.setenv("KUBECONFIG", str(path))
        with (
            connect() as cluster,
            pytest.raises(Unreachable, match=r"is not trusted:.*certificate has expired"),
        ):
            cluster.check("mnist")


def test_a_user_who_does_not_want_trust_hears_no_warning(kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    del config["clusters"][0]["cluster"]["certificate-authority"]
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    kubeconfig.write_text(yaml.safe_dump(config))
    with connect() as cluster:
        cluster.check("mnist")
