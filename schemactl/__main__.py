"""The start: `schemactl`, and `python -m schemactl`."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # With `-m` the first place that Python looks for modules is the working directory: a repository, whose `yaml.py` is not
    # the one we mean. This package itself may have been found there, as in a checkout of it: then its modules still are.
    del sys.path[0]

from schemactl.deadline import DEFAULT_S, OutOfTime, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from schemactl.staged import Look

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> int:
    """The exit code of one run of the command line."""
    try:
        look = _look() if sys.argv[1:] == ["check", "--staged"] else None
        from schemactl.cli import main as command_line

        return command_line(look=look)
    except OutOfTime as error:
        print(f"schemactl: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("schemactl: interrupted", file=sys.stderr)
        return INTERRUPTED


def _look() -> "Look":
    """The report is printed and the process ends, when the report can be told without working it out."""
    import gc
    import os

    from schemactl import staged
    from schemactl.printing import clean

    # Looking for garbage and tidying up at the end would take longer than the answer itself.
    gc.disable()
    look = staged.Look()
    report = within(DEFAULT_S, "looking at the index", lambda _: look.answer())
    gc.enable()
    if report is not None:
        try:
            print(clean(report, styled=True), flush=True)
        except OSError:
            # The command line knows what to do when nobody listens.
            return look
        os._exit(0)
    return look


if __name__ == "__main__":
    sys.exit(main())
