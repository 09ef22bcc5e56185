"""`serve` answers requests about policies as a broker does, keeps the policies that schemactl manages, and rejects the others."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import admin_rest
import admin_servers
import brokers
import pytest

from schemactl.core.errors import NotPermitted, RegistryError
from schemactl.core.names import NamespaceName
from schemactl.core.policies import Policies
from schemactl.registry.pulsar.registry import PulsarRegistry

ZERO_LIMIT = (
    "Invalid retention policy: Setting a single time or size limit to 0 is invalid when one of the limits has a non-zero value. "
    "Use the value of -1 instead of 0 to ignore a specific limit. To disable retention both limits must be set to 0."
)
MANAGED: dict[str, Any] = {
    "retention_policies": {"retentionTimeInMinutes": 60, "retentionSizeInMB": 100},
    "message_ttl_in_seconds": 7,
    "inactive_topic_policies": {
        "inactiveTopicDeleteMode": "delete_when_subscriptions_caught_up",
        "maxInactiveDurationSeconds": 9,
        "deleteWhileInactive": False,
    },
    "deduplicationEnabled": True,
    "compaction_threshold": 5,
    "properties": {"a": "b", "c": ""},
    "schema_compatibility_strategy": "FULL",
    "schema_auto_update_compatibility_strategy": "Forward",
    "is_allow_auto_update_schema": False,
    "schema_validation_enforced": True,
    "replication_clusters": ["standalone"],
}
PATHS = {
    "retention_policies": "retention",
    "message_ttl_in_seconds": "messageTTL",
    "inactive_topic_policies": "inactiveTopicPolicies",
    "deduplicationEnabled": "deduplication",
    "compaction_threshold": "compactionThreshold",
    "properties": "properties",
    "schema_compatibility_strategy": "schemaCompatibilityStrategy",
    "schema_auto_update_compatibility_strategy": "schemaAutoUpdateCompatibilityStrategy",
    "is_allow_auto_update_schema": "isAllowAutoUpdateSchema",
    "schema_validation_enforced": "schemaValidationEnforced",
    "replication_clusters": "replication",
}


class Admin:
    """A server, with a tenant of the module's own."""

    def __init__(self, server: admin_servers.Server) -> None:
        self.server = server
        self.client = admin_rest.Client(server.url)
        self.tenant = brokers.new_tenant()
        self.call("PUT", f"/tenants/{self.tenant}", {"allowedClusters": ["standalone"]})

    @property
    def is_serve(self) -> bool:
        return not self.server.service_url

    def call(self, method: str, path: str, body: Any = None) -> admin_rest.Said:
        return self.client.call(method, path, body, accept="application/json")

    def create_namespace(self, policies: Any = None) -> str:
        """Create a namespace that no other test has, and return its path."""
        path = f"/namespaces/{self.tenant}/{uuid.uuid4().hex}"
        assert self.call("PUT", path, policies).status == 204
        return path


@pytest.fixture(scope="module", params=admin_servers.KINDS)
def admin(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    with ExitStack() as stack:
        server = stack.enter_context(admin_servers.open_server(request.param, tmp_path_factory.mktemp("serve")))
        admin = Admin(server)
        stack.enter_context(closing(admin.client))
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    """The path of a topic whose policies can be set."""
    path = admin.create_namespace().replace("/namespaces", "/persistent") + "/topic"
    assert admin.call("PUT", path).status == 204
    # A broker finds the owner of a new namespace only after a while.
    until = time.monotonic() + 10
    while admin.call("GET", f"{path}/retention").status != 200 and time.monotonic() < until:
        time.sleep(0.1)
    return path


def reason_of(response: admin_rest.Said) -> str:
    """Return the reason of an error in JSON."""
    reason: str = response.json()["reason"]
    return reason.split("\n\nStacktrace", maxsplit=1)[0].removeprefix(
        "\n --- An unexpected error occurred in the server ---\n\n"
    )


@pytest.mark.parametrize("names", [tuple(MANAGED), *((name,) for name in MANAGED)], ids="+".join)
def test_namespace_is_created_with_its_policies(admin: Admin, names: tuple[str, ...]) -> None:
    policies = {name: MANAGED[name] for name in names}
    path = admin.create_namespace(policies)
    stored = admin.call("GET", path).json()
    assert {name: stored.get(name) for name in policies} == policies
    for name, value in policies.items():
        assert admin.call("GET", f"{path}/{PATHS[name]}").json() == value


@pytest.mark.parametrize(
    ("policies", "boundaries"),
    [
        ({}, None),
        ({"bundles": None}, None),
        ({"bundles": {"numBundles": 0}}, None),
        ({"bundles": {"numBundles": 3}}, ["0x00000000", "0x55555555", "0xaaaaaaaa", "0xffffffff"]),
        ({"bundles": {"boundaries": None, "numBundles": 2}}, ["0x00000000", "0x80000000", "0xffffffff"]),
        ({"bundles": {"boundaries": ["0x0", "0xffffffff", "0x10"], "numBundles": 9}}, ["0x00000000", "0x00000010", "0xffffffff"]),
    ],
)  # fmt: skip
def test_bundles_of_a_namespace(admin: Admin, policies: Any, boundaries: list[str] | None) -> None:
    if boundaries is None:
        count = 32 if admin.server.release == "5.0" else 4
        boundaries = [*(f"0x{index * 2**32 // count:08x}" for index in range(count)), "0xffffffff"]
    expected = {"boundaries": boundaries, "numBundles": len(boundaries) - 1}
    path = admin.create_namespace(policies)
    assert admin.call("GET", f"{path}/bundles").json() == expected
    assert admin.call("GET", path).json()["bundles"] == expected


@pytest.mark.parametrize(
    ("policies", "status", "reason"),
    [
        ({"replication_clusters": ["nowhere"]}, 403, "Cluster [nowhere] is not in the list of allowed clusters list for tenant [TENANT]"),
        ({"replication_clusters": ["standalone", "eu"]}, 403, "Cluster [eu] is not in the list of allowed clusters list for tenant [TENANT]"),
        ({"replication_clusters": None}, 500, 'Message: Cannot invoke "java.util.Set.isEmpty()" because "VARIABLE.replication_clusters" is null'),
        ({"retention_policies": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 20}}, 400, ZERO_LIMIT),
        ({"retention_policies": {"retentionTimeInMinutes": 5}}, 400, ZERO_LIMIT),
        ({"retention_policies": {"retentionTimeInMinutes": -2}}, 400, "Invalid retention policy: time limit must be >= -1"),
        ({"message_ttl_in_seconds": -5}, 412, "Invalid value for message TTL"),
        ({"bundles": {"boundaries": ["0x0", "0x7fffffff"], "numBundles": 1}}, 400, "Input bundles do not cover the whole hash range. first:0x00000000, last:0x7fffffff"),
    ],
)  # fmt: skip
def test_namespace_with_invalid_policies_is_not_created(admin: Admin, policies: Any, status: int, reason: str) -> None:
    path = f"/namespaces/{admin.tenant}/{uuid.uuid4().hex}"
    response = admin.call("PUT", path, policies)
    variable = "policies" if admin.server.release == "4.0" else "nsPolicies"
    expected = reason.replace("TENANT", admin.tenant).replace("VARIABLE", variable)
    assert (response.status, reason_of(response)) == (status, expected)
    assert admin.call("GET", path).status == 404


@pytest.mark.parametrize(
    "policies",
    [
        {"max_topics_per_namespace": 5},
        {"persistence": {"bookkeeperEnsemble": 1, "bookkeeperWriteQuorum": 1, "bookkeeperAckQuorum": 1}},
        {"backlog_quota_map": {"destination_storage": {"limitSize": 1, "policy": "producer_exception"}}},
        {"auth_policies": {"namespace_auth": {"role": ["produce"]}}},
        {"offload_threshold": 0, "encryption_required": True},
        {"subscription_types_enabled": ["Shared"]},
        {"allowed_clusters": ["standalone"]},
        {"deleted": True},
    ],
    ids=lambda policies: next(reversed(policies)),
)
@pytest.mark.parametrize("admin", admin_servers.KINDS[:1], indirect=True)
def test_namespace_with_other_policies_is_rejected(admin: Admin, policies: dict[str, Any]) -> None:
    path = f"/namespaces/{admin.tenant}/{uuid.uuid4().hex}"
    response = admin.call("PUT", path, {**MANAGED, **policies})
    assert response.status == 501
    name = next(reversed(policies))
    assert reason_of(response) == f"schemactl serve does not keep {name}: create the namespace without these policies"
    assert admin.call("GET", path).status == 404


NOTHING_SET = [
    # Java's admin client.
    {
        "auth_policies": {"namespace_auth": {}, "destination_auth": {}, "subscription_auth_roles": {}},
        "replication_clusters": [],
        "allowed_clusters": [],
        "backlog_quota_map": {},
        "clusterDispatchRate": {},
        "topicDispatchRate": {},
        "subscriptionDispatchRate": {},
        "replicatorDispatchRate": {},
        "clusterSubscribeRate": {},
        "publishMaxMessageRate": {},
        "latency_stats_sample_rate": {},
        "deleted": False,
        "encryption_required": False,
        "subscription_auth_mode": "None",
        "offload_threshold": -1,
        "offload_threshold_in_seconds": -1,
        "schema_compatibility_strategy": "UNDEFINED",
        "schema_validation_enforced": False,
        "subscription_types_enabled": [],
        "properties": {},
        "migrated": False,
    },
    # Go's, with a replication cluster.
    {
        "bundles": {"boundaries": None, "numBundles": 8},
        "persistence": None,
        "retention_policies": None,
        "schema_validation_enforced": False,
        "deduplicationEnabled": None,
        "deleted": False,
        "encryption_required": False,
        "message_ttl_in_seconds": None,
        "max_producers_per_topic": None,
        "max_consumers_per_topic": None,
        "max_consumers_per_subscription": None,
        "compaction_threshold": None,
        "offload_threshold": 0,
        "offload_deletion_lag_ms": None,
        "antiAffinityGroup": "",
        "replication_clusters": ["standalone"],
        "latency_stats_sample_rate": None,
        "backlog_quota_map": None,
        "topicDispatchRate": None,
        "autoTopicCreationOverride": None,
        "subscription_auth_mode": "",
        "schema_auto_update_compatibility_strategy": "",
        "schema_compatibility_strategy": "",
        "auth_policies": {"namespace_auth": None, "destination_auth": None, "subscription_auth_roles": None},
        "is_allow_auto_update_schema": None,
    },
    {"nonsense": 1, "max_producers_per_topic": 0},
]
"""Policies that clients send without a value."""


@pytest.mark.parametrize("policies", NOTHING_SET, ids=["java", "go", "unknown"])
def test_policies_that_set_nothing_are_accepted(admin: Admin, policies: Any) -> None:
    path = admin.create_namespace(policies)
    assert admin.call("GET", f"{path}/schemaCompatibilityStrategy").json() == "UNDEFINED"
    assert admin.call("GET", f"{path}/retention").content == b""


SETTINGS_OF_NAMESPACES = [
    ("POST", "retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 20}, 400, ZERO_LIMIT),
    ("POST", "retention", {"retentionTimeInMinutes": "5", "retentionSizeInMB": 6, "x": 1}, 204, ""),
    ("POST", "retention", {}, 204, ""),
    ("POST", "retention", "null", 204, ""),
    ("POST", "messageTTL", -5, 412, "Invalid value for message TTL, message TTL must >= 0"),
    ("POST", "messageTTL", 1.5, 204, ""),
    ("POST", "messageTTL", 2**40, 500, None),
    ("POST", "messageTTL", "", 400, None),
    ("POST", "deduplication", 1, 204, ""),
    ("POST", "deduplication", '"x"', 400, None),
    ("POST", "inactiveTopicPolicies", "null", 204, ""),
    ("PUT", "compactionThreshold", -1, 412, "compactionThreshold must be 0 or more"),
    ("PUT", "compactionThreshold", 2**40, 204, ""),
    ("PUT", "compactionThreshold", '"x"', 400, None),
    ("POST", "replication", ["nowhere"], 403, "Invalid cluster id: nowhere"),
    ("POST", "replication", ["standalone", "nowhere"], 403, "Invalid cluster id: nowhere"),
    ("POST", "replication", [], 412, "ClusterIds should not be null or empty"),
    ("POST", "replication", "null", 412, "ClusterIds should not be null or empty"),
    ("POST", "replication", ["standalone", "standalone"], 200, ""),
]
SETTINGS_OF_TOPICS = [
    ("POST", "retention", {"retentionTimeInMinutes": -2, "retentionSizeInMB": 0}, 400, "Invalid retention policy: time limit must be >= -1"),
    ("POST", "retention", "null", 204, ""),
    ("POST", "messageTTL?messageTTL=-5", "", 412, "Invalid value for message TTL"),
    ("POST", "messageTTL?messageTTL=x", "", 404, None),
    ("POST", f"messageTTL?messageTTL={2**31}", "", 404, None),
    ("POST", "messageTTL?messageTTL=8", "", 204, ""),
    ("POST", "compactionThreshold", -1, 412, "Invalid value for compactionThreshold"),
    ("POST", "deduplicationEnabled", "null", 204, ""),
    ("POST", "replication", ["nowhere"], 412, "Can not remove local cluster from the local topic-level replication clusters policy"),
    ("POST", "replication", ["standalone", "nowhere"], 403, "Invalid cluster id: nowhere"),
    ("POST", "replication", [], 412, "ClusterIds should not be null or empty"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "status", "reason"), SETTINGS_OF_NAMESPACES)
def test_setting_of_a_namespace_is_accepted_or_rejected(
    admin: Admin, method: str, path: str, body: Any, status: int, reason: str | None
) -> None:
    response = admin.call(method, f"{admin.create_namespace()}/{path}", body)
    assert response.status == status
    if reason is not None:
        assert (reason_of(response) if reason else response.text) == reason


@pytest.mark.parametrize(("method", "path", "body", "status", "reason"), SETTINGS_OF_TOPICS)
def test_setting_of_a_topic_is_accepted_or_rejected(
    admin: Admin, topic: str, method: str, path: str, body: Any, status: int, reason: str | None
) -> None:
    response = admin.call(method, f"{topic}/{path}", body)
    assert response.status == status
    if reason is not None:
        assert (reason_of(response) if reason else response.text) == reason


OTHERS_OF_NAMESPACES = [
    *(("autoSubscriptionCreation", ""), ("autoTopicCreation", ""), ("deduplicationSnapshotInterval", "")),
    *(("delayedDelivery", ""), ("dispatchRate", ""), ("entryFilters", ""), ("maxConsumersPerSubscription", "")),
    *(("maxConsumersPerTopic", ""), ("maxProducersPerTopic", ""), ("maxSubscriptionsPerTopic", "")),
    *(("maxUnackedMessagesPerConsumer", ""), ("maxUnackedMessagesPerSubscription", ""), ("offloadDeletionLagMs", "")),
    *(("offloadPolicies", ""), ("persistence", ""), ("publishRate", ""), ("replicatorDispatchRate", "")),
    *(("resourcegroup", ""), ("subscribeRate", ""), ("subscriptionDispatchRate", "")),
    *(("subscriptionExpirationTime", ""), ("allowedClusters", "[]"), ("subscriptionTypesEnabled", "[]")),
    *(("backlogQuotaMap", "{}"), ("permissions", "{}"), ("permissions/subscription", "{}")),
    *(("dispatcherPauseOnAckStatePersistent", "false"), ("encryptionRequired", "false")),
    *(("offloadThreshold", "-1"), ("offloadThresholdInSeconds", "-1"), ("maxTopicsPerNamespace", "0")),
    ("subscriptionAuthMode", '"None"'),
]
OTHERS_OF_TOPICS = [
    *(("autoSubscriptionCreation", 200, ""), ("deduplicationSnapshotInterval", 200, ""), ("delayedDelivery", 200, "")),
    *(("dispatchRate", 200, ""), ("entryFilters", 200, ""), ("maxConsumers", 200, ""), ("maxProducers", 200, "")),
    *(("maxConsumersPerSubscription", 204, ""), ("maxMessageSize", 204, ""), ("maxSubscriptionsPerTopic", 204, "")),
    *(("maxUnackedMessagesOnConsumer", 200, ""), ("maxUnackedMessagesOnSubscription", 200, "")),
    *(("offloadPolicies", 200, ""), ("persistence", 200, ""), ("publishRate", 204, "")),
    *(("replicatorDispatchRate", 200, ""), ("shadowTopics", 200, ""), ("subscribeRate", 200, "")),
    *(("subscriptionDispatchRate", 200, ""), ("subscriptionTypesEnabled", 204, ""), ("backlogQuotaMap", 200, "{}")),
    *(("dispatcherPauseOnAckStatePersistent", 200, "false"), ("permissions", 200, "{}"), ("subscriptions", 200, "[]")),
]


def test_other_policies_of_a_namespace_are_unset(admin: Admin) -> None:
    path = admin.create_namespace()
    actual = [(name, admin.call("GET", f"{path}/{name}").text) for name, _ in OTHERS_OF_NAMESPACES]
    assert actual == OTHERS_OF_NAMESPACES
    missing = {admin.call("GET", f"{path}x/{name}").status for name, _ in OTHERS_OF_NAMESPACES}
    assert missing == {404}


def test_other_policies_of_a_topic_are_unset(admin: Admin, topic: str) -> None:
    responses = [(name, admin.call("GET", f"{topic}/{name}")) for name, _, _ in OTHERS_OF_TOPICS]
    assert [(name, response.status, response.text) for name, response in responses] == OTHERS_OF_TOPICS
    missing = {admin.call("GET", f"{topic}x/{name}").status for name, _, _ in OTHERS_OF_TOPICS}
    assert missing == {404}


@pytest.mark.parametrize("admin", admin_servers.KINDS[:1], indirect=True)
def test_other_policies_cannot_be_set(admin: Admin, topic: str) -> None:
    namespace = admin.create_namespace()
    for method, path, name in [
        ("POST", f"{namespace}/persistence", "persistence"),
        ("POST", f"{namespace}/maxTopicsPerNamespace", "maxTopicsPerNamespace"),
        ("POST", f"{namespace}/backlogQuota?backlogQuotaType=message_age", "backlogQuota"),
        ("POST", f"{namespace}/permissions/role", "permissions"),
        ("POST", f"{topic}/maxProducers", "maxProducers"),
        ("POST", f"{topic}/permissions/role", "permissions"),
    ]:
        response = admin.call(method, path, 1)
        assert (response.status, reason_of(response)) == (501, f"schemactl serve does not keep {name}")
        assert admin.call("DELETE", path).status == 204
        missing_path = path.replace(namespace, f"{namespace}x").replace(topic, f"{topic}x")
        assert admin.call(method, missing_path, 1).status == 404


def test_unknown_cluster_is_not_reported_as_a_missing_permission(admin: Admin) -> None:
    name = NamespaceName.parse(admin.create_namespace().removeprefix("/namespaces/"))
    policies = Policies(settings={"replication_clusters": ["nowhere", "standalone"]})
    with (
        closing(PulsarRegistry(admin.server.url)) as registry,
        pytest.raises(RegistryError, match="Invalid cluster id: nowhere") as raised,
    ):
        registry.set_namespace_policies(name, policies)
    assert not isinstance(raised.value, NotPermitted)
    assert raised.value.fix == "name only clusters that `pulsar-admin clusters list` shows"


def test_properties_of_a_namespace(admin: Admin) -> None:
    path = admin.create_namespace({"properties": {"a": "1"}})
    assert admin.call("PUT", f"{path}/property/k/a%2Bb+c%20d").status == 204
    assert admin.call("GET", f"{path}/property/k").text == "a+b+c d"
    assert admin.call("GET", f"{path}/property/missing").text == ""
    assert admin.call("GET", f"{path}/properties").json() == {"a": "1", "k": "a+b+c d"}
    assert admin.call("DELETE", f"{path}/property/a").text == "1"
    assert admin.call("DELETE", f"{path}/properties").status == 204
    assert admin.call("GET", f"{path}/properties").json() == {}
    for method, name in [("PUT", "property/k/v"), ("GET", "property/k"), ("DELETE", "properties")]:
        assert reason_of(admin.call(method, f"{path}x/{name}")) == "Namespace does not exist"


def test_statistics_of_topics(admin: Admin) -> None:
    namespace = admin.create_namespace().replace("/namespaces", "/persistent")
    assert admin.call("PUT", f"{namespace}/parts/partitions", 2).status == 204
    assert admin.call("PUT", f"{namespace}/single").status == 204
    for name in ("single", "parts-partition-0"):
        assert admin.call("GET", f"{namespace}/{name}/internalStats").json()["numberOfEntries"] == 0
    assert len(admin.call("GET", f"{namespace}/parts/partitioned-internalStats").json()["partitions"]) == 2
    for name in ("missing", "parts"):
        for kind in ("stats", "internalStats"):
            response = admin.call("GET", f"{namespace}/{name}/{kind}")
            full_name = f"persistent:/{namespace.removeprefix('/persistent')}/{name}"
            assert (response.status, reason_of(response)) == (404, f"Topic {full_name} not found")
    for name in ("missing", "single"):
        assert admin.call("GET", f"{namespace}/{name}/partitioned-stats").status == 404
    assert admin.call("GET", f"{namespace}/single/stats").status == (501 if admin.is_serve else 200)


@pytest.mark.parametrize("kind", ["persistent", "non-persistent"])
def test_policies_of_a_topic_without_partitions(admin: Admin, kind: str) -> None:
    path = admin.create_namespace().replace("/namespaces", f"/{kind}") + "/single"
    assert admin.call("PUT", path).status == 204
    # From 4.2 on, also a non-persistent topic has policies.
    is_possible = kind == "persistent" or admin.server.release != "4.0"
    assert (admin.call("GET", f"{path}/retention").status == 200) == is_possible


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("GET", "/brokers/nowhere", None, 200, None),
        ("GET", "/brokers/configuration/values", None, 200, None),
        ("GET", "/clusters/nowhere", None, 404, "Cluster does not exist"),
        ("PUT", "/tenants/TENANT-x", {"allowedClusters": ["nowhere"]}, 412, "Clusters do not exist"),
        ("POST", "/tenants/TENANT", {"allowedClusters": ["standalone", "nowhere"]}, 412, "Clusters do not exist"),
        ("DELETE", "/tenants/TENANT?force=true", None, 405, "Broker doesn't allow forced deletion of tenants"),
        ("DELETE", "/tenants/TENANT-x?force=true", None, 405, "Broker doesn't allow forced deletion of tenants"),
    ],
)
def test_clusters_and_tenants(admin: Admin, method: str, path: str, body: Any, status: int, reason: str | None) -> None:
    response = admin.call(method, path.replace("TENANT", admin.tenant), body)
    assert response.status == status
    if reason is not None:
        assert reason_of(response) == reason


@pytest.mark.parametrize("admin", admin_servers.KINDS[:2], indirect=True)
def test_each_error_has_a_reason_in_json(admin: Admin) -> None:
    namespace = admin.create_namespace()
    schemas = namespace.replace("/namespaces", "/schemas") + "/topic"
    assert admin.call("POST", f"{schemas}/schema", {"type": "STRING", "schema": ""}).status == 200
    for method, path, body, status in [
        ("POST", f"{schemas}/schema", {"type": "INT32", "schema": ""}, 409),
        ("POST", f"{schemas}/schema", {"type": "AUTO_CONSUME", "schema": ""}, 422),
        ("POST", f"{schemas}/schema", {"type": "NOPE", "schema": ""}, 500),
        ("GET", f"{schemas}x/schema", None, 404),
        ("GET", f"{schemas}%25/schema", None, 500),
        ("GET", f"{schemas}%/schema", None, 400),
        ("PUT", f"{schemas}/schema", None, 405),
        ("GET", "/nowhere", None, 404),
        ("DELETE", "/nowhere", None, 404),
        ("PUT", f"{namespace}/retention", {}, 405),
        ("DELETE", f"{namespace}/nowhere", None, 412),
    ]:
        response = admin.call(method, path, body)
        assert (response.status, bool(reason_of(response))) == (status, True), (method, path)
