"""The start: `schemactl`, and `python -m schemactl`."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit code of one run of the command line."""
    if sys.argv[1:] == ["check", "--staged"]:
        from schemactl import staged

        report = staged.answer()
        if report is not None:
            print(report)
            return 0
    from schemactl.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
