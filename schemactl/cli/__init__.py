"""The entry point of the command line."""

from __future__ import annotations

import argparse
import gc
import io
import os
import re
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO, cast

from schemactl.cli.context import Context, print_error
from schemactl.cli.parser import COMMANDS, build_parser, expand_help, find_command, load_command
from schemactl.core.deadline import PARALLEL, run_within
from schemactl.core.errors import ExitCode, SchemactlError, UsageError
from schemactl.core.terminal import CleanStream, is_color_enabled

__all__ = ["COMMANDS", "Context", "build_parser", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (without the program's name), and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    with _clean_output(), _interrupt_on_termination():
        if arguments[:2] == ["completion", "--words"]:
            from schemactl.cli.completion import print_words

            return print_words(arguments[2:])
        return _run(arguments)


class Terminated(KeyboardInterrupt):
    """A signal that cancels a pipeline or closes a terminal, which ends a command as Ctrl-C does.

    Attributes:
        signal_number: the number of the signal.
    """

    def __init__(self, signal_number: int) -> None:
        super().__init__()
        self.signal_number = signal_number


@contextmanager
def _interrupt_on_termination() -> Iterator[None]:
    """Keep what a command has read, and remove what it has half written, if it is ended by SIGTERM or SIGHUP."""

    def interrupt(number: int, _: object) -> None:
        raise Terminated(number)

    is_main = threading.current_thread() is threading.main_thread()
    names = ("SIGTERM", "SIGHUP") if is_main else ()
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    # `nohup` ignores SIGHUP.
    numbers = [number for number in numbers if number == signal.SIGTERM or signal.getsignal(number) is signal.SIG_DFL]
    old_handlers = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


@contextmanager
def _clean_output() -> Iterator[None]:
    """Print UTF-8 in every locale, and remove control sequences, which a terminal or build server would obey.

    A stream that the process was started without, as by `<&-`, is the null device: the next file that is opened would get its number,
    and a child process would read it or write to it.
    """
    original = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = (
        open(os.devnull, mode, encoding="utf-8") if stream is None else stream  # noqa: PTH123, SIM115  a device, open as long as the process
        for stream, mode in zip(original, ("r", "w", "w"), strict=True)
    )
    streams = sys.stdout, sys.stderr
    for stream in streams:
        if isinstance(stream, io.TextIOWrapper):
            # A definition or a statement in SQL with escapes would be another one. Only the bytes of a path that is not
            # UTF-8 are printed as escapes.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stdout, sys.stderr = (cast("TextIO", CleanStream(cast("TextIO", stream))) for stream in streams)
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = original


def _run(arguments: list[str]) -> int:
    # Declarations and schemas are many small objects that stay alive; by default, searching them for garbage takes a tenth of the time.
    gc.set_threshold(50_000)
    debug = "--debug" in arguments
    if debug:
        _print_events()
    # Import only the module of the command, so that the hook starts fast.
    arguments = expand_help(arguments)
    command = find_command(arguments)
    try:
        args = build_parser([command] if command else [], arguments).parse_args(arguments)
        directory = Path(args.directory).absolute()
        if not directory.is_dir():
            raise UsageError(f"-C {args.directory}: no such folder")
        context = Context(
            str(directory),
            args.config,
            args.quiet,
            args.verbose or debug,
            is_color_enabled(args.color),
            getattr(args, "trust_working_tree", False),
            words=tuple(arguments),
            is_json_progress=args.progress == "json",
            parallel=getattr(args, "parallel", PARALLEL),
        )
        if isinstance(sys.stdout, CleanStream):
            sys.stdout.styled = context.color
        command_entry = load_command(args.command)

        def run(args: argparse.Namespace, context: Context) -> int:
            timeout_s = getattr(args, "timeout", None)
            try:
                return run_within(
                    timeout_s, lambda deadline: command_entry.run(args, replace(context, deadline=deadline))
                )
            except SchemactlError as error:
                context.advise_restoring(error)
                raise

        with closing(context):
            try:
                if getattr(args, "has_result", False):
                    from schemactl.cli.command_result import run_with_result

                    code = run_with_result(run, args, context)
                else:
                    code = run(args, context)
            except SchemactlError as error:
                # Wrong usage changes no file.
                if isinstance(error, UsageError) or not getattr(args, "render_error", None):
                    raise
                from schemactl.cli.report_files import write_error_report

                _print_traceback(debug=debug)
                code = print_error(error)
                write_error_report(error, args, context)
        print(end="", flush=True)
    except SchemactlError as error:
        _print_traceback(debug=debug)
        return print_error(error)
    except BrokenPipeError:
        # The reader of the output has ended, as in `schemactl log | head`.
        _discard_output()
        return ExitCode.ERROR
    except OSError as error:
        _print_traceback(debug=debug)
        # Commands raise a SchemactlError for the problems that they expect; a full disk can happen to all of them.
        path = f"{error.filename}: " if error.filename else ""
        print(f"schemactl: {path}{error.strerror or error}", file=sys.stderr)
        _discard_output()
        return ExitCode.ERROR
    return code


def _discard_output() -> None:
    """Discard the buffer of standard output, because flushing it at exit would fail again."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_traceback(*, debug: bool) -> None:
    """With --debug, print the traceback of the exception being handled."""
    if debug:
        import traceback

        traceback.print_exc()


def _print_events() -> None:
    """Print every process that is started and every request that ends from now on to standard error, with the time since the start."""
    started_s = time.monotonic()

    def on_event(event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            command = args[1] if isinstance(args[1], str) else shlex.join(map(os.fsdecode, args[1]))
            text = re.sub(r"://[^/@\s]+@", "://***@", command)
        elif event == "schemactl.request":
            method, url, outcome, duration_s, attempt = args
            text = f"{method} {url}: {outcome}, {duration_s:.3f} s, attempt {attempt}"
        else:
            return
        # Several threads print, so a line is one call.
        if sys.stderr is not None:
            sys.stderr.write(f"debug: {time.monotonic() - started_s:.3f} s: {text}\n")
            sys.stderr.flush()

    sys.addaudithook(on_event)
