"""From an Avro schema's text to the model, refusing what Java's Schema.Parser refuses in each Pulsar release."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemactl.formats.avro.schema import Schema
    from schemactl.model import Release


def parse(text: bytes | str, release: Release, *, validate_defaults: bool = False) -> Schema:
    """The schema in `text`, as the Avro inside that Pulsar release reads it.

    Raises:
        InvalidSchema: that Avro refuses the text.
    """
    raise NotImplementedError
