"""`schemactl serve`: the embedded registry behind Pulsar's admin REST paths."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from schemactl.cli.context import Context
from schemactl.cli.parser import add_options, number
from schemactl.core.errors import DeclarationError, SchemactlError, UsageError

if TYPE_CHECKING:
    from schemactl.core.project import Project

MEMORY = "memory:"
DEFAULT_PORT = 8080


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `serve`."""
    parser.description = (
        "Serve the embedded registry as a Pulsar broker would: schemas, and the tenants, namespaces, topics and policies "
        "around them. Prints its URL when it is ready, and ends on Ctrl-C or SIGTERM. The project's `pulsar` and `defaults` "
        "say which release it answers as, and stand in for the broker's own settings. There is no authentication: requests that "
        "call it by a name that was not given to it, as other people's web pages make browsers do, are rejected."
    )
    parser.epilog = (
        "examples:\n"
        "  schemactl serve --port 0                                         in memory, on a free port\n"
        "  schemactl serve --registry sqlite:.schemactl/registry.db         what `plan --target local` speaks of\n"
        "  pulsar-admin --admin-url http://127.0.0.1:8080 schemas get shop/sales/orders\n"
    )
    add_options(
        parser, "--port N: 0: any that is free (default: 8080)", type=number(0, 65535), default=DEFAULT_PORT
    )
    add_options(
        parser,
        "--registry URL: sqlite:PATH, memory: or module:Class?metadata=PATH (default: memory:, gone when it ends)",
        default=MEMORY,
    )
    add_options(
        parser,
        "--host ADDRESS: address to listen on (default: 127.0.0.1); any but this machine's own needs --allow-host",
        default="127.0.0.1",
    )
    add_options(
        parser,
        "--allow-host NAME...: a name or address, besides localhost, by which clients may call the server; can be given several times",
    )


def run(args: argparse.Namespace, context: Context) -> int:
    """Return 0 when it is stopped."""
    from schemactl.registry import open_embedded

    try:
        from schemactl.registry.server.app import host_name, is_loopback, serve
    except ModuleNotFoundError as error:
        raise SchemactlError(
            f"serve needs {error.name}, which is not installed", fix='pip install "pulsar-schemactl[serve]"'
        ) from error
    allowed = [host_name(name) for name in args.allow_host]
    for name, given in zip(allowed, args.allow_host, strict=True):
        if not name:
            raise UsageError(f"--allow-host {given}: this is no host's name", fix="write NAME, without port")
    if not is_loopback(args.host.strip("[]")):
        if not allowed:
            raise UsageError(
                f"--host {args.host} lets other machines in, and there is no authentication",
                fix="name the server as they are to call it, with --allow-host NAME; or leave --host away",
            )
        context.say(
            f"warning: whoever reaches {args.host} and calls it {' or '.join(allowed)} can read, write and delete everything here: "
            "there is no authentication"
        )
    project = _project(context)
    registry = open_embedded(
        args.registry, release=project.release, defaults=project.defaults, folder=Path(context.directory)
    )
    if registry is None:
        raise UsageError(
            f"--registry {args.registry} is no embedded registry",
            fix="write sqlite:PATH, memory: or module:Class?metadata=PATH",
        )
    with closing(registry):
        # A file that cannot be used is to be said now, not to the first client.
        registry.tenants()
        serve(
            registry,
            host=args.host,
            port=args.port,
            ready=lambda url: print(url, flush=True),
            allowed_hosts=allowed,
        )
    return 0


def _project(context: Context) -> Project:
    """Return the project of the current folder; outside of a project, one with all defaults."""
    from schemactl.core.project import Project
    from schemactl.declare import project as declare_project

    try:
        project, _ = declare_project.load_project(context.directory, context.config)
    except (DeclarationError, UsageError):
        raise
    except SchemactlError:
        if context.config:
            raise
        return Project()
    return project
