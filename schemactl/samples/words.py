"""What a field of a name plausibly holds: texts and numbers."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_FIRST: Final = ("Ada", "Chinua", "Grace", "Hedy", "Ibn", "Mary", "Noor", "Sofia", "Yuki", "Zoë")
_LAST: Final = (
    "Achebe",
    "Hopper",
    "Inayat",
    "Kovalevska",
    "Lamarr",
    "Lovelace",
    "Sina",
    "Somerville",
    "Šimić",
)
_CITIES: Final = ("Accra", "Berlin", "Bogotá", "Kyoto", "Lagos", "Oslo", "Pune", "Tallinn", "Zürich")
_THINGS: Final = (
    "apple",
    "bicycle",
    "coat",
    "desk",
    "easel",
    "flute",
    "globe",
    "hammer",
    "inkwell",
    "kettle",
)
_COUNTRIES: Final = ("BR", "DE", "EE", "GB", "IN", "JP", "NG", "US")


def _parts(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)] or [""]


def _uuid(random: Random) -> str:
    return str(uuid.UUID(int=random.getrandbits(128), version=4))


def _moment(random: Random) -> str:
    at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(365 * 86_400))
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _person(random: Random) -> str:
    return f"{random.choice(_FIRST)} {random.choice(_LAST)}"


def _phrase(random: Random) -> str:
    return f"{random.randint(2, 9)} {random.choice(_THINGS)}s for {random.choice(_FIRST)}"


def _one_of(*words: str) -> Callable[[Random], str]:
    return lambda random: random.choice(words)


_PHRASES: Final = (
    "comment",
    "description",
    "message",
    "note",
    "remark",
    "subject",
    "summary",
    "text",
    "title",
)

_TEXTS: Final[Mapping[str, Callable[[Random], str]]] = {
    **dict.fromkeys(("id", "uuid", "guid", "token"), _uuid),
    **dict.fromkeys(("at", "date", "time", "timestamp"), _moment),
    **dict.fromkeys(("customer", "name", "user", "owner", "author"), _person),
    **dict.fromkeys(_PHRASES, _phrase),
    **dict.fromkeys(("email", "mail"), lambda random: f"{random.choice(_THINGS)}@example.com"),
    **dict.fromkeys(
        ("url", "uri", "link", "href"), lambda random: f"https://example.com/{random.choice(_THINGS)}"
    ),
    **dict.fromkeys(
        ("code", "sku", "number"), lambda random: f"{random.choice(_COUNTRIES)}-{random.randrange(10_000):04}"
    ),
    "address": lambda random: f"{random.randint(1, 99)} Main Street, {random.choice(_CITIES)}",
    "city": _one_of(*_CITIES),
    "country": _one_of(*_COUNTRIES),
    "currency": _one_of("EUR", "GBP", "INR", "JPY", "USD"),
    "first": _one_of(*_FIRST),
    "host": lambda random: f"{random.choice(_THINGS)}.example.com",
    "ip": lambda random: f"192.0.2.{random.randint(1, 254)}",
    "language": _one_of("de", "en", "ja", "pt"),
    "last": _one_of(*_LAST),
    "phone": lambda random: f"+1 202 555 01{random.randrange(100):02}",
    "status": _one_of("NEW", "PAID", "SENT", "DONE"),
    "street": lambda random: f"{random.randint(1, 99)} Main Street",
}
"""By a word of the field's name: the last one that is here counts."""

_WHOLE: Final[Mapping[str, tuple[int, int]]] = {
    **dict.fromkeys(("at", "time", "timestamp", "ms", "millis"), (1_735_689_600_000, 1_767_225_600_000)),
    **dict.fromkeys(("count", "quantity", "qty", "size"), (1, 20)),
    "age": (18, 90),
    "id": (1, 100_000),
    "percent": (0, 100),
    "port": (1024, 65_535),
    "year": (2020, 2030),
}

_REAL: Final[Mapping[str, tuple[float, float]]] = {
    **dict.fromkeys(("lat", "latitude"), (-90.0, 90.0)),
    **dict.fromkeys(("lon", "lng", "longitude"), (-180.0, 180.0)),
    **dict.fromkeys(("rate", "ratio", "share", "probability"), (0.0, 1.0)),
    "percent": (0.0, 100.0),
    "temperature": (-20.0, 40.0),
}


def text_of(name: str, random: Random) -> str:
    """Return a text for a field of that name."""
    parts = _parts(name)
    if parts[-1] == "name" and parts[0] in ("first", "last"):
        parts = parts[:1]
    found = next((_TEXTS[part] for part in reversed(parts) if part in _TEXTS), None)
    return found(random) if found else random.choice(_THINGS)


def number_of(name: str, random: Random, *, bits: int, whole: bool) -> int | float:
    """Return a number for a field of that name, which a signed integer of so many bits, or a float, holds."""
    parts = [*reversed(_parts(name))]
    if not whole:
        low, high = next((_REAL[part] for part in parts if part in _REAL), (0.0, 1000.0))
        return round(random.uniform(low, high), 4 if high <= 1 else 2)
    first, last = next((_WHOLE[part] for part in parts if part in _WHOLE), (0, 1000))
    most = 2 ** (bits - 1) - 1
    return random.randint(min(first, most), min(last, most))
