"""What can be wrong with a registry: each trouble has its words, and every way out that is printed is taken, to its end.

A trouble is made by hand, over the plain admin API. Then `plan` and `drift` are asked. Every line after "Fix:", "Next:" and "or:"
belongs to a way out of the table, and is carried out as it was printed: the commands in backticks, one after the other, or what a
person does to the declarations. It ends in a plan and a drift report without anything, or as the table says.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import brokers
import pytest
from admin_rest import Client, served
from command import Printed
from estate import Estate
from scratch import declared, record

from schemactl.model import TopicName, live
from schemactl.registry import Registry
from schemactl.registry.embedded import EmbeddedRegistry
from schemactl.registry.pulsar import PulsarRegistry

pytestmark = pytest.mark.slow

# Without types, and to a type checker the folder of tests of that name.
pulsar: Any = import_module("pulsar")


class Place(NamedTuple):
    """A registry: where its admin API is, what a target calls it, and where clients connect."""

    admin: str
    registry: str
    service: str | None = None


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("embedded", marks=pytest.mark.network),
        *(pytest.param(kind, marks=[pytest.mark.broker, pytest.mark.live]) for kind in brokers.RELEASES),
    ],
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The embedded registry behind `serve`, or a broker."""
    if request.param == "embedded":
        registry = f"sqlite:{tmp_path_factory.mktemp('registry') / 'registry.db'}"
        with served("--registry", registry) as (url, _):
            yield Place(url, registry)
    else:
        brokers.markers = frozenset({"broker", "live"})
        broker = brokers.running(request.param)
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
PARTITIONED = declared(more="partitions: 2\n")


class Troubled(Estate):
    """A repository whose target is in a tenant of its own, and somebody who changes things over the admin API."""

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
        """A request that succeeds; `SPACE` and `TOPIC` stand for the names of both."""
        text = None if body is None else self.named(json.dumps(body))
        answer = self.client.call(method, self.named(path), text)
        assert answer.status < 300, (method, path, answer)

    def named(self, text: str) -> str:
        """With the names that `TOPIC` and `SPACE` stand for."""
        return text.replace("TOPIC", f"{self.space}/orders").replace("SPACE", self.space)

    def create(self, partitions: int | None = None) -> None:
        """The namespace and the topic."""
        self.call("PUT", "/namespaces/SPACE", {"schema_compatibility_strategy": "BACKWARD"})
        if partitions is None:
            self.call("PUT", "/persistent/TOPIC")
        else:
            self.call("PUT", "/persistent/TOPIC/partitions", partitions)

    def upload(self, definition: str, kind: str = "AVRO") -> None:
        """A schema, registered by hand."""
        body = {"type": kind, "schema": definition, "properties": {}}
        self.call("POST", "/schemas/TOPIC/schema", body)

    def apply(self) -> None:
        """What was approved so far, by the tool."""
        self.run("apply", "--auto-approve")

    def send(self, definition: str) -> None:
        """A message, by the official client, with this Avro schema."""
        client = pulsar.Client(self.place.service, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
        schema = pulsar.schema.AvroSchema(None, schema_definition=json.loads(definition))
        fields = {field["name"]: field.get("default", "a") for field in json.loads(definition)["fields"]}
        client.create_producer(str(self.topic), schema=schema).send(fields)
        client.close()

    @contextmanager
    def registry(self) -> Iterator[Registry]:  # type: ignore[override]  # both are a `Registry`
        """The target's registry."""
        kind = PulsarRegistry if self.place.service else EmbeddedRegistry
        with closing(kind(self.place.registry.removeprefix("sqlite:"))) as registry:
            yield registry

    def definitions(self) -> tuple[str | None, ...]:
        """What can be read in the registry, by number; None: a tombstone, or what is before one."""
        versions = self.versions()
        readable = {version.number: version.info for version in live(versions)}
        infos = [readable.get(version.number) for version in versions]
        return tuple(info.schema.decode() if info else None for info in infos)

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
        printed = self.run(*words, code=(0, 3, 100))
        if "--accept" in words:
            self.scratch.git("add", "numbers")
            self.scratch.git("commit", "-q", "-m", "Record numbers")
        return printed


Hand = Callable[[Troubled], object]
"""What somebody does by hand."""

Step = str | tuple[str, Hand]
"""A command as it is printed; or what is printed for a person to do, and how that is done."""


@dataclass(frozen=True)
class Way:
    """A way out.

    Attributes:
        steps: what is done, in this order.
        held: the definitions that the registry holds afterwards; None: a tombstone.
        ends: what the last plan says; "": it is empty, and nothing drifts.
    """

    steps: tuple[Step, ...]
    held: tuple[str | None, ...] = (V0,)
    ends: str = ""


@dataclass(frozen=True)
class Trouble:
    """What is wrong, and what is said about it.

    Attributes:
        made: by hand, over the admin API.
        plan, drift: words that the two commands print.
        ways: every way out that one of the two prints.
        orders: the declaration of the topic.
        only: "broker" where the embedded registry cannot be so.
    """

    made: Hand
    plan: tuple[str, ...]
    drift: tuple[str, ...]
    ways: tuple[Way, ...]
    orders: str = declared()
    only: str = ""


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
APPLY_SPACE = f"schemactl apply {ON} --namespace shop/sales"


def foreign(definition: str, kind: str = "AVRO") -> Hand:
    """Somebody's first version."""

    def made(it: Troubled) -> None:
        it.create()
        it.upload(definition, kind)

    return made


def applied_then(*requests: tuple[Any, ...]) -> Hand:
    """Requests of somebody, after an apply."""

    def made(it: Troubled) -> None:
        it.apply()
        for request in requests:
            it.call(*request)

    return made


def declaring(text: str) -> Hand:
    """The topic's declaration becomes this."""
    return lambda it: it.scratch.commit({"namespaces/orders.yaml": text})


def ghost(definition: str) -> Hand:
    """A schema of a namespace that was deleted."""

    def made(it: Troubled) -> None:
        it.create()
        it.call("DELETE", "/persistent/TOPIC")
        it.upload(definition)
        it.call("DELETE", "/namespaces/SPACE")

    return made


def lost_with_messages(it: Troubled) -> None:
    """A message, and then no schema any more."""
    it.apply()
    it.send(V0)
    it.call("DELETE", "/schemas/TOPIC/schema?force=true")


TROUBLES = {
    "wedged by a default that no release can read": Trouble(
        foreign(BAD_DEFAULT),
        plan=(
            "the topic is wedged by the registry's v0 (AVRO, uploaded 20",
            "), which Git does not know: brokers of Pulsar 4.",
            'Invalid default for field n: "none" not a "int"',
            "would be read as Git's versions: only where none is left.",
            "a tombstone takes a number",
        ),
        drift=("  wedged: the topic is wedged by the registry's v0",),
        ways=(Way((AGAIN,)), Way((HIDE, APPLY, RECORD_ALL), held=(None, None, V0))),
    ),
    "a foreign first version of another shape": Trouble(
        foreign(INVOICE),
        plan=(
            "Git's version 0 (",
            "would be rejected: incompatible under BACKWARD. Compared with the registry's v0 (AVRO, ",
            "Git's v0 becomes v1, which is to be recorded then.",
        ),
        drift=("  foreign version: v0 (AVRO, ", "would be rejected: incompatible under BACKWARD"),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), held=(INVOICE, V0))),
    ),
    "a foreign first version of another type": Trouble(
        foreign("", "STRING"),
        plan=("The schema type was STRING and is AVRO",),
        drift=("  foreign version: v0 (STRING, ",),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), held=("", V0))),
    ),
    "a foreign first version of the type NONE": Trouble(
        foreign("", "BYTES"),
        plan=("The schema type was NONE and is AVRO",),
        drift=("  foreign version: v0 (NONE, ",),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), held=("", V0))),
    ),
    "a foreign first version that the strategy lets pass": Trouble(
        foreign(V1),
        plan=("in the registry Git's v0 is v1", "v0 is not known to Git, v1 is Git's v0"),
        drift=("  foreign version: v0 (AVRO, ", "  missing versions: ", "  numbers apart: "),
        ways=(
            Way((THIS, RECORD_ALL), held=(V1, V0)),
            Way((APPLY, RECORD_ALL), held=(V1, V0)),
            Way((RECORD, LOG, APPLY), held=(V1, V0)),
            Way(
                (
                    GET,
                    (GET, lambda it: it.scratch.commit({"namespaces/orders.avsc": V1})),
                    APPLY,
                    RECORD_ALL,
                ),
                held=(V1, V0),
            ),
        ),
    ),
    "a schema of the type NONE on a topic without schema": Trouble(
        foreign("", "BYTES"),
        plan=("the registry holds v0, but Git declares no schema for this topic",),
        drift=("  foreign version: v0 (NONE, ", "describes no message, no file can declare it"),
        ways=(Way((DESTROY,), held=()), Way((RECORD,), held=("",))),
        orders=f"topic: {T}\n",
    ),
    "a schema on a topic without schema": Trouble(
        foreign(V0),
        plan=("the registry holds v0, but Git declares no schema for this topic",),
        drift=("  foreign version: v0 (AVRO, ",),
        ways=(
            Way((("approve it: declare it in Git.", declaring(declared())),)),
            Way((HIDE,), held=(None, None)),
            Way((RECORD,)),
        ),
        orders=f"topic: {T}\n",
    ),
    "a tombstone": Trouble(
        applied_then(("DELETE", "/schemas/TOPIC/schema")),
        plan=("registers v2, which is Git's v0",),
        drift=("  tombstone: the schema was deleted", "registers what is missing under new numbers"),
        ways=(
            Way((THIS, RECORD_ALL), held=(None, None, V0)),
            Way((APPLY, RECORD_ALL), held=(None, None, V0)),
            Way((AGAIN,)),
            Way((RECORD, LOG, APPLY), held=(None, None, V0)),
        ),
    ),
    "a tombstone after which everything was registered again": Trouble(
        lambda it: (
            applied_then(("DELETE", "/schemas/TOPIC/schema"))(it),
            it.run("apply", "--auto-approve", code=3),
        ),
        plan=("No changes, but messages of 1 topic would be misread.",),
        drift=("messages with those numbers are then rejected",),
        ways=(
            Way((RECORD_ALL,), held=(None, None, V0)),
            Way((RECORD,), held=(None, None, V0)),
            Way((RECORD, LOG), held=(None, None, V0)),
            Way((AGAIN,)),
        ),
    ),
    "a half-deleted namespace": Trouble(
        lambda it: it.call("PUT", "/namespaces/SPACE", {"deleted": True}),
        plan=("/sales is being deleted: that was begun and is not finished",),
        drift=("  namespace missing: the namespace is being deleted",),
        ways=(Way(("pulsar-admin namespaces delete SPACE", APPLY_SPACE)),),
        only="broker",
    ),
    "a topic recreated without partitions": Trouble(
        applied_then(("DELETE", "/persistent/TOPIC/partitions"), ("PUT", "/persistent/TOPIC")),
        plan=("the topic is not partitioned, and Git asks for 2",),
        drift=("  partitions: the topic is not partitioned, but Git approved 2",),
        ways=(
            Way(
                (
                    (
                        "remove `partitions` from the topic's declaration, and have that approved.",
                        declaring(declared()),
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
        plan=("the topic has 4 partitions, and Git asks for 2",),
        drift=("  partitions: the topic has 4 partitions, but Git approved 2",),
        ways=(
            Way(
                (
                    (
                        "approve `partitions: 4` for the topic, which is what it has.",
                        declaring(declared(more="partitions: 4\n")),
                    ),
                )
            ),
        ),
        orders=PARTITIONED,
    ),
    "the ghost of a namespace": Trouble(
        ghost(INVOICE),
        plan=(
            "incompatible under BACKWARD",
            "The topic itself does not exist: a deleted namespace leaves its schemas behind",
        ),
        drift=("  topic missing: the topic does not exist, though its schema does (version 0)",),
        ways=(Way((AGAIN,)), Way((RELAX, RECORD_ALL), held=(INVOICE, V0))),
    ),
    "the ghost of a namespace with what Git approved": Trouble(
        ghost(V0),
        plan=("+ namespace ", "Plan: 1 namespace, 1 topic."),
        drift=("  namespace missing: ", "  topic missing: the topic does not exist, though its schema does"),
        ways=(Way((APPLY_SPACE,)), Way((APPLY,))),
    ),
    "a topic that lost its schemas and still has messages": Trouble(
        lost_with_messages,
        plan=(
            "the topic has lost its schemas, but orders retains 1 entry of messages: `apply` does not number",
        ),
        drift=("  missing versions: the topic exists without a schema", "the topic has lost its schemas"),
        ways=(Way((REBUILD,)),),
        only="broker",
    ),
    "a topic that lost its schemas and has no message": Trouble(
        applied_then(("DELETE", "/schemas/TOPIC/schema?force=true")),
        plan=("registers v0",),
        drift=("  missing versions: the topic exists without a schema",),
        ways=(Way((APPLY,)), Way((REBUILD,))),
    ),
    "an apply that was killed while the topic was relaxed": Trouble(
        applied_then(
            ("PUT", "/persistent/TOPIC/properties", {"schemactl.relaxed_from": "UNDEFINED"}),
            ("PUT", "/namespaces/SPACE/properties", {"schemactl.auto_update_off_for": "persistent://TOPIC"}),
            ("POST", "/namespaces/SPACE/isAllowAutoUpdateSchema", False),
            ("PUT", "/persistent/TOPIC/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE"),
        ),
        plan=("the topic's own strategy: back to UNDEFINED, and automatic updates as before",),
        drift=("  relaxed: the topic accepts every upload",),
        ways=(Way((APPLY,)),),
    ),
}


def advised(text: str) -> set[tuple[str, ...]]:
    """Every way out that a report prints: the commands of a line, or all of it where it names none."""
    lines = re.findall(r"^ +(?:Fix|Next|or): (.*)$", text.replace("apply this", f"`{THIS}`"), re.MULTILINE)
    ways = {tuple(re.findall(r"`((?:schemactl|pulsar-admin) [^`]+)`", line)) or (line,) for line in lines}
    return {way for way in ways if not way[0].startswith("schemactl plan ")}


CASES = [
    pytest.param(trouble, way, id=f"{name}: way {number}")
    for name, trouble in TROUBLES.items()
    for number, way in enumerate(trouble.ways, 1)
]


@pytest.mark.parametrize(("trouble", "way"), CASES)
def test_each_way_out_leads_out(
    trouble: Trouble, way: Way, place: Place, client: Client, tmp_path: Path
) -> None:
    if trouble.only and place.service is None:
        pytest.skip("the embedded registry cannot be so")
    it = Troubled(tmp_path / "shop", place, client, trouble.orders)
    trouble.made(it)
    said: set[tuple[str, ...]] = set()
    for command, expected in (("plan", trouble.plan), ("drift", trouble.drift)):
        printed = it.run(command, code=(0, 100)).out
        said |= advised(printed)
        for some in expected:
            assert some in printed, printed
    known = [tuple(it.named(printed_form(step)) for step in each.steps) for each in trouble.ways]
    assert not [each for each in said if not any(each == steps[: len(each)] for steps in known)], said
    for step in way.steps:
        words = it.named(printed_form(step))
        assert words in {each for line in said for each in line}, (words, said)
        if isinstance(step, str):
            done = it.follow(words)
            said |= advised(done.out) if done else set()
        else:
            step[1](it)
    if way.ends:
        assert way.ends in it.run("plan", code=(0, 100)).out
    else:
        assert "No changes. The registry has everything that Git approved." in it.run("plan").out
        assert "No drift." in it.run("drift", "--detailed-exitcode").out
    assert it.definitions() == way.held


def printed_form(step: Step) -> str:
    """What is printed for a step."""
    return step if isinstance(step, str) else step[0]
