"""How much memory Avro's Java reader allocates for sizes that a damaged message claims.

A string of a few bytes can say that it has two billion: Java's Avro makes room for them before it looks, and a JVM that runs out
of memory takes the whole application with it. Avro has limits against that, off unless asked for when a JVM
starts (`org.apache.avro.SystemLimitException`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LIMITS: Final = {
    "org.apache.avro.limits.bytes.maxLength": 2**24,
    "org.apache.avro.limits.string.maxLength": 2**24,
    "org.apache.avro.limits.collectionItems.maxLength": 2**23,
}
"""Bytes, bytes and items: more than a message of Pulsar's default size (5 MiB) can hold."""

AVRO_LIMITS: Final = " ".join(f"-D{name}={limit}" for name, limit in _LIMITS.items())
"""Java options that set limits for values, for `spark.executor.extraJavaOptions`."""


def ensure_limited(session: SparkSession) -> bool:
    """All JVMs that read messages have such limits now; False: they have not, and cannot be given them.

    Only a local session's own JVM can be told so late, and is unless it has limits; executors must have been started with
    them.
    """
    if re.fullmatch(r"local(\[.*\])?", session.conf.get("spark.master", "") or ""):
        return _limit(session) or _are_in(session, "spark.driver")
    return _are_in(session, "spark.executor")


def _are_in(session: SparkSession, whose: str) -> bool:
    options = " ".join(
        session.conf.get(f"{whose}.{which}JavaOptions", "") or "" for which in ("default", "extra")
    )
    return all(f"-D{name}=" in options for name in _LIMITS)


def _limit(session: SparkSession) -> bool:
    try:
        jvm: Any = session._jvm  # noqa: SLF001  PySpark has no other way to its JVM
    except PySparkException:
        # Spark Connect: the JVM is elsewhere.
        return False
    system = jvm.java.lang.System
    unset = {name: limit for name, limit in _LIMITS.items() if system.getProperty(name) is None}
    for name, limit in unset.items():
        system.setProperty(name, str(limit))
    if unset:
        # Whether or not Avro was in use before; it has no public way.
        limits = jvm.java.lang.Class.forName("org.apache.avro.SystemLimitException")
        reset = limits.getDeclaredMethod("resetLimits", _array(session, "Class"))
        reset.setAccessible(True)
        reset.invoke(None, _array(session, "Object"))
    return True


def _array(session: SparkSession, name: str) -> Any:
    """Make an empty Java array."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001  as above
    return gateway.new_array(getattr(gateway.jvm.java.lang, name), 0)
