"""The first messages of a topic on a cluster, read without a subscription that stays."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from typing import Any

from schemactl.checks.samples import SampleMessage
from schemactl.codec.pulsar_message import number_of, pair_key, payload_of
from schemactl.core.errors import SchemactlError


def pulled(
    url: str, topic: str, *, pairs: bool, token: str | None, timeout_s: float
) -> Iterator[SampleMessage]:
    """Yield a topic's messages from its beginning, by the cluster's version numbers, until it ends or the time is up.

    Args:
        url: the brokers', `pulsar://HOST:6650` or `pulsar+ssl://...`.
        topic: its full name there.
        pairs: the messages are SEPARATED pairs, whose keys count.
        token: to prove who asks.
        timeout_s: for everything together.

    Raises SchemactlError: pulsar-client is not installed, or the cluster does not answer.
    """
    try:
        pulsar: Any = import_module("pulsar")
    except ImportError:
        raise SchemactlError(
            "this needs pulsar-client, which is not installed", fix='pip install "pulsar-schemactl[pulsar]"'
        ) from None
    until = time.monotonic() + timeout_s
    try:
        client = pulsar.Client(
            url,
            authentication=None if token is None else pulsar.AuthenticationToken(token),
            operation_timeout_seconds=max(1, round(timeout_s)),
            # It logs to standard output, where the messages go.
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
        )
        with closing(client):
            reader = client.create_reader(
                topic, pulsar.MessageId.earliest, subscription_role_prefix="schemactl"
            )
            while (left_s := until - time.monotonic()) > 0 and reader.has_message_available():
                try:
                    message = reader.read_next(max(1, round(left_s * 1000)))
                except pulsar.Timeout:
                    return
                key = pair_key(message.partition_key()) if pairs else None
                yield SampleMessage(payload_of(message), number_of(message._message), key)  # noqa: SLF001  has no wrapper
    except (pulsar.PulsarException, ValueError) as error:
        raise SchemactlError(f"cannot read {topic} at {url}: {error}") from None
