"""The start: `schemactl`, and `python -m schemactl`."""

from __future__ import annotations

import sys


def main() -> int:
    """The exit code of one run of the command line."""
    if sys.argv[1:] == ["check", "--staged"]:
        _tell_on_sight()
    from schemactl.cli import main as command_line

    return command_line()


def _tell_on_sight() -> None:
    """The report is printed and the process ends, when the report can be told without working it out."""
    import gc
    import os

    from schemactl import staged

    # Looking for garbage and tidying up at the end would take longer than the answer itself.
    gc.disable()
    report = staged.answer()
    gc.enable()
    if report is not None:
        try:
            print(report, flush=True)
        except OSError:
            # The command line knows what to do when nobody listens.
            return
        os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
