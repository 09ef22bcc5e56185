"""Replies of a broker: its message, the exception behind it, and whether a retry can help."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, NoReturn

from schemactl.core.errors import RegistryError
from schemactl.core.policies import CompatibilityStrategy

MAX_MESSAGE = 2_000
"""The most characters of a broker's message that are kept: with the definitions that it quotes it can have megabytes."""

MAX_ERROR_BYTES = 1 << 20
"""The most bytes of an error reply's body that are read."""

LONGEST_VERSION = 64
"""The most characters of what brokers say their release is."""

TOO_MANY_REQUESTS = 429
_UNAUTHORIZED, _CONFLICT, _PRECONDITION_FAILED, _SERVER_ERROR = 401, 409, 412, 500
_GATEWAY = frozenset({502, 503, 504})

_UNEXPECTED = "An unexpected error occurred in the server"
_HALF_A_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_STACKTRACE = re.compile(r"Stacktrace:\s*([\w.$]+)")
_MESSAGE_CELL = re.compile(r"<th>MESSAGE:</th>\s*<td>(.*?)(?:</td>|\Z)", re.DOTALL)
_TRANSIENT_EXCEPTION = re.compile(
    r"Timeout|MetadataStore|ManagedLedger|BKException|Connect|AlreadyClosed|NotLeader"
)
_NO_BOOKIES = "Not enough non-faulty bookies"
_NO_BOOKIE = "Bookie handle is not available"
"""What brokers say of a ledger whose bookie has not come back yet after a restart."""


class Reply(NamedTuple):
    """A reply over HTTP; of a successful one, reason and content type are not kept.

    `retry_after_s` is the header of that name, how long it asks to wait; `redirected_to` the host that gave the reply,
    if the cluster redirected to it. `has_schema_version` says of a reply with a message whether that carries the number of its
    schema.
    """

    status: int
    reason: str = ""
    content_type: str = ""
    body: bytes = b""
    retry_after_s: float | None = None
    redirected_to: str = ""
    has_schema_version: bool = False

    @property
    def fine(self) -> bool:
        """Whether the request was carried out."""
        return 200 <= self.status < 300

    def json(self) -> Any:
        """Return the body's value; None where it is empty, as Pulsar answers for a policy that is not set.

        Raises:
            ValueError: the body is not JSON, nests too deep, or holds text that has no UTF-8.
        """
        if not self.body:
            return None
        try:
            value = json.loads(self.body, parse_constant=_no_number)
            if _HALF_A_PAIR.search(self.body):
                # Half a surrogate pair can be escaped in JSON, and be written down nowhere.
                json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise ValueError("it nests too deep") from None
        except MemoryError:
            raise ValueError("it does not fit into memory") from None
        return value


def retry_after_s(header: str) -> float | None:
    """Return the seconds to wait for a `Retry-After` header, a number or a date; None if it is neither."""
    if header.isdecimal():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):  # of no date, and of one without a time zone
        return None


def strategy_named(text: str | None) -> CompatibilityStrategy:
    """Return the strategy of that name, UNDEFINED for None; raise RegistryError if there is no such strategy."""
    try:
        return CompatibilityStrategy.UNDEFINED if text is None else CompatibilityStrategy(text)
    except ValueError:
        raise RegistryError(
            f"the registry has a compatibility strategy that this version does not know: {(text or '')[:60]!r}",
            fix="upgrade schemactl",
        ) from None


def error_message(reply: Reply) -> str:
    """Return the broker's message, at most `MAX_MESSAGE` long.

    It is the reason in JSON, else the message of Jetty's page (JSON or HTML), else the reason phrase.
    """
    text = _reason(reply) or reply.reason
    if _UNEXPECTED in text and "Message:" in text:
        text = _message(text)
    text = text.strip()
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} ..."


def _message(text: str) -> str:
    """Return the text between "Message:" and a line that begins with "Stacktrace:", in one pass."""
    lines = text.partition("Message:")[2].split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.lstrip().startswith("Stacktrace:")), None)
    return "\n".join(lines[:end])


def exception(reply: Reply) -> str:
    """Return the simple name of the Java exception behind an unexpected error; "" for any other reply."""
    found = _STACKTRACE.search(_reason(reply))
    return found[1].rpartition(".")[2].rpartition("$")[2] if found else ""


def is_concurrent_modification(reply: Reply) -> bool:
    """Whether nothing was written because another client wrote at the same time. An upload's other 409, incompatible, has no reason."""
    return (
        reply.status == _CONFLICT
        and b'"reason"' in reply.body
        and error_message(reply) == "Concurrent modification"
    )


def is_unauthenticated(reply: Reply) -> bool:
    """Whether the broker rejects the credentials. A role without permission gets a 401, too, but with a reason in JSON."""
    return reply.status == _UNAUTHORIZED and b'"reason"' not in reply.body


def is_too_big(reply: Reply, size: int) -> bool:
    """Whether an upload of `size` bytes was too big for a ledger entry; the broker reports that as an error of its bookies."""
    return reply.status >= _SERVER_ERROR and size > 4_000_000 and _NO_BOOKIES in error_message(reply)


def can_succeed_later(reply: Reply, sent_bytes: int = 0) -> bool:
    """Whether a retry of the same request, with a body of `sent_bytes`, may succeed in a moment.

    It may when the topic's bundle has no owner just now (412), when another client was faster (409), for a busy server or a
    gateway without one, and for a 500 that is either not Pulsar's own or comes from its storage, which starts more slowly than
    a broker. Any other 500 of Pulsar's is a refusal.
    """
    if reply.status == _SERVER_ERROR and _NO_BOOKIES in error_message(reply):
        return not is_too_big(reply, sent_bytes)
    if reply.status == _SERVER_ERROR and _NO_BOOKIE in error_message(reply):
        return True
    if reply.status == _SERVER_ERROR:
        return _UNEXPECTED not in _reason(reply) or _TRANSIENT_EXCEPTION.search(exception(reply)) is not None
    if reply.status in _GATEWAY or reply.status in (TOO_MANY_REQUESTS, _PRECONDITION_FAILED):
        return True
    return is_concurrent_modification(reply)


def _reason(reply: Reply) -> str:
    text = reply.body.decode("utf-8", "replace")
    if "json" in reply.content_type:
        return _json_reason(text)
    if "html" in reply.content_type:
        cell = _MESSAGE_CELL.search(text)
        return html.unescape(cell[1]) if cell else ""
    return text


def _json_reason(text: str) -> str:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError, MemoryError):
        # Cut off where reading stopped; what was read of the reason is still worth showing.
        start = re.search(r'"(?:reason|message)"\s*:\s*"', text)
        return text[start.end() :].replace("\\n", "\n").replace('\\"', '"') if start else ""
    if not isinstance(value, dict):
        return ""
    # Pulsar's own answers give a reason; a page of Jetty's as JSON a message, escaped as if it were still HTML.
    reason, message = value.get("reason"), value.get("message")
    if isinstance(reason, str):
        return reason
    return html.unescape(message) if isinstance(message, str) else ""


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
