"""Send requests to a cluster's admin API, with retries, redirects to other brokers, and warnings about slow requests."""

from __future__ import annotations

import json
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import Event, Lock, RLock, Thread, current_thread, get_ident, local, main_thread
from typing import Any, Final, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import urllib3
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError

from schemactl.core.deadline import MAX_PARALLEL, PARALLEL, OutOfTime, Worker, begin_wait, end_wait
from schemactl.core.errors import NotPermitted, RegistryError, UnusableCredentials
from schemactl.core.terminal import on_one_line
from schemactl.registry.interface import Warn, no_warning
from schemactl.registry.pulsar import responses
from schemactl.registry.pulsar.credentials import Credentials, is_private
from schemactl.registry.pulsar.error_causes import ErrorCause, find_cause, format_cause
from schemactl.registry.pulsar.failures import CHECK_ADDRESS, explain_failure
from schemactl.registry.pulsar.responses import (
    MAX_ERROR_BYTES,
    AnswerWait,
    Reply,
    audit_request,
    can_succeed_later,
    error_message,
    has_shape,
    is_unauthenticated,
    retry_after_s,
)
from schemactl.registry.url import HostPort, parse, parse_address, split_addresses

_HEADERS: Final = {"Accept": "application/json, */*;q=0.1", "User-Agent": "schemactl"}
_HEADERS_WITH_BODY: Final = {**_HEADERS, "Content-Type": "application/json"}
_NO_RETRIES = urllib3.Retry(total=False, redirect=False)
"""As `retries=False`, for which urllib3 would make such an object for each request."""
_MAX_REDIRECTS = 5
_MAX_MESSAGE = 500
_MAX_CLUSTERS = 64
_REDIRECTS = frozenset({307, 308})
_UNAUTHORIZED = 401
_UNKNOWN_CLUSTER: Final = "Invalid cluster id: "
"""The beginning of a broker's message about replication to a cluster that it does not know."""
_MESSAGE_VERSION: Final = "X-Pulsar-Base64-schema-version"
_FORBIDDEN = frozenset({401, 403})

_LOOK_EVERY_S: Final = 0.25
"""The time between two looks of a `RequestWatch` at its requests."""

_MAX_SHOWN: Final = 200

_MAX_BATCH = 32

_CHECK_OWNERS: Final = (
    "check that the brokers run and are healthy (`pulsar-admin brokers healthcheck`), and that each has another "
    "`advertisedAddress`"
)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class WaitTimes:
    """The times that a client of a cluster waits, in seconds.

    Attributes:
        connect_s: the time limit of opening a connection to a server.
        read_s: the time limit of each read of a part of a response.
        response_s: the time limit from the end of a request to the end of its response.
        first_retry_s: the deadline for retries to a cluster that has never answered, as its address may be wrong.
        retry_s: the deadline for retries to a cluster that has answered; a broker restarts in less time.
        unreachable_s: the deadline for retries if no server can be reached, or servers redirect in a circle.
        longest_delay_s: the longest delay before a retry, except for one that a server requests.
        total_s: the longest total wait of a command for a cluster.
        warn_after_s: the duration of a request after which the user is warned of it.
        warn_every_s: the shortest time between two warnings.
        visible_s: the time limit until a change of a policy can be read back.
        connects_follow_s: the delay of new policies for connecting clients: up to 0.04 s on 4.0.7 and 4.2.4, and over 1 s under load.
    """

    connect_s: float = 10.0
    read_s: float = 60.0
    response_s: float = 60.0
    first_retry_s: float = 2.0
    retry_s: float = 60.0
    unreachable_s: float = 20.0
    longest_delay_s: float = 5.0
    total_s: float = 180.0
    warn_after_s: float = 2.0
    warn_every_s: float = 10.0
    visible_s: float = 15.0
    connects_follow_s: float = 2.0


class NoResponseError(RegistryError):
    """A request got no response, so it may or may not have been carried out."""


class UnreachableError(NoResponseError):
    """A request did not arrive at a server that answers it."""


class AdminConnection:
    """A connection to a cluster's admin API, safe for use by several threads.

    Args:
        url: `http(s)://HOST:PORT`, or several addresses of one cluster separated by commas, tried in turn.
        credentials: the credentials, sent only to hosts of the cluster; a token over http only to this machine.
        warn: called during a long wait.
        parallel: the number of requests that `map_in_threads` sends at once.
        waits: the times to wait.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials,
        warn: Warn = no_warning,
        parallel: int = PARALLEL,
        waits: WaitTimes = WaitTimes(),
    ) -> None:
        self.url = url
        self.parallel = parallel
        self._waits = waits
        try:
            self._bases = parse(url).addresses
        except ValueError as error:
            raise RegistryError(error.args[0], fix=error.args[1]) from None
        self._configured = frozenset(map(parse_address, self._bases))
        self._cluster = set(self._configured)
        self._credentials = credentials
        for base in self._bases:
            self._require_private(base, f"{url}: ")
        self._manager = urllib3.PoolManager(
            num_pools=64,
            maxsize=MAX_PARALLEL,
            block=True,
            timeout=urllib3.Timeout(connect=waits.connect_s, read=waits.read_s),
            ssl_context=credentials.tls,
        )
        self._pools: dict[str, urllib3.HTTPConnectionPool] = {}
        self._budget = RetryBudget(waits.total_s)
        self._watch = RequestWatch(lambda text: warn(f"{url}: {self._credentials.redact(text)}"), waits)
        self._base = 0
        self._has_answered = False
        self._has_listed_brokers = False
        self._lock = RLock()
        self._stopped = Event()
        self._thread_state = _ThreadState()
        self._only_thread: int | None = None
        self._lasting: set[ErrorCause] = set()
        """The causes of errors for which retries were in vain."""

    def stop_other_threads(self) -> None:
        """Send only requests of the calling thread from now on; waiting retries of other threads fail at once."""
        self._only_thread = get_ident()
        self._stopped.set()

    def close(self) -> None:
        """Close the connections, also those on which another thread waits for a response."""
        self._watch.close()
        # The manager only forgets its pools, and their connections would stay open as long as anything refers to them.
        for pool in self._pools.copy().values():
            pool.close()
        self._pools.clear()
        self._manager.clear()

    def get(self, path: str, shape: Any, **absent: Any) -> Any:
        """Return the JSON value at `path` below `/admin/v2/`, or None for an empty reply.

        Args:
            path: the path below `/admin/v2/`.
            shape: the expected shape (see `has_shape`).
            absent: `absent=value` returns that value for a 404.

        Raises:
            RegistryError: if there is no response, the broker reports an error, or the value has another shape.
        """
        reply = self.send("GET", path)
        if reply.status == 404 and absent:
            return absent["absent"]
        self.expect(reply, f"GET {path}")
        return self.read_json(reply, f"GET {path}", shape)

    def change(self, method: str, path: str, body: Any = None, *, of: object = "", allowed: int | None = None) -> Reply:
        """Send a request that is safe to repeat; raise RegistryError unless its status is a success or `allowed`.

        With `of`, a 404 means that the object `of` does not exist.
        """
        reply = self.send(method, path, body)
        if reply.status != allowed:
            self.expect(reply, f"{method} {path}", of=of)
        return reply

    def read_json(self, reply: Reply, request: str, shape: Any) -> Any:
        """Return the JSON value of the reply to a request; raise RegistryError if it does not have this shape."""
        fix = CHECK_ADDRESS
        try:
            value = reply.json()
        except ValueError:
            raise RegistryError(
                f"{self.url}: {request} does not answer with JSON{_source_clause(reply)}", fix=fix
            ) from None
        if not has_shape(value, shape):
            raise RegistryError(f"{self.url}: {request} does not answer as Pulsar does{_source_clause(reply)}", fix=fix)
        return value

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        find_lost_reply: Callable[[], Reply | None] = lambda: None,
        is_repeated: bool = True,
    ) -> Reply:
        """Send a request, with retries if these may help, and return the last reply.

        Args:
            method: the HTTP method.
            path: the path below `/admin/v2/`.
            body: the JSON body.
            find_lost_reply: called before each retry; for a request that is not safe to repeat, it returns the lost reply if the
                request was carried out.
            is_repeated: whether to send it again if that may help.

        Raises:
            RegistryError: if no response comes before the deadline for retries.
        """
        request = SlowRequest(
            method,
            path,
            None if body is None else json.dumps(body).encode(),
            find_lost_reply,
            is_repeated,
            until_s=time.monotonic() + max(self._waits.response_s, self._deadline_s),
            answer=AnswerWait(self._waits.response_s),
        )
        if current_thread() is not main_thread():
            return self._send_watched(request)
        # In the main thread, the resolution of a name would block interrupts and alarms.
        future: Future[Reply] = Future()
        send = partial(self._send_watched, request)
        Thread(target=self._complete, args=(future, send, self._owner), daemon=True).start()
        try:
            return future.result()
        except (KeyboardInterrupt, OutOfTime):
            request.cancel()
            raise

    def _complete(self, future: Future[_Result], function: Callable[[], _Result], owner: int) -> None:
        """Call a function in this thread, for the thread `owner`, and put its result into the future."""
        self._thread_state.owner = owner
        try:
            future.set_result(function())
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            future.set_exception(error)

    def _send_watched(self, request: SlowRequest) -> Reply:
        def describe_wait() -> str:
            reason = request.reason or f"no response for {time.monotonic() - request.since_s:.1f} s"
            return f"{self.url}: {request.name} ({self._credentials.redact(reason)})"

        outer_wait, responses.current.wait = responses.current.wait, request.answer
        begin_wait(request, describe_wait, self._owner)
        self._watch.begin(request)
        try:
            if not request.is_repeated:
                return self.send_once(request.method, request.path, request.data)
            return self._send_with_retries(request)
        finally:
            self._watch.end(request)
            end_wait(request)
            responses.current.wait = outer_wait

    @property
    def _owner(self) -> int:
        """The thread for which the calling thread sends requests."""
        return self._thread_state.owner or get_ident()

    def _send_with_retries(self, request: SlowRequest) -> Reply:
        first_s_by_cause: dict[ErrorCause, float] = {}
        for attempt in count(1):
            # Random, so that clients of a restarted broker do not all retry at once.
            delay_s = min(0.05 * 2 ** (attempt - 1), self._waits.longest_delay_s) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
            self._thread_state.attempt = attempt
            try:
                reply = self.send_once(request.method, request.path, request.data)
            except NoResponseError as error:
                limit_s = self._deadline_s
                if isinstance(error, UnreachableError):
                    limit_s = min(limit_s, self._waits.unreachable_s)
                is_last = attempt >= len(self._bases) and not self._may_wait(request, delay_s, limit_s)
                if is_last or request.is_canceled:
                    raise
                request.reason = error.message.removeprefix(f"{self.url}: ")
            else:
                if reply.is_success or not can_succeed_later(reply, len(request.data or b"")):
                    return reply
                cause, limit_s = find_cause(reply), self._deadline_s
                if cause and cause.retry_s is not None:
                    # A broker that restarts answers before its bookies do, so the time of a cause begins with its first reply.
                    first_s = first_s_by_cause.setdefault(cause, time.monotonic())
                    limit_s = min(limit_s, first_s - request.since_s + cause.retry_s)
                if request.is_canceled or cause in self._lasting or not self._may_wait(request, delay_s, limit_s):
                    if cause and cause.is_lasting:
                        self._lasting.add(cause)
                    return reply
                delay_s = max(delay_s, min(reply.retry_after_s or 0.0, self._waits.retry_s))
                request.reason = f"answers {reply.status}"
            finally:
                self._thread_state.attempt = 1
            request.until_s = request.since_s + limit_s
            with self._budget.count_wait():
                # The event is set while other threads may not send requests.
                if self._only_thread == self._owner:
                    time.sleep(delay_s)
                else:
                    self._stopped.wait(delay_s)
            if (lost_reply := request.find_lost_reply()) is not None:
                return lost_reply
        raise AssertionError("the loop has no end")

    def _may_wait(self, request: SlowRequest, delay_s: float, limit_s: float) -> bool:
        """Return whether a retry after `delay_s` is within the limit of the request, and within the total wait of the command."""
        return time.monotonic() + delay_s <= request.since_s + limit_s and not self._budget.is_over

    def send_once(self, method: str, path: str, data: bytes | None = None) -> Reply:
        """Return the reply to a request that is sent once, except for redirects and an expired token.

        Raises:
            NoResponseError: if no response comes; the request may have been carried out.
            RegistryError: if the request was not carried out, and a retry would not help.
        """
        if self._stopped.is_set() and self._only_thread != self._owner:
            raise RegistryError(f"{self.url}: {method} {path} was not sent: another request had failed")
        base, target = self._resolve_address(path)
        redirected_to = ""
        for _ in range(_MAX_REDIRECTS):
            reply = self._send_authorized(method, base, target, data)
            if reply.status not in _REDIRECTS:
                return reply._replace(redirected_to=redirected_to) if redirected_to else reply
            base, target = self._parse_redirect(base + target, reply.reason)
            redirected_to = base[:_MAX_SHOWN]
        raise UnreachableError(
            f"{self.url}: redirected more than {_MAX_REDIRECTS} times, at last to {redirected_to}: no broker owns {path} yet",
            fix=_CHECK_OWNERS,
        )

    def expect(self, reply: Reply, request: str, *, of: object = "") -> None:
        """Raise RegistryError with the broker's message unless the reply to a request is a success.

        With `of`, a 404 means that the object `of` does not exist.
        """
        if reply.is_success:
            return
        if of and reply.status == 404:
            raise RegistryError(f"{of} does not exist in the registry")
        problem = f"{self.url}: {request} answers {reply.status}{_source_clause(reply)}"
        message = on_one_line(self.error_message(reply)[:_MAX_MESSAGE])
        if is_unauthenticated(reply, has_expired=self._credentials.has_expired):
            reason, fix = self._credentials.explain_rejection()
            raise UnusableCredentials(f"{problem}{f' ({message})' if message else ''}: {reason}", fix=fix)
        problem = f"{problem}{': ' if message else ''}{message}"
        if message.startswith(_UNKNOWN_CLUSTER):
            # Brokers answer 403, which is not about the role.
            raise RegistryError(problem, fix="name only clusters that `pulsar-admin clusters list` shows")
        if reply.status not in _FORBIDDEN:
            cause, fix = format_cause(error_cause, request) if (error_cause := find_cause(reply)) else ("", "")
            raise RegistryError(f"{problem}{f' ({cause})' if cause else ''}", fix=fix)
        raise NotPermitted(
            problem,
            fix=f"give {self._credentials.describe_role()} the permission: `schemactl docs reference/targets` lists "
            "the permissions of each command",
        )

    def error_message(self, reply: Reply) -> str:
        """Return the broker's message without secrets."""
        return self._credentials.redact(error_message(reply))

    def map_in_threads(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Yield the result of `function` for each item, in order, from several threads.

        After an exception, no further request is sent. An interrupt does not wait for the requests in progress.
        """
        pending = list(items)
        if len(pending) < 2 or self._only_thread is not None:
            yield from map(function, pending)
            return
        # Handing over each item separately costs a tenth of the time of its requests.
        size = max(1, min(_MAX_BATCH, len(pending) // self.parallel))
        futures: list[Future[list[_Result]]] = []
        batches: deque[tuple[Future[list[_Result]], list[_Item]]] = deque()
        for start in range(0, len(pending), size):
            futures.append(Future())
            batches.append((futures[-1], pending[start : start + size]))
        owner = self._owner

        def work_off_batches() -> None:
            with suppress(IndexError):
                while True:
                    future, batch = batches.popleft()
                    self._complete(future, partial(list, map(function, batch)), owner)

        # Daemon threads, because the threads of ThreadPoolExecutor keep the process from ending.
        workers = [Worker(work_off_batches) for _ in range(min(self.parallel, len(futures)))]
        for worker in workers:
            worker.start()
        try:
            for future in futures:
                yield from future.result()
        except BaseException as error:
            self._stopped.set()
            batches.clear()
            if not isinstance(error, (KeyboardInterrupt, OutOfTime)):
                for worker in workers:
                    worker.wait(self._waits.response_s)
                self._stopped.clear()
            raise

    @property
    def _deadline_s(self) -> float:
        return self._waits.retry_s if self._has_answered else self._waits.first_retry_s

    def _require_private(self, base: str, place: str) -> None:
        """Raise RegistryError if a token would be sent to `base` without encryption."""
        if self._credentials.bearer is not None and not is_private(base):
            raise RegistryError(
                f"{place}a token is sent over http only to this machine, because others on the network could read it",
                fix="write https:// in `registry` of the target, or reach the cluster through a tunnel on 127.0.0.1",
            )

    def _send_authorized(self, method: str, base: str, target: str, data: bytes | None) -> Reply:
        bearer = self._credentials.bearer
        if bearer is None:
            return self._request(method, base, target, data, None)
        token = bearer.get_token()
        reply = self._request(method, base, target, data, token)
        if reply.status == _UNAUTHORIZED and bearer.renew(token):
            return self._request(method, base, target, data, bearer.get_token())
        return reply

    def _request(self, method: str, base: str, target: str, data: bytes | None, token: str | None) -> Reply:
        headers = _HEADERS if data is None else _HEADERS_WITH_BODY
        if token is not None:
            headers = {**headers, "Authorization": f"Bearer {token}"}
        started_s, wait = time.monotonic(), responses.current.wait or AnswerWait(self._waits.response_s)
        try:
            # A lookup in urllib3's manager costs as much as a request.
            pool = self._pools.get(base)
            if pool is None:
                pool = self._pools[base] = responses.open_pool(self._manager, base)
            response = pool.urlopen(
                method,
                target,
                data,
                headers,
                retries=_NO_RETRIES,
                redirect=False,
                assert_same_host=False,
                preload_content=False,
            )
            is_success = response.status < 300
            max_bytes = responses.MAX_ANSWER_BYTES if is_success else MAX_ERROR_BYTES
            body = responses.read_body(response, max_bytes=max_bytes, cut=not is_success)
            wait.end()
        except (HTTPError, UnicodeError) as error:
            failure = self._describe_failure(base, wait.explain(error))
            self._audit_request(method, base + target, failure.message.removeprefix(f"{self.url}: "), started_s)
            raise failure from None
        self._audit_request(method, base + target, str(response.status), started_s)
        self._has_answered = True
        if is_success:
            return Reply(response.status, body=body, has_schema_version=_MESSAGE_VERSION in response.headers)
        response_headers = response.headers
        if response.status in _REDIRECTS:
            return Reply(response.status, response_headers.get("Location", ""))
        return Reply(
            response.status,
            response.reason or "",
            response_headers.get("Content-Type", ""),
            body,
            retry_after_s(response_headers.get("Retry-After", "")),
        )

    def _audit_request(self, method: str, url: str, outcome: str, started_s: float) -> None:
        if not url.startswith(self._bases) and parse_address(url) not in self._configured:
            # The query of a redirect can contain secrets of the server.
            url = url.partition("?")[0]
        audit_request(
            method,
            self._credentials.redact(url),
            self._credentials.redact(outcome),
            started_s,
            self._thread_state.attempt,
        )

    def _resolve_address(self, path: str) -> tuple[str, str]:
        """Return the base URL of the current host, and the full path of `path` below `/admin/v2/`."""
        scheme, _, rest = self._bases[self._base].partition("://")
        host, slash, prefix = rest.partition("/")
        return f"{scheme}://{host}", f"{slash}{prefix}/admin/v2/{path}"

    def _describe_failure(self, base: str, error: HTTPError | UnicodeError) -> RegistryError:
        cause = explain_failure(
            error,
            base,
            self._credentials,
            is_redirected=parse_address(base) not in self._configured,
            may_probe=not self._has_answered,
        )
        if isinstance(error, (NewConnectionError, ConnectTimeoutError)) and len(self._bases) > 1:
            with self._lock:
                self._base = (self._base + 1) % len(self._bases)
        # A NewConnectionError is also a ConnectTimeoutError. A refused connection is a broker that restarts.
        is_unreachable = isinstance(error, NameResolutionError) or (
            isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError)
        )
        error_class = RegistryError
        if cause.may_pass:
            error_class = UnreachableError if is_unreachable else NoResponseError
        if cause.is_of_credentials:
            error_class = UnusableCredentials
        return error_class(f"{self.url}: {cause.message}", fix=cause.fix)

    def _parse_redirect(self, url: str, location: str) -> tuple[str, str]:
        try:
            parts = urlsplit(urljoin(url, location))
            is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid:
            raise RegistryError(f"{self.url}: redirected to {location[:200]!r}, which is not an address of a broker")
        if urlsplit(url).scheme == "https" and parts.scheme == "http":
            raise RegistryError(f"{self.url}: redirected from https to {parts.hostname} without encryption")
        base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._require_private(base, f"{self.url}: redirected to {base[:_MAX_SHOWN]}, and ")
        if self._credentials.has_secret and not self._is_of_cluster(parse_address(base)):
            raise RegistryError(
                f"{self.url}: redirected to {base}, which the cluster does not list as a broker, so the credentials were not "
                "sent there",
                fix=f"if it is a broker of yours, add it to the target: registry: {self.url},{base}",
            )
        return base, f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"

    def _is_of_cluster(self, address: HostPort) -> bool:
        """Return whether the project file or the cluster lists this address."""
        if address in self._cluster:
            return True
        with self._lock:
            if not self._has_listed_brokers:
                self._has_listed_brokers = True
                # The brokers that the cluster lists, on each port that it or the project file uses.
                listed = _parse_addresses(f"//{broker}" for broker in self._get_if_permitted("brokers", list))
                ports = {port for _, port in self._cluster}
                for name in self._get_if_permitted("clusters", list)[:_MAX_CLUSTERS]:
                    cluster = self._get_if_permitted(f"clusters/{quote(str(name), safe='')}", dict)
                    for key in ("serviceUrl", "serviceUrlTls"):
                        ports |= {port for _, port in _parse_addresses(split_addresses(str(cluster.get(key) or "")))}
                self._cluster |= listed | {(host, port) for host, _ in listed for port in ports}
        return address in self._cluster

    def _get_if_permitted(self, path: str, kind: type[Any]) -> Any:
        """Return the JSON at `path` from a configured host, or an empty value if the role is not a superuser."""
        reply = self._send_authorized("GET", *self._resolve_address(path), None)
        try:
            value = reply.json() if reply.is_success else None
        except ValueError:
            value = None
        return value if isinstance(value, kind) else kind()


def _source_clause(reply: Reply) -> str:
    """Return a clause with the host of a redirected reply, or ""."""
    return f" (redirected to {reply.redirected_to})" if reply.redirected_to else ""


def _parse_addresses(urls: Iterable[str]) -> set[HostPort]:
    """Return the host and port of each valid URL."""
    addresses = set()
    for url in urls:
        with suppress(ValueError):
            addresses.add(parse_address(url))
    return addresses


class _ThreadState(local):
    """The state of the calling thread: the number of the attempt of its request, and the thread for which it is sent, 0 for itself."""

    attempt = 1
    owner = 0


@dataclass(slots=True, eq=False)
class SlowRequest:
    """A request in progress, with its retries.

    Attributes:
        find_lost_reply, is_repeated: see `AdminConnection.send`.
        until_s: the deadline, by the monotonic clock.
        answer: the wait for the current response.
        since_s: the start, by the monotonic clock.
        reason: the reason of the last retry, or "".
        is_named: whether the user was warned of it.
        is_canceled: whether its response is no longer waited for.
    """

    method: str
    path: str
    data: bytes | None
    find_lost_reply: Callable[[], Reply | None]
    is_repeated: bool
    until_s: float
    answer: AnswerWait
    since_s: float = field(default_factory=time.monotonic)
    reason: str = ""
    is_named: bool = False
    is_canceled: bool = False

    @property
    def name(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"

    def cancel(self) -> None:
        """End the request, from another thread."""
        self.is_canceled = True
        self.answer.close()


class RequestWatch:
    """Warns of slow requests, and ends responses that take too long, from a background thread.

    Args:
        warn: called with a sentence about a slow request.
        waits: the times from a request to its warning, and between warnings.
    """

    def __init__(self, warn: Callable[[str], None], waits: WaitTimes) -> None:
        self._warn = warn
        self._waits = waits
        self._lock = Lock()
        self._requests: set[SlowRequest] = set()
        self._thread: Thread | None = None
        self._closed = Event()
        self._warned_s = float("-inf")

    def begin(self, request: SlowRequest) -> None:
        """Watch a request until `end`."""
        with self._lock:
            self._requests.add(request)
            if self._thread is None:
                self._thread = Thread(target=self._watch_requests, daemon=True)
                self._thread.start()

    def end(self, request: SlowRequest) -> None:
        """Stop watching a request."""
        with self._lock:
            self._requests.discard(request)

    def close(self) -> None:
        """End the thread and the requests in progress."""
        self._closed.set()
        with self._lock:
            for request in self._requests:
                request.cancel()

    def _watch_requests(self) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            now_s = time.monotonic()
            with self._lock:
                for request in self._requests:
                    request.answer.close_if_over(now_s)
                slow = sorted(
                    (request for request in self._requests if now_s - request.since_s >= self._waits.warn_after_s),
                    key=lambda request: request.since_s,
                )
            new = next((request for request in slow if not request.is_named), None)
            if new and now_s - self._warned_s >= self._waits.warn_every_s:
                self._warned_s, new.is_named = now_s, True
                more = f" (and {len(slow) - 1} more)" if len(slow) > 1 else ""
                reason, action = f"no answer for {now_s - new.since_s:.0f} s", "waiting"
                if new.reason:
                    reason, action = new.reason, "trying again"
                self._warn(f"{new.name}{more}: {reason}; {action} for up to {max(new.until_s - now_s, 1.0):.0f} s")


class RetryBudget:
    """The total time of waiting; time in which several threads wait counts once.

    Args:
        total_s: the longest total wait, in seconds.
    """

    def __init__(self, total_s: float) -> None:
        self._total_s = total_s
        self._lock = Lock()
        self._waiting = 0
        self._since_s = 0.0
        self._spent_s = 0.0

    @property
    def is_over(self) -> bool:
        """Whether the budget is used up."""
        with self._lock:
            now_s = time.monotonic()
            return self._spent_s + (now_s - self._since_s if self._waiting else 0.0) > self._total_s

    @contextmanager
    def count_wait(self) -> Iterator[None]:
        """Count the time in the block as waiting."""
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
