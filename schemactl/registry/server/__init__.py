"""The embedded registry behind Pulsar's admin REST paths, with a broker's statuses, messages and bodies.

What schemas do not need is left out: messages, subscriptions, other policies, authentication. The reason phrase of a status
line is HTTP's own (ASGI has no place for another); Pulsar's text is in the body.
"""
