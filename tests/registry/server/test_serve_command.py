"""`schemactl serve` as a process: it prints its URL when it is ready, ends cleanly, and survives faults of clients."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import admin_rest
import pytest
import shop
from command import process

from schemactl.core.project import CHECKER_PACKAGE
from schemactl.registry.server import app

pytestmark = pytest.mark.network

LARGEST = 5_242_710
STRING = {"type": "STRING", "schema": "", "properties": {}}


def avro(text: str) -> dict[str, object]:
    return {"type": "AVRO", "schema": text, "properties": {}}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_serve_ends_cleanly_after_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "schemactl", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        with closing(admin_rest.Client(server.stdout.readline().strip())) as client:
            assert client.call("GET", "/brokers/health").text == "ok"
            # An open connection does not keep it.
            server.send_signal(number)
            assert server.wait(timeout=20) == 0
        assert server.communicate() == ("", "")


def test_stored_versions_remain_after_a_restart(tmp_path: Path) -> None:
    for expected in (404, 200):
        with (
            admin_rest.serve_folder("--registry", "sqlite:deep/registry.db", folder=tmp_path) as (url, _),
            closing(admin_rest.Client(url)) as client,
        ):
            assert client.call("GET", "/schemas/t/n/a/schema").status == expected
            client.create_namespace("t/n")
            assert client.call("POST", "/schemas/t/n/a/schema", STRING).json() == {"version": {"version": 0}}
    assert (tmp_path / "deep" / "registry.db").is_file()


def test_serve_follows_the_settings_of_the_project(tmp_path: Path) -> None:
    shop.git(tmp_path, "init", "-q")
    project = 'version: 1\npulsar: "4.2"\ndefaults: {schema_compatibility_strategy: FORWARD}\n'
    (tmp_path / "schemactl.yaml").write_text(project)
    with admin_rest.serve_folder(folder=tmp_path) as (url, _), closing(admin_rest.Client(url)) as client:
        assert client.call("GET", "/brokers/version").text.startswith("4.2.")
        client.create_namespace("t/n")
        response = client.call(
            "POST", "/schemas/t/n/a/compatibility", avro('{"type": "record", "name": "A$B", "fields": []}')
        )
        assert (response.status, response.json()["schemaCompatibilityStrategy"]) == (202, "FORWARD")


@pytest.mark.parametrize("encoding", ["inline", "FOO", ""])
def test_a_pair_of_any_encoding_is_stored_and_returned(encoding: str) -> None:
    types = {f"{half}.schema.type": "STRING" for half in ("key", "value")}
    payload = {
        "type": "KEY_VALUE",
        "schema": '{"key":"","value":""}',
        "properties": {**types, "kv.encoding.type": encoding},
    }
    with admin_rest.serve_folder() as (url, _), closing(admin_rest.Client(url)) as client:
        client.create_namespace("t/n")
        for _ in range(2):
            assert client.call("POST", "/schemas/t/n/a/schema", payload).json() == {"version": {"version": 0}}
        assert client.call("POST", "/schemas/t/n/a/compatibility", payload).status == 202
        assert client.call("POST", "/schemas/t/n/a/version", payload).json() == {"version": 0}
        response = client.call("GET", "/schemas/t/n/a/schema")
        assert (response.status, response.json()["data"]) == (200, '{"key":"","value":""}')
        assert response.json()["properties"]["kv.encoding.type"] == encoding
        assert client.call("GET", "/schemas/t/n/a/schemas").status == 200


def test_answers_are_not_held_back_until_the_client_has_confirmed_their_first_half() -> None:
    # Otherwise asyncio does not disable Nagle's algorithm, and each response takes 40 ms.
    with closing(app._open_socket("127.0.0.1", 0)) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.fixture
def taken_port() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield str(taken.getsockname()[1])


def test_a_port_that_is_taken_is_one_error(tmp_path: Path, taken_port: str) -> None:
    done = process(tmp_path, "serve", "--port", taken_port)
    assert done.code == 1
    assert "cannot listen on" in done.err
    assert "--port" in done.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--registry", "https://pulsar:8443"), "is not an embedded registry"),
        (("--registry", "registry.db"), "is not an embedded registry"),
        (("--port", "x"), "expected a number from 0 to 65535, found 'x'"),
        (("--port", "70000"), "expected a number from 0 to 65535"),
        (("--config", "nowhere.yaml"), "no such file"),
    ],
)
def test_wrong_usage_is_one_clear_error(tmp_path: Path, arguments: tuple[str, ...], problem: str) -> None:
    done = process(tmp_path, "serve", *arguments)
    assert (done.code, done.out) == (64, "")
    assert problem in done.err


def test_a_project_file_of_another_repository_is_rejected(tmp_path: Path, taken_port: str) -> None:
    for name in ("here", "other"):
        (tmp_path / name / ".git").mkdir(parents=True)
    (tmp_path / "other" / "schemactl.yaml").write_text("version: 1\n")
    # Nobody waits for a server that starts all the same: its port is taken.
    options = ("--config", "../other/schemactl.yaml", "serve", "--port", taken_port)
    done = process(tmp_path / "here", *options)
    assert (done.code, done.out) == (1, "")
    assert "--config ../other/schemactl.yaml is in the repository" in done.err


def test_invalid_registry_file_is_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "registry.db").write_text("no database, but long enough to be looked at")
    done = process(tmp_path, "serve", "--port", "0", "--registry", "sqlite:registry.db")
    assert (done.code, done.out) == (1, "")
    assert "is not a readable SQLite file" in done.err


def test_the_largest_definition_is_taken_and_one_byte_more_is_not(client: admin_rest.Client, tenant: str) -> None:
    text = '"string"'
    assert client.call("POST", f"/schemas/{tenant}/ns/a/schema", avro(text.ljust(LARGEST))).status == 200
    assert len(client.call("GET", f"/schemas/{tenant}/ns/a/schema").json()["data"]) == LARGEST
    response = client.call("POST", f"/schemas/{tenant}/ns/b/schema", avro(text.ljust(LARGEST + 1)))
    assert response.status == 500
    assert "Not enough non-faulty bookies available" in response.json()["reason"]


def test_a_client_that_goes_away_in_mid_sentence_leaves_no_traceback() -> None:
    with admin_rest.serve_folder() as (url, server):
        for _ in range(3):
            with admin_rest.open_connection(url) as raw:
                head = "POST /admin/v2/schemas/t/n/a/schema HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                raw.sendall(f'{head}Content-Length: 1000\r\n\r\n{{"type":'.encode())
        with closing(admin_rest.Client(url)) as client:
            assert client.call("GET", "/brokers/health").status == 200
        server.send_signal(signal.SIGTERM)
        server.wait(within_s=20)
        assert (server.read_out(), server.read_err()) == (f"{url}\n", "")


def test_a_namespace_goes_with_topics_that_are_kept_nowhere(client: admin_rest.Client, tenant: str) -> None:
    client.call("PUT", f"/non-persistent/{tenant}/ns/fleeting")
    client.call("PUT", f"/non-persistent/{tenant}/ns/divided/partitions", 1)
    assert client.call("DELETE", f"/namespaces/{tenant}/ns").status == 409
    client.call("DELETE", f"/non-persistent/{tenant}/ns/divided/partitions")
    assert client.call("DELETE", f"/namespaces/{tenant}/ns").status == 204
    assert client.call("GET", f"/namespaces/{tenant}").json() == []


def test_number_of_partitions_is_limited(client: admin_rest.Client, tenant: str) -> None:
    topic = f"/persistent/{tenant}/ns/p/partitions"
    assert client.call("PUT", topic, 10_001).status == 406
    assert client.call("PUT", topic, 10_000).status == 204
    assert client.call("POST", topic, 10_001).status == 406


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /admin/v2/tenants/x HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_other_protocols_than_http_do_no_harm(client: admin_rest.Client, url: str, request_bytes: bytes) -> None:
    with admin_rest.open_connection(url) as raw:
        raw.sendall(request_bytes)
        raw.shutdown(socket.SHUT_WR)
        raw.recv(1 << 12)
    assert client.call("GET", "/brokers/health").status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"type": "AVRO", "schema": "' + b"[" * 100_000 + b'"}',
        json.dumps(avro('{"type": "array", "items": ' * 20_000)).encode(),
        b"\xff\xfe\x00",
        b'{"type": "AVRO", "schema": "\\ud800"}',
        b'{"type": "STRING", "schema": "", "properties": {"' + b"k" * 1_000_000 + b'": "v"}}',
    ],
)
def test_hostile_bodies_get_an_answer(client: admin_rest.Client, tenant: str, body: bytes) -> None:
    for endpoint in ("schema", "compatibility", "version"):
        response = client.call("POST", f"/schemas/{tenant}/ns/a/{endpoint}", body)
        assert response.status in (200, 202, 400, 422, 500)
        assert "Traceback" not in response.text
    assert client.call("GET", f"/schemas/{tenant}/ns/a/schemas").status == 200


def test_head_is_get_without_its_body(client: admin_rest.Client, tenant: str) -> None:
    for path in (f"/schemas/{tenant}/ns/a/schema", f"/namespaces/{tenant}", "/clusters", "/nowhere"):
        full, head = client.call("GET", path), client.call("HEAD", path)
        assert (head.status, head.content) == (full.status, b"")
        assert head.headers["content-length"] == str(len(full.content))


def test_an_endpoint_tells_its_methods(client: admin_rest.Client) -> None:
    response = client.call("PATCH", "/schemas/t/n/a/schema")
    assert (response.status, response.content) == (405, b"")
    assert set(response.headers["allow"].split(",")) == {"GET", "POST", "DELETE", "OPTIONS"}
    assert set(client.call("OPTIONS", "/schemas/t/n/a/version").headers["allow"].split(",")) == {"POST", "OPTIONS"}


def test_body_without_the_json_type_is_rejected(client: admin_rest.Client, tenant: str) -> None:
    path = f"/schemas/{tenant}/ns/a/schema"
    for content_type in ("text/plain", "application/jsonx", None):
        assert client.call("POST", path, STRING, content_type=content_type).status == 415
    assert client.call("POST", path, STRING, content_type="Application/JSON; charset=utf-8").status == 200


def test_client_that_does_not_accept_json_gets_no_json(client: admin_rest.Client) -> None:
    assert client.call("GET", "/clusters", Accept="text/plain").status == 406
    for accepted in ("*/*", "text/html, application/json;q=0.5", "application/*"):
        assert client.call("GET", "/clusters", Accept=accepted).json() == ["standalone"]


def test_rejection_is_a_page_or_json_and_empty_if_too_long(client: admin_rest.Client, tenant: str) -> None:
    path, bad = f"/schemas/{tenant}/ns/a/schema", {"type": "STRING", "schema": "<Größe>"}
    page = client.call("POST", path, bad)
    assert (page.status, page.media_type) == (422, "text/html")
    assert b"&apos;&lt;Gr\xf6\xdfe&gt;&apos;" in page.content
    response = client.call("POST", path, bad, Accept="application/json")
    assert (response.status, response.media_type, response.json()["status"]) == (422, "application/json", "422")
    long = client.call("POST", path, {"type": "STRING", "schema": "x" * 11_000})
    assert (long.status, long.content) == (422, b"")


def upload(url: str, path: str, symbol: int) -> int:
    """Return the version number of an uploaded enum."""
    with closing(admin_rest.Client(url)) as own:
        text = json.dumps({"type": "enum", "name": "E", "symbols": [f"S{symbol}"]})
        version: int = own.call("POST", path, avro(text)).json()["version"]["version"]
        return version


def test_many_uploads_at_once_are_numbered_without_gaps(url: str, client: admin_rest.Client, tenant: str) -> None:
    client.call("PUT", f"/namespaces/{tenant}/ns/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE")
    path = f"/schemas/{tenant}/ns/a/schema"
    with ThreadPoolExecutor(8) as threads:
        numbers = list(threads.map(lambda number: upload(url, path, number % 20), range(40)))
    assert numbers[:20] == numbers[20:]
    assert sorted(set(numbers)) == list(range(20))


def test_several_servers_share_one_file(tmp_path: Path) -> None:
    with ExitStack() as stack:
        urls = [
            stack.enter_context(admin_rest.serve_folder("--registry", "sqlite:registry.db", folder=tmp_path))[0]
            for _ in range(2)
        ]
        clients = [stack.enter_context(closing(admin_rest.Client(url))) for url in urls]
        clients[0].create_namespace("t/n", {"schema_compatibility_strategy": "ALWAYS_COMPATIBLE"})
        path = "/schemas/t/n/a/schema"
        with ThreadPoolExecutor(4) as threads:
            numbers = list(threads.map(lambda number: upload(urls[number % 2], path, number), range(24)))
        assert sorted(numbers) == list(range(24))
        responses = [client.call("GET", f"{path}s").json() for client in clients]
        assert responses[0] == responses[1]


def test_missing_packages_are_an_error_with_the_extra_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['uvicorn'] = None; from schemactl.cli import main; sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "pulsar-schemactl[serve]" in done.stderr


def test_a_topic_keeps_properties(client: admin_rest.Client, tenant: str) -> None:
    topic = f"/persistent/{tenant}/ns/a"
    assert client.call("GET", f"{topic}/properties").status == 404
    client.call("PUT", topic, {"k": "v"})
    assert client.call("PUT", f"{topic}/properties", {"z": "1", "b": 2}).status == 204
    assert client.call("DELETE", f"{topic}/properties?key=k").status == 204
    assert client.call("GET", f"{topic}/properties").json() == {"z": "1", "b": "2"}
    # A broker never answers to this.
    assert client.call("PUT", f"{topic}/properties", {"n": None}).status == 500
    assert client.call("PUT", f"/non-persistent/{tenant}/ns/a/properties", {}).status == 406
    client.call("PUT", f"/persistent/{tenant}/ns/p/partitions", 2)
    assert client.call("GET", f"/persistent/{tenant}/ns/p/properties").content == b""


METADATA = "application/vnd.partitioned-topic-metadata+json"


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
@pytest.mark.parametrize(
    ("body", "media_type", "status", "partitions"),
    [
        ({"partitions": 2, "properties": {"k": "v"}}, METADATA, 204, {"partitions": 2, "properties": {"k": "v"}}),
        ({"partitions": 2}, METADATA, 204, {"partitions": 2}),
        ({"partitions": "2", "properties": None, "deleted": True, "x": 1}, METADATA, 204, {"partitions": 2}),
        ({"partitions": 2, "properties": {"k": 5}}, f"{METADATA}; charset=utf-8", 204, {"partitions": 2, "properties": {"k": "5"}}),
        (5, METADATA, 204, {"partitions": 5}),
        (5, "application/x+json", 204, {"partitions": 5}),
        (5, "text/json", 204, {"partitions": 5}),
        ({"partitions": 2}, admin_rest.JSON, 400, None),
        ({"partitions": 2}, "application/x+json", 400, None),
        ({"partitions": 0}, METADATA, 406, None),
        ({}, METADATA, 406, None),
        ([], METADATA, 400, None),
        ("", METADATA, 500, None),
        ("null", METADATA, 500, None),
        ({"partitions": 10_001}, METADATA, 406, None),
    ],
)  # fmt: skip
def test_partitioned_topic_is_created_by_number_or_metadata(
    client: admin_rest.Client, tenant: str, domain: str, body: object, media_type: str, status: int, partitions: object
) -> None:
    path = f"/{domain}/{tenant}/ns/topic/partitions"
    assert client.call("PUT", path, body, content_type=media_type).status == status
    response = client.call("GET", path)
    if isinstance(partitions, dict):
        assert response.json() == {"deleted": False, **partitions}
    else:
        assert response.status == 404


@pytest.mark.parametrize(
    ("name", "status"), [("parts", 204), ("single", 404), ("missing", 404), ("parts-partition-0", 412)]
)
def test_missed_partitions_are_created_for_partitioned_topics(
    client: admin_rest.Client, tenant: str, name: str, status: int
) -> None:
    client.call("PUT", f"/persistent/{tenant}/ns/parts/partitions", 2)
    client.call("PUT", f"/persistent/{tenant}/ns/single")
    assert client.call("POST", f"/persistent/{tenant}/ns/{name}/createMissedPartitions").status == status


def test_a_namespace_keeps_properties(client: admin_rest.Client, tenant: str) -> None:
    space = f"/namespaces/{tenant}/ns"
    assert client.call("GET", f"/namespaces/{tenant}/absent/properties").status == 404
    assert client.call("PUT", f"{space}/properties", {"k": "v"}).status == 204
    assert client.call("PUT", f"{space}/properties", {"z": "persistent://a/b/c"}).status == 204
    assert client.call("GET", f"{space}/properties").json() == {"k": "v", "z": "persistent://a/b/c"}
    removed = client.call("DELETE", f"{space}/property/k"), client.call("DELETE", f"{space}/property/k")
    assert [(response.status, response.content) for response in removed] == [(200, b"v"), (200, b"")]
    assert client.call("GET", space).json()["properties"] == {"z": "persistent://a/b/c"}


CHECKERS = ["AvroSchemaCompatibilityCheck", "JsonSchemaCompatibilityCheck", "ProtobufNativeSchemaCompatibilityCheck"]


def test_configuration_has_the_settings_about_schemas(client: admin_rest.Client) -> None:
    assert client.call("GET", "/brokers/configuration/runtime").json() == {
        "schemaCompatibilityStrategy": "FULL",
        "isAllowAutoUpdateSchemaEnabled": "true",
        "isSchemaValidationEnforced": "false",
        "schemaRegistryCompatibilityCheckers": f"[{', '.join(CHECKER_PACKAGE + name for name in CHECKERS)}]",
        "systemTopicSchemaCompatibilityStrategy": "ALWAYS_COMPATIBLE",
        "brokerDeduplicationEnabled": "false",
        "brokerDeleteInactiveTopicsEnabled": "true",
        "brokerDeleteInactiveTopicsFrequencySeconds": "60",
        "brokerDeleteInactiveTopicsMode": "delete_when_no_subscriptions",
        "brokerServiceCompactionThresholdInBytes": "0",
        "defaultRetentionSizeInMB": "0",
        "defaultRetentionTimeInMinutes": "0",
        "ttlDurationDefaultInSeconds": "0",
    }


HUGE = "9" * 5000


@pytest.mark.parametrize("number", ["-+5", "--5", "1_0", HUGE])
def test_a_version_that_is_no_long_is_refused_as_java_refuses_it(
    client: admin_rest.Client, tenant: str, number: str
) -> None:
    response = client.call("GET", f"/schemas/{tenant}/ns/a/schema/{number}")
    assert response.status == 500
    assert f'Message: For input string: "{number}"' in response.json()["reason"]


@pytest.mark.parametrize("index", ["01", HUGE])
def test_name_that_looks_like_a_partition_is_rejected(client: admin_rest.Client, tenant: str, index: str) -> None:
    path = f"/persistent/{tenant}/ns/a-partition-{index}"
    for method in ("PUT", "DELETE"):
        response = client.call(method, path)
        assert (response.status, response.json()) == (412, {"reason": "Topic name is not valid"})


def test_numbers_beyond_all_measure_are_read_like_others(client: admin_rest.Client, tenant: str) -> None:
    space = f"/namespaces/{tenant}/ns"
    assert client.call("PUT", f"{space}/schemaCompatibilityStrategy", HUGE).status == 204
    assert client.call("GET", f"{space}/schemaCompatibilityStrategy").json() == "UNDEFINED"
    assert client.call("POST", f"{space}/schemaValidationEnforced", HUGE).status == 204
    assert client.call("GET", f"{space}/schemaValidationEnforced").json() is True
