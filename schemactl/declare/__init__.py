"""The files of the repository: YAML and definitions in; a catalog, or all their problems, out."""
