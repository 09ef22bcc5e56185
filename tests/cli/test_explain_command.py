"""`schemactl explain`: a rule for people."""

from __future__ import annotations

import pytest

from schemactl import cli
from schemactl.core.rules import get_builtin_rules


@pytest.mark.parametrize(
    "written", ["MISSING_ENUM_SYMBOLS", "missing_enum_symbols", "Missing-Enum-Symbols", " MISSING_ENUM_SYMBOLS "]
)
def test_a_rule_is_explained_however_its_name_is_written(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", written]) == 0
    output = capsys.readouterr().out
    rule = get_builtin_rules()["MISSING_ENUM_SYMBOLS"]
    assert output.splitlines()[:2] == ["MISSING_ENUM_SYMBOLS", "data verdict, error by default"]
    flat = " ".join(output.split())
    for part in (rule.summary, rule.why, rule.example, rule.fix, rule.link):
        assert " ".join(part.split()) in flat


def test_a_rule_that_nobody_looks_for_unasked_says_how_to_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "FIELD_SAME_NAME"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "only with `protobuf: {rules: WIRE_JSON}`"


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("MISING_ENUM_SYMBOLS", "; did you mean MISSING_ENUM_SYMBOLS?"),
        ("type_missmatch", "; did you mean TYPE_MISMATCH?"),
        ("xyzzy", ": `schemactl explain --all` lists them"),
        ("", ": `schemactl explain --all` lists them"),
    ],
)
def test_an_unknown_rule_gets_the_nearest_one(written: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", written]) == 64
    assert capsys.readouterr() == ("", f"schemactl: there is no rule {written!r}{hint}\n")


def test_every_rule_is_listed_once_with_its_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "--all"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line and not line.startswith("only with")]
    assert sorted(line.split()[0] for line in lines) == sorted(get_builtin_rules())
    for line in lines:
        assert line.endswith(get_builtin_rules()[line.split()[0]].summary)


def test_what_check_looks_for_comes_first_by_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["explain", "--all"])
    looked_for, *_ = capsys.readouterr().out.split("\n\n")
    verdicts = [line.split()[1] for line in looked_for.splitlines()]
    assert verdicts == sorted(verdicts, key=["data", "broker", "declaration", "tables", "lint"].index)


@pytest.mark.parametrize("words", ["missing_default", "Enum symbols", "MISSING_ENUM_SYMBOL"])
def test_rules_are_found_by_words(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", *words.split()]) == 0
    out, err = capsys.readouterr()
    names = [line.split()[0] for line in out.splitlines() if line and not line.startswith("only with")]
    assert {"missing_default": "READER_FIELD_MISSING_DEFAULT_VALUE"}.get(words, "MISSING_ENUM_SYMBOLS") in names
    assert len(names) < len(get_builtin_rules())
    assert err.startswith(f"no rule is called {words!r}; {len(names)} rule")


@pytest.mark.parametrize("arguments", [[], ["--all", "TYPE_MISMATCH"]])
def test_one_rule_or_all_are_asked_for(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", *arguments]) == 64
    assert "schemactl explain --all" in capsys.readouterr().err
