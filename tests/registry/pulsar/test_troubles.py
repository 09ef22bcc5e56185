"""Problems of a registry: each has its messages, and each printed fix is carried out and works.

A trouble is made by hand, over the plain admin API. Then `plan` and `drift` are asked. Every line after "Fix:", "Next:" and "or:"
belongs to a way out of the table, and is carried out as it was printed: the commands in backticks, one after the other, or what a
person does to the declarations. It ends in a plan and a drift report without anything, or as the table says.
"""

from __future__ import annotations

import json
import re
import shlex
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import brokers
import pytest
import yaml
from admin_rest import Client, serve_folder
from command import Printed, process
from estate import Estate, EstateOnPulsar
from forks import Say, assert_killed, die_after, fork_process
from scratch import record, write_declaration

from schemactl.core.names import TopicName
from schemactl.core.schema import get_live_versions
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.interface import Registry
from schemactl.registry.pulsar.registry import PulsarRegistry

pytestmark = pytest.mark.slow

# Without types, and to a type checker the folder of tests of that name.
pulsar: Any = import_module("pulsar")


class Place(NamedTuple):
    """A registry: the URL of its admin API, the URL in a target, and the URL for clients."""

    admin: str
    registry: str
    service: str | None = None


PLACES = {
    "embedded": [pytest.mark.network, pytest.mark.live],
    **{kind: [pytest.mark.broker] for kind in brokers.VERSIONS},
}
"""The registries, each with the markers of its tests."""


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The embedded registry behind `serve`, or a broker."""
    if request.param == "embedded":
        registry = f"sqlite:{tmp_path_factory.mktemp('registry') / 'registry.db'}"
        with serve_folder("--registry", registry) as (url, _):
            yield Place(url, registry)
    else:
        broker = brokers.start_broker(request.param)
        yield Place(broker.url, broker.url, broker.service_url)


@pytest.fixture(scope="module")
def client(place: Place) -> Iterator[Client]:
    """A connection to the admin API."""
    with closing(Client(place.admin)) as connected:
        yield connected


BAD_DEFAULT = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "int", "default": "none"}],
    }
)
INVOICE = record("total", name="Invoice")
V0, V1 = record("id"), record("id", note=0)
STRICT = record("id", "needed")
FULL = "namespace: shop/sales\nschema_compatibility_strategy: FULL\n"
OPEN = write_declaration(more="schema_compatibility_strategy: ALWAYS_COMPATIBLE\n")
REJECTING = "schema_compatibility_strategy: ALWAYS_INCOMPATIBLE\n"
RELAXING = [
    ("PUT", "/persistent/TOPIC/properties", {"schemactl.relaxed_from": "UNDEFINED"}),
    ("PUT", "/namespaces/SPACE/properties", {"schemactl.auto_update_off_for": "persistent://TOPIC"}),
    ("POST", "/namespaces/SPACE/isAllowAutoUpdateSchema", False),
    ("PUT", "/persistent/TOPIC/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE"),
]
"""The writes of a `relax`, in their order."""
RELAXING_WRITES = len(RELAXING)
PARTITIONED = write_declaration(more="partitions: 2\n")

T = "shop/sales/orders"
ON = "--target local"
THIS = f"schemactl apply {ON}"
APPLY = f"schemactl apply {ON} --topic {T}"
RELAX = f"{APPLY} --relax-while-replaying"
REBUILD = f"schemactl rebuild {ON} --topic {T}"
AGAIN = f"{REBUILD} --force-delete {T}"
HIDE = f"schemactl registry delete {T} --allow-delete {ON}"
DESTROY = f"schemactl registry delete {T} --force-delete {ON}"
RECORD = f"schemactl drift {ON} --accept --reason TEXT --topic {T}"
RECORD_ALL = f"schemactl drift {ON} --accept --reason TEXT"
LOG = f"schemactl log {T} {ON}"
GET = f"schemactl registry get {T} --version 0 {ON}"
NEVER_STORED = "raise the topic's `generation` with a definition that this Pulsar release accepts, once the topic retains no messages: the present definition can never be uploaded, and neither can any later one."
APPLY_SPACE = f"schemactl apply {ON} --namespace shop/sales"


class Troubled(Estate):
    """A repository whose target is in a separate tenant, with changes over the admin API."""

    def __init__(self, path: Path, place: Place, client: Client, orders: str) -> None:
        self.place = place
        self.topic = TopicName(brokers.new_tenant(), "sales", "orders")
        self.space = str(self.topic.namespace_name)
        namespaces = f"{{shop/sales: {self.space}}}"
        target = f'{{registry: "{place.registry}", namespaces: {namespaces}}}'
        super().__init__(path, project=f"version: 1\ntargets: {{local: {target}}}\n", orders=orders)
        self.scratch.configure_author()
        self.client = client
        self.call("PUT", f"/tenants/{self.topic.tenant}", {"allowedClusters": ["standalone"]})

    def call(self, method: str, path: str, body: Any = None) -> None:
        """A request that succeeds; `SPACE` and `TOPIC` are replaced by the names."""
        text = None if body is None else self.insert_names(json.dumps(body))
        answer = self.client.call(method, self.insert_names(path), text)
        assert answer.status < 300, (method, path, answer)

    def insert_names(self, text: str) -> str:
        """Return the text with the names for `TOPIC` and `SPACE`."""
        return text.replace("TOPIC", f"{self.space}/orders").replace("SPACE", self.space)

    def create(self, partitions: int | None = None) -> None:
        """The namespace and the topic."""
        self.call("PUT", "/namespaces/SPACE", {"schema_compatibility_strategy": "BACKWARD"})
        if partitions is None:
            self.call("PUT", "/persistent/TOPIC")
        else:
            self.call("PUT", "/persistent/TOPIC/partitions", partitions)

    def upload(self, definition: str, kind: str = "AVRO") -> None:
        """Upload a schema without the tool."""
        body = {"type": kind, "schema": definition, "properties": {}}
        self.call("POST", "/schemas/TOPIC/schema", body)

    def apply(self) -> None:
        """Apply the approved history."""
        self.run("apply", "--auto-approve")

    def send(self, definition: str | None = None) -> None:
        """Send a message with the official client, with this Avro schema of strings or without a schema."""
        client = pulsar.Client(self.place.service, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        if definition is None:
            client.create_producer(str(self.topic)).send(b"text")
        else:
            schema = pulsar.schema.AvroSchema(None, schema_definition=json.loads(definition))
            message = {field["name"]: "a" for field in json.loads(definition)["fields"]}
            client.create_producer(str(self.topic), schema=schema).send(message)
        client.close()

    def forget_messages(self) -> None:
        """Make the broker remove the topic's messages."""
        for _ in range(50):
            self.call("DELETE", "/persistent/TOPIC/truncate")
            self.call("PUT", "/persistent/TOPIC/unload")
            if not json.loads(self.client.call("GET", self.insert_names("/persistent/TOPIC/internalStats")).content)[
                "numberOfEntries"
            ]:
                return
        raise AssertionError("the topic still holds messages")

    def waive_change(self, definition: str) -> None:
        """Approve a definition that the strategy rejects, with the waivers of its findings."""
        self.scratch.flush()
        (self.scratch.path / "namespaces/orders.avsc").write_text(definition)
        findings = json.loads(self.run("check", "--format", "json", code=100).out)["findings"]
        until = (datetime.now(UTC) + timedelta(days=100)).date().isoformat()
        decision = ("--reason", "every consumer is ours", "--owner", "team-orders", "--until", until)
        for fingerprint in sorted({finding["fingerprint"] for finding in findings if finding["severity"] == "error"}):
            # One entry may cover several findings.
            self.run("waive", fingerprint, *decision, code=(0, 1))
        self.run("check")
        self.scratch.git("add", "-A")
        self.scratch.git("commit", "-q", "-m", "A waived change")

    @contextmanager
    def registry(self) -> Iterator[Registry]:  # type: ignore[override]  # both are a `Registry`
        """The target's registry."""
        kind = PulsarRegistry if self.place.service else EmbeddedRegistry
        with closing(kind(self.place.registry.removeprefix("sqlite:"))) as registry:
            yield registry

    def definitions(self) -> tuple[str | None, ...]:
        """The readable definitions in the registry, by number; None for a tombstone and all entries before it."""
        versions = self.read_versions()
        readable = {version.number: version.info for version in get_live_versions(versions)}
        infos = [readable.get(version.number) for version in versions]
        return tuple(info.schema.decode() if info else None for info in infos)

    def list_advice(self, text: str) -> set[tuple[str, ...]]:
        """Return every fix that a report prints: the commands of a line, or the line without commands."""
        plain = text.replace(self.space, "SPACE").replace("SPACE/orders", "TOPIC")
        lines = re.findall(r"^ +(?:Fix|Next|or): (.*)$", plain.replace("apply this", f"`{THIS}`"), re.MULTILINE)
        ways = {tuple(re.findall(r"`((?:schemactl|pulsar-admin) [^`]+)`", line)) or (line,) for line in lines}
        return {way for way in ways if not way[0].startswith("schemactl plan ")}

    def follow(self, command: str) -> Printed | None:
        """Carry out a command as it was printed; what `--accept` or `import` writes is approved."""
        program, *words = shlex.split(command)
        if program == "pulsar-admin":
            kind, _, name = words
            domain = "namespaces" if kind == "namespaces" else "persistent"
            self.call("DELETE", f"/{domain}/{name.removeprefix('persistent://')}")
            return None
        assert program == "schemactl"
        if words[0] in ("apply", "rebuild"):
            words.append("--auto-approve")
        printed = self.run(*words, code=(0, 1, 3, 100))
        if "--accept" in words:
            self.scratch.git("add", "numbers")
            self.scratch.git("commit", "-q", "-m", "Record numbers")
        return printed


Hand = Callable[[Troubled], object]
"""A manual change."""

Step = str | tuple[str, Hand]
"""A command as it is printed; or what is printed for a person to do, and how that is done."""


@dataclass(frozen=True)
class Way:
    """A way out.

    Attributes:
        steps: what is done, in this order.
        definitions: the definitions in the registry afterwards, None for a tombstone.
        ends: how a command refuses, which ends it; "": it leads to an empty plan, and nothing drifts.
    """

    steps: tuple[Step, ...]
    definitions: tuple[str | None, ...] = (V0,)
    ends: str = ""


@dataclass(frozen=True)
class Trouble:
    """A problem and its messages.

    Attributes:
        make: makes the problem by hand, over the admin API.
        plan, drift: words that the two commands print.
        ways: every way out that one of the two prints.
        orders: the declaration of the topic.
        only: "broker" where the embedded registry cannot be so.
        beyond: a way out that is printed, and that no test can take.
    """

    make: Hand
    plan: tuple[str, ...]
    drift: tuple[str, ...]
    ways: tuple[Way, ...]
    orders: str = write_declaration()
    only: str = ""
    beyond: str = ""


def run_in_turn(*hands: Hand) -> Hand:
    """Run the changes in order."""

    def change(it: Troubled) -> None:
        for hand in hands:
            hand(it)

    return change


def send_requests(*requests: tuple[Any, ...]) -> Hand:
    """Requests to the admin API."""

    def change(it: Troubled) -> None:
        for request in requests:
            it.call(*request)

    return change


def commit_files(**contents: str | None) -> Hand:
    """These files of the folder of declarations are approved, each by its name with `_` for the dot; None: without it."""
    named = {f"namespaces/{name.replace('_', '.')}": text for name, text in contents.items()}
    return lambda it: it.scratch.commit(named)


def upload_foreign(definition: str, kind: str = "AVRO") -> Hand:
    """Upload the first version of another party."""
    return run_in_turn(Troubled.create, lambda it: it.upload(definition, kind))


def applied_then(*requests: tuple[Any, ...]) -> Hand:
    """Requests of another party, after an apply."""
    return run_in_turn(Troubled.apply, send_requests(*requests))


def approve(definition: str, more: str = "") -> Hand:
    """Approve the next definition."""
    return commit_files(orders_yaml=write_declaration(more=more), orders_avsc=definition)


def new_generation(definition: str) -> Hand:
    """Start a new generation of the topic with this definition."""
    return run_in_turn(approve(definition, more="generation: 2\n"), Troubled.apply)


def leave_ghost(definition: str) -> Hand:
    """A schema of a namespace that was deleted."""
    deletion = send_requests(("DELETE", "/namespaces/SPACE"))
    topic = send_requests(("DELETE", "/persistent/TOPIC"))
    return run_in_turn(Troubled.create, topic, lambda it: it.upload(definition), deletion)


KEPT = """\
namespace: shop/sales
schema_compatibility_strategy: BACKWARD
is_allow_auto_update_schema: false
retention_policies: {retentionTimeInMinutes: 10080, retentionSizeInMB: -1}
message_ttl_in_seconds: 3600
"""
"""The namespace with settings that keep messages."""
BARE = "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n"
MINUTE = {"retentionTimeInMinutes": 1, "retentionSizeInMB": -1}
LONGER = "retention_policies: {retentionTimeInMinutes: 20160, retentionSizeInMB: -1}\n"


def make_override(key: str, value: str, wanted: str, *request: Any) -> Trouble:
    """A setting of the topic itself, made with this request, where Git declares the wanted one for the namespace."""
    right = f"approve `{key}: {value}` for the topic, if it is right."
    effect = "removes the topic's own value" if wanted == "UNDEFINED" else "sets it"
    removed = f"approve `{key}: {wanted}` for the topic: `apply` {effect}."
    declared_away = run_in_turn(commit_files(orders_yaml=write_declaration(more=f"{key}: {wanted}\n")), Troubled.apply)
    return Trouble(
        run_in_turn(commit_files(sales_yaml=KEPT), applied_then(request)),
        plan=("No changes.",),
        drift=(f"  policy overridden: {key} of the topic is {value}, which Git does not declare; it overrides ",),
        ways=(
            Way(((right, commit_files(orders_yaml=write_declaration(more=f"{key}: {value}\n"))),)),
            Way(((removed, declared_away),)),
            Way((RECORD,)),
        ),
    )


LOST_WITH_MESSAGES = run_in_turn(
    Troubled.apply, lambda it: it.send(V0), send_requests(("DELETE", "/schemas/TOPIC/schema?force=true"))
)

TROUBLES = {
    "wedged by a default that no release can read": Trouble(
        upload_foreign(BAD_DEFAULT),
        plan=(
            "the topic is blocked by the registry's v0 (AVRO, uploaded 20",
            "), which Git does not know: brokers of Pulsar ",
            'Invalid default for field n: "none" not a "int"',
            "would be decoded as Git's versions: do this only if no such message is left.",
            "a tombstone uses a number and Git's versions follow it, so record the new numbers afterwards.",
        ),
        drift=("  wedged: the topic is blocked by the registry's v0",),
        ways=(Way((AGAIN,)), Way((HIDE, APPLY, RECORD_ALL), definitions=(None, None, V0))),
    ),
    "wedged, and recorded": Trouble(
        run_in_turn(upload_foreign(BAD_DEFAULT), Troubled.accept),
        plan=("the topic is blocked by the registry's v0",),
        drift=("  wedged: ",),
        ways=(Way((HIDE, APPLY, RECORD_ALL), definitions=(None, None, V0)),),
    ),
    "wedged, with messages": Trouble(
        run_in_turn(upload_foreign(BAD_DEFAULT), Troubled.send),
        plan=("the topic is blocked by the registry's v0",),
        drift=("  wedged: ",),
        ways=(
            Way(
                (AGAIN,),
                definitions=(BAD_DEFAULT,),
                ends="its versions are not deleted: orders retains 1 entry of messages",
            ),
            Way((HIDE, APPLY), definitions=(BAD_DEFAULT,), ends="cannot be hidden: orders retains 1 entry of messages"),
        ),
        only="broker",
    ),
    "wedged by a version of Git's": Trouble(
        run_in_turn(approve(BAD_DEFAULT), Troubled.apply, approve(V1)),
        plan=("the topic is blocked by the registry's v0 (AVRO, ", "which is Git's v0", "Git's version 1 ("),
        drift=("  wedged: the registry does not have Git's version 1 (", "the topic is blocked by the registry's v0"),
        ways=(
            Way(
                (
                    (
                        "raise the topic's `generation` with the next definition, once the topic retains no messages.",
                        new_generation(V1),
                    ),
                ),
                definitions=(None, None, None, V1),
            ),
        ),
        beyond="bring the brokers to a release that reads it.",
        orders=f"topic: {T}\n",
    ),
    "a foreign first version of another shape": Trouble(
        upload_foreign(INVOICE),
        plan=(
            "Git's version 0 (",
            "would be rejected: incompatible under BACKWARD. Compared with the registry's v0 (AVRO, ",
            "Git's v0 becomes v1; record this number afterwards.",
        ),
        drift=("  foreign version: v0 (AVRO, ", "would be rejected: incompatible under BACKWARD"),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), definitions=(INVOICE, V0))),
    ),
    "a foreign first version of another shape, recorded": Trouble(
        run_in_turn(upload_foreign(INVOICE), Troubled.accept),
        plan=("would be rejected: incompatible under BACKWARD",),
        drift=("would be rejected: incompatible under BACKWARD",),
        ways=(Way((RELAX,), definitions=(INVOICE, V0)),),
    ),
    "a foreign first version where the strategy rejects every other": Trouble(
        run_in_turn(
            approve(V1, more=REJECTING),
            upload_foreign(INVOICE),
            send_requests(("PUT", "/persistent/TOPIC/schemaCompatibilityStrategy", "ALWAYS_INCOMPATIBLE")),
        ),
        plan=("would be rejected: incompatible under ALWAYS_INCOMPATIBLE",),
        drift=("would be rejected: incompatible under ALWAYS_INCOMPATIBLE",),
        ways=(
            Way((f"{AGAIN} --relax-while-replaying",), definitions=(V0, V1)),
            Way((RELAX, RECORD_ALL), definitions=(INVOICE, V0, V1)),
        ),
    ),
    "a foreign first version of another type": Trouble(
        upload_foreign("", "STRING"),
        plan=("The schema type was STRING and is AVRO",),
        drift=("  foreign version: v0 (STRING, ",),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), definitions=("", V0))),
    ),
    "a foreign first version of the type NONE": Trouble(
        upload_foreign("", "BYTES"),
        plan=("The schema type was NONE and is AVRO",),
        drift=("  foreign version: v0 (NONE, ",),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), definitions=("", V0))),
    ),
    "a foreign first version that the strategy lets pass": Trouble(
        upload_foreign(V1),
        plan=("in the registry Git's v0 is v1", "v0 is not known to Git, v1 is Git's v0"),
        drift=("  foreign version: v0 (AVRO, ", "  missing versions: ", "  numbers apart: "),
        ways=(
            Way((THIS, RECORD_ALL), definitions=(V1, V0)),
            Way((APPLY, RECORD_ALL), definitions=(V1, V0)),
            Way((RECORD, LOG, APPLY), definitions=(V1, V0)),
            Way((GET, (GET, commit_files(orders_avsc=V1)), APPLY, RECORD_ALL), definitions=(V1, V0)),
        ),
    ),
    "a schema of the type NONE on a topic without schema": Trouble(
        upload_foreign("", "BYTES"),
        plan=("the registry holds v0, but Git declares no schema for this topic",),
        drift=(
            "  foreign version: v0 (NONE, ",
            "; no file can declare it: ",
            "it does not describe messages, and keeps typed clients out",
        ),
        ways=(Way((DESTROY,), definitions=()), Way((RECORD,), definitions=("",))),
        orders=f"topic: {T}\n",
    ),
    "a schema that no file can declare on a topic without schema": Trouble(
        upload_foreign(BAD_DEFAULT),
        plan=("the registry holds v0, but Git declares no schema for this topic",),
        drift=(
            "  wedged: the topic is blocked by the registry's v0, and Git declares no schema for the topic: brokers of Pulsar ",
            "), and reject every later schema.",
        ),
        ways=(Way((DESTROY,), definitions=()), Way((RECORD,), definitions=(BAD_DEFAULT,))),
        orders=f"topic: {T}\n",
    ),
    "a schema on a topic without schema": Trouble(
        upload_foreign(V0),
        plan=("the registry holds v0, but Git declares no schema for this topic",),
        drift=("  foreign version: v0 (AVRO, ",),
        ways=(
            Way((("approve it: declare it in Git.", commit_files(orders_yaml=write_declaration())),)),
            Way((HIDE,), definitions=(None, None)),
            Way((RECORD,)),
        ),
        orders=f"topic: {T}\n",
    ),
    "a tombstone": Trouble(
        applied_then(("DELETE", "/schemas/TOPIC/schema")),
        plan=("registers v2, which is Git's v0",),
        drift=(
            "  tombstone: the schema was deleted",
            "registers the missing versions under new numbers; record these afterwards",
        ),
        ways=(
            Way((THIS, RECORD_ALL), definitions=(None, None, V0)),
            Way((APPLY, RECORD_ALL), definitions=(None, None, V0)),
            Way((AGAIN,)),
            Way((RECORD, LOG, APPLY), definitions=(None, None, V0)),
        ),
    ),
    "a tombstone after which everything was registered again": Trouble(
        run_in_turn(
            applied_then(("DELETE", "/schemas/TOPIC/schema")), lambda it: it.run("apply", "--auto-approve", code=3)
        ),
        plan=("No changes, but messages of 1 topic would be misread.",),
        drift=("messages with those numbers are then rejected",),
        ways=(
            Way((RECORD_ALL,), definitions=(None, None, V0)),
            Way((RECORD,), definitions=(None, None, V0)),
            Way((RECORD, LOG), definitions=(None, None, V0)),
            Way((AGAIN,)),
        ),
    ),
    "a half-deleted namespace": Trouble(
        send_requests(("PUT", "/namespaces/SPACE", {"deleted": True})),
        plan=("/sales is being deleted: the deletion was started but is not finished",),
        drift=("  namespace missing: the namespace is being deleted",),
        ways=(Way(("pulsar-admin namespaces delete SPACE", APPLY_SPACE)),),
        only="broker",
    ),
    "a topic recreated without partitions": Trouble(
        applied_then(("DELETE", "/persistent/TOPIC/partitions"), ("PUT", "/persistent/TOPIC")),
        plan=("the topic is not partitioned, but Git declares 2",),
        drift=("  partitions: the topic is not partitioned, but Git approved 2",),
        ways=(
            Way(
                (
                    (
                        "remove `partitions` from the topic's declaration, and merge that.",
                        commit_files(orders_yaml=write_declaration()),
                    ),
                    APPLY,
                )
            ),
            Way(("pulsar-admin topics delete persistent://TOPIC", APPLY)),
        ),
        orders=PARTITIONED,
    ),
    "partitions added by somebody": Trouble(
        applied_then(("POST", "/persistent/TOPIC/partitions", 4)),
        plan=("the topic has 4 partitions, but Git declares 2",),
        drift=("  partitions: the topic has 4 partitions, but Git approved 2",),
        ways=(
            Way(
                (
                    (
                        "approve `partitions: 4` for the topic, its number of partitions in the registry.",
                        commit_files(orders_yaml=write_declaration(more="partitions: 4\n")),
                    ),
                )
            ),
        ),
        orders=PARTITIONED,
    ),
    "the ghost of a namespace": Trouble(
        leave_ghost(INVOICE),
        plan=(
            "incompatible under BACKWARD",
            "The topic itself does not exist: a deleted namespace leaves its schemas behind",
        ),
        drift=("  topic missing: the topic does not exist, though its schema does (version 0)",),
        ways=(
            Way((AGAIN,)),
            Way((RELAX, RECORD_ALL), definitions=(INVOICE, V0)),
            Way((APPLY_SPACE, RELAX, RECORD_ALL), definitions=(INVOICE, V0)),
        ),
    ),
    "the ghost of a namespace with what Git approved": Trouble(
        leave_ghost(V0),
        plan=("+ namespace ", "Plan: 1 namespace, 1 topic."),
        drift=("  namespace missing: ", "  topic missing: the topic does not exist, though its schema does"),
        ways=(Way((APPLY_SPACE,)), Way((APPLY,))),
    ),
    "a topic that lost its schemas and still has messages": Trouble(
        LOST_WITH_MESSAGES,
        plan=("the topic has lost its schemas, but orders retains 1 entry of messages: `apply` does not register",),
        drift=("  missing versions: the topic exists without a schema", "the topic has lost its schemas"),
        ways=(Way((REBUILD,)),),
        only="broker",
    ),
    "a partitioned topic that lost its schemas and still has messages": Trouble(
        LOST_WITH_MESSAGES,
        plan=("the topic has lost its schemas, but orders-partition-",),
        drift=("the topic has lost its schemas",),
        ways=(Way((REBUILD,)),),
        orders=PARTITIONED,
        only="broker",
    ),
    "a topic whose messages were written without a schema": Trouble(
        run_in_turn(Troubled.create, Troubled.send),
        plan=("registers v0",),
        drift=("  missing versions: the topic exists without a schema",),
        ways=(Way((APPLY,)), Way((REBUILD,))),
        only="broker",
    ),
    "a topic that lost its schemas and has no message": Trouble(
        applied_then(("DELETE", "/schemas/TOPIC/schema?force=true")),
        plan=("registers v0",),
        drift=("  missing versions: the topic exists without a schema",),
        ways=(Way((APPLY,)), Way((REBUILD,))),
    ),
    "the schema was deleted together with its topic, which was then created again (a connecting client is enough for that)": Trouble(
        applied_then(("DELETE", "/persistent/TOPIC")),
        plan=("registers v0",),
        drift=("  topic missing: ",),
        ways=(Way((APPLY,)), Way((REBUILD,))),
    ),
    "another strategy": Trouble(
        applied_then(("PUT", "/namespaces/SPACE/schemaCompatibilityStrategy", "FULL")),
        plan=("schema_compatibility_strategy: FULL -> BACKWARD",),
        drift=("  policy: schema_compatibility_strategy is FULL, but Git approved BACKWARD",),
        ways=(Way((APPLY_SPACE,)), Way((("approve the registry's value in Git.", commit_files(sales_yaml=FULL)),))),
    ),
    "a version that the strategy rejects": Trouble(
        run_in_turn(Troubled.apply, approve(STRICT)),
        plan=(
            "Git's version 1 (",
            "Compared with the registry's v0 (AVRO, uploaded 20",
            "which is Git's v0: Order.needed",
        ),
        drift=("  missing versions: the registry does not have Git's version 1",),
        ways=(
            Way(
                (
                    (
                        "approve another strategy for the topic.",
                        run_in_turn(commit_files(orders_yaml=OPEN), Troubled.apply),
                    ),
                ),
                definitions=(V0, STRICT),
            ),
            Way((RELAX,), definitions=(V0, STRICT)),
        ),
    ),
    "a version that no release takes": Trouble(
        run_in_turn(Troubled.apply, approve(BAD_DEFAULT)),
        plan=("Git's version 1 (", "The registry says: Invalid default for field n"),
        drift=("  missing versions: the registry does not have Git's version 1",),
        ways=(Way(((NEVER_STORED, new_generation(V1)),), definitions=(None, None, None, V1)),),
    ),
    "a topic that is no longer declared": Trouble(
        run_in_turn(Troubled.apply, commit_files(orders_yaml=None, orders_avsc=None)),
        plan=(
            f"is no longer declared, but the registry keeps its schema (v0); to delete it: --allow-delete persistent://{T}",
        ),
        drift=("  no longer declared: ",),
        ways=(Way((f"{APPLY} --allow-delete {T}",), definitions=(None, None)), Way((RECORD,))),
    ),
    "an apply that was killed before the topic was relaxed": Trouble(
        applied_then(*RELAXING[:3]),
        plan=(
            "  ~ automatic updates in ",
            ": off -> on; a killed apply had left them off, so clients cannot register schemas",
        ),
        drift=("  updates off: is_allow_auto_update_schema is false, set by an `apply` for ",),
        ways=(Way((APPLY,)),),
    ),
    "an apply that was killed while the topic was relaxed": Trouble(
        applied_then(*RELAXING),
        plan=(
            "  ~ strategy: ALWAYS_COMPATIBLE -> UNDEFINED; a killed apply had left ALWAYS_COMPATIBLE",
            ": off -> on; a killed apply had left them off, so clients cannot register schemas",
        ),
        drift=("  updates off: ", "  relaxed: the topic accepts every upload"),
        ways=(Way((APPLY,)),),
    ),
}

TROUBLES |= {
    "a strategy of the topic itself": make_override(
        "schema_compatibility_strategy",
        "ALWAYS_COMPATIBLE",
        "UNDEFINED",
        "PUT",
        "/persistent/TOPIC/schemaCompatibilityStrategy",
        "ALWAYS_COMPATIBLE",
    ),
    "a retention of the topic itself": make_override(
        "retention_policies",
        "{retentionTimeInMinutes: 1, retentionSizeInMB: -1}",
        "{retentionTimeInMinutes: 10080, retentionSizeInMB: -1}",
        "POST",
        "/persistent/TOPIC/retention",
        MINUTE,
    ),
    "a time to live of the topic itself": make_override(
        "message_ttl_in_seconds", "60", "3600", "POST", "/persistent/TOPIC/messageTTL?messageTTL=60"
    ),
    "automatic updates switched on by hand": Trouble(
        run_in_turn(
            commit_files(sales_yaml=KEPT), applied_then(("POST", "/namespaces/SPACE/isAllowAutoUpdateSchema", True))
        ),
        plan=("is_allow_auto_update_schema: true -> false",),
        drift=("  policy: is_allow_auto_update_schema is true, but Git approved false",),
        ways=(
            Way((APPLY_SPACE,)),
            Way(
                (
                    (
                        "approve the registry's value in Git.",
                        commit_files(sales_yaml=KEPT.replace("schema: false", "schema: true")),
                    ),
                )
            ),
        ),
    ),
    "a retention of the namespace changed by hand": Trouble(
        run_in_turn(commit_files(sales_yaml=KEPT), applied_then(("POST", "/namespaces/SPACE/retention", MINUTE))),
        plan=(
            "retention_policies: {retentionTimeInMinutes: 1, retentionSizeInMB: -1} -> {retentionTimeInMinutes: 10080,",
        ),
        drift=("  policy: retention_policies is {retentionTimeInMinutes: 1, ",),
        ways=(
            Way((APPLY_SPACE,)),
            Way((("approve the registry's value in Git.", commit_files(sales_yaml=KEPT.replace("10080", "1"))),)),
        ),
    ),
    "a strategy of the topic itself that rejects the next version": Trouble(
        run_in_turn(
            applied_then(("PUT", "/persistent/TOPIC/schemaCompatibilityStrategy", "ALWAYS_INCOMPATIBLE")), approve(V1)
        ),
        plan=(
            "ALWAYS_INCOMPATIBLE is the topic's own strategy, which Git does not declare: it was set in the registry",
        ),
        drift=("  policy overridden: ", "  missing versions: "),
        ways=(
            Way(
                (
                    (
                        "approve `schema_compatibility_strategy: UNDEFINED` for the topic: `apply` removes that value first.",
                        run_in_turn(approve(V1, "schema_compatibility_strategy: UNDEFINED\n"), Troubled.apply),
                    ),
                ),
                definitions=(V0, V1),
            ),
            Way(
                (
                    (
                        "approve `schema_compatibility_strategy: UNDEFINED` for the topic: `apply` removes the topic's own value.",
                        run_in_turn(approve(V1, "schema_compatibility_strategy: UNDEFINED\n"), Troubled.apply),
                    ),
                ),
                definitions=(V0, V1),
            ),
            Way(
                (
                    (
                        "approve another strategy for the topic.",
                        run_in_turn(approve(V1, "schema_compatibility_strategy: FULL\n"), Troubled.apply),
                    ),
                ),
                definitions=(V0, V1),
            ),
            Way(
                (
                    (
                        "approve `schema_compatibility_strategy: ALWAYS_INCOMPATIBLE` for the topic, if it is right.",
                        approve(V1, REJECTING),
                    ),
                    RELAX,
                ),
                definitions=(V0, V1),
            ),
            Way((RECORD, RELAX), definitions=(V0, V1)),
            Way((RELAX, RECORD), definitions=(V0, V1)),
        ),
    ),
    "two settings that could lose messages": Trouble(
        run_in_turn(
            commit_files(sales_yaml=KEPT, orders_yaml=write_declaration(more=LONGER)),
            Troubled.apply,
            commit_files(sales_yaml=BARE, orders_yaml=write_declaration()),
        ),
        plan=("left out: everything, for 2 settings that could lose messages",),
        drift=("No drift.",),
        ways=(
            Way(
                (
                    f"schemactl apply {ON} --allow-data-loss persistent://TOPIC:retention_policies --allow-data-loss SPACE:retention_policies",
                )
            ),
            Way(
                (
                    (
                        "declare a value in Git that loses no messages.",
                        commit_files(sales_yaml=KEPT, orders_yaml=write_declaration(more=LONGER)),
                    ),
                )
            ),
        ),
    ),
}


def foreign_of_another_type(definition: str) -> Hand:
    """INT32 as v0, a tombstone, this Avro definition as v2, and a message of v2."""
    deletion = send_requests(("DELETE", "/schemas/TOPIC/schema"))
    return run_in_turn(
        upload_foreign("", "INT32"), deletion, lambda it: it.upload(definition), lambda it: it.send(definition)
    )


def killed_while_waived(it: Troubled) -> None:
    """An apply of a waived change that died when the topic accepted every upload."""
    it.apply()
    it.waive_change(STRICT)

    def apply(_: Say) -> None:
        for kind in (EmbeddedRegistry, PulsarRegistry):
            die_after(RELAXING_WRITES, kind, "_set_property", "set_namespace_policies", "set_topic_policies")
        it.run("apply", "--auto-approve")

    assert_killed(*fork_process(apply))


LEFT_UNCHANGED = "leave the registry unchanged: `apply` did not register these versions, so they never had Git's numbers, and `rebuild` would make the messages with their numbers unreadable."
REFUSED = "its versions are not deleted: orders retains 1 entry of messages"
ALLOWED = f"--allow-unreadable-messages {T}"
ALLOWED_LOSS = (
    f"the same command with `{ALLOWED}`: if these messages are not needed.",
    lambda it: it.follow(f"{AGAIN} {ALLOWED}"),
)
READ_FIRST = (
    "let consumers read these messages, and wait until retention removes them.",
    run_in_turn(Troubled.forget_messages, lambda it: it.follow(AGAIN)),
)

TROUBLES |= {
    "a foreign first version of another shape, with messages": Trouble(
        run_in_turn(upload_foreign(INVOICE), lambda it: it.send(INVOICE)),
        plan=("would be rejected: incompatible under BACKWARD",),
        drift=("  foreign version: v0 (AVRO, ",),
        ways=(
            Way((AGAIN,), definitions=(INVOICE,), ends=REFUSED),
            Way((AGAIN, ALLOWED_LOSS)),
            Way((AGAIN, READ_FIRST)),
            Way((RELAX, RECORD_ALL), definitions=(INVOICE, V0)),
        ),
        only="broker",
    ),
    "another type, a tombstone and a version of another shape, with messages": Trouble(
        foreign_of_another_type(INVOICE),
        plan=("would be rejected: incompatible under BACKWARD. Compared with the registry's v2 (AVRO, ",),
        drift=("  tombstone: ", "  foreign version: v2 (AVRO, "),
        ways=(
            Way((AGAIN,), definitions=(None, None, INVOICE), ends=REFUSED),
            Way((AGAIN, ALLOWED_LOSS)),
            Way((AGAIN, READ_FIRST)),
            Way((RELAX, RECORD_ALL), definitions=(None, None, INVOICE, V0)),
        ),
        only="broker",
        beyond=LEFT_UNCHANGED,
    ),
    "another type, a tombstone and Git's version, with messages": Trouble(
        foreign_of_another_type(V0),
        plan=("No changes, but messages of 1 topic would be misread.",),
        drift=("  tombstone: the schema was deleted: numbers 0-1 ", "  numbers apart: in the registry v0 is deleted, "),
        ways=(Way((RECORD, LOG), definitions=(None, None, V0)), Way((RECORD_ALL,), definitions=(None, None, V0))),
        only="broker",
        beyond=LEFT_UNCHANGED,
    ),
    "an apply of a waived change that was killed": Trouble(
        killed_while_waived,
        plan=(
            "  ~ strategy: ALWAYS_COMPATIBLE -> UNDEFINED; a killed apply had left ALWAYS_COMPATIBLE",
            "  ~ waived by team-orders",
        ),
        drift=("  updates off: ", "  relaxed: the topic accepts every upload"),
        ways=(Way((APPLY,), definitions=(V0, STRICT)),),
    ),
}

CASES = [
    pytest.param(kind, trouble, id=f"{kind}-{name}", marks=marks)
    for kind, marks in PLACES.items()
    for name, trouble in TROUBLES.items()
    if trouble.only != "broker" or kind != "embedded"
]


@pytest.mark.parametrize(("place", "trouble"), CASES, indirect=["place"])
def test_each_printed_fix_works(place: Place, trouble: Trouble, client: Client, tmp_path: Path) -> None:
    printed: set[tuple[str, ...]] = set()
    for number, way in enumerate(trouble.ways):
        it = Troubled(tmp_path / f"shop-{number}", place, client, trouble.orders)
        trouble.make(it)
        if not printed:
            printed = read_advice(it, trouble)
        follow_way(it, way, printed)


def read_advice(it: Troubled, trouble: Trouble) -> set[tuple[str, ...]]:
    """Return the fixes that `plan` and `drift` print, which are all known."""
    printed: set[tuple[str, ...]] = set()
    for command, expected in (("plan", trouble.plan), ("drift", trouble.drift)):
        text = it.run(command, code=(0, 100)).out
        for words in expected:
            assert words in text, text
        printed |= it.list_advice(text)
    known_ways = [tuple(map(printed_form, way.steps)) for way in trouble.ways] + [(trouble.beyond,)]
    unknown = [steps for steps in printed if not any(steps == way[: len(steps)] for way in known_ways)]
    assert not unknown, unknown
    return printed


def follow_way(it: Troubled, way: Way, printed: set[tuple[str, ...]]) -> None:
    """Check that a fix has its documented result."""
    advice = {words for steps in printed for words in steps}
    for step in way.steps:
        assert printed_form(step) in advice, (step, advice)
        if isinstance(step, str):
            done = it.follow(it.insert_names(step))
            advice |= {words for steps in it.list_advice(done.out) for words in steps} if done else set()
            if way.ends and done and way.ends in done.err + done.out:
                break
        else:
            step[1](it)
    else:
        assert not way.ends
        expect_nothing_left(it)
    assert it.definitions() == way.definitions


def expect_nothing_left(estate: Estate) -> None:
    """Check that the plan is empty and that nothing drifts."""
    assert "No changes. The registry has everything that Git approved" in estate.run("plan").out
    assert "No drift." in estate.run("drift", "--detailed-exitcode").out


def printed_form(step: Step) -> str:
    """Return the printed form of a step."""
    return step if isinstance(step, str) else step[0]


EACH_PLACE = pytest.mark.parametrize(
    "place", [pytest.param(kind, marks=marks) for kind, marks in PLACES.items()], indirect=True
)


@EACH_PLACE
def test_a_broken_approved_branch_is_shown_until_it_is_repaired(place: Place, client: Client, tmp_path: Path) -> None:
    it = Troubled(tmp_path / "shop", place, client, write_declaration())
    it.apply()
    commit_files(orders_yaml=write_declaration().replace("orders.avsc", "nope.avsc"))(it)
    message = "namespaces/orders.yaml:4:15: there is no file `namespaces/nope.avsc`"
    for command, code in (("plan", 100), ("apply", 100), ("drift", 0), ("status", 0)):
        assert message in it.run(command, code=code).out, command
        assert "orders" in it.run(command, "--quiet", code=code).out, command
    assert it.definitions() == (V0,)
    approve(V1)(it)
    it.apply()
    assert it.definitions() == (V0, V1)
    for command in ("plan", "drift", "status"):
        assert message not in it.run(command).out


@EACH_PLACE
def test_an_import_has_the_settings_of_namespaces_and_topics(place: Place, client: Client, tmp_path: Path) -> None:
    it = Troubled(tmp_path / "shop", place, client, write_declaration())
    commit_files(sales_yaml=KEPT, orders_yaml=write_declaration(more=LONGER))(it)
    it.apply()
    commit_files(sales_yaml=None, orders_yaml=None, orders_avsc=None)(it)
    it.run("import", "--namespace", it.space, "--one-commit")
    folder = it.scratch.path / "namespaces/shop/sales"
    # Brokers answer whether validation is enforced even where it is not set.
    assert yaml.safe_load(KEPT).items() <= yaml.safe_load((folder / "namespace.yaml").read_text()).items()
    topic = yaml.safe_load((folder / "orders.yaml").read_text())
    assert topic["retention_policies"] == yaml.safe_load(LONGER)["retention_policies"]
    it.call("POST", "/namespaces/SPACE/retention", MINUTE)
    it.call("POST", "/persistent/TOPIC/messageTTL?messageTTL=60")
    drift = it.run("drift").out
    assert "  policy: retention_policies is {retentionTimeInMinutes: 1, " in drift
    assert "  policy overridden: message_ttl_in_seconds of the topic is 60" in drift


@pytest.mark.parametrize("place", [pytest.param("5.0", marks=pytest.mark.broker)], indirect=True)
def test_a_scalable_topic_of_the_same_name_is_left_out(place: Place, client: Client, tmp_path: Path) -> None:
    it = Troubled(tmp_path / "shop", place, client, write_declaration())
    it.call("PUT", "/namespaces/SPACE", {"schema_compatibility_strategy": "BACKWARD"})
    it.call("PUT", "/scalable/TOPIC")
    ways = {("leave it out here: `exclude` of the target.",), ("remove the topic from Git, and merge that.",)}
    for command in ("plan", "drift"):
        assert ways <= it.list_advice(it.run(command, code=(0, 100)).out), command
    project = (it.scratch.path / "schemactl.yaml").read_text()
    it.scratch.commit({"schemactl.yaml": project.replace("local: {", "local: {exclude: [orders], ")})
    assert "No changes." in it.run("plan", "--detailed-exitcode").out
    assert "No drift." in it.run("drift", "--detailed-exitcode").out
    it.scratch.commit({"schemactl.yaml": project})
    commit_files(orders_yaml=None, orders_avsc=None)(it)
    assert "No changes." in it.run("plan", "--detailed-exitcode").out
    assert "No drift." in it.run("drift", "--detailed-exitcode").out


@pytest.mark.parametrize(
    "place", [pytest.param(kind, marks=pytest.mark.broker) for kind in brokers.VERSIONS], indirect=True
)
def test_unattended_apply_changes_no_number(place: Place, client: Client, tmp_path: Path) -> None:
    it = Troubled(tmp_path / "shop", place, client, write_declaration())
    approve(V1)(it)
    LOST_WITH_MESSAGES(it)
    assert "the topic has lost its schemas" in it.run("apply", "--auto-approve", code=(3, 100)).out
    assert it.definitions() == ()
    assert "registers v1" in it.run("rebuild", "--auto-approve").out
    assert it.definitions() == (V0, V1)


@EACH_PLACE
def test_of_two_domains_the_persistent_topic_is_imported_with_its_policies(
    place: Place, client: Client, tmp_path: Path
) -> None:
    it = Troubled(tmp_path / "shop", place, client, write_declaration())
    commit_files(sales_yaml=None, orders_yaml=None, orders_avsc=None)(it)
    it.create(partitions=3)
    it.call("PUT", "/non-persistent/TOPIC/partitions", 2)
    it.call("PUT", "/persistent/TOPIC/schemaCompatibilityStrategy", "FULL")
    it.upload(V0)
    out = it.run("import", "--namespace", it.space, "--one-commit").out
    assert "non-persistent://shop/sales/orders: left out: it shares its list of schemas" in out
    steps = out.partition("Next:\n")[2].partition("\n\n")[0].splitlines()
    assert steps[0].strip().startswith(f"schemactl plan {ON} ")
    assert not any("drift" in step for step in steps)
    text = (it.scratch.path / "namespaces/shop/sales/orders.yaml").read_text()
    assert text.startswith(f"topic: persistent://{T}\npartitions: 3\nschema_compatibility_strategy: FULL\n")
    assert "No changes." in it.run("plan", "--target", "local").out
    assert "No drift." in it.run("drift", "--unmanaged", "--namespace", "shop/sales").out


@EACH_PLACE
def test_a_target_that_goes_back_past_partitions_keeps_them(place: Place, client: Client, tmp_path: Path) -> None:
    it = Troubled(tmp_path / "shop", place, client, PARTITIONED)
    it.scratch.flush()
    project = (it.scratch.path / "schemactl.yaml").read_text()
    it.scratch.commit({"schemactl.yaml": project.replace("local: {", "local: {promoted: promoted/local, ")})
    it.scratch.flush()
    first = it.scratch.git("rev-parse", "HEAD").strip()
    commit_files(orders_yaml=write_declaration(more="partitions: 4\n"))(it)
    for position in (first, "main"):
        it.run("promote", "local", "--to", position)
        it.apply()
    assert "or move it with --back" in it.run("promote", "local", "--to", first, code=1).err
    it.run("promote", "local", "--to", first, "--back")
    expect_nothing_left(it)
    # Unapproved partitions are drift there as well; the printed fix repairs it once it is merged and promoted.
    it.call("POST", "/persistent/TOPIC/partitions", 6)
    assert "the topic has 6 partitions, but Git declares 2" in it.run("plan", code=100).out
    assert it.list_advice(it.run("drift").out) == {
        ("approve `partitions: 6` for the topic, its number of partitions in the registry.",)
    }
    commit_files(orders_yaml=write_declaration(more="partitions: 6\n"))(it)
    it.run("promote", "local", "--to", "main")
    expect_nothing_left(it)
    assert it.definitions() == (V0,)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.broker) for kind in ("token", "token-4.2", "token-5.0")]
)
def test_expired_credentials_are_one_message_and_a_new_token_repairs(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = EstateOnPulsar(tmp_path / "shop", brokers.start_broker(kind), more=", token_env: SHOP_TOKEN")
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("admin"))
    estate.run("apply", "--auto-approve")
    estate.commit_orders("id", note=0)
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("admin", exp=1_700_000_000))
    for command in (("plan",), ("apply", "--auto-approve"), ("drift",), ("rebuild", "--auto-approve"), ("status",)):
        printed = estate.run(*command, code=1)
        text = printed.out + printed.err
        assert text.count("expired at 2023-11-14 22:13:20 UTC") == text.count("answers 401") == 1, text
        assert text.count("Fix: ") == 1, text
        assert "SHOP_TOKEN" in text
    monkeypatch.setenv("SHOP_TOKEN", brokers.make_token("admin"))
    estate.run("apply", "--auto-approve")
    expect_nothing_left(estate)


@EACH_PLACE
def test_silent_registry_times_out_and_its_real_address_repairs(place: Place, client: Client, tmp_path: Path) -> None:
    it = Troubled(tmp_path / "shop", place, client, write_declaration())
    it.scratch.flush()
    project = (it.scratch.path / "schemactl.yaml").read_text()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        it.scratch.commit({"schemactl.yaml": project.replace(place.registry, url)})
        it.scratch.flush()
        for command in (("plan",), ("apply", "--auto-approve"), ("drift",), ("rebuild", "--auto-approve")):
            printed = process(it.scratch.path, *command, "--timeout", "2")
            assert printed.code == 1, printed
            assert f"gave up after 2 s while waiting for {url}: GET " in printed.err
            fix = "  Fix: check that the server responds, or give it more time with `--timeout SECONDS`\n"
            assert printed.err.endswith(fix)
            assert printed.err.count("gave up") == 1
    it.scratch.commit({"schemactl.yaml": project})
    it.apply()
    expect_nothing_left(it)
    assert it.definitions() == (V0,)
