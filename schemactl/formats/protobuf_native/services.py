"""buf's rules on services and their RPCs, one function a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from google.protobuf.descriptor_pb2 import MethodOptions

from schemactl.formats.protobuf_native.descriptor import Method, Service
from schemactl.formats.protobuf_native.violation import Violation, violation

ServiceRule = Callable[[Service, Service], Iterator[Violation]]
MethodRule = Callable[[Method, Method], Iterator[Violation]]


def rpc_no_delete(old: Service, new: Service) -> Iterator[Violation]:
    """Every RPC, by name."""
    kept = new.methods()
    for name, method in old.methods().items():
        if name not in kept:
            words = f'Previously present RPC "{name}" on service "{new.proto.name}" was deleted.'
            yield violation("RPC_NO_DELETE", words, (new, ""), pointer=method.pointer)


def _described(method: Method) -> str:
    return f'RPC "{method.proto.name}" on service "{method.service.proto.name}"'


def same_request_type(old: Method, new: Method) -> Iterator[Violation]:
    """The message sent, by full name."""
    before, after = old.proto.input_type.removeprefix("."), new.proto.input_type.removeprefix(".")
    if before != after:
        words = f'{_described(new)} changed request type from "{before}" to "{after}".'
        yield violation("RPC_SAME_REQUEST_TYPE", words, (new, "input_type"))


def same_response_type(old: Method, new: Method) -> Iterator[Violation]:
    """The message answered, by full name."""
    before, after = old.proto.output_type.removeprefix("."), new.proto.output_type.removeprefix(".")
    if before != after:
        words = f'{_described(new)} changed response type from "{before}" to "{after}".'
        yield violation("RPC_SAME_RESPONSE_TYPE", words, (new, "output_type"))


def same_client_streaming(old: Method, new: Method) -> Iterator[Violation]:
    """One request, or a stream of them."""
    if old.proto.client_streaming != new.proto.client_streaming:
        change = _streaming("client", streams=new.proto.client_streaming)
        yield violation("RPC_SAME_CLIENT_STREAMING", f"{_described(new)} changed {change}.", (new, ""))


def same_server_streaming(old: Method, new: Method) -> Iterator[Violation]:
    """One answer, or a stream of them."""
    if old.proto.server_streaming != new.proto.server_streaming:
        change = _streaming("server", streams=new.proto.server_streaming)
        yield violation("RPC_SAME_SERVER_STREAMING", f"{_described(new)} changed {change}.", (new, ""))


def _streaming(side: str, *, streams: bool) -> str:
    before, after = ("unary", "streaming") if streams else ("streaming", "unary")
    return f"from {side} {before} to {side} {after}"


def same_idempotency_level(old: Method, new: Method) -> Iterator[Violation]:
    """Whether a call may be repeated."""
    before, after = old.proto.options.idempotency_level, new.proto.options.idempotency_level
    if before != after:
        names = MethodOptions.IdempotencyLevel.Name
        words = f'{_described(new)} changed option "idempotency_level" from "{names(before)}" to "{names(after)}".'
        yield violation("RPC_SAME_IDEMPOTENCY_LEVEL", words, (new, "idempotency_level"))


SERVICE_RULES: Mapping[str, ServiceRule] = {"RPC_NO_DELETE": rpc_no_delete}

METHOD_RULES: Mapping[str, MethodRule] = {
    "RPC_SAME_CLIENT_STREAMING": same_client_streaming,
    "RPC_SAME_IDEMPOTENCY_LEVEL": same_idempotency_level,
    "RPC_SAME_REQUEST_TYPE": same_request_type,
    "RPC_SAME_RESPONSE_TYPE": same_response_type,
    "RPC_SAME_SERVER_STREAMING": same_server_streaming,
}
