"""Publish schemas for other people and tools: the catalog site, exports, the usage graph, sample messages."""
