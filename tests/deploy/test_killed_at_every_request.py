"""An `apply` of 60 steps that dies with any of its requests: every later report is true, and its advice leads to an empty plan."""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
import shutil
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import admin_rest
import brokers
import pytest
from command import schemactl
from forks import Say, assert_killed, fork_process, kill_oneself
from scratch import Scratch, record

from schemactl.core.wording import format_policy_value
from schemactl.registry.pulsar.http import AdminConnection
from schemactl.registry.pulsar.responses import Reply

pytestmark = [pytest.mark.network, pytest.mark.slow]

STEP = int(os.environ.get("SCHEMACTL_KILL_STEP", "16"))
"""The number of writing requests between the kills of two runs; `make soak` kills after each."""
FIRST = 5
"""The request of the first kill, so that the slices of `make test` meet the requests that relax and restore."""

ALWAYS = "ALWAYS_COMPATIBLE"
WEEK, MONTH = ({"retentionTimeInMinutes": days * 1440, "retentionSizeInMB": -1} for days in (7, 30))
BROKEN = ("sales", 0), ("sales", 1), ("web", 0)
"""The topics with a waived version that their strategy rejects."""


def write_namespace(name: str, **policies: object) -> str:
    lines = [f"{policy}: {json.dumps(value)}" for policy, value in policies.items()]
    return "\n".join([f"namespace: shop/{name}", *lines, ""])


def write_topic(name: str, number: int, **keys: object) -> str:
    lines = [f"{key}: {json.dumps(value)}" for key, value in keys.items()]
    schema = f"schema: {{type: AVRO, definition: {name}-{number}.avsc}}"
    return "\n".join([f"topic: shop/{name}/t{number}", *lines, schema, ""])


def write_first() -> dict[str, str]:
    """Return the files of the state before."""
    files = {
        "n/sales.yaml": write_namespace(
            "sales", schema_compatibility_strategy="BACKWARD", retention_policies=WEEK, message_ttl_in_seconds=0
        ),
        "n/web.yaml": write_namespace("web", schema_compatibility_strategy="FULL", is_allow_auto_update_schema=True),
    }
    for name, amount in (("sales", 8), ("web", 4)):
        for number in range(amount):
            keys: dict[str, object] = {"partitions": 2} if number == 2 else {}
            keys |= {"schema_compatibility_strategy": "FORWARD"} if number == 3 else {}
            files[f"n/{name}-{number}.yaml"] = write_topic(name, number, **keys)
            files[f"n/{name}-{number}.avsc"] = record("id")
    return files


def write_second() -> dict[str, str]:
    """Return the changed files of the approved state."""
    files = {
        "n/sales.yaml": write_namespace(
            "sales", schema_compatibility_strategy="BACKWARD_TRANSITIVE", retention_policies=MONTH
        ),
        "n/web.yaml": write_namespace(
            "web",
            schema_compatibility_strategy="FULL",
            is_allow_auto_update_schema=True,
            schema_validation_enforced=True,
        ),
        "n/new.yaml": write_namespace("new", schema_compatibility_strategy="FULL", is_allow_auto_update_schema=False),
        "n/sales-2.yaml": write_topic("sales", 2, partitions=4),
        "n/sales-3.yaml": write_topic("sales", 3),
        "n/sales-4.yaml": write_topic(
            "sales", 4, schema_compatibility_strategy="FULL_TRANSITIVE", retention_policies=MONTH
        ),
        "n/web-1.yaml": write_topic("web", 1, schema_compatibility_strategy="UNDEFINED", message_ttl_in_seconds=0),
    }
    for name, amount in (("sales", 8), ("web", 4)):
        for number in range(amount):
            broken = (name, number) in BROKEN
            files[f"n/{name}-{number}.avsc"] = record("id", "needed") if broken else record("id", note=0)
    for number in range(16):
        files[f"n/new-{number}.yaml"] = write_topic("new", number, **({"partitions": 3} if number % 4 == 0 else {}))
        files[f"n/new-{number}.avsc"] = record("id")
    return files


SETTINGS = {
    "schema_compatibility_strategy": "schemaCompatibilityStrategy",
    "retention_policies": "retention",
    "message_ttl_in_seconds": "messageTTL",
}
"""The policies of topics in this test, and their endpoints."""


@dataclass
class Facts:
    """The registry as the admin API shows it, without the tool.

    Attributes:
        policies: the policies of namespaces and topics that exist, by name and policy; an unset policy is None.
        partitions: of existing topics, None without partitions.
        versions: the definitions of each topic, by number.
    """

    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    partitions: dict[str, int | None] = field(default_factory=dict)
    versions: dict[str, list[str]] = field(default_factory=dict)

    def of_tenant(self, old: str, new: str) -> Facts:
        """Return the same for another tenant."""
        return Facts(**json.loads(json.dumps(self.__dict__).replace(old, new)))


class Shop:
    """A repository whose approved state is applied to a registry, in a separate tenant."""

    def __init__(self, path: Path, url: str) -> None:
        self.scratch, self.url = Scratch(path), url
        self.tenant = brokers.new_tenant()
        self.scratch.configure_author()
        ignored = ".schemactl/\nstatus.json\nmetrics\n"
        self.scratch.commit({"schemactl.yaml": self.project, ".gitignore": ignored, **write_first()})
        self.scratch.git("tag", "before")
        self._approve()

    def copy_to(self, path: Path) -> Shop:
        """Return the same repository at `path`, whose registry has the first state in another tenant."""
        shutil.copytree(self.scratch.path, path, symlinks=True)
        shop = copy.copy(self)
        shop.scratch, shop.tenant = Scratch.open_existing(path), brokers.new_tenant()
        shop.scratch.write({"schemactl.yaml": shop.project})
        shop.scratch.git("commit", "-q", "-a", "-m", "Another tenant")
        shop.scratch.git("tag", "prod", "before")
        shop.run("apply", "--auto-approve", "--create-tenants")
        shop.scratch.git("tag", "-f", "prod")
        return shop

    @property
    def project(self) -> str:
        target = f'{{registry: "{self.url}", tenants: {{shop: {self.tenant}}}, promoted: refs/tags/prod}}'
        return f"version: 1\nroots: [n]\napproved: main\ntargets: {{prod: {target}}}\n"

    def run(self, *arguments: str, code: int | Collection[int] = 0) -> Any:
        return schemactl(self.scratch.path, *arguments, code=code)

    def run_json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--format", "json", code=(0, 100)).out)

    def _approve(self) -> None:
        """Approve the second state, with waivers of the changes that the strategies reject."""
        files = write_second()
        self.scratch.commit({name: text for name, text in files.items() if not self.is_broken(name)})
        self.scratch.flush()
        for name, text in files.items():
            if self.is_broken(name):
                (self.scratch.path / name).write_text(text)
        until = str(datetime.now(UTC).date() + timedelta(days=30))
        findings = self.run_json("check")["findings"]
        for fingerprint in sorted({finding["fingerprint"] for finding in findings if finding["severity"] == "error"}):
            self.run("waive", fingerprint, "--reason", "all are ours", "--owner", "shop", "--until", until, code=(0, 1))
        self.scratch.git("add", "-A")
        self.scratch.git("commit", "-q", "-m", "A waived break")

    def is_broken(self, file: str) -> bool:
        return file in {f"n/{name}-{number}.avsc" for name, number in BROKEN}

    def read_facts(self) -> Facts:
        facts = Facts()
        with closing(admin_rest.Client(self.url)) as client:
            for space in ("sales", "web", "new"):
                self._read_namespace(facts, client, f"{self.tenant}/{space}")
        return facts

    def _read_namespace(self, facts: Facts, client: admin_rest.Client, space: str) -> None:
        response = client.call("GET", f"/namespaces/{space}")
        if response.status == 404:
            return
        fields = response.json()
        facts.policies[space] = {
            policy: None if fields.get(policy) == "UNDEFINED" else fields.get(policy)
            for policy in (*SETTINGS, "is_allow_auto_update_schema", "schema_validation_enforced")
        }
        topics = {name: None for name in client.call("GET", f"/persistent/{space}").json() if "-partition-" not in name}
        topics |= dict.fromkeys(client.call("GET", f"/persistent/{space}/partitioned").json())
        for name in sorted(name for name in topics if "/__" not in name):
            path = f"/persistent/{name.removeprefix('persistent://')}"
            count = client.call("GET", f"{path}/partitions").json()["partitions"]
            facts.partitions[name] = count or None
            values = {}
            for policy, endpoint in SETTINGS.items():
                response = client.call("GET", f"{path}/{endpoint}")
                value = response.json() if response.status == 200 and response.content else None
                values[policy] = None if value == "UNDEFINED" else value
            facts.policies[name] = values
            response = client.call("GET", f"/schemas/{name.removeprefix('persistent://')}/schemas")
            schemas = response.json()["getSchemaResponses"] if response.status == 200 else []
            facts.versions[name] = [schema["data"] for schema in sorted(schemas, key=lambda schema: schema["version"])]

    def kill_an_apply(self, last: int) -> bool:
        """Kill an `apply` with its writing request number `last`; return False if it made fewer."""

        def apply(say: Say) -> None:
            send_once, changes = AdminConnection.send_once, count(1)

            def send_and_die(self: AdminConnection, method: str, path: str, data: bytes | None = None) -> Reply:
                reply = send_once(self, method, path, data)
                if method != "GET" and next(changes) == last:
                    kill_oneself()
                return reply

            AdminConnection.send_once = send_and_die  # type: ignore[method-assign]
            say(self.run("apply", "--auto-approve", "--parallel", "1", code=range(256)))

        process, lines = fork_process(apply)
        with lines:
            if printed := lines.read():
                os.waitpid(process, 0)
                assert printed.endswith("code=0)\n"), printed
                return False
            assert_killed(process, lines)
        return True


# The checks of the reports

OLD_VALUE = re.compile(r"  [~+-] (\w+): (.+?)(?: -> (.+)| \(now .+\))?")


def check_plan(plan: Any, facts: Facts, expected: Facts) -> None:
    """Carry out the steps of a plan on the facts: each old value is in force then, and the end is as Git approved."""
    policies = {name: dict(values) for name, values in facts.policies.items()}
    versions = {name: list(definitions) for name, definitions in facts.versions.items()}
    partitions = dict(facts.partitions)
    for step in plan["steps"]:
        name = step.get("topic") or step.get("namespace")
        space = name.partition("://")[2].rpartition("/")[0] or name
        match step["action"]:
            case "create_tenant":
                pass
            case "create_namespace":
                assert name not in policies
                policies[name] = {}
            case "create_topic":
                assert name not in partitions
                partitions[name], versions[name], policies[name] = step["partitions"], [], {}
            case "grow_partitions":
                assert partitions[name] == step["before"]
                partitions[name] = step["after"]
            case "set_namespace_policies" | "set_topic_policies":
                for policy, value in step["before"].items():
                    assert (None if value == "UNDEFINED" else value) == policies[name].get(policy), (name, policy)
                policies[name] |= {key: None if value == "UNDEFINED" else value for key, value in step["after"].items()}
            case "register_version":
                assert len(versions[name]) == step["answer"]["version"]
                versions[name].append(json.dumps(step["schema"]))
            case "relax_strategy":
                own = policies[name].get("schema_compatibility_strategy")
                assert step["strategy"] == (own or policies[space]["schema_compatibility_strategy"])
                assert step["updates"] is (policies[space].get("is_allow_auto_update_schema") is not False)
            case "restore_strategy":
                if left := step.get("left"):
                    assert left["accepts_all"] == (policies[name].get("schema_compatibility_strategy") == ALWAYS)
                    assert left["updates_off"] == (policies[space]["is_allow_auto_update_schema"] is False)
                    if left["accepts_all"]:
                        strategy = step["strategy"]
                        policies[name]["schema_compatibility_strategy"] = None if strategy == "UNDEFINED" else strategy
                    if left["updates_off"]:
                        policies[space]["is_allow_auto_update_schema"] = True
            case action:
                raise AssertionError(action)
    assert partitions == expected.partitions
    assert {name: len(definitions) for name, definitions in versions.items()} == {
        name: len(definitions) for name, definitions in expected.versions.items()
    }
    for name, values in expected.policies.items():
        for policy, value in values.items():
            if policy in policies[name] or value not in (None, False):
                assert policies[name].get(policy) == value, (name, policy)


def check_plan_text(text: str, facts: Facts) -> None:
    """The old values of policies, and the settings that the killed `apply` left, are in force."""
    name = ""
    for line in text.splitlines():
        if head := re.fullmatch(r"[~+!-] (?:topic|namespace) (\S+?)(?:,.*| in .*)?", line):
            name = head[1]
        elif left := re.match(r"  ~ strategy: (\w+) -> \w+; a killed apply", line):
            assert left[1] == facts.policies[name]["schema_compatibility_strategy"] == ALWAYS
        elif left := re.match(r"  ~ automatic updates in (\S+): off -> on; a killed apply", line):
            assert facts.policies[left[1]]["is_allow_auto_update_schema"] is False
        elif "; a killed apply had left ALWAYS_COMPATIBLE, which accepts every upload" in line:
            raise AssertionError(line)
        elif (old_values := OLD_VALUE.fullmatch(line)) and old_values[1] in facts.policies.get(name, {}):
            old = facts.policies[name][old_values[1]]
            if old_values[1] == "schema_compatibility_strategy" and old == ALWAYS:
                continue  # the topic is restored before this step
            assert (line[2] == "+") == (old is None), line
            assert line[2] == "+" or old_values[2] == format_policy_value(old), line


def check_drift(drift: Any, facts: Facts, expected: Facts) -> None:
    """Every difference is a fact, and every difference of the registry from the approved state is shown."""
    old_values: set[tuple[str, str]] = set()
    for item in (*drift["differences"], *drift["pending"]):
        name, message = item.get("topic") or item["namespace"], item["message"]
        match item["kind"]:
            case "updates off":
                assert facts.policies[name]["is_allow_auto_update_schema"] is False
                assert ("but Git approved true" in message) == name.endswith("/web")
                old_values.add((name, "is_allow_auto_update_schema"))
            case "relaxed":
                assert facts.policies[name]["schema_compatibility_strategy"] == ALWAYS
                own = expected.policies[name]["schema_compatibility_strategy"] or "UNDEFINED"
                assert message.endswith(f"its own strategy is {own}")
                old_values.add((name, "schema_compatibility_strategy"))
            case "policy":
                policy, value, approved = re.fullmatch(r"(\w+) is (.+), but Git approved (.+)", message).groups()  # type: ignore[union-attr]
                in_force = facts.policies[name].get(policy)
                assert value in {
                    format_policy_value(in_force),
                    *(["not set", "UNDEFINED"] if in_force is None else []),
                }, message
                assert approved in {format_policy_value(expected.policies[name].get(policy)), "UNDEFINED"}
                old_values.add((name, policy))
            case "namespace missing":
                assert name not in facts.policies
                old_values.add((name, ""))
            case "topic missing":
                assert name not in facts.partitions
                old_values.add((name, ""))
            case "partitions":
                assert f" has {facts.partitions[name]} partitions" in message, message
                old_values.add((name, "partitions"))
            case "missing versions":
                assert len(facts.versions[name]) < len(expected.versions[name])
                old_values.add((name, "versions"))
            case kind:
                raise AssertionError(f"{kind}: {message}")
    for name, values in expected.policies.items():
        if name not in facts.policies:
            assert (name, "") in old_values
            continue
        for policy, value in values.items():
            in_force = facts.policies[name].get(policy)
            # A policy that is about to be reset is not drift.
            if in_force != value and value is not None and not (value is False and in_force is None):
                assert (name, policy) in old_values, (name, policy, in_force, value)
    for name, definitions in expected.versions.items():
        if name in facts.versions and facts.versions[name] != definitions:
            assert (name, "versions") in old_values


def check_status(shop: Shop, plan: Any, drift: Any, facts: Facts) -> None:
    """The status counts as plan and drift do."""
    text = shop.run("status", "--format", "text", "--format", "json=status.json", "--format", "prometheus=metrics").out
    (status,) = json.loads((shop.scratch.path / "status.json").read_text())["targets"]
    kinds = [item["kind"] for item in drift["differences"]]
    assert status["drift"] == {kind: kinds.count(kind) for kind in kinds}
    assert status["pending"]["steps"] + status["repairs"] == len(plan["steps"])
    for space, values in facts.policies.items():
        is_left = space.endswith(("/sales", "/web")) and values.get("is_allow_auto_update_schema") is False
        assert (f"{space}: clients cannot register schemas" in text) == is_left
    metrics = (shop.scratch.path / "metrics").read_text()
    for kind in ("relaxed", "updates off"):
        assert f'schemactl_drift_differences{{target="prod",kind="{kind}"}} {kinds.count(kind)}\n' in metrics


def read_commands(text: str) -> Iterator[list[str]]:
    """Yield the commands that `apply` something, in the order in which a report advises them."""
    for line in text.splitlines():
        if re.match(r" *(?:Next|or|Fix): ", line):
            for command in re.findall(r"`schemactl (apply [^`]+)`", line):
                yield shlex.split(command)


def follow_advice(shop: Shop) -> None:
    """Carry out the advice of `drift`, and then `apply` until the plan is empty."""
    for command in read_commands(shop.run("drift").out):
        assert "--allow-data-loss" not in command
        shop.run(*command, "--auto-approve")
    if shop.run("plan", "--detailed-exitcode", code=(0, 2)).code:
        shop.run("apply", "--auto-approve")
    assert "No changes." in shop.run("plan", "--detailed-exitcode").out
    assert "No drift." in shop.run("drift", "--detailed-exitcode").out


def check_kills(folder: Path, url: str, step: int) -> int:
    """Kill an `apply` after every `step`th writing request, and check what follows; return the number of kills."""
    template = Shop(folder / "template", url)
    undisturbed = template.copy_to(folder / "undisturbed")
    assert len(undisturbed.run_json("plan")["steps"]) >= 60
    undisturbed.run("apply", "--auto-approve")
    expected = undisturbed.read_facts()
    for last in count(FIRST if step > 1 else 1, step):
        shop = template.copy_to(folder / str(last))
        if not shop.kill_an_apply(last):
            break
        facts = shop.read_facts()
        wanted = expected.of_tenant(undisturbed.tenant, shop.tenant)
        plan, drift = shop.run_json("plan"), shop.run_json("drift")
        check_plan(plan, facts, wanted)
        check_plan_text(shop.run("plan").out, facts)
        check_drift(drift, facts, wanted)
        check_status(shop, plan, drift, facts)
        follow_advice(shop)
        assert shop.read_facts() == wanted
    return last // step


def test_behind_serve(tmp_path: Path) -> None:
    (tmp_path / "schemactl.yaml").write_text("version: 1\n")
    with admin_rest.serve_folder("--registry", "sqlite:registry.db", folder=tmp_path) as (url, _):
        assert check_kills(tmp_path, url, STEP) >= 80 // STEP


@pytest.mark.broker
def test_on_a_broker(tmp_path: Path, broker: brokers.Broker) -> None:
    step = max(STEP, 12)
    assert check_kills(tmp_path, broker.url, step) >= 80 // step
