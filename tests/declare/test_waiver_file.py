"""Read the waiver file with all its problems, and add entries to it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from memory_files import MemoryFiles

from schemactl.core.errors import DeclarationError, SchemactlError, Source
from schemactl.core.findings import Waiver
from schemactl.core.names import TopicName
from schemactl.declare.waivers import add_waivers, read_waivers

PRINT = "sha256:" + "0f" * 32
ENTRY = {
    "rule": "MISSING_ENUM_SYMBOLS",
    "topic": "shop/sales/orders",
    "fingerprint": PRINT,
    "reason": "no message ever had it",
    "owner": "team-orders",
    "until": "2027-01-31",
}
WAIVER = Waiver(
    "MISSING_ENUM_SYMBOLS",
    TopicName.parse("shop/sales/orders"),
    PRINT,
    "no message ever had it",
    "team-orders",
    date(2027, 1, 31),
)
OTHER = replace(WAIVER, rule="TYPE_MISMATCH")


def make_entry(**values: str | None) -> str:
    """An entry as a line of the file; of None there is no key."""
    lines = {**ENTRY, **values}
    return "- {" + ", ".join(f"{key}: {value}" for key, value in lines.items() if value is not None) + "}\n"


def read(text: str | bytes) -> tuple[tuple[Waiver, ...], list[str]]:
    waivers, problems = read_waivers(MemoryFiles({"waivers.yaml": text}), "waivers.yaml")
    return waivers, [str(problem) for problem in problems]


def test_a_waiver_is_read_with_its_place() -> None:
    (waiver,), problems = read("# why\n" + make_entry(field="Order.status"))
    assert problems == []
    assert (waiver.source, waiver.field) == (Source("waivers.yaml", 2, 3), "Order.status")
    assert read(make_entry())[0] == (WAIVER,)


@pytest.mark.parametrize("text", ["", "# none yet\n", "[]\n", "~\n"])
def test_a_file_without_waivers_is_fine(text: str) -> None:
    assert read(text) == ((), [])


def test_no_file_is_no_waivers() -> None:
    assert read_waivers(MemoryFiles({}), "waivers.yaml") == ((), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (make_entry(reason=None), "1:3: the key `reason` is missing"),
        (make_entry(owner=None), "1:3: the key `owner` is missing"),
        (make_entry(until=None), "1:3: the key `until` is missing"),
        (make_entry(reason='" "'), "expected the reason, a text, found the text ` `"),
        (make_entry(reason="[no]"), "expected the reason, a text, found a list"),
        (make_entry(owner="7"), "expected a person or a team, found the number 7"),
        (make_entry(until="2027-02-30"), "expected a day such as 2027-01-31, found the text `2027-02-30`"),
        (make_entry(until="2027-1-31"), "expected a day such as 2027-01-31"),
        (make_entry(until="never"), "expected a day such as 2027-01-31"),
        (make_entry(until="20270131"), "expected a day such as 2027-01-31"),
        (make_entry(fingerprint="0f0f"), "expected a fingerprint such as sha256:0f3a..., found the text `0f0f`"),
        (make_entry(fingerprint=PRINT.upper()), "expected a fingerprint"),
        (
            make_entry(rule="MISSING_ENUM_SYMBOL"),
            "`MISSING_ENUM_SYMBOL` is not a rule\n  Fix: write MISSING_ENUM_SYMBOLS",
        ),
        (make_entry(rule='"*"'), "a waiver covers one rule, and `*` has a `*`"),
        (make_entry(topic='"shop/sales/*"'), "a waiver covers one topic, and `shop/sales/*` has a `*`"),
        (make_entry(topic="orders"), "'orders' is not a topic"),
        (make_entry(rule="GATE_CHANGED"), "1:10: GATE_CHANGED cannot be waived"),
        (make_entry(rule="NOT_DECIDED"), "NOT_DECIDED cannot be waived"),
        (make_entry(rule="BROKER_INVALID"), "BROKER_INVALID cannot be waived"),
        (make_entry(rule="PARTITIONS_SHRUNK"), "PARTITIONS_SHRUNK cannot be waived"),
        (make_entry(paths="x"), "unknown key `paths`"),
        (make_entry() + "- 5\n", "2:3: expected a mapping, found the number 5"),
        ("- {rule: A, rule: B}\n", "the key `rule` is repeated"),
        ("rule: X\n", "1:1: expected a list of waivers, found a mapping\n  Fix: write `- rule: ...`"),
        ("waivers\n", "expected a list of waivers, found the text `waivers`"),
        (make_entry() + "---\n" + make_entry(), "3:1: a waiver file has one document"),
        ("- {rule: !secret x}\n", "tags (`!...`) are not used here"),
        ("- [", "waivers.yaml:"),
        ("- &a [*a]\n", "this value contains an alias of itself"),
        (b"\xff\xfe\x00", "waivers.yaml:"),
        ("[" * 300, "nested more than"),
        ("x" * (5 * 1024 * 1024 + 1), "waivers.yaml:"),
    ],
)
def test_a_wrong_entry_is_rejected_with_its_place(text: str | bytes, message: str) -> None:
    _, problems = read(text)
    assert message in "\n".join(problems)


def test_many_wrong_entries_are_counted() -> None:
    _, problems = read(make_entry(until="never") * 5000)
    assert len(problems) == 101
    assert "4,900 more problems" in problems[-1]


def test_what_is_right_is_read_beside_what_is_wrong() -> None:
    waivers, problems = read(make_entry(until="never") + make_entry())
    assert waivers == (WAIVER,)
    assert len(problems) == 1


def test_a_link_is_not_followed() -> None:
    files = MemoryFiles({}, apart={"waivers.yaml": "symlink"})
    assert [str(problem) for problem in read_waivers(files, "waivers.yaml")[1]] == [
        "waivers.yaml:1:1: `waivers.yaml` is a symbolic link; links are not followed\n  Fix: put the file itself here"
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", None),
        ("# ours\n", "# ours\nNEW"),
        ("# ours", "# ours\nNEW"),
        ("[]\n", "[{FLOW}]\n"),
        ("[] # none\n", "[{FLOW}] # none\n"),
        ("~\n", "\nNEW"),
        ("--- # here\n", "--- # here\nNEW"),
        ("OLD", "OLDNEW"),
        ("# é 🎉\nOLD\n# the end\n", "# é 🎉\nOLD\n# the end\nNEW"),
        ("OLD...\n# after\n", "OLDNEW...\n# after\n"),
        ("[{OLDFLOW}, # first\n]\n", "[{OLDFLOW}, {FLOW}, # first\n]\n"),
        ("# 🎉\n[{OLDFLOW}]", "# 🎉\n[{OLDFLOW}, {FLOW}]"),
    ],
)
def test_an_entry_is_added_and_everything_else_stays(before: str, after: str | None) -> None:
    new = "".join(
        f"{'- ' if not number else '  '}{key}: {value}\n"
        for number, (key, value) in enumerate({**ENTRY, "reason": '"no message ever had it"'}.items())
    ).replace("topic: ", "topic: persistent://")
    old = make_entry(until="2026-01-31")
    texts = {"OLDFLOW": old[3:-2], "OLD": old, "NEW": new}
    filled = before
    for name, text in texts.items():
        filled = filled.replace(name, text)
    content = add_waivers("waivers.yaml", filled.encode(), [WAIVER]).decode()
    waivers, problems = read(content)
    assert problems == []
    assert waivers[-1] == WAIVER
    if after is not None:
        expected = after.replace("{FLOW}", "{" + ", ".join(new.replace("- ", "  ", 1).strip().split("\n  ")) + "}")
        for name, text in texts.items():
            expected = expected.replace(name, text)
        assert content == expected


def test_line_ends_and_indentation_of_the_file_are_kept() -> None:
    content = add_waivers("waivers.yaml", f"# ours\r\n  {make_entry()}".replace("}\n", "}\r\n").encode(), [OTHER])
    assert content.count(b"\n") == content.count(b"\r\n") == 8
    assert b"\r\n  - rule: TYPE_MISMATCH\r\n    topic:" in content
    assert read(content)[0] == (WAIVER, OTHER)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "7",
        "a: b",
        "# c",
        "- x",
        "\x1b[31m",
        "\u202e",
        '"',
        "é 🎉",
        "a\nb",
        "!x",
        "*y",
        "%",
        "\u2028",
        "\x85",
        "'",
    ],
)
def test_every_reason_comes_back_as_it_was_given(text: str) -> None:
    waiver = replace(WAIVER, reason=f"x{text}y", owner=f"x{text}y", field=f"x{text}y")
    for before in (b"", b"[]\n"):
        (actual,), problems = read(add_waivers("waivers.yaml", before, [waiver]))
        assert (actual, problems) == (waiver, [])


def test_a_file_that_cannot_be_read_is_left_alone() -> None:
    with pytest.raises(DeclarationError, match="expected a day"):
        add_waivers("waivers.yaml", make_entry(until="never").encode(), [WAIVER])


def test_a_layout_that_nothing_can_be_added_to_is_said_with_the_entry() -> None:
    layout = f"&all [\n{make_entry()[2:-1]}\n] \n# %\n--- \n".encode()
    with pytest.raises((SchemactlError, DeclarationError)):
        add_waivers("waivers.yaml", layout, [WAIVER])
