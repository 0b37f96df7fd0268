"""`registry shadowed`: registrations over which the configuration wins."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from stint.bootstrap.operator import OperatorComposition
from stint.cli.group import NO_DATA_TABLE, CommandError, add_command, check_tenant
from stint.cli.output import show_json, show_table
from stint.domain.ids import TENANT
from stint.services.registry.shadowed import ShadowedRegistration, ShownKind

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

HEAD = ("KIND", "ID", "NAME OF", "CAN BE KEPT")
SETTINGS = (
    "JSON object of the variables of the stack's function registry, whose names the registrations are compared with "
    "(default: the variables of this process)"
)


def add_commands(groups: "Subparsers") -> None:
    """Add the group to the parser."""
    commands = groups.add_parser("registry", help="registrations").add_subparsers(metavar="COMMAND", required=True)
    command = add_command(commands, "shadowed", "List the registrations over which the configuration wins.")
    command.add_argument("--data-table", help="table of data of a deployed stack (default: STINT_TABLE)")
    command.add_argument("--bucket", help="bucket of a deployed stack (default: STINT_BUCKET)")
    command.add_argument("--settings", type=Path, metavar="FILE", help=SETTINGS)
    command.add_argument("--tenant", default=TENANT, help="tenant (default: %(default)s)")
    command.add_argument(
        "--keep", action="append", default=[], metavar="KIND:ID", help="mark this one, so that it wins; repeatable"
    )
    command.set_defaults(run=list_shadowed, needs_keys_table=False)


async def list_shadowed(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    """Mark the registrations to keep, and list those that remain."""
    if not composition.settings.table:
        raise CommandError(NO_DATA_TABLE)
    from stint.bootstrap.shadowed import make_shadowed_registrations  # noqa: PLC0415 - the models, for this command only

    tenant = check_tenant(arguments.tenant)
    shadowed = make_shadowed_registrations(composition.settings, composition.store, tenant)
    for kind, identifier in [read_name(text) for text in arguments.keep]:
        await shadowed.keep(kind, identifier)
    found = await shadowed.list()
    if arguments.json:
        show_json(found)
    elif found:
        show_table(HEAD, [row_of(each) for each in found])
    else:
        print(f"The configuration wins over no registration of the tenant {arguments.tenant}.")


def read_name(text: str) -> tuple[ShownKind, str]:
    """Return the kind and the id of a registration. Raises CommandError."""
    for kind in get_args(ShownKind):
        if text.startswith(f"{kind}:") and text != f"{kind}:":
            return kind, text.partition(":")[2]
    kinds = ", ".join(get_args(ShownKind))
    raise CommandError(f"{text!r} is no registration. Write KIND:ID, such as toolgroup:mcp::crm. Kinds: {kinds}.")


def row_of(shadowed: ShadowedRegistration) -> tuple[str, str, str, str]:
    return shadowed.kind, repr(shadowed.id)[1:-1], shadowed.reason, "yes" if shadowed.can_be_kept else "no"
