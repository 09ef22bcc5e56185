"""A registry that does not answer, or answers byte by byte, holds no command longer than `--timeout`, or than one Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import admin_rest
import pytest
from scratch import ENVIRONMENT, Scratch

pytestmark = pytest.mark.slow

LIMIT_S = 5.0
MARGIN_S = 5.0
"""A second is enough on an idle machine; without the limit, these commands take a minute."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"

ENDLESS_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

COMMANDS = [
    ("plan", "--target", "live"),
    ("apply", "--target", "live", "--auto-approve"),
    ("drift", "--target", "live"),
    ("status",),
    ("import", "--target", "live"),
    ("clients", "--target", "live"),
    ("rebuild", "--target", "live"),
    ("admit", "producer", "a/b/c@0", "--target", "live"),
    ("log", "a/b/c", "--target", "live"),
    ("generate", "--target", "live"),
    ("show", "--effective", "a/b/c", "--target", "live", "--live"),
    ("registry", "list", "a/b/c", "--target", "live"),
    ("registry", "get", "a/b/c", "--target", "live"),
    ("registry", "put", "a/b/c", "--type", "STRING", "--target", "live"),
    ("registry", "delete", "a/b/c", "--allow-delete", "--target", "live"),
    ("registry", "test", "a/b/c", "--type", "STRING", "--target", "live"),
    ("decode", "a/b/c", "--version", "0", "--base64", "AA==", "--target", "live"),
    ("drift", "--unmanaged", "--target", "live"),
]
NAMES = [arguments[0] if arguments[1:2] in ((), ("--target",)) else " ".join(arguments[:2]) for arguments in COMMANDS]


@contextmanager
def run_slow_server(kind: str) -> Iterator[str]:
    """Run a server that accepts connections, and then is silent or sends a byte of the head or body from time to time."""
    closed = threading.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        connections: list[socket.socket] = []

        def send_endlessly(connection: socket.socket) -> None:
            with suppress(OSError):
                while not closed.is_set():
                    connection.sendall(b" " * (1 << 16))

        def serve() -> None:
            while not closed.is_set():
                if select.select([listener], [], [], 0.1)[0]:
                    connection, _ = listener.accept()
                    connections.append(connection)
                    if kind in ("body", "endless"):
                        connection.sendall(HEAD if kind == "body" else ENDLESS_HEAD)
                    if kind == "endless":
                        threading.Thread(target=send_endlessly, args=[connection], daemon=True).start()
                if kind in ("head", "body"):
                    for connection in connections:
                        # The head is never complete, and the body neither.
                        with suppress(OSError):
                            connection.sendall(b" " if kind == "body" else b"H")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            closed.set()
            thread.join()
            for connection in connections:
                connection.close()


@contextmanager
def run_proxy(target: str, stop_at: bytes) -> Iterator[str]:
    """Run a proxy that forwards requests to the server `target`, except requests that begin with `stop_at`."""
    host, _, port = target.removeprefix("http://").partition(":")

    class Proxy(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((host, int(port))) as upstream:
                while True:
                    ready = select.select([self.request, upstream], [], [])[0]
                    data = ready[0].recv(1 << 16)
                    if not data:
                        return
                    if ready[0] is self.request and data.startswith(stop_at):
                        closed.wait(60)
                        return
                    (upstream if ready[0] is self.request else self.request).sendall(data)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: object) -> None:
            """Ignore errors, because the client closes connections."""

    closed = threading.Event()
    with Server(("127.0.0.1", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        closed.set()
        server.shutdown()


def make_repository(folder: Path, registries: dict[str, str], credentials: Mapping[str, object] | None = None) -> Path:
    """Return a repository with three declared topics in as many namespaces, and these targets."""
    scratch = Scratch(folder)
    targets = {name: {"registry": url, **(credentials or {})} for name, url in registries.items()}
    files = {f"namespaces/{name}.yaml": f"topic: a/{name}/c\nschema: {{type: STRING}}\n" for name in ("b", "b2", "b3")}
    project = json.dumps({"version": 1, "targets": targets, "generate": {"package": "shop", "out": "generated"}})
    scratch.commit({"schemactl.yaml": project, **files})
    scratch.flush()
    return scratch.path


PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from schemactl.__main__ import main
sys.exit(main())
"""
"""The command line, which also hears SIGINT if the shell runs the tests in the background."""


def start(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a command in a new process."""
    command = [sys.executable, "-P", "-c", PROGRAM, *arguments]
    pipe = subprocess.PIPE
    environment = {**ENVIRONMENT, **variables}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        *(pytest.param(arguments, "silent", id=name) for arguments, name in zip(COMMANDS, NAMES, strict=True)),
        pytest.param(COMMANDS[0], "head", id="plan, byte by byte of the head"),
        pytest.param(COMMANDS[0], "body", id="plan, byte by byte of the body"),
        pytest.param(COMMANDS[3], "body", id="status, byte by byte of the body"),
        pytest.param(COMMANDS[12], "head", id="registry put, byte by byte of the head"),
        pytest.param(COMMANDS[15], "body", id="decode, byte by byte of the body"),
    ],
)
def test_command_ends_at_its_time_limit(tmp_path: Path, arguments: tuple[str, ...], kind: str) -> None:
    with run_slow_server(kind) as url:
        repository = make_repository(tmp_path / "repository", {"live": url})
        started_s = time.monotonic()
        process = start(repository, *arguments, "--timeout", f"{LIMIT_S:g}")
        out, err = process.communicate(timeout=60)
        took_s = time.monotonic() - started_s
    assert took_s < LIMIT_S + MARGIN_S
    assert process.returncode == 1
    text = out if arguments[0] == "status" else err
    assert f"gave up after {LIMIT_S:g} s while waiting for {url}: GET " in " ".join(text.split())
    assert "Traceback" not in err
    assert "GIT_TRACE" not in text


def test_silent_issuer_of_tokens_is_named(tmp_path: Path) -> None:
    with run_slow_server("silent") as issuer:
        credentials = {"oauth2": {"issuer": issuer, "audience": "a", "client_id": "b", "client_secret_env": "SECRET"}}
        repository = make_repository(tmp_path / "repository", {"live": "http://127.0.0.1:1"}, credentials)
        process = start(repository, *COMMANDS[0], "--timeout", f"{LIMIT_S:g}", SECRET="the-secret")  # noqa: S106  opens nothing
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"while waiting for a token: GET {issuer}/.well-known/openid-configuration (no response" in err
    assert "the-secret" not in err


def test_status_has_a_row_for_each_silent_target(tmp_path: Path) -> None:
    with run_slow_server("silent") as url, run_slow_server("head") as other_url:
        registries = {"live": url, "other": other_url, "local": "sqlite:registry.db"}
        repository = make_repository(tmp_path / "repository", registries)
        process = start(repository, "status", "--timeout", f"{LIMIT_S:g}", "--format", "json")
        out, _ = process.communicate(timeout=60)
    rows = {row["target"]: row for row in json.loads(out)["targets"]}
    assert process.returncode == 1
    for name in ("live", "other"):
        assert f"while waiting for {registries[name]}: GET " in rows[name]["problem"]
    assert rows["local"]["problem"] is None


@pytest.mark.parametrize("stop_at", [b"POST "])
def test_apply_ends_if_the_registry_becomes_silent(tmp_path: Path, stop_at: bytes) -> None:
    with admin_rest.serve_folder() as (registry, _), run_proxy(registry, stop_at) as url:
        with closing(admin_rest.Client(registry)) as client:
            for name in ("b", "b2", "b3"):
                client.create_namespace(f"a/{name}")
        repository = make_repository(tmp_path / "repository", {"live": url})
        started_s = time.monotonic()
        process = start(repository, "apply", "--target", "live", "--auto-approve", "--timeout", f"{LIMIT_S:g}")
        out, err = process.communicate(timeout=60)
        took_s = time.monotonic() - started_s
    assert took_s < LIMIT_S + MARGIN_S
    assert process.returncode in (1, 3)
    assert f"gave up after {LIMIT_S:g} s while waiting for {url}: {stop_at.decode()}" in " ".join((out + err).split())
    assert "Traceback" not in err


@pytest.mark.skipif(os.name != "posix", reason="no signals")
@pytest.mark.parametrize("arguments", [*COMMANDS[:6], COMMANDS[12], COMMANDS[15]], ids=lambda arguments: arguments[0])
def test_one_interrupt_ends_the_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with run_slow_server("silent") as url:
        repository = make_repository(tmp_path / "repository", {"live": url})
        process = start(repository, *arguments)
        time.sleep(LIMIT_S)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        started_s = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - started_s < MARGIN_S
    assert process.returncode == 130
    assert "Traceback" not in err


@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[11], COMMANDS[4]], ids=lambda arguments: arguments[0])
def test_endless_response_is_an_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with run_slow_server("endless") as url:
        repository = make_repository(tmp_path / "repository", {"live": url})
        process = start(repository, *arguments, "--timeout", "50")
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "is not read on: its answer has more than 67,108,864 bytes" in " ".join(err.split())
    assert "Traceback" not in err


BLOCKED_NAMES = """
import ctypes, socket
resolve = socket.getaddrinfo
def block(host, *arguments, **options):
    if host == "broker.example":
        # As in the C library, no signal ends it.
        ctypes.CDLL(None).system(b"exec sleep 15 >/dev/null 2>&1")
    return resolve(host, *arguments, **options)
socket.getaddrinfo = block
"""


@pytest.mark.skipif(os.name != "posix", reason="no alarms")
@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[11]], ids=lambda arguments: arguments[0])
def test_a_name_that_is_not_resolved_is_not_waited_for(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    repository = make_repository(tmp_path / "repository", {"live": "http://broker.example:8080"})
    command = [sys.executable, "-P", "-c", BLOCKED_NAMES + PROGRAM, *arguments, "--timeout", f"{LIMIT_S:g}"]
    started_s = time.monotonic()
    done = subprocess.run(command, cwd=repository, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert time.monotonic() - started_s < LIMIT_S + MARGIN_S
    assert done.returncode == 1
    assert f"gave up after {LIMIT_S:g} s while waiting for http://broker.example:8080: GET " in " ".join(
        done.stderr.split()
    )


def test_brokers_without_an_answer_end_sample(tmp_path: Path) -> None:
    pytest.importorskip("pulsar")
    with run_slow_server("silent") as url:
        brokers_url = url.replace("http:", "pulsar:")
        repository = make_repository(tmp_path / "repository", {"live": url})
        process = start(repository, "sample", "a/b/c", "--from", brokers_url, "--timeout", "3")
        _, err = process.communicate(timeout=60)
        assert process.returncode == 1
        # The start of the command counts, so the brokers have less than the limit.
        message = rf"cannot read persistent://a/b/c at {re.escape(brokers_url)} \(no response for [0-2]\.[0-9] s"
        assert re.search(message, " ".join(err.split()))
        process = start(repository, "sample", "a/b/c", "--from", brokers_url)
        time.sleep(LIMIT_S)
        process.send_signal(signal.SIGINT)
        started_s = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - started_s < MARGIN_S
    assert process.returncode == 130
    assert "Traceback" not in err
