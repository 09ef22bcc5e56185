"""The entry point of `schemactl` and `python -m schemactl`."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # With `-m` the first place that Python looks for modules is the working directory: a repository, whose `yaml.py` is not
    # the one we mean. This package itself may have been found there, as in a checkout of it: then its modules still are.
    del sys.path[0]

from schemactl.core.deadline import DEFAULT_S, OutOfTime, interrupted_after

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""


def main() -> int:
    """Run the command line, and return its exit code."""
    try:
        if sys.argv[1:] == ["check", "--staged"]:
            from schemactl.history import early_exit

            look = early_exit.is_nothing_staged
            if interrupted_after(DEFAULT_S, "looking at the index", lambda _: look()):
                print(early_exit.MESSAGE)
                return 0
        from schemactl.cli import main as command_line

        return command_line()
    except OutOfTime as error:
        print(f"schemactl: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("schemactl: interrupted", file=sys.stderr)
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
