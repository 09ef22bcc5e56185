"""`messages.txt` lists every message of the package."""

from __future__ import annotations

from message_list import GOLDEN, render_messages


def test_messages_are_listed() -> None:
    assert render_messages() == GOLDEN.read_text(encoding="utf-8"), (
        "run python tests/message_list.py, and read the difference"
    )
