"""A command ends at `--timeout` and at one Ctrl-C if its registry sends no response, or sends it byte by byte."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import admin_rest
import pytest
from fork_server import COMMAND_LINE, start_program
from scratch import ENVIRONMENT, Scratch

pytestmark = pytest.mark.slow

ENDS_WITHIN_S = 50.0
"""Without a time limit or an interrupt, these commands wait a minute for a response."""

LIMITS_S = (1, 4, 12, 36)

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


class SlowServer(NamedTuple):
    """A server without complete responses, and an event that is set by the first connection."""

    url: str
    was_reached: threading.Event


@contextmanager
def run_slow_server(kind: str) -> Iterator[SlowServer]:
    """Run a server that accepts connections, and then is silent or sends a byte of the head or body from time to time."""
    closed, was_reached = threading.Event(), threading.Event()
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
                    was_reached.set()
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
            yield SlowServer(f"http://127.0.0.1:{listener.getsockname()[1]}", was_reached)
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


class Run(NamedTuple):
    """A command that ended at its time limit, with its output on one line."""

    limit_s: int
    code: int
    text: str


def run_to_limit(
    folder: Path, *arguments: str, waits_for: str = "waiting for", program: str = COMMAND_LINE, **variables: str
) -> Run:
    """Run a command that ends at its time limit; with a longer limit if it ended before it `waits_for` this response.

    So the load of the machine does not matter.
    """
    for limit_s in LIMITS_S:
        limited_arguments = [*arguments, "--timeout", str(limit_s)]
        with start_program(folder, program, *limited_arguments, environment=ENVIRONMENT | variables) as command:
            code = command.wait(within_s=limit_s + ENDS_WITHIN_S)
            text = command.read_out() + command.read_err()
        # A process that does not end at its limit is killed, with other words.
        assert not any(word in text for word in ("Traceback", "Timeout (")), text
        run = Run(limit_s, code, " ".join(text.split()))
        if waits_for in run.text:
            break
    return run


def run_interrupted(server: SlowServer, folder: Path, *arguments: str) -> None:
    """Run a command, send it SIGINT when it has reached the server, and check that it ends without a traceback."""
    with start_program(folder, COMMAND_LINE, *arguments, environment=ENVIRONMENT) as command:
        assert server.was_reached.wait(ENDS_WITHIN_S)
        command.send_signal(signal.SIGINT)
        assert command.wait(within_s=ENDS_WITHIN_S) == 130
        assert "Traceback" not in command.read_err()


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
    with run_slow_server(kind) as server:
        repository = make_repository(tmp_path / "repository", {"live": server.url})
        run = run_to_limit(repository, *arguments)
    assert run.code == 1
    assert f"gave up after {run.limit_s} s while waiting for {server.url}: GET " in run.text
    assert "GIT_TRACE" not in run.text


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_report_files_have_the_time_limit(tmp_path: Path, command: str) -> None:
    with run_slow_server("silent") as server:
        repository = make_repository(tmp_path / "repository", {"live": server.url})
        report = repository / "report.json"
        report.write_text("of an earlier run")
        run = run_to_limit(repository, command, "--target", "live", "--format", f"json={report}")
    assert run.code == 1
    assert (
        f"gave up after {run.limit_s} s while waiting for {server.url}: GET "
        in json.loads(report.read_text())["problem"]
    )


def test_silent_issuer_of_tokens_is_named(tmp_path: Path) -> None:
    with run_slow_server("silent") as server:
        issuer = server.url
        credentials = {"oauth2": {"issuer": issuer, "audience": "a", "client_id": "b", "client_secret_env": "SECRET"}}
        repository = make_repository(tmp_path / "repository", {"live": "http://127.0.0.1:1"}, credentials)
        run = run_to_limit(repository, *COMMANDS[0], SECRET="the-secret")  # noqa: S106  opens nothing
    assert run.code == 1
    assert f"while waiting for a token: GET {issuer}/.well-known/openid-configuration (no response" in run.text
    assert "the-secret" not in run.text


@pytest.mark.parametrize("command", ["plan", "drift"])
def test_other_targets_keep_their_results_if_one_is_silent(tmp_path: Path, command: str) -> None:
    with run_slow_server("silent") as server:
        repository = make_repository(tmp_path / "r", {"local": "sqlite:registry.db", "live": server.url})
        run = run_to_limit(repository, command, "--target", "local", "--target", "live")
    assert run.code == 1
    assert "live: gave up after" in run.text
    assert ("3 topics" if command == "plan" else "a/b2") in run.text


def test_apply_that_reaches_its_limit_before_it_has_all_plans_applies_nothing(tmp_path: Path) -> None:
    with run_slow_server("silent") as server:
        repository = make_repository(tmp_path / "r", {"local": "sqlite:registry.db", "live": server.url})
        run = run_to_limit(repository, "apply", "--target", "local", "--target", "live", "--auto-approve")
    assert (run.code, (repository / "registry.db").exists()) == (1, False)


def test_status_has_a_row_for_each_silent_target(tmp_path: Path) -> None:
    with run_slow_server("silent") as server, run_slow_server("head") as other_server:
        registries = {"live": server.url, "other": other_server.url, "local": "sqlite:registry.db"}
        repository = make_repository(tmp_path / "repository", registries)
        run = run_to_limit(repository, "status", "--format", "json", "--quiet")
    rows = {row["target"]: row for row in json.loads(run.text)["targets"]}
    assert run.code == 1
    for name in ("live", "other"):
        assert f"while waiting for {registries[name]}: GET " in rows[name]["problem"]
    assert rows["local"]["problem"] is None


@pytest.mark.network
def test_apply_ends_if_the_registry_becomes_silent(tmp_path: Path) -> None:
    with admin_rest.serve_folder() as (registry, _), run_proxy(registry, b"POST ") as url:
        with closing(admin_rest.Client(registry)) as client:
            for name in ("b", "b2", "b3"):
                client.create_namespace(f"a/{name}")
        repository = make_repository(tmp_path / "repository", {"live": url})
        run = run_to_limit(repository, "apply", "--target", "live", "--auto-approve", waits_for=f"{url}: POST ")
    assert run.code in (1, 3)
    assert f"gave up after {run.limit_s} s while waiting for {url}: POST " in run.text


@pytest.mark.skipif(os.name != "posix", reason="no signals")
@pytest.mark.parametrize("arguments", [*COMMANDS[:6], COMMANDS[12], COMMANDS[15]], ids=lambda arguments: arguments[0])
def test_one_interrupt_ends_the_command(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with run_slow_server("silent") as server:
        repository = make_repository(tmp_path / "repository", {"live": server.url})
        run_interrupted(server, repository, *arguments)


@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[11], COMMANDS[4]], ids=lambda arguments: arguments[0])
def test_endless_response_is_an_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with run_slow_server("endless") as server:
        repository = make_repository(tmp_path / "repository", {"live": server.url})
        with start_program(repository, COMMAND_LINE, *arguments, environment=ENVIRONMENT) as command:
            code = command.wait(within_s=2 * ENDS_WITHIN_S)
            err = command.read_err()
    assert code == 1
    assert "has more than 67,108,864 bytes" in " ".join(err.split())
    assert "Traceback" not in err


BLOCKED_NAMES = """
import ctypes, socket
resolve = socket.getaddrinfo
def block(host, *arguments, **options):
    if host == "broker.example":
        # As in the C library, no signal ends it.
        ctypes.CDLL(None).system(b"exec sleep 60 >/dev/null 2>&1")
    return resolve(host, *arguments, **options)
socket.getaddrinfo = block
"""


@pytest.mark.skipif(os.name != "posix", reason="no alarms")
@pytest.mark.parametrize("arguments", [COMMANDS[0], COMMANDS[11]], ids=lambda arguments: arguments[0])
def test_a_name_that_is_not_resolved_is_not_waited_for(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    url = "http://broker.example:8080"
    repository = make_repository(tmp_path / "repository", {"live": url})
    run = run_to_limit(repository, *arguments, program=BLOCKED_NAMES + COMMAND_LINE)
    assert run.code == 1
    assert f"gave up after {run.limit_s} s while waiting for {url}: GET " in run.text


def test_brokers_without_an_answer_end_sample(tmp_path: Path) -> None:
    pytest.importorskip("pulsar")
    with run_slow_server("silent") as server:
        brokers_url = server.url.replace("http:", "pulsar:")
        repository = make_repository(tmp_path / "repository", {"live": server.url})
        run = run_to_limit(repository, "sample", "a/b/c", "--from", brokers_url, waits_for="no response for")
        assert run.code == 1
        message = rf"cannot read persistent://a/b/c at {re.escape(brokers_url)} \(no response for ([0-9]+\.[0-9]) s"
        match = re.search(message, run.text)
        # The start of the command counts, so the brokers have less than the limit.
        assert match
        assert float(match[1]) < run.limit_s
        server.was_reached.clear()
        run_interrupted(server, repository, "sample", "a/b/c", "--from", brokers_url)
