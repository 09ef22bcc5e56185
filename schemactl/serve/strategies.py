"""The names of strategies in requests and answers. What Pulsar does not know as one, it takes for none."""

from __future__ import annotations

from typing import Any, Final

from schemactl.model import CompatibilityStrategy
from schemactl.serve.jackson import constant

_S = CompatibilityStrategy
_DATA: Final = "org.apache.pulsar.common.policies.data"

_AUTO_UPDATE: Final = {
    "AutoUpdateDisabled": _S.ALWAYS_INCOMPATIBLE,
    "Backward": _S.BACKWARD,
    "Forward": _S.FORWARD,
    "Full": _S.FULL,
    "AlwaysCompatible": _S.ALWAYS_COMPATIBLE,
    "BackwardTransitive": _S.BACKWARD_TRANSITIVE,
    "ForwardTransitive": _S.FORWARD_TRANSITIVE,
    "FullTransitive": _S.FULL_TRANSITIVE,
}
"""SchemaCompatibilityStrategy.fromAutoUpdatePolicy, in the order of SchemaAutoUpdateCompatibilityStrategy's ordinals."""

AUTO_UPDATE_NAMES: Final = {strategy: name for name, strategy in _AUTO_UPDATE.items()}
"""From a strategy to the deprecated policy that means it."""


def read_strategy(value: Any) -> CompatibilityStrategy:
    """The strategy in a request's JSON; UNDEFINED for null and for what is no strategy's name."""
    # The order of the ordinals is the same, too.
    name = constant(value, tuple(_S), f"{_DATA}.SchemaCompatibilityStrategy")
    return _S(name) if name else _S.UNDEFINED


def read_auto_update(value: Any) -> CompatibilityStrategy | None:
    """The strategy that a deprecated auto-update policy in a request's JSON means; None for null and unknown names."""
    name = constant(value, tuple(_AUTO_UPDATE), f"{_DATA}.SchemaAutoUpdateCompatibilityStrategy")
    return _AUTO_UPDATE[name] if name else None
