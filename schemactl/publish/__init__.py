"""What other people and tools read: the catalog site, exports, the usage graph, sample messages."""
