"""A real Pulsar, through its admin REST API.

connection   requests: the pool, what is tried again, redirects to the owning broker
credentials  what proves who asks: bearer tokens, OAuth 2.0 client credentials, client certificates
answers      what a broker's answers say: its words, and whether the same request can succeed later
namespaces topics schemas    the endpoints, one kind of thing a module
registry     `Registry` over all of them
"""

from schemactl.registry.pulsar.credentials import Credentials
from schemactl.registry.pulsar.registry import PulsarRegistry

__all__ = ["Credentials", "PulsarRegistry"]
