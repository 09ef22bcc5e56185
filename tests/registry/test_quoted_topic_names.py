"""Topics with `+`, `%`, spaces and other characters keep their own schemas in `import`, `drift`, `plan` and `apply`, on brokers and `serve`."""

from __future__ import annotations

import http.client
import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from importlib import import_module
from pathlib import Path
from urllib.parse import quote, urlsplit

import admin_rest
import admin_servers
import brokers
import pytest
from command import schemactl
from scratch import Scratch

NAMES = (
    *("a+b", "a b", "c+d", "x%y", "x%25y", "a%2Bb", "100%", "%", "+", "a%zz", "a%C3", "a%2520b"),
    *("a:b", "a;b", "a=b", "a&b?c#d", "a'b", 'a"b', "a\\b", "..", "ü", "注文", "😀", "a%2Fb"),
)
"""Each name would be another one, or none, after one decoding too many or too few."""


def make_definition(number: int) -> str:
    """Return a definition that no other topic has."""
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": f"field_{number}", "type": "int"}]})


class Cluster:
    """A broker or `serve`, and a namespace on it, without the code under test."""

    def __init__(self, url: str, service_url: str) -> None:
        self.url = url
        self.service_url = service_url
        self.tenant = brokers.new_tenant()
        self.client = admin_rest.Client(url)
        self.client.create_namespace(f"{self.tenant}/listed")

    def register(self, name: str, text: str) -> None:
        """Create a topic with a schema, at a broker as its clients do."""
        if self.service_url:
            self.connect(f"{self.tenant}/listed/{name}", text)
            return
        path = f"{self.tenant}/listed/{quote(name, safe='')}"
        assert self.client.call("PUT", f"/persistent/{path}").status == 204
        payload = {"type": "AVRO", "schema": text, "properties": {}}
        twice = f"{self.tenant}/listed/{quote(quote(name, safe=''), safe='')}"
        assert self.client.call("POST", f"/schemas/{twice}/schema", payload).status == 200

    def connect(self, topic: str, text: str) -> None:
        """Connect a producer with this definition, and close it."""
        pulsar = import_module("pulsar")
        with ExitStack() as stack:
            logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
            client = pulsar.Client(self.service_url, operation_timeout_seconds=10, logger=logger)
            stack.callback(client.close)
            schema = pulsar.schema.AvroSchema(None, schema_definition=json.loads(text))
            client.create_producer(f"persistent://{topic}", schema=schema).close()


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with ExitStack() as stack:
        server = stack.enter_context(admin_servers.open_server(request.param, tmp_path_factory.mktemp("serve")))
        cluster = Cluster(server.url, server.service_url)
        stack.enter_context(closing(cluster.client))
        yield cluster


@pytest.mark.parametrize("cluster", admin_servers.KINDS, indirect=True)
def test_each_topic_keeps_its_own_schema(cluster: Cluster, tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        cluster.register(name, make_definition(number))
    scratch = Scratch(tmp_path / "repository")
    scratch.commit({"schemactl.yaml": f'version: 1\ntargets: {{prod: {{registry: "{cluster.url}"}}}}\n'})
    scratch.configure_author()
    scratch.flush()
    tenant = cluster.tenant

    # Import finds each topic with its own definition.
    schemactl(scratch.path, "import", "--target", "prod", "--namespace", f"{tenant}/listed", "--one-commit")
    for number, name in enumerate(NAMES):
        output = schemactl(scratch.path, "show", f"persistent://{tenant}/listed/{name}@0").out
        assert f'"field_{number}"' in output, name
    assert "No drift" in schemactl(scratch.path, "drift", "--target", "prod").out
    schemactl(scratch.path, "plan", "--target", "prod", "--detailed-exitcode", code=0)

    # Apply registers each definition at its own topic.
    documents = [f"namespace: {tenant}/declared\nis_allow_auto_update_schema: false\n"]
    documents += [
        f"topic: {json.dumps(f'persistent://{tenant}/declared/{name}', ensure_ascii=False)}\nschema: {{type: AVRO, definition: {number}.avsc}}\n"
        for number, name in enumerate(NAMES)
    ]
    files = {f"namespaces/{number}.avsc": make_definition(number) for number, _ in enumerate(NAMES)}
    scratch.commit({**files, "namespaces/declared.yaml": "---\n".join(documents)})
    scratch.flush()
    schemactl(scratch.path, "apply", "--target", "prod", "--auto-approve")
    schemactl(scratch.path, "plan", "--target", "prod", "--detailed-exitcode", code=0)
    assert "No drift" in schemactl(scratch.path, "drift", "--target", "prod").out
    for number, name in enumerate(NAMES):
        twice = quote(quote(name, safe=""), safe="")
        response = cluster.client.call("GET", f"/schemas/{tenant}/declared/{twice}/schemas")
        assert [f'"field_{number}"' in version["data"] for version in response.json()["getSchemaResponses"]] == [
            True
        ], name
        if cluster.service_url:
            # Automatic updates are off: the broker accepts only the registered definition.
            cluster.connect(f"{tenant}/declared/{name}", make_definition(number))


@pytest.mark.parametrize("cluster", admin_servers.KINDS, indirect=True)
@pytest.mark.parametrize(
    ("raw", "topic", "topic_of_schemas"),
    [
        ("a+b", "a b", "a b"),
        ("a%20b", "a b", "a b"),
        ("a%2Bb", "a+b", "a b"),
        ("a%252Bb", "a%2Bb", "a+b"),
        ("a%2520b", "a%20b", "a b"),
        ("a%25b", "a%b", 500),
        ("a%25zz", "a%zz", 500),
        ("a%25", "a%", 500),
        ("a%2525b", "a%25b", "a%b"),
        ("a%25C3%25BC", "a%C3%BC", "aü"),
        ("a%C3%BC", "aü", "aü"),
        ("a;b=c", "a", "a"),
        ("a%3Bb", "a;b", "a;b"),
        ("a%253Bb", "a%3Bb", "a;b"),
        ("%2B", "+", 412),
        ("+", 412, 412),
        ("%20", 412, 412),
        ("a%", 400, 400),
        ("a%zz", 400, 400),
        ("..", "..", ".."),
    ],
)
def test_path_is_decoded_as_by_a_broker(
    cluster: Cluster, raw: str, topic: str | int, topic_of_schemas: str | int
) -> None:
    namespace = f"{cluster.tenant}/{uuid.uuid4().hex}"
    cluster.client.create_namespace(namespace)
    # Without quoting of the client's own.
    created = send(cluster.url, "PUT", f"/persistent/{namespace}/{raw}")
    topics = cluster.client.call("GET", f"/persistent/{namespace}").json()
    expected = (204, [f"persistent://{namespace}/{topic}"]) if isinstance(topic, str) else (topic, [])
    assert (created, topics) == expected

    uploaded = send(cluster.url, "POST", f"/schemas/{namespace}/{raw}/schema", '{"type": "STRING", "schema": ""}')
    if isinstance(topic_of_schemas, int):
        assert uploaded == topic_of_schemas
        return
    assert uploaded == 200
    twice = quote(quote(topic_of_schemas, safe=""), safe="")
    assert cluster.client.call("GET", f"/schemas/{namespace}/{twice}/schema").status == 200


def send(url: str, method: str, path: str, body: str = "") -> int:
    """Send a request with this very path, and return the status."""
    address = urlsplit(url)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)) as connection:
        headers = {"Content-Type": "application/json"}
        connection.request(method, f"/admin/v2{path}", body, headers)
        return connection.getresponse().status
