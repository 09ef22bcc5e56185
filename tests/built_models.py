"""The models of declarations, built, so that a process which is forked after the import of this module does not build them."""

from __future__ import annotations

from schemactl.declare.models import MappingShape


def _build_models(base: type[MappingShape]) -> None:
    for model in base.__subclasses__():
        model.model_rebuild()
        _build_models(model)


_build_models(MappingShape)
