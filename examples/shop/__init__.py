"""A small shop: three namespaces, sixteen topics, and the Git history that made them."""
