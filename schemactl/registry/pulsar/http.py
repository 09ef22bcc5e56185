"""Send requests to a cluster's admin API: pooled connections, retries, redirects to the broker that owns a topic.

Slow requests are warned about, the total wait is limited, and a request without a response gets a message that explains why.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from threading import Event, Lock, RLock, Thread, get_ident
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, SSLError

from schemactl.core.errors import NotPermitted, RegistryError
from schemactl.core.json_values import shape_error
from schemactl.core.terminal import on_one_line
from schemactl.registry.interface import Warn, no_warning
from schemactl.registry.pulsar import responses
from schemactl.registry.pulsar.credentials import Credentials, is_private
from schemactl.registry.pulsar.responses import (
    MAX_ERROR_BYTES,
    Reply,
    can_succeed_later,
    error_message,
    is_unauthenticated,
    retry_after_s,
)
from schemactl.registry.url import parse, split_addresses

CONNECTIONS: Final = 8
"""The requests at once while much is read. More cost more of our own time than they save of the brokers'."""

_MOST_CONNECTIONS: Final = 64

_HEADERS: Final = {"Accept": "application/json, */*;q=0.1", "User-Agent": "schemactl"}
_HEADERS_WITH_BODY: Final = {**_HEADERS, "Content-Type": "application/json"}
_NO_RETRIES: Final = urllib3.Retry(total=False)
_FIRST_RETRY_DEADLINE_S = 2.0
"""The deadline for retries to a cluster that has never answered: its address may be wrong."""
_RETRY_DEADLINE_S = 60.0
"""The deadline for retries to one that has answered: a broker restarts in less."""
_TOTAL_WAIT_S = 180.0
"""The longest that a command waits in total for a cluster."""
_LONGEST_DELAY_S = 5.0
_READ_S: Final = 60.0
"""How long one answer may take."""
_TIMEOUT = urllib3.Timeout(connect=10.0, read=_READ_S)
_MAX_REDIRECTS = 5
_MAX_MESSAGE = 500
_MAX_CLUSTERS = 64
_REDIRECTS = frozenset({307, 308})
_UNAUTHORIZED = 401
_MESSAGE_VERSION: Final = "X-Pulsar-Base64-schema-version"
_FORBIDDEN = frozenset({401, 403})

HostPort = tuple[str, int]


class NoResponseError(RegistryError):
    """No response came, so that the request may or may not have been carried out."""


class AdminConnection:
    """A cluster's admin API.

    Safe for use by several threads.

    Args:
        url: `http(s)://HOST:PORT`, or several of a cluster's separated by commas, tried in turn.
        credentials: sent to the hosts of the cluster only; a token over http only to this machine.
        warn: called when the cluster is waited for.
    """

    def __init__(self, url: str, credentials: Credentials, warn: Warn = no_warning) -> None:
        self.url = url
        try:
            self._bases = parse(url).addresses
        except ValueError as error:
            raise RegistryError(error.args[0], fix=error.args[1]) from None
        self._cluster = {_host_port(base) for base in self._bases}
        self._credentials = credentials
        for base in self._bases:
            self._require_private(base, f"{url}: ")
        self._manager = responses.manager(
            num_pools=64, maxsize=_MOST_CONNECTIONS, block=True, timeout=_TIMEOUT, ssl_context=credentials.tls
        )
        self._pools: dict[str, urllib3.HTTPConnectionPool] = {}
        self._budget = RetryBudget(_TOTAL_WAIT_S)
        self._watch = RequestWatch(lambda text: warn(f"{url}: {self._credentials.redact(text)}"))
        self._base = 0
        self._answered = False
        self._asked_for_brokers = False
        self._lock = RLock()
        self._stopped = Event()
        self._only_thread: int | None = None

    def keep_others_waiting(self) -> None:
        """From now on send only requests of the calling thread; waiting retries of other threads fail at once."""
        self._only_thread = get_ident()
        self._stopped.set()

    @property
    def is_kept_for_one(self) -> bool:
        """Whether only one thread may send requests."""
        return self._only_thread is not None

    def close(self) -> None:
        """Close the connections."""
        self._watch.close()
        self._manager.clear()

    def get(self, path: str, shape: Any, **absent: Any) -> Any:
        """Return the JSON value at `path` below `/admin/v2/`, of that `shape` (see `shape_error`); None for an empty reply.

        With `absent=value`, that value is returned for a 404. Raise RegistryError for no response, an error, or another shape.
        """
        reply = self.send("GET", path)
        if reply.status == 404 and absent:
            return absent["absent"]
        self.expect(reply, f"GET {path}")
        return self.json(reply, f"GET {path}", shape)

    def change(self, method: str, path: str, body: Any = None, *, of: object = "", allowed: int | None = None) -> Reply:
        """Send a request that is safe to repeat; raise RegistryError unless it succeeds, or is answered `allowed`.

        With `of`, a 404 means that it does not exist.
        """
        reply = self.send(method, path, body)
        if reply.status != allowed:
            self.expect(reply, f"{method} {path}", of=of)
        return reply

    def json(self, reply: Reply, what: str, shape: Any) -> Any:
        """Return the JSON value of the reply to `what`; raise RegistryError if it does not have that `shape`."""
        fix = "check that `registry` of the target is the address of Pulsar's admin API"
        try:
            value = reply.json()
        except (ValueError, RecursionError):
            raise RegistryError(f"{self.url}: {what} does not answer with JSON{_source(reply)}", fix=fix) from None
        if shape_error(value, shape):
            raise RegistryError(f"{self.url}: {what} does not answer as Pulsar does{_source(reply)}", fix=fix)
        return value

    def send(
        self, method: str, path: str, body: Any = None, *, done: Callable[[], Reply | None] = lambda: None
    ) -> Reply:
        """Send a request, with retries where they may help, and return the last reply.

        Before each retry `done` is asked: of a request that is not safe to repeat, it returns the reply that was lost. Raise
        RegistryError when no response comes before the deadline for retries.
        """
        what = f"{method} {path}"
        with self._watch.watched(what, time.monotonic() + max(_READ_S, self._deadline_s)) as request:
            return self._sent(method, path, body, done, request)

    def _sent(self, method: str, path: str, body: Any, done: Callable[[], Reply | None], request: SlowRequest) -> Reply:
        sent_bytes = len(json.dumps(body)) if body is not None else 0
        start_s = request.since_s
        for delay_s in self._delays(start_s):
            asked_for_s = 0.0
            try:
                reply = self.send_once(method, path, body)
            except NoResponseError as error:
                # One response can take as long as all retries may.
                if delay_s is None or time.monotonic() > start_s + self._deadline_s:
                    raise
                request.why = error.what.removeprefix(f"{self.url}: ")
            else:
                if reply.fine or delay_s is None or not can_succeed_later(reply, sent_bytes):
                    return reply
                asked_for_s = min(reply.retry_after_s or 0.0, _RETRY_DEADLINE_S)
                request.why = f"answers {reply.status}"
            request.until_s = start_s + self._deadline_s
            with self._budget.waiting():
                self._pause(max(delay_s, asked_for_s))
            if (lost := done()) is not None:
                return lost
        raise AssertionError("the last delay is None")

    def send_once(self, method: str, path: str, body: Any = None) -> Reply:
        """Return the reply to a request that is sent once, except for redirects and an expired token.

        Raises:
            NoResponseError: no response came; whether the request was carried out is not known.
            RegistryError: the request was not carried out, and a retry would not help.
        """
        if self._stopped.is_set() and self._only_thread != get_ident():
            raise RegistryError(f"{self.url}: {method} {path} was not sent: another request had failed")
        data = None if body is None else json.dumps(body).encode()
        base, target = self._address(path)
        redirected_to = ""
        for _ in range(_MAX_REDIRECTS):
            reply = self._authorized(method, base, target, data)
            if reply.status not in _REDIRECTS:
                return reply._replace(redirected_to=redirected_to)
            base, target = self._redirected(base + target, reply.reason)
            redirected_to = base[:_MAX_SHOWN]
        raise NoResponseError(
            f"{self.url}: redirected more than {_MAX_REDIRECTS} times, at last to {redirected_to}: no broker owns {path} yet"
        )

    def expect(self, reply: Reply, what: str, *, of: object = "") -> None:
        """Raise RegistryError with the broker's message unless `reply` is a success.

        With `of`, a 404 means that it does not exist.
        """
        if reply.fine:
            return
        if of and reply.status == 404:
            raise RegistryError(f"{of} does not exist in the registry")
        what = f"{self.url}: {what} answers {reply.status}{_source(reply)}"
        message = on_one_line(self.error_message(reply)[:_MAX_MESSAGE])
        if is_unauthenticated(reply):
            why, fix = self._credentials.why_rejected()
            raise RegistryError(f"{what}{f' ({message})' if message else ''}: {why}", fix=fix)
        what = f"{what}{': ' if message else ''}{message}"
        if reply.status not in _FORBIDDEN:
            raise RegistryError(what)
        raise NotPermitted(
            what,
            fix=f"give {self._credentials.role()} the permission: docs/reference/targets.md lists those that each command needs",
        )

    def error_message(self, reply: Reply) -> str:
        """Return the broker's message without secrets, in at most a few lines."""
        return self._credentials.redact(error_message(reply))

    @contextmanager
    def threads(self) -> Iterator[ThreadPoolExecutor]:
        """Provide threads for as many requests as may run at once. After an exception no request is sent or repeated."""
        executor = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="pulsar")
        try:
            yield executor
        except BaseException:
            self._stopped.set()
            raise
        finally:
            executor.shutdown(cancel_futures=True)
            self._stopped.clear()

    def _pause(self, seconds: float) -> None:
        if self._only_thread == get_ident():
            time.sleep(seconds)
        else:
            self._stopped.wait(seconds)

    def _delays(self, start_s: float) -> Iterator[float | None]:
        """Yield how long to wait before each retry, and None when there is to be no further one."""
        for attempt in count():
            # Spread out, so that many clients of a broker that comes back do not come at once.
            delay_s = min(0.05 * 2**attempt, _LONGEST_DELAY_S) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
            if time.monotonic() + delay_s > start_s + self._deadline_s or self._budget.is_over:
                yield None
                return
            yield delay_s

    @property
    def _deadline_s(self) -> float:
        return _RETRY_DEADLINE_S if self._answered else _FIRST_RETRY_DEADLINE_S

    def _require_private(self, base: str, place: str) -> None:
        """Raise RegistryError if a token would be sent to `base` without encryption."""
        if self._credentials.bearer is not None and not is_private(base):
            raise RegistryError(
                f"{place}a token is never sent over http, where anybody on the way can read it, except to this machine",
                fix="write https:// in `registry` of the target, or reach the cluster through a tunnel on 127.0.0.1",
            )

    def _authorized(self, method: str, base: str, target: str, data: bytes | None) -> Reply:
        bearer = self._credentials.bearer
        if bearer is None:
            return self._request(method, base, target, data, None)
        token = bearer.token()
        reply = self._request(method, base, target, data, token)
        if reply.status == _UNAUTHORIZED and bearer.renew(token):
            return self._request(method, base, target, data, bearer.token())
        return reply

    def _request(self, method: str, base: str, target: str, data: bytes | None, token: str | None) -> Reply:
        headers = _HEADERS if data is None else _HEADERS_WITH_BODY
        if token is not None:
            headers = {**headers, "Authorization": f"Bearer {token}"}
        try:
            response = self._pool_of(base).urlopen(
                method,
                target,
                body=data,
                headers=headers,
                retries=_NO_RETRIES,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
            )
            try:
                fine = response.status < 300
                most = responses.MAX_ANSWER_BYTES if fine else MAX_ERROR_BYTES
                body = responses.body_of(response, most=most, cut=not fine)
            except BaseException:
                # The rest of the body must not be read as the answer to the next request.
                response.close()
                raise
            finally:
                response.release_conn()
        except (HTTPError, UnicodeError) as error:
            raise self._no_answer(base, error) from None
        self._answered = True
        if fine:
            return Reply(response.status, body=body, has_schema_version=_MESSAGE_VERSION in response.headers)
        headers_back = response.headers
        if response.status in _REDIRECTS:
            return Reply(response.status, headers_back.get("Location", ""), "", b"")
        retry_after = headers_back.get("Retry-After", "")
        return Reply(
            response.status,
            response.reason or "",
            headers_back.get("Content-Type", ""),
            body,
            retry_after_s(retry_after),
        )

    def _address(self, path: str) -> tuple[str, str]:
        """Return where to send a request for `path` below `/admin/v2/`: scheme with host, and the path on it."""
        scheme, _, rest = self._bases[self._base].partition("://")
        host, slash, prefix = rest.partition("/")
        return f"{scheme}://{host}", f"{slash}{prefix}/admin/v2/{path}"

    def _pool_of(self, base: str) -> urllib3.HTTPConnectionPool:
        # What urllib3's manager does to find a pool costs as much as a request.
        pool = self._pools.get(base)
        if pool is None:
            pool = self._pools[base] = self._manager.connection_from_url(base)
        return pool

    def _no_answer(self, base: str, error: HTTPError | UnicodeError) -> RegistryError:
        host, port = _host_port(base)
        found = failure(
            error,
            f"{host}:{port}",
            has_certificate=self._credentials.has_certificate,
            is_redirected=not any(_host_port(each) == (host, port) for each in self._bases),
        )
        if isinstance(error, (NewConnectionError, ConnectTimeoutError)) and len(self._bases) > 1:
            with self._lock:
                self._base = (self._base + 1) % len(self._bases)
        kind = NoResponseError if found.may_pass else RegistryError
        return kind(f"{self.url}: {found.what}", fix=found.fix)

    def _redirected(self, url: str, location: str) -> tuple[str, str]:
        try:
            parts = urlsplit(urljoin(url, location))
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise RegistryError(f"{self.url}: redirected to {location[:200]!r}, which is no address of a broker")
        if urlsplit(url).scheme == "https" and parts.scheme == "http":
            raise RegistryError(f"{self.url}: redirected from https to {parts.hostname} without encryption")
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._require_private(base, f"{self.url}: redirected to {base[:_MAX_SHOWN]}, and ")
        if self._credentials.has_secret and not self._is_of_cluster(_host_port(base)):
            raise RegistryError(
                f"{self.url}: redirected to {base}, which is not known to be of the cluster, so the credentials were not "
                "sent there",
                fix=f"if it is a broker of yours, add it to the target: registry: {self.url},{base}",
            )
        return base, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"

    def _is_of_cluster(self, address: HostPort) -> bool:
        """Whether the project file or the cluster itself lists that address."""
        if address in self._cluster:
            return True
        with self._lock:
            if not self._asked_for_brokers:
                self._asked_for_brokers = True
                self._cluster |= self._brokers()
        return address in self._cluster

    def _brokers(self) -> set[HostPort]:
        """Return the brokers that the cluster lists, on the ports that it or the project file names."""
        listed = _addresses(f"//{one}" for one in self._asked("brokers", list))
        ports = {port for _, port in self._cluster}
        for name in self._asked("clusters", list)[:_MAX_CLUSTERS]:
            cluster = self._asked(f"clusters/{quote(str(name), safe='')}", dict)
            for key in ("serviceUrl", "serviceUrlTls"):
                ports |= {port for _, port in _addresses(split_addresses(str(cluster.get(key) or "")))}
        return listed | {(host, port) for host, _ in listed for port in ports}

    def _asked(self, path: str, kind: type[Any]) -> Any:
        """Return the JSON at `path` from a configured host; an empty value where the role may not ask (it takes a superuser)."""
        reply = self._authorized("GET", *self._address(path), None)
        try:
            value = reply.json() if reply.fine else None
        except ValueError:
            value = None
        return value if isinstance(value, kind) else kind()


def _source(reply: Reply) -> str:
    """Return a clause that names the host of a reply if the cluster redirected to it."""
    return f" (redirected to {reply.redirected_to})" if reply.redirected_to else ""


def _host_port(url: str) -> HostPort:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _addresses(urls: Iterable[str]) -> set[HostPort]:
    """Return the host and port of those URLs that have one."""
    found = set()
    for url in urls:
        with suppress(ValueError):
            found.add(_host_port(url))
    return found


# Warnings about slow requests, and the limit on the total wait


_WARN_AFTER_S: Final = 2.0
"""A request that takes longer is named."""
_WARN_EVERY_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.25


class SlowRequest:
    """A request in progress, with its retries.

    Attributes:
        what: method and path.
        since_s: when it began, by the monotonic clock.
        until_s: when it is given up at the latest.
        why: the last answer; "" before the first one.
        is_named: the user was warned of it.
    """

    __slots__ = ("is_named", "since_s", "until_s", "what", "why")

    def __init__(self, what: str, until_s: float) -> None:
        self.what = what
        self.since_s = time.monotonic()
        self.until_s = until_s
        self.why = ""
        self.is_named = False


class RequestWatch:
    """The requests in progress. A background thread warns of slow ones, as a thread that waits for a reply cannot.

    Args:
        warn: called with the slow request, and how long it may take at most.
    """

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._lock = Lock()
        self._requests: set[SlowRequest] = set()
        self._thread: Thread | None = None
        self._closed = Event()
        self._warned_s = float("-inf")

    @contextmanager
    def watched(self, what: str, until_s: float) -> Iterator[SlowRequest]:
        """Watch a request during the block, which notes in it why the request is repeated."""
        request = SlowRequest(what, until_s)
        with self._lock:
            self._requests.add(request)
            if self._thread is None:
                self._thread = Thread(target=self._look, daemon=True)
                self._thread.start()
        try:
            yield request
        finally:
            with self._lock:
                self._requests.discard(request)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _look(self) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            now_s = time.monotonic()
            with self._lock:
                slow = sorted(
                    (each for each in self._requests if now_s - each.since_s >= _WARN_AFTER_S),
                    key=lambda each: each.since_s,
                )
            new = next((each for each in slow if not each.is_named), None)
            if new and now_s - self._warned_s >= _WARN_EVERY_S:
                self._warned_s, new.is_named = now_s, True
                self._warn(_sentence(new, len(slow) - 1, now_s))


def _sentence(request: SlowRequest, others: int, now_s: float) -> str:
    more = f" (and {others} more)" if others else ""
    left_s = max(request.until_s - now_s, 1.0)
    if request.why:
        return f"{request.what}{more}: {request.why}; trying again for up to {left_s:.0f} s"
    return f"{request.what}{more}: no answer for {now_s - request.since_s:.0f} s; waiting for up to {left_s:.0f} s"


class RetryBudget:
    """The time that all threads have waited, counted once where several wait at the same time.

    Args:
        all_s: the longest total wait, in seconds.
    """

    def __init__(self, all_s: float) -> None:
        self._all_s = all_s
        self._lock = Lock()
        self._waiting = 0
        self._since_s = 0.0
        self._spent_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the budget is used up."""
        with self._lock:
            now_s = time.monotonic()
            return self._spent_s + (now_s - self._since_s if self._waiting else 0.0) > self._all_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time in the block as waited."""
        with self._lock:
            if not self._waiting:
                self._since_s = time.monotonic()
            self._waiting += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting -= 1
                if not self._waiting:
                    self._spent_s += time.monotonic() - self._since_s


# Messages for requests without a response


_MAX_SHOWN: Final = 200
_CHECK_ADDRESS: Final = "check that `registry` of the target is the address of Pulsar's admin API"
_CHECK_BROKER: Final = (
    "check that this machine reaches each broker by the address that the cluster names (`advertisedAddress` in its "
    "settings), or name a proxy in `registry` of the target"
)
_NO_CERTIFICATE: Final = ("HANDSHAKE_FAILURE", "BAD_CERTIFICATE", "CERTIFICATE_REQUIRED")
"""What servers send to a client that shows no certificate: of TLS 1.2, of Java's, of TLS 1.3."""


class Failure(NamedTuple):
    """Why no response came, and what to do. `may_pass`: a retry may get one."""

    what: str
    fix: str
    may_pass: bool = False


def failure(error: HTTPError | UnicodeError, host: str, *, has_certificate: bool, is_redirected: bool) -> Failure:
    """Return the cause of `error` and what to do.

    Args:
        error: urllib3's.
        host: the host and port that was asked.
        has_certificate: the request was sent with a client certificate.
        is_redirected: the host comes from a redirect, not from the project file.
    """
    host = f"{host} (where the cluster redirects to)" if is_redirected else host
    if limit := responses.limit_reached(error):
        return Failure(f"the response of {host} is not read on: {limit}", _CHECK_ADDRESS)
    if isinstance(error, SSLError):
        return _tls_failure(error, host, has_certificate=has_certificate)
    fix = "check that the cluster runs, and that `registry` of the target is the address of its admin API"
    return Failure(f"{host} does not answer ({_cause(error)})", _CHECK_BROKER if is_redirected else fix, may_pass=True)


def _tls_failure(error: SSLError, host: str, *, has_certificate: bool) -> Failure:
    text, cause = str(error), _cause(error)
    if "WRONG_VERSION_NUMBER" in text:
        return Failure(
            f"{host} does not speak TLS", "write http:// in `registry` of the target, or the port that speaks TLS"
        )
    if "EOF occurred" in text:
        # Some servers hang up without an alert, and an alert can be lost.
        return Failure(
            f"{host} ends the TLS connection without a reason",
            "it may ask for another client certificate: look at `cert_file` and `key_file` of the target",
            may_pass=True,
        )
    if "_ALERT_" not in text:
        return Failure(
            f"TLS certificate verification failed for {host}: {cause}",
            "name the cluster's certificate authority as `ca_file` of the target; check the host's name",
        )
    if has_certificate:
        return Failure(
            f"{host} does not accept the target's client certificate: {cause}",
            "check that `cert_file` has not expired, and is signed by an authority that the cluster trusts",
        )
    if any(alert in text for alert in _NO_CERTIFICATE):
        return Failure(
            f"{host} asks for a client certificate, and the target names none: {cause}",
            "name yours as `cert_file`, with its `key_file`, of the target",
        )
    return Failure(f"{host} ends the TLS handshake: {cause}", "check the TLS versions and ciphers of the cluster")


def _cause(error: HTTPError | UnicodeError) -> str:
    """Return the innermost part of urllib3's message; the rest shows Python objects."""
    cause: BaseException = error
    while isinstance(inner := cause.__cause__ or (cause.args[-1] if cause.args else None), BaseException):
        cause = inner
    text = getattr(cause, "verify_message", "") or getattr(cause, "strerror", "") or str(cause)
    return on_one_line((text.rpartition("object at ")[2].partition(">: ")[2] or text)[:_MAX_SHOWN])
