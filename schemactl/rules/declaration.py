"""The rules about changes of the declared files, independent of the broker's and the readers' verdicts."""

from __future__ import annotations

from functools import partial
from typing import Final

from schemactl.rules import BROKER_SOURCE, Rule

_IDENTITY: Final = f"{BROKER_SOURCE}/SchemaRegistryServiceImpl.java"
_STRATEGIES: Final = (
    "https://pulsar.apache.org/docs/next/schema-understand/#schema-compatibility-check-strategy"
)

_OWNERS: Final = "https://docs.github.com/en/repositories/managing-your-repositorys-settings-and-features/customizing-your-repository/about-code-owners"

_rule = partial(Rule, verdict="declaration", severity="warning")

RULES: Final = (
    _rule(
        "DELETED_TOPIC",
        summary="A topic that was approved is no longer declared.",
        why="Its messages and consumers may still be there, and a registry keeps what it has: nothing is deleted from it "
        "unless `apply` is given `--allow-delete`. The topic's version numbers stay taken; if the same content comes back, it has its "
        "old number.",
        example="""
# before: namespaces/sales.yaml
topic: persistent://shop/sales/orders
schema: {type: AVRO, definition: orders.avsc}

# after: the document is gone""",
        fix="Put the topic back if it is still in use. To delete it from a registry as well, run `schemactl apply "
        "--allow-delete TOPIC`. If it was renamed, name its former self with `renamed_from` in the new one.",
        link="https://pulsar.apache.org/docs/next/admin-api-schemas/#delete-a-schema",
    ),
    _rule(
        "SCHEMA_REMOVED",
        summary="A topic is still declared, but no longer has a schema.",
        why="A registry never forgets a schema by itself: typed clients keep meeting the versions that are there, and "
        "clients without schema are rejected where `schema_validation_enforced` is on.",
        example="""
# before
topic: persistent://shop/sales/notes
schema: {type: STRING}

# after
topic: persistent://shop/sales/notes""",
        fix="Put `schema` back, or move clients without schema to a topic of their own.",
        link="https://pulsar.apache.org/docs/next/schema-understand/",
    ),
    _rule(
        "NEW_GENERATION",
        severity="error",
        summary="A topic begins again without the versions it has.",
        why="`apply` deletes them (a soft delete: a tombstone takes the next number), and the broker compares nothing with them again. It "
        "also answers none of their numbers any more, so consumers fail on messages that were written with them. So `apply` does it only "
        "where the topic retains no message in any partition, ledger, offloaded segment or compacted ledger, and rejects the plan else.",
        example="""
# before
topic: persistent://shop/sales/orders
schema: {type: AVRO, definition: orders.avsc}

# after
topic: persistent://shop/sales/orders
generation: 2
schema: {type: AVRO, definition: orders.avsc}""",
        fix="A new topic with `renamed_from` breaks nobody. If the topic is empty and everybody who reads it is asked, waive this.",
        link="https://pulsar.apache.org/docs/next/admin-api-schemas/#delete-a-schema",
    ),
    _rule(
        "GENERATION_LOWERED",
        severity="error",
        summary="A topic declares an earlier generation than it has.",
        why="The versions of the earlier generation were deleted from the registry and do not come back. The line has no effect: the next "
        "version belongs to the newest generation.",
        example="""
# before
generation: 2

# after: the line is gone""",
        fix="Keep the number, or raise it by one.",
        link="https://pulsar.apache.org/docs/next/admin-api-schemas/#delete-a-schema",
    ),
    _rule(
        "NOT_DECIDED",
        severity="error",
        summary="The check could not decide.",
        why="A declaration does not parse, or Git cannot say what was approved. Nothing else is known, so a report that was "
        "written by an earlier run must not be taken for this one's. The exit code is 1. No severity turns it off.",
        example="""
schema:
  type: DUBLE""",
        fix="Mend what the finding names, and check again.",
        link="https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/sarif-v2.1.0-os.html",
        is_fixed=True,
    ),
    _rule(
        "NOT_STORED",
        severity="note",
        summary="The definition differs from the approved one only in what Pulsar does not compare.",
        why="Pulsar holds two definitions for one when they differ in doc, aliases, an enum's default or the schema's "
        "properties alone. It answers the upload with the old version's number and keeps the old text. Readers that are "
        "generated from Git do use the new text, aliases and enum defaults included. Where that makes a difference to data, "
        "it is reported as that rule, not as this one.",
        example="""
# version 3
{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}

# the same version, although the text differs
{"type": "record", "name": "Order", "doc": "A customer's order.", "fields": [{"name": "id", "type": "long"}]}""",
        fix="Nothing needs to be done. If consumers that ask the registry must see the edit, send it along with the next "
        "change of a field.",
        link=_IDENTITY,
    ),
    _rule(
        "NAMESPACE_CHANGED",
        summary="A new version differs from the latest in the namespaces of its types alone.",
        why="No field has changed, and every message is read as before; that is why neither verdict says anything. But a namespace is part of a "
        "type's full name: Pulsar registers another version, generated classes get another package, and a reader that looks for "
        "the class of the old name, or has the type in a union, no longer finds it.",
        example="""
# before
{"type": "record", "name": "Order", "namespace": "com.example", "fields": [{"name": "id", "type": "long"}]}

# after
{"type": "record", "name": "Order", "namespace": "com.example.shop", "fields": [{"name": "id", "type": "long"}]}""",
        fix="Keep the namespace. If it has to change, do it along with the next change of a field, and give the type its old full name as an alias.",
        link="https://avro.apache.org/docs/1.11.1/specification/#names",
    ),
    _rule(
        "REVERTED_TO_OLDER",
        summary="The definition is that of an older approved version again.",
        why="A revert makes no new version. Pulsar answers the upload with the older version's number, and its latest "
        "version stays where it is: consumers that fetch the latest schema keep getting the one that was reverted, and "
        "the next change is compared with that one, too. Messages of the reverted version are still there: if readers of "
        "the older content cannot read them, that is a finding of its own.",
        example="""
# version 0: field a        version 1: fields a, b
# declared now: field a  ->  the upload answers 0, the latest version stays 1""",
        fix="To make the older content the latest version, change something that Pulsar compares: keep the added field with a "
        "default, for example.",
        link=_IDENTITY,
    ),
    _rule(
        "STRATEGY_RELAXED",
        severity="error",
        summary="The compatibility strategy is relaxed in the very change that the old strategy would reject.",
        why="`apply` sets policies before it uploads schemas, so the registry would take the change. The consumers and "
        "producers that the old strategy protected were not asked.",
        example="""
# before
schema_compatibility_strategy: FULL

# after, together with a new field that has no default
schema_compatibility_strategy: FORWARD""",
        fix="Change the schema so that the old strategy accepts it; or relax the strategy in a change of its own, approved by "
        "those who consume the topic.",
        link=_STRATEGIES,
    ),
    _rule(
        "PROTECTION_LOST",
        summary="A policy that protects readers is relaxed, in a change of its own.",
        why="Nothing breaks today. From now on the registry takes changes that it would have rejected, and the consumers or producers that "
        "were protected have to be asked instead.",
        example="""
# before
schema_compatibility_strategy: FULL

# after
schema_compatibility_strategy: FORWARD""",
        fix="Agree with those who read and write the topic, or leave the policy as it is.",
        link=_STRATEGIES,
    ),
    _rule(
        "DATA_LOSS",
        summary="A setting changes so that messages can be lost.",
        why="Retention that becomes smaller, a time to live that is set or shortened, and the deletion of inactive topics, with which their schemas go, "
        "cannot be undone. `apply` therefore sets nothing of a plan with such a setting until `--allow-data-loss` names it. What no file says is taken for "
        "Pulsar's own default; `plan` asks the cluster.",
        example="""
# before
retention_policies: {retentionTimeInMinutes: 10080, retentionSizeInMB: -1}

# after
retention_policies: {retentionTimeInMinutes: 1440, retentionSizeInMB: -1}""",
        fix="Agree with those who read the messages, or leave the setting as it is.",
        link="https://pulsar.apache.org/docs/next/cookbooks-retention-expiry/",
    ),
    _rule(
        "STRATEGY_TIGHTENED",
        summary="A stricter compatibility strategy is declared, and approved versions do not satisfy it.",
        why="A strategy judges new versions only: what is stored stays. Messages of the named versions are not protected by "
        "the stricter promise, and a transitive strategy will judge the next version against them.",
        example="""
# before
schema_compatibility_strategy: BACKWARD

# after; version 2 cannot read messages of version 0
schema_compatibility_strategy: BACKWARD_TRANSITIVE""",
        fix="Keep the looser strategy until messages of the named versions have expired, or choose one that is not transitive.",
        link=_STRATEGIES,
    ),
    _rule(
        "DRAFT_VERSIONS_BREAK",
        severity="error",
        summary="A topic is no draft any more, and versions that were approved while it was one break each other.",
        why="`apply` leaves a draft alone and registers all of its versions once it is stable, oldest first: the broker rejects those that "
        "do not follow its strategy, and readers meet them in what was sent meanwhile.",
        example="""
# before
lifecycle: draft

# after: the line is gone""",
        fix="Declare the schema under a new topic name, whose versions start at 0, or set a strategy that all versions satisfy.",
        link=_STRATEGIES,
    ),
    _rule(
        "STEP_REFUSED",
        summary="A commit in the middle of a branch breaks, whether or not the end of the branch does.",
        why="Versions follow the first-parent history of the approved ref. A merge commit or a squash puts the end of a branch "
        "there, and no reader ever sees what was in between. A rebase merge or a fast-forward puts each commit there: each is "
        "a version, `apply` uploads them one after the other, and a registry rejects the one that breaks. Once it is "
        "approved, no later commit takes it back. Only `check --base REF` looks at the commits of a branch; where that would be "
        "more than 100,000 pairs of versions (450 new versions of one topic), it says so here and judges the end alone.",
        example="""
# approved: field a
# commit 1 of 2: fields a, b without default   a version of its own after a rebase merge, and BACKWARD rejects it
# commit 2 of 2: fields a, b with a default    the end, and fine""",
        fix="Join the commits into one that holds (`git rebase --interactive`), or merge with a merge commit or a squash. Where "
        "rebase merges are the rule, make this an error under `severities`; where they are not allowed, turn it off.",
        link="https://git-scm.com/docs/git-log#Documentation/git-log.txt---first-parent",
    ),
    _rule(
        "GATE_WEAKENED",
        severity="error",
        summary="A change weakens the settings by which changes are judged.",
        why="The approved project file judges a change, so nothing is hidden from this check; for targets and their overlays, what the "
        "change makes of them does. From the merge on, less would be found: a rule is off, a folder is not read, another branch counts as the record, or a target is judged less strictly, by its "
        "overlays, its release, its topics or their names, or gets what is approved sooner (`promoted`, `after`). Beside a changed schema that is an error, alone it is a warning. No "
        "severity turns it off.",
        example="""
# schemactl.yaml, in the change
severities: {MISSING_ENUM_SYMBOLS: off}""",
        fix="Leave the setting as it is, or change it in a pull request of its own, which the owners of the project file review.",
        link=_OWNERS,
        is_fixed=True,
    ),
    _rule(
        "WAIVER_UNUSED",
        summary="The change adds a waiver that waives nothing.",
        why="A waiver is of exactly one finding on one content. Where the schema was changed again, or another version was approved "
        "meanwhile, the finding is another one, and the waiver approves nothing: it is left over, or the change fails although "
        "somebody meant to approve it. Waivers that were there before the change are not looked at: what was approved under them is "
        "registered by their leave wherever history is replayed, so they stay.",
        example="""
# waivers.yaml, in a change without that finding
- rule: MISSING_ENUM_SYMBOLS
  topic: persistent://shop/sales/orders
  fingerprint: sha256:0f3a...
  reason: no message ever had it
  owner: team-orders
  until: 2027-01-31""",
        fix="Remove the entry. If the change still has a finding that is meant, run the `schemactl waive` that the finding shows.",
        link=_OWNERS,
    ),
    _rule(
        "WAIVER_EXPIRED",
        severity="error",
        summary="The waiver of a finding of this change has expired.",
        why="A waiver approves a change until the end of its last day, in UTC. After that the finding counts again, and "
        "this one is as severe as that. What was approved before stays approved. No severity turns it off.",
        example="""
# waivers.yaml, checked on 2027-02-01
- rule: MISSING_ENUM_SYMBOLS
  ...
  until: 2027-01-31""",
        fix="If the change is still meant, write another day after `until:` and have that reviewed.",
        link=_OWNERS,
        is_fixed=True,
    ),
    _rule(
        "WAIVER_OVERLAPS",
        summary="Two waivers are of one finding.",
        why="They may give two reasons, two owners and two last days for one thing. The one that ends first counts, so that nobody "
        "extends a waiver by adding another.",
        example="""
# waivers.yaml
- {rule: MISSING_ENUM_SYMBOLS, fingerprint: "sha256:0f3a...", until: 2027-01-31, ...}
- {rule: MISSING_ENUM_SYMBOLS, fingerprint: "sha256:0f3a...", until: 2027-06-30, ...}""",
        fix="Keep one of them.",
        link=_OWNERS,
    ),
    _rule(
        "INVALID_AFTER_MERGE",
        severity="error",
        summary="A branch is right by itself, but what was approved since it began makes its declarations wrong.",
        why="Git merges files that only one side changed without a conflict. Afterwards a topic may be declared twice, or its "
        "definition may use a file or a type that the other side took away. No command accepts that, and the history keeps "
        "the definition it had.",
        example="""
# this branch: namespaces/sales/orders.yaml
topic: persistent://shop/sales/orders

# approved meanwhile: namespaces/orders.yaml
topic: persistent://shop/sales/orders""",
        fix="Bring the approved history into the branch (`git merge`, `git rebase`), and mend it there.",
        link="https://git-scm.com/docs/git-merge#_true_merge",
    ),
    _rule(
        "PARTITIONS_SHRUNK",
        severity="error",
        summary="A topic would have fewer partitions than approved, or become partitioned, or cease to be.",
        why="Pulsar adds partitions to a partitioned topic and does nothing else: it rejects fewer, and a topic without "
        "partitions stays so until it is deleted with its messages.",
        example="""
# before
partitions: 8

# after
partitions: 4""",
        fix="Put the approved number back, or a larger one. For anything else declare a new topic.",
        link="https://pulsar.apache.org/docs/next/admin-api-topics/#update-topic",
    ),
    _rule(
        "READER_VERSION_UNKNOWN",
        severity="error",
        summary="`reader` pins generated readers to a version that the topic does not have.",
        why="`generate` would find no schema to read into, and stop for the whole package.",
        example="""
# a topic with the versions 0 to 2
reader: 7""",
        fix="Write a number that `schemactl log TOPIC` shows, or `latest`.",
        link="https://avro.apache.org/docs/1.12.0/specification/#schema-resolution",
    ),
    _rule(
        "RENAMED_FROM_UNKNOWN",
        severity="error",
        summary="`renamed_from` names a topic that the approved history does not know.",
        why="The versions of the former topic are what the schema should be checked against. With a wrong name nothing would "
        "be checked.",
        example="""
topic: persistent://shop/sales/orders
renamed_from: persistent://shop/sales/ordes""",
        fix="Write the former name as `schemactl log --all` shows it, or remove the key.",
        link="https://pulsar.apache.org/docs/next/concepts-messaging/#topics",
    ),
    _rule(
        "RENAME_UNDECLARED",
        summary="A topic is gone and another is new with nearly the same definition, and `renamed_from` does not say whether it is the same.",
        why="A new topic is compared with nothing, so that a rename would hide every break. With `renamed_from` the schema is checked "
        "against the versions of the former name, too. Two definitions are alike if the name of their first record and most of "
        "its parts are the same. It is an error where the new definition breaks what the former topic's strategy protects.",
        example="""
# before
topic: persistent://shop/sales/orders

# after, with the same definition
topic: persistent://shop/sales/all-orders""",
        fix="Add `renamed_from` with the former name to the new topic. If it is another topic, remove the old one in a change of its own.",
        link="https://pulsar.apache.org/docs/next/concepts-messaging/#topics",
    ),
    _rule(
        "CLIENT_BREAKS",
        severity="error",
        summary="A declared client is built with a schema that breaks with the topic's.",
        why="A strategy that is not transitive protects only readers and writers of the latest version. A topic that declares its `clients` "
        "knows of others: a consumer that still has an older version cannot read what is written from now on, or a producer still "
        "writes what new readers cannot read. Approved clients count like those that the change declares: to remove one in the change that "
        "breaks it does not help it. A client that is declared anew and breaks with the schema as it is already is a warning. Where the topic "
        "itself is removed, no client is looked at.",
        example="""
# version 1 made a field optional, and version 2 is to remove it; billing still has version 0
clients:
  - {name: billing, team: payments, role: consumer, schema: 0}""",
        fix="Change the schema so that the client can go on; or bring the client to a newer version first.",
        link="https://avro.apache.org/docs/1.12.0/specification/#schema-resolution",
    ),
    _rule(
        "CLIENT_REFUSED",
        severity="error",
        summary="A broker would not let a declared client connect after the change.",
        why="A broker judges a client again whenever it connects, by the topic's strategy: a producer brings a schema that is registered, "
        "or that clients may register; a consumer's schema has to read the latest version, or under a transitive strategy all of "
        "them. It compares less than readers need, and sometimes more: ALWAYS_INCOMPATIBLE lets in no consumer with a schema. Such a "
        "client runs until it restarts.",
        example="""
is_allow_auto_update_schema: false      # of the namespace: clients register nothing
# of the topic: a file that is no version of it
clients:
  - {name: shop, role: producer, schema: shop-orders.avsc}""",
        fix="Declare the client with a version of the topic, or change what the policies say of it; `schemactl admit --all` shows every answer.",
        link="https://pulsar.apache.org/docs/next/schema-understand/#schema-compatibility-check",
    ),
    _rule(
        "CLIENT_VERSION_UNKNOWN",
        severity="error",
        summary="A declared client is built with a version that the topic does not have.",
        why="Changes are judged for a client by the version that it is declared with: one that does not exist protects it from nothing. The numbers "
        "are those of `schemactl log`; the one that the change itself adds counts, too.",
        example="""
# orders has the versions 0 to 4
clients:
  - {name: billing, role: consumer, schema: 7}""",
        fix="Write the number of a version, a range of numbers, or `latest`.",
        link="https://pulsar.apache.org/docs/next/schema-understand/#schema-version",
    ),
    _rule(
        "REMOVAL_OVERDUE",
        severity="note",
        summary="A deprecated topic is still declared after the day on which it was to be removed.",
        why="Who declared that day told readers and writers to leave by then. It is a note on every check, so that a day that passes "
        "stops nobody's change; a project makes it a warning or an error under `severities`.",
        example="""
topic: persistent://shop/sales/orders
deprecated: {since: 2025-11-01, remove_after: 2026-05-01, use: persistent://shop/sales/orders-v2}""",
        fix="Remove the declaration once nobody reads or writes its topics, or write a later day.",
        link="https://pulsar.apache.org/docs/next/admin-api-topics/#delete-topic",
    ),
    _rule(
        "REPLACEMENT_UNDECLARED",
        summary="A deprecated topic names a replacement that no file declares.",
        why="Whoever reads `deprecated` goes to the topic that `use` names. Where that one is declared in another repository, "
        "turn the rule off under `severities`, for the namespace alone.",
        example="""
topic: persistent://shop/sales/orders
deprecated: {use: persistent://shop/sales/order-v2}   # the topic is called orders-v2""",
        fix="Correct the name under `use`, declare that topic, or remove the key.",
        link="https://pulsar.apache.org/docs/next/concepts-messaging/#topics",
    ),
    _rule(
        "NAMESPACE_OPEN",
        severity="note",
        summary="Any producer may register the next version of a topic in this namespace.",
        why="With automatic updates a broker registers the schema of each producer that connects, as long as the strategy accepts it. "
        "Such a version is in no commit: it takes the number that Git's next version should have, and messages are misread until the "
        "difference is recorded (`drift --accept`). It is said of namespaces that a change brings; where it opens one that was there, that is PROTECTION_LOST.",
        example="""
namespace: shop/sales
schema_compatibility_strategy: BACKWARD""",
        fix="Set `is_allow_auto_update_schema: false`: `apply` registers versions all the same. `schema_validation_enforced: true` keeps "
        "clients without a schema out, too.",
        link="https://pulsar.apache.org/docs/next/schema-understand/#schema-autoupdate",
    ),
    _rule(
        "NAMESPACE_UNDECLARED",
        summary="A topic is in a namespace that no file declares.",
        why="`apply` creates the namespaces that topics need, so a typo in a topic's name would make a new one, where no "
        "consumer is and where the broker's own policies hold. (A tenant is created only if a namespace of it is declared, or with `--create-tenants`.) With `require_declared_namespaces: true`, which `init` writes, this is an "
        "error, and `plan` rejects such a topic, too. Otherwise it is a warning about namespaces that the change brings, where no topic was "
        "approved yet. There is one finding for each namespace, at its first topic.",
        example="""
namespace: shop/sales
---
topic: persistent://shop/salse/orders""",
        fix="Correct the topic's name, or declare the namespace in a document of its own: `namespace: tenant/namespace`.",
        link="https://pulsar.apache.org/docs/next/concepts-multi-tenancy/",
    ),
    _rule(
        "REFERENCE_UNUSED",
        summary="A file, glob or folder is listed under `references`, but the definition takes no type from it.",
        why="Either the definition was to use it and does not, or the entry is left over. As long as it stands there, a broken "
        "file makes the topic's declaration invalid.",
        example="""
schema:
  type: AVRO
  definition: {type: record, name: Order, fields: [{name: id, type: long}]}
  references: [../common/money.avsc]""",
        fix="Remove it from `references`, or use one of its types by its full name.",
        link="https://avro.apache.org/docs/1.11.1/specification/#names",
    ),
)
