"""The module path of a topic in the generated package: `persistent://shop/sales/order-lines` is `shop.sales.order_lines`."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from typing import Final

from schemactl.core.names import TopicName

RUNTIME: Final = "_runtime"
"""What a package calls the module that it imports its run-time from, and the folder of one that it carries."""

SCHEMAS: Final = "schemas"
"""The folder beside modules that holds their schemas."""

CLASSES: Final = "classes"
"""The folder beside modules that holds their classes."""

_MAX_LENGTH: Final = 200
"""File systems take names of 255 bytes, and something may come behind."""

_OF_THE_PACKAGE: Final = frozenset({"topic", "finder", "annotations"})
"""Names in the package's own `__init__`, which a folder of that name would take the place of once it is imported."""


def module_paths(topics: Iterable[TopicName]) -> Mapping[TopicName, tuple[str, str, str]]:
    """For each topic its module's path below the package: tenant, namespace, topic, each made a Python name.

    Letters become small, for many file systems do not tell `Orders` from `orders`, and other characters `_`; keywords get
    a `_` behind, digits one in front. Where topics would share a module, one whose name needs no change keeps it, and the
    others end in the first digits of a hash of their full names, so that one topic more never moves the others. No two
    topics have one module: a name that ends in a hash and that another topic's has, too, gives way to one with another hash.
    """
    paths = {
        topic: (
            _part(topic.tenant, _OF_THE_PACKAGE),
            _part(topic.namespace),
            _part(topic.topic, {CLASSES}),
        )
        for topic in topics
    }
    sharing = Counter(paths.values())
    # Also those that nobody keeps: what a topic is called hangs on as few others as can be.
    taken = set(paths.values())
    for topic in sorted(paths, key=str):
        tenant, namespace, name = path = paths[topic]
        unchanged = (topic.tenant, topic.namespace, topic.topic) == path
        if sharing[path] > 1 and not (unchanged and topic.domain == "persistent"):
            hashed = ((tenant, namespace, f"{name}_{_hash(topic, attempt)}") for attempt in count())
            paths[topic] = next(free for free in hashed if free not in taken)
            taken.add(paths[topic])
    return paths


def is_importable(name: str) -> bool:
    """Whether a package can be called `name`: identifiers with dots between them."""
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split("."))


def _part(name: str, taken: Collection[str] = ()) -> str:
    part = re.sub(r"[^a-z0-9_]", "_", name.lower())[:_MAX_LENGTH]
    if part[0].isdigit():
        part = f"_{part}"
    # Names with two underscores around them mean something to Python.
    if keyword.iskeyword(part) or part in (RUNTIME, *taken) or re.fullmatch(r"__.*__", part):
        part += "_"
    return part


def _hash(topic: TopicName, attempt: int) -> str:
    """Eight digits; other ones at each attempt."""
    text = f"{topic}\n{attempt}" if attempt else str(topic)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
