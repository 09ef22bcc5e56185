"""A real Pulsar, through its admin REST API."""
