"""A registry that does not answer, or answers byte by byte, holds no command longer than `--timeout`, or than one Ctrl-C."""

from __future__ import annotations

import json
import os
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
]


@contextmanager
def run_slow_server(kind: str) -> Iterator[str]:
    """Run a server that accepts connections, and then is silent or sends a byte of the head or body from time to time."""
    closed = threading.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        connections: list[socket.socket] = []

        def serve() -> None:
            while not closed.is_set():
                if select.select([listener], [], [], 0.1)[0]:
                    connection, _ = listener.accept()
                    connections.append(connection)
                    if kind == "body":
                        connection.sendall(HEAD)
                if kind != "silent":
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
        *(pytest.param(arguments, "silent", id=arguments[0]) for arguments in COMMANDS),
        pytest.param(COMMANDS[0], "head", id="plan, byte by byte of the head"),
        pytest.param(COMMANDS[0], "body", id="plan, byte by byte of the body"),
        pytest.param(COMMANDS[3], "body", id="status, byte by byte of the body"),
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
    with admin_rest.served() as (registry, _), run_proxy(registry, stop_at) as url:
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
@pytest.mark.parametrize("arguments", COMMANDS[:6], ids=lambda arguments: arguments[0])
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
