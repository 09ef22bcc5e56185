"""The endpoints of the settings in model.SETTINGS, of namespaces and of topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from schemactl.core.policies import REPLICATION, SETTINGS, CompatibilityStrategy, Policies, Setting
from schemactl.serve import namespaces, topics
from schemactl.serve.answers import RestError, nothing, ok
from schemactl.serve.call import AdminCall, Endpoint
from schemactl.serve.cluster import NAME
from schemactl.serve.jackson import Number, read
from schemactl.serve.topics import need_whole

UNDEFINED = CompatibilityStrategy.UNDEFINED


def of_namespaces() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints below a namespace, by path and method."""
    return {f"/{row.path}": _OfNamespace(row).methods() for row in SETTINGS.values()}


def of_topics() -> dict[str, Mapping[str, Endpoint]]:
    """Return the endpoints below a topic, by path and method."""
    return {f"/{row.topic_path}": _OfTopic(row).methods() for row in SETTINGS.values() if row.topic_path}


class _OfNamespace:
    """The endpoints of one setting of a namespace."""

    def __init__(self, row: Setting) -> None:
        self._row = row

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        removed = {"DELETE": self.remove} if self._row.removable else {}
        return {"GET": self.get, self._row.method: self.put, **removed}

    def get(self, call: AdminCall) -> Response:
        """GET: an empty body where the namespace does not set it; it is always on some cluster."""
        found = call.need_namespace().policies.settings.get(self._row.name)
        if found is None and self._row.name == REPLICATION:
            found = [NAME]
        return nothing(200) if found is None else ok(found)

    def put(self, call: AdminCall) -> Response:
        """POST or PUT."""
        return self._set(call, self._value(read(call.body)))

    def remove(self, call: AdminCall) -> Response:
        """DELETE."""
        return self._set(call, UNDEFINED)

    def _set(self, call: AdminCall, value: Any) -> Response:
        return namespaces.set_policies(call, self._policies(value))

    def _policies(self, value: Any) -> Policies:
        return Policies(settings={self._row.name: value})

    def _value(self, body: Any) -> Any:
        try:
            value = self._row.normal(_plain(body))
        except ValueError as error:
            raise RestError(412, str(error)) from None
        if wrong := self._row.wrong(value):
            raise RestError(400, wrong)
        return value


class _OfTopic(_OfNamespace):
    """The endpoints of one setting of a topic."""

    def methods(self) -> dict[str, Endpoint]:
        """Return the endpoints by method."""
        return {"GET": self.get, "POST": self.put, "DELETE": self.remove}

    def get(self, call: AdminCall) -> Response:
        """GET: an empty body where the topic does not set it; with `applied`, the value in force."""
        name = self._row.name
        found = need_whole(call).policies.settings.get(name)
        if found is None and call.flag("applied"):
            namespace = call.registry.need_namespace(call.topic.namespace_name)
            found = namespace.policies.settings.get(name, call.registry.defaults.settings.get(name))
        return nothing(200) if found is None else ok(found)

    def put(self, call: AdminCall) -> Response:
        """POST."""
        query = self._row.topic_query
        body = call.query.get(query, "").encode() if query else call.body
        return self._set(call, self._value(read(body)))

    def _set(self, call: AdminCall, value: Any) -> Response:
        return topics.set_policies(call, self._policies(value))


def _plain(value: Any) -> Any:
    """Return a JSON value with `int` for its whole numbers."""
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
