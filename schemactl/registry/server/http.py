"""Requests as Jackson reads them, responses as Jetty and Jersey write them.

Each function raises BadRequest for a value that Jackson rejects.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NoReturn

from starlette.requests import Request
from starlette.responses import Response

from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.registry.embedded import EmbeddedRegistry, StoredNamespace
from schemactl.registry.interface import AUTO_UPDATE_STRATEGIES

# Responses: Pulsar's JSON, Jersey's plain text, Jetty's error pages


JSON = "application/json"

_LONGEST_PAGE_BYTES = 32_767
"""A page that is longer is not sent at all (Jetty's ErrorHandler gives up when its buffer is full)."""

_WITH_PAGE = ("GET", "HEAD", "POST")
"""Other methods get an error page's status alone."""


class Rejection(Exception):
    """The response to a request that is refused."""

    def response(self, request: Request) -> Response:
        """Return what the client gets."""
        raise NotImplementedError


class RestError(Rejection):
    """A response with `status` and a JSON reason (RestException)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def response(self, request: Request) -> Response:
        """Return Pulsar's ErrorData."""
        del request
        return ok({"reason": self.reason}, self.status)


class Unexpected(RestError):
    """The response that RestException makes of an uncaught Java exception; its stack trace has one line.

    Args:
        message: the exception's, "" where it has none.
        exception: its class.
    """

    def __init__(self, message: str, exception: str = "java.lang.RuntimeException") -> None:
        thrown = f"{exception}: {message}" if message else exception
        head = "\n --- An unexpected error occurred in the server ---\n\n"
        super().__init__(500, f"{head}Message: {message or 'null'}\n\nStacktrace:\n\n{thrown}\n")


class BadRequest(Rejection):
    """A body that the endpoint cannot read; Jersey answers with Jackson's message."""

    def __init__(self, message: str, media: str = "text/plain") -> None:
        super().__init__(message)
        self.media = media

    def response(self, request: Request) -> Response:
        """Return the message, without the character set that Starlette would add."""
        del request
        return Response(str(self).encode(errors="replace"), 400, {"Content-Type": self.media})


class ErrorPage(Rejection):
    """A response with `status` and one of Jetty's pages, or their JSON if the request asks for it."""

    def __init__(self, status: int, message: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message or HTTPStatus(status).phrase
        self.headers = headers or {}

    def response(self, request: Request) -> Response:
        """Return HTML, or JSON where the client prefers that; an empty body where it would be too long."""
        path = request.scope["path"]
        if _first_accepted(request) == JSON:
            media, content = JSON, _json_page(path, self.status, self.message).encode(errors="replace")
        else:
            media = "text/html;charset=iso-8859-1"
            content = _html_page(path, self.status, self.message).encode("iso-8859-1", errors="replace")
        if request.method not in _WITH_PAGE or len(content) > _LONGEST_PAGE_BYTES:
            return Response(status_code=self.status, headers=self.headers)
        headers = {"Cache-Control": "must-revalidate,no-cache,no-store", "Content-Type": media, **self.headers}
        return Response(content, self.status, headers)


def ok(value: Any, status: int = 200) -> Response:
    """Return `value` as JSON, in the order of its keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate has no UTF-8; the question mark is what Java writes.
    return Response(text.encode(errors="replace"), status, media_type=JSON)


def plain(text: str) -> Response:
    """Return text that is not quoted as content type JSON, as Pulsar does."""
    return Response(text, media_type=JSON)


def nothing(status: int = 204) -> Response:
    """Return a status without a body."""
    return Response(status_code=status)


def accepts_json(request: Request) -> bool:
    """Whether the client accepts JSON, which is all that the endpoints give."""
    accepted = _accepted(request)
    return not accepted or any(kind in (JSON, "application/*", "*/*") for kind in accepted)


def _accepted(request: Request) -> list[str]:
    kinds = request.headers.get("accept", "").split(",")
    return [kind.split(";")[0].strip().lower() for kind in kinds if kind.strip()]


def _first_accepted(request: Request) -> str:
    return next((kind for kind in _accepted(request) if kind in (JSON, "text/html", "*/*")), "")


def _json_page(path: str, status: int, message: str) -> str:
    fields = {"servlet": "schemactl", "message": _escaped(message), "url": path, "status": str(status)}
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return f"{{\n{lines}\n}}"


def _html_page(path: str, status: int, message: str) -> str:
    text, where = _escaped(message), _escaped(path)
    return (
        '<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n'
        f"<title>Error {status} {text}</title>\n</head>\n<body><h2>HTTP ERROR {status} {text}</h2>\n<table>\n"
        f"<tr><th>URI:</th><td>{where}</td></tr>\n<tr><th>STATUS:</th><td>{status}</td></tr>\n"
        f"<tr><th>MESSAGE:</th><td>{text}</td></tr>\n<tr><th>SERVLET:</th><td>schemactl</td></tr>\n</table>\n\n"
        "</body>\n</html>\n"
    )


def _escaped(text: str) -> str:
    return html.escape(text).replace("&#x27;", "&apos;")


# Request bodies as Jackson reads them for Pulsar: lenient with scalars, strict with JSON; an empty body is null


_S = CompatibilityStrategy
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")

_INT32 = 1 << 31

_ORDINAL = re.compile(r"[0-9]{1,9}")


class Number(str):
    """A JSON number as it is written: where a text is expected, Jackson takes its characters."""

    __slots__ = ()


def read(body: bytes) -> Any:
    """Return the JSON value; None for an empty body. Numbers are `Number`."""
    if not body.strip():
        return None
    try:
        return json.loads(body, parse_int=Number, parse_float=Number, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise BadRequest(f"Invalid UTF-8 middle byte 0x{body[error.end - 1]:x}") from None
    except RecursionError:
        raise ErrorPage(500, "Request failed.") from None
    except ValueError as error:
        raise BadRequest(f"Unexpected character or end-of-input: {error}") from None


def read_needed(body: bytes) -> Any:
    """Return the JSON value for an endpoint that requires a boolean or a number."""
    if not body.strip():
        raise BadRequest("The request entity cannot be empty.", JSON)
    return read(body)


def read_object(body: bytes, kind: str) -> dict[str, Any] | None:
    """Return the JSON object for a Java object of class `kind`; None for null or an empty body."""
    value = read(body)
    if value is not None and not isinstance(value, dict):
        raise _mismatch(kind, value)
    return value


def text(value: Any) -> str | None:
    """Return a String: numbers and booleans as they are written."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    raise _mismatch("java.lang.String", value)


def texts(value: Any) -> dict[str, str | None] | None:
    """Return a Map of String to String."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _mismatch("java.util.LinkedHashMap<java.lang.String,java.lang.String>", value)
    return {key: text(each) for key, each in value.items()}


def strings(value: Any) -> list[str]:
    """Return a Set of String, in its order; null is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _mismatch("java.util.HashSet<java.lang.String>", value)
    found = [text(each) for each in value]
    return list(dict.fromkeys(each for each in found if each is not None))


def boolean(value: Any) -> bool:
    """Return a boolean: null is false, a whole number is true unless 0."""
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, Number) and value.lstrip("-").isdecimal():
        return value.strip("-0") != ""
    if isinstance(value, str) and not isinstance(value, Number):
        word = value.strip()
        if word in _TRUE:
            return True
        if word in _FALSE or not word:
            return False
        raise BadRequest(
            f'Cannot deserialize value of type `boolean` from String "{value}": only "true"/"True"/"TRUE" or '
            '"false"/"False"/"FALSE" recognized'
        )
    raise _mismatch("boolean", value)


def integer(value: Any) -> int:
    """Return an int: null is 0, a fraction is cut off; raise ErrorPage beyond 32 bits, where Jackson itself fails."""
    if value is None:
        return 0
    if isinstance(value, str):
        word = value.strip()
        if not word and not isinstance(value, Number):
            return 0
        try:
            number = int(float(word)) if isinstance(value, Number) else int(word)
        except (ValueError, OverflowError):
            raise BadRequest(
                f'Cannot deserialize value of type `int` from String "{value}": not a valid `int` value'
            ) from None
        if not -_INT32 <= number < _INT32:
            raise ErrorPage(500, "Request failed.")
        return number
    raise _mismatch("int", value)


def constant(value: Any, names: Sequence[str], kind: str) -> str | None:
    """Return one of an enum's `names`, in the order of their ordinals; None for null and for what it does not know."""
    if value is None:
        return None
    if isinstance(value, str):
        word = value.strip()
        if word in names:
            return word
        if _ORDINAL.fullmatch(word) and int(word) < len(names):
            return names[int(word)]
        if not isinstance(value, Number) or word.lstrip("-").isdecimal():
            return None
    raise _mismatch(kind, value)


def _mismatch(kind: str, value: Any) -> BadRequest:
    if isinstance(value, dict | list):
        found = "Object" if isinstance(value, dict) else "Array"
        shown = f"{found} value (token `JsonToken.START_{found.upper()}`)"
    else:
        shown = json.dumps(value)
    return BadRequest(f"Cannot deserialize value of type `{kind}` from {shown}")


def _no_number(name: str) -> NoReturn:
    raise BadRequest(f"Non-standard token '{name}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow")


_DATA: Final = "org.apache.pulsar.common.policies.data"

AUTO_UPDATE_NAMES: Final = {strategy: name for name, strategy in AUTO_UPDATE_STRATEGIES.items()}
"""From a strategy to the deprecated policy that means it."""


def read_strategy(value: Any) -> CompatibilityStrategy:
    """Return the strategy in a request's JSON; UNDEFINED for null and unknown names."""
    # The order of the ordinals is the same, too.
    name = constant(value, tuple(_S), f"{_DATA}.SchemaCompatibilityStrategy")
    return _S(name) if name else _S.UNDEFINED


def read_auto_update(value: Any) -> CompatibilityStrategy | None:
    """Return the strategy that a deprecated auto-update policy in a request means; None for null and unknown names."""
    name = constant(value, tuple(AUTO_UPDATE_STRATEGIES), f"{_DATA}.SchemaAutoUpdateCompatibilityStrategy")
    return AUTO_UPDATE_STRATEGIES[name] if name else None


# One request to one endpoint


_PARTITION = re.compile(r"(?P<topic>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class AdminCall:
    """A request as endpoints see it.

    Attributes:
        registry: the registry that is served.
        path: decoded.
        names: the parts of the path that are in braces in its pattern, decoded.
        query: the query parameters, the last one of a name.
        body: as it was sent.
        host: the host and port that the client addressed.
    """

    registry: EmbeddedRegistry
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    host: str

    def flag(self, name: str) -> bool:
        """Whether the query has `name=true`, as Boolean.parseBoolean reads it."""
        return self.query.get(name, "").lower() == "true"

    @property
    def namespace(self) -> NamespaceName:
        """The namespace in the path; RestError if its name is not valid."""
        try:
            return NamespaceName.parse(f"{self.names['tenant']}/{self.names['namespace']}")
        except ValueError:
            raise RestError(412, "Namespace name is not valid") from None

    @property
    def topic(self) -> TopicName:
        """The topic in the path, of a partition the topic it belongs to; RestError if its name is not valid."""
        domain = self.names.get("domain", "persistent")
        namespace = f"{self.names['tenant']}/{self.names['namespace']}"
        try:
            return TopicName.parse(f"{domain}://{namespace}/{self.local_name}")
        except ValueError:
            raise RestError(412, "Topic name is not valid") from None

    @property
    def local_name(self) -> str:
        """The topic's local name in the path, without the partition."""
        found = _PARTITION.fullmatch(self.names["topic"])
        return found["topic"] if found else self.names["topic"]

    @property
    def partition(self) -> int | None:
        """The partition's number; what Java does not write as a number, say 01, is none (TopicName.getPartitionIndex)."""
        found = _PARTITION.fullmatch(self.names["topic"])
        return int(found["index"]) if found else None

    def need_namespace(self) -> StoredNamespace:
        """Return the namespace in the path; RestError if there is none."""
        found = self.registry.namespace(self.namespace)
        if found is None:
            raise RestError(404, "Namespace does not exist")
        return found


Endpoint = Callable[[AdminCall], Response]
"""Answers a call; raises a `Rejection` where it is not done."""
