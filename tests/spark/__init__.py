"""A package, so that its conftest does not clash with the others."""
