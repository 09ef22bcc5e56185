"""Choose the module of each topic in a package: `persistent://shop/sales/order-lines` is `shop.sales.order_lines`."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count
from typing import Final

from schemactl.core.names import TopicName

RUNTIME: Final = "_runtime"
"""The module from which a package imports its run-time, and the folder of a run-time in the package."""

SCHEMAS: Final = "schemas"
"""The folder with the schemas of the modules next to it."""

CLASSES: Final = "classes"
"""The folder with the classes of the modules next to it."""

_MAX_LENGTH: Final = 200
"""File systems allow names of 255 bytes, and a hash or a suffix may follow."""

_PACKAGE_NAMES: Final = frozenset({"topic", "finder", "annotations"})
"""Names in the package's `__init__`, which a folder of the same name would replace once it is imported."""

_FOLDER_NAMES: Final = frozenset({CLASSES})
"""Names that a namespace's folder has besides its topics."""


def module_paths(topics: Iterable[TopicName]) -> Mapping[TopicName, tuple[str, str, str]]:
    """Map each topic to the path of its module below the package: tenant, namespace and topic, as Python names.

    Letters become lower case, since many file systems do not distinguish `Orders` from `orders`, and other characters become `_`;
    keywords get a `_` at the end, digits one at the start. If topics would share a module, a topic whose name is unchanged keeps it,
    and the others end in a hash of their full names, so that a new topic never moves the others. If a name with a hash is taken by
    another topic, another hash is used, so that no two topics share a module.
    """
    paths = {
        topic: (
            _to_python_name(topic.tenant, _PACKAGE_NAMES),
            _to_python_name(topic.namespace),
            _to_python_name(topic.topic, _FOLDER_NAMES),
        )
        for topic in topics
    }
    topics_by_path = Counter(paths.values())
    # Includes paths that no topic keeps, so that the path of a topic depends on as few other topics as possible.
    taken = set(paths.values())
    for topic in sorted(paths, key=str):
        tenant, namespace, name = path = paths[topic]
        is_unchanged = (topic.tenant, topic.namespace, topic.topic) == path
        if topics_by_path[path] > 1 and not (is_unchanged and topic.domain == "persistent"):
            texts = (f"{topic}\n{attempt}" if attempt else str(topic) for attempt in count())
            hashes = (hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts)
            candidates = ((tenant, namespace, f"{name}_{digits}") for digits in hashes)
            paths[topic] = next(candidate for candidate in candidates if candidate not in taken)
            taken.add(paths[topic])
    return paths


def is_importable(name: str) -> bool:
    """Return whether a package can have this name, which consists of identifiers with dots between them."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split("."))


@cache
def _to_python_name(name: str, reserved: frozenset[str] = frozenset()) -> str:
    part = re.sub(r"[^a-z0-9_]", "_", name.lower())[:_MAX_LENGTH]
    if part[0].isdigit():
        part = f"_{part}"
    # Names in double underscores have a meaning in Python.
    if keyword.iskeyword(part) or part in (RUNTIME, *reserved) or re.fullmatch(r"__.*__", part):
        part += "_"
    return part
