"""The settings of model.SETTINGS over a cluster's admin API, and policies that take a moment to be in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from schemactl.core.errors import RegistryError
from schemactl.core.policies import SETTINGS, CompatibilityStrategy, Policies
from schemactl.registry.pulsar.connection import AdminConnection

_VISIBLE_WITHIN_S: Final = 15.0


def among(shown: Mapping[str, Any], asked: Iterable[str], whose: str) -> dict[str, Any]:
    """Return the settings `asked` for that are set among the values `shown`; raise RegistryError for a value of another kind."""
    found = {}
    for name in asked:
        if (value := shown.get(name)) is not None:
            try:
                found[name] = SETTINGS[name].normal(value)
            except ValueError as error:
                raise RegistryError(
                    f"{whose}: the registry does not answer as Pulsar does: {error}",
                    fix="check that `registry` of the target is the address of Pulsar's admin API",
                ) from None
    return found


def of_topic(connection: AdminConnection, path: str, asked: Iterable[str]) -> dict[str, Any]:
    """Return the settings `asked` for that the topic at `path` has of its own; none is set on a topic that does not exist."""
    shown = {
        name: connection.get(f"{path}/{SETTINGS[name].topic_path}", object, absent=None)
        for name in asked
        if SETTINGS[name].topic_path
    }
    return among(shown, shown, path)


def put(
    connection: AdminConnection, path: str, policies: Policies, *, of: str, is_topic: bool = False
) -> None:
    """Set each setting among `policies` on the namespace or topic at `path`; one that is UNDEFINED is removed."""
    for name, value in policies.settings.items():
        row = SETTINGS[name]
        where = f"{path}/{row.topic_path if is_topic else row.path}"
        if value == CompatibilityStrategy.UNDEFINED:
            connection.change("DELETE", where, of=of)
        elif is_topic and row.topic_query:
            connection.change("POST", f"{where}?{row.topic_query}={value}", of=of)
        else:
            connection.change("POST" if is_topic else row.method, where, value, of=of)


def of_brokers(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the brokers' values for settings that no level sets, as far as their configuration is `known`."""
    found = {}
    for name, row in SETTINGS.items():
        if isinstance(row.broker, str):
            value = _typed(known.get(row.broker), row.default)
        else:
            value = {
                part: _typed(next((known[key] for key in keys if known.get(key)), None), row.default[part])
                for part, keys in row.broker.items()
            }
        if row.shape.fits(value):
            found[name] = value
    return found


def broker_keys() -> list[str]:
    """Return the names of the brokers' own settings that `of_brokers` reads."""
    found: list[str] = []
    for row in SETTINGS.values():
        found += (
            [row.broker]
            if isinstance(row.broker, str)
            else [key for keys in row.broker.values() for key in keys]
        )
    return [key for key in found if key]


def _typed(text: str | None, like: object) -> object:
    """Return a value of the brokers' configuration, which is given as text, in the setting's type; None if it has none."""
    if text is None or isinstance(like, str):
        return text
    if isinstance(like, bool):
        return text == "true"
    return int(text) if text.removeprefix("-").isdecimal() else None


def wait_until_in_force(what: str, policies: Policies, read_back: Callable[[], Policies]) -> None:
    """Wait until the policies that are not None can be read back; raise RegistryError after a time limit.

    A broker answers 204 to a strategy that it does not know, and unsets it; and other brokers learn of a change by a
    message. So an answer 204 is not enough.
    """
    wanted = policies.managed()
    end_s, delay_s = time.monotonic() + _VISIBLE_WITHIN_S, 0.02
    while True:
        now = read_back()
        # A setting that was removed is not there.
        shown = {
            name: CompatibilityStrategy.UNDEFINED if (held := now.get(name)) is None else held
            for name in wanted
        }
        differing = ", ".join(f"{name}: {shown[name]}" for name in wanted if shown[name] != wanted[name])
        if not differing:
            return
        if time.monotonic() + delay_s > end_s:
            raise RegistryError(
                f"{what}: set, but {_VISIBLE_WITHIN_S:.0f} s later the registry still shows {differing}"
            )
        time.sleep(delay_s)
        delay_s = min(delay_s * 2, 1.0)
