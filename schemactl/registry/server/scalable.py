"""Serve the endpoints of ScalableTopics, since Pulsar 5.0: list, create, show and delete scalable topics.

A scalable topic has one segment here, and no messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response

from schemactl.registry.server.http import AdminCall, Endpoint, RestError, respond_empty, respond_json

_SEGMENT: Final[Mapping[str, Any]] = {
    "segmentId": 0,
    "hashRange": {"start": 0, "end": 65535},
    "state": "ACTIVE",
    "parentIds": [],
    "childIds": [],
    "createdAtEpoch": 0,
    "sealedAtEpoch": -1,
    "createdAtMs": 0,
    "sealedAtMs": -1,
    "entryBucketSplits": [16384, 32768, 49152],
    "sealed": False,
    "active": True,
    "root": True,
    "leaf": True,
    "legacy": False,
}
"""The only segment of a topic that was never split (SegmentInfo)."""


def list_endpoints() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints by path below /admin/v2 and method."""
    return {
        "/scalable/{tenant}/{namespace}": {"GET": list_topics},
        "/scalable/{tenant}/{namespace}/{topic}": {"GET": get_layout, "PUT": create, "DELETE": delete},
    }


def list_topics(call: AdminCall) -> Response:
    """GET scalable/{tenant}/{namespace}: empty for a namespace that does not exist."""
    return respond_json(sorted(map(str, call.registry.list_scalable_topics([call.namespace]))))


def get_layout(call: AdminCall) -> Response:
    """GET {topic}: its segments."""
    _require_topic(call)
    segments = {"epoch": 0, "nextSegmentId": 1, "segments": {"0": _SEGMENT}}
    return respond_json({**segments, "properties": {}, "deleted": False})


def create(call: AdminCall) -> Response:
    """PUT {topic}."""
    with call.registry.lock():
        call.require_namespace()
        if call.registry.topic(call.topic) is not None:
            raise RestError(409, f"Scalable topic already exists: {call.topic}")
        call.registry.create_topic(call.topic, None)
    return respond_empty()


def delete(call: AdminCall) -> Response:
    """DELETE {topic}: delete the topic and its schemas."""
    with call.registry.lock():
        _require_topic(call)
        call.registry.delete_topic(call.topic)
    return respond_empty()


def _require_topic(call: AdminCall) -> None:
    if call.registry.topic(call.topic) is None:
        raise RestError(404, f"Scalable topic not found: {call.topic}")
