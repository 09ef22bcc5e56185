"""The version numbers of geo-replicated namespaces: each cluster's registry gives its own, in the order in which schemas arrive.

An upload reaches only one cluster. A replicator carries messages, and the broker of the other cluster registers the schema of the first
message that needs it. So clusters number versions differently, unless `apply` ran on all of them before the messages arrived.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from schemactl.comparison.changes import Generations
from schemactl.core.names import NamespaceName, TopicName
from schemactl.deploy.drift import DriftReport


@dataclass(frozen=True, slots=True)
class NumbersOfClusters:
    """A version that has different numbers in different clusters.

    Attributes:
        topic: by its declared name.
        version: Git's number.
        numbers: by cluster; None if that cluster does not have the version.
    """

    topic: TopicName
    version: int
    numbers: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class ReplicatedNamespace:
    """A namespace that several clusters have.

    Attributes:
        name: the declared name.
        clusters: the clusters that the registries name.
        unknown: the clusters without a target, or whose target did not answer.
        differing: the versions with different numbers.
    """

    name: NamespaceName
    clusters: tuple[str, ...]
    unknown: tuple[str, ...]
    differing: tuple[NumbersOfClusters, ...]


def replicated(reports: Iterable[DriftReport]) -> tuple[ReplicatedNamespace, ...]:
    """Return the replicated namespaces that the targets of these reports have, sorted by name.

    A target counts as the cluster that the project file names.
    """
    clusters: dict[NamespaceName, set[str]] = {}
    reports_by_cluster: dict[NamespaceName, dict[str, DriftReport]] = {}
    for report in reports:
        for name, namespace in report.registered.namespaces.items():
            if len(namespace.clusters) > 1 and name in report.origin.declared:
                declared = report.origin.declared[name]
                clusters.setdefault(declared, set()).update(namespace.clusters)
                if report.origin.cluster in namespace.clusters:
                    reports_by_cluster.setdefault(declared, {})[report.origin.cluster] = report
    return tuple(
        ReplicatedNamespace(
            name,
            tuple(sorted(cluster_names)),
            tuple(sorted(cluster_names - reports_by_cluster.get(name, {}).keys())),
            _find_differing_numbers(name, reports_by_cluster.get(name, {})),
        )
        for name, cluster_names in sorted(clusters.items())
    )


def _find_differing_numbers(
    namespace: NamespaceName, reports: Mapping[str, DriftReport]
) -> tuple[NumbersOfClusters, ...]:
    numbers: dict[TopicName, dict[str, dict[int, int]]] = {}
    for cluster, report in sorted(reports.items()):
        for name, topic in report.git.topics.items():
            declared = report.origin.declared_topic(name)
            if declared.namespace_name == namespace and not topic.deleted:
                git = Generations(report.git.versions(name))
                numbers_by_version: dict[int, int] = {}
                for entry in report.registered.versions(name):
                    if git_version := git.find(entry):
                        numbers_by_version.setdefault(git_version.number, entry.number)
                numbers.setdefault(declared, {})[cluster] = numbers_by_version
    differing = []
    for topic_name, by_cluster in sorted(numbers.items()):
        for version in sorted(
            {version for numbers_of_cluster in by_cluster.values() for version in numbers_of_cluster}
        ):
            row = {cluster: numbers_of_cluster.get(version) for cluster, numbers_of_cluster in by_cluster.items()}
            if len({number for number in row.values() if number is not None}) > 1:
                differing.append(NumbersOfClusters(topic_name, version, row))
    return tuple(differing)


def select_namespaces_of_target(
    report: DriftReport, namespaces: Sequence[ReplicatedNamespace]
) -> list[ReplicatedNamespace]:
    """Return the replicated namespaces that the target of the report has."""
    declared_names = {report.origin.declared.get(name) for name in report.registered.namespaces}
    return [namespace for namespace in namespaces if namespace.name in declared_names]


def describe_replication(namespaces: Sequence[ReplicatedNamespace]) -> list[tuple[int, str]]:
    """Return the lines about replicated namespaces, each with its indent level below the line of its namespace."""
    lines = []
    for namespace in namespaces:
        lines.append((0, f"{namespace.name} is replicated: {', '.join(namespace.clusters)}"))
        if namespace.unknown:
            names = ", ".join(namespace.unknown)
            lines.append((1, f"not compared: {names} (no target that answered has that `cluster`)"))
        for difference in namespace.differing:
            numbers = ", ".join(
                f"{cluster} {'-' if number is None else f'v{number}'}" for cluster, number in difference.numbers.items()
            )
            lines.append((1, f"{difference.topic}: Git's v{difference.version} is {numbers}"))
    return lines
