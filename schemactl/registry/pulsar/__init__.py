"""Access a Pulsar cluster through its admin REST API."""
