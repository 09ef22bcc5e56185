"""The embedded registry behind Pulsar's admin REST paths, with a broker's statuses, messages and bodies.

What schemas do not need is left out: messages, subscriptions, other policies, authentication. The reason phrase of a status
line is HTTP's own (ASGI has no place for another); Pulsar's text is in the body.
"""

from schemactl.serve.app import build_app
from schemactl.serve.guard import host_name, is_loopback
from schemactl.serve.server import serve

__all__ = ["build_app", "host_name", "is_loopback", "serve"]
