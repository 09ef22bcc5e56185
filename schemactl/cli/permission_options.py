"""The options that permit what a plan destroys: one table, from which commands read, compare and print them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, Literal

from schemactl.core.errors import UsageError
from schemactl.core.names import NamespaceName, TargetNames, TopicName, find_matching_topics, parse_name
from schemactl.core.policies import SETTINGS, get_setting_address

if TYPE_CHECKING:
    from schemactl.core.json_values import Json
    from schemactl.deploy.permissions import Permissions
    from schemactl.deploy.plan import Plan


@dataclass(frozen=True, slots=True)
class PermissionOption:
    """An option of `plan`, `apply` and `rebuild` that permits something.

    Attributes:
        name: the option, as the command line stores it.
        attribute: the permission, as an attribute of `Permissions`.
        takes: the values of the option, or "nothing".
        help: the option with its help, for `add_options`.
        consequence: what the plan does that needs the permission, with `{}` for a name; "" if a plan file has the permission itself.
        has_globs: whether a value can be a glob.
    """

    name: str
    attribute: str
    takes: Literal["deletions", "topics", "settings", "nothing"]
    help: str
    consequence: str = ""
    has_globs: bool = False

    @property
    def takes_topics(self) -> bool:
        """Whether the values of the option are names of topics."""
        return self.takes in ("deletions", "topics")

    def select(self, value: str, names: Iterable[Any]) -> Collection[Any]:
        """Return those of `names`, topics or addresses of settings, that `value` permits."""
        if self.takes_topics:
            return find_matching_topics(value, names, globs=self.has_globs)
        return [name for name in names if name == value]


PERMISSION_OPTIONS: Final = (
    PermissionOption(
        "allow_delete",
        "delete",
        "deletions",
        "--allow-delete TOPIC...: delete the schema of a topic that is no longer declared: a tombstone gets the next "
        "number; a glob selects all such topics",
        "deletes the schema of {}",
        has_globs=True,
    ),
    PermissionOption(
        "force_delete",
        "force_delete",
        "deletions",
        "--force-delete TOPIC...: the same, with all stored versions: numbering starts again at 0",
        "deletes the schema of {} by force",
    ),
    PermissionOption(
        "allow_data_loss",
        "lose",
        "settings",
        "--allow-data-loss ADDRESS...: apply a setting that can lose messages; ADDRESS is a namespace or topic with "
        "the setting, as a plan without this option shows it",
        "sets {}, which can lose messages",
    ),
    PermissionOption(
        "allow_unreadable_messages",
        "unreadable",
        "topics",
        "--allow-unreadable-messages TOPIC...: delete the topic's schemas although messages that it retains need them",
        "makes messages of {} unreadable",
    ),
    PermissionOption(
        "relax_while_replaying",
        "relax",
        "nothing",
        "--relax-while-replaying: register approved versions that today's strategy would reject, by setting "
        "ALWAYS_COMPATIBLE during the uploads",
        "registers versions under ALWAYS_COMPATIBLE",
    ),
    PermissionOption(
        "create_tenants",
        "create_tenants",
        "nothing",
        "--create-tenants: create missing tenants also where no file declares a namespace of them",
    ),
)
"""The permission options, in the order of their help."""

PERMISSION_NAMES: Final = tuple(option.name for option in PERMISSION_OPTIONS)
"""The names of the permission options, as the command line stores them."""


def read_permissions(
    args: argparse.Namespace,
    names: TargetNames,
    find_topics: Callable[[PermissionOption, list[str]], Iterable[TopicName]],
) -> Permissions:
    """Return the permissions that the options `args` give, by the target's names.

    Args:
        args: the options; a command without an option does not give its permission.
        names: the target's names.
        find_topics: returns the topics, by the target's names, that the values of an option name.

    Raises:
        UsageError: if a value names something unknown.
    """
    from schemactl.deploy.permissions import Permissions

    permissions: dict[str, Any] = {}
    for option in PERMISSION_OPTIONS:
        value = getattr(args, option.name, None)
        if option.takes == "nothing":
            permissions[option.attribute] = bool(value)
        elif option.takes == "settings":
            permissions[option.attribute] = frozenset(_list_setting_addresses(value or [], names))
        else:
            permissions[option.attribute] = frozenset(find_topics(option, value or []))
    return Permissions(**permissions)


def _list_setting_addresses(texts: list[str], names: TargetNames) -> Iterator[str]:
    """Yield the addresses of the settings in `texts`; a declared name is yielded together with its name on the target."""
    for argument in texts:
        text, _, setting = argument.rpartition(":")
        try:
            name = parse_name(text)
        except ValueError:
            name = None
        row = SETTINGS.get(setting)
        if name is None or row is None or not (row.path if isinstance(name, NamespaceName) else row.topic_path):
            raise UsageError(
                f"--allow-data-loss {argument}: expected a namespace or topic and its setting, such as "
                f"shop/sales:{next(iter(SETTINGS))}",
                fix="copy it from the plan, which names the settings that could lose messages",
            )
        yield get_setting_address(name, setting)
        if names.has(name.namespace_name):
            yield get_setting_address(names.to_target(name), setting)


def find_missing_permissions(plan: Plan, args: argparse.Namespace) -> list[str]:
    """Return the consequences of the plan that the options do not permit: of deletions first, then of settings.

    Raises:
        UsageError: if an option permits something that the plan does not do.
    """
    unused_options, missing = [], []
    needs = plan.needs
    for option in sorted(PERMISSION_OPTIONS, key=lambda option: not option.takes_topics):
        needed, permitted = getattr(needs, option.attribute), getattr(args, option.name)
        if option.takes == "nothing":
            unused_options += [format_option(option.name)] if permitted and not needed else []
            missing += [option.consequence] if needed and not permitted else []
        else:
            unused_options += [
                f"{format_option(option.name)} {value}" for value in permitted if not option.select(value, needed)
            ]
            missing += [
                option.consequence.format(name)
                for name in sorted(needed)
                if not any(option.select(value, [name]) for value in permitted)
            ]
    if unused_options:
        raise UsageError(f"{unused_options[0]}: {args.plan} does not do that; give the option to `schemactl plan`")
    return missing


def format_apply_command(plan: Plan, file: str) -> str:
    """Return the command that applies the plan file, with the permissions that the plan needs."""
    options: Json = {}
    needs = plan.needs
    for option in PERMISSION_OPTIONS:
        needed = getattr(needs, option.attribute)
        if option.takes_topics:
            options[option.name] = [name.schema_id for name in sorted(needed)]
        else:
            options[option.name] = needed if option.takes == "nothing" else sorted(needed)
    return f"schemactl apply {quote(file)}{format_options(options)}"


def format_options(options: Json) -> str:
    """Return the options with their values, each after a space, as the user writes them."""
    words = []
    for name, value in options.items():
        option = format_option(name)
        words += [option] if value is True else [f"{option} {quote(text)}" for text in value or ()]
    return "".join(f" {word}" for word in words)


def format_option(name: str) -> str:
    """Return the option that the command line stores as `name`."""
    return f"--{name.replace('_', '-')}"
