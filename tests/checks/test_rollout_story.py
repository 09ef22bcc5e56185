"""The commands of docs/explanation/rollout.md bring a breaking change to three services, as the page shows."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import admin_rest
import brokers
import pytest
from command import schemactl
from scratch import ENVIRONMENT, Scratch
from waiting import assert_soon

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "rollout.md"
ROLES = {"checkout": "producer", "billing": "consumer", "mail": "consumer"}


class Part(NamedTuple):
    """A part of the page: a file with its text, a command with its exit code and output, or the connected clients."""

    file: str = ""
    command: str = ""
    code: int = 0
    connected: str = ""
    lines: tuple[str, ...] = ()


def read_parts() -> Iterator[Part]:
    """Return the parts of the page in order."""
    part = Part()
    for line in [*PAGE.read_text(encoding="utf-8").splitlines(), "end"]:
        if part.file or part.command:
            if line.startswith("    ") and not line.startswith("    $ "):
                part = part._replace(lines=(*part.lines, line[4:]))
                continue
            if not line and (part.file and not part.lines):
                continue
            yield part
            part = Part()
        if name := re.fullmatch(r"`(\S+)`:", line):
            part = Part(file=name[1])
        elif match := re.fullmatch(r"    \$ (.*?)(?: +# exit code (\d+))?", line):
            part = Part(command=match[1], code=int(match[2] or 0))
        elif match := re.fullmatch(r"<!-- connected: (.*) -->", line):
            yield Part(connected=match[1])


def follow(folder: Path, registry: str, connect: Callable[[dict[str, int]], None] | None, tenant: str = "shop") -> None:
    """Run the whole page in `folder` against `registry`, and expect its output; clients connect only with `connect`."""
    for part in read_parts():
        if part.file:
            path = folder / part.file
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n".join(part.lines).replace('"http://localhost:8080"', registry) + "\n", encoding="utf-8")
        elif part.connected:
            if connect:
                connect({name: int(number) for name, number in map(str.split, part.connected.split(","))})
        elif part.command.startswith("schemactl"):
            arguments = shlex.split(part.command)[1:]
            if arguments[0] == "clients" and connect is None:
                continue
            done = schemactl(folder, *arguments, code=part.code)
            expect(part, (done.out + done.err).replace(tenant, "shop"))
        else:
            subprocess.run(part.command, shell=True, cwd=folder, env=ENVIRONMENT, check=True)  # noqa: S602  a page of ours


def expect(part: Part, printed: str) -> None:
    """Expect the lines of the page in the output, in order; `...` matches any text."""
    left = [" ".join(line.split()) for line in printed.splitlines()]
    for line in part.lines:
        pattern = ".*".join(map(re.escape, " ".join(line.split()).split("...")))
        at = next((at for at, line in enumerate(left) if re.fullmatch(pattern, line)), None)
        assert at is not None, (part.command, line, printed)
        left = left[at + 1 :]


@pytest.mark.network
def test_the_commands_of_the_page_have_the_output_of_the_page(tmp_path: Path) -> None:
    with admin_rest.serve_folder(folder=tmp_path) as (url, _):
        follow(Scratch(tmp_path / "shop").path, f'"{url}"', None)


@pytest.mark.broker
@pytest.mark.parametrize("release", brokers.VERSIONS)
def test_it_does_on_live_brokers_and_every_message_is_read(release: str, tmp_path: Path) -> None:
    broker, tenant = brokers.start_broker(release), brokers.new_tenant()
    pulsar, fastavro = import_module("pulsar"), import_module("fastavro")
    topic, folder = f"persistent://{tenant}/sales/orders", Scratch(tmp_path / "shop").path
    drained = ("clients", "shop/sales/orders", "--target", "prod", "--drained")
    read: list[tuple[str, int, int]] = []

    def read_definition(number: int) -> Any:
        printed = schemactl(folder, "show", f"shop/sales/orders@{number}").out
        return fastavro.parse_schema(json.loads(printed.splitlines()[0]), named_schemas={})

    with ExitStack() as stack:
        logger = pulsar.FileLogger(pulsar.LoggerLevel.Error, str(tmp_path / "log"))
        client = pulsar.Client(broker.service_url, logger=logger)
        stack.callback(client.close)
        running: dict[str, tuple[int, Any]] = {}

        def connect(wanted: dict[str, int]) -> None:
            for name, number in wanted.items():
                version, version_number = running.get(name, (None, None))
                if version != number:
                    if version_number:
                        version_number.close()
                    match = {"properties": {"schemactl.version": str(number)}}
                    running[name] = (
                        number,
                        client.create_producer(topic, producer_name=name, **match)
                        if ROLES[name] == "producer"
                        else client.subscribe(topic, name, **match),
                    )
            written, producer = running["checkout"]
            payload = io.BytesIO()
            fastavro.schemaless_writer(payload, read_definition(written), {"id": "a", "total": 1.5, "cents": 150})
            producer.send(payload.getvalue())
            for name, (number, consumer) in running.items():
                if ROLES[name] == "consumer":
                    message = consumer.receive(timeout_millis=20_000)
                    fastavro.schemaless_reader(
                        io.BytesIO(message.data()), read_definition(written), read_definition(number)
                    )
                    consumer.acknowledge(message)
                    read.append((name, written, number))
            assert_soon(lambda: schemactl(folder, *drained, code=(0, 100)).code, 0)

        follow(folder, f'"{broker.url}", tenants: {{shop: {tenant}}}', connect, tenant)
    assert {name: version for name, (version, _) in running.items()} == dict.fromkeys(ROLES, 2)
    assert [(written, number) for name, written, number in read if name == "billing"] == [
        (0, 0),
        (1, 0),
        (1, 1),
        (1, 2),
        (2, 2),
    ]
