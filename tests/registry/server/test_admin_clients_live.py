"""Pulsar's admin clients of Java and Go get the same from `serve` as from a broker, except for the listed differences."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import admin_servers
import brokers
import pytest
import yaml

pytestmark = pytest.mark.broker

FOLDER = Path(__file__).parent
DIFFERENCES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "admin_differences.yaml").read_text(encoding="utf-8"))
MAX_DIFFERENCES = 9
JAVA_CALLS, GO_CALLS = 681, 120

RELEASES = [*brokers.VERSIONS]


@pytest.fixture(params=RELEASES)
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, admin_servers.Server]]:
    """A broker and `serve` of the same release."""
    with ExitStack() as stack:
        serve = stack.enter_context(admin_servers.open_server(f"serve {request.param}", tmp_path))
        broker = stack.enter_context(admin_servers.open_server(request.param, tmp_path))
        yield {"broker": broker, "serve": serve}


def run_calls(command: list[str | Path], server: admin_servers.Server, folder: Path) -> dict[str, str]:
    """Run a program that prints one line for each call, and return the results by the number and name of the call."""
    tenant = brokers.new_tenant()
    done = subprocess.run(
        [*command, server.url, tenant], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    host = server.url.removeprefix("http://")
    results: dict[str, str] = {}
    for line in done.stdout.splitlines():
        if match := re.fullmatch(
            r"> (?P<call>\d{3} [^:]+(?:://[^:]+)?): (?P<result>.*)", line.replace(tenant, "TENANT")
        ):
            results[match["call"]] = match["result"].replace(host, "SERVER")
    return results


def compare(client: str, results: dict[str, dict[str, str]], release: str) -> None:
    """Expect the listed differences between the results from a broker and from `serve`, and no others."""
    expected = {
        call["call"]: (call["broker"], call["serve"])
        for difference in DIFFERENCES
        if release in difference.get("releases", [release])
        for call in difference["calls"]
        if call["client"] == client
    }
    broker, serve = results["broker"], results["serve"]
    calls = dict.fromkeys([*broker, *serve])
    actual = {
        call: (broker.get(call, "no call"), serve.get(call, "no call"))
        for call in calls
        if broker.get(call) != serve.get(call)
    }
    assert actual == expected


def normalize_java(result: str) -> str:
    """Return a result with the message of an error page in place of the page."""
    error = re.fullmatch(r"(?P<error>\w+ \d+) HTTP \d+ (?P<text>.*)", result)
    if error is None:
        return result
    page = re.search(r'"message":"(.*?)",\\n"url":', error["text"])
    return f"{error['error']} {html.unescape(page[1]) if page else error['text']}"


def normalize_go(result: str) -> str:
    """Return a result with the message of an error page or status line in place of the page or line."""
    error = re.fullmatch(r'(?P<error>error \d+) (?P<text>".*")', result)
    if error is None:
        return result
    text = json.loads(error["text"])
    page = re.search(r'"message":"(.*?)",\n"url":', text, re.DOTALL)
    # In a status line, question marks stand for the ends of lines.
    message = html.unescape(page[1] if page else re.sub(r"\A\d{3} ", "", text)).replace("\n", "?")
    return f'{error["error"]} "{message}"'


def test_java_admin_client_gets_the_same(servers: dict[str, admin_servers.Server], tmp_path: Path) -> None:
    release = servers["broker"].release
    folder = brokers.find_jars(brokers.VERSIONS[release])
    jars = f"{folder}/*"
    classes = tmp_path / "classes"
    program = FOLDER / "AdminCalls.java"
    compiler = brokers.find_tool("javac", folder)
    subprocess.run([compiler, *brokers.JAVAC, "-cp", jars, "-d", classes, program], check=True, capture_output=True)
    command: list[str | Path] = [
        brokers.find_tool("java", folder),
        *brokers.SHORT_LIVED,
        "-cp",
        f"{classes}:{jars}",
        "AdminCalls",
    ]
    results = {name: run_calls(command, server, tmp_path) for name, server in servers.items()}
    assert {name: len(lines) for name, lines in results.items()} == {"broker": JAVA_CALLS, "serve": JAVA_CALLS}
    normalized = {
        name: {call: normalize_java(result) for call, result in lines.items()} for name, lines in results.items()
    }
    compare("java", normalized, release)


@pytest.mark.go
def test_go_admin_client_gets_the_same(servers: dict[str, admin_servers.Server], tmp_path: Path) -> None:
    program = build_go_program(tmp_path)
    results = {name: run_calls([program], server, tmp_path) for name, server in servers.items()}
    assert {name: len(lines) for name, lines in results.items()} == {"broker": GO_CALLS, "serve": GO_CALLS}
    normalized = {
        name: {call: normalize_go(result) for call, result in lines.items()} for name, lines in results.items()
    }
    compare("go", normalized, servers["broker"].release)


def build_go_program(folder: Path) -> Path:
    """Compile the calls of Go's admin client; skip the test without Go or the modules."""
    program = folder / "admin_calls"
    environment = {**os.environ, "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    if shutil.which("go") is None:
        pytest.skip("no Go")
    done = subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=FOLDER / "go_admin",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "module lookup disabled by GOPROXY=off" in done.stderr:
        pytest.skip("no modules of Go's admin client: make go-modules")
    assert done.returncode == 0, done.stderr
    return program


def test_differences_are_few_and_have_reasons() -> None:
    assert len(DIFFERENCES) <= MAX_DIFFERENCES
    assert all(difference["reason"] and difference["calls"] for difference in DIFFERENCES)
