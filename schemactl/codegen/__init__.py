"""Code generation from schema definitions: Spark types, and the text of a package."""
