"""Answers of a Pulsar broker's schema registry, for each release, including its bugs.

VersionList.put             an upload, or a producer that registers its schema
VersionList.test            the compatibility endpoint
VersionList.check_consumer  a consumer with a schema that connects to a topic with a schema
find_version                the number of a version with the same bytes
find_unreadable_version     the version that no upload can follow
admit                       a connecting client: the decision, and the version that is registered
"""
