"""Declared files: YAML and definitions in, a catalog or all their problems out."""
