"""Read requests as Jackson does, and write responses as Jetty and Jersey do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, Literal, NoReturn
from urllib.parse import unquote, unquote_plus, unquote_to_bytes

from starlette.requests import Request
from starlette.responses import Response

from schemactl.core.escaping import escape_jetty
from schemactl.core.names import NamespaceName, TopicName
from schemactl.core.policies import CompatibilityStrategy
from schemactl.core.schema import Release
from schemactl.registry.embedded import EmbeddedRegistry, StoredNamespace
from schemactl.registry.interface import AUTO_UPDATE_STRATEGIES

JSON = "application/json"

_MAX_PAGE_BYTES: Final = 32_767
"""The largest error page; Jetty's ErrorHandler does not send a larger one."""

_METHODS_WITH_PAGE: Final = ("GET", "HEAD", "POST")
"""The methods that get an error page in HTML; others get only the status."""

_TRUE: Final = ("true", "True", "TRUE")

_FALSE: Final = ("false", "False", "FALSE")

_SIZES: Final = {"int": 1 << 31, "long": 1 << 63}

_ORDINAL = re.compile(r"[0-9]{1,9}")

_DATA: Final = "org.apache.pulsar.common.policies.data"

AUTO_UPDATE_NAMES: Final = {strategy: name for name, strategy in AUTO_UPDATE_STRATEGIES.items()}
"""The deprecated policy of each strategy."""

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

_PARTITION = re.compile(r"(?P<topic>.+)-partition-(?P<index>0|[1-9][0-9]{0,8})")


class Rejection(Exception):
    """A request is rejected with an error response."""

    def make_response(self, request: Request) -> Response:
        """Return the response that a broker sends with this rejection to `request`."""
        raise NotImplementedError


class RestError(Rejection):
    """An error with a status and a JSON reason (RestException)."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason

    def make_response(self, request: Request) -> Response:
        """Return Pulsar's ErrorData."""
        del request
        return respond_json({"reason": self.reason}, self.status)


class Unexpected(RestError):
    """An uncaught Java exception, as RestException reports it, with a stack trace of one line.

    Args:
        message: the message of the exception, or "".
        exception: the class of the exception.
    """

    def __init__(self, message: str, exception: str = "java.lang.RuntimeException") -> None:
        trace = f"{exception}: {message}" if message else exception
        head = "\n --- An unexpected error occurred in the server ---\n\n"
        super().__init__(500, f"{head}Message: {message or 'null'}\n\nStacktrace:\n\n{trace}\n")


class BadRequest(Rejection):
    """A body is not readable; Jersey responds with Jackson's message."""

    def __init__(self, message: str, media: str = "text/plain") -> None:
        super().__init__(message)
        self.media = media

    def make_response(self, request: Request) -> Response:
        """Return the message, without the character set that Starlette would add to the content type."""
        del request
        return Response(str(self).encode(errors="replace"), 400, {"Content-Type": self.media})


class ErrorPage(Rejection):
    """An error with Jetty's error page, in HTML or JSON."""

    def __init__(self, status: int, message: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message or HTTPStatus(status).phrase
        self.headers = headers or {}

    def make_response(self, request: Request) -> Response:
        """Return HTML, or JSON with a reason if the client prefers it; an empty body if the page is too long."""
        path = request.scope["path"]
        preferred = next((kind for kind in _parse_accept(request) if kind in (JSON, "text/html", "*/*")), "")
        is_json = preferred == JSON
        if is_json:
            media, content = JSON, _make_json_page(path, self.status, self.message).encode(errors="replace")
        else:
            media = "text/html;charset=iso-8859-1"
            content = _make_html_page(path, self.status, self.message).encode("iso-8859-1", errors="replace")
        has_page = is_json or request.method in _METHODS_WITH_PAGE
        if not has_page or len(content) > _MAX_PAGE_BYTES:
            return Response(status_code=self.status, headers=self.headers)
        headers = {"Cache-Control": "must-revalidate,no-cache,no-store", "Content-Type": media, **self.headers}
        return Response(content, self.status, headers)


def respond_json(value: Any, status: int = 200) -> Response:
    """Return a response with `value` as JSON, with keys in their order."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate becomes a question mark, as in Java.
    return Response(text.encode(errors="replace"), status, media_type=JSON)


def respond_text(text: str) -> Response:
    """Return a response with unquoted text and the content type JSON, as Pulsar does."""
    return Response(text, media_type=JSON)


def respond_empty(status: int = 204) -> Response:
    """Return a response without a body."""
    return Response(status_code=status)


def get_content_type(request: Request) -> str:
    """Return the content type of the body, without parameters, or "" if the request does not name it."""
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


def accepts_json(request: Request) -> bool:
    """Return whether the client accepts JSON, the only type of the endpoints."""
    kinds = _parse_accept(request)
    return not kinds or any(kind in (JSON, "application/*", "*/*") for kind in kinds)


def _parse_accept(request: Request) -> list[str]:
    kinds = request.headers.get("accept", "").split(",")
    return [kind.split(";")[0].strip().lower() for kind in kinds if kind.strip()]


def _make_json_page(path: str, status: int, message: str) -> str:
    # Brokers do not send the reason, so that clients show its text only if they find it in the status line.
    fields = {
        "servlet": "schemactl",
        "message": escape_jetty(message),
        "url": path,
        "status": str(status),
        "reason": message,
    }
    lines = ",\n".join(f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}" for key, value in fields.items())
    return f"{{\n{lines}\n}}"


def _make_html_page(path: str, status: int, message: str) -> str:
    text, uri = escape_jetty(message), escape_jetty(path)
    return (
        '<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n'
        f"<title>Error {status} {text}</title>\n</head>\n<body><h2>HTTP ERROR {status} {text}</h2>\n<table>\n"
        f"<tr><th>URI:</th><td>{uri}</td></tr>\n<tr><th>STATUS:</th><td>{status}</td></tr>\n"
        f"<tr><th>MESSAGE:</th><td>{text}</td></tr>\n<tr><th>SERVLET:</th><td>schemactl</td></tr>\n</table>\n\n"
        "</body>\n</html>\n"
    )


# Paths as Jetty, Jersey and Codec.decode read them.


def read_path(raw: str, release: Release) -> str:
    """Return the path by which a request is routed: not decoded, without matrix parameters and trailing slash.

    Raises:
        ErrorPage: if an escape is not valid, or from 4.2 on (Jetty 12), if the decoded path is not UTF-8.
    """
    if _BAD_ESCAPE.search(raw):
        raise ErrorPage(400)
    if release >= Release.R4_2:
        try:
            unquote_to_bytes(raw).decode()
        except UnicodeDecodeError:
            raise ErrorPage(400, "Bad UTF-8 encoding") from None
    path = "/".join(segment.partition(";")[0] for segment in raw.split("/"))
    return path.removesuffix("/") or "/"


def decode_names(names: Mapping[str, str], resource: str) -> dict[str, str]:
    """Return the decoded parts of a path.

    A plus sign in the name of a topic is a space, and below `schemas` the name is decoded twice (SchemasResource).

    Args:
        names: the parts of the path, not decoded, by their names in the pattern.
        resource: the first part of the path below `/admin/v2`.

    Raises:
        ErrorPage: if the second decoding fails.
    """
    decoded = {key: unquote(name) for key, name in names.items()}
    if "topic" in names:
        topic = decoded["topic"] if resource == "schemas" else names["topic"]
        if _BAD_ESCAPE.search(topic):
            raise ErrorPage(500, "Request failed.")
        decoded["topic"] = unquote_plus(topic)
    return decoded


# Request bodies as Jackson reads them: lenient with scalars, strict with JSON; an empty body is null. Each function raises
# BadRequest for a value that Jackson rejects.


class Number(str):
    """The text of a JSON number, because Jackson converts it to a text without parsing."""

    __slots__ = ()


def read(body: bytes) -> Any:
    """Return the JSON value of a body, with `Number` for numbers, or None for an empty body."""
    if not body.strip():
        return None
    try:
        return json.loads(body, parse_int=Number, parse_float=Number, parse_constant=_reject_constant)
    except UnicodeDecodeError as error:
        raise BadRequest(f"Invalid UTF-8 middle byte 0x{body[error.end - 1]:x}") from None
    except RecursionError:
        raise ErrorPage(500, "Request failed.") from None
    except ValueError as error:
        raise BadRequest(f"Unexpected character or end-of-input: {error}") from None


def read_needed(body: bytes) -> Any:
    """Return the JSON value of a body that must not be empty."""
    if not body.strip():
        raise BadRequest("The request entity cannot be empty.", JSON)
    return read(body)


def read_object(body: bytes, kind: str) -> dict[str, Any] | None:
    """Return the JSON object for a Java object of class `kind`, or None for null or an empty body."""
    return to_object(read(body), kind)


def to_object(value: Any, kind: str) -> dict[str, Any] | None:
    """Return a JSON object for a Java object of class `kind`, or None for null."""
    if value is not None and not isinstance(value, dict):
        raise _make_type_error(kind, value)
    return value


def to_text(value: Any) -> str | None:
    """Convert a value to a String: numbers and booleans become their JSON text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    raise _make_type_error("java.lang.String", value)


def to_texts(value: Any) -> dict[str, str | None] | None:
    """Convert a value to a Map of String to String."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _make_type_error("java.util.LinkedHashMap<java.lang.String,java.lang.String>", value)
    return {key: to_text(member) for key, member in value.items()}


def to_strings(value: Any) -> list[str]:
    """Convert a value to a Set of String, in its order; null is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise _make_type_error("java.util.HashSet<java.lang.String>", value)
    members = [to_text(member) for member in value]
    return list(dict.fromkeys(member for member in members if member is not None))


def to_boolean(value: Any) -> bool:
    """Convert a value to a boolean: null is false, an integer is true unless 0."""
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
    raise _make_type_error("boolean", value)


def to_integer(value: Any, kind: Literal["int", "long"] = "int") -> int:
    """Convert a value to an integer: null is 0, a fraction is cut off; raise ErrorPage beyond its range, where Jackson fails."""
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
                f'Cannot deserialize value of type `{kind}` from String "{value}": not a valid `{kind}` value'
            ) from None
        size = _SIZES[kind]
        if not -size <= number < size:
            raise ErrorPage(500, "Request failed.")
        return number
    raise _make_type_error(kind, value)


def to_constant(value: Any, names: Sequence[str], kind: str) -> str | None:
    """Convert a value to one of an enum's `names`, in the order of their ordinals, or None for null or an unknown name."""
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
    raise _make_type_error(kind, value)


def _make_type_error(kind: str, value: Any) -> BadRequest:
    if isinstance(value, dict | list):
        token = "Object" if isinstance(value, dict) else "Array"
        description = f"{token} value (token `JsonToken.START_{token.upper()}`)"
    else:
        description = json.dumps(value)
    return BadRequest(f"Cannot deserialize value of type `{kind}` from {description}")


def _reject_constant(name: str) -> NoReturn:
    raise BadRequest(f"Non-standard token '{name}': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow")


def read_strategy(value: Any) -> CompatibilityStrategy:
    """Convert a value to a strategy, UNDEFINED for null and unknown names."""
    # The enum here has the order of the Java enum.
    name = to_constant(value, tuple(CompatibilityStrategy), f"{_DATA}.SchemaCompatibilityStrategy")
    return CompatibilityStrategy(name) if name else CompatibilityStrategy.UNDEFINED


def read_auto_update(value: Any) -> CompatibilityStrategy | None:
    """Convert a deprecated auto-update policy to its strategy, or None for null and unknown names."""
    name = to_constant(value, tuple(AUTO_UPDATE_STRATEGIES), f"{_DATA}.SchemaAutoUpdateCompatibilityStrategy")
    return AUTO_UPDATE_STRATEGIES[name] if name else None


@dataclass(frozen=True, slots=True)
class AdminCall:
    """A request to an endpoint.

    Attributes:
        registry: the registry that is served.
        path: the decoded path.
        names: the decoded parts of the path, by their names in braces in the pattern.
        query: the query parameters; the last one of a name counts.
        body: the raw body.
        media_type: the content type of the body, without parameters, or "".
        host: the host and port in the request.
    """

    registry: EmbeddedRegistry
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes
    media_type: str
    host: str

    def has_flag(self, name: str) -> bool:
        """Return whether the query has `name=true`, as Boolean.parseBoolean reads it."""
        return self.query.get(name, "").lower() == "true"

    @property
    def namespace(self) -> NamespaceName:
        """The namespace in the path; raises RestError if its name is not valid."""
        try:
            return NamespaceName.parse(f"{self.names['tenant']}/{self.names['namespace']}")
        except ValueError:
            raise RestError(412, "Namespace name is not valid") from None

    @property
    def topic(self) -> TopicName:
        """The topic in the path, or the topic of the partition; raises RestError if its name is not valid."""
        domain = self.names.get("domain", "persistent")
        namespace = f"{self.names['tenant']}/{self.names['namespace']}"
        try:
            return TopicName.parse(f"{domain}://{namespace}/{self.local_name}")
        except ValueError:
            raise RestError(412, "Topic name is not valid") from None

    @property
    def local_name(self) -> str:
        """The local name of the topic in the path, without the partition."""
        match = _PARTITION.fullmatch(self.names["topic"])
        return match["topic"] if match else self.names["topic"]

    @property
    def partition(self) -> int | None:
        """The number of the partition in the path, or None; `01` is not a number (TopicName.getPartitionIndex)."""
        match = _PARTITION.fullmatch(self.names["topic"])
        return int(match["index"]) if match else None

    def require_namespace(self) -> StoredNamespace:
        """Return the namespace in the path; raise RestError if it does not exist."""
        namespace = self.registry.namespace(self.namespace)
        if namespace is None:
            raise RestError(404, "Namespace does not exist")
        return namespace


Endpoint = Callable[[AdminCall], Response]
"""Responds to a call, or raises a `Rejection`."""
