"""`stop session|turn|response|conversation|key|tenant|list|lift`: stops of work."""

import argparse
from typing import TYPE_CHECKING, get_args

from stint.bootstrap.operator import OperatorComposition
from stint.cli.group import NO_DATA_TABLE, CommandError, add_command, check_tenant
from stint.cli.output import format_time, show_json, show_table
from stint.domain.ids import TENANT
from stint.domain.stop_requests import StopObject
from stint.domain.stops import StopKind, describe_stop, stop_name

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

HEAD = ("KIND", "ID", "STOPPED")
EFFECT = "New work is refused. Running work ends within 2 seconds. Lift it with: stop lift {kind} {id}{tenant}"


def add_commands(groups: "Subparsers") -> None:
    """Add the group to the parser."""
    commands = groups.add_parser("stop", help="stops of running work").add_subparsers(metavar="COMMAND", required=True)
    add_stop_command(commands, "session", "Stop a session.").add_argument("id", help="the session's id")
    add_stop_command(commands, "turn", "Stop a turn.").add_argument("id", help="the turn's id")
    add_stop_command(commands, "response", "Stop a response.").add_argument("id", help="the response's id")
    conversation = add_stop_command(commands, "conversation", "Stop the responses of a conversation.")
    conversation.add_argument("id", help="the conversation's id")
    add_stop_command(commands, "key", "Stop an API key.").add_argument("id", help="the key's id, not the key")
    add_stop_command(commands, "tenant", "Stop a whole tenant.").set_defaults(id="")
    add_data_command(commands, "list", "List the stops of a tenant.").set_defaults(run=list_stops)
    lift = add_data_command(commands, "lift", "Lift a stop.")
    lift.add_argument("kind", choices=get_args(StopKind))
    lift.add_argument("id", nargs="?", default="", help="the id of what was stopped; none for a tenant")
    lift.set_defaults(run=lift_stop)


def add_stop_command(commands: "Subparsers", kind: StopKind, summary: str) -> argparse.ArgumentParser:
    """Add a command that stops something of this kind."""
    command = add_data_command(commands, kind, summary)
    command.set_defaults(run=stop_work, kind=kind)
    return command


def add_data_command(commands: "Subparsers", name: str, summary: str) -> argparse.ArgumentParser:
    """Add a command with the options that all commands of this group have."""
    command = add_command(commands, name, summary)
    command.add_argument("--data-table", help="table of data of a deployed stack (default: STINT_TABLE)")
    command.add_argument("--tenant", default=TENANT, help="tenant (default: %(default)s)")
    return command


async def stop_work(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    tenant = admit(arguments, composition)
    stopped = await composition.stops.add(tenant, arguments.kind, arguments.id)
    show(stopped, arguments, "Stopped")
    if not arguments.json:
        of_tenant = "" if tenant == TENANT else f" --tenant {tenant}"
        print(EFFECT.format(kind=stopped.kind, id=arguments.id, tenant=of_tenant).replace("  ", " "))


async def list_stops(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    found = await composition.stops.list(admit(arguments, composition))
    if arguments.json:
        show_json(found)
    elif found:
        show_table(HEAD, [(each.kind, each.id, format_time(each.stopped_at or 0)) for each in found])
    else:
        print(f"Nothing of the tenant {arguments.tenant} is stopped.")


async def lift_stop(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    tenant = admit(arguments, composition)
    lifted = await composition.stops.lift(tenant, arguments.kind, arguments.id)
    if lifted.stopped_at is None:
        raise CommandError(f"{describe_stop(stop_name(lifted.kind, lifted.id))} is not stopped.")
    show(lifted, arguments, "Lifted the stop of")


def admit(arguments: argparse.Namespace, composition: OperatorComposition) -> str:
    """Return the tenant of a command. Raises CommandError if it is none, or no table is named."""
    if not composition.settings.table:
        raise CommandError(NO_DATA_TABLE)
    return check_tenant(arguments.tenant)


def show(stop: StopObject, arguments: argparse.Namespace, what: str) -> None:
    if arguments.json:
        show_json(stop)
    else:
        print(f"{what} {stop.kind} {stop.id} of the tenant {stop.tenant}.")
