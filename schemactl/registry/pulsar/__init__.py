"""A real Pulsar, through its admin REST API."""

from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.registry import PulsarRegistry

__all__ = ["Credentials", "PulsarRegistry"]
