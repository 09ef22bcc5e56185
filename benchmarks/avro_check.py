"""Judging Avro schemas against the Apache `avro` package on the recorded pairs and histories: CPU time, one thread.

    python benchmarks/avro_check.py [--rounds 5] [--topics 100] [--versions 30] [--no-java]

Each ratio is the median over batches of pairs, or over topics, which ours and Apache's judge in turn. The verdicts must equal the verdicts
of the full comparison, or the run ends with 1. Java's own SchemaCompatibility, warm, is measured as well if there is a Java
runtime. Apache's checker in Python does not follow it everywhere: the run says how many of its verdicts are alike.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import random
import re
import shutil
import statistics
import subprocess
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import avro.compatibility
import avro.errors
import avro.schema

from schemactl import formats
from schemactl.core.errors import InvalidSchema
from schemactl.core.schema import Release, SchemaInfo, SchemaType
from schemactl.formats.avro.compatibility import AmbiguousAlias, KnownVerdicts, find_incompatibilities
from schemactl.formats.avro.parser import parse
from schemactl.formats.avro.schema import Schema

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
BATCH = 250
CAPITALISED = re.compile(r'"((?:\w+\.)*[A-Z]\w*)"')

Text = str
T = TypeVar("T")
Pair = tuple[T, T]
"""A reader and a writer."""

Judges = Callable[[], list[Any]]
"""Judges some pairs."""


def main() -> None:
    """A line for each task; the run ends with 1 where the fast way gives other verdicts than the full one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--versions", type=int, default=30)
    parser.add_argument("--no-java", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore", avro.errors.IgnoredLogicalType)
    pairs = list(recorded_pairs())
    topics = [make_history(number, args.versions) for number in range(args.topics)]
    compare_explanations(pairs, args.rounds)
    end_to_end(pairs, args.rounds)
    compare_verdicts(topics)
    compare_identities(topics, args.rounds)
    if not args.no_java:
        measure_java(pairs, topics)


# The judged schemas.


def recorded_pairs() -> Iterator[Pair[Text]]:
    """The recorded pairs that both parsers accept."""
    with gzip.open(CORPUS / "avro_public.jsonl.gz") as rows:
        for row in map(json.loads, rows):
            texts = json.dumps(row["reader"]), json.dumps(row["writer"])
            try:
                for text in texts:
                    theirs(text)
                    ours(text)
            except (avro.errors.AvroException, InvalidSchema):
                continue
            yield texts


def make_history(number: int, versions: int) -> list[Text]:
    """The versions of a topic: a record whose parts are recorded histories, one of which goes a step on each time.

    Every second topic has only parts whose versions all read each other.
    """
    rng = random.Random(number)  # noqa: S311  no secret
    with gzip.open(CORPUS / "avro_chains_public.jsonl.gz") as rows:
        chains = [
            [json.dumps(schema) for schema in (*row["existing"], row["new"])]
            for row in map(json.loads, rows)
            if number % 2 or all(row["spec_new_reads_old"] + row["spec_old_reads_new"])
        ]
    parts: list[list[Text]] = []
    while sum(len(part) - 1 for part in parts) < versions - 1:
        # A type is defined once in a definition, so every part gets its own names.
        named = rf'"\1_{len(parts)}"'
        parts.append([CAPITALISED.sub(named, text) for text in rng.choice(chains)])
    at = [0] * len(parts)
    texts = [record(parts, at)]
    while len(texts) < versions:
        at[rng.choice([index for index, part in enumerate(parts) if at[index] < len(part) - 1])] += 1
        texts.append(record(parts, at))
    return texts


def record(parts: Sequence[Sequence[Text]], at: Sequence[int]) -> Text:
    """Return the record with each part in its version `at` that time."""
    fields = (f'{{"name": "part{index}", "type": {part[at[index]]}}}' for index, part in enumerate(parts))
    return f'{{"type": "record", "name": "Topic", "fields": [{", ".join(fields)}]}}'


def both_ways(versions: Sequence[T]) -> Iterator[Pair[T]]:
    """Every version with every earlier one, as its reader and as its writer."""
    for index, new in enumerate(versions):
        for old in versions[:index]:
            yield new, old
            yield old, new


def describe_size(texts: Iterable[Text]) -> str:
    """The mean length, in words."""
    return f"{statistics.mean(map(len, texts)):.0f} characters a definition"


# Who judges.

theirs = avro.schema.parse
ours = partial(parse, release=Release.R5_0)


def list_reasons(reader: Schema, writer: Schema) -> list[tuple[str, str]]:
    """Rule and pointer of every reason."""
    try:
        return [(reason.rule, reason.pointer) for reason in find_incompatibilities(reader=reader, writer=writer)]
    except AmbiguousAlias as ambiguous:
        return [("AMBIGUOUS_ALIAS", ambiguous.pointer)]


def apache_explained(reader: Any, writer: Any) -> Any:
    """Return the result of Apache's checker: a list of rules, and a set of pointers."""
    checker: Any = avro.compatibility.ReaderWriterCompatibilityChecker
    return checker().get_compatibility(reader, writer)


def apache_reads(reader: Any, writer: Any) -> bool:
    """Apache's verdict."""
    apache_result = apache_explained(reader, writer).compatibility
    return apache_result is avro.compatibility.SchemaCompatibilityType.compatible


def judge_pairs(judge: Callable[[Any, Any], T], pairs: Iterable[Pair[Any]]) -> list[T]:
    """Return the verdict of `judge` for each pair."""
    return [judge(reader, writer) for reader, writer in pairs]


def verdicts_of(versions: Sequence[Schema]) -> list[bool]:
    """Ours on every version of a history with every earlier one, both ways."""
    history = KnownVerdicts()
    return [history.can_read(reader=reader, writer=writer) for reader, writer in both_ways(versions)]


# The tasks.


def compare_explanations(pairs: Sequence[Pair[Text]], rounds: int) -> None:
    """Every reason, of parsed schemas."""
    mine = [(ours(reader), ours(writer)) for reader, writer in pairs]
    other = [(theirs(reader), theirs(writer)) for reader, writer in pairs]
    alike = sum(map(bool.__ne__, judge_pairs(apache_reads, other), map(bool, judge_pairs(list_reasons, mine))))
    print(f"{len(pairs)} recorded pairs, {describe_size(chain(*pairs))}; {alike} verdicts of Apache's checker alike")
    laps = [
        (partial(judge_pairs, list_reasons, mine[batch]), partial(judge_pairs, apache_explained, other[batch]))
        for batch in make_batches(pairs)
    ]
    run_race("explain", laps, rounds)


def end_to_end(pairs: Sequence[Pair[Text]], rounds: int) -> None:
    """Every reason, from the texts on."""

    def all_of_ours(reader: Text, writer: Text) -> object:
        return list_reasons(ours(reader), ours(writer))

    def all_of_theirs(reader: Text, writer: Text) -> object:
        return apache_explained(theirs(reader), theirs(writer))

    laps = [
        (partial(judge_pairs, all_of_ours, pairs[batch]), partial(judge_pairs, all_of_theirs, pairs[batch]))
        for batch in make_batches(pairs)
    ]
    run_race("parse and explain", laps, rounds)


def compare_verdicts(topics: Sequence[Sequence[Text]]) -> None:
    """Yes or no for every version of a topic with every earlier one, of parsed schemas."""
    laps = []
    answers: list[bool] = []
    for texts in topics:
        mine, other = list(map(ours, texts)), list(map(theirs, texts))
        our_verdicts = verdicts_of(mine)
        if our_verdicts != [not list_reasons(*pair) for pair in both_ways(mine)]:
            raise SystemExit("the verdicts are not those of the full comparison")
        answers += our_verdicts
        laps.append((partial(verdicts_of, mine), partial(judge_pairs, apache_reads, list(both_ways(other)))))
    print(
        f"\n{len(topics)} topics of {len(topics[0])} versions, {describe_size(chain(*topics))}; {len(answers)} pairs, "
        f"{sum(answers)} compatible; verdicts as in the full comparison"
    )
    run_race("verdict", laps, rounds=1)


def compare_identities(topics: Sequence[Sequence[Text]], rounds: int) -> None:
    """From the text of a version to its identity, which tells whether it is a new version."""
    taken_s = []
    for layout in range(rounds):
        # Results are cached, so every round has different texts.
        infos = [SchemaInfo(SchemaType.AVRO, f"{text}{' ' * layout}".encode()) for text in chain(*topics)]
        taken_s.append(cpu_s(partial(list, map(formats.identity, infos))))
    per_version_us = statistics.median(taken_s) / len(infos) * 1e6
    per_kb_us = statistics.median(taken_s) / sum(len(info.schema) for info in infos) * 1024e6
    print(f"{'identity':<18} {per_version_us:.0f} us a version, {per_kb_us:.0f} us a KB")


def measure_java(pairs: Sequence[Pair[Text]], topics: Sequence[Sequence[Text]]) -> None:
    """Print the same figures for Java's Avro, which PySpark includes."""
    spark = find_spec("pyspark")
    runtime = shutil.which("java")
    if not (spark and spark.origin and runtime):
        print("\nno Java beside it: that takes a Java runtime and PySpark")
        return
    jars = str(Path(spark.origin).parent / "jars" / "*")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as definitions:
        definitions.writelines(f"{reader}\n{writer}\n" for reader, writer in pairs)
        definitions.write("\n")
        definitions.writelines(f"{text}\n" for text in chain(*topics))
        definitions.flush()
        source = str(Path(__file__).with_name("AvroCheck.java"))
        subprocess.run([runtime, "-cp", jars, source, definitions.name, str(len(topics[0]))], check=True)


# How it is measured.


def make_batches(pairs: Sequence[object]) -> list[slice]:
    """Return the slices of `pairs` that are batches of one size."""
    return [slice(start, start + BATCH) for start in range(0, len(pairs) - BATCH + 1, BATCH)]


def run_race(name: str, laps: Sequence[tuple[Judges, Judges]], rounds: int) -> None:
    """Print the median ratio of ours to theirs over the laps, the time for a pair, and the peak memory of a lap."""
    # The cost of a garbage collection depends on everything in memory, also of the other side: neither pays for one.
    gc.collect()
    gc.disable()
    taken_s = [(cpu_s(mine), cpu_s(other)) for _ in range(rounds) for mine, other in laps]
    gc.enable()
    ratio = statistics.median(other / mine for mine, other in taken_s)
    count = sum(len(mine()) for mine, _ in laps) * rounds
    figures = "   ".join(
        f"{who} {sum(seconds) / count * 1e6:6.2f} us, {peak_kb(lap):5.0f} KB"
        for who, seconds, lap in zip(("ours", "avro"), zip(*taken_s, strict=True), laps[0], strict=True)
    )
    print(f"{name:<18} {ratio:5.1f} times as fast   {figures}", flush=True)


def cpu_s(call: Callable[[], object]) -> float:
    """The CPU time of `call`."""
    started_s = time.process_time()
    call()
    return time.process_time() - started_s


def peak_kb(call: Callable[[], object]) -> float:
    """The most memory that `call` holds at once."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1024


if __name__ == "__main__":
    main()
