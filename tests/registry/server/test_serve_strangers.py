"""`schemactl serve` resists web pages in the user's browser, other machines, and definitions that take long."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import admin_rest
import pytest
from command import process
from waiting import assert_soon

pytestmark = pytest.mark.network

EVIL = "rebound.example"
STRING = {"type": "STRING", "schema": "", "properties": {}}


def call(url: str, method: str, path: str, headers: Sequence[str], body: bytes = b"") -> tuple[int, str]:
    """Return the status and text of the response to a request with exactly these headers."""
    first, length = f"{method} /admin/v2{path} HTTP/1.1", f"Content-Length: {len(body)}"
    with admin_rest.open_connection(url) as raw:
        raw.sendall("\r\n".join([first, *headers, length, "Connection: close", "", ""]).encode("latin-1") + body)
        answer = b""
        while data := raw.recv(1 << 16):
            answer += data
    head, _, text = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), text.decode()


@pytest.mark.parametrize(
    "host",
    [
        EVIL,
        f"{EVIL}:8080",
        "localhost.example",
        "127.0.0.1.example:8080",
        "127.0.0.1@rebound.example",
        "localhost:80@rebound.example",
        "rebound.example:@localhost",
        "10.0.0.1",
        "0.0.0.0",  # noqa: S104  what is tested
        "[::]",
        "[::1",
        "localhost:x",
        "localhost/x",
        "",
        ":8080",
        "xn--localhost-",
    ],
)
def test_a_name_that_was_led_here_reads_writes_and_deletes_nothing(
    url: str, client: admin_rest.Client, tenant: str, host: str
) -> None:
    path = f"/schemas/{tenant}/ns/a/schema"
    assert client.call("POST", path, STRING).status == 200
    body = json.dumps({**STRING, "type": "INT32"}).encode()
    for method, sent in (("GET", b""), ("POST", body), ("DELETE", b""), ("OPTIONS", b""), ("HEAD", b"")):
        status, text = call(url, method, path, [f"Host: {host}", "Content-Type: application/json"], sent)
        assert status in (400, 421), (method, text)
        if status == 421 and method != "HEAD":
            assert "--allow-host" in json.loads(text)["reason"]
    assert [version["type"] for version in _versions(client, tenant)] == ["STRING"]


def _versions(client: admin_rest.Client, tenant: str) -> list[dict[str, str]]:
    versions: list[dict[str, str]] = client.call("GET", f"/schemas/{tenant}/ns/a/schemas").json()["getSchemaResponses"]
    return versions


@pytest.mark.parametrize("hosts", [[], [f"Host: {EVIL}", "Host: localhost"], ["Host: localhost", f"Host: {EVIL}"]])
def test_a_request_names_one_host(url: str, hosts: list[str]) -> None:
    assert call(url, "GET", "/clusters", hosts)[0] in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.3.2.1:99", "[::1]:8080", "[::1]"])
def test_every_name_of_loopback_is_answered(url: str, host: str) -> None:
    assert call(url, "GET", "/clusters", [f"Host: {host}"]) == (200, '["standalone"]')


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:3000", 200),
        ("https://127.0.0.1", 200),
        ("http://[::1]:80", 200),
        (f"https://{EVIL}", 403),
        (f"http://{EVIL}:8080", 403),
        ("null", 403),
        ("", 403),
        ("file://", 403),
        ("localhost", 403),
        ("http://localhost@rebound.example", 403),
        ("chrome-extension://localhost", 403),
    ],
)
def test_pages_of_other_hosts_are_refused(url: str, origin: str, status: int) -> None:
    for method in ("GET", "DELETE", "OPTIONS"):
        path = "/clusters" if method == "GET" else "/schemas/a/b/c/schema"
        actual_status, text = call(url, method, path, ["Host: localhost", f"Origin: {origin}"])
        assert actual_status == status, (method, text)


def test_names_that_the_user_gave_are_answered() -> None:
    with admin_rest.serve_folder("--allow-host", "Registry.example", "--allow-host", "10.1.2.3") as (url, _):
        for host in ("registry.example:80", "REGISTRY.EXAMPLE", "10.1.2.3", "localhost"):
            assert call(url, "GET", "/clusters", [f"Host: {host}", f"Origin: http://{host}"])[0] == 200
        assert call(url, "GET", "/clusters", [f"Host: x.{EVIL}"])[0] == 421


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "registry.example"])  # noqa: S104  what is tested
def test_other_machines_are_let_in_only_by_a_name(tmp_path: Path, host: str) -> None:
    done = process(tmp_path, "serve", "--port", "0", "--host", host)
    assert (done.code, done.out) == (64, "")
    assert "there is no authentication" in done.err
    assert "--allow-host" in done.err


@pytest.mark.parametrize("name", ["a:b", "http://a", "a/b", "", "a@b"])
def test_invalid_host_name_is_wrong_usage(tmp_path: Path, name: str) -> None:
    done = process(tmp_path, "serve", "--port", "0", "--allow-host", name)
    assert (done.code, done.out) == (64, "")


def test_listening_for_other_machines_gives_a_warning() -> None:
    with admin_rest.serve_folder("--host", "0.0.0.0", "--allow-host", "registry.example") as (url, server):  # noqa: S104  what is tested
        local = url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104  what is tested
        assert call(local, "GET", "/clusters", ["Host: registry.example"])[0] == 200
        assert call(local, "GET", "/clusters", [f"Host: {EVIL}"])[0] == 421
        server.send_signal(signal.SIGTERM)
        server.wait(within_s=30)
        err = server.read_err()
    assert err.startswith(
        "warning: every client that reaches 0.0.0.0 and calls it registry.example can read, write and delete"
    )


SLOW = """
import sys, threading, time
from pathlib import Path
from schemactl.registry import embedded

folder = Path(sys.argv[1])
lock, busy = threading.Lock(), []

class SlowVersionList(embedded.VersionList):
    def put(self, new, strategy):
        self.wait(new)
        return super().put(new, strategy)

    def test(self, new, strategy):
        self.wait(new)
        return super().test(new, strategy)

    def wait(self, new):
        if b"slow" in new.schema:
            with lock:
                busy.append(1)
                with (folder / "busy").open("a") as log:
                    log.write(f"{len(busy)}\\n")
            while not (folder / "go").exists():
                time.sleep(0.01)
            with lock:
                busy.pop()

embedded.VersionList = SlowVersionList
from schemactl.cli import main
sys.exit(main(["serve", "--port", "0"]))
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[str]:
    """The URL of a server whose check of a topic called `slow` lasts until the file `go` exists."""
    server = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        (tmp_path / "go").touch()
        server.terminate()
        server.communicate(timeout=30)


def avro(definition: object) -> dict[str, object]:
    return {"type": "AVRO", "schema": json.dumps(definition), "properties": {}}


def test_slow_definitions_do_not_delay_reads(slow: str, tmp_path: Path) -> None:
    def upload(number: int) -> int:
        with closing(admin_rest.Client(slow)) as own:
            endpoint = "schema" if number % 2 else "compatibility"
            body = avro({"type": "fixed", "name": f"slow{number}", "size": 1})
            return own.call("POST", f"/schemas/t/n/a{number}/{endpoint}", body).status

    with closing(admin_rest.Client(slow)) as client, ThreadPoolExecutor(8) as threads:
        client.create_namespace("t/n")
        futures = [threads.submit(upload, number) for number in range(8)]
        try:
            assert_soon((tmp_path / "busy").exists, wanted=True)
            for _ in range(20):
                assert client.call("GET", "/namespaces/t/n").status == 200
                assert client.call("GET", "/schemas/t/n/a1/schemas").status == 200
                assert client.call("PUT", "/persistent/t/n/other").status in (204, 409)
            assert not any(future.done() for future in futures)
        finally:
            (tmp_path / "go").touch()
        assert [future.result() for future in futures] == [202, 200] * 4
    # Not all of them at once.
    assert set((tmp_path / "busy").read_text().split()) <= {"1", "2"}


def test_upload_is_judged_by_the_versions_at_its_end(slow: str, tmp_path: Path) -> None:
    path = "/schemas/t/n/a/schema"
    with closing(admin_rest.Client(slow)) as client, closing(admin_rest.Client(slow)) as other:
        client.create_namespace("t/n")
        with ThreadPoolExecutor(1) as threads:
            enum = avro({"type": "enum", "name": "slow", "symbols": ["A"]})
            judged = threads.submit(client.call, "POST", path, enum)
            try:
                assert_soon((tmp_path / "busy").exists, wanted=True)
                assert other.call("POST", path, avro("string")).json() == {"version": {"version": 0}}
            finally:
                (tmp_path / "go").touch()
            assert judged.result().status == 409
        assert len(other.call("GET", f"{path}s").json()["getSchemaResponses"]) == 1


UPLOAD = "POST /admin/v2/schemas/t/n/a/schema HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(("length", "status"), [((32 << 20) + 1, b"413 "), (1 << 40, b"413 "), (10**30, b"4")])
def test_body_beyond_the_limit_is_not_read(url: str, length: int, status: bytes) -> None:
    with admin_rest.open_connection(url) as raw:
        raw.sendall(f"{UPLOAD}Content-Length: {length}\r\n\r\n".encode())
        assert raw.recv(1 << 12).startswith(b"HTTP/1.1 " + status)


def test_a_body_that_does_not_say_its_length_is_not_read_to_its_end(url: str) -> None:
    with admin_rest.open_connection(url) as raw:
        raw.sendall(f"{UPLOAD}Transfer-Encoding: chunked\r\n\r\n".encode())
        try:
            for _ in range(40):
                raw.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
        except OSError:
            pass
        else:
            assert raw.recv(1 << 12).startswith(b"HTTP/1.1 413")
