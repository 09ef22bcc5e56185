"""Serve the embedded registry at Pulsar's admin REST paths, with a broker's statuses, messages and bodies.

Messages, subscriptions, other policies and authentication are left out. The reason phrase of a status line is HTTP's own,
because ASGI does not support another; Pulsar's text is in the body.
"""
