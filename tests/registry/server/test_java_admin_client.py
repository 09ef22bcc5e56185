"""Pulsar's own admin client, what `pulsar-admin schemas` is made of, gets the same from `serve` as from a real broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import brokers
import pytest

pytestmark = [pytest.mark.broker, pytest.mark.live]

PROGRAM = Path(__file__).parent / "SchemasClient.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program, compiled."""
    folder = tmp_path_factory.mktemp("classes")
    path = f"{brokers.jars()}/*"
    subprocess.run(["javac", "-nowarn", "-cp", path, "-d", folder, PROGRAM], check=True, capture_output=True)
    return folder


def run_client(classes: Path, url: str) -> list[str]:
    """Return the output of the program, one line for each call."""
    tenant = brokers.new_tenant()
    path = f"{classes}:{brokers.jars()}/*"
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", path, "SchemasClient", url, tenant]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.replace(tenant, "TENANT").splitlines() if line.startswith("> ")]
    assert lines[-1] == "> health: fine", done.stdout
    return lines


def test_the_java_admin_client_sees_no_difference(classes: Path, url: str, broker: brokers.Broker) -> None:
    lines = run_client(classes, url)
    assert lines == run_client(classes, broker.url)
    # Not both of them nothing.
    assert "> get with version: 1" in lines
    assert "> upload: PulsarAdminException 422 HTTP 422 {" in lines
