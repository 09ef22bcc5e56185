"""The rows of Pulsar's rules on clients that connect: `admit` names the one behind each decision.

ServerCnx.handleProducer, ServerCnx.handleSubscribe and AbstractTopic are their source; tests compare the table with real brokers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_SOURCE: Final = "https://github.com/apache/pulsar/blob/master/pulsar-broker/src/main/java/org/apache/pulsar/broker/service"


class ConnectRule(NamedTuple):
    """A row: which client connects where, and what the broker does."""

    when: str
    then: str
    class_: str

    @property
    def source(self) -> str:
        """The address of the class that decides it."""
        return self.class_ if "://" in self.class_ else f"{_SOURCE}/{self.class_}.java"


CONNECT_RULES: Final = {
    "P1": ConnectRule("a producer without schema, on a topic without schema", "let in; its messages carry no version", "ServerCnx"),
    "P2": ConnectRule("a producer without schema, on a topic with one, where validation is not enforced", "let in; its messages carry no version", "ServerCnx"),
    "P3": ConnectRule("a producer without schema, on a topic with one, where validation is enforced", "rejected", "ServerCnx"),
    "P4": ConnectRule("a producer whose schema equals a version, any of them", "let in; its messages carry that version", "AbstractTopic"),
    "P5": ConnectRule("a producer with a schema, on a topic without one, where clients register schemas", "let in; its schema is registered", "AbstractTopic"),
    "P6": ConnectRule("a producer with a new schema that the strategy accepts, where clients register schemas", "let in; its schema is registered", "AbstractTopic"),
    "P7": ConnectRule("a producer with a new schema that the strategy rejects", "rejected", "schema/SchemaRegistryServiceImpl"),
    "P8": ConnectRule("a producer with a new schema, where clients register none", "rejected", "AbstractTopic"),
    "P9": ConnectRule("a producer with an invalid schema", "rejected", "schema/validator/SchemaRegistryServiceWithSchemaDataValidator"),
    "P10": ConnectRule("a producer with a schema that the broker fails to compare, its own or a stored one being bad", "an unknown error, which clients repeat", "BrokerServiceException"),
    "C1": ConnectRule("a consumer or reader without schema", "let in, nothing is looked at", "ServerCnx"),
    "C2": ConnectRule("a consumer or reader that takes the topic's own schema (AUTO_CONSUME)", "let in, nothing is looked at", "ServerCnx"),
    "C3": ConnectRule("a consumer or reader with a schema, on an idle topic without one, where clients register schemas", "let in; its schema is registered", "persistent/PersistentTopic"),
    "C4": ConnectRule("a consumer or reader with a schema, on an idle topic without one, where clients register none", "rejected", "AbstractTopic"),
    "C5": ConnectRule("a consumer or reader with an invalid schema, on an idle topic without one", "let in; nothing is registered", "persistent/PersistentTopic"),
    "C6": ConnectRule("a consumer or reader with a schema that reads what the strategy asks for, the latest version or all", "let in; nothing is registered", "schema/SchemaRegistryServiceImpl"),
    "C7": ConnectRule("a consumer or reader with a schema that does not read what the strategy asks for", "rejected", "schema/SchemaRegistryServiceImpl"),
    "C8": ConnectRule("a consumer or reader with a schema, on a topic without one that is in use, under ALWAYS_COMPATIBLE", "let in; nothing is registered", "AbstractTopic"),
    "C9": ConnectRule("a consumer or reader with a schema, on a topic without one that is in use, under another strategy", "rejected", "AbstractTopic"),
    "C10": ConnectRule("a consumer or reader with a schema that the broker fails to compare, its own or a stored one being bad", "an unknown error, which clients repeat", "BrokerServiceException"),
    "J1": ConnectRule("Java's client with AUTO_PRODUCE_BYTES or AUTO_CONSUME, on a topic whose schema it cannot use", "the client itself throws; no broker is asked", "https://github.com/apache/pulsar/blob/master/pulsar-client/src/main/java/org/apache/pulsar/client/impl/PulsarClientImpl.java"),
}  # fmt: skip
"""The rows by their ids: of producers, of consumers and readers, and of Java's client."""
