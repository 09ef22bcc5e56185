"""The names of strategies in requests and answers. What Pulsar does not know as one, it takes for none."""

from __future__ import annotations

from typing import Any, Final

from schemactl.model import CompatibilityStrategy
from schemactl.registry.base import AUTO_UPDATE_STRATEGIES
from schemactl.serve.jackson import constant

_S = CompatibilityStrategy
_DATA: Final = "org.apache.pulsar.common.policies.data"

AUTO_UPDATE_NAMES: Final = {strategy: name for name, strategy in AUTO_UPDATE_STRATEGIES.items()}
"""From a strategy to the deprecated policy that means it."""


def read_strategy(value: Any) -> CompatibilityStrategy:
    """The strategy in a request's JSON; UNDEFINED for null and for what is no strategy's name."""
    # The order of the ordinals is the same, too.
    name = constant(value, tuple(_S), f"{_DATA}.SchemaCompatibilityStrategy")
    return _S(name) if name else _S.UNDEFINED


def read_auto_update(value: Any) -> CompatibilityStrategy | None:
    """The strategy that a deprecated auto-update policy in a request's JSON means; None for null and unknown names."""
    name = constant(value, tuple(AUTO_UPDATE_STRATEGIES), f"{_DATA}.SchemaAutoUpdateCompatibilityStrategy")
    return AUTO_UPDATE_STRATEGIES[name] if name else None
