"""Findings about declared clients: those that are built with a version which a changed schema breaks with."""

from __future__ import annotations

from collections.abc import Iterator

from schemactl.checking.run import Proposal, Run
from schemactl.checking.schemas import places
from schemactl.compat import breakages
from schemactl.formats import explain
from schemactl.model import Client, CompatibilityStrategy
from schemactl.printing import on_one_line
from schemactl.verdicts import Breakage, Finding, Verdict


def breaking(run: Run, proposal: Proposal, verdict: Verdict) -> Iterator[Finding]:
    """Yield what breaks a client that is built with one version, whatever the strategy protects.

    Clients that were approved count, and those that the change declares: to remove one beside the break saves nobody. What
    `verdict` says of that version already is not said again.
    """
    former = run.former(proposal.topic.name)
    declared = proposal.topic.clients
    for client in dict.fromkeys((*(former.clients if former else ()), *declared)):
        number = client.version
        existing = [each for each in proposal.versions if each.number == number and each.info]
        # A consumer has to read what is written from now on; what a producer writes, everybody has to read.
        meets = CompatibilityStrategy.BACKWARD if client.role == "producer" else CompatibilityStrategy.FORWARD
        found = breakages(existing, proposal.schema, meets, by_any_release=True)
        bad = [each for each in found if each not in verdict.data and not each.incompatibility.strict_only]
        if bad:
            gone = "" if client in declared else ", which this change removes or moves to another version,"
            yield from _found(run, proposal, client, bad[0], gone)


def _found(run: Run, proposal: Proposal, client: Client, bad: Breakage, gone: str) -> Iterator[Finding]:
    name, pointer = proposal.topic.name, bad.incompatibility.pointer
    old = proposal.version(bad.against)
    explanation = explain(bad, new=proposal.schema, old=old)
    source, older = places(proposal, bad, explanation, old)
    does = (
        f"writes what the new schema of {name} cannot read"
        if client.role == "producer"
        else f"cannot read messages of the new schema of {name}"
    )
    yield from run.find(
        "CLIENT_BREAKS",
        proposal.topic,
        f"The {client.role} {client.name}{gone} is built with version {bad.against} and {does}.\n"
        f"{on_one_line(explanation.reason)}",
        source=source,
        fix=f"{explanation.fix.removesuffix('.')}; or bring the client to a newer version first, and have that approved in a change of its own.",
        field=explanation.field,
        pointer=pointer,
        direction=bad.direction,
        against=(bad.against,),
        older=older,
        fingerprint=proposal.fingerprint("CLIENT_BREAKS", pointer, bad.direction, against=(bad.against,)),
    )
