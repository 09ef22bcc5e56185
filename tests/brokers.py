"""Real brokers for tests: the first worker that needs a kind starts it, and all workers share it.

Tests share a broker, so each works in a separate tenant: `new_tenant`.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from certificates import DAY, NOW, Authority

from schemactl.registry.pulsar.http import WaitTimes
from schemactl.registry.pulsar.registry import PulsarRegistry

RECIPE = Path(__file__).parent / "broker_recipe" / "broker.sh"
FOLDER = "SCHEMACTL_TEST_BROKERS"
"""The environment variable with the folder of this run's brokers; workers inherit it."""

RELEASES = {"4.0": "4.0.7", "4.2": "4.2.4"}
"""The releases on which all live tests run, and which run on Java 17."""

VERSIONS = {**RELEASES, "5.0": "5.0.1"}
"""All releases that tests start. On 5.0 run the tests of predictions, plans, drift, imports and clients, to limit the time of `make live`."""

SHORT_LIVED = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""Options of a Java that runs for seconds, in which full optimization and verification take longer than they save."""

JAVAC = [*(f"-J{option}" for option in SHORT_LIVED), "-nowarn", "-proc:none"]
"""Options of each run of the compiler."""

NO_CLIENTS = WaitTimes(connects_follow_s=0.0)
"""Waiting times for a cluster to which no client connects while a topic is relaxed."""

markers: frozenset[str] = frozenset()
"""The markers of the running test: `broker` if it needs a broker."""

KEY = b"the key of the test broker's tokens: 32 bytes and more"


@dataclass(frozen=True)
class Broker:
    """A broker that answers.

    Attributes:
        url: of its admin API.
        service_url: for clients.
        environment: the variables with which `broker.sh` stops or restarts it.
    """

    url: str
    service_url: str
    environment: Mapping[str, str]


def new_tenant() -> str:
    """A tenant that no other test has."""
    return f"t-{uuid.uuid4().hex[:12]}"


def make_token(subject: str, *, key: bytes = KEY, **claims: object) -> str:
    """A token (JWT, HMAC-SHA256) that a broker of kind "token" takes for the role `subject`, if `key` and `claims` allow it."""

    def encode_base64(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    head = encode_base64(b'{"alg":"HS256"}') + "." + encode_base64(json.dumps({"sub": subject, **claims}).encode())
    return f"{head}.{encode_base64(hmac.digest(key, head.encode(), hashlib.sha256))}"


def start_broker(kind: str) -> Broker:
    """The run's broker of `kind`: "4.0", "4.2" or "5.0", a release.

    "token", "token-4.2" or "token-5.0" checks permissions, and "tls", "tls-4.2" or "tls-5.0" does so by client certificates.
    The test is skipped without a Java that runs it, or if the jars were not fetched.
    """
    version = VERSIONS[kind.removeprefix("token").removeprefix("tls").lstrip("-") or "4.0"]
    find_jars(version)
    if kind.startswith("tls") and not (find_jars(version).parent / "lib-tls" / ".complete").exists():
        pytest.skip("no jars for TLS: make broker")
    assert "broker" in markers, "mark the test: pytest.mark.broker"
    folder = Path(os.environ[FOLDER])
    with _lock_file(folder / f"{kind}.lock"):
        state = folder / f"{kind}.json"
        if not state.exists():
            broker = _start_process(
                folder / kind, version, checks_tokens=kind.startswith("token"), speaks_tls=kind.startswith("tls")
            )
            addresses = {"url": broker.url, "service_url": broker.service_url, "environment": dict(broker.environment)}
            state.write_text(json.dumps(addresses))
        return Broker(**json.loads(state.read_text()))


def start(folder: Path, version: str = RELEASES["4.0"], *, cluster: str = "standalone") -> Broker:
    """Start a new broker, which is the cluster of that name, with its data in `folder`; the caller stops it."""
    find_jars(version)
    assert "broker" in markers, "mark the test: pytest.mark.broker"
    return _start_process(folder, version, cluster=cluster)


def _start_process(
    folder: Path, version: str, *, checks_tokens: bool = False, speaks_tls: bool = False, cluster: str = "standalone"
) -> Broker:
    http, binary = _free_ports()
    environment = {
        "SCHEMACTL_BROKER_DATA": str(folder),
        "SCHEMACTL_HTTP_PORT": str(http),
        "SCHEMACTL_BROKER_PORT": str(binary),
        "PULSAR_VERSION": version,
        "SCHEMACTL_CLUSTER": cluster,
        "JAVA": find_java(version) or "java",
    }
    if checks_tokens:
        folder.mkdir(parents=True)
        (folder / "key").write_bytes(KEY)
        environment |= {"SCHEMACTL_TOKEN_SECRET": str(folder / "key"), "SCHEMACTL_ADMIN_TOKEN": make_token("admin")}
    if speaks_tls:
        # An admin, who is the superuser; another client; and those whom the broker does not let in.
        folder.mkdir(parents=True)
        authority = Authority(folder)
        for name in ("server", "admin", "guest"):
            authority.issue(name)
        authority.issue("expired", end=NOW - DAY)
        Authority(folder, "other").issue("stranger")
        environment["SCHEMACTL_TLS"] = str(folder)
        run_recipe("start", environment)
        return Broker(f"https://127.0.0.1:{http}", f"pulsar+ssl://127.0.0.1:{binary}", environment)
    run_recipe("start", environment)
    return Broker(f"http://127.0.0.1:{http}", f"pulsar://127.0.0.1:{binary}", environment)


def run_recipe(command: str, environment: Mapping[str, str]) -> None:
    """`broker.sh` has carried out the command."""
    done = subprocess.run(
        ["nice", "sh", str(RECIPE), command],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def begin() -> None:
    """There is a folder for the run's brokers."""
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="schemactl-brokers-")


def end() -> None:
    """All brokers of the run have stopped."""
    folder = Path(os.environ.pop(FOLDER))
    for state in folder.glob("*.json"):
        run_recipe("stop", json.loads(state.read_text())["environment"])
    shutil.rmtree(folder)


def find_jars(version: str = RELEASES["4.0"]) -> Path:
    """The folder with the jars of that Pulsar, its clients' among them. Without, or without Java, the test is skipped."""
    assert "broker" in markers, "mark the test: pytest.mark.broker"
    cache = Path(os.environ.get("SCHEMACTL_BROKER_CACHE") or RECIPE.parent.parent.parent / ".broker")
    folder = cache / f"lib-{version}"
    if not (folder / ".complete").exists():
        pytest.skip(f"no jars of Pulsar {version}: make broker")
    if find_java(version) is None:
        pytest.skip(
            f"no Java that runs Pulsar {version}: it needs Java {17 if version < '5' else 21}; set SCHEMACTL_JAVA21 to its folder"
        )
    return folder


@cache
def find_java(version: str) -> str | None:
    """Return the `java` that runs this Pulsar, or None: for 5.0 of $SCHEMACTL_JAVA21, $JAVA_HOME, or the newest in /usr/lib/jvm."""
    if version < "5":
        return shutil.which("java")
    homes = [Path(os.environ[name]) for name in ("SCHEMACTL_JAVA21", "JAVA_HOME") if os.environ.get(name)]
    homes += sorted(Path("/usr/lib/jvm").glob("*"), key=_read_java_release, reverse=True)
    return next((str(home / "bin/java") for home in homes if _read_java_release(home) >= 21), None)


def find_tool(name: str, jars: Path) -> str:
    """Return the path of `java` or `javac` for a folder that `jars` returned: the classes of brokers of 5.0 need Java 21."""
    java = find_java(jars.name.removeprefix("lib-"))
    assert java is not None
    return str(Path(java).with_name(name))


def _read_java_release(home: Path) -> int:
    """Return the release of the Java in the folder `home`, such as 21, or 0 if its file `release` does not state it."""
    try:
        text = (home / "release").read_text()
    except OSError:
        return 0
    match = re.search(r'^JAVA_VERSION="(\d+)', text, re.MULTILINE)
    return int(match[1]) if match and (home / "bin/java").exists() else 0


@contextmanager
def _lock_file(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _free_ports() -> tuple[int, int]:
    """Find two free ports below the ephemeral range, because a broker takes seconds to bind its ports."""
    for port in random.SystemRandom().sample(range(20_000, 32_000, 2), 1_000):
        with socket.socket() as one, socket.socket() as other, suppress(OSError):
            one.bind(("127.0.0.1", port))
            other.bind(("127.0.0.1", port + 1))
            return port, port + 1
    raise AssertionError("no two ports in a row are free")


@contextmanager
def open_registry(broker: Broker, waits: WaitTimes = NO_CLIENTS, **more: Any) -> Iterator[PulsarRegistry]:
    """The registry of `broker`."""
    with closing(PulsarRegistry(broker.url, waits=waits, **more)) as registry:
        yield registry
