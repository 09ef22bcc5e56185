"""Find the cause of a broker's error, with its fix, and how long a retry may help."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from schemactl.registry.pulsar.responses import Reply, error_message, find_exception


class ErrorCause(NamedTuple):
    """A cause of errors that is known from Pulsar's code and issues.

    Attributes:
        pattern: matches the message or the name of the Java exception.
        cause: the cause, as a clause.
        fix: the repair, with `NAMESPACE` for the namespace of the request.
        statuses: the statuses of such errors.
        retry_s: the longest time of retries, in seconds, or None for the usual time.
        is_lasting: whether other requests are no longer retried once all retries of one have failed.
    """

    pattern: re.Pattern[str]
    cause: str
    fix: str
    statuses: frozenset[int] = frozenset({500})
    retry_s: float | None = None
    is_lasting: bool = False


_TOPIC_POLICIES: Final = "persistent://NAMESPACE/__change_events"

_MAX_SEARCHED: Final = 300
"""The characters of a message that are searched."""

_NAME: Final = re.compile(r"\S*/\S+")
"""A topic or namespace, whose name can be the word of a cause, such as `fenced`."""

_GATEWAY: Final = frozenset({502, 503, 504})

_CAUSES: Final = (
    ErrorCause(
        re.compile("Bookie handle is not available"),
        f"no bookie answers that has a ledger which the broker needs, of the schema or of the topic policies in {_TOPIC_POLICIES}",
        "start the bookies that are down; if their data is lost, set managedLedgerForceRecovery=true (for schemas "
        "schemaLedgerForceRecovery=true) in broker.conf, restart the brokers, and apply again. `pulsar-admin topics "
        f"stats-internal {_TOPIC_POLICIES}` "
        "lists the ledgers of the policies",
        # A bookie that restarts is back in less time.
        retry_s=20.0,
        is_lasting=True,
    ),
    ErrorCause(
        re.compile(
            r"No such (?:ledger|entry)|NoSuchLedger|Error while reading ledger|Ledger .*(?:not exist|not found)"
        ),
        f"a ledger which the broker needs is gone, of the schema or of the topic policies in {_TOPIC_POLICIES}",
        "set autoSkipNonRecoverableData=true (for schemas schemaLedgerForceRecovery=true) in broker.conf, restart the brokers, and apply "
        "again: the content of the ledger is lost",
        retry_s=5.0,
        is_lasting=True,
    ),
    ErrorCause(
        re.compile("Not enough non-faulty bookies"),
        "fewer bookies are writable than a new ledger needs",
        "start the bookies that are down, and free full disks, whose bookies are read-only. `pulsar-admin bookies list-bookies` "
        "lists them",
    ),
    ErrorCause(
        re.compile(
            r"(?i)topic policies (?:cache )?(?:have not|is not|has not|initialization)|initializing the topic policies cache"
        ),
        f"the broker cannot read the topic policies in {_TOPIC_POLICIES}",
        f"look at `pulsar-admin topics stats-internal {_TOPIC_POLICIES}`; `pulsar-admin namespaces unload NAMESPACE` makes another broker "
        "read them",
        is_lasting=True,
    ),
    ErrorCause(
        re.compile("OpenSslEngine problem|SSLHandshake|PKIX path|CertificateException"),
        "the brokers do not trust the certificates of each other, or of themselves",
        "check brokerClientTrustCertsFilePath in broker.conf, and that the certificates have the brokers' host names: the broker's log names "
        "the missing one",
        is_lasting=True,
    ),
    ErrorCause(
        re.compile("MetadataStore|KeeperErrorCode|ConnectionLoss|Session ?Expired|NotLeader"),
        "the broker has no connection to its metadata store",
        "check that ZooKeeper (or the other metadata store) has a quorum, and that the broker reaches it",
    ),
    ErrorCause(
        re.compile(
            "Failed to (?:acquire|find) (?:the )?ownership|being unloaded|not served by this instance|No broker was available|leader election"
        ),
        "no broker owns the part (bundle) of the namespace",
        "check that the brokers run and are healthy: `pulsar-admin brokers healthcheck`. `pulsar-admin namespaces unload NAMESPACE` assigns "
        "the bundles again",
        statuses=frozenset({307, 412, 500, 503}),
    ),
    ErrorCause(
        re.compile("Exceed maximum number of (?:topics|partitions)|[Nn]umber of partitions should be less"),
        "the namespace or the cluster has a limit",
        "raise the limit: maxTopicsPerNamespace or maxNumPartitionsPerPartitionedTopic in broker.conf, or `pulsar-admin namespaces "
        "set-max-topics-per-namespace`",
        statuses=frozenset({406, 409, 412, 422, 500}),
        retry_s=0.0,
    ),
    ErrorCause(
        re.compile("not have any clusters configured|missing local cluster name"),
        "the namespace is on other clusters only",
        "declare `replication_clusters` with this cluster for the namespace, or leave it out: `exclude` of the target",
        statuses=frozenset({412, 500}),
        retry_s=0.0,
    ),
    ErrorCause(
        re.compile("(?i)topic level polic(?:y|ies) is disabled"),
        "the brokers have topic policies switched off",
        "set topicLevelPoliciesEnabled=true and systemTopicEnabled=true in broker.conf, or declare the policies for namespaces only",
        statuses=frozenset({405, 412, 500}),
        retry_s=0.0,
    ),
    ErrorCause(
        re.compile("[Nn]ame is invalid|is not valid"),
        "",
        "rename it: Pulsar rejects this name",
        statuses=frozenset({406, 412}),
        retry_s=0.0,
    ),
    ErrorCause(
        re.compile("fenced|being deleted|is deleting"),
        "the topic or namespace is being deleted, or moves to another broker",
        "run the command again; if it fails again, `pulsar-admin namespaces unload NAMESPACE`",
        statuses=frozenset({409, 412, 422, 500}),
    ),
    ErrorCause(
        re.compile(""),
        "the brokers limit the rate of requests",
        "run the command again later, and `apply` with --parallel 1; the limit is httpRequestsMaxPerSecond in broker.conf",
        statuses=frozenset({429}),
    ),
    ErrorCause(
        re.compile(""),
        "a proxy before the brokers limits the size of requests",
        "raise its limit: client_max_body_size of nginx, or a similar setting",
        statuses=frozenset({413}),
        retry_s=0.0,
    ),
    ErrorCause(
        re.compile(""),
        "a proxy before the brokers reaches no broker",
        "check that the brokers behind it run, and that its settings name them",
        statuses=_GATEWAY,
    ),
    ErrorCause(
        re.compile(""), "", "the broker's log has the reason: look there for this request", statuses=frozenset({500})
    ),
)
"""The first row that matches counts."""


def find_cause(reply: Reply) -> ErrorCause | None:
    """Return the known cause of an error, or None."""
    # Messages can quote definitions.
    text = f"{_NAME.sub('', error_message(reply)[:_MAX_SEARCHED])} {find_exception(reply)}"
    candidates = (cause for cause in _CAUSES if reply.status in cause.statuses)
    return next((cause for cause in candidates if cause.pattern.search(text)), None)


def format_cause(cause: ErrorCause, request: str) -> tuple[str, str]:
    """Return the clause and the fix of a cause, for a request such as `GET persistent/shop/sales/orders/retention`."""
    match = re.search(r"(?:persistent|schemas|namespaces)(?:://|/)([^/\s]+/[^/\s?]+)", request)
    namespace = match[1] if match else "TENANT/NAMESPACE"
    return cause.cause.replace("NAMESPACE", namespace), cause.fix.replace("NAMESPACE", namespace)
