"""The entry point of `schemactl` and `python -m schemactl`."""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # With `-m`, Python looks for modules in the working directory first: a repository, whose `yaml.py` must not replace PyYAML.
    # If this package itself was found there, as in its own checkout, its modules are still found.
    del sys.path[0]

from schemactl.core.deadline import DEFAULT_S, OutOfTime, end_command, run_with_alarm, start_command

_SIGINT = 2


def main() -> int:
    """Run the command line and return its exit code."""
    start_command()
    try:
        if sys.argv[1:] == ["check", "--staged"]:
            from schemactl.history import early_exit

            if run_with_alarm(DEFAULT_S, "looking at the index", lambda _: early_exit.is_nothing_staged()):
                print(early_exit.MESSAGE)
                return 0
        from schemactl.cli import main as command_line

        return command_line()
    except OutOfTime as error:
        _print_reason(str(error))
        return 1
    except KeyboardInterrupt as interrupt:
        _print_reason("interrupted")
        # As in shells: 130 after Ctrl-C, 143 after SIGTERM.
        return 128 + getattr(interrupt, "signal_number", _SIGINT)
    finally:
        end_command()


def _print_reason(reason: str) -> None:
    """Print why the command ended, unless its terminal was closed: then writing fails."""
    try:
        print(f"schemactl: {reason}", file=sys.stderr)
    except OSError:
        # Python would flush the rest of standard output at exit, which fails as well, and change the exit code.
        sys.stdout = None


if __name__ == "__main__":
    sys.exit(main())
