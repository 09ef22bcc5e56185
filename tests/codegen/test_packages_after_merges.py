"""The package of a pull request has the same bytes as the package after any kind of merge."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import Printed, run_json, schemactl
from hypothesis import given
from hypothesis import strategies as st
from property_runs import REPOSITORIES
from scratch import Scratch, write_declaration

pytestmark = pytest.mark.slow

PROJECT = 'version: 1\napproved: main\ngenerate: {package: my_schemas, out: generated, spark: "4.1"}\n'
NAMES = ("ads", "bids", "carts", "dues")


class Work:
    """A repository whose topics change on the current branch."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        self.scratch = Scratch(path)
        self.scratch.configure_author()
        self.path = path
        self.random = random.Random(seed)  # noqa: S311  reproducible, not secret
        self.put("schemactl.yaml", PROJECT)
        self.put("namespaces/sales.yaml", "namespace: shop/sales\nschema_compatibility_strategy: FULL\n")
        for name in NAMES[:3]:
            self.define(name, 0)
        self.generate()
        self.commit()

    def put(self, path: str, text: str) -> None:
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def define(self, name: str, *added: int, doc: str = "", generation: int = 1) -> None:
        """Define the topic as a record with these fields, each with a default."""
        fields: list[dict[str, Any]] = [{"name": "id", "type": "string"}]
        fields += [{"name": f"f{number}", "type": "int", "default": number} for number in added]
        record: dict[str, Any] = {"type": "record", "name": "Order", "doc": doc, "fields": fields}
        more = f"generation: {generation}\n"
        self.put(f"namespaces/{name}.yaml", write_declaration(f"persistent://shop/sales/{name}", f"{name}.avsc", more))
        self.put(f"namespaces/{name}.avsc", json.dumps(record, indent=self.random.choice((None, 1))))

    def change(self, *names: str, is_alone: bool = True) -> None:
        """Change some of the topics at random, or nothing; topics are added and removed only if no other branch works on them."""
        for name in self.random.sample(names, self.random.randrange(1, len(names) + 1)):
            if not is_alone and not (self.path / f"namespaces/{name}.yaml").exists():
                continue
            match self.random.randrange(6):
                case 0 if is_alone and name != NAMES[0]:
                    for ending in ("yaml", "avsc"):
                        (self.path / f"namespaces/{name}.{ending}").unlink(missing_ok=True)
                case number:
                    added = range(self.random.randrange(4))
                    generation = self.random.choice((1, 1, 1, 2, 3))
                    self.define(name, *added, doc="said later" if number == 1 else "", generation=generation)

    def commit(self) -> None:
        self.scratch.git("add", "-A")
        self.scratch.git("commit", "-q", "--allow-empty", "-m", "change")

    def generate(self, *arguments: str, code: int = 0) -> Printed:
        return schemactl(self.path, "generate", *arguments, code=code)

    def read_package(self) -> dict[str, str]:
        top = self.path / "generated"
        return {str(path.relative_to(top)): path.read_text() for path in top.rglob("*") if path.is_file()}

    def merge(self, method: str, branch: str = "branch") -> None:
        """The branch becomes approved."""
        git = self.scratch.git
        if method == "rebase":
            git("rebase", "-q", "main")
        git("checkout", "-q", "main")
        match method:
            case "merge":
                git("merge", "-q", "--no-ff", "-m", "merge", branch)
            case "squash":
                git("merge", "-q", "--squash", branch)
                git("commit", "-q", "--allow-empty", "-m", "squash")
            case "rebase":
                git("merge", "-q", "--ff-only", branch)


@REPOSITORIES
@given(st.integers(0, 2**32), st.sampled_from(["merge", "squash", "rebase"]), st.sampled_from(["current", "behind"]))
def test_the_package_of_a_pull_request_is_that_after_its_merge(
    tmp_path_factory: pytest.TempPathFactory, seed: int, method: str, place: str
) -> None:
    work = Work(tmp_path_factory.mktemp("random") / "shop", seed)
    git, is_alone = work.scratch.git, place == "current"
    for _ in range(work.random.randrange(2)):
        work.change(*NAMES)
        work.generate("--draft")
        work.commit()
    git("checkout", "-q", "-b", "branch")
    for _ in range(work.random.randrange(3)):
        work.change(*NAMES[:2], is_alone=is_alone)
        work.commit()
    if not is_alone:
        # Others change another topic meanwhile, and its package with it.
        git("checkout", "-q", "main")
        work.change(NAMES[2], is_alone=False)
        work.generate("--draft")
        work.commit()
        git("checkout", "-q", "branch")
    work.change(*NAMES[:2], is_alone=is_alone)
    rebase = ["--rebase"] if method == "rebase" else []
    work.generate("--draft", *rebase)
    written = work.read_package()
    work.commit()
    assert "0 stale" in work.generate("--draft", *rebase, "--check").out
    assert "0 stale" in work.generate("--draft", "--check").out
    work.merge(method)
    assert "0 stale" in work.generate("--draft", "--check").out
    merged = work.read_package()
    assert merged == written or not is_alone
    shutil.rmtree(work.path / "generated")
    work.generate("--draft")
    assert work.read_package() == merged


@pytest.fixture
def merge_work(tmp_path: Path) -> Work:
    return Work(tmp_path / "shop")


ORDERS = "generated/my_schemas/shop/sales"


def test_a_pending_version_has_the_number_that_check_shows(merge_work: Work) -> None:
    merge_work.scratch.git("checkout", "-q", "-b", "branch")
    merge_work.define("ads", 1)
    [seen] = run_json(merge_work.path, "check")["topics"]
    assert (seen["topic"], seen["version"]) == ("persistent://shop/sales/ads", 1)
    assert merge_work.generate().out == "12 files: 1 created, 1 updated, 0 deleted.\n"
    assert '        1: Schema("AVRO", "ads.v1.avsc"),\n' in (merge_work.path / ORDERS / "ads.py").read_text()
    diff = merge_work.scratch.git("diff", "--unified=0", "--", "*.py")
    assert [line for line in diff.splitlines() if line.startswith("+ ")] == [
        "+    f1: int",
        '+        1: Schema("AVRO", "ads.v1.avsc"),',
        "+    reader=1,",
    ]


def test_of_two_pull_requests_on_one_topic_the_second_hears_which_numbers_are_stale(merge_work: Work) -> None:
    for branch, field in (("first", 1), ("second", 2)):
        merge_work.scratch.git("checkout", "-q", "-b", branch, "main")
        merge_work.define("ads", field)
        merge_work.generate()
        merge_work.commit()
        assert "0 stale" in merge_work.generate("--check").out
    merge_work.scratch.git("checkout", "-q", "main")
    merge_work.scratch.git("merge", "-q", "--no-ff", "-m", "merge", "first")
    merge_work.scratch.git("checkout", "-q", "second")
    lines = merge_work.generate("--check", code=100).out.splitlines()
    assert lines == [
        f"stale: {ORDERS}/ads.py",
        f"stale: {ORDERS}/schemas/ads.v1.avsc",
        f"stale: {ORDERS}/schemas/ads.v2.avsc",
        "13 files, 3 stale.",
        "stale number: version 1 of my_schemas/shop/sales/ads here becomes version 2, because another version 1 was approved in the meantime",
        "main has new commits since this branch was created. Run `git merge main`, then `schemactl generate`.",
    ]
    # Do as the line says; all conflicts in generated files and in the definition are resolved with this side.
    merge_work.scratch.git("merge", "-q", "-X", "ours", "-m", "merge", "main", check=False)
    merge_work.define("ads", 2)
    merge_work.scratch.git("add", "-A")
    merge_work.generate()
    merge_work.commit()
    assert "0 stale" in merge_work.generate("--check").out
    merge_work.merge("squash", "second")
    assert "0 stale" in merge_work.generate("--check").out


def test_a_rebase_that_puts_other_versions_on_record_is_said_and_asked_for(merge_work: Work) -> None:
    merge_work.scratch.git("checkout", "-q", "-b", "branch")
    for number in (1, 2):
        merge_work.define("ads", *range(1, number + 1))
        merge_work.commit()
    note = "note: if this branch is merged by rebase, its versions get other numbers: run `generate --rebase`"
    assert note in schemactl(merge_work.path, "generate").err
    merge_work.commit()
    assert not (merge_work.path / ORDERS / "schemas/ads.v2.avsc").exists()
    merge_work.generate("--check")
    merge_work.generate("--check", "--rebase", code=100)
    merge_work.generate("--rebase")
    assert (merge_work.path / ORDERS / "schemas/ads.v2.avsc").exists()
    output = schemactl(merge_work.path, "generate", "--check")
    assert "the package is correct if the branch is merged by rebase" in output.err
    merge_work.define("ads", 7)
    output = schemactl(merge_work.path, "generate", "--check", "--rebase", code=100)
    assert output.out.endswith("Run `schemactl generate --rebase`, and commit what it writes.\n")


def test_what_is_not_approved_yet_has_no_commit_and_makes_no_release(merge_work: Work) -> None:
    merge_work.generate("--zip", "one.zip", "--with-commits")
    assert "add content that is not approved yet" not in merge_work.generate("--wheel").err
    merge_work.scratch.git("checkout", "-q", "-b", "branch")
    merge_work.define("ads", 1)
    for arguments in (("--zip", "two.zip", "--with-commits"), ("--wheel", "dist")):
        assert "add content that is not approved yet" in merge_work.generate(*arguments, code=64).err
    assert not (merge_work.path / "two.zip").exists()
    merge_work.generate("--wheel", "--wheel-version", "1.0.dev1", "--zip", "two.zip")
    # A change that does not affect the package does not count.
    merge_work.define("ads", 0)
    merge_work.put("namespaces/sales.yaml", "namespace: shop/sales\nschema_compatibility_strategy: BACKWARD\n")
    merge_work.generate("--wheel")
    assert not list((merge_work.path / "generated").rglob("versions.json"))


def test_before_anything_is_approved_there_is_a_package(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path / "new")
    scratch.write(
        {
            "schemactl.yaml": PROJECT,
            "namespaces/ads.yaml": write_declaration("shop/sales/ads", "ads.avsc"),
            "namespaces/ads.avsc": '{"type": "record", "name": "Ad", "fields": []}',
        }
    )
    schemactl(scratch.path, "-q", "generate")
    assert (scratch.path / ORDERS / "schemas/ads.v0.avsc").is_file()
    written = (scratch.path / ORDERS / "ads.py").read_text()
    scratch.configure_author()
    scratch.git("add", "-A")
    scratch.git("commit", "-q", "-m", "first")
    assert "0 stale" in schemactl(scratch.path, "generate", "--check").out
    assert (scratch.path / ORDERS / "ads.py").read_text() == written


def test_topics_that_cannot_be_read_are_said_with_their_place_and_stay_as_they_were_approved(merge_work: Work) -> None:
    before, text = merge_work.read_package(), (merge_work.path / "namespaces/ads.avsc").read_text()
    merge_work.put("namespaces/ads.avsc", '{"type": "record", "name": "Ad"')
    error = merge_work.generate(code=1).err
    assert error.startswith("namespaces/ads.avsc:1:")
    merge_work.put("namespaces/ads.avsc", text)
    merge_work.put("namespaces/more.yaml", write_declaration("shop/sales/more", "more.avsc"))
    assert "more.avsc" in merge_work.generate(code=1).err
    assert merge_work.read_package() == before


def test_a_definition_outside_of_the_roots_counts(merge_work: Work) -> None:
    merge_work.put("shared/ads.avsc", (merge_work.path / "namespaces/ads.avsc").read_text())
    merge_work.put("namespaces/ads.yaml", write_declaration("persistent://shop/sales/ads", "../shared/ads.avsc"))
    merge_work.generate("--check")
    merge_work.commit()
    merge_work.scratch.git("checkout", "-q", "-b", "branch")
    record = json.loads((merge_work.path / "shared/ads.avsc").read_text())
    record["fields"].append({"name": "more", "type": "int", "default": 0})
    merge_work.put("shared/ads.avsc", json.dumps(record))
    merge_work.generate()
    assert "    more: int\n" in (merge_work.path / ORDERS / "ads.py").read_text()
    written = merge_work.read_package()
    merge_work.commit()
    merge_work.merge("merge")
    merge_work.generate()
    assert merge_work.read_package() == written


def test_a_target_s_record_counts_as_the_files_have_it(merge_work: Work) -> None:
    away = 'targets: {prod: {registry: "http://127.0.0.1:9"}}\n'
    merge_work.put("schemactl.yaml", PROJECT.replace("}", ", target: prod}") + away)
    merge_work.commit()
    merge_work.scratch.git("checkout", "-q", "-b", "branch")
    merge_work.define("ads", 1)
    merge_work.put("numbers/prod.yaml", "persistent://shop/sales/ads: {1: {deleted: true}}\n")
    merge_work.generate()
    text = (merge_work.path / ORDERS / "ads.py").read_text()
    assert '"prod": TargetNumbers(\n            reader=2,\n' in text
    assert "                2: 1,\n" in text
    written = merge_work.read_package()
    merge_work.commit()
    merge_work.merge("squash")
    merge_work.generate("--check")
    assert merge_work.read_package() == written


def test_in_a_merge_queue_the_second_of_two_changes_of_a_topic_does_not_pass(merge_work: Work) -> None:
    git = merge_work.scratch.git
    for branch, start, field in (("first", "main", 1), ("beside", "main", 2), ("behind", "first", 3)):
        git("checkout", "-q", "-b", branch, start)
        merge_work.define("ads", *({1, field} if start == "first" else {field}))
        merge_work.generate()
        merge_work.commit()
    git("checkout", "-q", "-b", "queue", "main")
    git("merge", "-q", "--no-ff", "-m", "first", "first")
    assert "0 stale" in merge_work.generate("--check", "--rebase").out
    # Next to it: Git itself finds two files with the same name.
    git("merge", "-q", "--no-ff", "-m", "beside", "beside", check=False)
    assert f"AA {ORDERS}/schemas/ads.v1.avsc" in git("status", "--porcelain")
    git("merge", "--abort")
    # After it: the branch has one version, and the queue makes two. Generated with --rebase, it is right, there and on main.
    git("merge", "-q", "--no-ff", "-m", "behind", "behind")
    assert f"stale: {ORDERS}/ads.py" in merge_work.generate("--check", "--rebase", code=100).out
    git("checkout", "-q", "behind")
    merge_work.generate("--rebase")
    merge_work.commit()
    git("checkout", "-q", "queue")
    git("reset", "-q", "--hard", "HEAD^")
    git("merge", "-q", "--no-ff", "-m", "behind", "behind")
    assert "0 stale" in merge_work.generate("--check", "--rebase").out
    git("checkout", "-q", "main")
    git("merge", "-q", "--ff-only", "queue")
    assert "0 stale" in merge_work.generate("--check").out
